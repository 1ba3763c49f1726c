"""Sparse @ sparse by rows (Gustavson), on devices with memory near each grid point.

A grid point has some of the rows, and a workspace as wide as a row. It first marks the columns of
a row in a bitmap (a bit for each column, and a summary bit for each 64 of these) and walks the
bits, so columns ascend. Then it adds the products up at their columns, and reads the sums from
there. Products at one position are added in the order of the left matrix' entries, as the sorting
scheme does, so the bits are equal. Sorting needs no workspace and suits any number of points.

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
from .sparse_ops import Runs
from .tensor import COO, coo

Tensor = dt.Tensor
WORD_BITS = 64  # bits
POINTS_PER_UNIT = 4  # grid points for each unit of concurrency, as rows have different lengths
WORKSPACE_BYTES_MAX = 1 << 26
ROWS_PER_PRODUCT_MAX = 4  # with more rows than that, most are empty and sorting is faster


def times_sparse(a: COO, b: COO) -> COO | None:
    """Return the product of two coalesced matrices, or None if the caller must sort instead.

    Two host reads: the number of products, and the number of entries.
    """
    p, q, x, y = a.pattern, b.pattern, a.values(), b.values()
    rows, columns = p.shape[0], q.shape[1]
    if (
        x.dtype not in (dt.float32, dt.float64, dt.int32, dt.int64)
        or not p.count
        or not q.count
        or x.requires_grad
        or y.requires_grad
        or rows > ROWS_PER_PRODUCT_MAX * p.count
    ):
        return None
    can = capabilities(p.device)
    points = min(rows, POINTS_PER_UNIT * can.concurrency)
    if not can.near or points * columns * x.dtype.itemsize > WORKSPACE_BYTES_MAX:
        return None
    total, limits = _product_limits(p, q)
    if not total or rows > ROWS_PER_PRODUCT_MAX * total:
        return None
    left, right = (p.coords[1], p.bounds), (q.coords[1], q.bounds)
    padded_columns = make_node(
        COLUMNS, (*left, *right, limits), (total + rows,), int64, (points, columns)
    )
    first = dt.zeros(1, dtype=int64, device=p.device)
    bounds = dt.concat([first, dt.cumulative_sum(padded_columns[total:])])
    dt.evaluate(padded_columns, bounds)
    count = int(bounds[-1].item())
    at = make_node(COMPACT, (padded_columns, limits, bounds), (count,), int64)
    operands = (x, *left, y, *right, bounds, at)
    values = make_node(VALUES, operands, (count,), x.dtype, (x.dtype, points, columns))
    dt.evaluate(at, values)
    owner = Runs(bounds[:-1], None, count).owners()
    pattern = Pattern([owner, at], (rows, columns), count, p.device, unsorted_dims=0, unique=True)
    pattern.set_bounds(bounds)
    return coo(pattern, values)


def _product_limits(p: Pattern, q: Pattern) -> tuple[int, Tensor]:
    """Read the number of products; return it, and the starts of rows' products with the end."""
    at = p.coords[1]
    first = dt.zeros(1, dtype=int64, device=p.device)
    ends = dt.cumulative_sum(rows_at(q.bounds, at + 1) - rows_at(q.bounds, at))
    limits = rows_at(dt.concat([first, ends]), p.bounds)
    dt.evaluate(limits)
    return int(limits[-1].item()), limits


# --- the kernels ---------------------------------------------------------------------------------


