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
            point.store(s)
    ints, grid = (*kernel.ints, EXTENT_NAME), (*kernel.grid[:-1], extent)
    return kernel.with_body(tuple(points[0].statements), ints=ints, grid=grid)


def _point_cloners(kernel: Kernel, count: int, step: Value) -> list[_CoarsenedPoint]:
    """Return cloners for the first point and the points that it does as well, in one block.

    A point beyond the grid has the index of the first.
    """
    axis = len(kernel.grid) - 1
    at = first_index = grid_index(axis, kernel.index)
    points = [first := _CoarsenedPoint(axis, first_index, None)]
    for _ in range(1, count):
        at = at + step
        inside = at < kernel.grid[-1]
        points.append(_CoarsenedPoint(axis, where(inside, at, first_index), inside, first))
    return points


class _CoarsenedPoint(PointCloner):
    """A cloner for one point, which reuses each value that is the same for the first point."""

    def __init__(
        self, axis: int, index: Value, inside: Value | None, first: _CoarsenedPoint | None = None
    ) -> None:
        super().__init__(axis, index, inside)
        self.first = first
        if first is not None:
            self.statements, self.emitted = first.statements, first.emitted
            self.emit(index)

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the first point's value if its arguments are the same, else None."""
        if self.first is None:
            return None
        value = self.first.replacements[v]
        same = all(a is b for a, b in zip(args, value.args, strict=True))
        return value if same else None

    def store(self, s: Store) -> None:
        """Append this point's store, under the condition that the point is inside the grid."""
        when, inside = None if s.when is None else self.operand(s.when), self.inside
        both = inside if when is None else when if inside is None else inside & when
        if both is not None:
            self.emit(both)
        self.statements.append(Store(s.buffer, self.operand(s.index), self.operand(s.value), both))
