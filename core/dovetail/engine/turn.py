"""Whose turn it is to evaluate: one thread's at a time."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TypeVar

X = TypeVar("X")
Y = TypeVar("Y")
Z = TypeVar("Z")


class Turn:
    """A lock that the thread which holds it may take again.

    It is as `threading.RLock`; compiled it is quicker (`turn.pyx`).
    """

    __slots__ = ("_lock", "acquire", "release")

    def __init__(self) -> None:
        self._lock = RLock()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def held(self, work: Callable[[X, Y], Z], x: X, y: Y) -> Z:
        """What `work(x, y)` gives, done inside."""
        with self._lock:
            return work(x, y)

    def release_in_child(self) -> None:
        """Gives it up after a fork, where nobody else waits any more."""
        self.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()
