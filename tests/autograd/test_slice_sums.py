"""Gradients of slices of one tensor: sums of padded parts, which are joined where they can be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine import evaluate as run

SPECIAL = np.array([-0.0, 0.0, np.nan, -np.inf, 1.5, -2.5, 3e-42, 7.0], np.float32)


def gradient(
    spans: list[tuple[int, int]], whole_at: int | None = None, axis: int = 1, dtype: Any = None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the gradient of slices of a tensor, and the sum of the padded parts, latest first.

    `whole_at`: the position among the slices of one reader of all elements.
    """
    dtype = dtype or dt.float32
    x = dt.zeros((8, 8), dtype=dtype).requires_grad_()
    y = x * 1.0
    weights, parts, loss = [], [], dt.zeros((), dtype=dtype)
    views = [(slice(*s),) if axis == 0 else (slice(None), slice(*s)) for s in spans]
    if whole_at is not None:
        views.insert(whole_at, (slice(None),))
    for i, view in enumerate(views):
        want = np.zeros((8, 8), np.float32)
        values = np.roll(np.tile(SPECIAL, (8, 1)), i, axis=1)[view]
        want[view] = values
        weights.append(dt.asarray(np.ascontiguousarray(values)).astype(dtype))
        parts.append(want)
    taken = [y[view] for view in views]
    for part, weight in zip(taken, weights, strict=True):
        loss = loss + (part * weight).sum()
    (g,) = dt.grad(loss, [y])
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = total + part
    return g.astype(dt.float32).numpy(), total


SPANS = {
    "split": [(0, 3), (3, 6), (6, 8)],
    "split in another order": [(6, 8), (0, 3), (3, 6)],
    "one": [(2, 5)],
    "all": [(0, 8)],
    "a gap": [(0, 3), (5, 8)],
    "overlap": [(0, 5), (3, 8)],
    "twice": [(0, 4), (0, 4), (4, 8)],
    "columns": list(pairwise(range(9))),
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", SPANS)
def test_gradient_of_slices_has_the_bits_of_the_sum_of_padded_parts(name: str, axis: int) -> None:
    with np.errstate(invalid="ignore"):
        got, want = gradient(SPANS[name], axis=axis)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("at", [0, 1, 3])
def test_gradient_of_slices_and_of_all_elements_is_summed_in_order(at: int) -> None:
    with np.errstate(invalid="ignore"):
        got, want = gradient(SPANS["split"], whole_at=at)
    np.testing.assert_array_equal(got, want)


def test_gradient_of_split_in_a_half_dtype() -> None:
    with np.errstate(invalid="ignore"):
        got, want = gradient(SPANS["split"], dtype=dt.float16)
    np.testing.assert_array_equal(got, want.astype(np.float16).astype(np.float32))


def test_gradient_of_split_is_one_concatenation() -> None:
    x = dt.ones((4, 6)).requires_grad_()
    y = x * 1.0
    q, k, v = dt.split(y, 2, axis=1)
    loss = (q * 2.0).sum() + (k * 3.0).sum() + (v * 4.0).sum()
    dt.evaluate(loss)
    with dt.eager():
        before = run.counters.launches
        (g,) = dt.grad(loss, [y])
        dt.evaluate(g)
    assert g[0].tolist() == [2.0, 2.0, 3.0, 3.0, 4.0, 4.0]
    assert run.counters.launches - before <= 8  # 3 x (expand, product), join, zero


def test_second_derivative_through_split() -> None:
    x = dt.arange(1.0, 7.0).requires_grad_()
    a, b = dt.split(x * x, 3)
    (first,) = dt.grad((a * b).sum(), [x], create_graph=True)
    (second,) = dt.grad(first.sum(), [x])
    v = np.arange(1.0, 7.0)
    low, high = v[:3], v[3:]
    np.testing.assert_allclose(
        first.numpy(), np.concatenate([2 * low * high**2, 2 * high * low**2])
    )
    want = [2 * high**2 + 4 * low * high, 2 * low**2 + 4 * low * high]
    np.testing.assert_allclose(second.numpy(), np.concatenate(want), rtol=1e-6)


def test_vmap_of_a_gradient_through_split() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        a, b = dt.split(x, 2)
        return (a * a * b).sum()

    x = dt.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    got = dt.func.vmap(dt.func.grad(f))(x)
    a, b = x[:, :2].numpy(), x[:, 2:].numpy()
    np.testing.assert_allclose(got.numpy(), np.concatenate([2 * a * b, a * a], axis=1))
