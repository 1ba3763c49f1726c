"""Sparse @ sparse, a row of the result after the other: where a point has memory of its own near.

A grid point has some of the rows, and memory as wide as a row. First it notes in bits which
columns a row has (a bit for each, and one for each 64 of these), and walks the bits, so that
columns ascend; then it adds the products up at their columns, and takes them from there. What meets
at one place is added in the order of the left matrix' entries, as by sorting, which needs no memory
for rows and spreads over any number of points: the bits are the same.

Source: Gustavson, 1978, https://doi.org/10.1145/355791.355796.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import (
    DType,
    KernelSite,
    Launches,
    Loop,
    LoopStep,
    Op,
    Store,
    Value,
    arithmetic,
    capabilities,
    cast,
    choose,
    const,
    dtype_rules,
    fold_loop,
    int64,
    make_node,
    rows_at,
    uint64,
)

from .pattern import Pattern
from .rows import Runs
from .tensor import COO, coo

Tensor = dt.Tensor
WORD = 64  # bits
POINTS = 4  # of the grid for each unit of the device's concurrency: rows are of different lengths
WORKSPACE = 1 << 26  # bytes
SPARSE_ROWS = 4  # rows for each product of which more had better not be walked


def times_sparse(a: COO, b: COO) -> COO | None:
    """The product of two coalesced matrices of one dtype; None where it had better be sorted.

    Two host reads: how many products there are, and how many entries.
    """
    p, q, x, y = a.pattern, b.pattern, a.values(), b.values()
    rows, columns = p.shape[0], q.shape[1]
    if (
        x.dtype not in (dt.float32, dt.float64, dt.int32, dt.int64) or not p.count or not q.count
        or x.requires_grad or y.requires_grad or rows > SPARSE_ROWS * p.count
    ):  # fmt: skip
        return None
    can = capabilities(p.device)
    points = min(rows, POINTS * can.concurrency)
    if not can.near or points * columns * x.dtype.itemsize > WORKSPACE:
        return None
    total, limits = _limits(p, q)
    if not total or rows > SPARSE_ROWS * total:
        return None
    left, right = (p.coords[1], p.bounds), (q.coords[1], q.bounds)
    found = make_node(COLUMNS, (*left, *right, limits), (total + rows,), int64, (points, columns))
    first = dt.zeros(1, dtype=int64, device=p.device)
    bounds = dt.concat([first, dt.cumulative_sum(found[total:])])
    dt.evaluate(found, bounds)
    count = int(bounds[-1].item())
    at = make_node(CLOSED_UP, (found, limits, bounds), (count,), int64)
    operands = (x, *left, y, *right, bounds, at)
    values = make_node(VALUES, operands, (count,), x.dtype, (x.dtype, points, columns))
    dt.evaluate(at, values)
    owner = Runs(bounds[:-1], None, count).owners()
    made = Pattern([owner, at], (rows, columns), count, p.device, unsorted_dims=0, unique=True)
    made.know_bounds(bounds)
    return coo(made, values)


def _limits(p: Pattern, q: Pattern) -> tuple[int, Tensor]:
    """How many products there are, and where those of each row begin and the last ones end."""
    at = p.coords[1]
    first = dt.zeros(1, dtype=int64, device=p.device)
    ends = dt.cumulative_sum(rows_at(q.bounds, at + 1) - rows_at(q.bounds, at))
    limits = rows_at(dt.concat([first, ends]), p.bounds)
    dt.evaluate(limits)
    return int(limits[-1].item()), limits


# --- the kernels ---------------------------------------------------------------------------------


def _rows(site: KernelSite, workspace: int, rows: int) -> tuple[Value, Value, Value]:
    """A grid axis over the points, which have each a row of the workspace: it, and its rows."""
    point = site.axis(workspace, 0)
    points = site.extent(workspace, 0)
    n, each = site.number("rows", rows), site.number("each", -(-rows // points))
    start, stop = point * each, (point + 1) * each
    return point, choose(start < n, start, n), choose(stop < n, stop, n)


def _cleared(site: KernelSite, workspace: int, value: Value, point: Value) -> None:
    """Fills a point's row of the workspace."""

    def step(k: Value) -> LoopStep:
        return (), [site.put(workspace, value, point, k)]

    site.builder.effect(fold_loop(0, site.size(workspace, 1), (), step))


def _products(site: KernelSite, at: Sequence[int], row: Value, each: Any) -> Loop:
    """A loop over the pairs of entries that meet in a row: `each(k, entry)` gives effects.

    `at`: which operands are the left columns and bounds, and the right bounds.
    """
    columns, bounds, others = at

    def left(k: Value) -> LoopStep:
        c = site.read(columns, k)

        def right(entry: Value) -> LoopStep:
            return (), each(k, entry)

        return (), [fold_loop(site.read(others, c), site.read(others, c + 1), (), right)]

    return fold_loop(site.read(bounds, row), site.read(bounds, row + 1), (), left)


def _ones(x: Value) -> Value:
    """How many bits of a word are set. Source: Warren, Hacker's Delight, 5-1."""

    def every(byte: int) -> Value:
        return const(int(f"{byte:02x}" * 8, 16), uint64)

    x = x - ((x >> _word(1)) & every(0x55))
    x = (x & every(0x33)) + ((x >> _word(2)) & every(0x33))
    x = (x + (x >> _word(4))) & every(0x0F)
    return cast((x * every(0x01)) >> _word(56), int64)


