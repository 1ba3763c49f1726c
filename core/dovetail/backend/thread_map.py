"""A function mapped over items by several threads, which end with the call."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import TypeVar

X = TypeVar("X")
R = TypeVar("R")


def map_in_threads(
    function: Callable[[X], R],
    items: Sequence[X],
    threads: int,
    first: Callable[[], object] | None = None,
) -> list[R | Exception]:
    """Return `function(item)` of each item in order, or the exception that it raised.

    The calling thread takes part. Before that it calls `first`, while the other threads work. The
    other threads end before the return; after an interrupt, too, with the item that they are at.
    The garbage collector is paused: a finalizer that needs a lock of the caller would wait for ever
    on another thread.

    - `function`: the function to map; several threads call it at the same time.
    - `items`: its arguments, one per call.
    - `threads`: the maximum of threads, the calling one included.
    - `first`: a function that only the calling thread calls; its exceptions are raised.
    """
    results: dict[int, R | Exception] = {}
    queue = deque(enumerate(items))

    def work() -> None:
        """Take items from the queue until it is empty."""
        with suppress(IndexError):
            while True:
                k, item = queue.popleft()
                try:
                    results[k] = function(item)
                except Exception as error:
                    results[k] = error

    tasks = len(items) + (first is not None)
    if sys.is_finalizing():  # a new thread would never run
        threads = 1
    helpers = [Thread(target=work, daemon=True) for _ in range(min(threads, tasks) - 1)]
    started = list[Thread]()
    collects = bool(helpers) and gc.isenabled()
    try:
        if collects:
            gc.disable()
        with suppress(RuntimeError):  # the system has no further thread
            for helper in helpers:
                helper.start()
                started.append(helper)
        if first is not None:
            first()
        work()
    finally:
        queue.clear()
        for helper in started:
            helper.join()
        if collects:
            gc.enable()
    return [results[k] for k in range(len(items))]
