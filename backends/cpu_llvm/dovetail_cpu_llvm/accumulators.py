"""Reductions whose iterations are spread over lanes.

An accumulator has a partial result for each of LANES lanes. Its constructor writes the code before
a chunk of iterations, which sets them to the identity; `add_chunk` writes the iterations, after
which `slots` hold the partial results; `combine_lanes` returns their combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dovetail.extend import LANES, Block, Loop, Value, combine

from .ir_writer import Slot, constant, scalar_type
from .vector_loops import VectorLoops

_LESS = {"f": "fcmp olt", "i": "icmp slt", "u": "icmp ult"}  # by the kind of the dtype
_GREATER = {"f": "fcmp ogt", "i": "icmp sgt", "u": "icmp ugt"}
_NAN = "0x7FF8000000000000"
_BITS, _STEPS, _POSITIONS = (f"<{LANES} x {t}>" for t in ("i1", "i32", "i64"))
_NO_STEP = "splat (i32 -1)"  # the largest unsigned number

RenderBlock = Callable[[Block, Sequence[Value]], None]


class ReduceLoop:
    """A reduce loop, and how its body and its combination are rendered."""

    def __init__(self, loop: Loop, vectors: VectorLoops, render_block: RenderBlock) -> None:
        self.loop, self.vectors, self._render_block = loop, vectors, render_block
        self.exprs, self.writer = vectors.exprs, vectors.exprs.writer
        self.dtypes = [u.dtype for u in loop.update]
        self.rule = combine(str(loop.combine), tuple(self.dtypes))
        self.identity = [constant(v) for v in self.rule.identity]
        self.loop_start = ""  # the loop's start, once it is rendered

    def each_vector(self, start: str, stop: str) -> Iterator[None]:
        """Write the loop over iterations start..stop-1, LANES at once; yield per body version."""
        for k in self.vectors.each_vector(self.writer.counter(start), stop, LANES):
            yield from self.vectors.each_split(self.loop, self.iteration(k.text))

    def iteration(self, k: str) -> str:
        """Return the register with the value of the loop's variable in iteration `k`."""
        return self.writer.i64("add", k, self.loop_start)

    def render_body(self) -> None:
        """Render the loop's body at the current width."""
        self._render_block(self.loop.body, self.loop.update)

    def updates(self) -> list[str]:
        """Return the vectors of the rendered body, one for each number that the loop reduces.

        Those that a later loop reuses are stored.
        """
        vectors = [self.exprs.vector(u) for u in self.loop.update]
        for u, text in zip(self.loop.update, vectors, strict=True):
            if id(u) in self.exprs.kept:
                w, pointer = self.writer, self.exprs.locate_kept(u, self.loop.var)
                w.emit(f"store {w.vector_type(scalar_type(u.dtype))} {text}, ptr {pointer}")
        return vectors

    def combine(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        """Render the combination of two partial results at the current width; return vectors."""
        for a, text in zip(self.rule.left + self.rule.right, [*left, *right], strict=True):
            self.exprs.bind(a, text)
        for a, v in zip(self.rule.shared, self.loop.init[len(self.identity) :], strict=True):
            self.exprs.env[id(a)] = self.exprs.lane(v)
        for v in self.rule.body:
            self.exprs.render(v)
        return [self.exprs.vector(r) for r in self.rule.result]

    def find_bitwise_or(self) -> list[int]:
        """Return which of the reduced numbers are the bits of all elements, in any order."""
        pairs = zip(self.rule.left, self.rule.right, strict=True)
        operands = [("or", {a, b}) for a, b in pairs]
        results = [(r.op, {*r.args}) for r in self.rule.result]
        return [k for k, pair in enumerate(operands) if results[k] == pair]

    def combine_lanes(self, slots: Sequence[Slot]) -> list[str]:
        """Render the combination of a vector's lanes, by a fixed binary tree of halves."""
        values, width = [self.writer.load(slot) for slot in slots], LANES
        while width > 1:
            lower, upper = self.halves(values, width)
            self.writer.width = width = width // 2
            values = self.combine(lower, upper)
        return values

    def halves(self, values: Sequence[str], width: int) -> Iterator[list[str]]:
        """Render and yield the lower halves of vectors of `width` lanes, then the upper ones."""
        for first in (0, width // 2):
            pairs = zip(self.dtypes, values, strict=False)
            yield [self._extract_half(scalar_type(d), text, width, first) for d, text in pairs]

    def _extract_half(self, scalar: str, text: str, width: int, first: int) -> str:
        """Return half of a vector from lane `first` on; of two lanes, a scalar."""
        w, t = self.writer, self.writer.vector_type(scalar, width)
        if width == 2:
            return w.let(f"extractelement {t} {text}, i64 {first}")
        return w.shuffle(t, text, "poison", range(first, first + width // 2))


class VectorAccumulator:
    """An accumulator for any reduction."""

    def __init__(self, reduce: ReduceLoop) -> None:
        self.reduce, w, scalars = reduce, reduce.writer, [scalar_type(d) for d in reduce.dtypes]
        self.slots = [w.slot(w.vector_type(s, LANES)) for s in scalars]
        pairs = zip(scalars, reduce.identity, strict=True)
        w.store_all(self.slots, [f"splat ({s} {one})" for s, one in pairs])

    def add_chunk(self, start: str, stop: str) -> None:
        """Render iterations start..stop-1, which combine each vector with the slots."""
        reduce, w = self.reduce, self.reduce.writer
        for _ in reduce.each_vector(start, stop):
            reduce.render_body()
            old = [w.load(slot) for slot in self.slots]
            new = reduce.combine(old, reduce.updates())
            if w.mask is not None:
                triples = zip(self.slots, new, old, strict=True)
                new = [w.select(w.mask, slot.type, a, b, LANES) for slot, a, b in triples]
            w.store_all(self.slots, new)

    def combine_lanes(self) -> list[str]:
        """Render the combination of the slots' lanes; return the registers."""
        return self.reduce.combine_lanes(self.slots)


class MinMaxAccumulator:
    """An accumulator that keeps the last NaN of a lane apart from its best number.

    So the chain from one number to the next is a single instruction. The lanes, too, are combined
    by one instruction for each step, unless one of them has a NaN.
    """

    def __init__(self, reduce: ReduceLoop) -> None:
        self.reduce, w, scalar = reduce, reduce.writer, scalar_type(reduce.dtypes[0])
        self.is_second_better = (_LESS if reduce.loop.combine == "max" else _GREATER)["f"]
        self.identity = f"splat ({scalar} {reduce.identity[0]})"
        t = w.vector_type(scalar, LANES)
        self.best, self.nan = w.slot(t, self.identity), w.slot(t, self.identity)
        self.slots = [self.best]

    def add_chunk(self, start: str, stop: str) -> None:
        """Render iterations start..stop-1; each lane keeps its best number and its last NaN."""
        reduce, w = self.reduce, self.reduce.writer
        for _ in reduce.each_vector(start, stop):
            reduce.render_body()
            (new,) = reduce.updates()
            if w.mask is not None:
                new = w.select(w.mask, self.best.type, new, self.identity, LANES)
            self._replace(self.is_second_better, w.load(self.best), new, self.best)
            self._replace("fcmp uno", new, new, self.nan)
        last = w.load(self.nan)
        self._replace("fcmp uno", last, last, self.best)

    def _replace(self, comparison: str, old: str, new: str, slot: Slot) -> None:
        """Store the lanes of `new` for which a comparison `old, new` holds."""
        w, t = self.reduce.writer, slot.type
        chosen = w.let(f"{comparison} {t} {old}, {new}")
        w.store(slot, w.select(chosen, t, new, w.load(slot), LANES))

    def combine_lanes(self) -> list[str]:
        """Render a branch on NaNs, and return the best number of all lanes, or a NaN."""
        reduce, w, t = self.reduce, self.reduce.writer, self.best.type
        numbers, out = w.load(self.best), w.slot(scalar_type(reduce.dtypes[0]))
        has_nan = w.any_lane(w.let(f"fcmp uno {t} {numbers}, {numbers}"), LANES)
        with w.if_then(has_nan):
            w.store(out, reduce.combine_lanes(self.slots)[0])
        with w.if_then(w.negate(has_nan)):
            w.store(out, best_lane(reduce, numbers, self.is_second_better))
        return [w.load(out)]


class ArgAccumulator:
    """An accumulator that keeps for each lane in which step it saw its best number.

    A step is one vector of iterations; the position follows from it and the lane. A later number
    must be better, so ties need no test. The step of the first NaN is kept apart, so the chain from
    one number to the next is a single instruction.
    """

    def __init__(self, reduce: ReduceLoop) -> None:
        self.reduce, w = reduce, reduce.writer
        self.kind, self.scalar = reduce.dtypes[0].kind, scalar_type(reduce.dtypes[0])
        better, worse = _GREATER, _LESS
        if reduce.loop.combine == "argmin":
            better, worse = worse, better
        self.is_better, self.is_second_better = better[self.kind], worse[self.kind]
        self.best, self.positions = w.slot(w.vector_type(self.scalar, LANES)), w.slot(_POSITIONS)
        self.step, self.nan_step = w.slot(_STEPS), w.slot(_STEPS)
        self.slots = [self.best, self.positions]
        w.store(self.best, f"splat ({self.scalar} {reduce.identity[0]})")
        w.store(self.step, "zeroinitializer")
        w.store(self.nan_step, _NO_STEP)

    def add_chunk(self, start: str, stop: str) -> None:
        """Render iterations start..stop-1, then the positions of the lanes' best numbers."""
        reduce, w = self.reduce, self.reduce.writer
        for k in reduce.vectors.each_vector(w.counter(start), stop, LANES):
            step = w.let(f"trunc i64 {w.let(f'sub i64 {k.text}, {start}')} to i32")
            for _ in reduce.vectors.each_split(reduce.loop, reduce.iteration(k.text)):
                self._add_vector(w.splat("i32", step))
        if self.kind == "f":
            self._prefer_nans()
        self._store_positions(start, stop)

    def _add_vector(self, step: str) -> None:
        """Render one vector of iterations; store better numbers with their step."""
        reduce, w, t = self.reduce, self.reduce.writer, self.best.type
        reduce.render_body()
        new, old = reduce.updates()[0], w.load(self.best)
        better = self._mask_bits(w.let(f"{self.is_better} {t} {new}, {old}"))
        before = w.load(self.step)
        self._store_selected(self.best, better, new, old)
        self._store_selected(self.step, better, step, before)
        if self.kind == "f":
            nan = self._mask_bits(w.let(f"fcmp uno {t} {new}, {new}"))
            nan_step = w.select(nan, _STEPS, step, _NO_STEP, LANES)
            pair = f"{_STEPS} {w.load(self.nan_step)}, {_STEPS} {nan_step}"
            w.store(self.nan_step, w.let(f"call {_STEPS} @llvm.umin.v{LANES}i32({pair})"))

    def _mask_bits(self, bits: str) -> str:
        """Return the bits of active lanes only."""
        w = self.reduce.writer
        return bits if w.mask is None else w.let(f"and {_BITS} {bits}, {w.mask}")

    def _store_selected(self, slot: Slot, condition: str, a: str, b: str) -> None:
        """Store `a` in lanes where the condition holds, and `b` in the others."""
        w = self.reduce.writer
        w.store(slot, w.select(condition, slot.type, a, b, LANES))

    def _prefer_nans(self) -> None:
        """Make NaN the best number of lanes that saw one, at its first step."""
        w = self.reduce.writer
        first, step = w.load(self.nan_step), w.load(self.step)
        is_nan = w.let(f"icmp ne {_STEPS} {first}, {_NO_STEP}")
        self._store_selected(self.step, is_nan, first, step)
        number = w.load(self.best)
        self._store_selected(self.best, is_nan, f"splat ({self.scalar} {_NAN})", number)

    def _store_positions(self, start: str, stop: str) -> None:
        """Store the positions of all lanes; those without an iteration keep the identity."""
        reduce, w = self.reduce, self.reduce.writer
        w.width = LANES
        offset = w.let(f"zext {_STEPS} {w.load(self.step)} to {_POSITIONS}")
        offset = w.let(f"add {_POSITIONS} {offset}, {w.iota('i64')}")
        base = w.splat("i64", reduce.iteration(start))
        position = w.let(f"add {_POSITIONS} {offset}, {base}")
        has_position = w.prefix_mask(w.let(f"sub i64 {stop}, {start}"), LANES)
        none = f"splat (i64 {reduce.identity[1]})"
        self._store_selected(self.positions, has_position, position, none)
        w.width = 1

    def combine_lanes(self) -> list[str]:
        """Return the best number of all lanes, and the first position that has it."""
        reduce, w, t = self.reduce, self.reduce.writer, self.best.type
        numbers, positions = w.load(self.best), w.load(self.positions)
        best = best_lane(reduce, numbers, self.is_second_better)
        width, w.width = w.width, LANES
        equal = "fcmp oeq" if self.kind == "f" else "icmp eq"
        chosen = w.let(f"{equal} {t} {numbers}, {w.splat(self.scalar, best)}")
        w.width = width
        if self.kind == "f":
            nans = w.let(f"fcmp uno {t} {numbers}, {numbers}")
            has_nan = w.any_lane(nans, LANES)
            chosen = w.select(has_nan, _BITS, nans, chosen, 1)
            best = w.select(has_nan, self.scalar, _NAN, best, 1)
        none = f"splat (i64 {reduce.identity[1]})"
        candidates = w.select(chosen, _POSITIONS, positions, none, LANES)
        umin = f"call i64 @llvm.vector.reduce.umin.v{LANES}i64({_POSITIONS} {candidates})"
        return [best, w.let(umin)]


def best_lane(reduce: ReduceLoop, numbers: str, is_second_better: str) -> str:
    """Render the choice of the best lane of a vector without NaNs, by a tree of halves.

    is_second_better: the comparison of two numbers that chooses the second one.
    """
    w, width, scalar = reduce.writer, LANES, scalar_type(reduce.dtypes[0])
    while width > 1:
        (first,), (second,) = reduce.halves([numbers], width)
        width //= 2
        t = w.vector_type(scalar, width)
        chosen = w.let(f"{is_second_better} {t} {first}, {second}")
        numbers = w.select(chosen, t, second, first, width)
    return numbers


Accumulator = VectorAccumulator | MinMaxAccumulator | ArgAccumulator


def new_accumulator(reduce: ReduceLoop) -> Accumulator:
    """Create the accumulator for a loop's combination, and write its initialisation."""
    loop = reduce.loop
    if loop.combine in ("argmax", "argmin") and loop.update[1] is loop.var:
        return ArgAccumulator(reduce)
    if loop.combine in ("max", "min") and reduce.dtypes[0].kind == "f":
        return MinMaxAccumulator(reduce)
    return VectorAccumulator(reduce)
