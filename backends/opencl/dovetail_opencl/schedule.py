"""The schedules of a kernel, and their choice for a launch. All of them give the same bits.

plain: a work item computes a point. lanes: a group of LANES computes one, for reductions along long
rows. jammed: a work item computes several rows of a product, which share their loads. tiled,
unrolled: a group computes neighbouring columns of a reduction, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dovetail.extend import (
    Kernel,
    Schedule,
    along_rows,
    jammed_axis,
    reduces_long,
    reductions,
    shareable,
    unroll_jam,
    walk,
)

from .render import OpenCLStyle, TiledStyle, UnrolledStyle

PLAIN, LANED, JAMMED, TILED, UNROLLED = "plain", "lanes", "jammed", "tiled", "unrolled"
STYLE = OpenCLStyle()
COLUMN_STYLES = {TILED: TiledStyle(), UNROLLED: UnrolledStyle()}

UNROLLED_STATEMENTS_MAX = 24  # statements of a kernel that is unrolled, at most
JAMMED_ROWS = 8  # points of a work item in the jammed schedule
GROUPED_COLUMNS_MIN = (
    512  # columns from which groups keep in step: sums of 4096 columns take 9 ms, not 44
)
ITEM_ELEMENTS_MAX = 64  # elements; one work item computes a shorter reduction
SCHEDULE_CACHE_MAX = 1024  # kernels whose schedules are cached
REDUCTIONS_UNLIMITED = 1 << 30  # reductions that a group may do


@lru_cache(SCHEDULE_CACHE_MAX)
def schedules(
    kernel: Kernel, has_fast_groups: bool, row_reductions_max: int = REDUCTIONS_UNLIMITED
) -> dict[str, Schedule]:
    """Map names to the schedules of a kernel; the first one is built before sizes are known.

    `has_fast_groups`: the device is good at work items that work together. `row_reductions_max`:
    the number of reductions along rows that a kernel may have for that.
    """
    plain = {PLAIN: Schedule(kernel, STYLE)}
    if shareable(kernel) and along_rows(kernel):
        has_fast_groups = (
            has_fast_groups and sum(1 for _ in reductions(kernel)) <= row_reductions_max
        )
        return {LANED: Schedule(kernel, STYLE, lanes=True)} | plain if has_fast_groups else plain
    if shareable(kernel) and is_repeatable(kernel):
        is_unrolled = sum(1 for _ in walk(kernel.body)) <= UNROLLED_STATEMENTS_MAX
        name = UNROLLED if has_fast_groups and is_unrolled else TILED
        return plain | {name: Schedule(kernel, COLUMN_STYLES[name])}
    jammed = unroll_jam(kernel, JAMMED_ROWS)
    if jammed is None:
        return plain
    return {JAMMED: Schedule(jammed, STYLE, joined=((jammed_axis(kernel), JAMMED_ROWS),))} | plain


def is_repeatable(kernel: Kernel) -> bool:
    """Return True if all points have the same loops, and a point may be computed twice."""
    if any(b.access == "rw" for b in kernel.buffers):
        return False
    ends = {v.op for loop in reductions(kernel) for v in (loop.start, loop.stop)}
    return bool(kernel.grid) and ends <= {"param", "const"}


def best(
    kernel: Kernel,
    has_fast_groups: bool,
    ints: Sequence[int],
    grid: Sequence[int],
    row_reductions_max: int = REDUCTIONS_UNLIMITED,
) -> str:
    """Choose the schedule for a launch of these sizes; return its name."""
    available = schedules(kernel, has_fast_groups, row_reductions_max)
    if JAMMED in available:
        return JAMMED if grid[jammed_axis(kernel)] > 1 else PLAIN
    column = next((name for name in COLUMN_STYLES if name in available), None)
    if LANED not in available and (column is None or grid[-1] < GROUPED_COLUMNS_MIN):
        return PLAIN
    is_long = reduces_long(kernel, dict(zip(kernel.ints, ints, strict=True)), ITEM_ELEMENTS_MAX)
    return (column or LANED) if is_long else PLAIN
