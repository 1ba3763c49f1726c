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

from ..command_line import CommandParser, positive_int
from ..install_source import install_command

# Options that print case after case anyway, or that need the terminal.
PLAIN_OUTPUT_OPTIONS = (
    "-v",
    "-vv",
    "-vvv",
    "--verbose",
    "-s",
    "--capture=no",
    "--pdb",
    "--collect-only",
    "--co",
)


def main(arguments: Sequence[str]) -> int:
    """Run the kit against the device named in the arguments; return 0 if the device conforms."""
    command = parser()
    asked, more = command.parse_known_args(arguments)
    return run(command, [*common_pytest_arguments(asked), "--pyargs", "dovetail.testing"], more)


def run(command: CommandParser, options: Sequence[str], user_options: Sequence[str]) -> int:
    """Run pytest with the kit's and the user's options; print usage errors; return its status."""
    try:
        import pytest  # an optional dependency, and slow to import
    except ImportError:
        return command.print_error(f"the conformance kit needs pytest: {install_command('pytest')}")
    if any(
        option.startswith("-n") for option in user_options
    ):  # cases that share programs go together
        if find_spec("xdist") is None:
            return command.print_error(
                f"-n is an option of pytest-xdist: {install_command('pytest-xdist')}, or omit it"
            )
        user_options = ["--dist=loadgroup", *user_options]
    if sys.stdout.isatty() and not any(option in PLAIN_OUTPUT_OPTIONS for option in user_options):
        user_options = [
            "-p",
            "dovetail.testing.bar",
            "-o",
            "console_output_style=classic",
            *user_options,
        ]
    errors = io.StringIO()
    with redirect_stderr(errors):
        status = int(pytest.main([*options, *user_options]))
    if status == pytest.ExitCode.USAGE_ERROR:
        return command.print_error(usage_error_text(errors.getvalue(), command.prog))
    sys.stderr.write(errors.getvalue())
    return status


def usage_error_text(errors: str, command: str) -> str:
    """Return pytest's message about wrong options, without its usage, or a whole traceback."""
    text = re.sub(r"\x1b\[[\d;]*m", "", errors).partition("ERROR: ")[2].strip()
    if text.startswith("usage:"):
        return f"{text.partition('error: ')[2].splitlines()[0]}; see {command} --help"
    return re.sub(r"^--dovetail-\w+=\S+: ", "", text)


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    command = CommandParser(
        prog="dovetail test-backend",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, ..., and -n 2 to pytest-xdist, if installed",
    )
    command.add_argument("device", metavar="NAME", help='a device, e.g. "opencl" or "opencl:1"')
    options(command)
    return command


def options(command: CommandParser) -> None:
    """Add the options that all kits have, `--report` and `--sample`, to a parser."""
    command.add_output(None, "write a certificate, as JSON", "--report")
    command.add_argument(
        "--sample", metavar="N", type=positive_int, default=1, help="run about one case in N"
    )


def common_pytest_arguments(parsed: argparse.Namespace) -> list[str]:
    """Return the arguments of pytest that all kits share, from the parsed options."""
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
        f"--dovetail-device={parsed.device}",
        f"--dovetail-sample={parsed.sample}",
    ]
    if parsed.out:
        options.append(f"--dovetail-report={parsed.out}")
    return options
