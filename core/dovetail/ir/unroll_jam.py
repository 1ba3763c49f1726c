"""Unroll and jam: a point does the work of several neighbours, side by side.

A product of matrices loads two numbers for each multiplication. A point that computes a column of
four results loads one of the two for all of them, and four chains of additions overlap. Each result
is computed as before, in the same order, so the bits stay. For backends whose work items are not
already vectors of rows.
"""

from __future__ import annotations

from .analysis import fold_nest, grid_index, loads, varies_along
from .builder import Kernel, KernelBuilder
from .language import Block, Loop, Store, Value, fold_loop, where
from .rewrite import PointCloner

# The last int parameter: the new extent of the axis. The key is True if points are apart.
EXTENT_NAMES = {False: "jammed", True: "jammed_apart"}


def unroll_jam(kernel: Kernel, count: int, axis: int = -2, apart: bool = False) -> Kernel | None:
    """Return the kernel in which a point does the work of `count` neighbours along an axis.

    Return None if that makes no sense: there must be one fold, perhaps with one in it, that stores
    nothing, and the innermost one must load something which all of the neighbours need. The new
    kernel takes one more int, m = -(-extent // count), the grid's new extent along the axis. With
    `apart`, point i does not do neighbours but i, i + m, i + 2 * m and so on, so that other points,
    which do the neighbours, load them at once.

    - `count`: the number of neighbours that become one.
    - `axis`: the axis of the grid; default: the last but one.
    - `apart`: True joins points i, i + m, i + 2 * m and so on in place of neighbours.
    """
    nest = fold_nest(kernel)
    others = [s for s in kernel.body if not isinstance(s, (Value, Loop, Store))]
    axis %= max(len(kernel.grid), 1)
    if len(kernel.grid) < 2 or not nest or others:
        return None
    if not _shares_loads(kernel, nest, axis):
        return None
    if any(b.access == "rw" for b in kernel.buffers):
        return None
    extent = Value("param", kernel.index, (), EXTENT_NAMES[apart])
    points = _point_cloners(kernel, count, axis, extent if apart else None)
    _join_points(points, kernel.body)
    grid = (*kernel.grid[:axis], extent, *kernel.grid[axis + 1 :])
    return kernel.with_body(
        _build_body(kernel, points), ints=(*kernel.ints, extent.name), grid=grid
    )


def jammed_axis(kernel: Kernel) -> int:
    """Return the axis of the grid along which `unroll_jam` joins points by default."""
    return len(kernel.grid) - 2


def _shares_loads(kernel: Kernel, nest: list[Loop], axis: int) -> bool:
    """Return True if nested folds are equally long for all points along the axis and share a load.

    The innermost fold must load a value that is the same for all points.
    """
    varies = varies_along(kernel.body, grid_index(axis))
    if any(varies(bound) for loop in nest for bound in (loop.start, loop.stop)):
        return False
    return not all(map(varies, loads(nest[-1].body)))


def _point_cloners(kernel: Kernel, count: int, axis: int, step: Value | None) -> list[PointCloner]:
    """Return cloners for the points that become one: neighbours, or `step` apart.

    A point beyond the grid has the index of the last.
    """
    extent, index = kernel.grid[axis], grid_index(axis, kernel.index)
    first = index * count if step is None else index
    points = [PointCloner(axis, first, None)]
    for i in range(1, count):
        at = first + i * (1 if step is None else step)
        inside = at < extent
        points.append(PointCloner(axis, where(inside, at, extent - 1), inside))
    return points


def _join_points(points: list[PointCloner], block: Block) -> None:
    """Clone the values of a block once for each point, and join its folds."""
    for s in block:
        if isinstance(s, Loop):
            _join_folds(points, s)
        elif isinstance(s, Value):
            for point in points:
                point.value(s)


def _join_folds(points: list[PointCloner], old: Loop) -> None:
    """Join the folds of all points into one with all carries, and bind its results in `points`."""
    width = len(old.carry)

    def step(k: Value, *carries: Value) -> list[Value]:
        """Return the new carries of all points for one iteration."""
        for j, point in enumerate(points):
            point.replacements[old.var] = k
            own = carries[j * width : (j + 1) * width]
            point.replacements.update(zip(old.carry, own, strict=True))
        _join_points(points, old.body)
        return [v for point in points for v in point.operands(old.update)]

    init = [v for point in points for v in point.operands(old.init)]
    start, stop = points[0].operands((old.start, old.stop))
    results = iter(fold_loop(start, stop, init, step).results)
    for point in points:
        point.replacements.update((r, next(results)) for r in old.results)


def _build_body(kernel: Kernel, points: list[PointCloner]) -> Block:
    """Return the body in which all points store their results.

    The builder joins what they share.
    """
    builder = KernelBuilder(kernel.name)
    for point in points:
        for s in kernel.body:
            if isinstance(s, Store):
                when, inside = None if s.when is None else point.operand(s.when), point.inside
                both = inside if when is None else when if inside is None else when & inside
                index, value = point.operand(s.index), point.operand(s.value)
                builder.effect(Store(s.buffer, index, value, both))
    return builder.body()
