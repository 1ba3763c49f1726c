"""Rules of sharded tensors for elementwise functions, moves and joins; few send messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import dovetail as dt
from dovetail.extend import Op, apply, broadcast_shapes

from . import exchanges
from .sharded_reductions import add_all
from .sharded_tensor import ShardedTensor, gather_whole, move, wrap
from .sharding import Shape, Sharding, choose_borders

Tensor = dt.Tensor
Move = tuple[Any, ...]
ALL = slice(None)


def elementwise(op: Op, operands: Sequence[Any], attrs: object) -> Tensor:
    """Apply an elementwise op to the shards; replicated operands are cut as the result is."""
    shape = broadcast_shapes(op.name, *[a.shape for a in operands if isinstance(a, Tensor)])
    matched, sharding = match_shardings(op.name, operands, shape)
    if sharding is None:
        return apply(op, matched, attrs)
    aligned = [broadcast(op.name, a, shape, sharding) for a in matched]
    return wrap(apply(op, aligned, attrs), sharding)


def match_shardings(
    op: str, operands: Iterable[Any], shape: Shape
) -> tuple[list[Any], Sharding | None]:
    """Return operands whose sharded ones have one sharding, and that in a result of `shape`.

    The first operand that is not broadcast along its sharded axis gives it. Operands that are
    broadcast along a sharded axis are gathered. Replicated ones are unchanged; `align` cuts them.
    The sharding is None if no operand is sharded any more. Raises: LayoutError for several groups.
    """
    operands = [*operands]
    require_one_group(op, operands)
    first: Sharding | None = None
    matched = []
    for a in operands:
        if isinstance(a, ShardedTensor):
            lead = len(shape) - a.ndim
            if a.sharding.size != shape[a.axis + lead]:
                a = gather_whole(op, a)
            elif first is None:
                first = a.sharding.along(a.axis + lead)
            elif first.axis >= lead and a.shape[first.axis - lead] == first.size:
                a = move(op, a, first.axis - lead, first.borders)
            else:
                a = gather_whole(op, a)
        matched.append(a)
    return matched, first


def require_one_group(op: str, operands: Iterable[Any]) -> None:
    """Raise LayoutError unless all sharded operands are cut over one group."""
    groups = [a.sharding.group for a in operands if isinstance(a, ShardedTensor)]
    for other in groups[1:]:
        if other is not groups[0]:
            raise dt.LayoutError(
                f"{op}: the operands are sharded over different groups, of {groups[0].size} and "
                f"{other.size} ranks; use x.full() for one of them"
            )


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


def broadcast(op: str, a: Any, shape: Shape, sharding: Sharding) -> Any:
    """Return an operand's part for a shard, broadcast if its gradient sums over all shards."""
    axis = sharding.axis - len(shape)
    if isinstance(a, ShardedTensor) or not isinstance(a, Tensor) or not a.requires_grad:
        return align(op, a, shape, sharding)
    if -axis <= a.ndim and a.shape[axis] == sharding.size:
        return align(op, a, shape, sharding)
    return _Broadcast.apply(a, shape, sharding, op)


