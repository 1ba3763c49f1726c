"""Medians and quantiles against NumPy: methods, axes, dtypes, NaN; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, call-overload"
from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck
from dovetail.functions.reductions import order_statistics

AXES = [None, 0, 1, -1, (0, 2), (0, 1, 2)]
METHODS = [
    "linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased",
    "normal_unbiased", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf",
]  # fmt: skip
Q = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.625, 0.9, 1.0]


def sample(dtype: str, holes: bool = False) -> Any:
    rng = np.random.default_rng(11)
    a = rng.normal(0, 20, (3, 4, 5)).astype(dtype)
    if holes:
        a[rng.random(a.shape) < 0.2] = np.nan
        a[0, :, 1] = np.nan
    return a


def assert_equals_numpy(name: str, a: Any, found: dt.Tensor, *args: Any, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.asarray(getattr(np, name)(a, *args, **options))
    if want.dtype.kind == "f":  # dovetail's q has the tensor's dtype, or the default one
        want = want.astype(a.dtype if a.dtype.kind == "f" else "f4")
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    close = 3e-6 if want.dtype != "f8" else 1e-13
    np.testing.assert_allclose(found.numpy(), want, rtol=close, atol=close)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_equal_numpy(device: dt.Device, name: str, axis: Any) -> None:
    for dtype in ("float32", "float64", "int16"):
        for holes in (False, True)[: 1 + (dtype[0] == "f")]:
            a = sample(dtype, holes)
            found = getattr(dt, name)(dt.asarray(a), axis=axis, keepdims=holes)
            assert_equals_numpy(name, a, found, axis=axis, keepdims=holes)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_equal_numpy(device: dt.Device, name: str, method: str) -> None:
    q = np.array(Q)
    f = getattr(dt, name)
    for dtype in ("float64", "int16"):
        for holes in (False, True)[: 1 + (dtype[0] == "f")]:
            a = sample(dtype, holes)
            x = dt.asarray(a)
            for axis in (None, 1, (0, 2)):
                assert_equals_numpy(
                    name, a, f(x, q, axis=axis, method=method), q, axis=axis, method=method
                )
            keep: dict[str, Any] = {"axis": 2, "method": method, "keepdims": True}
            assert_equals_numpy(
                name, a, f(x, dt.asarray(q.reshape(2, 4)), **keep), q.reshape(2, 4), **keep
            )
            assert_equals_numpy(
                name, a, f(x, 0.3, axis=0, method=method), 0.3, axis=0, method=method
            )


@pytest.mark.parametrize("n", [1, 2, 3, 8, 1000, 5001])
def test_quantiles_of_many_sizes_equal_numpy(device: dt.Device, n: int) -> None:
    a = np.random.default_rng(n).normal(size=n).astype("f4")
    for name in ("median", "nanmedian"):
        assert_equals_numpy(name, a, getattr(dt, name)(dt.asarray(a)))
    assert_equals_numpy("percentile", a, dt.percentile(dt.asarray(a), [1, 50, 99]), [1, 50, 99])
    assert_equals_numpy("nanpercentile", a, dt.nanpercentile(dt.asarray(a), 12.5), 12.5)


LARGE = 101  # minimum row length for counting digits instead of sorting in these tests


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count digits in rows of LARGE elements too."""
    monkeypatch.setattr(order_statistics, "SELECT_ELEMENTS_MIN", LARGE)


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i4", "u8", "?"])
def test_long_rows_are_counted_instead_of_sorted(device: dt.Device, dtype: str) -> None:
    rng = np.random.default_rng(5)
    quick = device.type == "cpu"
    for n in (LARGE, 9000) if quick else (LARGE + 1,):
        a = rng.normal(0, 1000, (2, n)) if dtype != "?" else rng.random((2, n)) < 0.5
        a = a.astype("i8" if dtype[0] in "iu" else dtype).astype(dtype)
        x, ordered = dt.asarray(a), np.sort(a, axis=1)
        for q in (0.0, 0.3, 1.0) if quick else (0.5,):
            for method, place in (("lower", np.floor), ("higher", np.ceil)):
                found = dt.quantile(x, q, axis=1, method=method)
                want = ordered[:, int(place((n - 1) * q))]
                np.testing.assert_array_equal(found.numpy(), want)
        if dtype in ("f4", "f8"):
            assert_equals_numpy("quantile", a, dt.quantile(x, 0.3, axis=1), 0.3, axis=1)


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i4", "i8", "u8", "?"])
def test_quantiles_between_elements_of_long_rows_equal_numpy(device: dt.Device, dtype: str) -> None:
    rng = np.random.default_rng(7)
    for n in (LARGE + 1, 9000, 20_003) if device.type == "cpu" else (LARGE + 1,):
        few = rng.integers(0, 2 if dtype == "?" else 5, (3, n))  # the next one is often equal
        few[1, : n // 2], few[1, n // 2 :] = 0, 1
        many = np.abs(rng.normal(0, 30, (2, n)))
        for a in (few.astype(dtype), many.astype(dtype), np.ones((2, n), dtype)):
            for q in (0.5, 1.0, np.nextafter(1.0, 0.0)):
                want = np.quantile(a.astype("f8"), q, axis=1)
                found = dt.quantile(dt.asarray(a), q, axis=1)
                close = 1e-3 if dtype == "f2" else 1e-6
                np.testing.assert_allclose(found.numpy(), want, rtol=close)
        assert_equals_numpy("median", few.astype("f4"), dt.median(dt.asarray(few.astype("f4"))))


@pytest.mark.usefixtures("counting")
def test_medians_of_long_rows_can_be_saved(device: dt.Device, tmp_path: Path) -> None:
    x = dt.asarray(np.random.default_rng(0).normal(size=9000 if device.type == "cpu" else LARGE))
    f = dt.jit(lambda x: dt.median(x))
    wanted = f(x).item()
    dt.save_function(f, tmp_path / "f")
    assert dt.load_function(tmp_path / "f")(x).item() == wanted


@pytest.mark.usefixtures("counting")
def test_zero_after_an_element_of_long_rows_is_positive(device: dt.Device) -> None:
    a = np.full(LARGE + 1, -0.0, "f4")
    a[: LARGE // 2 + 1] = -1.0
    found = dt.quantile(dt.asarray(a), 0.5, method="averaged_inverted_cdf")
    assert found.item() == -0.5
    found = dt.quantile(dt.asarray(a), 0.505, method="averaged_inverted_cdf").numpy()
    assert found == 0 and not np.signbit(found)


@pytest.mark.usefixtures("counting")
def test_long_rows_with_equal_elements_zeros_and_nan(device: dt.Device) -> None:
    a = np.zeros(LARGE, "f4")
    a[::2] = -0.0
    assert dt.median(dt.asarray(a)).item() == 0
    a[5] = np.nan
    assert np.isnan(dt.median(dt.asarray(a)).item())
    assert dt.nanmedian(dt.asarray(a)).item() == 0
    b = np.full(LARGE + 1, np.inf)
    b[: LARGE // 2 + 1] = -1.0
    assert dt.quantile(dt.asarray(b), 0.5, method="lower").item() == -1


def test_infinite_neighbors_are_kept(device: dt.Device) -> None:
    x = dt.asarray([np.inf, np.inf, -np.inf, 1.0])
    assert dt.quantile(x, [0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert dt.median(dt.asarray([np.inf, np.inf])).item() == np.inf
    assert dt.quantile(dt.asarray([1.0, np.inf]), 0.0).item() == 1.0
    assert np.isnan(dt.median(dt.asarray([1.0, np.nan, 2.0])).item())
    assert np.isnan(dt.nanmedian(dt.asarray([np.nan, np.nan])).item())


def test_median_of_halves_does_not_overflow(device: dt.Device) -> None:
    x = dt.asarray([60000.0, 60000.0, 65504.0, 65504.0], dtype="float16")
    assert dt.median(x).tolist() == 62752.0 and dt.median(x).dtype is dt.float16


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_gradients_go_to_the_neighbors(name: str) -> None:
    x = dt.asarray(np.random.default_rng(3).normal(size=(3, 4)), device="reference")
    x.requires_grad_()
    assert gradcheck(lambda t: getattr(dt, name)(t, axis=1), x)
    assert gradcheck(lambda t: dt.quantile(t, [0.2, 0.9], axis=0), x)
    assert gradcheck(lambda t: dt.nanquantile(t, [0.2, 0.9]), x)


@pytest.mark.parametrize("q", [0.3, [0.2, 0.9]])
def test_gradient_of_a_nan_quantile_goes_to_the_last_nan(q: Any, device: dt.Device) -> None:
    x = dt.asarray([[1.0, np.nan, 3.0, np.nan, 2.0], [5.0, 1.0, 2.0, 4.0, 3.0]]).requires_grad_()
    found = [dt.quantile(x, q, axis=1), dt.percentile(x, np.multiply(q, 100), axis=1)]
    for y in [*found, dt.median(x, axis=1)]:
        assert np.isnan(y.numpy()[..., 0]).all() and np.isfinite(y.numpy()[..., 1]).all()
        count = y.size / 2
        (g,) = dt.autograd.grad(y.sum(), [x])
        assert g[0].tolist() == [0, 0, 0, count, 0]
        assert g[1].sum().item() == pytest.approx(count)


def test_wrong_quantiles_raise() -> None:
    x = dt.ones((2, 3), device="reference")
    for name, high in (("quantile", 1), ("nanquantile", 1), ("percentile", 100)):
        f = getattr(dt, name)
        for q in (-0.1, high * 1.01, [0.5, np.nan]):
            with pytest.raises(dt.ArgumentError, match=rf"{name}: q must be between 0 and {high}"):
                f(x, q)
        with pytest.raises(dt.ArgumentTypeError, match=f"{name}: q must be numbers"):
            f(x, "a")
        with pytest.raises(dt.ArgumentError, match=f"{name}: method"):
            f(x, 0.5, method="best")
        with pytest.raises(dt.AxisError, match=name):
            f(x, 0.5, axis=2)
        with pytest.raises(dt.ShapeError, match=f"{name}: .*at least one element"):
            f(dt.ones((2, 0), device="reference"), 0.5)
    with pytest.raises(dt.ShapeError, match=r"median: .*at least one element"):
        dt.median(dt.ones(0, device="reference"))


@pytest.mark.parametrize("d", [dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.int32])
def test_repeated_quantiles_of_one_probability_have_the_bits_of_several(d: dt.DType) -> None:
    for seed in range(4):  # the third call replays a template
        a = np.random.default_rng(seed).standard_normal((7, 50)) * 100
        x = dt.asarray(a, device="cpu").astype(d)
        for q in (0.0, 0.1, 1 / 3, 0.5, 0.977, 1.0):
            for axis in (None, 0, 1):
                expected = dt.quantile(x, [q, 0.25], axis=axis)[0]
                percent = dt.percentile(x, [100 * q, 25], axis=axis)[0]
                assert dt.array_equal(dt.quantile(x, q, axis=axis), expected)
                assert dt.array_equal(dt.percentile(x, 100 * q, axis=axis), percent)
        assert dt.array_equal(dt.median(x, axis=1), dt.quantile(x, [0.5, 1.0], axis=1)[0])
        for _ in range(2):
            with pytest.raises(dt.ArgumentError, match="percentile: q must be between 0 and 100"):
                dt.percentile(x, 101)
