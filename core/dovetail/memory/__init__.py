"""Memory: pointers that know how to die, allocators, and one caching allocator for every device.

After c10's model (PyTorch): a `DataPtr` owns memory through a context and a deleter, so that
pointers outlive a replaced allocator and foreign memory needs no special case. A backend supplies
only `allocate` and `free`."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ..arguments import flag, function, integer, refused
from ..arguments import path as file_name
from ..backend.interface import Backend
from ..device import Device, device, opened, opened_devices
from ..errors import DTypeError, OutOfMemoryError
from ..layout import LIMIT
from .page import draw
from .trace import Timeline, record

__all__ = [
    "Allocator", "BlockInfo", "CachingAllocator", "DataPtr", "SegmentInfo", "Stats", "Storage",
    "empty_cache", "foreign", "get_allocator", "page", "reset_peak", "set_allocator", "set_limit",
    "snapshot", "stats", "trace",
]  # fmt: skip

KIB, MIB = 1 << 10, 1 << 20
ROUND = 512  # every block is a multiple of this, so blocks keep the alignment of their segment
SMALL, SMALL_SEGMENT = MIB, 2 * MIB  # blocks up to SMALL come from segments of SMALL_SEGMENT
# up to MEDIUM, from MEDIUM_SEGMENT; larger ones have their own
MEDIUM, MEDIUM_SEGMENT = 10 * MIB, 20 * MIB
LARGE_ROUND = 2 * MIB  # a huge page
SLACK = 64 * MIB  # reserved memory stays under 1.5 times the peak of live memory, plus this

Deleter = Callable[[Any], object]
R = TypeVar("R")


class DataPtr:
    """Memory on a device, given back exactly once: when this object dies or is released.

    `handle` and byte `offset` are what a backend takes; `deleter(context)` gives the memory back.

    >>> import dovetail as dt
    >>> ptr = dt.memory.get_allocator("reference").allocate(100)
    >>> ptr.nbytes >= 100
    True
    >>> ptr.release()
    """

    __slots__ = ("__del__", "context", "copy", "device", "handle", "nbytes", "offset")

    copy: Any  # of host memory, once a device has copied from or to it: see `transfer`

    # What gives the memory back, if anything does: called once by Python (PEP 442), which reports
    # errors in it. It lies in a slot, and is no method: at the start of a function in Python Ctrl-C
    # may come, and then this would not be done, and Python would print that it was not.
    __del__: Callable[[], object]

    def __init__(
        self,
        handle: Any,
        offset: int,
        nbytes: int,
        device: Device,
        context: Any = None,
        deleter: Deleter | None = None,
    ) -> None:
        self.handle = handle
        self.offset = offset
        self.nbytes = nbytes
        self.device = device
        self.context = context
        if deleter is not None:
            self.__del__ = partial(deleter, context)

    def release(self) -> None:
        """Gives the memory back now.

        An error in the deleter is reported, not raised.
        """
        heir = DataPtr(self.handle, self.offset, self.nbytes, self.device)
        with suppress(AttributeError):
            heir.__del__ = self.__del__
            del self.__del__  # no call stands between the two, so no Ctrl-C either
        self.context = None
        del heir  # so that Python reports an error as for any other `__del__`

    def detach(self) -> Any:
        """The context, for the caller to give the memory back, with `Allocator.raw_deallocate`."""
        with suppress(AttributeError):
            del self.__del__
        return self.context

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise _bound("a DataPtr")

    def __repr__(self) -> str:
        return f"<DataPtr {self.handle!r}+{self.offset}, {self.nbytes} bytes on {self.device}>"


def _bound(what: str) -> DTypeError:
    return DTypeError(
        f"pickle, copy: {what} is memory of this process; copy or send a tensor over it"
    )


def foreign(
    owner: Any, handle: Any, nbytes: int, device: Device, offset: int = 0,
    deleter: Deleter | None = None,
) -> DataPtr:  # fmt: skip
    """A DataPtr to memory that `owner` keeps alive, at least until `deleter(owner)` has returned.

    `owner`: an array, a DLPack capsule, a mapped file. `handle`, `offset`: what the backend takes,
    and where in it the memory begins. `nbytes`: how much there is. `deleter`: called once at the
    end.
    Units: bytes.
    Raises: nothing.

    >>> import dovetail as dt
    >>> a = bytearray(64)
    >>> ptr = dt.memory.foreign(a, 0, len(a), dt.device("reference"))
    >>> ptr.nbytes, ptr.context is a
    (64, True)
    """
    return DataPtr(handle, offset, nbytes, device, owner, deleter)


class Storage:
    """A flat run of bytes on one device, shared by the views of it.

    A storage without memory yet (`ptr` is None) has a `pending` expression instead. `read_only`
    forbids writes. `seen`: others than tensors may look. `checks`: of the indices that its values
    come of, where they may be bad (`faults`). `watch`: where somebody has saved what is there now
    (`expr`).

    >>> import dovetail as dt
    >>> dt.zeros(3, device="reference").storage()
    <Storage of 12 bytes on reference>
    """

    __slots__ = (
        "__weakref__", "checks", "device", "nbytes", "pending", "ptr", "read_only", "readers",
        "seen", "watch",
    )  # fmt: skip

    def __init__(
        self, ptr: DataPtr | None, nbytes: int, device: Device, read_only: bool = False
    ) -> None:
        self.ptr: DataPtr = ptr  # type: ignore[assignment]  # None only while pending
        self.pending: Any = None  # the deferred expression that will fill it, while `ptr` is None
        self.nbytes = nbytes
        self.device = device
        self.checks: tuple[Any, ...] = ()
        self.watch: Any = None
        self.read_only = read_only
        self.seen = False
        self.readers: Any = None  # the pending nodes that read it, as far as `expr` has noted them

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise _bound("a Storage")

    def __repr__(self) -> str:
        return f"<Storage of {self.nbytes} bytes on {self.device}>"


class Stats(dict[str, int]):
    """Figures of one device's allocator by name, also as attributes; see `stats`.

    Units: bytes, of blocks rounded up to 512.

    >>> import dovetail as dt
    >>> sorted(dt.memory.stats("reference"))[:3]
    ['allocations', 'cache_hits', 'cached_bytes']
    """

    FIGURES = (
        "live_bytes",
        "live_blocks",
        "peak_live_bytes",
        "cached_bytes",  # reserved and not live
        "waiting_bytes",  # of those: freed, but another stream may still use them
        "reserved_bytes",
        "peak_reserved",
        "allocations",
        "frees",
        "device_allocations",
        "device_frees",
        "cache_hits",
        "retries",
        "out_of_memory",
    )

    def __init__(self, **figures: int) -> None:
        super().__init__({**dict.fromkeys(self.FIGURES, 0), **figures})

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class BlockInfo(NamedTuple):
    """One block in a snapshot: offset and size in bytes, state, and the line that allocated it.

    `state` is "live", "cached" or "waiting"; `where`, a source line, if traced.

    >>> import dovetail as dt
    >>> dt.memory.BlockInfo(0, 512, "live", None).nbytes
    512
    """

    offset: int
    nbytes: int
    state: str
    where: str | None


class SegmentInfo(NamedTuple):
    """One piece of memory got from the device, and the blocks that it is cut into, in order.

    Units: bytes.

    >>> import dovetail as dt
    >>> x = dt.ones(3, device="reference")
    >>> dt.evaluate(x)
    >>> sum(b.nbytes for b in dt.memory.snapshot("reference")[0].blocks) % 512
    0
    """

    nbytes: int
    stream: Any
    blocks: tuple[BlockInfo, ...]


class Allocator(ABC):
    """Where the memory of one device comes from; only `allocate` must be written.

    >>> import dovetail as dt
    >>> isinstance(dt.memory.get_allocator("reference"), dt.memory.Allocator)
    True
    """

    timeline: Timeline | None = None  # what it did since `trace(True)`, if it notes that

    @abstractmethod
    def allocate(self, nbytes: int, stream: Any = None) -> DataPtr:
        """Memory of `nbytes` >= 0 bytes for use on `stream`.

        `stream` is a backend's handle; None is the default stream.
        Raises: OutOfMemoryError.
        """

    def raw_deleter(self) -> Deleter | None:
        """What gives a context of this allocator back; None if dropping the context does."""
        return None

    def raw_allocate(self, nbytes: int, stream: Any = None) -> DataPtr:
        """As `allocate`, but the caller gives it back, by `raw_deallocate(ptr.context)`."""
        ptr = self.allocate(nbytes, stream)
        ptr.detach()
        return ptr

    def raw_deallocate(self, context: Any) -> None:
        """Gives back what `raw_allocate` gave."""
        deleter = self.raw_deleter()
        if deleter is not None:
            deleter(context)

    def record_stream(self, ptr: DataPtr, stream: Any) -> None:  # noqa: B027 - nothing to do without reuse
        """Says that `ptr` is used on `stream` too.

        It is not reused before that stream has passed its end.
        """

    def stats(self) -> Stats:
        """The figures; zeros where an allocator keeps none."""
        return Stats()

    def snapshot(self) -> list[SegmentInfo]:
        """The segments and their blocks; empty where an allocator keeps none."""
        return []

    def reset_peak(self) -> None:  # noqa: B027
        """Starts the peaks anew from the present figures."""

    def empty_cache(self) -> None:  # noqa: B027
        """Returns to the device what is not in use."""

    def set_limit(self, nbytes: int | None) -> None:
        """Bounds what is reserved on the device; None: no bound."""
        raise NotImplementedError(f"{type(self).__name__} has no limit")


# --- the caching allocator -----------------------------------------------------------------------


class Segment:
    """Memory got from the device in one piece.

    It holds its allocator, which so lives as long as any pointer.
    """

    __slots__ = ("first", "handle", "nbytes", "owner", "pool")

    first: Block

    def __init__(self, owner: CachingAllocator, handle: Any, nbytes: int, pool: Pool) -> None:
        self.owner, self.handle, self.nbytes, self.pool = owner, handle, nbytes, pool

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order of offset."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.next

    def mend(self) -> None:
        """Joins neighbours that are neither live nor waiting, and lists them as free, unsorted."""
        block: Block | None = self.first
        while block is not None:
            if block.state < LIVE:
                while block.next is not None and block.next.state < LIVE:
                    _merge(block, block.next)
                block.state = FREE
                self.pool.free(self).append((block.size, block.serial, block))
            if block.next is not None:
                block.next.prev = block
            block = block.next


_new: Any = object.__new__

# What a block is. FREE ones are in their pool's sorted list; LIVE ones belong to somebody; WAITING
# ones were freed, and another stream may still use them. UNUSED are those in a bin, where small
# ones that were freed lie unmerged, to be handed out again at once, and those on their way.
UNUSED, FREE, LIVE, WAITING = range(4)


class Block:
    """A part of a segment. `give_back`, once it has been handed out, is what its pointers call."""

    __slots__ = (
        "bin",
        "give_back",
        "handle",
        "next",
        "offset",
        "prev",
        "segment",
        "serial",
        "size",
        "state",
        "streams",
        "where",
    )

    bin: list[Block] | None

    def __init__(self, segment: Segment, offset: int, size: int, serial: int) -> None:
        self.segment, self.handle, self.offset, self.size = segment, segment.handle, offset, size
        self.serial, self.state = serial, UNUSED
        self.prev: Block | None = None
        self.next: Block | None = None
        self.give_back: Any = None
        self.streams: list[Any] | None = None  # other streams that use it
        self.where: str | None = None


class Pool:
    """The blocks of one stream.

    `bins` are last-in-first-out by exact small size; the lists are sorted for best fit. Large
    blocks have no bins: they are merged when freed, which costs 2 us more.
    """

    __slots__ = ("bins", "large", "small", "stream")

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.bins: dict[int, list[Block]] = {}
        self.small: list[tuple[int, int, Block]] = []  # (size, serial, block)
        self.large: list[tuple[int, int, Block]] = []

    def bin(self, size: int) -> list[Block]:
        """The bin of one exact small size."""
        return self.bins.setdefault(size, [])

    def free(self, segment: Segment) -> list[tuple[int, int, Block]]:
        """The list in which free blocks of this segment are."""
        return self.small if segment.nbytes <= SMALL_SEGMENT else self.large

    def insert(self, block: Block) -> None:
        """Makes a block free, merged with its free neighbours."""
        for other in (block.prev, block.next):
            if other is not None and other.state is FREE:
                self.remove(other)
                block = _merge(*((other, block) if other is block.prev else (block, other)))
        block.state = FREE
        insort(self.free(block.segment), (block.size, block.serial, block))

    def remove(self, block: Block) -> None:
        """Takes a free block out."""
        found = self.free(block.segment)
        del found[bisect_left(found, (block.size, block.serial))]
        block.state = UNUSED

    def clear(self) -> None:
        """Empties the lists and bins."""
        self.small.clear()
        self.large.clear()
        for waiting in self.bins.values():
            waiting.clear()

    def flush(self) -> None:
        """Makes every block in a bin free, merged."""
        for waiting in self.bins.values():
            while waiting:
                self.insert(waiting.pop())

    def best(self, size: int) -> Block | None:
        """The smallest free block of at least `size`, taken out; None if there is none."""
        found = self.small if size <= SMALL else self.large
        at = bisect_left(found, (size,))
        if at == len(found):
            return None
        block = found.pop(at)[2]
        block.state = UNUSED
        return block


def _merge(left: Block, right: Block) -> Block:
    """`left` grown by `right`, its neighbour. Neither is in a list."""
    left.size, left.next = left.size + right.size, right.next
    if right.next is not None:
        right.next.prev = left
    right.give_back = None  # which refers to it
    return left


IDLE, BUSY, TORN = range(3)  # nobody is inside; somebody is; somebody was, and left by an exception


class CachingAllocator(Allocator):
    """The allocator of every device: keeps freed memory for reuse on the same stream.

    Deleters only append to a deque, which whoever next holds the lock drains: a `__del__` may run
    at any moment, also inside this class, through the garbage collector. Allocate and free from the
    cache cost under 1.5 us.

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

    def __init__(self, backend: Backend, device: Device) -> None:
        self.backend, self.device = backend, device
        self._lock = threading.RLock()
        # BUSY: the lock's holder is inside, so a finaliser that allocates gets memory uncached
        self._state = IDLE
        self._freed: deque[Block] = deque()
        self._give_back: Deleter = self._freed.append
        self._raw: tuple[Any, int] | None = None  # got from the device, and in no segment yet
        self._default = Pool(None)
        self._pools: dict[Hashable, Pool] = {None: self._default}
        self._strays: deque[tuple[Any, int]] = deque()  # what finalisers had inside, and freed
        self._waiting: list[tuple[Block, list[Any]]] = []  # with the events to wait for
        self._segments: dict[int, Segment] = {}
        # apart from segments, which refer to the allocator
        self._handles: dict[int, tuple[Any, int]] = {}
        self._serial = 0
        self._limit: int | None = None
        self._live = self._peak = self._reserved = self._peak_reserved = 0
        self._allocations = self._frees = self._misses = self._device_frees = 0
        self._device_allocations = self._retries = self._refusals = 0
        weakref.finalize(self, _free_all, backend, self._handles).atexit = False
        _allocators.add(self)
        if _tracing:
            self.watch(True)

    # --- the fast path
    def allocate(self, nbytes: int, stream: Any = None) -> DataPtr:
        """See `Allocator.allocate`.

        Zero bytes get a real block too, so that every handle is valid.
        """
        size = (nbytes + (ROUND - 1)) & -ROUND or ROUND
        with self._lock:
            if self._state:
                if self._state == BUSY:
                    return self._uncached(nbytes)
                self._mend()
            self._state = BUSY
            try:
                if self._freed:
                    self._drain()
                pool = self._default if stream is None else self._pool(stream)
                waiting = pool.bins.get(size)
                block = waiting.pop() if waiting else self._miss(pool, size)
                ptr = _new(DataPtr)
                ptr.handle, ptr.offset, ptr.nbytes = block.handle, block.offset, nbytes
                ptr.device, ptr.context = self.device, block
                give_back = self._noted(block) if _tracing else block.give_back
                ptr.__del__, block.state = give_back, LIVE  # at once, and no call after it
                self._allocations += 1
                self._live += block.size
                if self._live > self._peak:
                    self._peak = self._live
            except BaseException:
                self._state = TORN
                raise
            self._state = IDLE
        return ptr  # type: ignore[no-any-return]

    def raw_deleter(self) -> Deleter:
        """See `Allocator.raw_deleter`."""
        return self._give_back

    def record_stream(self, ptr: DataPtr, stream: Any) -> None:
        """See `Allocator.record_stream`; foreign memory is left to its owner."""
        block = ptr.context
        if isinstance(block, Block) and stream != block.segment.pool.stream:
            known = block.streams or []
            if stream not in known:
                block.streams = [*known, stream]
                if _tracing:
                    self._note_shared(block, stream)

    def _drain(self) -> None:
        freed = self._freed
        while freed:
            block = freed[0]
            if block.streams is not None:
                self._set_aside(block)
                continue
            if _tracing:
                self._note_freed(block)
            block.state = UNUSED
            self._live -= block.size
            self._frees += 1
            del freed[0]
            if block.bin is not None:
                block.bin.append(block)
            else:
                block.segment.pool.insert(block)

    def _set_aside(self, block: Block) -> None:
        """Takes back what others may still be using. Where the driver raises, it stays in line."""
        assert block.streams is not None
        self._waiting.append((block, [self.backend.record_event(s) for s in block.streams]))
        if _tracing:
            self._note_freed(block)
        block.state = WAITING
        block.streams = None
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
        block = pool.best(size)
        if block is None:
            self._poll()
            pool.flush()
            block = pool.best(size)
        if block is None:
            block = self._grow(pool, size)
            self._misses += 1
        return self._cut(pool, block, size)

    def _poll(self) -> None:
        """Lets go of blocks that other streams have passed, and of what was never cached."""
        if self._strays:
            self._free_strays()
        if not self._waiting:
            return
        # first: where the driver raises, all of them go on waiting
        passed = [all(map(self.backend.event_done, events)) for _, events in self._waiting]
        for (block, _), done in zip(self._waiting, passed, strict=True):
            if done:
                block.state = UNUSED
                block.segment.pool.insert(block)
        pairs = zip(self._waiting, passed, strict=True)
        self._waiting = [waiting for waiting, done in pairs if not done]

    def _cut(self, pool: Pool, block: Block, size: int) -> Block:
        """`block`, of exactly `size`; what is left over becomes a free block."""
        if block.size > size:
            rest = Block(block.segment, block.offset + size, block.size - size, self._next())
            rest.prev, rest.next = block, block.next
            block.next, block.size = rest, size
            if rest.next is not None:
                rest.next.prev = rest
            pool.insert(rest)
        block.bin = pool.bin(size) if size <= SMALL else None
        if block.give_back is None:
            block.give_back = partial(self._freed.append, block)
        return block

    def _grow(self, pool: Pool, size: int) -> Block:
        """A block of at least `size` from the device, after giving back others if it refuses."""
        want = _segment_bytes(size)
        self._trim(want)
        for mend in (_nothing, self._settle, self._collect):
            mend()
            block = pool.best(size) or self._ask(pool, want) or self._ask(pool, size)
            if block is not None:
                return block
        self._refusals += 1
        raise OutOfMemoryError(self._account(size))

    def _ask(self, pool: Pool, nbytes: int) -> Block | None:
        if nbytes >= LIMIT or (self._limit is not None and self._reserved + nbytes > self._limit):
            return None
        try:
            self._raw = raw = (self.backend.allocate(nbytes), nbytes)
        except MemoryError:
            return None
        segment = Segment(self, raw[0], nbytes, pool)
        segment.first = first = Block(segment, 0, nbytes, self._next())
        self._handles[first.serial] = raw
        self._segments[first.serial] = segment
        self._raw = None
        self._device_allocations += 1
        self._reserved += nbytes
        if self._reserved > self._peak_reserved:
            self._peak_reserved = self._reserved
        if _tracing and self.timeline is not None:
            self.timeline.got(first.serial, nbytes)
        return first

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _trim(self, want: int) -> None:
        """Keeps the cache in proportion where a device never refuses: host memory seems endless."""
        bound = max(self._peak, self._live + want) * 3 // 2 + SLACK
        if self._reserved + want > bound:
            self._release(self._reserved + want - bound)

    def _settle(self) -> None:
        """Waits for pending frees and returns whole segments."""
        self._retries += 1
        self._release(self._reserved)

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
        segments = self._segments.values()
        unused = [s for s in segments if s.first.state is FREE and s.first.next is None]
        for segment in sorted(unused, key=lambda s: -s.nbytes):
            if nbytes <= 0:
                break
            nbytes -= segment.nbytes
            self._return(segment)

    def _return(self, segment: Segment) -> None:
        serial = segment.first.serial
        segment.pool.remove(segment.first)
        if _tracing and self.timeline is not None:
            self.timeline.returned(serial)
        del self._segments[serial]  # from here on what is interrupted is done by `_mend`
        handle, nbytes = self._handles[serial]
        self._reserved -= nbytes
        self._device_frees += 1
        del self._handles[serial]
        self.backend.free(handle, nbytes)

    def _uncached(self, nbytes: int) -> DataPtr:
        """Memory for a finaliser that runs inside this allocator; never cached."""
        size = max(nbytes, 1)
        try:
            handle = self.backend.allocate(size)
        except MemoryError as error:
            raise OutOfMemoryError(f"{self.device} refused {_bytes(size)}") from error
        return DataPtr(handle, 0, nbytes, self.device, (handle, size), self._strays.append)

    def _free_strays(self) -> None:
        self.backend.synchronize()
        for _ in range(len(self._strays)):  # freeing them may make others
            handle, size = self._strays[0]
            del self._strays[0]
            self.backend.free(handle, size)

    # --- after an exception in the middle of something
    def _mend(self) -> None:
        """Makes lists, bins and figures anew from the segments' blocks."""
        self._state = BUSY
        try:
            self._give_up()
            for pool in self._pools.values():
                pool.clear()
            for segment in self._segments.values():
                segment.mend()
            for pool in self._pools.values():
                pool.small.sort()
                pool.large.sort()
            self._recount()
        except BaseException:
            self._state = TORN
            raise
        self._state = IDLE

    def _give_up(self) -> None:
        """Lets go of what was being done.

        What is not LIVE any more was freed already, and memory in no segment goes back to the
        device.
        """
        while self._freed and self._freed[0].state != LIVE:
            del self._freed[0]
        self._waiting = [w for w in self._waiting if w[0].state == WAITING]
        raw, self._raw = self._raw, None
        if raw is not None and all(raw is not known for known in self._handles.values()):
            self.backend.free(*raw)
        for serial in [s for s in self._handles if s not in self._segments]:
            self.backend.free(*self._handles.pop(serial))

    def _recount(self) -> None:
        live = [b for s in self._segments.values() for b in s.blocks() if b.state == LIVE]
        self._live = sum(b.size for b in live)
        self._peak = max(self._peak, self._live)
        self._allocations = self._frees + len(live)
        self._misses = min(self._misses, self._allocations)
        self._reserved = sum(s.nbytes for s in self._segments.values())
        self._peak_reserved = max(self._peak_reserved, self._reserved)
        self._device_allocations = self._device_frees + len(self._segments)

    # --- while tracing
    def watch(self, on: bool) -> None:
        """Begins a new timeline, or adds no more to the last one."""
        self._inside(self._watch if on else self._ignore)

    def _watch(self) -> None:
        self.timeline = Timeline(zip(self._segments, self.snapshot(), strict=True))
        self._give_back = self.timeline.deleter(self._freed.append)

    def _ignore(self) -> None:
        self._give_back = self._freed.append

    def _noted(self, block: Block) -> Callable[[], object]:
        """Notes the line that allocates a block; what its pointer is to call."""
        block.where = where = caller()
        if self.timeline is not None:
            segment = block.segment
            self.timeline.allocated(
                segment.first.serial, block.size, block, where, segment.pool.stream
            )
        return partial(self._give_back, block)

    def _note_freed(self, block: Block) -> None:
        if self.timeline is not None:
            self.timeline.freed(block.segment.first.serial, block.size, block, block.where)

    def _note_shared(self, block: Block, stream: Any) -> None:
        with self._lock:
            if self.timeline is not None:
                self.timeline.shared(block, stream)

    # --- figures
    def _inside(self, work: Callable[[], R]) -> R:
        """What `work` gives, done under the lock, with what was freed taken back first."""
        with self._lock:
            if self._state == BUSY:  # this thread is in here already
                return work()
            if self._state == TORN:
                self._mend()
            self._state = BUSY
            try:
                self._drain()
                self._poll()
                found = work()
            except BaseException:
                self._state = TORN
                raise
            self._state = IDLE
            return found

    def stats(self) -> Stats:
        """See `Allocator.stats`."""
        return self._inside(self._stats)

    def _stats(self) -> Stats:
        return Stats(
            live_bytes=self._live,
            live_blocks=self._allocations - self._frees,
            peak_live_bytes=self._peak,
            cached_bytes=self._reserved - self._live,
            waiting_bytes=sum(block.size for block, _ in self._waiting),
            reserved_bytes=self._reserved,
            peak_reserved=self._peak_reserved,
            allocations=self._allocations,
            frees=self._frees,
            device_allocations=self._device_allocations,
            device_frees=self._device_frees,
            cache_hits=self._allocations - self._misses,
            retries=self._retries,
            out_of_memory=self._refusals,
        )

    def snapshot(self) -> list[SegmentInfo]:
        """See `Allocator.snapshot`."""
        return self._inside(lambda: list(map(_segment_info, self._segments.values())))

    def reset_peak(self) -> None:
        """See `Allocator.reset_peak`."""
        self._inside(self._reset_peak)

    def _reset_peak(self) -> None:
        self._peak, self._peak_reserved = self._live, self._reserved

    def empty_cache(self) -> None:
        """See `Allocator.empty_cache`."""
        with self._lock:
            if self._state != BUSY:
                self._inside(lambda: self._release(self._reserved))

    def set_limit(self, nbytes: int | None) -> None:
        """See `Allocator.set_limit`."""
        self._limit = nbytes

    def _account(self, size: int) -> str:
        """The text of an OutOfMemoryError."""
        segments = list(map(_segment_info, self._segments.values()))
        gaps = [b.nbytes for s in segments for b in s.blocks if b.state == "cached"]
        limit = "" if self._limit is None else f" (the limit set is {_bytes(self._limit)})"
        lines = [
            f"{self.device} refused {_bytes(size)}{limit}, after everything unused was given back.",
            f"  live {_bytes(self._live)} in {self._allocations - self._frees} blocks, at most"
            f" {_bytes(self._peak)} so far; reserved {_bytes(self._reserved)}; the rest is"
            f" {len(gaps)} gaps, the largest of {_bytes(max(gaps, default=0))}.",
        ]
        return "\n".join([*lines, *_holders(segments)])


