"""Batching rules of kernel ops for `vmap`."""

from __future__ import annotations

from typing import Any

from ..graph.expr import Expr
from ..ops import table as ops
from ..ops.table import Op
from ..tensor.primitives import pending_view
from .batching import BatchMap, Rule, batch_leading_axis, op_of, run_each_example


def _batch_matmul(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch (..., m, k) @ (..., k, n) as one product if an operand is shared."""
    (a, b), (x, y) = e.args, args
    if len(e.spec.shape) != 2:
        return batch_leading_axis(batch_map, e, args)
    (m, k), (_, n) = a.spec.shape, b.spec.shape
    if y is b:
        rows = pending_view(x, ("reshape", (batch_map.size * m, k)))
        product = batch_map.make_node(ops.MATMUL, (rows, y), (batch_map.size * m, n), e)
        return pending_view(product, ("reshape", (batch_map.size, m, n)))
    if x is a and n == 1:  # a shared matrix and a column: rows times the transposed matrix
        rows, transposed = (
            pending_view(y, ("reshape", (batch_map.size, k))),
            pending_view(x, ("permute", (1, 0))),
        )
        product = batch_map.make_node(ops.MATMUL, (rows, transposed), (batch_map.size, m), e)
        return pending_view(product, ("reshape", (batch_map.size, m, 1)))
    if k == 1 and e.spec.dtype.kind in "fc" and a.spec.dtype is b.spec.dtype is e.spec.dtype:
        return _batch_outer(
            batch_map, e, (batch_map.expand_to_batch(a, x), batch_map.expand_to_batch(b, y))
        )
    return batch_leading_axis(batch_map, e, args)


def _batch_outer(batch_map: BatchMap, e: Expr, operands: tuple[Expr, Expr]) -> Expr:
    """Batch a column times a row as a broadcast product: there is nothing to sum."""
    shape = (batch_map.size, *e.spec.shape)
    product = batch_map.make_plain_node(ops.MULTIPLY, operands, shape, e)
    # The generated kernel begins with +0, so that it gives no -0.
    return (
        batch_map.make_plain_node(ops.ADD, (product, 0.0), shape, e)
        if e.attrs == ops.NO_VENDOR_ATTRS
        else product
    )


def _batch_cumulative(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch an op that works along an axis, the first of its attributes."""
    operands = [batch_map.expand_to_batch(a, b) for a, b in zip(e.args, args, strict=True)]
    axis, *attrs = e.attrs
    return batch_map.make_node(
        op_of(e), operands, (batch_map.size, *e.spec.shape), e, (axis + 1, *attrs)
    )


def _batch_scatter(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch a scatter with the examples as columns behind the indexed axes."""
    lead = len(e.args) - 2  # as many as there are indices
    operands = []
    for i, (a, b) in enumerate(zip(e.args, args, strict=True)):
        if type(a) is Expr:
            whole, behind = batch_map.expand_to_batch(a, b), lead if i == 0 else 1
            order = (*range(1, behind + 1), 0, *range(behind + 1, len(whole.spec.shape)))
            b = pending_view(whole, ("permute", order))
        operands.append(b)
    shape = e.spec.shape
    result = batch_map.make_node(
        ops.SCATTER, operands, (*shape[:lead], batch_map.size, *shape[lead:]), e
    )
    order = (lead, *(d for d in range(len(shape) + 1) if d != lead))
    return pending_view(result, ("permute", order))


def _batch_search(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch a search; example by example, unless all share the sorted vector."""
    if any(a is not b for a, b in zip((e.args[0], *e.args[2:]), (args[0], *args[2:]), strict=True)):
        return run_each_example(batch_map, e, args)
    return batch_map.make_node(op_of(e), args, (batch_map.size, *e.spec.shape), e)


RULES: dict[Op, Rule] = {
    ops.MATMUL: _batch_matmul,
    ops.SCATTER: _batch_scatter,
    ops.SEARCHSORTED: _batch_search,
    ops.SORT: batch_leading_axis,
    ops.ARGSORT: batch_leading_axis,
    ops.SELECT: batch_leading_axis,
    ops.CHECKED_INDICES: batch_leading_axis,
    ops.CUMULATIVE_SUM: _batch_cumulative,
    ops.CUMULATIVE_PROD: _batch_cumulative,
    ops.CUMULATIVE_LOGSUMEXP: _batch_cumulative,
    ops.RECURRENCE: _batch_cumulative,
}
