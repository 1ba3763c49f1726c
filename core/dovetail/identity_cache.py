"""An identity-keyed cache in front of the LRU cache `LRUCache`."""

from __future__ import annotations

from typing import Generic, TypeVar

ENTRIES_MAX = 512
V = TypeVar("V")


class IdentityCache(Generic[V]):
    """A cache of values under up to three objects, which it keeps alive.

    A new value may evict another. It ages with the `LRUCache` behind it.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int, int], tuple[object, object, object, V]] = {}

    def get(self, a: object, b: object, c: object = None) -> V | None:
        """Return the value stored under exactly these objects, by identity, or None."""
        entry = self._entries.get((id(a), id(b), id(c)))
        return None if entry is None else entry[3]

    def put(self, a: object, b: object, c: object, value: V) -> None:
        """Store a value under these objects; clear the cache first if it is full."""
        if len(self._entries) >= ENTRIES_MAX:
            self._entries.clear()
        self._entries[id(a), id(b), id(c)] = (a, b, c, value)

    def age(self) -> None:
        """Remove all entries."""
        self._entries.clear()
