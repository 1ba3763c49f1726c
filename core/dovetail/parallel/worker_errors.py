"""The error for a worker that is lost, is late, or makes another call than the others."""

from __future__ import annotations

import dovetail as dt

__all__ = ["WorkerError"]


class WorkerError(dt.DovetailError, RuntimeError):
    """A worker was lost or too late, raised an error, or made another call than the others.

    Every other worker that waits gets this error, too, and the group cannot be used any more.
    `rank` is the worker at fault, or None if that is unknown.
    """

    def __init__(self, text: str, rank: int | None = None) -> None:
        super().__init__(text)
        self.rank = rank

    def __reduce__(self) -> tuple[type[WorkerError], tuple[str, int | None]]:
        return type(self), (str(self), self.rank)
