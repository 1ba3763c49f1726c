"""`dovetail test-backend NAME`: the conformance kit against one device."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from ..command_line import WRONG, Parser, whole


def main(arguments: Sequence[str]) -> int:
    """Runs the kit; 0 if the device conforms."""
    asked, more = parser().parse_known_args(arguments)
    return run([*common(asked), "--pyargs", "dovetail.testing"], more)


def run(options: Sequence[str], more: Sequence[str]) -> int:
    """Runs pytest; its exit status. `more` are the user's own options."""
    try:
        import pytest  # an optional dependency, and slow to import
    except ImportError:
        print("dovetail's conformance kit needs pytest: pip install pytest", file=sys.stderr)
        return WRONG
    if any(option.startswith("-n") for option in more):  # cases that share programs go together
        if find_spec("xdist") is None:
            print(
                "-n is an option of pytest-xdist: pip install pytest-xdist, or leave it away",
                file=sys.stderr,
            )
            return 2
        more = ["--dist=loadgroup", *more]
    status = int(pytest.main([*options, *more]))
    return WRONG if status == pytest.ExitCode.USAGE_ERROR else status


def parser() -> Parser:
    """The options of this command."""
    made = Parser(
        prog="dovetail test-backend",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, ..., and -n 2 to pytest-xdist, if installed",
    )
    made.add_argument("device", metavar="NAME", help='a device, e.g. "opencl" or "opencl:1"')
    options(made)
    return made


def options(made: Parser) -> None:
    """Adds what all kits take."""
    made.add_output(None, "write a certificate, as JSON", "--report")
    made.add_argument(
        "--sample", metavar="N", type=whole, default=1, help="run about one case in N"
    )


def common(asked: argparse.Namespace) -> list[str]:
    """What both kits tell pytest."""
    # No configuration file: the kit's verdict must not depend on the directory it is run in.
    options = [
        "-c",
        os.devnull,
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
    if asked.out:
        options.append(f"--dovetail-report={asked.out}")
    return options
