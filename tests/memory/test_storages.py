"""Storages, user allocators, foreign memory, junk filling, and reprs."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type"
from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.memory import addresses
from dovetail.memory.pointer import StreamHandle

# --- elements -------------------------------------------------------------------------------------


def test_storage_shows_elements_in_memory_order(device: dt.Device) -> None:
    x = dt.asarray([[1, 2, 3], [4, 5, 6]], dtype=dt.int16)
    s = x.T[1:].storage()
    assert s is x.storage() and len(s) == 6 and s.dtype is dt.int16
    assert s.tolist() == [*s] == [1, 2, 3, 4, 5, 6]
    assert (s[0], s[-1], type(s[2])) == (1, 6, int)
    assert s[1:5:2].tolist() == [2, 4] and s[::-1].tolist() == [6, 5, 4, 3, 2, 1]
    assert s.view(dt.uint8)[:4].tolist() == [1, 0, 2, 0]
    assert len(dt.zeros(0).storage()) == 0 and dt.zeros(0).storage()


def test_element_positions_follow_the_strides(device: dt.Device) -> None:
    x = dt.arange(24).reshape(2, 3, 4).permute_dims((2, 0, 1))[1:, :, ::-1]
    s = x.storage()
    for index in np.ndindex(*x.shape):
        at = dt.storage_index(index, x.stride(), x.storage_offset())
        assert s[at] == x[index].item()


def test_writes_by_index_are_visible_to_tensors_and_not_to_pending_work(
    device: dt.Device,
) -> None:
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    before, view = x * 2, x.T
    s = x.storage()
    s[1] = 9
    s[2:] = [7, 8]
    assert x.tolist() == [[1, 9], [7, 8]] and view.tolist() == [[1, 7], [9, 8]]
    assert before.tolist() == [[2, 4], [6, 8]]
    with dt.eager():
        s[0] = 5
        assert x[0, 0].item() == 5


def test_write_by_index_to_a_saved_value_raises_in_backward(
    device: dt.Device,
) -> None:
    x = dt.asarray([1.0, 2.0]).requires_grad_()
    y = (x * x).sum()
    x.storage()[0] = 5.0
    with pytest.raises(dt.GradientError, match="overwrote it in place"):
        y.backward()
    (x * x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [10.0, 4.0]


def test_invalid_storage_indices_and_values_raise(device: dt.Device) -> None:
    s = dt.asarray([1.0, 2.0]).storage()
    for at in (2, -3):
        with pytest.raises(dt.OutOfRangeError):
            s[at]
        with pytest.raises(dt.OutOfRangeError):
            s[at] = 1.0
    for key in ("a", 1.0, None, (0, 0)):
        with pytest.raises(dt.ArgumentTypeError, match="Storage: the index"):
            s[key]
    with pytest.raises(dt.DTypeError, match="view: bytes cannot be viewed as bool"):
        s.view(dt.bool)
    with pytest.raises(dt.DTypeError, match="view"):
        s.view("float7")
    a = np.arange(3.0)
    a.flags.writeable = False
    t = dt.asarray(a, copy=False).storage()
    assert t.tolist() == [0, 1, 2]
    with pytest.raises(dt.ReadOnlyError, match="read-only"):
        t[0] = 5
    with pytest.raises(dt.CaptureError, match="shows its elements"):
        dt.jit(lambda x: x * s[0], fullgraph=True)(dt.ones(2))


def test_storage_constructor_and_views(device: dt.Device) -> None:
    s = dt.Storage(17, device)
    assert len(s) == s.nbytes == 17 and s.device is device and s.dtype is None
    v = s.view(dt.float32)
    assert v.shape == (4,)
    v.fill_(1.0)
    assert s[:4].tolist() == [0, 0, 128, 63]
    for bad in (-1, 1.5, None):
        with pytest.raises((dt.ArgumentError, dt.ArgumentTypeError), match="Storage: nbytes"):
            dt.Storage(bad)
    with pytest.raises(dt.DeviceError, match="Storage"):
        dt.Storage(3, "No Device")


# --- strides --------------------------------------------------------------------------------------


def test_strides_and_index_to_pos_equal_numpy() -> None:
    for shape in ((), (3,), (2, 3, 4), (2, 0, 3), (1, 5, 1)):
        rows, columns = np.zeros(shape, "u1"), np.zeros(shape, "u1", order="F")
        assert dt.storage_index((0,) * len(shape), dt.contiguous_strides(shape), 7) == 7
        if rows.size:
            assert dt.contiguous_strides(shape) == rows.strides
            assert dt.contiguous_strides(shape, "F") == columns.strides
    assert dt.contiguous_strides(3) == (1,)
    with pytest.raises(
        dt.ShapeError, match="storage_index: expected a stride for each of 2 indices, got 1"
    ):
        dt.storage_index((1, 2), (3,))
    with pytest.raises(dt.ArgumentError, match="contiguous_strides: order"):
        dt.contiguous_strides((1, 2), order="K")
    with pytest.raises(dt.ArgumentTypeError, match="storage_index: index"):
        dt.storage_index(("a",), (3,))


def test_type_and_layout_queries(device: dt.Device) -> None:
    for name in ("int8", "float16", "float64", "complex64", "bool"):
        x = dt.zeros((2, 3), dtype=name)
        assert x.is_floating_point() is dt.is_floating_point(x) is (x.dtype.kind == "f")
        assert x.is_complex() is dt.is_complex(x) is (x.dtype.kind == "c")
        assert x.element_size() == dt.element_size(x) == x.itemsize
        assert x.numel() == dt.numel(x) == 6 and x.dim() == 2
        assert dt.is_contiguous(x) is x.is_contiguous() is True
        assert dt.is_contiguous(x.T) is x.T.is_contiguous() is False
    for function in (dt.is_floating_point, dt.is_complex, dt.element_size, dt.numel):
        with pytest.raises(dt.DTypeError, match=function.__name__):
            function([1.0])
    with pytest.raises(dt.LayoutError, match="is_contiguous"):
        dt.is_contiguous(dt.eye(2).to_sparse())


# --- resize_ --------------------------------------------------------------------------------------


def test_resize_within_the_storage_keeps_its_memory(device: dt.Device) -> None:
    x = dt.arange(6)
    view, s = x[1:], x.storage()
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]] and x.storage() is s
    assert view.resize_((2, 1)).tolist() == [[1], [2]] and view.storage() is s
    x.fill_(7)
    assert view.tolist() == [[7], [7]]
    assert x.resize_(6).tolist() == [7, 7, 7, 7, 4, 5]
    assert x.resize_(0).shape == (0,) and x.resize_(()).tolist() == 7


def test_resize_beyond_the_storage_copies_its_elements(device: dt.Device) -> None:
    x = dt.arange(6)[4:]
    late = x + 1
    assert x.resize_(3, 2).shape == (3, 2) and x.is_contiguous()
    assert x.ravel()[:2].tolist() == [4, 5] and late.tolist() == [5, 6]
    x.fill_(1)
    assert x.sum().item() == 6
    with dt.poison_empty():
        assert dt.ones(1).resize_(3).tolist()[0] == 1
        assert np.isnan(dt.ones(1).resize_(3).tolist()[1:]).all()


def test_resize_of_shared_memory_raises(device: dt.Device) -> None:
    x = dt.arange(6)
    view = x[::2]
    with pytest.raises(dt.SharingError, match=r"resize_: .* shared with 1 other tensors; use dt"):
        x.resize_(7)
    with pytest.raises(dt.SharingError, match="resize_"):
        view.resize_(7)
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and view.tolist() == [0, 2, 4]
    del view
    y = dt.arange(3)
    array = y.numpy()
    with pytest.raises(dt.SharingError, match="NumPy"):
        y.resize_(7)
    del array
    gc.collect()
    assert x.resize_(7).shape == y.resize_(7).shape == (7,)
    z = dt.asarray(np.arange(3.0), copy=False)
    with pytest.raises(dt.SharingError, match="owned by another library"):
        z.resize_(4)
    with pytest.raises(dt.GradientError, match="resize_"):
        dt.ones(3).requires_grad_().resize_(2)
    with pytest.raises(dt.ShapeError, match="resize_"):
        dt.ones(3).resize_(-1)
    with pytest.raises(dt.LayoutError, match="resize_"):
        dt.eye(2).to_sparse().resize_(2)
    with pytest.raises(dt.CaptureError, match="resize_"):
        dt.jit(lambda x: x.copy().resize_(2), fullgraph=True)(dt.ones(3))


# --- allocators -----------------------------------------------------------------------------------


class CountingAllocator(dt.memory.Allocator):
    """The device's own memory, with counts of allocations and frees."""

    def __init__(self, device: dt.Device, wrong: object = None) -> None:
        self.own, self.asked, self.back, self.wrong = dt.memory.get_allocator(device), 0, 0, wrong
        self.device = device

    def allocate(self, nbytes: int, stream: StreamHandle = None) -> Any:
        self.asked += 1
        ptr = self.own.allocate(nbytes, stream)
        if self.wrong is not None:
            return self.wrong
        return dt.memory.wrap_pointer(ptr, ptr.handle, nbytes, self.device, ptr.offset, self._count)

    def _count(self, ptr: object) -> None:
        self.back += 1


