"""Joins whose parts lie in one memory: each point reads one element, and nothing is masked."""

from __future__ import annotations

from typing import TypeAlias

from ..dtypes import DType
from ..layout import Shape
from .groups import Part, Term

Memory: TypeAlias = tuple[int, int, DType]  # slot, offset in elements
Key: TypeAlias = tuple[Shape, int, int, int | None]


def common_memory(term: Term, known: frozenset[Key] = frozenset()) -> Memory | None:
    """Return the memory of which a term is an element for every point, or None.

    Loads have such a memory, and joins of loads from one memory. The point is in the parts `known`.
    """
    if term.what == "load":
        a = term.access
        assert a is not None
        everywhere = all(_key(p) in known for p in term.parts)
        return (a.slot, a.start, a.dtype) if everywhere else None
    if term.what != "join":
        return None
    last, memories = len(term.args) - 1, set[Memory | None]()
    for k, (t, part) in enumerate(zip(term.args, term.parts, strict=True)):
        key = _key(part._replace(stop=None) if k == last else part)  # where the whole ends
        memories.add(common_memory(t, known | {key}))
    (memory, *others) = memories
    return None if others or memory is None or memory[2] is not term.dtype else memory


def _key(part: Part) -> Key:
    """Return a key for a part: its axis and range."""
    return part.at.strides, part.at.offset, part.start, part.stop
