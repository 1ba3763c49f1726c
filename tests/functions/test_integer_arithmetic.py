"""Integer functions whose results need more digits than the operand's dtype has."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def extremes(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    drawn = np.random.default_rng(1).integers(info.min, info.max, 40, dtype=dtype, endpoint=True)
    return np.concatenate([drawn, np.array([info.min, info.max, 0, 5, 15, 16, 25], dtype)])


def rounded(value: int, tens: int) -> int:
    count, rest = divmod(abs(value), tens)
    count += 2 * rest > tens or (2 * rest == tens and count % 2)
    return count * tens if value >= 0 else -count * tens


@pytest.mark.parametrize("dtype", INTEGERS)
def test_round_of_integers_to_tens_is_exact(dtype: str) -> None:
    given = extremes(dtype)
    for decimals in range(-1, -21, -1):
        wanted = [rounded(v, 10**-decimals) for v in given.tolist()]
        wraps = [v & (2 ** (8 * given.itemsize) - 1) for v in wanted]
        made = dt.round(dt.asarray(given), decimals)
        assert made.dtype is dt.asarray(given).dtype
        assert [v & (2 ** (8 * given.itemsize) - 1) for v in made.tolist()] == wraps
    assert dt.round(dt.asarray(given), 2).tolist() == given.tolist()
    out = dt.asarray(given)
    assert dt.round(out, -1, out=out) is out and out[-1].item() == 20


@pytest.mark.parametrize("dtype", INTEGERS)
def test_gradient_and_trapezoid_accept_positions_of_each_dtype(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([1.0, 2.0, 4.0, 8.0])
    for places in ([1, 5, 2, 9], [info.max, info.max - 3, info.max - 1, info.max - 9]):
        shift = np.array([p - places[0] for p in places], "f8")
        at = dt.asarray(np.array(places, dtype))
        made = dt.gradient(dt.asarray(values), at)
        assert isinstance(made, dt.Tensor)
        np.testing.assert_allclose(made.numpy(), np.gradient(values, shift), rtol=1e-14)
        made = dt.trapezoid(dt.asarray(values), at)
        np.testing.assert_allclose(made.numpy(), np.trapezoid(values, shift), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8"])
def test_vander_of_small_integers_does_not_overflow(dtype: str) -> None:
    given = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 3], dtype)
    made = dt.vander(dt.asarray(given), 3)
    assert made.dtype is dt.int64
    np.testing.assert_array_equal(made.numpy(), np.vander(given.astype("i8"), 3))
    made = dt.polyder(dt.asarray(given))
    np.testing.assert_array_equal(made.numpy(), np.polyder(given.astype("i8")))


STATISTICS: dict[str, Callable[[Any, Any], Any]] = {
    "var": lambda np, x: np.var(x), "std": lambda np, x: np.std(x),
    "nanvar": lambda np, x: np.nanvar(x), "nanstd": lambda np, x: np.nanstd(x),
    "mean": lambda np, x: np.mean(x), "median": lambda np, x: np.median(x),
    "cov": lambda np, x: np.cov(x), "gradient": lambda np, x: np.gradient(x),
    "corrcoef": lambda np, x: np.corrcoef(x, x[::-1]), "ptp": lambda np, x: np.ptp(x),
    "average": lambda np, x: np.average(x, weights=[4, 3, 2, 1]),
    "quantile": lambda np, x: np.quantile(x, 0.4), "trapezoid": lambda np, x: np.trapezoid(x),
    "interp": lambda np, x: np.interp(x, x, [1.0, 2.0, 3.0, 4.0]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_of_large_integers_equal_numpy(name: str, dtype: str) -> None:
    given = np.array([2**24 + 1, 2**24 + 2, 2**24 + 3, 2**24 + 8], dtype)
    made = STATISTICS[name](dt, dt.asarray(given))
    assert made.dtype in (dt.float32, dt.asarray(given).dtype)
    wanted = STATISTICS[name](np, given)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_statistics_of_extreme_integers_equal_numpy(dtype: str) -> None:
    given = extremes(dtype)
    for function in ("var", "std", "mean", "median", "cov"):
        made = getattr(dt, function)(dt.asarray(given))
        wanted = getattr(np, function)(given.astype("f8"))
        close = float(np.abs(given.astype("f8")).max()) * 1e-6 if function == "mean" else 0
        np.testing.assert_allclose(made.numpy(), wanted, rtol=3e-7, atol=close, err_msg=function)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1), (4,), (2, 3)])
@pytest.mark.parametrize("rowvar", [True, False])
def test_covariance_of_one_row_or_column_has_numpy_shape(
    shape: tuple[int, ...], rowvar: bool
) -> None:
    x = np.random.default_rng(1).random(shape)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of one observation
        wanted = [np.cov(x, rowvar=rowvar), np.corrcoef(x, rowvar=rowvar)]
    for function, want in zip((dt.cov, dt.corrcoef), wanted, strict=True):
        made = function(dt.asarray(x), rowvar=rowvar)
        assert made.shape == np.shape(want)
        np.testing.assert_allclose(made.numpy(), want, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integers_by_zero_and_to_negative_powers_are_defined(device: dt.Device, dtype: str) -> None:
    x = dt.asarray([7, 1, -1, 0], dtype=dtype, device=device)
    zeros, ones = dt.zeros_like(x), dt.ones_like(x)
    for zero in (zeros, zeros[0]):
        assert (x // zero).tolist() == (x % zero).tolist() == [0, 0, 0, 0]
    for power in (-ones, -ones[0]):
        assert (x**power).tolist() == [0, 1, -1, 0]
    assert (x ** (-2 * ones)).tolist() == [0, 1, 1, 0]
    assert (7 % zeros[0]).item() == 0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integers_divided_by_the_number_zero_warn_as_numpy(device: dt.Device, dtype: str) -> None:
    x = dt.asarray([7, 1, 0], dtype=dtype, device=device)
    for _ in range(2):  # the second is recorded from the caches
        for divide in (operator.floordiv, operator.mod, operator.ifloordiv, dt.floor_divide):
            with pytest.warns(
                RuntimeWarning, match="a division of integers by 0 gives 0"
            ) as caught:
                assert divide(x.copy(), 0).tolist() == [0, 0, 0]
            assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (x // 2).tolist() == [3, 0, 0] and (x % 3).tolist() == [1, 1, 0]
        if dtype != "uint8":
            assert (x // -2).tolist() == [-4, -1, 0] and (x % -3).tolist() == [-2, -2, 0]
        assert (x.astype("f4") // 0)[0].item() == math.inf


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integers_to_a_negative_number_raise_as_the_peers(device: dt.Device, dtype: str) -> None:
    x = dt.asarray([7, 1], dtype=dtype, device=device)
    for power in (operator.pow, dt.pow, operator.ipow, np.power):
        with pytest.raises((dt.ArgumentError, dt.ValueOverflowError), match="pow"):
            power(x, -1)
    assert (x**2).tolist() == [49, 1] and (x**0).tolist() == [1, 1]
    assert (x.astype("f8") ** -1).tolist() == [1 / 7, 1.0]
    with pytest.raises(dt.ValueOverflowError, match=r"does not fit int8 \(-128\.\.127\)"):
        dt.asarray([1], dtype=dt.int8, device=device) // -300
