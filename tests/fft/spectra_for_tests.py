"""Samples and comparisons for the tests of Fourier transforms."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np

Array = np.ndarray[Any, Any]
EPS = {"float32": 1.2e-7, "complex64": 1.2e-7, "float64": 2.3e-16, "complex128": 2.3e-16}


def drawn(*shape: int, dtype: str = "complex128", seed: int = 0) -> Array:
    """Return normal samples."""
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype[0] == "c" else real).astype(dtype)


def near(found: dt.Tensor, wanted: Any, times: float = 1.0) -> None:
    """Check the shape, and that the root mean square error is of the order of eps log n."""
    got, right = found.numpy(), np.asarray(wanted)
    assert got.shape == right.shape
    assert got.dtype.kind == right.dtype.kind
    tolerance = times * EPS[got.dtype.name] * (1 + np.log2(max(right.size, 1)))
    assert np.linalg.norm(got - right) <= tolerance * np.linalg.norm(right) + 1e-300
