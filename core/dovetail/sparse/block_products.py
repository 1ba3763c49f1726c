"""Products of matrices of blocks (BSR) with strided operands, block by block.

A grid point computes the totals of several rows of a block row. All of them use each element that
it reads of the strided operand, and it reads one column index for a whole block. Each total is a
fold over the row's elements, columns ascending, and includes the zeros within blocks. So the bits
equal those of the product by single elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import (
    DType,
    KernelSite,
    Op,
    Value,
    arithmetic,
    const,
    dtype_rules,
    fma,
    fold_loop,
    int64,
    make_node,
)

from .pattern import Pattern
from .sparse_products import positions

Tensor = dt.Tensor
UNROLLED_ELEMENTS_MAX = 64  # elements of a block for which the kernel is unrolled
POINT_ROWS_MAX = {1: 8, 2: 4}  # rows of a block for each point, by the strided operand's axes


def rows_per_point(rows: int, ndim: int) -> int:
    """Return the number of a block's rows that one grid point computes: a divisor of `rows`.

    Blocks of many rows times a matrix get one row for each point: backends compute several such
    points at once.
    """
    if ndim == 2:
        return rows if rows <= POINT_ROWS_MAX[ndim] else 1
    return max(n for n in range(1, POINT_ROWS_MAX[ndim] + 1) if rows % n == 0)


def block_product(site: KernelSite) -> None:
    """Build `block_product(dense, blocks, bounds, columns)`: (block rows, groups, rows[, columns]).

    `blocks` are one after the other in a vector. attrs: the dtype, the rows and the columns of a
    block, and the number of rows that a point computes.
    """
    _, height, width, rows = site.attrs
    at = site.axis(-1, 0)
    group = site.axis(-1, 1) if height > rows else const(0, int64)
    column = [site.axis(-1, 3)] if site.rank(0) == 2 else []

    def step(k: Value, *totals: Value) -> tuple[list[Value], list[Any]]:
        """Return the totals with block `k`; its sums are effects, which fixes their order."""
        first, block = site.read(3, k) * width, k * (height * width) + group * (rows * width)
        sums, in_order = (
            list(totals),
            list[Any](),
        )  # values among the effects fix the evaluation order
        for j in range(width):
            y = site.read(0, first + j, *column)
            for i in range(rows):
                sums[i] = _multiply_add(site.read(1, block + (i * width + j)), y, sums[i])
            in_order += sums
        return sums, in_order

    zero = const(0, site.casts[0].compute)
    totals = fold_loop(site.read(2, at), site.read(2, at + 1), (zero,) * rows, step).results
    for i, total in enumerate(totals):
        site.store(total, at, group, const(i, int64), *column)


def _multiply_add(x: Value, y: Value, total: Value) -> Value:
    """Return x * y + total, with one rounding for floats."""
    if total.dtype.kind == "f":
        return fma(x, y, total)
    return arithmetic.add(total, arithmetic.multiply(x, y))


def _product_dtypes(
    op: str, operands: Sequence[dtype_rules.Given], attrs: tuple[DType, int, int, int]
) -> dtype_rules.Dtypes:
    """Return attrs' dtype for the operand and the blocks, int64 for positions, and the result's."""
    return (attrs[0], attrs[0], int64, int64), attrs[0]


BLOCK_PRODUCT = Op("sparse_block_product", "kernel", _product_dtypes, build=block_product, arity=2)


def times_strided(p: Pattern, blocks: Tensor, dense: Any) -> Tensor | None:
    """Return the product of a matrix of blocks and a strided vector or matrix, or None.

    None means that the caller takes the general path by single elements: an operand needs a check,
    a conversion or a gradient, or the blocks are large or complex.
    """
    dtype, (height, width) = blocks.dtype, blocks.shape[1:]
    if (
        not isinstance(dense, dt.Tensor)
        or dense.layout is not dt.strided
        or dense.ndim not in POINT_ROWS_MAX
        or not p.count
        or dense.shape[0] != p.shape[1] * width
        or height * width > UNROLLED_ELEMENTS_MAX
        or dtype is not dense.dtype
        or dtype.kind not in "fiu"
        or dense.device is not p.device
        or dense.requires_grad
        or blocks.requires_grad
    ):
        return None
    columns = dense.shape[1:]
    if columns == (1,):  # grid points are spread over rows, not columns
        dense = dense.reshape(-1)
    rows = rows_per_point(height, dense.ndim)
    shape = (p.shape[0], height // rows, rows, *dense.shape[1:])
    operands = (dense, blocks.reshape(-1), *positions(p, False))
    product = make_node(BLOCK_PRODUCT, operands, shape, dtype, (dtype, height, width, rows))
    return product.reshape(p.shape[0] * height, *columns)
