"""Convolution ops against their definition, term by term."""

from __future__ import annotations

import itertools
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.products.convolutions import convolved, transposed, weight_gradient
from dovetail.ops.convolution import Geometry

Array = np.ndarray[Any, Any]

# Of x and w, and the spacing of taps; y has as many positions as fit.
CASES = (
    ((2, 3, 5, 40), (9, 3, 3, 2), Geometry((1, 1), (1, 1), (1, 1), 1)),
    ((2, 4, 6, 5), (8, 2, 2, 3), Geometry((2, 3), (0, 2), (3, 2), 2)),
    ((3, 5, 17), (5, 1, 4), Geometry((3,), (2,), (2,), 5)),
    ((2, 2, 3, 4, 5), (3, 2, 2, 1, 3), Geometry((1, 2, 3), (1, 0, 1), (1, 1, 1), 1)),
)


def numbers(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("f8")


def terms(x: Array, w: Array, g: Geometry, counts: tuple[int, ...]) -> Any:
    """Return for every product of the sum its position in y, in x and in w."""
    n, o, c = len(x), *w.shape[:2]
    for p, i in itertools.product(np.ndindex(*counts), np.ndindex(*w.shape[2:])):
        at = tuple(
            a * s + b * d - q
            for a, b, s, d, q in zip(p, i, g.stride, g.dilation, g.low, strict=True)
        )
        if all(0 <= a < m for a, m in zip(at, x.shape[2:], strict=True)):
            for b, f, k in itertools.product(range(n), range(o), range(c)):
                group = f // (o // g.groups)
                yield (b, f, *p), (b, group * c + k, *at), (f, k, *i)


@pytest.mark.parametrize("device", ("reference", "cpu"))
@pytest.mark.parametrize(("left", "right", "g"), CASES)
def test_convolution_equals_the_sum_of_its_products(
    device: str, left: Any, right: Any, g: Geometry
) -> None:
    steps = zip(left[2:], right[2:], g.stride, g.low, g.dilation, strict=True)
    counts = tuple((n + 2 * q - d * (k - 1) - 1) // s + 1 for n, k, s, q, d in steps)
    x, w, y = numbers(left, 1), numbers(right, 2), numbers((left[0], right[0], *counts), 3)
    to_y, to_x, to_w = np.zeros(y.shape), np.zeros(x.shape), np.zeros(w.shape)
    for j, i, k in terms(x, w, g, counts):
        to_y[j] += x[i] * w[k]
        to_x[i] += y[j] * w[k]
        to_w[k] += x[i] * y[j]
    a, b, c = (dt.asarray(v, device=device) for v in (x, w, y))
    assert (convolved(a, b, None, counts, g).numpy() == to_y).all()
    assert (transposed(c, b, left[2:], g).numpy() == to_x).all()
    assert (weight_gradient(a, c, right[2:], g).numpy() == to_w).all()
    bias = dt.asarray(numbers(right[:1], 4), device=device)
    column = bias.numpy().reshape((-1, *(1,) * len(counts)))
    assert (convolved(a, b, bias, counts, g).numpy() == to_y + column).all()


@pytest.mark.parametrize("device", ("reference", "cpu"))
def test_convolution_adds_channel_by_channel_and_tap_by_tap(device: str) -> None:
    """Each term is one fused multiply-add: the first product is lost next to the larger one."""
    x = dt.asarray([[[2.0**24, 1.0], [1.0, 1.0]]], dtype=dt.float32, device=device)
    w = dt.ones((1, 2, 2), dtype=dt.float32, device=device)
    g = Geometry((1,), (0,), (1,), 1)
    assert convolved(x, w, None, (1,), g).item() == 2.0**24
    turned = dt.flip(dt.flip(x, axis=1), axis=2)
    assert convolved(turned, w, None, (1,), g).item() == 2.0**24 + 4


@pytest.mark.parametrize("device", ("reference", "cpu"))
def test_convolution_of_empty_batches(device: str) -> None:
    g = Geometry((1, 1), (1, 1), (1, 1), 1)
    w = dt.ones((4, 3, 3, 3), device=device)
    none = dt.ones((0, 3, 5, 5), device=device)
    assert convolved(none, w, None, (5, 5), g).numpy().shape == (0, 4, 5, 5)
    assert transposed(dt.ones((0, 4, 5, 5), device=device), w, (5, 5), g).numpy().size == 0
    zeros = weight_gradient(none, dt.ones((0, 4, 5, 5), device=device), (3, 3), g)
    assert (zeros.numpy() == np.zeros((4, 3, 3, 3))).all()


@pytest.mark.parametrize("device", ("reference", "cpu"))
def test_convolution_of_empty_axes_and_channels(device: str) -> None:
    g = Geometry((1,), (1,), (1,), 1)
    w, none = dt.ones((4, 3, 2), device=device), dt.ones((2, 3, 0), device=device)
    y = convolved(none, w, None, (1,), g)
    assert (y.numpy() == np.zeros((2, 4, 1))).all()
    assert transposed(y, w, (0,), g).numpy().shape == (2, 3, 0)
    assert (weight_gradient(none, y, (2,), g).numpy() == np.zeros((4, 3, 2))).all()
    x, empty = dt.ones((2, 0, 5), device=device), dt.ones((4, 0, 2), device=device)
    assert (convolved(x, empty, None, (6,), g).numpy() == np.zeros((2, 4, 6))).all()
    assert transposed(dt.ones((2, 4, 6), device=device), empty, (5,), g).numpy().shape == (2, 0, 5)
