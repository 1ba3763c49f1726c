"""Joins whose parts lie in one memory: each point reads one element, and nothing is masked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from ..dtypes import DType
from ..layout import Shape
from .groups import JoinRange, Term

MemoryLocation: TypeAlias = tuple[int, int, DType]  # slot, offset in elements
PositionKey: TypeAlias = tuple[Shape, int]
Interval: TypeAlias = tuple[int, int | None]  # from a position to before another, or to the end


def common_memory(
    term: Term, intervals: Mapping[PositionKey, Interval] = MappingProxyType({})
) -> MemoryLocation | None:
    """Return the (slot, start, dtype) that all loads of a join share, or None.

    Loads have such a memory, and joins of loads from one memory. intervals: by position, the
    interval in which a point lies.
    """
    if term.kind == "load":
        a = term.access
        assert a is not None
        everywhere = all(_contains(intervals, part) for part in term.ranges)
        return (a.slot, a.start, a.dtype) if everywhere else None
    if term.kind != "join":
        return None
    memory, start, last = None, 0, len(term.args) - 1
    for k, (t, part) in enumerate(zip(term.args, term.ranges, strict=True)):
        # a kernel takes the first part that ends after the point, or the last part
        stop, key = None if k == last else part.stop, _position_key(part)
        its_memory = common_memory(
            t, {**intervals, key: _intersect(intervals.get(key), start, stop)}
        )
        if its_memory is None or memory not in (None, its_memory):
            return None
        memory, start = its_memory, part.stop or 0
    return None if memory is None or memory[2] is not term.dtype else memory


def _position_key(part: JoinRange) -> PositionKey:
    """Return a key that is equal for equal positions."""
    return part.position.strides, part.position.offset


def _contains(intervals: Mapping[PositionKey, Interval], part: JoinRange) -> bool:
    """Return True if the interval of a position is within a part."""
    start, stop = intervals.get(_position_key(part), (0, None))
    return part.start <= start and (part.stop is None or (stop is not None and stop <= part.stop))


def _intersect(interval: Interval | None, start: int, stop: int | None) -> Interval:
    """Return the part of an interval from `start` to before `stop`."""
    if interval is None:
        return start, stop
    stops = [end for end in (interval[1], stop) if end is not None]
    return max(interval[0], start), min(stops, default=None)
