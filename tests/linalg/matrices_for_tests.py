"""Matrices and comparisons for the tests of linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np

Array = np.ndarray[Any, Any]
DTYPES = ["float32", "float64", "complex64", "complex128"]
WIDE = ["float64", "complex128"]


def drawn(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    """Return normal samples; complex ones for a complex dtype."""
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        return (real + 1j * rng.standard_normal(shape)).astype(dtype)
    return real.astype(dtype)


def definite(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    """Return Hermitian, positive definite matrices."""
    a = drawn(*shape, dtype="complex128" if np.dtype(dtype).kind == "c" else "float64", seed=seed)
    return (a @ a.conj().swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def near(found: dt.Tensor, wanted: Any, tolerance: float = 1e-10) -> None:
    """Check the shape, the dtype if the other has one, and the values."""
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.numpy().dtype == wanted.dtype
    if found.dtype.part is dt.float32:
        tolerance = 2e-4
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


def hermitian(x: dt.Tensor) -> dt.Tensor:
    """Return the Hermitian part."""
    return (x + dt.conj(x).mT) / 2


def squared_magnitudes(x: dt.Tensor) -> dt.Tensor:
    """Return squared absolute values, which do not depend on signs and phases."""
    return dt.real(dt.conj(x) * x)


def taped(a: Array) -> dt.Tensor:
    """Return a tensor on the default device that requires a gradient."""
    return dt.asarray(a).requires_grad_()


def has_gradients(function: Callable[..., Any], *operands: Array) -> None:
    """Check the first and second derivatives against differences.

    The second on one device, since the bits of a gradient are the same everywhere; of complex
    numbers on a device that compiles, since the interpreter takes 20 s.
    """
    tensors = [taped(a) for a in operands]
    assert dt.autograd.gradcheck(function, tensors)
    if (tensors[-1].dtype is dt.float64) == (tensors[-1].device.type == "reference"):
        assert dt.autograd.gradgradcheck(function, tensors)
