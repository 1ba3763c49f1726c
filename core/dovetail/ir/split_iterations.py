"""Division of kernels whose loops are too long for one launch into parts that run in order.

A device may limit the iterations of one point in one launch. The parts of a kernel have its grid.
What a later part needs of an earlier one is in a buffer, the *state*: words of 32 bits, each of
all points side by side. A part is a run of the kernel's statements, or iterations `begin` to
`begin + count` of one loop, which come as integers after those of the kernel.

- A loop whose iterations fit a launch in groups is one part, launched for each group. A fold keeps
  its carried values in the state.
- The body of a loop of which not even one iteration fits is divided itself, and all of its parts
  are launched for each iteration.
- A long reduction becomes a map that stores the results of its chunks in the state, and a reduction
  of these. The canonical order is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

from ..dtypes import DType, float32, uint32, uint64
from .builder import Kernel
from .interval_analysis import trip_bounds
from .language import (
    CHUNK,
    LANES,
    Block,
    Buffer,
    Loop,
    Statement,
    Store,
    Value,
    bitcast,
    cast,
    const,
    eq,
    load,
    where,
)
from .rewrite import Cloner, fresh_names

CHUNK_OVERHEAD = 3 * LANES  # iterations that each chunk of a reduction counts besides its values
WORD_BYTES = 4


class IterationLimitError(Exception):
    """No division of a kernel keeps the limit; `args[0]` is the least number of iterations."""


@dataclass(frozen=True)
class Part:
    """A kernel that does one part of the work of another."""

    kernel: Kernel


@dataclass(frozen=True)
class Repeat:
    """Parts to launch for each group of `count` of `trips` iterations of a loop."""

    trips: int
    count: int
    parts: tuple[Part | Repeat, ...]


Parts: TypeAlias = tuple[Part | Repeat, ...]


@dataclass(frozen=True)
class SplitKernel:
    """The parts of a kernel, the integers that all of them have more, and the words of a point."""

    parts: Parts
    ints: tuple[int, ...]
    state_words: int

    def kernels(self) -> Iterator[Kernel]:
        """Yield the kernel of each part once."""

        def visit(parts: Parts) -> Iterator[Kernel]:
            for p in parts:
                if isinstance(p, Part):
                    yield p.kernel
                else:
                    yield from visit(p.parts)

        return visit(self.parts)

    @property
    def launch_count(self) -> int:
        """The number of launches."""

        def count(parts: Parts) -> int:
            return sum(
                1 if isinstance(p, Part) else -(-p.trips // p.count) * count(p.parts) for p in parts
            )

        return count(self.parts)

    def launches(self) -> Iterator[tuple[Kernel, tuple[int, ...]]]:
        """Yield the launches in order: a kernel, and the integers after those of the whole."""

        def visit(parts: Parts, ints: tuple[int, ...]) -> Iterator[tuple[Kernel, tuple[int, ...]]]:
            for p in parts:
                if isinstance(p, Part):
                    yield p.kernel, ints
                else:
                    for begin in range(0, p.trips, p.count):
                        yield from visit(p.parts, (*ints, begin, p.count))

        return visit(self.parts, self.ints)


def split_iterations(
    kernel: Kernel, ints: Sequence[int], grid: Sequence[int], limit: int
) -> SplitKernel | None:
    """Return a kernel's parts for a launch of these sizes; None if all of it is within the limit.

    - `limit`: the most iterations of one point in one launch, all loops together.

    Raises: IterationLimitError if no division keeps the limit.
    """
    trips = _trips(kernel, ints, grid)
    if _cost(kernel.body, trips) <= limit:
        return None
    state = Buffer(fresh_names(kernel, ["state"])[0], uint32, "rw")
    layout = _StateLayout(kernel, state)
    rooms: list[int] = []  # words of a point for the chunks of each long reduction
    while long := _find_long_reductions(kernel.body, trips, limit):
        names = fresh_names(kernel, [f"room{len(rooms) + k}" for k in range(len(long))])
        cloner = _ChunkCloner(layout, dict(zip(long, names, strict=True)), trips, rooms)
        kernel = kernel.with_body(cloner.block(kernel.body), ints=(*kernel.ints, *names))
        ints = (*ints, *[0] * len(names))
        trips = _trips(kernel, ints, grid)
    division = _Division(kernel, layout, trips, limit)
    parts = division.run()
    *firsts, words = accumulate(rooms, initial=division.words)
    return SplitKernel(parts, tuple(firsts), words)


# --- counting -------------------------------------------------------------------------------------

Trips: TypeAlias = Mapping[Loop, int]


def _trips(kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> Trips:
    """Return the most iterations of each loop; 1 for a loop whose length depends on data."""
    return {s: 1 if n is None else n for s, n in trip_bounds(kernel, ints, grid).items()}


def _cost(block: Block, trips: Trips) -> int:
    """Return the most iterations of a block, all loops together."""
    return sum(_loop_cost(s, trips) for s in block if isinstance(s, Loop))


def _loop_cost(loop: Loop, trips: Trips) -> int:
    """Return the most iterations of a loop and of those in it."""
    count = trips.get(loop, 0)
    chunks = 0
    if loop.kind == "reduce":
        values = max(count, 1)
        while values > 1 or not chunks:
            values = -(-values // CHUNK)
            chunks += values
    return count * (1 + _cost(loop.body, trips)) + chunks * CHUNK_OVERHEAD


def _find_long_reductions(block: Block, trips: Trips, limit: int) -> set[Loop]:
    """Return the reductions to cut into chunks: no other loop is in between that would be one part.

    Raises: IterationLimitError if a chunk alone is beyond the limit.
    """
    long: set[Loop] = set()
    for s in block:
        if not isinstance(s, Loop) or _loop_cost(s, trips) <= limit:
            continue
        if s.kind == "reduce":
            if trips[s] <= CHUNK:
                raise IterationLimitError(_loop_cost(s, trips))
            long.add(s)
        elif 1 + _cost(s.body, trips) > limit:
            long |= _find_long_reductions(s.body, trips, limit - 1)
    return long


# --- the state ------------------------------------------------------------------------------------


class _StateLayout:
    """The place of a point's words in the state, and the words of values."""

    def __init__(self, kernel: Kernel, buffer: Buffer) -> None:
        self.buffer, self.index = buffer, kernel.index
        self.points = self.point = const(0, kernel.index)
        for axis, extent in enumerate(kernel.grid):
            self.points = extent if axis == 0 else self.points * extent
            index = Value("index", kernel.index, (), axis)
            self.point = index if axis == 0 else self.point * extent + index
        if not kernel.grid:
            self.points = const(1, kernel.index)

    def place(self, word: Value | int) -> Value:
        """Return the index of a word of this point."""
        return self.points * word + self.point

    def write(self, word: Value | int, v: Value) -> list[Store]:
        """Return the stores of a value from a word on."""
        return [Store(self.buffer, self.place(word + k), w) for k, w in enumerate(_words(v))]

    def read(self, word: Value | int, d: DType, when: Value | None = None) -> Value:
        """Return the value of dtype `d` from a word on."""
        words = [load(self.buffer, self.place(word + k), when) for k in range(_word_count(d))]
        return _value(words, d)


