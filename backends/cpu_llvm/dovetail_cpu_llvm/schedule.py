"""How the points of a kernel are given to vectors and tiles: decided from its index expressions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    grid_index,
    loads,
    stride_along,
    trip_count,
    values,
    walk,
)

TILE = 16384  # points of the innermost axis in one tile of a straight-line kernel
LONG_TILE = 4096  # of them where a point stores much: few of these are a tile for every thread
# Where neighbours along the innermost axis are stored apart from each other, other axes fill the
# lines between: a tile has so many that these are still in the first cache, and in one thread's.
APART_TILE = 512
PANEL_BYTES = 4096  # of a row in a tile of reductions along columns: 1 kB takes 1.5 times as long
PANELS = 4  # column panels for each thread, at least
LINE = 64  # bytes of a line of the caches
FILLS = 40  # statements of a kernel whose vectors fill lines: more of them wait for no memory
SIDE = 64  # points along both axes of a tile that is transposed: blocks stay in the first cache
LONG_SIDE = 256  # of it along the axis on which memory is contiguous: long pieces are read
REGISTERS = 4  # to a vector in a kernel with loops: so many chains of operations at once
# Rows of a product that are computed at once, by bytes of a register, and vectors of each: 16
# accumulators of 32 registers, or 8 of 16. As many rows again as vectors: what differs from vector
# to vector is read in whole lines, of which a vector may take two.
UNROLL_JAM = {64: 8, 32: 4, 16: 4}
JAMMED_REGISTERS = 2
# Points whose folds are run side by side: rows of a sparse matrix take 0.6 to 0.95 of the time.
# With four, whose lengths differ more, the processor guesses wrongly where each ends: up to 1.5.
ABREAST = 2
SHORT = 40  # statements of such folds: each is written five times
STREAMED = 1 << 25  # bytes of a result from which it is stored past the caches,
LIMITS = 2  # comparisons at which a row of points is split: each doubles the code
FEW = 4  # stores of a point; of more, each would ask whether to go past the caches
TURNED = 1 << 22  # and where it is transposed: there lines would be evicted before they are full
MANY, TOGETHER = 1024, 16  # tiles that are enough; points that one has then, of a kernel with loops
ALL = 32  # tiles without which some threads may have none
APART = 32  # bytes that a load takes from memory whose neighbour's is anywhere
UNKNOWN_TRIPS = 64  # what a loop with bounds that are not known at launch is reckoned to take


@dataclass(frozen=True)
class Schedule:
    """How a kernel's points are given to vectors and tiles.

    `kind` says what lanes are (see `render.py`); `native` is the bytes of a vector register;
    `vectorized` holds the ids of loops whose iterations lanes are. A tile is a block of `tile`
    points of the innermost axis, and of `side` points of axis `second` unless that is -1.
    `transposed` holds the ids of loads that are contiguous along `second`: a tile is transposed on
    the way. `unroll_jam` points of `second` are computed at once; `abreast` points of the last axis
    are, which is then the second, too, each with folds of its own length; `shared` are the ids of
    values that are equal for all of these, or, in a column `panel` (see `render.py`), for all of a
    tile's points. `divisions` holds, by id of a loop, what splits its variable into two axes:
    quotients and remainders by one divisor. `limits` are comparisons `i + a < b` along a single
    axis, which hold up to some point: what a join does before it and after it are two loops without
    masks. `tails` are narrower vectors for what whole ones leave of a row, the narrowest first.
    """

    kind: Literal["lanes", "rows", "points"]
    width: int
    native: int
    tile: int
    rank: int
    second: int = -1
    side: int = 1
    unroll_jam: int = 1
    abreast: int = 1
    panel: bool = False
    vectorized: frozenset[int] = frozenset()
    transposed: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()
    divisions: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)
    limits: tuple[Value, ...] = ()
    tails: tuple[int, ...] = ()
    streams: int = 0  # bytes of a result from which it is stored past the caches; 0: never
    straight: bool = False  # whether a point takes no loops

    @property
    def blocked(self) -> tuple[int, ...]:
        """The axes of which a tile takes more than one point."""
        return (self.rank - 1,) if self.second < 0 else (self.second, self.rank - 1)

    @property
    def axes(self) -> Sequence[int]:
        """The axes of the grid in the order in which tiles go on along them, the first first.

        Of straight-line kernels the blocks of the last axis come last: what other axes share, or
        write side by side, is still in the caches.
        """
        order = range(self.rank)[::-1]
        return [*order[1:], *order[:1]] if self.straight else order

    def blocks(self, grid: Sequence[int]) -> list[int]:
        """The points of a tile along each axis of the grid."""
        sizes = [1] * len(grid)
        for axis in self.blocked if grid else ():
            sizes[axis] = min(self.tile if axis == self.rank - 1 else self.side, grid[axis])
        if self.panel:  # some tiles for each thread, of whole vectors
            even = -(-grid[-1] // (PANELS * self.width)) * self.width
            sizes[-1] = min(sizes[-1], even)
        elif self.kind != "lanes" and self.tile == 1 and grid:
            points = math.prod(grid)
            wanted = max(1, min(self.abreast, points // ALL), points // MANY)
            sizes[-1] = min(TOGETHER, wanted, max(1, grid[-1]))
        return sizes


def schedule(kernel: Kernel, native: int) -> Schedule:
    """The schedule for vector registers of `native` bytes."""
    loops = [s for s in walk(kernel.body) if isinstance(s, Loop)]
    if _lockstep(kernel, loops):
        return _in_lockstep(kernel, native, loops)
    vectorized = frozenset(id(x) for x in loops if _can_vectorize(x))
    divisions = {id(x): found for x in loops if id(x) in vectorized and (found := _divisions(x))}
    kind: Literal["rows", "points"] = "rows" if vectorized else "points"
    rank, tile = len(kernel.grid), 1 if loops else TILE
    if kind == "points" and rank and loops and _are_chains(kernel):
        return Schedule(kind, 1, native, tile, rank, second=rank - 1, abreast=ABREAST)
    return Schedule(
        kind, 1, native, tile, rank, vectorized=vectorized, divisions=divisions, straight=not loops
    )


def _are_chains(kernel: Kernel) -> bool:
    """Whether all that takes long are short folds, whose steps each wait for the one before."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if sum(len(x.body) for x in loops) > SHORT:
        return False
    plain = all(not x.effects and all(isinstance(s, Value) for s in x.body) for x in loops)
    return plain and not any(isinstance(s, Atomic) for s in kernel.body)


