"""Prepared plans: the programs that they hold, their origin, and their release."""

from __future__ import annotations

import gc
import threading
import weakref

import dovetail as dt
import pytest
from dovetail.engine import evaluation as run
from dovetail.engine import plan_cache, programs
from dovetail.extend import CompileError, Kernel, Program
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


def test_kernels_of_a_plan_are_compiled_by_threads_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = open_device("reference")
    monkeypatch.setattr(where, "programs", LRUCache(1000, revives=True))
    monkeypatch.setattr(run, "_plans", LRUCache(1000))
    together, compile_alone = threading.Barrier(2, timeout=60), where.backend.compile
    idents = list[int]()

    def compile_together(kernel: Kernel) -> Program:
        idents.append(threading.get_ident())
        if len(idents) <= 2:
            together.wait()
        return compile_alone(kernel)

    monkeypatch.setattr(where.backend, "compile", compile_together)
    monkeypatch.setattr(where.backend, "compile_threads", 2, raising=False)
    before = run.counters.compiles
    x = dt.asarray([[3.0, 1.0], [2.0, 4.0]], device="reference")
    results = [dt.sum(x * 5), dt.cumulative_sum(x, axis=0), dt.sort(x, axis=1)]
    dt.evaluate(*results)
    assert [r.tolist() for r in results] == [50.0, [[3, 1], [5, 5]], [[1, 3], [2, 4]]]
    assert len({*idents[:2]}) == 2 and run.counters.compiles - before == len(idents)


def test_error_of_one_kernel_is_raised_and_leaves_the_work_pending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = open_device("reference")
    monkeypatch.setattr(where, "programs", LRUCache(1000, revives=True))
    monkeypatch.setattr(run, "_plans", LRUCache(1000))
    compile_alone, started = where.backend.compile, list[str]()

    def compile_some(kernel: Kernel) -> Program:
        if len(started) > 0:
            raise CompileError(f"no {kernel.name}")
        started.append(kernel.name)
        return compile_alone(kernel)

    monkeypatch.setattr(where.backend, "compile", compile_some)
    monkeypatch.setattr(where.backend, "compile_threads", 3, raising=False)
    x = dt.asarray([[3.0, 1.0], [2.0, 4.0]], device="reference")
    results = [dt.sum(x * 7), dt.cumulative_sum(x, axis=0), dt.sort(x, axis=0)]
    with pytest.raises(CompileError, match="no "):
        dt.evaluate(*results)
    assert {p.kernel.name for p in where.programs.young.values()} <= {*started}
    monkeypatch.undo()
    assert [r.tolist() for r in results] == [70.0, [[3, 1], [5, 5]], [[2, 1], [3, 4]]]
