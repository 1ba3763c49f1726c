"""The lock of the library: reentrant, heard by Ctrl-C, and free in a child of fork()."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TypeVar, TypeVarTuple

from .forks import register_lock

P = TypeVarTuple("P")
R = TypeVar("R")
WAIT_SECONDS = 0.2  # before a waiting thread looks for Ctrl-C again


class Lock:
    """A reentrant lock that is free in a child of fork().

    It is as `threading.RLock`; compiled it is quicker (`locks.pyx`).

    `waited`: see `forks.register_lock`.

    >>> from dovetail.extend import Lock
    >>> lock = Lock()
    >>> with lock, lock:
    ...     pass
    """

    __slots__ = ("__weakref__", "_lock", "release")

    def __init__(self, waited: bool = True) -> None:
        self._lock = RLock()
        self.release = self._lock.release
        register_lock(self, waited)

    def acquire(self, blocking: bool = True) -> bool:
        """Return True once this thread has the lock; False if it is not `blocking` and has not."""
        if not blocking:
            return self._lock.acquire(blocking=False)
        while not self._lock.acquire(timeout=WAIT_SECONDS):
            pass  # a Ctrl-C that another thread took in is heard here
        return True

    def held(self, work: Callable[[*P], R], args: tuple[*P]) -> R:
        """Return `work(*args)`, called with the lock held."""
        with self:
            return work(*args)

    def renew(self) -> None:
        """Free the lock in a child of fork(), unless this thread holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = RLock()
            self.release = self._lock.release

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()
