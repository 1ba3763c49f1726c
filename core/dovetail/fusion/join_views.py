"""Joins that are viewed: where the parts lie in the view, and the paths of the parts."""

from __future__ import annotations

from typing import NamedTuple

from ..layout import Move, Shape, move_shape, slice_along
from .domain import Path


class JoinView(NamedTuple):
    """A view of a join that contains the pads and slices with which its path begins.

    A pad along the join's axis moves the parts, a slice also cuts them. So the path of a part does
    not grow with the number of joins around it.
    """

    axis: int
    moved: int  # by how many positions the parts are moved
    shape: Shape
    other_axes: Path  # the pads and slices of other axes
    remaining: Path  # the moves after those

    def find_interval(self, start: int, stop: int) -> tuple[int, int]:
        """Return where the part of the join from `start` to `stop` begins and ends in the view.

        A part that is not in the view ends before it begins, or there.
        """
        return max(start + self.moved, 0), min(stop + self.moved, self.shape[self.axis])

    def find_path(self, shape: Shape, start: int, source: int) -> Path:
        """Return the path of a part, of this shape, that begins at `start` of join `source`."""
        axis, size = self.axis, self.shape[self.axis]
        begin, end = self.find_interval(start, start + shape[axis])
        path = list[tuple[Move, int]]()
        if end - begin < shape[axis]:
            cut = slice_along(shape, axis, begin - start - self.moved, end - begin)
            path.append((cut, source))
        if end - begin < size:
            path.append((("pad", axis, begin, size), source))
        path += ((_replace_length(m, axis, size), node) for m, node in self.other_axes)
        return (*path, *self.remaining)


def view_join(shape: Shape, axis: int, path: Path) -> JoinView:
    """Return the view of a join of this shape and axis through a path."""
    moved, others = 0, list[tuple[Move, int]]()
    whole, absorbed = shape, 0
    for m, node in path:
        if m[0] == "pad" and m[1] == axis:
            moved += m[2]
        elif m[0] == "slice" and m[3][axis] == 1 and 0 not in m[2]:
            moved -= m[1][axis]
            starts = (*m[1][:axis], 0, *m[1][axis + 1 :])
            m = ("slice", starts, *m[2:])
            if any(starts) or any(step != 1 for step in m[3]) or _cuts(whole, m[2], axis):
                others.append((m, node))
        elif m[0] == "pad":
            others.append((m, node))
        else:
            break
        whole, absorbed = move_shape(whole, m), absorbed + 1
    return JoinView(axis, moved, whole, tuple(others), path[absorbed:])


def _cuts(shape: Shape, lengths: Shape, axis: int) -> bool:
    """Return True if these lengths differ from a shape along another axis than `axis`."""
    return shape[:axis] != lengths[:axis] or shape[axis + 1 :] != lengths[axis + 1 :]


def _replace_length(m: Move, axis: int, length: int) -> Move:
    """Return a slice that keeps `length` positions along an axis; another move unchanged."""
    if m[0] != "slice":
        return m
    return "slice", m[1], (*m[2][:axis], length, *m[2][axis + 1 :]), m[3]
