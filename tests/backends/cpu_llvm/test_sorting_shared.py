"""Sorts of vectors and of rows that threads share have the bits of a stable sort."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail_cpu_llvm import parallel_numpy, sorting
from support.numpy_sorts import numpy_sorts

pytestmark = pytest.mark.usefixtures("small_parts")
N, N_EVEN = 10_007, 10_006
CPU = "cpu"


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel_numpy, "PART_ELEMENTS_MIN", 1 << 10)
    with numpy_sorts(threads=2):
        yield


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = dt.get_num_threads()
    yield dt.set_num_threads
    dt.set_num_threads(before)


def vectors() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    floats = rng.standard_normal(N).astype("f4")
    floats[rng.integers(0, N, 400)] = np.nan
    floats[rng.integers(0, N, 400)] = 0.0
    floats[rng.integers(0, N, 400)] = -0.0
    full = rng.integers(0, 1 << 64, N, dtype="u8")
    full[::3] = full[0] ^ np.arange(len(full[::3]), dtype="u8")  # equal except for the last bits
    return {
        "float32": floats,
        "float64": floats.astype("f8"),
        "equal": np.full(N, 3, "i8"),
        "few": rng.integers(-3, 3, N).astype("i4"),
        "wide": rng.integers(-(1 << 62), 1 << 62, N),
        "full": full,
        "low then full": np.concatenate([np.arange(N, dtype="u8"), full]),
    }


@pytest.mark.parametrize("name", list(vectors()))
def test_sort_of_a_vector_equals_a_stable_sort(name: str) -> None:
    a = vectors()[name]
    x, order = dt.asarray(a, device=CPU), np.argsort(a, kind="stable")
    assert np.array_equal(dt.argsort(x).numpy(), order)
    found = dt.sort(x).numpy()
    unsigned = f"u{a.itemsize}"
    assert np.array_equal(found.view(unsigned), a[order].view(unsigned))


@pytest.mark.parametrize("shape", [(1, N), (2, 5_003), (97, 101), (3, 1, 3_001)], ids=str)
@pytest.mark.parametrize("name", ["float32", "wide"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_sort_of_rows_in_parts_equals_a_stable_sort(
    shape: tuple[int, ...], name: str, count: int, threads: Callable[[int], None]
) -> None:
    threads(count)
    a = vectors()[name][: np.prod(shape)].reshape(shape)
    order = np.argsort(a, axis=-1, kind="stable")
    x = dt.asarray(a, device=CPU)
    assert np.array_equal(dt.argsort(x, axis=-1).numpy(), order)
    found, expected = dt.sort(x, axis=-1).numpy(), np.take_along_axis(a, order, -1)
    unsigned = f"u{a.itemsize}"
    assert np.array_equal(found.view(unsigned), expected.view(unsigned))


@pytest.mark.parametrize(("threads_used", "vector", "cpu"), [
    (sorting.SORT_THREADS_MAX + 1, 64, "any"), (1, 16, "any"), (1, 64, "znver4"),
])  # fmt: skip
def test_sort_routines_are_left_out_where_passes_are_faster(
    threads_used: int, vector: int, cpu: str
) -> None:
    assert not sorting.sort_routines(threads_used, vector, cpu)
    assert ("sort", dt.float32) in sorting.sort_routines(1, 64, "any")


def test_part_count_grows_with_size_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_numpy, "PART_ELEMENTS_MIN", 1 << 17)
    count, most = parallel_numpy.part_count, parallel_numpy.PARTS_MAX
    assert [count(t, 1 << 20) for t in (1, 2, 4, 64)] == [1, 2, 4, most]
    assert [count(2, n) for n in (0, 1 << 17, (1 << 18) - 1, 1 << 18)] == [1, 1, 1, 2]
    assert parallel_numpy.split_range(2, 8) == [slice(0, 1), slice(1, 2)]
    assert parallel_numpy.split_range(0, 8) == [slice(0, 0)]


def test_caller_runs_parts_that_no_worker_started(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never:
        def cancel(self) -> bool:
            return True

    class Asleep:
        def submit(self, *_: object) -> Never:
            return Never()

    monkeypatch.setattr(parallel_numpy, "_executors", [Asleep()])
    assert parallel_numpy.map_parts(lambda p: p.start, parallel_numpy.split_range(9, 3)) == [
        0,
        3,
        6,
    ]


def test_error_in_a_part_is_raised_after_all_parts_stopped() -> None:
    begun, raised, ended = threading.Event(), threading.Event(), []

    def work(part: slice) -> None:
        if part.start == 0:
            assert begun.wait(60)
            threading.Timer(0.2, raised.set).start()
            raise MemoryError("no room")
        begun.set()
        assert raised.wait(60)
        ended.append(part)

    with pytest.raises(MemoryError, match="no room"):
        parallel_numpy.map_parts(work, parallel_numpy.split_range(8, 2))
    assert ended == [slice(4, 8)]


def test_caller_runs_all_parts_if_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(ThreadPoolExecutor):
        def submit(self, *args: Any, **options: Any) -> Any:
            if self._work_queue.qsize() or self._threads:
                raise RuntimeError("can't start new thread")
            return super().submit(*args, **options)

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", Full)
    monkeypatch.setattr(parallel_numpy, "_executors", [])
    assert parallel_numpy.map_parts(lambda p: p.start, parallel_numpy.split_range(9, 3)) == [
        0,
        3,
        6,
    ]
    assert not parallel_numpy._executors


AT_EXIT = """
import atexit
import dovetail as dt
from dovetail_cpu_llvm import parallel_numpy

parallel_numpy.PART_ELEMENTS_MIN = 4
dt.set_num_threads(2)
x = dt.asarray([[3, 1, 2, 0] * 8] * 2)
atexit.register(lambda: print(dt.sort(x, axis=1)[1, ::8].tolist()))
"""


def test_rows_are_sorted_while_the_interpreter_exits() -> None:
    ended = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("[0, 1, 2, 3]\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_creates_new_threads(threads: Callable[[int], None]) -> None:
    threads(2)
    x = dt.asarray(vectors()["wide"][:N_EVEN].reshape(2, -1), device=CPU)
    expected = dt.sort(x, axis=1).tolist()
    assert parallel_numpy._executors
    child = os.fork()
    if child == 0:
        os._exit(0 if dt.sort(x, axis=1).tolist() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
