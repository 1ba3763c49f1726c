"""How far long work has come, on a terminal; elsewhere, and of what is short, nothing is said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__: list[str] = []

BIG = 1 << 28  # bytes from which on there is a bar


@contextmanager
def bar(text: str, total: int) -> Iterator[Callable[[int], object]]:
    """Gives a function that is told how many bytes more are done, of `total`."""
    if total < BIG or sys.stderr is None or not sys.stderr.isatty():
        yield int
        return
    from rich.console import Console  # here, so that `import dovetail` stays light
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(text, total=total)
        yield lambda n: shown.advance(task, n)
