"""The schedules of a kernel, and their choice for a launch. All of them give the same bits.

plain: a thread computes a point. coarsened: it computes several, for kernels without loops over
large grids. staged: a block computes a tile of a product, from operands that it copies to shared
memory. jammed: a thread computes several points that share their loads, as in other sums of
products. warp, columns: LANES threads compute a point, for reductions that are not short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from dovetail.extend import (
    LANES,
    Kernel,
    Loop,
    Schedule,
    Tile,
    along_rows,
    choose_tile,
    coarsen,
    fills_tiles,
    grid_index,
    loads,
    reduces_long,
    reductions,
    shareable,
    stride_along,
    unroll_jam,
    varies_along,
)

from .render import (
    ColumnStyle,
    CudaStyle,
    LaunchShape,
    WarpStyle,
    grid_launch_shape,
    tile_launch_shape,
)

PLAIN, COARSENED, JAMMED, STAGED = "plain", "coarsened", "jammed", "staged"
WARP, COLUMNS = "warp", "columns"
STYLES = {WARP: WarpStyle(), COLUMNS: ColumnStyle()}
STYLE = CudaStyle()

THREAD_ELEMENTS_MAX = 64  # elements; one thread computes a shorter reduction
TILE_ROWS, TILE_COLUMNS = 8, 4  # of a product, per thread: 12 loads for 32 multiplications
THREAD_LOAD_BYTES = 32  # bytes that a thread loads at a time
# points; with fewer, threads would be idle, so points are not joined
COARSENED_POINTS_MIN = 1 << 18
COARSENED_COLUMNS_MIN = 1 << 11  # points of the last axis, likewise
JAMMED_POINTS_MIN = 1 << 19  # points of a product, likewise
STAGED_POINTS_MIN = 1 << 16  # likewise, of a staged product: 16 tiles
SCHEDULE_CACHE_MAX = 4096  # kernels in each cache: every new shape asks about its kernel
SHARED_BYTES_MAX = 48 << 10  # bytes of shared memory that a block may declare
BLOCK_THREADS_MAX = 1024
COARSENED_STATEMENTS_MAX = 512  # statements of a text, above which it is not made longer


def schedule(kernel: Kernel, name: str) -> Schedule:
    """Return the schedule that `first` or `best` names; the plain one for any other name."""
    if name == STAGED:
        return Schedule(kernel, STYLE, tile=block_tile(kernel))
    if name == JAMMED:
        joined = ((-2, TILE_ROWS), (-1, TILE_COLUMNS))
        return Schedule(tile_kernel(kernel) or kernel, STYLE, joined=joined)
    if name == COARSENED:
        count = points_per_thread(kernel)
        return Schedule(coarsen(kernel, count) or kernel, STYLE, joined=((-1, count),))
    return Schedule(kernel, STYLES.get(name, STYLE), lanes=name in STYLES)


@lru_cache(SCHEDULE_CACHE_MAX)
def first(kernel: Kernel) -> str:
    """Return the name of the schedule that is compiled before any size is known."""
    return WARP if shareable(kernel) and along_rows(kernel) else PLAIN


def block_tile(kernel: Kernel) -> Tile | None:
    """Return the tile of a product that a block computes; None for other kernels."""
    return choose_tile(kernel, SHARED_BYTES_MAX, BLOCK_THREADS_MAX)


@lru_cache(SCHEDULE_CACHE_MAX)
def tile_kernel(kernel: Kernel) -> Kernel | None:
    """Return the kernel with TILE_ROWS times TILE_COLUMNS points to a thread.

    Return None if they share no loads.
    """
    rows = unroll_jam(kernel, TILE_ROWS)
    return None if rows is None else unroll_jam(rows, TILE_COLUMNS, axis=-1, apart=True)


def best(kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> str:
    """Choose the schedule for a launch of these sizes; return its name."""
    sizes = dict(zip(kernel.ints, ints, strict=True))
    if block_tile(kernel) and fills_tiles(kernel, sizes, grid, STAGED_POINTS_MIN):
        return STAGED
    if math.prod(grid) >= JAMMED_POINTS_MIN and tile_kernel(kernel) is not None:
        return JAMMED
    if shareable(kernel):
        if not reduces_long(kernel, sizes, THREAD_ELEMENTS_MAX):
            return PLAIN
        loops = reductions(kernel)
        fits = has_uniform_bounds(kernel, loops) and shared_bytes(loops) <= SHARED_BYTES_MAX
        return WARP if first(kernel) == WARP else COLUMNS if fits else PLAIN
    if reads_transposed(kernel):
        return PLAIN
    is_large = (
        math.prod(grid) >= COARSENED_POINTS_MIN
        and max(grid[-1:], default=0) >= COARSENED_COLUMNS_MIN
    )
    return COARSENED if is_large and points_per_thread(kernel) > 1 else PLAIN


def shared_bytes(loops: Sequence[Loop]) -> int:
    """Return the shared memory of a block of columns: an array per kind of reduction."""
    kinds = {(loop.combine, tuple(u.dtype for u in loop.update)) for loop in loops}
    items = (max(d.itemsize for d in dtypes) * len(dtypes) for _, dtypes in kinds)
    return sum(LANES * LANES * item for item in items)


def has_uniform_bounds(kernel: Kernel, loops: Sequence[Loop]) -> bool:
    """Return True if all points along the last axis have the same bounds.

    Then they come to the same barriers.
    """
    varies = varies_along(kernel.body, grid_index(len(kernel.grid) - 1), memory=True)
    return not any(varies(v) for loop in loops for v in (loop.start, loop.stop))


def launch_shape(kernel: Kernel, schedule: Schedule, grid: Sequence[int]) -> LaunchShape:
    """Return blocks and threads of a launch.

    Those of a tile, or of a transpose, lie along two axes.
    """
    if schedule.tile:
        return tile_launch_shape(schedule.tile, grid)
    square = len(schedule.joined) > 1 or (schedule.kernel is kernel and reads_transposed(kernel))
    return grid_launch_shape(schedule.style, grid, square)


@lru_cache(SCHEDULE_CACHE_MAX)
def reads_transposed(kernel: Kernel) -> bool:
    """Return True if a kernel without loops reads a transpose.

    Then neighbours along the second last axis load neighbours, and those along the last one do not.
    The threads of a block should be neighbours along both.
    """
    axis = len(kernel.grid) - 1
    if axis < 1 or any(isinstance(s, Loop) for s in kernel.body):
        return False
    above, along = (stride_along(kernel.body, grid_index(a)) for a in (axis - 1, axis))
    indices = [v.index for v in loads(kernel.body)]
    return any(above(i) == 1 and along(i) not in (0, 1) for i in indices)


@lru_cache(SCHEDULE_CACHE_MAX)
def points_per_thread(kernel: Kernel) -> int:
    """Return the points per thread of the coarsened kernel; 1 if that is not worth it."""
    nbytes = sum(v.dtype.itemsize for v in loads(kernel.body))
    if not nbytes or any(isinstance(s, Loop) for s in kernel.body):
        return 1
    wanted = min(THREAD_LOAD_BYTES // nbytes, COARSENED_STATEMENTS_MAX // len(kernel.body), 8)
    return 1 << wanted.bit_length() - 1 if wanted > 1 and coarsen(kernel, 2) is not None else 1
