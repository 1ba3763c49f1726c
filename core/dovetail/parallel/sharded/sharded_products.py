"""Matrix products of tensors that are sharded along rows, columns, matrices or contraction."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import dovetail as dt
from dovetail.extend import PRODUCT_BLOCK, PRODUCT_BLOCKS, broadcast_shapes

from . import exchanges
from .sharded_rules import broadcast, match_shardings, require_one_group
from .sharded_tensor import ShardedTensor, gather_whole, move, wrap
from .sharding import Shape, Sharding, choose_borders

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
        raise dt.ShapeError(
            f"matmul: shapes {x1.shape} and {x2.shape} do not fit: "
            f"{left.shape[-1]} columns against {right.shape[-2]} rows"
        )
    if x1.ndim > 2 >= x2.ndim and x1.size and _has_consecutive_rows(x1):
        rows = dt.reshape(x1, (math.prod(x1.shape[:-1]), x1.shape[-1]))
        product = matmul(rows, x2)  # one product, also in the gradient, as of strided tensors
        return dt.reshape(product, x1.shape[:-1] + product.shape[1:])
    result = _multiply(left, right)
    if x1.ndim == 1:
        result = result[..., 0, :]
    return result[..., 0] if x2.ndim == 1 else result


def _has_consecutive_rows(x: Tensor) -> bool:
    """Return True if each rank has consecutive rows of all matrices, or all rows."""
    return not isinstance(x, ShardedTensor) or (x.axis in (0, x.ndim - 1) and x.sharding.size > 1)


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
    is_shared = x2.ndim == 2 < x1.ndim or sharding.axis >= len(shape) - 2
    if is_shared and (x1.requires_grad or x2.requires_grad):
        return wrap(_Product.apply(_local_of(x1), _local_of(x2), sharding), sharding)
    return wrap(_local(x1, shape, sharding) @ _local(x2, shape, sharding), sharding)


def _gather_broadcast(x: Tensor, batch: Shape) -> Tensor:
    """Return an operand, gathered if its sharded axis counts matrices and it repeats along it."""
    if not isinstance(x, ShardedTensor) or x.axis >= x.ndim - 2:
        return x
    repeats = x.shape[x.axis] != batch[x.axis + len(batch) - (x.ndim - 2)]
    return gather_whole("matmul", x) if repeats else x


class _Product(dt.autograd.Function):
    """A product with a replicated operand, whose gradient is a product along the sharded axis."""

    @staticmethod
    def forward(ctx: Context, x1: Tensor, x2: Tensor, sharding: Sharding) -> Tensor:
        """Multiply the local matrices; columns of `x2` are sharded, or another axis of `x1`."""
        ctx.save_for_backward(x1, x2)
        ctx.sharding = sharding
        return x1 @ x2

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """Return the gradients: one of a shard, one of the replicated operand."""
        (x1, x2), needs = ctx.saved_tensors, ctx.needs_input_grad
        whole = wrap(g, ctx.sharding)
        has_columns = whole.axis == whole.ndim - 1
        axis = whole.axis - whole.ndim
        left = x1 if has_columns else wrap(x1, whole.sharding.along(axis + x1.ndim))
        right = wrap(x2, whole.sharding.along(axis + x2.ndim)) if has_columns else x2
        g1 = g2 = None
        if needs[0]:
            g1 = _sum_batch_axes(_multiply(whole, dt.conj(right.mT), GRADIENT), left.shape)
        if needs[1] and x2.ndim == 2 < x1.ndim and left.size:
            g2 = _sum_adjoint_products(left, whole)
        elif needs[1]:
            g2 = _sum_batch_axes(_multiply(dt.conj(left.mT), whole, GRADIENT), right.shape)
        return _local_of(g1), _local_of(g2), None


def _sum_batch_axes(x: Tensor, shape: Shape) -> Tensor:
    """Return the sum over the batch axes along which an operand of `shape` was broadcast."""
    lead = x.ndim - len(shape)
    axes = [d for d, n in enumerate(x.shape[:-2]) if d < lead or shape[d - lead] != n]
    return dt.sum(x, axis=tuple(axes), keepdims=True)[(0,) * lead] if axes else x


def _sum_adjoint_products(x: Tensor, g: ShardedTensor) -> Tensor:
    """Return the product `conj(x).mT @ g`, summed over the batch, on every rank."""
    columns = [
        gather_whole(GRADIENT, t) if is_whole else _move_or_cut(t, t.ndim - 1, g, GRADIENT)
        for t, is_whole in ((x, x.size < g.size), (g, x.size >= g.size))
    ]
    left, right = (dt.reshape(t, (math.prod(t.shape[:-1]), t.shape[-1])) for t in columns)
    product = _multiply(dt.conj(left.mT), right, GRADIENT)
    return gather_whole(GRADIENT, product)  # type: ignore[no-any-return]  # a tensor


def _local_of(x: Any) -> Any:
    """Return the shard of a sharded tensor; others unchanged."""
    return x.local() if isinstance(x, ShardedTensor) else x


def _kind_of(x: ShardedTensor, operand: int) -> str:
    """Return along what an operand is sharded."""
    return {(0, 2): ROWS, (0, 1): CONTRACTION, (1, 2): CONTRACTION, (1, 1): COLUMNS}.get(
        (operand, x.ndim - x.axis), MATRICES
    )


def _local(x: Tensor, shape: Shape, sharding: Sharding) -> Tensor:
    """Return an operand's part for this rank's shard of the result."""
    if sharding.axis < len(shape) - 2:  # a replicated operand may repeat for each matrix
        return broadcast("matmul", x, (*shape[:-2], *x.shape[-2:]), sharding)  # type: ignore[no-any-return]  # a tensor stays one
    if isinstance(x, ShardedTensor):
        return x.local()
    return exchanges.replicate(x, sharding.group, "matmul")


def _contract(x1: Tensor, x2: Tensor, name: str) -> Tensor:
    """Return the product along a sharded contraction, on every rank; halves are added in float32.

    Integers are added by rank. A long contraction is cut into pieces of the order of products,
    and the products of all pieces are added in that order. Of others, each rank computes some rows
    or columns of the result.
    """
    s = next(x.sharding for x in (x1, x2) if isinstance(x, ShardedTensor))
    dtype = dt.result_type(x1, x2)
    if dtype is dt.bool:
        return _contract(x1.astype(dt.int64), x2.astype(dt.int64), name) != 0
    unit = _choose_unit(s, dtype)
    if unit == 0:
        return _contract_by_results(x1, x2, name)
    s = s._replace(borders=_align_borders(s.borders, unit))
    x1, x2 = _cut_along(x1, s.along(x1.ndim - 1), name), _cut_along(x2, s.along(x2.ndim - 2), name)
    part1, part2 = (x.astype(dtype.compute) for x in (x1, x2))
    if unit == 1:
        return exchanges.add_ranks(part1 @ part2, s.group, name).astype(dtype)
    borders = tuple(accumulate([-(-n // unit) for n in s.lengths()], initial=0))
    starts = range(0, max(s.stop - s.start, 1), unit)
    products = [part1[..., k : k + unit] @ part2[..., k : k + unit, :] for k in starts]
    blocks = dt.stack(products)[: s.stop - s.start]  # none of an empty shard, but with its tape
    return exchanges.add_blocks(blocks, Sharding(0, borders, s.group), name).astype(dtype)


def _choose_unit(s: Sharding, dtype: dt.DType) -> int:
    """Return the length of the pieces of the contraction whose products are added in order.

    1: one piece for each rank, at any borders. 0: ranks share the result instead of a contraction.
    Pieces are groups of 256 blocks, or blocks if there are few, since each product is sent.
    """
    if dtype.kind in "iu" or s.group.size == 1:
        return 1
    units = [PRODUCT_BLOCK * PRODUCT_BLOCKS] + [PRODUCT_BLOCK] * (s.size <= BLOCKS_LENGTH_MAX)
    units = units if dtype.kind == "f" else []  # complex products are not added in that order
    aligned = (u for u in units if _align_borders(s.borders, u) == s.borders)
    return next(aligned, next((u for u in units if s.size >= u * s.group.size), 0))


def _align_borders(borders: Shape, unit: int) -> Shape:
    """Return the borders, rounded to multiples of `unit` within the axis."""
    size = borders[-1]
    return tuple([b if b == size else min(size, (b + unit // 2) // unit * unit) for b in borders])


def _contract_by_results(x1: Tensor, x2: Tensor, name: str) -> Tensor:
    """Return the product on every rank; each computes rows of it, or columns, and sends them.

    The smaller operand is gathered; the other one moves to its other axis of matrices.
    """
    if x1.size < x2.size:
        x1, x2 = gather_whole(name, x1), _move_or_cut(x2, x2.ndim - 1, x1, name)
    else:
        x1, x2 = _move_or_cut(x1, x1.ndim - 2, x2, name), gather_whole(name, x2)
    return gather_whole(name, _multiply(x1, x2, name))  # type: ignore[no-any-return]  # a tensor


def _move_or_cut(x: Tensor, axis: int, other: Tensor, name: str) -> ShardedTensor:
    """Return an operand sharded along an axis, over the group of `other` if it is replicated."""
    if isinstance(x, ShardedTensor):
        return move(name, x, axis)
    assert isinstance(other, ShardedTensor)
    group = other.sharding.group
    new = Sharding(axis, choose_borders(x.shape[axis], group.size), group)
    return wrap(exchanges.cut(x, new, name), new)


def _cut_along(x: Tensor, s: Sharding, name: str) -> Tensor:
    """Return this rank's part of an operand, sharded or replicated."""
    return (
        move(name, x, s.axis, s.borders).local()
        if isinstance(x, ShardedTensor)
        else exchanges.cut(x, s, name)
    )
