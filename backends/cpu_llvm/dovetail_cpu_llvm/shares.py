"""NumPy's work on parts of an array, each by a Python thread: NumPy lets the others run meanwhile.

Whoever asks does the first part, and then what nobody has begun: a thread that is not scheduled is
not waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import zip_longest
from typing import TypeVar

LEAST = 1 << 19  # elements of a part: with fewer, to wake a thread takes as long as it saves
MOST = 8  # parts

T = TypeVar("T")
_helpers: list[ThreadPoolExecutor] = []  # one, once there has been work for it


def count(threads: int, size: int) -> int:
    """How many parts pay for so many elements."""
    return max(1, min(threads, MOST, size // LEAST))


def slices(n: int, parts: int) -> list[slice]:
    """The places 0..n - 1 in so many parts, or as many as there are places."""
    parts = max(1, min(parts, n))
    return [slice(n * k // parts, n * (k + 1) // parts) for k in range(parts)]


def each(work: Callable[[slice], T], parts: Sequence[slice]) -> list[T]:
    """What `work` gives for each part, in order. Raises: what it raises, once nobody works on."""
    first, *rest = parts
    begun = _begun(work, rest)
    try:
        found = [work(first)]
        for part, other in zip_longest(rest, begun):
            found.append(work(part) if other is None or other.cancel() else other.result())
        return found
    finally:  # after an error, too: what somebody writes to may go once this has returned
        wait([other for other in begun if not other.cancel()])


def _begun(work: Callable[[slice], T], parts: Sequence[slice]) -> list[Future[T]]:
    """The first of these parts, as many as there are threads for, on their way."""
    begun: list[Future[T]] = []
    try:
        for part in parts:
            if not _helpers:
                _helpers.append(ThreadPoolExecutor(MOST - 1, "dovetail-sort"))
            begun.append(_helpers[0].submit(work, part))
    except RuntimeError:  # the interpreter ends, or the system has no more threads
        _helpers.pop().shutdown(cancel_futures=True)
    return begun


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.clear)  # threads do not survive a fork
