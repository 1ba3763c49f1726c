"""Level 2: raw memory is aligned, keeps what is copied into it, at every offset, and is given
back."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..device_class import device
from ..errors import OutOfMemoryError
from ..memory import CachingAllocator, Stats
from ..memory.tracing.replay import TraceStep, replay_trace
from ..plugins.device_handle import OpenedDevice
from ..plugins.registry import open_device
from .kit import REFERENCE, Kit
from .values import Array, bytes_view

SIZES = (1, 2, 63, 64, 65, 511, 4096, 4097, (1 << 20) + 1)
MIB = 1 << 20


def pattern(nbytes: int, seed: int) -> Array:
    """Return `nbytes` random bytes."""
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


def read(kit: Kit, handle: Any, offset: int, nbytes: int) -> Array:
    """Copy bytes of the device's memory to a new array on the host."""
    block = np.zeros(nbytes, np.uint8)
    kit.backend.copy_out(bytes_view(block), handle, offset)
    return block


def expect_bytes(kit: Kit, actual: Array, expected: Array, what: str) -> None:
    """Count a comparison; fail unless the bytes are equal."""
    kit.comparisons += 1
    wrong = np.flatnonzero(actual != expected)
    assert not wrong.size, kit.failure(
        f"{what}: {wrong.size} bytes differ, the first at {wrong[:1]}", ""
    )


@pytest.mark.parametrize("nbytes", SIZES)
def test_what_is_copied_in_comes_out(kit: Kit, nbytes: int) -> None:
    """Check that a block of each size keeps all of its bytes."""
    handle = kit.backend.allocate(nbytes)
    data = pattern(nbytes, nbytes)
    kit.backend.copy_in(handle, 0, bytes_view(data))
    expect_bytes(kit, read(kit, handle, 0, nbytes), data, "all bytes")
    kit.backend.free(handle, nbytes)


@pytest.mark.parametrize("nbytes", SIZES)
def test_memory_is_aligned_where_the_host_can_see_it(kit: Kit, nbytes: int) -> None:
    """Check that addresses on the host, if there are any, are multiples of 64."""
    handles = [kit.backend.allocate(nbytes) for _ in range(5)]
    for handle in handles:
        address = kit.backend.host_address(handle, 0)
        assert address is None or address % 64 == 0, (
            f"{nbytes} bytes at {address}, which is not a multiple of 64"
        )
        assert address is None or kit.backend.host_address(handle, 7) == address + 7
        kit.backend.free(handle, nbytes)
        kit.comparisons += 1


def test_copies_at_offsets_leave_the_rest_alone(kit: Kit) -> None:
    """Check random partial copies in and out against a copy on the host."""
    size = 1000
    handle, mirror = kit.backend.allocate(size), pattern(size, 1)
    kit.backend.copy_in(handle, 0, bytes_view(mirror))
    rng = np.random.default_rng(2)
    for seed in range(40):
        first, last = sorted(rng.integers(0, size + 1, 2).tolist())
        mirror[first:last] = pattern(last - first, seed)
        kit.backend.copy_in(handle, first, bytes_view(mirror[first:last]))
        low, high = sorted(rng.integers(0, size + 1, 2).tolist())
        expect_bytes(
            kit, read(kit, handle, low, high - low), mirror[low:high], f"bytes {low}..{high}"
        )
    expect_bytes(kit, read(kit, handle, 0, size), mirror, "all bytes")
    kit.backend.free(handle, size)


def test_source_may_be_read_only_and_reused(kit: Kit) -> None:
    """Check that `copy_in` is done with its source on return, and takes bytes."""
    handle, data = kit.backend.allocate(256), pattern(256, 3)
    source = bytearray(data)
    kit.backend.copy_in(handle, 0, memoryview(source))
    source[:] = bytes(256)
    expect_bytes(kit, read(kit, handle, 0, 256), data, "the source was changed after the copy")
    kit.backend.copy_in(handle, 0, memoryview(bytes(data[::-1])))
    expect_bytes(kit, read(kit, handle, 0, 256), data[::-1], "a read-only source")
    kit.backend.free(handle, 256)


class ArrayInterface:
    """Memory at an address, as NumPy takes it."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__ = {
            "data": (address, True),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


def test_the_host_sees_what_the_device_has(kit: Kit) -> None:
    """Check that memory read at its host address has the copied bytes."""
    handle, data = kit.backend.allocate(256), pattern(256, 4)
    kit.backend.copy_in(handle, 0, bytes_view(data))
    address = kit.backend.host_address(handle, 16)
    actual = read(kit, handle, 16, 240)
    if address is not None:
        kit.backend.synchronize()
        actual = np.asarray(ArrayInterface(address, 240)).copy()
    expect_bytes(kit, actual, data[16:], "the host's view")
    kit.backend.free(handle, 256)


def test_blocks_are_apart_and_keep_their_bytes(kit: Kit) -> None:
    """Check that blocks, allocated and freed in random order, do not overlap."""
    rng = np.random.default_rng(5)
    live: dict[int, tuple[Any, Array]] = {}
    for step in range(120):
        if live and rng.random() < 0.4:
            handle, data = live.pop(int(rng.choice(list(live))))
            expect_bytes(
                kit,
                read(kit, handle, 0, data.size),
                data,
                f"a block of {data.size} bytes, step {step}",
            )
            kit.backend.free(handle, data.size)
        else:
            nbytes = int(rng.integers(1, 5000))
            handle, data = kit.backend.allocate(nbytes), pattern(nbytes, step)
            kit.backend.copy_in(handle, 0, bytes_view(data))
            live[step] = handle, data
    for handle, data in live.values():
        expect_bytes(
            kit, read(kit, handle, 0, data.size), data, f"a block of {data.size} bytes, at the end"
        )
        kit.backend.free(handle, data.size)


def resident_bytes() -> int:
    """Return the bytes of this process in memory; 0 if the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except (OSError, ValueError):
        return 0


