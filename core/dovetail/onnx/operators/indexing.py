"""Values at places: gathers, scatters, masks, and what occurs where."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail as dt

from .table import Call, row

Tensor = dt.Tensor


@row("Gather")
def _gather(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    axis = call.axis(call.get("axis", 0), x.ndim)
    places = (slice(None),) * axis
    return x[(*places, indices.astype(dt.int64))]


@row("GatherElements")
def _gather_elements(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    axis = call.axis(call.get("axis", 0), x.ndim)
    cut = tuple(slice(None) if d == axis else slice(0, n) for d, n in enumerate(indices.shape))
    return dt.take_along_axis(x[cut], indices.astype(dt.int64), axis=axis)


def _columns(indices: Tensor) -> tuple[Tensor, ...]:
    """The places that the last axis of indices names, one tensor for each axis."""
    return tuple([indices[..., k].astype(dt.int64) for k in range(indices.shape[-1])])


@row("GatherND")
def _gather_nd(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    lead = call.get("batch_dims", 0)
    if not lead:
        return x[_columns(indices)]
    count = math.prod(x.shape[:lead])
    flat = x.reshape((count, *x.shape[lead:]))
    places = indices.reshape((count, *indices.shape[lead:]))
    first = dt.arange(count, device=x.device).reshape((count, *[1] * (places.ndim - 2)))
    columns = _columns(places)
    found = flat[(dt.broadcast_to(first, columns[0].shape), *columns)]
    return found.reshape((*x.shape[:lead], *found.shape[1:]))


_MERGED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mul": dt.multiply, "max": dt.maximum, "min": dt.minimum,
}  # fmt: skip


def _flat_places(shape: tuple[int, ...], columns: tuple[Tensor, ...], rest: int) -> Tensor:
    """Places in a flat tensor, of rows of `rest` elements."""
    total: Any = 0
    for n, c in zip(shape, columns, strict=False):
        total = total * n + dt.where(c < 0, c + n, c)
    found: Tensor = total
    return found


def scattered(x: Tensor, places: Tensor, values: Tensor, how: str) -> Tensor:
    """A vector, or rows, with values put or merged at places; those for one place in order."""
    if how in ("none", ""):
        made = x.copy()
        made[places] = values
        return made
    if how == "add":
        return dt.index_add(x, 0, places, values)
    return _merged(x, places, values, _MERGED[how])


def _merged(
    x: Tensor, places: Tensor, values: Tensor, f: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """One value for a place after the other: rounds over those that are the k-th for theirs."""
    order = dt.argsort(places)
    ordered, values = places[order], values[order]
    k = dt.arange(ordered.shape[0], device=x.device)
    start = dt.searchsorted(ordered, ordered)
    turn = k - start
    for t in range(int(turn.max()) + 1 if ordered.shape[0] else 0):
        mine = turn == t
        at = ordered[mine]
        x = x.copy()
        x[at] = f(x[at], values[mine])
    return x


@row("ScatterElements", "Scatter")
def _scatter_elements(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    axis = call.axis(call.get("axis", 0), x.ndim)
    grids = []
    for d, n in enumerate(indices.shape):
        at = dt.arange(n, device=x.device).reshape([-1 if e == d else 1 for e in range(x.ndim)])
        grids.append(indices.astype(dt.int64) if d == axis else dt.broadcast_to(at, indices.shape))
    for_axis = _require_places(call, grids[axis], x.shape[axis])
    grids[axis] = for_axis
    places = _flat_places(x.shape, tuple(grids), 1).reshape((-1,))
    made = scattered(
        x.reshape((-1,)), places, updates.reshape((-1,)), call.get("reduction", "none")
    )
    return made.reshape(x.shape)


def _require_places(call: Call, places: Tensor, n: int) -> Tensor:
    return places


@row("ScatterND")
def _scatter_nd(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    depth = indices.shape[-1]
    places = _flat_places(x.shape, _columns(indices), 1).reshape((-1,))
    rest = x.shape[depth:]
    rows = (math.prod(x.shape[:depth]), *rest)
    values = updates.reshape((places.shape[0], *rest))
    return scattered(x.reshape(rows), places, values, call.get("reduction", "none")).reshape(
        x.shape
    )


@row("TensorScatter")
def _tensor_scatter(
    call: Call, past: Tensor, update: Tensor, start: Tensor | None = None
) -> Tensor:
    axis = call.axis(call.get("axis", -2), past.ndim)
    count, length = past.shape[0], past.shape[axis]
    step = dt.arange(update.shape[axis], device=past.device)
    first = dt.zeros(count, dtype=dt.int64, device=past.device) if start is None else start
    at = dt.expand_dims(first.astype(dt.int64), axis=1) + step
    at = at % length if call.get("mode", "linear") == "circular" else at
    shape = [count if d == 0 else step.shape[0] if d == axis else 1 for d in range(past.ndim)]
    places = dt.broadcast_to(at.reshape(shape), update.shape)
    return dt.scatter(past, axis, places, update)


@row("NonZero")
def _non_zero(call: Call, x: Tensor) -> Tensor:
    if x.ndim == 0:
        return dt.zeros((0, int(bool(x != 0))), dtype=dt.int64, device=x.device)
    return dt.stack(dt.nonzero(x), axis=0)


@row("Compress")
def _compress(call: Call, x: Tensor, condition: Tensor) -> Tensor:
    axis = call.get("axis")
    if axis is None:
        x, axis = x.reshape((-1,)), 0
    axis = call.axis(axis, x.ndim)
    at = dt.nonzero(condition)[0]
    return x[(*(slice(None),) * axis, at)]


@row("OneHot", host=(1,))
def _one_hot(call: Call, indices: Tensor, depth: Any, values: Tensor) -> Tensor:
    n = int(call.array(depth).reshape(-1)[0])
    axis = call.axis(call.get("axis", -1), indices.ndim + 1)
    at = indices.astype(dt.int64)
    at = dt.expand_dims(dt.where(at < 0, at + n, at), axis=axis)
    k = dt.arange(n, device=indices.device).reshape(
        [-1 if d == axis else 1 for d in range(indices.ndim + 1)]
    )
    return dt.where(at == k, values[1], values[0])


@row("Unique")
def _unique(call: Call, x: Tensor) -> tuple[Tensor, ...]:
    axis = call.get("axis")
    axis = None if axis is None else call.axis(axis, x.ndim)
    flat = x.reshape((-1,)) if axis is None else x
    values, first, inverse, counts = dt.unique(
        flat, return_index=True, return_inverse=True, return_counts=True, axis=axis,
        equal_nan=False,
    )  # fmt: skip
    inverse = inverse.reshape((-1,))
    if not call.get("sorted", 1):
        order = dt.argsort(first)
        values = values[order] if axis is None else dt.take(values, order, axis=axis)
        inverse = dt.argsort(order)[inverse]
        first, counts = first[order], counts[order]
    return values, first.astype(dt.int64), inverse.astype(dt.int64), counts.astype(dt.int64)


@row("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _array_feature_extractor(call: Call, x: Tensor, places: Tensor) -> Tensor:
    found = x[..., places.reshape((-1,))]
    return found.reshape((1, -1)) if x.ndim == 1 else found