def _holders(segments: list[SegmentInfo]) -> list[str]:
    held: Counter[str] = Counter()
    for segment in segments:
        for block in segment.blocks:
            if block.where is not None and block.state == "live":
                held[block.where] += block.nbytes
    if not held:
        return ["  To see which lines hold it, call dovetail.memory.trace(True) before the work."]
    return [
        "  most is held by:",
        *(f"    {_bytes(n):>10}  {where}" for where, n in held.most_common(8)),
    ]


_NAMES = {UNUSED: "cached", FREE: "cached", LIVE: "live", WAITING: "waiting"}


def _segment_info(segment: Segment) -> SegmentInfo:
    blocks = [
        BlockInfo(b.offset, b.size, _NAMES[b.state], b.where if b.state == LIVE else None)
        for b in segment.blocks()
    ]
    return SegmentInfo(segment.nbytes, segment.pool.stream, tuple(blocks))


def _segment_bytes(size: int) -> int:
    if size <= SMALL:
        return SMALL_SEGMENT
    return MEDIUM_SEGMENT if size <= MEDIUM else (size + LARGE_ROUND - 1) & -LARGE_ROUND


def _bytes(n: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n >= unit:
            return f"{n / unit:.1f} {name}"
    return f"{n} bytes"


def _nothing() -> None:
    pass


def _free_all(backend: Backend, handles: dict[int, tuple[Any, int]]) -> None:
    """Returns every segment of an allocator that nobody refers to any more."""
    backend.synchronize()
    while handles:
        backend.free(*handles.popitem()[1])


# --- threads and forks: a child must not inherit a lock that a vanished thread holds
_allocators: weakref.WeakSet[CachingAllocator] = weakref.WeakSet()
_held: list[CachingAllocator] = []


def _before_fork() -> None:
    _held[:] = list(_allocators)
    for allocator in _held:
        allocator._lock.acquire()


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop()._lock.release()


def _after_fork_in_child() -> None:
    while _held:
        _held.pop()._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )

