"""Which source lines memory is allocated by, while somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .blocks import Block, Segment
from .callers import caller
from .pointer import Deleter, StreamHandle
from .timeline import Timeline


class Tracer:
    """Notes what one allocator does, with the lines that asked, in its timeline.

    All is called under the allocator's lock, but for what it has given pointers to call."""

    def __init__(self, timeline: Timeline, give_back: Deleter) -> None:
        self.timeline = timeline
        self.give_back: Deleter = timeline.deleter(give_back)

    def got(self, segment: Segment) -> None:
        """Notes a new segment."""
        self.timeline.got(segment.first.serial, segment.nbytes)

    def returned(self, segment: Segment) -> None:
        """Notes a segment that is about to be given back to the device."""
        self.timeline.returned(segment.first.serial)

    def allocated(self, block: Block) -> Callable[[], object]:
        """Notes the line that allocates a block; what its pointer is to call."""
        block.where = where = caller()
        segment = block.segment
        self.timeline.allocated(segment.first.serial, block.size, block, where, segment.pool.stream)
        return partial(self.give_back, block)

    def freed(self, block: Block) -> None:
        """Notes that a block was freed."""
        self.timeline.freed(block.segment.first.serial, block.size, block, block.where)

    def shared(self, block: Block, stream: StreamHandle) -> None:
        """Notes that a block is used on another stream, too."""
        self.timeline.shared(block, stream)
