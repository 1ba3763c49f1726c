"""A loop of repeated statements plans, walks and requests nothing after the first rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine import evaluate as run
from dovetail.engine import programs
from dovetail.engine.evaluation import CACHED_NODES_MIN
from dovetail.engine.events import counters

Statement = Callable[[], object]
ROUNDS = 3


def filled(*shape: int) -> dt.Tensor:
    values = np.random.default_rng(len(shape)).random(shape).astype(np.float32)
    made = dt.asarray(values, device="cpu")
    dt.evaluate(made)
    return made


class Program:
    """The operands of the statements."""

    def __init__(self) -> None:
        self.u, self.v, self.w = filled(20, 20), filled(20, 20), filled(20, 20)
        self.x, self.y, self.m = filled(100), filled(100), filled(8, 8)
        self.places = dt.asarray(list(range(0, 100, 5)), device="cpu")
        self.mask = self.y > 0.5
        self.flags = self.y < 0.5
        dt.evaluate(self.mask, self.flags)

    def neighbours(self) -> dt.Tensor:
        u = self.u
        return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])

    def stencil(self) -> None:
        self.v[1:-1, 1:-1] = self.neighbours()

    def stencil_in_place(self) -> None:
        self.u[1:-1, 1:-1] = self.neighbours()

    def fields(self) -> None:
        e, h = self.v, self.w
        e[1:, :] = e[1:, :] + 0.1 * (h[1:, :] - h[:-1, :])
        h[:-1, :] = h[:-1, :] - 0.1 * (e[1:, :] - e[:-1, :])

    def shifted_update(self) -> None:
        self.x[1:] -= 0.1 * (self.x[1:] - self.x[:-1])

    def shifts_of_itself(self) -> None:
        self.x[1:] = self.x[:-1]
        self.flags[1:] = self.flags[:-1]
        self.u[1:, 1:] = self.u[:-1, :-1]

    def updates(self) -> None:
        self.x += self.y
        self.y *= 0.5
        dt.add(self.x, self.y, out=self.x)

    def elements(self) -> None:
        self.x[3] = float(self.x[2]) + 1.0
        self.m[:, 0] = self.m[1] * 2

    def indices(self) -> None:
        self.x[self.places] = 2.0
        self.x[self.mask] = 0.0
        dt.evaluate(self.x[self.places] * 2)

    def indices_of_indices(self) -> None:
        self.x[self.places] += 0.5
        self.u[self.places[:4], self.places[:4]] = self.u[0, self.places[:4]] * 2

    def view_of_a_pending_value(self) -> None:
        inner = (self.x + 1)[1:-1]
        self.x[1:-1] = inner * 0.5

    def exchange(self) -> None:
        self.v[1:-1, 1:-1] = self.u[1:-1, 1:-1] * 2
        self.u, self.v = self.v, self.u

    def triangle(self) -> None:
        for i in range(1, 5):
            self.x[i] = self.x[i] - self.m[i, :i] @ self.x[:i]

    def several_at_once(self) -> None:
        a = self.x + 1
        b = a * self.y
        total, most = b.sum(), b.max()
        dt.evaluate(total, a, most)  # one of them is read by the others
        self.y = dt.minimum(a, self.y) + total / (1e3 * most)
        dt.evaluate(self.y, self.m @ self.m)

    def life(self) -> None:
        w = self.w
        count = dt.zeros((20, 20), device="cpu")
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                count = count + dt.roll(dt.roll(w, i, axis=0), j, axis=1)
        self.w = dt.where(count > 3, w, 0.5 * w)
        dt.evaluate(self.w)

    def step(self) -> None:
        alpha = float(self.x @ self.y)
        self.x += 0.001 * alpha * self.y
        dt.evaluate(dt.softmax(self.m @ self.m, axis=1))


NAMES = [n for n, f in vars(Program).items() if callable(f) and not n.startswith("_")]
STATEMENTS = [n for n in NAMES if n != "neighbours"]


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Return the list of walked graphs, with empty caches."""
    seen: list[object] = []
    for cache in (
        *programs.program_caches,
        *programs.program_caches,
    ):  # twice: young entries become old first
        cache.age()

    class Noted(run.Evaluation):
        __slots__ = ()

        def __init__(self, *given: Any) -> None:
            seen.append(len(seen))
            super().__init__(*given)

    monkeypatch.setattr(run, "Evaluation", Noted)
    yield seen


@pytest.mark.parametrize("name", STATEMENTS)
def test_repeated_statement_hits_a_guard_from_the_third_round_on(
    name: str, walked: list[object]
) -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    statement: Statement = getattr(Program(), name)
    for _ in range(3):
        statement()
    assert walked, "known before"
    walked.clear()
    plans, evaluations = counters.plans, counters.evaluations
    held = dt.memory.stats("cpu").device_allocations
    for _ in range(ROUNDS):
        statement()
    assert counters.evaluations > evaluations
    assert (len(walked), counters.plans - plans) == (0, 0)
    assert dt.memory.stats("cpu").device_allocations == held


@pytest.mark.parametrize("sums", [4, CACHED_NODES_MIN // 4])
def test_large_graph_hits_a_guard_the_second_time(sums: int, walked: list[object]) -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    x = filled(16)
    rounds = []
    for _ in range(3):
        walked.clear()
        found = [dt.sum(dt.exp(x * -float(i)) + x) for i in range(sums)]
        dt.evaluate(*found)
        rounds.append(len(walked))
        assert [float(y) for y in found] == pytest.approx(
            [np.sum(np.exp(-i * x.numpy()) + x.numpy()) for i in range(sums)]
        )
    assert rounds == ([1, 0, 0] if sums * 4 >= CACHED_NODES_MIN else [1, 1, 0])


@pytest.mark.parametrize("name", STATEMENTS)
def test_guard_hits_compute_what_eager_mode_does(name: str) -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    ours, slow = Program(), Program()
    for _ in range(5):
        getattr(ours, name)()
        with dt.eager():
            getattr(slow, name)()
    for field in ("u", "v", "w", "x", "y", "m", "flags"):
        found, wanted = getattr(ours, field).numpy(), getattr(slow, field).numpy()
        np.testing.assert_array_equal(found, wanted, err_msg=field)


def test_guard_distinguishes_one_tensor_from_several() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    x = filled(100)
    for _ in range(4):
        three = [x + 1, x + 1, x + 1]
        dt.evaluate(*three)
    one, other = x + 1, x + 1
    product = one * 2
    recognised = counters.graph_hits
    dt.evaluate(one, one, other)
    assert counters.graph_hits == recognised, "two are to be computed, not three"
    for made in (*three, one, other, product / 2):
        np.testing.assert_array_equal(made.numpy(), x.numpy() + 1)


def test_guard_distinguishes_which_values_are_referenced() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    x, kept = filled(100), []
    for turn in range(8):
        inner = x * 3 + 1
        roots = [inner.sum(), inner.max()]
        if turn % 2:
            kept.append(inner)
        del inner
        dt.evaluate(*roots)
    wanted = x.numpy() * np.float32(3) + 1
    x += 1
    for found in kept:
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_rows_of_a_triangle_hit_their_graphs_after_two_rounds() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    m = filled(48, 48)
    for _ in range(3):
        before = counters.graph_hits
        sums = [float(m[j, :j] @ m[0, :j] * 2.0) for j in range(1, 48)]
    assert counters.graph_hits - before == 47
    row = m.numpy()[0].astype(np.float64)
    wanted = [float(m.numpy()[j, :j] @ row[:j] * 2.0) for j in range(1, 48)]
    np.testing.assert_allclose(sums, wanted, rtol=1e-5)
