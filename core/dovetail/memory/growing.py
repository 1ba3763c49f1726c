"""Where blocks come from when the cache has none: the device, which may refuse."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Hashable

from ..backend.interface import Backend
from ..device import Device
from ..errors import OutOfMemoryError
from .allocator import SegmentInfo, Stats
from .blocks import Block, Pool, Segment, segment_bytes
from .front import BUSY
from .mending import Mending
from .pointer import DataPtr
from .segments import Segments, Strays, Waiting
from .units import MIB, bytes_text

SLACK = 64 * MIB  # reserved memory stays under 1.5 times the peak of live memory, plus this


class Growing(Mending):
    """An allocator that asks its device for segments, and returns those that are not in use."""

    def __init__(self, backend: Backend, device: Device) -> None:
        super().__init__(device)
        self.backend = backend
        self._pools: dict[Hashable, Pool] = {}
        self._segments, self._waiting = Segments(backend), Waiting(backend)
        self._strays = Strays(backend, device)
        self._misses = self._retries = self._refusals = 0

    def _aside(self, nbytes: int) -> DataPtr:
        return self._strays.allocate(nbytes)

    def _grow(self, pool: Pool, size: int) -> Block:
        """A block of at least `size` from the device, after giving back others if it refuses."""
        want = segment_bytes(size)
        self._trim(want)
        for mend in (_nothing, self._settle, self._collect):
            mend()
            block = pool.best(size) or self._ask(pool, want) or self._ask(pool, size)
            if block is not None:
                return block
        self._refusals += 1
        raise OutOfMemoryError(self._account(size))

    def _ask(self, pool: Pool, nbytes: int) -> Block | None:
        segment = self._segments.ask(self, pool, nbytes)
        if segment is None:
            return None
        if self._tracer is not None:
            self._tracer.got(segment)
        return segment.first

    def _trim(self, want: int) -> None:
        """Keeps the cache in proportion where a device never refuses: host memory seems endless."""
        beyond = self._segments.nbytes + want - self._bound(want)
        if beyond > 0:
            self._release(beyond)

    def _bound(self, want: int) -> int:
        return max(self._peak, self._live + want) * 3 // 2 + SLACK

    def _may_grow(self, size: int) -> bool:
        """Whether the device is asked, rather than what is in bins merged once more.

        A loop whose sizes take each other's memory would merge them in each round.
        """
        want = segment_bytes(size)
        return not self._retries and self._segments.nbytes + want <= self._bound(want)

    def _settle(self) -> None:
        """Waits for pending frees and returns whole segments."""
        self._retries += 1
        self._release(self._segments.nbytes)

    def _collect(self) -> None:
        """As `_settle`, after collecting cycles that hold memory."""
        gc.collect()
        self._drain()
        self._settle()

    def _release(self, nbytes: int) -> None:
        """Returns unused segments to the device, the largest first, until `nbytes` are."""
        self.backend.synchronize()
        self._poll()
        for pool in self._pools.values():
            pool.flush()
        for segment in self._segments.unused():
            if nbytes <= 0:
                break
            nbytes -= segment.nbytes
            self._return(segment)

    def _return(self, segment: Segment) -> None:
        if self._tracer is not None:
            self._tracer.returned(segment)
        self._segments.give_back(segment)

    def _poll(self) -> None:
        """Lets go of blocks that other streams have passed, and of what was never cached."""
        if self._strays.freed:
            self._strays.free()
        if self._waiting.blocks:
            self._waiting.poll()

    # --- figures
    def _stats(self) -> Stats:
        return Stats(
            live_bytes=self._live,
            live_blocks=self._allocations - self._frees,
            peak_live_bytes=self._peak,
            cached_bytes=self._segments.nbytes - self._live,
            waiting_bytes=self._waiting.nbytes,
            reserved_bytes=self._segments.nbytes,
            peak_reserved=self._segments.peak,
            allocations=self._allocations,
            frees=self._frees,
            device_allocations=self._segments.got,
            device_frees=self._segments.returned,
            cache_hits=self._allocations - self._misses,
            retries=self._retries,
            out_of_memory=self._refusals,
        )

    def _snapshot(self) -> list[SegmentInfo]:
        return [s.info() for s in self._segments.known.values()]

    def empty_cache(self) -> None:
        """See `Allocator.empty_cache`."""
        with self._lock:
            if self._state != BUSY:
                self._inside(lambda: self._release(self._segments.nbytes))

    def set_limit(self, nbytes: int | None) -> None:
        """See `Allocator.set_limit`."""
        self._segments.limit = nbytes

    def _account(self, size: int) -> str:
        limit = self._segments.limit
        limited = "" if limit is None else f" (the limit set is {bytes_text(limit)})"
        first = f"{self.device} refused {bytes_text(size)}{limited}, after everything unused was"
        return "\n".join([f"{first} given back.", *account(self._stats(), self._snapshot())])


def account(stats: Stats, segments: list[SegmentInfo]) -> list[str]:
    """What memory there is, and which source lines hold the most: lines of text."""
    gaps = [b.nbytes for s in segments for b in s.blocks if b.state == "cached"]
    held: Counter[str] = Counter()
    for block in (b for s in segments for b in s.blocks):
        if block.where is not None and block.state == "live":
            held[block.where] += block.nbytes
    lines = [
        f"  live {bytes_text(stats.live_bytes)} in {stats.live_blocks} blocks, at most"
        f" {bytes_text(stats.peak_live_bytes)} so far; reserved {bytes_text(stats.reserved_bytes)};"
        f" the rest is {len(gaps)} gaps, the largest of {bytes_text(max(gaps, default=0))}."
    ]
    if not held:
        untraced = "  To see which lines hold it, call dovetail.memory.trace(True) before the work."
        return [*lines, untraced]
    most = (f"    {bytes_text(n):>10}  {where}" for where, n in held.most_common(8))
    return [*lines, "  most is held by:", *most]


def _nothing() -> None:
    pass
