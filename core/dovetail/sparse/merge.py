"""Union and intersection of the positions of several sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence

import dovetail as dt
from dovetail.extend import gather_at, rows_at

from .pattern import Pattern
from .sparse_ops import merge_keys
from .tensor import COO

Tensor = dt.Tensor


def union(tensors: Sequence[COO]) -> tuple[Pattern, list[Tensor]]:
    """Return the union of the tensors' positions, and the values of each tensor there or 0.

    The tensors must be coalesced and of one shape. One host read for each tensor but the first: the
    number of positions.
    """
    first, *others = tensors
    pattern = first.pattern
    entries: list[Tensor | None] = [None]  # for each tensor, its entry at each position; -1: none
    for x in others:
        if x.pattern is pattern:
            entries.append(None)
            continue
        pattern, old, new = _merge_patterns(pattern, x.pattern)
        entries = [old if at is None else _compose(at, old) for at in entries]
        entries.append(new)
    values = [x.values() for x in tensors]
    return pattern, [
        v if at is None else _gather_or_zero(v, at) for v, at in zip(values, entries, strict=True)
    ]


def _compose(at: Tensor, indices: Tensor) -> Tensor:
    """Return `at[indices]`, and -1 where an index is negative."""
    if not at.shape[0]:
        return dt.zeros_like(indices) - 1
    return dt.where(indices < 0, -1, rows_at(at, dt.maximum(indices, 0)))


def _gather_or_zero(values: Tensor, at: Tensor) -> Tensor:
    """Return the values at the indices `at`, and 0 where an index is negative."""
    column = at.reshape(at.shape[0], *(1,) * (values.ndim - 1))
    if not values.shape[0]:
        return dt.zeros((at.shape[0], *values.shape[1:]), dtype=values.dtype, device=values.device)
    axes = (-1, *range(1, values.ndim))
    gathered = gather_at(values, {0: dt.maximum(column, 0)}, (at.shape[0], *values.shape[1:]), axes)
    zero = False if values.dtype is dt.bool else 0
    return dt.where(column < 0, zero, gathered)


def _merge_patterns(p: Pattern, q: Pattern) -> tuple[Pattern, Tensor, Tensor]:
    """Return the union pattern, and for each of its positions the entry of p and of q, or -1."""
    if not p.count or not q.count:
        nonempty = q if q.count else p
        entry = dt.arange(nonempty.count, device=p.device)
        return nonempty, *(
            (dt.zeros_like(entry) - 1, entry) if q.count else (entry, entry - 1 - entry)
        )
    mine, theirs = p.keys(), q.keys()
    if len(mine) > 1:
        return _union_by_sorting(p, q)
    both = merge_keys(mine[0], theirs[0])
    dt.evaluate(both)
    old, new = both[0], both[1]
    coords = [_select(a, b, old, new) for a, b in zip(p.coords, q.coords, strict=True)]
    dt.evaluate(*coords)
    joint = Pattern(coords, p.shape, both.shape[1], p.device, unsorted_dims=0, unique=True)
    return joint, old, new


def _select(a: Tensor, b: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Return `a[old]`, or `b[new]` where `old` is negative."""
    return dt.where(old < 0, rows_at(b, dt.maximum(new, 0)), rows_at(a, dt.maximum(old, 0)))


def _union_by_sorting(p: Pattern, q: Pattern) -> tuple[Pattern, Tensor, Tensor]:
    """Return `_merge_patterns` for shapes whose positions do not fit one int64 key."""
    both = Pattern(
        [dt.concat([a, b]) for a, b in zip(p.coords, q.coords, strict=True)],
        p.shape,
        p.count + q.count,
        p.device,
    )
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
    """Return the positions at which both tensors have an entry, and the values of each there.

    The tensors must be coalesced and of one shape. One host read: the number of positions.
    """
    x, y = tensors
    if x.pattern is y.pattern:
        return x.pattern, [x.values(), y.values()]
    swapped = x.nnz > y.nnz
    few, many = (y, x) if swapped else (x, y)
    at, match = matching_entries(few.pattern, many.pattern)
    pattern = few.pattern.select(at)
    values = [rows_at(few.values(), at), rows_at(many.values(), match)]
    return pattern, values[::-1] if swapped else values


def matching_entries(p: Pattern, q: Pattern) -> tuple[Tensor, Tensor]:
    """Return the pairs of entries of two coalesced patterns at one position; one host read."""
    nothing = dt.zeros(0, dtype=dt.int64, device=p.device)
    if not p.count or not q.count:
        return nothing, nothing
    mine, theirs = p.keys(), q.keys()
    if len(mine) > 1:
        _, a, b = _merge_patterns(p, q)
        (at,) = dt.nonzero(dt.logical_and(a >= 0, b >= 0))
        return rows_at(a, at), rows_at(b, at)
    candidate = dt.minimum(dt.searchsorted(theirs[0], mine[0]), q.count - 1)
    (at,) = dt.nonzero(rows_at(theirs[0], candidate) == mine[0])
    return at, rows_at(candidate, at)