def _word(n: int) -> Value:
    return const(n, uint64)


def _place(x: Value) -> Value:
    """Where the lowest bit of a word stands that is set."""
    return _ones((x & (~x + _word(1))) - _word(1))


def _bit(j: Value) -> Value:
    return _word(1) << cast(j & (WORD - 1), uint64)


def _columns(launches: Launches) -> None:
    """columns(columns, bounds, other columns, other bounds, limits).

    Which columns each row of the product has, ascending, from its limit on; and behind all of them
    how many each row has. attrs: points, columns of the product.
    """
    points, columns = launches.attrs
    words = -(-columns // WORD)
    bits = launches.temporary(uint64, (points, words))
    above = launches.temporary(uint64, (points, -(-words // WORD)))
    launches.launch(
        "sparse_columns", _note_columns, 0, 1, 2, 3, 4, bits, above, launches.result, changes=(5, 6)
    )


def _note_columns(site: KernelSite) -> None:
    rows = site.extent(4, 0) - 1
    total = site.number("total", site.extent(-1, 0) - rows)
    point, start, stop = _rows(site, 5, rows)
    none = _word(0)
    _cleared(site, 5, none, point)
    _cleared(site, 6, none, point)

    def noted(_: Value, entry: Value) -> list[Store]:
        j = site.read(2, entry)
        w = j >> 6
        t = w >> 6
        return [
            site.put(5, site.read(5, point, w) | _bit(j), point, w),
            site.put(6, site.read(6, point, t) | _bit(w), point, t),
        ]

    def row(i: Value) -> LoopStep:
        walk, first = _products(site, (0, 1, 3), i, noted), site.read(4, i)

        def of_above(t: Value, count: Value) -> LoopStep:
            def of_word(_: Value, rest: Value, count: Value) -> LoopStep:
                w = (t << 6) + _place(rest)

                def of_bit(_: Value, rest: Value, count: Value) -> LoopStep:
                    j = (w << 6) + _place(rest)
                    return (rest & (rest - _word(1)), count + 1), [site.stored(j, first + count)]

                word = site.read(5, point, w)
                loop = fold_loop(0, _ones(word), (word, count), of_bit)
                after = rest & (rest - _word(1)), loop.results[1]
                return after, [loop, site.put(5, none, point, w)]

            word = site.read(6, point, t)
            loop = fold_loop(0, _ones(word), (word, count), of_word)
            return (loop.results[1],), [loop, site.put(6, none, point, t)]

        found = fold_loop(0, site.size(6, 1), (const(0, int64),), of_above)
        return (), [walk, found, site.stored(found.results[0], total + i)]

    site.builder.effect(fold_loop(start, stop, (), row))


def _close_up(site: KernelSite) -> None:
    """closed_up(found, limits, bounds): columns without what is between those of two rows."""
    row = site.points("rows", site.extent(1, 0) - 1)
    start, limit = site.read(2, row), site.read(1, row)

    def step(k: Value) -> LoopStep:
        return (), [site.stored(site.read(0, limit + k), start + k)]

    site.builder.effect(fold_loop(0, site.read(2, row + 1) - start, (), step))


def _values(launches: Launches) -> None:
    """values(left, columns, bounds, right, other columns, other bounds, bounds, columns found).

    The sums at the columns found. attrs: dtype, points, columns of the product.
    """
    dtype, points, columns = launches.attrs
    sums = launches.temporary(dtype, (points, columns))
    launches.launch("sparse_values", _add_up, *range(8), sums, launches.result, changes=(8,))


def _add_up(site: KernelSite) -> None:
    dtype = site.casts[0]
    nothing = const(-0.0 if dtype.kind == "f" else 0, dtype)  # added to anything, it is that
    point, start, stop = _rows(site, 8, site.extent(6, 0) - 1)
    _cleared(site, 8, nothing, point)

    def added(k: Value, entry: Value) -> list[Store]:
        j, product = site.read(4, entry), arithmetic.multiply(site.read(0, k), site.read(3, entry))
        return [site.put(8, arithmetic.add(site.read(8, point, j), product), point, j)]

    def row(i: Value) -> LoopStep:
        def taken(k: Value) -> LoopStep:
            j = site.read(7, k)
            return (), [site.stored(site.read(8, point, j), k), site.put(8, nothing, point, j)]

        walk = _products(site, (1, 2, 5), i, added)
        return (), [walk, fold_loop(site.read(6, i), site.read(6, i + 1), (), taken)]

    site.builder.effect(fold_loop(start, stop, (), row))


def _dtypes(
    op: str, operands: Sequence[dtype_rules.Given], attrs: tuple[DType, int, int]
) -> dtype_rules.Dtypes:
    """Of `values`: two operands have that in attrs, the others are positions."""
    return tuple(attrs[0] if k in (0, 3) else int64 for k in range(len(operands))), attrs[0]


COLUMNS = Op("sparse_columns", "kernel", dtype_rules.integers, launches=_columns, arity=5)
CLOSED_UP = Op("sparse_closed_up", "kernel", dtype_rules.integers, build=_close_up, arity=3)
VALUES = Op("sparse_values", "kernel", _dtypes, launches=_values, arity=8)