def fill_and_free(kit: Kit, nbytes: int) -> None:
    """Allocate and free 24 blocks, one after the other, with writes to all of their parts."""
    page = np.ones(MIB, np.uint8)
    for _ in range(24):
        handle = kit.backend.allocate(nbytes)
        for offset in range(0, nbytes, nbytes // 8):
            kit.backend.copy_in(handle, offset, bytes_view(page))
        kit.backend.synchronize()
        kit.backend.free(handle, nbytes)
        kit.comparisons += 1


def test_freed_memory_is_given_back(kit: Kit) -> None:
    """Check that repeated allocations, freed each time, neither fail nor grow the process."""
    info = kit.backend.info
    probe = kit.backend.allocate(64)
    on_host = kit.backend.host_address(probe, 0) is not None
    kit.backend.free(probe, 64)
    nbytes = 8 * MIB if on_host or not info.total_memory else info.total_memory // 8
    fill_and_free(kit, nbytes)
    before = resident_bytes()
    fill_and_free(kit, nbytes)
    grown = (resident_bytes() - before) // MIB
    assert grown < 100, kit.failure(
        f"192 MiB were allocated and freed in pieces; {grown} MiB are still held", ""
    )


def test_every_block_of_the_allocator_goes_back(kit: Kit) -> None:
    """Check that an emptied CachingAllocator has returned all blocks to the backend."""
    allocator = CachingAllocator(kit.backend, kit.device)
    pointers = [allocator.allocate(n) for n in (0, 1, 512, 5000, MIB, 3 * MIB)]
    assert allocator.stats().live_blocks == 6
    del pointers
    allocator.empty_cache()
    stats = allocator.stats()
    assert (stats.live_bytes, stats.reserved_bytes) == (0, 0), stats
    assert stats.device_allocations == stats.device_frees > 0
    kit.comparisons += 1


def test_the_largest_buffer_is_as_large_as_declared(kit: Kit) -> None:
    """Check a block of the largest size that is declared, and the error for one byte more."""
    info = kit.backend.info
    limit = info.capabilities.max_buffer
    nbytes = min(limit, info.total_memory // 2 or limit) or MIB
    try:
        handle = kit.backend.allocate(nbytes)
    except MemoryError as error:
        pytest.fail(kit.failure(f"{nbytes} bytes of {limit} were refused: {error}", ""))
    for offset in (0, nbytes - 100):
        data = pattern(100, offset)
        kit.backend.copy_in(handle, offset, bytes_view(data))
        expect_bytes(kit, read(kit, handle, offset, 100), data, f"bytes from {offset}")
    kit.backend.free(handle, nbytes)
    if limit:
        allocator = CachingAllocator(kit.backend, kit.device)
        with pytest.raises(OutOfMemoryError, match=f"{limit} bytes there, and this one has"):
            allocator.allocate(limit + 1)


def random_steps(seed: int, count: int) -> list[TraceStep]:
    """Return a random trace of `count` allocations, up to 3 MiB on two streams, and frees."""
    rng, live, steps = random.Random(seed), list[int](), list[TraceStep]()
    for n in range(count):
        if live and rng.random() < 0.45:
            steps.append(TraceStep("free", (live.pop(rng.randrange(len(live))),)))
        else:
            size = rng.randint(0, rng.choice((600, 70_000, MIB, 3 * MIB)))
            steps.append(TraceStep("allocate", (n, size, rng.randint(0, 1))))
            live.append(n)
    return steps


def count_trace(opened: OpenedDevice, steps: list[TraceStep]) -> Stats:
    """Replay a trace on a new allocator; return its statistics, fail if memory stays reserved."""
    allocator = CachingAllocator(opened.backend, opened.device)
    replay_trace(steps, allocator, lambda _: opened.backend.create_stream())
    stats = allocator.stats()
    allocator.empty_cache()
    assert allocator.stats().reserved_bytes == 0, "memory is still held"
    return stats


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_has_the_same_statistics_everywhere(kit: Kit, seed: int) -> None:
    """Check that a random trace on two streams has the reference's statistics."""
    steps = random_steps(seed, 150)
    actual, expected = (count_trace(o, steps) for o in (kit.opened, open_device(device(REFERENCE))))
    kit.comparisons += 1
    assert actual == expected, kit.failure(f"{actual}, not {expected}", "")
