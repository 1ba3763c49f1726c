"""Captured functions that read values: they run without a capture, and say so once."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest


def next_line() -> str:
    """Return the file and the line after that of the caller, as a message names it."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return f"test_functions_that_read_values.py:{frame.f_back.f_lineno + 1}"


def test_branch_on_a_value_runs_plain_with_one_warning_that_names_the_line() -> None:
    runs = list[str]()

    @dt.jit
    def grow(x: dt.Tensor) -> dt.Tensor:
        y = x * 2
        runs.append("run")
        if float(y.sum()) > 10:
            return y - 1
        return y + 1

    line = inspect.getsourcelines(grow.__wrapped__)[1] + 4
    with pytest.warns(dt.DovetailWarning) as caught:
        assert grow(dt.asarray([1.0, 2.0])).tolist() == [3.0, 5.0]
    [warning] = caught
    text = str(warning.message)
    assert text.startswith("dt.jit of grow: the host reads a tensor")
    assert f"test_functions_that_read_values.py:{line}" in text
    assert "dt.where" in text and "dt.cond" in text and "dt.while_loop" in text
    assert warning.filename == __file__
    assert grow(dt.asarray([5.0, 2.0])).tolist() == [9.0, 3.0]
    assert grow(dt.asarray([1.0, 2.0, 30.0])).tolist() == [1.0, 3.0, 59.0], "another shape"
    assert len(runs) == 3 and grow.captures == 0
    assert "it reads values" in str(dt.explain(grow, dt.asarray([1.0, 2.0])))


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_writes_before_the_read_happen_once(device: str) -> None:
    if device == "cpu":
        pytest.importorskip("dovetail_cpu_llvm")
    count = dt.zeros(3, device=device)

    @dt.jit
    def step(x: dt.Tensor) -> float:
        x[1:] += 1
        count.copy_(count + x)
        pending = x * 10
        if x[1].item() == 2:
            x[0] = 7
        count[2] = 100
        return float(pending.sum())

    x = dt.asarray([0.0, 0.0, 0.0], device=device)
    with pytest.warns(dt.DovetailWarning, match="runs without a capture"):
        results = [step(x)]
    results += [step(x), step(x)]
    assert results == [20.0, 40.0, 130.0]
    assert x.tolist() == [7.0, 3.0, 3.0] and count.tolist() == [7.0, 6.0, 100.0]


def test_random_numbers_and_gradients_are_those_of_a_plain_call() -> None:
    def step(w: dt.Tensor) -> tuple[float, dt.Tensor]:
        noise = dt.random.normal(size=(4,))
        loss = ((w - noise) ** 2).sum()
        loss.backward()
        return float(loss), dt.random.normal(size=(2,))

    def run(f: Callable[[dt.Tensor], tuple[float, dt.Tensor]]) -> list[object]:
        dt.random.manual_seed(3)
        w = dt.ones(4, requires_grad=True)
        found = list[object]()
        for _ in range(3):
            loss, noise = f(w)
            assert w.grad is not None
            found += [loss, noise.tolist(), w.grad.tolist()]
        return found

    with pytest.warns(dt.DovetailWarning):
        captured = run(dt.jit(step))
    assert captured == run(step)


def test_float_arguments_have_their_values_after_a_read() -> None:
    @dt.jit
    def scale(x: dt.Tensor, rate: float) -> list[object]:
        doubled = rate * 2
        if rate > 0.5:
            x = x * rate
        exact = rate == 0.75, rate != 0.75, doubled > 1, int(doubled), math.exp(rate)
        x.sum().item()
        return [x * doubled + rate, *exact, f"{rate:.3f} {rate}", rate + 1, [0, 1, 2][int(doubled)]]

    with pytest.warns(dt.DovetailWarning, match="the host reads a tensor"):
        y, *values = scale(dt.ones(2), 0.75)
    assert isinstance(y, dt.Tensor) and y.tolist() == [1.875, 1.875]
    assert values == [True, False, True, 1, math.exp(0.75), "0.750 0.75", 1.75, 1]
    y, *values = scale(dt.ones(2), 0.25)
    assert isinstance(y, dt.Tensor) and y.tolist() == [0.75, 0.75] and values[1] is True


@pytest.mark.parametrize(
    "choose",
    [
        lambda x, rate: x * {0.5: 2, 1.0: 3}.get(rate, 5),
        lambda x, rate: x * 2 if rate in {0.5, 1.0} else x - rate,
        lambda x, rate: x * (hash(rate) % 7) + rate,
    ],
)
def test_float_argument_that_is_hashed_has_the_hash_of_its_value(choose: Any) -> None:
    captured = dt.jit(choose)
    with pytest.warns(dt.DovetailWarning, match="key of a dict or a member of a set"):
        results = [captured(dt.ones(2), rate).tolist() for rate in (0.5, 1.0, 2.5)]
    assert results == [choose(dt.ones(2), rate).tolist() for rate in (0.5, 1.0, 2.5)]


