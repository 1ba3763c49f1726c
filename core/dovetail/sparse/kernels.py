"""Kernels of this layout's ops, over dense vectors with loaded bounds.

Segments are runs of entries that belong together: segment s is starts[s]..starts[s + 1] - 1, the
last one ends with the entries. None is empty. `order`, where it is given, says which entry stands
at each place. Every fold is in ascending order, so that a result depends on neither threads nor
device.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from dovetail.extend import (
    KernelSite,
    Loop,
    LoopStep,
    Store,
    Value,
    arithmetic,
    bool_,
    cast,
    choose,
    complex_arithmetic,
    const,
    eq,
    fma,
    fold_loop,
    int64,
    reduce_loop,
)

divide = complex_arithmetic.either(lambda x, y: x / y, complex_arithmetic.divide)

# --- segments ------------------------------------------------------------------------------------


def _bounds(site: KernelSite, starts: int, s: Value, n: Value) -> tuple[Value, Value]:
    """Where segment `s` starts and ends, of `n` entries."""
    following = s + 1
    inside = following < site.size(starts, 0)
    end = site.read(starts, choose(inside, following, s))
    return site.read(starts, s), choose(inside, end, n)


def segments(combine: Callable[[Value, Value], Value]) -> Callable[[KernelSite], None]:
    """segments(values, starts[, order]): the values of each segment, combined."""

    def build(site: KernelSite) -> None:
        s, *rest = [site.axis(-1, d) for d in range(site.rank(-1))]
        start, stop = _bounds(site, 1, s, site.size(0, 0))

        def value(k: Value) -> Value:
            at = site.read(2, k) if len(site.casts) == 3 else k
            return site.read(0, at, *rest)

        def step(k: Value, total: Value) -> tuple[Value, ...]:
            return (combine(total, value(k)),)

        site.store(fold_loop(start + 1, stop, (value(start),), step).results[0], s, *rest)

    return build


def row_sums(site: KernelSite) -> None:
    """row_sums(values, bounds): the sum of each row's values, 0 of a row without any.

    The first value stands as it is, as in `segments`.
    """
    row = site.axis(-1, 0)
    start, stop = site.read(1, row), site.read(1, row + 1)
    some = start < stop
    first = site.read(0, choose(some, start, const(0, int64)))
    zero = const(0, first.dtype)

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        return (arithmetic.add(total, site.read(0, k)),)

    site.store(fold_loop(start + 1, stop, (choose(some, first, zero),), step).results[0], row)


def owners(site: KernelSite) -> None:
    """owners(starts[, order]): for each entry the segment that it belongs to. attrs: how many."""
    s = site.axis(0, 0)
    start, stop = _bounds(site, 0, s, site.number("n", site.attrs))

    def step(k: Value) -> LoopStep:
        return (), [site.stored(s, site.read(1, k) if len(site.casts) == 2 else k)]

    site.builder.effect(fold_loop(start, stop, (), step))


def product(site: KernelSite) -> None:
    """product(dense, values, bounds, columns[, order]): a compressed times a dense matrix.

    Or times a vector.
    """
    row, *column = [site.axis(-1, d) for d in range(site.rank(-1))]
    ordered = len(site.casts) == 5

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        at = site.read(4, k) if ordered else k
        x, y = site.read(1, at), site.read(0, site.read(3, k), *column)
        return (
            fma(x, y, total)
            if total.dtype.kind == "f"
            else arithmetic.add(total, arithmetic.multiply(x, y)),
        )

    zero = const(0, site.casts[0].compute)
    start, stop = site.read(2, row), site.read(2, row + 1)
    site.store(fold_loop(start, stop, (zero,), step).results[0], row, *column)


def substitution(lower: bool, unit: bool) -> Callable[[KernelSite], None]:
    """substitution(b, values, bounds, columns): the result starts as b, and ends as what solves.

    Rows one after the other, from that with the diagonal alone; entries of the other triangle, and
    of a unit diagonal those on it, are not looked at.
    """

    def build(site: KernelSite) -> None:
        column, n = site.axis(-1, 1), site.size(-1, 0)

        def row(s: Value) -> LoopStep:
            i = s if lower else n - 1 - s
            own = site.current(i, column)

            def step(k: Value, total: Value, pivot: Value) -> tuple[Value, ...]:
                j, v = site.read(3, k), site.read(1, k)
                known = j < i if lower else i < j
                x = site.current(j, column)
                if total.dtype.kind == "f":
                    less = fma(-v, x, total)
                else:
                    less = total - arithmetic.multiply(v, x)
                return choose(known, less, total), choose(eq(j, i), v, pivot)

            zero = const(0, own.dtype)
            start, stop = site.read(2, i), site.read(2, i + 1)
            total, pivot = fold_loop(start, stop, (own, zero), step).results
            if not unit:
                total = divide(total, pivot)
            return (), [site.stored(total, i, column)]

        site.builder.effect(fold_loop(0, n, (), row))

    return build


def sampled(site: KernelSite) -> None:
    """sampled(x, y, rows, columns): at each entry the product of a row of x with one of y."""
    k = site.axis(-1, 0)
    row, column = site.read(2, k), site.read(3, k)

    def term(j: Value) -> Value:
        return arithmetic.multiply(site.read(0, row, j), site.read(1, column, j))

    combine = "or" if site.casts[0] is bool_ else "add"
    site.store(reduce_loop(combine, 0, site.size(0, 1), term)[0], k)


def expand(site: KernelSite) -> None:
    """expand(ends, low, high): each run with each of its entries, as pairs.

    For each run r and each entry of low[r]..high[r]-1 the pair of r and that entry; those of run r
    end at ends[r] - 1. Runs may be empty.
    """
    run = site.axis(0, 0)
    low = site.read(1, run)
    n = site.read(2, run) - low
    first = site.read(0, run) - n

    def step(k: Value) -> LoopStep:
        pair = (
            site.stored(run, const(0, int64), first + k),
            site.stored(low + k, const(1, int64), first + k),
        )
        return (), pair

    site.builder.effect(fold_loop(0, n, (), step))


BLOCK = 1024  # entries of two merged lists that are walked one after the other
WALKS = 4  # blocks that a grid point walks side by side: each waits for what it has just loaded


def _split(site: KernelSite, d: Value) -> tuple[Value, Value]:
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

    def __init__(
        self, site: KernelSite, begin: tuple[Value, Value], end: tuple[Value, Value]
    ) -> None:
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


def _walks(site: KernelSite, point: Value) -> list[_Walk]:
    """The blocks of a grid point."""
    total = site.size(0, 0) + site.size(1, 0)
    starts = [(point * WALKS + w) * BLOCK for w in range(WALKS + 1)]
    ends = [_split(site, choose(d < total, d, total)) for d in starts]
    return [_Walk(site, *pair) for pair in pairwise(ends)]


# (entries of both lists, whether each is taken, what is carried) -> the new carry, and stores
Emit = Callable[[Value, Value, Value, Value, Value], tuple[Value, list[Store]]]


def _merging(site: KernelSite, point: Value, emit: Emit, carried: list[Value]) -> Loop:
    """Walks the blocks of a point.

    For each of them `emit(i, j, first, second, carried)` gives the new carry, and effects; it is
    asked beyond the last entry too, where neither is taken.
    """
    walks = _walks(site, point)

    def step(_: Value, *state: Value) -> LoopStep:
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


def merge_counts(site: KernelSite) -> None:
    """merge_counts(keys, others): how many different keys each block has, (points, WALKS)."""

    def emit(
        i: Value, j: Value, first: Value, second: Value, n: Value
    ) -> tuple[Value, list[Store]]:
        return n + cast(first | second, int64), []

    point = site.axis(-1, 0)
    results = _merging(site, point, emit, [const(0, int64)] * WALKS).results
    for w in range(WALKS):
        site.store(results[3 * w + 2], point, const(w, int64))


def merge(site: KernelSite) -> None:
    """merge(keys, others, before): for each different key where it is in either list, or -1."""
    none, one = const(-1, int64), const(1, int64)

    def emit(
        i: Value, j: Value, first: Value, second: Value, at: Value
    ) -> tuple[Value, list[Store]]:
        found = first | second
        effects = [
            site.stored(choose(first, i, none), const(0, int64), at, when=found),
            site.stored(choose(second, j, none), one, at, when=found),
        ]
        return at + cast(found, int64), effects

    point = site.axis(2, 0)
    before = [site.read(2, point, const(w, int64)) for w in range(WALKS)]
    site.builder.effect(_merging(site, point, emit, before))
