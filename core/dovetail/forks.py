"""Locks across fork(): a child finds every lock free, and what it guards whole.

A child of fork() has only the thread that forked. A lock that another thread held would stay locked
for ever in the child. So the forking thread takes all locks of the library before the fork, and
releases them after it in parent and child. It takes all of them or none: it waits for one lock,
tries the others, and starts again with the one that was held. So no order among the locks can make
two threads wait for each other.

A lock under which the code of users or plugins runs is not waited for, because that code may run
long, or wait for the thread that forks. The child makes such a lock new; what it guards is written
so that an interrupt at any place leaves it usable.

`locks.Lock` registers each lock that it makes. `register_lock` adds locks of other packages.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import ref

_waited: set[ref[Any]] = set()
_renewed: set[ref[Any]] = set()


class _Taken(threading.local):
    """The locks that this thread took for the fork that it is about to make."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_taken = _Taken()


def register_lock(lock: Any, waited: bool = True) -> None:
    """Have fork() take `lock`, a reentrant one, before it, and release it afterwards.

    `waited`: False for a lock under which code of users or plugins runs. In a child, `renew` is
    called on every lock that has such a method: it makes the lock new unless this thread holds it.

    >>> import threading
    >>> from dovetail.forks import register_lock
    >>> lock = threading.RLock()
    >>> register_lock(lock)
    """
    locks = _waited if waited else _renewed
    locks.add(ref(lock, locks.discard))


def registered() -> list[Any]:
    """Return every lock that a fork takes or renews."""
    return _alive(_waited) + _alive(_renewed)


def _alive(locks: set[ref[Any]]) -> list[Any]:
    """Return the locks that still exist. No other thread runs during `copy`, so none adds one."""
    return [lock for reference in locks.copy() if (lock := reference()) is not None]


def _take() -> None:
    """Acquire every waited lock."""
    first = None
    while True:
        if first is not None:
            first.acquire()
            _taken.locks.append(first)
        first = next((lock for lock in _alive(_waited) if not _try(lock)), None)
        if first is None:
            return
        _release()


def _try(lock: Any) -> bool:
    """Acquire `lock` if no other thread holds it. Return True if this thread has it now."""
    if acquired := lock.acquire(blocking=False):
        _taken.locks.append(lock)
    return bool(acquired)


def _release() -> None:
    while _taken.locks:
        _taken.locks.pop().release()


def _release_in_child() -> None:
    _release()
    for lock in registered():
        if hasattr(lock, "renew"):
            lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_release, after_in_child=_release_in_child)