def test_cache_that_a_captured_function_fills_serves_plain_calls() -> None:
    double = cache(lambda rate: rate * 2)
    with pytest.warns(dt.DovetailWarning, match="runs without a capture"):
        assert dt.jit(lambda x, rate: x * double(rate))(dt.ones(2), 0.5).tolist() == [1.0, 1.0]
    assert double(0.5) == 1.0 and (dt.ones(2) * double(0.5)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("values", [[1.5, 2.5], (1, 2)])
@pytest.mark.parametrize("multiply", [lambda n, values: n * values, lambda n, values: values * n])
def test_list_times_an_integer_of_a_trace_is_repeated(
    multiply: Callable[[Any, Any], Any], values: Any
) -> None:
    captured = dt.jit(lambda x: multiply(np.argmax(x), values))
    for _ in range(2):
        assert captured(np.asarray([0, 1, 7])) == values * 2
    assert multiply(np.asarray([1, 3]), values).tolist() == [values[0], 3 * values[1]]


def test_captured_function_called_after_the_read_is_captured() -> None:
    inner = dt.jit(lambda x: x * 3)

    @dt.jit
    def outer(x: dt.Tensor) -> dt.Tensor:
        before = inner(x)
        return inner(x) if float(x.sum()) > 0 else before

    with pytest.warns(dt.DovetailWarning, match="jit of outer"):
        assert outer(dt.ones(2)).tolist() == [3.0, 3.0]
    assert inner.captures == 1 and outer.captures == 0


def test_exception_after_the_read_leaves_the_thread_without_a_tracer() -> None:
    @dt.jit
    def fail(x: dt.Tensor) -> dt.Tensor:
        if float(x.sum()) > 0:
            raise KeyError("positive")
        return x + 1

    with pytest.warns(dt.DovetailWarning), pytest.raises(KeyError, match="positive"):
        fail(dt.ones(2))
    assert dt.jit(lambda x: x + 1)(dt.ones(2)).tolist() == [2.0, 2.0]
    assert fail(-dt.ones(2)).tolist() == [0.0, 0.0]


def test_fullgraph_raises_an_error_that_names_the_line() -> None:
    @dt.jit(fullgraph=True)
    def f(x: dt.Tensor) -> dt.Tensor:
        lines.append(next_line())
        return x if x.sum() > 0 else -x

    lines = list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dt.CaptureError) as caught:
            f(dt.ones(2))
    assert lines[0] in str(caught.value)
    with pytest.raises(dt.ArgumentTypeError, match="fullgraph"):
        dt.jit(f, fullgraph="yes")  # type: ignore[call-overload]  # no bool


def test_read_in_the_body_of_a_loop_is_an_error() -> None:
    f = dt.jit(lambda x: dt.fori_loop(0, 3, lambda i, c: c * 2 if float(c.sum()) > 0 else c, x))
    with pytest.raises(dt.CaptureError, match=r"dt\.where"):
        f(dt.ones(2))


@pytest.mark.parametrize("multiply", [lambda n, values: n * values, lambda n, values: values * n])
@pytest.mark.parametrize("number", [lambda x: x, lambda x: np.array(3), lambda x: x[...]])
def test_list_times_an_array_of_no_dimensions_is_no_repetition(
    multiply: Callable[[Any, Any], Any], number: Callable[[Any], Any]
) -> None:
    def f(x: Any) -> Any:
        return multiply(number(x), [1, 2])

    captured = dt.jit(f, fullgraph=True)
    for value in (2, 5):
        x = np.array(value)
        assert captured(x).tolist() == f(x).tolist()


@pytest.mark.parametrize("multiply", [lambda n, values: n * values, lambda n, values: values * n])
@pytest.mark.parametrize(
    "number", [lambda x: x + 1, lambda x: -x[...] * -2, lambda x: np.stack([x, x]).sum()]
)
@pytest.mark.filterwarnings("ignore:dt.jit of")
def test_number_repeats_a_list_captured_as_plain(
    multiply: Callable[[Any, Any], Any], number: Callable[[Any], Any]
) -> None:
    """NumPy's results of operators are scalars, beside which a list is a sequence."""
    captured = dt.jit(lambda x: multiply(number(x), [1, 2]))
    for value in (2, 5):
        x = np.array(value)
        assert captured(x) == multiply(number(x), [1, 2]) == [1, 2] * int(number(x))


def test_replayed_numbers_are_as_immutable_as_those_of_the_first_call() -> None:
    f = dt.jit(lambda x: x.max() + 1)
    for _ in range(3):
        y = z = f(np.array([1, 2]))
        z += 1
        assert (y, z) == (3, 4)
        assert f(np.array([1, 2])) * [1, 2] == [1, 2] * 3


@pytest.mark.parametrize(
    "f",
    [
        lambda m, x: x.max() * numpy.array([1, 2], "f4"),
        lambda m, x: (x > 1).any() ** 2,
        lambda m, x: x * numpy.array([1, 2], "f4"),
    ],
)
def test_captured_and_plain_results_have_numpys_dtype(f: Callable[[Any, Any], Any]) -> None:
    x = numpy.array([1, 2], "i4")
    want = numpy.asarray(f(numpy, x)).dtype
    captured = dt.jit(lambda x: f(np, x))
    found = [f(np, np.array(x)), captured(np.array(x)), captured(np.array(x))]
    assert [numpy.asarray(r).dtype for r in found] == [want] * 3
