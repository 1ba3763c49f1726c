"""Rules that select or reorder entries: `nonzero`, `tril` and `triu`, `sort`."""

from __future__ import annotations

import math

import dovetail as dt
from dovetail.extend import rows_at

from .pattern import Pattern, stack_rows
from .tensor import COO, coo
from .view_rules import fully_sparse

Tensor = dt.Tensor


def nonzero(x: COO) -> Tensor:
    """Return the positions of the nonzero elements, (dimensions, count), in row-major order.

    One host read: the count. Stored zeros are left out.
    """
    x = fully_sparse(x).coalesce()
    is_nonzero = x.values() if x.dtype is dt.bool else dt.not_equal(x.values(), 0)
    (at,) = dt.nonzero(is_nonzero)
    return stack_rows(x.pattern.select(at).coords, at.shape[0], x.device)


def triangle(x: COO, k: int, upper: bool) -> COO:
    """Select the entries on the k-th diagonal of the last two axes and on one side of it.

    One host read: the number of entries.
    """
    if x.dense_dim() >= 2:
        return coo(x.pattern, (dt.triu if upper else dt.tril)(x.values(), k))
    x = fully_sparse(x)
    p = x.pattern
    distance = p.coords[-1] - p.coords[-2]
    (at,) = dt.nonzero(distance >= k if upper else distance <= k)
    return coo(p.select(at), rows_at(x.values(), at))


def sort(x: COO, axis: int, descending: bool) -> COO:
    """Sort the elements along an axis; elements that are not stored count as zeros.

    Negative values move to the beginning of the axis and positive ones to the end, or the other way
    round if `descending`. NaN moves to the end. The number of stored entries stays the same.
    """
    x = x.coalesce()
    if axis >= x.sparse_dim():
        at = axis - x.sparse_dim() + 1
        return coo(x.pattern, dt.sort(x.values(), at, descending=descending))
    x = fully_sparse(x)
    p, values = x.pattern, x.values()
    if not p.count:
        return x
    other_axes = [d for d in range(x.ndim) if d != axis]
    order = dt.argsort(values.detach(), descending=descending)
    group = p.key(other_axes) if other_axes else dt.zeros_like(order)
    if math.prod(p.shape[d] for d in other_axes) > 1:
        by_group = p.select(order).order_by(other_axes)
        order = rows_at(order, by_group)
    group, values = rows_at(group, order), rows_at(values, order)
    position = _sorted_positions(group, values, p.shape[axis], descending)
    coords = [position if d == axis else rows_at(r, order) for d, r in enumerate(p.coords)]
    last = axis == x.ndim - 1
    pattern = Pattern(
        coords, p.shape, p.count, p.device, unsorted_dims=0 if last else None, unique=True
    )
    return coo(pattern, values)


def _sorted_positions(group: Tensor, values: Tensor, n: int, descending: bool) -> Tensor:
    """Return the positions of sorted values along an axis of `n` elements.

    `group` ascends and tells which values lie on the same line along the axis.
    """
    low = dt.searchsorted(group, group)
    high = dt.searchsorted(group, group, side="right")
    rank = dt.arange(group.shape[0], device=group.device) - low
    if values.dtype is dt.bool:
        first = values if descending else dt.logical_not(values)
    else:
        first = values > 0 if descending else values < 0
    return dt.where(first, rank, rank + (n - (high - low)))
