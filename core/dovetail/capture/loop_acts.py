"""Acts that contain programs: loops and branches.

The host may read the number of iterations, or the condition of a branch, from memory.

A re-rolled loop uses only the memory of the outer program. The carry of other loops is in buffers
of its own. A new value goes to the one of two buffers that does not contain the last value, so
iterations copy nothing. If the body returns its input, perhaps written in place, there is one
buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ..backend.interface import QueuedLaunch, Replay
from ..engine.traced_numbers import Env, TracedNumber
from ..memory.pointer import StreamHandle
from ..plugins.device_handle import OpenedDevice
from .program import (
    Act,
    Addresses,
    CapturedProgram,
    Place,
    find_nested,
    has_effects,
    resolve_address,
)
from .replay import Scalars, UnrolledLaunches, buffer_addresses, numbers

UNROLLED_LAUNCHES_MAX = 1 << 16  # of a loop: 0.5 KB each; an iteration by Python costs 0.5 us


class NestedProgram(NamedTuple):
    """A program inside of another: where its memory is there, beyond what it carries."""

    program: CapturedProgram
    outer_places: tuple[Place, ...]  # those of its inputs that are the outer program's
    arena: Place | None

    def written(self, first: int) -> Iterator[Place]:
        """Yield the places of the outer program that it writes: its inputs from `first` on."""
        for i in self.program.written:
            if first <= i < self.program.inputs:
                yield self.outer_places[i - first]

    def is_pure(self, first: int) -> bool:
        """Return True if it writes nothing of the outer program, and has no other effects."""
        return not any(self.written(first)) and not has_effects(self.program.acts)

    def nested_addresses(
        self, at: Addresses, inputs: Sequence[Place], results: Sequence[Place]
    ) -> Addresses:
        """Return the `at` of this program, handle and offset of each slot, from the outer `at`."""
        arena = () if self.arena is None else (self.arena,)
        return [
            *buffer_addresses((*inputs, *self.outer_places), at),
            *self.program.constant_addresses(),
            *buffer_addresses((*results, *arena), at),
        ]


class LoopCarry(NamedTuple):
    """A value that goes from iteration to iteration.

    `second_buffer`: the second buffer, where there are two; `copy`: what copies one of them.
    """

    initial: Place  # where the value is before the first iteration
    buffer: Place  # where it is after the last one
    second_buffer: Place | None
    copy: CapturedProgram

    def place_before_end(self, parity: int) -> Place:
        """Return where the value is, `parity` iterations (0 or 1) before the end of the loop."""
        return self.second_buffer if parity and self.second_buffer is not None else self.buffer

    def move_to_buffer(self, at: Addresses, source: Place, env: Env, stream: StreamHandle) -> None:
        """Copy the value from `source` to `buffer`, unless it is there already."""
        if source != self.buffer:
            self.copy.replay.run([*buffer_addresses((source, self.buffer), at)], env, stream)


class ScannedRows(NamedTuple):
    """A buffer of rows, one for each iteration: the first row's place, and the bytes of a row."""

    place: Place
    row_bytes: int


def read_integer(
    opened: OpenedDevice, at: Addresses, p: Place, nbytes: int, stream: StreamHandle
) -> int:
    """Wait for earlier work, then return a little-endian integer: signed if of more bytes.

    One byte is unsigned, more are signed.
    """
    value = bytearray(nbytes)
    opened.backend.copy_out(memoryview(value), *resolve_address(p, at), stream)
    return int.from_bytes(value, "little", signed=nbytes > 1)


class NestedAct(Act):
    """An act with programs in it, which count their own launches."""

    @property
    def parts(self) -> tuple[NestedProgram, ...]:
        """The programs in it, with their memory."""
        return tuple(find_nested(tuple(vars(self).values()), NestedProgram))

    @property
    def programs(self) -> tuple[CapturedProgram, ...]:
        return tuple(p.program for p in self.parts)


def _buffers(carried: Sequence[LoopCarry]) -> list[Place]:
    """Return the places of both buffers of each carried value, which the loop writes."""
    return [p for c in carried for p in (c.buffer, c.second_buffer) if p is not None]


