"""Cubed arrays whose chunks are tensors, and their sums without a trace of the chunks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import chunked

os.environ.setdefault("CUBED_BACKEND_ARRAY_API_MODULE", "dovetail")  # Cubed reads it once
cubed: Any = pytest.importorskip("cubed", reason="Cubed is one of the peers: pip install cubed")
xp: Any = pytest.importorskip("cubed.array_api")

A = np.arange(24, dtype=np.float32).reshape(6, 4) * 0.5 - 3
LONG = np.random.default_rng(0).normal(size=(2, 3 * 4096 + 100)).astype("f4")
WORK: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda xp, x: xp.exp(x) * 2 + xp.abs(x),
    "where": lambda xp, x: xp.where(x > 1, x, xp.zeros_like(x)),
    "astype": lambda xp, x: xp.astype(x, xp.float64) / 3,
    "centred": lambda xp, x: x - xp.mean(x, axis=0, keepdims=True),
    "sum of integers": lambda xp, x: xp.sum(xp.astype(x, xp.int16)),
    "slice": lambda xp, x: x[1:5, ::2],
    "positions": lambda xp, x: x[[0, 3, 5]],
    "transposed": lambda xp, x: xp.matrix_transpose(x),
    "matmul": lambda xp, x: x @ xp.matrix_transpose(x),
    "tensordot": lambda xp, x: xp.tensordot(x, x, axes=((1,), (1,))),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=0),
    "concat": lambda xp, x: xp.concat([x, x], axis=1),
    "stack": lambda xp, x: xp.stack([x, x]),
    "reshape": lambda xp, x: xp.reshape(x, (6, 2, 2)),
    "argmax": lambda xp, x: xp.argmax(x, axis=1),
    "var": lambda xp, x: xp.var(x, axis=1, correction=1),
    "full_like": lambda xp, x: xp.full_like(x, 3),
    "arange": lambda xp, x: xp.arange(5) * 2,
    **{
        name: lambda xp, x, n=name: getattr(xp, n)(x, axis=1)
        for name in ("mean", "std", "max", "min", "prod", "sum")
    },
    **{name: lambda xp, x, n=name: getattr(xp, n)(x > 0) for name in ("any", "all")},
}


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    return cubed.Spec(work_dir=str(tmp_path), allowed_mem="1GB")


@pytest.mark.parametrize("name", WORK)
def test_cubed_computation_equals_numpy(spec: Any, name: str) -> None:
    found = WORK[name](xp, cubed.from_array(A, chunks=(4, 2), spec=spec)).compute()
    want = WORK[name](np, A)
    assert type(found) is dt.Tensor and found.shape == want.shape
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5)


def test_functions_of_chunks_get_tensors(spec: Any) -> None:
    def doubled(block: dt.Tensor) -> dt.Tensor:
        assert type(block) is dt.Tensor
        return block + block

    x = cubed.from_array(A, chunks=(2, 2), spec=spec)
    assert cubed.map_blocks(doubled, x, dtype=x.dtype).compute().tolist() == (A + A).tolist()


@pytest.mark.parametrize("chunks", [(1, 4096), (2, 8192), (2, 1000), (1, 12388)])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "vector_norm"])
def test_reduction_has_the_bits_of_the_whole(spec: Any, name: str, chunks: Any) -> None:
    x = cubed.from_array(LONG, chunks=chunks, spec=spec)
    whole = getattr(dt.linalg if name == "vector_norm" else dt, name)
    for axis in (1, None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dt.DovetailWarning)
            found = np.asarray(getattr(chunked, name)(x, axis=axis).compute())
        want = whole(dt.asarray(LONG), axis=axis).numpy()
        assert found.dtype == want.dtype and found.tobytes() == want.tobytes()


@pytest.mark.parametrize("chunks", [256 * 13, 10_000, 65_536])
def test_product_has_the_bits_of_the_whole(spec: Any, chunks: int) -> None:
    a, b = (np.resize(LONG, shape) for shape in ((2, 66_000), (66_000, 3)))
    arrays = [
        cubed.from_array(a, chunks=(1, chunks), spec=spec),
        cubed.from_array(b, chunks=(chunks, 2), spec=spec),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dt.DovetailWarning)
        found = np.asarray(chunked.matmul(*arrays).compute())
    with dt.vendor_products(False):
        assert found.tobytes() == dt.matmul(dt.asarray(a), dt.asarray(b)).numpy().tobytes()
