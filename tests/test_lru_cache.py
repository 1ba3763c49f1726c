"""Bounded caches evict the least recently used entries, and results do not depend on them.

Thousands of shapes and kernels run in bounded memory.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import dovetail as dt
import pytest
from dovetail.device_class import device as device_named
from dovetail.dtypes import float32
from dovetail.graph import expr
from dovetail.lru_cache import LRUCache


class Thing:
    pass


def test_least_recently_used_entries_are_evicted() -> None:
    cache: LRUCache[int, int] = LRUCache(8)
    for k in range(100):
        cache[k] = k
        assert cache.find(0) == 0, "it is used all the time"
        assert len(cache.entries()) <= 8
        assert cache.find(k) == k
    assert cache.find(50) is None and cache.find(98) == 98


def test_setting_an_entry_again_evicts_nothing() -> None:
    cache: LRUCache[str, int] = LRUCache(4)
    cache["a"], cache["b"] = 1, 2
    for n in range(10):
        cache["a"] = n
    assert cache.entries() == {"a": 9, "b": 2}


def test_shared_object_in_use_is_found_again_and_others_are_freed() -> None:
    cache: LRUCache[int, Thing] = LRUCache(4, revives=True)
    used, other = Thing(), Thing()
    cache[-1], cache[-2] = used, other
    unused = weakref.ref(other)
    del other
    for k in range(50):
        cache[k] = Thing()
    assert cache.find(-1) is used and cache.find(-2) is None
    gc.collect()
    assert unused() is None and len(cache._evicted) <= 6


def test_values_without_weak_references_are_evicted() -> None:
    cache: LRUCache[int, int] = LRUCache(4, revives=True)
    for k in range(50):
        cache[k] = k
    assert cache.find(49) == 49 and cache.find(3) is None


def test_spec_in_use_stays_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expr, "_SPECS", LRUCache(8, revives=True))
    on = device_named("reference")
    x = dt.ones((3, 5), device=on)
    before = x._expr.spec
    for n in range(100):
        expr.spec((n, 7), float32, on)
    assert len(expr._SPECS.entries()) <= 8
    assert expr.spec((3, 5), float32, on) is before
    out = dt.zeros((3, 5), device=on)
    assert dt.add(x, x, out=out).tolist() == [[2.0] * 5] * 3, "specs compare with `is`"


GROW = """
import gc, sys
import dovetail as dt
from dovetail.engine import evaluation as run
from dovetail.engine import plan_cache
from dovetail.functions import known_calls
from dovetail.graph import expr
from dovetail.tensor import primitives, result_type

name, shapes, kernels, scale = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
dt.set_default_device(name)
x = (dt.ones(3) * 2 + 1).tolist()
where = dt.device(name).opened
caches = [expr._SPECS, run._plans, plan_cache._cached_graphs, primitives._moves, where.programs]
caches += [result_type.apply_cache, *result_type.operator_caches.values()]
caches += [known_calls.product_cache]
for c in caches:
    c.half = max(2, c.half // scale)

def mib():
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096 / 2**20

def shape(k):
    y = dt.ones((k + 1,)) * 2 + 1
    for _ in range(3):  # so that it is recognised
        z = y[:] + 1
        assert (z[0] + z[-1]).item() == 8, k

def kernel(k):
    y, e = dt.ones((4,)), 1.0
    for b in range(12):
        y, e = (y * 2, e * 2) if k >> b & 1 else (y + 1, e + 1)
    assert y.tolist() == [e] * 4, k

for work, count, allowed in ((shape, shapes, 30), (kernel, kernels, 60)):
    for k in range(count):
        work(k)
        if k == count // 2:
            half = mib()
    grown = mib() - half
    print(work.__name__, count, "MiB in the second half:", round(grown, 1))
    assert grown < allowed, grown
    for c in caches:
        assert len(c.entries()) <= 2 * c.half, c
    assert len(expr._SPECS._evicted) <= 4 * expr._SPECS.half
for k in (0, shapes // 2, shapes - 1):
    shape(k)
for k in (0, kernels // 2, kernels - 1):
    kernel(k)
print("well")
"""


def grow(name: str, shapes: int, kernels: int, scale: int) -> None:
    pytest.importorskip({"cpu": "dovetail_cpu_llvm", "opencl": "dovetail_opencl"}[name])
    if not sys.platform.startswith("linux"):
        pytest.skip("the resident size is read as Linux shows it")
    done = subprocess.run(
        [sys.executable, "-c", GROW, name, str(shapes), str(kernels), str(scale)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "well" in done.stdout, done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize(("name", "shapes", "kernels"), [("cpu", 600, 60), ("opencl", 200, 24)])
def test_many_shapes_and_kernels_with_small_caches(name: str, shapes: int, kernels: int) -> None:
    grow(name, shapes, kernels, scale=64)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_ten_thousand_shapes_and_two_thousand_kernels_in_bounded_memory(name: str) -> None:
    grow(name, 10_000, 2_000, scale=2)
