"""Unroll and jam: a kernel whose points do the work of several neighbours, side by side.

A product of matrices loads two numbers for each multiplication. A point that computes a column of
four results loads one of the two for all of them, and four chains of additions overlap. Each result
is computed as before, in the same order, so the bits stay. For backends whose work items are not
already vectors of rows.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import int64
from .builder import Kernel, KernelBuilder
from .language import Loop, Store, Value, fold_loop, walk, where

# The int64 parameter that comes last: the new extent of the axis, by whether points are apart.
EXTENT = {False: "jammed", True: "jammed_apart"}


def jam(kernel: Kernel, count: int, axis: int = -2, apart: bool = False) -> Kernel | None:
    """The kernel in which a point does what `count` neighbours along an axis did: the last axis but
    one, unless given.

    None where that makes no sense: there must be one fold, without effects, that loads something
    which all of the neighbours need. The new kernel takes one more int64, m = -(-extent // count),
    which is its grid's extent along the axis too. With `apart`, point i does not do neighbours but
    i, i + m, i + 2 * m and so on, so that other points, which do the neighbours, load them at once.
    """
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    stores = [s for s in kernel.body if isinstance(s, Store)]
    others = [s for s in kernel.body if not isinstance(s, (Value, Loop, Store))]
    axis %= max(len(kernel.grid), 1)
    if len(kernel.grid) < 2 or len(loops) != 1 or others or not _worth(kernel, loops[0], axis):
        return None
    if any(b.access == "rw" for b in kernel.buffers):
        return None
    return _Jam(kernel, loops[0], count, axis, apart).kernel(stores)


def jammed_axis(kernel: Kernel) -> int:
    """The axis of the grid along which `jam` joins points, unless told otherwise."""
    return len(kernel.grid) - 2


def _worth(kernel: Kernel, loop: Loop, axis: int) -> bool:
    varies = _varying(kernel, axis)
    if loop.kind != "fold" or loop.effects or varies(loop.start) or varies(loop.stop):
        return False
    values = [s for s in loop.body if isinstance(s, Value)]
    shared = any(v.op == "load" and not varies(v) for v in values)
    return shared and len(values) == len(loop.body)


def _varying(kernel: Kernel, axis: int) -> Callable[[Value], bool]:
    """Whether a value depends on the index along an axis."""
    found: set[int] = set()

    def varies(v: Value) -> bool:
        return id(v) in found or (v.op == "index" and v.attr == axis)

    for s in walk(kernel.body):
        if isinstance(s, Value) and any(map(varies, s.args)):
            found.add(id(s))
        elif isinstance(s, Loop):
            found.update(id(v) for v in (*s.carry, *s.results))
    return varies


class _Jam:
    """A kernel's values once for each neighbour; those that they share the builder joins."""

    def __init__(self, kernel: Kernel, loop: Loop, count: int, axis: int, apart: bool) -> None:
        self.old, self.loop, self.count, self.axis = kernel, loop, count, axis
        self.name = EXTENT[apart]
        self.extent = Value("param", int64, (), self.name)
        self.made: list[dict[int, Value]] = [{} for _ in range(count)]
        index = Value("index", int64, (), self.axis)
        self.first = index if apart else index * count
        self.step: Value | int = self.extent if apart else 1

    def kernel(self, stores: list[Store]) -> Kernel:
        builder, extent = KernelBuilder(self.old.name), self.old.grid[self.axis]
        self.fold()
        for i in range(self.count):
            for s in stores:
                inside = self.place(i) < extent if i else None
                when = None if s.when is None else self.copy(s.when, i)
                both = inside if when is None else when if inside is None else when & inside
                builder.effect(Store(s.buffer, self.copy(s.index, i), self.copy(s.value, i), both))
        body = builder.body()
        grid = list(self.old.grid)
        grid[self.axis] = self.extent
        ints = (*self.old.ints, self.name)
        return Kernel(self.old.name, self.old.buffers, ints, self.old.scalars, tuple(grid), body)

    def row(self, i: int) -> Value:
        """The index of neighbour `i`; the last one's, where there is no such neighbour."""
        at, extent = self.place(i), self.old.grid[self.axis]
        return where(at < extent, at, extent - 1) if i else at

    def place(self, i: int) -> Value:
        """Where along the axis neighbour `i` would be."""
        return self.first + i * self.step if i else self.first

    def copy(self, v: Value, i: int) -> Value:
        """A value of the old kernel as neighbour `i` computes it."""
        known = self.made[i].get(id(v))
        if known is None:
            known = self.made[i][id(v)] = self._copy(v, i)
        return known

    def _copy(self, v: Value, i: int) -> Value:
        if v.op == "index" and v.attr == self.axis:
            return self.row(i)
        return Value(v.op, v.dtype, tuple(self.copy(a, i) for a in v.args), v.attr)

    def fold(self) -> None:
        """All neighbours' folds as one, whose carries are theirs, neighbour by neighbour."""
        old, n = self.loop, self.count

        def step(k: Value, *carries: Value) -> list[Value]:
            width, out = len(old.carry), []
            for j in range(n):
                self.made[j][id(old.var)] = k
                for c, new in zip(old.carry, carries[j * width :], strict=False):
                    self.made[j][id(c)] = new
                out += [self.copy(u, j) for u in old.update]
            return out

        init = [self.copy(v, j) for j in range(n) for v in old.init]
        new = fold_loop(self.copy(old.start, 0), self.copy(old.stop, 0), init, step)
        results = iter(new.results)
        for j in range(n):
            for r in old.results:
                self.made[j][id(r)] = next(results)
