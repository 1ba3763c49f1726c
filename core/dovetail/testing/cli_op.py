"""`dovetail test-op MODULE:NAME`: checks of an op of one's own."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any

from ..command_line import CommandParser, format_error
from ..errors import ArgumentError, DovetailError
from .own_ops import load_op_subject, run_checks


def main(arguments: Sequence[str]) -> int:
    """Run the checks and print the outcomes; return 0 if the op passes all of them."""
    options = parser()
    asked = options.parse_args(arguments)
    try:
        judge = load_op_subject(load_op(asked.op), asked.op, asked.device)
    except DovetailError as error:
        return options.print_error(format_error(error))
    print(f"{asked.op} on {', '.join(map(str, judge.devices))}, {len(judge.calls)} examples")
    outcomes = []
    for outcome in run_checks(judge, asked.k):
        outcomes.append(outcome)
        count = f"{outcome.comparisons} compared, {outcome.seconds:.1f} s"
        print(f"  {outcome.state:7} {outcome.name:24} {count}", flush=True)
        for line in outcome.message.splitlines():
            print(f"          {line}")
    failed = [o.name for o in outcomes if o.state == "failed"]
    compared = sum(o.comparisons for o in outcomes)
    if failed:
        print(f"{asked.op} is not as an op should be: {', '.join(failed)}")
    elif not compared:
        print("nothing was compared: that proves nothing")
    else:
        print(f"{asked.op} passes: {compared} comparisons")
    return int(bool(failed) or not compared)


def load_op(name: str) -> Any:
    """Import "module:name", also from the current folder; return it.

    Raises: ArgumentError if it is missing.
    """
    module, _, path = name.partition(":")
    if not module or not path:
        raise ArgumentError(f"an op is named as module:name, not {name!r}")
    sys.path.insert(0, os.getcwd())
    try:
        return reduce(getattr, path.split("."), importlib.import_module(module))
    except ImportError as error:
        raise ArgumentError(f"{module} cannot be imported: {error}") from error
    except AttributeError as error:
        raise ArgumentError(f"{error}") from error
    finally:
        sys.path.remove(os.getcwd())


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    command = CommandParser(prog="dovetail test-op", description=__doc__)
    command.add_argument(
        "op", metavar="MODULE:NAME", help="where the op is, e.g. mine.ops:softplus"
    )
    command.add_argument(
        "--device",
        metavar="NAME",
        action="append",
        default=[],
        help="compare this device with the reference; may be repeated; without it all there are",
    )
    command.add_argument("-k", metavar="TEXT", default="", help="only checks whose name has TEXT")
    return command
