"""Locks across fork(): a child finds every lock of the library free.

A child of fork() has only the thread that forked. A lock that another thread held would stay locked
for ever in the child. So the forking thread acquires all locks before the fork, and releases them
after it in parent and child. It never blocks on a lock while it holds another: it blocks on one,
tries the others, and restarts with the one that was held. So lock order cannot cause a deadlock.

A lock under which code of users or plugins runs is not waited for, because that code may run long,
or wait for the forking thread. The child reinitializes such a lock; the data that it guards stays
usable after an interrupt at any instruction.

`locks.Lock` registers each lock that it makes. `register_lock` adds locks of other packages.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import ref

_waited_locks: set[ref[Any]] = set()
_unwaited_locks: set[ref[Any]] = set()


class _Acquired(threading.local):
    """The locks that this thread acquired for a fork."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_acquired = _Acquired()


def register_lock(lock: Any, waited: bool = True) -> None:
    """Register a reentrant lock that fork() acquires before the fork and releases after it.

    In a child, fork() calls `renew` on every lock that has this method, to free it unless the
    forking thread holds it.

    - `lock`: the lock.
    - `waited`: False for a lock under which code of users or plugins runs.

    >>> import threading
    >>> from dovetail.forks import register_lock
    >>> lock = threading.RLock()
    >>> register_lock(lock)
    """
    locks = _waited_locks if waited else _unwaited_locks
    locks.add(ref(lock, locks.discard))


def registered_locks() -> list[Any]:
    """Return all registered locks that are alive."""
    return _alive(_waited_locks) + _alive(_unwaited_locks)


def _alive(locks: set[ref[Any]]) -> list[Any]:
    """Return the locks that still exist. No other thread runs during `copy`, so none adds one."""
    return [lock for reference in locks.copy() if (lock := reference()) is not None]


def _acquire_all() -> None:
    """Acquire all waited locks before a fork, never waiting while it holds another."""
    first = None
    while True:
        if first is not None:
            first.acquire()
            _acquired.locks.append(first)
        first = next((lock for lock in _alive(_waited_locks) if not _try_acquire(lock)), None)
        if first is None:
            return
        _release_acquired()


def _try_acquire(lock: Any) -> bool:
    """Acquire `lock` if no other thread holds it. Return True if this thread has it now."""
    if acquired := lock.acquire(blocking=False):
        _acquired.locks.append(lock)
    return bool(acquired)


def _release_acquired() -> None:
    """Release all locks that this thread acquired for a fork."""
    while _acquired.locks:
        _acquired.locks.pop().release()


def _release_in_child() -> None:
    """Release the locks of the fork, and renew all others that can be renewed."""
    _release_acquired()
    for lock in registered_locks():
        if hasattr(lock, "renew"):
            lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_acquired, after_in_child=_release_in_child
    )
