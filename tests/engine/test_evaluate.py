"""Evaluation: order of work, plan and program caches, threads, and errors during work."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.reference import ReferenceBackend
from dovetail.engine import evaluate as run
from dovetail.memory import CachingAllocator
from dovetail.plugins.device_handle import OpenedDevice


def chain(x: Any, y: Any) -> Any:
    return dt.tanh(x * 2 + y) * x - y / (1 + x * x)


def count_increase(field: str, work: Any) -> int:
    before = getattr(run.counters, field)
    work()
    return int(getattr(run.counters, field) - before)


def test_nothing_runs_until_values_are_read(device: str) -> None:
    x = dt.ones(10, device=device)
    dt.evaluate(x)
    assert count_increase("launches", lambda: x * 2 + 1) == 0
    assert count_increase("launches", lambda: (x * 2 + 1).numpy()) == 1


def test_elementwise_chain_is_one_kernel(device: str) -> None:
    x, y = dt.ones((8, 3), device=device), dt.ones(3, device=device)
    dt.evaluate(x, y)
    assert count_increase("launches", lambda: dt.evaluate(chain(x, y))) == 1


def test_chain_beyond_the_node_limit_is_split(device: str) -> None:
    x = dt.asarray(np.random.default_rng(0).standard_normal(50).astype("f4"), device=device)

    def sigmoids() -> Any:
        y = x
        for _ in range(60):
            y = dt.sigmoid(y)
        return y

    assert count_increase("launches", lambda: dt.evaluate(sigmoids())) == 2
    with dt.eager():
        expected = sigmoids().numpy()
    assert sigmoids().numpy().tobytes() == expected.tobytes()


def test_dropped_intermediates_are_freed_during_evaluation(device: str) -> None:
    n = 1 << 12
    x = dt.ones((64, 64), device=device)
    dt.evaluate(x)
    gc.collect()
    before = dt.memory.stats(x.device).live_bytes
    dt.memory.reset_peak(x.device)
    with dt.vendor_products(False):
        y = x
        for _ in range(8):
            y = y @ x
        dt.evaluate(y)
    assert dt.memory.stats(x.device).peak_live_bytes - before <= 2 * 4 * n


def test_softmax_and_variance_are_one_kernel(device: str) -> None:
    x = dt.asarray(np.random.default_rng(0).standard_normal((64, 50)), device=device)
    dt.evaluate(x)

    def softmax() -> Any:
        e = dt.exp(x - dt.max(x, axis=1, keepdims=True))
        return e / dt.sum(e, axis=1, keepdims=True)

    assert count_increase("launches", lambda: dt.evaluate(softmax())) == 1
    assert count_increase("launches", lambda: dt.evaluate(dt.var(x, axis=1))) == 1


def test_referenced_intermediate_is_stored_by_the_same_kernel(device: str) -> None:
    x = dt.ones(100, device=device)
    dt.evaluate(x)
    y = x * 2
    z = y + 1
    assert count_increase("launches", lambda: dt.evaluate(z)) == 1
    assert count_increase("launches", lambda: y.numpy()) == 0
    assert y.numpy()[0] == 2 and z.numpy()[0] == 3


def test_unreferenced_intermediate_is_not_stored(device: str) -> None:
    x = dt.ones(1000, device=device)
    dt.evaluate(x)
    gc.collect()
    before = dt.memory.stats(device).allocations
    dt.evaluate((x * 2 + 1) * 3)
    assert dt.memory.stats(device).allocations - before == 1


def test_two_hundred_new_shapes_compile_nothing(device: str) -> None:
    def once(n: int) -> None:
        x, y = dt.ones(n, device=device), dt.full(n, 0.5, device=device)
        dt.evaluate(x, y)
        dt.evaluate(chain(x, y))

    once(10)
    assert count_increase("compiles", lambda: [once(n) for n in range(11, 211)]) == 0


def test_new_scalars_compile_nothing(device: str) -> None:
    x = dt.ones(10, device=device)
    dt.evaluate(x)
    dt.evaluate(x * 2.5)

    def many() -> None:
        for s in (1.5, 3.25, -1.0):
            assert (x * s).numpy()[0] == s

    assert count_increase("compiles", many) == 0
    assert count_increase("plans", many) == 0


def test_devices_of_one_kind_have_separate_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("twin:0", "twin:1"):  # with equal fingerprints
        dev, backend = dt.device(name), ReferenceBackend()
        opened = OpenedDevice(backend, CachingAllocator(backend, dev), dev, {})
        monkeypatch.setattr(dev, "opened", opened)
        x = dt.ones(10, device=dev)
        dt.evaluate(x)
        for n, compiled in ((2.5, 1), (3.5, 0)):
            assert count_increase("compiles", lambda x=x, n=n: dt.evaluate(x * n + 7)) == compiled


def test_eager_mode_runs_each_op_immediately(device: str) -> None:
    x = dt.ones(10, device=device)
    dt.evaluate(x)
    with dt.eager():
        assert count_increase("launches", lambda: x * 2 + 1) == 2
    assert count_increase("launches", lambda: x * 2 + 1) == 0


def test_very_long_chain_is_evaluated_in_parts(device: str) -> None:
    x = dt.ones(10, device=device)
    for _ in range(1000):
        x = x + 1
    assert x.numpy()[3] == 1001


def test_write_waits_for_pending_readers(device: str) -> None:
    x = dt.asarray(np.arange(5.0), device=device)
    later = x * 10
    other = later + 1
    x += 100
    assert later.numpy().tolist() == [0, 10, 20, 30, 40]
    assert other.numpy().tolist() == [1, 11, 21, 31, 41]
    assert x.numpy().tolist() == [100, 101, 102, 103, 104]


def test_write_after_evaluation_does_not_change_older_readers(device: str) -> None:
    y = dt.asarray(np.arange(3.0), device=device) * 2
    z = y + 1
    y.numpy()
    y += 50
    assert z.numpy().tolist() == [1, 3, 5]
    assert y.numpy().tolist() == [50, 52, 54]


def test_threads_may_evaluate_shared_work(device: str) -> None:
    x = dt.asarray(np.random.default_rng(1).standard_normal(5000), device=device)
    shared = [chain(x, x + i) for i in range(20)]
    expected = [np.tanh(x.numpy() * 2 + (x.numpy() + i)) for i in range(20)]
    results: list[list[Any]] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append([s.numpy().copy() for s in shared] + [chain(x, x).numpy()])
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert len(results) == 4 and len(expected) == 20
    for r in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], r, strict=True))


def test_memory_is_freed_with_its_tensors(device: str) -> None:
    x = dt.ones(1000, device=device)
    dt.evaluate(x)
    gc.collect()
    live = dt.memory.stats(device).live_bytes
    for _ in range(5):
        y = chain(x, x)
        z = y[10:20] * 2
        dt.evaluate(z)
    del y, z
    assert dt.memory.stats(device).live_bytes == live


def test_index_error_leaves_the_result_pending(device: str) -> None:
    x = dt.asarray([1.0, 2.0, 3.0], device=device)
    bad = dt.take(x, dt.asarray([0, 7], device=device))
    for _ in range(2):
        with pytest.raises(IndexError, match="out of range"):
            bad.numpy()
    assert dt.take(x, dt.asarray([0, -1], device=device)).tolist() == [1.0, 3.0]


FRESH = """
    import os, sys
    import numpy as np
    import dovetail as dt
    from dovetail.engine import evaluate as run
    x = dt.asarray(np.ones(100, "f4"))
    print(float(dt.sum(dt.sin(x * 3 + 1)).item()), run.counters.compiles, run.counters.disk_hits)
