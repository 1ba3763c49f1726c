"""WebGPU devices: launches, memory, late errors, events, and what the doctor says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dovetail_webgpu", reason="dovetail-webgpu is not installed")

import dovetail as dt
from dovetail.errors import DeviceError
from dovetail.extend import Unavailable
from dovetail_webgpu import memory, plugin, queue
from webgpu_devices import DEVICES, NAMES, REASON, compile_add, opened, read_floats

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def device(request: Any) -> Iterator[tuple[Any, Any]]:
    with opened(request.param) as found:
        yield found


@pytest.fixture
def backend(device: tuple[Any, Any]) -> Any:
    return device[1]


def test_bound_launch_reads_new_buffers_offsets_and_scalars(backend: Any) -> None:
    launch = backend.bind(compile_add(backend), [5, 0, 0], [5])
    x = np.arange(10, dtype="f4")
    source, target = backend.allocate(40), backend.allocate(40)
    backend.copy_in(source, 0, memoryview(x).cast("B"))
    for first, c in ((0, 1.0), (5, -2), (5, 0.5)):
        launch((source, 4 * first, target, 4 * first), [c], None)
        out = read_floats(backend, target, 10)[first : first + 5]
        assert np.array_equal(out, x[first : first + 5] + np.float32(c))


def test_kernel_at_ten_places_is_bound_once(
    device: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    dev, backend = device
    x, bound = dt.arange(1000, dtype=dt.float32, device=dev), []
    dt.evaluate(x)
    bind = type(backend).bind
    monkeypatch.setattr(
        type(backend), "bind", lambda *args: bound.append(args[1].kernel.name) or bind(*args)
    )
    found = [(x[first : first + 100] * 3).tolist() for first in range(1, 11)]
    assert found == [[3.0 * (first + i) for i in range(100)] for first in range(1, 11)]
    assert len(bound) == 1


def test_launches_are_submitted_together_up_to_a_limit(backend: Any) -> None:
    handle = backend.allocate(4)
    launch = backend.bind(compile_add(backend), [1, 0, 0], [1])
    backend.copy_in(handle, 0, memoryview(bytes(4)))
    for count in range(1, queue.BATCH_LAUNCHES_MAX + 2):
        launch((handle, 0, handle, 0), [1.0], None)
        assert len(backend.queue._batch) == count % queue.BATCH_LAUNCHES_MAX
    assert read_floats(backend, handle, 1)[0] == queue.BATCH_LAUNCHES_MAX + 1


@pytest.mark.parametrize(("nbytes", "offset"), [(1, 3), (2, 3), (999, 0), (1000, 1), (2501, 7)])
def test_copies_move_all_bytes_and_no_others(
    backend: Any, nbytes: int, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "STAGING_BYTES", 1000)
    handle, source = backend.allocate(4096), np.random.default_rng(0).bytes(nbytes)
    backend.copy_in(handle, 0, memoryview(b"\xff" * 4096))
    backend.copy_in(handle, offset, memoryview(source))
    out = bytearray(4096)
    backend.copy_out(memoryview(out), handle, 0)
    assert out == b"\xff" * offset + source + b"\xff" * (4096 - offset - nbytes)
    part = bytearray(nbytes)
    backend.copy_out(memoryview(part), handle, offset)
    assert part == source


@pytest.mark.parametrize(
    "function",
    (
        "wgpuComputePassEncoderSetBindGroup",
        "wgpuComputePassEncoderEnd",
        "wgpuCommandEncoderFinish",
        "wgpuQueueWriteBuffer",
    ),
)
def test_finalizer_may_launch_and_read_in_the_midst_of_a_launch(
    backend: Any, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finalizer runs before one of the driver's functions, as garbage collection may do."""
    launch, found = backend.bind(compile_add(backend), [1, 0, 0], [1]), list[float]()
    handle, own = backend.allocate(4), backend.allocate(4)
    for each in (handle, own):
        backend.copy_in(each, 0, memoryview(bytes(4)))

    def finalize() -> None:
        monkeypatch.undo()
        launch((own, 0, own, 0), [5.0], None)
        found.extend([*read_floats(backend, own, 1), *read_floats(backend, handle, 1)])

    class Library:
        def __init__(self, library: Any) -> None:
            self.library = library

        def __getattr__(self, name: str) -> Any:
            if name == function and not found:
                finalize()
            return getattr(self.library, name)

    for name in ("lib", "libf"):
        monkeypatch.setattr(queue, name, Library(getattr(queue, name)))
    launch((handle, 0, handle, 0), [1.0], None)
    launch((handle, 0, handle, 0), [2.0], None)
    assert [*read_floats(backend, handle, 1), *read_floats(backend, own, 1)] == [3.0, 5.0]
    assert found == [5.0, 3.0]


def test_allocation_above_the_binding_names_both_sizes(backend: Any) -> None:
    most = backend.info.capabilities.max_buffer
    with pytest.raises(MemoryError, match=f"allocate {most + 1} bytes: WebGPU allows {most} bytes"):
        backend.allocate(most + 1)


def test_freed_memory_leaves_no_bind_group(backend: Any) -> None:
    launch, handle = backend.bind(compile_add(backend), [1, 0, 0], [1]), backend.allocate(4)
    launch((handle, 0, handle, 0), [1.0], None)
    assert (handle, handle) in backend.memory._groups
    backend.free(handle, 4)
    assert (handle, handle) not in backend.memory._groups
    backend.synchronize()


