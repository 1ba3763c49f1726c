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


class LRUCache(Generic[K, V]):
    """A mapping that holds at most `limit` entries.

    `young` has the recently used entries: it stays the same dict, and the hot path asks it first,
    since `get` of a dict alone is quick. With `revives` the cache refers weakly to evicted values
    and returns them while they live: a key never has two living values. The caller then holds a
    lock around `find` and assignment.
    """

    __slots__ = ("_evicted", "_old", "half", "young")

    def __init__(self, limit: int, *, revives: bool = False) -> None:
        self.half = max(1, limit // 2)
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._evicted: dict[K, ref[Any]] | None = {} if revives else None

    def find(self, key: K) -> V | None:
        """Return the value of `key` and mark it as used, or return None."""
        value = self.young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is None and self._evicted and key in self._evicted:
                value = self._evicted[key]()
            if value is not None:
                self[key] = value
        return value

    def __setitem__(self, key: K, value: V) -> None:
        if len(self.young) >= self.half and key not in self.young:
            self.age()
        self.young[key] = value

    def age(self) -> None:
        """Make the young generation the old one, and drop the old one."""
        evicted = self._evicted
        if evicted is not None:
            for key, value in self._old.items():
                with suppress(TypeError):  # an object without weak references is built again
                    evicted[key] = ref(value)
        self._old = dict(self.young)  # copy before clear: an interrupt must not lose entries
        self.young.clear()
        if evicted is not None:
            for key, r in list(evicted.items()):
                if r() is None:
                    evicted.pop(key, None)

    def entries(self) -> dict[K, V]:
        """Return the entries of both generations."""
        return {**self._old, **self.young}
