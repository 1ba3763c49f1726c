"""The schedule of a kernel, vectors and tiles of its points, chosen from its index expressions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from dovetail.extend import (
    LANES,
    Atomic,
    Block,
    Kernel,
    Loop,
    Statement,
    Store,
    Value,
    fold_nest,
    grid_index,
    is_branch,
    loads,
    stride_along,
    trip_count,
    values,
    walk,
)

from .row_reuse import Reuse, find_reuses

TILE_POINTS = 16384  # of the innermost axis, in a tile of a straight-line kernel
STORING_TILE_POINTS = 4096  # of a kernel with many stores: fewer tiles would not reach all threads
# If neighbours along the innermost axis are stored apart, other axes fill the cache lines between.
# Lines that a tile of this size starts are still in the first cache, of one thread, when it ends.
SCATTERED_TILE_POINTS = 512
PANEL_ROW_BYTES = 4096  # of a tile of reductions along columns: 1 kB takes 1.5 times as long
PANELS_MIN = 4
LINE_BYTES = 64
LINE_FILL_STATEMENTS_MAX = 40  # of a kernel whose vectors fill lines: larger ones are compute-bound
TRANSPOSED_TILE_POINTS = 64  # along both axes: squares stay in the first cache
TRANSPOSED_TILE_ROWS = 256  # along the axis on which memory is contiguous: long pieces are read
VECTOR_REGISTERS = 4  # of a kernel with loops: as many chains of operations at once
# Rows of an unrolled and jammed product, by bytes of a register, and registers of a vector: 16
# accumulators of 32 registers, or 8 of 16. A vector has two registers, because a load that differs
# from lane to lane reads whole cache lines, and one register may touch two.
UNROLL_JAM_ROWS = {64: 8, 32: 4, 16: 4}
JAM_VECTOR_REGISTERS = 2
JAM_TILE_ROWS = 64
# Points whose folds run together: rows of a sparse matrix take 0.6 to 0.95 of the time. Four have
# lengths that differ more, and their ends are mispredicted: up to 1.5.
FOLD_POINTS = 2
COPIED_STATEMENTS_MAX = 40  # of a body that is rendered up to five times
STREAM_BYTES_MIN = 1 << 25  # of a result that bypasses the caches
TRANSPOSED_BYTES_MIN = 1 << 22  # the caches would evict lines before they are full
STREAM_STORES_MAX = 4  # of a point: each store tests if it bypasses the caches
SPLITS_MAX = 2  # comparisons at which a row of points is split: each doubles the code
TILES_WANTED = 1024  # of a kernel with loops: tiles take several points if there are more
TILES_MIN = 32  # with fewer, some threads may have none
LOOP_POINTS_MAX = 16
GATHER_BYTES = 32  # memory traffic of a load whose neighbour's address is anywhere
UNKNOWN_TRIP_COUNT = 64  # estimate for a loop whose bounds are not known at launch


@dataclass(frozen=True)
class CpuSchedule:
    """The vectors and tiles of a kernel's points.

    kind: what lanes are (see `render`).
    native: bytes of a vector register.
    tile: points of the innermost axis in a tile.
    second_axis, second_points: another axis, or -1, and a tile's points along it.
    unroll_jam: points of `second_axis` that are computed together.
    fold_points: points of the last axis, which is `second_axis`, that are computed together, each
        with folds of its own length.
    panel: the kernel is reductions along columns.
    vectorized: ids of loops whose iterations are lanes.
    transposed: ids of loads that are contiguous along `second_axis`: the tile is transposed.
    shared: ids of values that are the same for all points that are computed together, or in a panel
        for all points of a tile.
    reuses: values of `vectorized` loops that an earlier one has kept.
    divisions: by id of a loop, quotients and remainders of its variable by one divisor.
    splits: comparisons `i + a < b` that hold up to some point of a row, as in a concatenation. The
        points before and after it are two loops without masks.
    tails: narrower vectors for the remainder of a row, the narrowest first.
    stream_bytes_min: bytes of a result from which stores bypass the caches; 0: never.
    straight_line: no point has loops.
    """

    kind: Literal["lanes", "rows", "points"]
    width: int
    native: int
    tile: int
    rank: int
    second_axis: int = -1
    second_points: int = 1
    unroll_jam: int = 1
    fold_points: int = 1
    panel: bool = False
    vectorized: frozenset[int] = frozenset()
    transposed: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()
    reuses: tuple[Reuse, ...] = ()
    divisions: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)
    splits: tuple[Value, ...] = ()
    tails: tuple[int, ...] = ()
    stream_bytes_min: int = 0
    straight_line: bool = False

    @property
    def blocked(self) -> tuple[int, ...]:
        """Return the axes along which a tile has several points."""
        return (self.rank - 1,) if self.second_axis < 0 else (self.second_axis, self.rank - 1)

    @property
    def axes(self) -> Sequence[int]:
        """Return the axes in the order in which tiles advance along them, the fastest first.

        In straight-line kernels the last axis is the slowest: data that points of other axes share,
        or write side by side, is still in the caches.
        """
        order = range(self.rank)[::-1]
        return [*order[1:], *order[:1]] if self.straight_line else order

    def blocks(self, grid: Sequence[int]) -> list[int]:
        """Return the points of a tile along each axis of the grid."""
        sizes = [1] * len(grid)
        for axis in self.blocked if grid else ():
            sizes[axis] = min(
                self.tile if axis == self.rank - 1 else self.second_points, grid[axis]
            )
        if self.panel:  # of whole vectors
            even = -(-grid[-1] // (PANELS_MIN * self.width)) * self.width
            sizes[-1] = min(sizes[-1], even)
        elif self.kind != "lanes" and self.tile == 1 and grid:
            points = math.prod(grid)
            wanted = max(1, min(self.fold_points, points // TILES_MIN), points // TILES_WANTED)
            sizes[-1] = min(LOOP_POINTS_MAX, wanted, max(1, grid[-1]))
        return sizes


def schedule(kernel: Kernel, native: int) -> CpuSchedule:
    """Choose the lanes, tiles and vectors of a kernel for registers of `native` bytes."""
    loops = list(_find_loops(kernel.body))
    if _uses_lockstep(kernel, loops):
        return _build_lockstep_schedule(kernel, native, loops)
    vectorized = frozenset(id(x) for x in loops if _can_vectorize(x))
    divisions = {
        id(x): pairs for x in loops if id(x) in vectorized and (pairs := _find_divisions(x))
    }
    kind: Literal["rows", "points"] = "rows" if vectorized else "points"
    rank, tile = len(kernel.grid), 1 if loops else TILE_POINTS
    if kind == "points" and rank and loops and _has_only_short_folds(kernel):
        return CpuSchedule(
            kind, 1, native, tile, rank, second_axis=rank - 1, fold_points=FOLD_POINTS
        )
    return CpuSchedule(
        kind,
        1,
        native,
        tile,
        rank,
        vectorized=vectorized,
        reuses=find_reuses(kernel, vectorized),
        divisions=divisions,
        straight_line=not loops,
    )


def _find_loops(block: Block) -> Iterator[Loop]:
    """Yield the loops of a block, and those in them, except for branches."""
    for s in block:
        if isinstance(s, Loop) and not is_branch(s):
            yield s
            yield from _find_loops(s.body)


def _has_only_short_folds(kernel: Kernel) -> bool:
    """Return True if a kernel consists of short folds without effects: chains of latencies."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if any(map(is_branch, loops)) or sum(len(x.body) for x in loops) > COPIED_STATEMENTS_MAX:
        return False
    plain = all(not x.effects and all(isinstance(s, Value) for s in x.body) for x in loops)
    return plain and not any(isinstance(s, Atomic) for s in kernel.body)


