"""The events of an allocator while `dt.memory.trace(True)`: allocations, frees and segments."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..pointer import Deleter, StreamHandle
from .stacktrace import caller_line

if TYPE_CHECKING:
    from ..blocks import MemoryBlock, Segment

EVENTS_MAX = 200_000  # kept, the latest ones: about 30 MB
NO_BLOCK = -1  # in events of segments, and of blocks from before the trace


class MemoryEvent(NamedTuple):
    """A change of an allocator's memory, and the device's bytes after it.

    `change` is the size of an allocated block (> 0) or of a freed one (< 0). It is 0 when a block
    is used on another stream, and when a segment is allocated or freed. `cached` bytes are in
    segments without a live block; `fragmented` bytes are free bytes between live blocks.
    """

    time: float  # seconds of time.perf_counter
    change: int
    where: str | None
    live: int
    cached: int
    fragmented: int
    block: int = NO_BLOCK  # blocks are numbered in the order of their allocation
    stream: int = 0  # streams are numbered in the order of their first use; 0 is the default one


class Timeline:
    """The events of one allocator, with the source lines that allocated its blocks.

    The allocator calls the methods under its lock; pointers call `give_back` without it.
    """

    def __init__(self, give_back: Deleter, segments: Iterable[Segment]) -> None:
        """Start a timeline of an allocator that has these segments and this deleter of blocks."""
        self.events: deque[MemoryEvent] = deque()
        self.before: Counter[str | None] = Counter()  # live bytes by line, before the first event
        self._segments: dict[int, tuple[int, int]] = {}  # serial -> bytes, live bytes
        self._live = self._cached = self._fragmented = 0
        self._freed_at: dict[int, float] = {}
        self._numbers: dict[int, int] = {}  # id of a live block -> its number
        self._allocated = 0
        self._streams: dict[StreamHandle, int] = {None: 0}
        self.finalizer: Deleter = partial(_record_and_free, give_back, self._freed_at)
        for segment in segments:
            live = [b for b in segment.info().blocks if b.state == "live"]
            self._set_segment_bytes(
                segment.first.serial, segment.nbytes, sum(b.nbytes for b in live)
            )
            for b in live:
                self.before[b.where] += b.nbytes
        self._append_event(time.perf_counter(), 0, None)

    def record_segment(self, segment: Segment) -> None:
        """Record that the device allocated a segment."""
        self._set_segment_bytes(segment.first.serial, segment.nbytes, 0)
        self._append_event(time.perf_counter(), 0, None)

    def record_segment_free(self, segment: Segment) -> None:
        """Record that a segment goes back to the device."""
        serial = segment.first.serial
        self._set_segment_bytes(serial, 0, 0)
        self._segments.pop(serial, None)
        self._append_event(time.perf_counter(), 0, None)

    def record_allocation(self, block: MemoryBlock) -> Callable[[], object]:
        """Set a block's source line, record the allocation; return its pointer's finalizer."""
        block.allocation_line = caller_line()
        self._change_live_bytes(block, block.size)
        number = self._numbers[id(block)] = self._allocated
        self._allocated += 1
        stream = self._number_stream(block.segment.pool.stream)
        self._append_event(time.perf_counter(), block.size, block.allocation_line, number, stream)
        return partial(self.finalizer, block)

    def record_stream(self, block: MemoryBlock, stream: StreamHandle) -> None:
        """Record that a block is used on another stream, too."""
        number = self._numbers.get(id(block), NO_BLOCK)
        self._append_event(time.perf_counter(), 0, None, number, self._number_stream(stream))

    def record_free(self, block: MemoryBlock) -> None:
        """Record the free of a block, at the time at which its pointer ended if known."""
        at = self._freed_at.pop(id(block), None)
        self._change_live_bytes(block, -block.size)
        number = self._numbers.pop(id(block), NO_BLOCK)
        self._append_event(
            time.perf_counter() if at is None else at, -block.size, block.allocation_line, number
        )

    def _number_stream(self, stream: StreamHandle) -> int:
        """Return the number of a stream, which its first use assigns."""
        return self._streams.setdefault(stream, len(self._streams))

    def _change_live_bytes(self, block: MemoryBlock, change: int) -> None:
        """Add `change` to the live bytes of a block's segment and to the totals."""
        serial = block.segment.first.serial
        nbytes, live = self._segments.get(serial, (0, 0))
        self._set_segment_bytes(serial, nbytes, live + change)

    def _set_segment_bytes(self, serial: int, nbytes: int, live: int) -> None:
        """Set the bytes and live bytes of a segment, and update the totals by the difference."""
        for (size, used), sign in ((self._segments.get(serial, (0, 0)), -1), ((nbytes, live), 1)):
            self._live += sign * used
            if used:
                self._fragmented += sign * (size - used)
            else:
                self._cached += sign * size
        self._segments[serial] = (nbytes, live)

    def _append_event(
        self, at: float, change: int, where: str | None, block: int = NO_BLOCK, stream: int = 0
    ) -> None:
        """Append an event with the current totals; the oldest one is dropped at EVENTS_MAX."""
        if len(self.events) == EVENTS_MAX:
            oldest = self.events.popleft()
            self.before[oldest.where] += oldest.change
        if self.events:
            at = max(at, self.events[-1].time)  # keep the events in order
        counts = (self._live, self._cached, self._fragmented)
        self.events.append(MemoryEvent(at, change, where, *counts, block, stream))


def _record_and_free(give_back: Deleter, freed_at: dict[int, float], block: MemoryBlock) -> None:
    """Store the time and free a block through `give_back`; another thread may drain it at once."""
    freed_at[id(block)] = time.perf_counter()
    give_back(block)
