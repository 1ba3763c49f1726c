"""Allocators that any exception may leave at any point, and that are whole when next entered."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import TypeVar

from .allocator import Allocator

R = TypeVar("R")

IDLE, BUSY, TORN = range(3)  # nobody is inside; somebody is; somebody was, and left by an exception


class Mending(Allocator):
    """An allocator under a lock, whose lists and figures can be made anew."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # BUSY: the lock's holder is inside, so a finaliser that allocates gets memory uncached
        self._state = IDLE

    @abstractmethod
    def _mend(self) -> None:
        """Makes lists and figures anew from what changes in single assignments."""

    @abstractmethod
    def _tidy(self) -> None:
        """What is done first by whoever comes in."""

    def _restore(self) -> None:
        """Mends what an exception has left behind. The caller has the lock."""
        self._state = BUSY
        try:
            self._mend()
        except BaseException:
            self._state = TORN
            raise
        self._state = IDLE

    def _inside(self, work: Callable[[], R]) -> R:
        """What `work` gives, done under the lock, after tidying."""
        with self._lock:
            if self._state == BUSY:  # this thread is in here already
                return work()
            if self._state == TORN:
                self._restore()
            self._state = BUSY
            try:
                self._tidy()
                found = work()
            except BaseException:
                self._state = TORN
                raise
            self._state = IDLE
            return found
