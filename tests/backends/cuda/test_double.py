"""The double of the CUDA driver: CUDA C runs with a device's rules, and broken rules are found."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")

from cuda.bindings.driver import CUdevice_attribute, CUresult, CUstream_flags
from cuda.bindings.nvrtc import nvrtcResult
from cuda_double import compiler, driver, nvrtc
from cuda_double.machine import MARK, SPACE, Machine, space
from places import ROOT

OK = CUresult.CUDA_SUCCESS
NON_BLOCKING = int(CUstream_flags.CU_STREAM_NON_BLOCKING)
OPTIONS = [b"--gpu-architecture=sm_90", b"--fmad=false"]

ADD = r"""
extern "C" __global__ void add(const float *x, const float *y, float *z, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
"""
BLOCK_SUM = r"""
extern "C" __global__ void block_sum(const int *x, int *z) {
  __shared__ int held[128];
  held[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  for (int width = 64; width; width /= 2) {
    if (threadIdx.x < width) held[threadIdx.x] += held[threadIdx.x + width];
    BARRIER
  }
  if (threadIdx.x == 0) z[blockIdx.x] = held[0];
}
"""
WARP = r"""
extern "C" __global__ void warp(const double *x, double *z) {
  double v = x[threadIdx.x];
  for (int width = 16; width; width /= 2) v += __shfl_xor_sync(0xffffffffu, v, width);
  int down = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 3);
  int up = __shfl_up_sync(~0u, threadIdx.x, 1);
  int first = __shfl_sync(~0u, (int)threadIdx.x, 0, 8);
  unsigned odd = __ballot_sync(~0u, threadIdx.x & 1);
  z[threadIdx.x] = v + 1000 * down + 1e6 * up + 1e9 * first + (odd == 0xaaaaaaaau ? 0.5 : 0);
}
"""


def succeed(result: tuple[Any, ...]) -> Any:
    """Assert success and return the other results of a driver call."""
    assert result[0] == 0, result[0]
    values = result[1:]
    return values[0] if len(values) == 1 else values


def start(**asked: Any) -> Machine:
    machine = driver.reset(seed=1, **asked)
    succeed(driver.cuInit(0))
    succeed(
        driver.cuCtxSetCurrent(
            succeed(driver.cuDevicePrimaryCtxRetain(succeed(driver.cuDeviceGet(0))))
        )
    )
    return machine


@pytest.fixture
def machine() -> Machine:
    return start()


def cubin(source: str, options: Sequence[bytes] = OPTIONS) -> bytes:
    program = succeed(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    result = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = bytearray(succeed(nvrtc.nvrtcGetProgramLogSize(program)))
    succeed(nvrtc.nvrtcGetProgramLog(program, log))
    assert result[0] == 0, log.decode()
    image = bytearray(succeed(nvrtc.nvrtcGetCUBINSize(program)))
    succeed(nvrtc.nvrtcGetCUBIN(program, image))
    succeed(nvrtc.nvrtcDestroyProgram(program))
    return bytes(image)


def function(source: str, name: str, options: Sequence[bytes] = OPTIONS) -> Any:
    module = succeed(driver.cuModuleLoadData(cubin(source, options)))
    return succeed(driver.cuModuleGetFunction(module, name.encode()))


def launch(f: Any, grid: Any, block: Any, *arguments: Any, stream: Any = 0) -> tuple[Any, ...]:
    values = [
        a if isinstance(a, ctypes._SimpleCData) else ctypes.c_uint64(int(a)) for a in arguments
    ]
    places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    g, b = ((*s, 1, 1)[:3] if isinstance(s, tuple) else (s, 1, 1) for s in (grid, block))
    return driver.cuLaunchKernel(f, *g, *b, 0, stream, ctypes.addressof(places), 0)  # type: ignore[no-any-return]


def to_device(array: Any) -> Any:
    pointer = succeed(driver.cuMemAlloc(array.nbytes))
    succeed(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    return pointer


def to_host(pointer: Any, like: Any) -> Any:
    found = np.empty_like(like)
    succeed(driver.cuMemcpyDtoH(found.ctypes.data, pointer, found.nbytes))
    return found


def pinned(n: int) -> tuple[Any, int]:
    """Return page-locked float32 numbers and their address."""
    address = succeed(driver.cuMemHostAlloc(4 * n, 0))
    return np.ctypeslib.as_array((ctypes.c_float * n).from_address(address)), address


def run(source: str, name: str, grid: Any, block: Any, *arrays: Any) -> tuple[Any, list[Any]]:
    """Launch a kernel; return the result of the next synchronize and the arrays."""
    pointers = [to_device(a) for a in arrays]
    succeed(launch(function(source, name), grid, block, *pointers))
    result = driver.cuCtxSynchronize()[0]
    return result, [
        to_host(p, a) for p, a in zip(pointers, arrays, strict=True)
    ] if result == 0 else []


# --- kernels


def test_vector_addition(machine: Machine) -> None:
    x, y = np.arange(1000, dtype="f4"), np.arange(1000, dtype="f4")[::-1].copy()
    pointers = [to_device(x), to_device(y), to_device(np.zeros_like(x))]
    f = function(ADD, "add")
    succeed(launch(f, 4, 256, *pointers, ctypes.c_int64(1000)))
    assert (to_host(pointers[2], x) == 999).all()
    assert machine.calls["cuLaunchKernel"] == 1


@pytest.mark.parametrize("seed", range(3))
def test_barriers_make_shared_memory_visible(machine: Machine, seed: int) -> None:
    machine.chance.seed(seed)
    x = np.arange(5 * 128, dtype="i4")
    source = BLOCK_SUM.replace("BARRIER", "__syncthreads();")
    result, arrays = run(source, "block_sum", 5, 128, x, np.zeros(5, "i4"))
    assert result == OK and np.array_equal(arrays[1], x.reshape(5, 128).sum(1))


def test_missing_barrier_gives_a_wrong_result(machine: Machine) -> None:
    x = np.arange(128, dtype="i4")
    _, arrays = run(BLOCK_SUM.replace("BARRIER", ""), "block_sum", 1, 128, x, np.zeros(1, "i4"))
    assert arrays[1][0] != x.sum()


def test_warp_shuffles_return_values_of_other_lanes(machine: Machine) -> None:
    x = np.random.default_rng(0).integers(0, 9, 32).astype("f8")
    result, arrays = run(WARP, "warp", 1, 32, x, np.zeros_like(x))
    i = np.arange(32)
    down, up = np.where(i + 3 > 31, i, i + 3), np.where(i < 1, i, i - 1)
    assert result == OK
    assert np.array_equal(arrays[1], x.sum() + 1000 * down + 1e6 * up + 1e9 * (i // 8 * 8) + 0.5)


def test_atomics_return_old_values_and_accumulate(machine: Machine) -> None:
    source = r"""
extern "C" __global__ void count(
    const unsigned *x, unsigned long long *z, int *most, unsigned *old) {
  const unsigned v = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&z[v % 7], 1ull);
  atomicMax(most, (int)v); atomicOr(&old[0], 1u << v % 7);
  unsigned seen = old[1], before;
  do { before = seen; seen = atomicCAS(&old[1], before, before + v); } while (seen != before);
}
"""
    x = np.random.default_rng(0).integers(0, 99, 512).astype("u4")
    empty = np.zeros(7, "u8"), np.zeros(1, "i4"), np.zeros(2, "u4")
    result, arrays = run(source, "count", 4, 128, x, *empty)
    assert result == OK and np.array_equal(arrays[1], np.bincount(x % 7, minlength=7))
    assert arrays[2][0] == x.max() and arrays[3][0] == 127 and arrays[3][1] == x.sum()


def test_floating_point_contraction_follows_the_options(machine: Machine) -> None:
    source = r"""
