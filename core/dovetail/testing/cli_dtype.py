"""`dovetail test-dtype NAME`: the conformance kit against one dtype of a plugin."""

from __future__ import annotations

from collections.abc import Sequence

from ..command_line import CommandParser
from .cli import common_pytest_arguments, options, run
from .dtype import case_files
from .kit import REFERENCE


def main(arguments: Sequence[str]) -> int:
    """Run the kit against the dtype named in the arguments; return 0 if the dtype conforms."""
    command = parser()
    asked, more = command.parse_known_args(arguments)
    cases = [f"dovetail.testing.{name}" for name in case_files()]
    return run(
        command,
        [*common_pytest_arguments(asked), f"--dovetail-dtype={asked.dtype}", "--pyargs", *cases],
        more,
    )


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    command = CommandParser(
        prog="dovetail test-dtype",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, -n 2, ...",
    )
    command.add_argument("dtype", metavar="NAME", help='a dtype of a plugin, e.g. "float8_e4m3"')
    command.add_argument("--device", metavar="NAME", default=REFERENCE, help="where it is tested")
    options(command)
    return command