def test_freed_memory_is_not_kept_by_memory_of_the_same_launch(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = backend.bind(compile_add(backend), [1, 0, 0], [1])
    long, short = (backend.allocate(4) for _ in range(2))
    launch((long, 0, short, 0), [1.0], None)
    backend.free(short, 4)
    assert not long.groups
    monkeypatch.setattr(memory, "GROUPS_KEPT_MAX", 1)
    for _ in range(4):
        launch((long, 0, backend.allocate(4), 0), [1.0], None)
    assert len(long.groups) == 1
    backend.synchronize()


def test_threads_that_write_bytes_of_a_word_keep_all(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second thread writes its byte while the first one has read the word."""
    handle, copy_out, threads = backend.allocate(8), backend.memory.copy_out, list[Thread]()
    backend.copy_in(handle, 0, memoryview(bytes(8)))

    def copy_out_then_write(target: Any, block: Any, offset: int, *stream: None) -> None:
        copy_out(target, block, offset)
        if not threads:  # the first of two words is read
            write = partial(backend.copy_in, handle, 0, memoryview(b"\x01"))
            threads.append(Thread(target=write))
            threads[0].start()
            threads[0].join(0.5)

    monkeypatch.setattr(backend.memory, "copy_out", copy_out_then_write)
    backend.copy_in(handle, 1, memoryview(b"\x02" * 6))
    threads[0].join()
    out = bytearray(8)
    backend.copy_out(memoryview(out), handle, 0)
    assert out == b"\x01" + b"\x02" * 6 + b"\0"


def test_copy_to_the_host_works_after_an_interrupted_one(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    handle = backend.allocate(4)
    backend.copy_in(handle, 0, memoryview(b"abcd"))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(memory.ffi, "memmove", interrupt)
        backend.copy_out(memoryview(bytearray(4)), handle, 0)
    out = bytearray(4)
    backend.copy_out(memoryview(out), handle, 0)
    assert out == b"abcd"


def test_late_error_names_the_kernels_of_its_batch(backend: Any) -> None:
    """A dispatch of more groups than the device takes is an error of the whole batch."""
    launch = backend.bind(compile_add(backend), [1, 0, 0], [1 << 23])
    handle = backend.allocate(4)
    launch((handle, 0, handle, 0), [1.0], None)
    with pytest.raises(DeviceError, match="unfinished kernels: add"):
        backend.synchronize()
    backend.synchronize()
    backend.copy_in(handle, 0, memoryview(bytes(4)))
    assert read_floats(backend, handle, 1)[0] == 0  # the device works on


def test_events_pass_in_order_and_tell_the_time_between(backend: Any) -> None:
    n = 1 << 16
    handle, launch = backend.allocate(4 * n), backend.bind(compile_add(backend), [n, 0, 0], [n])
    start = backend.record_event(None)
    launch((handle, 0, handle, 0), [1.0], backend.create_stream())
    end = backend.record_event(None)
    backend.wait_event(None, end)
    assert backend.event_done(start) and backend.event_done(end)
    assert 0 < backend.elapsed_ms(start, end) < 10_000


def test_events_tell_the_time_without_timestamps(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apple's GPUs have none between passes."""
    other = SimpleNamespace(features=frozenset(("core-features-and-limits",)))
    n = 1 << 16
    handle, launch = backend.allocate(4 * n), backend.bind(compile_add(backend), [n, 0, 0], [n])
    monkeypatch.setattr(backend.queue, "device", other)
    start = backend.record_event(None)
    launch((handle, 0, handle, 0), [1.0], None)
    end = backend.record_event(None)
    assert backend.event_done(start) and backend.event_done(end)
    backend.wait_event(None, end)
    assert 0 < backend.elapsed_ms(start, end) < 60_000


def test_floats_and_integers_need_no_companion(device: tuple[Any, Any]) -> None:
    assert DEVICES[0].companion in (None, "reference")
    can = device[1].info.capabilities
    assert can.algebra == "free" and can.nan and not can.float64 and not can.int64


def test_missing_wheel_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    monkeypatch.delitem(sys.modules, "dovetail_webgpu.adapters", raising=False)
    found = plugin.dovetail_probe({})
    assert isinstance(found, Unavailable)
    assert "wgpu cannot be loaded" in found.reason and "pip install" in found.hint
    assert plugin.dovetail_diagnostics() == {}


def test_adapter_of_several_apis_is_listed_once_and_opengl_never() -> None:
    from dovetail_webgpu import adapters

    listed = adapters.list_adapters()
    assert len({adapters._identify(a) for a in listed}) == len(listed) == len(DEVICES)
    assert all(a.info["backend_type"] in adapters.APIS for a in listed)


@pytest.mark.parametrize("kind", ["CPU", "IntegratedGPU"])
def test_doctor_says_that_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    from dovetail_webgpu import adapters

    info = {"device": "a", "description": "b", "backend_type": "Vulkan", "adapter_type": kind}
    limits = {"max-storage-buffers-per-shader-stage": 8}
    found = [SimpleNamespace(info=info, limits=limits)]
    monkeypatch.setattr(adapters.wgpu.gpu, "enumerate_adapters_sync", lambda: found, raising=False)
    facts = plugin.dovetail_diagnostics()
    assert ("GPU" in facts) == (kind == "CPU")
    assert "NVIDIA's driver" in facts.get("GPU", "NVIDIA's driver")


def test_missing_adapter_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail_webgpu import adapters

    monkeypatch.setattr(adapters.wgpu.gpu, "enumerate_adapters_sync", list, raising=False)
    monkeypatch.setenv("VK_ICD_FILENAMES", "/nowhere")
    found = plugin.dovetail_probe({})
    assert isinstance(found, Unavailable) and found.reason == "wgpu finds no adapter"
    assert found.hint.startswith(
        "unset VK_ICD_FILENAMES, which hides all other drivers, or install"
    )
