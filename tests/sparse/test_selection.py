"""`x[x > 1]`, `nonzero`, `tril`, `triu`, `kron`, `std`, `var` and `sort` of sparse tensors."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from sparse_samples import scattered, triples

SHAPES = ((7,), (5, 6), (3, 4, 5), (1, 1), (4, 0))


def pair(shape: tuple[int, ...], seed: int = 0, d: Any = np.float64) -> tuple[Any, Any]:
    at, values = triples(np.random.default_rng(seed), shape, dtype=d)
    return dt.sparse_coo_tensor(at, values, shape), scattered(at, values, shape)


def assert_same(found: Any, wanted: Any) -> None:
    found = found.to_dense() if found.layout is not dt.strided else found
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("shape", SHAPES)
def test_masks_and_nonzero_equal_numpy(device: dt.Device, shape: tuple[int, ...]) -> None:
    x, a = pair(shape)
    assert_same(x[x > 1], a[a > 1])
    assert_same(x.to_dense()[x > 1], a[a > 1])
    assert_same(x[x != 0], a[a != 0])
    for ours, theirs in zip(dt.nonzero(x), np.nonzero(a), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(dt.argwhere(x).numpy(), np.argwhere(a))


def test_masks_of_leading_axes_and_wrong_ones(device: dt.Device) -> None:
    x, a = pair((4, 5))
    rows, there = pair((4,), 1)
    assert_same(x[rows > 0], a[there > 0])
    with pytest.raises(dt.OutOfRangeError, match=r"mask of shape \(5, 4\) does not fit"):
        x[x.T > 0]
    with pytest.raises(dt.LayoutError, match="index"):
        x[rows.astype(dt.int64)]


def test_stored_zero_is_not_in_nonzero(device: dt.Device) -> None:
    x = dt.sparse_coo_tensor([[1, 3, 3]], [0.0, 2.0, -2.0], (5,))
    assert dt.nonzero(x)[0].tolist() == []


@pytest.mark.parametrize("k", (-9, -1, 0, 2, 9))
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_tril_and_triu_equal_numpy(device: dt.Device, shape: tuple[int, ...], k: int) -> None:
    x, a = pair(shape)
    assert_same(dt.tril(x, k), np.tril(a, k))
    assert_same(dt.triu(x, k), np.triu(a, k))
    if len(shape) == 3:
        assert_same(dt.tril(x.to_dense().to_sparse(1), k), np.tril(a, k))
        assert_same(dt.triu(x.to_dense().to_sparse(2), k), np.triu(a, k))


def test_tril_of_one_dimension_raises(device: dt.Device) -> None:
    with pytest.raises(dt.ShapeError, match="tril: expected at least 2 dimensions"):
        dt.tril(pair((3,))[0])


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("shape", SHAPES)
def test_sort_equals_numpy(device: dt.Device, shape: tuple[int, ...], descending: bool) -> None:
    for d in (np.float64, np.int32, bool):
        x, a = pair(shape, d=d)
        for axis in range(len(shape)):
            wanted = np.sort(a, axis)
            assert_same(dt.sort(x, axis=axis, descending=descending),
                 np.flip(wanted, axis) if descending else wanted)  # fmt: skip
    x, a = pair((3, 4, 5))
    hybrid = x.to_dense().to_sparse(2)
    for axis in range(3):
        assert_same(dt.sort(hybrid, axis=axis), np.sort(a, axis))


def test_nan_is_sorted_last(device: dt.Device) -> None:
    a = np.array([[0, np.nan, -1.0, 0, 2.0]])
    x = dt.asarray(a).to_sparse()
    assert_same(dt.sort(x), [[-1, 0, 0, 2, np.nan]])
    assert_same(dt.sort(x, descending=True), [[2, 0, 0, -1, np.nan]])


@pytest.mark.parametrize("shape", SHAPES[:4])
def test_std_and_var_equal_numpy(device: dt.Device, shape: tuple[int, ...]) -> None:
    x, a = pair(shape)
    axes: tuple[Any, ...] = (None, *range(len(shape)), *([(0, 2)] if len(shape) == 3 else []))
    forms = [x, *([x.to_dense().to_sparse(1)] if len(shape) == 3 else [])]
    for axis in axes:
        for given in forms:
            for keepdims in (False, True):
                found = dt.var(given, axis=axis, keepdims=keepdims)
                found = found.to_dense() if found.layout is not dt.strided else found
                wanted = a.var(axis, keepdims=keepdims)
                assert found.shape == wanted.shape
                np.testing.assert_allclose(found.numpy(), wanted, atol=1e-14)
            std = dt.std(given, axis=axis)
            std = std.to_dense() if std.layout is not dt.strided else std
            np.testing.assert_allclose(std.numpy(), a.std(axis), atol=1e-14)


def test_std_and_var_with_correction_and_other_dtypes(device: dt.Device) -> None:
    x, a = pair((5, 6))
    found = dt.std(x, axis=0, correction=1).to_dense().numpy()
    np.testing.assert_allclose(found, a.std(0, ddof=1), atol=1e-14)
    few = dt.var(x[:1], axis=0, correction=1).to_dense().numpy()
    assert np.isnan(few).all() and few.shape == (6,)
    whole = dt.std(x.astype(dt.int64), axis=1)
    assert whole.dtype is dt.float32
    half = dt.std(x.astype(dt.float16))
    assert half.dtype is dt.float16
    z = x.astype(dt.complex128) * (1 + 2j)
    np.testing.assert_allclose(
        dt.var(z, axis=0).to_dense().numpy(), (a * (1 + 2j)).var(0), atol=1e-13
    )


def test_kron_equals_numpy(device: dt.Device) -> None:
    for one, two in (((3,), (4,)), ((2, 3), (4, 2)), ((3,), (2, 2)), ((2, 1, 2), (3, 2))):
        (x, a), (y, b) = pair(one), pair(two, 1)
        assert_same(dt.kron(x, y), np.kron(a, b))
        assert_same(dt.kron(x, y.to_dense()), np.kron(a, b))
        assert_same(dt.kron(x.to_dense(), y), np.kron(a, b))
    assert dt.kron(*(pair((3, 3), k)[0].to_sparse_csr() for k in (0, 1))).layout is dt.sparse_csr


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 0], lambda x: dt.tril(x), lambda x: dt.triu(x, 1), lambda x: dt.sort(x),
        lambda x: dt.sort(x, axis=0, descending=True), lambda x: dt.var(x, axis=0),
        lambda x: dt.var(x), lambda x: dt.kron(x, x), lambda x: dt.std(x, axis=1),
    ],
)  # fmt: skip
def test_gradients_equal_those_of_the_dense_tensor(device: dt.Device, f: Any) -> None:
    _, a = pair((5, 6), 4)

    def gradient(sparse: bool) -> Any:
        x = dt.asarray(a).requires_grad_()
        y = f(x.to_sparse() if sparse else x)
        y = y.to_dense() if y.layout is not dt.strided else y
        weights = dt.asarray(np.arange(1.0, y.size + 1).reshape(y.shape))
        (g,) = dt.grad(dt.sum(y * weights), [x])
        return g.numpy()

    found, wanted = gradient(True), gradient(False)
    np.testing.assert_allclose(found[a != 0], wanted[a != 0], rtol=1e-12)
