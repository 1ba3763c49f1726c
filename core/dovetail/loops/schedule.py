"""A schedule: one way of giving the points of a kernel to work items, with the same bits as any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .builder import Kernel
from .cstyle import CStyle


@dataclass(frozen=True, eq=False)
class Schedule:
    """What is rendered, and how.

    `lanes`: a group of LANES work items does a point. `joined`: by axis, how many of its points one
    work item does; each is an int64 parameter more.
    """

    kernel: Kernel
    style: CStyle
    lanes: bool = False
    joined: tuple[tuple[int, int], ...] = ()

    def source(self) -> str:
        """The text."""
        return self.style.render(self.kernel, self.lanes)

    def sizes(
        self, ints: Sequence[int], grid: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The integers and the grid of a launch, in place of those for the kernel as it was."""
        more, extents = list(ints), list(grid)
        for axis, count in self.joined:
            extents[axis] = -(-extents[axis] // count)
            more.append(extents[axis])
        return tuple(more), tuple(extents)
