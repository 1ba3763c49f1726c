"""Op rows of the sparse kernels, and the functions that apply them to tensors."""

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

from . import sparse_kernels
from .sparse_kernels import MERGE_BLOCK_ENTRIES, WALKS_PER_POINT

Tensor = dt.Tensor

# --- the tensors' side ---------------------------------------------------------------------------


class Runs:
    """Segments of entries: the start of each, and the order of the entries (None: as stored).

    `reordered_keys`: pairs of a vector with a number for each entry and that vector in `order`.
    """

    def __init__(
        self,
        starts: Tensor,
        order: Tensor | None,
        entries: int,
        reordered_keys: tuple[tuple[Tensor, Tensor], ...] = (),
    ) -> None:
        self.starts, self.order, self.entries = starts, order, entries
        self.reordered_keys = reordered_keys
        self._first: Tensor | None = None  # the first entry of each segment

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The operands that the op rows of segments expect."""
        return (self.starts,) if self.order is None else (self.starts, self.order)

    def combine(self, reduction: str, values: Tensor, dtype: DType | None = None) -> Tensor:
        """Return each segment's values reduced by "sum", "prod", "max" or "min"."""
        shape = (self.starts.size, *values.shape[1:])
        return make_node(
            SEGMENTS[reduction], (values, *self.operands), shape, dtype or values.dtype, dtype
        )

    def values_of_first(self, rows: Tensor) -> Tensor:
        """Return the elements of `rows` at each segment's first entry; caches these entries."""
        for vector, moved in self.reordered_keys:
            if rows is vector:
                return rows_at(moved, self.starts)
        if self._first is None:
            self._first = self.starts
            if self.order is not None:
                # 0.5 M segments: two columns take 2.2 ms if it is evaluated once, else 4.2 ms
                self._first = rows_at(self.order, self.starts)
                dt.evaluate(self._first)
        return rows_at(rows, self._first)

    def owners(self) -> Tensor:
        """Return the segment of each entry."""
        return make_node(OWNERS, self.operands, (self.entries,), dt.int64, self.entries)


def row_sums(values: Tensor, bounds: Tensor) -> Tensor:
    """Return the sums of rows that start at `bounds`. `values` must not be empty."""
    return make_node(ROW_SUMS, (values, bounds), (bounds.shape[0] - 1,), values.dtype, values.dtype)


def substitute(
    b: Tensor, values: Tensor, bounds: Tensor, columns: Tensor, lower: bool, unit: bool
) -> Tensor:
    """Return the solutions of a triangular system for each column of `b`, unchecked."""
    row = SUBSTITUTIONS[lower, unit]
    return make_node(row, (b, values, bounds, columns), b.shape, b.dtype, b.dtype)


