"""What a caching allocator cuts memory into.

There are segments got from the device, their blocks, and for each stream a pool of those that are
free.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from .allocator import BlockInfo, SegmentInfo
from .pointer import Handle, StreamHandle
from .units import MIB

ROUND = 512  # every block is a multiple of this, so blocks keep the alignment of their segment
SMALL, SMALL_SEGMENT = MIB, 2 * MIB  # blocks up to SMALL come from segments of SMALL_SEGMENT
# up to MEDIUM, from MEDIUM_SEGMENT; larger ones have their own
MEDIUM, MEDIUM_SEGMENT = 10 * MIB, 20 * MIB
LARGE_ROUND = 2 * MIB  # a huge page
WIDE = 64  # sizes above SMALL, in a pool, that have bins


def segment_bytes(size: int) -> int:
    """The size of the segment that a block of this size is got in."""
    if size <= SMALL:
        return SMALL_SEGMENT
    return MEDIUM_SEGMENT if size <= MEDIUM else (size + LARGE_ROUND - 1) & -LARGE_ROUND


class Segment:
    """Memory got from the device in one piece.

    It holds its allocator, which so lives as long as any pointer.
    """

    __slots__ = ("first", "handle", "nbytes", "owner", "pool")

    first: Block

    def __init__(self, owner: object, handle: Handle, nbytes: int, pool: Pool) -> None:
        self.owner, self.handle, self.nbytes, self.pool = owner, handle, nbytes, pool

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order of offset."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.next

    def info(self) -> SegmentInfo:
        """What a snapshot says of it."""
        found = [
            BlockInfo(b.offset, b.size, _NAMES[b.state], b.where if b.state == LIVE else None)
            for b in self.blocks()
        ]
        return SegmentInfo(self.nbytes, self.pool.stream, tuple(found))

    def mend(self) -> None:
        """Joins neighbours that are neither live nor waiting, and lists them as free, unsorted."""
        block: Block | None = self.first
        while block is not None:
            if block.state < LIVE:
                while block.next is not None and block.next.state < LIVE:
                    merge(block, block.next)
                block.state = FREE
                self.pool.free(self).append((block.size, block.serial, block))
            if block.next is not None:
                block.next.prev = block
            block = block.next


# What a block is. FREE ones are in their pool's sorted list; LIVE ones belong to somebody; WAITING
# ones were freed, and another stream may still use them. UNUSED are those in a bin, where
# those that were freed lie unmerged, to be handed out again at once, and those on their way.
UNUSED, FREE, LIVE, WAITING = range(4)
_NAMES = {UNUSED: "cached", FREE: "cached", LIVE: "live", WAITING: "waiting"}


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
        self.give_back: Callable[[], object] | None = None
        self.streams: list[StreamHandle] | None = None  # other streams that use it
        self.where: str | None = None

    def split(self, size: int, serial: int) -> Block:
        """Cuts the block down to `size`; what is left over, as a new block behind it."""
        rest = Block(self.segment, self.offset + size, self.size - size, serial)
        rest.prev, rest.next = self, self.next
        self.next, self.size = rest, size
        if rest.next is not None:
            rest.next.prev = rest
        return rest


class Pool:
    """The blocks of one stream.

    `bins` are last-in-first-out by exact size; the lists are sorted for best fit. What lies in the
    bins of large sizes, `wide`, is merged as soon as a large block of another size is wanted.
    """

    __slots__ = ("bins", "is_torn", "large", "small", "stream", "wide")

    def __init__(self, stream: StreamHandle) -> None:
        self.stream = stream
        self.is_torn = False  # whether bins were emptied since it last got a segment
        self.bins: dict[int, list[Block]] = {}
        self.wide: list[list[Block]] = []
        self.small: list[tuple[int, int, Block]] = []  # (size, serial, block)
        self.large: list[tuple[int, int, Block]] = []

    def bin(self, size: int) -> list[Block] | None:
        """The bin of one exact size; None where there are too many of large ones."""
        found = self.bins.get(size)
        if found is None and (size <= SMALL or len(self.wide) < WIDE):
            found = self.bins[size] = []
            if size > SMALL:
                self.wide.append(found)
        return found

    def free(self, segment: Segment) -> list[tuple[int, int, Block]]:
        """The list in which free blocks of this segment are."""
        return self.small if segment.nbytes <= SMALL_SEGMENT else self.large

    def insert(self, block: Block) -> None:
        """Makes a block free, merged with its free neighbours."""
        for other in (block.prev, block.next):
            if other is not None and other.state == FREE:
                self.remove(other)
                block = merge(*((other, block) if other is block.prev else (block, other)))
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

    def sort(self) -> None:
        """Puts the lists in order again."""
        self.small.sort()
        self.large.sort()

    def join(self) -> None:
        """Makes every large block in a bin free, merged."""
        for waiting in self.wide:
            while waiting:
                self.insert(waiting.pop())

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


def merge(left: Block, right: Block) -> Block:
    """`left` grown by `right`, its neighbour. Neither is in a list."""
    left.size, left.next = left.size + right.size, right.next
    if right.next is not None:
        right.next.prev = left
    right.give_back = None  # which refers to it
    return left
