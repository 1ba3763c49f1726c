"""Linear interpolation in every function that uses it: ends, infinities, overflow."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.elementwise.lerp import lerp

INF, NAN = np.inf, np.nan
METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def assert_same(made: dt.Tensor, wanted: object) -> None:
    np.testing.assert_array_equal(made.numpy(), np.asarray(wanted, made.numpy().dtype))


def lerp_of(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    a, b, t = np.broadcast_arrays(a, b, t)
    return lerp(*[dt.asarray(x.copy(), device="cpu") for x in (a, b, t)]).numpy()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_lerp_is_exact_at_the_ends_and_monotone(dtype: str) -> None:
    rng = np.random.default_rng(1)
    scale = 10.0 ** rng.integers(-9, 9, (2, 2000, 1))
    a, b = np.sort((rng.normal(size=(2, 2000, 1)) * scale).astype(dtype), axis=0)
    half, none, one = (np.array(v, dtype) for v in (0.5, 0, 1))
    middle = np.array([np.nextafter(half, none), half, np.nextafter(half, one)], dtype)
    t = np.sort(np.concatenate([[none, one], middle, rng.random(20).astype(dtype)]))
    rising, falling = lerp_of(a, b, t), lerp_of(b, a, t)
    assert (rising[:, :1] == a).all() and (rising[:, -1:] == b).all()
    assert (np.diff(rising, axis=1) >= 0).all() and (np.diff(falling, axis=1) <= 0).all()


def test_lerp_of_infinities_and_overflow() -> None:
    t = np.array([0, 0.25, 0.5, 0.75, 1])
    for a, b, wanted in (
        (2, INF, [2, INF, INF, INF, INF]), (-INF, 2, [-INF, -INF, -INF, -INF, 2]),
        (INF, INF, [INF] * 5), (-INF, INF, [-INF, NAN, NAN, NAN, INF]), (NAN, 1, [NAN] * 4 + [1]),
        (-1.6e308, 1.6e308, [-1.6e308, -0.8e308, 0, 0.8e308, 1.6e308]),
    ):  # fmt: skip
        np.testing.assert_allclose(lerp_of(np.float64(a), np.float64(b), t), wanted, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "values", [[2, INF], [-INF, 2], [INF, INF], [-3e38, 3e38], [1, 2, INF, INF], [-INF, -INF, 1]]
)
def test_medians_of_extremes_equal_numpy(values: list[float], dtype: str) -> None:
    x = np.array(values, dtype)
    assert_same(dt.median(dt.asarray(x)), np.median(x))
    assert_same(dt.nanmedian(dt.asarray(np.array([*x, NAN], dtype))), np.median(x))
    assert_same(dt.quantile(dt.asarray(x), 0.5), np.median(x))
    assert_same(dt.nanpercentile(dt.asarray(x), 50), np.median(x))


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_of_each_method_equal_numpy(method: str) -> None:
    rng = np.random.default_rng(2)
    q = np.concatenate([np.linspace(0, 1, 21), rng.random(20)])
    for n in (1, 2, 3, 4, 5, 10, 11, 64):
        x = rng.normal(size=n) * 10.0 ** rng.integers(-3, 3, n)
        wanted = np.quantile(x, q, method=method)  # type: ignore[call-overload]
        for function in (dt.quantile, dt.nanquantile):
            assert_same(function(dt.asarray(x), q, method=method), wanted)
    with_ends = np.array([-INF, -1.0, 2.0, INF])
    made = dt.quantile(dt.asarray(with_ends), q, method=method).numpy()
    theirs = np.quantile(with_ends, q, method=method)  # type: ignore[call-overload]
    assert not np.isnan(made).any() and (made == theirs)[~np.isnan(theirs)].all()


LINES: list[tuple[float, float, Sequence[float]]] = [
    (INF, INF, [INF] * 4), (2, INF, [2, INF, INF, INF]), (-INF, 3, [-INF, -INF, -INF, 3]),
    (-INF, INF, [-INF, NAN, NAN, INF]), (NAN, 1, [NAN, NAN, NAN, 1]),
    (-1.5e308, 1.5e308, [-1.5e308, -0.5e308, 0.5e308, 1.5e308]),
]  # fmt: skip


@pytest.mark.parametrize(("start", "stop", "wanted"), LINES)
def test_linspace_between_extremes_is_finite(
    start: float, stop: float, wanted: Sequence[float]
) -> None:
    made = dt.linspace(start, stop, 4, dtype=dt.float64)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-15)
    ends = dt.asarray([start, stop], dtype=dt.float64)
    made = np.linspace(ends[0], ends[1], 4)  # type: ignore[call-overload]
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-15)
    made = dt.linspace(start, stop, 3, endpoint=False, dtype=dt.float64)
    gap = wanted[:1] if np.isfinite(stop - start) else wanted[:3]
    np.testing.assert_allclose(made.numpy()[: len(gap)][:1], gap[:1])


def test_linspace_in_float32_with_overflowing_ends() -> None:
    assert_same(dt.linspace(-3e38, 3e38, 2), [-3e38, 3e38])
    assert_same(dt.linspace(-3e38, 3e38, 3), [-3e38, 0, 3e38])
    assert_same(dt.linspace(-1.5e308, 1.5e308, 3), [-INF, 0, INF])


SAMPLES: list[tuple[list[float], list[float], list[float]]] = [
    ([0, 1], [2, INF], [0, 0.5, 1]), ([0, 1], [INF, 2], [0, 0.5, 1]),
    ([-INF, 1], [1, 2], [-INF, -5, 0, 1]), ([0, INF], [1, 2], [0, 5, INF]),
    ([-INF, INF], [1, 2], [-INF, 0, INF]), ([0, 1, 1, 2], [0, 1, 5, 6], [0.5, 1, 1.5]),
    ([0, 1], [INF, INF], [0.5]), ([0, 1], [-INF, INF], [0, 0.5, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("places", "values", "at"), SAMPLES)
def test_interp_with_infinities_equals_numpy(
    places: list[float], values: list[float], at: list[float]
) -> None:
    assert_same(
        dt.interp(dt.asarray(at, dtype=dt.float64), places, values), np.interp(at, places, values)
    )


def test_interp_over_widths_that_overflow() -> None:
    at = dt.asarray([-1.5e308, 0.0, 1.5e308], dtype=dt.float64)
    assert_same(dt.interp(at, [-1.5e308, 1.5e308], [0.0, 1.0]), [0, 0.5, 1])
    at = dt.asarray([0.0, 0.5, 1.0], dtype=dt.float64)
    assert_same(dt.interp(at, [0.0, 1.0], [-1.5e308, 1.5e308]), [-1.5e308, 0, 1.5e308])


def test_gradient_of_a_median_goes_to_both_neighbors() -> None:
    for values, wanted in (([1.0, 3.0, 3.0, 8.0], [0, 0.5, 0.5, 0]), ([1.0, 4.0], [0.5, 0.5])):
        x = dt.asarray(values).requires_grad_()
        dt.median(x).backward()
        assert x.grad is not None
        assert_same(x.grad, wanted)
