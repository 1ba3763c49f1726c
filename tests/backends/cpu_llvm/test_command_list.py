"""Several launches as one call: their scalars, other Python threads, and rejected arguments."""

from __future__ import annotations

import gc
import struct
import sys
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.interface import QueuedLaunch
from dovetail.dtypes import DType, bool_, float32, float64, int8, int64, uint64
from dovetail_cpu_llvm.launch import SHARE_OPERATIONS_MIN
from test_launch import add_scalar, compiled
from test_launch import backend as backend

N = 37
RELEASE = 5  # offset of the flag in the block that says whether the GIL is released


def numpy_of(d: DType) -> Any:
    return np.dtype(d.__numpy_dtype__)


def queued(
    backend: Any, d: DType, source: int, target: int, scalar: Any, n: int = N, offset: int = 0
) -> QueuedLaunch:
    """Return a launch of x[target] = x[source] + scalar; slots are arrays."""
    run = backend.bind(backend.compile(add_scalar(d)), (n,), (n,))
    places = ((source, offset), (target, offset))
    return QueuedLaunch(run, places, (scalar,))


def addresses(*arrays: Any) -> list[Any]:
    return [x for a in arrays for x in (a.ctypes.data, 0)]


CASES = [
    (float32, 0.1), (float32, 3), (float32, 1e39), (float32, float("nan")), (float64, 0.1),
    (float64, -7), (int8, -3), (int64, -(2**63)), (uint64, 2**64 - 1), (bool_, True),
    (bool_, False),
]  # fmt: skip


@pytest.mark.parametrize(("d", "value"), CASES)
@pytest.mark.parametrize("variable", [None, 1], ids=["fixed", "variable"])
def test_scalars_of_a_command_list_equal_those_of_single_launches(
    backend: Any, d: DType, value: Any, variable: int | None
) -> None:
    x = np.arange(N).astype(numpy_of(d))
    one, many = np.zeros_like(x), np.zeros_like(x)
    first = queued(backend, d, 0, 1, (value, variable))
    first.launch((x.ctypes.data, 0, one.ctypes.data, 0), (value,), None)
    backend.sequence([first])(addresses(x, many), [None, value], None)
    assert one.tobytes() == many.tobytes()


def test_launches_of_a_command_list_read_earlier_results(backend: Any) -> None:
    x, y = np.arange(N, dtype=np.float64), np.zeros(N)
    launches = [queued(backend, float64, 0, 1, (1.0, None))]
    for k in range(300):
        launches.append(queued(backend, float64, 1, 1, (float(k), k % 2)))
    run = backend.sequence(launches)
    for numbers in ([2.0, 3.0], [0.5, 0.25]):
        run(addresses(x, y), numbers, None)
        assert y.tolist() == (x + 1 + 150 * sum(numbers)).tolist()


def test_command_list_adds_offsets_to_slot_addresses(backend: Any) -> None:
    x = np.arange(2 * N, dtype=np.float64)
    before = x.copy()
    launch = queued(backend, float64, 0, 0, (1.0, None), N - 2, offset=16)
    backend.sequence([launch])([x.ctypes.data, 8], [], None)
    before[3 : N + 1] += 1
    assert x.tolist() == before.tolist()


def test_large_launches_of_a_command_list_run_on_several_threads(backend: Any) -> None:
    n = 4 * SHARE_OPERATIONS_MIN
    x, y = np.arange(n, dtype=np.float64), np.zeros(n)
    launches = [queued(backend, float64, 0, 1, (1.0, None), n)]
    launches.append(queued(backend, float64, 1, 1, (1.0, None), n))
    run = backend.sequence(launches)
    for _ in range(3):
        run(addresses(x, y), [], None)
        assert np.array_equal(y, x + 2)
        y[...] = 0


@compiled
def test_long_command_list_releases_the_gil(backend: Any) -> None:
    def releases(count: int, n: int) -> bool:
        run = backend.sequence([queued(backend, float64, 0, 1, (1.0, None), n)] * count)
        return bool(struct.unpack_from("=q", run.__self__[0], 8 * RELEASE)[0])

    assert [releases(1, 100), releases(2, 100_000), releases(2000, 100)] == [False, True, True]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (([], [1.0], None), SystemError),
        ((["here", 0, 0, 0], [1.0], None), TypeError),
        (([None, 0, 0, 0], [1.0], None), TypeError),
        (([0, 0, 0, 0], [], None), IndexError),
        (([0, 0, 0, 0], ["one"], None), TypeError),
        (((0, 0, 0, 0), [1.0], None), SystemError),
        (([0, 0, 0, 0], [1.0]), TypeError),
    ],
)
def test_command_list_with_wrong_arguments_raises_and_writes_nothing(
    backend: Any, given: Any, error: Any
) -> None:
    run = backend.sequence([queued(backend, float64, 0, 1, (0.0, 0))])
    with pytest.raises(error):
        run(*given)


def test_command_list_holds_references_to_its_programs(backend: Any) -> None:
    launch = queued(backend, float64, 0, 1, (1.0, None))
    before = sys.getrefcount(launch.launch)
    run = backend.sequence([launch])
    bound = launch.launch
    del launch
    gc.collect()
    x, y = np.arange(N, dtype=np.float64), np.zeros(N)
    run(addresses(x, y), [], None)
    assert y.tolist() == (x + 1).tolist()
    del run
    assert sys.getrefcount(bound) == before


def test_captured_function_on_the_cpu_is_one_command_list_call() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        for k in range(20):
            x[1:-1] = 0.5 * (x[:-2] + x[2:]) + k
        return x.sum()

    captured = dt.jit(f)
    x = dt.asarray(np.linspace(0, 1, 50), device="cpu")
    y = dt.asarray(np.linspace(0, 1, 50), device="reference")
    for _ in range(3):
        assert captured(x).item() == f(y).item()
        assert x.tolist() == y.tolist()
    ((_, program),) = captured.programs
    assert program.launches > 20
    (step,) = program.replay.steps
    assert step.__name__ == "replay"
