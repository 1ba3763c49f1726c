"""Gradient clipping against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn.clipping import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)

SHAPES = ((3, 2), (4,), (3, 2), ())


def both() -> tuple[list[dt.Tensor], list[Any]]:
    torch = pytest.importorskip("torch")
    draw, mine, others = np.random.default_rng(0), [], []
    for shape in SHAPES:
        g = draw.normal(size=shape) * 3
        mine.append(dt.zeros(shape, dtype=dt.float64).requires_grad_())
        others.append(torch.zeros(shape, dtype=torch.float64, requires_grad=True))
        mine[-1].grad, others[-1].grad = dt.asarray(g), torch.tensor(g)
    return mine, others


def equal(mine: list[dt.Tensor], others: list[Any]) -> None:
    for a, b in zip(mine, others, strict=True):
        assert a.grad is not None
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), 1e-12)


@pytest.mark.parametrize("power", [2.0, 1.0, 3.0, math.inf, 0.5])
@pytest.mark.parametrize("most", [0.5, 1e3])
def test_clip_grad_norm_equals_pytorch(power: float, most: float, device: dt.Device) -> None:
    torch = pytest.importorskip("torch")
    mine, others = both()
    found = clip_grad_norm_(mine, most, power)
    wanted = torch.nn.utils.clip_grad_norm_(others, most, power)
    assert float(found) == pytest.approx(float(wanted), rel=1e-12)
    equal(mine, others)


def test_clip_grad_value_equals_pytorch(device: dt.Device) -> None:
    torch = pytest.importorskip("torch")
    mine, others = both()
    clip_grad_value_(mine, 0.7)
    torch.nn.utils.clip_grad_value_(others, 0.7)
    equal(mine, others)


def test_single_tensor_and_missing_gradients(device: dt.Device) -> None:
    w = dt.zeros(2).requires_grad_()
    assert float(clip_grad_norm_(w, 1.0)) == 0
    w.grad = dt.asarray([3.0, 4.0])
    assert float(get_total_norm(w.grad)) == 5
    clip_grads_with_norm_(w, 10.0, dt.asarray(5.0))
    assert w.grad.tolist() == [3, 4]


def test_norm_of_sparse_gradients_counts_their_values(device: dt.Device) -> None:
    w = dt.zeros((4, 1)).requires_grad_()
    w.grad = dt.sparse_coo_tensor(dt.asarray([[1, 3]]), dt.asarray([[3.0], [4.0]]), (4, 1))
    assert float(clip_grad_norm_([w], 1.0)) == 5
    assert w.grad.to_dense()[:, 0].tolist() == pytest.approx([0, 0.6, 0, 0.8], rel=1e-5)


def test_non_finite_gradients_raise_on_request(device: dt.Device) -> None:
    w = dt.zeros(2).requires_grad_()
    w.grad = dt.asarray([math.nan, 1.0])
    with pytest.raises(dt.GradientError, match="the gradients must be finite, got nan"):
        clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    assert math.isnan(float(clip_grad_norm_([w], 1.0)))


def test_invalid_arguments_raise(device: dt.Device) -> None:
    w = dt.zeros(2).requires_grad_()
    with pytest.raises(dt.ArgumentError, match="max_norm must not be negative"):
        clip_grad_norm_([w], -1)
    with pytest.raises(dt.ArgumentError, match="clip_value must not be negative"):
        clip_grad_value_([w], -1)
    with pytest.raises(dt.ArgumentTypeError, match="max_norm"):
        clip_grad_norm_([w], "much")  # type: ignore[arg-type]
    with pytest.raises(dt.DTypeError, match="expected tensors, got int"):
        clip_grad_norm_([3], 1.0)  # type: ignore[list-item]
