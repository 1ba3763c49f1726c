"""An identity-keyed cache in front of the LRU cache `Recent`."""

from __future__ import annotations

from typing import Generic, TypeVar

PLACES = 512
V = TypeVar("V")


class Memo(Generic[V]):
    """A cache of values under up to three objects, which it keeps alive.

    A new value may evict another. `turn` clears it when the `Recent` behind it ages.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, int], tuple[object, object, object, V]] = {}

    def get(self, a: object, b: object, c: object = None) -> V | None:
        """Return the value under these very objects, or None."""
        entry = self._found.get((id(a), id(b), id(c)))
        return None if entry is None else entry[3]

    def put(self, a: object, b: object, c: object, value: V) -> None:
        """Store a value."""
        if len(self._found) >= PLACES:
            self._found.clear()
        self._found[id(a), id(b), id(c)] = (a, b, c, value)

    def turn(self) -> None:
        """Remove all entries."""
        self._found.clear()
