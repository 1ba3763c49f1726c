"""Gathers, scatters, masks, one-hot vectors and unique values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail as dt

from .table import OperatorCall, register_operator

Tensor = dt.Tensor


@register_operator("Gather")
def _gather(call: OperatorCall, x: Tensor, indices: Tensor) -> Tensor:
    """Return x at indices along an axis, whose place the axes of the indices take."""
    axis = call.axis(call.get("axis", 0), x.ndim)
    before = (slice(None),) * axis
    return x[(*before, indices.astype(dt.int64))]


@register_operator("GatherElements")
def _gather_elements(call: OperatorCall, x: Tensor, indices: Tensor) -> Tensor:
    """Return an element for each index along an axis; negative indices count from the end."""
    axis = call.axis(call.get("axis", 0), x.ndim)
    cut = tuple(slice(None) if d == axis else slice(0, n) for d, n in enumerate(indices.shape))
    return dt.take_along_axis(x[cut], indices.astype(dt.int64), axis=axis)


def _split_columns(indices: Tensor) -> tuple[Tensor, ...]:
    """Split the last axis of indices: one tensor of indices for each axis."""
    return tuple([indices[..., k].astype(dt.int64) for k in range(indices.shape[-1])])


@register_operator("GatherND")
def _gather_nd(call: OperatorCall, x: Tensor, indices: Tensor) -> Tensor:
    """Return x at index vectors, which the last axis of `indices` holds."""
    lead = call.get("batch_dims", 0)
    if not lead:
        return x[_split_columns(indices)]
    count = math.prod(x.shape[:lead])
    flat = x.reshape((count, *x.shape[lead:]))
    batched = indices.reshape((count, *indices.shape[lead:]))
    first = dt.arange(count, device=x.device).reshape((count, *[1] * (batched.ndim - 2)))
    columns = _split_columns(batched)
    result = flat[(dt.broadcast_to(first, columns[0].shape), *columns)]
    return result.reshape((*x.shape[:lead], *result.shape[1:]))


_MERGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mul": dt.multiply,
    "max": dt.maximum,
    "min": dt.minimum,
}


def _flat_indices(shape: tuple[int, ...], columns: tuple[Tensor, ...]) -> Tensor:
    """Return indices in a tensor with these axes flattened; negative ones are wrapped."""
    total: Any = 0
    for n, c in zip(shape, columns, strict=False):
        total = total * n + dt.where(c < 0, c + n, c)
    result: Tensor = total
    return result


def scatter(x: Tensor, indices: Tensor, values: Tensor, reduction: str) -> Tensor:
    """Return a copy of `x` with values stored or combined at row indices; equal ones in order."""
    if reduction in ("none", ""):
        result = x.copy()
        result[indices] = values
        return result
    if reduction == "add":
        return dt.index_add(x, 0, indices, values)
    return _combine_in_rounds(x, indices, values, _MERGES[reduction])


def _combine_in_rounds(
    x: Tensor, indices: Tensor, values: Tensor, f: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return `x` combined by `f` with values at row indices, in rounds; wait for their number.

    Round k combines the k-th value of each index.
    """
    order = dt.argsort(indices)
    ordered, values = indices[order], values[order]
    k = dt.arange(ordered.shape[0], device=x.device)
    start = dt.searchsorted(ordered, ordered)
    rank = k - start
    for t in range(int(rank.max()) + 1 if ordered.shape[0] else 0):
        in_round = rank == t
        at = ordered[in_round]
        x = x.copy()
        x[at] = f(x[at], values[in_round])
    return x


