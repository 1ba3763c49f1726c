"""Recomputed values in a gradient keep their bits if their inputs are written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import pytest

VALUES: dict[str, Callable[[dt.Tensor], dt.Tensor]] = {
    "a cast": lambda w: w.astype(dt.int32).astype(dt.float32),
    "two casts": lambda w: w.astype(dt.float64).astype(dt.float32),
    "a negated sum": lambda w: -(w + 1),
    "a view of a product": lambda w: (w * 3).reshape(2, 2).T.reshape(4),
    "a product with a row": lambda w: (w[:1] * 2 + w[1:2]) * dt.ones(4),
}


def write_rows(w: dt.Tensor, p: dt.Tensor) -> None:
    w[2:].add_(p[2:])


def write_all(w: dt.Tensor, p: dt.Tensor) -> None:
    w.add_(p)


def assign(w: dt.Tensor, p: dt.Tensor) -> None:
    w[...] = p


def write_halves(w: dt.Tensor, p: dt.Tensor) -> None:
    w[:2] = p[:2]
    w[2:] = p[2:]


@pytest.mark.parametrize("write", [write_rows, write_all, assign, write_halves])
@pytest.mark.parametrize("value", VALUES)
def test_gradient_uses_the_value_from_before_a_write(
    value: str, write: Callable[[Any, Any], None], device: dt.Device
) -> None:
    def total(x: dt.Tensor) -> dt.Tensor:
        w = dt.asarray([0.75, 1.5, -0.5, 2.0]).copy()
        saved = VALUES[value](w)
        product = x[0] * x[1] * saved
        write(w, product)
        return (w * w).sum() + (saved * x).sum()

    x = dt.asarray([1.5, 0.5, 0.25, 1.0])
    with dt.eager():
        want = dt.func.grad(total)(x).tolist()
    assert dt.func.grad(total)(x).tolist() == want
    assert dt.jit(dt.func.grad(total))(x).tolist() == want


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("view", [lambda t: t, lambda t: t[:], lambda t: t[::-1]])
def test_value_that_gradients_compute_again_outlives_a_write_to_its_operand(
    order: int, view: Callable[[dt.Tensor], dt.Tensor], device: dt.Device
) -> None:
    """Both a node and its rematerialised form read the pending `t` in the graph of the write."""
    w, q = dt.asarray([1.5, 1.75, -1.0, -0.25]), dt.zeros(4)
    t = dt.maximum(w, q - 9)
    before = w.tolist()

    def f(v: dt.Tensor) -> dt.Tensor:
        return v * t * v * v

    for k in range(order):
        f = dt.func.grad(lambda v, f=f, k=k: (f(v) * (v if k else 1)).sum())
    w[:].copy_(view(f(t) + 0))
    assert t.tolist() == before
