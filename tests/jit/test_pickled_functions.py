"""A captured function pickles by its function and options, and travels to other processes."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dovetail as dt
import jitted_functions
import pytest
from jitted_functions import (
    Scale,
    captured_values,
    double,
    plus_one,
    power,
    run_twice,
    triple,
    tripled,
    twice,
)

X = dt.asarray([1.0, 2.0], device="reference")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("f", [double, power, Scale.times, twice, plus_one])
def test_decorated_function_unpickles_to_itself(f: Any, protocol: int) -> None:
    name = f.__qualname__
    assert pickle.loads(pickle.dumps(f, protocol)) is f
    assert f.__qualname__ == name


def test_jit_of_a_function_of_a_module_unpickles_to_an_equal_one() -> None:
    tripled(X)
    again = pickle.loads(pickle.dumps(tripled))
    assert again.__wrapped__ is triple and again.captures == 0
    assert again(X).tolist() == [3.0, 6.0]
    assert triple.__qualname__ == "triple"


def test_pickled_function_keeps_its_options() -> None:
    again = pickle.loads(pickle.dumps(dt.jit(power.__wrapped__, static_argnames="n")))
    assert [again(X, 2.0).tolist(), again(X, -1.0).tolist()] == [[1.0, 4.0], [1.0, 2.0]]


def test_bound_methods_pickle_with_their_instances() -> None:
    times = pickle.loads(pickle.dumps(Scale(3.0).times))
    assert times.__func__ is Scale.times and times(X).tolist() == [3.0, 6.0]
    captured = pickle.loads(pickle.dumps(dt.jit(Scale(4.0).times)))
    assert captured(X).tolist() == [4.0, 8.0]


def test_lambda_does_not_pickle() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(dt.jit(lambda x: x))


def test_functions_run_in_a_spawned_process() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        runs = [
            pool.submit(captured_values, f, [1.0, 2.0]) for f in (double, tripled, Scale(5.0).times)
        ]
        assert [r.result() for r in runs] == [[2.0, 4.0], [3.0, 6.0], [5.0, 10.0]]
        assert pool.submit(run_twice, twice, [1.0, 2.0]).result() == [2.0, 4.0]


def test_closure_runs_in_a_dask_process() -> None:
    dask = pytest.importorskip("dask")
    shift = dt.asarray([10.0, 20.0], device="reference")
    f = dt.jit(lambda x: x + shift)
    runs = dask.delayed(captured_values)(f, [1.0, 2.0])
    assert runs.compute(scheduler="processes", num_workers=1) == [11.0, 22.0]


def in_new_process(code: str, data: bytes, tmp_path: Path) -> str:
    """Run code that finds pickled bytes in `data`, in a process that cannot import the test
    modules.
    """
    (tmp_path / "data").write_bytes(data)
    head = f"import pickle; data = open({str(tmp_path / 'data')!r}, 'rb').read()\n"
    command = [sys.executable, "-c", head + code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    return run.stdout.strip()


SEND = """
import dovetail as dt, cloudpickle, sys
x = dt.asarray([1.0, 2.0], device="reference")

@dt.jit
def countdown(x, n):
    return x if n == 0 else countdown(x * 2, n - 1)

class Scale:
    @dt.jit
    def times(self, x):
        return x * 5

assert countdown(x, 2).tolist() == [4.0, 8.0]
sys.stdout.buffer.write(cloudpickle.dumps((countdown, Scale().times)))
"""
RECEIVE = """
import dovetail as dt
countdown, times = pickle.loads(data)
x = dt.asarray([1.0, 2.0], device="reference")
assert countdown.captures == 0 and countdown.__qualname__ == "countdown"
print(countdown(x, 3).tolist(), times(x).tolist(), countdown.captures)
"""


def test_functions_of_main_are_pickled_by_value(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    command = [sys.executable, "-c", SEND]
    data = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout
    assert in_new_process(RECEIVE, data, tmp_path) == "[8.0, 16.0] [5.0, 10.0] 1"


SEND_KERNELS = """
import dovetail as dt, cloudpickle, sys

