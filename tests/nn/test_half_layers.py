"""Layers of float16 and bfloat16 round their result once, and no intermediate."""

from __future__ import annotations

import copy
from typing import Any

import dovetail as dt
import numpy as np
import pytest

pytestmark = pytest.mark.values

F = dt.nn.functional
HALVES = (dt.float16, dt.bfloat16)
LAYERS = {"LSTM": {}, "LSTM of projections": {"proj_size": 3}, "GRU": {}, "RNN": {}}


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_recurrent_layer_of_halves_is_the_rounded_float32_layer(name: str, half: dt.DType) -> None:
    dt.random.manual_seed(0)
    options: Any = LAYERS[name]
    short = getattr(dt.nn, name.split()[0])(4, 6, **options).to(half)
    long = copy.deepcopy(short).to(dt.float32)
    values = np.random.default_rng(0).normal(size=(12, 3, 4)) * 3
    x = dt.asarray(values, dtype=half).requires_grad_()
    y = x.detach().astype(dt.float32).requires_grad_()
    found, exact = short(x)[0], long(y)[0]
    assert found.dtype is half
    assert found.tolist() == exact.astype(half).tolist()
    found.sum().backward()
    exact.sum().backward()
    pairs = [(x, y), *zip(short.parameters(), long.parameters(), strict=True)]
    assert all(a.grad.tolist() == b.grad.astype(half).tolist() for a, b in pairs)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_attention_with_half_weights_is_the_rounded_float32_attention(
    half: dt.DType, average: bool
) -> None:
    x = dt.asarray(np.random.default_rng(0).normal(size=(9, 2, 8)) * 3, dtype=half)

    def attend(x: dt.Tensor) -> Any:
        """Return what attention gives between products that are exact."""
        one = dt.eye(8, dtype=x.dtype)
        return F.multi_head_attention_forward(
            x, x, x, 8, 2, dt.concat([one, one, one]), None, None, None, False, 0.0, one, None,
            average_attn_weights=average,
        )  # fmt: skip

    for found, exact in zip(attend(x), attend(x.astype(dt.float32)), strict=True):
        assert found.dtype is half
        assert found.tolist() == exact.astype(half).tolist()


SHAPES = {
    "conv1d": ((2, 3, 9), (4, 3, 3)), "conv2d": ((2, 3, 6, 6), (4, 3, 3, 3)),
    "conv3d": ((1, 2, 4, 4, 4), (4, 2, 2, 2, 2)), "conv_transpose1d": ((2, 3, 9), (3, 4, 3)),
    "conv_transpose2d": ((2, 3, 6, 6), (3, 4, 3, 3)),
    "conv_transpose3d": ((1, 2, 3, 3, 3), (2, 4, 2, 2, 2)),
}  # fmt: skip


def _with_bias(name: str, dtype: dt.DType, half: dt.DType) -> dt.Tensor:
    """Return the result of a function whose bias cancels most of the product, of values of
    `half`.
    """
    rng = np.random.default_rng(0)
    function = getattr(F, name)
    if name == "bilinear":
        operands = [rng.uniform(4, 4.5, s) for s in ((3, 5), (3, 2), (4, 5, 2))]
    else:
        operands = [rng.uniform(4, 4.5, s) for s in SHAPES[name]]
    exact = [dt.asarray(a, dtype=half).astype(dtype) for a in operands]
    bias = dt.full(4, -150.0, dtype=half).astype(dtype)
    found: dt.Tensor = function(*exact, bias)
    return found


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("name", [*SHAPES, "bilinear"])
def test_product_of_halves_with_bias_rounds_once(name: str, half: dt.DType) -> None:
    found = _with_bias(name, half, half)
    assert found.dtype is half
    assert found.tolist() == _with_bias(name, dt.float32, half).astype(half).tolist()


def test_frequencies_of_embeddings_exceed_the_range_of_float16() -> None:
    table = dt.ones((2, 1), dtype=dt.float16).requires_grad_()
    at = dt.zeros(70_000, dtype=dt.int64)
    rows = dt.nn.functional.embedding(at, table, scale_grad_by_freq=True)
    rows.astype(dt.float32).sum().backward()
    assert abs(table.grad.tolist()[0][0] - 1.0) < 0.01
