"""Views of parameters with sizes that depend on inputs (`table[:, :n]`), as slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import Graph

from .writer import GraphWriter

Location: TypeAlias = tuple[int, int, tuple[int, ...], tuple[int, ...]]


def location_of(x: dt.Tensor) -> Location:
    """Return a tensor's (storage id, offset, shape, strides); axes of size 1 have stride 0."""
    strides = tuple([0 if m == 1 else s for m, s in zip(x.shape, x.stride(), strict=True)])
    return id(x.storage()), x.storage_offset(), tuple(x.shape), strides


def varying_constants(graphs: Sequence[Graph]) -> set[int]:
    """Return the ids of the nodes of constants that have different locations in the graphs."""
    ids: set[int] = set()
    for nodes in zip(*[g.nodes for g in graphs], strict=False):
        tensors = [n.tensor for n in nodes if n.tensor is not None]
        if len(tensors) == len(graphs) and len({location_of(x) for x in tensors}) > 1:
            ids.update(map(id, nodes))
    return ids


class ParameterSlice(NamedTuple):
    """A view of a tensor as a slice of each of its dimensions, then a transpose and a reshape.

    `order`: the dimensions that the view has, in its order; of each other one it has one element.
    """

    starts: list[int]
    counts: list[int]
    steps: list[int]
    order: list[int]
    shape: tuple[int, ...]

    @property
    def stops(self) -> list[int]:
        """Return the end of each dimension's slice."""
        every = zip(self.starts, self.counts, self.steps, strict=True)
        return [i + (m - 1) * t + 1 for i, m, t in every]

    def write(self, w: GraphWriter, parameter: str) -> str:
        """Write Slice, Transpose and Reshape as needed, and return the name of the result."""
        axes = perm = list(range(len(self.starts)))
        name = w.add(
            "Slice",
            [
                parameter,
                w.sizes(self.starts),
                w.sizes(self.stops),
                w.ints(axes),
                w.ints(self.steps),
            ],
        )
        if self.order != sorted(self.order):
            perm = [*[d for d in axes if d not in self.order], *self.order]
            name = w.add("Transpose", [name], perm=perm)
        shape = tuple([self.counts[d] for d in perm])
        return name if shape == self.shape else w.reshape(name, self.shape)


def slice_of(location: Location, parameter: Location) -> ParameterSlice | None:
    """Return a view as a slice of a tensor over the same memory, or None if it is no slice."""
    storage, offset, shape, strides = location
    whole_storage, begins, sizes, whole_strides = parameter
    if storage != whole_storage:
        return None
    order: list[int] = []
    steps, counts = [1] * len(sizes), [1] * len(sizes)
    for m, s in zip(shape, strides, strict=True):
        if m == 1:
            continue
        fits = [
            d for d, f in enumerate(whole_strides) if d not in order and 0 < f <= s and s % f == 0
        ]
        if not fits:
            return None
        d = max(fits, key=whole_strides.__getitem__)
        order.append(d)
        steps[d], counts[d] = s // whole_strides[d], m
    remainder, starts = offset - begins, [0] * len(sizes)
    for d in sorted(range(len(sizes)), key=whole_strides.__getitem__, reverse=True):
        if whole_strides[d]:
            starts[d], remainder = divmod(remainder, whole_strides[d])
    part = ParameterSlice(starts, counts, steps, order, shape)
    inside = all(i >= 0 and j <= n for i, j, n in zip(starts, part.stops, sizes, strict=True))
    return part if inside and not remainder else None
