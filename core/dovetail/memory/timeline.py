"""What an allocator did, as it did it: kept while `memory.trace(True)`, drawn by `drawing`."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from .pointer import Deleter, StreamHandle

if TYPE_CHECKING:
    from .allocator import SegmentInfo
    from .record import Json

LIMIT = 200_000  # events kept, the latest ones: about 30 MB
NO_BLOCK = -1  # of events of segments, and of blocks that were there before


class Event(NamedTuple):
    """Something that happened to memory, and what the bytes of the device then were.

    A block allocated (`change` > 0) or freed (< 0) by a source line, used on another stream (0,
    with its number), or a segment got or given back (0). `cached` bytes are in segments without any
    live block, `fragmented` ones are free between live blocks.
    """

    at: float  # seconds of time.perf_counter
    change: int
    where: str | None
    live: int
    cached: int
    fragmented: int
    block: int = NO_BLOCK  # blocks are numbered as they are allocated
    stream: int = 0  # streams are numbered as they are met; the default one is 0


class Timeline:
    """The events of one allocator. All is called under its lock, but for what `deleter` returns."""

    def __init__(self, segments: Iterable[tuple[int, SegmentInfo]] = ()) -> None:
        """`segments`: those there are already, each with its key."""
        self.events: deque[Event] = deque()
        self.before: Counter[str | None] = Counter()  # live bytes by line, before the first event
        self._segments: dict[int, tuple[int, int]] = {}
        self._live = self._cached = self._fragmented = 0
        self._freed_at: dict[int, float] = {}
        self._numbers: dict[int, int] = {}  # id of a live block -> its number
        self._allocated = 0
        self._streams: dict[StreamHandle, int] = {None: 0}
        for key, s in segments:
            live = [b for b in s.blocks if b.state == "live"]
            self._count(key, s.nbytes, sum(b.nbytes for b in live))
            for b in live:
                self.before[b.where] += b.nbytes
        self._add(time.perf_counter(), 0, None)

    def deleter(self, give_back: Deleter) -> Deleter:
        """`give_back`, which notes the time: an allocator learns of it only when next called."""
        freed_at = self._freed_at

        def timed(block: object) -> None:
            give_back(block)
            freed_at[id(block)] = time.perf_counter()

        return timed

    def got(self, key: int, nbytes: int) -> None:
        """Notes a new segment."""
        self._count(key, nbytes, 0)
        self._add(time.perf_counter(), 0, None)

    def returned(self, key: int) -> None:
        """Notes a segment given back to the device."""
        self._count(key, 0, 0)
        self._segments.pop(key, None)
        self._add(time.perf_counter(), 0, None)

    def allocated(
        self, key: int, nbytes: int, block: object, where: str, stream: StreamHandle
    ) -> None:
        """Notes a block of a segment."""
        self._change(key, nbytes)
        number = self._numbers[id(block)] = self._allocated
        self._allocated += 1
        self._add(time.perf_counter(), nbytes, where, number, self._stream(stream))

    def shared(self, block: object, stream: StreamHandle) -> None:
        """Notes that a block is used on another stream, too."""
        number = self._numbers.get(id(block), NO_BLOCK)
        self._add(time.perf_counter(), 0, None, number, self._stream(stream))

    def freed(self, key: int, nbytes: int, block: object, where: str | None) -> None:
        """Notes that a block of a segment was freed, at the time when it was."""
        at = self._freed_at.pop(id(block), None)
        self._change(key, -nbytes)
        number = self._numbers.pop(id(block), NO_BLOCK)
        self._add(time.perf_counter() if at is None else at, -nbytes, where, number)

    def _stream(self, stream: StreamHandle) -> int:
        return self._streams.setdefault(stream, len(self._streams))

    def _change(self, key: int, change: int) -> None:
        nbytes, live = self._segments.get(key, (0, 0))
        self._count(key, nbytes, live + change)

    def _count(self, key: int, nbytes: int, live: int) -> None:
        for (size, used), sign in ((self._segments.get(key, (0, 0)), -1), ((nbytes, live), 1)):
            self._live += sign * used
            if used:
                self._fragmented += sign * (size - used)
            else:
                self._cached += sign * size
        self._segments[key] = (nbytes, live)

    def _add(
        self, at: float, change: int, where: str | None, block: int = NO_BLOCK, stream: int = 0
    ) -> None:
        if len(self.events) == LIMIT:
            oldest = self.events.popleft()
            self.before[oldest.where] += oldest.change
        if self.events:
            at = max(at, self.events[-1].at)  # events stay in order
        now = (self._live, self._cached, self._fragmented)
        self.events.append(Event(at, change, where, *now, block, stream))


def recorded(
    device: str,
    stats: Mapping[str, int],
    segments: Iterable[SegmentInfo],
    timeline: Timeline | None,
) -> dict[str, Json]:
    """A snapshot as JSON has it: lists for tuples, numbers for source lines, milliseconds."""
    lines: dict[str | None, int] = {None: 0}

    def number(where: str | None) -> int:
        return lines.setdefault(where, len(lines))

    drawn = [
        {
            "nbytes": s.nbytes,
            "stream": None if s.stream is None else str(s.stream),
            "blocks": [[b.offset, b.nbytes, b.state, number(b.where)] for b in s.blocks],
        }
        for s in segments
    ]
    events = list(timeline.events) if timeline is not None else []
    begun = events[0].at if events else 0.0
    before = timeline.before if timeline is not None else {}
    rows = [
        [round((e.at - begun) * 1e3, 4), e.change, number(e.where), *e[3:]]  # as `Event` has them
        for e in events
    ]
    return {
        "version": 1,
        "device": device,
        "written": time.strftime("%Y-%m-%d %H:%M:%S"),
        "stats": dict(stats),
        "segments": drawn,
        "before": [[number(where), nbytes] for where, nbytes in before.items() if nbytes],
        "events": rows,
        "lines": list(lines),
    }