def _word_count(d: DType) -> int:
    """Return the number of words of a value."""
    return 2 if d.itemsize == 8 else 1


def _words(v: Value) -> list[Value]:
    """Return the words of a value of the kernel IR."""
    if v.dtype.itemsize == 8:
        wide = bitcast(v, uint64)
        return [cast(wide, uint32), cast(wide >> 32, uint32)]
    if v.dtype.itemsize == 4:
        return [bitcast(v, uint32)]
    if v.dtype.kind == "f":  # of halves, which kernels only load, store and cast
        return [bitcast(cast(v, float32), uint32)]
    return [cast(v, uint32)]


def _value(words: Sequence[Value], d: DType) -> Value:
    """Return the value of dtype `d` that has these words."""
    if d.itemsize == 8:
        low, high = words
        return bitcast(cast(low, uint64) | (cast(high, uint64) << 32), d)
    (word,) = words
    if d.itemsize == 4:
        return bitcast(word, d)
    return cast(bitcast(word, float32) if d.kind == "f" else word, d)


class _ChunkCloner(Cloner):
    """A cloner that replaces long reductions by maps of their chunks and reductions of these."""

    def __init__(
        self, layout: _StateLayout, long: Mapping[Loop, str], trips: Trips, rooms: list[int]
    ) -> None:
        super().__init__()
        self.layout, self.long, self.trips, self.rooms = layout, long, trips, rooms

    def block(self, block: Block) -> Block:
        """Return the copy of a block, with several statements for a long reduction."""
        outer, self.statements = self.statements, []
        for s in block:
            if isinstance(s, Loop) and s in self.long:
                self.reduce_chunks(s)
            elif isinstance(s, Value):
                self.value(s)
            else:
                self.statements.append(self.loop(s) if isinstance(s, Loop) else self.effect(s))
        statements, self.statements = tuple(self.statements), outer
        return statements

    def reduce_chunks(self, old: Loop) -> None:
        """Append the statements for a long reduction."""
        index, start, stop = self.layout.index, self.operand(old.start), self.operand(old.stop)
        dtypes = [r.dtype for r in old.results]
        words = sum(map(_word_count, dtypes))
        self.rooms.append(words * -(-self.trips[old] // CHUNK))
        room = Value("param", index, (), self.long[old])
        chunks = (stop - start + (CHUNK - 1)) >> (CHUNK.bit_length() - 1)
        self.emit(chunks)

        each = Loop("map", const(0, index), chunks)
        outer, self.statements = self.statements, []
        first = start + each.var * CHUNK
        end = first + CHUNK
        part = Loop("reduce", first, where(end < stop, end, stop), old.combine)
        self.emit(part.start)
        self.emit(part.stop)
        self.replacements[old.var] = part.var
        part.body = self.block(old.body)
        part.effects = tuple(s for s in part.body if not isinstance(s, Value))
        part.update = self.operands(old.update)
        part.results = tuple(Value("result", d, (), (part, i)) for i, d in enumerate(dtypes))
        self.statements.append(part)
        word = room + each.var * words
        for r in part.results:
            self.write(word, r)
            word = word + _word_count(r.dtype)
        each.body, self.statements = tuple(self.statements), outer
        each.effects = tuple(s for s in each.body if not isinstance(s, Value))
        self.statements.append(each)

        whole = Loop("reduce", const(0, index), chunks, old.combine)
        outer, self.statements = self.statements, []
        whole.update = tuple(self.read(room + whole.var * words, dtypes, None))
        whole.body, self.statements = tuple(self.statements), outer
        whole.results = tuple(Value("result", d, (), (whole, i)) for i, d in enumerate(dtypes))
        self.statements.append(whole)
        one = eq(chunks, 1)  # a single chunk's result is not combined with the identity
        single = self.read(room, dtypes, one)
        for r, a, b in zip(old.results, single, whole.results, strict=True):
            self.replacements[r] = where(one, a, b)
            self.emit(self.replacements[r])

    def write(self, word: Value, v: Value) -> None:
        """Append the stores of a value from a word on."""
        for s in self.layout.write(word, v):
            self.emit(s.index)
            self.emit(s.value)
            self.statements.append(s)

    def read(self, word: Value, dtypes: Sequence[DType], when: Value | None) -> list[Value]:
        """Append the loads of values from a word on, and return them."""
        found = []
        for d in dtypes:
            found.append(self.layout.read(word, d, when))
            self.emit(found[-1])
            word = word + _word_count(d)
        return found


# --- the division ---------------------------------------------------------------------------------


@dataclass(eq=False)
class _Segment:
    """Statements of one part, inside iterations of the loops of `chain`.

    `assigned`: carried values, and what their words in the state become. `spilled`: values that
    later parts need. `groups`: True if the part is iterations of the last loop of the chain.
    """

    chain: tuple[Loop, ...]
    statements: list[Statement] = field(default_factory=list)
    assigned: list[tuple[Value, Value]] = field(default_factory=list)
    spilled: list[Value] = field(default_factory=list)
    groups: bool = False


@dataclass(frozen=True)
class _Cut:
    """A loop of which each launch of its segments does `count` iterations."""

    loop: Loop
    count: int
    segments: list[_Segment | _Cut]


class _Division:
    """The division of a kernel into parts, for given trip counts."""

    def __init__(self, kernel: Kernel, layout: _StateLayout, trips: Trips, limit: int) -> None:
        self.kernel, self.layout, self.trips, self.limit = kernel, layout, trips, limit
        self.slots: dict[Value, int] = {}  # the first word of a value in the state
        self.words = 0
        self.definers: dict[Value, _Segment] = {}
        self.carried: dict[Value, Value] = {}  # a result of a cut loop -> its carried value

    def run(self) -> Parts:
        """Return the parts."""
        nodes = self.divide(self.kernel.body, (), [])
        segments = [*_iterate_segments(nodes)]
        for segment in segments:
            for s in segment.statements:
                for v in (s,) if isinstance(s, Value) else s.results if isinstance(s, Loop) else ():
                    self.definers[v] = segment
        for segment in segments:
            for v in self.needs(segment):
                self.spill(v)
        return self.build(nodes)

    def divide(
        self, block: Block, chain: tuple[Loop, ...], final: list[tuple[Value, Value]]
    ) -> list[_Segment | _Cut]:
        """Return the division of a block; `final` is assigned at its end."""
        nodes: list[_Segment | _Cut] = []
        current, budget = _Segment(chain), self.limit - len(chain)
        used = 0
        for s in block:
            cost = _loop_cost(s, self.trips) if isinstance(s, Loop) else 0
            if cost <= budget:
                if used + cost > budget:
                    nodes.append(current)
                    current, used = _Segment(chain), 0
                current.statements.append(s)
                used += cost
                continue
            assert isinstance(s, Loop)
            current.assigned += self.keep_carries(s)
            nodes += (current, self.cut(s, chain))
            current, used = _Segment(chain), 0
        current.assigned += final
        return [*nodes, current]

    def keep_carries(self, loop: Loop) -> list[tuple[Value, Value]]:
        """Give the carries of a loop that is cut words in the state; return their first values."""
        for carry, result in zip(loop.carry, loop.results, strict=True):
            self.carried[result] = carry
            self.allocate(carry)
        return list(zip(loop.carry, loop.init, strict=True))

    def allocate(self, v: Value) -> None:
        """Give a value words in the state."""
        self.slots[v] = self.words
        self.words += _word_count(v.dtype)

    def cut(self, loop: Loop, chain: tuple[Loop, ...]) -> _Cut:
        """Return the division of a loop that is too long."""
        inner = (*chain, loop)
        each = 1 + _cost(loop.body, self.trips)
        count = (self.limit - len(chain)) // each
        if count:
            return _Cut(loop, count, [_Segment(inner, groups=True)])
        if self.limit <= len(inner):
            raise IterationLimitError(len(inner) + 1)
        final = list(zip(loop.carry, loop.update, strict=True))
        return _Cut(loop, 1, self.divide(loop.body, inner, final))

    # --- values of other parts
    def is_recomputed(self, v: Value) -> bool:
        """Return True if a value depends on integers, scalars and indices alone."""
        if v.op in ("load", "carry", "result"):
            return False
        return all(map(self.is_recomputed, v.args))

    def needs(self, segment: _Segment) -> set[Value]:
        """Return the values of other parts that a segment reads from the state."""
        roots = [v for loop in segment.chain for v in (loop.start, loop.stop)]
        roots += [v for _, v in segment.assigned]
        roots += _outer_operands(self.contents(segment))
        if segment.groups:
            loop = segment.chain[-1]
            roots += set(loop.update) - _defined(loop.body)
        return {v for v in roots if self.definers.get(v) is not segment and not self.is_local(v)}

    def is_local(self, v: Value) -> bool:
        """Return True for a value that each part can have without the state."""
        return v.op in ("const", "param", "index", "loopvar") or self.is_recomputed(v)

    def contents(self, segment: _Segment) -> list[Statement]:
        """Return the statements of a segment; the body of its loop if it does iterations of it."""
        return list(segment.chain[-1].body) if segment.groups else segment.statements

    def spill(self, v: Value) -> None:
        """Give a value of another part words in the state, unless it has them."""
        v = self.carried.get(v, v)
        if v not in self.slots:
            self.allocate(v)
            self.definers[v].spilled.append(v)

    # --- kernels
    def build(self, nodes: list[_Segment | _Cut]) -> Parts:
        """Return the parts with their kernels, without those that have no effects."""
        parts: list[Part | Repeat] = []
        for node in nodes:
            if isinstance(node, _Cut):
                parts.append(Repeat(self.trips[node.loop], node.count, self.build(node.segments)))
            elif node.groups or node.assigned or node.spilled or _has_effects(node.statements):
                parts.append(Part(_PartBuilder(self, node).build()))
        return tuple(parts)


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


def _outer_operands(statements: Iterable[Statement]) -> list[Value]:
    """Return the operands of statements that these do not define, in order of use."""
    defined: set[Value] = set()
    used: dict[Value, None] = {}

    def visit(block: Iterable[Statement]) -> None:
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
                if s.when is not None:
                    used[s.when] = None

    visit(statements)
    return [v for v in used if v not in defined]


class _PartBuilder(Cloner):
    """A cloner that makes the kernel of a segment."""

    def __init__(self, division: _Division, segment: _Segment) -> None:
        super().__init__()
        self.division, self.segment, self.layout = division, segment, division.layout
        kernel = division.kernel
        names = [f"{n}{k}" for k in range(len(segment.chain)) for n in ("begin", "count")]
        self.names = fresh_names(kernel, names)

    def build(self) -> Kernel:
        """Return the kernel."""
        kernel = self.division.kernel
        self.emit(self.layout.points)
        self.emit(self.layout.point)
        self.open_loop(0)
        return replace(
            kernel,
            body=tuple(self.statements),
            buffers=(*kernel.buffers, self.layout.buffer),
            ints=(*kernel.ints, *self.names),
            before=None,
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
            Value("param", self.layout.index, (), n) for n in self.names[2 * depth : 2 * depth + 2]
        )
        first, stop = self.operand(old.start) + begin, self.operand(old.stop)
        end = first + count
        last = where(end < stop, end, stop)
        self.emit(first)
        self.emit(last)
        if segment.groups and depth == len(segment.chain) - 1:
            self.group(old, first, last)
            return
        new = Loop("map", first, last)
        self.replacements[old.var] = new.var
        outer, self.statements = self.statements, []
        self.open_loop(depth + 1)
        new.body, self.statements = tuple(self.statements), outer
        new.effects = tuple(s for s in new.body if not isinstance(s, Value))
        self.statements.append(new)

    def group(self, old: Loop, first: Value, last: Value) -> None:
        """Append iterations of a loop from `first` to before `last`, and keep its carries."""
        inside = {old.var, *old.carry}
        self.fetch(v for v in _outer_operands([*old.body]) if v not in inside)
        self.fetch(v for v in old.update if v not in inside and v not in _defined(old.body))
        slots = [self.division.slots[c] for c in old.carry]
        init = [self.layout.read(w, c.dtype) for w, c in zip(slots, old.carry, strict=True)]
        for v in init:
            self.emit(v)
        new = Loop(old.kind, first, last, None, tuple(init))
        self.fill_loop(old, new)
        self.statements.append(new)
        self.keep(zip(slots, new.results, strict=True))

    def fill_loop(self, old: Loop, new: Loop) -> None:
        """Copy the body, carries and updates of a loop to its new head."""
        new.carry = self.bind_loop_values("carry", new, old.carry)
        self.replacements[old.var] = new.var
        new.body = self.block(old.body)
        new.effects = tuple(s for s in new.body if not isinstance(s, Value))
        new.update = self.operands(old.update)
        new.results = self.bind_loop_values("result", new, old.results)

    def fill(self) -> None:
        """Append the statements of the segment, and keep what later parts need."""
        segment, division = self.segment, self.division
        defined = _defined(segment.statements)
        self.fetch(_outer_operands(segment.statements))
        for s in segment.statements:
            if isinstance(s, Value):
                self.value(s)
            else:
                self.statements.append(self.loop(s) if isinstance(s, Loop) else self.effect(s))
        assigned = [(division.slots[c], v) for c, v in segment.assigned]
        self.fetch(v for _, v in assigned if v not in defined)
        kept = [*assigned, *((division.slots[v], v) for v in segment.spilled)]
        self.keep([(slot, self.operand(v)) for slot, v in kept])

    def keep(self, values: Iterable[tuple[int, Value]]) -> None:
        """Append stores of values to words of the state; all are computed before the first."""
        stores = [s for slot, v in values for s in self.layout.write(slot, v)]
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
                self.replacements[v] = self.layout.read(slot, v.dtype)
                self.emit(self.replacements[v])


def _defined(block: Iterable[Statement]) -> set[Value]:
    """Return the values that are in scope after the statements of a block."""
    return {
        v
        for s in block
        for v in ((s,) if isinstance(s, Value) else s.results if isinstance(s, Loop) else ())
    }
