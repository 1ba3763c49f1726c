"""Traces of an allocator as text, one step a line, and their replay on any allocator.

    allocate 3 4096 1       block 3, of 4096 bytes, for stream 1 (0: the default one)
    share 3 2               block 3 is used on stream 2, too
    free 3
    empty                   what is cached goes back to the device

A trace comes from a real run (`dovetail memory --record`), or is written by hand.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..errors import ArgumentError, OutOfMemoryError
from .allocator import Allocator
from .pointer import DataPtr, StreamHandle
from .record import Record
from .timeline import NO_BLOCK

_NUMBER = re.compile(r"[0-9]{1,18}")
NUMBERS = {"allocate": 3, "share": 2, "free": 1, "empty": 0}  # that follow each verb


class Step(NamedTuple):
    """One line of a trace."""

    verb: str
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.verb, *map(str, self.numbers)])


def read(text: str) -> list[Step]:
    """The steps of a trace; empty lines and what follows a # do not count.

    Raises: ArgumentError, which names the line.
    """
    lines = ((n, line.partition("#")[0].split()) for n, line in enumerate(text.splitlines(), 1))
    return [_step(n, words) for n, words in lines if words]


def _step(n: int, words: list[str]) -> Step:
    verb, *rest = words
    if NUMBERS.get(verb) != len(rest) or not all(map(_NUMBER.fullmatch, rest)):
        known = ", ".join(f"{v} and {k} numbers" for v, k in NUMBERS.items())
        shown = " ".join(words)[:80]
        raise ArgumentError(f"line {n}: {shown!r} is no step of a trace ({known})")
    return Step(verb, tuple(map(int, rest)))


def write(steps: Iterable[Step]) -> str:
    """A trace as text."""
    return "".join(f"{step}\n" for step in steps)


def steps_of(record: Record) -> Iterator[Step]:
    """The steps of what `timeline.recorded` made while traced: what `dovetail memory` draws.

    Segments come and go by the allocator that replays it; blocks from before the trace are left
    out."""
    for _, change, _, _, _, _, block, stream in record["events"]:
        if block == NO_BLOCK:
            continue
        if change > 0:
            yield Step("allocate", (block, change, stream))
        else:
            yield Step("free", (block,)) if change else Step("share", (block, stream))


class Replay:
    """A trace in progress.

    `stream` gives the handle for a stream's number, 0 apart; `live` are the blocks there are,
    `refused` those that the device had no memory for.
    """

    def __init__(self, allocator: Allocator, stream: Callable[[int], StreamHandle]) -> None:
        self.allocator, self._new_stream = allocator, stream
        self._streams: dict[int, StreamHandle] = {0: None}
        self.live: dict[int, DataPtr] = {}
        self.refused: set[int] = set()

    def do(self, step: Step) -> None:
        """Does one step.

        What is said of blocks that are not live is passed over: they were refused, or are from
        before the trace.
        """
        getattr(self, "_" + step.verb)(*step.numbers)

    def stream(self, number: int) -> StreamHandle:
        """The handle of a stream, made when it is first met."""
        if number not in self._streams:
            self._streams[number] = self._new_stream(number)
        return self._streams[number]

    def _allocate(self, block: int, nbytes: int, stream: int) -> None:
        if block in self.live:
            raise ArgumentError(f"block {block} is allocated twice")
        try:
            self.live[block] = self.allocator.allocate(nbytes, self.stream(stream))
        except OutOfMemoryError:
            self.refused.add(block)

    def _share(self, block: int, stream: int) -> None:
        if block in self.live:
            self.allocator.record_stream(self.live[block], self.stream(stream))

    def _free(self, block: int) -> None:
        self.live.pop(block, None)

    def _empty(self) -> None:
        self.allocator.empty_cache()


def replay(
    steps: Iterable[Step], allocator: Allocator, stream: Callable[[int], StreamHandle]
) -> float:
    """Seconds that a whole trace takes. What is live at its end is given back after that."""
    going, steps = Replay(allocator, stream), list(steps)
    begun = time.perf_counter()
    for step in steps:
        going.do(step)
    return time.perf_counter() - begun
