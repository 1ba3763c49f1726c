"""The caching allocator of every device. A backend supplies only `allocate` and `free`."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from typing import ClassVar, TypeVar

from ..argument_checks import shown
from ..backend.interface import Backend
from ..device_class import Device
from ..errors import ArgumentError, OutOfMemoryError
from .allocator import Allocator, SegmentInfo, Stats
from .blocks import LIVE, SMALL_BYTES_MAX, WAITING, MemoryBlock, Pool, Segment, segment_bytes
from .fast_path import BROKEN, BUSY, IDLE, FastPath
from .pointer import Context, DataPtr, Deleter, Handle, StreamHandle
from .recovery import rebuild
from .slow_path import DeferredFrees, RawMemory, Segments, UncachedMemory, format_reason
from .tracing.trace import Timeline
from .units import MIB, format_bytes

R = TypeVar("R")
SLACK_BYTES = 64 * MIB  # reserved memory stays under 1.5 times the peak of live memory, plus this


class CachingAllocator(Allocator):
    """The allocator of every device: keeps freed memory for reuse on the same stream.

    Ctrl-C, or a driver's error, may come anywhere. The truth is in the segments' blocks and their
    states, which change in single assignments; the next call rebuilds lists, bins and statistics
    from them. So a block becomes LIVE together with a pointer that will give it back.

    - `backend`: the open backend that allocates and frees memory.
    - `device`: the device of the memory.

    >>> import dovetail as dt
    >>> backend = dt.plugins.open_device("reference").backend
    >>> allocator = dt.memory.CachingAllocator(backend, dt.device("reference"))
    >>> ptr = allocator.allocate(100)
    >>> allocator.stats().live_bytes
    512
    """

    every: ClassVar[weakref.WeakSet[CachingAllocator]] = weakref.WeakSet()
    _traced: ClassVar[bool] = False  # for all allocators, and new ones

    def __init__(self, backend: Backend, device: Device) -> None:
        self.backend, self.device = backend, device
        self.fast_path = fast = FastPath(device, self)
        self._pools: dict[Hashable, Pool] = {None: fast.pool}
        self._segments, self._deferred = Segments(backend), DeferredFrees(backend)
        self._uncached = UncachedMemory(backend, device)
        self._misses = self._retries = self._refusals = 0
        self._finalizer: Deleter = fast.freed.append
        if type(self).allocate is CachingAllocator.allocate:
            self.allocate = fast.allocate  # type: ignore[method-assign]  # one frame less
        weakref.finalize(self, _free_all, backend, self._segments.handles).atexit = False
        self.every.add(self)
        if self._traced:
            self.watch(True)

    def allocate(self, nbytes: int, stream: StreamHandle = None) -> DataPtr:
        """Return memory of `nbytes` bytes for use on `stream`, from the cache if a block fits.

        - `nbytes`: the number of bytes, 0 or more.
        - `stream`: a backend's handle of a stream; None is the default stream.
        """
        return self.fast_path.allocate(nbytes, stream)

    def raw_deleter(self) -> Deleter:
        """Return the function that frees a block."""
        return self._deallocate

    def _deallocate(self, context: Context) -> None:
        """Append a live block to the freed ones. Raises: ArgumentError for anything else."""
        if not (
            isinstance(context, MemoryBlock)
            and context.state == LIVE
            and any(context.segment is s for s in self._segments.by_serial.values())
            and not any(context is b for b in self.fast_path.freed)
        ):
            raise ArgumentError(
                f"raw_deallocate: context must be that of live memory of {self!r}, got "
                f"{shown(context)}; call raw_deallocate(ptr.context) once"
            )
        self._finalizer(context)

    def record_stream(self, ptr: DataPtr, stream: StreamHandle) -> None:
        """Record that `ptr` is also used on `stream`; ignore foreign memory.

        - `ptr`: a pointer.
        - `stream`: a backend's handle of a stream.
        """
        block = ptr.context
        if isinstance(block, MemoryBlock) and stream != block.segment.pool.stream:
            streams = block.streams or []
            if stream not in streams:
                block.streams = [*streams, stream]
                if self.fast_path.tracer is not None:
                    self._run_locked(partial(self._trace_stream, block, stream))

    def _trace_stream(self, block: MemoryBlock, stream: StreamHandle) -> None:
        """Add the use of a block on another stream to the timeline, if tracing is still on."""
        if self.fast_path.tracer is not None:
            self.fast_path.tracer.record_stream(block, stream)

    # --- the lock

    def _run_locked(self, work: Callable[[], R]) -> R:
        """Call `work` under the lock, after recovery and drain; an exception sets state BROKEN."""
        fast = self.fast_path
        with fast.lock:
            state = fast.state
            if state == BUSY:  # this thread is inside already
                return work()
            fast.state = BUSY
            try:
                if state == BROKEN:
                    self._recover()
                fast.drain()
                self._poll()
                result = work()
            except BaseException:
                fast.state = BROKEN
                raise
            fast.state = IDLE
            return result

    def _recover(self) -> None:
        """Rebuild lists, bins and statistics from the blocks after an exception."""
        rebuild(self.fast_path, self._pools.values(), self._segments, self._deferred)
        self._misses = min(self._misses, self.fast_path.allocations)

    # --- the slow path

    def _allocate_uncached(self, nbytes: int) -> DataPtr:
        """Allocate directly from the device, for a finalizer that runs inside the allocator."""
        return self._uncached.allocate(nbytes)

    def _allocate_slow(self, pool: Pool, size: int) -> MemoryBlock:
        """Return an UNUSED block of `size`: best fit, after merges, or from a new segment."""
        if size > SMALL_BYTES_MAX:
            pool.flush(pool.large_bins)
        block = pool.take_best_fit(size)
        if block is None:
            self._poll()
            if not (pool.is_flushed and self._may_grow(size)):
                pool.flush(pool.bins.values())
                pool.is_flushed = True
                block = pool.take_best_fit(size)
        if block is None:
            block = self._grow(pool, size)
            pool.is_flushed = False
            self._misses += 1
        if block.size > size:
            pool.insert(block.split(size, self._segments.next_serial()))
        block.bin = pool.bin(size)
        if block.finalizer is None:
            block.finalizer = self.fast_path.finalizer(block)
        return block

    def _grow(self, pool: Pool, size: int) -> MemoryBlock:
        """Return a block of at least `size`: from a new segment, or after freeing the cache.

        Raises: OutOfMemoryError after two retries, which free the cache and collect garbage.
        """
        self._segments.check_size(self.device, size)
        want = self._segments.fit(segment_bytes(size))
        # a device may never refuse: host memory seems endless
        excess = self._segments.nbytes + want - self._find_reserved_limit(want)
        if excess > 0:
            self._release(excess)
        for attempt in range(3):  # as it is; after freeing the cache; after collecting cycles, too
            if attempt == 2:
                gc.collect()
                self.fast_path.drain()
            if attempt:
                self._retries += 1
                self._release(self._segments.nbytes)
            block = (
                pool.take_best_fit(size) or self._grow_by(pool, want) or self._grow_by(pool, size)
            )
            if block is not None:
                return block
        self._refusals += 1
        limit = self._segments.limit
        limited = "" if limit is None else f" (limit: {format_bytes(limit)})"
        refusal = (
            f"{self.device} could not allocate {format_bytes(size)}{limited}, after all unused "
            f"memory was freed{format_reason(self._segments.refusal)}"
        )
        usage = describe_usage(self._collect_stats(), self._collect_segments())
        raise OutOfMemoryError("\n".join([f"{refusal}.", *usage]))

    def _grow_by(self, pool: Pool, nbytes: int) -> MemoryBlock | None:
        """Allocate and trace a segment of `nbytes`; return its only block, or None if refused."""
        segment = self._segments.allocate(self, pool, nbytes)
        if segment is None:
            return None
        if self.fast_path.tracer is not None:
            self.fast_path.tracer.record_segment(segment)
        return segment.first

    def _find_reserved_limit(self, want: int) -> int:
        """Return the greatest number of reserved bytes allowed when `want` more are allocated."""
        fast = self.fast_path
        return max(fast.peak_bytes, fast.live_bytes + want) * 3 // 2 + SLACK_BYTES

    def _may_grow(self, size: int) -> bool:
        """Return True if a new segment beats a merge of bins: in bounds, and no retry so far.

        A loop whose sizes take each other's memory would merge them in each round.
        """
        want = self._segments.fit(segment_bytes(size))
        is_within = self._segments.nbytes + want <= self._find_reserved_limit(want)
        return not self._retries and is_within

    def _release(self, nbytes: int) -> None:
        """Synchronize, then free unused segments, largest first, until `nbytes` are returned."""
        self.backend.synchronize()
        self._poll()
        for pool in self._pools.values():
            pool.flush(pool.bins.values())
        for segment in self._segments.unused_segments():
            if nbytes <= 0:
                break
            nbytes -= segment.nbytes
            self._free_segment(segment)

    def _free_segment(self, segment: Segment) -> None:
        """Record the end of a segment in the timeline, if traced, and return it to the device."""
        if self.fast_path.tracer is not None:
            self.fast_path.tracer.record_segment_free(segment)
        self._segments.free(segment)

    def _poll(self) -> None:
        """Move deferred blocks whose events are done to pools, and free freed uncached memory."""
        if self._uncached.freed:
            self._uncached.free()
        if self._deferred.entries:
            self._deferred.poll()

    def _defer_free(self, block: MemoryBlock) -> None:
        """Move the first freed block to the deferred ones, until its other streams are done.

        It stays the first in `freed` if the driver raises.
        """
        fast = self.fast_path
        self._deferred.add(block)
        if fast.tracer is not None:
            fast.tracer.record_free(block)
        block.state, block.streams = WAITING, None
        fast.live_bytes -= block.size
        fast.frees += 1
        del fast.freed[0]

    def _pool(self, stream: Hashable) -> Pool:
        """Return the pool of a stream; create it on first use."""
        pool = self._pools.get(stream)
        if pool is None:
            pool = self._pools[stream] = Pool(stream)
        return pool

    # --- tracing

    @classmethod
    def trace(cls, on: bool) -> None:
        """Start or stop the tracing of all allocators, and of those created later.

        - `on`: True starts, False stops.
        """
        if on != cls._traced:
            cls._traced = on
            for allocator in list(cls.every):
                allocator.watch(on)

    def watch(self, on: bool) -> None:
        """Start a new timeline, or stop adding to the last one, which stays readable.

        - `on`: True starts a timeline, False stops it.
        """
        self._run_locked(partial(self._set_tracing, on))

    def _set_tracing(self, on: bool) -> None:
        """Start a new timeline with its finalizer, or detach it; needs the lock."""
        fast = self.fast_path
        if on:
            self.timeline = Timeline(fast.freed.append, self._segments.by_serial.values())
            fast.tracer, self._finalizer = self.timeline, self.timeline.finalizer
        else:
            fast.tracer, self._finalizer = None, fast.freed.append

    # --- statistics and limits

    def stats(self) -> Stats:
        """Return the statistics."""
        return self._run_locked(self._collect_stats)

    def _collect_stats(self) -> Stats:
        """Build the statistics; needs the lock."""
        fast, segments = self.fast_path, self._segments
        return Stats(
            live_bytes=fast.live_bytes,
            live_blocks=fast.allocations - fast.frees,
            peak_live_bytes=fast.peak_bytes,
            cached_bytes=segments.nbytes - fast.live_bytes,
            waiting_bytes=self._deferred.nbytes,
            reserved_bytes=segments.nbytes,
            peak_reserved=segments.peak,
            allocations=fast.allocations,
            frees=fast.frees,
            device_allocations=segments.allocations,
            device_frees=segments.frees,
            cache_hits=fast.allocations - self._misses,
            retries=self._retries,
            out_of_memory=self._refusals,
        )

    def snapshot(self) -> list[SegmentInfo]:
        """Return the segments and their blocks."""
        return self._run_locked(self._collect_segments)

    def _collect_segments(self) -> list[SegmentInfo]:
        """Build the entries of all segments; needs the lock."""
        return [s.info() for s in self._segments.by_serial.values()]

    def extent(self, handle: Handle, offset: int) -> tuple[int, int] | None:
        """Return (start, end) of the block around an offset, or None if no segment has the handle.

        The range is fixed while the block is in use.

        - `handle`: a backend's handle of memory.
        - `offset`: a place in it, in bytes.
        """
        return self._segments.extent(handle, offset)

    def is_freed(self, address: int) -> bool:
        """Return True if a host address lies in a block that no pointer has: cached or waiting.

        - `address`: an address of the host.
        """
        return self._run_locked(partial(self._is_freed, address))

    def _is_freed(self, address: int) -> bool:
        """Return True if a host address lies in a block that is not live; needs the lock."""
        for segment in self._segments.by_serial.values():
            start = self.backend.host_address(segment.handle, 0)
            if start is None or not start <= address < start + segment.nbytes:
                continue
            at = address - start
            return any(
                b.state != LIVE and b.offset <= at < b.offset + b.size for b in segment.blocks()
            )
        return False

    def reset_peak(self) -> None:
        """Reset the peaks to the current statistics."""
        self._run_locked(self._reset_peak)

    def _reset_peak(self) -> None:
        """Set both peaks to the current bytes; needs the lock."""
        self.fast_path.peak_bytes = self.fast_path.live_bytes
        self._segments.peak = self._segments.nbytes

    def empty_cache(self) -> None:
        """Wait for the device, then return its unused segments; do nothing during an allocation."""
        with self.fast_path.lock:
            if self.fast_path.state != BUSY:
                self._run_locked(lambda: self._release(self._segments.nbytes))

    def set_limit(self, nbytes: int | None) -> None:
        """Set the limit of reserved bytes for later allocations; None is no limit.

        - `nbytes`: the limit in bytes; None is no limit.
        """
        self._segments.limit = nbytes


def describe_usage(stats: Stats, segments: list[SegmentInfo]) -> list[str]:
    """Return lines of text about live, reserved and free memory, and the lines that hold most."""
    gaps = [b.nbytes for s in segments for b in s.blocks if b.state == "cached"]
    by_line: Counter[str] = Counter()
    for block in (b for s in segments for b in s.blocks):
        if block.where is not None and block.state == "live":
            by_line[block.where] += block.nbytes
    lines = [
        f"  live {format_bytes(stats.live_bytes)} in {stats.live_blocks} blocks (peak"
        f" {format_bytes(stats.peak_live_bytes)}); reserved "
        f"{format_bytes(stats.reserved_bytes)};"
        f" {len(gaps)} free gaps, the largest {format_bytes(max(gaps, default=0))}."
    ]
    if not by_line:
        untraced = "  To see which lines hold it, call dovetail.memory.trace(True) before the work."
        return [*lines, untraced]
    largest = (f"    {format_bytes(n):>10}  {where}" for where, n in by_line.most_common(8))
    return [*lines, "  the lines that hold most:", *largest]


def _free_all(backend: Backend, handles: dict[int, RawMemory]) -> None:
    """Synchronize, then free every segment of an allocator that has died; empty `handles`."""
    backend.synchronize()
    while handles:
        backend.free(*handles.popitem()[1])
