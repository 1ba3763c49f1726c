"""What a caching allocator has got from its device."""

from __future__ import annotations

from collections import deque

from ..backend.interface import Backend
from ..device import Device
from ..errors import OutOfMemoryError
from ..layout import LIMIT
from .blocks import FREE, LIVE, UNUSED, WAITING, Block, Pool, Segment
from .pointer import DataPtr, Handle
from .units import bytes_text

RawMemory = tuple[Handle, int]  # what the device gave, and its size


class Segments:
    """The segments of one allocator, the latest last, and how much they are.

    An exception may come anywhere: `mend` then finds what was on its way, and gives it back.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.known: dict[int, Segment] = {}  # by the serial number of the first block
        # apart from segments, which refer to the allocator: what is to be freed when it dies
        self.handles: dict[int, RawMemory] = {}
        self._raw: RawMemory | None = None  # got from the device, and in no segment yet
        self._serial = 0
        self.limit: int | None = None
        self.nbytes = self.peak = self.got = self.returned = 0

    def next(self) -> int:
        """The serial number of a new block."""
        self._serial += 1
        return self._serial

    def ask(self, owner: object, pool: Pool, nbytes: int) -> Segment | None:
        """A new segment; None where the device, or the limit, refuses."""
        if nbytes >= LIMIT or (self.limit is not None and self.nbytes + nbytes > self.limit):
            return None
        try:
            self._raw = raw = (self.backend.allocate(nbytes), nbytes)
        except MemoryError:
            return None
        segment = Segment(owner, raw[0], nbytes, pool)
        segment.first = first = Block(segment, 0, nbytes, self.next())
        self.handles[first.serial] = raw
        self.known[first.serial] = segment
        self._raw = None
        self.got += 1
        self.nbytes += nbytes
        if self.nbytes > self.peak:
            self.peak = self.nbytes
        return segment

    def extent(self, handle: Handle, offset: int) -> tuple[int, int] | None:
        """First byte and end of the block that an offset lies in; None where it is in none."""
        for segment in [*self.known.values()]:
            if segment.handle is handle or (type(handle) is int and segment.handle == handle):
                for block in segment.blocks():
                    if block.offset <= offset < block.offset + block.size:
                        return block.offset, block.offset + block.size
        return None

    def unused(self) -> list[Segment]:
        """Those of one free block, the largest first."""
        found = [s for s in self.known.values() if s.first.state == FREE and s.first.next is None]
        return sorted(found, key=lambda s: -s.nbytes)

    def give_back(self, segment: Segment) -> None:
        """Returns a segment, all of which is free, to the device."""
        serial = segment.first.serial
        segment.pool.remove(segment.first)
        del self.known[serial]  # from here on what is interrupted is done by `mend`
        handle, nbytes = self.handles[serial]
        self.nbytes -= nbytes
        self.returned += 1
        del self.handles[serial]
        self.backend.free(handle, nbytes)

    def mend(self) -> None:
        """Gives memory that is in no segment back to the device."""
        raw, self._raw = self._raw, None
        if raw is not None and all(raw is not known for known in self.handles.values()):
            self.backend.free(*raw)
        for serial in [s for s in self.handles if s not in self.known]:
            self.backend.free(*self.handles.pop(serial))

    def recount(self) -> list[Block]:
        """Makes the figures anew; the blocks that are live."""
        self.nbytes = sum(s.nbytes for s in self.known.values())
        self.peak = max(self.peak, self.nbytes)
        self.got = self.returned + len(self.known)
        return [b for s in self.known.values() for b in s.blocks() if b.state == LIVE]


class Waiting:
    """Blocks that were freed, and that other streams may still use."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.blocks: list[tuple[Block, list[object]]] = []  # with the events to wait for

    def add(self, block: Block) -> None:
        """Notes where the streams that use the block are now."""
        events = [self.backend.record_event(stream) for stream in block.streams or ()]
        self.blocks.append((block, events))

    def poll(self) -> None:
        """Makes those free that all streams have passed."""
        # first: where the driver raises, all of them go on waiting
        passed = [all(map(self.backend.event_done, events)) for _, events in self.blocks]
        for (block, _), done in zip(self.blocks, passed, strict=True):
            if done:
                block.state = UNUSED
                block.segment.pool.insert(block)
        pairs = zip(self.blocks, passed, strict=True)
        self.blocks = [waiting for waiting, done in pairs if not done]

    def mend(self) -> None:
        """Drops those that do not wait."""
        self.blocks = [w for w in self.blocks if w[0].state == WAITING]

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        return sum(block.size for block, _ in self.blocks)


class Strays:
    """Memory of finalisers that ran inside an allocator: got from the device, and never cached."""

    def __init__(self, backend: Backend, device: Device) -> None:
        self.backend, self.device = backend, device
        self.freed: deque[RawMemory] = deque()

    def allocate(self, nbytes: int) -> DataPtr:
        """Memory for a finaliser. Raises: OutOfMemoryError."""
        size = max(nbytes, 1)
        try:
            handle = self.backend.allocate(size)
        except MemoryError as error:
            raise OutOfMemoryError(f"{self.device} refused {bytes_text(size)}") from error
        return DataPtr(handle, 0, nbytes, self.device, (handle, size), self.freed.append)

    def free(self) -> None:
        """Returns those that were freed to the device."""
        self.backend.synchronize()
        for _ in range(len(self.freed)):  # freeing them may make others
            handle, size = self.freed[0]
            del self.freed[0]
            self.backend.free(handle, size)
