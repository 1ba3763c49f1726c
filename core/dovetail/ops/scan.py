"""Running sums and products: kernels of `cumulative_sum` and its like.

Along the axis one element comes after the other: that order is what floats are defined by. Integers
wrap, so that any order gives the same bits: few, long rows of them are cut into blocks. Each block
is summed, the sums run from block to block, and each block then runs on from what was before it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..dtypes import int64
from ..loops.language import Value, const, fold_loop, reduce_loop, where
from .elementary import logaddexp
from .site import KernelSite, Launches, LoopStep

LONG = 1 << 19  # elements of a row, divided by the device's concurrency, that are worth cutting
BLOCK = 1 << 8  # elements that a block has at least
ROWS_BUSY = 4  # rows for each unit that need not be cut


class Running(NamedTuple):
    """The launches of a running combination.

    The op's attrs: (axis, whether the initial value comes first, dtype).
    """

    combine: str
    rule: Callable[[Value, Value], Value]
    initial: float

    def run(self, launches: Launches) -> None:
        """Adds them."""
        shape, axis = launches.shape(0), launches.attrs[0]
        n = shape[axis]
        rows = math.prod(shape) // max(n, 1)
        units = launches.concurrency
        long = n >= max(4 * BLOCK, LONG // units) and rows < ROWS_BUSY * units
        if long and launches.dtype(0).kind in "iu":
            self._blocked(launches, n)
        else:
            launches.launch(launches.op.name, self._whole, 0, launches.result)

    def _whole(self, site: KernelSite) -> None:
        """Each row by one point."""
        axes = [d for d in range(site.rank(-1)) if d != site.attrs[0]]
        row = [site.axis(-1, d) for d in axes]
        self._begin(site, row)
        n = site.size(0, site.attrs[0])
        self._steps(site, row, const(0, int64), n, const(self.initial, site.casts[0]))

    def _begin(self, site: KernelSite, row: Sequence[Value]) -> None:
        if site.attrs[1]:
            first = const(self.initial, site.casts[0])
            site.store(first, *_at(site, row, const(0, int64)))

    def _steps(
        self, site: KernelSite, row: Sequence[Value], start: Value, stop: Value, before: Value
    ) -> None:
        shift = int(site.attrs[1])

        def step(k: Value, total: Value) -> LoopStep:
            total = self.rule(total, site.read(0, *_at(site, row, k)))
            return (total,), [site.stored(total, *_at(site, row, k + shift))]

        site.builder.effect(fold_loop(start, stop, (before,), step))

    # --- in blocks

    def _blocked(self, launches: Launches, n: int) -> None:
        shape, axis = launches.shape(0), launches.attrs[0]
        rows = (*shape[:axis], *shape[axis + 1 :])
        size = launches.block(rows, n, BLOCK)
        sums = launches.temporary(launches.dtype(0), (*rows, -(-n // size)))

        def block(site: KernelSite, table: int) -> tuple[list[Value], Value, Value]:
            """A point's place in the table of sums, and the block's start and stop."""
            at = [site.axis(table, d) for d in range(len(rows) + 1)]
            start, n = at[-1] * site.number("block", size), site.size(0, axis)
            stop = start + site.number("block", size)
            return at, start, where(stop < n, stop, n)

        def add_up(site: KernelSite) -> None:
            at, start, stop = block(site, -1)

            def value(k: Value) -> Value:
                return site.read(0, *_at(site, at[:-1], k))

            site.store(reduce_loop(self.combine, start, stop, value)[0], *at)

        def run_sums(site: KernelSite) -> None:
            """Sums of blocks become what comes before each."""
            row = [site.axis(-1, d) for d in range(len(rows))]

            def step(k: Value, before: Value) -> LoopStep:
                total = self.rule(before, site.current(*row, k))
                return (total,), [site.stored(before, *row, k)]

            first = const(self.initial, launches.dtype(0))
            site.builder.effect(fold_loop(0, site.size(-1, len(rows)), (first,), step))

        def run_on(site: KernelSite) -> None:
            at, start, stop = block(site, 1)
            self._begin(site, at[:-1])
            self._steps(site, at[:-1], start, stop, site.read(1, *at))

        name = launches.op.name
        launches.launch(f"{name}_of_blocks", add_up, 0, sums)
        launches.launch(f"{name}_before_blocks", run_sums, sums, changes=(-1,))
        launches.launch(name, run_on, 0, sums, launches.result)


def _at(site: KernelSite, row: Sequence[Value], k: Value) -> list[Value]:
    """Position k of a row."""
    axis = site.attrs[0]
    return [*row[:axis], k, *row[axis:]]


running_sum = Running("add", operator.add, 0).run
running_product = Running("mul", operator.mul, 1).run
running_logsumexp = Running("none", logaddexp, -math.inf).run  # of floats, which are never cut
