"""Options of NumPy's functions that other libraries' test suites use: dtypes, axes, estimators."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

import warnings
from typing import Any

import dovetail as dt
import numpy as np
import pytest


@pytest.mark.parametrize("name", ["concat", "stack", "hstack", "vstack"])
def test_joins_cast_to_dtype(device: dt.Device, name: str) -> None:
    a, b = np.array([1, 2]), np.array([3, 4], dtype="i1")
    join = getattr(dt, name)
    found = join([dt.asarray(a, device=device), dt.asarray(b, device=device)], dtype=dt.float32)
    want = getattr(np, name)([a, b], dtype="f4")
    assert found.dtype is dt.float32 and found.tolist() == want.tolist()
    x = dt.asarray([1.5], device=device)
    with pytest.raises(dt.DTypeError, match="loses a kind of number"):
        join([x, x], dtype=dt.int64)
    cast = join([x, x], dtype="int8", casting="unsafe")
    assert cast.dtype is dt.int8 and cast.reshape(-1).tolist() == [1, 1]
    mixed = getattr(np, name)([x, x], dtype="f8")
    assert mixed.dtype is dt.float64


def test_joins_with_dtype_write_into_out() -> None:
    out = dt.zeros((2,), dtype=dt.float32)
    assert dt.concat([dt.asarray([1]), dt.asarray([2])], dtype=dt.float32, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    with pytest.raises(dt.ArgumentError, match="casting"):
        dt.stack([dt.ones(1)], dtype=dt.float32, casting="other")


SHAPES = [((2, 3), (3, 2)), ((3,), (3,)), ((4, 2, 3), (3,)), ((2, 0), (0, 2)), ((2, 3), (4, 3, 1))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_of_bool_is_or_of_ands(device: dt.Device, shapes: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.random(s) < 0.4 for s in shapes)
    found = dt.asarray(a, device=device) @ dt.asarray(b, device=device)
    want = a @ b
    assert found.dtype is dt.bool_ and found.tolist() == want.tolist()


def test_matmul_of_bool_by_definition(device: dt.Device) -> None:
    x = dt.asarray([[True, False], [False, False]], device=device)
    assert (x @ x).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("trim", ["fb", "f", "b"])
def test_trim_zeros_along_axes_equals_numpy(device: dt.Device, trim: str, axis: Any) -> None:
    a = np.zeros((4, 5))
    a[1, 2], a[2, 1] = 1, np.nan
    for values in (a, np.zeros((2, 3)), np.zeros((0, 3))):
        found = dt.trim_zeros(dt.asarray(values, device=device), trim, axis=axis)
        assert found.shape == np.trim_zeros(values, trim, axis=axis).shape
        np.testing.assert_array_equal(found.numpy(), np.trim_zeros(values, trim, axis=axis))


def test_trim_zeros_of_matrix_keeps_the_box_of_nonzero_elements() -> None:
    x = dt.asarray([[0, 0, 0], [0, 7, 0]])
    assert dt.trim_zeros(x).tolist() == [[7]]
    assert dt.trim_zeros(x, axis=0).tolist() == [[0, 7, 0]]


def test_isin_takes_hints_of_numpy() -> None:
    x = dt.asarray([1, 2, 3])
    assert dt.isin(x, [2, 3], assume_unique=True, kind="sort").tolist() == [False, True, True]
    assert np.isin(x, [2], kind="table").tolist() == [False, True, False]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_matrix_power_of_integers_equals_numpy(device: dt.Device, n: int) -> None:
    a = np.array([[1, 2], [3, -1]], dtype="i4")
    found = dt.linalg.matrix_power(dt.asarray(a, device=device), n)
    assert found.dtype is dt.int32
    assert found.tolist() == np.linalg.matrix_power(a, n).tolist()
    with pytest.raises(dt.DTypeError, match="matrix_power"):
        dt.linalg.matrix_power(dt.asarray(a, device=device), -1)
    with pytest.raises(dt.ShapeError, match="matrix_power: expected square"):
        dt.linalg.matrix_power(dt.asarray([[1, 2]]), 2)


def test_complex_exp2_equals_numpy(device: dt.Device) -> None:
    a = np.array([3, 0.5, 1 + 1j, -2 - 3j, 100j, 60 - 0.1j])
    for dtype, close in (("c8", 2e-5), ("c16", 1e-13)):
        x = dt.asarray(a.astype(dtype), device=device)
        np.testing.assert_allclose(dt.exp2(x).numpy(), np.exp2(a.astype(dtype)), rtol=close)
    assert dt.exp2(dt.asarray(3 + 0j, device=device)).item() == 8


def test_complex_exp2_has_a_gradient() -> None:
    x = dt.asarray([0.5 + 1j, -1 - 0.5j], dtype=dt.complex128, requires_grad=True)
    assert dt.autograd.gradcheck(dt.exp2, x)


ESTIMATORS = ["auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt"]


@pytest.mark.parametrize("bins", ESTIMATORS)
def test_estimated_bins_equal_numpy(device: dt.Device, bins: str) -> None:
    a = np.random.default_rng(5).standard_normal(200)
    for values, limits in ((a, None), (a, (-1, 2)), ((a * 9).astype("i8"), None), (a[:0], None)):
        with warnings.catch_warnings():  # "stone": the number may be suboptimal
            warnings.simplefilter("ignore", RuntimeWarning)
            found = dt.histogram(dt.asarray(values, device=device), bins, range=limits)
            hist, edges = np.histogram(values, bins, range=limits)
        assert found.hist.tolist() == hist.tolist()
        np.testing.assert_allclose(found.bin_edges.numpy(), edges)


def test_estimated_bins_by_definition() -> None:
    x = dt.arange(16, dtype=dt.float32)
    assert dt.histogram(x, "sqrt").hist.tolist() == [4, 4, 4, 4]
    assert dt.histogram_bin_edges(x, "sturges").shape == (6,)  # log2(16) + 1 bins
    with pytest.raises(dt.ArgumentError, match="bins must be 'auto' or"):
        dt.histogram(x, "most")
    with pytest.raises(dt.ArgumentError, match="bins must be a number with weights"):
        dt.histogram(x, "auto", weights=x)


def test_argwhere_of_no_dimensions_has_no_columns(device: dt.Device) -> None:
    for value in (0, 3, np.nan):
        found = dt.argwhere(dt.asarray(value, device=device))
        assert found.shape == np.argwhere(value).shape and found.dtype is dt.int64


def test_cross_of_two_elements_names_the_formula() -> None:
    with pytest.raises(dt.ShapeError, match=r"of 2 elements use x1\[\.\.\., 0\] \* x2"):
        dt.cross(dt.ones(2), dt.ones(2))


def test_average_of_axes_in_descending_order_equals_numpy() -> None:
    a, w = np.arange(24.0).reshape(2, 3, 4), np.arange(8.0).reshape(4, 2)
    found = dt.average(dt.asarray(a), axis=(2, 0), weights=w)
    np.testing.assert_allclose(found.numpy(), np.average(a, axis=(2, 0), weights=w))
