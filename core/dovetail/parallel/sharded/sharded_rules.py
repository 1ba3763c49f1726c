"""Rules of sharded tensors for elementwise functions, moves and joins; few send messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import Op, apply, broadcast_shapes

from . import exchanges
from .sharded_reductions import add_all
from .sharded_tensor import ShardedTensor, wrap
from .sharding import Shape, Sharding

Tensor = dt.Tensor
Move = tuple[Any, ...]


def elementwise(op: Op, operands: Sequence[Any], attrs: object) -> ShardedTensor:
    """Apply an elementwise op to the shards; replicated operands are cut as the result is."""
    shape = broadcast_shapes(op.name, *[a.shape for a in operands if isinstance(a, Tensor)])
    sharding = _common_sharding(op.name, operands, shape)
    aligned = [_broadcast(op.name, a, shape, sharding) for a in operands]
    return wrap(apply(op, aligned, attrs), sharding)


def _common_sharding(op: str, operands: Sequence[Any], shape: Shape) -> Sharding:
    """Return the sharding of the result. Raises: LayoutError if the operands' differ."""
    shardings: list[Sharding] = []
    for a in operands:
        if isinstance(a, ShardedTensor):
            s = a.sharding.along(a.axis + len(shape) - a.ndim)
            if s.size != shape[s.axis]:
                raise dt.LayoutError(
                    f"{op}: a tensor of shape {a.shape} that is sharded along axis {a.axis} cannot "
                    f"be broadcast along it to {shape}; use x.full()"
                )
            shardings.append(s)
    return require_equal(op, shardings)


def require_equal(op: str, shardings: Sequence[Sharding]) -> Sharding:
    """Return the sharding that all operands have. Raises: LayoutError if they differ."""
    first = shardings[0]
    for s in shardings[1:]:
        if s.group is not first.group:
            raise dt.LayoutError(f"{op}: the operands are sharded over different groups")
        if s.axis != first.axis:
            raise dt.LayoutError(
                f"{op}: the operands are sharded along axes {first.axis} and {s.axis} of the "
                "result; use x.reshard(axis) for one of them"
            )
        if s.borders != first.borders:
            raise dt.LayoutError(
                f"{op}: the operands are sharded at borders {first.borders} and {s.borders}; use "
                "x.reshard(axis, borders) for one of them"
            )
    return first


def align(op: str, a: Any, shape: Shape, sharding: Sharding) -> Any:
    """Return an operand's part for this rank's shard of a result; numbers are unchanged."""
    if isinstance(a, ShardedTensor):
        return a.local()
    if not isinstance(a, Tensor):
        return a
    axis = sharding.axis + a.ndim - len(shape)
    if axis >= 0 and a.shape[axis] == sharding.size:
        return exchanges.cut(a, sharding.along(axis), op)
    return exchanges.replicate(a, sharding.group, op)


def _broadcast(op: str, a: Any, shape: Shape, sharding: Sharding) -> Any:
    """Return an operand's part for a shard, broadcast if its gradient sums over all shards."""
    axis = sharding.axis - len(shape)
    if isinstance(a, ShardedTensor) or not isinstance(a, Tensor) or not a.requires_grad:
        return align(op, a, shape, sharding)
    if -axis <= a.ndim and a.shape[axis] == sharding.size:
        return align(op, a, shape, sharding)
    return _Broadcast.apply(a, shape, sharding, op)


class _Broadcast(dt.autograd.Function):
    """A replicated tensor, broadcast to the shape of this rank's shard."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Shape, sharding: Sharding, name: str) -> Tensor:
        """Return a view of the tensor."""
        ctx.shape, ctx.sharding, ctx.name = x.shape, sharding, f"gradient of {name}"
        length = sharding.stop - sharding.start
        return dt.broadcast_to(x, (*shape[: sharding.axis], length, *shape[sharding.axis + 1 :]))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the sum over the axes along which the tensor was broadcast."""
        whole = wrap(g, ctx.sharding)
        shape = (*[1] * (whole.ndim - len(ctx.shape)), *ctx.shape)
        axes = tuple([d for d, n in enumerate(shape) if n != whole.shape[d] or d == whole.axis])
        return dt.reshape(add_all(whole, axes, ctx.name), ctx.shape), None, None, None


# --- moves ----------------------------------------------------------------------------------------


def view(x: ShardedTensor, move: Move) -> Tensor:
    """Return the tensor after a move."""
    return _MOVES[move[0]](x, *move[1:])


def _permute(x: ShardedTensor, axes: Shape) -> ShardedTensor:
    """Return the tensor with its axes in another order."""
    return x.with_local(dt.permute_dims(x.local(), axes), axes.index(x.axis))


def _expand(x: ShardedTensor, shape: Shape) -> ShardedTensor:
    """Return the tensor broadcast along other axes."""
    s = x.sharding.along(x.axis + len(shape) - x.ndim)
    if shape[s.axis] != s.size:
        raise dt.LayoutError(
            f"expand: a tensor of shape {x.shape} that is sharded along axis {x.axis} cannot be "
            f"broadcast along it to {shape}; use x.full()"
        )
    local = (*shape[: s.axis], s.stop - s.start, *shape[s.axis + 1 :])
    return wrap(dt.broadcast_to(x.local(), local), s)


