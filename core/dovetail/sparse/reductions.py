"""Reductions; elements that are not stored count as zeros.

The result is sparse if sparse dimensions are left, else strided. argmax and argmin always give a
strided tensor. The number of entries of a sparse result depends on data: one host read.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
from dovetail.extend import DType, Op, rows_at, scatter_rows

from .construct import to_sparse
from .pattern import Pattern, linear
from .sparse_ops import Runs
from .tensor import COO, coo
from .view_rules import fully_sparse

Tensor = dt.Tensor
Shape = tuple[int, ...]


def reduction(op: Op, x: COO, axes: Shape, keepdims: bool, attrs: Any) -> Tensor:
    """Return a reduction over `axes`; COO if sparse axes stay, else strided.

    Raises: LayoutError for an op without a rule here.
    """
    rule = RULES.get(op.name)
    if rule is None:
        raise dt.LayoutError(
            f"{op.name}: has no meaning for the layout sparse_coo; convert it with x.to_dense()"
        )
    _, dtype = op.dtypes(op.name, [x.dtype], attrs)
    result: Tensor = rule(op, x.coalesce(), axes, dtype)
    if not keepdims:
        return result
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return result.reshape(shape)


def _split_axes(x: COO, axes: Shape) -> tuple[Shape, Shape]:
    """Return the reduced sparse axes, and the reduced axes of the values."""
    dims = x.sparse_dim()
    return tuple(d for d in axes if d < dims), tuple(d - dims + 1 for d in axes if d >= dims)


def _reduces_all_sparse_axes(p: Pattern, reduced_axes: Shape) -> bool:
    """Return True if no sparse axis is left."""
    return len(reduced_axes) == len(p.shape)


def _is_empty_reduction(x: COO, axes: Shape) -> bool:
    """Return True if an axis of size 0 is reduced."""
    return not math.prod(x.shape[d] for d in axes)


def _reduce_empty(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the result over no elements; COO if sparse axes stay, else strided.

    All elements are stored, because prod and all are 1, and mean is NaN.
    """
    blank = dt.zeros(x.shape, dtype=x.dtype, device=x.pattern.device)  # without elements
    result = _REDUCTIONS[op.name](blank, axis=axes).astype(dtype, copy=False)
    left = sum(d not in axes for d in range(x.sparse_dim()))
    return to_sparse(result, left) if left else result


# --- sum, and reductions by sums -----------------------------------------------------------------