class _Broadcast(dt.autograd.Function):
    """A replicated tensor, broadcast to the shape of this rank's shard."""

    _accepts_unrounded = True

    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Shape, sharding: Sharding, name: str) -> Tensor:
        """Return a view of the tensor."""
        ctx.shape, ctx.dtype = x.shape, x.dtype
        ctx.sharding, ctx.name = sharding, f"gradient of {name}"
        length = sharding.stop - sharding.start
        return dt.broadcast_to(x, (*shape[: sharding.axis], length, *shape[sharding.axis + 1 :]))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the sum over the axes along which the tensor was broadcast, rounded once."""
        whole = wrap(g.astype(ctx.dtype.compute), ctx.sharding)
        shape = (*[1] * (whole.ndim - len(ctx.shape)), *ctx.shape)
        axes = tuple([d for d, n in enumerate(shape) if n != whole.shape[d] or d == whole.axis])
        total = add_all(whole, axes, ctx.name).astype(ctx.dtype)
        return dt.reshape(total, ctx.shape), None, None, None


# --- moves ----------------------------------------------------------------------------------------


def view(x: ShardedTensor, move: Move) -> Tensor:
    """Return the tensor after a move."""
    return _MOVES[move[0]](x, *move[1:])


def _permute(x: ShardedTensor, axes: Shape) -> ShardedTensor:
    """Return the tensor with its axes in another order."""
    return x.with_local(dt.permute_dims(x.local(), axes), axes.index(x.axis))


def _expand(x: ShardedTensor, shape: Shape) -> Tensor:
    """Return the tensor broadcast along other axes; along the sharded one it is gathered."""
    s = x.sharding.along(x.axis + len(shape) - x.ndim)
    if shape[s.axis] != s.size:
        return dt.broadcast_to(exchanges.gather(x.local(), x.sharding, "broadcast_to"), shape)
    local = (*shape[: s.axis], s.stop - s.start, *shape[s.axis + 1 :])
    return wrap(dt.broadcast_to(x.local(), local), s)


def _slice(x: ShardedTensor, starts: Shape, lengths: Shape, steps: Shape) -> Tensor:
    """Return every `steps`-th position; along the sharded axis each rank keeps its own ones.

    To reverse the sharded axis, the shards move to another one.
    """
    s, axis = x.sharding, x.axis
    start, count, step = starts[axis], lengths[axis], steps[axis]
    if step < 0 < count:
        end = start + (count - 1) * step
        ascending = (*steps[:axis], -step, *steps[axis + 1 :])
        ordered = _slice(x, (*starts[:axis], end, *starts[axis + 1 :]), lengths, ascending)
        flipped: Tensor = call_along_axes(
            "flip", lambda t: dt.flip(t, axis=axis), (ordered,), (axis,)
        )
        return flipped
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
    """Return the tensor of another shape.

    Nothing is sent if the axes before the sharded one keep their size, and it is merged with axes
    after it, or split at borders that fit. If an axis of size 1 is sharded and the result lacks it,
    the rank with the elements sends them to all. Else the elements move: the result is cut along
    its first axis of another size than 1.
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
    x = move("reshape", x, 0, x.borders if x.axis == 0 else None)
    row, axis = math.prod(x.shape[1:]), next(d for d, n in enumerate(shape) if n != 1)
    after, borders = math.prod(shape[axis + 1 :]), choose_borders(shape[axis], s.group.size)
    flat = dt.reshape(x.local(), (x.local().size,))
    old = Sharding(0, tuple([b * row for b in x.borders]), s.group)
    flat = exchanges.reshard(
        flat, old, old._replace(borders=tuple([b * after for b in borders])), "reshape"
    )
    new = Sharding(axis, borders, s.group)
    return wrap(dt.reshape(flat, (*shape[:axis], new.stop - new.start, *shape[axis + 1 :])), new)


_MOVES: dict[str, Callable[..., Tensor]] = {
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "reshape": _reshape,
}


# --- other functions ------------------------------------------------------------------------------


