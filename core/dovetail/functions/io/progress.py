"""A progress bar for long work on a terminal; for short work or elsewhere nothing is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__: list[str] = []

BAR_BYTES_MIN = 1 << 28


@contextmanager
def bar(text: str, total: int) -> Iterator[Callable[[int], object]]:
    """Show a bar on a terminal if `total` is large; yield a function that adds bytes done."""
    if total < BAR_BYTES_MIN or sys.stderr is None or not sys.stderr.isatty():
        yield int
        return
    from rich.console import Console  # late: keeps `import dovetail` light
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(text, total=total)
        yield lambda n: shown.advance(task, n)
