"""Views as another dtype, memory at an address, and the buffer protocol."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import sys
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import partial_devices
import pytest

# Python 3.12 supports `__buffer__` by itself.
BUFFERS = sys.version_info >= (3, 12) or dt.__config__["hot_path"] == "compiled"
REAL = [d for d in dt.dtypes.ALL if d.kind in "iuf" and d.__numpy_dtype__ is not None]


# --- x.view(dtype)


@pytest.mark.parametrize("to", REAL, ids=lambda d: d.name)
@pytest.mark.parametrize("of", REAL, ids=lambda d: d.name)
def test_view_of_bits_equals_numpy(device: dt.Device, of: dt.DType, to: dt.DType) -> None:
    a = np.arange(48, dtype=of.name).reshape(3, 16)
    x = dt.asarray(a)
    y, want = x.view(to), a.view(to.name)
    assert y.dtype is to and y.shape == want.shape and y.storage() is x.storage()
    assert y.numpy().tobytes() == want.tobytes()
    part, want = x[1:, 8:].view(to.name), a[1:, 8:].view(to.name)
    assert part.shape == want.shape and part.numpy().tobytes() == want.tobytes()
    assert (y + 0).numpy().tobytes() == (a.view(to.name) + 0).tobytes()


def test_view_of_bits_shares_memory(device: dt.Device) -> None:
    x = dt.ones(4) * 1
    bits = x.view(dt.int32)
    pending = x + 1
    bits[0] = 0
    assert x.tolist() == [0, 1, 1, 1] and pending.tolist() == [2, 2, 2, 2]
    x *= -1
    assert bits[1].item() == np.float32(-1).view(np.int32)
    low = x.view(dt.uint16)
    low[...] = low[::-1]
    assert x.numpy().tobytes() == np.array([-0.0, -1, -1, -1], "f4").view("u2")[::-1].tobytes()


@pytest.mark.parametrize("other", [dt.int32, dt.int16, dt.uint8, dt.int64], ids=lambda d: d.name)
def test_write_that_reads_other_bits_of_its_memory_equals_numpy(
    device: dt.Device, other: dt.DType
) -> None:
    """Repeated, so that the graph is cached too."""
    for k in range(4):
        a = np.arange(4000, dtype=np.int32) * 70001 + k
        x = dt.asarray(a)
        n = 1000
        b = a.view(other.name)
        b[:n] = (b[n : 2 * n][::-1] + a[:n]).astype(other.name)
        y = x.view(other)
        y[:n] = (y[n : 2 * n][::-1] + x[:n]).astype(other)
        assert x.tolist() == a.tolist()
        b[:n] = a[:n].astype(other.name)
        y[:n] = x[:n].astype(other)
        assert x.tolist() == a.tolist()


def test_captured_function_views_bits(device: dt.Device) -> None:
    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        return (x.view(dt.int32) & 0x7FFFFFFF).view(dt.float32) * 2

    for k in range(3):
        assert f(dt.asarray([-1.5, k])).tolist() == [3.0, 2.0 * k]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: dt.ones((2, 3)).view(dt.float64), dt.ShapeError, "divide into elements of 8"),
        (lambda: dt.ones((4, 4)).T.view(dt.int8), dt.ShapeError, "dense last axis"),
        (lambda: dt.ones(()).view(dt.int8), dt.ShapeError, "do not divide"),
        (lambda: dt.ones(5)[1:].view(dt.float64), dt.ShapeError, "do not divide"),
        (lambda: dt.ones(2).requires_grad_().view(dt.int32), dt.GradientError, "no gradient"),
        (lambda: dt.ones(2, dtype=dt.uint8).view(dt.bool), dt.DTypeError, "bytes cannot be"),
        (lambda: dt.ones(2).view("float33"), dt.DTypeError, "view: no dovetail dtype"),
        (lambda: dt.ones(2).view(2.5), dt.ShapeError, "view: expected ints"),
    ],
)  # fmt: skip
def test_invalid_view_of_bits_raises(
    device: dt.Device, call: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call()


def test_copies_and_pickles_of_views_keep_each_dtype(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    pair = (x, x.view(dt.int32), x.view(dt.uint8)[:3])
    for y in (copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert [t.dtype for t in y] == [t.dtype for t in pair]
        assert [t.tolist() for t in y] == [t.tolist() for t in pair]


# --- dt.from_blob


def test_from_blob_calls_its_deleter_once(device: dt.Device) -> None:
    held, ended = (ctypes.c_int32 * 6)(*range(6)), []
    x = dt.from_blob(
        ctypes.addressof(held), (2, 2), dtype=dt.int32, strides=(3, 1),
        deleter=lambda: ended.append(1),
    )  # fmt: skip
    row, y = x[1], x + 1
    assert x.tolist() == [[0, 1], [3, 4]]
    row += 10
    assert held[3] == 13 and y.tolist() == [[1, 2], [4, 5]]
    del x
    gc.collect()
    assert not ended and row.tolist() == [13, 14]
    del row, y
    gc.collect()
    assert ended == [1]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"data_ptr": 0}, dt.ArgumentError, "from_blob: data_ptr must be .*got 0"),
        ({"data_ptr": "x"}, dt.ArgumentTypeError, "from_blob: data_ptr"),
        ({"shape": (2, -1)}, dt.ShapeError, "from_blob"),
        ({"strides": (1, 2)}, dt.ShapeError, "a stride for each of 1 sizes, got 2"),
        ({"deleter": 3}, dt.ArgumentTypeError, "from_blob: deleter"),
        ({"dtype": "words"}, dt.DTypeError, "from_blob"),
        ({"device": "nowhere"}, dt.DeviceError, "nowhere"),
        ({"odd": True}, dt.SharingError, "cannot use the memory at"),
    ],
)  # fmt: skip
def test_from_blob_with_invalid_arguments_raises(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    held, ended = (ctypes.c_float * 4)(), []
    at = ctypes.addressof(held) + bool(options.pop("odd", False))
    given = {"data_ptr": at, "shape": 3, "device": "reference",
             "deleter": lambda: ended.append(1)} | options  # fmt: skip
    with pytest.raises(error, match=says):
        dt.from_blob(**given)
    gc.collect()
    assert not ended


# --- buffers


def test_buffer_protocol_shares_the_memory(device: dt.Device) -> None:
    x = dt.asarray([[1, 2], [3, 4]], dtype=dt.int16)
    seen = memoryview(x) if BUFFERS else x.__buffer__(0)  # type: ignore[arg-type]  # it is one
    assert seen.format == "h" and seen.shape == (2, 2) and not seen.readonly
    seen[1, 0] = 30
    assert x.tolist() == [[1, 2], [30, 4]]
    del x
    gc.collect()
    assert seen.tolist() == [[1, 2], [30, 4]]  # it keeps the memory


@pytest.mark.parametrize("ask", [lambda x: x.__buffer__(0), memoryview])
def test_dtype_without_a_buffer_format_is_named(
    ask: Callable[[Any], Any], device: dt.Device
) -> None:
    if ask is memoryview and not BUFFERS:
        pytest.skip("Python 3.11 finds buffers of compiled code only")
    with pytest.raises(dt.DTypeError, match="bfloat16"):
        ask(dt.ones(3, dtype=dt.bfloat16))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_array_protocol_without_a_copy_shares_memory_or_raises(
    shape: tuple[int, ...], dtype: str
) -> None:
    with partial_devices.installed(partial_devices.Accelerator) as [apart]:
        for device in (dt.device("reference"), apart):
            for x in (dt.ones(shape, dtype=dtype, device=device), dt.ones(4, device=device)[::-2]):
                check_reads_without_a_copy(x, reachable=device is not apart)
            empty = dt.ones((0, 3), dtype=dtype, device=device)
            assert np.asarray(empty, copy=False).shape == (0, 3)


def check_reads_without_a_copy(x: dt.Tensor, reachable: bool) -> None:
    """Check that `copy=False` and buffers give the memory of `x` itself, or raise."""
    for copied in (np.asarray(x), np.asarray(x, copy=None), np.array(x, copy=True)):
        assert copied.flags.writeable and copied.tolist() == x.tolist()
    if reachable:
        assert np.shares_memory(np.asarray(x, copy=False), x.numpy())
        assert np.shares_memory(np.asarray(x.__buffer__(0)), x.numpy())
        return
    for read in (lambda: np.asarray(x, copy=False), lambda: np.array(x, copy=False)):
        with pytest.raises(ValueError, match="copy=False"):
            read()
    with pytest.raises(dt.ArgumentError, match=f"{x.device} without a copy.*copy=False"):
        x.__array__(copy=False)
    for get_buffer in (lambda: x.__buffer__(0), *([lambda: memoryview(x)] if BUFFERS else [])):
        with pytest.raises(dt.SharingError, match=f"cannot reach the memory of {x.device}"):
            get_buffer()
