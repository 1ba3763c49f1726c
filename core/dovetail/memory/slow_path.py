"""The parts of the caching allocator's slow path: segments, deferred frees, uncached memory."""

from __future__ import annotations

from collections import deque

from ..backend.interface import Backend
from ..device_class import Device
from ..errors import OutOfMemoryError
from ..layout import ELEMENTS_MAX
from .blocks import FREE, UNUSED, MemoryBlock, Pool, Segment
from .pointer import DataPtr, Handle
from .units import format_bytes

RawMemory = tuple[Handle, int]  # a handle of the device, and its size


class Segments:
    """The segments of one allocator, in the order of their allocation, and their bytes.

    An exception may come anywhere: `free_unlisted` then frees memory that is in no segment.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.by_serial: dict[int, Segment] = {}  # by the serial number of the first block
        # `_free_all` frees these. A segment refers to the allocator, which would never die.
        self.handles: dict[int, RawMemory] = {}
        self._unlisted_memory: RawMemory | None = (
            None  # allocated on the device, and in no segment yet
        )
        self._serial = 0
        self.limit: int | None = None
        self.buffer_limit = backend.info.capabilities.max_buffer  # bytes of a segment; 0: no limit
        self.refusal = ""  # the device's reason for the last allocation that it refused
        self.nbytes = self.peak = self.allocations = self.frees = 0

    def next_serial(self) -> int:
        """Increment and return the serial number for a new block."""
        self._serial += 1
        return self._serial

    def allocate(self, owner: object, pool: Pool, nbytes: int) -> Segment | None:
        """Allocate a segment on the device; return None if the device or the limit refuses."""
        self.refusal = ""
        if nbytes >= ELEMENTS_MAX or (self.limit is not None and self.nbytes + nbytes > self.limit):
            return None
        try:
            self._unlisted_memory = raw = (self.backend.allocate(nbytes), nbytes)
        except MemoryError as error:
            self.refusal = str(error)
            return None
        segment = Segment(owner, raw[0], nbytes, pool)
        segment.first = first = MemoryBlock(segment, 0, nbytes, self.next_serial())
        self.handles[first.serial] = raw
        self.by_serial[first.serial] = segment
        self._unlisted_memory = None
        self.allocations += 1
        self.nbytes += nbytes
        if self.nbytes > self.peak:
            self.peak = self.nbytes
        return segment

    def check_size(self, device: Device, nbytes: int) -> None:
        """Raise OutOfMemoryError if no buffer of the device has so many bytes."""
        if self.buffer_limit and nbytes > self.buffer_limit:
            raise OutOfMemoryError(
                f"{device} could not allocate {format_bytes(nbytes)}: a buffer has at most "
                f"{self.buffer_limit} bytes there, and this one has {nbytes}; split the tensor, or "
                "use another device"
            )

    def fit(self, nbytes: int) -> int:
        """Return a segment's bytes, reduced to those of the device's largest buffer."""
        return min(nbytes, self.buffer_limit) if self.buffer_limit else nbytes

    def extent(self, handle: Handle, offset: int) -> tuple[int, int] | None:
        """Return (start, end) of the block at an offset of a handle's memory, or None."""
        for segment in [*self.by_serial.values()]:
            if segment.handle is handle or (type(handle) is int and segment.handle == handle):
                for block in segment.blocks():
                    if block.offset <= offset < block.offset + block.size:
                        return block.offset, block.offset + block.size
        return None

    def unused_segments(self) -> list[Segment]:
        """Return the segments that are one free block, the largest first."""
        unused_segments = [
            s for s in self.by_serial.values() if s.first.state == FREE and s.first.next is None
        ]
        return sorted(unused_segments, key=lambda s: -s.nbytes)

    def free(self, segment: Segment) -> None:
        """Remove an unused segment from its pool, and return it to the device."""
        serial = segment.first.serial
        segment.pool.remove(segment.first)
        del self.by_serial[serial]  # from here on `free_unlisted` completes an interrupted call
        handle, nbytes = self.handles[serial]
        self.nbytes -= nbytes
        self.frees += 1
        del self.handles[serial]
        self.backend.free(handle, nbytes)

    def free_unlisted(self) -> None:
        """Free memory that an interrupted call left in no segment."""
        raw, self._unlisted_memory = self._unlisted_memory, None
        if raw is not None and all(raw is not known for known in self.handles.values()):
            self.backend.free(*raw)
        for serial in [s for s in self.handles if s not in self.by_serial]:
            self.backend.free(*self.handles.pop(serial))

    def recount(self) -> None:
        """Recompute bytes, peak and allocations from the segments."""
        self.nbytes = sum(s.nbytes for s in self.by_serial.values())
        self.peak = max(self.peak, self.nbytes)
        self.allocations = self.frees + len(self.by_serial)


class DeferredFrees:
    """Freed blocks that other streams may still use."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.entries: list[tuple[MemoryBlock, list[object]]] = []  # with the events to wait for

    def add(self, block: MemoryBlock) -> None:
        """Record an event in each other stream that uses the block, and keep both."""
        events = [self.backend.record_event(stream) for stream in block.streams or ()]
        self.entries.append((block, events))

    def poll(self) -> None:
        """Move the blocks whose events are done to their pools, and forget these events."""
        # before any change: if the driver raises, all blocks stay deferred
        done = [all(map(self.backend.event_done, events)) for _, events in self.entries]
        for (block, _), is_done in zip(self.entries, done, strict=True):
            if is_done:
                block.state = UNUSED
                block.segment.pool.insert(block)
        pairs = zip(self.entries, done, strict=True)
        self.entries = [entry for entry, is_done in pairs if not is_done]

    @property
    def nbytes(self) -> int:
        """Return the total size of the blocks in bytes."""
        return sum(block.size for block, _ in self.entries)


class UncachedMemory:
    """Memory for finalizers that run inside the allocator: straight from the device."""

    def __init__(self, backend: Backend, device: Device) -> None:
        self.backend, self.device = backend, device
        self.freed: deque[RawMemory] = deque()

    def allocate(self, nbytes: int) -> DataPtr:
        """Allocate directly from the device, without the cache. Raises: OutOfMemoryError."""
        size = max(nbytes, 1)
        try:
            handle = self.backend.allocate(size)
        except MemoryError as error:
            raise OutOfMemoryError(
                f"{self.device} could not allocate {format_bytes(size)}{format_reason(error)}"
            ) from error
        return DataPtr(handle, 0, nbytes, self.device, (handle, size), self.freed.append)

    def free(self) -> None:
        """Wait for the device, and return freed memory to it."""
        self.backend.synchronize()
        for _ in range(len(self.freed)):  # a free may run finalizers, which add more
            handle, size = self.freed[0]
            del self.freed[0]
            self.backend.free(handle, size)


def format_reason(error: object) -> str:
    """Return the device's reason as the end of a sentence; "" if it gives none."""
    reason = str(error).rstrip(".")
    return f": {reason}" if reason else ""
