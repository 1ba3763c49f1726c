"""A map from objects, by identity, that keeps none of them alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")

ENTRIES_ADDED_MAX = 1024  # until the entries of dead objects are looked for


class WeakIdentityMap(Generic[K, V]):
    """Values by object. An object that got the id of a dead one is not in the map.

    It is no `WeakKeyDictionary`: that runs Python code when an object dies, where an interrupt
    would be lost. Entries of dead objects are removed when there are many.
    """

    __slots__ = ("_entries", "_purged_at")

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        self._entries: dict[int, tuple[ref[K], V]] = {id(k): (ref(k), v) for k, v in entries}
        self._purged_at = 0

    def __setitem__(self, key: K, value: V) -> None:
        if len(self._entries) > 2 * self._purged_at + ENTRIES_ADDED_MAX:
            self.purge()
            self._purged_at = len(self._entries)
        self._entries[id(key)] = (ref(key), value)

    def get(self, key: K) -> V | None:
        """Return the value of this object, by identity; None if it is not in the map."""
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def __contains__(self, key: K) -> bool:
        entry = self._entries.get(id(key))
        return entry is not None and entry[0]() is key

    def __iter__(self) -> Iterator[tuple[K, V]]:
        """Yield the objects that live, with their values."""
        for key, value in [*self._entries.values()]:
            if (alive := key()) is not None:
                yield alive, value

    def purge(self) -> None:
        """Remove the entries of dead objects; until then they stay, unseen."""
        for k in [k for k, (key, _) in self._entries.items() if key() is None]:
            self._entries.pop(k, None)
