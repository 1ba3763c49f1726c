"""Acts that hold programs: loops and branches.

What decides how often, or which, may be read by the host from memory.

What a loop carries lies in buffers of its own. Where the body makes a new value it goes to the one
of two buffers in which the last one is not, so that nothing is copied from round to round; where
the body gives back what it got, perhaps written in place, there is one buffer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..engine.traced_numbers import Env
from ..memory.pointer import StreamHandle
from ..plugins.opened import Opened
from .program import Act, At, Effect, Place, Program


class Part(NamedTuple):
    """A program inside of another: where its memory is there, beyond what it carries."""

    program: Program
    outer: tuple[Place, ...]  # those of its inputs that are the outer program's
    arena: Place | None

    def places(self) -> Iterator[Place]:
        """What it reads and writes of the outer program."""
        yield from self.outer
        if self.arena is not None:
            yield self.arena

    def moved(self, move: Callable[[Place], Place]) -> Part:
        """The same with its memory elsewhere."""
        arena = None if self.arena is None else move(self.arena)
        return Part(self.program, tuple(move(p) for p in self.outer), arena)

    def written(self, first: int) -> Iterator[Place]:
        """What it writes of the outer program, whose places are its inputs from `first` on."""
        for i in self.program.written:
            if first <= i < self.program.inputs:
                yield self.outer[i - first]

    def is_pure(self, first: int) -> bool:
        """Return True if it writes nothing of the outer program, and has no other effects."""
        return not any(self.written(first)) and not _has_effects(self.program)

    def at(self, at: At, inputs: Sequence[Place], results: Sequence[Place]) -> At:
        """Handles and offsets of its slots."""
        found: At = []
        for p in (*inputs, *self.outer):
            found += (at[2 * p.slot], at[2 * p.slot + 1] + p.offset)
        found += self.program.begun()
        for p in (*results, *(() if self.arena is None else (self.arena,))):
            found += (at[2 * p.slot], at[2 * p.slot + 1] + p.offset)
        return found


def _has_effects(program: Program) -> bool:
    return any(
        isinstance(act, Effect) or any(map(_has_effects, act.programs)) for act in program.acts
    )


class Carried(NamedTuple):
    """A value that goes from round to round.

    `other`: the second buffer, where there are two; `copy`: what copies one of them.
    """

    first: Place  # what is there before the first round
    buffer: Place  # and after the last one
    other: Place | None
    copy: Program

    def places(self) -> Iterator[Place]:
        """All of them."""
        yield from (self.first, self.buffer)
        if self.other is not None:
            yield self.other

    def moved(self, move: Callable[[Place], Place]) -> Carried:
        """The same with its memory elsewhere."""
        other = None if self.other is None else move(self.other)
        return Carried(move(self.first), move(self.buffer), other, self.copy)

    def after(self, odd: int) -> Place:
        """Where the value is after a round, `odd` rounds (modulo 2) before the last one."""
        return self.other if odd and self.other is not None else self.buffer

    def copied(self, at: At, source: Place, target: Place, env: Env, stream: StreamHandle) -> None:
        """Copies the value."""
        pair = [
            x for p in (source, target) for x in (at[2 * p.slot], at[2 * p.slot + 1] + p.offset)
        ]
        self.copy.replay.run(pair, env, stream)


class Scanned(NamedTuple):
    """What a round reads, or writes, a part of: where the first part is, and the bytes of one."""

    place: Place
    step: int

    def moved(self, move: Callable[[Place], Place]) -> Scanned:
        """The same elsewhere."""
        return Scanned(move(self.place), self.step)


def read(opened: Opened, at: At, p: Place, nbytes: int, stream: StreamHandle) -> int:
    """A little-endian integer, when all before it is done."""
    found = bytearray(nbytes)
    source, offset = at[2 * p.slot], at[2 * p.slot + 1] + p.offset
    opened.backend.copy_out(memoryview(found), source, offset, stream)
    return int.from_bytes(found, "little", signed=nbytes > 1)


class Form(Act):
    """An act with programs in it."""

    # launches: those inside count themselves
    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The programs in it."""

    @property
    def programs(self) -> tuple[Program, ...]:
        """The same, alone."""
        return tuple(p.program for p in self.parts)


