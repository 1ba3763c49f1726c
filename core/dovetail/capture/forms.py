"""Acts that hold programs: loops and branches.

The host may read from memory how often a body runs, or which branch.

What a loop carries lies in buffers of its own. Where the body makes a new value it goes to the one
of two buffers in which the last one is not, so that nothing is copied from iteration to iteration;
where the body gives back what it got, perhaps written in place, there is one buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..engine.traced_numbers import Env
from ..memory.pointer import StreamHandle
from ..plugins.opened import Opened
from .program import Act, At, Effect, Place, Program, location, nested
from .replay import handles


class Part(NamedTuple):
    """A program inside of another: where its memory is there, beyond what it carries."""

    program: Program
    outer: tuple[Place, ...]  # those of its inputs that are the outer program's
    arena: Place | None

    def written(self, first: int) -> Iterator[Place]:
        """Yield what it writes of the outer program, whose places are its inputs from `first`."""
        for i in self.program.written:
            if first <= i < self.program.inputs:
                yield self.outer[i - first]

    def is_pure(self, first: int) -> bool:
        """Return True if it writes nothing of the outer program, and has no other effects."""
        return not any(self.written(first)) and not _has_effects(self.program)

    def at(self, at: At, inputs: Sequence[Place], results: Sequence[Place]) -> At:
        """Return handles and offsets of its slots."""
        arena = () if self.arena is None else (self.arena,)
        return [
            *handles((*inputs, *self.outer), at),
            *self.program.begun(),
            *handles((*results, *arena), at),
        ]


def _has_effects(program: Program) -> bool:
    return any(
        isinstance(act, Effect) or any(map(_has_effects, act.programs)) for act in program.acts
    )


class Carried(NamedTuple):
    """A value that goes from iteration to iteration.

    `other`: the second buffer, where there are two; `copy`: what copies one of them.
    """

    first: Place  # where the value is before the first iteration
    buffer: Place  # where it is after the last one
    other: Place | None
    copy: Program

    def after(self, odd: int) -> Place:
        """Return where the value is `odd` iterations (modulo 2) before the last one has ended."""
        return self.other if odd and self.other is not None else self.buffer

    def move_to_buffer(self, at: At, source: Place, env: Env, stream: StreamHandle) -> None:
        """Copy the value, unless it is there."""
        if source != self.buffer:
            self.copy.replay.run([*handles((source, self.buffer), at)], env, stream)


class Scanned(NamedTuple):
    """Memory of which each iteration reads or writes a part: the first one, the bytes of one."""

    place: Place
    step: int


def read(opened: Opened, at: At, p: Place, nbytes: int, stream: StreamHandle) -> int:
    """Return a little-endian integer, once all work before is done."""
    value = bytearray(nbytes)
    opened.backend.copy_out(memoryview(value), *location(p, at), stream)
    return int.from_bytes(value, "little", signed=nbytes > 1)


class Form(Act):
    """An act with programs in it, which count their own launches."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The programs in it, with their memory."""
        return tuple(nested(tuple(vars(self).values()), Part))

    @property
    def programs(self) -> tuple[Program, ...]:
        return tuple(p.program for p in self.parts)


def _buffers(carried: Sequence[Carried]) -> list[Place]:
    """Return the places of what a loop carries, which it writes."""
    return [p for c in carried for p in (c.buffer, c.other) if p is not None]


