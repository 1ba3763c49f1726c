"""The steps in which sharded tensors send messages, each with its gradient.

A strided tensor next to sharded ones is *replicated*: each rank has all of it, with the same
elements, and so is its gradient. Each step sends at once, so all ranks must make the same steps in
the same order; their backward passes do. `name` is the function that errors and `dt.explain` name.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import is_capturing

from .sharding import Messenger, Shape, Sharding

Tensor = dt.Tensor
BLOCK_ELEMENTS_GATHERED_MAX = 64  # so few need one step, not two
Context = Any  # what `forward` hands to `backward`


def slice_own(x: Tensor, sharding: Sharding) -> Tensor:
    """Return this rank's part of a replicated tensor, as a view."""
    return x[(*[slice(None)] * sharding.axis, slice(sharding.start, sharding.stop))]


class _Gather(dt.autograd.Function):
    """All shards, joined on all ranks."""

    @staticmethod
    def forward(ctx: Context, local: Tensor, sharding: Sharding, name: str) -> Tensor:
        """Exchange and join the shards."""
        ctx.sharding, ctx.name = sharding, _gradient_of(name)
        shards = sharding.group.all_gather(local, sharding.shapes(local.shape), name=name)
        return shards[0] if len(shards) == 1 else dt.concat(shards, axis=sharding.axis)

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor, None, None]:
        """Return the own part: the gradient is replicated."""
        return cut(g, ctx.sharding, ctx.name), None, None


class _Cut(dt.autograd.Function):
    """The part of a replicated tensor that this rank has."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, sharding: Sharding, name: str) -> Tensor:
        """Return the part as a view."""
        ctx.sharding, ctx.name = sharding, _gradient_of(name)
        return slice_own(x, sharding)

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradients of all parts, joined."""
        return gather(g, ctx.sharding, ctx.name), None, None


class _AddRanks(dt.autograd.Function):
    """The sum of one tensor of each rank, on all ranks."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, group: Messenger, name: str) -> Tensor:
        """Add the tensors in the order of the ranks."""
        ctx.group, ctx.name = group, _gradient_of(name)
        return group.all_reduce(x, name=name)  # type: ignore[no-any-return]  # as its argument

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient, which is that of each summand."""
        return replicate(g, ctx.group, ctx.name), None, None


