"""Reads of sharded tensors at index arrays and masks, and reads by sharded ones.

An index array that is not sharded is the same on all ranks. Along an axis that the arrays do not
index, each rank reads its own shard. To index the sharded axis, the shards move to another axis, or
are gathered if there is none. A mask of the first axes selects elements of each shard, and the
ranks tell each other how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import broadcast_shapes

from . import exchanges
from .sharded_rules import align, match_shardings, require_one_group, shard_like
from .sharded_tensor import ShardedTensor, gather_whole, join, move, wrap
from .sharding import Sharding, choose_borders

Tensor = dt.Tensor
Entries = list[Any]  # of a key: one for each axis, but None for a new one, and a mask for several
ALL = slice(None)
OP = "index"


def index(x: Tensor, entries: Sequence[Any]) -> Tensor:
    """Return the elements at a key with arrays; `x` or an array is sharded."""
    require_one_group(OP, (x, *entries))
    first, *others = (p if isinstance(p, Tensor) else _to_tensor(p, x.device) for p in entries)
    is_sharded = isinstance(x, ShardedTensor) or isinstance(first, ShardedTensor)
    if is_sharded and _is_mask(first) and not any(map(_is_array, others)):
        return _select(x, first, others)
    key: Entries = []
    for part in (first, *others):
        key += dt.nonzero(gather_whole(OP, part)) if _is_mask(part) else [part]
    return _index_sharded(x, key) if isinstance(x, ShardedTensor) else _index_replicated(x, key)


def nonzero(x: ShardedTensor) -> tuple[Tensor, ...]:
    """Return for each axis the positions of the nonzero elements, sharded, in row-major order."""
    x = move("nonzero", x, 0, x.borders if x.axis == 0 else None)
    first, *others = dt.nonzero(x.local())
    positions = (first + x.sharding.start, *others)
    return tuple([join("nonzero", t, 0, x.sharding.group) for t in positions])


def _to_tensor(part: Any, device: dt.Device) -> Any:
    """Return an array of a key as a tensor; others unchanged. Raises: LayoutError for a bool."""
    if isinstance(part, bool):
        raise dt.LayoutError(f"{OP}: {part} cannot index a sharded tensor; use x.full()")
    return dt.asarray(part, device=device) if _is_array(part) else part


def _is_array(part: Any) -> bool:
    """Return True for an index array, which has axes in the result, or for a mask."""
    return hasattr(part, "ndim")


def _is_mask(part: Any) -> bool:
    """Return True for a tensor of bool."""
    return isinstance(part, Tensor) and part.dtype is dt.bool


def _is_slice(part: Any) -> bool:
    """Return True for a part that is an axis of the result: a slice, or None for a new one."""
    return isinstance(part, slice) or part is None


def _select(x: Tensor, mask: Tensor, others: Entries) -> Tensor:
    """Return the elements under a mask of the first axes, sharded along the first axis."""
    if not mask.ndim or mask.shape != x.shape[: mask.ndim]:
        raise dt.OutOfRangeError(
            f"{OP}: a mask of shape {mask.shape} does not fit a tensor of shape {x.shape}"
        )
    first = x if isinstance(x, ShardedTensor) else mask
    assert isinstance(first, ShardedTensor)
    s = move(OP, first, 0, first.borders if first.axis == 0 else None).sharding
    own = []
    for t in (x, mask):
        if isinstance(t, ShardedTensor):
            own.append(move(OP, t, 0, s.borders).local())
        else:
            own.append(exchanges.cut(t, s, OP))
    return join(OP, own[0][(own[1], *others)], 0, s.group)


def _index_sharded(x: ShardedTensor, entries: Entries) -> Tensor:
    """Return the elements of a sharded tensor at a key with arrays of integers."""
    at = [k for k, p in enumerate(entries) if p is not None and p is not Ellipsis]  # by axis
    here = at[x.axis]
    target = _arrays_axis(entries) + next(
        (p.axis for p in entries if isinstance(p, ShardedTensor)), 0
    )
    key = [gather_whole(OP, p) for p in entries]
    if isinstance(key[here], slice):
        sliced = x[(*[ALL] * x.axis, key[here])]
        assert isinstance(sliced, ShardedTensor)
        before, arrays = sum(map(_is_slice, key[:here])), _arrays_axis(key)
        key[here] = ALL
        axis = before if before < arrays else before + _width(key)
        return wrap(sliced.local()[tuple(key)], sliced.sharding.along(axis))
    if not _is_array(key[here]):
        position = gather_whole(OP, x[(*[ALL] * x.axis, key[here])])
        position = dt.expand_dims(position, axis=x.axis)
        return position[(*key[:here], 0, *key[here + 1 :])]
    free = [d for d, k in enumerate(at) if isinstance(key[k], slice) and x.shape[d] > 1]
    if not free:
        result = gather_whole(OP, x)[tuple(key)]
        return shard_like(OP, result, x.sharding.along(target)) if _width(key) else result
    moved = index(move(OP, x, max(free, key=x.shape.__getitem__)), key)
    assert isinstance(moved, ShardedTensor)
    return move(OP, moved, target) if _width(key) else moved


def _index_replicated(x: Tensor, entries: Entries) -> Tensor:
    """Return the elements of a replicated tensor at a key; some of its arrays are sharded."""
    arrays = [p for p in entries if _is_array(p)]
    shape = broadcast_shapes(OP, *[a.shape for a in arrays])
    matched, s = match_shardings(OP, arrays, shape)
    if s is None:
        return x[tuple([gather_whole(OP, p) for p in entries])]
    own = iter([align(OP, a, shape, s) for a in matched])
    key = [next(own) if _is_array(p) else p for p in entries]
    result = s.along(_arrays_axis(entries) + s.axis)
    if not x.requires_grad:
        return wrap(x[tuple(key)], result)
    return wrap(_ReadReplicated.apply(x, tuple(key), tuple(entries), result), result)


class _ReadReplicated(dt.autograd.Function):
    """A shard of the elements of a replicated tensor at arrays.

    The gradient adds those of all ranks in the order of strided tensors: they move to the last
    axis, if the arrays do not index that, else to every rank.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, key: Any, entries: Any, sharding: Sharding) -> Tensor:
        """Read at `key`, this rank's part of the key with sharded arrays, `entries`."""
        ctx.entries, ctx.sharding = entries, sharding
        ctx.shape, ctx.dtype, ctx.device = x.shape, x.dtype, x.device
        return x[key]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient of the whole tensor, on every rank."""
        name, shape, group = f"gradient of {OP}", ctx.shape, ctx.sharding.group
        last = Sharding(len(shape) - 1, choose_borders(shape[-1], group.size), group)
        key = tuple([gather_whole(name, p) for p in ctx.entries])
        cuts_columns = all(map(_is_array, key)) and len(key) < len(shape)
        cuts_columns = cuts_columns and ctx.sharding.axis < g.ndim - 1
        if cuts_columns:
            g = exchanges.reshard(g, ctx.sharding, last.along(g.ndim - 1), name)
            shape = (*shape[:-1], last.stop - last.start)
        else:
            g = exchanges.gather(g, ctx.sharding, name)
        zeros = dt.zeros(shape, dtype=ctx.dtype, device=ctx.device).requires_grad_()
        with dt.enable_grad():
            read = zeros[key]
        (part,) = dt.autograd.grad(read, [zeros], g, create_graph=dt.is_grad_enabled())
        return exchanges.gather(part, last, name) if cuts_columns else part, None, None, None


def _width(entries: Entries) -> int:
    """Return the number of axes of the index arrays in the result."""
    return max(int(p.ndim) for p in entries if _is_array(p))


def _arrays_axis(entries: Entries) -> int:
    """Return the first axis of the index arrays in the result: 0 if slices separate them."""
    indices = [k for k, p in enumerate(entries) if not _is_slice(p) and p is not Ellipsis]
    adjacent = indices[-1] - indices[0] == len(indices) - 1
    return sum(map(_is_slice, entries[: indices[0]])) if adjacent else 0