# --- which allocator a device type has
Factory = Callable[[Backend, Device], Allocator]
_chosen: dict[str, tuple[int, Allocator | Factory]] = {}


def set_allocator(device_type: str, allocator: Allocator | Factory, priority: int = 0) -> None:
    """Sets the allocator of a device type, and returns nothing.

    `device_type`: such as "cpu". `allocator`: an `Allocator`, or a function of (backend, device)
    that returns one. `priority`: the call is ignored where one of higher priority came before.
    Pointers of the allocator before stay good.
    Raises: ArgumentTypeError.

    >>> import dovetail as dt
    >>> dt.memory.set_allocator("mine", dt.memory.CachingAllocator)
    """
    if not isinstance(device_type, str):
        raise refused("set_allocator", "device_type", 'a name such as "cpu"', device_type)
    if not isinstance(allocator, Allocator):
        function("set_allocator", allocator, "allocator")
    priority = integer("set_allocator", priority, "priority")
    if device_type in _chosen and _chosen[device_type][0] > priority:
        return
    _chosen[device_type] = (priority, allocator)
    for dev in opened_devices():
        if dev.type == device_type:
            dev.opened.allocator = make_allocator(dev, dev.opened.backend)


def make_allocator(dev: Device, backend: Backend) -> Allocator:
    """The allocator for a device that is being opened: the one that was set for its type."""
    chosen = _chosen.get(dev.type, (0, CachingAllocator))[1]
    return chosen if isinstance(chosen, Allocator) else chosen(backend, dev)


