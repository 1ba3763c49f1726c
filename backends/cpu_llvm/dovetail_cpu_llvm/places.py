"""The reduce loop that finds the place of the largest or smallest of its own elements."""

from __future__ import annotations

from dovetail.extend import LANES, Loop

from .emit import scalar_type
from .extremes import Ordered
from .loops import Loops

# What is better than the best so far, by the kind of the dtype; and in a tree the same, turned
# around: whether the second of two is taken.
_BETTER = {
    "argmax": {"f": "fcmp ogt", "i": "icmp sgt", "u": "icmp ugt"},
    "argmin": {"f": "fcmp olt", "i": "icmp slt", "u": "icmp ult"},
}
_SECOND = {
    "argmax": {"f": "fcmp olt", "i": "icmp slt", "u": "icmp ult"},
    "argmin": {"f": "fcmp ogt", "i": "icmp sgt", "u": "icmp ugt"},
}
_NEVER = -1  # a turn that does not come: the largest as an unsigned number
_NAN = "0x7FF8000000000000"


def finds_places(r: Loops, loop: Loop) -> bool:
    """Whether a loop is one whose iterations are spread over lanes, with its variable as place."""
    return str(loop.combine) in _BETTER and r.vectorizes(loop) and loop.update[1] is loop.var


class Places(Ordered):
    """A lane notes in which turn it has found its best number so far, which says where that is.

    As a later one has to be better, ties need no look. The turn of its first NaN is kept apart, so
    that a number waits for the one before it by a single instruction.
    """

    def chunk_vectorized(self, c: str) -> None:
        r, d, u = self.r, self.dtypes[0], f"<{LANES} x i32>"
        types = [r.wide(scalar_type(d), LANES) for d in self.dtypes]
        t = types[0]
        best, places = (r.slot(t) for t in types)
        turns, nans = r.slot(u), r.slot(u)
        r.do(f"store {t} splat ({scalar_type(d)} {self.identity[0]}), ptr {best}")
        r.do(f"store {u} zeroinitializer, ptr {turns}")
        r.do(f"store {u} splat (i32 {_NEVER}), ptr {nans}")
        start, stop = self.bounds(c)
        for k in r.lanes(r.counter(start), stop, LANES):
            turn = r.let(f"trunc i64 {r.let(f'sub i64 {k.text}, {start}')} to i32")
            for _ in r.runs(self.loop, r.i64("add", k.text, self.first)):
                self.note(t, best, turns, nans, r.splat("i32", turn))
        if d.kind == "f":
            self.prefer_nans(t, best, turns, nans)
        self.place(start, stop, turns, places)
        self.vectors, self.types = [best, places], types

    def note(self, t: str, best: str, turns: str, nans: str, now: str) -> None:
        """Looks at the next LANES elements, or those of the mask, in turn `now`."""
        r = self.r
        r.block(self.loop.body, self.loop.update)
        new, old = r.vector(self.loop.update[0]), r.let(f"load {t}, ptr {best}")
        kind, bits, u = self.dtypes[0].kind, f"<{LANES} x i1>", f"<{LANES} x i32>"
        better = r.let(f"{_BETTER[str(self.loop.combine)][kind]} {t} {new}, {old}")
        if r.mask is not None:
            better = r.let(f"and {bits} {better}, {r.mask}")
        before = r.let(f"load {u}, ptr {turns}")
        r.do(f"store {t} {r.let(f'select {bits} {better}, {t} {new}, {t} {old}')}, ptr {best}")
        r.do(f"store {u} {r.let(f'select {bits} {better}, {u} {now}, {u} {before}')}, ptr {turns}")
        if kind == "f":
            nan = r.let(f"fcmp uno {t} {new}, {new}")
            if r.mask is not None:
                nan = r.let(f"and {bits} {nan}, {r.mask}")
            seen = r.let(f"select {bits} {nan}, {u} {now}, {u} splat (i32 {_NEVER})")
            known = r.let(f"load {u}, ptr {nans}")
            least = f"call {u} @llvm.umin.v{LANES}i32({u} {known}, {u} {seen})"
            r.do(f"store {u} {r.let(least)}, ptr {nans}")

    def prefer_nans(self, t: str, best: str, turns: str, nans: str) -> None:
        """Of lanes with a NaN, the first one is the best."""
        r, bits, u = self.r, f"<{LANES} x i1>", f"<{LANES} x i32>"
        first, turn = r.let(f"load {u}, ptr {nans}"), r.let(f"load {u}, ptr {turns}")
        some = r.let(f"icmp ne {u} {first}, splat (i32 {_NEVER})")
        r.do(f"store {u} {r.let(f'select {bits} {some}, {u} {first}, {u} {turn}')}, ptr {turns}")
        number, nan = (
            r.let(f"load {t}, ptr {best}"),
            f"splat ({scalar_type(self.dtypes[0])} {_NAN})",
        )
        r.do(f"store {t} {r.let(f'select {bits} {some}, {t} {nan}, {t} {number}')}, ptr {best}")

    def tree_vectorized(self) -> list[str]:
        """The best of the lanes, and the first of their places that have it."""
        r, d, bits = self.r, self.dtypes[0], f"<{LANES} x i1>"
        x, places = (
            r.let(f"load {t}, ptr {s}") for t, s in zip(self.types, self.vectors, strict=True)
        )
        t, u = self.types
        best = self.fold_numbers(x, _SECOND[str(self.loop.combine)][d.kind])
        width, r.width = r.width, LANES
        same = "fcmp oeq" if d.kind == "f" else "icmp eq"
        chosen = r.let(f"{same} {t} {x}, {r.splat(scalar_type(d), best)}")
        if d.kind == "f":
            unordered = r.let(f"fcmp uno {t} {x}, {x}")
            nan = r.some(unordered, LANES)
            chosen = r.let(f"select i1 {nan}, {bits} {unordered}, {bits} {chosen}")
            number = scalar_type(d)
            best = r.let(f"select i1 {nan}, {number} {_NAN}, {number} {best}")
        left = r.let(
            f"select {bits} {chosen}, {u} {places}, {u} {r.splat('i64', self.identity[1])}"
        )
        r.width = width
        return [best, r.let(f"call i64 @llvm.vector.reduce.umin.v{LANES}i64({u} {left})")]

    def place(self, start: str, stop: str, turns: str, slot: str) -> None:
        """Stores the lanes' places; those of lanes that saw nothing stay the identity."""
        r, t = self.r, f"<{LANES} x i64>"
        r.width = LANES
        turn = r.let(f"load <{LANES} x i32>, ptr {turns}")
        lanes = r.let(f"add {t} {r.let(f'zext <{LANES} x i32> {turn} to {t}')}, {r.iota('i64')}")
        base = r.splat("i64", r.i64("add", start, self.first))
        places = r.let(f"add {t} {lanes}, {base}")
        some = r.first_lanes(r.let(f"sub i64 {stop}, {start}"), LANES)
        none = r.splat("i64", self.identity[1])
        r.do(f"store {t} {r.let(f'select {r.bits(some)}, {t} {places}, {t} {none}')}, ptr {slot}")
        r.width = 1
