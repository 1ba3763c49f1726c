"""A function mapped over items by several threads, which end with the call."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import TypeVar

from ..locks import Lock

X = TypeVar("X")
R = TypeVar("R")

_lock = Lock(waited=False)  # held by the thread that has paused the garbage collector


def map_in_threads(
    function: Callable[[X], R],
    items: Sequence[X],
    threads: int,
    run_first: Callable[[], object] | None = None,
) -> list[R | Exception]:
    """Return `function(item)` of each item in order, or the exception that it raised.

    The calling thread takes part. The other threads end before the return; after an interrupt, too,
    with the item that they are at. The garbage collector is paused: a finalizer that needs a lock
    of the caller would wait for ever on another thread. While one call has other threads, a call by
    another thread runs without, so only one pauses the collector.

    - `function`: the function to map; several threads call it at the same time.
    - `items`: its arguments, one per call.
    - `threads`: the maximum of threads, the calling one included.
    - `run_first`: a function that the calling thread runs before its first item, while the other
      threads work; its exceptions are raised.
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

    def work_here() -> None:
        """Do the calling thread's share."""
        if run_first is not None:
            run_first()
        work()

    tasks = len(items) + (run_first is not None)
    helpers = [_Helper(work) for _ in range(min(threads, tasks) - 1)]
    # At the interpreter's exit a new thread would never run.
    if not helpers or sys.is_finalizing() or not _lock.acquire(blocking=False):
        work_here()
    else:
        collects = gc.isenabled()
        try:
            gc.disable()
            with suppress(RuntimeError):  # the system has no further thread
                for helper in helpers:
                    helper.start()
            work_here()
        finally:
            queue.clear()
            try:
                _join(h for h in helpers if h.ident is not None)
            finally:
                if collects:
                    gc.enable()
                _lock.release()
    return [results[k] for k in range(len(items))]


class _Helper(Thread):
    """A daemon thread with an event that is set when its work has ended.

    A `join` that Ctrl-C interrupts marks a running thread as dead, so `is_alive` is of no use.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(target=work, daemon=True)
        self.ended = Event()

    def run(self) -> None:
        """Do the work, then set the event."""
        try:
            super().run()
        finally:
            self.ended.set()


def _join(helpers: Iterable[_Helper]) -> None:
    """Wait until all threads have ended; an interrupt is raised after that."""
    helpers = [*helpers]
    try:
        for helper in helpers:
            helper.ended.wait()
        for helper in helpers:
            helper.join()
    except BaseException:
        _join(helpers)
        raise