class _AddBlocks(dt.autograd.Function):
    """The sum of consecutive products of all ranks, in the order of products, on all ranks."""

    @staticmethod
    def forward(ctx: Context, blocks: Tensor, sharding: Sharding, name: str) -> Tensor:
        """Add a share of the elements on each rank, and exchange the sums."""
        group, shape = sharding.group, blocks.shape[1:]
        ctx.count, ctx.group, ctx.name = len(blocks), group, _gradient_of(name)
        flat = dt.reshape(blocks, (len(blocks), math.prod(shape)))
        if sharding.size * flat.shape[1] <= BLOCK_ELEMENTS_GATHERED_MAX:
            return dt.reshape(_add_in_order(gather(flat, sharding, name)), shape)
        ends = [flat.shape[1] * r // group.size for r in range(group.size + 1)]
        columns = Sharding(1, tuple(ends), group)
        own = _add_in_order(reshard(flat, sharding, columns, name))
        return dt.reshape(gather(own, columns.along(0), name), shape)

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient, which is that of each product."""
        same = replicate(g, ctx.group, ctx.name)
        return dt.broadcast_to(same, (ctx.count, *g.shape)), None, None


def _add_in_order(blocks: Tensor) -> Tensor:
    """Return the sum over the first axis in the order of products: as products with 1."""
    return blocks[0] if len(blocks) == 1 else dt.ones_like(blocks[:, 0]) @ blocks


class _Replicate(dt.autograd.Function):
    """A replicated tensor that each rank uses for its own shard."""

    _accepts_unrounded = True

    @staticmethod
    def forward(ctx: Context, x: Tensor, group: Messenger, name: str) -> Tensor:
        """Return the tensor."""
        ctx.group, ctx.name, ctx.dtype = group, _gradient_of(name), x.dtype
        return x

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor, None, None]:
        """Return the sum of the gradients of all uses; halves are added in float32."""
        wide = g.astype(ctx.dtype.compute)
        return add_ranks(wide, ctx.group, ctx.name).astype(ctx.dtype), None, None


class _Reshard(dt.autograd.Function):
    """A shard along another axis or at other borders, of parts that all ranks have sent."""

    @staticmethod
    def forward(ctx: Context, local: Tensor, old: Sharding, new: Sharding, name: str) -> Tensor:
        """Send each rank its part of its new shard, and join what arrives."""
        ctx.old, ctx.new, ctx.name = old, new, _gradient_of(name)
        rank, along = old.group.rank, (slice(None),) * new.axis
        if old.axis == new.axis:
            own = [_overlap(old, rank, new, p) for p in range(old.group.size)]
            pieces = [local[(*along, slice(a - old.start, b - old.start))] for a, b in own]
            arriving = [_overlap(old, p, new, rank) for p in range(old.group.size)]
            lengths = [b - a for a, b in arriving]
            shapes = [(*local.shape[: new.axis], n, *local.shape[new.axis + 1 :]) for n in lengths]
        else:
            pieces = [local[(*along, slice(a, b))] for a, b in pairwise(new.borders)]
            shapes = old.shapes(pieces[rank].shape)
        return dt.concat(old.group.all_to_all(pieces, shapes, name=name), axis=old.axis)

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient along the old axis."""
        return reshard(g, ctx.new, ctx.old, ctx.name), None, None, None


def _overlap(old: Sharding, source: int, new: Sharding, to: int) -> tuple[int, int]:
    """Return the positions of the elements that one rank has and another one will have."""
    start = max(old.borders[source], new.borders[to])
    return start, max(start, min(old.borders[source + 1], new.borders[to + 1]))


def _gradient_of(name: str) -> str:
    """Return the name of a function's backward pass."""
    return f"gradient of {name}"


def _require_uncaptured(group: Messenger, name: str) -> None:
    """Raise CaptureError in a captured function, whose replay could not send messages."""
    if is_capturing() and group.size > 1:
        raise dt.CaptureError(
            f"{name}: a captured function cannot send messages to other ranks; call it without "
            "dt.jit, or capture functions of x.local()"
        )


def gather(local: Tensor, sharding: Sharding, name: str) -> Tensor:
    """Return all shards, joined; the gradient is replicated."""
    _require_uncaptured(sharding.group, name)
    return _Gather.apply(local, sharding, name)


def cut(x: Tensor, sharding: Sharding, name: str) -> Tensor:
    """Return this rank's part of a replicated tensor; its gradient is gathered."""
    return _Cut.apply(x, sharding, name) if x.requires_grad else slice_own(x, sharding)


def add_ranks(x: Tensor, group: Messenger, name: str) -> Tensor:
    """Return the sum of one tensor of each rank, in the order of the ranks."""
    _require_uncaptured(group, name)
    return _AddRanks.apply(x, group, name)


def add_blocks(blocks: Tensor, sharding: Sharding, name: str) -> Tensor:
    """Return the sum of consecutive products of all ranks along the first axis, in their order."""
    _require_uncaptured(sharding.group, name)
    return _AddBlocks.apply(blocks, sharding, name)


def replicate(x: Tensor, group: Messenger, name: str) -> Tensor:
    """Return a replicated tensor for use with this rank's shard; its gradients are added."""
    return _Replicate.apply(x, group, name) if x.requires_grad else x


def reshard(local: Tensor, old: Sharding, new: Sharding, name: str) -> Tensor:
    """Return this rank's shard along another axis, or at other borders."""
    _require_uncaptured(old.group, name)
    return _Reshard.apply(local, old, new, name)


def gather_shapes(group: Messenger, shape: Shape, name: str) -> list[Shape]:
    """Return the shape of each rank's tensor. Raises: WorkerError for other numbers of axes."""
    _require_uncaptured(group, name)
    rows = group.all_gather(np.asarray(shape, np.int64), name=name)
    return [tuple(row.tolist()) for row in rows]
