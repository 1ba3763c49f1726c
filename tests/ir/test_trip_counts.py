"""Counts of iterations, compared with what the interpreter counts of expanded kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from unittest import mock

import limited
import numpy as np
import pytest
from dovetail.backend import reference
from dovetail.dtypes import float32
from dovetail.ir import expand_reductions as expansion
from dovetail.ir import trip_counts
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.interval_analysis import trip_bounds
from dovetail.ir.language import (
    CHUNK,
    Loop,
    Store,
    Value,
    const,
    fold_loop,
    load,
    map_loop,
    reduce_loop,
    walk,
)

Body = Callable[[Any, Value, Value], Value]


class RecordingRun(limited.CountingRun):
    """A run that records the most iterations of a point."""

    recorded: ClassVar[int] = 0

    def limit(self, n: Any, done: Any) -> Any:
        type(self).recorded = int(self.done.max())
        return n


def interpreted_iterations(kernel: Kernel, n: int) -> int:
    """Return the iterations that the interpreter counts for two points of an expanded kernel."""
    expanded = expansion.expand_reductions(kernel)
    assert not any(isinstance(s, Loop) and s.kind == "reduce" for s in walk(expanded.body))
    run = type("Run", (RecordingRun,), {"most": 0})
    with mock.patch.object(reference, "_BlockRun", run):
        reference.interpret(expanded, [np.ones(n + 40, "f4"), np.zeros(2, "f4")], [2, n], (), (2,))
    return run.recorded


def counted_iterations(kernel: Kernel, n: int) -> int:
    """Return the count of a kernel's iterations from the bounds of its loops."""
    bounds = trip_bounds(kernel, [2, n], [2])
    trips = {loop: count for loop, count in bounds.items() if count is not None}
    return trip_counts.count_iterations(kernel.body, trips).active


def build_kernel(body: Body) -> Kernel:
    """Return a kernel that stores the result of `body` for each point."""
    b = KernelBuilder("counted")
    x, y = b.buffer("x", float32, "r"), b.buffer("y", float32, "w")
    i, n = b.axis(b.int("points")), b.int("n")
    b.store(y, i, body(x, n, i))
    return b.build()


def add_up(x: Any, n: Value | int, i: Value) -> Value:
    """Return the sum of `n` values."""
    return reduce_loop("add", 0, n, lambda k: [load(x, k)])[0]


def fold(n: Value | int, step: Callable[[Value, Value], Value]) -> Value:
    """Return the result of a fold of `n` steps from 0."""

    def body(k: Value, total: Value) -> Sequence[Value]:
        return [step(k, total)]

    return fold_loop(0, n, [const(0.0, float32)], body).results[0]


BODIES: dict[str, Body] = {
    "fold": lambda x, n, i: fold(n, lambda k, t: t + load(x, k)),
    "fold of folds": lambda x, n, i: fold(
        9, lambda j, s: fold(n, lambda k, t: t + fold(2, lambda h, u: u + load(x, k)) + s)
    ),
    "folds in a row": lambda x, n, i: (
        fold(n, lambda k, t: t + load(x, k)) + fold(7, lambda k, t: t * 0.5 + load(x, i))
    ),
    "reduction": add_up,
    "reduction of a constant length": lambda x, n, i: add_up(x, 33, i),
    "fold of reductions": lambda x, n, i: fold(3, lambda k, t: t + add_up(x, n, k)),
    "reduction of folds": lambda x, n, i: reduce_loop(
        "add", 0, n, lambda k: [fold(3, lambda j, t: t + load(x, k))]
    )[0],
    "reduction of reductions": lambda x, n, i: reduce_loop(
        "add", 0, 5, lambda k: [add_up(x, n, k)]
    )[0],
}


@pytest.mark.parametrize("n", [0, 1, 40, CHUNK])
@pytest.mark.parametrize("name", BODIES)
def test_count_is_what_the_interpreter_counts(name: str, n: int) -> None:
    if n > 40 and " of " in name:
        n = 50
    kernel = build_kernel(BODIES[name])
    assert counted_iterations(kernel, n) == interpreted_iterations(kernel, n)


@pytest.mark.parametrize("n", [63, 64, 65, 128, 129, 64 * 64, 64 * 64 + 1, 64 * 64 + 130])
@pytest.mark.parametrize("name", ["reduction", "reduction of folds"])
def test_reduction_of_several_rows_is_counted(
    name: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of 64 values, so that the interpreter sees three rows."""
    for module in (expansion, trip_counts):
        monkeypatch.setattr(module, "CHUNK", 64)
    monkeypatch.setattr(expansion, "CHUNK_BITS", 6)
    kernel = build_kernel(BODIES[name])
    assert counted_iterations(kernel, n) == interpreted_iterations(kernel, n)


def test_map_in_a_map_is_counted() -> None:
    b = KernelBuilder("maps")
    x, y = b.buffer("x", float32, "r"), b.buffer("y", float32, "w")
    i, n = b.axis(b.int("points")), b.int("n")
    inner = lambda k: [map_loop(0, 3, lambda j: [Store(y, i, load(x, k))])]  # noqa: E731
    b.effect(map_loop(0, n, inner))
    assert counted_iterations(b.build(), 10) == 10 * (1 + 4) + 2
    assert counted_iterations(b.build(), 10) == interpreted_iterations(b.build(), 10)
