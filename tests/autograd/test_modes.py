"""Inference mode, decorators, anomaly detection, saved-tensor hooks, and checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest


def leaf(*values: float) -> dt.Tensor:
    return dt.asarray([*values], dtype=dt.float64).requires_grad_()


# --- decorators


@pytest.mark.parametrize("brackets", [False, True])
@pytest.mark.parametrize("mode", [dt.no_grad, dt.inference_mode])
def test_grad_modes_decorate_with_and_without_parentheses(
    mode: Any, brackets: bool, device: dt.Device
) -> None:
    x = leaf(1.0, 2.0)

    @(mode() if brackets else mode)
    def twice(x: dt.Tensor, by: float = 2.0) -> dt.Tensor:
        """Multiply."""
        return x * by

    assert not twice(x).requires_grad and not twice(x, by=3.0).requires_grad
    assert (x * 2).requires_grad and (twice.__name__, twice.__doc__) == ("twice", "Multiply.")
    with dt.no_grad():
        assert (dt.enable_grad(lambda: x * 2)().requires_grad) is True
    with pytest.raises(dt.ArgumentTypeError):
        mode("on")


def test_grad_mode_of_a_generator_is_suspended_at_yield(device: dt.Device) -> None:
    x, seen = leaf(1.0), []

    @dt.no_grad
    def steps() -> Iterator[Any]:
        try:
            while True:
                try:
                    seen.append((yield (x * 2).requires_grad))
                except KeyError:
                    seen.append(dt.is_grad_enabled())
        finally:
            seen.append(dt.is_grad_enabled())

    made = steps()
    assert next(made) is False and dt.is_grad_enabled()
    assert made.send("sent") is False and made.throw(KeyError) is False and dt.is_grad_enabled()
    made.close()
    assert seen == ["sent", False, False] and dt.is_grad_enabled()

    @dt.no_grad()
    def ending() -> Any:
        yield 1
        return 5

    with pytest.raises(StopIteration) as stopped:
        made = ending()
        next(made), next(made)
    assert stopped.value.value == 5


def test_grad_mode_decorates_a_coroutine(device: dt.Device) -> None:
    @dt.no_grad
    async def asked() -> bool:
        await asyncio.sleep(0)
        return dt.is_grad_enabled()

    async def both() -> tuple[bool, bool]:
        return await asked(), dt.is_grad_enabled()

    assert asyncio.run(both()) == (False, True)


# --- inference mode


def test_inference_mode_records_nothing(device: dt.Device) -> None:
    x = leaf(1.0, 2.0)
    with dt.inference_mode():
        assert dt.is_inference_mode_enabled() and not dt.is_grad_enabled()
        with dt.enable_grad(), dt.set_grad_enabled(True):
            assert not (x * 2).requires_grad and not dt.is_grad_enabled()
        with pytest.raises(dt.GradientError, match="inference_mode"):
            (x * 2).requires_grad_()
        y = x * 2
        with dt.inference_mode(False):
            assert dt.is_inference_mode_enabled()
    assert not dt.is_inference_mode_enabled() and (x * y).requires_grad
    with dt.inference_mode(False):
        assert (x * 2).requires_grad


# --- anomaly detection


def names_line_of(error: pytest.ExceptionInfo[Any], text: str) -> bool:
    """Return True if the message names the line of this file that contains a text."""
    lines = Path(__file__).read_text().splitlines()
    return any(f"test_modes.py:{n}" in str(error.value)
               for n, line in enumerate(lines, 1) if f"# {text}" in line)  # fmt: skip


def test_detect_anomaly_names_the_line_of_the_first_nan(device: dt.Device) -> None:
    x = dt.asarray([1.0, -1.0])
    with dt.autograd.detect_anomaly():
        y = x * 2 + 1
        with pytest.raises(dt.AnomalyError, match="log: produced the first NaN") as error:
            dt.log(y) + 1  # forward
        assert names_line_of(error, "forward")
        bad = dt.asarray([1.0, float("nan")])
        assert np.isnan((bad * 2 + x).numpy()[1])  # it was there before
        with pytest.raises(dt.AnomalyError, match="subtract"):
            dt.asarray(float("inf")) - float("inf")
        with pytest.raises(dt.AnomalyError, match="divide"):
            x.copy().zero_().div_(0.0)
        assert (x * float("nan")).isnan().all()
    dt.log(x).tolist()  # no error outside


def test_detect_anomaly_names_the_line_whose_gradient_is_nan(device: dt.Device) -> None:
    x = leaf(0.0, 1.0)
    with dt.autograd.detect_anomaly():
        y = dt.hypot(x, x)  # recorded
        z = (y * 3).sum()
        with pytest.raises(dt.AnomalyError, match="the gradient of hypot, which was rec") as error:
            z.backward()  # backward
        assert names_line_of(error, "recorded") and names_line_of(error, "back")
        assert x.grad is None
        (dt.exp(x) * x).sum().backward()
        assert x.grad is not None
    y = dt.hypot(x, x)
    with dt.autograd.detect_anomaly(), pytest.raises(dt.AnomalyError, match="outside of detect"):
        y.sum().backward()


@dt.autograd.detect_anomaly()
def checked_sqrt(x: dt.Tensor) -> dt.Tensor:
    return dt.sqrt(x)


def test_detect_anomaly_covers_decorators_captures_and_several_outputs(device: dt.Device) -> None:
    x = dt.asarray([4.0, -1.0])
    with pytest.raises(dt.AnomalyError, match="sqrt"):
        checked_sqrt(x)
    with dt.autograd.detect_anomaly():
        with pytest.raises(dt.AnomalyError, match="sqrt"):
            dt.jit(lambda v: dt.sqrt(v) * 2)(x)
        with pytest.raises(dt.AnomalyError, match=r"sqrt.*test_modes.py"):
            dt.vmap(dt.sqrt)(x)


# --- hooks of saved tensors


def test_saved_tensors_hooks_pack_and_unpack_values(device: dt.Device) -> None:
    x, packed, unpacked = leaf(1.0, 2.0), [], []

    def pack(t: dt.Tensor) -> Any:
        assert not t.requires_grad
        packed.append(t.tolist())
        return t.numpy().copy()

    def unpack(a: Any) -> dt.Tensor:
        unpacked.append(a.tolist())
        return dt.asarray(a)

    with dt.autograd.saved_tensors_hooks(pack, unpack):
        y = (dt.exp(x) * x).sum()
    assert len(packed) >= 2 and unpacked == []
    g = dt.grad(y, x, retain_graph=True)
    assert np.allclose(g.numpy(), np.exp([1, 2]) * np.asarray([2, 3])) and unpacked
    before = len(packed)
    (x * x).sum().backward()
    assert len(packed) == before
    second = dt.grad(dt.grad(y, x, create_graph=True).sum(), x)
    assert np.allclose(second.numpy(), np.exp([1, 2]) * np.asarray([3, 4]))


def test_saved_tensors_hooks_may_pack_a_smaller_dtype(device: dt.Device) -> None:
    x = dt.asarray([1.1, 2.3]).requires_grad_()
    with dt.autograd.saved_tensors_hooks(lambda t: t.to(dt.float16), lambda t: t.to(dt.float32)):
        y = (x * x).sum()
    rounded = x.detach().to(dt.float16).to(dt.float32)
    assert dt.grad(y, x).tolist() == (rounded * 2).tolist()


def test_saved_tensors_hooks_apply_to_custom_functions(device: dt.Device) -> None:
    class Cube(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dt.Tensor) -> dt.Tensor:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: dt.Tensor) -> dt.Tensor:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    x, seen = leaf(2.0), []
    with dt.autograd.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        y = Cube.apply(x)
    assert seen and dt.grad(y.sum(), x).tolist() == [12.0]


def test_saved_tensors_hook_that_returns_a_wrong_value_raises(device: dt.Device) -> None:
    x = leaf(1.0, 2.0)
    for wrong in (lambda t: t[:1], lambda t: 3, lambda t: t.to(dt.float32)):
        with dt.autograd.saved_tensors_hooks(lambda t: t, wrong):
            y = (x * x).sum()
        with pytest.raises(dt.GradientError, match="saved_tensors_hooks: unpack must return"):
            y.backward()
        assert x.grad is None
    with pytest.raises(dt.ArgumentTypeError, match="pack"):
        dt.autograd.saved_tensors_hooks(3, lambda t: t)


def test_saved_tensors_hooks_run_at_each_call_of_a_captured_function(device: dt.Device) -> None:
    x, seen = leaf(1.0, 2.0), []
    f = dt.jit(lambda v: (v * v).sum())
    f(x), f(x)
    for n in (1, 2):
        with dt.autograd.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
            f(x).backward()
        assert len(seen) >= n


# --- checkpoint


def test_checkpoint_allows_second_derivatives(device: dt.Device) -> None:
    x = leaf(0.5, -1.0)
    f = lambda v: dt.exp(v) * v + dt.sin(v)  # noqa: E731
    found = []
    for g in (f, lambda v: dt.autograd.checkpoint(f, v)):
        first = dt.grad((g(x) ** 2).sum(), x, create_graph=True)
        second = dt.grad((first**2).sum(), x, create_graph=True)
        found.append([t.numpy() for t in (first, second, dt.grad(second.sum(), x))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_checkpoint_replays_the_same_random_numbers(device: dt.Device) -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = dt.autograd.checkpoint(lambda v: v * dt.random.normal(3, dtype=dt.float64), x)
    state = dt.random.get_state()
    g = dt.grad(y.sum(), x)
    assert np.allclose((g * x).detach().numpy(), y.detach().numpy())
    assert dt.random.get_state() == state
    with pytest.raises(dt.CaptureError, match="checkpoint"):
        dt.jit(lambda v: dt.autograd.checkpoint(lambda q: q * dt.random.uniform(3), v))(
            x.detach().to(dt.float32).requires_grad_()
        )


@pytest.mark.parametrize("captured", [False, True])
def test_checkpoint_reaches_tensors_of_a_closure(device: dt.Device, captured: bool) -> None:
    """No argument requires a gradient, as where a network's first layer gets the data."""
    w, b = dt.asarray([2.0, 3.0]).requires_grad_(), dt.ones(2).requires_grad_()
    x = dt.asarray([5.0, 7.0])

    def step(x: dt.Tensor) -> dt.Tensor:
        w.grad = b.grad = None
        y = dt.autograd.checkpoint(lambda x: (dt.exp(w) * x, x + 1), x)
        assert y[0].requires_grad and not y[1].requires_grad
        loss = (y[0] * b).sum()
        loss.backward()
        return loss.detach()

    run = dt.jit(step) if captured else step
    for _ in range(2):
        run(x)
        assert w.grad is not None and b.grad is not None
        np.testing.assert_allclose(w.grad.numpy(), np.exp([2.0, 3.0]) * [5.0, 7.0], rtol=1e-6)
        np.testing.assert_allclose(b.grad.numpy(), np.exp([2.0, 3.0]) * [5.0, 7.0], rtol=1e-6)
    assert not dt.autograd.checkpoint(lambda x: x * 2, x).requires_grad
    with dt.no_grad():
        assert not dt.autograd.checkpoint(lambda x: x * w, x).requires_grad
