"""The axes of a kernel, and the paths by which it views values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from .. import layout as lay
from ..layout import Move, Shape, StridedView

# The path of a view: moves, innermost first, each with the node that it was applied to, or -1.
Path: TypeAlias = tuple[tuple[Move, int], ...]


class Domain(NamedTuple):
    """The axes of a kernel: `outer` ones are its grid, those in `axes` its rows.

    `full` is their common shape.
    """

    full: Shape
    axes: Shape

    @property
    def order(self) -> Shape:
        """All axes: the outer ones, then the row's."""
        return tuple(d for d in range(len(self.full)) if d not in self.axes) + self.axes

    @property
    def outer(self) -> Shape:
        """The extents of the grid."""
        return tuple(n for d, n in enumerate(self.full) if d not in self.axes)

    @property
    def row(self) -> Shape:
        """The extents along a row."""
        return tuple(self.full[d] for d in self.axes)

    def path(self, shape: Shape) -> Path | None:
        """Return the path by which the domain views a node of this shape, or None if it cannot."""
        order = self.order
        moves: list[Move] = [] if order == tuple(range(len(order))) else [("permute", order)]
        if shape != self.full:
            keep = tuple(1 if d in self.axes else n for d, n in enumerate(self.full))
            if shape not in (keep, self.outer):
                return None
            moves.insert(0, ("expand", self.full))
            if shape != keep:
                moves.insert(0, ("reshape", keep))
        return tuple((m, -1) for m in moves)

    def coalesce_row(self, strides: Sequence[Shape]) -> tuple[Shape, Sequence[Shape]]:
        """Return the row's extents, and these strides along it, after coalescing.

        The strides are over the domain's axes. There is one extent if a single stride walks each of
        them.
        """
        cut = len(self.full) - len(self.axes)
        return lay.coalesce(self.row, [s[cut:] for s in strides])

    def coalesce_grid(self, strides: Sequence[Shape]) -> tuple[Shape, Sequence[Shape]]:
        """Return the grid's extents, and these strides along it, after coalescing."""
        cut = len(self.full) - len(self.axes)
        return lay.coalesce(self.outer, [s[:cut] for s in strides])


def dense_layout(shape: Shape, order: Shape) -> StridedView:
    """Return the layout of dense memory with its axes in this order, outermost first.

    Without an order it is row-major.
    """
    if not order:
        return lay.row_major(shape)
    strides = lay.row_major_strides(tuple(shape[a] for a in order))
    at = dict(zip(order, strides, strict=True))
    return StridedView(shape, tuple(at[a] for a in range(len(order))), 0)


def merge_slices(path: Path) -> Path:
    """Return an equal path whose first two moves, if they are slices, are one."""
    while len(path) > 1 and path[0][0][0] == path[1][0][0] == "slice":
        ((_, starts, _, steps), source), ((_, after, lengths, strides), _), *others = path
        first = tuple([a + b * s for a, b, s in zip(starts, after, steps, strict=True)])
        both = tuple([s * t for s, t in zip(steps, strides, strict=True)])
        path = ((("slice", first, lengths, both), source), *others)
    return path


def apply_path(base: StridedView, path: Path) -> StridedView | int:
    """Return a layout viewed through `path`, or the node of a move that strides do not permit."""
    for m, source in path:
        after = lay.apply_move(base, m)
        if after is None:
            return source
        base = after
    return base


def same_elements(a: StridedView, b: StridedView) -> bool:
    """Return True if two layouts of one shape visit the same elements in the same order.

    Strides of size-1 axes do not count.
    """
    pairs = zip(a.shape, a.strides, b.strides, strict=True)
    return a.offset == b.offset and all(n == 1 or s == t for n, s, t in pairs)
