"""`dovetail completion SHELL`: print the completion script of a shell.

    eval "$(dovetail completion bash)"          bash, in ~/.bashrc
    dovetail completion zsh > FOLDER/_dovetail  zsh, FOLDER being one of $fpath

It completes commands, options, and the devices that are installed when it is written.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from ..command_line import CommandParser
from ..install_source import install_command
from ..plugins.registry import registry

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
FILE_OPTIONS = ("out", "report", "folder", "into")  # options that name files


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail completion", description=__doc__)
    options.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    return options


def main(arguments: Sequence[str]) -> int:
    """Print the completion script; return 2 with an error if shtab or its support is missing."""
    options = parser()
    asked = options.parse_args(arguments)
    if importlib.util.find_spec("shtab") is None:
        return options.print_error(
            "the package shtab is missing; install it: "
            f"{install_command('dovetail-tensor[completion]')}"
        )
    shtab: Any = importlib.import_module("shtab")
    if asked.shell not in shtab.SUPPORTED_SHELLS:
        return options.print_error(
            f"this version of shtab does not support {asked.shell}; "
            f"{install_command('shtab', option='--upgrade')}"
        )
    cli: Any = importlib.import_module("dovetail.commands.cli")
    print(shtab.complete(tree(cli.COMMANDS), asked.shell))
    return 0


def tree(commands: Mapping[str, tuple[str, str]]) -> CommandParser:
    """Build one parser of all commands with their options, for completion scripts alone."""
    whole = CommandParser(prog="dovetail")
    whole.add_argument("--version", action="store_true", help="print the version")
    _add_subcommands(whole, commands)
    return whole


def _add_subcommands(parent: CommandParser, commands: Mapping[str, tuple[str, str]]) -> None:
    """Add each command, and the parts of the demo below, with their options to a parser."""
    branches = parent.add_subparsers()
    for name, (module, help) in commands.items():
        command_module: Any = importlib.import_module(module)
        options: CommandParser = command_module.parser()
        branch = branches.add_parser(name, parents=[options], add_help=False, help=help)
        for action in branch._actions:
            _set_completion(action)
        if subcommands := getattr(command_module, "DEMO_PARTS", None):
            _add_subcommands(branch, subcommands)


def _set_completion(action: argparse.Action) -> None:
    """Set on an option the values that a shell offers for it, if these are files or devices."""
    if action.dest in FILE_OPTIONS:
        action.complete = importlib.import_module("shtab").FILE  # type: ignore[attr-defined]  # shtab has no types
    elif action.dest in ("device", "replay"):
        action.choices = [*registry.records()]
