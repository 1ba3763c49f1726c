"""Running sums, products and extremes: kernels of `cumulative_sum` and its relatives.

A running sum along an axis is computed in blocks of 256 elements. Within a block, element comes
after element. A block starts from the sum of the earlier blocks in its group of 256 blocks, and a
group from that of the earlier groups. So rows are short for every device, for any length, and
errors grow with the number of blocks, not of elements. A row of one block is plain, one after the
other.

That order defines the results for floats, for each of the three plans: rows of one block, or
combinations that are not cut; many rows, each by one point; and few long rows. Blocks of long rows
are summed first, then the sums run from block to block, and then each block continues from the sum
before it. Integers wrap, so that any order gives the same bits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..dtypes import DType, int64
from ..ir.language import (
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
from .arithmetic import maximum, minimum
from .elementary import logaddexp
from .kernel_context import KernelSite, Launches, LoopStep

# elements of a block, and blocks of a group: it defines the results for floats
BLOCK_ELEMENTS = 1 << 8
# a row of fewer elements, divided by the device's concurrency, is not cut
SPLIT_ROW_ELEMENTS_MIN = 1 << 14
ROWS_PER_UNIT_MIN = 4  # with so many rows for each unit of concurrency, rows are not cut
INTERLEAVED_BLOCKS = 4  # blocks that a point interleaves, since one addition waits for another
POINTS_PER_UNIT_MIN = 16  # points for each unit of concurrency that are enough to interleave blocks


class ScanOp(NamedTuple):
    """A running combination, which adds its launches.

    The op's attrs: (axis, True if the initial value comes first, dtype).
    """

    combine: str
    rule: Callable[[Value, Value], Value]
    initial: Callable[[DType], float]  # the neutral element of a dtype
    blocked_kinds: str  # kinds of dtypes whose rows are computed in blocks

    def add_launches(self, launches: Launches) -> None:
        """Add the launches of the op: one, or several for few long rows."""
        name, (axis, *_) = launches.op.name, launches.attrs
        shape, kind = launches.shape(0), launches.dtype(0).kind
        n, units = shape[axis], launches.concurrency
        rows = math.prod(shape) // max(n, 1)
        if n <= BLOCK_ELEMENTS or kind not in self.blocked_kinds:
            launches.launch(name, self._scan_row, 0, launches.result)
        elif (
            n >= max(4 * BLOCK_ELEMENTS, SPLIT_ROW_ELEMENTS_MIN // units)
            and rows < ROWS_PER_UNIT_MIN * units
        ):
            self._scan_in_launches(launches, n)
        else:
            build_row = self._scan_row if kind in "iu" else self._scan_row_in_blocks
            launches.launch(name, build_row, 0, launches.result)

    def _neutral(self, d: DType) -> Value:
        """Return the neutral element as a constant."""
        return const(self.initial(d), d)

    def _initial_value(self, site: KernelSite) -> Value:
        """Return the neutral element in the compute dtype."""
        return self._neutral(site.casts[0].compute)

    def _store_initial(self, site: KernelSite, row: Sequence[Value]) -> None:
        """Add the store of the neutral element at position 0, if attrs include it."""
        if site.attrs[1]:
            site.store(self._initial_value(site), *_position(site, row, const(0, int64)))

    def _combine_next(
        self, site: KernelSite, row: Sequence[Value], k: Value, total: Value
    ) -> Value:
        """Return the combination up to an element, given the one before it."""
        return self.rule(total, site.read(0, *_position(site, row, k)))

    def _create_store(
        self, site: KernelSite, row: Sequence[Value], k: Value, total: Value
    ) -> Effect:
        """Return the store of a total at position `k`, or at k + 1 after an initial value."""
        return site.stored(total, *_position(site, row, k + int(site.attrs[1])))

    # --- a row by one point

    def _declare_row(self, site: KernelSite) -> list[Value]:
        """Add the grid axes but the scanned one; return their indices. Store any initial value."""
        axes = [d for d in range(site.rank(-1)) if d != site.attrs[0]]
        row = [site.axis(-1, d) for d in axes]
        self._store_initial(site, row)
        return row

    def _scan_row(self, site: KernelSite) -> None:
        """Build the kernel that scans a row, one element after the other."""
        row = self._declare_row(site)

        def step(k: Value, total: Value) -> LoopStep:
            """Return the total up to element `k`, and its store."""
            total = self._combine_next(site, row, k, total)
            return (total,), [self._create_store(site, row, k, total)]

        n = site.size(0, site.attrs[0])
        site.builder.effect(fold_loop(0, n, (self._initial_value(site),), step))

    def _scan_row_in_blocks(self, site: KernelSite) -> None:
        """Build the kernel that scans a row, one block after the other."""
        row, first = self._declare_row(site), self._initial_value(site)
        n = site.size(0, site.attrs[0])

        def block(b: Value, groups: Value, blocks: Value) -> LoopStep:
            """Carry the sums before the group, and before the block in it, from block to block."""
            anew = eq(rem(b, BLOCK_ELEMENTS), 0)
            groups = where(anew, self.rule(groups, blocks), groups)
            blocks = where(anew, first, blocks)
            before = self.rule(groups, blocks)

            def step(k: Value, total: Value) -> LoopStep:
                """Return the block's total up to element `k`, and the row's store."""
                total = self._combine_next(site, row, k, total)
                return (total,), [self._create_store(site, row, k, self.rule(before, total))]

            start, stop = _block_bounds(b, n)
            inside = fold_loop(start, stop, (first,), step)
            return (groups, self.rule(blocks, inside.results[0])), [inside]

        count = quo(n + (BLOCK_ELEMENTS - 1), BLOCK_ELEMENTS)
        site.builder.effect(fold_loop(0, count, (first, first), block))

    # --- in several launches

    def _scan_in_launches(self, launches: Launches, n: int) -> None:
        """Add the launches that scan few long rows."""
        shape, (axis, *_) = launches.shape(0), launches.attrs
        rows = (*shape[:axis], *shape[axis + 1 :])
        dtype, name = launches.dtype(0).compute, launches.op.name
        counts = [-(-n // BLOCK_ELEMENTS)]
        if counts[0] > BLOCK_ELEMENTS:
            counts.append(-(-counts[0] // BLOCK_ELEMENTS))
        blocks, *groups = (launches.temporary(dtype, (*rows, count)) for count in counts)
        many = (
            math.prod(rows) * counts[0]
            >= INTERLEAVED_BLOCKS * POINTS_PER_UNIT_MIN * launches.concurrency
        )
        chains = INTERLEAVED_BLOCKS if many and dtype.kind not in "iu" else 1
        launches.launch(f"{name}_of_blocks", self._block_sums(axis, counts[0], chains), 0, blocks)
        for g in groups:
            launches.launch(
                f"{name}_of_groups", self._block_sums(len(rows), counts[1], 1), blocks, g
            )
            launches.launch(f"{name}_before_groups", self._exclusive_scan, g, changes=(-1,))
        launches.launch(
            f"{name}_before_blocks", self._exclusive_scan, *groups, blocks, changes=(-1,)
        )
        launches.launch(name, self._continue_blocks(counts[0], chains), 0, blocks, launches.result)

    def _block_sums(self, axis: int, count: int, chains: int) -> Callable[[KernelSite], None]:
        """Return the builder of a kernel that sums each block along an axis of operand 0."""

        def build(site: KernelSite) -> None:
            """Build the kernel that sums `chains` neighbouring blocks."""
            row = [site.axis(-1, d) for d in range(site.rank(-1) - 1)]
            at, n = site.points("points", -(-count // chains)) * chains, site.size(0, axis)

            def read_element(k: Value) -> Value:
                """Return element `k` of the row."""
                return site.read(0, *row[:axis], k, *row[axis:])

            def step(j: int, k: Value, total: Value) -> tuple[Value, Sequence[Effect]]:
                """Return the total with element `k`, and no effects."""
                return self.rule(total, read_element(k)), ()

            if site.casts[0].kind in "iu":
                totals: Sequence[Value] = reduce_loop(
                    self.combine, *_block_bounds(at, n), read_element
                )
            else:
                first = self._neutral(read_element(at).dtype)
                totals = _fold_interleaved(site, at, n, [first] * chains, step)
            for j, total in enumerate(totals):
                when = at + j < site.size(-1, len(row)) if j else None
                site.builder.effect(site.stored(total, *row, at + j, when=when))

        return build

    def _exclusive_scan(self, site: KernelSite) -> None:
        """Build the kernel that replaces each sum by the sum of those before it in its row.

        If the sums before each group are an operand, a point does a group, and continues from its
        sum.
        """
        last = site.rank(-1) - 1
        row = [site.axis(-1, d) for d in range(last)]
        start, stop, outside = const(0, int64), site.size(-1, last), None
        if site.casts:
            group = site.axis(0, last)
            start, stop = _block_bounds(group, stop)
            outside = site.read(0, *row, group)

        def step(k: Value, total: Value) -> LoopStep:
            """Return the total with element `k`, and the store of the total before it."""
            here = total if outside is None else self.rule(outside, total)
            return (self.rule(total, site.current(*row, k)),), [site.stored(here, *row, k)]

        first = self._neutral(site.current(*row, start).dtype)
        site.builder.effect(fold_loop(start, stop, (first,), step))

    def _continue_blocks(self, count: int, chains: int) -> Callable[[KernelSite], None]:
        """Return the builder of the kernel that scans each block from the sum before it."""

        def build(site: KernelSite) -> None:
            """Build the kernel that scans `chains` neighbouring blocks."""
            row = [site.axis(1, d) for d in range(site.rank(1) - 1)]
            at = site.points("points", -(-count // chains)) * chains
            self._store_initial(site, row)
            last = site.size(1, len(row)) - 1
            chosen = [at] + [where(at + j < last, at + j, last) for j in range(1, chains)]
            before = [site.read(1, *row, b) for b in chosen]

            def step(j: int, k: Value, total: Value) -> tuple[Value, Sequence[Effect]]:
                """Return the total up to element `k`, and the row's store."""
                total = self._combine_next(site, row, k, total)
                return total, [self._create_store(site, row, k, self.rule(before[j], total))]

            n = site.size(0, site.attrs[0])
            _fold_interleaved(site, at, n, [self._initial_value(site)] * chains, step)

        return build