@dataclass(frozen=True, eq=False)
class Repeat(Form):
    """A body, so many times: `fori_loop`, `scan`.

    `bounds`: first and end of the index, or where they are read from, as int64.
    """

    body: Part
    bounds: tuple[int | Place, int | Place]
    variable: int | None
    carried: tuple[Carried, ...]
    inputs: tuple[Scanned, ...]
    results: tuple[Scanned, ...]
    reverse: bool

    what = "repeat"

    @property
    def written(self) -> tuple[Place, ...]:
        outside = self.body.written(len(self.carried) + len(self.inputs))
        return (*_buffers(self.carried), *(x.place for x in self.results), *outside)

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        low, high = (
            read(opened, at, b, 8, stream) if isinstance(b, Place) else b for b in self.bounds
        )
        count, carried = max(high - low, 0), self.carried
        if not count:
            for c in carried:
                c.move_to_buffer(at, c.first, env, stream)
            return
        replay, variable = self.body.program.replay.run, self.variable
        rounds = [self._at(at, [c.first for c in carried], (count - 1) % 2)]
        for odd in range(2 if count > 1 else 0):
            rounds.append(self._at(at, [c.after(1 - odd) for c in carried], odd))
        scanned = self._scanned(at)
        for k in range(count):
            slots = rounds[0] if k == 0 else rounds[1 + (count - 1 - k) % 2]
            if variable is not None:
                env[variable] = low + k
            for position, base, step in scanned:
                slots[position] = base + (count - 1 - k if self.reverse else k) * step
            replay(slots, env, stream)

    def _at(self, at: At, carried: Sequence[Place], odd: int) -> At:
        inputs = [*carried, *(x.place for x in self.inputs)]
        results = [c.after(odd) for c in self.carried if c.other is not None]
        return self.body.at(at, inputs, [*results, *(x.place for x in self.results)])

    def _scanned(self, at: At) -> list[tuple[int, int, int]]:
        """Return which offsets in the body's memory change with each iteration: base and step."""
        program = self.body.program
        first = program.inputs + len(program.held) + sum(c.other is not None for c in self.carried)
        slots = [len(self.carried) + k for k in range(len(self.inputs))]
        slots += [first + k for k in range(len(self.results))]
        return [
            (2 * slot + 1, at[2 * x.place.slot + 1] + x.place.offset, x.step)
            for slot, x in zip(slots, (*self.inputs, *self.results), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class While(Form):
    """A body, as long as a condition holds: `while_loop`."""

    condition: Part
    truth: Place
    body: Part
    carried: tuple[Carried, ...]

    what = "while"

    @property
    def written(self) -> tuple[Place, ...]:
        n = len(self.carried)
        outside = (*self.body.written(n), *self.condition.written(n))
        return (*_buffers(self.carried), self.truth, *outside)

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        ask, do = self.condition.program.replay.run, self.body.program.replay.run
        places = [c.first for c in self.carried]
        rounds: dict[tuple[Place, ...], tuple[At, At, list[Place]]] = {}
        while True:
            known = rounds.get(tuple(places))
            if known is None:
                known = rounds[tuple(places)] = self._round(at, places)
            condition_at, body_at, after = known
            ask(condition_at, env, stream)
            if not read(opened, at, self.truth, 1, stream):
                break
            do(body_at, env, stream)
            places = after
        for c, p in zip(self.carried, places, strict=True):
            c.move_to_buffer(at, p, env, stream)

    def _round(self, at: At, places: list[Place]) -> tuple[At, At, list[Place]]:
        """Return the memory of the condition and the body, and the places after the iteration."""
        after = [
            c.buffer if c.other is None or p != c.buffer else c.other
            for c, p in zip(self.carried, places, strict=True)
        ]
        results = [p for c, p in zip(self.carried, after, strict=True) if c.other is not None]
        condition_at = self.condition.at(at, places, [self.truth])
        return condition_at, self.body.at(at, places, results), after


@dataclass(frozen=True, eq=False)
class Branch(Form):
    """One of two programs: `cond`."""

    truth: Place
    chosen: tuple[Part, Part]
    results: tuple[Place, ...]

    what = "branch"

    @property
    def written(self) -> tuple[Place, ...]:
        return (*self.results, *(p for part in self.chosen for p in part.written(0)))

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        part = self.chosen[0 if read(opened, at, self.truth, 1, stream) else 1]
        part.program.replay.run(part.at(at, (), self.results), env, stream)