@register_operator("ScatterElements", "Scatter")
def _scatter_elements(call: OperatorCall, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Return a copy of x with updates stored, or combined, at indices along an axis."""
    axis = call.axis(call.get("axis", 0), x.ndim)
    grids = []
    for d, n in enumerate(indices.shape):
        at = dt.arange(n, device=x.device).reshape([-1 if e == d else 1 for e in range(x.ndim)])
        grids.append(indices.astype(dt.int64) if d == axis else dt.broadcast_to(at, indices.shape))
    flat = _flat_indices(x.shape, tuple(grids)).reshape((-1,))
    result = scatter(x.reshape((-1,)), flat, updates.reshape((-1,)), call.get("reduction", "none"))
    return result.reshape(x.shape)


@register_operator("ScatterND")
def _scatter_nd(call: OperatorCall, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Return a copy of x with updates stored, or combined, at index vectors."""
    depth = indices.shape[-1]
    flat = _flat_indices(x.shape, _split_columns(indices)).reshape((-1,))
    inner = x.shape[depth:]
    rows = (math.prod(x.shape[:depth]), *inner)
    values = updates.reshape((flat.shape[0], *inner))
    return scatter(x.reshape(rows), flat, values, call.get("reduction", "none")).reshape(x.shape)


@register_operator("TensorScatter")
def _tensor_scatter(
    call: OperatorCall, past: Tensor, update: Tensor, start: Tensor | None = None
) -> Tensor:
    """Return a copy of a cache with an update from positions `start` on, or wrapped around."""
    axis = call.axis(call.get("axis", -2), past.ndim)
    count, length = past.shape[0], past.shape[axis]
    step = dt.arange(update.shape[axis], device=past.device)
    first = dt.zeros(count, dtype=dt.int64, device=past.device) if start is None else start
    at = dt.expand_dims(first.astype(dt.int64), axis=1) + step
    at = at % length if call.get("mode", "linear") == "circular" else at
    shape = [count if d == 0 else step.shape[0] if d == axis else 1 for d in range(past.ndim)]
    positions = dt.broadcast_to(at.reshape(shape), update.shape)
    return dt.scatter(past, axis, positions, update)


@register_operator("NonZero")
def _non_zero(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the indices of nonzero elements, a row for each axis."""
    if x.ndim == 0:
        return dt.zeros((0, int(bool(x != 0))), dtype=dt.int64, device=x.device)
    return dt.stack(dt.nonzero(x), axis=0)


@register_operator("Compress")
def _compress(call: OperatorCall, x: Tensor, condition: Tensor) -> Tensor:
    """Return the slices of an axis, or elements of the flat tensor, at true conditions."""
    axis = call.get("axis")
    if axis is None:
        x, axis = x.reshape((-1,)), 0
    axis = call.axis(axis, x.ndim)
    at = dt.nonzero(condition)[0]
    return x[(*(slice(None),) * axis, at)]


@register_operator("OneHot", host=(1,))
def _one_hot(call: OperatorCall, indices: Tensor, depth: Any, values: Tensor) -> Tensor:
    """Return values[1] at each index along a new axis, else values[0]."""
    n = int(call.array(depth).reshape(-1)[0])
    axis = call.axis(call.get("axis", -1), indices.ndim + 1)
    at = indices.astype(dt.int64)
    at = dt.expand_dims(dt.where(at < 0, at + n, at), axis=axis)
    k = dt.arange(n, device=indices.device).reshape(
        [-1 if d == axis else 1 for d in range(indices.ndim + 1)]
    )
    return dt.where(at == k, values[1], values[0])


@register_operator("Unique")
def _unique(call: OperatorCall, x: Tensor) -> tuple[Tensor, ...]:
    """Return unique values, first indices, inverse and counts; unsorted in order of appearance."""
    axis = call.get("axis")
    axis = None if axis is None else call.axis(axis, x.ndim)
    flat = x.reshape((-1,)) if axis is None else x
    values, first, inverse, counts = dt.unique(
        flat,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=axis,
        equal_nan=False,
    )
    inverse = inverse.reshape((-1,))
    if not call.get("sorted", 1):
        order = dt.argsort(first)
        values = values[order] if axis is None else dt.take(values, order, axis=axis)
        inverse = dt.argsort(order)[inverse]
        first, counts = first[order], counts[order]
    return values, first.astype(dt.int64), inverse.astype(dt.int64), counts.astype(dt.int64)


@register_operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _array_feature_extractor(call: OperatorCall, x: Tensor, indices: Tensor) -> Tensor:
    """Return the columns at the indices; for a vector, as one row."""
    result = x[..., indices.reshape((-1,))]
    return result.reshape((1, -1)) if x.ndim == 1 else result