def _slice(x: ShardedTensor, starts: Shape, lengths: Shape, steps: Shape) -> ShardedTensor:
    """Return every `steps`-th position; along the sharded axis each rank keeps its own ones."""
    s, axis = x.sharding, x.axis
    start, count, step = starts[axis], lengths[axis], steps[axis]
    if step < 0 < count:
        raise dt.LayoutError(
            f"slice: a sharded tensor cannot be reversed along its sharded axis {axis}; use "
            "x.reshard(axis) with another axis first"
        )
    counts = [min(count, max(0, -(-(b - start) // max(step, 1)))) for b in s.borders]
    borders = (*counts[:-1], count)
    own = [_slice_of(*part) for part in zip(starts, lengths, steps, strict=True)]
    first, last = borders[s.group.rank], borders[s.group.rank + 1]
    begin = start + first * step - s.start if last > first else 0
    own[axis] = _slice_of(begin, last - first, step)
    return wrap(x.local()[tuple(own)], Sharding(axis, borders, s.group))


def _slice_of(start: int, length: int, step: int) -> slice:
    """Return the slice of `length` positions."""
    stop = start + length * step
    return slice(start, stop if stop >= 0 else None, step)


def _reshape(x: ShardedTensor, shape: Shape) -> Tensor:
    """Return the tensor of another shape, if the axes before the sharded one keep their size.

    The sharded axis may be merged with axes after it, or split at borders that fit. If an axis of
    size 1 is sharded and the result lacks it, the rank with the elements sends them to all.
    """
    s = x.sharding
    before, inner = math.prod(x.shape[: x.axis]), math.prod(x.shape[x.axis + 1 :])
    starts = [b * inner for b in s.borders]
    for d, n in enumerate(shape):
        after = math.prod(shape[d + 1 :])
        if math.prod(shape[:d]) != before or (n == 1) != (s.size == 1):
            continue
        if n == s.size and after == inner:
            borders = s.borders
        elif after and n * after == starts[-1] and not any(b % after for b in starts):
            borders = tuple([b // after for b in starts])
        else:
            continue
        new = Sharding(d, borders, s.group)
        local = (*shape[:d], new.stop - new.start, *shape[d + 1 :])
        return wrap(dt.reshape(x.local(), local), new)
    if s.size == 1:
        return dt.reshape(x.full(), shape)
    raise dt.LayoutError(
        f"reshape: a tensor of shape {x.shape} that is sharded along axis {x.axis} at {s.borders} "
        f"cannot become {shape} without messages; use x.reshard(axis) or x.full() first"
    )


_MOVES: dict[str, Callable[..., Tensor]] = {
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "reshape": _reshape,
}


# --- other functions ------------------------------------------------------------------------------


def concat(tensors: Sequence[Tensor], axis: int) -> ShardedTensor:
    """Join tensors along an axis that is not sharded; replicated ones are cut."""
    own = [t for t in tensors if isinstance(t, ShardedTensor)]
    if axis in {t.axis for t in own}:
        raise dt.LayoutError(
            f"concat: the tensors are sharded along axis {axis}; use x.reshard(axis) with another "
            "axis, or x.full()"
        )
    sharding, shape = require_equal("concat", [t.sharding for t in own]), own[0].shape
    for t in tensors:
        if t.ndim != len(shape) or t.shape[sharding.axis] != sharding.size:
            raise dt.ShapeError(f"concat: shapes {shape} and {t.shape} differ beside axis {axis}")
    shards = [align("concat", t, shape, sharding) for t in tensors]
    return wrap(dt.concat(shards, axis=axis), sharding)


def require_unsharded(op: str, x: ShardedTensor, axis: int) -> Tensor:
    """Return the shard, for a function along another axis than the sharded one."""
    if axis == x.axis:
        raise dt.LayoutError(
            f"{op}: the tensor is sharded along axis {axis}; use x.reshard(axis) with another axis"
        )
    return x.local()


def softmax(x: ShardedTensor, axis: int) -> ShardedTensor:
    """Return the softmax along an axis that is not sharded."""
    return x.with_local(dt.softmax(require_unsharded("softmax", x, axis), axis=axis))


def log_softmax(x: ShardedTensor, axis: int) -> ShardedTensor:
    """Return the logarithm of the softmax along an axis that is not sharded."""
    return x.with_local(dt.log_softmax(require_unsharded("log_softmax", x, axis), axis=axis))


def sort(x: ShardedTensor, axis: int, descending: bool) -> ShardedTensor:
    """Sort along an axis that is not sharded."""
    local = require_unsharded("sort", x, axis)
    return x.with_local(dt.sort(local, axis=axis, descending=descending))


def triangle(x: ShardedTensor, k: int, upper: bool) -> ShardedTensor:
    """Return the triangle of each matrix; in a shard the diagonal is moved by the shard's start."""
    moved = {x.ndim - 2: x.sharding.start, x.ndim - 1: -x.sharding.start}.get(x.axis, 0)
    return x.with_local((dt.triu if upper else dt.tril)(x.local(), k=k + moved))


def constant(x: ShardedTensor, value: float) -> ShardedTensor:
    """Return a tensor of one value, sharded like `x`."""
    return x.with_local(dt.full_like(x.local(), value))


def to_device(x: ShardedTensor, device: dt.Device) -> ShardedTensor:
    """Return the tensor with this rank's shard on another device."""
    return x.with_local(x.local().to(device=device))


def to_dense(x: ShardedTensor) -> Tensor:
    """Return the whole tensor."""
    return x.full()
