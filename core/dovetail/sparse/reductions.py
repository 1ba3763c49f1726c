"""Reductions, with what is not stored counted as the zeros that it is.

Where sparse dimensions are left the result is sparse, else strided. argmax and argmin always give a
strided tensor. How many entries a sparse result has depends on data: one host read.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
from dovetail.extend import DType, Op, rows_at, scatter_rows

from .construct import to_sparse
from .moves import fully_sparse
from .pattern import Pattern, linear
from .rows import Runs
from .tensor import COO, coo

Tensor = dt.Tensor
Shape = tuple[int, ...]


def reduction(op: Op, x: COO, axes: Shape, keepdims: bool, attrs: Any) -> Tensor:
    """A reduction over `axes`. Raises: LayoutError for one without a rule here."""
    rule = RULES.get(op.name)
    if rule is None:
        raise dt.LayoutError(
            f"{op.name}: has no meaning for the layout sparse_coo; convert it with x.to_dense()"
        )
    _, dtype = op.dtypes(op.name, [x.dtype], attrs)
    result: Tensor = rule(op, x.coalesce(), axes, dtype)
    if not keepdims:
        return result
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return result.reshape(kept)


def _parted(x: COO, axes: Shape) -> tuple[Shape, Shape]:
    """Reduced sparse axes, and reduced axes of the values."""
    dims = x.sparse_dim()
    return tuple(d for d in axes if d < dims), tuple(d - dims + 1 for d in axes if d >= dims)


def _is_everything(p: Pattern, gone: Shape) -> bool:
    return len(gone) == len(p.shape)


def _is_of_nothing(x: COO, axes: Shape) -> bool:
    return not math.prod(x.shape[d] for d in axes)


def _of_nothing(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """Of nothing, prod and all are 1 and mean is NaN: every entry of the result is stored."""
    blank = dt.zeros(x.shape, dtype=x.dtype, device=x.pattern.device)  # without elements
    made = _REDUCTIONS[op.name](blank, axis=axes).astype(dtype, copy=False)
    left = sum(d not in axes for d in range(x.sparse_dim()))
    return to_sparse(made, left) if left else made


# --- sum, and what is made of it -----------------------------------------------------------------


def _sum_of(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    return _sum(x, axes, dtype)


def _sum(x: COO, axes: Shape, dtype: DType) -> Tensor:
    gone, inner = _parted(x, axes)
    p, values = x.pattern, x.values()
    values = values if values.dtype is dtype else values.astype(dtype)
    if inner:
        values = dt.sum(values, axis=inner, dtype=dtype)
    if _is_everything(p, gone):
        return dt.sum(values, axis=0, dtype=dtype)
    if not gone or not p.count:
        return coo(p, values) if not gone else _nothing(p, gone, values)
    runs, pattern = p.without(gone)
    return coo(pattern, runs.combined("sum", values))


def _nothing(p: Pattern, gone: Shape, values: Tensor) -> COO:
    left = [d for d in range(len(p.shape)) if d not in gone]
    shape = tuple(p.shape[d] for d in left)
    return coo(Pattern([p.coords[d] for d in left], shape, 0, p.device), values)


def _mean(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    n = math.prod(x.shape[d] for d in axes)
    if not n:
        return _of_nothing(op, x, axes, dtype)
    total = _sum(x, axes, dtype.compute)
    return (total / float(n)).astype(dtype, copy=False)


def _count_nonzero(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    return _sum(coo(x.pattern, dt.not_equal(x.values(), 0)), axes, dtype)


def variance(x: COO, axes: Shape, correction: float, keepdims: bool) -> Tensor:
    """The mean of the squared distances from the mean, over n - correction.

    Those of the zeros that are not stored are the squares of the means. In float32 or wider.
    """
    x = x.coalesce()
    wide = coo(x.pattern, _wide(x.values()))
    n = math.prod(x.shape[d] for d in axes)
    left = n - correction
    found = _squares(wide, axes, n)
    if left > 0:
        result: Tensor = found / left
    elif isinstance(found, COO):  # 0 / 0 where nothing is stored
        result = to_sparse(found.to_dense() / 0.0, found.sparse_dim())
    else:
        result = found / 0.0
    kept = tuple(1 if d in axes else m for d, m in enumerate(x.shape))
    return result.reshape(kept) if keepdims else result


def _wide(values: Tensor) -> Tensor:
    d = values.dtype
    return values.astype(d.compute if d.kind in "fc" else dt.float32, copy=False)


def _squares(x: COO, axes: Shape, n: int) -> Tensor:
    """The sums of the squared distances from the means."""
    gone, inner = _parted(x, axes)
    p, values = x.pattern, x.values()
    if not n or not p.count:
        squares = _size(values)
        return _sum(coo(p, squares), axes, squares.dtype)
    if not gone:
        away = values - dt.mean(values, axis=inner, keepdims=True)
        return coo(p, dt.sum(_size(away), axis=inner))
    blocks = math.prod(p.shape[d] for d in gone)
    total = dt.sum(values, axis=inner, keepdims=True) if inner else values
    if _is_everything(p, gone):
        mean = dt.sum(total, axis=0, keepdims=True) / float(n)
        stored = dt.sum(_size(values - mean), axis=(0, *inner))
        absent = (blocks - p.count) * (n // blocks)
        rest = _size(mean).reshape(stored.shape)
        return stored + rest * float(absent) if absent else stored
    runs, pattern = p.without(gone)
    mean = runs.combined("sum", total) / float(n)
    away = _size(values - rows_at(mean, runs.owners()))
    stored = runs.combined("sum", dt.sum(away, axis=inner) if inner else away)
    counts = runs.combined("sum", dt.ones(p.count, dtype=dt.int64, device=p.device))
    rest = _size(mean).reshape(stored.shape)
    gaps = ((blocks - counts) * (n // blocks)).reshape(-1, *(1,) * (stored.ndim - 1))
    gaps = gaps.astype(rest.dtype)
    return coo(pattern, stored + dt.where(gaps > 0, rest * gaps, 0))


def _size(values: Tensor) -> Tensor:
    """Squares; of complex numbers those of their sizes."""
    if values.dtype.kind != "c":
        return dt.square(values)
    return dt.real(values * dt.conj(values))


# --- where a zero that is not stored takes part --------------------------------------------------


def _prod(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    values = x.values() if x.dtype is dtype else x.values().astype(dtype)
    return _with_zeros(op, coo(x.pattern, values), axes, lambda v: v * 0)


def _extreme(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    with_zero = dt.maximum if op.name == "max" else dt.minimum
    zero = False if x.dtype is dt.bool else 0
    return _with_zeros(op, x, axes, lambda v: with_zero(v, zero))


def _any(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    return _with_zeros(op, _truth(x), axes, lambda v: v)


def _all(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    return _with_zeros(op, _truth(x), axes, lambda v: dt.logical_and(v, False))


def _truth(x: COO) -> COO:
    return coo(x.pattern, x.values() if x.dtype is dt.bool else dt.not_equal(x.values(), 0))


_SEGMENTED = {"prod": "prod", "max": "max", "min": "min", "any": "max", "all": "min"}
_REDUCTIONS: dict[str, Any] = {
    "prod": dt.prod, "max": dt.max, "min": dt.min, "any": dt.any, "all": dt.all, "mean": dt.mean,
}  # fmt: skip


def _with_zeros(op: Op, x: COO, axes: Shape, with_zero: Any) -> Tensor:
    """The values of each run reduced, and put together with a zero where one is not stored."""
    gone, inner = _parted(x, axes)
    p, values = x.pattern, x.values()
    if _is_of_nothing(x, axes):
        return _of_nothing(op, x, axes, values.dtype)
    if inner:
        values = _REDUCTIONS[op.name](values, axis=inner)
    if not gone:
        return coo(p, values)
    n = math.prod(p.shape[d] for d in gone)
    if _is_everything(p, gone):
        return _of_all(op, values, p.count, n, with_zero)
    if not p.count:
        return _nothing(p, gone, values)
    runs, pattern = p.without(gone)
    found = runs.combined(_SEGMENTED[op.name], values)
    ones = dt.ones(p.count, dtype=dt.int64, device=p.device)
    counts = runs.combined("sum", ones).reshape(found.shape[0], *(1,) * (found.ndim - 1))
    return coo(pattern, dt.where(counts < n, with_zero(found), found))


def _of_all(op: Op, values: Tensor, count: int, n: int, with_zero: Any) -> Tensor:
    if not count and n:
        return dt.zeros(values.shape[1:], dtype=values.dtype, device=values.device)
    found = _REDUCTIONS[op.name](values, axis=0)
    result: Tensor = with_zero(found) if count < n else found
    return result


# --- places --------------------------------------------------------------------------------------


def _place(op: Op, x: COO, axes: Shape, dtype: DType) -> Tensor:
    """The first place of the extreme: of an entry, or of the first zero that is not stored."""
    x = fully_sparse(x)
    p = x.pattern
    left = tuple(d for d in range(x.ndim) if d not in axes)
    outer, n = tuple(p.shape[d] for d in left), math.prod(p.shape[d] for d in axes)
    total = math.prod(outer)
    result = dt.zeros(total, dtype=dt.int64, device=p.device)
    if not p.count or not total:
        return result.reshape(outer)
    runs, pattern = p.without(axes)
    where = linear([p.coords[d] for d in axes], [p.shape[d] for d in axes], p)
    found = _first_of_runs(op, x.values(), where, runs, n)
    return scatter_rows(result, found, linear(pattern.coords, outer, pattern)).reshape(outer)


def _first_of_runs(op: Op, values: Tensor, where: Tensor, runs: Runs, n: int) -> Tensor:
    values = values.astype(dt.uint8) if values.dtype is dt.bool else values
    top = runs.combined("max" if op.name == "argmax" else "min", values)
    owner = runs.owners()
    best = rows_at(top, owner)
    here = dt.equal(values, best)
    if values.dtype.kind == "f":
        here = dt.logical_or(here, dt.isnan(values))
    place = runs.combined("min", dt.where(here, where, n))
    gap = _first_gap(where, runs, owner)
    beats = dt.greater(0, top) if op.name == "argmax" else dt.less(0, top)
    ties = dt.logical_and(dt.equal(top, 0), gap < place)
    takes = dt.logical_and(gap < n, dt.logical_or(beats, ties))
    return dt.where(takes, gap, place)


def _first_gap(where: Tensor, runs: Runs, owner: Tensor) -> Tensor:
    """The first place of each run that is not stored: where the k-th entry stands beyond k."""
    order = runs.order
    ascending = where if order is None else rows_at(where, order)
    owners = owner if order is None else rows_at(owner, order)
    rank = dt.arange(where.shape[0], device=where.device) - rows_at(runs.starts, owners)
    counts = runs.combined("sum", dt.ones_like(where))
    late = dt.where(ascending > rank, rank, rows_at(counts, owners))
    return Runs(runs.starts, None, runs.entries).combined("min", late)


RULES: dict[str, Any] = {
    "sum": _sum_of, "mean": _mean, "count_nonzero": _count_nonzero, "prod": _prod, "max": _extreme,
    "min": _extreme, "any": _any, "all": _all, "argmax": _place, "argmin": _place,
}  # fmt: skip