"""


def run_in_new_process(folder: Path) -> list[str]:
    import os

    env = {**os.environ, "DOVETAIL_CACHE_DIR": str(folder)}
    script = textwrap.dedent(FRESH)
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return out.stdout.split()


def test_second_process_compiles_nothing(tmp_path: Path) -> None:
    pytest.importorskip("dovetail_cpu_llvm", reason="the default device is the cpu backend's")
    first, second = run_in_new_process(tmp_path), run_in_new_process(tmp_path)
    assert int(first[1]) > 0
    assert int(second[1]) == 0 and int(second[2]) == int(first[1])
    assert first[0] == second[0]
    for path in (tmp_path / "kernels").glob("*/*"):
        path.write_bytes(path.read_bytes()[:100])
    third = run_in_new_process(tmp_path)
    assert third == first


@pytest.mark.parametrize("make", [dt.zeros, dt.empty, dt.ones, dt.arange])
def test_unknown_device_raises_immediately(make: Any) -> None:
    with pytest.raises(ValueError, match='dovetail has no backend for "opencll"'):
        make(3, device="opencll")


def test_loop_of_writes_keeps_the_reader_log_short(device: str) -> None:
    x = dt.zeros(4, device=device)
    for _ in range(2000):
        x += 1
        _ = x * 2
    assert x.tolist() == [2000] * 4


def test_source_of_a_view_is_stored_if_other_pending_work_reads_it(device: str) -> None:
    """The storage of the view is one reader, and not the only one."""
    x = dt.ones(10, device=device) * 2
    other = x + 1  # of the expression that the storage of views waits for from now on
    root = x[1:] * 3
    del x
    assert any(n.startswith("multiply") and "held" in n for n in dt.explain(root).stored)
    assert root.tolist() == [6.0] * 9 and other.tolist() == [3.0] * 10


def test_source_of_a_view_without_other_readers_is_not_stored(device: str) -> None:
    root = (dt.ones(10, device=device) * 2)[1:] * 3
    assert not any("held" in n for n in dt.explain(root).stored)
    assert root.tolist() == [6.0] * 9