def _in_lockstep(kernel: Kernel, native: int, loops: list[Loop]) -> Schedule:
    """The schedule where lanes are points of the innermost axis."""
    rank, item = len(kernel.grid), max(_itemsizes(walk(kernel.body)), default=8)
    width = native // item * (REGISTERS if loops else 2)
    if not loops and len(kernel.body) <= FILLS:  # what is smaller than `item` fills lines, too
        stored = (s.buffer.dtype.itemsize for s in kernel.body if isinstance(s, Store))
        width = max(width, min(LINE // min(stored, default=item), native // item * REGISTERS))
    if loops and (shared := _shared(kernel, loops)):
        width = native // _vector_item(kernel) * JAMMED_REGISTERS
        return Schedule(
            "lanes", width, native, width, rank, second=rank - 2, side=SIDE,
            unroll_jam=UNROLL_JAM[native], shared=shared, tails=_tails(kernel, width, (2,)),
        )  # fmt: skip
    if _is_panel(kernel):
        along = stride_along(kernel.body, grid_index(rank - 1))
        uniform = frozenset(id(s) for s in _plain(kernel.body) if along(s) == 0)
        tile = max(width, PANEL_BYTES // item)
        return Schedule("lanes", width, native, tile, rank, shared=uniform, panel=True)
    second, transposed = (-1, frozenset[int]()) if loops else _transposed_loads(kernel, native)
    if not transposed:
        stores = sum(isinstance(s, Store) for s in kernel.body)
        tile, streams = (width, 0) if loops else (TILE, STREAMED)
        if stores > FEW and not loops:
            tile, streams = LONG_TILE, 0
        if rank > 1 and not loops and not _stores_neighbours(kernel):
            tile = APART_TILE
        limits = () if loops or rank == 0 else _limits(kernel.body, rank - 1)
        tails = _tails(kernel, width, (REGISTERS, 2)) if loops else ()
        return Schedule(
            "lanes", width, native, tile, rank, streams=streams, limits=limits, tails=tails,
            straight=not loops,
        )  # fmt: skip
    return Schedule(
        "lanes", min(width, SIDE), native, SIDE, rank, second=second, side=LONG_SIDE,
        transposed=transposed, streams=TURNED,
    )  # fmt: skip


def _tails(kernel: Kernel, width: int, parts: Sequence[int]) -> tuple[int, ...]:
    """Narrower vectors for rows that are: each is the whole body once more."""
    return tuple(width // n for n in parts) if sum(1 for _ in walk(kernel.body)) <= SHORT else ()


def _stores_neighbours(kernel: Kernel) -> bool:
    """Whether neighbours along the last axis are stored side by side, or all in one place."""
    along = stride_along(kernel.body, grid_index(len(kernel.grid) - 1))
    return any(isinstance(s, Store) and along(s.index) in (0, 1) for s in kernel.body)


def _limits(block: Block, axis: int) -> tuple[Value, ...]:
    """What loads wait for, or choose their place by; others may be of sums that wrap around."""
    along, asked = stride_along(block, grid_index(axis)), set[int]()
    stack = [v for x in loads(block) for v in (x.when, *_choices(x.index)) if v is not None]
    while stack:
        v = stack.pop()
        asked.add(id(v))
        if v.op in ("and", "not"):
            stack += v.args
    found = [v for v in _plain(block) if v.op == "lt" and id(v) in asked]
    return tuple([v for v in found if [along(a) for a in v.args] == [1, 0]][:LIMITS])


def _choices(index: Value) -> list[Value]:
    """The conditions by which an index is one of several: those of joins."""
    if index.op != "where":
        return []
    return [index.args[0], *(c for a in index.args[1:] for c in _choices(a))]


def _plain(block: Block) -> list[Value]:
    """The values that stand in no loop of a block."""
    return [s for s in block if isinstance(s, Value)]


def _divisions(loop: Loop) -> tuple[Value, ...]:
    if not _is_natural(loop.start):
        return ()
    halves = [s for s in _plain(loop.body) if s.op in ("quo", "rem") and s.args[0] is loop.var]
    return tuple(s for s in halves if s.args[1] is halves[0].args[1] and s.args[1].op == "param")


def _is_natural(v: Value) -> bool:
    """Whether an index is certainly not negative."""
    if v.op == "const":
        return v.number >= 0
    return v.op == "index" or (v.op in ("add", "mul") and all(map(_is_natural, v.args)))


def _transposed_loads(kernel: Kernel, native: int) -> tuple[int, frozenset[int]]:
    """The axis along which loads that stride along the innermost one are contiguous, and these."""
    *others, last = (stride_along(kernel.body, grid_index(a)) for a in range(len(kernel.grid)))
    if not any(isinstance(s, Store) and last(s.index) == 1 for s in kernel.body):
        return -1, frozenset()
    found: dict[int, list[int]] = {}
    for v in loads(kernel.body):
        small = native < 64 and v.dtype.itemsize < 4  # masked loads of these need AVX-512
        if small or v.when is not None or last(v.index) in (None, 0, 1):
            continue
        for axis, along in enumerate(others):
            if along(v.index) == 1:
                found.setdefault(axis, []).append(id(v))
    second = max(found, key=lambda axis: len(found[axis]), default=-1)
    return second, frozenset(found.get(second, ()))


def _is_panel(kernel: Kernel) -> bool:
    """Whether the kernel is reductions with plain bodies, then effects.

    So no store comes between a load and a use of it, wherever that is rendered.
    """
    effects = [s for s in kernel.body if isinstance(s, Store) or _is_map(s)]
    others = [s for s in kernel.body if isinstance(s, Loop) and not _is_map(s)]
    first = kernel.body.index(effects[0]) if effects else 0
    if not others or any(x.kind != "reduce" or kernel.body.index(x) >= first for x in others):
        return False
    loops = [*others, *(x for x in effects if isinstance(x, Loop))]
    if any(isinstance(s, Loop) for x in loops for s in x.body):
        return False
    stores = [isinstance(s, Store) for s in effects]
    return all(stores) or (not any(stores) and not loads(kernel.body))


def _is_map(s: object) -> bool:
    return isinstance(s, Loop) and s.kind == "map"


def _shared(kernel: Kernel, loops: list[Loop]) -> frozenset[int]:
    """What need be computed only once for several points of the last axis but one, where that pays:
    in a plain fold that loads something for all of them. Else nothing."""
    loop, *others = loops
    if others or loop.kind != "fold" or loop.effects or len(kernel.grid) < 2:
        return frozenset()
    along = stride_along(kernel.body, grid_index(len(kernel.grid) - 2))
    shared = frozenset(id(v) for v in values(kernel.body) if along(v) == 0)
    pays = any(id(v) in shared for v in loads(loop.body))
    return shared if pays and along(loop.start) == along(loop.stop) == 0 else frozenset()


def _itemsizes(statements: Iterable[Statement]) -> Iterator[int]:
    """The sizes of what vectors hold: what is loaded and stored, and floats."""
    for s in statements:
        if isinstance(s, Value) and (s.op == "load" or s.dtype.kind == "f"):
            yield s.dtype.itemsize
        elif isinstance(s, Store):
            yield s.buffer.dtype.itemsize


def _vector_item(kernel: Kernel) -> int:
    """The largest size of what differs between points of the last axis: not of a table of steps."""
    along = stride_along(kernel.body, grid_index(len(kernel.grid) - 1))
    same = (v for v in values(kernel.body) if v.op == "load" and along(v) == 0)
    shared = {id(v) for v in same if v.dtype.kind != "f"}
    return max(_itemsizes(s for s in walk(kernel.body) if id(s) not in shared), default=8)


def _can_vectorize(loop: Loop) -> bool:
    return loop.kind != "fold" and not any(isinstance(s, (Loop, Atomic)) for s in loop.body)


def lanes_of_map(loop: Loop, native: int) -> int:
    """How many iterations of a map are computed at once.

    Where one stores much, a vector of each value fills the registers, and loops may be short: rows
    of 64 and of 128 complex numbers are transformed in half the time that twice as many lanes take.
    """
    if sum(isinstance(s, Store) for s in loop.body) <= FEW:
        return LANES
    return native // max(_itemsizes(walk(loop.body)))


def _lockstep(kernel: Kernel, loops: list[Loop]) -> bool:
    """Whether lanes are points of the innermost axis.

    They are for all straight-line kernels, and where that axis, rather than a loop, is the one
    along which memory is contiguous.
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
    folds = all(x.kind == "fold" for x in loops)  # whose iterations no lanes are
    if across:
        return across >= along or folds
    return along == 0 and folds


# --- how much work a launch is


def work(kernel: Kernel, ints: Mapping[str, int]) -> float:
    """Roughly the operations for each point of the grid."""
    return _work(kernel.body, ints)


def _work(block: Block, ints: Mapping[str, int]) -> float:
    total = 1.0
    for s in block:
        total += _trips(s, ints) * _work(s.body, ints) if isinstance(s, Loop) else 1
    return total


def _trips(loop: Loop, ints: Mapping[str, int]) -> int:
    known = trip_count(loop, ints, at=0)  # at the first point of the grid
    return UNKNOWN_TRIPS if known is None else known


def elements(block: Block, ints: Mapping[str, int]) -> int:
    """How many points of its loops a block has, for each point of the grid; 1 without loops."""
    inner = (_trips(s, ints) * elements(s.body, ints) for s in block if isinstance(s, Loop))
    return max(1, sum(inner))


def traffic(kernel: Kernel, schedule: Schedule, ints: Mapping[str, int]) -> float:
    """Roughly the bytes that each point of the grid loads and stores.

    What is loaded anywhere counts as a part of a line; what several rows share counts as nothing:
    it comes from a cache.
    """
    return _traffic(kernel.body, grid_index(len(kernel.grid) - 1), schedule, ints)


def _traffic(block: Block, variable: Value, schedule: Schedule, ints: Mapping[str, int]) -> float:
    """`variable`: the innermost axis, of the grid or, where lanes are none of its, of a loop."""
    along, total = stride_along(block, variable), 0.0
    for s in block:
        if isinstance(s, Loop) and schedule.unroll_jam == 1:
            inner = variable if schedule.kind == "lanes" else s.var
            total += _trips(s, ints) * _traffic(s.body, inner, schedule, ints)
        elif isinstance(s, (Store, Atomic)) or (isinstance(s, Value) and s.op == "load"):
            stride, size = along(s.index), s.buffer.dtype.itemsize
            total += 0 if stride == 0 else APART if stride is None else size
    return total
