"""The way a tensor is distributed: an axis, and the borders of the ranks' shards along it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import dovetail as dt
from dovetail.extend import CHUNK, PRODUCT_BLOCK

__all__: list[str] = []

Shape = tuple[int, ...]
UNITS_MIN = 2  # chunks or blocks of each rank on average, so that no shard is twice the average


class Messenger(Protocol):
    """The part of `ProcessGroup` that sharded tensors use; a `PlannedGroup` only records it."""

    rank: int
    size: int

    def all_reduce(self, tensor: dt.Tensor, op: str = "sum", *, name: str = "") -> Any:
        """Return the reduction of the tensors of all ranks."""

    def all_gather(
        self, tensor: Any, shapes: Sequence[Shape] | None = None, *, name: str = ""
    ) -> Any:
        """Return the tensors of all ranks."""

    def all_to_all(
        self,
        tensors: Sequence[dt.Tensor],
        shapes: Sequence[Shape] | None = None,
        *,
        name: str = "",
    ) -> Any:
        """Return the tensor that each rank has for this one."""


class Sharding(NamedTuple):
    """The axis along which a tensor is cut, and the borders: rank r has `borders[r:r + 2]`."""

    axis: int
    borders: Shape
    group: Messenger

    @property
    def size(self) -> int:
        """The size of the whole tensor along the axis."""
        return self.borders[-1]

    @property
    def start(self) -> int:
        """The first position of this rank's shard."""
        return self.borders[self.group.rank]

    @property
    def stop(self) -> int:
        """The position after this rank's shard."""
        return self.borders[self.group.rank + 1]

    def lengths(self) -> Shape:
        """Return the size of each rank's shard along the axis."""
        return tuple([b - a for a, b in pairwise(self.borders)])

    def shapes(self, local: Shape) -> list[Shape]:
        """Return the shape of each rank's shard, from that of this rank."""
        return [(*local[: self.axis], n, *local[self.axis + 1 :]) for n in self.lengths()]

    def along(self, axis: int) -> Sharding:
        """Return the same borders along another axis."""
        return self._replace(axis=axis)

    def matches(self, other: Sharding) -> bool:
        """Return True if axis, borders and group are the same."""
        return self[:2] == other[:2] and self.group is other.group


def choose_borders(size: int, ranks: int) -> Shape:
    """Return borders of nearly equal shards, at multiples of 4096, or of 256, in long axes.

    At those borders the bits of sums, or of products, do not depend on the number of ranks.
    """
    unit = next((u for u in (CHUNK, PRODUCT_BLOCK) if size >= UNITS_MIN * u * ranks), 1)
    count = -(-size // unit)
    return tuple([min(size, unit * (count * r // ranks)) for r in range(ranks + 1)])
