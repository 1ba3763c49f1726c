"""Bringing the entries of several sparse tensors together: union and intersection of positions."""

from __future__ import annotations

from collections.abc import Sequence

import dovetail as dt
from dovetail.extend import gather_at, rows_at

from .pattern import Pattern
from .rows import merged
from .tensor import COO

Tensor = dt.Tensor


def union(tensors: Sequence[COO]) -> tuple[Pattern, list[Tensor]]:
    """The positions at which some tensor has an entry, and the values of each there, else 0.

    The tensors are coalesced and of one shape. One host read for each but the first: how many
    positions there are.
    """
    first, *rest = tensors
    pattern = first.pattern
    places: list[Tensor | None] = [None]  # of each tensor's entries in the union; -1 for none
    for x in rest:
        if x.pattern is pattern:
            places.append(None)
            continue
        pattern, old, new = _union(pattern, x.pattern)
        places = [old if at is None else _through(at, old) for at in places]
        places.append(new)
    values = [x.values() for x in tensors]
    return pattern, [
        v if at is None else _or_zero(v, at) for v, at in zip(values, places, strict=True)
    ]


def _through(at: Tensor, further: Tensor) -> Tensor:
    """Places in one union as places in the next."""
    if not at.shape[0]:
        return dt.zeros_like(further) - 1
    return dt.where(further < 0, -1, rows_at(at, dt.maximum(further, 0)))


def _or_zero(values: Tensor, at: Tensor) -> Tensor:
    """Values at places, 0 where a place is negative."""
    column = at.reshape(at.shape[0], *(1,) * (values.ndim - 1))
    if not values.shape[0]:
        return dt.zeros((at.shape[0], *values.shape[1:]), dtype=values.dtype, device=values.device)
    axes = (-1, *range(1, values.ndim))
    there = gather_at(values, {0: dt.maximum(column, 0)}, (at.shape[0], *values.shape[1:]), axes)
    zero = False if values.dtype is dt.bool else 0
    return dt.where(column < 0, zero, there)


def _union(p: Pattern, q: Pattern) -> tuple[Pattern, Tensor, Tensor]:
    """The joint pattern, and for each of its positions the entry of p and that of q, or -1."""
    if not p.count or not q.count:
        some = q if q.count else p
        place = dt.arange(some.count, device=p.device)
        return some, *((dt.zeros_like(place) - 1, place) if q.count else (place, place - 1 - place))
    mine, theirs = p.keys(), q.keys()
    if len(mine) > 1:
        return _union_by_sorting(p, q)
    both = merged(mine[0], theirs[0])
    dt.evaluate(both)
    old, new = both[0], both[1]
    coords = [_either(a, b, old, new) for a, b in zip(p.coords, q.coords, strict=True)]
    dt.evaluate(*coords)
    joint = Pattern(coords, p.shape, both.shape[1], p.device, unsorted_dims=0, unique=True)
    return joint, old, new


def _either(a: Tensor, b: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Entries of `a` at the places `old`, of `b` at the places `new` where these are negative."""
    return dt.where(old < 0, rows_at(b, dt.maximum(new, 0)), rows_at(a, dt.maximum(old, 0)))


def _union_by_sorting(p: Pattern, q: Pattern) -> tuple[Pattern, Tensor, Tensor]:
    """`_union` for positions that no single number names."""
    both = Pattern(
        [dt.concat([a, b]) for a, b in zip(p.coords, q.coords, strict=True)],
        p.shape, p.count + q.count, p.device,
    )  # fmt: skip
    order = both.order_by(range(len(p.shape)))
    starts = both.runs(range(len(p.shape)), order).starts
    count = starts.shape[0]
    end = dt.asarray([both.count], dtype=dt.int64, device=p.device)
    # of one position there are at most two entries, that of p first
    first, last = rows_at(order, starts), rows_at(order, dt.concat([starts[1:], end]) - 1)
    coords = [rows_at(r, first) for r in both.coords]
    pattern = Pattern(coords, p.shape, count, p.device, unsorted_dims=0, unique=True)
    old = dt.where(first < p.count, first, -1)
    return pattern, old, dt.where(last >= p.count, last - p.count, -1)


def intersection(tensors: Sequence[COO]) -> tuple[Pattern, list[Tensor]]:
    """The positions at which both tensors have an entry, and the values of each there.

    The tensors are coalesced and of one shape. One host read: how many positions there are.
    """
    x, y = tensors
    if x.pattern is y.pattern:
        return x.pattern, [x.values(), y.values()]
    swapped = x.nnz > y.nnz
    few, many = (y, x) if swapped else (x, y)
    at, there = common(few.pattern, many.pattern)
    pattern = few.pattern.chosen(at)
    values = [rows_at(few.values(), at), rows_at(many.values(), there)]
    return pattern, values[::-1] if swapped else values


def common(p: Pattern, q: Pattern) -> tuple[Tensor, Tensor]:
    """The pairs of entries of two coalesced patterns at the same position, in order."""
    nothing = dt.zeros(0, dtype=dt.int64, device=p.device)
    if not p.count or not q.count:
        return nothing, nothing
    mine, theirs = p.keys(), q.keys()
    if len(mine) > 1:
        _, a, b = _union(p, q)
        (at,) = dt.nonzero(dt.logical_and(a >= 0, b >= 0))
        return rows_at(a, at), rows_at(b, at)
    place = dt.minimum(dt.searchsorted(theirs[0], mine[0]), q.count - 1)
    (at,) = dt.nonzero(rows_at(theirs[0], place) == mine[0])
    return at, rows_at(place, at)
