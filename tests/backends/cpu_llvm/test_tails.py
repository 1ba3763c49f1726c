"""Rows that do not fill whole vectors, at every register width."""

from __future__ import annotations

from itertools import pairwise

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Kernel, KernelBuilder, fma, fold_loop, load
from dovetail.ir.language import cast, const, where
from dovetail_cpu_llvm.schedule import schedule
from machine_code import compiler_for, run

PITCH = 150  # row length of the result: elements beyond its columns must keep their values


def product(folds: int = 1) -> Kernel:
    """Build out[i, j] = sum of x[k] * y[which[k] * columns + j], k in bounds[i]..bounds[i + 1]
    - 1.
    """
    b = KernelBuilder("product")
    bounds, which = b.buffer("bounds", dt.int32, "r"), b.buffer("which", dt.int32, "r")
    x, y = b.buffer("x", dt.float32, "r"), b.buffer("y", dt.float32, "r")
    out = b.buffer("out", dt.float32, "w")
    columns = b.int("columns")
    i, j = b.axis(b.int("rows")), b.axis(columns)

    def step(k, total):  # type: ignore[no-untyped-def]
        at = cast(load(which, k), dt.int64) * columns + j
        return (fma(load(x, k), load(y, at), total),)

    first, end = (cast(load(bounds, at), dt.int64) for at in (i, i + 1))
    total = const(0, dt.float32)
    for _ in range(folds):
        total = fold_loop(first, end, (total,), step).results[0]
    b.store(out, i * PITCH + j, total)
    return b.build()


@pytest.mark.parametrize("native", (16, 32, 64))
def test_narrow_rows_use_narrow_vectors(native: int) -> None:
    program = compiler_for(native).compile(product())
    s = program.schedule
    assert s.kind == "lanes" and s.tails == (native // 4, native // 2) and s.width == native
    for w in (*s.tails, s.width):
        assert f"masked.load.v{w}f32" in program.source
    rng = np.random.default_rng(1)
    bounds = np.array([0, 3, 3, 4, 9], "i4")
    which, x = rng.integers(0, 7, 9).astype("i4"), rng.integers(-3, 4, 9).astype("f4")
    for columns in (*range(1, 20), 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 81, 96, 97, 128, 130):
        y = rng.integers(-3, 4, (7, columns)).astype("f4")
        out, grid = np.full((4, PITCH), np.nan, "f4"), (4, columns)
        named = {"bounds": bounds, "which": which, "x": x, "y": y, "out": out}
        ints = {"columns": columns, "rows": 4}
        for tile in (s.blocks(grid)[-1], PITCH):
            run(program, named, ints, grid, (1, tile))
            expected = [(x[a:b, None] * y[which[a:b]]).sum(0) for a, b in pairwise(bounds)]
            assert (out[:, :columns] == np.array(expected)).all(), (columns, tile)
            assert np.isnan(out[:, columns:]).all(), (columns, tile)
            out[:] = np.nan


def test_long_bodies_have_no_tail_copies() -> None:
    assert schedule(product(1), 64).tails
    assert not schedule(product(6), 64).tails


def pairs(step: int) -> Kernel:
    """Build out[i, j] = max of x[i, j * step], x[i, j * step + 1]: a pooling if the step is 2."""
    b = KernelBuilder("pairs")
    x, out = b.buffer("x", dt.float32, "r"), b.buffer("out", dt.float32, "w")
    pitch = b.int("pitch")
    i, j = b.axis(b.int("rows")), b.axis(b.int("columns"))
    at = i * pitch + j * step
    first, second = load(x, at), load(x, at + 1)
    b.store(out, i * PITCH + j, where(first < second, second, first))
    return b.build()


def test_rows_of_elements_apart_use_narrow_vectors() -> None:
    assert schedule(pairs(2), 64).tails == (8, 16)
    assert not schedule(pairs(1), 64).tails


@pytest.mark.parametrize("native", (16, 32, 64))
def test_narrow_vectors_of_elements_apart_have_the_right_values(native: int) -> None:
    program = compiler_for(native).compile(pairs(2))
    for columns in (*range(1, 20), 31, 32, 33, 47, 65):
        x = np.random.default_rng(columns).standard_normal((3, 2 * columns)).astype("f4")
        out = np.full((3, PITCH), np.nan, "f4")
        ints = {"pitch": 2 * columns, "rows": 3, "columns": columns}
        run(program, {"x": x, "out": out}, ints, (3, columns), (1, PITCH))
        assert (out[:, :columns] == x.reshape(3, columns, 2).max(-1)).all(), columns
        assert np.isnan(out[:, columns:]).all(), columns
