"""Both parts of a complex128 number are loaded and stored together."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import load
from dovetail.ir.legalize import legalize
from dovetail.ir.target import Capabilities

interleaved_access = pytest.importorskip("dovetail_cpu_llvm.interleaved_access")


def apart() -> Kernel:
    """Build a kernel that stores at 2 i and at 2 i + 3."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", dt.float64, "r"), b.buffer("out", dt.float64, "w")
    i = b.axis(b.int("n")) * 2
    b.store(out, i, load(x, i))
    b.store(out, i + 3, load(x, i))
    return b.build()


def test_both_parts_of_complex128_use_one_access() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", dt.complex128, "r"), b.buffer("out", dt.complex128, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i))
    assert len(interleaved_access.paired_accesses(legalize(b.build(), Capabilities()).body)) == 2
    assert interleaved_access.paired_accesses(apart().body) == {}


@pytest.mark.parametrize("n", [1, 7, 16, 33, 1000])
def test_paired_accesses_move_the_same_values_as_single_ones(n: int) -> None:
    z = (np.arange(3 * n) + 1j * np.arange(3 * n)[::-1]).reshape(3, n)
    x = dt.asarray(z, device="cpu")
    guard = dt.full((3, n + 2), 9j, dtype=dt.complex128, device="cpu")
    guard[:, 1:-1] = x * 2
    assert np.array_equal(guard[:, 1:-1].numpy(), z * 2)
    assert (guard[:, 0] == 9j).all() and (guard[:, -1] == 9j).all()
    assert np.array_equal((x.T + 1).numpy(), z.T + 1)
    assert np.allclose(x.sum(axis=1).numpy(), z.sum(axis=1))
    assert np.allclose(x.sum(axis=0).numpy(), z.sum(axis=0))
