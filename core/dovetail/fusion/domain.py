"""The axes of a kernel, and how values are seen from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from .. import layout as lay
from ..layout import Move, Shape, StridedView

# How a node is seen: moves, innermost first, each with the node that it was applied to, or -1.
Path: TypeAlias = tuple[tuple[Move, int], ...]


class Domain(NamedTuple):
    """The axes of a kernel: `outer` ones are its grid, those in `axes` its rows.

    `full` is their common shape.
    """

    full: Shape
    axes: Shape

    @property
    def order(self) -> Shape:
        """All axes: outer, then row axes."""
        return tuple(d for d in range(len(self.full)) if d not in self.axes) + self.axes

    @property
    def outer(self) -> Shape:
        """Extents of the grid."""
        return tuple(n for d, n in enumerate(self.full) if d not in self.axes)

    @property
    def row(self) -> Shape:
        """Extents along a row."""
        return tuple(self.full[d] for d in self.axes)

    def path(self, shape: Shape) -> Path | None:
        """How a node of this shape is seen from the domain; None where it does not fit."""
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

    def coalesced_row(self, strides: Sequence[Shape]) -> tuple[Shape, Sequence[Shape]]:
        """The row's extents, and these strides over the domain's axes along it, after coalescing:
        one extent where a single stride walks each of them.
        """
        cut = len(self.full) - len(self.axes)
        return lay.coalesce(self.row, [s[cut:] for s in strides])

    def coalesced_grid(self, strides: Sequence[Shape]) -> tuple[Shape, Sequence[Shape]]:
        """The same for the axes of the grid."""
        cut = len(self.full) - len(self.axes)
        return lay.coalesce(self.outer, [s[:cut] for s in strides])


def ordered(shape: Shape, order: Shape) -> StridedView:
    """Dense memory with its axes in this order, outermost first; row-major if none is given."""
    if not order:
        return lay.contiguous(shape)
    strides = lay.contiguous_strides(tuple(shape[a] for a in order))
    at = dict(zip(order, strides, strict=True))
    return StridedView(shape, tuple(at[a] for a in range(len(order))), 0)


def through(base: StridedView, path: Path) -> StridedView | int:
    """A layout as seen through `path`; where strides do not permit a move, the node of that."""
    for m, source in path:
        after = lay.move(base, m)
        if after is None:
            return source
        base = after
    return base


def same_elements(a: StridedView, b: StridedView) -> bool:
    """Whether two layouts of one shape visit the same elements.

    Strides of size-1 axes do not count.
    """
    pairs = zip(a.shape, a.strides, b.strides, strict=True)
    return a.offset == b.offset and all(n == 1 or s == t for n, s, t in pairs)
