"""`dovetail test-backend NAME`: the conformance kit against one device."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib.util import find_spec

from ..command_line import Parser, whole

# Options that print case after case anyway, or that need the terminal.
DOTS = ("-v", "-vv", "-vvv", "--verbose", "-s", "--capture=no", "--pdb", "--collect-only", "--co")


def main(arguments: Sequence[str]) -> int:
    """Run the kit; return 0 if the device conforms."""
    command = parser()
    asked, more = command.parse_known_args(arguments)
    return run(command, [*common(asked), "--pyargs", "dovetail.testing"], more)


def run(command: Parser, options: Sequence[str], more: Sequence[str]) -> int:
    """Run pytest, and return its exit status. `more`: the user's own options."""
    try:
        import pytest  # an optional dependency, and slow to import
    except ImportError:
        return command.refusal("the conformance kit needs pytest: pip install pytest")
    if any(option.startswith("-n") for option in more):  # cases that share programs go together
        if find_spec("xdist") is None:
            return command.refusal(
                "-n is an option of pytest-xdist: pip install pytest-xdist, or leave it away"
            )
        more = ["--dist=loadgroup", *more]
    if sys.stdout.isatty() and not any(option in DOTS for option in more):
        more = ["-p", "dovetail.testing.bar", "-o", "console_output_style=classic", *more]
    errors = io.StringIO()
    with redirect_stderr(errors):
        status = int(pytest.main([*options, *more]))
    if status == pytest.ExitCode.USAGE_ERROR:
        return command.refusal(complaint(errors.getvalue(), command.prog))
    sys.stderr.write(errors.getvalue())
    return status


def complaint(errors: str, command: str) -> str:
    """Return pytest's message about wrong options, without its usage, or a whole traceback."""
    text = re.sub(r"\x1b\[[\d;]*m", "", errors).partition("ERROR: ")[2].strip()
    if text.startswith("usage:"):
        return f"{text.partition('error: ')[2].splitlines()[0]}; see {command} --help"
    return re.sub(r"^--dovetail-\w+=\S+: ", "", text)


def parser() -> Parser:
    """Return the options of this command."""
    command = Parser(
        prog="dovetail test-backend",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, ..., and -n 2 to pytest-xdist, if installed",
    )
    command.add_argument("device", metavar="NAME", help='a device, e.g. "opencl" or "opencl:1"')
    options(command)
    return command


def options(command: Parser) -> None:
    """Add the options of all kits."""
    command.add_output(None, "write a certificate, as JSON", "--report")
    command.add_argument(
        "--sample", metavar="N", type=whole, default=1, help="run about one case in N"
    )


def common(asked: argparse.Namespace) -> list[str]:
    """Return the arguments of pytest for all kits."""
    # No configuration file: the kit's verdict must not depend on the current directory.
    options = [
        "-c",
        os.devnull,
        "--noconftest",
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
