"""`dovetail test-backend NAME`: the conformance kit against one device."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec


def main(arguments: Sequence[str]) -> int:
    """Runs the kit; 0 if the device conforms."""
    asked, more = _parser().parse_known_args(arguments)
    return run([*common(asked), "--pyargs", "dovetail.testing"], more)


def run(options: Sequence[str], more: Sequence[str]) -> int:
    """Runs pytest; its exit status. `more` are the user's own options."""
    try:
        import pytest  # an optional dependency, and slow to import
    except ImportError:
        print("dovetail's conformance kit needs pytest: pip install pytest", file=sys.stderr)
        return 2
    if any(option.startswith("-n") for option in more):  # cases that share programs go together
        if find_spec("xdist") is None:
            print(
                "-n is an option of pytest-xdist: pip install pytest-xdist, or leave it away",
                file=sys.stderr,
            )
            return 2
        more = ["--dist=loadgroup", *more]
    return int(pytest.main([*options, *more]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail test-backend",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, ..., and -n 2 to pytest-xdist, if installed",
    )
    parser.add_argument("device", metavar="NAME", help='a device, e.g. "opencl" or "opencl:1"')
    parser.add_argument("--report", metavar="FILE", help="write a certificate, as JSON")
    parser.add_argument(
        "--sample", metavar="N", type=int, default=1, help="run about one case in N"
    )
    return parser


def common(asked: argparse.Namespace) -> list[str]:
    """What both kits tell pytest."""
    # No configuration file: the kit's verdict must not depend on the directory it is run in.
    options = [
        "-c",
        "/dev/null",
        "--rootdir",
        ".",
        "-p",
        "dovetail.testing.plugin",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",  # dovetail itself has been imported
    ]
    options += [
        "-q",
        "--tb=short",
        f"--dovetail-device={asked.device}",
        f"--dovetail-sample={asked.sample}",
    ]
    if asked.report:
        options.append(f"--dovetail-report={asked.report}")
    return options
