"""NumPy's work on parts of an array by several Python threads; NumPy releases the GIL meanwhile.

The calling thread does the first part, and then every part that no other thread has begun. So it
never waits for a thread that the system has not scheduled yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

PART_ELEMENTS_MIN = 1 << 19  # with fewer, waking a thread takes as long as it saves
PARTS_MAX = 8

T = TypeVar("T")
_executors: list[ThreadPoolExecutor] = []  # one, once a call has needed it


def part_count(threads: int, size: int) -> int:
    """Return the number of parts into which to split `size` elements."""
    return max(1, min(threads, PARTS_MAX, size // PART_ELEMENTS_MIN))


def split_range(n: int, count: int) -> list[slice]:
    """Return `count` slices of 0..n-1, or n if that is less."""
    count = max(1, min(count, n))
    return [slice(n * k // count, n * (k + 1) // count) for k in range(count)]


def map_parts(work: Callable[[slice], T], parts: Sequence[slice]) -> list[T]:
    """Return the results of `work` for all parts; raise its first error after all have ended."""
    first, *others = parts
    futures = _submit(work, others)
    try:
        results = [work(first)]
        for part, future in zip_longest(others, futures):
            runs_here = future is None or future.cancel()
            results.append(work(part) if runs_here else future.result())
        return results
    finally:  # after an error the caller may free memory that other threads write to
        for future in futures:
            if not future.cancel():
                future.exception()


def _submit(work: Callable[[slice], T], parts: Sequence[slice]) -> list[Future[T]]:
    """Submit the first parts to the executor, as many as there are threads for; return futures."""
    futures: list[Future[T]] = []
    try:
        from concurrent.futures import ThreadPoolExecutor  # 4 ms, with its logging

        for part in parts:
            if not _executors:
                _executors.append(ThreadPoolExecutor(PARTS_MAX - 1, "dovetail-sort"))
            futures.append(_executors[0].submit(work, part))
    except (ImportError, RuntimeError):  # the interpreter ends, or the system has no more threads
        while _executors:
            _executors.pop().shutdown(cancel_futures=True)
    return futures


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_executors.clear)  # threads do not survive a fork
