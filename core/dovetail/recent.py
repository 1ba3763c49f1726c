"""Caches with a bound, of which what was not used for longest goes first.

Two generations: what is found or made goes into the young one. When that is full it becomes the old
one, and what nobody asked for meanwhile goes with the old one before. So nothing is noted on a hit,
and no cache ever starts from nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Generic, TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most `limit` entries.

    `young` has those used lately: it stays the same dict, and the hot path asks it first, since
    `get` of a dict alone is quick.
    """

    __slots__ = ("_old", "half", "young")

    def __init__(self, limit: int) -> None:
        self.half = max(1, limit // 2)
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def find(self, key: K) -> V | None:
        """What is known under `key`, which counts as used now; None if nothing is."""
        found = self.young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self[key] = found
        return found

    def __setitem__(self, key: K, value: V) -> None:
        if len(self.young) >= self.half and key not in self.young:
            self.turn()
        self.young[key] = value

    def turn(self) -> None:
        """Makes what is young old, and lets go of what was old and not asked for since."""
        self._old = dict(self.young)  # first: an interrupt leaves things in both, not in neither
        self.young.clear()

    def every(self) -> dict[K, V]:
        """All that is kept."""
        return {**self._old, **self.young}


class Shared(Recent[K, V]):
    """As `Recent`, for objects of which there must be one only.

    What has gone, but is still in use elsewhere, is found again. `find` and `[]=` belong under a
    lock.
    """

    __slots__ = ("_gone",)

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._gone: dict[K, ref[Any]] = {}

    def find(self, key: K) -> V | None:
        found = super().find(key)
        if found is None and key in self._gone:
            found = self._gone[key]()
            if found is not None:
                self[key] = found
        return found

    def turn(self) -> None:
        gone = self._gone
        for key, value in self._old.items():
            with suppress(TypeError):  # what cannot be referred to weakly is made again
                gone[key] = ref(value)
        super().turn()  # now those that nobody uses die
        for key, r in list(gone.items()):
            if r() is None:
                gone.pop(key, None)
