"""Products of matrices of blocks (BSR) with strided ones, block by block.

A point has the totals of several rows of a block row, so that what is read of the strided operand
serves all of them, and one column is read for a whole block. Each total is a fold over the row's
elements, columns ascending, those that are 0 within blocks too: the bits are those of the product
by single elements.
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
from .products import positions

Tensor = dt.Tensor
UNROLLED = 64  # elements of a block that are written out in a kernel
ROWS = {1: 8, 2: 4}  # of a block that a point does at most, by the strided operand's axes


def rows_together(rows: int, ndim: int) -> int:
    """How many rows of a block a point does: a divisor of them.

    Of more rows times a matrix it does one: backends compute several such points at once.
    """
    if ndim == 2:
        return rows if rows <= ROWS[ndim] else 1
    return max(n for n in range(1, ROWS[ndim] + 1) if rows % n == 0)


def block_product(site: KernelSite) -> None:
    """block_product(dense, blocks, bounds, columns): (block rows, groups, rows[, columns]).

    `blocks` are one after the other in a vector. attrs: the dtype, the rows and the columns of a
    block, and of how many rows a point has the totals.
    """
    _, height, width, rows = site.attrs
    at = site.axis(-1, 0)
    group = site.axis(-1, 1) if height > rows else const(0, int64)
    column = [site.axis(-1, 3)] if site.rank(0) == 2 else []

    def step(k: Value, *totals: Value) -> tuple[list[Value], list[Any]]:
        first, block = site.read(3, k) * width, k * (height * width) + group * (rows * width)
        found, in_order = list(totals), list[Any]()  # values among effects: their order
        for j in range(width):
            y = site.read(0, first + j, *column)
            for i in range(rows):
                found[i] = _added(site.read(1, block + (i * width + j)), y, found[i])
            in_order += found
        return found, in_order

    zero = const(0, site.casts[0].compute)
    totals = fold_loop(site.read(2, at), site.read(2, at + 1), (zero,) * rows, step).results
    for i, total in enumerate(totals):
        site.store(total, at, group, const(i, int64), *column)


def _added(x: Value, y: Value, total: Value) -> Value:
    if total.dtype.kind == "f":
        return fma(x, y, total)
    return arithmetic.add(total, arithmetic.multiply(x, y))


def _dtypes(
    op: str, operands: Sequence[dtype_rules.Given], attrs: tuple[DType, int, int, int]
) -> dtype_rules.Dtypes:
    return (attrs[0], attrs[0], int64, int64), attrs[0]


BLOCK_PRODUCT = Op("sparse_block_product", "kernel", _dtypes, build=block_product, arity=2)


def times_strided(p: Pattern, blocks: Tensor, dense: Any) -> Tensor | None:
    """The product of a matrix of blocks and a strided vector or matrix.

    None where there is anything to ask, convert or remember, and where blocks are large or complex:
    then it is done by single elements.
    """
    dtype, (height, width) = blocks.dtype, blocks.shape[1:]
    if (
        type(dense) is not Tensor or dense.ndim not in ROWS or not p.count
        or dense.shape[0] != p.shape[1] * width or height * width > UNROLLED
        or dtype is not dense.dtype or dtype.kind not in "fiu" or dense.device is not p.device
        or dense.requires_grad or blocks.requires_grad
    ):  # fmt: skip
        return None
    rest = dense.shape[1:]
    if rest == (1,):  # rows are what is spread, not columns
        dense = dense.reshape(-1)
    rows = rows_together(height, dense.ndim)
    shape = (p.shape[0], height // rows, rows, *dense.shape[1:])
    operands = (dense, blocks.reshape(-1), *positions(p, False))
    made = make_node(BLOCK_PRODUCT, operands, shape, dtype, (dtype, height, width, rows))
    return made.reshape(p.shape[0] * height, *rest)
