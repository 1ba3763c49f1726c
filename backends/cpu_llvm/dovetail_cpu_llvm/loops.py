"""Blocks of statements, and the loops in them: in lockstep for all lanes, or spread over lanes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from dovetail.kernel import Kernel, combine
from dovetail.loops import LANES, Atomic, Block, Loop, Store, Value

from .emit import Lane, scalar_type
from .plan import Plan
from .values import Values


class Loops(Values):
    """Renders blocks. Up to `plan.jam` rows are computed at once, each with an `env` of its own."""

    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        super().__init__(kernel, plan)
        self.envs = [self.env]
        self.rows: list[Lane] = []  # the index of each of the rows that are computed at once
        self.columns = ("", "")  # of a sheet: the first, and the one after the last
        self.vectors = ""  # of a sheet: how many there are

    @abstractmethod
    def reduce(self, loop: Loop) -> None:
        """Renders a loop of kind "reduce"."""

    def block(self, block: Block) -> None:
        for s in block:
            if isinstance(s, Loop):
                {"map": self.map, "reduce": self.reduce, "fold": self.fold}[s.kind](s)
            elif isinstance(s, Value) and id(s) in self.plan.shared:
                self.value(s)
                for env in self.envs[1:]:
                    env[id(s)] = self.env[id(s)]
            else:
                for _ in self.copies():
                    self.statement(s)

    def statement(self, s: Value | Store | Atomic) -> None:
        if isinstance(s, Value):
            self.value(s)
        elif isinstance(s, Store):
            self.store(s)
        else:
            self.atomic(s)

    def copies(self) -> Iterator[int]:
        """Runs what follows for each of the rows that are computed at once."""
        if self.plan.jam == 1:
            yield 0
            return
        for j in range(self.plan.jam):
            self.turn_to(j)
            yield j
        self.turn_to(0)

    def turn_to(self, row: int) -> None:
        self.env, self.index[self.plan.second] = self.envs[row], self.rows[row]

    def snapshot(self) -> list[dict[int, Lane]]:
        return [dict(e) for e in (self.envs if self.plan.jam > 1 else [self.env])]

    def restore(self, known: list[dict[int, Lane]]) -> None:
        self.envs = [dict(e) for e in known]
        self.env = self.envs[0]

    @property
    def form(self) -> str:
        return "u" if self.width == 1 else "v"

    def spreads(self, loop: Loop) -> bool:
        """Whether the iterations of `loop` are spread over lanes."""
        return self.plan.mode == "rows" and id(loop) in self.plan.spread

    def map(self, loop: Loop) -> None:
        start, stop = self.uniform(loop.start), self.uniform(loop.stop)
        if self.spreads(loop):
            for k in self.lanes(self.counter(start), stop, LANES):
                self.env[id(loop.var)] = k
                self.block(loop.body)
            return
        with self.loop(start, stop) as i:
            self.env[id(loop.var)] = Lane(i)
            self.block(loop.body)

    def fold(self, loop: Loop) -> None:
        types = [self.wide(scalar_type(c.dtype)) for c in loop.carry]
        slots = [[self.slot(t) for t in types] for _ in range(self.plan.jam)]
        for j in self.copies():
            for init, t, slot in zip(loop.init, types, slots[j], strict=True):
                self.do(f"store {t} {self.vector(init)}, ptr {slot}")
        with self.loop(self.uniform(loop.start), self.uniform(loop.stop)) as i:
            for j in self.copies():
                self.env[id(loop.var)] = Lane(i)
                self.read(loop.carry, types, slots[j])
            self.block(loop.body)
            for j in self.copies():
                updates = [self.vector(u) for u in loop.update]
                for u, t, slot in zip(updates, types, slots[j], strict=True):
                    self.do(f"store {t} {u}, ptr {slot}")
        for j in self.copies():
            self.read(loop.results, types, slots[j])

    def read(self, values: Sequence[Value], types: list[str], slots: list[str]) -> None:
        for v, t, slot in zip(values, types, slots, strict=True):
            self.env[id(v)] = Lane(self.let(f"load {t}, ptr {slot}"), self.form)

    def lanes(self, slot: str, stop: str, width: int) -> Iterator[Lane]:
        """Runs what follows twice: in a loop over whole vectors, then masked for what is left.

        Yields the index (affine) each time; the count goes on from `slot`.
        """
        if width == 1:
            with self.resume(slot, stop, 1) as i:
                yield Lane(i)
            return
        known = self.snapshot()
        self.width = width
        with self.resume(slot, stop, width) as i:
            yield Lane(i, "a", "1")
        i = self.let(f"load i64, ptr {slot}")
        with self.when(self.let(f"icmp slt i64 {i}, {stop}")):
            self.restore(known)
            self.mask = self.first_lanes(self.let(f"sub i64 {stop}, {i}"), width)
            yield Lane(i, "a", "1")
            self.mask = None
        self.restore(known)
        self.width = 1

    def sheet(self) -> Iterator[str]:
        """Runs what follows for each vector of columns; yields its number."""
        start, stop = self.columns
        for i in self.lanes(self.counter(start), stop, self.plan.width):
            self.index[-1] = i
            at = self.let(f"sub i64 {i.text}, {start}")
            self.vector_number = self.let(f"lshr i64 {at}, {self.plan.width.bit_length() - 1}")
            yield self.vector_number

    def combined(self, loop: Loop, left: Sequence[str], right: Sequence[str]) -> list[str]:
        """The combination of two tuples of values at the present width."""
        rule = combine(str(loop.combine), tuple(u.dtype for u in loop.update))
        for args, texts in ((rule.left, left), (rule.right, right)):
            for a, text in zip(args, texts, strict=True):
                self.env[id(a)] = Lane(text, self.form)
        for v in rule.body:
            self.value(v)
        return [self.vector(r) for r in rule.result]
