"""Running sums and products: kernels of `cumulative_sum` and its like.

A running sum along an axis is made in blocks of 256 elements: within one, element comes after
element; a block runs on from the sum of the blocks before it in its group of 256, and a group from
that of the groups before it. So rows are short for every device, however long they are, and errors
grow with the blocks, not with the elements. A row of one block is plain, one after the other.

That order is what floats are defined by, whichever of three plans is chosen: rows of one block, or
combinations that are not cut; many rows, each by one point; and few long rows, whose blocks are
summed first, the sums run from block to block, and each block then runs on from what was before it.
Integers wrap, so that any order gives the same bits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..dtypes import int64
from ..loops.language import (
    Effect,
    Operand,
    Value,
    const,
    eq,
    fold_loop,
    quo,
    reduce_loop,
    rem,
    where,
)
from .elementary import logaddexp
from .site import KernelSite, Launches, LoopStep

BLOCK = 1 << 8  # elements of a block, and blocks of a group: floats are defined by it
LONG = 1 << 14  # elements of a row, divided by the device's concurrency, that are worth cutting
ROWS_BUSY = 4  # rows for each unit that need not be cut
CHAINS = 4  # blocks that a point does side by side, since one addition waits for another
CHAINS_BUSY = 16  # points for each unit that are enough, if each does several blocks


class Running(NamedTuple):
    """The launches of a running combination.

    The op's attrs: (axis, whether the initial value comes first, dtype).
    """

    combine: str
    rule: Callable[[Value, Value], Value]
    initial: float
    cut: str  # kinds of dtypes whose rows are made in blocks

    def run(self, launches: Launches) -> None:
        """Adds them."""
        name, (axis, *_) = launches.op.name, launches.attrs
        shape, kind = launches.shape(0), launches.dtype(0).kind
        n, units = shape[axis], launches.concurrency
        rows = math.prod(shape) // max(n, 1)
        if n <= BLOCK or kind not in self.cut:
            launches.launch(name, self._plain, 0, launches.result)
        elif n >= max(4 * BLOCK, LONG // units) and rows < ROWS_BUSY * units:
            self._in_launches(launches, n)
        else:
            whole = self._plain if kind in "iu" else self._in_blocks
            launches.launch(name, whole, 0, launches.result)

    def _first(self, site: KernelSite) -> Value:
        return const(self.initial, site.casts[0].compute)

    def _begin(self, site: KernelSite, row: Sequence[Value]) -> None:
        if site.attrs[1]:
            site.store(self._first(site), *_at(site, row, const(0, int64)))

    def _step(self, site: KernelSite, row: Sequence[Value], k: Value, total: Value) -> Value:
        """What runs up to an element, given what did before it."""
        return self.rule(total, site.read(0, *_at(site, row, k)))

    def _stored(self, site: KernelSite, row: Sequence[Value], k: Value, total: Value) -> Effect:
        return site.stored(total, *_at(site, row, k + int(site.attrs[1])))

    # --- a row by one point

    def _row(self, site: KernelSite) -> list[Value]:
        axes = [d for d in range(site.rank(-1)) if d != site.attrs[0]]
        row = [site.axis(-1, d) for d in axes]
        self._begin(site, row)
        return row

    def _plain(self, site: KernelSite) -> None:
        """One element after the other."""
        row = self._row(site)

        def step(k: Value, total: Value) -> LoopStep:
            total = self._step(site, row, k, total)
            return (total,), [self._stored(site, row, k, total)]

        n = site.size(0, site.attrs[0])
        site.builder.effect(fold_loop(0, n, (self._first(site),), step))

    def _in_blocks(self, site: KernelSite) -> None:
        """One block after the other."""
        row, first = self._row(site), self._first(site)
        n = site.size(0, site.attrs[0])

        def block(b: Value, groups: Value, blocks: Value) -> LoopStep:
            """What was before the group, and before the block within it, go from block to block."""
            anew = eq(rem(b, BLOCK), 0)
            groups = where(anew, self.rule(groups, blocks), groups)
            blocks = where(anew, first, blocks)
            before = self.rule(groups, blocks)

            def step(k: Value, total: Value) -> LoopStep:
                total = self._step(site, row, k, total)
                return (total,), [self._stored(site, row, k, self.rule(before, total))]

            start, stop = _bounds(b, n)
            inside = fold_loop(start, stop, (first,), step)
            return (groups, self.rule(blocks, inside.results[0])), [inside]

        count = quo(n + (BLOCK - 1), BLOCK)
        site.builder.effect(fold_loop(0, count, (first, first), block))

    # --- in several launches

    def _in_launches(self, launches: Launches, n: int) -> None:
        shape, (axis, *_) = launches.shape(0), launches.attrs
        rows = (*shape[:axis], *shape[axis + 1 :])
        dtype, name = launches.dtype(0).compute, launches.op.name
        counts = [-(-n // BLOCK)]
        if counts[0] > BLOCK:
            counts.append(-(-counts[0] // BLOCK))
        blocks, *groups = (launches.temporary(dtype, (*rows, count)) for count in counts)
        many = math.prod(rows) * counts[0] >= CHAINS * CHAINS_BUSY * launches.concurrency
        chains = CHAINS if many and dtype.kind not in "iu" else 1
        launches.launch(f"{name}_of_blocks", self._sums(axis, counts[0], chains), 0, blocks)
        for g in groups:
            launches.launch(f"{name}_of_groups", self._sums(len(rows), counts[1], 1), blocks, g)
            launches.launch(f"{name}_before_groups", self._before, g, changes=(-1,))
        launches.launch(f"{name}_before_blocks", self._before, *groups, blocks, changes=(-1,))
        launches.launch(name, self._run_on(counts[0], chains), 0, blocks, launches.result)

    def _sums(self, axis: int, count: int, chains: int) -> Callable[[KernelSite], None]:
        """The kernel that sums each block along an axis of the first operand."""

        def build(site: KernelSite) -> None:
            row = [site.axis(-1, d) for d in range(site.rank(-1) - 1)]
            at, n = site.points("points", -(-count // chains)) * chains, site.size(0, axis)

            def value(k: Value) -> Value:
                return site.read(0, *row[:axis], k, *row[axis:])

            def step(j: int, k: Value, total: Value) -> tuple[Value, Sequence[Effect]]:
                return self.rule(total, value(k)), ()

            if site.casts[0].kind in "iu":
                totals: Sequence[Value] = reduce_loop(self.combine, *_bounds(at, n), value)
            else:
                first = const(self.initial, value(at).dtype)
                totals = _side_by_side(site, at, n, [first] * chains, step)
            for j, total in enumerate(totals):
                when = at + j < site.size(-1, len(row)) if j else None
                site.builder.effect(site.stored(total, *row, at + j, when=when))

        return build

    def _before(self, site: KernelSite) -> None:
        """Sums become what comes before each in its row.

        Where what is before each group is an operand, a point does a group, and goes on from that.
        """
        last = site.rank(-1) - 1
        row = [site.axis(-1, d) for d in range(last)]
        start, stop, outside = const(0, int64), site.size(-1, last), None
        if site.casts:
            group = site.axis(0, last)
            start, stop = _bounds(group, stop)
            outside = site.read(0, *row, group)

        def step(k: Value, total: Value) -> LoopStep:
            here = total if outside is None else self.rule(outside, total)
            return (self.rule(total, site.current(*row, k)),), [site.stored(here, *row, k)]

        first = const(self.initial, site.current(*row, start).dtype)
        site.builder.effect(fold_loop(start, stop, (first,), step))

    def _run_on(self, count: int, chains: int) -> Callable[[KernelSite], None]:
        """The kernel that runs on in each block from what was before it."""

        def build(site: KernelSite) -> None:
            row = [site.axis(1, d) for d in range(site.rank(1) - 1)]
            at = site.points("points", -(-count // chains)) * chains
            self._begin(site, row)
            last = site.size(1, len(row)) - 1
            chosen = [at] + [where(at + j < last, at + j, last) for j in range(1, chains)]
            before = [site.read(1, *row, b) for b in chosen]

            def step(j: int, k: Value, total: Value) -> tuple[Value, Sequence[Effect]]:
                total = self._step(site, row, k, total)
                return total, [self._stored(site, row, k, self.rule(before[j], total))]

            n = site.size(0, site.attrs[0])
            _side_by_side(site, at, n, [self._first(site)] * chains, step)

        return build


def _bounds(block: Value, n: Value) -> tuple[Value, Value]:
    """Where a block of a row of n begins and ends."""
    start = block * BLOCK
    stop = start + BLOCK
    return start, where(stop < n, stop, n)


def _side_by_side(
    site: KernelSite, at: Value, n: Value, first: Sequence[Value],
    step: Callable[[int, Value, Value], tuple[Value, Sequence[Effect]]],
) -> list[Value]:  # fmt: skip
    """The results of the neighbouring blocks from `at` on, each one element after the other.

    They go together as far as all of them do, then each alone. `step(j, k, total)` gives the new
    total of the j-th at element k, and effects.
    """
    bounds = [_bounds(at + j, n) for j in range(len(first))]

    def run(
        start: Operand, stop: Value, which: Sequence[int], totals: Sequence[Value]
    ) -> Sequence[Value]:
        def steps(k: Value, *totals: Value) -> LoopStep:
            found = [step(j, bounds[j][0] + k, t) for j, t in zip(which, totals, strict=True)]
            return [t for t, _ in found], [e for _, effects in found for e in effects]

        loop = fold_loop(start, stop, totals, steps)
        if loop.effects:
            site.builder.effect(loop)
        return loop.results

    if len(first) == 1:
        start, stop = bounds[0]
        return list(run(0, stop - start, (0,), first))
    start, stop = bounds[-1]
    common = where(stop - start < BLOCK, const(0, int64), BLOCK)
    totals = run(0, common, range(len(first)), first)
    return [
        run(common, stop - start, (j,), totals[j : j + 1])[0]
        for j, (start, stop) in enumerate(bounds)
    ]


def _at(site: KernelSite, row: Sequence[Value], k: Value) -> list[Value]:
    """Position k of a row."""
    axis = site.attrs[0]
    return [*row[:axis], k, *row[axis:]]


running_sum = Running("add", operator.add, 0, "iufc").run
running_product = Running("mul", operator.mul, 1, "iu").run  # of floats, blocks would overflow
running_logsumexp = Running("none", logaddexp, -math.inf, "").run
