"""First and second derivatives of every elementwise op, at random points and at equal operands.

`test_autograd.py` has one program per op, with every way to write it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import func
from dovetail.autograd import jvp
from dovetail.ops import table as ops
from dovetail.tensor.primitives import apply
from gradient_cases import CASES, DOMAINS, uniform

Array = np.ndarray[Any, Any]

# Ranges in which an op is smooth, in addition to `DOMAINS`: other signs, and far from 0.
FURTHER: dict[str, list[tuple[float, float]]] = {
    "acosh": [(5.0, 50.0)], "atan": [(-40.0, 40.0)], "cbrt": [(-3.0, -0.2)],
    "digamma": [(-1.9, -1.1), (5.0, 40.0)], "divide": [(-3.0, -0.3)], "erf": [(-5.0, 5.0)],
    "erfc": [(0.0, 6.0)], "exp": [(-30.0, -5.0)], "expm1": [(-30.0, -5.0), (-0.01, 0.01)],
    "gamma": [(-1.9, -1.1)], "hypot": [(-3.0, -0.2)], "i0": [(-20.0, 20.0)], "i1": [(-20.0, 20.0)],
    "lgamma": [(-1.9, -1.1), (5.0, 40.0)], "log1p": [(-0.01, 0.01)],
    "logaddexp": [(-20.0, 20.0)], "ndtr": [(-6.0, 6.0)], "reciprocal": [(-3.0, -0.3)],
    "sigmoid": [(-20.0, -5.0), (3.0, 8.0)], "sin": [(-20.0, 20.0)], "sinc": [(-3.9, -3.1)],
    "sinh": [(-5.0, 5.0)], "tan": [(1.9, 4.3)], "tanh": [(-5.0, 5.0)], "xlogy": [(5.0, 50.0)],
    "zeta": [(5.0, 20.0)],
}  # fmt: skip
KINKS = {
    "maximum",
    "minimum",
    "remainder",
    "floor_divide",
    "python_floor_divide",
}  # at equal operands


def differentiable_ops() -> list[str]:
    """Return the differentiable elementwise ops of one or two operands, including new ones."""
    return [
        name for name, op in ops.TABLE.items()
        if op.kind == "map" and op.arity <= 2 and any(op.gradient) and name != "astype"
    ]  # fmt: skip


def sample_points(name: str) -> list[list[Array]]:
    arity, found = ops.TABLE[name].arity, []
    for low, high in (DOMAINS.get(name, (-2.0, 2.0)), *FURTHER.get(name, [])):
        x, y = uniform(7, low=low, high=high), uniform(7, 1, low=low, high=high)[:, 0]
        found.append([x, y][:arity])
        if arity == 2 and name not in KINKS:
            found.append([x, x])
    return found


def finite_difference(f: Callable[..., Any], arrays: list[Array], j: int) -> Array:
    """Return the derivative by operand `j` from values at one and two steps."""
    h = 1e-4 * np.maximum(np.abs(arrays[j]), 1e-2)

    def at(steps: int) -> Array:
        moved = [a + steps * h if k == j else a for k, a in enumerate(arrays)]
        return np.asarray(f(*[dt.asarray(a) for a in moved]).numpy())

    return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * h)


def assert_close(got: Any, want: Array, scale: Array) -> None:
    size = np.maximum(np.abs(want), np.abs(scale))
    np.testing.assert_allclose(got.numpy() / size, want / size, atol=1e-7)


@pytest.mark.parametrize("name", differentiable_ops())
def test_derivatives_of_an_op_equal_differences(name: str) -> None:
    op = ops.TABLE[name]

    def f(*xs: Any) -> Any:
        return apply(op, xs)

    used = [i for i, rule in enumerate(op.gradient) if rule is not None]
    for arrays in sample_points(name):
        xs = [dt.asarray(a) for a in arrays]
        values = f(*xs).numpy()
        for i in used:
            first = func.grad(lambda *ts: f(*ts).sum(), argnums=i)
            unit = np.abs(values) / np.maximum(np.abs(arrays[i]), 1e-2) + 1e-30
            assert_close(first(*xs), finite_difference(f, arrays, i), unit)
            slopes = first(*xs).numpy()
            for j in used:
                want = finite_difference(first, arrays, j)
                unit = np.abs(slopes) / np.maximum(np.abs(arrays[j]), 1e-2) + 1e-30
                second = func.grad(lambda *ts, g=first: g(*ts).sum(), argnums=j)
                assert_close(second(*xs), want, unit)
                along = [dt.ones_like(t) if k == j else dt.zeros_like(t) for k, t in enumerate(xs)]
                assert_close(jvp(first, tuple(xs), tuple(along))[1], want, unit)


@pytest.mark.parametrize("name", CASES)
def test_forward_over_reverse_equals_reverse_over_reverse(name: str) -> None:
    _, f, arrays, _ = CASES[name]
    xs = [dt.asarray(a) for a in arrays]
    weights = dt.asarray(uniform(*f(*xs).shape) + 3.0)

    def gradient(*ts: Any) -> Any:
        found = func.grad(lambda *us: (f(*us) * weights).sum(), argnums=tuple(range(len(xs))))(*ts)
        return tuple(found)

    along = tuple(dt.asarray(uniform(*t.shape, low=0.5, high=1.5)) for t in xs)

    def directed(*ts: Any) -> Any:
        total = dt.zeros((), dtype=dt.float64)
        for g, v in zip(gradient(*ts), along, strict=True):
            total = total + (g * v).sum()
        return total

    forward = jvp(gradient, tuple(xs), along)[1]
    back = func.grad(directed, argnums=tuple(range(len(xs))))(*xs)
    for a, b in zip(forward, back, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["logaddexp2", "logaddexp", "atan2", "hypot", "pow"])
def test_second_derivatives_at_equal_operands_equal_differences(name: str) -> None:
    f, x = getattr(dt, name), uniform(7, low=0.3, high=3.0)
    xs = [dt.asarray(x), dt.asarray(x)]
    for i in (0, 1):
        first = func.grad(lambda *ts: f(*ts).sum(), argnums=i)
        for j in (0, 1):
            second = func.grad(lambda *ts, g=first: g(*ts).sum(), argnums=j)
            assert_close(second(*xs), finite_difference(first, [x, x], j), np.ones(7))


@pytest.mark.parametrize("x", [1e10, 1e16, 1e20, 1e30, 3e38])
def test_slope_of_digamma_at_large_x_is_one_over_x(x: float) -> None:
    t = dt.asarray([x]).requires_grad_()
    assert dt.grad(dt.digamma(t).sum(), t).item() == pytest.approx(1 / x, rel=1e-6, abs=0.0)
