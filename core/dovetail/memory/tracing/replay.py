"""Allocation traces as text, one step a line, and their replay on any allocator.

    allocate 3 4096 1       block 3, of 4096 bytes, for stream 1 (0: the default one)
    share 3 2               block 3 is also used on stream 2
    free 3
    empty                   the cache goes back to the device

A trace comes from a real run (`dovetail memory --record`), or is written by hand.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...errors import ArgumentError, OutOfMemoryError
from ..allocator import Allocator
from ..pointer import DataPtr, StreamHandle
from .snapshot import Snapshot
from .trace import NO_BLOCK

_NUMBER = re.compile(r"[0-9]{1,18}")
ARGUMENT_COUNTS = {"allocate": 3, "share": 2, "free": 1, "empty": 0}  # verb -> numbers after it


class TraceStep(NamedTuple):
    """One line of a trace."""

    verb: str
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.verb, *map(str, self.numbers)])


def parse_trace(text: str) -> list[TraceStep]:
    """Parse a trace; `#` starts a comment. Raises: ArgumentError, which names the line."""
    lines = ((n, line.partition("#")[0].split()) for n, line in enumerate(text.splitlines(), 1))
    return [_parse_step(n, words) for n, words in lines if words]


def _parse_step(n: int, words: list[str]) -> TraceStep:
    """Parse the words of line `n`. Raises: ArgumentError for an unknown verb or a wrong count."""
    verb, *numbers = words
    if ARGUMENT_COUNTS.get(verb) != len(numbers) or not all(map(_NUMBER.fullmatch, numbers)):
        steps = ", ".join(f"'{v}' with {k} numbers" for v, k in ARGUMENT_COUNTS.items())
        shown = " ".join(words)[:80]
        raise ArgumentError(f"line {n}: {shown!r} is not a trace step; expected one of {steps}")
    return TraceStep(verb, tuple(map(int, numbers)))


def format_trace(steps: Iterable[TraceStep]) -> str:
    """Return steps as the text of a trace, a line for each."""
    return "".join(f"{step}\n" for step in steps)


def steps_of(snapshot: Snapshot) -> Iterator[TraceStep]:
    """Yield the steps of a traced snapshot, without blocks from before the trace.

    Segments are left to the allocator of the replay.
    """
    for _, change, _, _, _, _, block, stream in snapshot["events"]:
        if block == NO_BLOCK:
            continue
        if change > 0:
            yield TraceStep("allocate", (block, change, stream))
        else:
            yield TraceStep("free", (block,)) if change else TraceStep("share", (block, stream))


class TraceReplay:
    """A trace in progress.

    `stream` returns the handle for a stream's number, except for 0. `live` holds the pointers of
    the live blocks, `refused` the numbers of blocks for which the device had no memory.
    """

    def __init__(self, allocator: Allocator, stream: Callable[[int], StreamHandle]) -> None:
        self.allocator, self._new_stream = allocator, stream
        self._streams: dict[int, StreamHandle] = {0: None}
        self.live: dict[int, DataPtr] = {}
        self.refused: set[int] = set()

    def run_step(self, step: TraceStep) -> None:
        """Do one step; ignore a block that is not live: refused, or from before the trace."""
        getattr(self, "_" + step.verb)(*step.numbers)

    def stream(self, number: int) -> StreamHandle:
        """Return the handle of a stream's number; create the stream on first use."""
        if number not in self._streams:
            self._streams[number] = self._new_stream(number)
        return self._streams[number]

    def _allocate(self, block: int, nbytes: int, stream: int) -> None:
        """Allocate a block into `live`, or add it to `refused` if out of memory.

        Raises: ArgumentError if the block is live already.
        """
        if block in self.live:
            raise ArgumentError(f"block {block} is allocated twice")
        try:
            self.live[block] = self.allocator.allocate(nbytes, self.stream(stream))
        except OutOfMemoryError:
            self.refused.add(block)

    def _share(self, block: int, stream: int) -> None:
        """Record the use of a live block on another stream; ignore other blocks."""
        if block in self.live:
            self.allocator.record_stream(self.live[block], self.stream(stream))

    def _free(self, block: int) -> None:
        """Drop the pointer of a block, if the block is live."""
        self.live.pop(block, None)

    def _empty(self) -> None:
        """Return the allocator's cached memory to the device."""
        self.allocator.empty_cache()


def replay_trace(
    steps: Iterable[TraceStep], allocator: Allocator, stream: Callable[[int], StreamHandle]
) -> float:
    """Replay a whole trace and return its seconds; blocks that stay live are freed after that."""
    run, steps = TraceReplay(allocator, stream), list(steps)
    start = time.perf_counter()
    for step in steps:
        run.run_step(step)
    return time.perf_counter() - start