def test_tensors_and_storages_of_a_user_allocator(device: dt.Device) -> None:
    mine = CountingAllocator(device)
    x = dt.empty((2, 3), dtype=dt.float64, allocator=mine)
    y = dt.empty_like(x, allocator=mine)
    s = dt.Storage(100, allocator=mine)
    assert mine.asked == 3 and x.dtype is dt.float64 and y.shape == (2, 3)
    dt.add(x.fill_(1), 2, out=y)
    assert (x * y).sum().item() == 18 and dt.matmul(x, y.T).tolist() == [[9, 9], [9, 9]]
    assert mine.asked == 3  # results of operations use the device's own allocator
    view = y[0]
    del x, y, s
    gc.collect()
    assert mine.back == 2
    assert view.tolist() == [3, 3, 3]
    del view
    gc.collect()
    assert mine.back == 3
    with dt.poison_empty():
        assert np.isnan(dt.empty(2, allocator=mine).tolist()).all()


def test_allocator_with_a_wrong_result_raises(device: dt.Device) -> None:
    for wrong in (3, "memory", dt.memory.get_allocator(device).allocate(1)):
        with pytest.raises(dt.ArgumentError, match=r"empty: <CountingAllocator of .* must return"):
            dt.empty(100, allocator=CountingAllocator(device, wrong))
    with pytest.raises(dt.ArgumentTypeError, match="empty: allocator"):
        dt.empty(3, allocator="mine")
    with pytest.raises(dt.CaptureError, match="allocator"):
        f = dt.jit(lambda x: x + dt.empty(3, allocator=CountingAllocator(device)), fullgraph=True)
        f(dt.ones(3))