def _sum_of(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the sum over `axes`, as a rule of RULES; COO if sparse axes stay, else strided."""
    return _sum(x, axes, dtype)


def _sum(x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the sum over `axes`; COO if sparse axes stay, else strided."""
    reduced_axes, inner = _split_axes(x, axes)
    p, values = x.pattern, x.values()
    values = values if values.dtype is dtype else values.astype(dtype)
    if inner:
        values = dt.sum(values, axis=inner, dtype=dtype)
    if _reduces_all_sparse_axes(p, reduced_axes):
        return dt.sum(values, axis=0, dtype=dtype)
    if not reduced_axes or not p.count:
        return coo(p, values) if not reduced_axes else _empty_result(p, reduced_axes, values)
    runs, pattern = p.reduce_axes(reduced_axes)
    return coo(pattern, runs.combine("sum", values))


def _empty_result(p: Pattern, reduced_axes: Shape, values: Tensor) -> COO:
    """Return a COO tensor without entries for the axes that are left."""
    left = [d for d in range(len(p.shape)) if d not in reduced_axes]
    shape = tuple(p.shape[d] for d in left)
    return coo(Pattern([p.coords[d] for d in left], shape, 0, p.device), values)


def _mean(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the mean over `axes`, of sums in the compute dtype; COO if sparse axes stay."""
    n = math.prod(x.shape[d] for d in axes)
    if not n:
        return _reduce_empty(op, x, axes, dtype)
    total = _sum(x, axes, dtype.compute)
    return (total / float(n)).astype(dtype, copy=False)


def _count_nonzero(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the number of values over `axes` that are not 0; COO if sparse axes stay."""
    return _sum(coo(x.pattern, dt.not_equal(x.values(), 0)), axes, dtype)


def variance(x: COO, axes: Shape, correction: float, keepdims: bool) -> Tensor:
    """Return the variance over `axes`, divided by n - correction; COO if sparse axes stay.

    A zero that is not stored contributes the square of the mean. Computed in float32 or wider.
    """
    x = x.coalesce()
    wide = coo(x.pattern, _widen(x.values()))
    n = math.prod(x.shape[d] for d in axes)
    left = n - correction
    squares = _sum_squared_distances(wide, axes, n)
    if left > 0:
        result: Tensor = squares / left
    elif isinstance(squares, COO):  # 0 / 0 at positions that are not stored
        result = to_sparse(squares.to_dense() / 0.0, squares.sparse_dim())
    else:
        result = squares / 0.0
    shape = tuple(1 if d in axes else m for d, m in enumerate(x.shape))
    return result.reshape(shape) if keepdims else result


def _widen(values: Tensor) -> Tensor:
    """Return values as the compute dtype of floats and complex, else as float32."""
    d = values.dtype
    return values.astype(d.compute if d.kind in "fc" else dt.float32, copy=False)


def _sum_squared_distances(x: COO, axes: Shape, n: int) -> Tensor:
    """Return the sums of the squared distances from the means; COO if sparse axes stay."""
    reduced_axes, inner = _split_axes(x, axes)
    p, values = x.pattern, x.values()
    if not n or not p.count:
        squares = _abs_squared(values)
        return _sum(coo(p, squares), axes, squares.dtype)
    if not reduced_axes:
        distance = values - dt.mean(values, axis=inner, keepdims=True)
        return coo(p, dt.sum(_abs_squared(distance), axis=inner))
    blocks = math.prod(p.shape[d] for d in reduced_axes)
    total = dt.sum(values, axis=inner, keepdims=True) if inner else values
    if _reduces_all_sparse_axes(p, reduced_axes):
        mean = dt.sum(total, axis=0, keepdims=True) / float(n)
        stored = dt.sum(_abs_squared(values - mean), axis=(0, *inner))
        absent = (blocks - p.count) * (n // blocks)
        per_zero = _abs_squared(mean).reshape(stored.shape)
        return stored + per_zero * float(absent) if absent else stored
    runs, pattern = p.reduce_axes(reduced_axes)
    mean = runs.combine("sum", total) / float(n)
    distance = _abs_squared(values - rows_at(mean, runs.owners()))
    stored = runs.combine("sum", dt.sum(distance, axis=inner) if inner else distance)
    counts = runs.combine("sum", dt.ones(p.count, dtype=dt.int64, device=p.device))
    per_zero = _abs_squared(mean).reshape(stored.shape)
    gaps = ((blocks - counts) * (n // blocks)).reshape(-1, *(1,) * (stored.ndim - 1))
    gaps = gaps.astype(per_zero.dtype)
    return coo(pattern, stored + dt.where(gaps > 0, per_zero * gaps, 0))


def _abs_squared(values: Tensor) -> Tensor:
    """Return the squares of absolute values."""
    if values.dtype.kind != "c":
        return dt.square(values)
    return dt.real(values * dt.conj(values))


# --- reductions that missing zeros change --------------------------------------------------------


def _prod(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the product over `axes`, 0 where an element is not stored; COO if sparse axes stay."""
    values = x.values() if x.dtype is dtype else x.values().astype(dtype)
    return _reduce_with_zeros(op, coo(x.pattern, values), axes, lambda v: v * 0)


def _extreme(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the maximum or minimum over `axes`, with missing zeros; COO if sparse axes stay."""
    with_zero = dt.maximum if op.name == "max" else dt.minimum
    zero = False if x.dtype is dt.bool else 0
    return _reduce_with_zeros(op, x, axes, lambda v: with_zero(v, zero))


def _any(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return True where a stored element over `axes` is not 0; COO if sparse axes stay."""
    return _reduce_with_zeros(op, _as_nonzero_mask(x), axes, lambda v: v)


def _all(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return True where all elements over `axes` are stored and not 0; COO if sparse axes stay."""
    return _reduce_with_zeros(op, _as_nonzero_mask(x), axes, lambda v: dt.logical_and(v, False))


def _as_nonzero_mask(x: COO) -> COO:
    """Return a bool tensor of the same entries, True where a value is not 0."""
    return coo(x.pattern, x.values() if x.dtype is dt.bool else dt.not_equal(x.values(), 0))


_SEGMENT_OPS = {"prod": "prod", "max": "max", "min": "min", "any": "max", "all": "min"}
_REDUCTIONS: dict[str, Any] = {
    "prod": dt.prod,
    "max": dt.max,
    "min": dt.min,
    "any": dt.any,
    "all": dt.all,
    "mean": dt.mean,
}


def _reduce_with_zeros(op: Op, x: COO, axes: Shape, with_zero: Any) -> Tensor:
    """Return the reduction of stored values and of missing zeros; COO if sparse axes stay.

    `with_zero`: combines a value with 0.
    """
    reduced_axes, inner = _split_axes(x, axes)
    p, values = x.pattern, x.values()
    if _is_empty_reduction(x, axes):
        return _reduce_empty(op, x, axes, values.dtype)
    if inner:
        values = _REDUCTIONS[op.name](values, axis=inner)
    if not reduced_axes:
        return coo(p, values)
    n = math.prod(p.shape[d] for d in reduced_axes)
    if _reduces_all_sparse_axes(p, reduced_axes):
        return _reduce_all(op, values, p.count, n, with_zero)
    if not p.count:
        return _empty_result(p, reduced_axes, values)
    runs, pattern = p.reduce_axes(reduced_axes)
    reduced = runs.combine(_SEGMENT_OPS[op.name], values)
    ones = dt.ones(p.count, dtype=dt.int64, device=p.device)
    counts = runs.combine("sum", ones).reshape(reduced.shape[0], *(1,) * (reduced.ndim - 1))
    return coo(pattern, dt.where(counts < n, with_zero(reduced), reduced))


def _reduce_all(op: Op, values: Tensor, count: int, n: int, with_zero: Any) -> Tensor:
    """Return the strided reduction over all sparse axes, with 0 if an element is missing."""
    if not count and n:
        return dt.zeros(values.shape[1:], dtype=values.dtype, device=values.device)
    reduced = _REDUCTIONS[op.name](values, axis=0)
    result: Tensor = with_zero(reduced) if count < n else reduced
    return result


# --- argmax and argmin ---------------------------------------------------------------------------


def _arg_extreme(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Return the first position of the extreme, also of a missing zero, as a strided tensor."""
    x = fully_sparse(x)
    p = x.pattern
    left = tuple(d for d in range(x.ndim) if d not in axes)
    outer, n = tuple(p.shape[d] for d in left), math.prod(p.shape[d] for d in axes)
    total = math.prod(outer)
    result = dt.zeros(total, dtype=dt.int64, device=p.device)
    if not p.count or not total:
        return result.reshape(outer)
    runs, pattern = p.reduce_axes(axes)
    where = linear([p.coords[d] for d in axes], [p.shape[d] for d in axes], p)
    first = _first_extremes(op, x.values(), where, runs, n)
    return scatter_rows(result, first, linear(pattern.coords, outer, pattern)).reshape(outer)


def _first_extremes(op: Op, values: Tensor, positions: Tensor, runs: Runs, n: int) -> Tensor:
    """Return the first position of each run's extreme, missing zeros included; NaN is extreme."""
    values = values.astype(dt.uint8) if values.dtype is dt.bool else values
    top = runs.combine("max" if op.name == "argmax" else "min", values)
    owner = runs.owners()
    best = rows_at(top, owner)
    here = dt.equal(values, best)
    if values.dtype.kind == "f":
        here = dt.logical_or(here, dt.isnan(values))
    entry_position = runs.combine("min", dt.where(here, positions, n))
    gap = _first_gap(positions, runs, owner)
    beats = dt.greater(0, top) if op.name == "argmax" else dt.less(0, top)
    ties = dt.logical_and(dt.equal(top, 0), gap < entry_position)
    gap_wins = dt.logical_and(gap < n, dt.logical_or(beats, ties))
    return dt.where(gap_wins, gap, entry_position)


def _first_gap(positions: Tensor, runs: Runs, owner: Tensor) -> Tensor:
    """Return the first missing position of each run: the first k with the k-th entry beyond k."""
    order = runs.order
    ascending = positions if order is None else rows_at(positions, order)
    owners = owner if order is None else rows_at(owner, order)
    rank = dt.arange(positions.shape[0], device=positions.device) - rows_at(runs.starts, owners)
    counts = runs.combine("sum", dt.ones_like(positions))
    late = dt.where(ascending > rank, rank, rows_at(counts, owners))
    return Runs(runs.starts, None, runs.entries).combine("min", late)


RULES: dict[str, Any] = {
    "sum": _sum_of,
    "mean": _mean,
    "count_nonzero": _count_nonzero,
    "prod": _prod,
    "max": _extreme,
    "min": _extreme,
    "any": _any,
    "all": _all,
    "argmax": _arg_extreme,
    "argmin": _arg_extreme,
}