def concat(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Join tensors; along the sharded axis elements move to the borders that `shard` chooses."""
    require_one_group("concat", tensors)
    first = next(t for t in tensors if isinstance(t, ShardedTensor))
    shape, s = first.shape, first.sharding
    for t in tensors:
        others = [n for d, n in enumerate(t.shape) if d != axis]
        if t.ndim != len(shape) or others != [n for d, n in enumerate(shape) if d != axis]:
            raise dt.ShapeError(f"concat: shapes {shape} and {t.shape} differ beside axis {axis}")
    if s.axis != axis:
        shards = [
            align("concat", t, shape, s) for t in match_shardings("concat", tensors, shape)[0]
        ]
        return wrap(dt.concat(shards, axis=axis), s)
    new = s._replace(borders=choose_borders(sum(t.shape[axis] for t in tensors), s.group.size))
    start, pieces = 0, []
    for t in tensors:
        n = t.shape[axis]
        part = new._replace(borders=tuple([min(max(b - start, 0), n) for b in new.borders]))
        pieces.append(
            move("concat", t, axis, part.borders).local()
            if isinstance(t, ShardedTensor)
            else exchanges.cut(t, part, "concat")
        )
        start += n
    return wrap(dt.concat(pieces, axis=axis), new)


def call_along_axes(
    op: str, function: Callable[..., Any], operands: Sequence[Tensor], axes: Shape
) -> Any:
    """Call a function that mixes elements along `axes` only, on shards that are whole along them.

    If one of `axes` is sharded, the shards move to another axis, and the results move back. If
    there is no other axis, each rank computes the whole results, and keeps its part.
    Raises: ShapeError unless the operands have equal numbers of axes and broadcast beside `axes`.
    """
    ndim = operands[0].ndim
    if any(t.ndim != ndim for t in operands):
        shapes = " and ".join([str(t.shape) for t in operands])
        raise dt.ShapeError(f"{op}: shapes {shapes} must have equal numbers of axes")
    require_one_group(op, operands)
    others = [[1 if d in axes else n for d, n in enumerate(t.shape)] for t in operands]
    beside = broadcast_shapes(op, *map(tuple, others))
    shape = tuple(
        [max(t.shape[d] for t in operands) if d in axes else n for d, n in enumerate(beside)]
    )
    cut = [t.sharding for t in operands if isinstance(t, ShardedTensor) and t.axis in axes]
    if not cut:
        matched, common = match_shardings(op, operands, shape)
        if common is None:
            return function(*matched)
        own = [align(op, t, shape, common) for t in matched]
        repeated = [t.requires_grad and t.shape[common.axis] != common.size for t in matched]
        if any(repeated):
            plan = _RepeatingCall(op, function, axes, repeated, common, shape)
            results = _RepeatingFunction.apply(
                plan, *[t if r else o for t, o, r in zip(matched, own, repeated, strict=True)]
            )
        else:
            results = function(*own)
        return _map(lambda r: wrap(r, common), results)
    sharded = [t for t in operands if isinstance(t, ShardedTensor)]
    beside_axes = [d for d in range(ndim) if d not in axes and shape[d] > 1]
    free = [d for d in beside_axes if all(t.shape[d] == shape[d] for t in sharded)]
    if not free:
        whole = [gather_whole(op, t) for t in operands]
        return _map(lambda r: shard_like(op, r, cut[0]), function(*whole))
    other = max(free, key=shape.__getitem__)
    moved = [move(op, t, other) if isinstance(t, ShardedTensor) else t for t in operands]
    return _map(lambda r: move_like(op, r, cut[0]), call_along_axes(op, function, moved, axes))


class _RepeatingCall(NamedTuple):
    """A call of a function of shards that mixes elements along `axes`.

    `repeated`: True for each operand that is replicated, with a gradient, along the sharded axis.
    """

    name: str
    function: Callable[..., Any]
    axes: Shape
    repeated: Sequence[bool]
    sharding: Sharding
    shape: Shape  # of the result, with whole `axes`

    def call_aligned(self, *operands: Tensor) -> Any:
        """Call the function with parts of operands that repeat; ranks add their gradients."""
        s = self.sharding
        pairs = zip(operands, self.repeated, strict=True)
        return self.function(*[align(self.name, t, self.shape, s) if r else t for t, r in pairs])


class _RepeatingFunction(dt.autograd.Function):
    """A differentiable call with shards, and with operands that repeat along the sharded axis.

    The gradient of such an operand is computed from whole rows, so its bits do not depend on the
    borders: each rank has a part of another axis along which the operand does not repeat. If
    gradients have gradients, ranks add those of their shards instead.
    """

    @staticmethod
    def forward(ctx: Any, call: _RepeatingCall, *operands: Tensor) -> Any:
        """Return the results for this rank's shards."""
        ctx.save_for_backward(*operands)
        ctx.call = call
        return call.function(*operands)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the shards, and of the replicated operands."""
        call, operands, needs = ctx.call, ctx.saved_tensors, ctx.needs_input_grad[1:]
        s, repeats = call.sharding, call.repeated
        if dt.is_grad_enabled():
            call, repeats = call._replace(function=call.call_aligned), [False] * len(operands)
        own = [k for k, need in enumerate(needs) if need and not repeats[k]]
        results: list[Tensor | None] = [None] * len(operands)
        for k, g in zip(own, _pull_back(call, operands, own, gradients), strict=True):
            results[k] = g
        whole = [t if r else wrap(t, s) for t, r in zip(operands, call.repeated, strict=True)]
        for k, need in enumerate(needs):
            if need and repeats[k]:
                results[k] = _gradient_of_repeated(call, whole, k, [wrap(g, s) for g in gradients])
        return None, *results


def _pull_back(
    call: _RepeatingCall, operands: Sequence[Tensor], at: Sequence[int], gradients: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return the gradients of the operands at positions `at`, by the gradients of the results."""
    if not at:
        return ()

    def function(*chosen: Tensor) -> Any:
        """Return the results as a function of the chosen operands."""
        by_position = dict(zip(at, chosen, strict=True))
        return call.function(*[by_position.get(k, t) for k, t in enumerate(operands)])

    _, pull_back = dt.autograd.vjp(function, *[operands[k] for k in at])
    result: tuple[Tensor, ...] = pull_back(*gradients)
    return result


def _gradient_of_repeated(
    call: _RepeatingCall, operands: Sequence[Tensor], at: int, gradients: Sequence[Tensor]
) -> Tensor:
    """Return the gradient of an operand that repeats along the sharded axis, on every rank."""
    name = f"gradient of {call.name}"
    shape, s = operands[at].shape, call.sharding
    free = [d for d, n in enumerate(shape) if n > 1 and d not in call.axes]
    if not free:
        whole = [gather_whole(name, t) for t in operands]
        return _pull_back(call, whole, [at], [gather_whole(name, g) for g in gradients])[0]
    axis = max(free, key=shape.__getitem__)
    new = Sharding(axis, choose_borders(shape[axis], s.group.size), s.group)

    def part(t: Tensor) -> Tensor:
        """Return this rank's part of a tensor along the new axis, or all of it if it repeats."""
        if t.shape[axis] != new.size:
            return gather_whole(name, t)  # type: ignore[no-any-return]  # a tensor
        if isinstance(t, ShardedTensor):
            return move(name, t, axis, new.borders).local()
        return exchanges.cut(t, new, name)

    own = _pull_back(call, [part(t) for t in operands], [at], [part(g) for g in gradients])[0]
    return exchanges.gather(own, new, name)


def shard_like(op: str, x: Tensor, s: Sharding) -> Tensor:
    """Return a replicated tensor as a sharded one, along the axis of `s`; unchanged if 0-d."""
    if not x.ndim:
        return x
    new = _fit(s, x)
    return wrap(dt.copy(exchanges.cut(x, new, op)), new)


def move_like(op: str, x: ShardedTensor, s: Sharding) -> ShardedTensor:
    """Return a sharded tensor, moved to the axis of `s`, and to its borders if sizes are equal.

    It stays where it is if that axis has one element, which one rank would have.
    """
    new = _fit(s, x)
    return move(op, x, new.axis, new.borders) if new.size > 1 else x


def _fit(s: Sharding, x: Tensor) -> Sharding:
    """Return a sharding of a result along the same axis, with the same borders if its size is."""
    axis = min(s.axis, x.ndim - 1)
    size = x.shape[axis]
    borders = s.borders if size == s.size else choose_borders(size, s.group.size)
    return Sharding(axis, borders, s.group)


def _map(function: Callable[[Any], Tensor], results: Any) -> Any:
    """Return the function of a result, or of each of several."""
    return tuple(map(function, results)) if isinstance(results, tuple) else function(results)


def softmax(x: ShardedTensor, axis: int) -> Tensor:
    """Return the softmax; along the sharded axis, by the steps of strided tensors."""
    if axis != x.axis:
        return x.with_local(dt.softmax(x.local(), axis=axis))
    e = dt.exp(_subtract_max(x))
    return (e / dt.sum(e, axis=axis, keepdims=True)).astype(_float_of(x))


def log_softmax(x: ShardedTensor, axis: int) -> Tensor:
    """Return the logarithm of the softmax; along the sharded axis as above."""
    if axis != x.axis:
        return x.with_local(dt.log_softmax(x.local(), axis=axis))
    d = _subtract_max(x)
    return (d - dt.log(dt.sum(dt.exp(d), axis=axis, keepdims=True))).astype(_float_of(x))


def _float_of(x: Tensor) -> dt.DType:
    """Return the dtype of the softmax: float32 for integers."""
    return dt.float32 if x.dtype.kind in "iu" else x.dtype


def _subtract_max(x: ShardedTensor) -> Tensor:
    """Return x minus its maximum along the sharded axis; no result depends on the maximum."""
    wide = x.astype(_float_of(x).compute)
    return wide - dt.max(wide, axis=x.axis, keepdims=True).detach() if x.size else wide


def sort(x: ShardedTensor, axis: int, descending: bool) -> Any:
    """Sort along an axis."""
    return call_along_axes(
        "sort", lambda t: dt.sort(t, axis=axis, descending=descending), (x,), (axis,)
    )


def diagonal(x: ShardedTensor, offset: int) -> Any:
    """Return a diagonal of the last two axes."""
    last = (x.ndim - 2, x.ndim - 1)
    return call_along_axes("diagonal", lambda t: dt.diagonal(t, offset, *last), (x,), last)


def triangle(x: ShardedTensor, k: int, upper: bool) -> ShardedTensor:
    """Return the triangle of each matrix; in a shard the diagonal is moved by the shard's start."""
    moved = {x.ndim - 2: x.sharding.start, x.ndim - 1: -x.sharding.start}.get(x.axis, 0)
    return x.with_local((dt.triu if upper else dt.tril)(x.local(), k=k + moved))


def kron(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the Kronecker product: the product along separate axes, merged in pairs."""
    ndim = max(x1.ndim, x2.ndim)
    left, right = (x[(None,) * (ndim - x.ndim)] for x in (x1, x2))
    product = left[(ALL, None) * ndim] * right[(None, ALL) * ndim]
    shape = [m * n for m, n in zip(left.shape, right.shape, strict=True)]
    return dt.reshape(product, tuple(shape))


def constant(x: ShardedTensor, value: float) -> ShardedTensor:
    """Return a tensor of one value, sharded like `x`."""
    return x.with_local(dt.full_like(x.local(), value))


def to_device(x: ShardedTensor, device: dt.Device) -> ShardedTensor:
    """Return the tensor with this rank's shard on another device."""
    return x.with_local(x.local().to(device=device))


def to_dense(x: ShardedTensor) -> Tensor:
    """Return the whole tensor."""
    return x.full()
