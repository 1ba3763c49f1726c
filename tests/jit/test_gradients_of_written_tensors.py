"""Bodies that write to a tensor with a gradient have right gradients or raise an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest


def gradient(loop: Callable[[Any, Any], Any]) -> Callable[[dt.Tensor], Any]:
    """Return the gradient of a function that halves its argument three times, by `loop`."""

    def total(x: dt.Tensor) -> dt.Tensor:
        y = x * 1
        loop(y, dt.zeros(()))
        return (y * y).sum()

    return dt.func.grad(total)


def halve(y: Any, value: Any) -> Any:
    y.mul_(0.5)
    return value + 1


KNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "fori_loop": lambda y, v: dt.fori_loop(0, 3, lambda _, v: halve(y, v), v),
    "scan": lambda y, v: dt.scan(lambda v, p: (v * 1, halve(y, p)), v, dt.zeros(3)),
}
UNKNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "bound": lambda y, v: dt.fori_loop(0, dt.asarray(3), lambda _, v: halve(y, v), v),
    "while_loop": lambda y, v: dt.while_loop(lambda v: v < 3, lambda v: halve(y, v), v),
}


@pytest.mark.parametrize("loop", KNOWN)
def test_gradient_flows_through_writes_of_each_iteration(device: dt.Device, loop: str) -> None:
    f, x = gradient(KNOWN[loop]), dt.asarray([1.0, 2.0])
    assert f(x).tolist() == dt.jit(f)(x).tolist() == [2 / 64, 4 / 64]


def test_value_that_an_iteration_writes_to_an_outer_tensor_keeps_its_gradient(
    device: dt.Device,
) -> None:
    w = dt.zeros(2)

    def total(x: dt.Tensor) -> dt.Tensor:
        dt.fori_loop(0, 2, lambda _, v: (w.copy_(x * x), v + 1)[1], dt.zeros(()))
        return w.sum()

    assert dt.func.grad(total)(dt.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("loop", UNKNOWN)
def test_write_in_a_loop_of_unknown_length_raises_gradient_error(
    device: dt.Device, loop: str
) -> None:
    f = gradient(UNKNOWN[loop])
    for g in (f, dt.jit(f)):
        with pytest.raises(dt.GradientError, match=r"unknown length|must be ints"):
            g(dt.asarray([1.0, 2.0]))


def test_write_in_a_captured_branch_raises_gradient_error(device: dt.Device) -> None:
    f = gradient(lambda y, v: dt.cond(v > 0, lambda: halve(y, v), lambda: v * 1))
    assert f(dt.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.raises(dt.GradientError, match="cond: gradients cannot flow"):
        dt.jit(f)(dt.asarray([1.0, 2.0]))


def test_write_without_gradients_in_an_iteration_is_captured(device: dt.Device) -> None:
    y = dt.ones(2)
    dt.fori_loop(0, 3, lambda _, v: halve(y, v), dt.zeros(()))
    assert y.tolist() == [0.125, 0.125]


def backward_in(kind: str) -> tuple[Callable[[dt.Tensor], Any], dt.Tensor]:
    """Return a function whose bodies add to the `grad` of a tensor, and that tensor."""
    w = dt.asarray([3.0, 4.0]).requires_grad_()

    def body(x: Any) -> Any:
        (w * x).sum().backward()
        return x * 1

    functions: dict[str, Callable[[Any], Any]] = {
        "fori_loop": lambda x: dt.fori_loop(0, 2, lambda _, v: body(v), x),
        "scan": lambda x: dt.scan(lambda v, _: (body(v), v), x, dt.zeros(2)),
        "bound": lambda x: dt.fori_loop(0, dt.asarray(2), lambda _, v: body(v), x),
        "while_loop": lambda x: dt.while_loop(lambda v: v[0] < 2, lambda v: body(v) + 1, x),
        "cond": lambda x: dt.cond(x[0] > 0, lambda: body(x), lambda: x * 2),
    }
    return functions[kind], w


@pytest.mark.parametrize("kind", ["fori_loop", "scan"])
def test_backward_in_each_iteration_adds_to_grad(device: dt.Device, kind: str) -> None:
    for over in (lambda f: f, dt.jit):
        f, w = backward_in(kind)
        over(f)(dt.asarray([1.0, 2.0]))
        assert w.grad is not None and w.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("kind", ["bound", "while_loop", "cond"])
def test_backward_in_a_body_that_may_not_run_raises_gradient_error(
    device: dt.Device, kind: str
) -> None:
    f, w = backward_in(kind)
    with pytest.raises(dt.GradientError):
        dt.jit(f)(dt.asarray([1.0, 2.0]))
    assert w.grad is None


def test_iteration_may_clear_grad(device: dt.Device) -> None:
    w = dt.asarray([3.0, 4.0]).requires_grad_()
    w.sum().backward()

    def clear(v: Any) -> Any:
        w.grad = None
        return v * 1

    f = dt.jit(lambda x: dt.cond(x[0] > 1, lambda: clear(x), lambda: x * 2))
    with pytest.raises(dt.GradientError):
        f(dt.zeros(2))
    assert w.grad is not None
    dt.fori_loop(0, 2, lambda _, v: clear(v), dt.zeros(2))
    assert w.grad is None
