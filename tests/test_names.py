"""Dtypes and devices equal their names; a device is the default one inside a `with`."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator

import dovetail as dt
import numpy as np
import pytest

IN_NUMPY = [d for d in dt.dtypes.ALL if d.__numpy_dtype__ is not None]


@pytest.mark.parametrize("d", dt.dtypes.ALL, ids=lambda d: d.name)
def test_dtype_equals_only_its_name(d: dt.DType) -> None:
    for other in dt.dtypes.ALL:
        assert (d == other.name) == (other.name == d) == (d == other) == (d is other)
        assert (d != other.name) == (d is not other)
    assert hash(d) == hash(d.name) == hash(pickle.loads(pickle.dumps(d)))
    assert {d: 1}[d.name] == {d.name: 1}[d] == 1
    assert copy.deepcopy(d) is d


@pytest.mark.parametrize("d", IN_NUMPY, ids=lambda d: d.name)
def test_dtype_equals_the_numpy_dtype(d: dt.DType) -> None:
    theirs = np.dtype(d.name)
    assert d == theirs and theirs == d and d == theirs.type and theirs.type == d
    assert all((d == np.dtype(o.name)) == (d is o) == (np.dtype(o.name) == d) for o in IN_NUMPY)
    if d.itemsize > 1:
        assert d != theirs.newbyteorder(">"), "of another byte order"


def test_dtype_equals_its_accepted_specifications() -> None:
    for name, spec in ("float32", float), ("bool", bool), ("int64", int), ("float32", "f4"):
        assert dt.dtypes.dtype(name) == spec
    for other in (None, 4, "float33", "", object, dict, [], np.dtype("U4"), np.dtype("f4,f4")):
        assert dt.float32 != other
    assert dt.bfloat16 == "bfloat16" and dt.bfloat16 != np.float16
    x = dt.zeros(1, device="reference")
    assert x.dtype in ("float32", "float64") and x.dtype in {"float32", "float64"}


@pytest.mark.parametrize("d", [dt.float16, dt.bfloat16, dt.float32, dt.float64])
@pytest.mark.parametrize("name", ["min", "max"])
def test_dtype_of_floats_has_no_ends_but_a_hint(d: dt.DType, name: str) -> None:
    assert not hasattr(d, name)
    with pytest.raises(AttributeError, match=rf"^{d.name}: .* use dt\.finfo\('{d.name}'\)\.{name}"):
        getattr(d, name)
    assert isinstance(getattr(dt.finfo(d.name), name), float)


def test_dtype_has_the_ends_of_its_numbers() -> None:
    assert (dt.bool.min, dt.bool.max) == (0, 1)
    for d in (dt.int8, dt.uint8, dt.int32, dt.uint32, dt.int64, dt.uint64):
        limits = np.iinfo(d.name)
        assert (d.min, d.max) == (limits.min, limits.max)
    with pytest.raises(AttributeError, match=r"^complex64: .*use dt\.finfo\('float32'\)\.max"):
        dt.complex64.max  # noqa: B018 - that is the test


def test_device_equals_its_names() -> None:
    cpu, second = dt.device("cpu"), dt.device("opencl:1")
    assert cpu == "cpu" and cpu == "cpu" and cpu == "cpu:0" and cpu != "opencl"
    assert second == "opencl:1" and second != "opencl" and second != dt.device("opencl")
    assert hash(cpu) == hash("cpu") and second in {"opencl:1"} and {cpu: 1}["cpu"] == 1
    assert cpu != None and cpu != 0 and cpu != "no device" and cpu != b"cpu"  # noqa: E711
    assert pickle.loads(pickle.dumps(second)) is second is copy.deepcopy(second)


@pytest.fixture
def default_device() -> Iterator[dt.Device]:
    found = dt.default_device()
    yield dt.set_default_device("cpu")
    dt.set_default_device(found)


def test_device_is_the_default_inside_a_with_block(default_device: dt.Device) -> None:
    with dt.device("reference") as d:
        assert d is dt.default_device() and dt.zeros(1).device == "reference"
        assert dt.asarray([1]).device is dt.random.normal(3).device is d
        assert dt.zeros(1, device="cpu").device == "cpu"
        with dt.device("cpu"):
            assert dt.zeros(1).device == "cpu"
        assert dt.zeros(1).device is d
    with dt.device("cpu"):
        dt.set_default_device("reference")  # applies outside of blocks
        assert dt.zeros(1).device == "cpu"
    assert dt.default_device() == "reference"
    with pytest.raises(dt.DeviceError, match="set_default_device: dovetail has no backend"):
        dt.set_default_device("elsewhere")
    assert dt.default_device() == "reference"


def test_default_device_of_a_with_block_is_per_thread(default_device: dt.Device) -> None:
    found = []
    with dt.device("reference"):
        thread = threading.Thread(target=lambda: found.append(dt.default_device()))
        thread.start()
        thread.join()
    assert found == [default_device]


def test_captured_function_uses_the_default_device_of_the_call(default_device: dt.Device) -> None:
    @dt.jit
    def f(n: int) -> dt.Tensor:
        return dt.ones(3) * n

    for _ in range(3):
        with dt.device("reference"):
            assert f(2.0).device == "reference"
        assert f(2.0).device is default_device


def test_with_block_of_a_missing_device_raises_on_use() -> None:
    with dt.device("nowhere"), pytest.raises(dt.DeviceError, match="nowhere"):
        dt.zeros(1)
