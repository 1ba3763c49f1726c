"""Batching rules of kernel ops for `vmap`."""

from __future__ import annotations

import math
from typing import Any

from ..graph.expr import Expr
from ..ops import table as ops
from ..ops.table import Op
from ..tensor.primitives import pending_view
from .batching import BatchMap, Rule, batch_leading_axis, op_of, run_each_example


def _batch_matmul(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch a product of matrices or vectors, as one product if an operand is shared."""
    (a, b), (x, y) = e.args, args
    left, right = a.spec.shape, b.spec.shape
    if max(len(left), len(right)) > 2:
        return batch_leading_axis(batch_map, e, args)
    size, k = batch_map.size, left[-1]
    if y is b:
        rows = pending_view(x, ("reshape", (size * math.prod(left[:-1]), k)))
        return _multiply(batch_map, e, rows, y)
    if x is a and right in ((k,), (k, 1)):  # a shared first operand: rows times the transposed one
        rows = pending_view(y, ("reshape", (size, k)))
        other = pending_view(x, ("permute", (1, 0))) if len(left) == 2 else x
        return _multiply(batch_map, e, rows, other)
    x, y = batch_map.expand_to_batch(a, x), batch_map.expand_to_batch(b, y)
    if k == 1 and len(left) == len(right) == 2 and _is_plain(e):
        return _batch_outer(batch_map, e, (x, y))
    return _multiply(
        batch_map,
        e,
        x if len(left) == 2 else pending_view(x, ("reshape", (size, 1, k))),
        y if len(right) == 2 else pending_view(y, ("reshape", (size, k, 1))),
    )


def _multiply(batch_map: BatchMap, e: Expr, x: Expr, y: Expr) -> Expr:
    """Return the product of matrices that stands for all examples, in their shape."""
    *stack, rows, _ = x.spec.shape
    columns = y.spec.shape[-1:] if len(y.spec.shape) > 1 else ()
    product = batch_map.make_node(ops.MATMUL, (x, y), (*stack, rows, *columns), e)
    shape = (batch_map.size, *e.spec.shape)
    return product if product.spec.shape == shape else pending_view(product, ("reshape", shape))


def _is_plain(e: Expr) -> bool:
    """Return True for a product of floats or complex numbers without casts."""
    a, b = e.args
    return e.spec.dtype.kind in "fc" and a.spec.dtype is b.spec.dtype is e.spec.dtype


def _batch_outer(batch_map: BatchMap, e: Expr, operands: tuple[Expr, Expr]) -> Expr:
    """Batch a column times a row as a broadcast product: there is nothing to sum."""
    shape = (batch_map.size, *e.spec.shape)
    product = batch_map.make_plain_node(ops.MULTIPLY, operands, shape, e)
    # A sum of products begins with +0, so it is no -0.
    return batch_map.make_plain_node(ops.ADD, (product, 0.0), shape, e)


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
        op_of(e), operands, (*shape[:lead], batch_map.size, *shape[lead:]), e
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
    ops.SCATTER_REDUCE: _batch_scatter,
    ops.SEARCHSORTED: _batch_search,
    ops.SORT: batch_leading_axis,
    ops.ARGSORT: batch_leading_axis,
    ops.SELECT: batch_leading_axis,
    ops.CHECKED_INDICES: batch_leading_axis,
    ops.CUMULATIVE_SUM: _batch_cumulative,
    ops.CUMULATIVE_PROD: _batch_cumulative,
    ops.CUMULATIVE_LOGSUMEXP: _batch_cumulative,
    ops.CUMULATIVE_MAX: _batch_cumulative,
    ops.CUMULATIVE_MIN: _batch_cumulative,
    ops.RECURRENCE: _batch_cumulative,
}
