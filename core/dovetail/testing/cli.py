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

# What shows case after case anyway, or has the terminal for itself.
DOTS = ("-v", "-vv", "-vvv", "--verbose", "-s", "--capture=no", "--pdb", "--collect-only", "--co")


def main(arguments: Sequence[str]) -> int:
    """Runs the kit; 0 if the device conforms."""
    command = parser()
    asked, more = command.parse_known_args(arguments)
    return run(command, [*common(asked), "--pyargs", "dovetail.testing"], more)


def run(command: Parser, options: Sequence[str], more: Sequence[str]) -> int:
    """Runs pytest; its exit status. `more` are the user's own options."""
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
    said = io.StringIO()
    with redirect_stderr(said):
        status = int(pytest.main([*options, *more]))
    if status == pytest.ExitCode.USAGE_ERROR:
        return command.refusal(complaint(said.getvalue(), command.prog))
    sys.stderr.write(said.getvalue())
    return status


def complaint(said: str, command: str) -> str:
    """What pytest says of wrong options, without its usage. A plugin's traceback stays whole."""
    text = re.sub(r"\x1b\[[\d;]*m", "", said).partition("ERROR: ")[2].strip()
    if text.startswith("usage:"):
        return f"{text.partition('error: ')[2].splitlines()[0]}; see {command} --help"
    return re.sub(r"^--dovetail-\w+=\S+: ", "", text)


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
    # No configuration: the kit's verdict must not depend on the directory that it is run in.
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
