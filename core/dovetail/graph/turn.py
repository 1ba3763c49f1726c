"""Whose turn it is: a lock for one thread at a time."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TypeVar, TypeVarTuple

P = TypeVarTuple("P")
R = TypeVar("R")
LOOK_UP = 0.2  # seconds that one waits before it looks for Ctrl-C again


class Turn:
    """A lock that the thread which holds it may take again.

    It is as `threading.RLock`; compiled it is quicker (`turn.pyx`).
    """

    __slots__ = ("_lock", "release")

    def __init__(self) -> None:
        self._lock = RLock()
        self.release = self._lock.release

    def acquire(self) -> None:
        """As `with`."""
        while not self._lock.acquire(timeout=LOOK_UP):
            pass  # a Ctrl-C that another thread took in is heard here

    def held(self, work: Callable[[*P], R], args: tuple[*P]) -> R:
        """What `work(*args)` gives, done inside."""
        with self:
            return work(*args)

    def release_in_child(self) -> None:
        """Gives it up after a fork, where nobody else waits any more."""
        self.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()
