"""Replays of a captured function, and their cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dovetail as dt
import pytest
from captured import bits, device, vector
from dovetail.capture import program
from dovetail.engine.events import counters
from installed import INSTALLED

__all__ = ["device"]


def test_replay_copies_host_data_in_again(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        table = dt.asarray([1.0, 2.0])
        sums = dt.asarray([0.0, 0.0])
        sums += x[:2]
        return sums * table, sums

    captured = dt.jit(f)
    for seed in range(3):
        first = captured(vector(seed=seed))
        assert bits(first) == bits(f(vector(seed=seed)))
        first[1][...] = 9


def test_replay_plans_and_evaluates_nothing(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        for _ in range(5):
            x[1:] = x[:-1] + x[1:]
        return x * 2

    captured, x = dt.jit(f), vector()
    captured(x), captured(x)
    plans, evaluations, launches = counters.plans, counters.evaluations, counters.launches
    captured(x)
    assert (counters.plans, counters.evaluations) == (plans, evaluations)
    assert counters.launches > launches


def test_intermediates_share_one_arena() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        for _ in range(20):
            x = x + 1
            dt.evaluate(x)
        return x

    captured, x = dt.jit(f), dt.ones(1000, device="reference")
    captured(x)
    before = dt.memory.stats("reference").allocations
    y = captured(x)
    assert dt.memory.stats("reference").allocations == before + 2  # the arena and the result
    assert y.tolist() == [21.0] * 1000


@pytest.mark.skipif("cpu" not in INSTALLED, reason="the interpreter has no routines of a vendor")
def test_profile_counts_a_routine_and_not_its_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, done = program.LibraryCallAct.prepare, list[str]()

    def noting(call: program.LibraryCallAct, opened: Any) -> Any:
        done.append("binds")
        return bound(call, opened)

    captured, x = dt.jit(lambda x: x @ x), dt.ones((32, 32), device="cpu")
    dt.evaluate(captured(x), captured(x))
    monkeypatch.setattr(program.LibraryCallAct, "prepare", noting)
    clock = SimpleNamespace(perf_counter_ns=lambda: done.append("begins") or 0)
    monkeypatch.setattr(program, "time", clock)
    with dt.profile() as found:
        dt.evaluate(captured(x))
    assert "call matmul" in [e["name"] for e in found.events]
    assert done == ["binds", "begins"]
