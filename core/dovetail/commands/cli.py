"""The `dovetail` command. Each subcommand is a module with a `main(arguments) -> exit status`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any

from dovetail.command_line import EXIT_FAILURE, CommandParser, format_error

from ..errors import DovetailError, InternalError

INTERRUPTED = 130  # the shells' exit status: 128 + SIGINT

# name -> (module with `main` and `parser`, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": (
        "dovetail.commands.demo",
        "run a tour of dovetail on this machine; its parts are below",
    ),
    "devices": ("dovetail.commands.devices", "list the usable devices"),
    "doctor": (
        "dovetail.commands.doctor",
        "check every backend plugin, each in a separate process",
    ),
    "memory": (
        "dovetail.commands.memory_report",
        "measure a device's memory, or draw a snapshot of it",
    ),
    "new-backend": ("dovetail.commands.new_backend", "write the package of a new backend"),
    "test-backend": ("dovetail.testing.cli", "run the conformance kit against a backend"),
    "test-dtype": ("dovetail.testing.cli_dtype", "run the conformance kit against a dtype"),
    "test-op": ("dovetail.testing.cli_op", "check a custom op, named as module:name"),
    "test-layout": ("dovetail.testing.cli_layout", "run the conformance kit against a layout"),
    "completion": ("dovetail.commands.completion", "print the completion script of a shell"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `dovetail COMMAND ...` and return its exit status; an unknown command exits with 2.

    An error that a user can fix is one line on stderr, and status 2; an internal one is a
    traceback.
    """
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    parser = _build_parser(not words or words[0] in ("-h", "--help"))
    if not words:
        parser.print_help()
        return 0
    if words[0] not in COMMANDS and not words[0].startswith("-"):
        parser.error(f"unknown command {words[0]!r}{_suggestion_text(words[0])}")
    options = parser.parse_args(words)
    module, _ = COMMANDS[options.command]
    run = _find(module)
    if run is None:
        print(f"dovetail {options.command} is not in this version of dovetail.", file=sys.stderr)
        return EXIT_FAILURE
    return _run_command(_full_name(options.command, options.rest, module), run, options.rest)


def _run_command(name: str, run: Any, options: Sequence[str]) -> int:
    """Call a command's `main`, and return its status; print an interrupt or a user's error."""
    try:
        return int(run(options) or 0)
    except KeyboardInterrupt:
        print(f"dovetail {name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (DovetailError, OSError) as error:
        if isinstance(error, InternalError):
            raise
        print(f"dovetail {name}: {format_error(error)}", file=sys.stderr)
        return EXIT_FAILURE


def _full_name(command: str, options: Sequence[str], module: str) -> str:
    """Return a command's name for its errors, with the demo part that the first option names."""
    part_names = getattr(sys.modules.get(module), "DEMO_PARTS", ())
    return " ".join([command, *(part for part in options[:1] if part in part_names)])


def _suggestion_text(name: str) -> str:
    """Return "; did you mean ...?" with the closest command, or ""."""
    near = difflib.get_close_matches(name, COMMANDS, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _build_parser(with_demo_parts: bool) -> CommandParser:
    """Build the parser of all commands; import the demo's parts only for the help text."""
    root = importlib.import_module("dovetail")
    demo_parts: dict[str, tuple[str, str]] = {}
    if with_demo_parts:
        demo_parts = importlib.import_module("dovetail.commands.demo").DEMO_PARTS
    width = max(len(name) for name in (*COMMANDS, *demo_parts))
    lines = [f"  demo {name:{width - 4}}  {help}" for name, (_, help) in demo_parts.items()]
    parser = CommandParser(
        prog="dovetail",
        description="A tensor library whose devices are pip packages.",
        epilog="\n".join(
            ["parts of the demo:", *lines, "", "Run `dovetail COMMAND --help` for details."]
        ),
    )
    version = f"dovetail {root.__version__}"
    parser.add_argument("-V", "--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, help) in COMMANDS.items():
        command = commands.add_parser(name, help=help, add_help=False, prefix_chars="\0")
        command.add_argument("rest", nargs="*")
    return parser


def _find(module: str) -> Any:
    """Import a module and return its `main`; None if the module or its `main` is missing."""
    if importlib.util.find_spec(module) is None:
        return None
    return getattr(importlib.import_module(module), "main", None)


if __name__ == "__main__":
    sys.exit(main())
