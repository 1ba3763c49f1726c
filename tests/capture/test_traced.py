"""Float arguments of a captured function that change between calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail as dt
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


def test_traced_float_in_place_of_a_python_number_raises() -> None:
    f = dt.jit(lambda x, high: x + dt.random.uniform(2, high=high, device="reference"))
    with pytest.raises(dt.DovetailError, match="static_argnames"):
        f(dt.ones(2, device="reference"), 2.0)


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
