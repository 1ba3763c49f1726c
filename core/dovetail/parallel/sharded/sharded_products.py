"""Matrix products of tensors that are sharded along rows, columns, matrices or contraction."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import dovetail as dt
from dovetail.extend import PRODUCT_BLOCK, PRODUCT_BLOCKS, broadcast_shapes

from . import exchanges
from .sharded_rules import align, gather_whole, match_shardings, move, require_one_group
from .sharded_tensor import ShardedTensor, wrap
from .sharding import Shape, Sharding

Tensor = dt.Tensor
Context = Any  # what `forward` hands to `backward`
GRADIENT = "gradient of matmul"
BLOCKS_LENGTH_MAX = 8192  # of a contraction whose blocks of 256 are sent, 32 at most
ROWS, COLUMNS, CONTRACTION, MATRICES = "rows", "columns", "contraction", "matrices"


def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the product over the last two axes.

    If both operands are cut along the contraction, each rank multiplies its part, and the products
    are added: the result is strided, on every rank. Otherwise the result is sharded as its operand.
    Of operands that are cut in other ways the smaller one is gathered.
    """
    require_one_group("matmul", (x1, x2))
    left, right = _as_matrix(x1, 0), _as_matrix(x2, 1)
    if left.shape[-1] != right.shape[-2]:
        raise dt.ShapeError(f"matmul: shapes {x1.shape} and {x2.shape} do not fit")
    result = _multiply(left, right)
    if x1.ndim == 1:
        result = result[..., 0, :]
    return result[..., 0] if x2.ndim == 1 else result


def _as_matrix(x: Tensor, axis: int) -> Tensor:
    """Return a vector as a matrix with a new axis; others unchanged. Raises: ShapeError."""
    if not x.ndim:
        raise dt.ShapeError("matmul: expected at least 1 dimension, got shape ()")
    return dt.expand_dims(x, axis=axis) if x.ndim == 1 else x


def _multiply(x1: Tensor, x2: Tensor, name: str = "matmul") -> Tensor:
    """Return the product of matrices, at least one of which is sharded."""
    batch = broadcast_shapes("matmul", x1.shape[:-2], x2.shape[:-2])
    shape = (*batch, x1.shape[-2], x2.shape[-1])
    x1, x2 = (_gather_broadcast(x, batch) for x in (x1, x2))
    if not isinstance(x1, ShardedTensor) and not isinstance(x2, ShardedTensor):
        return x1 @ x2
    kinds = [_kind_of(x, k) for k, x in enumerate((x1, x2)) if isinstance(x, ShardedTensor)]
    if len(set(kinds)) > 1:  # rows by columns, or another pair: one operand is replicated
        smaller = int(x2.size <= x1.size)
        x1, x2 = (gather_whole("matmul", x) if k == smaller else x for k, x in enumerate((x1, x2)))
        kinds = [kinds[1 - smaller]]
    if kinds[0] == CONTRACTION:
        return _contract(x1, x2, name)
    (x1, x2), sharding = match_shardings("matmul", (x1, x2), shape)
    assert sharding is not None
    if x1.ndim == x2.ndim == 2 and (x1.requires_grad or x2.requires_grad):
        local1, local2 = (x.local() if isinstance(x, ShardedTensor) else x for x in (x1, x2))
        return wrap(_Product.apply(local1, local2, sharding), sharding)
    return wrap(_local(x1, shape, sharding) @ _local(x2, shape, sharding), sharding)


def _gather_broadcast(x: Tensor, batch: Shape) -> Tensor:
    """Return an operand, gathered if its sharded axis counts matrices and it repeats along it."""
    if not isinstance(x, ShardedTensor) or x.axis >= x.ndim - 2:
        return x
    repeats = x.shape[x.axis] != batch[x.axis + len(batch) - (x.ndim - 2)]
    return gather_whole("matmul", x) if repeats else x


