"""Joins whose parts lie in one memory: each point reads one element, and nothing is masked."""

from __future__ import annotations

from typing import TypeAlias

from ..dtypes import DType
from ..layout import Shape
from .groups import JoinRange, Term

MemoryLocation: TypeAlias = tuple[int, int, DType]  # slot, offset in elements
RangeKey: TypeAlias = tuple[Shape, int, int, int | None]


def common_memory(
    term: Term, known_ranges: frozenset[RangeKey] = frozenset()
) -> MemoryLocation | None:
    """Return the (slot, start, dtype) that all loads of a join share, or None.

    Loads have such a memory, and joins of loads from one memory. The point is in the parts
    `known_ranges`.
    """
    if term.kind == "load":
        a = term.access
        assert a is not None
        everywhere = all(_build_range_key(p) in known_ranges for p in term.ranges)
        return (a.slot, a.start, a.dtype) if everywhere else None
    if term.kind != "join":
        return None
    last, memories = len(term.args) - 1, set[MemoryLocation | None]()
    for k, (t, part) in enumerate(zip(term.args, term.ranges, strict=True)):
        key = _build_range_key(
            part._replace(stop=None) if k == last else part
        )  # where the whole ends
        memories.add(common_memory(t, known_ranges | {key}))
    (memory, *others) = memories
    return None if others or memory is None or memory[2] is not term.dtype else memory


def _build_range_key(part: JoinRange) -> RangeKey:
    """Return a key for a part: its axis and range."""
    return part.position.strides, part.position.offset, part.start, part.stop
