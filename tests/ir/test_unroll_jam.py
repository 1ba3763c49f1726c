"""Unroll and jam: a kernel that computes several points at once has the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.dtypes import float32, int64
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import const, fma, fold_loop, load, reduce_loop
from dovetail.ir.unroll_jam import jammed_axis, unroll_jam
from dovetail.ir.verify import verify


def matmul() -> Kernel:
    b = KernelBuilder("matmul")
    x, y, out = (b.buffer(n, float32, a) for n, a in (("x", "r"), ("y", "r"), ("out", "w")))
    m, n, p = b.int("m"), b.int("n"), b.int("p")
    i, j = b.axis(m), b.axis(p)
    step = lambda k, c: (fma(load(x, i * n + k), load(y, k * p + j), c),)  # noqa: E731
    b.store(out, i * p + j, fold_loop(0, n, (const(0, float32),), step).results[0])
    return b.build()


@pytest.mark.parametrize("rows", [1, 3, 4, 8, 9])
def test_unroll_jam_has_the_same_bits_for_any_number_of_rows(rows: int) -> None:
    kernel, rng = matmul(), np.random.default_rng(rows)
    jammed = unroll_jam(kernel, 4)
    assert jammed is not None
    verify(jammed)
    x, y = rng.normal(size=(rows, 5)), rng.normal(size=(5, 3))
    sides = [[a.astype(np.float32).ravel() for a in (x, y, np.zeros((rows, 3)))] for _ in range(2)]
    tiles = -(-rows // 4)
    interpret(kernel, sides[0], [rows, 5, 3], [], [rows, 3])
    interpret(jammed, sides[1], [rows, 5, 3, tiles], [], [tiles, 3])
    assert jammed_axis(kernel) == 0
    assert sides[0][2].tobytes() == sides[1][2].tobytes()
    assert sides[0][2].any()


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 9])
def test_unroll_jam_along_both_axes_has_the_same_bits(columns: int) -> None:
    kernel, rng = matmul(), np.random.default_rng(columns)
    rows = unroll_jam(kernel, 2)
    assert rows is not None
    both = unroll_jam(rows, 4, axis=-1, apart=True)
    assert both is not None
    verify(both)
    assert str(both).count("load y") == 4 and str(both).count("load x") == 2
    x, y = rng.normal(size=(3, 5)), rng.normal(size=(5, columns))
    sides = [[a.astype(np.float32).ravel() for a in (x, y, np.zeros((3, columns)))] for _ in "ab"]
    wide = -(-columns // 4)
    interpret(kernel, sides[0], [3, 5, columns], [], [3, columns])
    interpret(both, sides[1], [3, 5, columns, 2, wide], [], [2, wide])
    assert sides[0][2].tobytes() == sides[1][2].tobytes()
    assert sides[0][2].any()


def test_shared_loads_of_neighbors_appear_once() -> None:
    jammed = unroll_jam(matmul(), 4)
    assert str(jammed).count("load y") == 1
    assert str(jammed).count("load x") == 4


def test_kernel_without_shared_loads_is_unchanged() -> None:
    b = KernelBuilder("row_sum")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i, j = b.axis(n), b.axis(n)
    total = reduce_loop("add", 0, n, lambda k: load(x, (i * n + j) * n + k))[0]
    b.store(out, i * n + j, total)
    assert unroll_jam(b.build(), 4) is None
    b = KernelBuilder("running")
    x, out, n = b.buffer("x", int64, "r"), b.buffer("out", int64, "w"), b.int("n")
    i, j = b.axis(n), b.axis(n)
    fold = fold_loop(0, n, (const(0, int64),), lambda k, c: (c + load(x, (i * n + j) * n + k),))
    b.store(out, i * n + j, fold.results[0])
    assert unroll_jam(b.build(), 4) is None


def test_fold_whose_length_depends_on_the_row_is_unchanged() -> None:
    b = KernelBuilder("triangle")
    x, y, out = (b.buffer(n, float32, a) for n, a in (("x", "r"), ("y", "r"), ("out", "w")))
    n = b.int("n")
    i, j = b.axis(n), b.axis(n)
    step = lambda k, c: (fma(load(x, i * n + k), load(y, k * n + j), c),)  # noqa: E731
    b.store(out, i * n + j, fold_loop(0, i, (const(0, float32),), step).results[0])
    assert unroll_jam(b.build(), 4) is None
