"""Guards agree with graph keys on random graphs: a guard distinguishes what the key distinguishes.

A graph is evaluated until it has a guard. Then it is changed in one place, and the guard's answer
is compared with whether its key is still the same.

Two differences do not matter and are excluded: references to the root, which do not vary here, and
one leaf in two places instead of two leaves of one kind.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine import evaluate as run
from dovetail.engine import evaluation as one
from dovetail.engine import plan_cache, shape_classes
from dovetail.engine.graph_matcher import MISS, NEEDS_TEMP
from dovetail.graph.expr import node
from dovetail.graph.refcount import Box, pop
from dovetail.lru_cache import LRUCache
from dovetail.ops.table import COPY

GRAPHS, CHANGES = 150, 4
OPS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "subtract": lambda a, b: a - b,
    "maximum": dt.maximum,
    "where": lambda a, b: dt.where(a > b, a, b),
    "scale": lambda a, b: a * 2.5,
    "count": lambda a, b: a + 3,
    "exp": lambda a, b: dt.exp(a * 0.125),
    "abs": lambda a, b: dt.abs(a),
    "turn": lambda a, b: a.T + b,
    "part": lambda a, b: a[:1] + b,
    "round": lambda a, b: a.astype(dt.float16).astype(dt.float32),
    "mean": lambda a, b: a - dt.mean(b, axis=1, keepdims=True),
}


class Step(NamedTuple):
    op: str
    first: int
    second: int


class RandomGraph(NamedTuple):
    """Values are leaves, then the result of each step; the last is the root."""

    steps: tuple[Step, ...]
    held: frozenset[int]  # steps whose values are referenced, except for the root


def leaves(device: str) -> list[Any]:
    rng = np.random.default_rng(2)
    big, other = (dt.asarray(rng.standard_normal((5, 4)).astype("f4"), device=device) for _ in "ab")
    found = [big[:4], big[1:], other[:4].copy(), other[:4].T.copy().T, other[:4], other[:1]]
    dt.evaluate(*found)
    return found


def build(graph: RandomGraph, given: list[Any]) -> tuple[Any, list[Any]]:
    """Return the root and the referenced values."""
    values = list(given)
    for op, first, second in graph.steps:
        values.append(OPS[op](values[first], values[second]))
    held = [values[len(given) + i] for i in sorted(graph.held)]
    return values[-1], held


def random_graph(rng: random.Random, given: int) -> RandomGraph:
    """Return a graph of 2 to 7 steps; the root depends on the last of the others."""
    count = rng.randint(2, 7)
    steps = [
        Step(rng.choice([*OPS]), rng.randrange(given - 1 + i), rng.randrange(given + i))
        for i in range(count)
    ]
    steps[-1] = steps[-1]._replace(first=given + count - 2)
    return RandomGraph(tuple(steps), frozenset(i for i in range(count - 1) if rng.random() < 0.2))


def mutated(graph: RandomGraph, rng: random.Random, given: int) -> RandomGraph:
    """Return the graph, or one that differs in one place."""
    steps, i = list(graph.steps), rng.randrange(len(graph.steps))
    what = rng.randrange(5)
    if what == 0:
        steps[i] = steps[i]._replace(op=rng.choice([*OPS]))
    elif what == 1:
        steps[i] = steps[i]._replace(first=rng.randrange(given + i))
    elif what == 2:
        steps[i] = steps[i]._replace(second=rng.randrange(given + i))
    elif what == 3 and i < len(steps) - 1:
        return graph._replace(held=graph.held ^ {i})
    return graph._replace(steps=tuple(steps))


@pytest.fixture
def empty_caches(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[Any]]:
    """Clear all plans and guards, and return the set that collects the keys of new guards."""
    add, keys = plan_cache.cache_graph, set[Any]()

    def noted(walk: Any, *rest: Any) -> None:
        before = sum(map(len, plan_cache._cached_graphs.entries().values()))
        add(walk, *rest)
        if sum(map(len, plan_cache._cached_graphs.entries().values())) > before:
            keys.add(tuple(walk.key))

    def forget() -> set[Any]:
        monkeypatch.setattr(one, "_plans", LRUCache(100))
        monkeypatch.setattr(plan_cache, "_cached_graphs", LRUCache(100))
        monkeypatch.setattr(plan_cache, "_class_graphs", LRUCache(100))
        monkeypatch.setattr(shape_classes, "_skeletons", LRUCache(100))
        age_caches()
        keys.clear()
        return keys

    monkeypatch.setattr(plan_cache, "cache_graph", noted)
    return forget


def age_caches() -> None:
    plan_cache.value_graphs.age()
    plan_cache.update_graphs.age()


def evaluate_eagerly(graph: RandomGraph, given: list[Any]) -> Any:
    """Return the root's value, op by op, without filling caches."""
    before = one._plans, plan_cache._cached_graphs, plan_cache._class_graphs
    try:
        one._plans, plan_cache._cached_graphs = LRUCache(1000), LRUCache(1000)
        plan_cache._class_graphs = LRUCache(1000)
        age_caches()
        with dt.eager():
            return build(graph, given)[0].copy().numpy().copy()
    finally:
        one._plans, plan_cache._cached_graphs, plan_cache._class_graphs = before
        age_caches()


