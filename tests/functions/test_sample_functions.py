"""Functions of samples against NumPy and SciPy: slopes, areas, interpolation, convolution,
polynomials, windows.
"""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, call-overload"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
import scipy.signal
from dovetail.autograd import gradcheck

A = np.random.default_rng(4).normal(size=(5, 6))
X = np.cumsum(np.random.default_rng(5).random(6) + 0.1)


def assert_close(found: Any, want: Any, rtol: float = 1e-12) -> None:
    if isinstance(want, tuple):
        for f, w in zip(found, want, strict=True):
            assert_close(f, w)
        return
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_allclose(found.numpy(), want, rtol=rtol, atol=rtol)


def test_diff_and_trapezoid_equal_numpy(device: dt.Device) -> None:
    x = dt.asarray(A)
    assert_close(dt.ediff1d(x), np.ediff1d(A))
    assert_close(
        dt.ediff1d(x, [1.0, 2.0], to_begin=3 * np.ones(1)), np.ediff1d(A, [1.0, 2.0], [3.0])
    )
    assert_close(dt.trapezoid(x), np.trapezoid(A))
    assert_close(dt.trapezoid(x, X), np.trapezoid(A, X))
    assert_close(dt.trapezoid(x, np.sort(A), axis=1), np.trapezoid(A, np.sort(A), axis=1))
    assert_close(dt.trapezoid(x, dx=0.5, axis=0), np.trapezoid(A, dx=0.5, axis=0))
    assert dt.trapezoid(dt.zeros((2, 0))).tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["i8", "f8", "c16"])
def test_vander_equals_numpy(device: dt.Device, kind: str) -> None:
    a = (A[0] * 4).astype(kind)
    for given in ((), (0,), (1,), (4,)):
        for increasing in (False, True):
            found = dt.vander(dt.asarray(a), *given, increasing=increasing)
            assert_close(found, np.vander(a, *given, increasing=increasing))


@pytest.mark.parametrize("deg", [0, 1, 3])
def test_polyfit_equals_numpy(device: dt.Device, deg: int) -> None:
    x, y, w = dt.asarray(X), A[0], np.arange(1.0, 7.0)
    assert_close(dt.polyfit(x, y, deg), np.polyfit(X, y, deg), 1e-9)
    assert_close(dt.polyfit(x, A[:3].T, deg), np.polyfit(X, A[:3].T, deg), 1e-9)
    assert_close(dt.polyfit(x, y, deg, w=w), np.polyfit(X, y, deg, w=w), 1e-9)
    assert_close(dt.polyfit(x, A[:3].T, deg, w=w), np.polyfit(X, A[:3].T, deg, w=w), 1e-9)


def test_polyfit_has_gradients_and_errors() -> None:
    x, y = (dt.asarray(a, device="reference").requires_grad_() for a in (X, A[0]))
    assert gradcheck(lambda s, t: dt.polyfit(s, t, 2), (x, y))
    assert dt.polyfit([1, 2, 3], dt.asarray([1, 2, 3]), 1).dtype is dt.float32
    with pytest.raises(dt.ShapeError, match="polyfit: y must be"):
        dt.polyfit(x, y[:3], 1)
    with pytest.raises(dt.LinAlgError):
        dt.polyfit(x * dt.nan, y, 1)


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_equals_numpy(device: dt.Device, order: int) -> None:
    x = dt.asarray(A)
    for args in ((), (0.5,), (0.5, 2.0), (X[:5], X)):
        assert_close(
            dt.gradient(x, *args, edge_order=order), tuple(np.gradient(A, *args, edge_order=order))
        )
    assert_close(
        dt.gradient(x, X, axis=1, edge_order=order), np.gradient(A, X, axis=1, edge_order=order)
    )
    assert_close(dt.gradient(x[:3, 0], edge_order=order), np.gradient(A[:3, 0], edge_order=order))


