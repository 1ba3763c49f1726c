"""The ops of this layout as rows of their own, and how tensors are given to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import (
    DType,
    KernelSite,
    Op,
    RuleContext,
    Value,
    arithmetic,
    dtype_rules,
    int64,
    make_node,
    rows_at,
)

from . import kernels
from .kernels import BLOCK, WALKS

Tensor = dt.Tensor

# --- the tensors' side ---------------------------------------------------------------------------


class Runs:
    """Segments of entries: where each starts, and which entry stands where (None: in order).

    `known`: numbers of the entries, and the same in that order.
    """

    def __init__(
        self, starts: Tensor, order: Tensor | None, entries: int,
        known: tuple[tuple[Tensor, Tensor], ...] = (),
    ) -> None:  # fmt: skip
        self.starts, self.order, self.entries = starts, order, entries
        self.known = known
        self._first: Tensor | None = None  # where the first entry of each is; for `firsts`

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """What a row gets."""
        return (self.starts,) if self.order is None else (self.starts, self.order)

    def combined(self, how: str, values: Tensor, dtype: DType | None = None) -> Tensor:
        """The values of each segment combined: "sum", "prod", "max" or "min"."""
        shape = (self.starts.size, *values.shape[1:])
        return make_node(
            SEGMENTS[how], (values, *self.operands), shape, dtype or values.dtype, dtype
        )

    def firsts(self, rows: Tensor) -> Tensor:
        """What the first entry of each segment has."""
        for given, moved in self.known:
            if rows is given:
                return rows_at(moved, self.starts)
        if self._first is None:
            self._first = self.starts
            if self.order is not None:  # 0.5 M segments: two columns take 2.2 ms, 4.2 if it is not
                self._first = rows_at(self.order, self.starts)  # made first
                dt.evaluate(self._first)
        return rows_at(rows, self._first)

    def owners(self) -> Tensor:
        """For each entry its segment."""
        return make_node(OWNERS, self.operands, (self.entries,), dt.int64, self.entries)


def row_sums(values: Tensor, bounds: Tensor) -> Tensor:
    """The sum of each row's values, which start at `bounds`; there are some."""
    return make_node(ROW_SUMS, (values, bounds), (bounds.shape[0] - 1,), values.dtype, values.dtype)


def substituted(
    b: Tensor, values: Tensor, bounds: Tensor, columns: Tensor, lower: bool, unit: bool
) -> Tensor:
    """What solves a triangular system for each column of `b`, in its dtype."""
    row = SUBSTITUTIONS[lower, unit]
    return make_node(row, (b, values, bounds, columns), b.shape, b.dtype, b.dtype)


