"""The ways in which a kernel's points are given to threads. All of them give the same bits.

plain: a thread does a point. spread: it does several, for kernels without loops over large grids.
jammed: it does a tile of them that share what they load, as in products of matrices. warp, columns:
LANES threads do a point, for reductions that are not short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from dovetail.extend import (
    LANES,
    Kernel,
    Loop,
    Value,
    along_rows,
    jam,
    load_steps,
    shareable,
    spread,
)

from .render import ColumnStyle, CudaStyle, Shape, WarpStyle, shape

PLAIN, SPREAD, JAMMED, WARP, COLUMNS = "plain", "spread", "jammed", "warp", "columns"
STYLES = {WARP: WarpStyle(), COLUMNS: ColumnStyle()}
STYLE = CudaStyle()

SHORT = 64  # a reduction below this is done by one thread
ROWS, COLUMNS_APART = 8, 4  # of a product, that a thread does: 12 loads for 32 multiplications
IN_FLIGHT = 32  # bytes that a thread is to wait for at a time
BUSY = 1 << 18  # points below this leave threads idle: they are not joined
WIDE = 1 << 11  # points of the last axis, likewise
TILED = 1 << 19  # points of a product, likewise
KNOWN = 4096  # kernels of which answers are kept: each is asked about for every new shape
SHARED = 48 << 10  # bytes of shared memory that a block may declare
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
        return Text(tile(kernel) or kernel, STYLE)
    if way == SPREAD:
        return Text(spread(kernel, points(kernel)) or kernel, STYLE)
    return Text(kernel, STYLES.get(way, STYLE))


def first(kernel: Kernel) -> str:
    """The way that is compiled before any size is known."""
    return WARP if shareable(kernel) and along_rows(kernel) else PLAIN


@lru_cache(KNOWN)
def tile(kernel: Kernel) -> Kernel | None:
    """The kernel with ROWS times COLUMNS_APART points to a thread, if they share what they load."""
    rows = jam(kernel, ROWS)
    return None if rows is None else jam(rows, COLUMNS_APART, axis=-1, apart=True)


def best(kernel: Kernel, first: str, ints: Sequence[int], grid: Sequence[int]) -> str:
    """The way for a launch of these sizes."""
    if math.prod(grid) >= TILED and tile(kernel) is not None:
        return JAMMED
    known = dict(zip(kernel.ints, ints, strict=True))
    if shareable(kernel):
        loops = [s for s in kernel.body if isinstance(s, Loop) and s.kind == "reduce"]
        if max(_span(loop, known) for loop in loops) < SHORT:
            return PLAIN
        fits = uniform(kernel, loops) and shared_bytes(loops) <= SHARED
        return WARP if first == WARP else COLUMNS if fits else PLAIN
    if across(kernel):
        return PLAIN
    many = math.prod(grid) >= BUSY and max(grid[-1:], default=0) >= WIDE
    return SPREAD if many and points(kernel) > 1 else PLAIN


def _span(loop: Loop, known: dict[str, int]) -> int:
    """How many iterations a loop has; SHORT, which is enough, where its bounds are computed."""
    start, stop = loop.start, loop.stop
    if not {start.op, stop.op} <= {"param", "const"}:
        return SHORT
    first, last = (int(known[v.attr] if v.op == "param" else v.attr) for v in (start, stop))
    return last - first


def shared_bytes(loops: Sequence[Loop]) -> int:
    """The shared memory that a block of columns takes: one array for each kind of reduction."""
    kinds = {(loop.combine, tuple(u.dtype for u in loop.update)) for loop in loops}
    items = (max(d.itemsize for d in dtypes) * len(dtypes) for _, dtypes in kinds)
    return sum(LANES * LANES * item for item in items)


def uniform(kernel: Kernel, loops: Sequence[Loop]) -> bool:
    """Whether all points along the last axis have the same bounds: then they come to the same
    barriers."""
    varying = {id(r) for s in kernel.body if isinstance(s, Loop) for r in s.results}

    def varies(v: Value) -> bool:
        return id(v) in varying or (v.op == "index" and v.attr == len(kernel.grid) - 1)

    for s in kernel.body:
        if isinstance(s, Value) and (s.op == "load" or any(map(varies, s.args))):
            varying.add(id(s))
    return not any(varies(v) for loop in loops for v in (loop.start, loop.stop))


def launch_shape(kernel: Kernel, way: str, grid: Sequence[int]) -> Shape:
    """Blocks and threads of a launch. Those of a tile, or of a transpose, lie along two axes."""
    square = way == JAMMED or (way == PLAIN and across(kernel))
    return shape(STYLES.get(way, STYLE), grid, square)


@lru_cache(KNOWN)
def across(kernel: Kernel) -> bool:
    """Whether a kernel without loops reads a transpose: neighbours along the last axis but one load
    neighbours there, and those along the last one do not. Threads of a block should be both."""
    axis = len(kernel.grid) - 1
    if axis < 1 or any(isinstance(s, Loop) for s in kernel.body):
        return False
    steps = zip(load_steps(kernel, axis - 1), load_steps(kernel, axis), strict=True)
    return any(above == 1 and along not in (0, 1) for above, along in steps)


@lru_cache(KNOWN)
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
    joined = {JAMMED: ((-2, ROWS), (-1, COLUMNS_APART)), SPREAD: ((-1, points(kernel)),)}
    for axis, count in joined.get(way, ()):
        extents[axis] = -(-extents[axis] // count)
        found.append(extents[axis])
    return found, extents