def get_allocator(spec: Device | str | None = None) -> Allocator:
    """The allocator of a device, which is opened if need be.

    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that cannot
    be had.

    >>> import dovetail as dt
    >>> type(dt.memory.get_allocator("reference")).__name__
    'CachingAllocator'
    """
    return _allocator("get_allocator", spec)


def _allocator(op: str, spec: Device | str | None) -> Allocator:
    allocator: Allocator = opened(device(spec, op)).allocator
    return allocator


def stats(spec: Device | str | None = None) -> Stats:
    """The figures of a device's allocator, as a dict whose entries are attributes too.

    `live_bytes`, `cached_bytes`, `reserved_bytes` and their peaks; counts of allocations and frees,
    of those on the device, of hits of the cache, retries and refusals.
    Units: bytes, of blocks rounded up to 512.
    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that cannot
    be had.

    >>> import dovetail as dt
    >>> before = dt.memory.stats("reference").live_bytes
    >>> x = dt.zeros(100, device="reference")
    >>> dt.evaluate(x)
    >>> dt.memory.stats("reference").live_bytes - before
    512
    """
    return _allocator("stats", spec).stats()


def snapshot(spec: Device | str | None = None) -> list[SegmentInfo]:
    """Every segment got from a device, with its blocks, as a list.

    A block's `where` is the source line that allocated it, while `trace(True)`.
    Units: bytes.
    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that cannot
    be had.

    >>> import dovetail as dt
    >>> x = dt.zeros(100, device="reference")
    >>> dt.evaluate(x)
    >>> any(b.state == "live" for s in dt.memory.snapshot("reference") for b in s.blocks)
    True
    """
    return _allocator("snapshot", spec).snapshot()


