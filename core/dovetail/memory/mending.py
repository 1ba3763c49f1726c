"""Allocators that any exception may leave at any point, and that are whole when next entered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeVar

from .allocator import Allocator
from .front import BUSY, IDLE, TORN, Front

R = TypeVar("R")


class Mending(Front, Allocator):
    """An allocator under a lock, whose lists and figures can be made anew."""

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
