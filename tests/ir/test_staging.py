"""Products that groups compute in tiles: what is staged, for which kernels, devices and sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from dovetail.dtypes import float32, float64
from dovetail.extend import (
    DType,
    Kernel,
    KernelBuilder,
    Tile,
    Value,
    bool_,
    choose_tile,
    fills_tiles,
    parse_kernel,
    stages_wider_values,
)
from dovetail.ir.language import const, eq, fma, fold_loop, load, where
from dovetail.ir.staging import find_staging
from dovetail.testing.test_layouts import matrix_product
from staged_cases import product_of_halves

LOCAL_BYTES, ITEMS = 32 << 10, 256
TILE = Tile(rows=64, columns=64, depth=16, item_rows=8, item_columns=4, width=4)
Step = Callable[[KernelBuilder, Value, Value, Value, Value], Value]


def fold(step: Step, dtype: DType = float32, access: str = "w", depth: int = 1) -> Kernel:
    """Build a kernel of `depth` nested folds over rows, columns and k; `step` adds to the sum."""
    b = KernelBuilder("fold")
    out = b.buffer("out", dtype, access)
    m, n, length = (b.int(name) for name in "mnk")
    i, j = b.axis(m), b.axis(n)

    def nested(level: int, total: Value) -> Value:
        """Return the total after a fold, with others in it."""
        if level == 0:
            return fold_loop(0, length, (total,), lambda k, t: (step(b, i, j, k, t),)).results[0]
        return fold_loop(0, length, (total,), lambda _, t: (nested(level - 1, t) + t,)).results[0]

    b.store(out, i * n + j, nested(depth - 1, const(0.0, dtype)))
    return b.build()


def of_rows_and_columns(b: KernelBuilder, i: Value, j: Value, k: Value, total: Value) -> Value:
    """Add the product of an element that depends on the row and one that does on the column."""
    x, y = (b.buffer(name, total.dtype, "r") for name in "xy")
    return fma(load(x, i * 9 + k), load(y, k * 9 + j), total)


def of_points(b: KernelBuilder, i: Value, j: Value, k: Value, total: Value) -> Value:
    """Add an element that depends on row and column."""
    return total + load(b.buffer("x", total.dtype, "r"), i * 9 + j + k)


def of_rows(b: KernelBuilder, i: Value, j: Value, k: Value, total: Value) -> Value:
    """Add an element that depends on the row alone."""
    return total + load(b.buffer("x", total.dtype, "r"), i * 9 + k)


def under_masks(b: KernelBuilder, i: Value, j: Value, k: Value, total: Value) -> Value:
    """Add a product where a mask of rows is true."""
    x, y, mask = (b.buffer(*p, "r") for p in (("x", float32), ("y", float32), ("mask", bool_)))
    added = fma(load(x, i * 9 + k), load(y, k * 9 + j), total)
    return where(load(mask, i * 9 + k), added, total)


def on_the_diagonal(b: KernelBuilder, i: Value, j: Value, k: Value, total: Value) -> Value:
    """Add a product only where row and column are the same."""
    return where(eq(i, j), of_rows_and_columns(b, i, j, k, total), total)


def test_product_stages_an_element_of_each_operand() -> None:
    staging = find_staging(matrix_product(float32))
    assert staging is not None
    assert [v.op for v in (*staging.rows, *staging.columns)] == ["load", "load"]
    assert [v.buffer.name for v in (*staging.rows, *staging.columns)] == ["x", "y"]
    assert not stages_wider_values(matrix_product(float32))


def test_halves_are_staged_in_the_dtype_of_the_sum() -> None:
    staging = find_staging(product_of_halves())
    assert staging is not None
    assert [v.op for v in (*staging.rows, *staging.columns)] == ["cast", "cast"]
    assert stages_wider_values(product_of_halves())


@pytest.mark.parametrize("step", [of_points, of_rows, under_masks, on_the_diagonal])
def test_kernel_that_is_no_product_of_two_operands_has_no_tile(step: Step) -> None:
    assert choose_tile(fold(of_rows_and_columns), LOCAL_BYTES, ITEMS) == TILE
    assert choose_tile(fold(step), LOCAL_BYTES, ITEMS) is None


def test_kernel_that_reads_its_result_has_no_tile() -> None:
    assert choose_tile(fold(of_rows_and_columns, access="rw"), LOCAL_BYTES, ITEMS) is None


def test_fold_whose_length_depends_on_the_row_has_no_tile() -> None:
    text = str(fold(of_rows_and_columns))
    assert "in i64(0)..k " in text
    kernel = parse_kernel(text.replace("in i64(0)..k ", "in i64(0)..i0 "))
    assert choose_tile(kernel, LOCAL_BYTES, ITEMS) is None


@pytest.mark.parametrize(
    ("dtype", "depth", "rows"),
    [(float32, 1, 64), (float32, 3, 64), (float64, 2, 64), (float64, 3, 32), (float64, 6, None)],
)
def test_work_items_have_fewer_rows_if_their_sums_would_not_be_registers(
    dtype: DType, depth: int, rows: int | None
) -> None:
    tile = choose_tile(fold(of_rows_and_columns, dtype, depth=depth), 1 << 20, ITEMS)
    assert (tile and tile.rows) == rows


@pytest.mark.parametrize(
    ("local_bytes", "items", "rows"),
    [(8704, 128, 64), (8703, 128, 32), (6655, 128, None), (0, 128, None), (LOCAL_BYTES, 127, None)],
)
def test_tile_fits_the_device(local_bytes: int, items: int, rows: int | None) -> None:
    tile = choose_tile(matrix_product(float32), local_bytes, items)
    assert (tile and tile.rows) == rows


@pytest.mark.parametrize(
    ("grid", "k", "fills"),
    [
        ([64, 64], 16, True),
        ([32, 128], 16, True),
        ([64, 64], 15, False),
        ([31, 999], 99, False),
        ([999, 31], 99, False),
        ([63, 65], 16, False),
    ],
)
def test_small_launches_are_not_staged(grid: Sequence[int], k: int, fills: bool) -> None:
    kernel = matrix_product(float32)
    sizes = dict.fromkeys(kernel.ints, k)
    assert fills_tiles(kernel, sizes, grid, points_min=4096) is fills


def test_groups_cover_a_grid_with_batches() -> None:
    assert TILE.items == (8, 16)
    assert TILE.groups([5, 64, 65]) == (5, 1, 2)
