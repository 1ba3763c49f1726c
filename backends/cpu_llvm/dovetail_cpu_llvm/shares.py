"""NumPy's work on parts of an array, each by a Python thread: NumPy lets the others run meanwhile.

Whoever asks does the first part, and then what nobody has begun: a thread that is not scheduled is
not waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
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
    if len(parts) == 1:
        return [work(parts[0])]
    if not _helpers:
        _helpers.append(ThreadPoolExecutor(MOST - 1, "dovetail-sort"))
    others = [(part, _helpers[0].submit(work, part)) for part in parts[1:]]
    try:
        first = work(parts[0])
        return [first, *[work(p) if begun.cancel() else begun.result() for p, begun in others]]
    finally:  # after an error, too: what somebody writes to may go once this has returned
        wait([begun for _, begun in others if not begun.cancel()])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.clear)  # threads do not survive a fork