def graph_key(graph: RandomGraph, given: list[Any]) -> tuple[Any, int]:
    """Return the key of a graph and the number of its leaves."""
    root, held = build(graph, given)
    evaluation = one.Evaluation([root._expr])
    return evaluation.whole_key()[0], len(evaluation.graph.leaves) + 0 * len(held)


def test_guards_agree_with_keys(empty_caches: Callable[[], set[Any]]) -> None:
    given, seen = leaves("reference"), Counter[str]()
    for seed in range(GRAPHS):
        rng = random.Random(seed)
        guarded = empty_caches()
        graph = random_graph(rng, len(given))
        for _ in range(2):
            root, held = build(graph, given)
            dt.evaluate(root)
            del root, held
        wanted, count = graph_key(graph, given)
        if wanted not in guarded:
            seen["not simple"] += 1
            continue
        for _ in range(CHANGES):
            other = mutated(graph, rng, len(given))
            key, fewer = graph_key(other, given)
            root, held = build(other, given)
            matched = plan_cache.match_cached_graph(root._expr)
            if matched and fewer < count:
                seen["a leaf twice"] += 1
            else:
                assert matched == (key == wanted), (seed, graph, other)
                seen["matched" if matched else "told apart"] += 1
            if matched:
                expected = evaluate_eagerly(other, given)
                np.testing.assert_array_equal(root.numpy(), expected, err_msg=str(other))
            del root, held
    assert min(seen["matched"], seen["told apart"]) > 100, seen
    assert seen["a leaf twice"] < seen["told apart"] // 10, seen


def value_of(graph: RandomGraph, given: list[Any]) -> tuple[Box[Any], list[Any]]:
    root, held = build(graph, given)
    return [root._expr], held


def test_guards_of_writes_agree_with_keys(empty_caches: Callable[[], set[Any]]) -> None:
    """Write into a leaf of the graph, into memory that overlaps a leaf, and elsewhere."""
    seen = Counter[str]()
    for seed in range(GRAPHS):
        rng = random.Random(1000 + seed)
        guarded = empty_caches()
        given = leaves("reference")
        graph, at = random_graph(rng, len(given)), rng.randrange(len(given) - 1)

        def key_of(graph: RandomGraph, at: int, given: list[Any] = given) -> tuple[Any, int]:
            value, held = value_of(graph, given)
            if value[0].spec is not given[at]._expr.spec:
                return None, 0 * len(held)
            copy = node(COPY, (pop(value),), given[at]._expr.spec)
            evaluation = one.Evaluation([copy], given[at]._expr)
            return evaluation.whole_key()[0], len(evaluation.graph.leaves)

        wanted, count = key_of(graph, at)
        if wanted is None:
            continue
        for _ in range(2):
            value, held = value_of(graph, given)
            run.write(value, given[at]._expr)
            del held
        if wanted not in guarded:
            seen["not simple"] += 1
            continue
        for _ in range(CHANGES):
            other = mutated(graph, rng, len(given))
            to = at if rng.random() < 0.7 else rng.randrange(len(given) - 1)
            key, fewer = key_of(other, to)
            if key is None:
                continue
            expected = evaluate_eagerly(other, given)
            before = given[to].numpy().copy()
            value, held = value_of(other, given)
            done = plan_cache.try_cached_write(value[0], given[to]._expr)
            matched = done != MISS
            if matched and fewer < count:
                seen["a leaf twice"] += 1
            else:
                assert matched == (key == wanted), (seed, graph, at, other, to)
                seen["matched" if matched else "told apart"] += 1
            if done == NEEDS_TEMP:
                seen["apart"] += 1
                np.testing.assert_array_equal(given[to].numpy(), before, err_msg=str(other))
                run.write(value, given[to]._expr)
            if matched:
                np.testing.assert_array_equal(given[to].numpy(), expected, err_msg=str(other))
            del value, held
    assert min(seen["matched"], seen["told apart"]) > 50 and seen["apart"] > 5, seen
    assert seen["a leaf twice"] < seen["told apart"] // 10, seen