def test_interp_equals_numpy(device: dt.Device) -> None:
    at = np.concatenate([np.linspace(-1, 5, 40), X, [np.inf, -np.inf]])
    assert_close(dt.interp(dt.asarray(at), X, A[0]), np.interp(at, X, A[0]))
    assert_close(dt.interp(dt.asarray(at), X, A[0], -9.0, 9.0), np.interp(at, X, A[0], -9.0, 9.0))
    turned = X[::-1].copy()
    assert_close(dt.interp(dt.asarray(at[:-2]), turned, A[0], period=2.5),
          np.interp(at[:-2], turned, A[0], period=2.5))  # fmt: skip
    assert_close(dt.interp(dt.asarray(at), [1.0], [7.0]), np.interp(at, [1.0], [7.0]))
    assert np.isnan(dt.interp(dt.asarray(np.nan), X, A[0]).item())


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_and_correlate_equal_numpy(device: dt.Device, mode: Any) -> None:
    for n, m in ((7, 3), (3, 7), (6, 4), (5, 1), (4, 4), (2, 5)):
        a, b = np.arange(1, n + 1), np.arange(m) - 2
        for name in ("convolve", "correlate"):
            assert_close(
                getattr(dt, name)(dt.asarray(a), b, mode=mode), getattr(np, name)(a, b, mode)
            )
            with dt.vendor_products(False):
                found = getattr(dt, name)(dt.asarray(a * 0.5), b * 1.5, mode=mode)
            assert_close(found, getattr(np, name)(a * 0.5, b * 1.5, mode))


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_value_that_is_not_finite_spreads_to_its_windows_only(
    device: dt.Device, name: str, value: float
) -> None:
    for n, m, position in ((7, 3, 1), (7, 3, 2), (4, 4, 0), (3, 6, 1)):
        a, b = np.arange(1.0, n + 1), np.arange(1.0, m + 1)
        for spoilt in (a, b):
            spoilt[position] = value
            for mode in ("full", "same", "valid"):
                want = getattr(np, name)(a, b, mode)
                got = getattr(dt, name)(dt.asarray(a), dt.asarray(b), mode=mode)
                assert_close(got, want)
            spoilt[position] = 1


def test_polyval_equals_numpy(device: dt.Device) -> None:
    for p in ([3, 0, 1], [2.5], [1.0, -1.0, 0.5, 2.0]):
        assert_close(dt.polyval(p, dt.asarray(A)), np.polyval(np.array(p, "f8"), A))
    assert dt.polyval(dt.asarray([1, 2]), 3).item() == 5


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
def test_windows_equal_scipy(device: dt.Device, name: str) -> None:
    rule = getattr(scipy.signal.windows, name)
    for n in (0, 1, 2, 5, 8):
        for sym in (True, False):
            assert_close(getattr(dt, name)(n, sym=sym, dtype="float64"), rule(n, sym), 1e-14)
    for beta in (0.0, 5.0, 14.0):
        want = scipy.signal.windows.kaiser(9, beta)
        assert_close(dt.kaiser(9, beta, dtype="float64"), want, 1e-14)
    assert getattr(dt, name)(4).dtype is dt.float32


def test_gradients_of_sampled_functions() -> None:
    x = dt.asarray(A[0], device="reference").requires_grad_()
    y = dt.asarray(A[1], device="reference").requires_grad_()
    assert gradcheck(lambda t: dt.trapezoid(t, X), x)
    assert gradcheck(lambda t: dt.gradient(t, X, edge_order=2), x)
    assert gradcheck(
        lambda v: dt.interp(dt.asarray([0.3, 1.7], device="reference") + 0 * v[0], X, v), y
    )
    assert gradcheck(lambda a, b: dt.convolve(a, b, mode="same"), (x, y))
    assert gradcheck(lambda p: dt.polyval(p, x.detach()), y)


def test_wrong_arguments_of_sampled_functions_raise() -> None:
    x = dt.ones((2, 3), device="reference")
    calls: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: dt.trapezoid(x, [1.0]),
            dt.ShapeError,
            "trapezoid: expected a coordinate for each of 3",
        ),
        (lambda: dt.gradient(x, 1.0, 1.0, 1.0), dt.ArgumentError, "gradient: .*got 3"),
        (lambda: dt.gradient(x[:1]), dt.ShapeError, "gradient: .*got 1"),
        (lambda: dt.gradient(x, edge_order=3), dt.ArgumentError, "gradient: edge_order"),
        (lambda: dt.interp(x, [1.0], [1.0, 2.0]), dt.ShapeError, "interp: xp and fp must"),
        (lambda: dt.interp(x, x, [1.0]), dt.ShapeError, "interp: xp must be a vector"),
        (lambda: dt.interp(x, [1.0], [2.0], period=0), dt.ArgumentError, "interp: period"),
        (lambda: dt.convolve(x, [1.0]), dt.ShapeError, "convolve: x1 must be a vector"),
        (lambda: dt.convolve(x[0], x[0, :0]), dt.ShapeError, "convolve: .*got 3 and 0"),
        (lambda: dt.correlate(x[0], x[0], mode="a"), dt.ArgumentError, "correlate: mode"),
        (lambda: dt.polyval(x, x), dt.ShapeError, "polyval: p must be a vector"),
        (lambda: dt.hann(-1), dt.ArgumentError, "hann: n"),
        (lambda: dt.kaiser(3, "a"), dt.ArgumentTypeError, "kaiser: beta"),
    ]
    for call, error, says in calls:
        with pytest.raises(error, match=says):
            call()


def test_trapezoid_of_no_samples_is_zero(device: dt.Device) -> None:
    y, x = dt.zeros((2, 0)), dt.zeros(0)
    assert dt.trapezoid(y, x).tolist() == [0, 0] and dt.trapezoid(x, x).tolist() == 0
