"""Weighted means, covariances and ranges against NumPy; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, call-overload"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

RNG = np.random.default_rng(5)
A = RNG.normal(size=(4, 7))
B = RNG.normal(size=(2, 7))


def assert_close(found: Any, want: Any, rtol: float = 1e-12) -> None:
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_allclose(found.numpy(), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_average_and_ptp_equal_numpy(device: dt.Device, axis: Any) -> None:
    x, w = dt.asarray(A), np.abs(A[::-1])
    assert_close(dt.ptp(x, axis=axis), np.ptp(A, axis=axis))
    assert_close(dt.ptp(x, axis=axis, keepdims=True), np.ptp(A, axis=axis, keepdims=True))
    assert_close(dt.average(x, axis=axis), np.average(A, axis=axis))
    assert_close(
        dt.average(x, axis=axis, weights=dt.asarray(w)), np.average(A, axis=axis, weights=w)
    )
    for weights in (None, w):
        found = dt.average(x, axis, weights, returned=True, keepdims=True)
        want = np.average(A, axis, weights, returned=True, keepdims=True)
        for f, v in zip(found, want, strict=True):
            assert_close(f, v)


def test_average_of_integers_and_with_a_weight_vector(device: dt.Device) -> None:
    ints = np.arange(6).reshape(2, 3)
    found = dt.average(dt.asarray(ints), axis=1, weights=[1, 2, 3])
    assert_close(found, np.average(ints, axis=1, weights=[1, 2, 3]).astype("f4"), 1e-6)
    assert_close(dt.average(dt.asarray(A), 1, np.arange(7.0)), np.average(A, 1, np.arange(7.0)))


@pytest.mark.parametrize("options", [
    {}, {"correction": 0}, {"correction": 2}, {"rowvar": False}, {"fweights": np.arange(7)},
    {"aweights": np.arange(7.0) + 0.5}, {"aweights": np.arange(7.0), "fweights": np.arange(7)},
    {"aweights": np.arange(7.0), "correction": 0},
], ids=str)  # fmt: skip
def test_covariances_equal_numpy(device: dt.Device, options: dict[str, Any]) -> None:
    numpys = dict(options)
    if "correction" in numpys:
        numpys["ddof"] = numpys.pop("correction")
    a, b = (A.T, B.T) if options.get("rowvar") is False else (A, B)
    with dt.vendor_products(False):
        assert_close(dt.cov(dt.asarray(a), **options), np.cov(a, **numpys))
        assert_close(dt.cov(dt.asarray(a), dt.asarray(b), **options), np.cov(a, b, **numpys))
    if not options:
        assert_close(dt.corrcoef(dt.asarray(a)), np.corrcoef(a))
        assert_close(dt.corrcoef(dt.asarray(a[0]), b[0]), np.corrcoef(a[0], b[0]))
        assert_close(dt.cov(dt.asarray(a[0])), np.cov(a[0]))
        assert_close(dt.corrcoef(dt.asarray(a[0])), np.corrcoef(a[0]))


@pytest.mark.parametrize("name", ["fweights", "aweights"])
def test_covariance_with_a_negative_weight_in_a_tensor_is_nan(device: dt.Device, name: str) -> None:
    weights = {name: dt.asarray([2, -1, 1], device=device)}
    assert dt.isnan(dt.cov(dt.asarray(A[:2, :3], device=device), **weights)).all().item()
    jitted = dt.jit(lambda x, w: dt.cov(x, **{name: w}))
    assert dt.isnan(jitted(dt.asarray(A[:2, :3], device=device), weights[name])).all().item()


def test_gradients_of_moments() -> None:
    x = dt.asarray(A[:3, :4], device="reference").requires_grad_()
    w = dt.asarray(np.abs(A[:3, 1:5]), device="reference").requires_grad_()
    assert gradcheck(lambda t, v: dt.average(t, axis=1, weights=v), (x, w))
    assert gradcheck(lambda t: dt.cov(t), x)
    assert gradcheck(lambda t: dt.cov(t, aweights=t[0] ** 2), x)
    assert gradcheck(lambda t: dt.corrcoef(t)[0, 1:], x)
    assert gradcheck(lambda t: dt.ptp(t, axis=0), x)


def test_wrong_arguments_of_moments_raise() -> None:
    x = dt.ones((2, 3), device="reference")
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: dt.average(x, weights=[1, 2]), dt.ShapeError, "average: weights"),
        (lambda: dt.average(x, axis=5), dt.AxisError, "average"),
        (lambda: dt.average(x, weights="a"), dt.DTypeError, "average"),
        (lambda: dt.ptp(x[:0]), dt.ShapeError, "ptp"),
        (lambda: dt.ptp(x > 0), dt.DTypeError, "ptp"),
        (lambda: dt.cov(dt.ones((2, 2, 2), device="reference")), dt.ShapeError, "cov: expected"),
        (lambda: dt.cov(x, fweights=[1.5, 1, 1]), dt.ArgumentError, "fweights must be integers"),
        (lambda: dt.cov(x, fweights=[2, -1, 1]), dt.ArgumentError, "cov: fweights must not be"),
        (lambda: dt.cov(x, aweights=np.array([2, -0.5, 1])), dt.ArgumentError, "got -0.5"),
        (lambda: dt.cov(x, aweights=[1.5]), dt.ShapeError, "cov: aweights"),
        (lambda: dt.cov(x, correction="a"), dt.ArgumentTypeError, "cov: correction"),
        (lambda: dt.corrcoef(x, dt.ones((2, 4), device="reference")), dt.ShapeError, "corrcoef"),
    ]
    for call, error, says in calls:
        with pytest.raises(error, match=says):
            call()