def test_mapped_file_holds_the_tensors(device: dt.Device, tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    memory = dt.memory.MappedFile(path)
    x = dt.empty((3, 1000), allocator=memory)
    y = dt.empty(10, dtype=dt.int64, allocator=memory)
    x.copy_(dt.arange(3000.0).reshape(3, 1000))
    y.fill_(7)
    x += 1
    memory.flush()
    raw = path.read_bytes()
    for t, n in ((x, "f4"), (y, "i8")):
        at = memory.where(t.storage())
        assert np.array_equal(np.frombuffer(raw, n, t.size, at).reshape(t.shape), t.numpy())
    assert memory.stats().live_blocks == 2 and len(raw) == memory.stats().reserved_bytes
    assert (x @ dt.ones(1000)).shape == (3,)
    where = memory.where(y.storage())
    del y, t
    gc.collect()
    assert [b.state for b in memory.snapshot()[0].blocks] == ["live", "cached"]
    z = dt.empty(5, allocator=memory)
    assert memory.where(z.storage()) == where and path.stat().st_size == len(raw)
    with pytest.raises(dt.ArgumentError, match=r"where: the memory of .* is not in"):
        memory.where(dt.zeros(3).storage())
    with pytest.raises(dt.ArgumentError, match=r"MappedFile: .*x\.bin' already exists"):
        dt.memory.MappedFile(path)
    with pytest.raises(dt.OutOfMemoryError, match=r"x\.bin' could not grow by"):
        dt.empty(1 << 58, dtype=dt.int8, allocator=memory)
    z.fill_(3)
    assert z.tolist() == [3] * 5  # it is whole after that
    with pytest.raises(dt.SharingError, match="resize_"):
        z.resize_(5000)


def test_mapped_file_lives_as_long_as_its_tensors(device: dt.Device, tmp_path: Path) -> None:
    memory = dt.memory.MappedFile(tmp_path / "x.bin")
    gone = weakref.ref(memory)
    x = dt.empty(3, allocator=memory).fill_(2)
    del memory
    gc.collect()
    assert x.tolist() == [2, 2, 2]
    del x
    gc.collect()
    assert gone() is None


# --- foreign memory -------------------------------------------------------------------------------


def host_floats() -> tuple[Any, int]:
    memory = (ctypes.c_float * 8)(*range(8))
    return memory, ctypes.addressof(memory)


def test_deleter_runs_once_after_the_last_user(device: dt.Device) -> None:
    memory, at = host_floats()
    called: list[int] = []
    x = dt.from_blob(at, 8, deleter=lambda: called.append(1))
    view, array, late = x[2:], x.numpy(), x * 2
    s = x.storage()
    for what in ("x", "view", "array", "s"):
        assert called == [], what
        if what == "x":
            del x
        elif what == "view":
            del view
        elif what == "array":
            del array
        else:
            assert late.tolist() == [2.0 * v for v in range(8)]  # pending work that reads it
            del s
        gc.collect()
    assert called == [1] and memory[3] == 3


def test_deleter_that_raises_is_reported_and_leaks_nothing(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, at = host_floats()
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: reported.append(u.exc_type))
    live = dt.memory.stats(device).live_bytes
    x = dt.from_blob(at, 8, deleter=lambda: 1 / 0)
    y = x + 1
    assert y.tolist()[7] == 8
    del x, y
    gc.collect()
    assert reported == [ZeroDivisionError] and memory[0] == 0
    dt.zeros(1).tolist()
    assert dt.memory.stats(device).live_bytes == live


def test_invalid_addresses_raise(device: dt.Device) -> None:
    memory, at = host_floats()
    called: list[int] = []

    def refused(address: int, shape: int = 3, **options: Any) -> None:
        with pytest.raises((dt.ArgumentError, dt.SharingError), match="from_blob: ") as error:
            dt.from_blob(address, shape, deleter=lambda: called.append(1), **options)
        said.append(str(error.value))

    said: list[str] = []
    refused(0)
    refused(-4)
    refused(at + 1)
    refused(at + 2, dtype=dt.float64)
    assert all("must be a positive address" in s for s in said[:2])
    assert all("must be a multiple" in s for s in said[2:])
    x = dt.ones(64)
    gone = x.data_ptr()
    assert dt.from_blob(gone, 3).tolist() == [1, 1, 1]
    del x
    gc.collect()
    refused(gone)
    assert "was freed" in said[-1]
    if os.path.exists("/proc/self/mem"):
        refused(4096)
        refused(1 << 62)
        refused(at, 1 << 50)  # starts in valid memory, and ends beyond all memory
        assert all("must be memory of this process" in s for s in said[-3:])
    assert called == [] and memory[0] == 0


def test_addresses_are_accepted_if_the_memory_map_is_unreadable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses(*args: object, **options: object) -> None:
        raise PermissionError

    memory, at = host_floats()
    monkeypatch.setattr(addresses, "open", refuses, raising=False)
    with dt.device("reference"):
        assert dt.from_blob(at, 3).tolist() == [0, 1, 2] and memory[1] == 1


# --- junk -----------------------------------------------------------------------------------------


def test_junk_filled_fills_empty_tensors(device: dt.Device) -> None:
    with dt.poison_empty():
        for name in ("float16", "bfloat16", "float32", "float64", "complex64"):
            x = dt.empty((2, 2), dtype=name)
            assert dt.isnan(x).all().item() and dt.isnan(dt.empty_like(x)).all().item()
        for name in ("int8", "uint16", "int64", "uint64"):
            x = dt.empty(2, dtype=name)
            assert x.tolist() == [x.dtype.max] * 2
        assert dt.empty(2, dtype=dt.bool).tolist() == [True, True]
        assert dt.empty(0).tolist() == []
        with dt.poison_empty(False):
            dt.empty(2)
        assert dt.zeros(2).tolist() == [0, 0]
        found = dt.jit(lambda x: x + dt.empty(3))(dt.ones(3))
        assert dt.isnan(found).all().item()


def test_environment_variable_enables_junk_filling() -> None:
    code = "import dovetail as dt; print(dt.empty(2, device='reference').tolist())"
    environ = {**os.environ, "DOVETAIL_JUNK": "1"}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert said.stdout == "[nan, nan]\n"


# --- reprs ----------------------------------------------------------------------------------------


def test_reprs_are_one_line(device: dt.Device) -> None:
    x = dt.ones(3)
    assert repr(x.storage()) == f"<Storage of 3 float32, 12 bytes, on {device}>"
    assert repr(dt.Storage(5)) == f"<Storage of 5 bytes on {device}>"
    event, stream = dt.Event(), dt.Stream()
    assert repr(event) == f"<Event of {device}, not recorded>"
    event.record()
    event.synchronize()
    assert repr(event) == f"<Event of {device}, passed>"
    texts = [x.storage().ptr, stream, dt.default_stream(), dt.memory.get_allocator()]
    for text in map(repr, texts):
        assert "\n" not in text and len(text) < 120 and text.startswith(("<", "DataPtr("))
        assert str(device) in text and "object object" not in text
    assert ", 12 bytes, deleter=" in repr(x.storage().ptr)
    assert " live in " in repr(dt.memory.get_allocator())


# --- on every device that is installed ------------------------------------------------------------


@pytest.mark.parametrize("name", [str(d) for d in dt.__array_namespace_info__().devices()])
def test_storages_work_on_every_device(name: str) -> None:
    with dt.device(name):
        x = dt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        before, s = x + 1, x.T.storage()
        assert s.tolist() == [1, 2, 3, 4, 5, 6] and s[-1] == 6 and s[1:3].tolist() == [2, 3]
        s[0] = 9
        s[4:] = 0
        assert x.tolist() == [[9, 2, 3], [4, 0, 0]] and before.tolist() == [[2, 3, 4], [5, 6, 7]]
        assert s.view(dt.int32)[0].item() == 0x41100000
        assert x.resize_(2).tolist() == [9, 2] and x.resize_(4, 2)[:3].tolist()[1] == [3, 4]
        with dt.poison_empty():
            assert np.isnan(dt.empty(3).tolist()).all()
        z = dt.zeros(4)
        assert dt.concat([z + 1, z], out=dt.empty(8)).tolist() == [1] * 4 + [0] * 4
        assert z.fill_(2).cumulative_sum_(0).tolist() == [2, 4, 6, 8]
        assert dt.sort(-z, out=z).tolist() == [-8, -6, -4, -2]
        rng = dt.random.default_rng(7)
        want = dt.random.default_rng(7).normal(4, device="reference").tolist()
        assert z.normal_(generator=rng).tolist() == want
        mine = CountingAllocator(dt.device(name))
        y = dt.empty((2, 2), allocator=mine).fill_(1)
        assert (y @ y).tolist() == [[2, 2], [2, 2]] and mine.asked == 1
        del y
        gc.collect()
        dt.synchronize(name)
        assert mine.back == 1
        said = dt.show(x, x.T)
        assert said.svg().count("<svg") == 1 and f"on {name}" in str(said)
        event, stream = dt.Event(), dt.Stream()
        event.record()
        event.synchronize()
        assert repr(event) == f"<Event of {name}, passed>"
        for text in map(repr, (s.ptr, stream, dt.memory.get_allocator(), s, dt.Storage(3))):
            assert text.startswith(("<", "DataPtr(")) and name in text
            assert len(text) < 120 and "\n" not in text
            assert "object object" not in text
