"""`dovetail test-layout NAME`: the conformance kit against one layout."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .cli import common, run
from .kit import REFERENCE


def main(arguments: Sequence[str]) -> int:
    """Runs the kit; 0 if the layout conforms."""
    asked, more = _parser().parse_known_args(arguments)
    cases = [f"dovetail.testing.{p.stem}" for p in sorted(Path(__file__).parent.glob("layout_*"))]
    return run([*common(asked), f"--dovetail-layout={asked.layout}", "--pyargs", *cases], more)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail test-layout",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, -n 2, ...",
    )
    parser.add_argument("layout", metavar="NAME", help='a layout, e.g. "sparse_coo"')
    parser.add_argument("--device", metavar="NAME", default=REFERENCE, help="where it is tested")
    parser.add_argument("--report", metavar="FILE", help="write a certificate, as JSON")
    parser.add_argument(
        "--sample", metavar="N", type=int, default=1, help="run about one case in N"
    )
    return parser
