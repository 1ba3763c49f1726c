"""Gradients that flow into a captured function: a captured backward pass with the same bits."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from captured import bits, device, vector
from dovetail.engine.events import counters

__all__ = ["device"]


def matrix(*shape: int, seed: int = 0) -> dt.Tensor:
    return dt.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def written(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
    y = dt.sin(x * w)
    y[1:3] = x[:2] * 3
    return y.sum()


def counted(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
    x += 1
    return (x * w).sum()


def through_a_loop(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
    return dt.fori_loop(0, 3, lambda i, c: dt.tanh(c) + i, x * w).sum()


def scanned(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
    c, ys = dt.scan(lambda c, a: (c * a, c + a), dt.ones(()), x * w)
    return c + (ys * ys).sum()


FUNCTIONS: list[Callable[[dt.Tensor, dt.Tensor], dt.Tensor]] = [
    lambda x, w: (x * w).sum(),
    lambda x, w: dt.tanh(x * w),
    lambda x, w: dt.softmax(x * w) * x,
    lambda x, w: dt.exp(w),
    lambda x, w: w[2:] * x[:-2] + 1,
    lambda x, w: w[dt.asarray([3, 0, 3])] * 2,
    lambda x, w: dt.sort(x * w)[1:],
    lambda x, w: dt.reshape(x * w, (2, 4)).T @ dt.ones((2, 3)),
    lambda x, w: dt.where(x > 0, w, -x).mean(),
    lambda x, w: (w * 2 + x).detach() * w + x,
    lambda x, w: w * dt.random.uniform(8),
    written, counted, through_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("of_leaf", [True, False])
def test_gradients_equal_those_of_the_plain_function(
    device: dt.Device, function: Callable[..., Any], of_leaf: bool
) -> None:
    captured, found = dt.jit(function), []
    for f in (captured, function):
        dt.random.manual_seed(3)
        w, seen = vector(seed=9).requires_grad_(), []
        for seed in range(4):
            given = w if of_leaf else w * 2 + 1
            y = f(vector(seed=seed), given)
            (dt.sin(y) * y).sum().backward()
            seen.append((bits(y), bits(w.grad)))
        found.append(seen)
    assert found[0] == found[1]
    assert captured.captures == (2 if of_leaf else 1)  # with and without a `grad`


def test_backward_replay_plans_nothing(device: dt.Device) -> None:
    captured = dt.jit(lambda x, w: (dt.tanh(x @ w) ** 2).sum())
    w = matrix(3, 4).requires_grad_()
    for seed in range(5):
        plans, compiles = counters.plans, counters.compiles
        captured(matrix(5, 3, seed=seed), w).backward()
        w.grad = None
        if seed > 2:
            assert (counters.plans, counters.compiles) == (plans, compiles)
    assert captured.captures == 1
    assert [given.endswith("the way back") for given, _ in captured.programs] == [False, True]


def test_each_call_saves_its_own_values(device: dt.Device) -> None:
    def f(x: dt.Tensor, w: dt.Tensor, rate: float) -> dt.Tensor:
        return (dt.exp(x * rate) * w * rate).sum()

    captured, found = dt.jit(f), []
    captured(vector(), vector().requires_grad_(), 0.5)
    for g in (captured, f):
        ws = [vector(seed=k).requires_grad_() for k in range(3)]
        made = [g(vector(seed=k), w, 0.25 * k) for k, w in enumerate(ws)]
        for y in (made[1], made[2], made[0]):
            y.backward()
        found.append(bits([w.grad for w in ws]))
    assert found[0] == found[1] and captured.captures == 1


def test_gradients_of_several_arguments_and_closure_tensors(device: dt.Device) -> None:
    def made() -> tuple[Callable[..., Any], list[dt.Tensor]]:
        weights = [matrix(4, 4, seed=k).requires_grad_() for k in range(3)]

        def f(x: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
            for w in weights:
                x = dt.tanh(x @ w)
            return dt.maximum(x + b, 0)

        return f, weights

    found = []
    for wrap in (dt.jit, lambda f: f):
        f, weights = made()
        g, b = wrap(f), vector(4).requires_grad_()
        for seed in range(3):
            x = matrix(2, 4, seed=seed).requires_grad_()
            g(x, b).sum().backward()
            with dt.no_grad():
                weights[1] -= weights[1].grad
        found.append(bits([x.grad, b.grad, *(w.grad for w in weights)]))
    assert found[0] == found[1]


def test_incoming_gradient_may_have_any_strides(device: dt.Device) -> None:
    captured = dt.jit(lambda w: dt.exp(w) * 2)
    for _ in range(3):
        w, v = matrix(3, 4).requires_grad_(), matrix(3, 4).requires_grad_()
        weights = matrix(4, 3, seed=1)
        (captured(w).T * weights).sum().backward()
        ((dt.exp(v) * 2).T * weights).sum().backward()
        assert bits(w.grad) == bits(v.grad)
        w.grad = None
        captured(w).sum().backward()


def test_hooks_and_retained_gradients_of_the_result(device: dt.Device) -> None:
    captured = dt.jit(lambda w: w * w)
    for _ in range(3):
        w = vector().requires_grad_()
        y = captured(w)
        y.retain_grad()
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        assert y.grad.tolist() == [2.0] * 8
        assert bits(w.grad) == bits(2 * (w.detach() + w.detach()))


# --- plain backward


def twice(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
    return (x * w + dt.exp(w)).sum()


@pytest.mark.parametrize(
    "function",
    [twice, scanned, lambda x, w: (x * w, dt.exp(w)), lambda x, w: w[1:], lambda x, w: w],
)
def test_plain_backward_runs_if_bits_or_graphs_would_differ(
    device: dt.Device, function: Callable[..., Any]
) -> None:
    captured, found = dt.jit(function), []
    for f in (captured, function):
        w = vector(seed=4).requires_grad_()
        for seed in range(3):
            made = f(vector(seed=seed), w)
            for y in made if isinstance(made, tuple) else (made,):
                y.sum().backward()
        found.append(bits(w.grad))
    assert found[0] == found[1]
    if function is twice:
        assert captured.captures == 0


def test_no_grad_mode_has_its_own_capture(device: dt.Device) -> None:
    captured, w = dt.jit(lambda x, w: (x * w).sum()), vector().requires_grad_()
    for _ in range(2):
        assert captured(vector(), w).requires_grad
        with dt.no_grad():
            assert not captured(vector(), w).requires_grad
    assert captured.captures == 2


# --- errors


def test_second_backward_needs_retain_graph(device: dt.Device) -> None:
    captured, w = dt.jit(lambda x, w: (dt.exp(x) * w).sum()), vector().requires_grad_()
    for _ in range(3):
        y = captured(vector(), w)
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(dt.GradientError, match="released"):
            y.backward()


def test_overwritten_saved_value_raises(device: dt.Device) -> None:
    captured = dt.jit(lambda x, w: (x * w).sum())
    for _ in range(3):
        x, w = vector(), vector().requires_grad_()
        y = captured(x, w)
        x += 1
        with pytest.raises(dt.GradientError, match="overwrote it in place"):
            y.backward()
    unread = dt.jit(lambda x, w: (x + w).sum())
    for _ in range(3):
        x, w = vector(), vector().requires_grad_()
        y = unread(x, w)
        x += 1
        y.backward()
        assert w.grad.tolist() == [1.0] * 8


def test_second_derivative_raises_with_a_remedy(device: dt.Device) -> None:
    captured, w = dt.jit(lambda w: (w**3).sum()), vector().requires_grad_()
    captured(w)
    with pytest.raises(dt.GradientError, match="__wrapped__"):
        dt.grad(captured(w), w, create_graph=True)

    def second(w: dt.Tensor) -> dt.Tensor:
        (g,) = dt.grad((w**3).sum(), [w], create_graph=True)
        return dt.grad(g.sum(), w)

    both = dt.jit(second)
    for _ in range(3):
        assert bits(both(w)) == bits(second(w))


def test_saved_values_are_freed_after_backward(device: dt.Device) -> None:
    captured, w = dt.jit(lambda x, w: (dt.exp(x) * w).sum()), vector(4096).requires_grad_()
    x, live = vector(4096), []
    for _ in range(5):
        captured(x, w).backward()
        w.grad = None
        gc.collect()
        live.append(dt.memory.stats(device).live_bytes)
    assert live[2] == live[3] == live[4]


def test_function_with_gradients_cannot_be_saved(tmp_path: Path) -> None:
    captured, w = dt.jit(lambda w: w * 2), vector().requires_grad_()
    captured(w)
    with pytest.raises(dt.CaptureError, match="gradients"):
        dt.save_function(captured, tmp_path / "f")


def test_explain_shows_backward_or_why_there_is_none(device: dt.Device) -> None:
    captured, w = dt.jit(lambda x, w: (x * w).sum()), vector().requires_grad_()
    captured(vector(), w)
    captured(vector(4), vector(4))
    assert len(dt.explain(captured).captures) == 3
    forward, back = dt.explain(captured, vector(), w).captures
    assert back.arguments == f"{forward.arguments}, the way back" and back.launches
    ((only),) = dt.explain(captured, vector(4), vector(4)).captures
    assert "way back" not in only.arguments
    assert "not been captured" in str(dt.explain(captured, vector(5), vector(5)))
    plain = dt.jit(twice)
    plain(vector(), w)
    assert "gradients flow" in str(dt.explain(plain, vector(), w))