def expand(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """For each run low..high-1 of entries its (number, entry) pairs. One host read: how many."""
    if not low.shape[0]:
        return low, low
    ends = dt.cumulative_sum(high - low)
    total = int(ends[-1].item())
    pairs = make_node(EXPAND, (ends, low, high), (2, total), dt.int64)
    return pairs[0], pairs[1]


def merged(keys: Tensor, others: Tensor) -> Tensor:
    """Where each key of two ascending lists without repetition is in the first and in the second.

    Shapes: (2, different keys); -1 is nowhere. One host read: how many there are.
    """
    points = -(-(keys.shape[0] + others.shape[0]) // (BLOCK * WALKS))
    counts = make_node(MERGE_COUNTS, (keys, others), (points, WALKS), dt.int64)
    ends = dt.cumulative_sum(counts.reshape(-1))
    dt.evaluate(counts, ends)
    total = int(ends[-1].item())
    before = ends.reshape(points, WALKS) - counts
    return make_node(MERGE, (keys, others, before), (2, total), dt.int64)


# --- gradients -----------------------------------------------------------------------------------


def _runs(rest: list[Tensor], entries: int) -> Runs:
    return Runs(rest[0], rest[1] if len(rest) == 2 else None, entries)


def _sum_gradient(g: Tensor, c: RuleContext, rest: list[Tensor]) -> Tensor:
    return rows_at(g, _runs(rest, c.spec().shape[0]).owners())


def _row_sums_gradient(g: Tensor, c: RuleContext, rest: list[Tensor]) -> Tensor:
    entries = dt.arange(c.spec().shape[0], device=g.device)
    return rows_at(g, dt.searchsorted(rest[0], entries, side="right") - 1)


def _prod_gradient(g: Tensor, x: Tensor, rest: list[Tensor]) -> Tensor:
    """Where one factor is 0, only its own derivative is not; where several are, none."""
    runs = _runs(rest, x.shape[0])
    at, zero = runs.owners(), dt.equal(x, 0)
    count = runs.combined("sum", zero.astype(dt.int64))
    safe = dt.where(zero, 1.0, x)
    others = rows_at(runs.combined("prod", safe), at) / safe
    own = dt.equal(zero.astype(dt.int64), rows_at(count, at))
    return rows_at(g, at) * dt.where(own, others, 0.0)


def _extreme_gradient(g: Tensor, x: Tensor, r: Tensor, rest: list[Tensor]) -> Tensor:
    """Spread evenly over all extremes of a segment."""
    runs = _runs(rest, x.shape[0])
    at = runs.owners()
    here = dt.logical_or(dt.equal(x, rows_at(r, at)), dt.isnan(x))
    count = runs.combined("sum", here.astype(x.dtype))
    return dt.where(here, rows_at(g / count, at), 0.0)


# --- the rows ------------------------------------------------------------------------------------


def _values_and_positions(
    op: str, operands: Sequence[dtype_rules.Given], attrs: object
) -> dtype_rules.Dtypes:
    """Values in the dtype of attrs, else in their own; the other operands are positions."""
    d = attrs if isinstance(attrs, DType) else operands[0]
    assert isinstance(d, DType)
    return (d, *(int64 for _ in operands[1:])), d


def _factors_and_positions(
    op: str, operands: Sequence[dtype_rules.Given], attrs: DType
) -> dtype_rules.Dtypes:
    """Two operands of the dtype in attrs, then positions."""
    return (attrs, attrs, *(int64 for _ in operands[2:])), attrs


def _segmented(name: str, combine: Callable[[Value, Value], Value], gradient: Any) -> Op:
    return Op(f"sparse_{name}", "kernel", _values_and_positions,
              build=kernels.segments(combine), gradient=(gradient,))  # fmt: skip


def _row(
    name: str, rule: dtype_rules.DTypeRule, build: Callable[[KernelSite], None], arity: int = 1
) -> Op:
    return Op(f"sparse_{name}", "kernel", rule, build=build, arity=arity)


SUM = _segmented("sum", arithmetic.add, _sum_gradient)
ROW_SUMS = Op("sparse_row_sums", "kernel", _values_and_positions, build=kernels.row_sums,
              gradient=(_row_sums_gradient,))  # fmt: skip
PROD = _segmented("prod", arithmetic.multiply, _prod_gradient)
MAX = _segmented("max", arithmetic.maximum, _extreme_gradient)
MIN = _segmented("min", arithmetic.minimum, _extreme_gradient)
OWNERS = _row("owners", dtype_rules.integers, kernels.owners)
EXPAND = _row("spread", dtype_rules.integers, kernels.expand)
PRODUCT = _row("product", _factors_and_positions, kernels.product, 2)
SAMPLED = _row("sampled", _factors_and_positions, kernels.sampled, 2)
MERGE_COUNTS = _row("merge_counts", dtype_rules.integers, kernels.merge_counts, 2)
MERGE = _row("merge", dtype_rules.integers, kernels.merge, 3)
SUBSTITUTIONS = {
    (lower, unit): Op(
        f"sparse_{'lower' if lower else 'upper'}{'_unit' * unit}_solve", "kernel",
        _factors_and_positions, build=kernels.substitution(lower, unit), updates=True, arity=2,
    )
    for lower in (True, False) for unit in (True, False)
}  # fmt: skip
SEGMENTS = {"sum": SUM, "prod": PROD, "max": MAX, "min": MIN}