@dataclass(frozen=True, eq=False)
class CountedLoop(NestedAct):
    """A body, so many times: `fori_loop`, `scan`.

    `bounds`: first and end of the index, or where they are read from, as int64.
    """

    body: NestedProgram
    bounds: tuple[int | Place, int | Place]
    variable: int | None
    carried: tuple[LoopCarry, ...]
    inputs: tuple[ScannedRows, ...]
    results: tuple[ScannedRows, ...]
    reverse: bool

    label = "repeat"

    @property
    def written(self) -> tuple[Place, ...]:
        """The places of the carry, of the ys, and of what the body writes outside."""
        outside = self.body.written(len(self.carried) + len(self.inputs))
        return (*_buffers(self.carried), *(x.place for x in self.results), *outside)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Replay the body once per index, on moving rows; the host reads bounds in memory."""
        low, high = (
            read_integer(opened, at, b, 8, stream) if isinstance(b, Place) else b
            for b in self.bounds
        )
        count, carried = max(high - low, 0), self.carried
        if not count:
            for c in carried:
                c.move_to_buffer(at, c.initial, env, stream)
            return
        replay, variable = self.body.program.replay.run, self.variable
        iteration_addresses = [
            self._iteration_addresses(at, [c.initial for c in carried], (count - 1) % 2)
        ]
        for odd in range(2 if count > 1 else 0):
            iteration_addresses.append(
                self._iteration_addresses(at, [c.place_before_end(1 - odd) for c in carried], odd)
            )
        scanned = self._moving_offsets(at)
        for k in range(count):
            slots = (
                iteration_addresses[0] if k == 0 else iteration_addresses[1 + (count - 1 - k) % 2]
            )
            if variable is not None:
                env[variable] = low + k
            for position, base, step in scanned:
                slots[position] = base + (count - 1 - k if self.reverse else k) * step
            replay(slots, env, stream)

    def _iteration_addresses(
        self, at: Addresses, carried: Sequence[Place], parity: int
    ) -> Addresses:
        """Return the body's `at` for an iteration; `parity`: how many are left, modulo 2."""
        inputs = [*carried, *(x.place for x in self.inputs)]
        results = [c.place_before_end(parity) for c in self.carried if c.second_buffer is not None]
        return self.body.nested_addresses(at, inputs, [*results, *(x.place for x in self.results)])

    def _moving_offsets(self, at: Addresses) -> list[tuple[int, int, int]]:
        """Return (index in the body's `at`, first offset, bytes per row) of each scanned buffer."""
        program = self.body.program
        first = (
            program.inputs
            + len(program.constants)
            + sum(c.second_buffer is not None for c in self.carried)
        )
        slots = [len(self.carried) + k for k in range(len(self.inputs))]
        slots += [first + k for k in range(len(self.results))]
        return [
            (2 * slot + 1, at[2 * x.place.slot + 1] + x.place.offset, x.row_bytes)
            for slot, x in zip(slots, (*self.inputs, *self.results), strict=True)
        ]


class NumberTable(NamedTuple):
    """A row of numbers for each iteration, for the variables from `variable` on."""

    variable: int
    rows: tuple[tuple[TracedNumber, ...], ...]

    def replace(self, scalars: Scalars, k: int) -> Scalars:
        """Return the scalars of a launch, with numbers of iteration `k` in place of variables."""
        row = dict(enumerate(self.rows[k], self.variable))
        return tuple([x if x[1] is None else row.get(x[1], x) for x in scalars])


