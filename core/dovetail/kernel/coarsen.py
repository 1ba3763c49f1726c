"""Several points at a time: a kernel without loops whose points do the work of others far off.

A thread that loads one number waits for memory longer than it works, and a device has too few
threads to hide that. A point that loads four numbers at once, before it stores anything, waits
once. Neighbouring points keep loading neighbours. Each value is computed as before: the bits stay.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import DType, bool_, int64
from .builder import Kernel
from .language import OPERANDS, Store, Value

EXTENT = "spread"  # the int64 parameter that comes last: the new extent of the last axis


def spread(kernel: Kernel, count: int) -> Kernel | None:
    """The kernel in which point i of the last axis also does points i + m, i + 2 * m, and so on,
    `count` in all, where m = -(-extent // count) is one more int64, and the axis' new extent.

    None where that is not possible: the kernel has a loop, an atomic, or a buffer that it both
    reads and writes.
    """
    stores = [s for s in kernel.body if isinstance(s, Store)]
    values = [s for s in kernel.body if isinstance(s, Value)]
    if not kernel.grid or len(stores) + len(values) < len(kernel.body):
        return None
    if any(b.access == "rw" for b in kernel.buffers):
        return None
    return _Spread(kernel, count).kernel(values, stores)


class _Spread:
    """Each value `count` times, but once if it is the same at all of a point's points."""

    def __init__(self, kernel: Kernel, count: int) -> None:
        self.old, self.count, self.axis = kernel, count, len(kernel.grid) - 1
        self.body: list[Value | Store] = []
        self.same: dict[int, Value] = {}
        self.made: list[dict[int, Value]] = [{} for _ in range(count)]
        self.inside: list[Value | None] = [None] * count

    def kernel(self, values: list[Value], stores: list[Store]) -> Kernel:
        old, extent = self.old, Value("param", int64, (), EXTENT)
        self.places(extent)
        for v in values:
            for i in range(self.count):
                self.value(v, i)
        for s in stores:
            for i in range(self.count):
                self.store(s, i)
        grid, ints = (*old.grid[:-1], extent), (*old.ints, EXTENT)
        return Kernel(old.name, old.buffers, ints, old.scalars, grid, tuple(self.body))

    def put(self, op: str, dtype: DType, args: tuple[Value, ...], attr: Any = None) -> Value:
        found = Value(op, dtype, args, attr)
        self.body.append(found)
        return found

    def places(self, step: Value) -> None:
        """The index along the axis of each point; the first one's where there is no such point."""
        there = first = Value("index", int64, (), self.axis)
        self.at = [first]
        for i in range(1, self.count):
            there = self.put("add", int64, (there, step))
            inside = self.inside[i] = self.put("lt", bool_, (there, self.old.grid[-1]))
            self.at.append(self.put("where", int64, (inside, there, first)))

    def operand(self, v: Value, i: int) -> Value:
        if v.op == "index" and v.attr == self.axis:
            return self.at[i]
        return v if v.op in OPERANDS else self.made[i][id(v)]

    def value(self, v: Value, i: int) -> None:
        args = tuple(self.operand(a, i) for a in v.args)
        found = self.made[0].get(id(v))
        if found is None or any(a is not b for a, b in zip(args, found.args, strict=True)):
            found = self.put(v.op, v.dtype, args, v.attr)
        self.made[i][id(v)] = found

    def store(self, s: Store, i: int) -> None:
        when = None if s.when is None else self.operand(s.when, i)
        inside = self.inside[i]
        if when is not None and inside is not None:
            when = self.put("and", bool_, (inside, when))
        index, value = self.operand(s.index, i), self.operand(s.value, i)
        self.body.append(Store(s.buffer, index, value, inside if when is None else when))
