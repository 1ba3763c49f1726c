"""Export to Arrow and by the interfaces of arrays: sharing, lifetimes, and pending exceptions."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.io import arrow, interop
from dovetail.functions.io.release_callbacks import live_exports

COMPILED = bool(arrow.RELEASE_ARRAY)
compiled = pytest.mark.skipif(not COMPILED, reason="its callbacks are C functions")


@pytest.fixture
def no_leak() -> Iterator[None]:
    """Check that a test releases all that it exports."""
    gc.collect()
    before = len(live_exports)
    yield
    gc.collect()
    assert len(live_exports) == before


@compiled
def test_arrow_structs_hold_length_format_and_memory(no_leak: None) -> None:
    x = dt.asarray([[1, 2, 3], [4, 5, 6]], dtype=dt.int16)
    capsules = x.__arrow_c_array__()
    schema = arrow._Schema.from_address(interop.capsule_pointer(id(capsules[0]), b"arrow_schema"))
    array = arrow._Array.from_address(interop.capsule_pointer(id(capsules[1]), b"arrow_array"))
    assert ctypes.string_at(schema.format) == b"+w:3" and schema.n_children == 1
    child = schema.children[0].contents
    assert (ctypes.string_at(child.format), child.name) == (b"s", b"item")
    assert (array.length, array.null_count, array.n_buffers, array.n_children) == (2, 0, 1, 1)
    values = array.children[0].contents
    assert (values.length, values.n_buffers) == (6, 2)
    pointers = (ctypes.c_void_p * 2).from_address(values.buffers)
    assert list(pointers) == [None, x.data_ptr()]


@compiled
def test_moved_child_outlives_its_parent(no_leak: None) -> None:
    x = dt.asarray([[1.5, 2.5]])
    memory = x.storage()
    schema, capsule = x.__arrow_c_array__()
    array = arrow._Array.from_address(interop.capsule_pointer(id(capsule), b"arrow_array"))
    moved = arrow._Array.from_buffer_copy(array.children[0].contents)
    array.children[0].contents.release = None
    del x, array, schema, capsule
    gc.collect()
    at = (ctypes.c_void_p * 2).from_address(moved.buffers)[1]
    assert list((ctypes.c_float * 2).from_address(at or 0)) == [1.5, 2.5]
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(moved.release)(ctypes.addressof(moved))
    assert moved.release is None and memory.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    "capsule",
    [lambda x: x.__dlpack__(), *(lambda x, i=i: x.__arrow_c_array__()[i] for i in (0, 1))],
    ids=["dlpack", "schema", "array"],
)
@compiled
def test_capsule_dropped_while_an_exception_is_pending_keeps_the_exception(
    no_leak: None, capsule: Any
) -> None:
    x = dt.ones(3)
    with pytest.raises(TypeError, match="has no len"):
        len(capsule(x))  # len drops the last reference after it has set the exception
    with pytest.raises(AttributeError, match="nothing"):
        capsule(x).nothing  # noqa: B018


@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"]
)
def test_pyarrow_takes_every_dtype_and_shape(device: dt.Device, name: str, no_leak: None) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    x = dt.asarray([0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1], dtype=name)
    a = pa.array(x)
    a.validate(full=True)
    assert a.type == pa.from_numpy_dtype(np.dtype(name)) and a.to_pylist() == x.tolist()
    for view in (x[::2], x.flip(0), x[:0], x.reshape(3, 4), x.reshape(3, 2, 2).permute(2, 0, 1)):
        a = pa.array(view)
        a.validate(full=True)
        assert a.to_pylist() == view.tolist()
    assert pa.array(dt.zeros((2, 0))).to_pylist() == [[], []]
    assert pa.array(dt.zeros((0, 3))).to_pylist() == []


def test_pyarrow_shares_memory_and_casts_on_request(no_leak: None) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    x = dt.arange(4.0)
    a = pa.array(x)
    assert a.buffers()[1].address == x.data_ptr()
    x += 1
    assert a.to_pylist() == [1, 2, 3, 4] == x.tolist()
    assert pa.array(dt.arange(3), type=pa.float64()).to_pylist() == [0.0, 1.0, 2.0]
    assert pa.array(x, type=pa.float16()).type == pa.float16()
    for dtype in (dt.int64, dt.uint64):
        with pytest.raises(dt.ValueOverflowError, match=r"not every u?int64 .* is a float64"):
            pa.array(dt.asarray([1, 2**53 + 1], dtype=dtype), type=pa.float64())
    assert pa.table({"a": dt.arange(2)})["a"].to_pylist() == [0, 1]
    b = pa.array(dt.ones(1000) * 2)
    gc.collect()
    assert sum(b.to_pylist()) == 2000


def test_polars_takes_vectors_and_matrices(no_leak: None) -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed")
    s = pl.Series("a", dt.arange(3, dtype=dt.int16))
    assert (s.dtype, s.to_list()) == (pl.Int16, [0, 1, 2])
    m = pl.Series(dt.arange(6.0).reshape(2, 3))
    assert m.dtype == pl.Array(pl.Float32, 3) and m.to_list() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("x", "error", "says"),
    [
        (lambda: dt.ones(2, dtype=dt.complex64), dt.DTypeError, "x.real"),
        (lambda: dt.ones(2, dtype=dt.bfloat16), dt.DTypeError, "float32"),
        (lambda: dt.asarray(1.0), dt.ShapeError, "flatten"),
    ],
)
def test_arrow_refuses_what_it_has_no_array_for(x: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        x().__arrow_c_array__()


def test_exit_while_pyarrow_holds_memory() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    code = (
        "import pyarrow as pa, dovetail as dt\n"
        "pa.keep = pa.array(dt.ones(1000, device='reference'))\n"
        "pa.unused = dt.ones(3, device='reference').__arrow_c_array__()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def has_buffer() -> bool:
    """Return True if tensors support buffers; before Python 3.12 only the compiled ones do."""
    try:
        return bool(memoryview(dt.ones(1)))  # type: ignore[arg-type]
    except TypeError:
        return False


@pytest.mark.skipif(not has_buffer(), reason="tensors have no buffers here")
def test_array_interface_describes_the_memory() -> None:
    x = dt.arange(6, dtype=dt.int16).reshape(2, 3)
    interface = x.T.__array_interface__
    assert (interface["shape"], interface["typestr"]) == ((3, 2), np.dtype("i2").str)
    assert interface["strides"] == (2, 6) and interface["data"] == (x.data_ptr(), False)
    assert dt.ones(3).broadcast_to((2, 3)).__array_interface__["data"][1]
    assert not hasattr(dt.ones(2, dtype=dt.bfloat16), "__array_interface__")
    assert not hasattr(dt.eye(2).to_sparse(), "__array_interface__")
    assert not hasattr(x, "__cuda_array_interface__")


def test_numpy_still_calls_dovetail_for_operations_with_arrays() -> None:
    x, a = dt.ones(2), np.ones(2, "f4")
    assert type(np.add(a, x)) is type(a + x) is type(np.stack([a, x])) is dt.Tensor
    view = np.asarray(x)
    x += 1
    assert view.tolist() == [2, 2]


@pytest.mark.skipif(not has_buffer(), reason="tensors have no buffers here")
def test_pillow_takes_images_in_both_layouts() -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    x = dt.arange(24, dtype=dt.uint8).reshape(2, 4, 3)
    assert np.asarray(image.fromarray(x)).tolist() == x.tolist()
    y = x.permute(2, 0, 1).contiguous()
    assert np.asarray(image.fromarray(y.permute(1, 2, 0))).tolist() == x.tolist()
    assert np.asarray(image.fromarray(x[..., 0])).tolist() == x[..., 0].tolist()


def test_tobytes_orders_elements_as_numpy_does() -> None:
    x = dt.asarray([[1, 2], [3, 4]], dtype=dt.uint8)
    assert x.tobytes() == b"\1\2\3\4" and x.T.tobytes() == b"\1\3\2\4"
    for order in ("C", "F", "A"):
        assert x.T.tobytes(order) == np.array([[1, 2], [3, 4]], "u1").T.tobytes(order)