class _Product(dt.autograd.Function):
    """A product with a replicated matrix, whose gradient is a product along the sharded axis."""

    @staticmethod
    def forward(ctx: Context, x1: Tensor, x2: Tensor, sharding: Sharding) -> Tensor:
        """Multiply the local matrices; rows of `x1` are sharded, or columns of `x2`."""
        ctx.save_for_backward(x1, x2)
        ctx.sharding = sharding
        return x1 @ x2

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """Return the gradients: one of a shard, one of the replicated matrix."""
        (x1, x2), sharding, needs = ctx.saved_tensors, ctx.sharding, ctx.needs_input_grad
        whole = wrap(g, sharding)
        left = wrap(x1, sharding) if sharding.axis == 0 else x1
        right = wrap(x2, sharding) if sharding.axis == 1 else x2
        g1 = _multiply(whole, dt.conj(right.mT), GRADIENT) if needs[0] else None
        g2 = _multiply(dt.conj(left.mT), whole, GRADIENT) if needs[1] else None
        return _local_of(g1), _local_of(g2), None


def _local_of(x: Tensor | None) -> Tensor | None:
    """Return the shard of a sharded tensor; others unchanged."""
    return x.local() if isinstance(x, ShardedTensor) else x


def _kind_of(x: ShardedTensor, operand: int) -> str:
    """Return along what an operand is sharded."""
    return {(0, 2): ROWS, (0, 1): CONTRACTION, (1, 2): CONTRACTION, (1, 1): COLUMNS}.get(
        (operand, x.ndim - x.axis), MATRICES
    )


def _local(x: Tensor, shape: Shape, sharding: Sharding) -> Tensor:
    """Return an operand's part for this rank's shard of the result."""
    if isinstance(x, ShardedTensor) or sharding.axis < len(shape) - 2:
        return align("matmul", x, shape, sharding)  # type: ignore[no-any-return]  # a tensor stays one
    return exchanges.replicate(x, sharding.group, "matmul")


def _contract(x1: Tensor, x2: Tensor, name: str) -> Tensor:
    """Return the sum of the products of all ranks' parts; halves are added in float32.

    If each rank has whole blocks of the order of products, the blocks of all ranks are added in
    that order, else one product of each rank in the order of the ranks.
    """
    s = next(x.sharding for x in (x1, x2) if isinstance(x, ShardedTensor))
    if isinstance(x2, ShardedTensor):
        x2 = move("matmul", x2, x2.axis, s.borders)
    pieces = (
        _part(x1, s.along(x1.ndim - 1), name),
        _part(x2, s.along(x2.ndim - 2), name),
    )
    dtype = dt.result_type(*pieces)
    if dtype is dt.bool:
        return _contract(x1.astype(dt.int64), x2.astype(dt.int64), name) != 0
    part1, part2 = (x.astype(dtype.compute) for x in pieces)
    unit = _choose_unit(s, dtype)
    if unit is None:
        return exchanges.add_ranks(part1 @ part2, s.group, name).astype(dtype)
    borders = tuple(accumulate([-(-n // unit) for n in s.lengths()], initial=0))
    starts = range(0, max(s.stop - s.start, 1), unit)
    products = [part1[..., k : k + unit] @ part2[..., k : k + unit, :] for k in starts]
    blocks = dt.stack(products)[: s.stop - s.start]  # none of an empty shard, but with its tape
    return exchanges.add_blocks(blocks, Sharding(0, borders, s.group), name).astype(dtype)


def _choose_unit(s: Sharding, dtype: dt.DType) -> int | None:
    """Return the length of the products that are added in their order; None if a border is within.

    Groups of 256 blocks, or blocks if there are few: each product is sent.
    """
    if dtype.kind != "f" or s.group.size == 1:  # complex products are added by rank
        return None
    units = [PRODUCT_BLOCK * PRODUCT_BLOCKS] + [PRODUCT_BLOCK] * (s.size <= BLOCKS_LENGTH_MAX)
    inner = [b for b in s.borders if b != s.size]
    return next((u for u in units if all(b % u == 0 for b in inner)), None)


def _part(x: Tensor, sharding: Sharding, name: str) -> Tensor:
    """Return this rank's part of an operand, sharded or replicated."""
    return x.local() if isinstance(x, ShardedTensor) else exchanges.cut(x, sharding, name)