extern "C" __global__ void chain(const float *x, float *z) {
  const float product = x[threadIdx.x] * x[threadIdx.x];
  z[threadIdx.x] = product - 1.0f;
}
"""
    x = np.full(32, 1.1, "f4")
    x[1] = np.float32(1e-42)
    found = {}
    for fmad in (b"--fmad=false", b"--fmad=true"):
        pointers = [to_device(x), to_device(np.zeros_like(x))]
        f = function(source, "chain", [b"-arch=sm_90", fmad])
        succeed(launch(f, 1, 32, *pointers))
        found[fmad] = to_host(pointers[1], x)
    assert np.array_equal(found[b"--fmad=false"], x * x - np.float32(1))
    if "-mfma" in compiler.processor():
        assert found[b"--fmad=true"][0] != found[b"--fmad=false"][0]


def test_three_dimensional_grid_runs_every_block_and_thread(machine: Machine) -> None:
    source = r"""
extern "C" __global__ void __launch_bounds__(24) where(int *z) {
  const int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  z[b * 24 + t] += 1000 * b + t;
}
"""
    result, arrays = run(source, "where", (2, 3, 4), (4, 3, 2), np.zeros(24 * 24, "i4"))
    b, t = np.divmod(np.arange(24 * 24), 24)
    assert result == OK and np.array_equal(arrays[0], 1000 * b + t)


# --- broken rules

FAULTS = {
    "a barrier in a branch": (
        "if (threadIdx.x < 40) __syncthreads();",
        "LAUNCH_FAILED",
        "others have ended",
    ),
    "two barriers in two branches": (
        "if (threadIdx.x < 40) __syncthreads(); else __syncthreads();",
        "LAUNCH_FAILED",
        "different __syncthreads",
    ),
    "a shuffle without a lane": (
        "if (threadIdx.x != 5) x[0] = __shfl_down_sync(~0u, x[0], 1);",
        "LAUNCH_FAILED",
        "does not come",
    ),
    "a shuffle that waits for a barrier": (
        "if (threadIdx.x == 5) __syncthreads(); else __syncwarp();",
        "LAUNCH_FAILED",
        "does not come",
    ),
    "a lane outside the mask": (
        "if (threadIdx.x < 16) x[threadIdx.x] = __shfl_xor_sync(0xffffu, x[0], 16);",
        "LAUNCH_FAILED",
        "takes no part",
    ),
    "far outside": ("x[threadIdx.x - 1000000000ll] = 1;", "ILLEGAL_ADDRESS", "not mapped"),
    "just outside": ("if (threadIdx.x == 0) x[64] = 1;", "ILLEGAL_ADDRESS", "not mapped"),
    "just before": ("if (threadIdx.x == 0) x[-1] = 1;", "ILLEGAL_ADDRESS", "beside"),
    "a stack without end": (
        "volatile char big[100000]; big[threadIdx.x] = 1;",
        "ILLEGAL_ADDRESS",
        "not mapped",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_device_fault_is_reported_and_poisons_the_context(machine: Machine, name: str) -> None:
    body, kind, reason = FAULTS[name]
    if "stack" in name:
        body += " __syncthreads();"
    source = f'extern "C" __global__ void bad(int *x) {{ {body} }}'
    result, _ = run(source, "bad", 1, 64, np.zeros(64, "i4"))
    assert result == getattr(CUresult, f"CUDA_ERROR_{kind}")
    assert len(machine.faults) == 1 and reason in machine.faults[0], machine.faults
    assert driver.cuMemAlloc(8) == (result, None) and driver.cuCtxSynchronize() == (result,)
    assert reason.encode() in driver.cuGetErrorString(result)[1]


def test_invalid_pointer_arguments_are_reported(machine: Machine) -> None:
    x = np.zeros(64, "f4")

    def add(*pointers: Any) -> str:
        succeed(launch(function(ADD, "add"), 1, 64, *pointers, ctypes.c_int64(0)))
        result: str = driver.cuCtxSynchronize()[0].name
        return result

    a = to_device(x)
    assert add(a, a, int(a) + 4) == "CUDA_SUCCESS"
    assert add(a, a, int(a) + 2) == "CUDA_ERROR_MISALIGNED_ADDRESS"
    start()
    a = to_device(x)
    assert add(a, a, x.ctypes.data) == "CUDA_ERROR_ILLEGAL_ADDRESS"  # memory of the host
    start()
    a, b = to_device(x), to_device(x)
    succeed(driver.cuMemFree(b))
    assert add(a, b, a) == "CUDA_ERROR_ILLEGAL_ADDRESS"
    start()
    a, b = to_device(x), to_device(x)
    f = function(ADD, "add")
    succeed(launch(f, 1, 64, a, b, a, ctypes.c_int64(64)))
    succeed(driver.cuMemFree(b))  # too early: no synchronization yet
    assert driver.cuCtxSynchronize()[0] == CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "b" not in driver.machine.faults[0] or "neither live" in driver.machine.faults[0]


def test_host_cannot_read_device_memory(machine: Machine) -> None:
    a = succeed(driver.cuMemAlloc(100))
    child = os.fork()
    if not child:
        faulthandler.disable()  # otherwise it prints the stack of the expected crash
        ctypes.string_at(int(a), 1)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert int(a) & MARK and int(a) % 256 == 0


def test_32_bit_indices_reach_no_other_memory(machine: Machine) -> None:
    """Uninitialized memory holds such an index; a kernel could write anywhere with it."""
    at, reach = int(succeed(driver.cuMemAlloc(64))) ^ MARK, (1 << 31) * 16
    first, end = space().start, space().start + SPACE
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(x, 16) for x in line.split()[0].split("-"))
        if at - reach < high and low < at + reach:
            assert first <= low < high <= end, line


def test_memory_starts_poisoned_and_accesses_are_checked(machine: Machine) -> None:
    a = succeed(driver.cuMemAlloc(64))
    assert np.isnan(to_host(a, np.zeros(16, "f4"))).all()
    assert driver.cuMemcpyDtoH(np.zeros(17, "f4").ctypes.data, a, 68)[0].name.endswith("VALUE")
    assert driver.cuMemFree(int(a) + 4)[0] == CUresult.CUDA_ERROR_INVALID_VALUE
    succeed(driver.cuMemFree(a))
    assert driver.cuMemFree(a)[0] == CUresult.CUDA_ERROR_INVALID_VALUE
    assert int(succeed(driver.cuMemAlloc(64))) != int(a)


# --- streams


def test_queued_work_runs_at_a_synchronization(machine: Machine) -> None:
    x, address = pinned(8)
    x[:] = 1
    y, target = pinned(8)
    stream = succeed(driver.cuStreamCreate(NON_BLOCKING))
    a = succeed(driver.cuMemAlloc(32))
    succeed(driver.cuMemcpyHtoDAsync(a, address, 32, stream))
    x[:] = 2  # too early, and detected
    succeed(driver.cuMemcpyDtoHAsync(target, a, 32, stream))
    assert np.isnan(y).all()
    assert driver.cuStreamQuery(stream)[0] == CUresult.CUDA_ERROR_NOT_READY
    succeed(driver.cuStreamSynchronize(stream))
    assert (y == 2).all() and driver.cuStreamQuery(stream)[0] == OK


def test_pageable_memory_is_free_when_the_call_returns(machine: Machine) -> None:
    x, y = np.ones(8, "f4"), np.zeros(8, "f4")
    stream = succeed(driver.cuStreamCreate(NON_BLOCKING))
    a = succeed(driver.cuMemAlloc(32))
    succeed(driver.cuMemcpyHtoDAsync(a, x, 32, stream))  # an array shows its buffer
    x[:] = 2
    succeed(driver.cuMemcpyDtoHAsync(y.ctypes.data, a, 32, stream))
    assert (y == 1).all()


def two_streams(synchronise: Callable[[Any, Any], Any]) -> set[float]:
    """Return the values that one stream reads of another's writes, over many seeds."""
    seen = set()
    for seed in range(12):
        start()
        driver.machine.context().scheduler.chance.seed(seed)
        flags = [NON_BLOCKING] * 2
        one, two = (succeed(driver.cuStreamCreate(f)) for f in flags)
        a, (y, target) = to_device(np.zeros(4, "f4")), pinned(4)
        succeed(driver.cuMemcpyHtoDAsync(a, np.ones(4, "f4"), 16, one))
        synchronise(one, two)
        succeed(driver.cuMemcpyDtoHAsync(target, a, 16, two))
        succeed(driver.cuCtxSynchronize())
        seen.add(float(y[0]))
    return seen


