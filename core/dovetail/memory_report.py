"""`dovetail memory`: how fast a device allocates, reuses and copies memory, and what its allocator
counted; or a page for a browser, of what `dovetail.memory.page("FILE.json")` wrote."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .device import device
from .memory import MIB
from .memory_page import draw
from .plugins import Opened, open_device


def main(arguments: Sequence[str]) -> int:
    """Prints the figures of one device, or draws a snapshot; 0, or 2 if that is none."""
    parser = argparse.ArgumentParser(prog="dovetail memory", description=__doc__)
    parser.add_argument(
        "what", nargs="?", metavar="DEVICE or FILE.json", help="the default device, unless named"
    )
    parser.add_argument("--mib", type=int, default=64, help="how much to copy")
    parser.add_argument("-o", "--output", metavar="FILE.html", help="where the page goes")
    asked = parser.parse_args(arguments)
    if asked.what is not None and asked.what.endswith(".json"):
        return _draw(Path(asked.what), asked.output)
    opened = open_device(device(asked.what))
    console = Console(soft_wrap=True)
    console.print(table(opened, asked.mib * MIB))
    return 0


def _draw(snapshot: Path, output: str | None) -> int:
    target = snapshot.with_suffix(".html") if output is None else Path(output)
    try:
        target.write_text(draw(json.loads(snapshot.read_text("utf-8"))), encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"dovetail memory: {snapshot}: {error}", file=sys.stderr)
        return 2
    print(target)
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
