"""Which source lines memory is allocated by, while somebody wants to know."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, partial

from .blocks import Block, Segment
from .pointer import Deleter, StreamHandle
from .timeline import Timeline

_OURS = {__name__.partition(".")[0]}  # packages whose lines nobody has written who asks


def pass_over(place: str) -> None:
    """Says that the lines of a package are not the user's.

    It is a plugin's, known by the "module:object" that it is loaded from.
    """
    _OURS.add(re.split("[.:]", place.strip())[0])
    _is_ours.cache_clear()


def caller() -> str:
    """The innermost source line outside of dovetail and its plugins."""
    frame = sys._getframe()  # this function's own, where there is one
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@cache
def _is_ours(module: str | None) -> bool:
    return str(module).partition(".")[0] in _OURS


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
