"""The same bits on every device: the conformance kit's checks at more sizes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from sparse_samples import bits

DEVICES = [
    pytest.param(str(d), marks=[pytest.mark.exhaustive] if d.index else [])
    for d in dt.devices()
    if d.type != "reference"
]


@lru_cache(1)
def expected(dtype: Any) -> list[list[Any]]:
    """Return the bits of the reference, computed once, without views, which would keep tensors
    alive.
    """
    return [[a.copy() for a in bits(x)] for x in everything("reference", dtype)]


def everything(device: str, dtype: Any, scale: int = 1) -> list[Any]:
    """Return results of all ops that have kernels of their own, on many entries."""
    rng = np.random.default_rng(0)
    n, m, k = 90 * scale, 70 * scale, 800 * scale
    at = np.stack([rng.integers(0, n, k), rng.integers(0, m, k)])
    values = dt.asarray(rng.normal(size=k), device=device).astype(dtype)
    x = dt.sparse_coo_tensor(dt.asarray(at, device=device), values, (n, m))
    wide = dt.asarray(rng.normal(size=(m, 33)), device=device).astype(dtype)
    vector = dt.asarray(rng.normal(size=m), device=device).astype(dtype)
    return [
        x.coalesce(), x.to_dense(), x + x[:, ::-1], x * x[::-1], x @ wide, x @ vector,
        wide.T @ x.T, x.T @ x[:, :50], dt.sum(x, axis=0), dt.sum(x, axis=1), dt.sum(x),
        dt.prod(x, axis=1), dt.max(x, axis=0), dt.argmin(x, axis=1), dt.softmax(x, axis=0),
        x[:, 3:40], x[[5, 7, 5]],
    ]  # fmt: skip


def gradients(device: str) -> list[Any]:
    """Return gradients of products and sums."""
    rng = np.random.default_rng(1)
    values = dt.asarray(rng.normal(size=900).astype("f4"), device=device).requires_grad_()
    at = np.stack([rng.integers(0, 50, 900), rng.integers(0, 40, 900)])
    wide = dt.asarray(rng.normal(size=(40, 7)).astype("f4"), device=device).requires_grad_()
    x = dt.sparse_coo_tensor(at, values, (50, 40))
    loss = dt.sum((x @ wide) ** 2) + dt.sum(dt.max(x, axis=1).to_dense() ** 3)
    return list(dt.grad(loss, [values, wide]))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize(
    "dtype",
    [dt.float32, *(pytest.param(d, marks=pytest.mark.exhaustive) for d in (dt.float16, dt.int32))],
)
def test_bits_equal_those_of_the_reference(name: str, dtype: Any) -> None:
    with dt.vendor_products(False):
        found, want = everything(name, dtype), expected(dtype)
    for i, (x, y) in enumerate(zip(found, want, strict=True)):
        for a, b in zip(bits(x), y, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"result {i}")


@pytest.mark.parametrize("name", DEVICES)
def test_gradients_have_the_bits_of_the_reference(name: str) -> None:
    with dt.vendor_products(False):
        for x, y in zip(gradients(name), gradients("reference"), strict=True):
            np.testing.assert_array_equal(bits(x)[0], bits(y)[0])


def test_bits_do_not_depend_on_threads() -> None:
    backend = dt.plugins.open_device("cpu").backend
    before = backend.get_num_threads()
    try:
        backend.set_num_threads(1)
        one = [bits(x) for x in everything("cpu", dt.float32, 40)]
        backend.set_num_threads(2)
        two = [bits(x) for x in everything("cpu", dt.float32, 40)]
    finally:
        backend.set_num_threads(before)
    assert all(
        (a == b).all() for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True)
    )
