"""First and second derivatives through sparse tensors, against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

RNG = np.random.default_rng(0)
AT = np.stack([RNG.integers(0, 4, 9), RNG.integers(0, 5, 9)])
OTHER = np.stack([RNG.integers(0, 4, 7), RNG.integers(0, 5, 7)])
FULL = np.indices((3, 3)).reshape(2, -1)


def x(v: Any) -> Any:
    return dt.sparse_coo_tensor(AT, v, (4, 5))


def y(v: Any) -> Any:
    return dt.sparse_coo_tensor(OTHER, v, (4, 5))


def hybrid(v: Any) -> Any:
    return dt.sparse_coo_tensor([[0, 1, 1, 2, 0], [1, 1, 0, 2, 1]], v, (3, 3, 2))


def full(v: Any) -> Any:
    return dt.sparse_coo_tensor(FULL, v, (3, 3))


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "to_dense": (lambda v: x(v).to_dense(), ((9,),)),
    "to_sparse": (lambda d: dt.square(d.to_sparse()).to_dense(), ((3, 2),)),
    "coalesce": (lambda v: x(v).coalesce().values(), ((9,),)),
    "sparse @ matrix": (lambda v, d: x(v) @ d, ((9,), (5, 3))),
    "sparse @ vector": (lambda v, d: x(v) @ d, ((9,), (5,))),
    "sparse @ batch": (lambda v, d: x(v) @ d, ((9,), (2, 5, 3))),
    "matrix @ sparse": (lambda v, d: d @ x(v), ((9,), (2, 4))),
    "sparse @ sparse": (lambda v, w: (x(v) @ y(w).T).to_dense(), ((9,), (7,))),
    "add": (lambda v, w: (x(v) + y(w)).to_dense(), ((9,), (7,))),
    "multiply": (lambda v, w: (x(v) * y(w)).to_dense(), ((9,), (7,))),
    "multiply by dense": (lambda v, d: (x(v) * d).to_dense(), ((9,), (4, 5))),
    "divide by dense": (lambda v, d: (x(v) / d).to_dense(), ((9,), (4, 1))),
    "sum": (lambda v: dt.sum(x(v), axis=0).to_dense(), ((9,),)),
    "mean": (lambda v: dt.mean(x(v), axis=1).to_dense(), ((9,),)),
    "sum of all": (lambda v: dt.sum(x(v)), ((9,),)),
    "prod": (lambda v: dt.prod(full(v), axis=1).to_dense(), ((9,),)),
    "max": (lambda v: dt.max(x(v), axis=1).to_dense(), ((9,),)),
    "min": (lambda v: dt.min(x(v), axis=0).to_dense(), ((9,),)),
    "tanh": (lambda v: dt.tanh(x(v)).to_dense(), ((9,),)),
    "slice": (lambda v: x(v)[1:, ::2].to_dense(), ((9,),)),
    "index": (lambda v: x(v)[[1, 1, 0]].to_dense(), ((9,),)),
    "reshape of T": (lambda v: x(v).T.reshape(2, 10).to_dense(), ((9,),)),
    "concat": (lambda v, w: dt.concat([x(v), y(w)], axis=1).to_dense(), ((9,), (7,))),
    "softmax": (lambda v: dt.softmax(x(v), axis=0).to_dense(), ((9,),)),
    "log_softmax": (lambda v: dt.log_softmax(x(v), axis=-1).to_dense(), ((9,),)),
    "hybrid sum": (lambda v: dt.sum(hybrid(v), axis=0).to_dense(), ((5, 2),)),
    "hybrid max": (lambda v: dt.max(hybrid(v), axis=1).to_dense(), ((5, 2),)),
    "einsum": (lambda v, d: dt.einsum("ij,kj->ki", x(v), d), ((9,), (2, 5))),
}


def leaves(shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    rng = np.random.default_rng(7)
    return [dt.asarray(rng.normal(size=s), device="cpu").requires_grad_() for s in shapes]


@pytest.fixture(autouse=True)
def _on_the_cpu() -> Any:
    before = dt.default_device()
    dt.set_default_device("cpu")
    yield
    dt.set_default_device(before)


@pytest.mark.parametrize("name", CASES)
def test_gradients_equal_differences(name: str) -> None:
    f, shapes = CASES[name]
    assert dt.autograd.gradcheck(f, leaves(shapes))


@pytest.mark.parametrize("name", ["sparse @ matrix", "matrix @ sparse", "sparse @ sparse",
                                  "multiply", "softmax", "sum", "divide by dense"])  # fmt: skip
def test_second_derivatives_equal_differences(name: str) -> None:
    f, shapes = CASES[name]
    assert dt.autograd.gradgradcheck(f, leaves(shapes))


def test_grad_of_a_sparse_tensor_is_that_of_its_values() -> None:
    s = x(dt.asarray(np.arange(9.0))).requires_grad_()
    assert s.requires_grad and s.is_leaf and s.values().requires_grad
    dt.sum(s * s.detach()).backward()
    assert s.grad.layout is dt.sparse_coo and s.grad.shape == s.shape
    np.testing.assert_array_equal(s.grad.values().numpy(), s.values().grad.numpy())
    assert not s.detach().requires_grad


def test_cached_pattern_data_do_not_affect_gradients() -> None:
    """Data derived from a pattern under no_grad are cached; values must not be."""
    v = dt.asarray(np.arange(9.0)).requires_grad_()
    s = x(v)
    with dt.no_grad():
        dt.evaluate(s.coalesce(), s @ dt.ones((5, 2), dtype=dt.float64))
    dt.sum(s @ dt.ones((5, 2), dtype=dt.float64)).backward()
    assert v.grad is not None and v.grad.tolist() == [2.0] * 9


def test_autograd_functions_accept_a_sparse_tensor_or_name_themselves() -> None:
    s = x(dt.asarray(np.arange(9.0)))
    assert dt.autograd.detach(s).layout is dt.sparse_coo
    y = dt.ones(3).requires_grad_().sum()
    with pytest.raises(dt.LayoutError, match=r"^backward: "):
        dt.autograd.backward(y, s)
    with pytest.raises(dt.LayoutError, match=r"^grad: "):
        dt.grad(y, dt.ones(3), s)


def test_gradient_reaches_a_tensor_without_entries(device: dt.Device) -> None:
    values = dt.zeros(0, requires_grad=True)
    x = dt.sparse_coo_tensor(dt.zeros((2, 0), dtype=dt.int64), values, (3, 3))
    (x.to_dense() + (x * 2).T.to_dense()).sum().backward()
    assert values.grad is not None and values.grad.shape == (0,)
