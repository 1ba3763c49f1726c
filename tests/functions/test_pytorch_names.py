"""PyTorch's names in ported model code do what they do in PyTorch."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest

torch = pytest.importorskip("torch")

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)
CALLS = {
    "cat": lambda xp, x: xp.cat([x, x], dim=-1),
    "cat by position": lambda xp, x: xp.cat((x, x), 1),
    "chunk": lambda xp, x: xp.cat(x.chunk(3, dim=1)[:2], 1),
    "chunk of no multiple": lambda xp, x: x.chunk(2)[1],
    "masked_fill": lambda xp, x: x.masked_fill(x > 4, float("-inf")),
    "masked_fill, broadcast": lambda xp, x: x.masked_fill(x[0] > 1, -1),
    "masked_fill of integers": lambda xp, x: x.long().masked_fill(x > 4, 7),
    "masked_fill_": lambda xp, x: (x * 1).masked_fill_(x[:1] > 1, 2.5),
    "t": lambda xp, x: x.t(),
    "t of a vector": lambda xp, x: x[0].t(),
    "type_as": lambda xp, x: x.type_as(x.long()),
    "expand_as": lambda xp, x: x[:, :1].expand_as(x),
    "reshape_as": lambda xp, x: x.reshape_as(x.t()),
    "double": lambda xp, x: x.double() / 3,
    "half": lambda xp, x: x.half(),
    "int": lambda xp, x: (x / 2).int(),
}


@pytest.mark.parametrize("name", CALLS)
def test_ported_calls_equal_pytorch(name: str) -> None:
    ours, theirs = dt.asarray(VALUES), torch.from_numpy(VALUES.copy())
    found, want = CALLS[name](dt, ours).numpy(), CALLS[name](torch, theirs).numpy()
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


def test_conversion_to_the_same_dtype_returns_the_tensor_itself() -> None:
    x = dt.asarray(VALUES)
    assert x.float() is x and x.type_as(x) is x and x.double() is not x


def test_gradients_flow_and_views_share_memory() -> None:
    x = dt.asarray(VALUES).requires_grad_()
    x.masked_fill(x > 4, 0.0).chunk(3)[1].t().double().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.0] * 4]
    y = dt.zeros((4, 2))
    y.chunk(2)[1].masked_fill_(dt.asarray([True, False]), 3.0)
    assert y.tolist() == [[0, 0], [0, 0], [3, 0], [3, 0]]


def test_wrong_arguments_are_named() -> None:
    x = dt.asarray(VALUES)
    with pytest.raises(dt.ArgumentError, match="chunk: chunks must be at least 1, got 0"):
        x.chunk(0)
    with pytest.raises(IndexError, match="chunk"):
        x.chunk(2, dim=2)
    with pytest.raises(
        dt.ArgumentError, match=r"t: expected at most 2 dimensions, got 3; use x\.mT"
    ):
        x[None].t()
    with pytest.raises(dt.DTypeError, match="bool"):
        x.masked_fill(x, 0)
    with pytest.raises(dt.ShapeError):
        x.expand_as(dt.ones(3))
