"""Matrix products of tensors that are sharded along rows, columns, matrices or contraction."""

from __future__ import annotations

import dovetail as dt
from dovetail.extend import broadcast_shapes

from . import exchanges
from .sharded_rules import align, require_equal
from .sharded_tensor import ShardedTensor, wrap
from .sharding import Shape, Sharding

Tensor = dt.Tensor
ROWS, COLUMNS, CONTRACTION, MATRICES = "rows", "columns", "contraction", "matrices"


def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the product over the last two axes.

    If both operands are cut along the contraction, each rank multiplies its part, and the products
    are added: the result is strided, on every rank. Otherwise the result is sharded as its operand.
    """
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


def _multiply(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the product of matrices, at least one of which is sharded."""
    batch = broadcast_shapes("matmul", x1.shape[:-2], x2.shape[:-2])
    shape = (*batch, x1.shape[-2], x2.shape[-1])
    kinds = [_kind_of(x, k) for k, x in enumerate((x1, x2)) if isinstance(x, ShardedTensor)]
    if len(set(kinds)) > 1:
        raise dt.LayoutError(
            f"matmul: the operands are sharded along {kinds[0]} and {kinds[1]}; use "
            "x.reshard(axis) or x.full() for one of them"
        )
    if kinds[0] == CONTRACTION:
        return _contract(x1, x2)
    shardings = []
    for k, x in enumerate((x1, x2)):
        if isinstance(x, ShardedTensor):
            s = x.sharding.along(x.axis + len(shape) - x.ndim)
            if s.axis < len(batch) and s.size != batch[s.axis]:
                raise dt.LayoutError(
                    f"matmul: a tensor of shape {x.shape} that is sharded along axis {x.axis} "
                    f"cannot be broadcast along it; use x.full() for operand {k + 1}"
                )
            shardings.append(s)
    sharding = require_equal("matmul", shardings)
    return wrap(_local(x1, shape, sharding) @ _local(x2, shape, sharding), sharding)


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


def _contract(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the sum of the products of all ranks' parts, in the order of the ranks."""
    operands = [x for x in (x1, x2) if isinstance(x, ShardedTensor)]
    s = require_equal("matmul", [x.sharding.along(0) for x in operands])
    part1, part2 = _part(x1, s.along(x1.ndim - 1)), _part(x2, s.along(x2.ndim - 2))
    return exchanges.add_ranks(part1 @ part2, s.group, "matmul")


def _part(x: Tensor, sharding: Sharding) -> Tensor:
    """Return this rank's part of an operand, sharded or replicated."""
    return x.local() if isinstance(x, ShardedTensor) else exchanges.cut(x, sharding, "matmul")
