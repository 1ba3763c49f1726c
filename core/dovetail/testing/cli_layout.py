"""`dovetail test-layout NAME`: the conformance kit against one layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..command_line import CommandParser
from .cli import common_pytest_arguments, options, run
from .kit import REFERENCE


def main(arguments: Sequence[str]) -> int:
    """Run the kit against the layout named in the arguments; return 0 if the layout conforms."""
    command = parser()
    asked, more = command.parse_known_args(arguments)
    cases = [f"dovetail.testing.{p.stem}" for p in sorted(Path(__file__).parent.glob("layout_*"))]
    return run(
        command,
        [*common_pytest_arguments(asked), f"--dovetail-layout={asked.layout}", "--pyargs", *cases],
        more,
    )


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    command = CommandParser(
        prog="dovetail test-layout",
        description=__doc__,
        epilog="Other options go to pytest: -k, -x, -n 2, ...",
    )
    command.add_argument("layout", metavar="NAME", help='a layout, e.g. "sparse_coo"')
    command.add_argument("--device", metavar="NAME", default=REFERENCE, help="where it is tested")
    options(command)
    return command