@dt.elementwise(result=dt.int32)
def rounded(x):
    return x + 0.5

@dt.kernel
def scaled(x: dt.In, out: dt.Out, factor: float):
    for i in dt.grid(x.shape[0]):
        out[i] = x[i] * factor

sys.stdout.buffer.write(cloudpickle.dumps((rounded, scaled)))
"""
RECEIVE_KERNELS = """
import dovetail as dt
rounded, scaled = pickle.loads(data)
x = dt.asarray([1.6, 2.0], device="reference")
out = dt.zeros_like(x)
scaled(x, out, 2.0)
print(rounded(x).tolist(), out.tolist() == (x * 2).tolist())
"""


def test_kernels_of_main_travel_with_their_source(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "kernels.py"
    script.write_text(SEND_KERNELS)
    data = subprocess.run([sys.executable, str(script)], capture_output=True, check=True).stdout
    script.unlink()
    assert in_new_process(RECEIVE_KERNELS, data, tmp_path) == "[2, 2] True"


def test_raw_kernel_pickles_by_its_source() -> None:
    kernel = dt.raw_kernel("source", "cuda", "scale(x: r float32, out: w float32)")
    again = pickle.loads(pickle.dumps(kernel))
    assert (again.source, again.arguments) == (kernel.source, kernel.arguments)


def test_closures_and_lambdas_are_pickled_by_value(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    shift = dt.asarray([10.0, 20.0], device="reference")

    @dt.jit(static_argnames="n")
    def shifted(x: dt.Tensor, n: float) -> dt.Tensor:
        return x + shift if n > 0 else x

    again, plain = pickle.loads(cloudpickle.dumps((shifted, dt.jit(lambda x: x * 7))))
    assert [again(X, n).tolist() for n in (1.0, -1.0)] == [[11.0, 22.0], [1.0, 2.0]]
    assert plain(X).tolist() == [7.0, 14.0]


def test_module_function_is_pickled_by_name_unless_registered_by_value() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(double)) is double
    cloudpickle.register_pickle_by_value(jitted_functions)
    try:
        again = pickle.loads(cloudpickle.dumps(double))
    finally:
        cloudpickle.unregister_pickle_by_value(jitted_functions)
    assert again is not double and again.__qualname__ == "double"
    assert again(X).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copy_of_a_captured_function_computes_the_same(copied: Callable[[Any], Any]) -> None:
    assert copied(double) is double
    shift = dt.asarray([10.0, 20.0], device="reference")
    f = dt.jit(lambda x: x + shift)
    assert copied(f)(X).tolist() == f(X).tolist() == [11.0, 22.0]
    assert copied(Scale(2.0).times)(X).tolist() == [2.0, 4.0]


def test_deep_copy_of_an_object_has_a_captured_method_of_its_own() -> None:
    model = Scale(2.0)
    model.step = dt.jit(model.times)  # type: ignore[attr-defined]
    again = copy.deepcopy(model)
    again.factor = 3.0
    assert again.step(X).tolist() == [3.0, 6.0]  # type: ignore[attr-defined]
    assert model.step(X).tolist() == [2.0, 4.0]  # type: ignore[attr-defined]


def test_captured_function_keeps_name_signature_and_docstring() -> None:
    assert str(inspect.signature(power)).startswith("(x: 'dt.Tensor', n: 'float' = 2.0)")
    assert (power.__name__, power.__doc__) == ("power", "Raise each element to a power.")
    pickle.dumps(power)

    @functools.wraps(power)
    def wrapper(x: dt.Tensor, n: float = 2.0) -> dt.Tensor:
        return power(x, n)

    assert (wrapper.__name__, wrapper.__qualname__) == ("power", "power")
    assert wrapper.__wrapped__ is power  # type: ignore[attr-defined]
    assert wrapper(X).tolist() == [1.0, 4.0]