@dataclass(frozen=True, eq=False)
class RerolledLoop(Act):
    """A Python loop: a body, `count` times, in the memory of the program around it.

    `inputs`: where each input of the body is in the first iteration, and by how many bytes it moves
    from one to the next.
    """

    body: CapturedProgram
    count: int
    inputs: tuple[ScannedRows, ...]
    table: NumberTable | None

    label = "repeat"

    @property
    def programs(self) -> tuple[CapturedProgram, ...]:
        return (self.body,)

    @property
    def written(self) -> tuple[Place, ...]:
        return tuple([self.inputs[slot].place for slot in sorted(self.body.written)])

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Replay the body `count` times, with moving offsets and each iteration's numbers."""
        slots: Addresses = [*buffer_addresses(tuple([x.place for x in self.inputs]), at)]
        moving = [(2 * i + 1, x.row_bytes) for i, x in enumerate(self.inputs) if x.row_bytes]
        for k in range(self.count):
            if self.table is not None:
                first, row = self.table.variable, self.table.rows[k]
                env[first : first + len(row)] = numbers(row, env)
            self.body.replay.run(slots, env, stream)
            for position, step in moving:
                slots[position] += step

    def prepare(self, opened: OpenedDevice) -> UnrolledLaunches | Replay:
        """Return the launches of all iterations, or a replay if the body has other acts.

        A launch that is equal in all iterations is one object, so a backend stores it once.
        """
        body = [act.prepare(opened) for act in self.body.acts]
        launches = [x for x in body if isinstance(x, QueuedLaunch)]
        if len(launches) < len(body) or self.count * len(body) > UNROLLED_LAUNCHES_MAX:
            return partial(self.run, opened)

        def launch_of_iteration(q: QueuedLaunch, k: int) -> QueuedLaunch:
            """Return a launch of iteration `k`, in the outer program's slots."""
            buffers = list[tuple[int, int]]()
            for slot, offset in q.buffers:
                (outer, begin), step = self.inputs[slot]
                buffers.append((outer, begin + k * step + offset))
            scalars = q.scalars if self.table is None else self.table.replace(q.scalars, k)
            return QueuedLaunch(q.launch, tuple(buffers), scalars)

        def is_same(q: QueuedLaunch) -> bool:
            """Return True if a launch is equal in all iterations."""
            moves = any(self.inputs[slot].row_bytes for slot, _ in q.buffers)
            return not moves and launch_of_iteration(q, 0).scalars == q.scalars

        pairs = [(q, launch_of_iteration(q, 0) if is_same(q) else None) for q in launches]
        every = [same or launch_of_iteration(q, k) for k in range(self.count) for q, same in pairs]
        return UnrolledLaunches(every, self.count * sum(act.calls for act in self.body.acts))


@dataclass(frozen=True, eq=False)
class WhileLoop(NestedAct):
    """A body, as long as a condition holds: `while_loop`."""

    condition: NestedProgram
    truth: Place
    body: NestedProgram
    carried: tuple[LoopCarry, ...]

    label = "while"

    @property
    def written(self) -> tuple[Place, ...]:
        """The places of the carry and the bool, and of what the parts write outside."""
        n = len(self.carried)
        outside = (*self.body.written(n), *self.condition.written(n))
        return (*_buffers(self.carried), self.truth, *outside)

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Replay condition and body until the host reads False; move the carry to its buffers."""
        ask, do = self.condition.program.replay.run, self.body.program.replay.run
        places = [c.initial for c in self.carried]
        rounds: dict[tuple[Place, ...], tuple[Addresses, Addresses, list[Place]]] = {}
        while True:
            memory = rounds.get(tuple(places))
            if memory is None:
                memory = rounds[tuple(places)] = self._memory_of_iteration(at, places)
            condition_at, body_at, after = memory
            ask(condition_at, env, stream)
            if not read_integer(opened, at, self.truth, 1, stream):
                break
            do(body_at, env, stream)
            places = after
        for c, p in zip(self.carried, places, strict=True):
            c.move_to_buffer(at, p, env, stream)

    def _memory_of_iteration(
        self, at: Addresses, places: list[Place]
    ) -> tuple[Addresses, Addresses, list[Place]]:
        """Return the `at` of condition and body, and the carry's places after the iteration."""
        after = [
            c.buffer if c.second_buffer is None or p != c.buffer else c.second_buffer
            for c, p in zip(self.carried, places, strict=True)
        ]
        results = [
            p for c, p in zip(self.carried, after, strict=True) if c.second_buffer is not None
        ]
        condition_at = self.condition.nested_addresses(at, places, [self.truth])
        return condition_at, self.body.nested_addresses(at, places, results), after


@dataclass(frozen=True, eq=False)
class Branch(NestedAct):
    """One of two programs: `cond`."""

    truth: Place
    branches: tuple[NestedProgram, NestedProgram]
    results: tuple[Place, ...]

    label = "branch"

    @property
    def written(self) -> tuple[Place, ...]:
        return (*self.results, *(p for part in self.branches for p in part.written(0)))

    def run(self, opened: OpenedDevice, at: Addresses, env: Env, stream: StreamHandle) -> None:
        """Read the bool on the host, which waits for earlier work, and replay one branch."""
        part = self.branches[0 if read_integer(opened, at, self.truth, 1, stream) else 1]
        part.program.replay.run(part.nested_addresses(at, (), self.results), env, stream)