def test_streams_are_ordered_only_by_events() -> None:
    def event(one: Any, two: Any) -> None:
        e = succeed(driver.cuEventCreate(0))
        succeed(driver.cuEventRecord(e, one))
        succeed(driver.cuStreamWaitEvent(two, e, 0))

    assert two_streams(lambda one, two: None) == {0.0, 1.0}
    assert two_streams(event) == {1.0}
    assert two_streams(lambda one, two: driver.cuStreamSynchronize(one)) == {1.0}


def test_default_stream_synchronizes_with_blocking_streams_only() -> None:
    for flags in (0, NON_BLOCKING):
        seen = set()
        for seed in range(12):
            start()
            driver.machine.context().scheduler.chance.seed(seed)
            one, two = (succeed(driver.cuStreamCreate(flags)) for _ in range(2))
            a, b, (y, target) = (
                to_device(np.zeros(4, "f4")),
                to_device(np.zeros(4, "f4")),
                pinned(4),
            )
            succeed(driver.cuMemcpyHtoDAsync(a, np.ones(4, "f4"), 16, one))
            succeed(driver.cuMemcpyDtoDAsync(b, a, 16, 0))
            succeed(driver.cuMemcpyDtoHAsync(target, b, 16, two))
            succeed(driver.cuStreamSynchronize(two))
            seen.add(float(y[0]))
        assert seen == {1.0} if flags == 0 else 0.0 in seen


