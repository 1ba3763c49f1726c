"""Random sparse tensors, and their dense arrays."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np

Array = np.ndarray[Any, Any]


def triples(
    rng: np.random.Generator, shape: tuple[int, ...], density: float = 0.3, dense: int = 0,
    dtype: Any = np.float64,
) -> tuple[Array, Array]:  # fmt: skip
    """Return random positions, some of them twice, unsorted, and small integral values."""
    sparse = shape[: len(shape) - dense]
    n = 0 if 0 in sparse else int(density * np.prod(sparse)) + 1
    at = np.stack([rng.integers(0, s, n) for s in sparse]) if sparse else np.zeros((0, n), int)
    values = rng.integers(-3, 4, (n, *shape[len(sparse) :]))
    return at, values > 0 if dtype is bool else values.astype(dtype)


def scattered(at: Array, values: Array, shape: tuple[int, ...]) -> Array:
    """Return the dense array of triples, by NumPy."""
    out = np.zeros(shape, values.dtype)
    (np.logical_or if values.dtype == bool else np.add).at(out, tuple(at), values)
    return out


def bits(x: dt.Tensor) -> list[Array]:
    """Return every bit of a result: for a sparse one its positions and values."""
    parts = [x.indices(), x.values()] if x.layout is dt.sparse_coo else [x]  # type: ignore[attr-defined]
    return [np.ascontiguousarray(p.detach().numpy()).view(np.uint8) for p in parts]
