"""Counts of the iterations of a kernel's loops, and kernels that find those that depend on data.

A run of a loop counts one iteration more than it has: the test that ends it. The loops in its body
count that test once more, because a driver that masks lanes runs the body for inactive ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..dtypes import uint32
from .builder import Kernel
from .language import (
    CHUNK,
    LANES,
    Atomic,
    Block,
    Buffer,
    Loop,
    Statement,
    Value,
    cast,
    walk,
    where,
)
from .lower_limits import append_buffer
from .rewrite import Cloner

Trips: TypeAlias = Mapping[Loop, int]  # the most iterations of each loop whenever it runs


class UnknownTripsError(Exception):
    """The length of a loop depends on data that no other kernel can find."""


@dataclass(frozen=True)
class LoopCount:
    """The iterations that the loops of a block count.

    - `active`: the most iterations if the block runs.
    - `idle`: those for an inactive lane: one of each loop.
    """

    active: int = 0
    idle: int = 0

    def __add__(self, other: LoopCount) -> LoopCount:
        return LoopCount(self.active + other.active, self.idle + other.idle)

    def repeat(self, count: int) -> LoopCount:
        """Return the count of a loop that runs the block `count` times."""
        return self.loop(count * (1 + self.active))

    def loop(self, iterations: int, runs: int = 1) -> LoopCount:
        """Return the count of `runs` runs of a loop of the block.

        - `iterations`: what the iterations of all runs count, without the tests that end them.
        """
        return LoopCount(iterations + runs * (1 + self.idle), 1 + self.idle)

    def nest(self, depth: int) -> LoopCount:
        """Return the count of the block inside `depth` loops of one iteration."""
        count = self
        for _ in range(depth):
            count = count.repeat(1)
        return count


def count_iterations(block: Block, trips: Trips) -> LoopCount:
    """Return what the loops of a block count."""
    return sum((count_of_loop(s, trips) for s in block if isinstance(s, Loop)), LoopCount())


def count_of_loop(loop: Loop, trips: Trips) -> LoopCount:
    """Return what a loop and those in it count; a reduction counts as it is expanded."""
    body, count = count_iterations(loop.body, trips), trips[loop]
    return _count_reduction(body, count) if loop.kind == "reduce" else body.repeat(count)


def _count_reduction(body: LoopCount, count: int) -> LoopCount:
    """Return what the loops of `expand_reductions` count for a reduction of `count` values."""
    chunks = trees = row = max(1, -(-count // CHUNK))  # each chunk of each row becomes a tree
    rows = 1
    while row > 1:
        row = -(-row // CHUNK)
        trees, rows = trees + row, rows + 1
    last, other = _count_tree(0), _count_tree(1)
    elements = body.loop(count * (1 + body.active), chunks)
    levels = last.loop(1 + last.active + (trees - 1) * (1 + other.active), chunks)
    loop = (elements + levels).loop(chunks + elements.active + levels.active)
    return LoopCount().repeat(rows * LANES) + loop


def _count_tree(above: int) -> LoopCount:
    """Return what the loops of a tree of lanes count; `above` is 1 if there is a row above it."""
    return LoopCount().repeat(LANES - 1 + above) + LoopCount().repeat(above * LANES)


@dataclass(frozen=True)
class TripProbe:
    """A kernel that finds how many iterations `loops` of another kernel have.

    It has the arguments of that kernel, and one buffer more. Element k of it becomes the most
    iterations of loop k. `origins`: the loop of that kernel for each loop of the probe.
    """

    kernel: Kernel
    loops: tuple[Loop, ...]
    origins: Mapping[Loop, Loop]


def build_trip_probe(kernel: Kernel, trips: Mapping[Loop, int | None]) -> TripProbe:
    """Return the probe for the loops of unknown length that are in no other such loop.

    - `trips`: the most iterations of each loop; None if they are unknown.

    Raises: UnknownTripsError if a length depends on what the kernel writes or carries.
    """
    probe, cells, start = append_buffer(kernel, "trips", uint32)
    builder = _ProbeBuilder(cells, start, trips)
    builder.visit(kernel.body)
    probe = replace(probe, body=tuple(builder.statements), before=None, unexpanded=None)
    return TripProbe(probe, tuple(builder.loops), builder.origins)


class _ProbeBuilder(Cloner):
    """A cloner that keeps what the lengths of loops depend on."""

    def __init__(self, cells: Buffer, start: Value, trips: Mapping[Loop, int | None]) -> None:
        super().__init__()
        self.cells, self.start, self.trips = cells, start, trips
        self.loops: list[Loop] = []
        self.origins: dict[Loop, Loop] = {}

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body, and record the old one."""
        new = super().copy_loop_head(old)
        self.origins[new] = old
        return new

    def visit(self, block: Block) -> None:
        """Append what finds the lengths of a block's loops, and of those in loops of it."""
        for s in block:
            if not isinstance(s, Loop):
                continue
            if self.trips[s] is None:
                self.measure(s)
            elif any(isinstance(x, Loop) and self.trips[x] is None for x in walk(s.body)):
                self.fetch((s.start, s.stop))
                new = Loop("map", self.operand(s.start), self.operand(s.stop))
                self.origins[new] = s
                self.replacements[s.var] = new.var
                outer, self.statements = self.statements, []
                self.visit(s.body)
                new.set_body(tuple(self.statements))
                self.statements = [*outer, new]

    def measure(self, loop: Loop) -> None:
        """Append the atomic that raises a cell to a loop's length."""
        self.fetch((loop.start, loop.stop))
        start, stop = self.operand(loop.start), self.operand(loop.stop)
        length = cast(where(start < stop, stop - start, 0), uint32)
        self.emit(length)
        cell = self.start + len(self.loops)
        self.emit(cell)
        self.statements.append(Atomic("max", self.cells, cell, length))
        self.loops.append(loop)

    def fetch(self, values: Iterable[Value]) -> None:
        """Append the operations that give values. Raises: UnknownTripsError."""
        for v in values:
            if v in self.replacements or v.op in ("const", "param", "index"):
                continue
            if v.op == "carry" or (v.op == "load" and v.buffer.access != "r"):
                raise UnknownTripsError
            if v.op != "result":
                self.fetch(v.args)
                self.value(v)
                continue
            loop, _ = v.place
            if any(not isinstance(x, Value | Loop) for x in walk(loop.body)):
                raise UnknownTripsError
            self.fetch(outer_operands([loop]))
            self.statements.append(self.loop(loop))


def outer_operands(statements: Iterable[Statement]) -> list[Value]:
    """Return the operands of statements that these do not define, in order of use."""
    defined: set[Value] = set()
    used: dict[Value, None] = {}

    def visit(block: Iterable[Statement]) -> None:
        """Add the operands of a block's statements."""
        for s in block:
            if isinstance(s, Value):
                used.update(dict.fromkeys(s.args))
                defined.add(s)
            elif isinstance(s, Loop):
                defined.update((s.var, *s.carry, *s.results))
                used.update(dict.fromkeys((s.start, s.stop, *s.init)))
                visit(s.body)
                used.update(dict.fromkeys(s.update))
            else:
                used.update(dict.fromkeys((s.index, s.value)))
                used.update({} if s.when is None else {s.when: None})

    visit(statements)
    return [v for v in used if v not in defined]