def page(path: str | os.PathLike[str], spec: Device | str | None = None) -> None:
    """Writes a page for a browser: which lines hold a device's memory; returns nothing.

    If `trace(True)` was called before the work, it shows how that came about. The page is one file,
    at `path`; one that ends in .json gets what `dovetail memory FILE.json` draws.
    Raises: OSError where the file cannot be written; ArgumentTypeError, DeviceError,
    UnavailableError.

    >>> import dovetail as dt
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "now.html")
    >>> dt.memory.page(path, "reference")
    >>> os.path.getsize(path) > 1000
    True
    """
    name = file_name("page", path)
    of = device(spec, "page")
    allocator = get_allocator(of)
    found = record(str(of), allocator.stats(), allocator.snapshot(), allocator.timeline)
    text = json.dumps(found) if os.fspath(name).endswith(".json") else draw(found)
    with open(name, "w", encoding="utf-8", errors="backslashreplace") as f:  # names of files
        f.write(text)


def reset_peak(spec: Device | str | None = None) -> None:
    """Starts the peak figures of a device anew, from the present ones; returns nothing.

    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that cannot
    be had.

    >>> import dovetail as dt
    >>> dt.memory.reset_peak("reference")
    >>> s = dt.memory.stats("reference")
    >>> s.peak_live_bytes == s.live_bytes
    True
    """
    _allocator("reset_peak", spec).reset_peak()


