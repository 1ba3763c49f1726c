"""Loads and stores of neighbours: what kernels have two of, for the parts of complex128 numbers.

At stride 2 each would be a gather or a scatter. A couple is one access to twice as many elements,
whose even and odd ones are shuffled apart: 16 K sums of complex128 take 8.5 us instead of 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

from dovetail.extend import (
    Block,
    Buffer,
    Kernel,
    Loop,
    Statement,
    Store,
    Value,
    bool_,
    float32,
    loads,
    uint32,
    uint64,
)

from .emit import Lane, memory_type
from .schedule import Schedule
from .values import Values

LEAST = 4  # stores of a sheaf
Couple = dict[int, Value | Store]  # by id of the first, the second


def couples(block: Block) -> Couple:
    """The accesses in a block, and in its loops, that follow each other and are to neighbours."""
    found: Couple = {}
    for a, b in pairwise(block):
        if isinstance(b, Value | Store) and type(a) is type(b) and _is_couple(a, b):
            found[id(a)] = b
    for s in block:
        if isinstance(s, Loop):
            found |= couples(s.body)
    return found


def _is_couple(a: Statement, b: Statement) -> bool:
    one, other = _access(a), _access(b)
    if one is None or other is None:
        return False
    return one[:2] == other[:2] and _follows(one[2], other[2])


def _access(s: Statement) -> tuple[Buffer, Value | None, Value] | None:
    """Of a load or a store: where, under which condition, the index."""
    if isinstance(s, Store) and s.buffer.dtype is not bool_:
        return s.buffer, s.when, s.index
    if isinstance(s, Value) and s.op == "load" and s.dtype is not bool_:
        return s.buffer, s.when, s.index
    return None


def _follows(a: Value, b: Value) -> bool:
    """Whether `a` is an even index, and `b` is written as the next one."""
    even = a.op == "mul" and a.args[1].op == "const" and a.args[1].number == 2
    return even and b.op == "add" and b.args[0] is a and b.args[1].number == 1


class Sheaf(NamedTuple):
    """Stores to elements that follow each other, of which all lanes together fill `apart` each."""

    stores: tuple[Store, ...]
    apart: int


def sheaves(block: Block, native: int) -> dict[int, Sheaf]:
    """By id of each of them, the stores of a straight-line block that together fill memory.

    The last one stores for all of a sheaf, which has as many as a register has elements, at most:
    what is not read in the block is not read in between. Bodies of maps are such blocks, too.
    """
    maps = [s.body for s in block if isinstance(s, Loop) and s.kind == "map"]
    if any(isinstance(s, Loop) for s in block):
        return {k: sheaf for body in maps for k, sheaf in sheaves(body, native).items()}
    read = {v.buffer for v in loads(block)}
    runs: dict[object, list[Store]] = {}
    for s in block:
        plain = isinstance(s, Store) and s.when is None and s.buffer not in read
        if isinstance(s, Store) and plain and s.buffer.dtype is not bool_:
            places = frozenset(_terms(s.index)[0].items())
            runs.setdefault((s.buffer, places), []).append(s)
    found: dict[int, Sheaf] = {}
    for run in runs.values():
        count, side = len(run), min(len(run), native // run[0].buffer.dtype.itemsize)
        if count >= LEAST and not count & (count - 1) and all(map(_is_next, run, run[1:])):
            for i in range(0, count, side):
                sheaf = Sheaf(tuple(run[i : i + side]), count)
                found |= {id(s): sheaf for s in sheaf.stores}
    return found


def _is_next(a: Store, b: Store) -> bool:
    return _terms(b.index)[1] == _terms(a.index)[1] + 1


def _terms(v: Value) -> tuple[dict[int, int], int]:
    """An index as multiples of values, by their ids, and a number."""
    if v.op == "const":
        return {}, int(v.number)
    if v.op == "add":
        (a, m), (b, n) = map(_terms, v.args)
        return {k: a.get(k, 0) + b.get(k, 0) for k in a | b}, m + n
    if v.op == "mul" and v.args[1].op == "const":
        (a, m), by = _terms(v.args[0]), int(v.args[1].number)
        return {k: c * by for k, c in a.items()}, m * by
    return {id(v): 1}, 0


def half_of_word(v: Value) -> tuple[Value, int] | None:
    """Of a float32 that is half of a word of 64 bits, as complex64 numbers are loaded: which."""
    if v.op != "bitcast" or v.dtype is not float32 or v.args[0].op != "cast":
        return None
    word = v.args[0].args[0]
    if v.args[0].dtype is not uint32 or word.dtype is not uint64:
        return None
    if word.op == "shr" and word.args[1].op == "const" and word.args[1].number == 32:
        return word.args[0], 1
    return word, 0


class Couples(Values):
    """Renders couples. `done`: the seconds that their firsts have taken along, with their `env`."""

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        super().__init__(kernel, schedule)
        self.couples = couples(kernel.body)
        self.sheaves = sheaves(kernel.body, schedule.native)
        self.done: set[tuple[int, int]] = set()

    def compute(self, v: Value) -> Lane:
        """Halves of words are picked by one shuffle: to shift and truncate them would be six."""
        half = half_of_word(v)
        if half is None or self.width == 1 or (word := self.lane(half[0])).form != "v":
            return super().compute(v)
        wide = f"<{2 * self.width} x float>"
        text = self.let(f"bitcast {self.wide('i64')} {word.text} to {wide}")
        picks = ", ".join(f"i32 {2 * k + half[1]}" for k in range(self.width))
        picked = f"{wide} {text}, {wide} {text}, <{self.width} x i32> <{picks}>"
        return Lane(self.let(f"shufflevector {picked}"), "v")

    def second(self, first: Value | Store, index: Value) -> Value | Store | None:
        """What goes along with an access; None where it goes alone."""
        found = self.couples.get(id(first))
        if found is None or self.width == 1:
            return None
        lane = self.lane(index)
        if lane.form != "a" or lane.stride != "2":
            return None
        self.done.add((id(found), id(self.env)))
        return found

    def is_done(self, s: Value | Store) -> bool:
        """Whether an access was taken along by the one before it; asked once."""
        key = id(s), id(self.env)
        known = key in self.done
        self.done.discard(key)
        return known

    @contextmanager
    def doubled(self, active: str | None) -> Iterator[str | None]:
        """Twice the width, with each lane's mask for both of its elements."""
        half = self.width
        both = active and self.shuffled("i1", active, active, [k // 2 for k in range(2 * half)])
        self.width = 2 * half
        yield both
        self.width = half

    def load(self, v: Value) -> Lane:
        if self.is_done(v):
            return self.env[id(v)]
        other = self.second(v, v.args[0])
        if other is None:
            return super().load(v)
        width, d = self.width, v.buffer.dtype
        place = self.address(v.buffer, f"i64 {self.lane(v.index).text}")
        active = self.active(v.when)
        if active is not None:
            place = self.harmless(place, active)
        with self.doubled(active) as both:
            text = self.load_row(d, place, both)
            picks = [[2 * k + j for k in range(width)] for j in (0, 1)]
            parts = [self.shuffled(memory_type(d), text, text, p) for p in picks]
        first, second = (Lane(p, "v") for p in parts)
        self.env[id(other)] = second
        return first

    def store(self, s: Store) -> None:
        if self.is_done(s):
            return
        sheaf = self.sheaves.get(id(s))
        if sheaf is not None and self.is_filled(s, sheaf):
            if s is sheaf.stores[-1]:
                self.store_sheaf(sheaf)
            return
        other = self.second(s, s.index)
        if not isinstance(other, Store):
            super().store(s)
            return
        d, width = s.buffer.dtype, self.width
        place = self.address(s.buffer, f"i64 {self.lane(s.index).text}")
        picks = [k // 2 + (k % 2) * width for k in range(2 * width)]
        pair = [self.vector(s.value), self.vector(other.value)]
        text = self.shuffled(memory_type(d), pair[0], pair[1], picks)
        with self.doubled(self.active(s.when)) as both:
            self.store_row(d, text, place, both)

    def is_filled(self, s: Store, sheaf: Sheaf) -> bool:
        """Whether lanes of a store are so far apart that what is between them is filled."""
        if self.width < len(sheaf.stores) or self.mask:
            return False
        lane = self.lane(s.index)
        return lane.form == "a" and lane.stride == str(sheaf.apart)

    def store_sheaf(self, sheaf: Sheaf) -> None:
        """Stores squares of elements, transposed: a scatter takes a cycle and a half for each."""
        first, *_ = sheaf.stores
        d, side, at = first.buffer.dtype, len(sheaf.stores), self.lane(first.index).text
        t, given = memory_type(d), self.wide(memory_type(d))
        rows = [self.to_memory(d, self.vector(s.value), self.width) for s in sheaf.stores]
        for lane in range(0, self.width, side):
            picks = ", ".join(f"i32 {lane + k}" for k in range(side))
            cut = [
                self.let(f"shufflevector {given} {r}, {given} {r}, <{side} x i32> <{picks}>")
                for r in rows
            ]
            for j, column in enumerate(self.square(cut, f"<{side} x {t}>")):
                place = self.i64("add", at, str((lane + j) * sheaf.apart))
                place = self.address(first.buffer, f"i64 {place}")
                self.do(f"store <{side} x {t}> {column}, ptr {place}, align {d.itemsize}")

    def square(self, rows: list[str], t: str) -> list[str]:
        """The transpose of a square of registers, exchanging ever larger corners."""
        w, step = len(rows), 1
        while step < w:
            upper = [e if not e & step else e - step + w for e in range(w)]
            lower = [e + step if not e & step else e + w for e in range(w)]
            new = list(rows)
            for i in range(w):
                if not i & step:
                    for k, picks in ((i, upper), (i + step, lower)):
                        order = f"<{w} x i32> <{', '.join(f'i32 {e}' for e in picks)}>"
                        pair = f"{t} {rows[i]}, {t} {rows[i + step]}"
                        new[k] = self.let(f"shufflevector {pair}, {order}")
            rows, step = new, step * 2
        return rows
