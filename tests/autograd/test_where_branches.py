"""Values of the untaken branch of `where` outside of its domain change no gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import func

Function = Callable[[Any], Any]


def where(x: Any, branch: Any) -> Any:
    return dt.where(x > 1, branch, 1.0)


def norm(x: Any) -> Any:
    rows = x.reshape(-1, 1) * dt.ones(1, 2, dtype=x.dtype, device=x.device)
    size = dt.sqrt((rows * rows).sum(axis=1))
    return dt.where(size > 1.5, size, 0.0).reshape(x.shape)


# A branch with an infinite or undefined slope at 0 and at 1, and the derivative where it is taken.
BRANCHES: dict[str, tuple[Function, Callable[[float], float]]] = {
    "sqrt": (lambda x: where(x, dt.sqrt(x)), lambda x: 0.5 / math.sqrt(x)),
    "log": (lambda x: where(x, dt.log(x - 1)), lambda x: 1 / (x - 1)),
    "1 / x": (lambda x: where(x, 1 / x), lambda x: -1 / x**2),
    "x / (x - 1)": (lambda x: where(x, x / (x - 1)), lambda x: -1 / (x - 1) ** 2),
    "pow": (lambda x: where(x, (x - 1) ** -1.5), lambda x: -1.5 * (x - 1) ** -2.5),
    "pow of tensors": (
        lambda x: where(x, (x - 1) ** (x - 1)),
        lambda x: (x - 1) ** (x - 1) * (math.log(x - 1) + 1),
    ),
    "acosh": (lambda x: where(x, dt.acosh(x)), lambda x: 1 / math.sqrt(x * x - 1)),
    "rsqrt of log": (
        lambda x: where(x, dt.rsqrt(dt.log(x))),
        lambda x: -0.5 * math.log(x) ** -1.5 / x,
    ),
    "exp that overflows": (
        lambda x: where(x, dt.exp(1000 / x - 500)),
        lambda x: -1000 / x**2 * math.exp(1000 / x - 500),
    ),
    "times infinity": (lambda x: dt.where(x < 1, x, x * math.inf), lambda x: math.inf),
    "inner where": (
        lambda x: where(x, dt.where(x > 2, dt.sqrt(x - 2), 1 / (x - 1))),
        lambda x: 0.5 / math.sqrt(x - 2),
    ),
    "through views": (
        lambda x: where(x, dt.sqrt(x).reshape(-1, 1).expand(-1, 2).T[0].reshape(x.shape)),
        lambda x: 0.5 / math.sqrt(x),
    ),
    "through a slice with gaps": (
        lambda x: where(x, dt.sqrt(dt.repeat(x.ravel(), 2)[::2]).reshape(x.shape)),
        lambda x: 0.5 / math.sqrt(x),
    ),
    "through a root behind a slice with gaps": (
        lambda x: where(x, dt.sqrt(dt.repeat(x.ravel(), 2))[::2].reshape(x.shape)),
        lambda x: 0.5 / math.sqrt(x),
    ),
    "through a sum": (norm, lambda x: math.sqrt(2.0)),
    "through a concat": (
        lambda x: where(x, dt.concat([dt.sqrt(x).ravel(), x.ravel()])[: x.size].reshape(x.shape)),
        lambda x: 0.5 / math.sqrt(x),
    ),
}  # fmt: skip
AT = (0.0, 1.0, 4.0)


def expected(name: str) -> list[float]:
    untaken = 1.0 if name == "times infinity" else 0.0
    last = BRANCHES[name][1](4.0)
    return [untaken, last if name == "times infinity" else untaken, last]


@pytest.fixture
def point(device: dt.Device) -> Any:
    return dt.asarray(AT, dtype=dt.float64)


def total(f: Function) -> Function:
    return lambda x: f(x).sum()


WAYS: dict[str, Callable[[Function, Any], Any]] = {
    "reverse": lambda f, x: func.grad(total(f))(x),
    "forward": lambda f, x: func.jvp(f, (x,), (dt.ones_like(x),))[1],
    "jit": lambda f, x: dt.jit(func.grad(total(f)))(x),
    "jit of forward": lambda f, x: dt.jit(lambda t: func.jvp(f, (t,), (dt.ones_like(t),))[1])(x),
    "vmap": lambda f, x: dt.vmap(func.grad(total(f)))(x.reshape(3, 1)).reshape(3),
    "vmap of forward": lambda f, x: dt.vmap(lambda t: func.jvp(f, (t,), (dt.ones_like(t),))[1])(
        x.reshape(3, 1)
    ).reshape(3),
    "jacobian": lambda f, x: dt.diagonal(func.jacrev(f)(x)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BRANCHES)
def test_where_has_the_slope_of_the_taken_branch(point: Any, name: str, way: str) -> None:
    got = WAYS[way](BRANCHES[name][0], point).numpy()
    np.testing.assert_allclose(got, expected(name), rtol=1e-12)


@pytest.mark.parametrize(
    "name", [n for n in BRANCHES if n not in ("times infinity", "inner where")]
)
def test_where_has_the_second_derivative_of_the_taken_branch(point: Any, name: str) -> None:
    f, slope = BRANCHES[name]
    got = func.grad(total(func.grad(total(f))))(point).numpy()
    bend = (slope(4.0 + 1e-5) - slope(4.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(got, [0.0, 0.0, bend], rtol=1e-5, atol=1e-9)
    ahead = func.jvp(func.grad(total(f)), (point,), (dt.ones_like(point),))[1].numpy()
    np.testing.assert_allclose(ahead, got, rtol=1e-12)


def test_where_keeps_an_infinite_slope_of_the_taken_branch(
    device: dt.Device,
) -> None:
    x = dt.asarray([0.0, 4.0])
    got = func.grad(lambda t: dt.where(t >= 0, dt.sqrt(t), 1.0).sum())(x)
    assert got.tolist() == [math.inf, 0.25]


def test_value_with_another_use_outside_of_where_keeps_its_slope(device: dt.Device) -> None:
    x = dt.asarray([0.0, 4.0])
    root = lambda t: dt.sqrt(t)  # noqa: E731 - one root that both readers share

    def f(t: Any) -> Any:
        r = root(t)
        return (dt.where(t > 1, r, 0.0) + r).sum()

    assert func.grad(f)(x).tolist() == [math.inf, 0.5]


def test_hook_on_an_untaken_branch_may_add_a_gradient(device: dt.Device) -> None:
    x = dt.asarray([1.0, 4.0]).requires_grad_()
    root = dt.sqrt(x)
    root.register_hook(lambda g: g + 1.0)
    dt.where(x > 2, root, 0.0).sum().backward()
    assert x.grad.tolist() == [0.5, 0.5]


def test_anomaly_mode_ignores_an_untaken_branch(device: dt.Device) -> None:
    x = dt.asarray([0.0, 4.0]).requires_grad_()
    with dt.autograd.detect_anomaly():
        dt.where(x > 1, dt.sqrt(x), 1.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_anomaly_mode_reports_a_nan_of_the_taken_branch(device: dt.Device) -> None:
    x = dt.asarray([0.0, 4.0]).requires_grad_()
    with dt.autograd.detect_anomaly(), pytest.raises(dt.AnomalyError, match="gradient of sqrt"):
        (dt.where(x > -1, dt.sqrt(x), 1.0) * 0.0).sum().backward()
