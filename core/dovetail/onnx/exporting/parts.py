"""Parts of parameters whose sizes follow from inputs (`table[:, :n]`), as slices of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import Graph

from .writer import Writer

Place: TypeAlias = tuple[int, int, tuple[int, ...], tuple[int, ...]]


def place_of(x: dt.Tensor) -> Place:
    """Where a tensor is in memory: its storage, offset, shape and strides."""
    strides = tuple([0 if m == 1 else s for m, s in zip(x.shape, x.stride(), strict=True)])
    return id(x.storage()), x.storage_offset(), tuple(x.shape), strides


def varying(graphs: Sequence[Graph]) -> set[int]:
    """The ids of the constants that are another part of memory in each graph."""
    found: set[int] = set()
    for nodes in zip(*[g.nodes for g in graphs], strict=False):
        tensors = [n.tensor for n in nodes if n.tensor is not None]
        if len(tensors) == len(graphs) and len({place_of(x) for x in tensors}) > 1:
            found.update(map(id, nodes))
    return found


class Part(NamedTuple):
    """Which elements of a tensor a view of it has, by dimension of that tensor.

    `order`: its dimensions that the view has, in the view's order; of each other one element is
    left.
    """

    starts: list[int]
    counts: list[int]
    steps: list[int]
    order: list[int]
    shape: tuple[int, ...]

    @property
    def stops(self) -> list[int]:
        """Where each dimension ends."""
        every = zip(self.starts, self.counts, self.steps, strict=True)
        return [i + (m - 1) * t + 1 for i, m, t in every]

    def written(self, w: Writer, whole: str) -> str:
        """Writes the nodes that cut it out."""
        axes = perm = list(range(len(self.starts)))
        found = w.add("Slice", [
            whole, w.sizes(self.starts), w.sizes(self.stops), w.ints(axes), w.ints(self.steps)
        ])  # fmt: skip
        if self.order != sorted(self.order):
            perm = [*[d for d in axes if d not in self.order], *self.order]
            found = w.add("Transpose", [found], perm=perm)
        made = tuple([self.counts[d] for d in perm])
        return found if made == self.shape else w.reshape(found, self.shape)


def part_of(place: Place, whole: Place) -> Part | None:
    """A view as a part of a tensor over the same memory; None where it is no slice of it."""
    storage, offset, shape, strides = place
    kept, begins, sizes, far = whole
    if storage != kept:
        return None
    order: list[int] = []
    steps, counts = [1] * len(sizes), [1] * len(sizes)
    for m, s in zip(shape, strides, strict=True):
        if m == 1:
            continue
        fits = [d for d, f in enumerate(far) if d not in order and 0 < f <= s and s % f == 0]
        if not fits:
            return None
        d = max(fits, key=far.__getitem__)
        order.append(d)
        steps[d], counts[d] = s // far[d], m
    rest, starts = offset - begins, [0] * len(sizes)
    for d in sorted(range(len(sizes)), key=far.__getitem__, reverse=True):
        if far[d]:
            starts[d], rest = divmod(rest, far[d])
    part = Part(starts, counts, steps, order, shape)
    inside = all(i >= 0 and j <= n for i, j, n in zip(starts, part.stops, sizes, strict=True))
    return part if inside and not rest else None