class Repeat(Form):
    """A body, so many times: `fori_loop`, `scan`.

    `bounds`: first and end of the index, or where they are read from, as int64.
    """

    what = "repeat"

    def __init__(
        self, body: Part, bounds: tuple[int | Place, int | Place], variable: int | None,
        carried: tuple[Carried, ...], inputs: tuple[Scanned, ...], results: tuple[Scanned, ...],
        reverse: bool,
    ) -> None:  # fmt: skip
        self.body, self.bounds, self.variable, self.carried = body, bounds, variable, carried
        self.inputs, self.results, self.reverse = inputs, results, reverse

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.body,)

    @property
    def written(self) -> tuple[Place, ...]:
        own = [p for c in self.carried for p in (c.buffer, c.other) if p is not None]
        first = len(self.carried) + len(self.inputs)
        return (*own, *(x.place for x in self.results), *self.body.written(first))

    def places(self) -> Iterator[Place]:
        yield from self.body.places()
        yield from (p for c in self.carried for p in c.places())
        yield from (x.place for x in (*self.inputs, *self.results))
        yield from (b for b in self.bounds if isinstance(b, Place))

    def moved(self, move: Callable[[Place], Place]) -> Repeat:
        low, high = (move(b) if isinstance(b, Place) else b for b in self.bounds)
        return Repeat(
            self.body.moved(move), (low, high), self.variable,
            tuple(c.moved(move) for c in self.carried), tuple(x.moved(move) for x in self.inputs),
            tuple(x.moved(move) for x in self.results), self.reverse,
        )  # fmt: skip

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        low, high = (
            read(opened, at, b, 8, stream) if isinstance(b, Place) else b for b in self.bounds
        )
        count, carried = max(high - low, 0), self.carried
        if not count:
            for c in carried:
                if c.first != c.buffer:
                    c.copied(at, c.first, c.buffer, env, stream)
            return
        replay, variable = self.body.program.replay.run, self.variable
        rounds = [self._at(at, [c.first for c in carried], (count - 1) % 2)]
        for odd in range(2 if count > 1 else 0):
            rounds.append(self._at(at, [c.after(1 - odd) for c in carried], odd))
        scanned = self._scanned(at)
        for k in range(count):
            mine = rounds[0] if k == 0 else rounds[1 + (count - 1 - k) % 2]
            if variable is not None:
                env[variable] = low + k
            for position, base, step in scanned:
                mine[position] = base + (count - 1 - k if self.reverse else k) * step
            replay(mine, env, stream)

    def _at(self, at: At, carried: Sequence[Place], odd: int) -> At:
        inputs = [*carried, *(x.place for x in self.inputs)]
        results = [c.after(odd) for c in self.carried if c.other is not None]
        return self.body.at(at, inputs, [*results, *(x.place for x in self.results)])

    def _scanned(self, at: At) -> list[tuple[int, int, int]]:
        """Which offsets in the body's memory change with each round: base and step."""
        program, found = self.body.program, []
        first = program.inputs + len(program.held)
        first += sum(c.other is not None for c in self.carried)
        for k, x in enumerate(self.inputs):
            found.append((2 * (len(self.carried) + k) + 1, x))
        for k, x in enumerate(self.results):
            found.append((2 * (first + k) + 1, x))
        return [(i, at[2 * x.place.slot + 1] + x.place.offset, x.step) for i, x in found]


class While(Form):
    """A body, as long as a condition holds: `while_loop`."""

    what = "while"

    def __init__(
        self, condition: Part, truth: Place, body: Part, carried: tuple[Carried, ...]
    ) -> None:
        self.condition, self.truth, self.body, self.carried = condition, truth, body, carried

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.condition, self.body

    @property
    def written(self) -> tuple[Place, ...]:
        own = [p for c in self.carried for p in (c.buffer, c.other) if p is not None]
        n = len(self.carried)
        return (*own, self.truth, *self.body.written(n), *self.condition.written(n))

    def places(self) -> Iterator[Place]:
        yield from self.condition.places()
        yield from self.body.places()
        yield from (p for c in self.carried for p in c.places())
        yield self.truth

    def moved(self, move: Callable[[Place], Place]) -> While:
        carried = tuple(c.moved(move) for c in self.carried)
        return While(self.condition.moved(move), move(self.truth), self.body.moved(move), carried)

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        carried = self.carried
        ask, do = self.condition.program.replay.run, self.body.program.replay.run
        where = [c.first for c in carried]
        known: dict[tuple[Place, ...], tuple[At, At, list[Place]]] = {}
        while True:
            found = known.get(tuple(where))
            if found is None:
                found = known[tuple(where)] = self._round(at, where)
            asked, done, after = found
            ask(asked, env, stream)
            if not read(opened, at, self.truth, 1, stream):
                break
            do(done, env, stream)
            where = after
        for c, p in zip(carried, where, strict=True):
            if p != c.buffer:
                c.copied(at, p, c.buffer, env, stream)

    def _round(self, at: At, where: list[Place]) -> tuple[At, At, list[Place]]:
        after = [
            c.buffer if c.other is None or p != c.buffer else c.other
            for c, p in zip(self.carried, where, strict=True)
        ]
        results = [p for c, p in zip(self.carried, after, strict=True) if c.other is not None]
        return (
            self.condition.at(at, where, [self.truth]), self.body.at(at, where, results), after,
        )  # fmt: skip


class Branch(Form):
    """One of two programs: `cond`."""

    what = "branch"

    def __init__(self, truth: Place, chosen: tuple[Part, Part], results: tuple[Place, ...]) -> None:
        self.truth, self.chosen, self.results = truth, chosen, results

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.chosen

    @property
    def written(self) -> tuple[Place, ...]:
        return (*self.results, *(p for part in self.chosen for p in part.written(0)))

    def places(self) -> Iterator[Place]:
        yield self.truth
        yield from self.results
        for part in self.chosen:
            yield from part.places()

    def moved(self, move: Callable[[Place], Place]) -> Branch:
        yes, no = (part.moved(move) for part in self.chosen)
        return Branch(move(self.truth), (yes, no), tuple(move(p) for p in self.results))

    def run(self, opened: Opened, at: At, env: Env, stream: StreamHandle) -> None:
        part = self.chosen[0 if read(opened, at, self.truth, 1, stream) else 1]
        part.program.replay.run(part.at(at, (), self.results), env, stream)
