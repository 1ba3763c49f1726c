"""Operators and functions of arrays without dimensions: NumPy's scalars, where NumPy has them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest

DTYPES = ["bool", "int8", "int64", "uint8", "float32", "float64", "complex128"]
UNARY = [operator.neg, operator.pos, operator.invert, abs]
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge, divmod,
]  # fmt: skip
FUNCTIONS: list[Callable[[Any, Any], Any]] = [
    lambda m, x: m.sqrt(x),
    lambda m, x: m.add(x, x),
    lambda m, x: m.add(x, 1),
    lambda m, x: m.modf(x),
    lambda m, x: m.round(x, 1),
    lambda m, x: x.round(1),
    lambda m, x: m.clip(x, 0, 2),
    lambda m, x: m.clip(x, None, None),
    lambda m, x: x.clip(0, 2),
    lambda m, x: m.isclose(x, 1),
    lambda m, x: m.isreal(x),
    lambda m, x: m.nan_to_num(x),
    lambda m, x: m.kron(x, x),
    lambda m, x: m.interp(x, [1.0, 2.0], [0.0, 5.0]),
    lambda m, x: m.interp(0.5, [0.0, 1.0], m.array([0j, 1j])),
    lambda m, x: m.convolve(x, x),
    lambda m, x: m.modf(x, m.zeros(())),
    lambda m, x: m.flip(x),
    lambda m, x: m.fix(x),
    lambda m, x: m.add(x, x, out=m.zeros(())),
    lambda m, x: m.where(x > 1, x, 0),
    lambda m, x: m.squeeze(x),
    lambda m, x: x.copy(),
    lambda m, x: x.astype(complex),
    lambda m, x: x[...],
    lambda m, x: x.reshape(()),
    lambda m, x: m.median(x, keepdims=True),
    lambda m, x: m.sum(x, keepdims=True),
]


def check(ours: Any, theirs: Any) -> None:
    """Check that values, dtypes and the types of results agree: scalars, or arrays."""
    if isinstance(theirs, tuple):
        for a, b in zip(ours, theirs, strict=True):
            check(a, b)
        return
    assert (type(ours) is np.ndarray) == (type(theirs) is numpy.ndarray)
    assert type(ours) is np.ndarray or type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert numpy.array_equal(numpy.asarray(ours), theirs, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operate", [*UNARY, *BINARY])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operator_gives_numpys_scalar(operate: Callable[..., Any], dtype: str) -> None:
    y = numpy.array(3, dtype)
    x = np.array(y)
    try:
        theirs = operate(y) if operate in UNARY else operate(y, y)
    except TypeError:
        return
    if operate in UNARY:
        check(operate(x), theirs)
        return
    check(operate(x, np.array(y)), theirs)
    check(operate(x, y[()]), operate(y, y[()]))
    check(operate(x, 2), operate(y, 2))
    check(operate(2, x), operate(2, y))


def test_squares_and_shifts_of_bools_are_int8() -> None:
    x, y = np.array([True, False]), numpy.array([True, False])
    for operate in (lambda a: a**2, lambda a: a << a, lambda a: a >> True, lambda a: a**a):
        check(operate(x), operate(y))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function_gives_scalar_or_array_as_numpy_does(function: Callable[..., Any]) -> None:
    check(function(np, np.array(1.75)), function(numpy, numpy.array(1.75)))


def test_result_with_nan_is_a_scalar() -> None:
    x = np.array(numpy.nan)
    for result in (x + 1, -x, np.sqrt(x), x**2, 1 / x):
        assert type(result) is numpy.float64
        assert numpy.isnan(result)


def test_in_place_operator_keeps_the_array() -> None:
    x = y = np.array(2.0)
    x += 1
    x *= 2
    assert x is y
    assert y[()] == 6


def test_update_of_a_pending_array_is_seen_by_its_other_name() -> None:
    x = y = np.array(2).astype(float)
    x += 1
    assert x is y
    assert y[()] == 3


def test_result_that_carries_a_gradient_stays_an_array() -> None:
    x = np.array(3.0).requires_grad_()
    y = x * x + np.sqrt(x) - 2**x
    assert type(y) is np.ndarray
    y.backward()
    assert x.grad.item() == pytest.approx(6 + 0.5 / 3**0.5 - 8 * numpy.log(2))


def test_captured_function_and_vmap_keep_arrays() -> None:
    f = dt.jit(lambda x: np.sqrt(x) + x**2)
    assert [f(np.array(v)).item() for v in (4.0, 9.0)] == [18.0, 84.0]
    rows = dt.vmap(lambda v: np.sqrt(v * 4) + 1)(np.array([1.0, 4.0]))
    assert rows.tolist() == [3.0, 5.0]


def test_functions_of_dt_accept_arrays_without_dimensions() -> None:
    x = np.array(2.0)
    assert dt.sqrt(dt.exp(x)).item() == pytest.approx(numpy.exp(1))
    assert dt.std(x).item() == 0
    assert dt.softmax(x.reshape(1)).tolist() == [1]
    assert (dt.asarray(3.0) * x).item() == 6


def test_numbers_of_a_captured_function_are_immutable() -> None:
    def step(x: Any) -> Any:
        total, first, ones = x.sum(), x[0], np.zeros(())
        old_total, old_first, old_ones = total, first, ones
        x[0] = 7  # evaluates what reads it
        total += 0
        total += x
        first *= 2
        ones += 1
        return total, old_total, first, old_first, ones, old_ones

    for f in (step, dt.jit(step)):
        for _ in range(3):
            results = [numpy.asarray(r).tolist() for r in f(np.array([1.0, 2.0]))]
            assert results == [[10, 5], 3, 2, 1, 1, 1]


@pytest.mark.filterwarnings("ignore:dt.jit of f")
def test_number_of_a_function_that_stops_being_captured_is_immutable() -> None:
    @dt.jit
    def f(x: Any) -> Any:
        n = old = x.argmax()
        if x[0] > 1:
            n -= 0.5
        return n, old

    for _ in range(2):
        assert [float(v) for v in f(np.array([2.0, 5.0]))] == [0.5, 1]


def test_argument_without_dimensions_is_updated_in_place() -> None:
    def f(x: Any) -> Any:
        x += 1
        return x * 2

    for function in (f, dt.jit(f)):
        x = np.array(2.0)
        assert function(x).item() == 6
        assert x[()] == 3


@pytest.mark.filterwarnings("ignore:dt.jit of f")
def test_number_of_a_captured_function_is_a_key_by_its_value() -> None:
    def f(x: Any) -> Any:
        return x + (1 if x.max() in {2} else 0) + {3.0: 10}.get(x.sum(), 20)

    for x in ([0.0, 1.0, 2.0], [0.0, 1.0, 3.0]):
        expected = f(numpy.array(x))
        for _ in range(2):
            assert dt.jit(f)(np.array(x)).tolist() == expected.tolist()


@pytest.mark.parametrize("write", ["y[...] = 9", "y[()] = 9", "np.add(y, 1, out=y)"])
def test_write_to_a_number_raises_as_in_numpy(write: str) -> None:
    def f(x: Any) -> Any:
        y = x.max()
        exec(write, {"np": np if isinstance(x, np.ndarray) else numpy, "y": y})
        return y

    with pytest.raises(TypeError):
        f(numpy.arange(3.0))
    for function in (f, dt.jit(f)):
        with pytest.raises(TypeError):
            function(np.arange(3.0))


def test_fill_leaves_a_number_as_it_is() -> None:
    def f(x: Any) -> Any:
        y = x.max()
        y.fill(9)
        return y

    for function in (f, dt.jit(f)):
        assert function(np.arange(3.0)) == f(numpy.arange(3.0)) == 2


STATISTICS = (
    "amax", "amin", "average", "max", "mean", "median", "min", "nanmax", "nanmean", "nanmedian",
    "nanmin", "nanstd", "nansum", "nanvar", "prod", "ptp", "std", "sum", "var",
)  # fmt: skip
OF_TWO = ("allclose", "corrcoef", "cov", "dot", "isclose", "vdot")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_statistics_are_the_numbers_of_numpy(dtype: str) -> None:
    a = numpy.array([3, 1, 0, 4, 1, 5], dtype)
    x = np.asarray(a)
    calls = {name: (lambda m, v, name=name: getattr(m, name)(v)) for name in STATISTICS}
    calls |= {name: (lambda m, v, name=name: getattr(m, name)(v, v)) for name in OF_TWO}
    calls |= {
        "ddof": lambda m, v: m.var(v, ddof=1),
        "where": lambda m, v: m.mean(v, where=v > 0),
        "gradient": lambda m, v: m.gradient(v * 1.0),
        "histogram": lambda m, v: m.histogram(v * 1.0, 3)[0],
        "percentile": lambda m, v: m.percentile(v * 1.0, 30),
    }
    for name, call in calls.items():
        if dtype == "bool" and name == "ptp":
            continue  # NumPy refuses to subtract bools
        expected, result = call(numpy, a), call(np, x)
        assert type(expected) is type(result) or isinstance(result, np.ndarray), name
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        numpy.testing.assert_allclose(result, expected, rtol=tolerance, err_msg=name)
