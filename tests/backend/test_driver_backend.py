"""Backends on a driver: which parts get a call, and when the driver is waited for."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dovetail.backend.driver_backend import DeviceMemory, DriverBackend
from dovetail.backend.host import address_of
from dovetail.backend.launches import argument_packer, scalar_argument, struct_format
from dovetail.device_class import device, opened
from dovetail.dtypes import INTEGERS, DType, bool_, float32, float64, int8, int32, uint32, uint64
from dovetail.errors import DeviceError


class HostMemory(DeviceMemory):
    """Memory of arrays, which writes down the calls it gets."""

    def __init__(self, shared: bool, queues: bool) -> None:
        self.shared, self.queues, self.calls = shared, queues, list[str]()

    def allocate(self, nbytes: int) -> Any:
        return np.zeros(nbytes, "u1")

    def free(self, handle: Any) -> None:
        self.calls.append("free")

    def address(self, handle: Any) -> int:
        return address_of(memoryview(handle))

    def copy_in(self, handle: Any, offset: int, source: memoryview, stream: Any) -> None:
        self.calls.append(f"copy_in on {stream}")
        handle[offset : offset + source.nbytes] = source

    def copy_out(self, target: memoryview, handle: Any, offset: int, stream: Any) -> None:
        self.calls.append(f"copy_out on {stream}")
        target[:] = memoryview(handle)[offset : offset + target.nbytes]

    def queue_copy_in(self, handle: Any, offset: int, source: memoryview, stream: Any) -> bool:
        self.calls.append(f"queue on {stream}")
        return self.queues


class HostBackend(DriverBackend):
    """A backend on such memory, of a driver that can be lost."""

    lost = False

    def __init__(self, shared: bool, queues: bool = False) -> None:
        super().__init__(replace(opened(device("reference")).backend.info, type="host"), "Driver")
        self.arrays, compiler = HostMemory(shared, queues), Any
        self.attach(self.arrays, compiler, compiler, "default")  # type: ignore[arg-type] # unused

    def synchronize(self, stream: Any = None) -> None:
        self.arrays.calls.append(f"wait for {stream}")
        if self.lost:
            raise DeviceError("the device is lost")


@pytest.fixture(params=(False, True), ids=("separate", "shared"))
def backend(request: Any) -> Iterator[HostBackend]:
    yield HostBackend(request.param)


def test_copies_move_bytes_on_their_stream(backend: HostBackend) -> None:
    handle, out = backend.allocate(4), bytearray(3)
    backend.copy_in(handle, 1, memoryview(b"ab"))
    backend.copy_out(memoryview(out), handle, 1, "mine")
    assert out == b"ab\0"
    copies = ["copy_in on default", "copy_out on mine"]
    waits = ["wait for default", "wait for mine"]
    assert backend.arrays.calls == (waits if backend.memory.shared else copies)


def test_copies_of_no_bytes_reach_no_memory(backend: HostBackend) -> None:
    handle, nothing = backend.allocate(1), memoryview(bytearray())
    for copy in (backend.copy_in, backend.queue_copy_in):
        copy(handle, 0, nothing)
    for copy_out in (backend.copy_out, backend.queue_copy_out):
        copy_out(nothing, handle, 0)
    assert backend.arrays.calls == []


@pytest.mark.parametrize("queues", (False, True))
def test_copy_that_memory_does_not_queue_is_waited_for(queues: bool) -> None:
    backend = HostBackend(False, queues)
    backend.queue_copy_in(backend.allocate(1), 0, memoryview(b"a"), "mine")
    copies = [] if queues else ["copy_in on mine"]
    assert backend.arrays.calls == ["queue on mine", *copies]


def test_shared_memory_is_that_of_the_host(backend: HostBackend) -> None:
    shared, handle = backend.memory.shared, backend.allocate(8)
    assert backend.host == shared and backend.pins_memory == (not shared)
    assert backend.host_address(handle, 3) == (address_of(handle) + 3 if shared else None)


def test_memory_is_freed_after_all_work_also_of_a_lost_device(backend: HostBackend) -> None:
    backend.lost = True
    backend.free(backend.allocate(1), 1)
    assert backend.arrays.calls == ["wait for None", "free"]


def test_child_of_fork_frees_nothing_and_raises(backend: HostBackend) -> None:
    handle = backend.allocate(1)
    backend.process.alive = False
    backend.free(handle, 1)
    backend.free_pinned(1, 1)
    assert backend.arrays.calls == []
    calls: list[Any] = [
        lambda: backend.allocate(1),
        lambda: backend.copy_in(handle, 0, memoryview(b"a")),
        lambda: backend.compile(None),  # type: ignore[arg-type]  # it raises before that
        lambda: backend.adopt(1, 1),
    ]
    for call in calls:
        with pytest.raises(DeviceError, match=r"host:0.*opened before a fork.*Driver"):
            call()


@pytest.mark.parametrize("d", (bool_, *INTEGERS, float32, float64), ids=str)
def test_format_of_a_number_has_its_size_and_sign(d: DType) -> None:
    letter, word = struct_format(d), struct_format(d, 4)
    assert struct.calcsize(letter) == d.itemsize and struct.calcsize(word) == max(4, d.itemsize)
    for x in (0, 1) if d in (bool_, float32, float64) else (d.min, d.max):
        assert struct.unpack(letter, struct.pack(letter, x)) == (x,)
        assert struct.unpack(word, struct.pack(word, x)) == (x,)


def test_packed_scalars_wrap_or_overflow() -> None:
    pack = argument_packer(struct.Struct("<Qbif").pack, [int8, int32, float32])
    assert struct.unpack("<Qbif", pack([1 << 40], [200, 1 << 31, 1e39])) == (
        *(1 << 40, -56, -(1 << 31), float("inf")),
    )
    assert struct.unpack("<Qbif", pack([7], [1, 2, 3])) == (7, 1, 2, 3.0)


@pytest.mark.parametrize("d", (uint32, uint64), ids=str)
def test_scalar_argument_wraps(d: DType) -> None:
    assert scalar_argument(d)(-1) == d.max
