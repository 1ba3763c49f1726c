"""The schedules of a kernel: how work items share its points. All of them give the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dovetail.extend import (
    LANES,
    Kernel,
    Loop,
    along_rows,
    jammed_axis,
    reduces_long,
    reductions,
    shareable,
    walk,
)

Group = tuple[int, int, int]  # work items along x, y and z

LANE_GROUP = (LANES, 1, 1)  # of a schedule with lanes
FIRST_GROUP = (64, 1, 1)  # of the pipeline that is built first
NARROW_GROUP = (8, 8, 1)  # for grids whose last axis is short
JAMMED_ROWS = 8  # points of a work item in a jammed schedule
GROUPS_MAX = 65_535  # groups along x of a dispatch: what every device allows
ITEM_ELEMENTS_MAX = 64  # elements; one work item computes a shorter reduction


class Schedule(NamedTuple):
    """A way to share the points of a grid among work items.

    - `group`: the work items of a group along x, y and z.
    - `lanes`: True if the items of a group compute each point together.
    - `jammed`: True if an item computes JAMMED_ROWS points of a product, which share their loads.
    """

    group: Group
    lanes: bool = False
    jammed: bool = False


def choose_group(points: Sequence[int]) -> Group:
    """Return the size of groups for a number of points along x, y and z."""
    return NARROW_GROUP if points[0] <= NARROW_GROUP[0] and points[1] > 1 else FIRST_GROUP


def shares_points(kernel: Kernel, ints: Sequence[int]) -> bool:
    """Return True if a group should compute a point of a launch: for reductions of long rows."""
    count = sum(s.kind == "reduce" for s in walk(kernel.body) if isinstance(s, Loop))
    if not (shareable(kernel) and along_rows(kernel)) or count > len(reductions(kernel)):
        return False
    return reduces_long(kernel, dict(zip(kernel.ints, ints, strict=True)), ITEM_ELEMENTS_MAX)


def schedule_launch(
    kernel: Kernel, ints: Sequence[int], grid: Sequence[int], shares: bool, jams: bool
) -> tuple[Schedule, Sequence[int], list[int]]:
    """Return the schedule of a launch, its integers, and the groups along x, y and z.

    - `shares`: True if groups may compute points together.
    - `jams`: True if the kernel has a jammed form.
    """
    lanes = shares and shares_points(kernel, ints)
    jammed = jams and grid[jammed_axis(kernel)] > 1
    if jammed:
        axis = jammed_axis(kernel)
        rows = -(-grid[axis] // JAMMED_ROWS)
        ints, grid = (*ints, rows), (*grid[:axis], rows, *grid[axis + 1 :])
    points = [*reversed(grid), 1, 1, 1][:3]
    if lanes:
        return Schedule(LANE_GROUP, lanes), ints, [min(points[0], GROUPS_MAX), *points[1:]]
    group = choose_group(points)
    groups = [-(-n // items) for n, items in zip(points, group, strict=True)]
    return Schedule(group, jammed=jammed), ints, groups
