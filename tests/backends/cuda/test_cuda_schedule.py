"""The schedule of a launch, by kernel and sizes, and the rendered text."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

from cstyle_cases import reduction
from dovetail.dtypes import float32, float64
from dovetail.extend import (
    CompileError,
    DType,
    Kernel,
    KernelBuilder,
    Value,
    cast,
    load,
    parse_kernel,
    reduce_loop,
)
from dovetail.ir.language import const, where
from dovetail_cuda import schedule
from dovetail_cuda.compile import compile_cubin
from dovetail_cuda.render import (
    LANES,
    THREADS,
    ColumnStyle,
    CudaStyle,
    WarpStyle,
    grid_launch_shape,
)
from places import GOLDEN

BIG = 1 << 24


def elementwise(dtype: DType, operands: int) -> Kernel:
    b = KernelBuilder("sum")
    xs = [b.buffer(f"x{i}", dtype, "r") for i in range(operands)]
    out, i = b.buffer("out", dtype, "w"), b.axis(b.int("n"))
    total: Value = const(0.0, dtype)
    for x in xs:
        total = total + load(x, i)
    b.store(out, i, total)
    return b.build()


def plus(second: str) -> Kernel:
    """Build x plus itself, its transpose, a row or a column."""
    b = KernelBuilder("plus")
    x, y, out = (b.buffer(n, float32, a) for n, a in (("x", "r"), ("y", "r"), ("out", "w")))
    m, n = b.int("m"), b.int("n")
    i, j = b.axis(m), b.axis(n)
    at = {"itself": i * n + j, "its transpose": i + j * m, "a row": j, "a column": i}[second]
    b.store(out, i * n + j, load(x, i * n + j) + load(y, at))
    return b.build()


def best_schedule(kernel: Kernel, ints: list[int], grid: list[int]) -> str:
    return schedule.best(kernel, ints, grid)


@pytest.mark.parametrize(
    ("dtype", "operands", "points"),
    [(float32, 1, 8), (float32, 2, 4), (float32, 3, 2), (float64, 2, 2), (float64, 4, 1)],
)
def test_coarsening_keeps_a_fixed_number_of_bytes_in_flight(
    dtype: DType, operands: int, points: int
) -> None:
    kernel = elementwise(dtype, operands)
    assert schedule.points_per_thread(kernel) == points
    name = best_schedule(kernel, [BIG], [BIG])
    assert name == (schedule.COARSENED if points > 1 else schedule.PLAIN)
    ints, grid = schedule.schedule(kernel, name).sizes([BIG + 1], [BIG + 1])
    assert grid == (-(-(BIG + 1) // points),) and ints[1:] == (grid if points > 1 else ())
    source = schedule.schedule(kernel, name).source()
    assert len(re.findall(r"= x0\[", source)) == points
    assert source.rindex("= x0[") < source.index("out[")


def test_small_and_narrow_grids_are_not_coarsened() -> None:
    assert best_schedule(elementwise(float32, 1), [1000], [1000]) == schedule.PLAIN
    b = KernelBuilder("row")
    x, out, m, n = (
        b.buffer("x", float32, "r"),
        b.buffer("out", float32, "w"),
        b.int("m"),
        b.int("n"),
    )
    i, j = b.axis(m), b.axis(n)
    b.store(out, i * n + j, load(x, j))
    kernel = b.build()
    assert best_schedule(kernel, [BIG, 3], [BIG, 3]) == schedule.PLAIN
    assert best_schedule(kernel, [3, BIG], [3, BIG]) == schedule.COARSENED


@pytest.mark.parametrize("second", ["itself", "its transpose", "a row", "a column"])
def test_transposes_use_square_blocks(second: str) -> None:
    kernel, sizes = plus(second), [4096, 4096]
    square = second == "its transpose"
    assert schedule.reads_transposed(kernel) == square
    assert best_schedule(kernel, sizes, sizes) == (schedule.PLAIN if square else schedule.COARSENED)
    threads = schedule.launch_shape(kernel, schedule.schedule(kernel, schedule.PLAIN), sizes)[3:]
    assert threads == ((LANES, THREADS // LANES, 1) if square else (THREADS, 1, 1))


def test_large_products_are_staged() -> None:
    kernel = parse_kernel((GOLDEN / "matmul.txt").read_text())
    assert schedule.first(kernel) == schedule.PLAIN == best_schedule(kernel, [255] * 3, [255, 256])
    assert best_schedule(kernel, [256] * 3, [256] * 2) == schedule.STAGED
    staged = schedule.schedule(kernel, schedule.STAGED)
    assert schedule.launch_shape(kernel, staged, [65, 129]) == (3, 2, 1, 16, 8, 1)
    assert schedule.launch_shape(kernel, staged, [70_000 * 64, 1]) == (1, 65535, 1, 16, 8, 1)
    assert "__launch_bounds__(128)" in staged.source()


def test_large_products_of_few_terms_share_loads() -> None:
    kernel = parse_kernel((GOLDEN / "matmul.txt").read_text())
    assert best_schedule(kernel, [15] * 3, [512] * 2) == schedule.PLAIN
    assert best_schedule(kernel, [15] * 3, [1025] * 2) == schedule.JAMMED
    ints, grid = schedule.schedule(kernel, schedule.JAMMED).sizes([1025] * 3, [1025] * 2)
    assert grid == (129, 257) and ints == (1025, 1025, 1025, 129, 257)
    source = schedule.schedule(kernel, schedule.JAMMED).source()
    assert len(re.findall(r"= x\[", source)) == 8 and len(re.findall(r"= y\[", source)) == 4
    assert source.count("__fmaf_rn") == 32


def test_reductions_use_a_warp_per_row_or_a_block_of_columns() -> None:
    rows, columns = reduction("add", [float32]), reduction("add", [float32], axis=0)
    assert schedule.first(rows) == schedule.WARP and schedule.first(columns) == schedule.PLAIN
    for n in (schedule.THREAD_ELEMENTS_MAX - 1, schedule.THREAD_ELEMENTS_MAX):
        short = n < schedule.THREAD_ELEMENTS_MAX
        assert best_schedule(rows, [10, n], [10]) == (schedule.PLAIN if short else schedule.WARP)
        assert best_schedule(columns, [10, n], [10]) == (
            schedule.PLAIN if short else schedule.COLUMNS
        )
    assert "__shfl_down_sync" in schedule.schedule(rows, schedule.WARP).source()
    assert "__syncthreads" in schedule.schedule(columns, schedule.COLUMNS).source()


def test_columns_with_varying_bounds_share_no_barrier() -> None:
    b = KernelBuilder("ragged")
    x, ends, out = (b.buffer(n, float32, a) for n, a in (("x", "r"), ("ends", "r"), ("out", "w")))
    m, n = b.int("m"), b.int("n")
    chunk, i = b.axis(m), b.axis(n)
    same = where(chunk * 5 < n, chunk * 5, n)
    total = reduce_loop("add", same, n, lambda k: load(x, k * n + i))[0]
    b.store(out, i, total)
    assert best_schedule(b.build(), [9, 9], [9, 9]) == schedule.COLUMNS
    own = cast(load(ends, i), n.dtype)
    b.store(out, i, reduce_loop("add", 0, own, lambda k: load(x, k * n + i))[0])
    assert best_schedule(b.build(), [9, 9], [9, 9]) == schedule.PLAIN


def test_column_blocks_fit_into_shared_memory() -> None:
    b = KernelBuilder("several")
    x, n = b.buffer("x", float64, "r"), b.int("n")
    i = b.axis(n)
    for count, name in enumerate(("argmax", "argmin", "add", "mul", "max"), 1):
        update = (
            (lambda k: (load(x, k * n + i), k)) if count < 3 else (lambda k: load(x, k * n + i))
        )
        out = b.buffer(f"out{count}", float64, "w")
        b.store(out, i, reduce_loop(name, 0, n, update)[0])
        kernel = b.build()
        name = schedule.COLUMNS if count < 5 else schedule.PLAIN
        assert best_schedule(kernel, [100], [100]) == name
        if count == 4:
            compile_cubin(schedule.schedule(kernel, name).source(), "sm_75")
    with pytest.raises(CompileError, match="shared"):
        compile_cubin(schedule.schedule(kernel, schedule.COLUMNS).source(), "sm_75")


def test_launch_shapes_of_each_style() -> None:
    plain, warp, columns = CudaStyle(), WarpStyle(), ColumnStyle()
    assert grid_launch_shape(plain, []) == (1, 1, 1, 1, 1, 1)
    assert grid_launch_shape(plain, [1000]) == (4, 1, 1, 256, 1, 1)
    assert grid_launch_shape(plain, [1000, 3]) == (1, 16, 1, 4, 64, 1)
    assert grid_launch_shape(plain, [2, 3, 70000, 5]) == (1, 2188, 6, 8, 32, 1)
    assert grid_launch_shape(plain, [1 << 40, 1, 1]) == (1, 1, 65535, 1, 1, 1)
    assert grid_launch_shape(warp, [5, 17]) == (3, 5, 1, 32, 8, 1)
    assert grid_launch_shape(columns, [5, 33]) == (2, 5, 1, 32, 32, 1)
