"""The ops of this layout, as rows of their own: kernels over dense vectors with loaded bounds.

Segments are runs of entries that belong together: segment s is starts[s]..starts[s + 1] - 1, the
last one ends with the entries. None is empty. `order`, where it is given, says which entry stands
at each place. Every fold is in ascending order, so that a result depends on neither threads nor
device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import dovetail as dt
from dovetail.extend import (
    DType,
    Op,
    Value,
    bool_,
    cast,
    choose,
    const,
    eq,
    float32,
    fma,
    fold_loop,
    gather_at,
    int64,
    make_node,
    ne,
    reduce_loop,
    set_gradient,
)

Tensor = dt.Tensor

# --- the loop language's side --------------------------------------------------------------------


def _first_operand(op: str, operands: Sequence[Any], attrs: Any) -> Any:
    """Values in their own dtype, or in attrs; positions as int64."""
    d = attrs if isinstance(attrs, DType) else operands[0]
    return (d, *(int64 for _ in operands[1:])), d


def _add(x: Value, y: Value) -> Value:
    return x | y if x.dtype is bool_ else x + y


def _mul(x: Value, y: Value) -> Value:
    return x & y if x.dtype is bool_ else x * y


def _max(x: Value, y: Value) -> Value:
    if x.dtype is bool_:
        return x | y
    return choose((x < y) | ne(y, y), y, x) if x.dtype.kind == "f" else choose(x < y, y, x)


def _min(x: Value, y: Value) -> Value:
    if x.dtype is bool_:
        return x & y
    return choose((y < x) | ne(y, y), y, x) if x.dtype.kind == "f" else choose(y < x, y, x)


def _bounds(site: Any, starts: int, s: Value, n: Value) -> tuple[Value, Value]:
    """Where segment `s` starts and ends, of `n` entries."""
    following = s + 1
    inside = following < site.size(starts, 0)
    end = site.read(starts, choose(inside, following, s))
    return site.read(starts, s), choose(inside, end, n)


def _segments(combine: Callable[[Value, Value], Value]) -> Callable[[Any], None]:
    """segments(values, starts[, order]): the values of each segment, combined."""

    def build(site: Any) -> None:
        s, *rest = [site.axis(-1, d) for d in range(site.rank(-1))]
        start, stop = _bounds(site, 1, s, site.size(0, 0))

        def value(k: Value) -> Value:
            at = site.read(2, k) if len(site.casts) == 3 else k
            return site.read(0, at, *rest)  # type: ignore[no-any-return]

        def step(k: Value, total: Value) -> tuple[Value, ...]:
            return (combine(total, value(k)),)

        site.store(fold_loop(start + 1, stop, (value(start),), step).results[0], s, *rest)

    return build


def _owners(site: Any) -> None:
    """owners(starts[, order]): for each entry the segment that it belongs to. attrs: how many."""
    s = site.axis(0, 0)
    start, stop = _bounds(site, 0, s, site.number("n", site.attrs))

    def step(k: Value) -> Any:
        return (), [site.stored(s, site.read(1, k) if len(site.casts) == 2 else k)]

    site.builder.effect(fold_loop(start, stop, (), step))


def _wide(d: DType) -> DType:
    return float32 if d.is_float and d.itemsize == 2 else d


def _product(site: Any) -> None:
    """The row product(dense, values, bounds, columns[, order]): compressed matrix times dense.

    The dense one is a matrix or a vector.
    """
    row, *column = [site.axis(-1, d) for d in range(site.rank(-1))]
    ordered = len(site.casts) == 5

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        at = site.read(4, k) if ordered else k
        x, y = site.read(1, at), site.read(0, site.read(3, k), *column)
        return (fma(x, y, total) if total.dtype.kind == "f" else _add(total, _mul(x, y)),)

    zero = const(0, _wide(site.casts[0]))
    start, stop = site.read(2, row), site.read(2, row + 1)
    site.store(fold_loop(start, stop, (zero,), step).results[0], row, *column)


def _sampled(site: Any) -> None:
    """sampled(x, y, rows, columns): at each entry the product of a row of x with one of y."""
    k = site.axis(-1, 0)
    row, column = site.read(2, k), site.read(3, k)

    def term(j: Value) -> Value:
        return _mul(site.read(0, row, j), site.read(1, column, j))

    combine = "or" if site.casts[0] is bool_ else "add"
    site.store(reduce_loop(combine, 0, site.size(0, 1), term)[0], k)


def _pairing(op: str, operands: Sequence[Any], attrs: Any) -> Any:
    """Two operands of the dtype in attrs, then positions."""
    return (attrs, attrs, *(int64 for _ in operands[2:])), attrs


def _spread(site: Any) -> None:
    """The row spread(ends, low, high): the pairs of each run r and each entry of low[r]..high[r]-1.

    Those of run r end at ends[r] - 1. Runs may be empty.
    """
    run = site.axis(0, 0)
    low = site.read(1, run)
    n = site.read(2, run) - low
    first = site.read(0, run) - n

    def step(k: Value) -> Any:
        pair = (
            site.stored(run, const(0, int64), first + k),
            site.stored(low + k, const(1, int64), first + k),
        )
        return (), pair

    site.builder.effect(fold_loop(0, n, (), step))


BLOCK = 1024  # entries of two merged lists that are walked one after the other
WALKS = 4  # blocks that a grid point walks side by side: each waits for what it has just loaded


def _split(site: Any, d: Value) -> tuple[Value, Value]:
    """How many of the first `d` entries, in joint order, are of the first list, and of the second.

    Of equal ones that of the first list comes first. Source: merge path (Odeh, Green, Mwassi,
    Shmueli and Birk, 2012, https://doi.org/10.1109/IPDPSW.2012.202).
    """
    n, m = site.size(0, 0), site.size(1, 0)
    zero = const(0, int64)
    low, high = choose(m < d, d - m, zero), choose(d < n, d, n)

    def step(_: Value, low: Value, high: Value) -> tuple[Value, ...]:
        middle, open_ = (low + high) >> 1, low < high
        x = site.read(0, choose(open_, middle, zero))
        y = site.read(1, choose(open_, d - 1 - middle, zero))
        first = open_ & (x <= y)
        return choose(first, middle + 1, low), choose(open_ & ~first, middle, high)

    rounds = site.number("rounds", (site.extent(0, 0) + site.extent(1, 0)).bit_length())
    i = fold_loop(0, rounds, (low, high), step).results[0]
    return i, d - i


class _Walk:
    """A block of two ascending lists without repetition, walked in joint order.

    Equal entries are taken together, where the first of them stands.
    """

    def __init__(self, site: Any, begin: tuple[Value, Value], end: tuple[Value, Value]) -> None:
        self.site, self.n, self.m = site, site.size(0, 0), site.size(1, 0)
        (i, j), self.end, zero = begin, end, const(0, int64)
        before = site.read(0, choose(zero < i, i - 1, zero))
        taken = (zero < i) & (j < self.m) & eq(site.read(1, self.inside(j, self.m)), before)
        self.begin = (i, j + cast(taken, int64))

    def inside(self, i: Value, n: Value) -> Value:
        return choose(i < n, i, const(0, int64))

    def taken(self, i: Value, j: Value) -> tuple[Value, Value]:
        """Whether entry i of the first list comes next, and entry j of the second.

        Perhaps both do, and neither beyond the end of the block.
        """
        here, there = i < self.end[0], j < self.end[1]
        x = self.site.read(0, self.inside(i, self.n))
        y = self.site.read(1, self.inside(j, self.m))
        first = here & (~there | (x <= y))
        return first, choose(first, (j < self.m) & eq(x, y), there)


def _walks(site: Any, point: Value) -> list[_Walk]:
    """The blocks of a grid point."""
    total = site.size(0, 0) + site.size(1, 0)
    starts = [(point * WALKS + w) * BLOCK for w in range(WALKS + 1)]
    ends = [_split(site, choose(d < total, d, total)) for d in starts]
    return [_Walk(site, *pair) for pair in pairwise(ends)]


def _merging(site: Any, point: Value, emit: Any, carried: list[Value]) -> Any:
    """Walks the blocks of a point.

    For each of them `emit(i, j, first, second, carried)` gives the new carry, and effects; it is
    asked beyond the last entry too, where neither is taken.
    """
    walks = _walks(site, point)

    def step(_: Value, *state: Value) -> Any:
        carries, effects = [], []
        for w, walk in enumerate(walks):
            i, j, own = state[3 * w : 3 * w + 3]
            first, second = walk.taken(i, j)
            own, made = emit(i, j, first, second, own)
            carries += [i + cast(first, int64), j + cast(second, int64), own]
            effects += made
        return tuple(carries), tuple(effects)

    begin = [v for walk, own in zip(walks, carried, strict=True) for v in (*walk.begin, own)]
    return fold_loop(0, const(BLOCK, int64), begin, step)


def _merge_counts(site: Any) -> None:
    """merge_counts(keys, others): how many different keys each block has, (points, WALKS)."""

    def emit(i: Value, j: Value, first: Value, second: Value, n: Value) -> Any:
        return n + cast(first | second, int64), []

    point = site.axis(-1, 0)
    results = _merging(site, point, emit, [const(0, int64)] * WALKS).results
    for w in range(WALKS):
        site.store(results[3 * w + 2], point, const(w, int64))


def _merge(site: Any) -> None:
    """merge(keys, others, before): for each different key where it is in either list, or -1."""
    none, one = const(-1, int64), const(1, int64)

    def emit(i: Value, j: Value, first: Value, second: Value, at: Value) -> Any:
        found = first | second
        effects = [
            site.stored(choose(first, i, none), const(0, int64), at, when=found),
            site.stored(choose(second, j, none), one, at, when=found),
        ]
        return at + cast(found, int64), effects

    point = site.axis(2, 0)
    before = [site.read(2, point, const(w, int64)) for w in range(WALKS)]
    site.builder.effect(_merging(site, point, emit, before))


def _row(name: str, build: Callable[[Any], None], dtypes: Any, arity: int = 1) -> Op:
    return Op(f"sparse_{name}", "rows", dtypes=dtypes, build=build, arity=arity)


def _positions(op: str, operands: Sequence[Any], attrs: Any) -> Any:
    return tuple(int64 for _ in operands), int64


SUM = _row("sum", _segments(_add), _first_operand)
PROD = _row("prod", _segments(_mul), _first_operand)
MAX = _row("max", _segments(_max), _first_operand)
MIN = _row("min", _segments(_min), _first_operand)
OWNERS = _row("owners", _owners, _positions)
SPREAD = _row("spread", _spread, _positions)
PRODUCT = _row("product", _product, _pairing, 2)
SAMPLED = _row("sampled", _sampled, _pairing, 2)
MERGE_COUNTS = _row("merge_counts", _merge_counts, _positions, 2)
MERGE = _row("merge", _merge, _positions, 3)
SEGMENTS = {"sum": SUM, "prod": PROD, "max": MAX, "min": MIN}

# --- the tensors' side ---------------------------------------------------------------------------


class Runs:
    """Segments of entries: where each starts, and which entry stands where (None: in order)."""

    def __init__(self, starts: Tensor, order: Tensor | None, entries: int) -> None:
        self.starts, self.order, self.entries = starts, order, entries

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """What a row gets."""
        return (self.starts,) if self.order is None else (self.starts, self.order)

    def combined(self, how: str, values: Tensor, dtype: DType | None = None) -> Tensor:
        """The values of each segment combined: "sum", "prod", "max" or "min"."""
        shape = (self.starts.size, *values.shape[1:])
        return make_node(
            SEGMENTS[how], (values, *self.operands), shape, dtype or values.dtype, dtype
        )

    def firsts(self, rows: Tensor) -> Tensor:
        """What the first entry of each segment has."""
        at = self.starts if self.order is None else rows_at(self.order, self.starts)
        return rows_at(rows, at)

    def owners(self) -> Tensor:
        """For each entry its segment."""
        return make_node(OWNERS, self.operands, (self.entries,), dt.int64, self.entries)


def rows_at(x: Tensor, at: Tensor) -> Tensor:
    """Rows of `x` at positions known to be good."""
    column = at.reshape(at.shape[0], *(1,) * (x.ndim - 1))
    axes = (-1, *range(1, x.ndim))
    return gather_at(x, {0: column}, (at.shape[0], *x.shape[1:]), axes)


def spread(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """For each run low..high-1 of entries its (number, entry) pairs. One host read: how many."""
    if not low.shape[0]:
        return low, low
    ends = dt.cumulative_sum(high - low)
    total = int(ends[-1].item())
    pairs = make_node(SPREAD, (ends, low, high), (2, total), dt.int64)
    return pairs[0], pairs[1]


def merged(keys: Tensor, others: Tensor) -> Tensor:
    """Where each key of two ascending lists without repetition is in the first and in the second.

    Shapes: (2, different keys); -1 is nowhere. One host read: how many there are.
    """
    points = -(-(keys.shape[0] + others.shape[0]) // (BLOCK * WALKS))
    counts = make_node(MERGE_COUNTS, (keys, others), (points, WALKS), dt.int64)
    ends = dt.cumulative_sum(counts.reshape(-1))
    dt.evaluate(counts, ends)
    total = int(ends[-1].item())
    before = ends.reshape(points, WALKS) - counts
    return make_node(MERGE, (keys, others, before), (2, total), dt.int64)


# --- gradients -----------------------------------------------------------------------------------


def _runs(rest: list[Tensor], entries: int) -> Runs:
    return Runs(rest[0], rest[1] if len(rest) == 2 else None, entries)


def _sum_gradient(g: Any, c: Any, rest: list[Any]) -> Any:
    return rows_at(g, _runs(rest, c.spec().shape[0]).owners())


def _prod_gradient(g: Any, x: Any, rest: list[Any]) -> Any:
    """Where one factor is 0, only its own derivative is not; where several are, none."""
    runs = _runs(rest, x.shape[0])
    at, zero = runs.owners(), dt.equal(x, 0)
    count = runs.combined("sum", zero.astype(dt.int64))
    safe = dt.where(zero, 1.0, x)
    others = rows_at(runs.combined("prod", safe), at) / safe
    own = dt.equal(zero.astype(dt.int64), rows_at(count, at))
    return rows_at(g, at) * dt.where(own, others, 0.0)


def _extreme_gradient(g: Any, x: Any, r: Any, rest: list[Any]) -> Any:
    """Spread evenly over all extremes of a segment."""
    runs = _runs(rest, x.shape[0])
    at = runs.owners()
    here = dt.logical_or(dt.equal(x, rows_at(r, at)), dt.isnan(x))
    count = runs.combined("sum", here.astype(x.dtype))
    return dt.where(here, rows_at(g / count, at), 0.0)


set_gradient(SUM, _sum_gradient)
set_gradient(PROD, _prod_gradient)
set_gradient(MAX, _extreme_gradient)
set_gradient(MIN, _extreme_gradient)
