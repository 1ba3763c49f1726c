"""The lock of the library: reentrant, ended by Ctrl-C, and free in a child of fork()."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from .forks import register_lock

P = TypeVarTuple("P")
R = TypeVar("R")
X = TypeVar("X")


class Lock(RLock):  # type: ignore[misc]  # the stub calls it final, CPython does not
    """A reentrant lock that is free in a child of fork().

    It is Python's lock, which enters and leaves a `with` block in C: an interrupt cannot come
    between. A thread that waits hears Ctrl-C unless the system gave the signal to another thread.
    Compiled (`locks.pyx`) it is quicker, and hears it then, too.

    `waited`: see `forks.register_lock`.

    >>> from dovetail.extend import Lock
    >>> lock = Lock()
    >>> with lock, lock:
    ...     pass
    """

    def __init__(self, waited: bool = True) -> None:
        register_lock(self, waited)

    def held(self, work: Callable[[*P], R], args: tuple[*P]) -> R:
        """Return `work(*args)`, called with the lock held.

        - `work`: a function.
        - `args`: the arguments of `work`, a tuple.
        """
        with self:
            return work(*args)

    def hold_within(
        self,
        seconds: float,
        error: Callable[[], Exception],
        work: Callable[[*P], R],
        args: tuple[*P],
    ) -> R:
        """Return `work(*args)`, called with the lock held; raise `error()` after so many seconds.

        - `seconds`: the time for which another thread may keep the lock.
        - `error`: makes the exception.
        - `work`, `args`: as those of `held`.
        """
        if not self.acquire(timeout=seconds):
            raise error()
        with self:
            self.release()
            return work(*args)

    def _call(self, work: Callable[[X], R], x: X) -> R:
        """Return `work(x)`, called with the lock held."""
        with self:
            return work(x)

    def _is_free(self) -> bool:
        """Return True if no other thread has the lock."""
        acquired = self.acquire(blocking=False)
        if acquired:
            self.release()
        return acquired

    def renew(self) -> None:
        """Free the lock in a child of fork(), unless this thread holds it."""
        if self.acquire(blocking=False):
            self.release()
        else:
            self._at_fork_reinit()  # type: ignore[attr-defined]  # missing in the stub
