"""Shared parts of all commands: errors about options, devices and output files.

Each error is one line, is printed before work begins, and ends with exit status 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from .device_class import usable
from .errors import DovetailError

EXIT_FAILURE = 2  # the exit status of a command that cannot do its task
_FIX_PREFIX = "To fix it: "  # the beginning of the last line of errors of plugins
# The formats that Matplotlib writes without further packages. Importing it to ask would take time.
PICTURE_SUFFIXES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".webp",
    ".tif",
    ".tiff",
    ".svg",
    ".pdf",
    ".eps",
    ".ps",
)


class CommandParser(argparse.ArgumentParser):
    """A parser of a command's options. Its errors are one line."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **options)
        self._outputs: list[argparse.Action] = []
        self._pictures: list[argparse.Action] = []
        self._devices: list[argparse.Action] = []

    def error(self, message: str) -> NoReturn:
        """Print the message in one line and exit; overrides `argparse.ArgumentParser.error`."""
        self.exit(EXIT_FAILURE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def exit_with_error(self, message: str) -> NoReturn:
        """Print the message and exit with status 2: the options are valid but unusable."""
        self.exit(self.print_error(message))

    def print_error(self, message: str) -> int:
        """Print a message to stderr; return the exit status, without exiting."""
        print(f"{self.prog}: {message}", file=sys.stderr)
        return EXIT_FAILURE

    def add_output(self, default: Path | None, what: str, *names: str) -> argparse.Action:
        """Add `-o`, `--out`, a file to write, and `--force`, which may overwrite any file."""
        help = f"{what} (default: {default})" if default else what
        names = ("-o", "--out", *names)
        action = self.add_argument(
            *names, dest="out", metavar="FILE", type=Path, default=default, help=help
        )
        self._outputs.append(action)
        self.add_argument("--force", action="store_true", help="overwrite an existing file")
        return action

    def add_picture(self, default: Path) -> None:
        """Add `-o`, `--out`, a picture in the format of its name's ending, and `--force`."""
        self._pictures.append(self.add_output(default, "write the picture to FILE"))

    def add_devices(self, default: str) -> None:
        """Add `--device`, which may be repeated; `default` is for the help."""
        action = self.add_argument(
            "--device",
            action="append",
            metavar="DEVICE",
            help=f"use DEVICE; repeat the option for several (default: {default})",
        )
        self._devices.append(action)

    def add_device(self, default: str | None) -> None:
        """Add `--device`, which names one device; `default` is its value if it is not given."""
        action = self.add_argument(
            "--device", metavar="DEVICE", default=default, help="use DEVICE (default: %(default)s)"
        )
        self._devices.append(action)

    def parse_known_args(  # type: ignore[override]  # a namespace of one's own is not needed
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the options and open the devices; exit if a file, picture or device is unusable."""
        options, more = super().parse_known_args(args, namespace)
        for action in self._outputs:
            value = getattr(options, action.dest)
            must_not_exist = value != action.default and not options.force
            if value is not None and (wrong := describe_write_error(value, must_not_exist)):
                self.exit_with_error(wrong)
        for action in self._pictures:
            path = getattr(options, action.dest)
            if path.suffix.lower() not in PICTURE_SUFFIXES:
                self.exit_with_error(
                    f"{path} is not a picture; the name must end in {', '.join(PICTURE_SUFFIXES)}"
                )
        for action in self._devices:
            value = getattr(options, action.dest)
            for name in [value] if isinstance(value, str) else value or ():
                try:
                    usable(name)
                except DovetailError as error:
                    self.exit_with_error(format_error(error))
        return options, more


def describe_write_error(path: Path, keeps_existing: bool = False) -> str:
    """Return the reason why a file cannot be written, or ""."""
    folder = path.parent
    if path.is_dir():
        return f"{path} is a folder; give the name of a file"
    if keeps_existing and path.exists():
        return f"{path} already exists; overwrite it with --force, or use -o FILE"
    if not folder.is_dir():
        return f"{path} cannot be written: the folder {folder} does not exist"
    if not os.access(path if path.exists() else folder, os.W_OK):
        return f"{path} cannot be written: permission denied"
    return ""


def format_error(error: BaseException) -> str:
    """Return an error as one line: its first line and its fix, or its class if it has no text."""
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    fixes = [line for line in lines[1:] if line.startswith(_FIX_PREFIX)]
    return "; ".join([*lines[:1], *fixes[-1:]]) or type(error).__name__


def positive_int(text: str) -> int:
    """Parse a whole number of at least 1, else raise argparse's error, for `type=` of an option."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return number


def positive_seconds(text: str) -> float:
    """Parse a finite time above 0, else raise argparse's error, for `type=` of an option."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, got {text!r}")
    return number


def existing_folder(text: str) -> Path:
    """Return the path of an existing folder, else raise argparse's error; for `type=`."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"the folder {text!r} does not exist")
    return path
