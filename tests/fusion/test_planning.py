"""Planning time is linear in the size of the graph, however deep, wide or shared it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import layout as lay
from dovetail.engine import evaluate as run
from dovetail.fusion import cost, grouping, terms
from dovetail.fusion.plan import PlannedLaunch
from dovetail.graph import expr

D = "reference"


def doubled(n: int) -> Any:
    return reduce(lambda y, _: y + y, range(n), dt.ones(4, device=D))


def logistic(n: int) -> Any:
    return reduce(lambda y, _: 3.7 * y * (1 - y), range(n), dt.full(4, 0.3, device=D))


def searched(n: int) -> Any:
    """Return a binary search written with gathers: every index depends on the one before."""
    a = dt.arange(1 << 12, device=D)
    wanted = dt.asarray([5, 77, 999], device=D)
    lo, hi = dt.zeros(3, dtype=dt.int64, device=D), dt.full(3, 1 << 12, device=D)
    for _ in range(n):
        mid = (lo + hi) // 2
        less = dt.take(a, mid) < wanted
        lo, hi = dt.where(less, mid + 1, lo), dt.where(less, hi, mid)
    return lo


def paired(leaves: list[Any]) -> Any:
    while len(leaves) > 1:
        rest = leaves[len(leaves) & ~1 :]
        leaves = [a + b for a, b in zip(leaves[::2], leaves[1::2], strict=False)] + rest
    return leaves[0]


def wide(n: int) -> Any:
    return paired([dt.ones(4, device=D) * k for k in range(n)])


def reductions(n: int) -> Any:
    rows = [dt.ones((5, 7), device=D) * k for k in range(n)]
    return paired([x.sum(axis=1)[:, None] * x.sum(axis=0) for x in rows])


def gathers(n: int) -> Any:
    at = dt.asarray([3, 2, 1], device=D)
    return paired([(dt.arange(50, device=D) + k)[at] for k in range(n)])


def reshapes(n: int) -> Any:
    """Reshape each transposed value in a way that its strides do not permit."""
    return paired([dt.reshape((dt.ones((4, 6), device=D) * k).T, (8, 3)) for k in range(n)])


def appended(n: int) -> Any:
    """Append a tensor of its own in each round."""
    parts = [dt.full(4, float(k), device=D) for k in range(n)]
    dt.evaluate(*parts)
    return reduce(lambda y, x: dt.concat([y, x]), parts)


def appended_rows(n: int) -> Any:
    """Put computed rows in front and columns behind, in turns."""
    y = dt.ones((1, 1), device=D)
    for k in range(n // 2):
        y = dt.concat([y[:1] * k, y])
        y = dt.concat([y, y[:, :1]], axis=1)
    return y


def shared_operands(n: int) -> Any:
    """Shift by one position; all rounds have one operand in common."""
    x = dt.ones(100, device=D)
    dt.evaluate(x)
    return reduce(lambda y, _: dt.concat([x[:1], y[:-1]]), range(n), x)


def padded(n: int) -> Any:
    x = dt.ones(100, device=D)
    return reduce(lambda y, _: dt.pad(y, ((1, 1),))[1:], range(n), x)


def doubled_shifts(n: int) -> Any:
    """Add neighbours of equal keys at distances that grow, as sums of segments do."""
    y, keys = dt.ones(5000, device=D), dt.arange(5000, device=D) // 7
    dt.evaluate(y, keys)
    for k in range(1, n + 1):
        is_same = keys[k:] == keys[:-k]
        y = dt.concat([y[:k], dt.where(is_same, y[k:] + y[:-k], y[k:])])
    return y


def smoothed(n: int) -> Any:
    """Average neighbours, and keep both ends."""
    y = dt.ones(5000, device=D)
    for _ in range(n):
        y = dt.concat([y[:1], 0.5 * (y[2:] + y[:-2]), y[-1:]])
    return y


def neighbours(n: int) -> Any:
    """Add neighbours of neighbours: slices of slices, of which many are equal."""
    x = dt.ones(5000, device=D)
    return reduce(lambda y, _: y[1:] + y[:-1], range(n), x)


def loops(n: int) -> Any:
    """Subtract means of costly values: a chain of reductions in which each needs the one before."""
    return reduce(lambda y, _: dt.sin(dt.sin(y)) - y.mean(), range(n), dt.ones(300, device=D))


def planning_work(monkeypatch: pytest.MonkeyPatch, roots: list[Any]) -> int:
    """Return the number of created terms, applied moves, visited expressions and statements."""
    count = 0
    build_term, on_the_fly, operands = terms.build_term, cost.recompute_cost, grouping.operands
    apply_move = lay.apply_move

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            nonlocal count
            count += 1
            return function(*args)

        return call

    with monkeypatch.context() as m:
        m.setattr(terms, "build_term", counted(build_term))
        m.setattr(cost, "recompute_cost", counted(on_the_fly))
        m.setattr(grouping, "operands", counted(operands))
        m.setattr(lay, "apply_move", counted(apply_move))
        plans = run.plan_pending([x._expr for x in roots])
    launches = [step for _, plan in plans for step in plan.steps if isinstance(step, PlannedLaunch)]
    return count + sum(len(step.kernel.body) for step in launches)


@pytest.mark.parametrize("shared", [doubled, logistic])
def test_value_used_twice_does_not_double_the_work(
    shared: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert planning_work(monkeypatch, [shared(20)]) < 20 * 20


def test_chain_of_loops_computes_costly_values_once() -> None:
    [(_, plan)] = run.plan_pending([loops(6)._expr])
    kernels = [step.kernel for step in plan.steps if isinstance(step, PlannedLaunch)]
    [(_, plan)] = run.plan_pending([loops(12)._expr])
    more = [step.kernel for step in plan.steps if isinstance(step, PlannedLaunch)]
    assert max(map(len, map(str, more))) == max(map(len, map(str, kernels)))
    assert len(more) - len(kernels) <= 6


def test_forty_doublings_are_exact() -> None:
    assert (doubled(40) / 2.0**40).tolist() == [1.0] * 4


def test_binary_search_of_gathers_finds_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planning_work(monkeypatch, [searched(12)]) < 2000
    assert searched(12).tolist() == [5, 77, 999]


@pytest.mark.parametrize("graph", [wide, reductions, gathers, reshapes])
def test_work_grows_linearly_with_the_graph(
    graph: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (planning_work(monkeypatch, [graph(n)]) for n in (256, 1024))
    assert many < 6 * few


@pytest.mark.parametrize(
    ("graph", "rounds"),  # of depth 60: deeper graphs are evaluated in parts
    [
        (appended, 60),
        (loops, 12),
        (appended_rows, 60),
        (shared_operands, 60),
        (padded, 60),
        (doubled_shifts, 20),
        (smoothed, 20),
        (neighbours, 60),
    ],
)
def test_work_grows_linearly_with_nested_views(
    graph: Callable[[int], Any], rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (planning_work(monkeypatch, [graph(n)]) for n in (rounds // 2, rounds))
    assert many < 3 * few


def test_work_grows_linearly_with_independent_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = (
        planning_work(monkeypatch, [dt.full(3, float(k), device=D) + 1 for k in range(n)])
        for n in (200, 1600)
    )
    assert many < 10 * few


def test_write_checks_only_readers_recorded_since(monkeypatch: pytest.MonkeyPatch) -> None:
    x, looked = dt.zeros(3, device=D), 0
    x.tolist()
    pending = [dt.full(3, float(k), device=D) * 2 for k in range(1000)]
    note = expr._register_reader

    def counted(*args: Any) -> None:
        nonlocal looked
        looked += 1
        note(*args)

    monkeypatch.setattr(expr, "_register_reader", counted)
    for _ in range(100):
        x += 1
    assert x.tolist() == [100.0] * 3 and pending
    assert looked < 2 * len(pending)


@pytest.mark.parametrize("size", [4097, 300_000])
def test_reduction_of_a_reduction_is_not_repeated_per_chunk(size: int) -> None:
    """`std` took 250 times as long as its two passes: each chunk computed the mean of all."""
    a = np.random.default_rng(3).random(size, dtype=np.float32)
    x = dt.asarray(a, device="cpu")
    spread = ((x - x.mean()) ** 2).mean()
    moved = sum(step.nbytes for step in dt.explain(spread).launches)
    assert moved < 3 * a.nbytes
    assert float(spread) == pytest.approx(float(((a - a.mean()) ** 2).mean()), rel=1e-5)


@pytest.mark.parametrize("n, launches", [(1000, 2), (5000, 1)])
def test_large_table_of_pairs_is_not_stored(n: int, launches: int) -> None:
    x = dt.linspace(0, 1, n, dtype=dt.float32, device="cpu")
    dt.evaluate(x)
    d = x[:, None] - x
    y = (dt.softmax(dt.sin(d) * dt.cos(d), axis=1) * d).sum(axis=1)
    del d
    assert len(dt.explain(y).launches) == launches


def test_costly_value_of_two_kernels_is_computed_once() -> None:
    noise = dt.random.normal((300_000,), device="cpu")
    names = [step.name for step in dt.explain(dt.std(noise * 1)).launches]
    assert sum("random_normal" in name for name in names) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_permuted_layout_is_only_for_values_without_reshapes(axis: int) -> None:
    """Two values requested each other's order, and planning raised an error."""
    x = np.arange(64 * 32, dtype="f4").reshape(64, 32)
    a = dt.reshape(dt.asarray(x, device=D), (4, 16, 4, 8)) * 2
    s, t = dt.sum(a, axis=(0, 2)), dt.sum(dt.reshape(a, (64, 32)), axis=axis)
    del a
    dt.evaluate(s, t)
    np.testing.assert_array_equal(s.numpy(), (x * 2).reshape(4, 16, 4, 8).sum(axis=(0, 2)))
    np.testing.assert_array_equal(t.numpy(), (x * 2).sum(axis=axis))


@pytest.mark.exhaustive
@pytest.mark.timeout(120)
def test_one_hundred_thousand_pending_values_are_planned() -> None:
    values = [dt.full((3,), float(k), device="cpu") + 1.0 for k in range(100_000)]
    dt.evaluate(*values)
    assert values[77_777].tolist() == [77_778.0] * 3
    added = paired([np.full(4, k, np.float32) for k in range(50_000)])  # in the same order
    assert wide(50_000).tolist() == added.tolist()
