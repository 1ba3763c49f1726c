"""Closure tensors and arrays of which a function uses only the shape, dtype or strides."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np
import pytest

State = Any


def state(n: int) -> State:
    """Return an object that leads to vectors of `n` elements."""
    return SimpleNamespace(
        tensor=dt.arange(float(n)), by_name={"a": dt.ones(n)}, in_list=[dt.ones(n)],
        in_tuple=(dt.ones(n),), inner=SimpleNamespace(by_name={"a": dt.ones(n)}),
        deep={"x": {"a": dt.ones(n)}}, array=np.ones(n), arrays={"a": np.ones(n)},
        sparse=dt.eye(n).to_sparse(),
    )  # fmt: skip


# Properties of the state `s.now` that a function of `x` uses.
ASKED: dict[str, Callable[[State, dt.Tensor], Any]] = {
    "attribute": lambda s, x: x * s.now.tensor.shape[0],
    "len": lambda s, x: x * len(s.now.tensor),
    "dict": lambda s, x: x * s.now.by_name["a"].shape[0],
    "list": lambda s, x: x * s.now.in_list[0].shape[0],
    "tuple": lambda s, x: x * s.now.in_tuple[0].size,
    "dict of an attribute": lambda s, x: x * s.now.inner.by_name["a"].shape[0],
    "dict in a dict": lambda s, x: x * s.now.deep["x"]["a"].shape[0],
    "iteration": lambda s, x: x * sum(t.shape[0] for t in s.now.by_name.values()),
    "array": lambda s, x: x * s.now.array.shape[0],
    "array in a dict": lambda s, x: x * s.now.arrays["a"].size,
    "sparse": lambda s, x: x * s.now.sparse.shape[0],
    "zeros_like": lambda s, x: x.sum() + dt.zeros_like(s.now.tensor),
    "gradient": lambda s, x: x.sum() + dt.func.grad(lambda v: (v + v).sum())(s.now.tensor),
    "jvp": lambda s, x: dt.func.jvp(lambda v: v * x.sum(), (s.now.tensor,), (dt.ones_like(
        s.now.tensor),))[1],
    "key": lambda s, x: x[: s.now.tensor.shape[0]] * 1,
}  # fmt: skip
WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jit": dt.jit,
    "jit of vmap": lambda f: dt.jit(dt.vmap(f)),
    "jit of grad": lambda f: dt.jit(dt.func.grad(lambda x: f(x).sum())),
    "jit of scan": lambda f: dt.jit(lambda x: dt.scan(lambda c, p: (c, f(p)), x.sum(), x)[1]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asked", ASKED)
def test_new_shape_causes_a_new_capture(asked: str, way: str, device: dt.Device) -> None:
    s = SimpleNamespace(now=state(4))
    f = WAYS[way](lambda x: ASKED[asked](s, x))
    x = dt.ones((2, 5)) if way in ("jit of vmap", "jit of scan") else dt.ones(5)
    for n in (4, 3, 4):
        s.now = state(n)
        want = WAYS[way](lambda x: ASKED[asked](s, x))(x).tolist()
        for _ in range(2):
            assert f(x).tolist() == want


@pytest.mark.parametrize(
    ("asked", "after"),
    [
        (lambda t: t.requires_grad, lambda: dt.arange(4.0).requires_grad_()),
        (lambda t: t.dtype is dt.float32, lambda: dt.arange(4.0).astype(dt.float64)),
        (lambda t: t.is_contiguous(), lambda: dt.arange(8.0)[::2]),
    ],
)
def test_new_attribute_value_causes_a_new_capture(
    asked: Callable[[dt.Tensor], bool], after: Callable[[], dt.Tensor], device: dt.Device
) -> None:
    s = SimpleNamespace(tensor=dt.arange(4.0))
    f = dt.jit(lambda x: x * 2 if asked(s.tensor) else x * 3)
    before = f(dt.ones(2)).tolist()
    assert f(dt.ones(2)).tolist() == before
    s.tensor = after()
    assert f(dt.ones(2)).tolist() != before


def test_new_values_of_the_same_shape_cause_no_capture(device: dt.Device) -> None:
    s = SimpleNamespace(now=state(4))
    f = dt.jit(lambda x: [ASKED[a](s, x) for a in ("attribute", "dict", "array", "sparse")])
    for _ in range(5):
        s.now = state(4)
        s.now.tensor += 1
        f(dt.ones(5))
    assert f.captures == 1


def test_result_that_the_function_keeps_causes_no_capture(device: dt.Device) -> None:
    s = SimpleNamespace(losses=list[dt.Tensor]())

    def step(x: dt.Tensor) -> dt.Tensor:
        s.losses.append(x.sum())
        return x * 2

    f = dt.jit(step)
    for _ in range(6):
        f(dt.ones(3))
    assert f.captures <= 2
