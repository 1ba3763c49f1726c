"""A progress bar for loops over a loader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["Track"]

from ..nn.constructor_errors import Explained

T = TypeVar("T")


class Track(Explained, Generic[T]):
    """An iterator over batches, or any items, that shows a progress bar on a terminal.

    - `items`: a loader or another iterable.
    - `description`: the text before the bar.
    - `total`: the number of items, if `items` has no length.

    `log(loss=...)` shows numbers after the bar. Nothing is shown if standard error is not a
    terminal.

    >>> import dovetail as dt
    >>> batches = dt.data.Track(range(3), "epoch 1")
    >>> for batch in batches:
    ...     batches.log(loss=0.5)
    """

    def __init__(self, items: Iterable[T], description: str = "", total: int | None = None) -> None:
        self.items, self.description = items, description
        self.total = len(items) if total is None and isinstance(items, Sized) else total
        self._progress: Progress | None = None
        self._status = ""

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError("data.Track: the number of items is unknown; pass total=")
        return self.total

    def __iter__(self) -> Iterator[T]:
        console = Console(stderr=True)
        if not console.is_terminal:
            yield from self.items
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[said]}"),
        )
        with Progress(*columns, console=console) as self._progress:
            task = self._progress.add_task(self.description, total=self.total, said="")
            try:
                for item in self.items:
                    yield item
                    self._progress.update(task, advance=1, said=self._status)
            finally:  # also after a `break` of the caller's loop
                self._progress = None

    def log(self, **numbers: Any) -> None:
        """Show numbers after the bar from the next item on; do nothing without a bar.

        - `numbers`: numbers, or tensors with one element, by name.
        """
        if self._progress is not None:
            self._status = "  ".join(f"{name} {float(x):.4g}" for name, x in numbers.items())
