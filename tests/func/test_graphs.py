"""`extend.graph_of`: the ops of a function as a readable graph."""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail.extend import GraphNode, composite, graph_of

R = "reference"


def ops(graph: object) -> list[str]:
    return [n.op for n in graph.nodes]  # type: ignore[attr-defined]


def test_graph_of_computes_and_writes_nothing() -> None:
    x, outside = dt.ones(3, device=R), dt.zeros(3, device=R)
    dt.evaluate(outside)

    def f(x: dt.Tensor) -> dt.Tensor:
        outside.copy_(x * 2)
        return outside + 1

    graph = graph_of(f, [x])
    assert len(graph.writes) == 1 and __file__ in graph.writes[0]
    assert outside.tolist() == [0, 0, 0]
    assert graph.results[0].varies


def test_in_place_writes_become_values_that_views_read() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = x.copy()
        z = y[1:]
        y[1] = 5
        return z * 1

    graph = graph_of(f, [dt.ones(3, device=R)])
    made = graph.results[0]
    assert made.op == "multiply"
    seen = made.args[0]
    assert isinstance(seen, GraphNode) and seen.attrs[0] == "slice"
    assert isinstance(seen.args[0], GraphNode) and seen.args[0].op == "written"


def test_constants_are_folded_and_random_numbers_are_not_drawn() -> None:
    before = dt.random.get_state() if hasattr(dt.random, "get_state") else None
    graph = graph_of(
        lambda x: x + dt.arange(3, device=R) * 2 + dt.random.rand(3, device=R),
        [dt.ones(3, device=R)],
    )
    assert [n.draws for n in graph.nodes].count(True) == 1
    final = [a for n in graph.nodes if n.op == "add" for a in n.args if isinstance(a, GraphNode)]
    assert any(a.op == "constant" and a.tensor.tolist() == [0, 2, 4] for a in final)
    if before is not None:
        assert str(dt.random.get_state()) == str(before)
    unfolded = graph_of(
        lambda x: x + dt.arange(3, device=R) * 2, [dt.ones(3, device=R)], folds=False
    )
    assert "constant" not in ops(unfolded)


def test_nodes_name_the_lines_of_the_user() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        return dt.softmax(x, 0)

    lines = {n.line for n in graph_of(f, [dt.ones(3, device=R)]).nodes if n.op != "input"}
    assert lines == {f"{__file__}:{f.__code__.co_firstlineno + 1}"}


def test_reading_a_value_raises_and_the_next_graph_works() -> None:
    with pytest.raises(dt.CaptureError, match="mine"):
        graph_of(lambda x: float(x[0]), [dt.ones(3, device=R)], name="mine")
    assert ops(graph_of(dt.tanh, [dt.ones(3, device=R)])) == ["input", "tanh"]
    assert (dt.ones(2, device=R) + 1).tolist() == [2, 2]
    assert graph_of(lambda x: x * float(dt.ones(2, device=R).sum()), [dt.ones(1, device=R)])


def test_work_pending_before_is_a_constant() -> None:
    pending = dt.ones(3, device=R) * 2
    graph = graph_of(lambda x: x + pending, [dt.ones(3, device=R)])
    constants = [n.tensor.tolist() for n in graph.nodes if n.tensor is not None]
    assert constants == [[2, 2, 2]] and pending.tolist() == [2, 2, 2]


def test_composite_is_one_node_with_its_parts() -> None:
    @composite
    def scaled(x: dt.Tensor, by: float = 3.0) -> dt.Tensor:
        """Return x * by."""
        return x * by

    graph = graph_of(lambda x: scaled(x) + 1, [dt.ones(3, device=R)])
    node = next(n for n in graph.nodes if n.kind == "composite")
    assert node.op == "scaled" and node.attrs.arguments["by"] == 3.0
    assert node.attrs.parts.op == "multiply" and scaled.__doc__ == "Return x * by."
    assert scaled(dt.ones(2, device=R)).tolist() == [3, 3]


def test_capture_works_while_a_traced_tensor_is_alive() -> None:
    leaked: list[dt.Tensor] = []
    graph_of(lambda x: leaked.append(x * 2) or x, [dt.ones(2, device="reference")])
    assert dt.jit(lambda x: x + 1)(dt.ones(2, device="reference")).tolist() == [2.0, 2.0]
    with pytest.raises(dt.CaptureError, match="after the function has returned"):
        dt.jit(lambda x: x + leaked[0])(dt.ones(2, device="reference"))
