"""What picks or orders entries: `nonzero`, `tril` and `triu`, `sort`."""

from __future__ import annotations

import math

import dovetail as dt
from dovetail.extend import rows_at

from .moves import fully_sparse
from .pattern import Pattern, stacked
from .tensor import COO, coo

Tensor = dt.Tensor


def nonzero(x: COO) -> Tensor:
    """The positions of what is not zero, (dimensions, how many), in row-major order.

    One host read: how many. Entries that are stored and zero are left out.
    """
    x = fully_sparse(x).coalesce()
    there = x.values() if x.dtype is dt.bool else dt.not_equal(x.values(), 0)
    (at,) = dt.nonzero(there)
    return stacked(x.pattern.chosen(at).coords, at.shape[0], x.device)


def triangle(x: COO, k: int, upper: bool) -> COO:
    """The entries on one side of the k-th diagonal of the last two axes, and on it.

    One host read: how many.
    """
    if x.dense_dim() >= 2:
        return coo(x.pattern, (dt.triu if upper else dt.tril)(x.values(), k))
    x = fully_sparse(x)
    p = x.pattern
    apart = p.coords[-1] - p.coords[-2]
    (at,) = dt.nonzero(apart >= k if upper else apart <= k)
    return coo(p.chosen(at), rows_at(x.values(), at))


def sort(x: COO, axis: int, descending: bool) -> COO:
    """The elements along an axis in order, those that are not stored among them as zeros.

    What is below zero comes to the beginning of the axis and what is above it to the end, or, where
    `descending`, the other way round; NaN to the end. As many entries are stored as before.
    """
    x = x.coalesce()
    if axis >= x.sparse_dim():
        at = axis - x.sparse_dim() + 1
        return coo(x.pattern, dt.sort(x.values(), at, descending=descending))
    x = fully_sparse(x)
    p, values = x.pattern, x.values()
    if not p.count:
        return x
    kept = [d for d in range(x.ndim) if d != axis]
    order = dt.argsort(values.detach(), descending=descending)
    group = p.key(kept) if kept else dt.zeros_like(order)
    if math.prod(p.shape[d] for d in kept) > 1:
        whole = p.chosen(order).order_by(kept)
        order = rows_at(order, whole)
    group, values = rows_at(group, order), rows_at(values, order)
    place = _places(group, values, p.shape[axis], descending)
    coords = [place if d == axis else rows_at(r, order) for d, r in enumerate(p.coords)]
    last = axis == x.ndim - 1
    pattern = Pattern(
        coords, p.shape, p.count, p.device, unsorted_dims=0 if last else None, unique=True
    )
    return coo(pattern, values)


def _places(group: Tensor, values: Tensor, n: int, descending: bool) -> Tensor:
    """Where ordered values of ascending groups stand along an axis of `n` elements."""
    low = dt.searchsorted(group, group)
    high = dt.searchsorted(group, group, side="right")
    rank = dt.arange(group.shape[0], device=group.device) - low
    if values.dtype is dt.bool:
        first = values if descending else dt.logical_not(values)
    else:
        first = values > 0 if descending else values < 0
    return dt.where(first, rank, rank + (n - (high - low)))
