"""`weights=` of quantiles against NumPy and by definition; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

import math
import warnings
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

NAMES = ["quantile", "percentile", "nanquantile", "nanpercentile"]


@pytest.mark.parametrize("name", NAMES)
def test_weighted_quantiles_equal_numpy(device: dt.Device, name: str) -> None:
    rng = np.random.default_rng(2)
    q = np.array([0, 0.1, 0.5, 0.9, 1]) * (100 if "percent" in name else 1)
    for dtype in ("i4", "f8"):
        a = rng.integers(0, 9, (3, 4)).astype(dtype)
        if dtype == "f8":
            a[0, 1] = np.nan
        w = rng.integers(0, 3, (3, 4)) + np.eye(3, 4, dtype=int)
        for axis, weights in [(None, w), (1, w), (0, w), (1, w[0]), ((1, 0), w.T)]:
            options: dict[str, Any] = {"axis": axis, "method": "inverted_cdf"}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                full = np.broadcast_to(w[0], a.shape) if weights.ndim == 1 else weights  # for NumPy
                want = getattr(np, name)(a, q, weights=full, **options)
            found = getattr(dt, name)(dt.asarray(a, device=device), q, weights=weights, **options)
            assert found.dtype.name == a.dtype.name
            np.testing.assert_array_equal(found.numpy(), want)


def test_weights_repeat_elements(device: dt.Device) -> None:
    x = dt.asarray([10.0, 30.0, 20.0], device=device)
    found = dt.quantile(x, [0.0, 0.5, 1.0], weights=[1, 0, 3], method="inverted_cdf")
    assert found.tolist() == [10.0, 20.0, 20.0]
    y = dt.asarray([10.0, dt.nan], device=device)
    assert dt.nanpercentile(y, 50, weights=[1, 5], method="inverted_cdf").item() == 10.0


def test_weighted_quantile_has_a_gradient() -> None:
    x = dt.asarray([1.0, 4.0, 2.0], dtype=dt.float64, requires_grad=True)
    w = [1.0, 2.0, 1.0]
    assert gradcheck(lambda t: dt.quantile(t, [0.2, 0.6], weights=w, method="inverted_cdf"), x)


def test_bad_weights_raise() -> None:
    x = dt.ones((2, 3))
    with pytest.raises(dt.ArgumentError, match='method must be "inverted_cdf" with weights'):
        dt.quantile(x, 0.5, weights=x)
    with pytest.raises(dt.ShapeError, match="quantile: weights must have the sizes of axis"):
        dt.quantile(x, 0.5, axis=0, weights=[1, 2, 3], method="inverted_cdf")


@pytest.mark.parametrize("weights", [[0, 0, 0], [-1, 2, 1], [math.nan, 2, 1], [math.inf, 1, 1]])
def test_invalid_weights_give_nan(device: dt.Device, weights: list[float]) -> None:
    """NumPy raises; a device that is not read cannot."""
    x, w = dt.asarray([[3.0, 1.0, 2.0]] * 2), dt.asarray([weights, [1.0, 1.0, 1.0]])
    for quantile in (dt.quantile, dt.nanquantile):
        found = quantile(x, 0.5, axis=1, weights=w, method="inverted_cdf").tolist()
        assert math.isnan(found[0]) and found[1] == 2.0