def expand(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pairs (run, entry) of the runs low..high-1. One host read: their number."""
    if not low.shape[0]:
        return low, low
    ends = dt.cumulative_sum(high - low)
    total = int(ends[-1].item())
    pairs = make_node(EXPAND, (ends, low, high), (2, total), dt.int64)
    return pairs[0], pairs[1]


def merge_keys(keys: Tensor, others: Tensor) -> Tensor:
    """Return the index of each key of two strictly ascending lists in the first and in the second.

    Shapes: (2, different keys); -1 if a list lacks the key. One host read: the number of keys.
    """
    points = -(-(keys.shape[0] + others.shape[0]) // (MERGE_BLOCK_ENTRIES * WALKS_PER_POINT))
    counts = make_node(MERGE_COUNTS, (keys, others), (points, WALKS_PER_POINT), dt.int64)
    ends = dt.cumulative_sum(counts.reshape(-1))
    dt.evaluate(counts, ends)
    total = int(ends[-1].item())
    before = ends.reshape(points, WALKS_PER_POINT) - counts
    return make_node(MERGE, (keys, others, before), (2, total), dt.int64)


# --- gradients: the tape passes arguments by the names of parameters -----------------------------


def _as_runs(operands: list[Tensor], entries: int) -> Runs:
    """Return the runs of an op's operands after the values."""
    return Runs(operands[0], operands[1] if len(operands) == 2 else None, entries)


def _sum_gradient(g: Tensor, c: RuleContext, rest: list[Tensor]) -> Tensor:
    """Return the gradient of segment sums: that of its segment for each entry."""
    return rows_at(g, _as_runs(rest, c.spec().shape[0]).owners())


def _row_sums_gradient(g: Tensor, c: RuleContext, rest: list[Tensor]) -> Tensor:
    """Return the gradient of row sums: that of its row for each entry."""
    entries = dt.arange(c.spec().shape[0], device=g.device)
    return rows_at(g, dt.searchsorted(rest[0], entries, side="right") - 1)


def _prod_gradient(g: Tensor, x: Tensor, rest: list[Tensor]) -> Tensor:
    """Return the gradient of a product; if one factor is 0, only its own derivative is nonzero.

    If several factors are 0, all derivatives are 0.
    """
    runs = _as_runs(rest, x.shape[0])
    at, zero = runs.owners(), dt.equal(x, 0)
    count = runs.combine("sum", zero.astype(dt.int64))
    safe = dt.where(zero, 1.0, x)
    others = rows_at(runs.combine("prod", safe), at) / safe
    own = dt.equal(zero.astype(dt.int64), rows_at(count, at))
    return rows_at(g, at) * dt.where(own, others, 0.0)


def _extreme_gradient(g: Tensor, x: Tensor, r: Tensor, rest: list[Tensor]) -> Tensor:
    """Return the gradient of max or min, spread evenly over all extremes of a segment."""
    runs = _as_runs(rest, x.shape[0])
    at = runs.owners()
    here = dt.logical_or(dt.equal(x, rows_at(r, at)), dt.isnan(x))
    count = runs.combine("sum", here.astype(x.dtype))
    return dt.where(here, rows_at(g / count, at), 0.0)


# --- the rows ------------------------------------------------------------------------------------


def _values_and_positions(
    op: str, operands: Sequence[dtype_rules.Given], attrs: object
) -> dtype_rules.Dtypes:
    """Return the dtypes: values in the dtype of attrs, or their own; then int64 positions."""
    d = attrs if isinstance(attrs, DType) else operands[0]
    assert isinstance(d, DType)
    return (d, *(int64 for _ in operands[1:])), d


def _factors_and_positions(
    op: str, operands: Sequence[dtype_rules.Given], attrs: DType
) -> dtype_rules.Dtypes:
    """Return (operands' dtypes, result's): attrs for two operands and the result, else int64."""
    return (attrs, attrs, *(int64 for _ in operands[2:])), attrs


def _segment_op(name: str, combine: Callable[[Value, Value], Value], gradient: Any) -> Op:
    """Return an op that folds the values of segments; it is not put into the table."""
    return Op(
        f"sparse_{name}",
        "kernel",
        _values_and_positions,
        build=sparse_kernels.segments(combine),
        gradient=(gradient,),
    )


def _kernel_op(
    name: str, rule: dtype_rules.DTypeRule, build: Callable[[KernelSite], None], arity: int = 1
) -> Op:
    """Return an op of one kernel, by its builder; it is not put into the table."""
    return Op(f"sparse_{name}", "kernel", rule, build=build, arity=arity)


SUM = _segment_op("sum", arithmetic.add, _sum_gradient)
ROW_SUMS = Op(
    "sparse_row_sums",
    "kernel",
    _values_and_positions,
    build=sparse_kernels.row_sums,
    gradient=(_row_sums_gradient,),
)
PROD = _segment_op("prod", arithmetic.multiply, _prod_gradient)
MAX = _segment_op("max", arithmetic.maximum, _extreme_gradient)
MIN = _segment_op("min", arithmetic.minimum, _extreme_gradient)
OWNERS = _kernel_op("owners", dtype_rules.integers, sparse_kernels.owners)
EXPAND = _kernel_op("spread", dtype_rules.integers, sparse_kernels.expand)
PRODUCT = _kernel_op("product", _factors_and_positions, sparse_kernels.product, 2)
SAMPLED_PRODUCT = _kernel_op("sampled", _factors_and_positions, sparse_kernels.sampled_product, 2)
MERGE_COUNTS = _kernel_op("merge_counts", dtype_rules.integers, sparse_kernels.merge_counts, 2)
MERGE = _kernel_op("merge", dtype_rules.integers, sparse_kernels.merge, 3)
SUBSTITUTIONS = {
    (lower, unit): Op(
        f"sparse_{'lower' if lower else 'upper'}{'_unit' * unit}_solve",
        "kernel",
        _factors_and_positions,
        build=sparse_kernels.substitution(lower, unit),
        updates=True,
        arity=2,
    )
    for lower in (True, False)
    for unit in (True, False)
}
SEGMENTS = {"sum": SUM, "prod": PROD, "max": MAX, "min": MIN}
