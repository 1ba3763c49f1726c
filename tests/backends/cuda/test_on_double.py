"""The host side of the cuda backend on the double of the driver: memory, streams, launches,
copies, events, and refusals.

The double runs work late and in any legal order, so a missing wait is found.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

import dovetail as dt
from cuda.bindings.driver import CUresult
from cuda_double import driver, plugin
from cuda_double.machine import MARK, Machine
from dovetail.commands import demo
from dovetail.device_class import Device
from dovetail.extend import Unavailable, legalize, parse_kernel
from dovetail.memory import CachingAllocator
from dovetail.nn.functional import attention
from dovetail.plugins.device_handle import OpenedDevice
from dovetail_cuda import plugin as cuda_plugin

ADD = """kernel add(x: r f32, out: w f32; n; c: f32) grid(n) {
  v0: f32 = load x[i0]
  v1: f32 = add v0, c
  store out[i0] = v1
}"""
X = np.arange(12, dtype="f4").reshape(3, 4)
_numbers = itertools.count(1)


@dataclass
class GPU:
    """A device on a new machine, under a new name."""

    machine: Machine
    backend: Any
    device: Device

    @property
    def allocator(self) -> CachingAllocator:
        found: CachingAllocator = self.device.opened.allocator
        return found


_made: list[GPU] = []


def gpus(**asked: Any) -> list[GPU]:
    machine = driver.reset(**asked)
    found = cuda_plugin.dovetail_probe({})
    assert not isinstance(found, Unavailable), found.reason
    made = []
    for info in found:
        backend, device = cuda_plugin.dovetail_open(info, {}), dt.device(f"cuda:{next(_numbers)}")
        allocator = CachingAllocator(backend, device)
        device.opened = OpenedDevice(backend, allocator, device, backend.library_calls())
        made.append(GPU(machine, backend, device))
    _made.extend(made)
    return made


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with plugin.installed():
        yield
        gc.collect()
        while _made:
            _made.pop().device.opened = None
        gc.collect()


@pytest.fixture
def gpu() -> GPU:
    return gpus(seed=1)[0]


def asarray(x: Any, gpu: GPU) -> dt.Tensor:
    return dt.asarray(x, device=gpu.device)


# --- finding devices


def test_probe_describes_the_device(gpu: GPU) -> None:
    info = cuda_plugin.dovetail_probe({})[0]  # type: ignore[index]
    assert info.name == "CUDA driver double" and info.details["arch"] == "sm_90"
    assert info.total_memory == gpu.machine.memory and "sm_90" in info.fingerprint


@pytest.mark.parametrize(
    ("function", "result", "reason"),
    [
        ("cuInit", CUresult.CUDA_ERROR_NO_DEVICE, "no GPU"),
        ("cuInit", CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "SYSTEM_DRIVER_MISMATCH"),
        ("cuDeviceGetCount", CUresult.CUDA_ERROR_UNKNOWN, "ERROR_UNKNOWN"),
    ],
)
def test_probe_reports_why_the_driver_does_not_work(
    function: str, result: CUresult, reason: str
) -> None:
    driver.reset().refuse(function, result)
    found = cuda_plugin.dovetail_probe({})
    assert isinstance(found, Unavailable) and reason in found.reason and found.hint


# --- memory


@pytest.mark.filterwarnings("ignore:Exception ignored in:Warning")  # finds no context
def test_all_memory_and_handles_are_released(gpu: GPU) -> None:
    x = asarray(X, gpu)
    y = (x * 2).sum(axis=1)
    assert y.tolist() == (X * 2).sum(1).tolist()
    held = gpu.machine.live()["bytes"]
    assert held > 0
    del x, y
    gc.collect()
    gpu.allocator.empty_cache()
    cells = gpu.machine.live()["bytes"]
    assert gpu.allocator.stats()["live_bytes"] == 0 and cells < 4096
    gpu.backend.close()
    assert gpu.machine.live()["bytes"] == 0


def test_memory_is_not_freed_while_work_uses_it(gpu: GPU) -> None:
    for seed in range(5):
        gpu.machine.contexts[0].scheduler.chance.seed(seed)
        stream = dt.Stream(gpu.device)
        with stream:
            y = asarray(np.ones(1000, "f4"), gpu) + 1
            dt.evaluate(y)
        z = y.sum()
        del y
        gc.collect()
        gpu.allocator.empty_cache()
        assert gpu.machine.contexts[0].fault is None and not gpu.machine.faults
        del z
    dt.synchronize(gpu.device)


def test_refused_allocation_frees_the_cache_and_retries(gpu: GPU) -> None:
    x = asarray(np.ones(1 << 20, "f4"), gpu)  # 4 MiB: a segment of its own
    del x
    gc.collect()
    before = gpu.machine.live()["bytes"]
    gpu.machine.refuse("cuMemAlloc", CUresult.CUDA_ERROR_OUT_OF_MEMORY)
    y = asarray(np.ones(8 << 20, "f4"), gpu)
    assert float(y.sum()) == 8 << 20 and gpu.machine.live()["bytes"] < before + (40 << 20)


def test_out_of_memory_error_leaves_state_intact() -> None:
    gpu = gpus(memory=64 << 20)[0]
    x = asarray(X, gpu)
    with pytest.raises(dt.OutOfMemoryError, match=r"could not allocate 256.0 MiB"):
        dt.evaluate(dt.zeros((64 << 20,), dtype=dt.float32, device=gpu.device))
    assert (x + 1).tolist() == (X + 1).tolist()
    for at in range(1, 4):
        gpu.machine.refuse("cuMemAlloc", CUresult.CUDA_ERROR_OUT_OF_MEMORY, at=at, times=99)
        with suppress(dt.OutOfMemoryError):
            dt.evaluate(asarray(np.ones(3 << 20, "f4"), gpu) + 1)
        gpu.machine.scripts.clear()
        assert (x + at).tolist() == (X + at).tolist()
    gc.collect()
    live = gpu.allocator.stats()["live_bytes"]
    assert live < 1 << 20


def test_pointers_are_device_addresses(gpu: GPU) -> None:
    x = asarray(X, gpu)
    dt.evaluate(x)
    assert x.data_ptr() & MARK and x.__dlpack_device__() == (2, gpu.device.index)
    assert np.array_equal(np.asarray(x.to("reference")), X)
    y = dt.from_dlpack(x)
    assert y.device is gpu.device and y.data_ptr() == x.data_ptr()
    y += 1
    assert np.array_equal(x.numpy(), X + 1)
    del x
    gc.collect()
    assert np.array_equal(y.numpy(), X + 1) and not gpu.machine.faults


def test_cuda_array_interface_describes_memory_of_the_device(gpu: GPU) -> None:
    x = asarray(X, gpu)
    y = x + 1
    interface = y[1:].__cuda_array_interface__
    start = y.data_ptr() + y[0].nbytes
    assert interface == {
        "shape": y[1:].shape, "typestr": "<f4", "data": (start, False), "strides": None,
        "version": 3, "stream": None,
    }  # fmt: skip
    assert y.flip(0).__cuda_array_interface__["strides"][0] == -y[0].nbytes
    assert x[:0].__cuda_array_interface__["data"][0] == 0
    assert not hasattr(x.astype(dt.bfloat16), "__cuda_array_interface__")
    assert not hasattr(x, "__array_interface__")


# --- launches


def launched(gpu: GPU, text: str, ints: list[int], *arguments: Any) -> Any:
    """Return a bound launch of a kernel over its first integer."""
    kernel = legalize(parse_kernel(text), gpu.backend.info.capabilities)
    return gpu.backend.bind(gpu.backend.compile(kernel), ints, ints[:1])


def test_bound_launch_reads_new_buffers_offsets_and_scalars(gpu: GPU) -> None:
    launch = launched(gpu, ADD, [5])
    x, out = np.arange(10, dtype="f4"), np.zeros(5, "f4")
    source, target = gpu.backend.allocate(40), gpu.backend.allocate(40)
    gpu.backend.copy_in(source, 0, memoryview(x).cast("B"))
    for first, c in ((0, 1.0), (5, -2.0), (5, 1e39)):
        launch((source, 4 * first, target, 4 * first), [c], None)
        gpu.backend.copy_out(memoryview(out).cast("B"), target, 4 * first)
        with np.errstate(over="ignore"):
            assert np.array_equal(out, x[first : first + 5] + np.float32(c))


@pytest.mark.parametrize(
    ("code", "numpy", "value"),
    [("i8", "i1", -129), ("u8", "u1", 300), ("i16", "i2", 40000), ("u16", "u2", -1),
     ("i32", "i4", 1 << 31), ("u32", "u4", -5), ("i64", "i8", -7), ("u64", "u8", -1)],
)  # fmt: skip
def test_integer_arguments_wrap_around(gpu: GPU, code: str, numpy: str, value: int) -> None:
    text = f"kernel fill(out: w {code}; n; c: {code}) grid(n) {{\n  store out[i0] = c\n}}"
    launch, out = launched(gpu, text, [3]), np.zeros(3, numpy)
    target = gpu.backend.allocate(64)
    launch((target, 0), [value], None)
    gpu.backend.copy_out(memoryview(out).cast("B"), target, 0)
    assert (out == np.array([value]).astype(numpy)).all()


def test_arguments_may_change_when_a_launch_returns(gpu: GPU) -> None:
    launch, n = launched(gpu, ADD, [4]), 20
    source, targets = gpu.backend.allocate(16), [gpu.backend.allocate(16) for _ in range(n)]
    gpu.backend.copy_in(source, 0, memoryview(np.zeros(4, "f4")).cast("B"))
    for i, target in enumerate(targets):
        launch((source, 0, target, 0), [float(i)], None)
    for i, target in enumerate(targets):
        out = np.zeros(4, "f4")
        gpu.backend.copy_out(memoryview(out).cast("B"), target, 0)
        assert (out == i).all()


def test_refused_launch_names_kernel_and_error(gpu: GPU) -> None:
    x = asarray(X, gpu)
    gpu.machine.refuse("cuLaunchKernel", CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    with pytest.raises(RuntimeError, match=r"launching \w+.*LAUNCH_OUT_OF_RESOURCES"):
        (x + 1).numpy()
    assert (x + 1).tolist() == (X + 1).tolist()


@pytest.mark.filterwarnings("ignore:Exception ignored in:Warning")  # finds no context
def test_crash_on_the_device_raises_a_clear_error(gpu: GPU) -> None:
    x = asarray(X, gpu)
    dt.synchronize(gpu.device)
    gpu.machine.crash_launch()
    with pytest.raises(RuntimeError, match=r"CUDA_ERROR_LAUNCH_FAILED.*restart"):
        (x + 1).numpy()
    with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_FAILED"):
        asarray(X, gpu).numpy()


def test_out_of_range_index_raises_and_keeps_the_context(gpu: GPU) -> None:
    x, i = asarray(X.ravel(), gpu), asarray(np.array([0, 12]), gpu)
    y = dt.take(x, i)
    with pytest.raises(IndexError, match="take: 12 is out of range for axis 0 of size 12"):
        y.numpy()
    assert not gpu.machine.faults and (x + 1).tolist() == (X.ravel() + 1).tolist()
    stream = dt.Stream(gpu.device)
    with stream:
        z = dt.take(x, i)
        dt.evaluate(z)  # the launch returns before any check
    with pytest.raises(IndexError, match="take: 12 is out of range for axis 0 of size 12"):
        stream.synchronize()
    assert dt.take(x, asarray(np.array([3]), gpu)).tolist() == [3]


# --- copies, streams, events


def test_source_may_change_when_a_copy_returns(gpu: GPU) -> None:
    address = gpu.backend.allocate_pinned(64)
    pinned = np.ctypeslib.as_array((ctypes.c_float * 16).from_address(address))
    for source in (np.zeros(16, "f4"), pinned, np.zeros(1 << 19, "f4")):
        source[:] = 1
        target, out = gpu.backend.allocate(source.nbytes), np.zeros_like(source)
        gpu.backend.copy_in(target, 0, memoryview(source).cast("B"))
        source[:] = 2
        gpu.backend.copy_out(memoryview(out).cast("B"), target, 0)
        assert (out == 1).all()
    gpu.backend.free_pinned(address, 64)


def test_copies_to_pinned_memory_are_complete_on_return(gpu: GPU) -> None:
    address = gpu.backend.allocate_pinned(64)
    pinned = np.ctypeslib.as_array((ctypes.c_float * 16).from_address(address))
    source = gpu.backend.allocate(64)
    gpu.backend.copy_in(source, 0, memoryview(np.ones(16, "f4")).cast("B"))
    gpu.backend.copy_out(memoryview(pinned).cast("B"), source, 0)
    assert (pinned == 1).all()


def test_non_blocking_copies_stay_queued(gpu: GPU) -> None:
    x = dt.asarray(X, device="reference").pin_memory(gpu.device)
    y = x.to(gpu.device, non_blocking=True)
    assert gpu.machine.contexts[0].scheduler.default.queue, "the copy was waited for"
    x += 1  # waits
    z = (y * 2).to("reference", non_blocking=True)
    assert np.array_equal(z.numpy(), X * 2) and np.array_equal(x.numpy(), X + 1)
    del x, y, z
    gc.collect()
    dt.synchronize(gpu.device)
    assert not gpu.machine.faults


@pytest.mark.parametrize("seed", range(6))
def test_streams_wait_for_events(gpu: GPU, seed: int) -> None:
    gpu.machine.contexts[0].scheduler.chance.seed(seed)
    one, two = dt.Stream(gpu.device), dt.Stream(gpu.device)
    with one:
        x = asarray(np.full(1000, 3, "f4"), gpu)
        y = x * 2 + 1
        dt.evaluate(y)
    two.wait_stream(one)
    with two:
        z = y + x
        dt.evaluate(z)
    dt.default_stream(gpu.device).wait_stream(two)
    assert (z.numpy() == 10).all() and not gpu.machine.faults


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("again", [False, True])
def test_memory_in_use_by_another_stream_is_not_reused(gpu: GPU, again: bool, seed: int) -> None:
    gpu.machine.contexts[0].scheduler.chance.seed(seed)
    other = dt.Stream(gpu.device)
    x = asarray(np.full(1000, 3, "f4"), gpu)
    dt.synchronize(gpu.device)
    with other:
        # the second time the graph is in the plan cache and takes another path
        for _ in range(1 + again):
            y = x + 1
            dt.evaluate(y)  # reads x, later
    del x
    gc.collect()
    for _ in range(3):
        z = asarray(np.full(1000, 7, "f4"), gpu)
        assert (z.numpy() == 7).all()
    other.synchronize()
    assert (y.numpy() == 4).all()


def test_events_complete_and_measure_time(gpu: GPU) -> None:
    stream = dt.Stream(gpu.device)
    start = stream.record_event()
    with stream:
        y = asarray(X, gpu) + 1
        dt.evaluate(y)
    end = stream.record_event()
    assert not end.query()
    assert start.elapsed_ms(end) > 0 and end.query()


# --- threads, processes, devices


def test_every_thread_may_use_the_device(gpu: GPU) -> None:
    x, found = asarray(X, gpu), list[Any]()

    def work(n: int) -> None:
        found.append((n, ((x + n) * 2).tolist()))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [(n, ((X + n) * 2).tolist()) for n in range(4)]


def test_forked_child_gets_an_error_with_the_remedy(gpu: GPU) -> None:
    x, (read, write) = asarray(X, gpu), os.pipe()
    dt.evaluate(x)
    if not (child := os.fork()):
        try:
            os.write(write, repr((x + 1).tolist()).encode())
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(read, 1000).decode()
    assert "fork" in said and "spawn" in said
    assert (x + 1).tolist() == (X + 1).tolist()


def test_two_devices_exchange_tensors_by_copy() -> None:
    one, two = gpus(devices=2)
    x, y = asarray(X, one), asarray(X, two)
    with pytest.raises(dt.DeviceError, match=rf"{one.device}.*{two.device}"):
        x + y
    assert (x.to(two.device) + y).tolist() == (X * 2).tolist()
    assert not one.machine.faults


def test_cubins_are_loaded_and_damaged_ones_rejected(gpu: GPU) -> None:
    kernel = parse_kernel(ADD)
    cubin = gpu.backend.compile(kernel).binary
    loaded = gpu.backend.load(kernel, cubin)
    launch, out = gpu.backend.bind(loaded, [3], [3]), np.zeros(3, "f4")
    place = gpu.backend.allocate(64)
    gpu.backend.copy_in(place, 0, memoryview(np.ones(3, "f4")).cast("B"))
    launch((place, 0, place, 32), [2.0], None)
    gpu.backend.copy_out(memoryview(out).cast("B"), place, 32)
    assert (out == 3).all()
    for damaged in (cubin[:-10], b"", cubin[:100] + b"x" + cubin[101:]):
        with pytest.raises((RuntimeError, ValueError)):
            gpu.backend.load(kernel, damaged)


def test_compile_error_shows_kernel_and_log(gpu: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail_cuda.render import CudaStyle

    monkeypatch.setattr(CudaStyle, "store", lambda *a: "no such statement;")
    with pytest.raises(dt.errors.CompileError, match=r"(?s)sm_90.*error.*kernel add\("):
        gpu.backend.compile(parse_kernel(ADD))


# --- whole programs


def test_demo_on_the_double_has_the_reference_bits(gpu: GPU) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pixels, labels = demo.load_digits()
    size = demo.DemoSize(iterations=3, seeds=2, steps=4)
    found = [
        demo.sort_digits(d, pixels[:100], labels[:100], size, lambda: None)
        for d in (str(gpu.device), "reference")
    ]
    assert found[0].count == 100 and demo.disagreements(found) == []


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a dovetail command in a process that has the double too."""
    line = [sys.executable, "-m", "dovetail.commands.cli", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=1000)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_has_the_reference_bits(
    gpu: GPU, monkeypatch: pytest.MonkeyPatch, causal: bool
) -> None:
    monkeypatch.setattr(attention, "TILE_SCORES_MAX", 64)
    monkeypatch.setattr(attention, "PRODUCT_BLOCK", 4)  # of keys
    arrays = [np.random.default_rng(i).normal(size=(2, 9, 4)).astype("f4") for i in range(3)]

    def made(device: Any) -> list[Any]:
        given = [dt.asarray(a, device=device).requires_grad_() for a in arrays]
        with dt.vendor_products(False):
            out = dt.nn.functional.scaled_dot_product_attention(*given, is_causal=causal)
            gradients = dt.grad((out * out).sum(), given)
        return [x.detach().numpy() for x in (out, *gradients)]

    for found, wanted in zip(made(gpu.device), made("reference"), strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("n", [7, 16, 17, 60, 64, 1000])
def test_transforms_have_the_reference_bits(gpu: GPU, n: int) -> None:
    rng = np.random.default_rng(n)
    values = (rng.random((3, n)) + 1j * rng.random((3, n))).astype("c8")
    for f in (dt.fft.fft, dt.fft.ifft, lambda x: dt.fft.rfft(dt.real(x))):
        found, wanted = (f(dt.asarray(values, device=d)).numpy() for d in (gpu.device, "reference"))
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("n", [3, 8])
def test_batched_small_matrices_have_the_reference_bits(gpu: GPU, n: int) -> None:
    values = np.random.default_rng(n).random((300, n, n), dtype="f4") + n * np.eye(n, dtype="f4")
    for f in (dt.linalg.inv, dt.linalg.det, lambda x: dt.linalg.cholesky(x @ x.mT)):
        found, wanted = (f(dt.asarray(values, device=d)).numpy() for d in (gpu.device, "reference"))
        assert found.tobytes() == wanted.tobytes()


def test_only_memory_known_to_the_driver_is_shared(gpu: GPU) -> None:
    a = np.ones(3, "f4")
    with pytest.raises(dt.ArgumentError, match="cannot use the memory"):
        dt.asarray(a, copy=False, device=gpu.device)
    with pytest.raises(dt.SharingError, match="cannot use the memory"):
        dt.from_blob(a.ctypes.data, 3, device=gpu.device)
    x = dt.ones(3, device=gpu.device)
    assert dt.from_blob(x.data_ptr(), 3, device=gpu.device).tolist() == [1, 1, 1]
    assert not gpu.machine.faults


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_pickled_tensors_return_to_the_device(gpu: GPU, dtype: str) -> None:
    x, kept = dt.ones(3, dtype=dtype, device=gpu.device), list[pickle.PickleBuffer]()
    y = pickle.loads(pickle.dumps(x, 5, buffer_callback=kept.append), buffers=kept)
    assert y.device is gpu.device and (y + 1).tolist() == [2, 2, 2]


def test_sampled_conformance_kit_passes() -> None:
    done = command("test-backend", "cuda", "--sample", "2000", "-p", "no:xdist")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "CUDA driver double" in done.stdout


WHOLE = {
    "as it is": (),
    "by the schedules of large launches": ("-p", "cuda_double.large_schedules"),
}


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", WHOLE)
def test_conformance_kit_passes(way: str) -> None:
    done = command("test-backend", "cuda", "-n", "2", *WHOLE[way])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("arguments", [(), ("train", "--epochs", "2")], ids=" ".join)
def test_demos_give_one_digest_on_every_device(arguments: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = command("demo", *arguments, "--full", "--out", str(tmp_path / "picture.png"))
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "cuda" in done.stdout and "reference" in done.stdout
