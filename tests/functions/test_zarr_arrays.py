"""zarr and Icechunk arrays: tensors in and out, in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import dovetail as dt
import numpy as np
import pytest
import zarr

X = np.random.default_rng(0).normal(size=(5000, 3)).astype("f4")
CHUNKS = (4096, 3)


@pytest.fixture
def stored(tmp_path: Path) -> Any:
    config = {"write_empty_chunks": False}  # zarr's default, which importing Cubed changes
    path = tmp_path / "x.zarr"
    return zarr.create_array(path, shape=X.shape, chunks=CHUNKS, dtype="f4", config=config)


@pytest.mark.parametrize(
    "key", [..., slice(0, 4096), slice(7, 4999), (slice(0, 10), 1), 3, (slice(None), [0, 2])]
)
def test_tensor_is_written_into_chunks_and_parts_of_them(
    device: dt.Device, stored: Any, key: Any
) -> None:
    x = dt.asarray(X)
    stored[key] = x[key] * 2  # pending work
    want = np.zeros_like(X)
    want[key] = X[key] * 2
    assert stored[...].tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "name", ["float64", "float16", "int8", "uint32", "bool", "complex64", "int64"]
)
def test_array_is_created_of_a_tensor(tmp_path: Path, name: str) -> None:
    x = (dt.asarray(X[:, 0]) * 9).astype(getattr(dt, name))
    stored = zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(4096,))
    assert stored.dtype == np.dtype(name) and stored[...].tolist() == x.tolist()
    stored.append(x[:5])
    assert stored[-5:].tolist() == x[:5].tolist()


def test_chunk_of_zeros_is_not_stored_but_one_of_negative_zeros_is(stored: Any) -> None:
    """zarr compares bits with those of its fill value, through `x.view("V4")`."""
    stored[...] = dt.zeros(X.shape)
    assert stored.nchunks_initialized == 0
    stored[:4096] = -dt.zeros(CHUNKS)
    assert stored.nchunks_initialized == 1 and np.signbit(stored[:4096]).all()


def test_tensor_is_read_from_an_array_and_its_blocks(device: dt.Device, stored: Any) -> None:
    stored[...] = X
    whole, block = dt.asarray(stored), dt.asarray(stored[100:300])
    assert whole.device is device and whole.dtype is dt.float32
    assert whole.tolist() == X.tolist() and block.tolist() == X[100:300].tolist()
    assert stored[dt.asarray([3, 4000])].tolist() == X[[3, 4000]].tolist()


def test_dask_reads_and_writes_tensors_block_by_block(tmp_path: Path, stored: Any) -> None:
    stored[...] = X
    x = da.from_zarr(stored).map_blocks(dt.asarray)
    assert type(x._meta) is dt.Tensor and x.chunksize == CHUNKS
    found = dt.chunked.sum(x, axis=0).compute(scheduler="synchronous")
    assert found.tolist() == dt.sum(dt.asarray(X), axis=0).tolist()
    (x * 2).to_zarr(str(tmp_path / "doubled.zarr"), compute=True)
    assert zarr.open_array(tmp_path / "doubled.zarr")[...].tobytes() == (X * 2).tobytes()


def test_icechunk_commits_tensors(tmp_path: Path) -> None:
    icechunk = pytest.importorskip("icechunk", reason="Icechunk is one of the peers")
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path)))
    session = repository.writable_session("main")
    x = dt.asarray(X)
    stored = zarr.group(session.store).create_array("x", data=x, chunks=CHUNKS)
    assert session.commit("x")
    session = repository.writable_session("main")
    stored = zarr.open_array(session.store, path="x")
    da.store(da.from_array(x * 2, chunks=CHUNKS, asarray=False), stored, lock=False)
    before = repository.readonly_session("main").store
    assert zarr.open_array(before, path="x", mode="r")[...].tobytes() == X.tobytes()
    session.commit("doubled")
    after = zarr.open_array(repository.readonly_session("main").store, path="x", mode="r")
    assert dt.asarray(after).tolist() == (x * 2).tolist()


# --- views of bits, by which zarr compares


def test_views_of_bytes_without_a_meaning_are_unsigned_integers() -> None:
    for name in ("int8", "float16", "float32", "float64"):
        x = dt.asarray([0.0, -1.0]).astype(getattr(dt, name))
        bits = x.view(f"V{x.itemsize}")
        assert bits.dtype is getattr(dt, f"uint{8 * x.itemsize}")
        assert bits.tolist() == x.numpy().view(f"u{x.itemsize}").tolist()
        assert x.view(np.dtype(f"V{x.itemsize}")).tolist() == bits.tolist()
        assert np.array_equal(bits, x.numpy().view(f"V{x.itemsize}"))
    with pytest.raises(dt.DTypeError, match="'V3'"):
        dt.ones(3).view("V3")


def test_dtype_of_a_view_may_be_named() -> None:
    x = dt.ones(2)
    assert x.view(dtype="B").tolist() == x.numpy().view(dtype="B").tolist()
    assert x.view(dtype=dt.int32).dtype is dt.int32
    with pytest.raises(dt.ArgumentError, match=r"^view: expected a shape or dtype, got both"):
        x.view(2, dtype=dt.int32)
