"""How a kernel is spread over vectors and tiles: decided from its index expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.extend import Atomic, Block, Kernel, Loop, Store, Value, int64, walk

TILE = 16384  # points of the innermost axis in one tile of a straight-line kernel
Strides = dict[tuple[int, int], int | str | None]
SHEET_BYTES = 4096  # of a row in a tile of reductions along columns: 1 kB takes 1.5 times as long
SHEETS = 4
SIDE = 64  # points along both axes of a tile that is transposed: blocks stay in the first cache
UNKNOWN_TRIPS = 64  # what a loop with bounds that are not known at launch is reckoned to take


@dataclass(frozen=True)
class Plan:
    """How a kernel is spread.

    `mode` is "lanes", "rows" or "points" (see `render.py`); `native` is the bytes of a vector
    register; `spread` holds the ids of loops whose iterations are spread over lanes. A tile is a
    block of `tile` points of the innermost axis, and of `side` points of axis `second` unless that
    is -1. `staged` holds the ids of loads that are contiguous along `second`. `jam` points of
    `second` are computed at once; `shared` are the ids of values that are equal for all of these,
    or, in a `sheet` (see `render.py`), for all points of a tile. `divisions` holds, by id of a
    loop, what splits its variable into two axes: quotients and remainders by one divisor.
    """

    mode: str
    width: int
    native: int
    tile: int
    spread: frozenset[int] = frozenset()
    second: int = -1
    side: int = 1
    staged: frozenset[int] = frozenset()
    rank: int = 0
    jam: int = 1
    shared: frozenset[int] = frozenset()
    sheet: bool = False
    divisions: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)

    @property
    def blocked(self) -> tuple[int, ...]:
        """The axes of which a tile takes more than one point."""
        return (self.rank - 1,) if self.second < 0 else (self.second, self.rank - 1)

    def blocks(self, grid: Sequence[int]) -> list[int]:
        """The points of a tile along each axis of the grid."""
        sizes = [1] * len(grid)
        for axis in self.blocked if grid else ():
            sizes[axis] = min(self.tile if axis == self.rank - 1 else self.side, grid[axis])
        if self.sheet:  # some tiles for each thread, of whole vectors
            even = -(-grid[-1] // (SHEETS * self.width)) * self.width
            sizes[-1] = min(sizes[-1], even)
        return sizes


def plan(kernel: Kernel, native: int) -> Plan:
    """The plan for vector registers of `native` bytes."""
    loops = [s for s in walk(kernel.body) if isinstance(s, Loop)]
    rank = len(kernel.grid)
    if _lockstep(kernel, loops):
        width = native // max(_itemsizes(kernel), default=8) * (4 if loops else 2)
        if loops and (shared := _shared(kernel, loops)):
            # 4 rows of 4 vectors: 16 accumulators of 32 registers, or 8 of 16
            width = width if native == 64 else width // 2
            return Plan(
                "lanes",
                width,
                native,
                width,
                frozenset(),
                rank - 2,
                SIDE,
                frozenset(),
                rank,
                4,
                shared,
            )
        if _is_sheet(kernel):
            inner = Value("index", int64, (), rank - 1)
            values, strides = (
                [s for s in kernel.body if isinstance(s, Value)],
                dict[tuple[int, int], int | str | None](),
            )
            uniform = frozenset(id(v) for v in values if stride_along(v, inner, strides) == 0)
            tile = max(width, SHEET_BYTES // max(_itemsizes(kernel), default=8))
            return Plan("lanes", width, native, tile, rank=rank, shared=uniform, sheet=True)
        second, staged = (-1, frozenset[int]()) if loops else _staged(kernel, native)
        if not staged:
            return Plan("lanes", width, native, width if loops else TILE, rank=rank)
        width = min(width, SIDE)
        return Plan("lanes", width, native, SIDE, frozenset(), second, SIDE, staged, rank)
    spread = frozenset(id(x) for x in loops if _can_spread(x))
    mode = "rows" if spread else "points"
    divisions = {id(x): found for x in loops if id(x) in spread and (found := _divisions(x))}
    tile = 1 if loops else TILE
    return Plan(mode, 1, native, tile, spread, rank=rank, divisions=divisions)


def _divisions(loop: Loop) -> tuple[Value, ...]:
    if not _is_natural(loop.start):
        return ()
    found = [
        s
        for s in loop.body
        if isinstance(s, Value) and s.op in ("quo", "rem") and s.args[0] is loop.var
    ]
    return tuple(s for s in found if s.args[1] is found[0].args[1] and s.args[1].op == "param")


def _is_natural(v: Value) -> bool:
    """Whether an index is certainly not negative."""
    if v.op == "const":
        return int(v.attr) >= 0
    return v.op == "index" or (v.op in ("add", "mul") and all(map(_is_natural, v.args)))


def _staged(kernel: Kernel, native: int) -> tuple[int, frozenset[int]]:
    """The axis along which loads that stride along the innermost one are contiguous, and these."""
    strides: Strides = {}
    axes = [Value("index", int64, (), axis) for axis in range(len(kernel.grid))]
    found: dict[int, list[int]] = {}
    for s in kernel.body:
        if not isinstance(s, Value) or s.op != "load" or len(s.args) == 2:
            continue
        if native < 64 and s.dtype.itemsize < 4:
            continue  # masked loads of small elements need AVX-512
        along = stride_along(s.args[0], axes[-1], strides)
        if along is None or along in (0, 1):
            continue
        for axis in axes[:-1]:
            if stride_along(s.args[0], axis, strides) == 1:
                found.setdefault(axis.attr, []).append(id(s))
    second = max(found, key=lambda axis: len(found[axis]), default=-1)
    return second, frozenset(found.get(second, ()))


def _is_sheet(kernel: Kernel) -> bool:
    """Whether the kernel is reductions with plain bodies, then effects (so that no store comes
    between a load and a use of it, wherever that is rendered)."""
    effects = [s for s in kernel.body if isinstance(s, Store) or _is_map(s)]
    reductions = [s for s in kernel.body if isinstance(s, Loop) and not _is_map(s)]
    first = kernel.body.index(effects[0]) if effects else 0
    stores = [isinstance(s, Store) for s in effects]
    return (
        bool(reductions)
        and all(x.kind == "reduce" and kernel.body.index(x) < first for x in reductions)
        and not any(isinstance(s, Loop) for x in reductions for s in x.body)
        and not any(isinstance(s, Loop) for x in effects if isinstance(x, Loop) for s in x.body)
        and (all(stores) or not any(stores))
        and not any(isinstance(s, Value) and s.op == "load" for s in kernel.body if not all(stores))
    )


def _is_map(s: object) -> bool:
    return isinstance(s, Loop) and s.kind == "map"


def _shared(kernel: Kernel, loops: list[Loop]) -> frozenset[int]:
    """What need be computed only once for several points of the last axis but one, where that pays:
    in a plain fold that loads something for all of them. Else nothing."""
    (loop, *others), strides = loops, dict[tuple[int, int], int | str | None]()
    if others or loop.kind != "fold" or loop.effects or len(kernel.grid) < 2:
        return frozenset()
    axis = Value("index", int64, (), len(kernel.grid) - 2)
    values = [s for s in walk(kernel.body) if isinstance(s, Value)]
    shared = frozenset(id(v) for v in values if stride_along(v, axis, strides) == 0)
    pays = any(isinstance(s, Value) and s.op == "load" and id(s) in shared for s in loop.body)
    same_bounds = all(stride_along(b, axis, strides) == 0 for b in (loop.start, loop.stop))
    return shared if pays and same_bounds else frozenset()


def _itemsizes(kernel: Kernel) -> Iterator[int]:
    """The sizes of what vectors hold: what is loaded and stored, and floats."""
    for s in walk(kernel.body):
        if isinstance(s, Value) and (s.op == "load" or s.dtype.kind == "f"):
            yield s.dtype.itemsize
        elif isinstance(s, Store):
            yield s.buffer.dtype.itemsize


def _can_spread(loop: Loop) -> bool:
    return loop.kind != "fold" and not any(isinstance(s, (Loop, Atomic)) for s in loop.body)


def _lockstep(kernel: Kernel, loops: list[Loop]) -> bool:
    """Whether lanes are points of the innermost axis: for all straight-line kernels, and where that
    axis, rather than a loop, is the one along which memory is contiguous."""
    if not kernel.grid or any(isinstance(s, Atomic) for s in walk(kernel.body)):
        return False
    if not loops:
        return True
    inner = Value("index", kernel.grid[-1].dtype, (), len(kernel.grid) - 1)
    strides: Strides = {}
    if any(stride_along(b, inner, strides) != 0 for x in loops for b in (x.start, x.stop)):
        return False
    across = along = 0
    for loop in loops:
        for s in loop.body:
            index = _index(s)
            if index is not None:
                across += stride_along(index, inner, strides) == 1
                along += stride_along(index, loop.var, strides) == 1
    folds = all(x.kind == "fold" for x in loops)  # which nothing else spreads over lanes
    if across:
        return across >= along or folds
    return along == 0 and folds


def _index(s: object) -> Value | None:
    if isinstance(s, Value):
        return s.args[0] if s.op == "load" else None
    return s.index if isinstance(s, Store) else None


def stride_along(v: Value, variable: Value, known: Strides) -> int | str | None:
    """How much `v` grows with `variable`: a number, "any" (set at run time), None (not affine)."""
    key = (id(v), id(variable))
    if key not in known:
        known[key] = _stride_along(v, variable, known)
    return known[key]


def _stride_along(v: Value, variable: Value, known: Strides) -> int | str | None:
    if v.op == variable.op and v.attr == variable.attr:
        return 1
    if v.op in ("const", "param", "index", "loopvar"):
        return 0
    if v.op in ("carry", "result"):
        return None
    parts = [stride_along(a, variable, known) for a in v.args]
    if all(p == 0 for p in parts):
        return 0
    if v.op not in ("add", "sub", "mul") or None in parts:
        return None
    a, b = parts
    if v.op == "mul":
        if 0 not in parts:
            return None
        stride, factor = (a, v.args[1]) if b == 0 else (b, v.args[0])
        known_product = isinstance(stride, int) and factor.op == "const"
        return stride * factor.attr if known_product else "any"
    if isinstance(a, int) and isinstance(b, int):
        return a + b if v.op == "add" else a - b
    return "any"


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
    start, stop = _known(loop.start, ints), _known(loop.stop, ints)
    return UNKNOWN_TRIPS if start is None or stop is None else max(0, stop - start)


def _known(v: Value, ints: Mapping[str, int]) -> int | None:
    """The value of an index expression at the first point of the grid, if nothing is loaded."""
    if v.op == "const":
        return int(v.attr)
    if v.op == "param":
        return ints.get(v.attr)
    if v.op in ("index", "loopvar"):
        return 0
    rule = _INTEGER.get(v.op)
    args = [_known(a, ints) for a in v.args]
    return None if rule is None or None in args else int(rule(*args))


_INTEGER: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "lt": operator.lt,
    "le": operator.le,
    "where": lambda c, a, b: a if c else b,
}