def test_full_queue_is_drained(machine: Machine) -> None:
    stream, (x, address) = succeed(driver.cuStreamCreate(NON_BLOCKING)), pinned(4)
    a = to_device(np.ones(4, "f4"))
    for _ in range(1010):
        succeed(driver.cuMemcpyDtoHAsync(address, a, 16, stream))
    assert (x == 1).all() and driver.cuStreamQuery(stream)[0] == CUresult.CUDA_ERROR_NOT_READY


def test_garbage_is_not_collected_while_work_runs(machine: Machine) -> None:
    """Finalizers call the driver: within a kernel they would run later queued work."""

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            driver.cuStreamQuery(0)

    x = np.arange(1000, dtype="f4")
    pointers = [to_device(x), to_device(x), to_device(np.zeros_like(x))]
    f = function(ADD, "add")
    threshold = gc.get_threshold()
    try:
        for allocations in range(1, 200):
            gc.collect()
            Garbage()
            succeed(launch(f, 4, 256, *pointers, ctypes.c_int64(1000)))
            gc.set_threshold(allocations)  # the collection starts at another place each time
            found = to_host(pointers[2], x)
            gc.set_threshold(*threshold)
            assert np.array_equal(found, x + x), allocations
            succeed(driver.cuMemcpyHtoD(pointers[2], np.zeros_like(x).ctypes.data, x.nbytes))
    finally:
        gc.set_threshold(*threshold)


