"""Memory of Vulkan devices: shared with the host, or copied by way of a block that both see."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

import dovetail as dt
from dovetail.extend import bytes_at
from dovetail_vulkan import memory
from dovetail_vulkan.vulkan import VulkanError
from vulkan_devices import ADD, DEVICES, NAMES, REASON, compile_text, opened, read_floats

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


@pytest.fixture(params=DEVICES, ids=NAMES)
def shared(request: Any) -> Iterator[tuple[Any, Any]]:
    with opened(request.param) as found:
        if not found[1].memory.shared:
            pytest.skip("this device has memory of its own")
        yield found


@pytest.fixture(params=DEVICES, ids=NAMES)
def separate(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    monkeypatch.setattr(memory, "shares_memory", lambda physical: False)
    monkeypatch.setattr(memory, "STAGING_BYTES", 1000)
    with opened(request.param) as found:
        yield found


def test_numpy_is_a_view_of_shared_memory(shared: tuple[Any, Any]) -> None:
    x = dt.arange(1000, dtype=dt.float32, device=shared[0])
    seen = x.numpy()
    assert np.shares_memory(seen, x.numpy())
    x += 1
    assert seen[999] == 1000  # the write was waited for


def test_memory_of_a_separate_device_has_no_host_address(separate: tuple[Any, Any]) -> None:
    _, backend = separate
    handle = backend.allocate(100)
    assert backend.host_address(handle, 0) is None and not backend.host and backend.pins_memory
    backend.free(handle, 100)


@pytest.mark.parametrize(("nbytes", "offset"), [(1, 3), (999, 0), (1000, 1), (2501, 7)])
def test_staged_copies_move_all_bytes(separate: tuple[Any, Any], nbytes: int, offset: int) -> None:
    _, backend = separate
    handle, source = backend.allocate(4096), np.random.default_rng(0).bytes(nbytes)
    backend.copy_in(handle, 0, memoryview(bytes(4096)))
    backend.copy_in(handle, offset, memoryview(source))
    out = bytearray(4096)
    backend.copy_out(memoryview(out), handle, 0)
    assert bytes(out) == bytes(offset) + source + bytes(4096 - offset - nbytes)
    backend.free(handle, 4096)


def test_queued_copies_use_pinned_memory_in_the_order_of_the_stream(
    separate: tuple[Any, Any],
) -> None:
    _, backend = separate
    stream, program = backend.create_stream(), compile_text(backend, ADD)
    source, target = backend.allocate_pinned(40), backend.allocate_pinned(40)
    numbers = np.frombuffer(bytes_at(source, 40), "f4")
    numbers[:] = np.arange(10)
    x, y = backend.allocate(40), backend.allocate(40)
    backend.queue_copy_in(x, 0, bytes_at(source, 40), stream)
    backend.launch(program, (x, 0, y, 0), [10], [5.0], [10], stream)
    backend.queue_copy_out(bytes_at(target + 4, 36), y, 4, stream)
    assert len(stream.batch.commands) == 3 and stream.submitted == 0  # nothing has waited
    backend.synchronize(stream)
    assert np.array_equal(np.frombuffer(bytes_at(target, 40), "f4")[1:], np.arange(6, 15))
    assert np.array_equal(read_floats(backend, y, 10), np.arange(5, 15))
    for address in (source, target):
        backend.free_pinned(address, 40)
    assert backend.memory.pinned == {}


def test_programs_run_on_separate_memory(separate: tuple[Any, Any]) -> None:
    device, _ = separate
    x = dt.arange(5000, dtype=dt.float32, device=device)
    y = (x * 2 + 1).reshape(50, 100)
    assert float(y.sum().item()) == 25_000_000
    assert y[:, ::7].numpy().sum() == sum(y.numpy()[:, ::7].sum(axis=0))


def test_allocation_beyond_the_limit_raises_memory_error_with_both_sizes(
    shared: tuple[Any, Any],
) -> None:
    _, backend = shared
    most = backend.device.physical.allocation_bytes_max
    with pytest.raises(MemoryError, match=rf"could not allocate {most + 1} bytes.*allows {most} "):
        backend.allocate(most + 1)


def test_largest_buffer_is_halved_until_the_driver_allocates_it(
    shared: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_ = shared[1].memory
    allocate, tried = memory_.allocate_block, []

    def refuse(nbytes: int, flags: int) -> Any:
        tried.append(nbytes)
        if nbytes > 1 << 29:
            raise MemoryError
        return allocate(nbytes, flags)

    monkeypatch.setattr(memory_, "allocate_block", refuse)
    assert memory_.find_largest_block(1 << 31) == 1 << 29
    assert tried == [1 << 31, 1 << 30, 1 << 29] and not memory_.blocks


def test_refused_allocation_frees_what_it_had(
    shared: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, backend = shared
    destroyed, call = [], backend.device.functions

    def refuse(*_: Any) -> None:
        raise VulkanError("vkAllocateMemory failed: VK_ERROR_OUT_OF_DEVICE_MEMORY", -2)

    monkeypatch.setattr(call, "AllocateMemory", refuse)
    destroy = call.DestroyBuffer
    monkeypatch.setattr(
        call, "DestroyBuffer", lambda *a: destroyed.append(a[1]) or destroy(*a), raising=False
    )
    with pytest.raises(MemoryError, match="VK_ERROR_OUT_OF_DEVICE_MEMORY"):
        backend.allocate(100)
    assert len(destroyed) == 1 and destroyed[0] and backend.memory.blocks == {}


def test_memory_is_aligned_to_64_bytes_for_device_and_host(shared: tuple[Any, Any]) -> None:
    _, backend = shared
    handles = [backend.allocate(n) for n in (1, 3, 65, 1000)]
    assert not any(h % 64 or backend.host_address(h, 0) % 64 for h in handles)
    block = (ctypes.c_char * 3).from_address(backend.host_address(handles[1], 0))
    backend.copy_in(handles[1], 0, memoryview(b"abc"))
    assert block.raw == b"abc"
    for handle in handles:
        backend.free(handle, 0)
    assert backend.memory.blocks == {}
