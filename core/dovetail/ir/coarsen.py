"""Thread coarsening: a point of a kernel without loops does the work of several distant points.

A thread that loads one number waits for memory longer than it works, and a device has too few
threads to hide that. A point that loads four numbers at once, before it stores anything, waits
once. Neighbouring points keep loading neighbours. Each value is computed as before: the bits stay.
"""

from __future__ import annotations

from .analysis import grid_index
from .builder import Kernel
from .language import Store, Value, where
from .rewrite import PointCloner

EXTENT_NAME = "spread"  # the int parameter that comes last: the new extent of the last axis


def coarsen(kernel: Kernel, count: int) -> Kernel | None:
    """Return the kernel in which one point of the last axis does the work of `count`.

    Point i also does points i + m, i + 2 * m, and so on, where m = -(-extent // count) is one more
    int, and the axis' new extent.
    Return None if that is not possible: the kernel has a loop, an atomic, or a buffer that it both
    reads and writes.

    - `count`: the number of points that become one.
    """
    stores = [s for s in kernel.body if isinstance(s, Store)]
    values = [s for s in kernel.body if isinstance(s, Value)]
    if not kernel.grid or len(stores) + len(values) < len(kernel.body):
        return None
    if any(b.access == "rw" for b in kernel.buffers):
        return None
    extent = Value("param", kernel.index, (), EXTENT_NAME)
    points = _point_cloners(kernel, count, extent)
    for v in values:
        for point in points:
            point.value(v)
    for s in stores:
        for point in points:
            _store(point, s)
    ints, grid = (*kernel.ints, EXTENT_NAME), (*kernel.grid[:-1], extent)
    return kernel.with_body(tuple(points[0].statements), ints=ints, grid=grid)


def _point_cloners(kernel: Kernel, count: int, step: Value) -> list[PointCloner]:
    """Return cloners for the first point and the points that it does as well, in one block.

    A point beyond the grid has the index of the first.
    """
    axis = len(kernel.grid) - 1
    at = first_index = grid_index(axis, kernel.index)
    points = [first := PointCloner(axis, first_index, None)]
    for _ in range(1, count):
        at = at + step
        inside = at < kernel.grid[-1]
        points.append(PointCloner(axis, where(inside, at, first_index), inside, first))
    return points


def _store(point: PointCloner, s: Store) -> None:
    """Append a point's store, under the condition that the point is inside the grid."""
    when, inside = None if s.when is None else point.operand(s.when), point.inside
    both = inside if when is None else when if inside is None else inside & when
    if both is not None:
        point.emit(both)
    point.statements.append(Store(s.buffer, point.operand(s.index), point.operand(s.value), both))
