"""The axes of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from ..layout import Move, Shape, StridedView


@dataclass(frozen=True, slots=True)
class Domain:
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

    def path(self, shape: Shape) -> tuple[tuple[Move, int], ...] | None:
        """How a node of this shape is seen from the domain; None where it does not fit."""
        order = self.order
        moves: list[Move] = [] if order == tuple(range(len(order))) else [("permute", order)]
        keep = tuple(1 if d in self.axes else n for d, n in enumerate(self.full))
        if shape != self.full:
            if shape not in (keep, self.outer):
                return None
            moves.insert(0, ("expand", self.full))
            if shape != keep:
                moves.insert(0, ("reshape", keep))
        return tuple((m, -1) for m in moves)


def equal(a: StridedView, b: StridedView) -> bool:
    """Whether two layouts of one shape visit the same elements; strides of size-1 axes do not
    count.
    """
    pairs = zip(a.shape, a.strides, b.strides, strict=True)
    return a.offset == b.offset and all(n == 1 or s == t for n, s, t in pairs)
