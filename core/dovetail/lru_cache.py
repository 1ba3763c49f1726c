"""A bounded cache that approximates least-recently-used eviction with two generations.

A hit in the young generation costs one dict lookup and no bookkeeping. When the young generation is
full, it replaces the old one; entries of the old generation that were not used since are dropped.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Generic, TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A mapping that holds at most `limit` entries.

    `young` has those used lately: it stays the same dict, and the hot path asks it first, since
    `get` of a dict alone is quick.
    """

    __slots__ = ("_old", "half", "young")

    def __init__(self, limit: int) -> None:
        self.half = max(1, limit // 2)
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def find(self, key: K) -> V | None:
        """Return the value of `key` and mark it as used, or return None."""
        value = self.young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self[key] = value
        return value

    def __setitem__(self, key: K, value: V) -> None:
        if len(self.young) >= self.half and key not in self.young:
            self.turn()
        self.young[key] = value

    def turn(self) -> None:
        """Make the young generation the old one, and drop the old one."""
        self._old = dict(self.young)  # copy before clear: an interrupt must not lose entries
        self.young.clear()

    def every(self) -> dict[K, V]:
        """Return the entries of both generations."""
        return {**self._old, **self.young}


class Shared(Recent[K, V]):
    """An LRU cache that never holds a second object for a key whose first one is still alive.

    Evicted values are remembered by weak references. The caller holds a lock around `find` and
    assignment.
    """

    __slots__ = ("_gone",)

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._gone: dict[K, ref[Any]] = {}

    def find(self, key: K) -> V | None:
        value = super().find(key)
        if value is None and key in self._gone:
            value = self._gone[key]()
            if value is not None:
                self[key] = value
        return value

    def turn(self) -> None:
        gone = self._gone
        for key, value in self._old.items():
            with suppress(TypeError):  # an object without weak references is built again
                gone[key] = ref(value)
        super().turn()  # values without other references die here
        for key, r in list(gone.items()):
            if r() is None:
                gone.pop(key, None)