def _declare_rows(site: KernelSite, workspace: int, rows: int) -> tuple[Value, Value, Value]:
    """Add the grid axis of points; return a point's index, and the start and end of its rows.

    `workspace`: the operand with one row for each point; `rows`: the number of rows in all.
    """
    point = site.axis(workspace, 0)
    points = site.extent(workspace, 0)
    n, each = site.number("rows", rows), site.number("each", -(-rows // points))
    start, stop = point * each, (point + 1) * each
    return point, choose(start < n, start, n), choose(stop < n, stop, n)


def _fill_row(site: KernelSite, workspace: int, value: Value, point: Value) -> None:
    """Add a loop that stores `value` in a point's whole row of the workspace."""

    def step(k: Value) -> LoopStep:
        """Return no carries, and the store at position `k`."""
        return (), [site.put(workspace, value, point, k)]

    site.builder.effect(fold_loop(0, site.size(workspace, 1), (), step))


def _loop_over_products(
    site: KernelSite, operand_numbers: Sequence[int], row: Value, effects_of: Any
) -> Loop:
    """Return a loop over the products of a row; `effects_of(k, entry)` returns the effects of one.

    `operand_numbers`: the operand numbers of the left columns, the left bounds and the right
    bounds.
    """
    columns, bounds, others = operand_numbers

    def left_step(k: Value) -> LoopStep:
        """Return the loop over the right entries of left entry `k`."""
        c = site.read(columns, k)

        def right_step(entry: Value) -> LoopStep:
            """Return no carries, and the effects of one product."""
            return (), effects_of(k, entry)

        return (), [fold_loop(site.read(others, c), site.read(others, c + 1), (), right_step)]

    return fold_loop(site.read(bounds, row), site.read(bounds, row + 1), (), left_step)


def _popcount(x: Value) -> Value:
    """Return the number of set bits of a word. Source: Warren, Hacker's Delight, 5-1."""

    def repeat_byte(byte: int) -> Value:
        """Return a byte, repeated in all eight bytes of a word."""
        return const(int(f"{byte:02x}" * 8, 16), uint64)

    x = x - ((x >> _const_word(1)) & repeat_byte(0x55))
    x = (x & repeat_byte(0x33)) + ((x >> _const_word(2)) & repeat_byte(0x33))
    x = (x + (x >> _const_word(4))) & repeat_byte(0x0F)
    return cast((x * repeat_byte(0x01)) >> _const_word(56), int64)


def _const_word(n: int) -> Value:
    """Return a constant word of 64 bits."""
    return const(n, uint64)


def _lowest_bit(x: Value) -> Value:
    """Return the position of the lowest set bit of a word."""
    return _popcount((x & (~x + _const_word(1))) - _const_word(1))


def _bit_mask(j: Value) -> Value:
    """Return the word in which only bit j modulo 64 is set."""
    return _const_word(1) << cast(j & (WORD_BITS - 1), uint64)


def _launch_columns(launches: Launches) -> None:
    """Add the launch that finds the columns of each row of the product, and their number.

    It stores the columns of each row of the product, ascending, from the row's limit on. Behind
    them it stores the number of columns of each row. attrs: points, columns of the product.
    """
    points, columns = launches.attrs
    words = -(-columns // WORD_BITS)
    bits = launches.temporary(uint64, (points, words))
    above = launches.temporary(uint64, (points, -(-words // WORD_BITS)))
    launches.launch(
        "sparse_columns", _mark_columns, 0, 1, 2, 3, 4, bits, above, launches.result, changes=(5, 6)
    )


def _mark_columns(site: KernelSite) -> None:
    """Build the kernel that marks columns in a bitmap of two levels, and stores them in order."""
    rows = site.extent(4, 0) - 1
    total = site.number("total", site.extent(-1, 0) - rows)
    point, start, stop = _declare_rows(site, 5, rows)
    none = _const_word(0)
    _fill_row(site, 5, none, point)
    _fill_row(site, 6, none, point)

    def mark(_: Value, entry: Value) -> list[Store]:
        """Return the stores that set a column's bit, and the bit of its word."""
        j = site.read(2, entry)
        w = j >> 6
        t = w >> 6
        return [
            site.put(5, site.read(5, point, w) | _bit_mask(j), point, w),
            site.put(6, site.read(6, point, t) | _bit_mask(w), point, t),
        ]

    def collect_row(i: Value) -> LoopStep:
        """Return the loops that mark and then store the columns of row `i`."""
        walk, first = _loop_over_products(site, (0, 1, 3), i, mark), site.read(4, i)

        def visit_summary_word(t: Value, count: Value) -> LoopStep:
            """Store the columns under a summary word, and clear the word."""

            def visit_word(_: Value, bits: Value, count: Value) -> LoopStep:
                """Store the columns of a word, and clear the word."""
                w = (t << 6) + _lowest_bit(bits)

                def visit_bit(_: Value, bits: Value, count: Value) -> LoopStep:
                    """Store the lowest column of a word."""
                    j = (w << 6) + _lowest_bit(bits)
                    return (bits & (bits - _const_word(1)), count + 1), [
                        site.stored(j, first + count)
                    ]

                word = site.read(5, point, w)
                loop = fold_loop(0, _popcount(word), (word, count), visit_bit)
                after = bits & (bits - _const_word(1)), loop.results[1]
                return after, [loop, site.put(5, none, point, w)]

            word = site.read(6, point, t)
            loop = fold_loop(0, _popcount(word), (word, count), visit_word)
            return (loop.results[1],), [loop, site.put(6, none, point, t)]

        emitted = fold_loop(0, site.size(6, 1), (const(0, int64),), visit_summary_word)
        return (), [walk, emitted, site.stored(emitted.results[0], total + i)]

    site.builder.effect(fold_loop(start, stop, (), collect_row))


def _build_compact(site: KernelSite) -> None:
    """Build the kernel that copies the columns of all rows without the gaps between rows."""
    row = site.points("rows", site.extent(1, 0) - 1)
    start, limit = site.read(2, row), site.read(1, row)

    def step(k: Value) -> LoopStep:
        """Return no carries, and the store of the row's column `k`."""
        return (), [site.stored(site.read(0, limit + k), start + k)]

    site.builder.effect(fold_loop(0, site.read(2, row + 1) - start, (), step))


def _launch_values(launches: Launches) -> None:
    """Add the launch that computes the values of the product at the columns found.

    It stores the sums at the result's columns. attrs: dtype, points, columns of the product.
    """
    dtype, points, columns = launches.attrs
    sums = launches.temporary(dtype, (points, columns))
    launches.launch("sparse_values", _add_products, *range(8), sums, launches.result, changes=(8,))


def _add_products(site: KernelSite) -> None:
    """Build the kernel that adds a row's products in a workspace and moves its sums out."""
    dtype = site.casts[0]
    nothing = const(-0.0 if dtype.kind == "f" else 0, dtype)  # the identity of addition
    point, start, stop = _declare_rows(site, 8, site.extent(6, 0) - 1)
    _fill_row(site, 8, nothing, point)

    def accumulate(k: Value, entry: Value) -> list[Store]:
        """Return the store that adds a product to its column's sum."""
        j, product = site.read(4, entry), arithmetic.multiply(site.read(0, k), site.read(3, entry))
        return [site.put(8, arithmetic.add(site.read(8, point, j), product), point, j)]

    def sum_row(i: Value) -> LoopStep:
        """Return the loops that add the products of row `i`, and store and clear the sums."""

        def move_sum(k: Value) -> LoopStep:
            """Return the stores that move the sum of entry `k`, and reset the workspace."""
            j = site.read(7, k)
            return (), [site.stored(site.read(8, point, j), k), site.put(8, nothing, point, j)]

        walk = _loop_over_products(site, (1, 2, 5), i, accumulate)
        return (), [walk, fold_loop(site.read(6, i), site.read(6, i + 1), (), move_sum)]

    site.builder.effect(fold_loop(start, stop, (), sum_row))


def _value_dtypes(
    op: str, operands: Sequence[dtype_rules.Given], attrs: tuple[DType, int, int]
) -> dtype_rules.Dtypes:
    """Return the dtypes of `values`: the factors have that of attrs, the others are positions."""
    return tuple(attrs[0] if k in (0, 3) else int64 for k in range(len(operands))), attrs[0]


COLUMNS = Op("sparse_columns", "kernel", dtype_rules.integers, launches=_launch_columns, arity=5)
COMPACT = Op("sparse_closed_up", "kernel", dtype_rules.integers, build=_build_compact, arity=3)
VALUES = Op("sparse_values", "kernel", _value_dtypes, launches=_launch_values, arity=8)
