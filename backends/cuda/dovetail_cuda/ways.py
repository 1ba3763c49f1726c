"""The ways in which a kernel's points are given to threads. All of them give the same bits.

plain: a thread does a point. spread: it does several, for kernels without loops over large grids.
jammed: it does several that share what they load, as in products of matrices. warp, columns: LANES
threads do a point, for reductions that are not short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dovetail.extend import (
    Kernel,
    Loop,
    Value,
    along_rows,
    jam,
    jammed_axis,
    shareable,
    spread,
)

from .render import ColumnStyle, CudaStyle, WarpStyle

PLAIN, SPREAD, JAMMED, WARP, COLUMNS = "plain", "spread", "jammed", "warp", "columns"
STYLES = {WARP: WarpStyle(), COLUMNS: ColumnStyle()}
STYLE = CudaStyle()

SHORT = 64  # a reduction below this is done by one thread
ROWS = 8  # of a product, that a thread does
IN_FLIGHT = 32  # bytes that a thread is to wait for at a time
BUSY = 1 << 18  # points below this leave threads idle: they are not joined
WIDE = 1 << 11  # points of the last axis, likewise
LONG = 512  # statements of a text, above which it is not made longer


class Text(NamedTuple):
    """A kernel in one way: what is rendered, and how."""

    kernel: Kernel
    style: CudaStyle

    def source(self) -> str:
        return self.style.render(self.kernel, self.style.lane != "")


def text(kernel: Kernel, way: str) -> Text:
    """The kernel in a way that `first` or `best` names."""
    if way == JAMMED:
        return Text(jam(kernel, ROWS) or kernel, STYLE)
    if way == SPREAD:
        return Text(spread(kernel, points(kernel)) or kernel, STYLE)
    return Text(kernel, STYLES.get(way, STYLE))


def first(kernel: Kernel) -> str:
    """The way that is compiled before any size is known."""
    if jam(kernel, ROWS) is not None:
        return JAMMED
    return WARP if shareable(kernel) and along_rows(kernel) else PLAIN


def best(kernel: Kernel, first: str, ints: Sequence[int], grid: Sequence[int]) -> str:
    """The way for a launch of these sizes."""
    if first == JAMMED:
        return JAMMED if grid[jammed_axis(kernel)] > 1 else PLAIN
    known = dict(zip(kernel.ints, ints, strict=True))
    if shareable(kernel):
        spans = [_span(s, known) for s in kernel.body if isinstance(s, Loop) and s.kind == "reduce"]
        if max(SHORT if n is None else n for n in spans) < SHORT:
            return PLAIN
        # All of a block have to come to the same barriers.
        return first if first == WARP else PLAIN if None in spans else COLUMNS
    many = math.prod(grid) >= BUSY and max(grid[-1:], default=0) >= WIDE
    return SPREAD if many and points(kernel) > 1 else PLAIN


def _span(loop: Loop, known: dict[str, int]) -> int | None:
    """How many iterations a loop has; None where only a point knows."""
    ends = []
    for v in (loop.start, loop.stop):
        if v.op not in ("param", "const"):
            return None
        ends.append(known[v.attr] if v.op == "param" else v.attr)
    return int(ends[1] - ends[0])


def points(kernel: Kernel) -> int:
    """How many points a thread of the spread kernel does; 1 where it is not worth it."""
    loads = {
        id(s): s.dtype.itemsize for s in kernel.body if isinstance(s, Value) and s.op == "load"
    }
    if not loads or any(isinstance(s, Loop) for s in kernel.body):
        return 1
    wanted = min(IN_FLIGHT // sum(loads.values()), LONG // len(kernel.body), 8)
    return 1 << wanted.bit_length() - 1 if wanted > 1 and spread(kernel, 2) is not None else 1


def sizes(
    kernel: Kernel, way: str, ints: Sequence[int], grid: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The integers and the grid with which the text of a way is launched."""
    found, extents = list(ints), list(grid)
    axis, count = {JAMMED: (-2, ROWS), SPREAD: (-1, points(kernel))}.get(way, (0, 0))
    if count:
        extents[axis] = -(-extents[axis] // count)
        found.append(extents[axis])
    return found, extents
