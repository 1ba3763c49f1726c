"""Float arguments of a captured function that change between calls."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as dnp
import numpy as np
import pytest
from captured import bits, device, vector

__all__ = ["device"]


def test_new_float_argument_needs_no_new_capture(device: dt.Device) -> None:
    def f(x: dt.Tensor, rate: float) -> Any:
        x[1:] = rate
        return x * rate + (1 - rate) / 3, -(rate**2) % 0.7, abs(rate)

    captured = dt.jit(f)
    for rate in (0.5, 0.25, -3.0, 1e-30, 0.1):
        assert bits(captured(vector(), rate)) == bits(f(vector(), rate))
    assert captured.captures == 1


def test_float_argument_is_weakly_typed(device: dt.Device) -> None:
    captured = dt.jit(lambda x, rate: x * rate)
    assert captured(dt.ones(2, dtype=dt.float32), 0.5).dtype is dt.float32
    ints = dt.ones(2, dtype=dt.int64)
    assert captured(ints, 0.5).dtype is (ints * 0.5).dtype


@pytest.mark.parametrize("use", [lambda r: r > 1, bool, float, int, lambda r: [1, 2][r > 0]])
def test_value_of_a_traced_float_raises_capture_error(use: Callable[[Any], Any]) -> None:
    with pytest.raises(dt.CaptureError, match=r"float argument.*test_traced.py.*static_argnames"):
        dt.jit(lambda x, r: x if use(r) else -x, fullgraph=True)(
            dt.ones(1, device="reference"), 2.0
        )


def test_traced_float_in_place_of_a_python_number_is_read() -> None:
    def f(x: dt.Tensor, high: float) -> dt.Tensor:
        dt.manual_seed(1)
        return x + dt.random.uniform(2, high=high, device="reference")

    captured = dt.jit(f)
    for high in (2.0, 3.0, 2.0):
        x = dt.ones(2, device="reference")
        assert captured(x, high).tolist() == f(x, high).tolist()


USES: dict[str, Callable[[Any, Any], Any]] = {
    "isinstance": lambda x, s: x * (2 if isinstance(s, float) else 3),
    "class of NumPy": lambda x, s: x * (2 if isinstance(s, np.floating) else 3),
    "number": lambda x, s: x * (2 if isinstance(s, numbers.Real) else 3),
    "scalar": lambda x, s: x * (2 if np.isscalar(s) else 3),
    "method": lambda x, s: x * (2 if s.is_integer() else 3),
    "text": lambda x, s: (x, str(s), f"{s}", f"{s:.1f}", repr(s)),
    "attribute": lambda x, s: (x, str(getattr(s, "dtype", None))),
    "returned": lambda x, s: (x, s, s * 2, 1 / s),
    "multiply": lambda x, s: x * s,
    "reflected": lambda x, s: s - x,
    "formula": lambda x, s: x + (s * 2 + 1),
    "floor divide": lambda x, s: x // s,
    "compare": lambda x, s: x < s,
    "write": lambda x, s: dt.where(x == x, s, x),
    "NumPy's function": lambda x, s: x * np.sqrt(s) + np.maximum(s, 1.5),
    "NumPy's array": lambda x, s: x * 1.0 + float(np.asarray(s)),
}
USES_OF_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda x, s: dnp.maximum(x, s),
    "where": lambda x, s: dnp.where(x > 1, x, s),
    "full": lambda x, s: x + dnp.full(2, s),
    "array": lambda x, s: x + dnp.array(s),
    "clip": lambda x, s: dnp.clip(x, 0, s),
    "stack": lambda x, s: dnp.array([s, 1.0]) * x,
    "store": lambda x, s: dnp.put_along_axis(y := x.copy(), dnp.array([0]), s, 0) or y,
}
DTYPES = ["int64", "int8", "bool", "float32", "float64", "complex64"]


def describe(value: Any) -> Any:
    """Return the types, dtypes and bits of a result."""
    if isinstance(value, tuple):
        return [describe(v) for v in value]
    return type(value), str(getattr(value, "dtype", "")), np.asarray(value).tolist()


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """Return what a call gives, described, or the class of its error."""
    try:
        return describe(f(*args))
    except (TypeError, ValueError) as error:
        return [c for c in (TypeError, ValueError) if isinstance(error, c)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("space", "name"),
    [*(("dt", n) for n in USES), *(("numpy", n) for n in (*USES, *USES_OF_NUMPY))],
)
def test_captured_function_of_a_float_equals_plain_one(name: str, space: str, dtype: str) -> None:
    if dtype == "complex64" and name in ("compare", "maximum", "where"):
        pytest.skip("a captured function does not order complex numbers: it raises DTypeError")
    f = {**USES, **USES_OF_NUMPY}[name]
    values = np.array([1, 2]).astype(dtype)
    captured = dt.jit(f)
    for kind in (float, np.float64, np.float32):
        for number in (2.1, 2.1, 3.7):
            x = dnp.array(values) if space == "numpy" else dt.asarray(values)
            assert outcome(captured, x, kind(number)) == outcome(f, x, kind(number)), kind


@pytest.mark.parametrize("dtype", [None, dt.float64, dt.float16])
def test_traced_float_becomes_a_tensor_that_each_call_makes_anew(dtype: dt.DType | None) -> None:
    def f(rate: float) -> list[dt.Tensor]:
        made = [dt.asarray(rate, dtype=dtype), dt.full((2, 3), rate, dtype=dtype)]
        return [*made, dt.full_like(made[1], rate * 2), dt.sqrt(rate), dt.maximum(rate, 0.25)]

    captured = dt.jit(f, fullgraph=True)
    for rate in (0.1, 0.5, -0.0, 1e300, math.inf):
        results, wanted = captured(rate), f(rate)
        assert [r.dtype for r in results] == [w.dtype for w in wanted]
        assert [*map(bits, results)] == [*map(bits, wanted)]
    assert captured.captures == 1


def test_capture_that_reads_a_float_is_for_its_value_alone() -> None:
    @dt.jit
    def f(x: dt.Tensor, rate: float, other: float) -> tuple[dt.Tensor, float]:
        y = x * rate if rate * 2 > 1 else x + rate
        return y * other, math.exp(rate)

    for rate in (0.75, 0.25, 0.75, -0.0, 0.0, 0.25):
        for other in (1.5, 2.5):
            y, e = f(dt.ones(2, device="reference"), rate, other)
            assert y.tolist() == [(rate if rate > 0.5 else 1 + rate) * other] * 2
            assert e == math.exp(rate)
    assert f.captures == 4, "one for each value of rate"


def test_float_that_is_read_with_many_values_ends_the_captures() -> None:
    captured = dt.jit(lambda rate: dt.full(2, rate, dtype=dt.int64))
    for k in range(4):
        assert captured(float(k)).tolist() == [k, k] and captured.captures == k + 1
    with pytest.warns(dt.DovetailWarning, match="a float argument is asked for its value"):
        assert captured(4.0).tolist() == [4, 4]
    assert captured(5.0).tolist() == [5, 5] and captured.captures == 4
