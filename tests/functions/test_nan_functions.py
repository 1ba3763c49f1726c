"""Reductions that ignore NaN, against NumPy: axes, dtypes, views, rows of NaN; gradients; bad
input.
"""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

import warnings
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

REDUCTIONS = ["nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax"]
PLACES = ["nanargmin", "nanargmax"]
RUNNING = ["nancumsum", "nancumprod"]
AXES = [None, 0, 1, -1, (0, 2), (0, 1, 2), ()]


def sample(dtype: str) -> Any:
    rng = np.random.default_rng(7)
    if dtype == "bool":
        return rng.random((3, 4, 5)) < 0.7
    a = rng.integers(1, 9, (3, 4, 5)).astype(dtype)
    if a.dtype.kind == "f":
        a[rng.random(a.shape) < 0.3] = np.nan
        a[0, :, 1] = a[2, 3] = np.nan
        a[1, 1, 1] = np.inf
    return a


def assert_equals_numpy(name: str, a: Any, found: dt.Tensor, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.asarray(getattr(np, name)(a, **options))
    if a.dtype.kind != "f" and name in ("nanmean", "nanstd", "nanvar"):
        want = want.astype("f4")
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    close = {"float32": 2e-6, "float64": 1e-13, "float16": 4e-3}.get(want.dtype.name, 0)
    np.testing.assert_allclose(found.numpy(), want, rtol=close, atol=close)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_nan_reductions_equal_numpy(device: dt.Device, name: str, axis: Any) -> None:
    dtypes = ["bool", "int8", "uint64", "float32", "float64"]
    for dtype in dtypes if device.type == "reference" else ["int8", "float32"]:
        if dtype == "bool" and name in ("nanmin", "nanmax", "nanvar", "nanstd"):
            continue
        a = sample(dtype)
        if axis == () and name in ("nanvar", "nanstd", "nanmean"):
            continue  # NumPy's own divisors differ for one element
        assert_equals_numpy(name, a, getattr(dt, name)(dt.asarray(a), axis=axis), axis=axis)
        turned = dt.flip(dt.permute_dims(dt.asarray(a), (2, 0, 1)), axis=1)
        found = getattr(dt, name)(turned, axis=axis, keepdims=True)
        assert_equals_numpy(name, a.transpose(2, 0, 1)[:, ::-1], found, axis=axis, keepdims=True)


def test_correction_and_dtype_arguments(device: dt.Device) -> None:
    a = sample("float64")
    for c in (1, 2, 4, 0.5):
        assert_equals_numpy(
            "nanvar", a, dt.nanvar(dt.asarray(a), axis=1, correction=c), axis=1, ddof=c
        )
    assert_equals_numpy(
        "nansum", a, dt.nansum(dt.asarray(a), axis=0, dtype="float32"), axis=0, dtype="f4"
    )
    half = np.full(100, 1000, "f2")
    assert dt.nanmean(dt.asarray(half)).item() == 1000, "sums of float16 overflow"


@pytest.mark.parametrize("name", PLACES)
def test_nanargmax_and_nanargmin_equal_numpy(device: dt.Device, name: str) -> None:
    a = sample("float32")
    a[0, :, 1] = a[2, 3] = 1.0  # NumPy refuses rows of NaN
    for axis in (None, 0, 1, -1):
        found = getattr(dt, name)(dt.asarray(a), axis=axis, keepdims=axis == 1)
        assert_equals_numpy(name, a, found, axis=axis, keepdims=axis == 1)
    ints = sample("int8")
    assert_equals_numpy(name, ints, getattr(dt, name)(dt.asarray(ints), axis=1), axis=1)
    rows = dt.asarray([[np.nan, np.nan], [np.nan, np.inf], [np.nan, -np.inf]])
    assert getattr(dt, name)(rows, axis=1).tolist() == [-1, 1, 1]


@pytest.mark.parametrize("name", RUNNING)
def test_nan_cumulative_functions_equal_numpy(device: dt.Device, name: str) -> None:
    for dtype in ("float32", "int8", "float64"):
        a = sample(dtype)
        for axis in (None, 0, -1):
            assert_equals_numpy(name, a, getattr(dt, name)(dt.asarray(a), axis=axis), axis=axis)


def test_nan_reductions_of_empty_tensors(device: dt.Device) -> None:
    x = dt.zeros((2, 0))
    assert dt.nansum(x, axis=1).tolist() == [0, 0] and dt.nanprod(x, axis=1).tolist() == [1, 1]
    assert np.isnan(dt.nanmean(x, axis=1).numpy()).all()
    assert np.isnan(dt.nanvar(x, axis=1).numpy()).all()
    for name in ("nanmin", "nanmax", *PLACES):
        with pytest.raises(dt.ShapeError, match=f"{name}: .*at least one element"):
            getattr(dt, name)(x, axis=1)


@pytest.mark.parametrize("name", REDUCTIONS + RUNNING)
def test_gradients_skip_nan(name: str) -> None:
    a = np.random.default_rng(3).normal(size=(3, 4))
    a[0, 1] = a[2, 2] = np.nan
    x = dt.asarray(np.nan_to_num(a), device="reference").requires_grad_()
    hole = dt.asarray(np.isnan(a), device="reference")

    def f(t: dt.Tensor) -> dt.Tensor:
        found: dt.Tensor = getattr(dt, name)(dt.where(hole, dt.nan, t), axis=1)
        return found

    assert gradcheck(f, x)


def test_wrong_arguments_of_nan_reductions_raise() -> None:
    x = dt.ones((2, 3), device="reference")
    for name in REDUCTIONS + PLACES + RUNNING:
        with pytest.raises(dt.AxisError, match=name):
            getattr(dt, name)(x, axis=2)
        with pytest.raises(dt.DTypeError, match=name):
            getattr(dt, name)([1.0])
    for name in PLACES + RUNNING:
        with pytest.raises(dt.AxisError, match=f"{name}: axis must be one"):
            getattr(dt, name)(x, axis=(0, 1))
    with pytest.raises(dt.ArgumentTypeError, match="nanvar: correction"):
        dt.nanvar(x, correction="a")
