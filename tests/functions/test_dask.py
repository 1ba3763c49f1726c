"""Dask arrays whose chunks are tensors, through NumPy's protocols."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import dask.array as da
import dovetail as dt
import numpy as np
import pytest
from dask.sizeof import sizeof

A = np.arange(24, dtype=np.float32).reshape(6, 4) * 0.5 - 3
WORK: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.exp(x) * 2 + x,
    "where": lambda x: (da if isinstance(x, da.Array) else np).where(x > 1, x, 0),
    "with NumPy": lambda x: x + np.ones(4, np.float32),
    "clip": lambda x: x.clip(-1, 2),
    "astype": lambda x: x.astype("float64") / 3,
    "centred": lambda x: x - x.mean(axis=0),
    "slice": lambda x: x[1:5, ::2],
    "one row": lambda x: x[3],
    "positions": lambda x: x[[0, 3, 5]],
    "mask": lambda x: x[x > 1],
    "transposed": lambda x: x.T,
    "matmul": lambda x: x @ x.T,
    "dot": lambda x: x.dot(x.T),
    "tensordot": lambda x: np.tensordot(x, x, axes=((1,), (1,))),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "stack": lambda x: np.stack([x, x]),
    "ones_like": np.ones_like,
    "full_like": lambda x: np.full_like(x, 3),
    "argmax of all": lambda x: x.argmax(),
    **{f"{name} of all": lambda x, n=name: getattr(x, n)() for name in ("sum", "mean", "std")},
    **{
        f"{name} of rows": lambda x, n=name: getattr(x, n)(axis=1)
        for name in ("sum", "mean", "max", "min", "prod", "std", "var", "any", "all", "argmin")
    },
}


@pytest.fixture
def dask_array(device: dt.Device) -> da.Array:
    return da.from_array(dt.asarray(A), chunks=(2, 2), asarray=False)


@pytest.mark.parametrize("name", WORK)
def test_dask_computation_equals_numpy(device: dt.Device, dask_array: da.Array, name: str) -> None:
    found, want = WORK[name](dask_array).compute(scheduler="synchronous"), WORK[name](A)
    assert type(found) is dt.Tensor and found.device is device and found.shape == want.shape
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_dask_computation_runs_on_each_scheduler(dask_array: da.Array, scheduler: str) -> None:
    if scheduler == "processes" and sys.modules.get("sparse", sys) is None:  # see conftest.py
        pytest.skip("PyData's sparse is not installed: Dask's processes take the folder for it")
    found = (dask_array * 2).sum(axis=0).compute(scheduler=scheduler, num_workers=2)
    assert type(found) is dt.Tensor and found.tolist() == (A * 2).sum(axis=0).tolist()


def test_map_blocks_gets_tensors(device: dt.Device, dask_array: da.Array) -> None:
    def doubled(block: dt.Tensor) -> dt.Tensor:
        assert type(block) is dt.Tensor
        return block + block

    kept = dask_array.map_blocks(doubled).persist(scheduler="synchronous")
    assert (
        type(kept._meta) is dt.Tensor
        and kept.rechunk((3, 4)).compute().tolist() == (A + A).tolist()
    )
    here = da.from_array(A, chunks=(3, 4)).map_blocks(dt.asarray, meta=dt.empty((0, 0)))
    assert (here + 1).compute().device is device


def test_map_overlap_equals_numpy(dask_array: da.Array) -> None:
    def smooth(block: Any) -> Any:
        return block[:-2] + block[2:]

    found = dask_array.map_overlap(smooth, depth={0: 1, 1: 0}, boundary=0, trim=False, dtype="f4")
    padded = np.pad(A, ((1, 1), (0, 0)))
    assert found.compute(scheduler="synchronous").tolist() == (padded[:-2] + padded[2:]).tolist()


@pytest.mark.parametrize("k", [2, -3])
def test_topk_equals_numpy(device: dt.Device, dask_array: da.Array, k: int) -> None:
    found = da.topk(dask_array, k, axis=0).compute(scheduler="synchronous")
    want = np.sort(A, axis=0)
    assert type(found) is dt.Tensor and found.device is device
    assert found.tolist() == (want if k < 0 else want[::-1])[: abs(k)].tolist()


def test_missing_numpy_function_is_named(dask_array: da.Array) -> None:
    with pytest.raises(TypeError, match=r"np\.spacing: dovetail has no such function"):
        dask_array.map_blocks(np.spacing, dtype="f4").compute(scheduler="synchronous")


# --- the protocols, without Dask


def test_numpy_creation_functions_like_a_tensor_return_tensors(device: dt.Device) -> None:
    x = dt.ones((2, 3), dtype=dt.float64)
    made = [
        np.asarray([1, 2], like=x), np.array([1.5], ndmin=2, like=x), np.arange(3, like=x),
        np.zeros(2, like=x), np.full((2,), 7, like=x), np.ones_like(x, shape=(4,)),
        np.full_like(x, 2, dtype="f4", shape=3), np.asanyarray([1, 2], like=x),
        np.ascontiguousarray([1], like=x), np.identity(2, like=x), np.tri(2, 3, 1, like=x),
    ]  # fmt: skip
    assert all(type(y) is dt.Tensor and y.device is device for y in made)
    shapes = [(2,), (1, 1), (3,), (2,), (2,), (4,), (3,), (2,), (1,), (2, 2), (2, 3)]
    assert [y.shape for y in made] == shapes
    assert made[5].dtype == "float64" and made[6].dtype == "float32"
    assert made[-1].tolist() == np.tri(2, 3, 1).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda **like: np.arange(1, 7, 2, np.int32, **like),
        lambda **like: np.arange(4, dtype="f4", **like),
        lambda **like: np.zeros((2, 3), np.int16, "C", **like),
        lambda **like: np.ones(shape=2, dtype=bool, order="F", **like),
        lambda **like: np.full((2,), 3, np.float64, **like),
        lambda **like: np.eye(2, 3, 1, np.int64, **like),
        lambda **like: np.eye(N=2, M=3, k=-1, dtype="f8", **like),
        lambda **like: np.identity(3, np.int8, **like),
        lambda **like: np.tri(3, 4, -1, np.int64, **like),
        lambda **like: np.asanyarray([1, 2], np.int32, **like),
        lambda **like: np.array([1.5, 2], "f4", copy=True, ndmin=3, **like),
    ],
)  # fmt: skip
def test_creation_functions_like_a_tensor_accept_numpy_arguments(
    device: dt.Device, make: Any
) -> None:
    got, want = make(like=dt.ones(1)), make()
    assert type(got) is dt.Tensor and got.device is device and got.dtype == want.dtype
    assert got.shape == want.shape and got.tolist() == want.tolist()


def test_dask_creation_functions_like_a_tensor_have_tensor_chunks(device: dt.Device) -> None:
    x = da.arange(5, chunks=2, like=dt.ones(1))
    assert type(x.compute(scheduler="synchronous")) is dt.Tensor
    y = da.tri(3, k=1, like=da.from_array(dt.ones(1), asarray=False))
    assert y.compute(scheduler="synchronous").tolist() == np.tri(3, k=1).tolist()


def test_sizeof_a_tensor_is_its_elements(device: dt.Device) -> None:
    """Dask plans memory and transfers of workers with it."""
    x = dt.zeros((1000, 10), dtype=dt.float64)
    assert 80_000 < sizeof(x) < 80_500
    assert 8000 < sizeof(x[:, 0]) < 8500


def test_ufuncs_compute_in_the_requested_dtype(device: dt.Device) -> None:
    x = dt.asarray([1 << 24, 1], dtype=dt.int32)
    found = np.add(x, x, dtype=np.float64)
    assert found.dtype == np.float64 and np.add(x, 1, dtype="f4").tolist() == [1 << 24, 2]
    assert np.less(x, 2, dtype=bool).tolist() == [False, True]


def test_unravel_index_and_ravel_multi_index_of_tensors(device: dt.Device) -> None:
    found = np.unravel_index(dt.asarray([0, 5, 11]), (3, 4))
    assert [x.tolist() for x in found] == [[0, 1, 2], [0, 1, 3]]
    assert np.ravel_multi_index(found, (3, 4)).tolist() == [0, 5, 11]
