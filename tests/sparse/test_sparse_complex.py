"""Sparse tensors of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

A = np.array([[0, 1 + 2j, 0], [3, 0, -4j], [0, 0, 0], [0.5j, 0, 2]], "c8")
B = np.array([[1j, 1, 0], [0, 0, 2], [0, 5, 0], [1, 0, 1j]], "c8")
M = (np.arange(6).reshape(3, 2) * (1 - 1j)).astype("c8")
CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda x, y, m: x + y,
    "product": lambda x, y, m: x * y,
    "scaled": lambda x, y, m: x * 2j,
    "conjugate": lambda x, y, m: x.conj(),
    "sizes": lambda x, y, m: abs(x),
    "sine": lambda x, y, m: dt.sin(x) if isinstance(x, dt.Tensor) else np.sin(x),
    "by dense": lambda x, y, m: x @ m,
    "by sparse": lambda x, y, m: x.T @ y,
    "row sums": lambda x, y, m: x.sum(axis=1),
    "all": lambda x, y, m: x.sum(),
}


@pytest.mark.parametrize("name", CASES)
def test_complex_sparse_ops_equal_numpy(device: dt.Device, name: str) -> None:
    x, y, m = dt.asarray(A), dt.asarray(B), dt.asarray(M)
    found = CASES[name](x.to_sparse(), y.to_sparse(), m)
    want = CASES[name](A, B, M)
    assert np.allclose(found.to_dense().numpy(), want, rtol=1e-5)


def test_gradients_reach_complex_values(device: dt.Device) -> None:
    x = dt.asarray(A).requires_grad_()
    (abs((x.to_sparse() * 2j).to_dense()) ** 2).sum().backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), 8 * A, rtol=1e-5)


def test_repr_shows_complex_entries() -> None:
    text = repr(dt.asarray(A, device="reference").to_sparse())
    assert "(0, 1) -> (1+2j)" in text and "dtype=complex64" in text
