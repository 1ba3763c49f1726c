"""Products are summed in blocks of 256, and groups of 256 blocks; NumPy computes the same sums."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import PRODUCT_BLOCK, PRODUCT_BLOCKS

DEVICES = [str(d) for d in dt.devices()]
GROUP = PRODUCT_BLOCK * PRODUCT_BLOCKS
LENGTHS = (1, 255, 256, 257, 512, 1000, GROUP + 300)


def rounded_fma(a: Any, b: Any, total: Any) -> Any:
    """Return a * b + total for float32, rounded to float64 and then to float32."""
    return (a.astype("f8") * b.astype("f8") + total.astype("f8")).astype("f4")


def summed(x: Any, y: Any) -> Any:
    """Return the product of matrices of float32 or complex64, block by block."""
    total = None
    for group in range(0, x.shape[1], GROUP):
        in_group = None
        stop = min(x.shape[1], group + GROUP)
        for start in range(group, stop, PRODUCT_BLOCK):
            block = np.zeros((x.shape[0], y.shape[1]), x.dtype)
            for k in range(start, min(stop, start + PRODUCT_BLOCK)):
                block = add_product(x[:, k : k + 1], y[k : k + 1], block)
            in_group = block if in_group is None else in_group + block
        total = in_group if total is None else total + in_group
    return total


def add_product(a: Any, b: Any, total: Any) -> Any:
    """Return a * b + total; of complex numbers by two fused multiply-adds for each part."""
    if a.dtype.kind != "c":
        return rounded_fma(a, b, total)
    real = rounded_fma(-a.imag, b.imag, rounded_fma(a.real, b.real, total.real))
    return real + 1j * rounded_fma(a.imag, b.real, rounded_fma(a.real, b.imag, total.imag))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", LENGTHS)
def test_float32_product_equals_the_sums_of_numpy(k: int, device: str) -> None:
    generator = np.random.default_rng(k)
    a, b = generator.standard_normal((2, k)), generator.standard_normal((k, 3))
    a, b = a.astype("f4"), b.astype("f4")
    x, y = dt.asarray(a, device=device), dt.asarray(b, device=device)
    with dt.vendor_products(False):
        product = (x @ y).numpy()
    np.testing.assert_array_equal(product, summed(a, b))
    if device in ("cpu", "reference", "opencl"):  # cuBLAS has an order of its own
        np.testing.assert_array_equal((x @ y).numpy(), product)
        np.testing.assert_array_equal((x[1] @ y).numpy(), product[1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [*LENGTHS, 40_000])
def test_product_of_vectors_equals_the_sums_of_numpy(k: int, device: str) -> None:
    generator = np.random.default_rng(k)
    a, b = generator.standard_normal((2, 3, k)).astype("f4")
    want = [summed(a[i : i + 1], b[i, :, None])[0, 0] for i in range(3)]
    x, y = dt.asarray(a, device=device), dt.asarray(b, device=device)
    with dt.vendor_products(False):
        assert [(x[i] @ y[i]).item() for i in range(3)] == want
        assert dt.vecdot(x, y).tolist() == want
        assert dt.vecdot(x.mT, y.mT, axis=-2).tolist() == want
        assert dt.einsum("ik,ik->i", x, y).tolist() == want


@pytest.mark.parametrize("device", DEVICES)
def test_long_product_of_complex_vectors_equals_the_sums_of_numpy(device: str) -> None:
    generator = np.random.default_rng(4)
    a, b = (
        (generator.standard_normal(17_000) + 1j * generator.standard_normal(17_000)).astype("c8")
        for _ in "ab"
    )
    x, y = dt.asarray(a, device=device), dt.asarray(b, device=device)
    with dt.vendor_products(False):
        assert (x @ y).item() == summed(a[None], b[:, None])[0, 0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [1, 257, 600])
def test_complex64_product_equals_the_sums_of_numpy(k: int, device: str) -> None:
    generator = np.random.default_rng(k)
    a, b = (
        (generator.standard_normal((m, n)) + 1j * generator.standard_normal((m, n))).astype("c8")
        for m, n in ((2, k), (k, 3))
    )
    x, y = dt.asarray(a, device=device), dt.asarray(b, device=device)
    with dt.vendor_products(False):
        np.testing.assert_array_equal((x @ y).numpy(), summed(a, b))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_product_is_a_float32_product_that_is_rounded_once(name: str, device: str) -> None:
    dtype = getattr(dt, name)
    generator = np.random.default_rng(3)
    x = dt.asarray(generator.standard_normal((4, 700)), device=device).astype(dtype)
    y = dt.asarray(generator.standard_normal((700, 5)), device=device).astype(dtype)
    with dt.vendor_products(False):
        wide = x.astype(dt.float32) @ y.astype(dt.float32)
        assert (x @ y).tolist() == wide.astype(dtype).tolist()
