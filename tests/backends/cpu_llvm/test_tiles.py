"""The number of points in a tile of kernels that compute one point at a time."""

from __future__ import annotations

from itertools import pairwise

import dovetail as dt
import numpy as np
import pytest
from dovetail.dtypes import float32
from dovetail.extend import Kernel
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import fold_loop, load
from dovetail.ops import arithmetic
from dovetail.sparse.gustavson import _popcount
from dovetail_cpu_llvm.compile import Compiler
from dovetail_cpu_llvm.render import render
from dovetail_cpu_llvm.schedule import (
    FOLD_POINTS,
    LOOP_POINTS_MAX,
    SCATTERED_TILE_POINTS,
    TILES_MIN,
    TILES_WANTED,
    schedule,
)


def sums_of_runs() -> Kernel:
    """Build points whose loops have loaded bounds: no two are alike."""
    b = KernelBuilder("runs")
    source, bounds = b.buffer("x", float32, "r"), b.buffer("bounds", dt.int64, "r")
    out = b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    start, stop = load(bounds, i), load(bounds, i + 1)
    first = load(source, start)

    def step(k, total):  # type: ignore[no-untyped-def]
        return (arithmetic.add(total, load(source, k)),)

    b.store(out, i, fold_loop(start + 1, stop, (first,), step).results[0])
    return b.build()


def test_many_points_share_a_tile() -> None:
    found = schedule(sums_of_runs(), 64)
    assert found.kind == "points" and found.tile == 1
    assert found.blocks([TILES_WANTED * LOOP_POINTS_MAX * 4]) == [LOOP_POINTS_MAX]
    assert found.blocks([TILES_WANTED * 3]) == [3]
    assert found.blocks([TILES_WANTED // 2]) == [FOLD_POINTS]
    assert found.blocks([TILES_MIN]) == [1]  # each point may be expensive, so all threads get some
    assert found.blocks([1]) == [1]


def test_short_rows_get_small_tiles() -> None:
    b = KernelBuilder("rows")
    source, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    rows, columns, length = b.int("n"), b.int("m"), b.int("length")
    i, j = b.axis(rows), b.axis(columns)

    def step(k, total):  # type: ignore[no-untyped-def]
        return (arithmetic.add(total, load(source, (i * columns + j) * length + k)),)

    start = load(source, (i * columns + j) * length)
    b.store(out, i * columns + j, fold_loop(1, length, (start,), step).results[0])
    found = schedule(b.build(), 64)
    assert found.kind == "points"
    assert found.blocks([TILES_WANTED * LOOP_POINTS_MAX, 5]) == [1, 5]
    assert found.blocks([TILES_WANTED * LOOP_POINTS_MAX, 0]) == [1, 1]


@pytest.mark.parametrize("rows", [TILES_WANTED * 2 + 1, TILES_WANTED * LOOP_POINTS_MAX + 7])
def test_last_tile_may_be_short(rows: int) -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 4, rows)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    x = rng.standard_normal(bounds[-1]).astype("f4")
    columns = np.concatenate([np.arange(n) for n in lengths])
    a = dt.sparse_csr_tensor(bounds, columns, x, (rows, 4), device="cpu")
    want = np.array([x[s:e].cumsum(dtype="f4")[-1] for s, e in pairwise(bounds)])
    assert a.sum(axis=1).numpy().tobytes() == want.astype("f4").tobytes()


def test_popcount_pattern_compiles_to_one_instruction() -> None:
    b = KernelBuilder("ones")
    source, out = b.buffer("x", dt.uint64, "r"), b.buffer("out", dt.int64, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, _popcount(load(source, i)))
    compiler = Compiler()
    kernel = b.build()
    ir = render(kernel, schedule(kernel, compiler.native))
    assert "ctpop" not in ir and "@llvm.ctpop" in str(compiler.optimize(ir))


def test_tile_of_strided_stores_covers_whole_cache_lines() -> None:
    """A copy to (columns, rows) of (rows, columns), in the order of the source."""

    def copied(turned: bool) -> Kernel:
        b = KernelBuilder("copied")
        source, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
        rows, columns = b.int("n"), b.int("m")
        i, j = b.axis(rows), b.axis(columns)
        b.store(out, j * rows + i if turned else i * columns + j, load(source, j * 3 + i * 5))
        return b.build()

    assert schedule(copied(True), 64).blocks([4, 8192]) == [1, SCATTERED_TILE_POINTS]
    assert schedule(copied(False), 64).blocks([4, 8192]) == [1, 8192]
    assert schedule(copied(True), 64).axes[-1] == 1  # the blocks of the last axis come last
