"""Reductions of sharded tensors. Along the sharded axis, ranks exchange partial results.

A sum has a canonical order: chunks of 4096 elements, then the sums of the chunks in the same way.
Where borders are between chunks, ranks exchange the sums of chunks, and each rank adds them in that
order: so the bits are those of a strided tensor. Elsewhere each rank has one partial result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import dovetail as dt
from dovetail.extend import CHUNK, Op, reduce

from . import exchanges
from .sharded_tensor import ShardedTensor, gather_whole, move
from .sharding import Messenger, Shape, Sharding

Tensor = dt.Tensor
Function = Callable[..., Tensor]

COMBINES: dict[str, Function] = {
    "sum": dt.sum,
    "mean": dt.sum,
    "count_nonzero": dt.sum,
    "prod": dt.prod,
    "max": dt.max,
    "min": dt.min,
    "any": dt.any,
    "all": dt.all,
}


def reduction(op: Op, x: ShardedTensor, axes: Shape, keepdims: bool, attrs: Any) -> Tensor:
    """Reduce over axes; over the sharded one the result is strided, on every rank."""
    if x.axis not in axes:
        local = reduce(op, x.local(), axes, keepdims, attrs)
        return x.with_local(local, x.axis if keepdims else x.axis - sum(d < x.axis for d in axes))
    if op.name in ("argmax", "argmin"):
        result = _find_extreme(op, x, axes)
    else:
        result = _reduce_all(op, x, axes, attrs)
    shape = tuple([1 if d in axes else n for d, n in enumerate(x.shape)])
    return dt.reshape(result, shape) if keepdims else result


class _Ordered(NamedTuple):
    """A shard with its reduced axes last, as two: those before the sharded one, and the others.

    `borders`: those along the last axis. `outer`: the number of axes that are not reduced.
    """

    local: Tensor
    borders: Shape
    outer: int


def _order(x: ShardedTensor, axes: Shape) -> _Ordered:
    """Return the shard with its reduced axes last."""
    outer = [d for d in range(x.ndim) if d not in axes]
    before = math.prod(x.shape[d] for d in axes if d < x.axis)
    inner = math.prod(x.shape[d] for d in axes if d > x.axis)
    length = (x.sharding.stop - x.sharding.start) * inner
    moved = dt.permute_dims(x.local(), (*outer, *axes))
    local = dt.reshape(moved, (*[x.shape[d] for d in outer], before, length))
    return _Ordered(local, tuple([b * inner for b in x.borders]), len(outer))


def _reduce_all(op: Op, x: ShardedTensor, axes: Shape, attrs: Any) -> Tensor:
    """Reduce over axes with the sharded one; halves are added in float32 and rounded once."""
    (compute, *_), dtype = op.dtypes(op.name, [x.dtype], attrs)
    local = x.local().astype(compute)
    if op.name == "count_nonzero":
        local = local.astype(dtype)
    result = _combine_all(COMBINES[op.name], x.with_local(local), axes, op.name)
    if op.name == "mean":
        result = result / math.prod(x.shape[d] for d in axes)
    return result.astype(dtype)


def add_all(x: ShardedTensor, axes: Shape, name: str) -> Tensor:
    """Return the sum over axes with the sharded one; halves must have been widened."""
    return _combine_all(dt.sum, x, axes, name)


def _combine_all(combine: Function, x: ShardedTensor, axes: Shape, name: str) -> Tensor:
    """Reduce over axes with the sharded one, by partial results of all ranks."""
    ordered = _order(x, axes)
    if x.requires_grad and combine in (dt.max, dt.min):
        best = _combine_all(combine, x.detach(), axes, name)
        return _Extreme.apply(ordered.local, best, x.sharding.group, name)
    is_inexact = x.dtype.kind in "fc"
    if combine is dt.prod and is_inexact and (x.requires_grad or not _is_aligned(ordered)):
        return _multiply_rows(x, axes, name)
    partial, counts = _combine_chunks(combine, ordered)
    gathered = _gather_last(name, partial, counts, x.sharding.group)
    if gathered.shape[ordered.outer :] == (1, 1):  # 1 * (inf + 0j) has a NaN
        return gathered[..., 0, 0]
    return combine(gathered, axis=(ordered.outer, ordered.outer + 1))


class _Extreme(dt.autograd.Function):
    """The largest or smallest elements of rows, found already; equal ones share the gradient."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, best: Tensor, group: Messenger, name: str) -> Tensor:
        """Return `best`; the last two axes of `local` are reduced."""
        ctx.save_for_backward(local, best)
        ctx.group, ctx.name = group, f"gradient of {name}"
        return best

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient, spread evenly over the extreme elements and NaNs of all ranks."""
        local, best = ctx.saved_tensors
        here = (local == best[..., None, None]) | dt.isnan(local)
        count = dt.sum(here.astype(local.dtype), axis=(-2, -1), keepdims=True)
        share = exchanges.replicate(g, ctx.group, ctx.name)[..., None, None]
        share = share / exchanges.add_ranks(count, ctx.group, ctx.name)
        return dt.where(here, share, 0.0), None, None, None


def _multiply_rows(x: ShardedTensor, axes: Shape, name: str) -> Tensor:
    """Return the products of whole rows: one of a shard may overflow where the whole does not."""
    free = [d for d in range(x.ndim) if d not in axes]
    rows = move(name, x, max(free, key=x.shape.__getitem__)) if free else gather_whole(name, x)
    return gather_whole(name, dt.prod(rows, axis=axes))  # type: ignore[no-any-return]  # a tensor


def _is_aligned(x: _Ordered) -> bool:
    """Return True if no border is within a chunk."""
    before, total = x.local.shape[-2], x.borders[-1]
    return not any(b % CHUNK for b in x.borders if b != total or before > 1)


def _combine_chunks(combine: Function, x: _Ordered) -> tuple[Tensor, list[int]]:
    """Reduce each chunk of this rank, or all its elements if a border is within a chunk.

    Return the partial results along the last axis, and their number on each rank.
    """
    *shape, before, length = x.local.shape
    lengths = [b - a for a, b in pairwise(x.borders)]
    if not _is_aligned(x):
        flat = dt.reshape(x.local, (*shape, 1, before * length))
        partial = combine(flat, axis=-1, keepdims=True) if length else flat
        return partial, [int(n > 0) for n in lengths]
    full = length // CHUNK
    pieces = []
    if full:
        chunks = dt.reshape(x.local[..., : full * CHUNK], (*shape, before, full, CHUNK))
        pieces.append(combine(chunks, axis=-1))
    if length > full * CHUNK:
        pieces.append(combine(x.local[..., full * CHUNK :], axis=-1, keepdims=True))
    counts = [-(-n // CHUNK) for n in lengths]
    return (dt.concat(pieces, axis=-1) if pieces else x.local), counts


def _gather_last(op: str, partial: Tensor, counts: list[int], group: Messenger) -> Tensor:
    """Return the partial results of all ranks, along the last axis."""
    borders = tuple(accumulate(counts, initial=0))
    return exchanges.gather(partial, Sharding(partial.ndim - 1, borders, group), op)


def _find_extreme(op: Op, x: ShardedTensor, axes: Shape) -> Tensor:
    """Return the argmax or argmin over `axes`, counted in row-major order."""
    if any(x.shape[d] > 1 for d in axes if d < x.axis):  # shards must follow each other
        x = x.reshard(next(d for d in axes if x.shape[d] > 1))
    local, borders, outer = _order(x, axes)
    group, length = x.sharding.group, local.shape[-1]
    if x.dtype is dt.bool:
        local = local.astype(dt.uint8)
    position, extreme = local.astype(dt.int64), local  # of an empty shard
    if length:
        position = reduce(op, local, (outer + 1,), True) + borders[group.rank]
        extreme = (dt.max if op.name == "argmax" else dt.min)(local, axis=-1, keepdims=True)
    counts = [int(b > a) for a, b in pairwise(borders)]
    extremes = _gather_last(op.name, extreme.detach(), counts, group)
    positions = _gather_last(op.name, position, counts, group)
    chosen = reduce(op, extremes, (outer + 1,), True)
    return dt.take_along_axis(positions, chosen, axis=-1)[..., 0, 0]


def variance(x: ShardedTensor, axes: Shape, correction: float, keepdims: bool) -> Tensor:
    """Return the two-pass variance, in the dtype in which it is computed."""
    wide = x.astype(dt.mean(x.local()[..., :1]).dtype if x.dtype.kind in "biu" else x.dtype.compute)
    away = wide - dt.mean(wide, axis=axes, keepdims=True)
    squared = dt.square(away) if away.dtype.kind != "c" else dt.real(away * dt.conj(away))
    left = math.prod(x.shape[d] for d in axes) - correction
    return dt.sum(squared, axis=axes, keepdims=keepdims) / (left if left > 0 else 0.0)
