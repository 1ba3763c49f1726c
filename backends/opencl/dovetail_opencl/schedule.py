"""The schedules of a kernel, and their choice for a launch. All of them give the same bits.

plain: a work item computes a point. lanes: a group of LANES computes one, for reductions along long
rows. jammed: a work item computes several rows of a product, which share their loads. staged: a
group computes a tile of a product, from operands that it copies to local memory. tiled, unrolled: a
group computes neighbouring columns of a reduction, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dovetail.extend import (
    Kernel,
    Schedule,
    along_rows,
    choose_tile,
    fills_tiles,
    jammed_axis,
    reduces_long,
    reductions,
    shareable,
    stages_wider_values,
    unroll_jam,
    walk,
)

from .render import OpenCLStyle, TiledStyle, UnrolledStyle

PLAIN, LANED, JAMMED, STAGED = "plain", "lanes", "jammed", "staged"
TILED, UNROLLED = "tiled", "unrolled"
STYLE = OpenCLStyle()
COLUMN_STYLES = {TILED: TiledStyle(), UNROLLED: UnrolledStyle()}

UNROLLED_STATEMENTS_MAX = 24  # statements of a kernel that is unrolled, at most
JAMMED_ROWS = 8  # points of a work item in the jammed schedule
GROUPED_COLUMNS_MIN = (
    512  # columns from which groups keep in step: sums of 4096 columns take 9 ms, not 44
)
ITEM_ELEMENTS_MAX = 64  # elements; one work item computes a shorter reduction
LARGE_LAUNCHES = (STAGED, *COLUMN_STYLES)  # schedules that are built when a large grid needs them
SCHEDULE_CACHE_MAX = 1024  # kernels whose schedules are cached
REDUCTIONS_UNLIMITED = 1 << 30  # reductions that a group may do


@dataclass(frozen=True)
class Groups:
    """The abilities of a device's work groups.

    `fast`: it is good at work items that work together, in kernels with up to `row_reductions_max`
    reductions along rows. `local_bytes`, `items`: the local memory and the work items of a group.
    `staged_points_min`: points of a launch from which groups stage operands. `vectors`: the
    compiler makes vectors of items.
    """

    fast: bool
    row_reductions_max: int = REDUCTIONS_UNLIMITED
    local_bytes: int = 0
    items: int = 0
    staged_points_min: int = 0
    vectors: bool = False


@lru_cache(SCHEDULE_CACHE_MAX)
def schedules(kernel: Kernel, groups: Groups) -> dict[str, Schedule]:
    """Map names to the schedules of a kernel; the first one is built before sizes are known."""
    plain = {PLAIN: Schedule(kernel, STYLE)}
    if shareable(kernel) and along_rows(kernel):
        laned = groups.fast and sum(1 for _ in reductions(kernel)) <= groups.row_reductions_max
        return {LANED: Schedule(kernel, STYLE, lanes=True)} | plain if laned else plain
    if shareable(kernel) and is_repeatable(kernel):
        is_unrolled = sum(1 for _ in walk(kernel.body)) <= UNROLLED_STATEMENTS_MAX
        name = UNROLLED if groups.fast and is_unrolled else TILED
        return plain | {name: Schedule(kernel, COLUMN_STYLES[name])}
    jammed = unroll_jam(kernel, JAMMED_ROWS)
    if jammed is not None:
        joined = ((jammed_axis(kernel), JAMMED_ROWS),)
        plain = {JAMMED: Schedule(jammed, STYLE, joined=joined)} | plain
    if groups.vectors and not stages_wider_values(kernel):  # jammed rows take half of the time
        return plain
    tile = choose_tile(kernel, groups.local_bytes, groups.items, 1 if groups.vectors else 4)
    return plain | ({STAGED: Schedule(kernel, STYLE, tile=tile)} if tile else {})


def is_repeatable(kernel: Kernel) -> bool:
    """Return True if all points have the same loops, and a point may be computed twice."""
    if any(b.access == "rw" for b in kernel.buffers):
        return False
    ends = {v.op for loop in reductions(kernel) for v in (loop.start, loop.stop)}
    return bool(kernel.grid) and ends <= {"param", "const"}


def best(kernel: Kernel, groups: Groups, ints: Sequence[int], grid: Sequence[int]) -> str:
    """Choose the schedule for a launch of these sizes; return its name."""
    available, sizes = schedules(kernel, groups), dict(zip(kernel.ints, ints, strict=True))
    if STAGED in available and fills_tiles(kernel, sizes, grid, groups.staged_points_min):
        return STAGED
    if JAMMED in available:
        return JAMMED if grid[jammed_axis(kernel)] > 1 else PLAIN
    column = next((name for name in COLUMN_STYLES if name in available), None)
    if LANED not in available and (column is None or grid[-1] < GROUPED_COLUMNS_MIN):
        return PLAIN
    return (column or LANED) if reduces_long(kernel, sizes, ITEM_ELEMENTS_MAX) else PLAIN
