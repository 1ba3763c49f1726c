"""`dovetail memory`: measure how fast a device allocates, reuses and copies memory.

It also prints the statistics of the allocator.

    dovetail memory DEVICE --record FILE.json SCRIPT ...   run a script and record its allocations
    dovetail memory FILE.json                              draw the record as a page for a browser
    dovetail memory FILE.json --replay DEVICE              repeat the recorded allocations
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .. import memory
from ..command_line import CommandParser, describe_write_error, format_error, positive_int
from ..device_class import Device, device, usable
from ..errors import ArgumentError
from ..memory.caching_allocator import CachingAllocator
from ..memory.tracing.html_report import draw
from ..memory.tracing.replay import TraceStep, parse_trace, replay_trace, steps_of
from ..memory.tracing.snapshot import load
from ..memory.units import MIB
from ..plugins.device_handle import OpenedDevice
from ..plugins.registry import open_device


def main(arguments: Sequence[str]) -> int:
    """Record, replay, draw or measure; return 0, 1 if a script fails, 2 for an invalid file."""
    options = parser()
    asked = options.parse_args(arguments)
    if asked.record is not None:
        if wrong := _why_not_recordable(*asked.record):
            return options.print_error(wrong)
        return _record(usable(asked.what), *asked.record)
    try:
        if asked.replay is not None:
            _replay_and_print(Path(asked.what or ""), asked.replay)
        elif asked.what is not None and asked.what.endswith(".json"):
            _write_page(Path(asked.what), asked.out)
        else:
            Console(soft_wrap=True).print(table(open_device(device(asked.what)), asked.mib * MIB))
    except (OSError, ValueError) as error:
        return options.print_error(format_error(error))
    return 0


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail memory", description=__doc__)
    options.add_argument(
        "--mib", type=positive_int, default=64, help="copy this many MiB (default: %(default)s)"
    )
    options.add_output(None, "write the page to FILE (default: next to FILE.json)", "--output")
    options.add_argument(
        "--replay", metavar="DEVICE", help="repeat the recorded allocations on DEVICE"
    )
    options.add_argument(
        "--record",
        nargs=argparse.REMAINDER,
        metavar="FILE.json SCRIPT",
        help="run SCRIPT with its arguments, and record its allocations on DEVICE in FILE.json",
    )
    options.add_argument(
        "what",
        nargs="?",
        metavar="DEVICE or FILE.json",
        help="measure DEVICE (default: the default device), or draw the record FILE.json",
    )
    return options


def _why_not_recordable(target: str = "", script: str = "", *options: str) -> str:
    """Return the error that prevents a recording, or "" if none is known."""
    if not script:
        return "--record: expected FILE.json and SCRIPT"
    return describe_write_error(Path(target)) or (
        "" if Path(script).is_file() else f"the file {script} does not exist"
    )


def _record(dev: Device, target: str, script: str, *options: str) -> int:
    """Run a script as Python would, and write its allocations to a page; return 1 if it fails."""
    saved_argv, sys.argv = sys.argv, [script, *options]
    sys.path.insert(0, str(Path(script).resolve().parent))
    memory.trace(True)
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:
        traceback.print_exc()  # the script's own error, for its author
        return 1
    finally:
        memory.trace(False)
        memory.html_report(target, dev)
        sys.path.pop(0)
        sys.argv = saved_argv
    return 0


def _replay_and_print(trace: Path, name: str) -> None:
    """Replay a recorded trace on a new allocator of a device, and print time and peak."""
    steps = _read_trace(trace)
    opened = open_device(device(name))
    allocator = CachingAllocator(opened.backend, opened.device)
    seconds = replay_trace(steps, allocator, lambda number: opened.backend.create_stream())
    stats = allocator.stats()
    print(
        f"{len(steps):,} steps on {opened.device}: {seconds / max(1, len(steps)) * 1e6:.2f} us"
        f" each, peak {stats.peak_live_bytes:,} bytes live of {stats.peak_reserved:,} reserved,"
        f" {stats.device_allocations:,} requests to the device, {stats.out_of_memory:,} refused"
    )


def _read_trace(trace: Path) -> list[TraceStep]:
    """Read a trace from a .json or a text file. Raises: ArgumentError for an invalid text."""
    if trace.suffix == ".json":
        return list(steps_of(load(trace)))
    try:
        return parse_trace(trace.read_text("utf-8"))
    except ValueError as error:
        raise ArgumentError(f"{trace}: {error}") from error


def _write_page(snapshot: Path, output: Path | None) -> None:
    """Write a recorded snapshot as an HTML page beside it or at `output`; print the path."""
    target = output or snapshot.with_suffix(".html")
    # names of files may be invalid text
    target.write_text(draw(load(snapshot)), encoding="utf-8", errors="backslashreplace")
    print(target)


def table(opened: OpenedDevice, nbytes: int) -> Table:
    """Measure allocations and copies of `nbytes`; return a table of times and statistics."""
    rows = Table("on " + str(opened.device), "")
    allocate = opened.allocator.allocate
    rows.add_row(
        f"allocate {nbytes // MIB} MiB, first time", _measure_time(lambda: allocate(nbytes), 1)
    )
    rows.add_row(
        f"allocate {nbytes // MIB} MiB, again", _measure_time(lambda: allocate(nbytes), 1000)
    )
    rows.add_row("allocate 1 KiB, again", _measure_time(lambda: allocate(1024), 1000))
    for name, seconds in _measure_copies(opened, nbytes):
        rows.add_row(name, f"{nbytes / seconds / 2**30:.1f} GiB/s")
    stats = opened.allocator.stats()
    for key in stats:
        rows.add_row(key.replace("_", " "), f"{stats[key]:,}")
    return rows


def _measure_time(work: Callable[[], object], count: int) -> str:
    """Call `work` `count` times, and return the mean in microseconds, as text."""
    started = time.perf_counter()
    for _ in range(count):
        work()
    return f"{(time.perf_counter() - started) / count * 1e6:.1f} us"


def _measure_copies(opened: OpenedDevice, nbytes: int) -> list[tuple[str, float]]:
    """Return the seconds of a copy of `nbytes` in each direction, by name."""
    ptr, host, backend = opened.allocator.allocate(nbytes), bytearray(nbytes), opened.backend

    def copy_in() -> None:
        """Copy from the host to the device, and wait."""
        backend.copy_in(ptr.handle, ptr.offset, memoryview(host))
        backend.synchronize()

    def copy_out() -> None:
        """Copy from the device to the host."""
        backend.copy_out(memoryview(host), ptr.handle, ptr.offset)

    return [("copy in", _fastest_call(copy_in)), ("copy out", _fastest_call(copy_out))]


def _fastest_call(work: Callable[[], None]) -> float:
    """Return the seconds of the fastest of three calls."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
