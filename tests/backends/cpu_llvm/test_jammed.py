"""Products whose rows are computed several at once, at every width that processors have."""

from __future__ import annotations

import ctypes
import math

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Kernel, KernelBuilder, fma, fold_loop, load
from dovetail.loops.language import const
from dovetail_cpu_llvm.compile import Compiler


def product() -> Kernel:
    """out[i, j] = sum of x[i, k] * y[place[k] + j], as of a convolution."""
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
def test_rows_that_are_left_over_are_computed(native: int) -> None:
    compiler = Compiler()
    if native > compiler.native:
        pytest.skip("the processor has no such registers")
    compiler.native = native
    program = compiler.compile(product())
    assert program.schedule.unroll_jam > 1
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(program.address)
    rng = np.random.default_rng(1)
    for rows in (1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 70):
        for columns in (1, 3, 8, 31, 32, 33, 70):
            x = rng.integers(-3, 4, (rows, 5)).astype("f4")
            y = rng.integers(-3, 4, (5, columns)).astype("f4")
            order = np.array([3, 0, 4, 1, 2])
            place, out = order * columns, np.full((rows, columns), np.nan, "f4")
            grid = (rows, columns)
            blocks = program.schedule.blocks(grid)
            arrays = [a.ctypes.data for a in (x, y, place, out)]

            named = {"x": arrays[0], "y": arrays[1], "place": arrays[2], "out": arrays[3]}
            ints = {"n": 5, "columns": columns, "rows": rows}
            slots = [
                *(named[b.name] for b in program.kernel.buffers),
                *(ints[n] for n in program.kernel.ints),
            ]
            words = np.array([*slots, *grid, *blocks], dtype=np.int64)
            tiles = math.prod(-(-n // b) for n, b in zip(grid, blocks, strict=True))
            run(words.ctypes.data, 0, tiles)
            assert (out == x @ y[order]).all(), (rows, columns)
