"""Unroll and jam: a kernel whose points do the work of several neighbours, side by side.

A product of matrices loads two numbers for each multiplication. A point that computes a column of
four results loads one of the two for all of them, and four chains of additions overlap. Each result
is computed as before, in the same order, so the bits stay. For backends whose work items are not
already vectors of rows.
"""

from __future__ import annotations

from .analysis import grid_index, loads, varies_along
from .builder import Kernel, KernelBuilder
from .language import Block, Loop, Store, Value, fold_loop, where
from .rewrite import PointCloner

# The int parameter that comes last: the new extent of the axis, by whether points are apart.
EXTENT = {False: "jammed", True: "jammed_apart"}


def unroll_jam(kernel: Kernel, count: int, axis: int = -2, apart: bool = False) -> Kernel | None:
    """The kernel in which a point does what `count` neighbours along an axis did.

    The axis is the last but one, unless given.

    None where that makes no sense: there must be one fold, without effects, that loads something
    which all of the neighbours need. The new kernel takes one more int, m = -(-extent // count),
    which is its grid's extent along the axis too. With `apart`, point i does not do neighbours but
    i, i + m, i + 2 * m and so on, so that other points, which do the neighbours, load them at once.
    """
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    others = [s for s in kernel.body if not isinstance(s, (Value, Loop, Store))]
    axis %= max(len(kernel.grid), 1)
    if len(kernel.grid) < 2 or len(loops) != 1 or others or not _worth(kernel, loops[0], axis):
        return None
    if any(b.access == "rw" for b in kernel.buffers):
        return None
    extent = Value("param", kernel.index, (), EXTENT[apart])
    points = _points(kernel, count, axis, extent if apart else None)
    for s in kernel.body:
        if isinstance(s, Loop):
            _join(points, s)
        elif isinstance(s, Value):
            for point in points:
                point.value(s)
    grid = (*kernel.grid[:axis], extent, *kernel.grid[axis + 1 :])
    return kernel.with_body(_stored(kernel, points), ints=(*kernel.ints, extent.name), grid=grid)


def jammed_axis(kernel: Kernel) -> int:
    """The axis of the grid along which `unroll_jam` joins points, unless told otherwise."""
    return len(kernel.grid) - 2


def _worth(kernel: Kernel, loop: Loop, axis: int) -> bool:
    varies = varies_along(kernel.body, grid_index(axis))
    if loop.kind != "fold" or loop.effects or varies(loop.start) or varies(loop.stop):
        return False
    values = [s for s in loop.body if isinstance(s, Value)]
    shared = not all(map(varies, loads(loop.body)))
    return shared and len(values) == len(loop.body)


def _points(kernel: Kernel, count: int, axis: int, step: Value | None) -> list[PointCloner]:
    """The points that become one: neighbours, or `step` apart.

    Where there is no such point, it has the index of the last.
    """
    extent, index = kernel.grid[axis], grid_index(axis, kernel.index)
    first = index * count if step is None else index
    points = [PointCloner(axis, first, None)]
    for i in range(1, count):
        at = first + i * (1 if step is None else step)
        inside = at < extent
        points.append(PointCloner(axis, where(inside, at, extent - 1), inside))
    return points


def _join(points: list[PointCloner], old: Loop) -> None:
    """All points' folds as one, whose carries are theirs, point by point."""
    width = len(old.carry)

    def step(k: Value, *carries: Value) -> list[Value]:
        updates: list[Value] = []
        for j, point in enumerate(points):
            point.new[old.var] = k
            own = carries[j * width : (j + 1) * width]
            point.new.update(zip(old.carry, own, strict=True))
            for s in old.body:
                assert isinstance(s, Value)  # as `_worth` has seen
                point.value(s)
            updates += point.operands(old.update)
        return updates

    init = [v for point in points for v in point.operands(old.init)]
    start, stop = points[0].operands((old.start, old.stop))
    results = iter(fold_loop(start, stop, init, step).results)
    for point in points:
        point.new.update((r, next(results)) for r in old.results)


def _stored(kernel: Kernel, points: list[PointCloner]) -> Block:
    """The body in which all points store their results; the builder joins what they share."""
    builder = KernelBuilder(kernel.name)
    for point in points:
        for s in kernel.body:
            if isinstance(s, Store):
                when, inside = None if s.when is None else point.operand(s.when), point.inside
                both = inside if when is None else when if inside is None else when & inside
                index, value = point.operand(s.index), point.operand(s.value)
                builder.effect(Store(s.buffer, index, value, both))
    return builder.body()
