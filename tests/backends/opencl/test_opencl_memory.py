"""Memory that host and device share, refusals by the driver, and forks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
pytest.importorskip("dovetail_opencl", reason="dovetail-opencl is not installed")

import dovetail as dt
import pyopencl as cl
from dovetail.device_class import Device
from dovetail.dtypes import float32
from dovetail.extend import KernelBuilder, legalize
from dovetail.ir.language import load
from dovetail_opencl import memory
from opencl_devices import DEVICES, NAMES, REASON, opened

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


@pytest.fixture(params=DEVICES, ids=NAMES)
def own_device(request: Any) -> Iterator[tuple[Device, Any]]:
    with opened(request.param) as found:
        if not found[1].memory.shared:
            pytest.skip("this device has memory of its own")
        yield found


def test_numpy_views_the_memory_of_the_device(own_device: tuple[Device, Any]) -> None:
    x = dt.arange(1000, dtype=dt.float32, device=own_device[0])
    seen = x.numpy()
    assert np.shares_memory(seen, x.numpy()) and seen.flags.writeable
    x += 1
    assert seen[999] == 1000  # the write was waited for


def test_numpy_array_is_used_without_a_copy(own_device: tuple[Device, Any]) -> None:
    wide = np.arange(101, dtype="f4")
    for a in (wide[1:], wide[::-2]):  # at an address that is no multiple of 8
        x = dt.asarray(a, device=own_device[0], copy=False)
        assert np.array_equal((x * 2).numpy(), a * 2)
        a[3] = -7
        assert (x * 2).numpy()[3] == -14
        x += 1
        assert a[3] == -6


def test_finalizer_that_launches_amid_a_launch_changes_no_argument_of_it(
    own_device: tuple[Device, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, b = own_device
    k = KernelBuilder("increment")
    x, n = k.buffer("x", float32, "rw"), k.int("n")
    at = k.axis(n)
    k.store(x, at, load(x, at) + 1)
    launch = b.bind(b.compile(legalize(k.build(), b.info.capabilities)), [4], [4])
    first, second, out = b.allocate(16), b.allocate(16), np.zeros(4, "f4")
    for handle in (first, second):
        b.copy_in(handle, 0, memoryview(out.view(np.uint8)))
    enqueue = cl.enqueue_nd_range_kernel

    def collect_garbage(*arguments: Any) -> Any:
        monkeypatch.setattr(cl, "enqueue_nd_range_kernel", enqueue)
        launch((second, 0), [], None)
        return enqueue(*arguments)

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", collect_garbage)
    launch((first, 0), [], None)
    for handle in (first, second):
        b.copy_out(memoryview(out.view(np.uint8)), handle, 0)
        assert out.tolist() == [1, 1, 1, 1]
        b.free(handle, 16)


SLOW = """__kernel void slow(__global volatile float *x) {
  for (long i = 0; i < 100000000; ++i) x[0] = i;
  x[0] = -7;
}"""


def test_work_of_a_destroyed_stream_is_waited_for(own_device: tuple[Device, Any]) -> None:
    """Otherwise its memory would be freed while it is written."""
    _, backend = own_device
    built = backend.compiler.build_text(cl.Program(backend.context, SLOW), ())
    kernel = cl.Kernel(built, "slow")
    handle, found = backend.allocate(4), np.zeros(1, "f4")
    queue = backend.create_stream()
    kernel.set_arg(0, handle)
    event = cl.enqueue_nd_range_kernel(queue, kernel, (1,), None)
    queue.flush()
    del queue
    backend.synchronize()
    assert event.command_execution_status == cl.command_execution_status.COMPLETE
    backend.copy_out(memoryview(found).cast("B"), handle, 0)
    assert found[0] == -7
    backend.free(handle, 4)


def test_foreign_memory_outlives_queued_work(own_device: tuple[Device, Any]) -> None:
    """The array dies at the earliest when the work on it has been queued."""
    for value in range(20):
        x = dt.asarray(np.full(300_000, value, "f4"), device=own_device[0], copy=False)
        y = x + 1
        dt.evaluate(y)
        del x
        _ = np.full(300_000, -1, "f4")
        assert np.all(y.numpy() == value + 1)


def test_dlpack_shares_memory_in_both_directions(own_device: tuple[Device, Any]) -> None:
    x = dt.arange(6, device=own_device[0])
    assert x.__dlpack_device__() == (1, 0)
    there = np.from_dlpack(x)
    assert np.shares_memory(there, x.numpy())
    a = np.arange(4.0)
    y = dt.from_dlpack(a, device=own_device[0])
    a[0] = 9
    assert y.numpy()[0] == 9


def test_device_synchronize_waits_for_all_streams(own_device: tuple[Device, Any]) -> None:
    dev, backend = own_device
    with dt.Stream(dev):
        y = dt.ones(2_000_000, device=dev)
        for _ in range(3):
            y = dt.exp(dt.sin(y))
            dt.evaluate(y)
    before = len(backend._queues)
    backend.synchronize()
    found = np.frombuffer(bytes(memoryview(y.numpy())), y.numpy().dtype)
    assert before >= 1 and np.ptp(found) == 0 and 1 < found[0] < 3


# --- refusals


class RefusingConstructor:
    """A stand-in for a constructor of pyopencl that succeeds a number of times, then refuses."""

    def __init__(self, make: Any, times: int) -> None:
        self.make, self.times = make, times

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.times -= 1
        if self.times < 0:
            raise cl.MemoryError("clSVMAlloc", -4, "scripted")
        return self.make(*args, **more)


def work(x: Any) -> Any:
    """Allocate five blocks of memory, all too large to be parts of one segment."""
    y = x
    for k in range(5):
        y = y * 2 + k
        x = dt.concat([x, y])
        dt.evaluate(y, x)
    return x


@pytest.mark.parametrize("times", (0, 1, 2, 3, 50))
def test_refused_allocation_leaves_data_and_statistics_intact(
    own_device: tuple[Device, Any], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    dev, _ = own_device
    x = dt.ones(1_000_000, device=dev)
    expected = work(x).numpy().copy()
    dt.memory.empty_cache(dev)
    before = dt.memory.stats(dev)
    monkeypatch.setattr(memory.cl, "SVMAllocation", RefusingConstructor(cl.SVMAllocation, times))
    try:
        found = work(x)
        dt.evaluate(found)
    except dt.OutOfMemoryError as error:
        assert "could not allocate" in str(error) and "live" in str(error)
        refused = True
    else:
        refused = False
        del found
    assert refused == (times < 4)
    after = dt.memory.stats(dev)
    assert after.live_bytes == before.live_bytes and after.live_blocks == before.live_blocks
    monkeypatch.undo()
    assert np.all(x.numpy() == 1) and np.array_equal(work(x).numpy(), expected)


# --- forks

FORK = """
import os, sys
import dovetail as dt
x = dt.ones(5, device={0!r})
assert (x + 1).sum().item() == 10
child = os.fork()
if child == 0:
    code = 1
    for attempt in (lambda: x * 3, lambda: (x + 1).sum(), lambda: dt.ones(99_999, device={0!r}) + 1):
        try:
            dt.evaluate(attempt())
        except dt.DeviceError as error:
            code = 0 if "fork" in str(error) and "spawn" in str(error) else 2
        else:
            code = 3
        if code:
            break
    del x
    os._exit(code)
status = os.waitpid(child, 0)[1]
assert (x * 2).sum().item() == 10  # the parent goes on
sys.exit(os.waitstatus_to_exitcode(status))
"""  # noqa: E501


@pytest.mark.parametrize("info", DEVICES, ids=NAMES)
def test_forked_child_raises_a_clear_error(info: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK.format(f"opencl:{info.index}")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
