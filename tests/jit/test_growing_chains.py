"""Chains that grow from one evaluation to the next: a captured function evaluates equal links."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.capture.tracer import CHAIN_DEPTHS_MAX, CHAIN_ELEMENTS_MAX, CHAIN_LINK_OPS
from dovetail.engine.events import counters

LENGTH = 48


def prefix_products(a: Any, b: Any) -> Any:
    """Return for each i the sum of a[j] * b[i - j], added up in a chain of i additions."""
    out = dt.zeros_like(a)
    for i in range(1, a.shape[0]):
        total = dt.copy(b[i])
        for j in range(1, i):
            total = total + a[j] * b[i - j]
        out[i] = total
    return out


def operands(device: dt.Device, *shape: int) -> list[dt.Tensor]:
    rng = np.random.default_rng(1)
    return [dt.asarray(rng.normal(size=(LENGTH, *shape)), device=device) for _ in range(2)]


@pytest.mark.parametrize("shape", [(), (3,)])
def test_growing_chains_have_few_plans_and_equal_bits(
    device: dt.Device, shape: tuple[int, ...]
) -> None:
    a, b = operands(device, *shape)
    captured = dt.jit(prefix_products, fullgraph=True)
    before = counters.plans
    first = captured(a, b)
    # Whole chains of a few depths; links from a tensor and from a link; what is left of a chain.
    assert counters.plans - before <= 3 * CHAIN_LINK_OPS + CHAIN_DEPTHS_MAX + 4
    expected = prefix_products(a, b).numpy().tobytes()
    assert first.numpy().tobytes() == captured(a, b).numpy().tobytes() == expected
    other = operands(device, *shape)[::-1]
    assert captured(*other).numpy().tobytes() == prefix_products(*other).numpy().tobytes()


def test_gradients_flow_through_links(device: dt.Device) -> None:
    a, b = operands(device)

    def loss(a: Any, b: Any) -> Any:
        return dt.sum(prefix_products(a, b) ** 2)

    captured = dt.jit(dt.func.grad(loss))(a, b)
    assert captured.numpy().tobytes() == dt.func.grad(loss)(a, b).numpy().tobytes()


def test_chains_of_many_elements_are_evaluated_whole(device: dt.Device) -> None:
    def evaluations(elements: int) -> int:
        x, before = dt.ones(elements, device=device), counters.evaluations

        @dt.jit
        def grow(x: Any) -> list[Any]:
            results = []
            for depth in range(CHAIN_LINK_OPS, CHAIN_LINK_OPS + CHAIN_DEPTHS_MAX + 3):
                y = x
                for _ in range(depth):
                    y = y * x
                dt.evaluate(y)
                results.append(y)
            return results

        grow(x)
        return counters.evaluations - before

    assert evaluations(CHAIN_ELEMENTS_MAX) > evaluations(CHAIN_ELEMENTS_MAX + 1)