def _build_lockstep_schedule(kernel: Kernel, native: int, loops: list[Loop]) -> CpuSchedule:
    """Build the schedule of a kernel whose lanes are points of the innermost axis."""
    rank, item = len(kernel.grid), max(_list_itemsizes(walk(kernel.body)), default=8)
    new = partial(CpuSchedule, "lanes", native=native, rank=rank)
    width = native // item * (VECTOR_REGISTERS if loops else 2)
    if not loops and len(kernel.body) <= LINE_FILL_STATEMENTS_MAX:  # smaller items fill lines, too
        stored = (s.buffer.dtype.itemsize for s in kernel.body if isinstance(s, Store))
        fills = LINE_BYTES // min(stored, default=item)
        width = max(width, min(fills, native // item * VECTOR_REGISTERS))
    if loops and (shared := _find_shared_values(kernel)):
        width = native // _find_largest_itemsize(kernel) * JAM_VECTOR_REGISTERS
        jam = UNROLL_JAM_ROWS[native]
        new = partial(new, second_axis=rank - 2, second_points=JAM_TILE_ROWS, unroll_jam=jam)
        return new(width, tile=width, shared=shared, tails=_choose_tails(kernel, width, (2,)))
    if _is_panel(kernel):
        along = stride_along(kernel.body, grid_index(rank - 1))
        uniform = frozenset(id(s) for s in _list_top_level_values(kernel.body) if along(s) == 0)
        return new(width, tile=max(width, PANEL_ROW_BYTES // item), shared=uniform, panel=True)
    if loops:
        return new(width, tile=width, tails=_choose_tails(kernel, width, (VECTOR_REGISTERS, 2)))
    second, transposed = _find_loads_to_transpose(kernel, native)
    if transposed:
        tile, streams = TRANSPOSED_TILE_POINTS, TRANSPOSED_BYTES_MIN
        new = partial(
            new, second_axis=second, second_points=TRANSPOSED_TILE_ROWS, transposed=transposed
        )
        return new(min(width, tile), tile=tile, stream_bytes_min=streams)
    tile, streams = TILE_POINTS, STREAM_BYTES_MIN
    if sum(isinstance(s, Store) for s in kernel.body) > STREAM_STORES_MAX:
        tile, streams = STORING_TILE_POINTS, 0
    if rank > 1 and not _stores_neighbours(kernel):
        tile = SCATTERED_TILE_POINTS
    splits = _find_splits(kernel.body, rank - 1)
    tails = _choose_tails(kernel, width, (4, 2)) if _has_strides(kernel) else ()
    new = partial(new, stream_bytes_min=streams, splits=splits, straight_line=True)
    return new(width, tile=tile, tails=tails)


def _choose_tails(kernel: Kernel, width: int, parts: Sequence[int]) -> tuple[int, ...]:
    """Return narrower widths for the remainder of a row; none if the body is long."""
    statements = sum(1 for _ in walk(kernel.body))
    return tuple(width // n for n in parts) if statements <= COPIED_STATEMENTS_MAX else ()


def _has_strides(kernel: Kernel) -> bool:
    """Return True if elements along the last axis are apart, as in a pooling: rows may be short."""
    along = stride_along(kernel.body, grid_index(len(kernel.grid) - 1))
    indices = [v.index for v in loads(kernel.body)]
    indices += [s.index for s in kernel.body if isinstance(s, Store)]
    return any(along(index) not in (None, 0, 1) for index in indices)


def _stores_neighbours(kernel: Kernel) -> bool:
    """Return True if points along the last axis are stored side by side, or all in one place."""
    along = stride_along(kernel.body, grid_index(len(kernel.grid) - 1))
    return any(isinstance(s, Store) and along(s.index) in (0, 1) for s in kernel.body)


def _find_splits(block: Block, axis: int) -> tuple[Value, ...]:
    """Return comparisons, SPLITS_MAX at most, that guard loads or choose their index.

    Other comparisons may be of sums that wrap around.
    """
    along, conditions = stride_along(block, grid_index(axis)), set[int]()
    stack = [
        v
        for x in loads(block)
        for v in (x.when, *_find_choice_conditions(x.index))
        if v is not None
    ]
    while stack:
        v = stack.pop()
        conditions.add(id(v))
        if v.op in ("and", "not"):
            stack += v.args
    comparisons = [v for v in _list_top_level_values(block) if v.op == "lt" and id(v) in conditions]
    return tuple([v for v in comparisons if [along(a) for a in v.args] == [1, 0]][:SPLITS_MAX])


def _find_choice_conditions(index: Value) -> list[Value]:
    """Return the conditions that choose an index, as in a concatenation."""
    if index.op != "where":
        return []
    return [index.args[0], *(c for a in index.args[1:] for c in _find_choice_conditions(a))]


def _list_top_level_values(block: Block) -> list[Value]:
    """Return the values of a block that are in none of its loops."""
    return [s for s in block if isinstance(s, Value)]


def _find_divisions(loop: Loop) -> tuple[Value, ...]:
    """Return quotients and remainders of a loop's variable by one parameter."""
    if not _is_natural(loop.start):
        return ()
    halves = [
        s
        for s in _list_top_level_values(loop.body)
        if s.op in ("quo", "rem") and s.args[0] is loop.var
    ]
    return tuple(s for s in halves if s.args[1] is halves[0].args[1] and s.args[1].op == "param")


def _is_natural(v: Value) -> bool:
    """Return True if an index is known to be non-negative."""
    if v.op == "const":
        return v.number >= 0
    return v.op == "index" or (v.op in ("add", "mul") and all(map(_is_natural, v.args)))


def _find_loads_to_transpose(kernel: Kernel, native: int) -> tuple[int, frozenset[int]]:
    """Return the axis along which most loads are contiguous, if not the last, and their ids."""
    *others, last = (stride_along(kernel.body, grid_index(a)) for a in range(len(kernel.grid)))
    if not any(isinstance(s, Store) and last(s.index) == 1 for s in kernel.body):
        return -1, frozenset()
    by_axis: dict[int, list[int]] = {}
    for v in loads(kernel.body):
        small = native < 64 and v.dtype.itemsize < 4  # masked loads of these need AVX-512
        if small or v.when is not None or last(v.index) in (None, 0, 1):
            continue
        for axis, along in enumerate(others):
            if along(v.index) == 1:
                by_axis.setdefault(axis, []).append(id(v))
    second = max(by_axis, key=lambda axis: len(by_axis[axis]), default=-1)
    return second, frozenset(by_axis.get(second, ()))


def _is_panel(kernel: Kernel) -> bool:
    """Return True if the kernel is reductions with plain bodies, then branches, then effects.

    So no store comes between a load and its use, wherever the renderer puts the load.
    """
    effects = [s for s in kernel.body if isinstance(s, Store) or _is_map(s)]
    others = [s for s in kernel.body if isinstance(s, Loop) and not _is_map(s)]
    branches = [s for s in others if is_branch(s)]
    others = [s for s in others if not is_branch(s)]
    first = kernel.body.index(effects[0]) if effects else 0
    if not others or any(x.kind != "reduce" or kernel.body.index(x) >= first for x in others):
        return False
    loops = [*others, *(x for x in effects if isinstance(x, Loop))]
    if any(isinstance(s, Loop) for x in loops for s in x.body):
        return False
    stores = [isinstance(s, Store) for s in effects]
    if branches:
        last = kernel.body.index(others[-1])
        return all(stores) and all(last < kernel.body.index(x) < first for x in branches)
    return all(stores) or (not any(stores) and not loads(kernel.body))


def _is_map(s: object) -> bool:
    """Return True if a statement is a map loop."""
    return isinstance(s, Loop) and s.kind == "map"


def _find_shared_values(kernel: Kernel) -> frozenset[int]:
    """Return the ids of values that are equal for all points of the last axis but one.

    Empty if unroll-and-jam does not pay: it does for a fold that loads one of them.
    """
    nest = fold_nest(kernel, with_branches=True)
    if not nest or len(kernel.grid) < 2:
        return frozenset()
    along = stride_along(kernel.body, grid_index(len(kernel.grid) - 2))
    shared = frozenset(id(v) for v in values(kernel.body) if along(v) == 0)
    pays = any(id(v) in shared for v in loads(nest[-1].body))
    bounds = (v for loop in nest for v in (loop.start, loop.stop))
    return shared if pays and all(along(v) == 0 for v in bounds) else frozenset()


def _list_itemsizes(statements: Iterable[Statement]) -> Iterator[int]:
    """Yield the item sizes of vectors: of loads, stores and floats."""
    for s in statements:
        if isinstance(s, Value) and (s.op == "load" or s.dtype.kind == "f"):
            yield s.dtype.itemsize
        elif isinstance(s, Store):
            yield s.buffer.dtype.itemsize


def _find_largest_itemsize(kernel: Kernel) -> int:
    """Return the largest item size of values that differ between points of the last axis."""
    along = stride_along(kernel.body, grid_index(len(kernel.grid) - 1))
    same = (v for v in values(kernel.body) if v.op == "load" and along(v) == 0)
    shared = {id(v) for v in same if v.dtype.kind != "f"}
    return max(_list_itemsizes(s for s in walk(kernel.body) if id(s) not in shared), default=8)


def _can_vectorize(loop: Loop) -> bool:
    """Return True if a loop's iterations can be lanes: no fold, no inner loop, no atomic."""
    inner = (s for s in walk(loop.body) if isinstance(s, Loop))
    if loop.kind == "fold" or any(isinstance(s, Atomic) for s in loop.body):
        return False
    return all(map(is_branch, inner))


def lanes_of_map(loop: Loop, native: int) -> int:
    """Return the number of iterations of a map loop that are computed at once.

    If an iteration has many stores, a vector of each value fills the registers, and loops may be
    short: a Fourier transform of rows of 64 or 128 complex numbers takes half the time that it
    takes with twice as many lanes.
    """
    if sum(isinstance(s, Store) for s in loop.body) <= STREAM_STORES_MAX:
        return LANES
    return native // max(_list_itemsizes(walk(loop.body)))


def _uses_lockstep(kernel: Kernel, loops: list[Loop]) -> bool:
    """Return True if lanes are to be points of the innermost axis.

    They are in all straight-line kernels, and if memory is contiguous along that axis rather than
    along a loop.
    """
    if not kernel.grid or any(isinstance(s, Atomic) for s in walk(kernel.body)):
        return False
    if not loops:
        return True
    inner = stride_along(kernel.body, grid_index(len(kernel.grid) - 1))
    if any(inner(b) != 0 for x in loops for b in (x.start, x.stop)):
        return False
    across = along = 0
    for loop in loops:
        own = stride_along(loop.body, loop.var)
        touched = [s.index for s in loop.body if isinstance(s, Store)]
        for index in (*touched, *(v.index for v in loads(loop.body))):
            across += inner(index) == 1
            along += own(index) == 1
    folds = all(x.kind == "fold" for x in loops)  # whose iterations cannot be lanes
    if across:
        return across >= along or folds
    return along == 0 and folds


# --- work of a launch


def estimate_operations(kernel: Kernel, ints: Mapping[str, int]) -> float:
    """Return an estimate of the operations of a point of the grid."""
    return _estimate_block_operations(kernel.body, ints)


def _estimate_block_operations(block: Block, ints: Mapping[str, int]) -> float:
    """Estimate the operations of a block, its loops included."""
    total = 1.0
    for s in block:
        total += (
            _estimate_trip_count(s, ints) * _estimate_block_operations(s.body, ints)
            if isinstance(s, Loop)
            else 1
        )
    return total


def _estimate_trip_count(loop: Loop, ints: Mapping[str, int]) -> int:
    """Return a loop's iterations at the first point of the grid, or a default if unknown."""
    count = trip_count(loop, ints, at=0)  # at the first point of the grid
    return UNKNOWN_TRIP_COUNT if count is None else count


def loop_iterations(block: Block, ints: Mapping[str, int]) -> int:
    """Estimate the iterations of a block's loops for a point of the grid; 1 without loops."""
    inner = (
        _estimate_trip_count(s, ints) * loop_iterations(s.body, ints)
        for s in block
        if isinstance(s, Loop)
    )
    return max(1, sum(inner))


def estimate_traffic_bytes(kernel: Kernel, schedule: CpuSchedule, ints: Mapping[str, int]) -> float:
    """Return an estimate of the bytes that a point of the grid loads and stores.

    A load from anywhere counts as a part of a cache line. A load that several rows share counts as
    nothing: it hits a cache.
    """
    return _estimate_block_traffic(kernel.body, grid_index(len(kernel.grid) - 1), schedule, ints)


def _estimate_block_traffic(
    block: Block, variable: Value, schedule: CpuSchedule, ints: Mapping[str, int]
) -> float:
    """Return the traffic of a block along `variable`: the grid's innermost axis or a loop's."""
    along, total = stride_along(block, variable), 0.0
    for s in block:
        if isinstance(s, Loop) and schedule.unroll_jam == 1:
            inner = variable if schedule.kind == "lanes" else s.var
            total += _estimate_trip_count(s, ints) * _estimate_block_traffic(
                s.body, inner, schedule, ints
            )
        elif isinstance(s, (Store, Atomic)) or (isinstance(s, Value) and s.op == "load"):
            stride, size = along(s.index), s.buffer.dtype.itemsize
            total += 0 if stride == 0 else GATHER_BYTES if stride is None else size
    return total
