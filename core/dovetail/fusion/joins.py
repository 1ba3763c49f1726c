"""Joins of what lies in one memory: of each point one place is read, and nothing is masked."""

from __future__ import annotations

from typing import TypeAlias

from ..dtypes import DType
from ..layout import Shape
from .groups import Part, Term

Memory: TypeAlias = tuple[int, int, DType]  # slot, offset in elements
Key: TypeAlias = tuple[Shape, int, int, int | None]


def same_memory(term: Term, known: frozenset[Key] = frozenset()) -> Memory | None:
    """The memory that a term is an element of, and nothing else, wherever the point is.

    So it is for a load, and for a join of such loads. The point is in the parts that are `known`.
    """
    if term.what == "load":
        a = term.access
        assert a is not None
        everywhere = all(_key(p) in known for p in term.parts)
        return (a.slot, a.start, a.dtype) if everywhere else None
    if term.what != "join":
        return None
    last, found = len(term.args) - 1, set[Memory | None]()
    for k, (t, part) in enumerate(zip(term.args, term.parts, strict=True)):
        key = _key(part._replace(stop=None) if k == last else part)  # where the whole ends
        found.add(same_memory(t, known | {key}))
    (memory, *others) = found
    return None if others or memory is None or memory[2] is not term.dtype else memory


def _key(part: Part) -> Key:
    """What tells parts apart: the place along which axis, and between which of these."""
    return part.at.strides, part.at.offset, part.start, part.stop
