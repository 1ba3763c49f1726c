"""Blocks of statements, and the loops in them: in lockstep for all lanes, or spread over lanes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from dovetail.extend import Atomic, Block, Kernel, Loop, Store, Value, combine, settles

from .asides import Aside, asides
from .couples import Couples
from .emit import Lane, scalar_type
from .packing import REGISTER, pack, packed
from .schedule import Schedule, lanes_of_map


class Loops(Couples):
    """Renders blocks. `jam` rows are computed at once, each with its own `env`."""

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.envs = [self.env]
        self.rows: list[Lane] = []  # the index of each of the rows that are computed at once
        self.jam = 1  # how many these are
        self.columns = ("", "")  # of a panel: the first, and the one after the last
        self.known_asides: dict[int, dict[int, list[Aside]]] = {}  # by id of a block
        self.vectors = ""  # of a panel: how many there are

    @abstractmethod
    def reduce(self, loop: Loop) -> None:
        """Renders a loop of kind "reduce"."""

    def block(self, block: Block, kept: Sequence[Value] = ()) -> None:
        """Renders statements; `kept` is what is asked of them afterwards."""
        found = self.asides_of(block, kept) if self.width > 1 and self.jam == 1 else {}
        later = {id(s) for beside in found.values() for aside in beside for s in aside.body}
        for s in block:
            for aside in found.get(id(s), ()):
                self.aside(aside)
            if id(s) in later:
                continue
            if isinstance(s, Loop):
                {"map": self.map, "reduce": self.reduce, "fold": self.fold}[s.kind](s)
            elif isinstance(s, Value) and id(s) in self.schedule.shared:
                self.value(s)
                for env in self.envs[1:]:
                    env[id(s)] = self.env[id(s)]
            else:
                for _ in self.copies():
                    self.statement(s)

    def asides_of(self, block: Block, kept: Sequence[Value]) -> dict[int, list[Aside]]:
        """What a block computes aside: looked for once, as blocks are rendered several times."""
        found = self.known_asides.get(id(block))
        if found is None:
            found = self.known_asides[id(block)] = asides(block, kept)
        return found

    def aside(self, aside: Aside) -> None:
        """Computes what few lanes need, if one of them does; zeros if none does."""
        types = [self.wide(scalar_type(v.dtype)) for v in aside.outs]
        slots = [self.slot(t) for t in types]
        for t, slot in zip(types, slots, strict=True):
            self.do(f"store {t} zeroinitializer, ptr {slot}")
        bits, t = self.vector(aside.condition), self.wide("i1")
        if not aside.holds:
            bits = self.let(f"xor {t} {bits}, splat (i1 true)")
        if self.mask is not None:
            bits = self.let(f"and {t} {bits}, {self.mask}")
        known = self.snapshot()
        with self.when(self.some(bits)):
            self.block(aside.body, aside.outs)
            for v, t, slot in zip(aside.outs, types, slots, strict=True):
                self.do(f"store {t} {self.vector(v)}, ptr {slot}")
        self.restore(known)
        self.read(aside.outs, types, slots)

    def statement(self, s: Value | Store | Atomic) -> None:
        if isinstance(s, Value):
            self.value(s)
        elif isinstance(s, Store):
            self.store(s)
        else:
            self.atomic(s)

    def copies(self) -> Iterator[int]:
        """Runs what follows for each of the rows that are computed at once."""
        if self.jam == 1:
            yield 0
            return
        for j in range(self.jam):
            self.turn_to(j)
            yield j
        self.turn_to(0)

    def turn_to(self, row: int) -> None:
        self.env, self.index[self.schedule.second] = self.envs[row], self.rows[row]

    def snapshot(self) -> list[dict[int, Lane]]:
        return [dict(e) for e in (self.envs if self.jam > 1 else [self.env])]

    def restore(self, known: list[dict[int, Lane]]) -> None:
        self.envs = [dict(e) for e in known]
        self.env = self.envs[0]

    @property
    def form(self) -> str:
        return "u" if self.width == 1 else "v"

    def vectorizes(self, loop: Loop) -> bool:
        """Whether the iterations of `loop` are spread over lanes."""
        return self.schedule.kind == "rows" and id(loop) in self.schedule.vectorized

    def map(self, loop: Loop) -> None:
        start, stop = self.uniform(loop.start), self.uniform(loop.stop)
        if self.vectorizes(loop):
            for k in self.lanes(
                self.counter(start), stop, lanes_of_map(loop, self.schedule.native)
            ):
                for _ in self.runs(loop, k.text):
                    self.block(loop.body)
            return
        with self.loop(start, stop) as i:
            self.env[id(loop.var)] = Lane(i)
            self.block(loop.body)

    def fold(self, loop: Loop) -> None:
        packs = self.width == 1 and self.schedule.native == REGISTER and packed(loop)
        if packs and self.schedule.kind != "lanes":
            pack(self, loop, packs)
            return
        types = [self.wide(scalar_type(c.dtype)) for c in loop.carry]
        slots = [[self.slot(t) for t in types] for _ in range(self.jam)]
        for j in self.copies():
            for init, t, slot in zip(loop.init, types, slots[j], strict=True):
                self.do(f"store {t} {self.vector(init)}, ptr {slot}")
        if self.jam > 1 and self.schedule.abreast > 1:
            self.fold_abreast(loop, types, slots)
        else:
            with self.loop(self.uniform(loop.start), self.uniform(loop.stop)) as i:
                self.fold_step(loop, types, slots, [i] * self.jam)
                if self.jam == 1 and settles(loop):
                    self.leave(self.settled(loop))
        for j in self.copies():
            self.read(loop.results, types, slots[j])

    def fold_abreast(self, loop: Loop, types: list[str], slots: list[list[str]]) -> None:
        """The folds of several rows, which may be of different lengths.

        Side by side as far as the shortest goes, then each to its own end.
        """
        bounds = [(self.uniform(loop.start), self.uniform(loop.stop)) for _ in self.copies()]
        counters, stops = [self.counter(start) for start, _ in bounds], [stop for _, stop in bounds]
        with self.abreast(counters, stops) as at:
            self.fold_step(loop, types, slots, at)
        jam = self.jam
        for j in self.copies():
            self.jam = 1  # what follows is of this row alone
            with self.resume(counters[j], stops[j], 1) as i:
                self.fold_step(loop, types, slots[j:], [i])
            self.jam = jam

    def fold_step(
        self, loop: Loop, types: list[str], slots: Sequence[list[str]], at: Sequence[str]
    ) -> None:
        """An iteration for each of the rows, `at` being where each is."""
        for j in self.copies():
            self.env[id(loop.var)] = Lane(at[j])
            self.read(loop.carry, types, slots[j])
        self.block(loop.body, loop.update)
        for j in self.copies():
            updates = [self.vector(u) for u in loop.update]
            for u, t, slot in zip(updates, types, slots[j], strict=True):
                self.do(f"store {t} {u}, ptr {slot}")

    def settled(self, loop: Loop) -> str:
        """Whether a step has left all that the fold carries as it was, in every lane."""
        differ: list[str] = []
        for c, u in zip(loop.carry, loop.update, strict=True):
            old, new = self.vector(c), self.vector(u)
            t = self.wide(scalar_type(c.dtype))
            if c.dtype.kind == "f":
                bits = self.wide(f"i{c.dtype.bits}")
                old, new = (self.let(f"bitcast {t} {x} to {bits}") for x in (old, new))
                t = bits
            differ.append(self.let(f"icmp ne {t} {old}, {new}"))
        any_, t = differ[0], self.wide("i1")
        for d in differ[1:]:
            any_ = self.let(f"or {t} {any_}, {d}")
        if self.width > 1:
            any_ = self.some(any_)
        return self.let(f"xor i1 {any_}, true")

    def read(self, values: Sequence[Value], types: list[str], slots: list[str]) -> None:
        for v, t, slot in zip(values, types, slots, strict=True):
            self.env[id(v)] = Lane(self.let(f"load {t}, ptr {slot}"), self.form)

    def lanes(self, slot: str, stop: str, width: int, tails: Sequence[int] = ()) -> Iterator[Lane]:
        """Runs what follows twice: in a loop over whole vectors, then masked for what is left.

        Yields the index (affine) each time; the count goes on from `slot`. `tails` are widths of
        vectors that what is left may fit: a loop inside then takes no more registers than it fills.
        """
        if width == 1:
            with self.resume(slot, stop, 1) as i:
                yield Lane(i)
            return
        known = self.snapshot()
        self.width = width
        with self.resume(slot, stop, width) as i:
            yield Lane(i, "a", "1")
        for self.width in (*tails, width):
            i = self.let(f"load i64, ptr {slot}")
            last = self.let(f"icmp slt i64 {i}, {stop}")
            if self.width < width:
                enough = self.let(f"icmp sge i64 {self.i64('add', i, str(self.width))}, {stop}")
                last = self.let(f"and i1 {last}, {enough}")
            with self.when(last):
                self.restore(known)
                self.mask = self.first_lanes(self.let(f"sub i64 {stop}, {i}"), self.width)
                yield Lane(i, "a", "1")
                self.mask = None
                if self.width < width:
                    self.do(f"store i64 {stop}, ptr {slot}")
        self.restore(known)
        self.width = 1

    def runs(self, loop: Loop, first: str) -> Iterator[None]:
        """Runs what follows for the iterations from `first` on, with the loop's variable set.

        Where the variable stands for two axes of lengths (n, m) that no single stride covers, as
        k quo m and k rem m, it is run twice: for lanes within one row of m, where the quotient is
        uniform and the remainder affine, so that loads are contiguous; and for other lanes.
        """
        variable = Lane(first, "a", "1")
        divisions = self.schedule.divisions.get(id(loop), ())
        if not divisions:
            self.env[id(loop.var)] = variable
            yield
            return
        m = self.uniform(divisions[0].args[1])
        quotient = self.let(f"sdiv i64 {first}, {m}")
        rest = self.let(f"srem i64 {first}, {m}")
        end = self.let(f"add i64 {rest}, {self.width}")
        within = self.let(f"icmp sle i64 {end}, {m}")
        beyond = self.let(f"xor i1 {within}, true")
        inner = Lane(quotient), Lane(rest, "a", "1")
        known = self.snapshot()
        for condition in (within, beyond):
            with self.when(condition):
                self.restore(known)
                self.env[id(loop.var)] = variable
                if condition == beyond:
                    inner = self.across_rows(quotient, rest, m)
                self.given = {id(v): inner[v.op == "rem"] for v in divisions}
                yield
                self.given = {}

    def across_rows(self, quotient: str, rest: str, m: str) -> tuple[Lane, Lane]:
        """Quotients and remainders by `m` of lanes that begin at `quotient` * m + `rest`.

        Through float64, as vectors have no integer division: exact, since rest + lanes is far below
        2 ** 52.
        """
        t, f = self.wide("i64"), self.wide("double")
        lanes = self.let(f"add {t} {self.splat('i64', rest)}, {self.iota('i64')}")
        real = self.let(f"sitofp {t} {lanes} to {f}")
        by = self.splat("double", self.let(f"sitofp i64 {m} to double"))
        more = self.let(f"fptosi {f} {self.let(f'fdiv {f} {real}, {by}')} to {t}")
        whole = self.let(f"mul {t} {more}, {self.splat('i64', m)}")
        return (
            Lane(self.let(f"add {t} {self.splat('i64', quotient)}, {more}"), "v"),
            Lane(self.let(f"sub {t} {lanes}, {whole}"), "v"),
        )

    def panel(self, width: int = 0) -> Iterator[str]:
        """Runs what follows for each vector of a panel's columns.

        They have the schedule's width if no other is given. Yields the first column of each,
        counted from the panel's first.
        """
        start, stop = self.columns
        for i in self.lanes(self.counter(start), stop, width or self.schedule.width):
            self.index[-1], self.column = i, self.let(f"sub i64 {i.text}, {start}")
            yield self.column

    def combined(self, loop: Loop, left: Sequence[str], right: Sequence[str]) -> list[str]:
        """The combination of two tuples of values at the present width."""
        rule = combine(str(loop.combine), tuple(u.dtype for u in loop.update))
        for args, texts in ((rule.left, left), (rule.right, right)):
            for a, text in zip(args, texts, strict=True):
                self.env[id(a)] = Lane(text, self.form)
        for v in rule.body:
            self.value(v)
        return [self.vector(r) for r in rule.result]
