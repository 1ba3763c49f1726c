"""Products with a vector: one launch and nothing around it, with the bits of every other way."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest

Array = np.ndarray[Any, Any]


def sample(rows: int = 90, columns: int = 70, d: Any = np.float32) -> Array:
    rng = np.random.default_rng(2)
    return (rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.2)).astype(d)


def op_of(x: dt.Tensor) -> str:
    op = x._expr.op
    assert op is not None
    return op.name


@pytest.mark.parametrize("d", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_vector_is_multiplied_by_one_kernel_alone(
    device: dt.Device, kind: str, d: type[Any]
) -> None:
    a = (sample() * 8).astype(d)
    x = getattr(dt.asarray(a), f"to_sparse_{kind}")()
    v = dt.asarray(np.arange(70).astype(d))
    found = x @ v
    assert op_of(found) == "sparse_product" and found.shape == (90,)
    assert (x.T @ dt.asarray(np.arange(90).astype(d))).shape == (70,)
    wide = x @ v.reshape(70, 1)  # the long way
    assert found.numpy().tobytes() == wide.numpy().tobytes()
    np.testing.assert_allclose(found.numpy(), a @ np.arange(70).astype(d), rtol=1e-4)


def test_what_is_to_be_converted_or_remembered_goes_the_long_way(device: dt.Device) -> None:
    x = dt.asarray(sample()).to_sparse_csr()
    v = dt.asarray(sample(70, 1).reshape(-1))
    assert (x @ v.astype(dt.float64)).dtype is dt.float64
    assert (x.astype(dt.int64) @ v).dtype is dt.result_type(dt.int64, dt.float32)
    plain = (x @ v).numpy()
    v.requires_grad_()
    made = x @ v
    assert made.requires_grad and made.numpy().tobytes() == plain.tobytes()
    (g,) = dt.grad(made.sum(), [v])
    np.testing.assert_allclose(g.numpy(), sample().sum(axis=0), rtol=1e-5)
    y = x.detach().requires_grad_()
    (y @ v.detach()).sum().backward()
    assert y.grad is not None
    with pytest.raises(dt.ShapeError, match="do not fit"):
        x @ dt.ones(90)
    empty = dt.zeros((5, 70)).to_sparse_csr()
    assert (empty @ v.detach()).tolist() == [0.0] * 5


def test_a_captured_product_sees_new_vectors(device: dt.Device) -> None:
    a = sample()
    x = dt.asarray(a).to_sparse_csr()
    f = dt.jit(lambda v: x @ v + 1)
    for seed in (1, 2, 3):
        v = np.random.default_rng(seed).standard_normal(70).astype("f4")
        want = (x @ dt.asarray(v).reshape(70, 1)).reshape(-1) + 1
        assert f(dt.asarray(v)).numpy().tobytes() == want.numpy().tobytes()
