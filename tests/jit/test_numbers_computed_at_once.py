"""Captured functions read tensors whose number the host has computed at once."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import pytest
from dovetail.extend import graph_of
from dovetail.graph import expr
from dovetail.tensor.c_fields import expr_of

SCALE: Any = None
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv]


def number(value: float) -> dt.Tensor:
    """Return a number that the host has computed at once: a pending constant."""
    x = dt.asarray([[value / 2]])[0, 0] * 2.0
    assert expr_of(x).op is not None, "the number was not computed at once"
    return x


def as_computed(x: dt.Tensor) -> dt.Tensor:
    return x


def as_view(x: dt.Tensor) -> dt.Tensor:
    return x.reshape(1)


def as_result(x: dt.Tensor) -> dt.Tensor:
    return x[None].repeat(2)


def test_rebound_global_variable_is_read_again() -> None:
    global SCALE
    SCALE = number(3.0)
    f = dt.jit(lambda x: x * SCALE)
    for k in (3.0, 5.0, 7.0):
        SCALE = number(k)
        assert f(dt.ones(2)).tolist() == [k, k]
    assert f.captures == 1


@pytest.mark.parametrize("form", [as_computed, as_view, as_result])
def test_rebound_closure_attribute_and_item_are_read_again(
    form: Callable[[dt.Tensor], dt.Tensor],
) -> None:
    cell, model = form(number(1.0)), SimpleNamespace(k=form(number(2.0)))
    table, rows = {"k": form(number(3.0))}, [form(number(4.0))]
    f = dt.jit(lambda x: x * cell + model.k * 10 + table["k"] * 100 + rows[0] * 1000)
    assert f(dt.ones(2)).tolist() == [4321.0] * 2
    cell, model.k = form(number(5.0)), form(number(6.0))
    table["k"], rows[0] = form(number(7.0)), form(number(8.0))
    assert f(dt.ones(2)).tolist() == [8765.0] * 2
    assert f.captures == 1


@pytest.mark.parametrize("write", IN_PLACE)
def test_write_by_the_function_changes_the_number(write: Callable[[Any, Any], Any]) -> None:
    def step(x: dt.Tensor, state: Any) -> dt.Tensor:
        state["n"] = write(state["n"], 2.0)
        return x * state["n"]

    state, expected = {"n": number(64.0)}, {"n": dt.full((), 64.0)}
    f = dt.jit(lambda x: step(x, state))
    for _ in range(4):
        assert f(dt.ones(2)).tolist() == step(dt.ones(2), expected).tolist()
        assert state["n"].item() == expected["n"].item()


def test_write_from_outside_is_seen_by_the_function() -> None:
    k = number(3.0)
    f = dt.jit(lambda x: x * k)
    f(dt.ones(2))
    k += 4.0
    assert f(dt.ones(2)).tolist() == [7.0, 7.0]


@pytest.mark.parametrize("loop", ["scan", "fori_loop"])
def test_body_of_a_loop_reads_the_attribute_again(loop: str) -> None:
    model = SimpleNamespace(k=number(2.0))

    def run(x: dt.Tensor) -> dt.Tensor:
        if loop == "scan":
            return dt.scan(lambda h, r: (h * model.k + r, None), x, dt.ones((3, 2)))[0]
        return dt.fori_loop(0, 3, lambda i, h: h * model.k + 1.0, x)

    f = dt.jit(run)
    assert f(dt.ones(2)).tolist() == [15.0, 15.0]
    model.k = number(3.0)
    assert f(dt.ones(2)).tolist() == run(dt.ones(2)).tolist() == [40.0, 40.0]


def test_gradient_reads_the_attribute_again() -> None:
    model = SimpleNamespace(k=number(2.0))
    f = dt.jit(dt.func.grad(lambda x: (x * x * model.k).sum()))
    assert f(dt.ones(2)).tolist() == [4.0, 4.0]
    model.k = number(3.0)
    assert f(dt.ones(2)).tolist() == [6.0, 6.0]


def test_graph_has_an_older_number_as_a_constant_tensor() -> None:
    k, in_memory = number(3.0), dt.asarray(3.0)
    graph = graph_of(lambda x: x * k, [dt.ones(2)])
    expected = graph_of(lambda x: x * in_memory, [dt.ones(2)])
    assert [n.op for n in graph.nodes] == [n.op for n in expected.nodes]


def test_log_of_constants_keeps_the_live_ones_and_drops_the_others() -> None:
    x = dt.asarray([0.25, 0.5])
    kept = [x[0] * float(i) for i in range(600)]
    blocks, pending = sys.getallocatedblocks(), len(expr.pending_nodes())
    for i in range(20_000):
        x[1] * float(i)
    assert sys.getallocatedblocks() - blocks < 4_000
    assert len(expr.pending_nodes()) == pending
    del kept[100:]
    assert len(expr.pending_nodes()) == pending - 500
