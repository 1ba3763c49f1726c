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


class Extremes(Reduction):
    """A lane keeps the last NaN apart from its best number.

    So that a number waits for the one before it by a single instruction.
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
        r.block(self.loop.body)
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
