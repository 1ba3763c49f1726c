"""Folds that pack the elements selected by a condition, with compress instructions if the CPU
has them.
"""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.dtypes import DType, bool_, float32, float64, int64
from dovetail.extend import Kernel, Value
from dovetail.ir.analysis import trip_count
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import Store, cast, const, eq, fold_loop, load, where
from dovetail_cpu_llvm.compress_store import find_compress_store
from dovetail_cpu_llvm.render import render
from dovetail_cpu_llvm.schedule import schedule


def packing_kernel(d: DType = int64, step: int = 1, rest: bool = False) -> Kernel:
    """Build a kernel that packs the elements a mask selects, `step` places apart, or reads its
    packed output.
    """
    b = KernelBuilder("picked")
    mask, x = b.buffer("mask", bool_, "r"), b.buffer("x", d, "r")
    out, total = b.buffer("out", d, "rw"), b.buffer("total", int64, "w")
    n, one = b.int("n"), b.axis(const(1, int64))

    def each(k: Value, place: Value) -> Any:
        true = load(mask, k)
        value = load(out, k) if rest else load(x, k)
        return (place + cast(true, int64) * step,), [Store(out, place, value, true)]

    loop = fold_loop(one, n, (one,), each)
    b.effect(loop)
    b.store(total, one, loop.results[0])
    return b.build()


def fold_of(kernel: Kernel) -> Any:
    return next(s for s in kernel.body if not isinstance(s, Value | Store))


@pytest.mark.parametrize("d", [int64, float32, float64])
def test_packing_fold_uses_compress_store(d: DType) -> None:
    kernel = packing_kernel(d)
    assert find_compress_store(fold_of(kernel)) is not None
    assert "vector.compress" in render(kernel, schedule(kernel, 64))
    assert "vector.compress" not in render(kernel, schedule(kernel, 32))


def test_fold_that_does_not_pack_uses_no_compress_store() -> None:
    for kernel in (packing_kernel(dt.int16), packing_kernel(step=2), packing_kernel(rest=True)):
        assert find_compress_store(fold_of(kernel)) is None
        assert "vector.compress" not in render(kernel, schedule(kernel, 64))


@pytest.mark.parametrize("size", [1, 7, 8, 4095, 4097, 9001, 70_001, 400_003])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_nonzero_equals_numpy_at_every_density(size: int, density: float) -> None:
    a = np.random.default_rng(size).random(size) < density
    mask = dt.asarray(a, device="cpu")
    (found,) = dt.nonzero(mask)
    np.testing.assert_array_equal(found.numpy(), np.flatnonzero(a))
    x = np.random.default_rng(1).random(size).astype("f4")
    np.testing.assert_array_equal(dt.asarray(x, device="cpu")[mask].numpy(), x[a])
    part = dt.asarray(a, device="cpu")[size // 3 :]
    np.testing.assert_array_equal(dt.nonzero(part)[0].numpy(), np.flatnonzero(a[size // 3 :]))


@pytest.mark.parametrize("size", [9, 4097, 70_001])
def test_unique_equals_numpy_at_every_size(size: int) -> None:
    a = np.random.default_rng(size).integers(0, size // 3 + 1, size)
    values, counts = dt.unique(dt.asarray(a, device="cpu"), return_counts=True)
    want = np.unique(a, return_counts=True)
    for found, wanted in zip((values, counts), want, strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)
    made = dt.unique_counts(dt.asarray(a, device="cpu"))
    np.testing.assert_array_equal(made[1].numpy(), want[1])


def test_loop_with_a_selected_bound_is_weighed_by_the_larger_one() -> None:
    """With the smaller bound, few threads would scan a mask whose blocks may be empty."""
    b = KernelBuilder("searched")
    counts, out = b.buffer("counts", int64, "r"), b.buffer("out", int64, "w")
    i, n = b.axis(b.int("blocks")), b.int("n")
    stop = where(eq(load(counts, i), 0), i, n)
    loop = fold_loop(i, stop, (i,), lambda k, total: (total + k,))
    b.store(out, i, loop.results[0])
    found = fold_of(b.build())
    assert trip_count(found, {"n": 4096, "blocks": 9}, at=0) == 4096
    assert trip_count(found, {"n": 4096, "blocks": 9}) is None
