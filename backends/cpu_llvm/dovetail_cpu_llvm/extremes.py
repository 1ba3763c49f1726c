"""The reduce loop that finds the largest or smallest of floats."""

from __future__ import annotations

from dovetail.extend import LANES, Loop

from .emit import scalar_type
from .loops import Loops
from .reduction import Reduction

_BETTER = {"max": "fcmp olt", "min": "fcmp ogt"}  # of the best so far, and the next


def finds_extremes(r: Loops, loop: Loop) -> bool:
    """Whether a loop is one whose iterations are spread over lanes."""
    is_float = loop.update[0].dtype.kind == "f"
    return str(loop.combine) in _BETTER and r.vectorizes(loop) and is_float


class Ordered(Reduction):
    """What reductions by order have in common: they ask once whether there is a NaN at all."""

    def fold_numbers(self, x: str, better: str) -> str:
        """The best of a vector of LANES numbers, of which none is a NaN.

        `better`: the comparison of two of them that holds where the second is taken.
        """
        r, d, width = self.r, self.dtypes[0], LANES
        while width > 1:
            width //= 2
            first, second = (
                self.pick(d, x, 2 * width, ", ".join(f"i32 {i + j}" for j in range(width)), i)
                for i in (0, width)
            )
            t = r.wide(scalar_type(d), width)
            chosen = r.let(f"{better} {t} {first}, {second}")
            bits = r.wide("i1", width)
            x = r.let(f"select {bits} {chosen}, {t} {second}, {t} {first}")
        return x


class Extremes(Ordered):
    """A lane keeps the last NaN apart from its best number.

    So that a number waits for the one before it by a single instruction. Lanes of numbers only are
    combined by one instruction, too.
    """

    def chunk_vectorized(self, c: str) -> None:
        r = self.r
        d, one = self.dtypes[0], self.identity[0]
        t = r.wide(scalar_type(d), LANES)
        worst = f"splat ({scalar_type(d)} {one})"
        best, nan = r.slot(t), r.slot(t)
        for slot in (best, nan):
            r.do(f"store {t} {worst}, ptr {slot}")
        start, stop = self.bounds(c)
        for k in r.lanes(r.counter(start), stop, LANES):
            for _ in r.runs(self.loop, r.i64("add", k.text, self.first)):
                self.note(t, best, nan, worst)
        last = r.let(f"load {t}, ptr {nan}")
        self.keep(t, f"fcmp uno {t} {last}, {last}", last, best)
        self.vectors, self.types = [best], [t]

    def note(self, t: str, best: str, nan: str, worst: str) -> None:
        """Looks at the next LANES elements, or those of the mask."""
        r = self.r
        r.block(self.loop.body, self.loop.update)
        new = r.vector(self.loop.update[0])
        if r.mask is not None:
            new = r.let(f"select {r.bits(r.mask)}, {t} {new}, {t} {worst}")
        old = r.let(f"load {t}, ptr {best}")
        self.keep(t, f"{_BETTER[str(self.loop.combine)]} {t} {old}, {new}", new, best)
        self.keep(t, f"fcmp uno {t} {new}, {new}", new, nan)

    def keep(self, t: str, condition: str, new: str, slot: str) -> None:
        """Stores the lanes of `new` for which a condition holds."""
        r, bits = self.r, f"<{LANES} x i1>"
        chosen, old = r.let(condition), r.let(f"load {t}, ptr {slot}")
        r.do(f"store {t} {r.let(f'select {bits} {chosen}, {t} {new}, {t} {old}')}, ptr {slot}")

    def tree_vectorized(self) -> list[str]:
        r, t, number = self.r, self.types[0], scalar_type(self.dtypes[0])
        x, out = r.let(f"load {t}, ptr {self.vectors[0]}"), r.slot(number)
        nan = r.some(r.let(f"fcmp uno {t} {x}, {x}"), LANES)
        with r.when(nan):
            r.do(f"store {number} {super().tree_vectorized()[0]}, ptr {out}")
        with r.when(r.let(f"xor i1 {nan}, true")):
            best = self.fold_numbers(x, _BETTER[str(self.loop.combine)])
            r.do(f"store {number} {best}, ptr {out}")
        return [r.let(f"load {number}, ptr {out}")]
