"""One caching allocator for every device. A backend supplies only `allocate` and `free`."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from functools import partial
from typing import ClassVar

from ..arguments import shown
from ..backend.interface import Backend
from ..device import Device
from ..errors import ArgumentError
from .allocator import SegmentInfo, Stats
from .blocks import LIVE, SMALL, WAITING, Block, Pool
from .growing import Growing
from .pointer import Context, DataPtr, Deleter, Handle, StreamHandle
from .segments import RawMemory
from .timeline import Timeline
from .tracing import Tracer


class CachingAllocator(Growing):
    """The allocator of every device: keeps freed memory for reuse on the same stream.

    What it has in its cache it hands out in `front`.

    Ctrl-C, or a driver's error, may come anywhere. The truth is in the segments' blocks and their
    states, which change in single assignments; whoever comes next makes lists, bins and figures
    anew from them. So a block becomes LIVE together with a pointer that will give it back.

    >>> import dovetail as dt
    >>> backend = dt.plugins.open_device("reference").backend
    >>> allocator = dt.memory.CachingAllocator(backend, dt.device("reference"))
    >>> ptr = allocator.allocate(100)
    >>> allocator.stats().live_bytes
    512
    """

    every: ClassVar[weakref.WeakSet[CachingAllocator]] = weakref.WeakSet()
    _traced: ClassVar[bool] = False  # whether all of them, and new ones, note what they do

    def __init__(self, backend: Backend, device: Device) -> None:
        super().__init__(backend, device)
        self._give_back: Deleter = self._freed.append
        self._pools[None] = self._default
        weakref.finalize(self, _free_all, backend, self._segments.handles).atexit = False
        self.every.add(self)
        if self._traced:
            self.watch(True)

    def raw_deleter(self) -> Deleter:
        """See `Allocator.raw_deleter`."""
        return self._deallocate

    def _deallocate(self, context: Context) -> None:
        """Give back a block that is in use. Raises: ArgumentError for anything else."""
        segments = self._segments.known
        if not (
            isinstance(context, Block)
            and context.state == LIVE
            and any(context.segment is s for s in segments.values())
            and not any(context is b for b in self._freed)
        ):
            raise ArgumentError(
                f"raw_deallocate: context must be that of memory of {self!r} that was not given "
                f"back, got {shown(context)}; write raw_deallocate(ptr.context), once"
            )
        self._give_back(context)

    def record_stream(self, ptr: DataPtr, stream: StreamHandle) -> None:
        """See `Allocator.record_stream`; foreign memory is left to its owner."""
        block = ptr.context
        if isinstance(block, Block) and stream != block.segment.pool.stream:
            known = block.streams or []
            if stream not in known:
                block.streams = [*known, stream]
                if self._tracer is not None:
                    self._inside(partial(self._share, block, stream))

    def _share(self, block: Block, stream: StreamHandle) -> None:
        if self._tracer is not None:
            self._tracer.shared(block, stream)

    def _set_aside(self, block: Block) -> None:
        """Takes back what others may still be using. Where the driver raises, it stays in line."""
        self._waiting.add(block)
        if self._tracer is not None:
            self._tracer.freed(block)
        block.state, block.streams = WAITING, None
        self._live -= block.size
        self._frees += 1
        del self._freed[0]

    def _pool(self, stream: Hashable) -> Pool:
        found = self._pools.get(stream)
        if found is None:
            found = self._pools[stream] = Pool(stream)
        return found

    # --- when the bin is empty
    def _miss(self, pool: Pool, size: int) -> Block:
        if size > SMALL:
            pool.join()
        block = pool.best(size)
        if block is None:
            self._poll()
            if not (pool.is_torn and self._may_grow(size)):
                pool.flush()
                pool.is_torn = True
                block = pool.best(size)
        if block is None:
            block = self._grow(pool, size)
            pool.is_torn = False
            self._misses += 1
        return self._cut(pool, block, size)

    def _cut(self, pool: Pool, block: Block, size: int) -> Block:
        """`block`, of exactly `size`; what is left over becomes a free block."""
        if block.size > size:
            pool.insert(block.split(size, self._segments.next()))
        block.bin = pool.bin(size)
        if block.give_back is None:
            block.give_back = self._returning(block)
        return block

    # --- after an exception in the middle of something
    def _mend(self) -> None:
        """Makes lists, bins and figures anew from the segments' blocks."""
        self._give_up()
        for pool in self._pools.values():
            pool.clear()
        for segment in self._segments.known.values():
            segment.mend()
        for pool in self._pools.values():
            pool.sort()
        self._recount()

    def _tidy(self) -> None:
        self._drain()
        self._poll()

    def _give_up(self) -> None:
        """Lets go of what was being done.

        What is not LIVE any more was freed already, and memory in no segment goes back to the
        device.
        """
        while self._freed and self._freed[0].state != LIVE:
            del self._freed[0]
        self._waiting.mend()
        self._segments.mend()

    def _recount(self) -> None:
        live = self._segments.recount()
        self._live = sum(b.size for b in live)
        self._peak = max(self._peak, self._live)
        self._allocations = self._frees + len(live)
        self._misses = min(self._misses, self._allocations)

    # --- while tracing
    @classmethod
    def trace(cls, on: bool) -> None:
        """Has all of them, those made later too, note what they do, or no longer."""
        if on != cls._traced:
            cls._traced = on
            for allocator in list(cls.every):
                allocator.watch(on)

    def watch(self, on: bool) -> None:
        """Begins a new timeline, or adds no more to the last one."""
        self._inside(self._watch if on else self._ignore)

    def _watch(self) -> None:
        self.timeline = Timeline(zip(self._segments.known, self.snapshot(), strict=True))
        self._tracer = Tracer(self.timeline, self._freed.append)
        self._give_back = self._tracer.give_back

    def _ignore(self) -> None:
        self._tracer, self._give_back = None, self._freed.append

    # --- figures
    def stats(self) -> Stats:
        """See `Allocator.stats`."""
        return self._inside(self._stats)

    def snapshot(self) -> list[SegmentInfo]:
        """See `Allocator.snapshot`."""
        return self._inside(self._snapshot)

    def extent(self, handle: Handle, offset: int) -> tuple[int, int] | None:
        """See `Allocator.extent`: that of a block, which nobody changes while it is in use."""
        return self._segments.extent(handle, offset)

    def is_freed(self, address: int) -> bool:
        """See `Allocator.is_freed`."""
        return self._inside(partial(self._is_freed, address))

    def _is_freed(self, address: int) -> bool:
        for segment in self._segments.known.values():
            start = self.backend.host_address(segment.handle, 0)
            if start is None or not start <= address < start + segment.nbytes:
                continue
            at = address - start
            return any(
                b.state != LIVE and b.offset <= at < b.offset + b.size for b in segment.blocks()
            )
        return False

    def reset_peak(self) -> None:
        """See `Allocator.reset_peak`."""
        self._inside(self._reset_peak)

    def _reset_peak(self) -> None:
        self._peak, self._segments.peak = self._live, self._segments.nbytes


def _free_all(backend: Backend, handles: dict[int, RawMemory]) -> None:
    """Returns every segment of an allocator that nobody refers to any more."""
    backend.synchronize()
    while handles:
        backend.free(*handles.popitem()[1])
