"""Products under NumPy's names against NumPy; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck


def some(*shape: int, dtype: str = "i8") -> Any:
    return np.random.default_rng(len(shape)).integers(-5, 6, shape).astype(dtype)


def assert_same(found: dt.Tensor, want: Any) -> None:
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


PAIRS = {
    "dot": [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((), (3,)),
            ((2, 2, 3), (3,)), ((0,), (0,)), ((2, 0), (0, 2))],
    "inner": [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((2, 2, 3), (5, 3)), ((), (2, 3))],
    "vdot": [((3,), (3,)), ((2, 3), (3, 2)), ((0,), (0,))],
    "kron": [((2,), (3,)), ((2, 3), (4,)), ((2,), (3, 1, 2)), ((), (2, 2)), ((0, 2), (3,))],
    "cross": [((3,), (3,)), ((2, 3), (3,)), ((4, 1, 3), (2, 3))],
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", ["i8", "f4"])
def test_products_equal_numpy(device: dt.Device, name: str, dtype: str) -> None:
    for s, t in PAIRS[name]:
        a, b = some(*s, dtype=dtype), some(*t, dtype=dtype)
        assert_same(getattr(dt, name)(dt.asarray(a), dt.asarray(b)), getattr(np, name)(a, b))


@pytest.mark.parametrize("first", ["i1", "u1"])
@pytest.mark.parametrize("second", ["i1", "u1"])
def test_products_with_dtype_int32_are_sums_of_int32(
    device: dt.Device, first: str, second: str
) -> None:
    for s, t in (
        ((5, 9), (9, 4)),
        ((2, 3, 40), (40, 3)),
        ((7,), (7,)),
        ((3, 0), (0, 2)),
        ((1, 600), (600, 1)),
    ):
        a, b = 20 * some(*s, dtype="i4"), 20 * some(*t, dtype="i4")
        x, y = a.astype(first), b.astype(second)
        want = x.astype("i4") @ y.astype("i4")
        x, y = dt.asarray(x, device=device), dt.asarray(y, device=device)
        assert_same(dt.matmul(x, y, dtype=dt.int32), want)
        assert_same(x.matmul(y, dtype="int32"), want)
        assert_same(dt.tensordot(x, y, axes=1, dtype=dt.int32), want)
        if y.ndim == 2:
            assert_same(dt.einsum("...i,ij->...j", x, y, dtype=dt.int32), want)


def test_products_with_dtype_cast_their_operands_first(device: dt.Device) -> None:
    x = dt.full((2, 300), 1.0078125, dtype=dt.bfloat16, device=device)
    product = dt.matmul(x, x.mT, dtype=dt.float32)  # not rounded to bfloat16
    assert_same(product, np.full((2, 2), np.float32(1.0078125**2 * 300)))
    assert_same(dt.einsum("ij,kj->ik", x, x, dtype=dt.float32), product.numpy())
    assert_same(dt.matmul(x, x.mT, dtype=dt.bool), np.ones((2, 2), bool))
    with pytest.raises(dt.DTypeError, match="complex64 cannot be converted to float32"):
        dt.matmul(x + 0j, x.mT, dtype=dt.float32)


def test_cross_along_another_axis(device: dt.Device) -> None:
    a, b = some(3, 4), some(3, 1)
    assert_same(dt.cross(dt.asarray(a), dt.asarray(b), axis=0), np.cross(a, b, axis=0))


def test_products_with_scalars_and_out(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    assert dt.dot(x, 3).tolist() == dt.inner(3, x).tolist() == [3, 6]
    out = dt.zeros(())
    assert dt.dot(x, x, out=out) is out and out.item() == 5


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_of_products(name: str) -> None:
    rng = np.random.default_rng(1)
    x, y = (dt.asarray(rng.normal(size=(3, 3)), device="reference").requires_grad_()
            for _ in range(2))  # fmt: skip
    assert gradcheck(getattr(dt, name), (x, y))


def test_wrong_arguments_of_products_raise() -> None:
    x, y = dt.ones(3, device="reference"), dt.ones(4, device="reference")
    for name in ("dot", "inner", "vdot", "cross"):
        with pytest.raises(dt.ShapeError, match=name):
            getattr(dt, name)(x, y)
    for name in PAIRS:
        with pytest.raises(dt.DTypeError, match=name):
            getattr(dt, name)("a", x)
    with pytest.raises(dt.AxisError, match="cross"):
        dt.cross(x, x, axis=3)


def test_scalar_operands_of_einsum_scale_it(device: dt.Device) -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = dt.asarray(a)
    for subscripts, operands in ((",ij->ji", (2.0, x)), ("ij,,ij", (x, 3, x)), ("i...,", (x, 0.5))):
        want = np.einsum(subscripts, *(a if o is x else o for o in operands))
        found = dt.einsum(subscripts, *operands)
        assert found.dtype is dt.float64 and np.array_equal(found.numpy(), want)
        assert np.array_equal(np.einsum(subscripts, *operands).numpy(), want)
    assert dt.einsum("i,", dt.asarray([1, 2]), 0.5).dtype is dt.float32
    with pytest.raises(dt.DTypeError, match="einsum: at least one"):
        dt.einsum(",", 1.0, 2.0)


def test_einsum_writes_to_out(device: dt.Device) -> None:
    a, out = np.arange(6.0).reshape(2, 3), dt.zeros((3, 2), dtype="float64")
    x = dt.asarray(a)
    assert dt.einsum("ij->ji", x, out=out) is out and np.array_equal(out.numpy(), a.T)
    assert np.einsum("ij,jk->ki", x, x.T @ x, out=out) is out
    assert np.allclose(out.numpy(), (a @ (a.T @ a)).T)
    with pytest.raises(dt.ShapeError, match="einsum: out="):
        dt.einsum("ij->", x, out=out)
