"""The `dovetail` command. Each subcommand is a module with a `main(arguments) -> exit status`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

# name -> (module with `main`, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("dovetail.commands.demo", "a tour of dovetail on this machine"),
    "devices": ("dovetail.commands.devices", "list the devices that can be used here"),
    "doctor": (
        "dovetail.commands.doctor",
        "check every backend plugin, each in a process of its own",
    ),
    "bench": ("dovetail.commands.bench", "measure dovetail on this machine"),
    "memory": (
        "dovetail.commands.memory_report",
        "measure a device's memory, or draw a snapshot of it",
    ),
    "new-backend": ("dovetail.commands.new_backend", "write the package of a new backend"),
    "test-backend": ("dovetail.testing.cli", "run the conformance kit against a backend"),
    "test-dtype": ("dovetail.testing.cli_dtype", "run the conformance kit against a dtype"),
    "test-op": ("dovetail.testing.cli_op", "check an op of one's own, named as module:name"),
    "test-layout": ("dovetail.testing.cli_layout", "run the conformance kit against a layout"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status of `dovetail COMMAND ...`."""
    asked = _parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    module, _ = COMMANDS[asked.command]
    run = _find(module)
    if run is None:
        print(f"dovetail {asked.command} comes with a later version of dovetail.", file=sys.stderr)
        return 2
    return int(run(asked.rest) or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail", description="A tensor library whose devices are pip packages."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, help) in COMMANDS.items():
        command = commands.add_parser(name, help=help, add_help=False, prefix_chars="\0")
        command.add_argument("rest", nargs="*")
    return parser


def _find(module: str) -> Any:
    """The `main` of a module; None where this version has no such module."""
    if importlib.util.find_spec(module) is None:
        return None
    return getattr(importlib.import_module(module), "main", None)


if __name__ == "__main__":
    sys.exit(main())
