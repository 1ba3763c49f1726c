"""`dovetail test-dtype NAME`: the conformance kit against one dtype of a plugin."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .cli import common, run
from .dtype import case_files
from .kit import REFERENCE


def main(arguments: Sequence[str]) -> int:
    """Runs the kit; 0 if the dtype conforms."""
    asked, more = _parser().parse_known_args(arguments)
    cases = [f"dovetail.testing.{name}" for name in case_files()]
    return run([*common(asked), f"--dovetail-dtype={asked.dtype}", "--pyargs", *cases], more)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail test-dtype",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, -n 2, ...",
    )
    parser.add_argument("dtype", metavar="NAME", help='a dtype of a plugin, e.g. "float8_e4m3"')
    parser.add_argument("--device", metavar="NAME", default=REFERENCE, help="where it is tested")
    parser.add_argument("--report", metavar="FILE", help="write a certificate, as JSON")
    parser.add_argument(
        "--sample", metavar="N", type=int, default=1, help="run about one case in N"
    )
    return parser