def empty_cache(spec: Device | str | None = None) -> None:
    """Returns to the device what is cached and unused; returns nothing.

    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that cannot
    be had.

    >>> import dovetail as dt
    >>> dt.memory.empty_cache("reference")
    """
    _allocator("empty_cache", spec).empty_cache()


def set_limit(spec: Device | str | None, nbytes: int | None) -> None:
    """Bounds what may be reserved on a device; returns nothing.

    `nbytes`: the bound; None is no bound. What would go beyond it is an OutOfMemoryError.
    Units: bytes.
    Raises: ArgumentError for a negative number; DeviceError, UnavailableError, PluginError.

    >>> import dovetail as dt
    >>> dt.memory.set_limit("reference", 1 << 40)
    >>> dt.memory.set_limit("reference", None)
    """
    limit = nbytes if nbytes is None else integer("set_limit", nbytes, "nbytes", 0)
    _allocator("set_limit", spec).set_limit(limit)


# --- where memory was allocated
_tracing = False
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def trace(on: bool) -> None:
    """Begins, or ends, to note the source line of each allocation; returns nothing.

    `on`: which. `snapshot`, `page` and the text of OutOfMemoryError have the lines.
    Units: it costs about 3 us for each allocation.
    Raises: ArgumentTypeError for what is no bool.

    >>> import dovetail as dt
    >>> dt.memory.trace(True)
    >>> x = dt.empty(100, device="reference")
    >>> dt.memory.trace(False)
    """
    global _tracing
    on = flag("trace", on, "on")
    if on != _tracing:
        _tracing = on  # first: a timeline knows what was there before it, and all that comes after
        for allocator in list(_allocators):
            allocator.watch(on)


def caller() -> str:
    """The innermost source line outside of dovetail."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def __dir__() -> list[str]:
    return __all__
