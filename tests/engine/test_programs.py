"""Prepared plans: the programs that they hold, their origin, and their release."""

from __future__ import annotations

import gc
import weakref

import dovetail as dt
import pytest
from dovetail.engine import evaluation as run
from dovetail.engine import plan_cache, programs
from dovetail.lru_cache import LRUCache
from dovetail.plugins.registry import open_device


@pytest.mark.parametrize("name", ["reference", "cpu", "opencl"])
def test_programs_are_released_unless_a_plan_in_use_holds_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "reference":
        pytest.importorskip({"cpu": "dovetail_cpu_llvm", "opencl": "dovetail_opencl"}[name])
    where = open_device(name)
    monkeypatch.setattr(where, "programs", LRUCache(8, revives=True))
    plans: LRUCache[object, object] = LRUCache(1000)
    known: LRUCache[object, object] = LRUCache(1000)
    monkeypatch.setattr(run, "_plans", plans)
    monkeypatch.setattr(plan_cache, "_cached_graphs", known)
    monkeypatch.setattr(
        programs,
        "program_caches",
        [plans, known, plan_cache.value_graphs, plan_cache.update_graphs],
    )
    plan_cache.value_graphs.age()

    def chain(bits: int) -> list[float]:
        y = dt.ones((4,), device=name)
        for b in range(6):
            y = y * 3 if bits >> b & 1 else y + 1
        found: list[float] = y.tolist()
        return found

    def by_hand(bits: int) -> list[float]:
        y = 1.0
        for b in range(6):
            y = y * 3 if bits >> b & 1 else y + 1
        return [y] * 4

    assert chain(0) == by_hand(0)
    first = weakref.ref(next(iter(where.programs.young.values())))
    seen: list[weakref.ref[object]] = []
    for bits in range(1, 40):
        assert chain(bits) == by_hand(bits)
        assert chain(0) == by_hand(0), "used all the time"
        seen.append(weakref.ref(list(where.programs.young.values())[-1]))
        assert len(where.programs.entries()) <= 8
    gc.collect()
    compiled = run.counters.compiles + run.counters.disk_hits
    assert chain(0) == by_hand(0) and first() is not None, "a plan in use keeps its program"
    assert run.counters.compiles + run.counters.disk_hits == compiled
    alive = sum(r() is not None for r in seen)
    assert alive <= 10, f"{alive} programs of 39 are still loaded"
    assert chain(1) == by_hand(1), "what is gone is made again"
