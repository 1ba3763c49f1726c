"""`dovetail memory`: how fast a device allocates, reuses and copies memory, and what its allocator
counted."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from .device import device
from .memory import MIB
from .plugins import Opened, open_device


def main(arguments: Sequence[str]) -> int:
    """Prints the figures of one device; 0."""
    parser = argparse.ArgumentParser(prog="dovetail memory", description=__doc__)
    parser.add_argument("device", nargs="?", help="the default device, unless named")
    parser.add_argument("--mib", type=int, default=64, help="how much to copy")
    asked = parser.parse_args(arguments)
    opened = open_device(device(asked.device))
    console = Console(soft_wrap=True)
    console.print(table(opened, asked.mib * MIB))
    return 0


def table(opened: Opened, nbytes: int) -> Table:
    """What was measured, and the allocator's figures."""
    rows = Table("on " + str(opened.device), "")
    allocate = opened.allocator.allocate
    rows.add_row(f"allocate {nbytes // MIB} MiB, first time", _time(lambda: allocate(nbytes), 1))
    rows.add_row(f"allocate {nbytes // MIB} MiB, again", _time(lambda: allocate(nbytes), 1000))
    rows.add_row("allocate 1 KiB, again", _time(lambda: allocate(1024), 1000))
    for name, seconds in _copies(opened, nbytes):
        rows.add_row(name, f"{nbytes / seconds / 2**30:.1f} GiB/s")
    stats = opened.allocator.stats()
    for key in stats:
        rows.add_row(key.replace("_", " "), f"{stats[key]:,}")
    return rows


def _time(work: Callable[[], object], count: int) -> str:
    started = time.perf_counter()
    for _ in range(count):
        work()
    return f"{(time.perf_counter() - started) / count * 1e6:.1f} us"


def _copies(opened: Opened, nbytes: int) -> list[tuple[str, float]]:
    ptr, host, backend = opened.allocator.allocate(nbytes), bytearray(nbytes), opened.backend

    def copy_in() -> None:
        backend.copy_in(ptr.handle, ptr.offset, memoryview(host))
        backend.synchronize()

    def copy_out() -> None:
        backend.copy_out(memoryview(host), ptr.handle, ptr.offset)

    return [("copy in", _best(copy_in)), ("copy out", _best(copy_out))]


def _best(work: Callable[[], None]) -> float:
    times = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