def test_events_record_query_and_measure(machine: Machine) -> None:
    stream = succeed(driver.cuStreamCreate(0))
    start_, end, never = (succeed(driver.cuEventCreate(0)) for _ in range(3))
    succeed(driver.cuEventRecord(start_, stream))
    succeed(driver.cuEventRecord(end, stream))
    assert driver.cuEventElapsedTime(start_, end) == (CUresult.CUDA_ERROR_NOT_READY, None)
    assert driver.cuEventQuery(end)[0] == CUresult.CUDA_ERROR_NOT_READY
    succeed(driver.cuEventSynchronize(end))
    assert succeed(driver.cuEventElapsedTime(start_, end)) >= 0
    assert driver.cuEventQuery(never)[0] == OK
    assert driver.cuEventElapsedTime(start_, never)[0] == CUresult.CUDA_ERROR_INVALID_HANDLE
    succeed(driver.cuEventDestroy(end))
    assert driver.cuEventQuery(end)[0] == CUresult.CUDA_ERROR_INVALID_HANDLE


# --- the script


def test_scripted_refusals_and_memory_limit() -> None:
    machine = start(memory=1000)
    assert driver.cuMemAlloc(1001)[0] == CUresult.CUDA_ERROR_OUT_OF_MEMORY
    machine.refuse("cuMemAlloc", CUresult.CUDA_ERROR_OUT_OF_MEMORY, at=2)
    assert [driver.cuMemAlloc(8)[0] for _ in range(3)] == [OK, 2, OK]
    assert succeed(driver.cuMemGetInfo()) == (984, 1000)
    assert machine.live() == {"bytes": 16, "pinned": 0}
    machine.refuse("cuLaunchKernel", CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    a = to_device(np.zeros(4, "f4"))
    assert launch(function(ADD, "add"), 1, 1, a, a, a, 4)[0].name.endswith("RESOURCES")
    machine.crash_launch(at=2)
    f = function(ADD, "add")
    succeed(launch(f, 1, 1, a, a, a, 4))
    assert driver.cuCtxSynchronize()[0] == OK
    succeed(launch(f, 1, 1, a, a, a, 4))
    assert driver.cuCtxSynchronize()[0] == CUresult.CUDA_ERROR_LAUNCH_FAILED


def test_two_devices_are_isolated() -> None:
    start(devices=2)
    a, f = to_device(np.zeros(4, "f4")), function(ADD, "add")
    succeed(driver.cuCtxSetCurrent(succeed(driver.cuDevicePrimaryCtxRetain(1))))
    succeed(launch(f, 1, 1, a, a, a, 4))
    assert driver.cuCtxSynchronize()[0] == CUresult.CUDA_ERROR_ILLEGAL_ADDRESS


def test_double_is_not_shipped() -> None:
    shipped = [p for d in ("core", "backends") for p in (ROOT / d).rglob("*.py")]
    assert len(shipped) > 50
    assert [p for p in shipped if "cuda_double" in p.read_text()] == []


# --- conventions


def test_thread_needs_a_context_and_a_forked_child_cannot_continue(machine: Machine) -> None:
    import threading

    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(driver.cuMemAlloc(8)))
    other.start()
    other.join()
    assert found == [(CUresult.CUDA_ERROR_INVALID_CONTEXT, None)]
    child = os.fork()
    if not child:
        os._exit(int(driver.cuMemAlloc(8)[0]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3  # CUDA_ERROR_NOT_INITIALIZED


def test_compile_errors_and_options(machine: Machine) -> None:
    program = succeed(nvrtc.nvrtcCreateProgram(b"not C at all", b"k", 0, [], []))
    found = nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=sm_90"])
    assert found[0] == nvrtcResult.NVRTC_ERROR_COMPILATION
    log = bytearray(succeed(nvrtc.nvrtcGetProgramLogSize(program)))
    succeed(nvrtc.nvrtcGetProgramLog(program, log))
    assert b"kernel.cu:1:" in log and b"error" in log
    found = nvrtc.nvrtcCompileProgram(program, 1, [b"--no-such-option"])
    assert found[0] == nvrtcResult.NVRTC_ERROR_INVALID_OPTION


def test_invalid_images_are_rejected(machine: Machine) -> None:
    image = cubin(ADD)
    address = ctypes.addressof(ctypes.create_string_buffer(image))
    assert driver.cuModuleLoadData(image[:-1])[0] == CUresult.CUDA_ERROR_INVALID_IMAGE
    assert driver.cuModuleLoadData(b"\x7fELF" * 99)[0] == CUresult.CUDA_ERROR_INVALID_IMAGE
    other = driver.cuModuleLoadData(cubin(ADD, [b"-arch=sm_100", b"--fmad=false"]))
    assert other[0] == CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    kept = ctypes.create_string_buffer(image)
    address = ctypes.addressof(kept)
    module = succeed(driver.cuModuleLoadData(address))
    assert driver.cuModuleGetFunction(module, b"other")[0] == CUresult.CUDA_ERROR_NOT_FOUND
    f = succeed(driver.cuModuleGetFunction(module, b"add"))
    succeed(driver.cuModuleUnload(module))
    assert launch(f, 1, 1)[0] == CUresult.CUDA_ERROR_INVALID_HANDLE


def test_device_attributes_are_reported() -> None:
    start(arch=(7, 5))
    name = succeed(driver.cuDeviceGetName(64, 0))
    assert len(name) == 64 and name.split(b"\0")[0] == b"CUDA driver double"
    for attribute, value in (("COMPUTE_CAPABILITY_MAJOR", 7), ("WARP_SIZE", 32)):
        asked = getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{attribute}")
        assert succeed(driver.cuDeviceGetAttribute(asked, 0)) == value
    assert (
        driver.cuGetErrorName(CUresult.CUDA_ERROR_OUT_OF_MEMORY)[1] == b"CUDA_ERROR_OUT_OF_MEMORY"
    )
    assert driver.cuDeviceGet(3)[0] == CUresult.CUDA_ERROR_INVALID_DEVICE


def test_invalid_launches_are_rejected(machine: Machine) -> None:
    f = function(ADD, "add")
    for grid, block in ((0, 1), (1, 1025), ((1, 70000), 1), (1, (64, 32))):
        assert launch(f, grid, block, 0, 0, 0, 0)[0] == CUresult.CUDA_ERROR_INVALID_VALUE
