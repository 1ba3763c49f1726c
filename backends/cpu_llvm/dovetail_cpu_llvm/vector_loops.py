"""Loops whose iterations are spread over the lanes of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.extend import Loop

from .expressions import Expressions
from .ir_writer import Lane, Slot


class VectorLoops:
    """Writes vector loops; each method yields once for every version of the body."""

    def __init__(self, exprs: Expressions) -> None:
        self.exprs = exprs
        self.panel = ("", "")  # the first column of the current panel, and the one after its last
        self.panel_vectors = ""  # how many vectors its columns take

    def each_vector(
        self, slot: Slot, stop: str, width: int, tails: Sequence[int] = ()
    ) -> Iterator[Lane]:
        """Write loops over whole vectors and the masked remainder; yield the affine index in each.

        slot: the counter, at which the loop starts.
        tails: narrower widths for the remainder; where one fits, a loop in the body takes fewer
            registers.
        """
        exprs, w = self.exprs, self.exprs.writer
        if width == 1:
            with w.loop_from(slot, stop, 1) as i:
                yield Lane(i)
            return
        envs = exprs.snapshot()
        w.width = width
        with w.loop_from(slot, stop, width) as i:
            yield Lane(i, "affine", "1")
        for w.width in (*tails, width):
            i = w.load(slot)
            remains = w.let(f"icmp slt i64 {i}, {stop}")
            if w.width < width:
                fits = w.let(f"icmp sge i64 {w.i64('add', i, str(w.width))}, {stop}")
                remains = w.let(f"and i1 {remains}, {fits}")
            with w.if_then(remains):
                exprs.restore(envs)
                w.mask = w.prefix_mask(w.let(f"sub i64 {stop}, {i}"), w.width)
                yield Lane(i, "affine", "1")
                w.mask = None
                if w.width < width:
                    w.store(slot, stop)
        exprs.restore(envs)
        w.width = 1

    def each_split(self, loop: Loop, first: str) -> Iterator[None]:
        """Set the loop's variable to a vector from `first` on; yield for each version of the body.

        The variable k may stand for two axes of lengths (n, m) that no single stride covers, as
        k quo m and k rem m. Then there are two versions of the body: one for lanes within a row of
        m, where the quotient is uniform and the remainder affine, so that loads are contiguous, and
        one for other lanes.
        """
        exprs, w = self.exprs, self.exprs.writer
        variable = Lane(first, "affine", "1")
        divisions = exprs.schedule.divisions.get(id(loop), ())
        if not divisions:
            exprs.env[id(loop.var)] = variable
            yield
            return
        m = exprs.uniform(divisions[0].args[1])
        quotient = w.let(f"sdiv i64 {first}, {m}")
        remainder = w.let(f"srem i64 {first}, {m}")
        end = w.let(f"add i64 {remainder}, {w.width}")
        within = w.let(f"icmp sle i64 {end}, {m}")
        beyond = w.negate(within)
        envs = exprs.snapshot()
        for condition in (within, beyond):
            with w.if_then(condition):
                exprs.restore(envs)
                exprs.env[id(loop.var)] = variable
                halves = Lane(quotient), Lane(remainder, "affine", "1")
                if condition == beyond:
                    halves = self._divide_lanes(quotient, remainder, m)
                outer = exprs.overrides
                exprs.overrides = outer | {id(v): halves[v.op == "rem"] for v in divisions}
                yield
                exprs.overrides = outer

    def _divide_lanes(self, quotient: str, remainder: str, m: str) -> tuple[Lane, Lane]:
        """Render quotients and remainders by `m` of lanes from `quotient * m + remainder` on.

        Vectors have no integer division. That of float64 is exact here, since remainder + lanes is
        far below 2**52.
        """
        w = self.exprs.writer
        t, f = w.vector_type("i64"), w.vector_type("double")
        lanes = w.let(f"add {t} {w.splat('i64', remainder)}, {w.iota('i64')}")
        real = w.let(f"sitofp {t} {lanes} to {f}")
        divisor = w.splat("double", w.let(f"sitofp i64 {m} to double"))
        rows = w.let(f"fptosi {f} {w.let(f'fdiv {f} {real}, {divisor}')} to {t}")
        skipped = w.let(f"mul {t} {rows}, {w.splat('i64', m)}")
        quotients = w.let(f"add {t} {w.splat('i64', quotient)}, {rows}")
        return Lane(quotients, "vector"), Lane(w.let(f"sub {t} {lanes}, {skipped}"), "vector")

    def each_panel_vector(self, width: int) -> Iterator[str]:
        """Write loops over a panel's vectors; yield the first column of each, from the panel's."""
        exprs, w = self.exprs, self.exprs.writer
        start, stop = self.panel
        for i in self.each_vector(w.counter(start), stop, width):
            exprs.index[-1], exprs.panel_column = i, w.let(f"sub i64 {i.text}, {start}")
            yield exprs.panel_column