def _block_bounds(block: Value, n: Value) -> tuple[Value, Value]:
    """Return the start and the stop of a block in a row of n."""
    start = block * BLOCK_ELEMENTS
    stop = start + BLOCK_ELEMENTS
    return start, where(stop < n, stop, n)


def _fold_interleaved(
    site: KernelSite,
    first_block: Value,
    n: Value,
    initial_totals: Sequence[Value],
    step: Callable[[int, Value, Value], tuple[Value, Sequence[Effect]]],
) -> list[Value]:
    """Add a loop over neighbouring blocks in lockstep, and return the totals of the blocks.

    The blocks share a loop as far as all of them have elements; then each has its own. `step(j, k,
    total)` gives the new total of the j-th block at element k, and effects.
    """
    bounds = [_block_bounds(first_block + j, n) for j in range(len(initial_totals))]

    def run_loop(
        start: Operand, stop: Value, which: Sequence[int], totals: Sequence[Value]
    ) -> Sequence[Value]:
        """Add a loop over the blocks `which`; return their totals at its end."""

        def steps(k: Value, *totals: Value) -> LoopStep:
            """Return the new totals and the effects of all blocks at position `k`."""
            totals_and_effects = [
                step(j, bounds[j][0] + k, t) for j, t in zip(which, totals, strict=True)
            ]
            return [t for t, _ in totals_and_effects], [
                e for _, effects in totals_and_effects for e in effects
            ]

        loop = fold_loop(start, stop, totals, steps)
        if loop.effects:
            site.builder.effect(loop)
        return loop.results

    if len(initial_totals) == 1:
        start, stop = bounds[0]
        return list(run_loop(0, stop - start, (0,), initial_totals))
    start, stop = bounds[-1]
    common = where(stop - start < BLOCK_ELEMENTS, const(0, int64), BLOCK_ELEMENTS)
    totals = run_loop(0, common, range(len(initial_totals)), initial_totals)
    return [
        run_loop(common, stop - start, (j,), totals[j : j + 1])[0]
        for j, (start, stop) in enumerate(bounds)
    ]


def _position(site: KernelSite, row: Sequence[Value], k: Value) -> list[Value]:
    """Return the indices of position k of a row."""
    axis = site.attrs[0]
    return [*row[:axis], k, *row[axis:]]


running_sum = ScanOp("add", operator.add, lambda d: 0, "iufc").add_launches
running_product = ScanOp(  # of floats, blocks would overflow
    "mul", operator.mul, lambda d: 1, "iu"
).add_launches
running_logsumexp = ScanOp("none", logaddexp, lambda d: -math.inf, "").add_launches
running_maximum = ScanOp(
    "max", maximum, lambda d: -math.inf if d.kind == "f" else d.min, "iuf"
).add_launches
running_minimum = ScanOp(
    "min", minimum, lambda d: math.inf if d.kind == "f" else d.max, "iuf"
).add_launches
