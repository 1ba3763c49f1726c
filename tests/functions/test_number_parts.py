"""modf, frexp, nan_to_num, gcd and lcm against NumPy; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

import math
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

VALUES = np.array([0.0, -0.0, 1.5, -2.25, 7.0, 1e-310, -1e300, math.inf, -math.inf, math.nan])


def assert_same(found: dt.Tensor, want: Any) -> None:
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)
    if want.dtype.kind == "f":
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(found.numpy())[number], np.signbit(want)[number])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_modf_and_frexp_equal_numpy(device: dt.Device, dtype: str) -> None:
    with np.errstate(all="ignore"):
        a = VALUES.astype(dtype)
    x = dt.asarray(a)
    with np.errstate(all="ignore"):
        for name in ("modf", "frexp"):
            for f, w in zip(getattr(dt, name)(x), getattr(np, name)(a), strict=True):
                if name == "frexp" and w.dtype == "i4":
                    # exponents of non-finite values are unspecified
                    w = np.where(np.isfinite(a), w, 0).astype("i4")
                assert_same(f, w)
    m, e = dt.frexp(x)
    assert_same(dt.ldexp(m, e), a)
    for f, w in zip(dt.divmod(x[2:5], 2), np.divmod(a[2:5], 2), strict=True):
        assert_same(f, w)


def test_nan_to_num_equals_numpy(device: dt.Device) -> None:
    for dtype in ("f4", "f8", "f2"):
        with np.errstate(all="ignore"):
            a = VALUES.astype(dtype)
        assert_same(dt.nan_to_num(dt.asarray(a)), np.nan_to_num(a))
        given: dict[str, Any] = {"nan": 2.0, "posinf": 3.0, "neginf": -4.0}
        assert_same(dt.nan_to_num(dt.asarray(a), **given), np.nan_to_num(a, **given))
    assert_same(dt.nan_to_num(dt.asarray([1, 2])), np.array([1, 2]))


def test_gcd_and_lcm_equal_numpy(device: dt.Device) -> None:
    rng = np.random.default_rng(2)
    for d in ("i1", "u2", "i4", "u8"):
        low = np.iinfo(d).min
        x, y = (rng.integers(max(low, -100), 100, 200).astype(d) for _ in range(2))
        x[:4], y[:4] = [0, 0, 12, 1], [0, 5, 0, 1]
        assert_same(dt.gcd(dt.asarray(x), dt.asarray(y)), np.gcd(x, y))
        with np.errstate(all="ignore"):
            assert_same(dt.lcm(dt.asarray(x), dt.asarray(y)), np.lcm(x, y))
    a, b = 7540113804746346429, 4660046610375530309  # Fibonacci numbers: the longest computation
    assert dt.gcd(dt.asarray([a]), b).item() == 1


def test_gradients_of_modf_and_frexp() -> None:
    x = dt.asarray([1.3, -2.6], dtype=dt.float64, device="reference").requires_grad_()
    assert gradcheck(lambda t: dt.modf(t)[0] * t, x)
    assert gradcheck(lambda t: dt.frexp(t)[0], x)
    assert gradcheck(lambda t: dt.nan_to_num(dt.where(t > 0, t, dt.nan), 3.0), x)


def test_wrong_arguments_raise() -> None:
    for name in ("modf", "frexp", "nan_to_num"):
        with pytest.raises(dt.DTypeError, match=name):
            getattr(dt, name)("a")
    with pytest.raises(dt.ArgumentTypeError, match="nan_to_num: posinf"):
        dt.nan_to_num(dt.ones(2, device="reference"), posinf="a")
    with pytest.raises(dt.DTypeError, match="divmod"):
        dt.divmod(dt.ones(2, device="reference"), "a")
