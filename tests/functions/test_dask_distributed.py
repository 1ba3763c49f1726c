"""Dask's distributed scheduler: chunks that are tensors move between processes."""

# What is not typed is Dask's.
# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import dask.array as da
import dovetail as dt
import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

A = np.random.default_rng(3).normal(size=(64, 48)).astype("f4")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Return a client of two worker processes."""
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as found:
        yield found


def cut(device: str, chunks: Any = (16, 24)) -> da.Array:
    return da.from_array(dt.asarray(A, device=device), chunks=chunks, asarray=False)


def digest(x: dt.Tensor) -> str:
    return hashlib.sha256(x.numpy().tobytes()).hexdigest()


def test_chunk_is_sent_without_copying_its_memory(device: dt.Device) -> None:
    """Pickle's protocol 5 gives Dask the memory itself, next to a pickle of some hundred bytes."""
    x = dt.asarray(A)
    header, frames = distributed.protocol.serialize(x)
    assert max(memoryview(f).nbytes for f in frames) == x.nbytes
    assert sum(memoryview(f).nbytes for f in frames) < x.nbytes + 2000
    again = distributed.protocol.deserialize(header, frames)
    assert again.device is device and np.array_equal(again.numpy(), A)


@pytest.mark.exhaustive
@pytest.mark.parametrize("on", ["cpu", "reference"])
def test_two_processes_compute_the_bits_of_one(client: Any, on: str) -> None:
    x = cut(on)
    assert len(client.scheduler_info()["workers"]) == 2
    y = (x - x.mean(axis=0)).persist()
    product = y.T @ y
    found = product.compute()
    assert type(found) is dt.Tensor and found.device == on
    centred = A - A.mean(axis=0)
    np.testing.assert_allclose(found.numpy(), centred.T @ centred, rtol=1e-4, atol=1e-4)
    with da.core.config.set(scheduler="synchronous"):
        assert digest((cut(on) * 2 + 1).compute()) == digest((x * 2 + 1).compute(scheduler=client))


@pytest.mark.exhaustive
def test_chunks_of_different_processes_are_combined(client: Any) -> None:
    workers = list(client.scheduler_info()["workers"])
    first, second = (
        client.submit(lambda a: dt.asarray(a, device="cpu"), A + i, workers=[w])
        for i, w in enumerate(workers)
    )
    both = client.submit(lambda s, t: (type(s).__name__, s + t), first, second, workers=workers[:1])
    name, found = both.result()
    assert name == "Tensor" and np.array_equal(found.numpy(), A + (A + np.float32(1)))
