"""Dropped results free what their gradients saved at once, without a garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import pytest


class ExpOf(dt.autograd.Function):
    """exp, which saves its result."""

    @staticmethod
    def forward(ctx: Any, x: dt.Tensor) -> dt.Tensor:
        y = dt.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: dt.Tensor) -> dt.Tensor:
        result: dt.Tensor = g * ctx.saved_tensors[0]
        return result


@pytest.fixture
def without_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def attend(x: dt.Tensor) -> dt.Tensor:
    q = dt.reshape(x, (1, 1, *x.shape))
    return dt.nn.functional.scaled_dot_product_attention(q, q, q)


CALLS: dict[str, Callable[[dt.Tensor], Any]] = {
    "Function": ExpOf.apply,
    "softmax": lambda x: dt.softmax(x, axis=-1),
    "cholesky": lambda x: dt.linalg.cholesky(x @ x.mT + dt.eye(4)),
    "solve": lambda x: dt.linalg.solve(x @ x.mT + dt.eye(4), x),
    "svd": lambda x: dt.linalg.svd(x)[1],
    "eigh": lambda x: dt.linalg.eigh(x @ x.mT)[1],
    "attention": attend,
    "checkpoint": lambda x: dt.autograd.checkpoint(dt.tanh, x),
    **{
        kind: lambda x, layer=layer: layer(dt.reshape(x, (2, 2, -1)))[0]
        for kind in ("RNN", "GRU", "LSTM")
        for layer in [getattr(dt.nn, kind)(4, 4, device="reference")]
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_dropped_result_frees_what_it_saved(name: str, without_collections: None) -> None:
    with dt.device("reference"):
        x = (dt.arange(16, dtype=dt.float32) / 16).reshape((4, 4)).requires_grad_()
        sizes = []
        for _ in range(4):  # the first call fills caches
            y = CALLS[name](x)
            dt.evaluate(y)
            del y
            sizes.append(dt.memory.stats("reference").live_bytes)
    assert sizes[3] == sizes[1]


def test_saved_result_has_a_second_derivative() -> None:
    x = dt.asarray(0.5, dtype=dt.float64).requires_grad_()
    first = dt.grad(ExpOf.apply(x), x, create_graph=True)
    second = dt.grad(first, x, create_graph=True)
    assert dt.grad(second, x).item() == second.item() == first.item() == dt.exp(x).item()


def test_gradients_of_a_result_and_of_its_saved_copy_are_added() -> None:
    """exp(x)^2 reads the result, and its derivative reads the result that was saved."""
    x = dt.asarray(0.25, dtype=dt.float64).requires_grad_()
    y = ExpOf.apply(x)
    first = dt.grad(y * y, x, create_graph=True)  # 2 y times y: one is read, one was saved
    assert dt.grad(first, x).item() == pytest.approx(2 * first.item())
