"""`dovetail completion SHELL`: what a shell needs to complete commands, options and devices.

    eval "$(dovetail completion bash)"          bash, in ~/.bashrc
    dovetail completion zsh > FOLDER/_dovetail  zsh, FOLDER being one of $fpath

Devices are those that are installed when it is written.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from ..command_line import Parser
from ..plugins.registry import registry

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
FILES = ("out", "report", "folder", "into")  # options that name files


def parser() -> Parser:
    """Return the options of this command."""
    options = Parser(prog="dovetail completion", description=__doc__)
    options.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    return options


def main(arguments: Sequence[str]) -> int:
    """Print the script; return 2 if the package that writes it is missing."""
    options = parser()
    asked = options.parse_args(arguments)
    if importlib.util.find_spec("shtab") is None:
        return options.refusal('it needs the package shtab: pip install "dovetail[completion]"')
    shtab: Any = importlib.import_module("shtab")
    if asked.shell not in shtab.SUPPORTED_SHELLS:
        return options.refusal(
            f"this version of shtab knows no {asked.shell}: pip install --upgrade shtab"
        )
    cli: Any = importlib.import_module("dovetail.commands.cli")
    print(shtab.complete(tree(cli.COMMANDS), asked.shell))
    return 0


def tree(commands: Mapping[str, tuple[str, str]]) -> Parser:
    """Return the whole command as one parser, which only a shell's completion reads."""
    whole = Parser(prog="dovetail")
    whole.add_argument("--version", action="store_true", help="print the version")
    _branch(whole, commands)
    return whole


def _branch(of: Parser, commands: Mapping[str, tuple[str, str]]) -> None:
    branches = of.add_subparsers()
    for name, (module, help) in commands.items():
        home: Any = importlib.import_module(module)
        options: Parser = home.parser()
        branch = branches.add_parser(name, parents=[options], add_help=False, help=help)
        for action in branch._actions:
            _complete(action)
        if subcommands := getattr(home, "PARTS", None):
            _branch(branch, subcommands)


def _complete(action: argparse.Action) -> None:
    """Set the values that an option may be followed by."""
    if action.dest in FILES:
        action.complete = importlib.import_module("shtab").FILE  # type: ignore[attr-defined]  # shtab has no types
    elif action.dest in ("device", "replay"):
        action.choices = [*registry.records()]
