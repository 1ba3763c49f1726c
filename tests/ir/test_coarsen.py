"""Coarsening: several points per thread with the same bits, loads first, and no duplicate work."""

from __future__ import annotations

import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.dtypes import float32, int64
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.coarsen import coarsen
from dovetail.ir.language import Atomic, const, load, reduce_loop
from dovetail.ir.verify import verify


def chain(access: str = "r") -> Kernel:
    """Build out[i, j] = x[i, j] * c + row[i], and if that is above 0, also a store to more."""
    b = KernelBuilder("chain")
    x, row = b.buffer("x", float32, access), b.buffer("row", float32, "r")
    out, more = b.buffer("out", float32, "w"), b.buffer("more", float32, "w")
    m, n, c = b.int("m"), b.int("n"), b.scalar("c", float32)
    i, j = b.axis(m), b.axis(n)
    value = load(x, i * n + j) * c + load(row, i)
    b.store(out, i * n + j, value)
    b.store(more, i * n + j, value, when=const(0.0, float32) < value)
    return b.build()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 11, 12, 13])
def test_coarsened_kernel_has_the_same_bits_for_any_size(n: int) -> None:
    kernel, rng = chain(), np.random.default_rng(n)
    wide = coarsen(kernel, 4)
    assert wide is not None
    verify(wide)
    x, row = rng.normal(size=(3, n)).astype("f4").ravel(), rng.normal(size=3).astype("f4")
    plain, joined = ([x.copy(), row, np.zeros_like(x), np.zeros_like(x)] for _ in range(2))
    step = -(-n // 4)
    interpret(kernel, plain, [3, n], [0.7], [3, n])
    interpret(wide, joined, [3, n, step], [0.7], [3, step])
    assert plain[2].tobytes() == joined[2].tobytes() and plain[3].tobytes() == joined[3].tobytes()
    assert (plain[2].all() and plain[3].any() and not plain[3].all()) or n < 3


def test_coarsened_kernel_loads_first_and_shares_invariant_values() -> None:
    text = str(coarsen(chain(), 4))
    assert text.count("load x") == text.count("store out") == text.count("store more") == 4
    assert text.count("load row") == 1
    assert text.rindex("load") < text.index("store")


def test_kernels_that_cannot_be_coarsened_return_none() -> None:
    assert coarsen(chain("rw"), 4) is None
    b = KernelBuilder("loop")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)
    b.store(out, i, reduce_loop("add", 0, n, lambda k: load(x, k))[0])
    assert coarsen(b.build(), 4) is None
    b = KernelBuilder("atomic")
    counts, n = b.buffer("counts", int64, "rw"), b.int("n")
    b.effect(Atomic("add", counts, b.axis(n), const(1, int64)))
    assert coarsen(b.build(), 4) is None
    b = KernelBuilder("point")
    x = b.buffer("x", float32, "w")
    b.store(x, const(0, int64), const(1.0, float32))
    assert coarsen(b.build(), 4) is None
