"""Schedules: assignments of a kernel's points to work items, all with the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .builder import Kernel
from .cstyle import CStyle
from .staging import Tile


@dataclass(frozen=True, eq=False)
class Schedule:
    """A kernel to render, and how to render it.

    - `kernel`: the kernel.
    - `style`: the dialect of C.
    - `lanes`: True if a group of LANES work items does a point.
    - `joined`: by axis, how many of its points one work item does; each is an int64 parameter more.
    - `tile`: the points that a group does together, from operands in local memory; None for no
      tile.
    """

    kernel: Kernel
    style: CStyle
    lanes: bool = False
    joined: tuple[tuple[int, int], ...] = ()
    tile: Tile | None = None

    def source(self) -> str:
        """Return the kernel's text in the schedule's style."""
        return self.style.render(self.kernel, self.lanes, self.tile)

    def sizes(
        self, ints: Sequence[int], grid: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the integers and the grid of the scheduled kernel, from those of the original."""
        more, extents = list(ints), list(grid)
        for axis, count in self.joined:
            extents[axis] = -(-extents[axis] // count)
            more.append(extents[axis])
        return tuple(more), tuple(extents)
