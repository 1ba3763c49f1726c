"""Batching rules of kernel ops for `vmap`."""

from __future__ import annotations

from typing import Any

from ..graph.expr import Expr
from ..ops import table as ops
from ..ops.table import Op
from ..tensor.primitives import pending_view
from .batching import Lifting, Rule, each, in_front, ops_of


def _matmul(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Batch (..., m, k) @ (..., k, n) as one product if an operand is shared."""
    (a, b), (x, y) = e.args, args
    if len(e.spec.shape) != 2:
        return in_front(to, e, args)
    (m, k), (_, n) = a.spec.shape, b.spec.shape
    if y is b:
        rows = pending_view(x, ("reshape", (to.size * m, k)))
        product = to.make_node(ops.MATMUL, (rows, y), (to.size * m, n), e)
        return pending_view(product, ("reshape", (to.size, m, n)))
    if x is a and n == 1:  # a shared matrix and a column: rows times the transposed matrix
        rows, transposed = (
            pending_view(y, ("reshape", (to.size, k))),
            pending_view(x, ("permute", (1, 0))),
        )
        product = to.make_node(ops.MATMUL, (rows, transposed), (to.size, m), e)
        return pending_view(product, ("reshape", (to.size, m, 1)))
    if k == 1 and e.spec.dtype.kind in "fc" and a.spec.dtype is b.spec.dtype is e.spec.dtype:
        return _outer(to, e, (to.whole(a, x), to.whole(b, y)))
    return in_front(to, e, args)


def _outer(to: Lifting, e: Expr, operands: tuple[Expr, Expr]) -> Expr:
    """Batch a column times a row as a broadcast product: there is nothing to sum."""
    shape = (to.size, *e.spec.shape)
    product = to.plain(ops.MULTIPLY, operands, shape, e)
    # The generated kernel begins with +0, so that it gives no -0.
    return to.plain(ops.ADD, (product, 0.0), shape, e) if e.attrs == ops.GENERATED else product


def _running(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Batch an op that works along an axis, the first of its attributes."""
    operands = [to.whole(a, b) for a, b in zip(e.args, args, strict=True)]
    axis, *attrs = e.attrs
    return to.make_node(ops_of(e), operands, (to.size, *e.spec.shape), e, (axis + 1, *attrs))


def _scatter(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Batch a scatter with the examples as columns behind the indexed axes."""
    lead = len(e.args) - 2  # as many as there are indices
    operands = []
    for i, (a, b) in enumerate(zip(e.args, args, strict=True)):
        if type(a) is Expr:
            whole, behind = to.whole(a, b), lead if i == 0 else 1
            order = (*range(1, behind + 1), 0, *range(behind + 1, len(whole.spec.shape)))
            b = pending_view(whole, ("permute", order))
        operands.append(b)
    shape = e.spec.shape
    result = to.make_node(ops.SCATTER, operands, (*shape[:lead], to.size, *shape[lead:]), e)
    order = (lead, *(d for d in range(len(shape) + 1) if d != lead))
    return pending_view(result, ("permute", order))


def _search(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Batch a search in a sorted vector that all examples share."""
    if any(a is not b for a, b in zip((e.args[0], *e.args[2:]), (args[0], *args[2:]), strict=True)):
        return each(to, e, args)
    return to.make_node(ops_of(e), args, (to.size, *e.spec.shape), e)


RULES: dict[Op, Rule] = {
    ops.MATMUL: _matmul,
    ops.SCATTER: _scatter,
    ops.SEARCHSORTED: _search,
    ops.SORT: in_front,
    ops.ARGSORT: in_front,
    ops.SELECT: in_front,
    ops.CHECKED_INDICES: in_front,
    ops.CUMULATIVE_SUM: _running,
    ops.CUMULATIVE_PROD: _running,
    ops.CUMULATIVE_LOGSUMEXP: _running,
    ops.RECURRENCE: _running,
}
