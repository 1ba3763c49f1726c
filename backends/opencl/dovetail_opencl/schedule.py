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
COLUMNS = {TILED: TiledStyle(), UNROLLED: UnrolledStyle()}

BODY = 24  # statements of a kernel that is unrolled, at most
ROWS = 8  # points of a work item in the jammed schedule
WIDE = 512  # columns from which groups keep in step: sums of 4096 columns take 9 ms, not 44
SHORT = 64  # elements; one work item computes a shorter reduction
KNOWN = 1024  # kernels whose schedules are cached
ANY = 1 << 30  # reductions that a group may do


@lru_cache(KNOWN)
def schedules(kernel: Kernel, groups: bool, most: int = ANY) -> dict[str, Schedule]:
    """Return the schedules of a kernel, the first choice first.

    `groups`: the device is good at work items that work together. `most`: the number of reductions
    along rows that a kernel may have for that.
    """
    plain = {PLAIN: Schedule(kernel, STYLE)}
    if shareable(kernel) and along_rows(kernel):
        groups = groups and sum(1 for _ in reductions(kernel)) <= most
        return {LANED: Schedule(kernel, STYLE, lanes=True)} | plain if groups else plain
    if shareable(kernel) and repeatable(kernel):
        short = sum(1 for _ in walk(kernel.body)) <= BODY
        name = UNROLLED if groups and short else TILED
        return plain | {name: Schedule(kernel, COLUMNS[name])}
    jammed = unroll_jam(kernel, ROWS)
    if jammed is None:
        return plain
    return {JAMMED: Schedule(jammed, STYLE, joined=((jammed_axis(kernel), ROWS),))} | plain


def repeatable(kernel: Kernel) -> bool:
    """Return True if all points have the same loops, and a point may be computed twice."""
    if any(b.access == "rw" for b in kernel.buffers):
        return False
    ends = {v.op for loop in reductions(kernel) for v in (loop.start, loop.stop)}
    return bool(kernel.grid) and ends <= {"param", "const"}


def best(
    kernel: Kernel, groups: bool, ints: Sequence[int], grid: Sequence[int], most: int = ANY
) -> str:
    """Return the name of the schedule for a launch of these sizes."""
    available = schedules(kernel, groups, most)
    if JAMMED in available:
        return JAMMED if grid[jammed_axis(kernel)] > 1 else PLAIN
    column = next((name for name in COLUMNS if name in available), None)
    if LANED not in available and (column is None or grid[-1] < WIDE):
        return PLAIN
    long = reduces_long(kernel, dict(zip(kernel.ints, ints, strict=True)), SHORT)
    return (column or LANED) if long else PLAIN
