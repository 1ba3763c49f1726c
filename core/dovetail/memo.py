"""What was found last for some objects, by who they are: asked before a `Recent` is."""

from __future__ import annotations

from typing import Generic, TypeVar

PLACES = 512
V = TypeVar("V")


class Memo(Generic[V]):
    """Values under up to three objects, which are kept alive; others may take a value's place.

    `turn` forgets all, as a `Recent` ages.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, int], tuple[object, object, object, V]] = {}

    def get(self, a: object, b: object, c: object = None) -> V | None:
        """The value under these very objects; None if it is not known."""
        found = self._found.get((id(a), id(b), id(c)))
        return None if found is None else found[3]

    def put(self, a: object, b: object, c: object, value: V) -> None:
        """Notes a value."""
        if len(self._found) >= PLACES:
            self._found.clear()
        self._found[id(a), id(b), id(c)] = (a, b, c, value)

    def turn(self) -> None:
        """Forgets all."""
        self._found.clear()
