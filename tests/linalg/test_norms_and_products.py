"""Norms, powers, exponentials and composed products against NumPy and SciPy, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import scipy.linalg
from dovetail import linalg
from matrices_for_tests import WIDE, drawn, has_gradients, near


@pytest.mark.parametrize("ord", [2, 1, 0, np.inf, -np.inf, 3, 0.5, -1, 2.5])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", WIDE)
def test_vector_norms_equal_numpy(
    device: dt.Device, ord: float, axis: object, keepdims: bool, dtype: str
) -> None:
    a = drawn(2, 3, 4, dtype=dtype)
    found = linalg.vector_norm(dt.asarray(a), ord=ord, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]
    near(found, np.linalg.vector_norm(a, ord=ord, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", WIDE)
def test_matrix_norms_equal_numpy(
    device: dt.Device, ord: object, keepdims: bool, dtype: str
) -> None:
    a = drawn(2, 3, 4, dtype=dtype)
    found = linalg.matrix_norm(dt.asarray(a), ord=ord, keepdims=keepdims)  # type: ignore[arg-type]
    near(found, np.linalg.matrix_norm(a, ord=ord, keepdims=keepdims))


def test_norms_of_half_precision_and_of_empty_tensors(device: dt.Device) -> None:
    half = dt.asarray([3.0, 4.0], dtype=dt.float16)
    assert linalg.vector_norm(half).dtype is dt.float16
    assert linalg.vector_norm(half).item() == 5.0
    assert linalg.vector_norm(dt.zeros(0)).item() == 0.0
    assert linalg.matrix_norm(dt.zeros((0, 3))).item() == 0.0
    assert linalg.vector_norm(dt.zeros(0), ord=np.inf).item() == 0.0
    with pytest.raises(dt.ShapeError):
        linalg.vector_norm(dt.zeros(0), ord=-np.inf)


@pytest.mark.parametrize("dtype", WIDE)
def test_norms_have_gradients(device: dt.Device, dtype: str, thinned: Callable[..., Any]) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    for ord in thinned((2, 1, 3, np.inf), 2):
        has_gradients(lambda x, p=ord: linalg.vector_norm(x, ord=p, axis=1), a)
    for name in thinned(("fro", 2, 1, "nuc", -2, np.inf), 3):
        has_gradients(lambda x, p=name: linalg.matrix_norm(x, ord=p), a)


def test_gradient_of_a_norm_at_zero_is_zero(device: dt.Device) -> None:
    x = dt.zeros(3).requires_grad_()
    linalg.vector_norm(x).backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, -1, -3])
def test_matrix_powers_equal_numpy(device: dt.Device, n: int, dtype: str) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    near(linalg.matrix_power(dt.asarray(a), n), np.linalg.matrix_power(a, n), 1e-8)
    has_gradients(lambda x: linalg.matrix_power(x, n), a)


def test_matrix_power_does_not_alias_its_operand(device: dt.Device) -> None:
    x = dt.eye(2)
    y = linalg.matrix_power(x, 1)
    y[0, 0] = 5.0
    assert x[0, 0].item() == 1.0


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("size", [1e-3, 0.3, 2.0, 10.0, 40.0])
def test_matrix_exponentials_equal_scipy(device: dt.Device, size: float, dtype: str) -> None:
    a = np.stack([drawn(4, 4, dtype=dtype) * size, drawn(4, 4, dtype=dtype, seed=1) * 0.01])
    wanted = np.stack([scipy.linalg.expm(m) for m in a])
    found = linalg.expm(dt.asarray(a)).numpy()
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=0, atol=1e-11 * np.abs(want).max())
    near(linalg.expm(dt.zeros((0, 0))), np.zeros((0, 0), "float32"))


def test_matrix_exponentials_have_gradients(device: dt.Device) -> None:
    has_gradients(linalg.expm, drawn(2, 2, 2))
    has_gradients(linalg.expm, drawn(2, 2, dtype="complex128"))


@pytest.mark.parametrize("dtype", WIDE)
def test_products_equal_numpy(device: dt.Device, dtype: str) -> None:
    a, b, c = drawn(4, 3, dtype=dtype), drawn(3, 7, dtype=dtype), drawn(7, 2, dtype=dtype)
    x, y, z = map(dt.asarray, (a, b, c))
    near(linalg.multi_dot([x, y, z]), np.linalg.multi_dot([a, b, c]))
    near(linalg.multi_dot([x[0], y, z[:, 0]]), np.linalg.multi_dot([a[0], b, c[:, 0]]))
    near(linalg.kron(x, y), np.kron(a, b))
    near(linalg.kron(x[0], y), np.kron(a[0], b))
    near(linalg.kron(drawn_tensor(2, 1, 3), y), np.kron(drawn(2, 1, 3), b))
    near(linalg.block_diag(x, y, z), scipy.linalg.block_diag(a, b, c))
    near(linalg.block_diag(x[0], y), scipy.linalg.block_diag(a[0], b))
    near(linalg.trace(y, offset=1), np.trace(b, offset=1))
    near(linalg.trace(drawn_tensor(5, 3, 3)), np.linalg.trace(drawn(5, 3, 3)))


def drawn_tensor(*shape: int) -> dt.Tensor:
    return dt.asarray(drawn(*shape))


@pytest.mark.parametrize(
    ("left", "right", "axis"),
    [((3,), (3,), -1), ((2, 3), (3,), -1), ((4, 1, 3), (2, 3), -1), ((3, 2), (3, 2), 0)],
)
@pytest.mark.parametrize("dtype", WIDE)
def test_cross_products_equal_numpy(
    device: dt.Device, left: tuple, right: tuple, axis: int, dtype: str
) -> None:
    a, b = drawn(*left, dtype=dtype), drawn(*right, dtype=dtype, seed=1)
    found = linalg.cross(dt.asarray(a), dt.asarray(b), axis=axis)
    near(found, np.linalg.cross(a, b, axis=axis))


@pytest.mark.parametrize("dtype", WIDE)
def test_products_have_gradients(device: dt.Device, dtype: str) -> None:
    a, b = drawn(2, 3, dtype=dtype), drawn(3, 3, dtype=dtype, seed=1)
    has_gradients(linalg.kron, a, b)
    has_gradients(linalg.cross, a, b[0])
    has_gradients(linalg.trace, b)
    has_gradients(lambda x, y: linalg.multi_dot([x, y, y]), a, b)
    has_gradients(linalg.block_diag, a, b)
    has_gradients(linalg.householder, drawn(4, 3, dtype=dtype), drawn(2, dtype=dtype))


@pytest.mark.parametrize("dtype", WIDE)
def test_householder_product_equals_lapack(device: dt.Device, dtype: str) -> None:
    a = drawn(5, 3, dtype=dtype)
    (raw, tau), _ = scipy.linalg.qr(a, mode="raw")
    found = linalg.householder(dt.asarray(np.ascontiguousarray(raw)), dt.asarray(tau))
    near(found, np.linalg.qr(a)[0])
    near(
        linalg.householder(dt.asarray(np.stack([raw] * 2)), dt.asarray(np.stack([tau] * 2)))[1],
        np.linalg.qr(a)[0],
    )


def test_products_of_mismatched_shapes_raise(device: dt.Device) -> None:
    x = dt.ones((2, 3))
    for call, error, says in (
        (lambda: linalg.multi_dot([x, x]), dt.ShapeError, "columns of each matrix must equal"),
        (lambda: linalg.multi_dot([x]), dt.ArgumentError, "at least 2 matrices"),
        (lambda: linalg.cross(x[:, :2], x[:, :2]), dt.ShapeError, "must have 3 elements"),
        (lambda: linalg.block_diag(), dt.ArgumentError, "at least one matrix"),
        (lambda: linalg.block_diag(dt.ones((1, 1, 1))), dt.ShapeError, "at most 2 dimensions"),
        (lambda: linalg.householder(x, dt.ones(2)), dt.ShapeError, "at most as many columns"),
        (lambda: linalg.matrix_norm(x, ord=3), dt.ArgumentError, "ord must be"),
        (lambda: linalg.matrix_norm(x, ord="max"), dt.ArgumentError, "ord must be"),
        (lambda: linalg.vector_norm(x, ord="fro"), dt.ArgumentTypeError, "ord must be"),
        (lambda: linalg.cond(dt.ones((0, 2))), dt.ShapeError, "at least one row"),
    ):
        with pytest.raises(error, match=says):
            call()


EMPTY = [(0, 0), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 2, 3), (0, 0, 0)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("ord", ["fro", "nuc", 1, 2, np.inf, -1, -2, -np.inf])
def test_norms_of_empty_matrices_equal_numpy(ord: Any, dtype: str, device: dt.Device) -> None:
    for shape in EMPTY:
        a = np.zeros(shape, dtype)
        x = dt.asarray(a)
        for keepdims in (False, True):
            try:
                want = np.linalg.matrix_norm(a, ord=ord, keepdims=keepdims)
            except ValueError:  # minimum of an empty axis
                with pytest.raises(dt.ShapeError, match="matrix_norm"):
                    linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
                continue
            found = linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
            assert found.shape == want.shape and found.tolist() == want.tolist()
            assert np.linalg.norm(x, ord, (-2, -1), keepdims).tolist() == want.tolist()


@pytest.mark.parametrize("ord", [0, 1, 2, 3, np.inf])
def test_norms_of_empty_vectors_equal_numpy(ord: float, device: dt.Device) -> None:
    for shape in EMPTY:
        a = np.zeros(shape, "f4")
        for axis in (None, 0, -1):
            want = np.linalg.vector_norm(a, ord=ord, axis=axis)
            found = linalg.vector_norm(dt.asarray(a), ord=ord, axis=axis)
            assert found.shape == want.shape and found.tolist() == want.tolist()


def test_gradient_of_the_norm_of_empty_matrices_is_empty() -> None:
    for ord in (1, 2, np.inf):
        x = dt.zeros((2, 0, 0), device="reference", requires_grad=True)
        linalg.matrix_norm(x, ord=ord).sum().backward()
        assert x.grad is not None and x.grad.shape == (2, 0, 0)
