"""Captured functions on the double of the CUDA driver, which does work late, in any legal order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

import dovetail as dt
from test_on_double import double as double
from test_on_double import gpu as gpu

VALUES = np.linspace(-1, 1, 40, dtype=np.float32)


@pytest.fixture
def device(double: None, gpu: Any) -> Iterator[dt.Device]:
    before = dt.default_device()
    yield dt.set_default_device(gpu.device)
    dt.set_default_device(before)


def step(x: dt.Tensor, w: dt.Tensor, rate: float) -> Any:
    x[1:-1] = 0.5 * (x[:-2] + x[2:])
    y = dt.fori_loop(0, 4, lambda i, y: dt.tanh(y * w) + i, x)
    z = dt.while_loop(lambda z: dt.max(z) > 0.5, lambda z: z * rate, y)
    return z, dt.cond(z.sum() > 0, lambda: y, lambda: -y), dt.take(y, dt.asarray([3, 0]))


def seen(results: Any, x: dt.Tensor) -> list[bytes]:
    return [t.numpy().tobytes() for t in (*results, x)]


def test_replays_have_the_bits_of_the_reference(device: dt.Device) -> None:
    captured = dt.jit(step)
    mine, w = dt.asarray(VALUES), dt.asarray(VALUES[::-1].copy())
    theirs, v = (dt.asarray(a.numpy(), device="reference") for a in (mine, w))
    for rate in (0.5, 0.25, 0.75):
        found = captured(mine, w, rate)
        before = dt.set_default_device("reference")
        wanted = step(theirs, v, rate)
        dt.set_default_device(before)
        dt.set_default_device(device)
        assert seen(found, mine) == seen(wanted, theirs)
    assert captured.captures == 1


def test_a_training_step(device: dt.Device) -> None:
    def train(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        with dt.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
        return loss

    captured, losses = dt.jit(train), []
    for f in (captured, train):
        w = dt.asarray(VALUES[:4]).requires_grad_()
        x = dt.asarray(VALUES.reshape(10, 4))
        losses.append([f(x, w).item() for _ in range(4)])
    assert losses[0] == losses[1]
    assert captured.captures == 1


def test_a_bad_index_is_an_error(device: dt.Device) -> None:
    captured = dt.jit(lambda x, i: x[i] * 2)
    x = dt.asarray(VALUES)
    assert captured(x, dt.asarray([1, 2])).tolist() == (VALUES[1:3] * 2).tolist()
    with pytest.raises(dt.IndexOutOfRange):
        captured(x, dt.asarray([1, 40])).tolist()
    assert captured(x, dt.asarray([1, 2])).tolist() == (VALUES[1:3] * 2).tolist()
