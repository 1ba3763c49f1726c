"""The command `python -m dovetail.parallel`, which runs a script in several workers."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from .group import TIMEOUT_SECONDS
from .launcher import run
from .worker_failures import WorkerTraceback


def main(words: Sequence[str] | None = None) -> int:
    """Run the script of the command line in each worker; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m dovetail.parallel",
        description="Run a Python script in several workers. In the script, "
        "dt.parallel.init() returns the group of all workers.",
    )
    add = parser.add_argument
    add("--workers", "-w", type=int, required=True, metavar="W", help="the number of workers")
    add(
        "--timeout",
        type=float,
        default=TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="the longest time that a worker waits for another one (default: %(default)g)",
    )
    add(
        "--threads",
        type=int,
        metavar="N",
        help="the threads of the device cpu in each worker (default: the cores divided by W)",
    )
    add("script", help="the file of the script")
    add("args", nargs=argparse.REMAINDER, help="the arguments of the script")
    options = parser.parse_args(words)
    for name in ("workers", "timeout", "threads"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            parser.error(f"--{name} must be above 0, got {value}")
    if not Path(options.script).is_file():
        parser.error(f"there is no file {options.script!r}")
    try:
        run(
            run_script,
            (options.script, options.args),
            workers=options.workers,
            timeout=options.timeout,
            threads=options.threads,
        )
    except KeyboardInterrupt:
        return 130  # the shells' exit status: 128 + SIGINT
    except Exception as error:
        if isinstance(error.__cause__, WorkerTraceback):  # without the frames of this process
            lines = [str(error.__cause__).strip(), *getattr(error, "__notes__", ())]
        else:
            lines = [f"{parser.prog}: {error}"]
        print("\n".join(lines), file=sys.stderr)
        return 1
    return 0


def run_script(path: str, args: Sequence[str]) -> None:
    """Run a script as Python does: as `__main__`, with its folder first among the paths."""
    sys.argv = [path, *args]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if error.code:
            raise
