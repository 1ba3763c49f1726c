"""Unroll-and-jam products: several rows at once, at every register width."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Kernel, KernelBuilder, fma, fold_loop, load
from dovetail.ir.language import const
from machine_code import compiler_for, run


def product() -> Kernel:
    """Build out[i, j] = sum of x[i, k] * y[place[k] + j], as in a convolution."""
    b = KernelBuilder("product")
    x, y = b.buffer("x", dt.float32, "r"), b.buffer("y", dt.float32, "r")
    place, out = b.buffer("place", dt.int64, "r"), b.buffer("out", dt.float32, "w")
    n, columns = b.int("n"), b.int("columns")
    i, j = b.axis(b.int("rows")), b.axis(columns)

    def step(k, total):  # type: ignore[no-untyped-def]
        return (fma(load(x, i * n + k), load(y, load(place, k) + j), total),)

    total = fold_loop(0, n, (const(0, dt.float32),), step).results[0]
    b.store(out, i * columns + j, total)
    return b.build()


@pytest.mark.parametrize("native", (16, 32, 64))
def test_unroll_jam_computes_remaining_rows(native: int) -> None:
    program = compiler_for(native).compile(product())
    assert program.schedule.unroll_jam > 1
    rng = np.random.default_rng(1)
    for rows in (1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 70):
        for columns in (1, 3, 8, 31, 32, 33, 70):
            x = rng.integers(-3, 4, (rows, 5)).astype("f4")
            y = rng.integers(-3, 4, (5, columns)).astype("f4")
            order = np.array([3, 0, 4, 1, 2])
            place, out = order * columns, np.full((rows, columns), np.nan, "f4")
            named = {"x": x, "y": y, "place": place, "out": out}
            ints = {"n": 5, "columns": columns, "rows": rows}
            run(program, named, ints, (rows, columns))
            assert (out == x @ y[order]).all(), (rows, columns)
