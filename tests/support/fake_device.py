"""A device in pure Python without memory, which only counts, for tests of the caching allocator.

`check` verifies every invariant of an allocator that is visible from outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from dovetail.backend.interface import Backend, DeviceInfo
from dovetail.device_class import Device
from dovetail.ir.target import Capabilities
from dovetail.memory import CachingAllocator, DataPtr

FAKE = Device("fake", 0)


class FakeBackend(Backend):
    """A device of `capacity` bytes.

    An event is done once a stream was waited for. Calls of the driver are numbered from 1: `calls`
    are those of `allocate`, `every_call` those of any method that may fail.
    """

    def __init__(self, capacity: int = 1 << 60, max_buffer: int = 0) -> None:
        self.info = DeviceInfo("fake", 0, "fake", "fake", Capabilities(max_buffer=max_buffer))
        self.capacity, self.used, self.calls, self.every_call = capacity, 0, 0, 0
        self.live: dict[int, int] = {}
        self.refuse: set[int] = set()  # numbers of the calls of `allocate` to refuse
        self.broken: set[int] = set()  # numbers of calls that raise an unexpected exception
        self.queued: dict[Any, int] = {}
        self.passed: dict[Any, int] = {}
        self.synchronized = 0

    def _call(self) -> None:
        self.every_call += 1
        if self.every_call in self.broken:
            raise RuntimeError(f"the driver fails at its call {self.every_call}")

    def allocate(self, nbytes: int) -> Any:
        assert nbytes > 0
        self._call()
        self.calls += 1
        if self.calls in self.refuse or self.used + nbytes > self.capacity:
            raise MemoryError(f"{self.capacity - self.used} bytes are free.")
        self.live[self.calls] = nbytes
        self.used += nbytes
        return self.calls

    def free(self, handle: Any, nbytes: int) -> None:
        assert self.live.pop(handle) == nbytes, "freed twice, or with another size"
        self.used -= nbytes

    def record_event(self, stream: Any) -> Any:
        self._call()
        self.queued[stream] = self.queued.get(stream, 0) + 1
        return stream, self.queued[stream]

    def event_done(self, event: Any) -> bool:
        self._call()
        stream, number = event
        return bool(self.passed.get(stream, 0) >= number)

    def synchronize(self, stream: Any = None) -> None:
        self._call()
        self.synchronized += 1
        self.passed = dict(self.queued)

    def copy_in(self, handle: Any, offset: int, source: memoryview, stream: Any = None) -> None:
        raise NotImplementedError

    def copy_out(self, target: memoryview, handle: Any, offset: int, stream: Any = None) -> None:
        raise NotImplementedError

    def compile(self, kernel: Any) -> Any:
        raise NotImplementedError

    def launch(self, *arguments: Any, **named: Any) -> None:
        raise NotImplementedError


def make(capacity: int = 1 << 60, max_buffer: int = 0) -> tuple[FakeBackend, CachingAllocator]:
    backend = FakeBackend(capacity, max_buffer)
    return backend, CachingAllocator(backend, FAKE)


def check(backend: FakeBackend, allocator: CachingAllocator, held: Iterable[DataPtr]) -> None:
    """Check every invariant that is visible from outside, given all live pointers."""
    live = list(held)
    segments, stats = allocator.snapshot(), allocator.stats()
    assert sorted(s.nbytes for s in segments) == sorted(backend.live.values())
    assert stats.reserved_bytes == backend.used == sum(s.nbytes for s in segments)
    assert stats.device_allocations - stats.device_frees == len(segments)
    blocks = [b for s in segments for b in s.blocks]
    for s in segments:
        offset = 0
        for b in s.blocks:
            assert b.offset == offset and b.nbytes > 0 and b.nbytes % 512 == 0
            offset += b.nbytes
        assert offset == s.nbytes, "a part of a segment is lost"
    found = [b for b in blocks if b.state == "live"]
    assert stats.live_bytes == sum(b.nbytes for b in found)
    assert stats.live_blocks == len(found) == len(live)
    assert stats.cached_bytes == stats.reserved_bytes - stats.live_bytes
    assert stats.waiting_bytes == sum(b.nbytes for b in blocks if b.state == "waiting")
    assert stats.peak_live_bytes >= stats.live_bytes >= 0
    assert stats.peak_reserved >= stats.reserved_bytes >= stats.live_bytes
    assert stats.allocations - stats.frees == len(live)
    assert 0 <= stats.cache_hits <= stats.allocations
    spans = sorted((p.handle, p.offset, p.offset + p.nbytes) for p in live)
    for (h0, _, end), (h1, start, _) in itertools.pairwise(spans):
        assert h0 != h1 or end <= start, "two live blocks overlap"
    assert all(p.handle in backend.live for p in live)
    assert all(p.offset + p.nbytes <= backend.live[p.handle] for p in live)
