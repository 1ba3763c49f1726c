"""Reference counts of values: a referenced value is stored before its operands are overwritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.graph.expr import Expr
from dovetail.graph.refcount import find_external_references, is_sole_owner, pop

A = np.asarray([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0], [2.0, 6.0, 1.0]])
V = np.asarray([3.0, 1.0, 2.0])
OPS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "product": (lambda a, v: a @ v, lambda a, v: a @ v),
    "product of a transpose": (lambda a, v: a.T @ (a @ v - v), lambda a, v: a.T @ (a @ v - v)),
    "sort": (lambda a, v: dt.sort(v), lambda a, v: np.sort(v)),
    "argsort": (lambda a, v: dt.argsort(v) * 1.0, lambda a, v: np.argsort(v)),
    "scan": (lambda a, v: dt.cumulative_sum(v), lambda a, v: np.cumsum(v)),
    "gather": (lambda a, v: v[dt.asarray([2, 0, 1], device=v.device)], lambda a, v: v[[2, 0, 1]]),
    "sum": (lambda a, v: dt.sum(a * v, axis=1), lambda a, v: (a * v).sum(axis=1)),
    "chain": (lambda a, v: dt.abs(v * 2 - 3), lambda a, v: np.abs(v * 2 - 3)),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda u: u,
    "a slice": lambda u: u[1:],
    "reversed": lambda u: u[::-1],
    "a row": lambda u: u[None, :],
}


def _subtract(v: Any, u: Any) -> None:
    v -= u


def _overwrite(v: Any, u: Any) -> None:
    v[:] = u


def _overwrite_through_a_view(v: Any, u: Any) -> None:
    v[::-1][:] = u


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("write", [_subtract, _overwrite, _overwrite_through_a_view])
@pytest.mark.parametrize("seen", VIEWS)
@pytest.mark.parametrize("op", OPS)
def test_referenced_value_outlives_a_write_to_its_operand(
    op: str, seen: str, write: Callable[[Any, Any], None], device: str
) -> None:
    ours, theirs = OPS[op]
    for _ in range(4):  # planned, found in the cache, matched by a guard
        a, v = dt.asarray(A, device=device), dt.asarray(V, device=device)
        u = ours(a, v)
        held = VIEWS[seen](u)
        write(v, u)
        np.testing.assert_array_equal(np.asarray(held), VIEWS[seen](theirs(A, V)))
        expected = V.copy()
        write(expected, theirs(A, V))
        np.testing.assert_array_equal(np.asarray(v), expected)


def test_view_keeps_its_pending_source() -> None:
    x = dt.asarray([1.0, 2.0])
    y = dt.matmul(x, x)[None]  # this view is the only reference to the product
    x -= 1
    assert y.tolist() == [5.0]


def test_write_to_a_pending_tensor_does_not_alias_the_value() -> None:
    x, y = dt.ones(3) * 2, dt.ones(3) * 3
    x[...] = y
    x += 1
    assert (x.tolist(), y.tolist()) == ([4.0] * 3, [3.0] * 3)


def test_is_sole_owner_counts_other_references() -> None:
    holder = [Expr()]
    assert is_sole_owner(holder)
    others = (holder[0],)
    assert not is_sole_owner(holder) and others
    holder = [Expr()]
    value = pop(holder)
    assert holder == [] and is_sole_owner([Expr()]) and not is_sole_owner([value])


def test_externally_referenced_counts_unknown_references() -> None:
    nodes = [Expr(), Expr(), Expr()]
    index = dict.fromkeys(nodes)
    others = [nodes[1], nodes[2], nodes[2]]
    assert find_external_references(nodes, [0, 0, 0]) == [1, 2]
    assert find_external_references(nodes, [0, 1, 1]) == [2]
    assert find_external_references(nodes, [0, 1, 2]) == []
    assert len(index) == len(others) == 3
