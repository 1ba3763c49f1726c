"""The data of the caching allocator: segments, the blocks in them, and pools of free blocks."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from .allocator import BlockInfo, SegmentInfo
from .pointer import Handle, StreamHandle
from .units import MIB

BLOCK_ALIGNMENT = 512  # bytes, also of a block's size
SMALL_BYTES_MAX, SMALL_SEGMENT_BYTES = MIB, 2 * MIB  # small blocks share segments of 2 MiB
MEDIUM_BYTES_MAX, MEDIUM_SEGMENT_BYTES = 10 * MIB, 20 * MIB
LARGE_SEGMENT_ALIGNMENT = 2 * MIB  # a huge page
LARGE_BINS_MAX = 64  # sizes above SMALL_BYTES_MAX with a bin, in each pool


def segment_bytes(size: int) -> int:
    """Return the bytes to request from the device for a new segment with a block of `size`."""
    if size <= SMALL_BYTES_MAX:
        return SMALL_SEGMENT_BYTES
    if size <= MEDIUM_BYTES_MAX:
        return MEDIUM_SEGMENT_BYTES
    return (size + LARGE_SEGMENT_ALIGNMENT - 1) & -LARGE_SEGMENT_ALIGNMENT


class Segment:
    """One allocation of the device. `owner`, its allocator, lives as long as any pointer."""

    __slots__ = ("first", "handle", "nbytes", "owner", "pool")

    first: MemoryBlock

    def __init__(self, owner: object, handle: Handle, nbytes: int, pool: Pool) -> None:
        self.owner, self.handle, self.nbytes, self.pool = owner, handle, nbytes, pool

    def blocks(self) -> list[MemoryBlock]:
        """Return the blocks in order of offset."""
        blocks: list[MemoryBlock] = []
        block: MemoryBlock | None = self.first
        while block is not None:
            blocks.append(block)
            block = block.next
        return blocks

    def info(self) -> SegmentInfo:
        """Build the segment's entry in a snapshot."""
        blocks = [
            BlockInfo(
                b.offset, b.size, _NAMES[b.state], b.allocation_line if b.state == LIVE else None
            )
            for b in self.blocks()
        ]
        return SegmentInfo(self.nbytes, self.pool.stream, tuple(blocks))


# The states of a block. UNUSED: in a bin, unmerged, or between two lists. FREE: in a sorted list of
# its pool. LIVE: a pointer has it. WAITING: freed, but another stream may still use it.
UNUSED, FREE, LIVE, WAITING = range(4)
_NAMES = {UNUSED: "cached", FREE: "cached", LIVE: "live", WAITING: "waiting"}


class MemoryBlock:
    """A part of a segment. `finalizer` is the finalizer of its pointers."""

    __slots__ = (
        "allocation_line",
        "bin",
        "finalizer",
        "handle",
        "next",
        "offset",
        "prev",
        "segment",
        "serial",
        "size",
        "state",
        "streams",
    )

    bin: list[MemoryBlock] | None  # for blocks of its size

    def __init__(self, segment: Segment, offset: int, size: int, serial: int) -> None:
        self.segment, self.handle, self.offset, self.size = segment, segment.handle, offset, size
        self.serial, self.state = serial, UNUSED
        self.prev: MemoryBlock | None = None
        self.next: MemoryBlock | None = None
        self.finalizer: Callable[[], object] | None = None
        self.streams: list[StreamHandle] | None = None  # other streams that use the block
        self.allocation_line: str | None = None

    def split(self, size: int, serial: int) -> MemoryBlock:
        """Shrink the block to `size`; return a new, unused block of the bytes behind it."""
        tail = MemoryBlock(self.segment, self.offset + size, self.size - size, serial)
        tail.prev, tail.next = self, self.next
        self.next, self.size = tail, size
        if tail.next is not None:
            tail.next.prev = tail
        return tail


class Pool:
    """The free blocks of one stream.

    `bins` are stacks of unmerged blocks by exact size; `small` and `large` are sorted for best fit.
    The blocks in `large_bins` are merged when a large block of another size is needed.
    """

    __slots__ = ("bins", "is_flushed", "large", "large_bins", "small", "stream")

    def __init__(self, stream: StreamHandle) -> None:
        self.stream = stream
        self.is_flushed = False  # since the pool's last new segment
        self.bins: dict[int, list[MemoryBlock]] = {}
        self.large_bins: list[list[MemoryBlock]] = []
        self.small: list[tuple[int, int, MemoryBlock]] = []  # (size, serial, block)
        self.large: list[tuple[int, int, MemoryBlock]] = []

    def bin(self, size: int) -> list[MemoryBlock] | None:
        """Return the bin of an exact size, created if missing, or None if large bins are full."""
        blocks = self.bins.get(size)
        if blocks is None and (size <= SMALL_BYTES_MAX or len(self.large_bins) < LARGE_BINS_MAX):
            blocks = self.bins[size] = []
            if size > SMALL_BYTES_MAX:
                self.large_bins.append(blocks)
        return blocks

    def free_list(self, segment: Segment) -> list[tuple[int, int, MemoryBlock]]:
        """Return the sorted list of the free blocks of such segments, `small` or `large`."""
        return self.small if segment.nbytes <= SMALL_SEGMENT_BYTES else self.large

    def insert(self, block: MemoryBlock) -> None:
        """Make a block free: merge it with its free neighbours and add it to the sorted list."""
        for other in (block.prev, block.next):
            if other is not None and other.state == FREE:
                self.remove(other)
                block = merge(*((other, block) if other is block.prev else (block, other)))
        block.state = FREE
        insort(self.free_list(block.segment), (block.size, block.serial, block))

    def remove(self, block: MemoryBlock) -> None:
        """Remove a free block from its sorted list; the block becomes UNUSED."""
        blocks = self.free_list(block.segment)
        del blocks[bisect_left(blocks, (block.size, block.serial))]
        block.state = UNUSED

    def flush(self, bins: Iterable[list[MemoryBlock]]) -> None:
        """Empty these bins: merge each block with its neighbours into the sorted lists."""
        for blocks in bins:
            while blocks:
                self.insert(blocks.pop())

    def take_best_fit(self, size: int) -> MemoryBlock | None:
        """Remove and return the smallest free block of at least `size`, or return None."""
        blocks = self.small if size <= SMALL_BYTES_MAX else self.large
        at = bisect_left(blocks, (size,))
        if at == len(blocks):
            return None
        block = blocks.pop(at)[2]
        block.state = UNUSED
        return block


def merge(left: MemoryBlock, right: MemoryBlock) -> MemoryBlock:
    """Grow `left` by its right neighbour and return `left`; neither may be in a list."""
    left.size, left.next = left.size + right.size, right.next
    if right.next is not None:
        right.next.prev = left
    right.finalizer = None  # breaks its reference cycle
    return left
