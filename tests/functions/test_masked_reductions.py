"""`where=` and `initial=` of reductions, against NumPy and by definition."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

WITH_INITIAL = ["sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin"]
MASKED = ["mean", "std", "var", "any", "all", "nanmean", "nanstd", "nanvar"]
NEEDS_INITIAL = ["max", "min", "nanmax", "nanmin"]


def sample(dtype: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 5, shape).astype(dtype)
    if a.dtype.kind == "f" and a.size > 2:
        a.flat[1] = np.nan
    return a, rng.random(shape) < 0.6


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float16", "float64"])
@pytest.mark.parametrize("name", WITH_INITIAL + MASKED)
def test_masked_reductions_equal_numpy(
    device: dt.Device, name: str, dtype: str, thinned: Callable[..., Any]
) -> None:
    shapes = [((3, 4), -1), ((3, 4), None), ((0, 3), 0), ((2, 3, 2), (0, 2)), ((), None)]
    for shape, axis in thinned(shapes, 2):
        a, mask = sample(dtype, shape)
        first = {"initial": a.dtype.type(1)} if name in WITH_INITIAL else {}
        for where in (mask, mask[..., :1] if shape else mask, False, True):
            if not shape and where is not True:
                continue  # NumPy's nanmax then returns NaN instead of `initial`
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = np.asarray(getattr(np, name)(a, axis=axis, where=where, **first))
            x = dt.asarray(a, device=device)
            found = getattr(dt, name)(x, axis=axis, where=where, **first)
            assert found.shape == want.shape
            if a.dtype.kind == "f" or name in [*WITH_INITIAL, "any", "all"]:
                assert found.dtype.name == want.dtype.name
            np.testing.assert_allclose(
                found.numpy(), want, rtol=4e-3 if dtype == "float16" else 1e-6
            )


def test_where_leaves_elements_out(device: dt.Device) -> None:
    x = dt.asarray([1.0, dt.nan, 5.0, 2.0], device=device)
    present = [True, False, True, True]
    assert dt.sum(x, where=present).item() == 8.0
    assert x.prod(where=present, initial=2.0).item() == 20.0
    assert x.mean(where=dt.asarray([True, False, True, False], device=device)).item() == 3.0
    assert x.var(where=dt.asarray([True, False, True, False], device=device)).item() == 4.0
    assert dt.std(x, where=[True, False, True, False]).item() == 2.0
    assert x.max(where=present, initial=-dt.inf).item() == 5.0
    assert dt.any(x > 4, where=[True, True, False, True]).item() is False
    assert dt.all(x > 0, where=present).item() is True
    assert np.isnan(dt.mean(x, where=False).item())


def test_initial_is_the_result_of_no_elements(device: dt.Device) -> None:
    none = dt.zeros((0, 2), dtype=dt.int32, device=device)
    assert none.max(axis=0, initial=7).tolist() == [7, 7]
    assert none.min(initial=7, keepdims=True).tolist() == [[7]]
    assert dt.nanmax(none, axis=0, initial=3).tolist() == [3, 3]
    assert dt.nanmin(dt.asarray([dt.nan], device=device), initial=3.0).item() == 3.0
    assert none.sum(initial=4).item() == 4
    assert none.sum(initial=2.5).item() == 2  # as NumPy: in the dtype of the result
    assert dt.sum(dt.asarray([2, 3], device=device), initial=4, dtype=dt.float32).item() == 9.0


def test_half_sum_with_initial_is_rounded_once(device: dt.Device) -> None:
    x = dt.full((100,), 700.0, dtype=dt.float16, device=device)
    assert x.sum(initial=-60000.0).item() == 10000.0  # 70000 is beyond float16


def test_masked_reductions_write_into_out(device: dt.Device) -> None:
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    out = dt.zeros((2,), device=device)
    for name, want in [("sum", [2.0, 3.0]), ("mean", [2.0, 3.0]), ("var", [0.0, 0.0])]:
        result = getattr(dt, name)(x, axis=1, where=[[False, True], [True, False]], out=out)
        assert result is out and out.tolist() == want


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "nanmean", "max"])
def test_masked_gradients_equal_finite_differences(name: str) -> None:
    x = dt.asarray([[1.0, 2.5, -1.0], [0.5, 3.0, 2.0]], dtype=dt.float64, requires_grad=True)
    mask = dt.asarray([[True, False, True], [True, True, True]])
    first = {"initial": 0.25} if name in WITH_INITIAL else {}
    assert gradcheck(lambda t: getattr(dt, name)(t, axis=1, where=mask, **first), x)


def test_masked_nan_gets_no_gradient() -> None:
    x = dt.asarray([1.0, dt.nan, 3.0], requires_grad=True)
    dt.var(x, where=x == x).backward()
    assert x.grad is not None and x.grad.tolist() == [-1.0, 0.0, 1.0]


def test_masked_reductions_work_under_jit_and_vmap() -> None:
    x = dt.reshape(dt.arange(6, dtype=dt.float32), (2, 3))
    mask = dt.asarray([[True, False, True], [False, True, True]])
    f = dt.jit(lambda t, m: dt.mean(t, axis=-1, where=m) + t.max(axis=-1, where=m, initial=0.0))
    assert f(x, mask).tolist() == [3.0, 9.5] == f(x, mask).tolist()
    g = dt.vmap(lambda t, m: dt.sum(t, where=m, initial=1.0))
    assert g(x, mask).tolist() == [3.0, 10.0]


def test_numpy_reductions_of_tensors_take_where_and_initial() -> None:
    x = dt.asarray([1.0, 2.0, 4.0])
    mask = np.array([True, False, True])
    assert np.sum(x, where=mask, initial=1.0).item() == 6.0
    assert np.max(x, where=mask, initial=0.0).item() == 4.0
    assert np.mean(x, where=mask).item() == 2.5
    assert np.std(x, where=mask).item() == 1.5
    assert np.nansum(x, where=mask).item() == 5.0
    assert np.any(x, where=mask).item() is True
    assert np.add.reduce(x, where=mask, initial=1.0).item() == 6.0


@pytest.mark.parametrize("name", NEEDS_INITIAL)
def test_extremes_with_where_need_initial(name: str) -> None:
    with pytest.raises(dt.ArgumentError, match="where= needs initial="):
        getattr(dt, name)(dt.ones(2), where=[True, False])


def test_bad_masks_raise() -> None:
    x = dt.ones((2, 3))
    with pytest.raises(dt.DTypeError, match="sum: where must be bool, got int64"):
        x.sum(where=dt.asarray([1, 0, 1]))
    with pytest.raises(dt.ShapeError, match="where must broadcast to the shape of x"):
        x.mean(where=dt.ones((2, 2, 3), dtype=dt.bool_))
    with pytest.raises(dt.ShapeError, match="any: where must broadcast"):
        x.any(where=[True, False])
