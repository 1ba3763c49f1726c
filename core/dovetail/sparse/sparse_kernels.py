"""Kernels of the sparse layouts' ops, over dense vectors with loop bounds read from memory.

A segment is a run of entries: segment s is starts[s]..starts[s + 1] - 1, and the last one ends with
the entries. No segment is empty. `order`, if it is passed, is the index of the entry at each
position. Every fold is in ascending order, so a result depends on neither threads nor device.
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


def _segment_bounds(site: KernelSite, starts: int, s: Value, n: Value) -> tuple[Value, Value]:
    """Return the start and the end of segment `s` among `n` entries."""
    following = s + 1
    inside = following < site.size(starts, 0)
    end = site.read(starts, choose(inside, following, s))
    return site.read(starts, s), choose(inside, end, n)


def segments(combine: Callable[[Value, Value], Value]) -> Callable[[KernelSite], None]:
    """Return the builder of `segments(values, starts[, order])`, which folds each segment."""

    def build(site: KernelSite) -> None:
        """Build the kernel in which a point folds one segment, in order."""
        s, *inner = [site.axis(-1, d) for d in range(site.rank(-1))]
        start, stop = _segment_bounds(site, 1, s, site.size(0, 0))

        def read_value(k: Value) -> Value:
            """Return entry `k`, or the entry at position `k` of the order."""
            at = site.read(2, k) if len(site.casts) == 3 else k
            return site.read(0, at, *inner)

        def step(k: Value, total: Value) -> tuple[Value, ...]:
            """Return the combination with entry `k`."""
            return (combine(total, read_value(k)),)

        site.store(fold_loop(start + 1, stop, (read_value(start),), step).results[0], s, *inner)

    return build


def row_sums(site: KernelSite) -> None:
    """Build `row_sums(values, bounds)`: sum the values of each row; an empty row gives 0.

    The fold starts from the first value, as in `segments`.
    """
    row = site.axis(-1, 0)
    start, stop = site.read(1, row), site.read(1, row + 1)
    nonempty = start < stop
    first = site.read(0, choose(nonempty, start, const(0, int64)))
    zero = const(0, first.dtype)

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        """Return the total with entry `k`."""
        return (arithmetic.add(total, site.read(0, k)),)

    site.store(fold_loop(start + 1, stop, (choose(nonempty, first, zero),), step).results[0], row)


def owners(site: KernelSite) -> None:
    """Build `owners(starts[, order])`: store the segment of each entry. attrs: the entries."""
    s = site.axis(0, 0)
    start, stop = _segment_bounds(site, 0, s, site.number("n", site.attrs))

    def step(k: Value) -> LoopStep:
        """Return no carries, and the store of the segment of entry `k`."""
        return (), [site.stored(s, site.read(1, k) if len(site.casts) == 2 else k)]

    site.builder.effect(fold_loop(start, stop, (), step))


def product(site: KernelSite) -> None:
    """Build `product(dense, values, bounds, columns[, order])`: CSR times a matrix or vector."""
    row, *column = [site.axis(-1, d) for d in range(site.rank(-1))]
    ordered = len(site.casts) == 5

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        """Return the total with the product of entry `k`."""
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
    """Return the builder of `substitution(b, values, bounds, columns)`, which solves a triangle.

    Rows are solved one after the other, beginning with the row that has only its diagonal. Entries
    of the other triangle are ignored, and those on the diagonal too if `unit`.
    """

    def build(site: KernelSite) -> None:
        """Build the kernel in which a point solves one column, row by row."""
        column, n = site.axis(-1, 1), site.size(-1, 0)

        def solve_row(s: Value) -> LoopStep:
            """Return the store of row `s` of the solution, in order of substitution."""
            i = s if lower else n - 1 - s
            own = site.current(i, column)

            def step(k: Value, total: Value, pivot: Value) -> tuple[Value, ...]:
                """Return the total without the term of entry `k`, and the pivot if found."""
                j, v = site.read(3, k), site.read(1, k)
                is_solved = j < i if lower else i < j
                x = site.current(j, column)
                if total.dtype.kind == "f":
                    reduced = fma(-v, x, total)
                else:
                    reduced = total - arithmetic.multiply(v, x)
                return choose(is_solved, reduced, total), choose(eq(j, i), v, pivot)

            zero = const(0, own.dtype)
            start, stop = site.read(2, i), site.read(2, i + 1)
            total, pivot = fold_loop(start, stop, (own, zero), step).results
            if not unit:
                total = divide(total, pivot)
            return (), [site.stored(total, i, column)]

        site.builder.effect(fold_loop(0, n, (), solve_row))

    return build


def sampled_product(site: KernelSite) -> None:
    """Build `sampled(x, y, rows, columns)`: dot a row of x and a row of y for each entry."""
    k = site.axis(-1, 0)
    row, column = site.read(2, k), site.read(3, k)

    def multiply_term(j: Value) -> Value:
        """Return the product of column `j`."""
        return arithmetic.multiply(site.read(0, row, j), site.read(1, column, j))

    combine = "or" if site.casts[0] is bool_ else "add"
    site.store(reduce_loop(combine, 0, site.size(0, 1), multiply_term)[0], k)


def expand(site: KernelSite) -> None:
    """Build `expand(ends, low, high)`: store the pairs of each run and each of its entries.

    Run r has the entries low[r]..high[r]-1, and its pairs end at ends[r] - 1. Runs may be empty.
    """
    run = site.axis(0, 0)
    low = site.read(1, run)
    n = site.read(2, run) - low
    first = site.read(0, run) - n

    def step(k: Value) -> LoopStep:
        """Return no carries, and the stores of pair `k` of the run."""
        pair = (
            site.stored(run, const(0, int64), first + k),
            site.stored(low + k, const(1, int64), first + k),
        )
        return (), pair

    site.builder.effect(fold_loop(0, n, (), step))


MERGE_BLOCK_ENTRIES = 1024  # entries of two merged lists that one walk visits in sequence
WALKS_PER_POINT = (
    4  # blocks that a grid point walks at once, to hide the latency of each walk's loads
)


def _split_merge_path(site: KernelSite, d: Value) -> tuple[Value, Value]:
    """Return the number of entries of each list among the first `d` of the merged order.

    Of equal entries, that of the first list comes first. Source: merge path (Odeh, Green, Mwassi,
    Shmueli and Birk, 2012, https://doi.org/10.1109/IPDPSW.2012.202).
    """
    n, m = site.size(0, 0), site.size(1, 0)
    zero = const(0, int64)
    low, high = choose(m < d, d - m, zero), choose(d < n, d, n)

    def step(_: Value, low: Value, high: Value) -> tuple[Value, ...]:
        """Halve the range of the binary search."""
        middle, open_ = (low + high) >> 1, low < high
        x = site.read(0, choose(open_, middle, zero))
        y = site.read(1, choose(open_, d - 1 - middle, zero))
        first = open_ & (x <= y)
        return choose(first, middle + 1, low), choose(open_ & ~first, middle, high)

    rounds = site.number("rounds", (site.extent(0, 0) + site.extent(1, 0)).bit_length())
    i = fold_loop(0, rounds, (low, high), step).results[0]
    return i, d - i


class _Walk:
    """A walk in merged order over one block of two strictly ascending lists.

    Equal entries of the two lists are visited together, at the position of the first.
    """

    def __init__(
        self, site: KernelSite, begin: tuple[Value, Value], end: tuple[Value, Value]
    ) -> None:
        self.site, self.n, self.m = site, site.size(0, 0), site.size(1, 0)
        (i, j), self.end, zero = begin, end, const(0, int64)
        before = site.read(0, choose(zero < i, i - 1, zero))
        is_visited = (
            (zero < i) & (j < self.m) & eq(site.read(1, self.clamp_index(j, self.m)), before)
        )
        self.begin = (i, j + cast(is_visited, int64))

    def clamp_index(self, i: Value, n: Value) -> Value:
        """Return `i` if it is below `n`, else 0, so that a load is in range."""
        return choose(i < n, i, const(0, int64))

    def next_entries(self, i: Value, j: Value) -> tuple[Value, Value]:
        """Return True for entry i of the first list if it is next, and for j of the second.

        Both come next if they are equal; neither does beyond the end of the block.
        """
        here, there = i < self.end[0], j < self.end[1]
        x = self.site.read(0, self.clamp_index(i, self.n))
        y = self.site.read(1, self.clamp_index(j, self.m))
        first = here & (~there | (x <= y))
        return first, choose(first, (j < self.m) & eq(x, y), there)


def _create_walks(site: KernelSite, point: Value) -> list[_Walk]:
    """Return the walks of a grid point, one for each of its blocks."""
    total = site.size(0, 0) + site.size(1, 0)
    starts = [
        (point * WALKS_PER_POINT + w) * MERGE_BLOCK_ENTRIES for w in range(WALKS_PER_POINT + 1)
    ]
    ends = [_split_merge_path(site, choose(d < total, d, total)) for d in starts]
    return [_Walk(site, *pair) for pair in pairwise(ends)]


# (indices in both lists, masks of the next entries, carry) -> the new carry, and stores
Emit = Callable[[Value, Value, Value, Value, Value], tuple[Value, list[Store]]]


def _walk_merged(site: KernelSite, point: Value, emit: Emit, carried: list[Value]) -> Loop:
    """Return the loop that walks the blocks of a point and calls `emit` for each step.

    `emit(i, j, first, second, carried)` returns the new carry, and effects. It also runs beyond the
    last entry, with `first` and `second` False.
    """
    walks = _create_walks(site, point)

    def step(_: Value, *state: Value) -> LoopStep:
        """Return the carries and the effects of one step in each block."""
        carries, effects = [], []
        for w, walk in enumerate(walks):
            i, j, own = state[3 * w : 3 * w + 3]
            first, second = walk.next_entries(i, j)
            own, stores = emit(i, j, first, second, own)
            carries += [i + cast(first, int64), j + cast(second, int64), own]
            effects += stores
        return tuple(carries), tuple(effects)

    begin = [v for walk, own in zip(walks, carried, strict=True) for v in (*walk.begin, own)]
    return fold_loop(0, const(MERGE_BLOCK_ENTRIES, int64), begin, step)


def merge_counts(site: KernelSite) -> None:
    """Build the kernel that counts each block's different keys, (points, WALKS_PER_POINT)."""

    def emit(
        i: Value, j: Value, first: Value, second: Value, n: Value
    ) -> tuple[Value, list[Store]]:
        """Return the count with this key, and no effects."""
        return n + cast(first | second, int64), []

    point = site.axis(-1, 0)
    results = _walk_merged(site, point, emit, [const(0, int64)] * WALKS_PER_POINT).results
    for w in range(WALKS_PER_POINT):
        site.store(results[3 * w + 2], point, const(w, int64))


def merge(site: KernelSite) -> None:
    """Build `merge(keys, others, before)`: store each key's index in either list, or -1."""
    none, one = const(-1, int64), const(1, int64)

    def emit(
        i: Value, j: Value, first: Value, second: Value, at: Value
    ) -> tuple[Value, list[Store]]:
        """Return the next index, and the stores of a key's indices in both lists."""
        is_new = first | second
        effects = [
            site.stored(choose(first, i, none), const(0, int64), at, when=is_new),
            site.stored(choose(second, j, none), one, at, when=is_new),
        ]
        return at + cast(is_new, int64), effects

    point = site.axis(2, 0)
    before = [site.read(2, point, const(w, int64)) for w in range(WALKS_PER_POINT)]
    site.builder.effect(_walk_merged(site, point, emit, before))
