"""Failures of workers, as the error that `run` raises for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from ..data.workers import WorkerFailure
from .worker_errors import WorkerError

Failed = TypeVar("Failed", bound="tuple[int, BaseException | None, Any]")


class WorkerTraceback(Exception):
    """The traceback of a worker, as the cause of the error that `run` raises."""

    def __init__(self, text: str) -> None:
        super().__init__(f"\n\n{text}")


def choose_cause(failures: Sequence[Failed]) -> Failed:
    """Return the first failure that is not about another worker that has failed itself.

    `failures`: the rank, the error or None, and anything else of each failed worker.
    """
    failed = {rank for rank, *_ in failures}

    def is_consequence(failure: Failed) -> bool:
        """Return True if a worker has failed because of one that has given a reason itself."""
        error = failure[1]
        return isinstance(error, WorkerError) and error.rank in failed - {failure[0]}

    own = [f for f in failures if not isinstance(f[1], WorkerError)]
    return (own or [f for f in failures if not is_consequence(f)] or failures)[0]


def raise_cause(failures: Sequence[tuple[int, WorkerFailure]], size: int) -> NoReturn:
    """Raise the error of the worker that failed first, or WorkerError for one that cannot be sent.

    `failures`: the rank and the failure of workers, in the order in which they failed.
    """
    rank, error, failure = choose_cause([(r, f.error, f) for r, f in failures])
    note = f"parallel.run: rank {rank} of {size}"
    if error is None:
        raise WorkerError(f"{note}: {failure.text}", rank)
    error.add_note(f"{note} raised this")
    raise error from WorkerTraceback(failure.text)
