"""Division of kernels whose loops are too long for one launch into parts that run in order.

A device may limit the iterations of one point in one launch. The parts of a kernel have its grid.
What a later part needs of an earlier one is in a buffer, the *state*: words of 32 bits, each of
all points side by side. A part is a run of the kernel's statements, or iterations `begin` to
`begin + count` of one loop, which come as integers after those of the kernel.

- A loop whose iterations fit a launch in groups is one part, launched for each group. A fold keeps
  its carried values in the state.
- The body of a loop of which not even one iteration fits is divided itself, and all of its parts
  are launched for each iteration.
- A long reduction becomes a map and a shorter reduction (`cut_reductions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

from .analysis import definitions, values
from .builder import Kernel
from .cut_reductions import ReductionCloner, find_long_reductions
from .language import Block, Loop, Statement, Value, where
from .point_state import PointState, word_count
from .rewrite import Cloner, fresh_names
from .trip_counts import LoopCount, Trips, count_iterations, count_of_loop, outer_operands


@dataclass(frozen=True)
class Part:
    """A kernel that does one part of the work of another."""

    kernel: Kernel


@dataclass(frozen=True)
class Repeat:
    """Parts to launch for each group of `count` of `trips` iterations of a loop."""

    trips: int
    count: int
    steps: tuple[Part | Repeat, ...]


Steps: TypeAlias = tuple[Part | Repeat, ...]


@dataclass(frozen=True)
class SplitKernel:
    """The parts of a kernel, their common extra integers, and the words of the state of a point."""

    steps: Steps
    ints: tuple[int, ...]
    state_words: int

    def kernels(self) -> Iterator[Kernel]:
        """Yield the kernel of each part once."""

        def visit(steps: Steps) -> Iterator[Kernel]:
            for p in steps:
                if isinstance(p, Part):
                    yield p.kernel
                else:
                    yield from visit(p.steps)

        return visit(self.steps)

    @property
    def launch_count(self) -> int:
        """The number of launches."""

        def count(steps: Steps) -> int:
            return sum(
                1 if isinstance(p, Part) else -(-p.trips // p.count) * count(p.steps) for p in steps
            )

        return count(self.steps)

    def launches(self) -> Iterator[tuple[Kernel, tuple[int, ...]]]:
        """Yield the launches in order: a kernel, and the integers after those of the whole."""

        def visit(steps: Steps, ints: tuple[int, ...]) -> Iterator[tuple[Kernel, tuple[int, ...]]]:
            for p in steps:
                if isinstance(p, Part):
                    yield p.kernel, ints
                else:
                    for begin in range(0, p.trips, p.count):
                        yield from visit(p.steps, (*ints, begin, p.count))

        return visit(self.steps, self.ints)


def split_iterations(kernel: Kernel, trips: Trips, limit: int) -> SplitKernel:
    """Return the parts of a kernel that is beyond a limit.

    - `trips`: the most iterations of each loop.
    - `limit`: the most iterations of one point in one launch, all loops together.
    """
    state = PointState(kernel)
    placeholders = [0] * (len(state.kernel.ints) - len(kernel.ints))  # of the state's first word
    kernel = state.kernel
    sizes: list[int] = []  # words that each long reduction stores
    while long := find_long_reductions(kernel.body, trips, limit):
        names = fresh_names(kernel, [f"first_word{len(sizes) + k}" for k in range(len(long))])
        cloner = ReductionCloner(state, dict(zip(long, names, strict=True)), trips)
        kernel = kernel.with_body(cloner.block(kernel.body), ints=(*kernel.ints, *names))
        trips, sizes = cloner.new_trips, [*sizes, *cloner.stored_words]
    division = _Division(kernel, state, trips, limit)
    steps = division.run()
    *firsts, words = accumulate(sizes, initial=division.words)
    return SplitKernel(steps, (*placeholders, *firsts), words)


# --- the division ---------------------------------------------------------------------------------


@dataclass(eq=False)
class _Segment:
    """Statements of one part, inside iterations of the loops of `chain`.

    `assigned`: carried values, and what their words in the state become. `spilled`: values that
    later parts need. `is_group`: True if the part is iterations of the last loop of the chain.
    """

    chain: tuple[Loop, ...]
    statements: list[Statement] = field(default_factory=list)
    assigned: list[tuple[Value, Value]] = field(default_factory=list)
    spilled: list[Value] = field(default_factory=list)
    is_group: bool = False


@dataclass(frozen=True)
class _Cut:
    """A loop of which each launch of its segments does `count` iterations."""

    loop: Loop
    count: int
    segments: list[_Segment | _Cut]


class _Division:
    """The division of a kernel into parts, for given trip counts."""

    def __init__(self, kernel: Kernel, state: PointState, trips: Trips, limit: int) -> None:
        self.kernel, self.state, self.trips, self.limit = kernel, state, trips, limit
        self.slots: dict[Value, int] = {}  # the first word of a value in the state
        self.words = 0
        self.definers: dict[Value, _Segment] = {}
        self.carried: dict[Value, Value] = {}  # a result of a cut loop -> its carried value
        self.local: set[Value] = set()  # values of integers, scalars and indices alone
        for v in values(kernel.body):
            if v.op != "load" and all(map(self.is_local, v.args)):
                self.local.add(v)

    def run(self) -> Steps:
        """Cut long loops, give values of other parts words in the state, and build the parts."""
        nodes = self.divide(self.kernel.body, (), [])
        segments = [*_iterate_segments(nodes)]
        for segment in segments:
            for s in segment.statements:
                self.definers.update(dict.fromkeys(definitions(s), segment))
        for segment in segments:
            for v in self.needs(segment):
                self.spill(v)
        return self.build(nodes)

    def divide(
        self, block: Block, chain: tuple[Loop, ...], final: list[tuple[Value, Value]]
    ) -> list[_Segment | _Cut]:
        """Return the division of a block; `final` is assigned at its end."""
        nodes: list[_Segment | _Cut] = []
        current, used = _Segment(chain), LoopCount()
        for s in block:
            count = count_of_loop(s, self.trips) if isinstance(s, Loop) else LoopCount()
            if self.fits(count, chain):
                if not self.fits(used + count, chain):
                    nodes.append(current)
                    current, used = _Segment(chain), LoopCount()
                current.statements.append(s)
                used += count
                continue
            assert isinstance(s, Loop)
            current.assigned += self.keep_carries(s)
            nodes += (current, self.cut(s, chain))
            current, used = _Segment(chain), LoopCount()
        current.assigned += final
        return [*nodes, current]

    def fits(self, count: LoopCount, chain: tuple[Loop, ...]) -> bool:
        """Return True if a launch can run a block inside one iteration of the loops of a chain."""
        return count.nest(len(chain)).active <= self.limit

    def keep_carries(self, loop: Loop) -> list[tuple[Value, Value]]:
        """Give the carries of a loop that is cut words in the state; return their first values."""
        for carry, result in zip(loop.carry, loop.results, strict=True):
            self.carried[result] = carry
            self.allocate(carry)
        return list(zip(loop.carry, loop.init, strict=True))

    def allocate(self, v: Value) -> None:
        """Give a value words in the state."""
        self.slots[v] = self.words
        self.words += word_count(v.dtype)

    def cut(self, loop: Loop, chain: tuple[Loop, ...]) -> _Cut:
        """Return the division of a loop that is too long."""
        inner = (*chain, loop)
        body = count_iterations(loop.body, self.trips)
        if self.fits(body, inner):
            spare = self.limit - body.repeat(0).nest(len(chain)).active
            return _Cut(loop, spare // (1 + body.active), [_Segment(inner, is_group=True)])
        final = list(zip(loop.carry, loop.update, strict=True))
        return _Cut(loop, 1, self.divide(loop.body, inner, final))

    # --- values of other parts
    def needs(self, segment: _Segment) -> Iterable[Value]:
        """Return the values of other parts that a segment reads from the state."""
        roots = [v for loop in segment.chain for v in (loop.start, loop.stop)]
        roots += [v for _, v in segment.assigned]
        roots += outer_operands(self.contents(segment))
        if segment.is_group:
            loop = segment.chain[-1]
            roots += [v for v in loop.update if v not in _definitions(loop.body)]
        outer = [v for v in roots if self.definers.get(v) is not segment]
        return dict.fromkeys(v for v in outer if not self.is_local(v))

    def is_local(self, v: Value) -> bool:
        """Return True for a value that each part computes itself."""
        return v.op in ("const", "param", "index", "loopvar") or v in self.local

    def contents(self, segment: _Segment) -> list[Statement]:
        """Return the statements of a segment; the body of its loop if it does iterations of it."""
        return list(segment.chain[-1].body) if segment.is_group else segment.statements

    def spill(self, v: Value) -> None:
        """Give a value of another part words in the state, unless it has them."""
        v = self.carried.get(v, v)
        if v not in self.slots:
            self.allocate(v)
            self.definers[v].spilled.append(v)

    # --- kernels
    def build(self, nodes: list[_Segment | _Cut]) -> Steps:
        """Return the parts with their kernels, without those that have no effects."""
        steps: list[Part | Repeat] = []
        for node in nodes:
            if isinstance(node, _Cut):
                steps.append(Repeat(self.trips[node.loop], node.count, self.build(node.segments)))
            elif node.is_group or node.assigned or node.spilled or _has_effects(node.statements):
                steps.append(Part(_PartBuilder(self, node).build()))
        return tuple(steps)


def _iterate_segments(nodes: Iterable[_Segment | _Cut]) -> Iterator[_Segment]:
    """Yield all segments in order."""
    for node in nodes:
        if isinstance(node, _Segment):
            yield node
        else:
            yield from _iterate_segments(node.segments)


def _has_effects(statements: Iterable[Statement]) -> bool:
    """Return True if a statement, or one in a loop, writes memory."""
    return any(
        _has_effects(s.body) if isinstance(s, Loop) else not isinstance(s, Value)
        for s in statements
    )


class _PartBuilder(Cloner):
    """A cloner that makes the kernel of a segment."""

    def __init__(self, division: _Division, segment: _Segment) -> None:
        super().__init__()
        self.division, self.segment, self.state = division, segment, division.state
        kernel = division.kernel
        names = [f"{n}{k}" for k in range(len(segment.chain)) for n in ("begin", "count")]
        self.names = fresh_names(kernel, names)

    def build(self) -> Kernel:
        """Return the kernel."""
        kernel = self.division.kernel
        self.emit(self.state.points)
        self.emit(self.state.point)
        self.open_loop(0)
        return replace(
            kernel,
            body=tuple(self.statements),
            ints=(*kernel.ints, *self.names),
            before=None,
            unexpanded=None,
        )

    def open_loop(self, depth: int) -> None:
        """Append the segment's statements, in iterations of the loops of its chain from `depth`."""
        segment = self.segment
        if depth == len(segment.chain):
            self.fill()
            return
        old = segment.chain[depth]
        self.fetch((old.start, old.stop))
        begin, count = (
            Value("param", old.var.dtype, (), n) for n in self.names[2 * depth : 2 * depth + 2]
        )
        start, end = self.operand(old.start), begin + count
        length = self.operand(old.stop) - start
        first = start + where(begin < length, begin, length)  # beyond the last one it may overflow
        last = start + where(end < length, end, length)
        self.emit(first)
        self.emit(last)
        if segment.is_group and depth == len(segment.chain) - 1:
            self.group(old, first, last)
            return
        new = Loop("map", first, last)
        self.replacements[old.var] = new.var
        outer, self.statements = self.statements, []
        self.open_loop(depth + 1)
        new.set_body(tuple(self.statements))
        self.statements = [*outer, new]

    def group(self, old: Loop, first: Value, last: Value) -> None:
        """Append iterations of a loop from `first` to before `last`, and keep its carries."""
        inside = {old.var, *old.carry}
        self.fetch(v for v in outer_operands([*old.body]) if v not in inside)
        self.fetch(v for v in old.update if v not in inside and v not in _definitions(old.body))
        slots = [self.division.slots[c] for c in old.carry]
        init = [self.state.read(w, c.dtype) for w, c in zip(slots, old.carry, strict=True)]
        for v in init:
            self.emit(v)
        new = Loop(old.kind, first, last, None, tuple(init))
        self.copy_loop_body(old, new)
        self.statements.append(new)
        self.keep(zip(slots, new.results, strict=True))

    def fill(self) -> None:
        """Append the statements of the segment, and keep what later parts need."""
        segment, division = self.segment, self.division
        defined = _definitions(segment.statements)
        self.fetch(outer_operands(segment.statements))
        for s in segment.statements:
            if isinstance(s, Value):
                self.value(s)
            else:
                self.statements.append(self.loop(s) if isinstance(s, Loop) else self.effect(s))
        assigned = [(division.slots[c], v) for c, v in segment.assigned]
        self.fetch(v for _, v in assigned if v not in defined)
        stores = [*assigned, *((division.slots[v], v) for v in segment.spilled)]
        self.keep([(slot, self.operand(v)) for slot, v in stores])

    def keep(self, values: Iterable[tuple[int, Value]]) -> None:
        """Append stores of values to words of the state; all are computed before the first."""
        stores = [s for slot, v in values for s in self.state.write(slot, v)]
        for s in stores:
            self.emit(s.index)
            self.emit(s.value)
        self.statements += stores

    def fetch(self, values: Iterable[Value]) -> None:
        """Append what gives values of other parts: loads from the state, or their operations."""
        for v in values:
            if v in self.replacements or v.op in ("const", "param", "index"):
                continue
            slot = self.division.slots.get(self.division.carried.get(v, v))
            if slot is None:
                self.fetch(v.args)
                self.value(v)
            else:
                self.replacements[v] = self.state.read(slot, v.dtype)
                self.emit(self.replacements[v])


def _definitions(block: Iterable[Statement]) -> set[Value]:
    """Return the values that are in scope after the statements of a block."""
    return {v for s in block for v in definitions(s)}
