"""How kernel ops are done for all examples at once; see `lifting`."""

from __future__ import annotations

from typing import Any

from ..graph.expr import Expr
from ..ops import table as ops
from ..ops.table import Op
from ..tensor.verbs import pending_view
from .lifting import Lifting, Rule, each, in_front, ops_of


def _matmul(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """(..., m, k) @ (..., k, n): one product where one operand is the same for each example."""
    (a, b), (x, y) = e.args, args
    if len(e.spec.shape) != 2:
        return in_front(to, e, args)
    (m, k), (_, n) = a.spec.shape, b.spec.shape
    if y is b:
        rows = pending_view(x, ("reshape", (to.size * m, k)))
        made = to.made(ops.MATMUL, (rows, y), (to.size * m, n), e)
        return pending_view(made, ("reshape", (to.size, m, n)))
    if x is a and n == 1:  # a matrix and a column: rows, by the matrix turned
        rows, turned = (
            pending_view(y, ("reshape", (to.size, k))),
            pending_view(x, ("permute", (1, 0))),
        )
        made = to.made(ops.MATMUL, (rows, turned), (to.size, m), e)
        return pending_view(made, ("reshape", (to.size, m, 1)))
    if k == 1 and e.spec.dtype.kind in "fc" and a.spec.dtype is b.spec.dtype is e.spec.dtype:
        return _outer(to, e, (to.whole(a, x), to.whole(b, y)))
    return in_front(to, e, args)


def _outer(to: Lifting, e: Expr, given: tuple[Expr, Expr]) -> Expr:
    """Of a column and a row no product is summed."""
    shape = (to.size, *e.spec.shape)
    made = to.plain(ops.MULTIPLY, given, shape, e)
    # The generated kernel begins with +0, so that it gives no -0.
    return to.plain(ops.ADD, (made, 0.0), shape, e) if e.attrs == ops.GENERATED else made


def _running(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Along an axis that is the first of the op's attributes."""
    given = [to.whole(a, b) for a, b in zip(e.args, args, strict=True)]
    axis, *rest = e.attrs
    return to.made(ops_of(e), given, (to.size, *e.spec.shape), e, (axis + 1, *rest))


def _scatter(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Examples are columns, which stand behind the axes that are indexed."""
    lead = len(e.args) - 2  # as many as there are indices
    given = []
    for i, (a, b) in enumerate(zip(e.args, args, strict=True)):
        if type(a) is Expr:
            found, behind = to.whole(a, b), lead if i == 0 else 1
            order = (*range(1, behind + 1), 0, *range(behind + 1, len(found.spec.shape)))
            b = pending_view(found, ("permute", order))
        given.append(b)
    shape = e.spec.shape
    made = to.made(ops.SCATTER, given, (*shape[:lead], to.size, *shape[lead:]), e)
    order = (lead, *(d for d in range(len(shape) + 1) if d != lead))
    return pending_view(made, ("permute", order))


def _search(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Values in a vector that is the same for each example."""
    if any(a is not b for a, b in zip((e.args[0], *e.args[2:]), (args[0], *args[2:]), strict=True)):
        return each(to, e, args)
    return to.made(ops_of(e), args, (to.size, *e.spec.shape), e)


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
}  # fmt: skip
