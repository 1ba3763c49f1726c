"""Counts and histograms against NumPy; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, call-overload"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

RNG = np.random.default_rng(1)
A = RNG.normal(0, 3, 500)
W = RNG.random(500)


def assert_same(found: dt.Tensor, want: Any, rtol: float = 0) -> None:
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_allclose(found.numpy(), want, rtol=rtol, atol=rtol)


def test_bincount_equals_numpy(device: dt.Device) -> None:
    for d in ("i1", "u2", "i8", "?"):
        a = RNG.integers(0, 2 if d == "?" else 20, 300).astype(d)
        assert_same(dt.bincount(dt.asarray(a)), np.bincount(a.astype("i8")))
        assert_same(
            dt.bincount(dt.asarray(a), minlength=30), np.bincount(a.astype("i8"), minlength=30)
        )
        w = W[:300]
        assert_same(dt.bincount(dt.asarray(a), w), np.bincount(a.astype("i8"), w), 1e-15)
    assert_same(dt.bincount(dt.zeros(0, dtype="int64")), np.bincount(np.zeros(0, "i8")))
    assert_same(dt.bincount(dt.zeros(0, dtype="int64"), minlength=3), np.zeros(3, "i8"))
    many = np.tile(np.arange(5), 20_000 if device.type == "cpu" else 40)
    assert_same(dt.bincount(dt.asarray(many)), np.bincount(many))


def test_bincount_of_any_range_equals_numpy(device: dt.Device, thinned: Callable[..., Any]) -> None:
    quick = device.type == "cpu"
    for n in (1, 3, 1021, 3000, *((70_001, 200_003) if quick else ())):
        for high in thinned(
            (1, 700, 5000, 90_000, 1_000_000), 2
        ):  # some exceed the guessed maximum
            a = RNG.integers(0, high, n)
            assert_same(dt.bincount(dt.asarray(a)), np.bincount(a))
            assert_same(dt.bincount(dt.asarray(a), minlength=2000), np.bincount(a, minlength=2000))
    late = np.zeros(70_000 if quick else 3000, "i8")
    late[1] = 9000  # not among those that the guess samples
    assert_same(dt.bincount(dt.asarray(late)), np.bincount(late))
    late[1] = -1
    for d in ("i1", "i8"):
        with pytest.raises(
            dt.ArgumentError, match="bincount: x must not hold negative elements, got -1"
        ):
            dt.bincount(dt.asarray(late.astype(d)))
    assert_same(dt.bincount(dt.asarray(np.array([1, 3], "u8"))), [0, 1, 0, 1])


@pytest.mark.parametrize("options", [
    {}, {"bins": 7}, {"bins": 1}, {"bins": [-1.0, 0.0, 0.5, 4.0]}, {"range": (-2, 2)},
    {"weights": W}, {"density": True}, {"weights": W, "density": True, "bins": [-9.0, 0.0, 9.0]},
    {"bins": 50, "range": (0, 9)}, {"bins": [0.0, 0.0, 1.0]},
], ids=str)  # fmt: skip
def test_histograms_equal_numpy(device: dt.Device, options: dict[str, Any]) -> None:
    for found, want in zip(dt.histogram(dt.asarray(A), **options), np.histogram(A, **options),
                           strict=True):  # fmt: skip
        assert_same(found, want, 1e-13)
    edges = {k: v for k, v in options.items() if k in ("bins", "range")}
    assert_same(
        dt.histogram_bin_edges(dt.asarray(A), **edges), np.histogram_bin_edges(A, **edges), 1e-13
    )


def test_histograms_of_other_dtypes_equal_numpy(device: dt.Device) -> None:
    ints = RNG.integers(-5, 20, (20, 10))
    hist, edges = dt.histogram(dt.asarray(ints), 25, range=(-5, 20))
    assert_same(hist, np.histogram(ints, 25, range=(-5, 20))[0])
    assert edges.dtype is dt.float64  # float32 has no edges next to 2**53
    half = A.astype("f4")
    assert_same(dt.histogram(dt.asarray(half), 31).hist, np.histogram(half, 31)[0])
    spoiled = np.array([1.0, np.nan, 2.0, np.inf])
    assert dt.histogram(dt.asarray(spoiled), 2, range=(0, 4)).hist.tolist() == [1, 1]
    assert_same(dt.histogram(dt.zeros(0)).hist, np.zeros(10, "i8"))
    assert_same(dt.histogram(dt.asarray([3.0, 3.0]), 2).bin_edges, np.float32([2.5, 3, 3.5]))
    on_edges = np.linspace(0, 1, 11)
    assert_same(dt.histogram(dt.asarray(on_edges), 10).hist, np.histogram(on_edges, 10)[0])


@pytest.mark.parametrize("options", [
    {}, {"bins": 4}, {"bins": (3, 5)}, {"bins": ([-9.0, 0.0, 9.0], 4)}, {"density": True},
    {"weights": W}, {"range": ((-1, 1), (0, 2)), "bins": 6},
], ids=str)  # fmt: skip
def test_histograms_of_points_equal_numpy(device: dt.Device, options: dict[str, Any]) -> None:
    b = A[::-1] * 2 + 1
    found = dt.histogram2d(dt.asarray(A), b, **options)
    h, x, y = np.histogram2d(A, b, **options)
    want = h if "weights" in options or "density" in options else h.astype("i8")
    for f, w in zip(found, (want, x, y), strict=True):
        assert_same(f, w, 1e-12)


@pytest.mark.parametrize("right", [False, True])
def test_digitize_equals_numpy(device: dt.Device, right: bool) -> None:
    x = np.array([0.2, 6.4, 3.0, 1.6, -1.0, np.inf, 1.0])
    for bins in ([0.0, 1.0, 2.5, 4.0, 10.0], [10.0, 4.0, 2.5, 1.0, 0.0], [1.0], [1.0, 1.0]):
        assert_same(
            dt.digitize(dt.asarray(x), bins, right=right), np.digitize(x, bins, right=right)
        )


def test_wrong_bins_raise() -> None:
    x = dt.ones(3, device="reference")
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: dt.bincount(x), dt.DTypeError, "bincount: expected integers"),
        (lambda: dt.bincount(dt.asarray([-1], device="reference")), dt.ArgumentError, "negative"),
        (lambda: dt.bincount(dt.ones((2, 2), dtype=int, device="reference")), dt.ShapeError,
         "bincount: expected a vector"),
        (lambda: dt.bincount(dt.asarray([1], device="reference"), [1.0, 2.0]), dt.ShapeError,
         "bincount: weights"),
        (lambda: dt.histogram(x, 0), dt.ArgumentError, "histogram: bins"),
        (lambda: dt.histogram(x, 1.5), dt.ArgumentTypeError, "histogram: bins"),
        (lambda: dt.histogram(x, "most"), dt.ArgumentError, "histogram: bins must .*got 'most'"),
        (lambda: dt.histogram(x, [3.0, 1.0]), dt.ArgumentError, "histogram: bins must ascend"),
        (lambda: dt.histogram(x, range=(2, 1)), dt.ArgumentError, "histogram: range must"),
        (lambda: dt.histogram(x * dt.nan), dt.ArgumentError, "histogram: range .*got nan"),
        (lambda: dt.histogram(x, weights=[1.0]), dt.ShapeError, "histogram: expected one weight"),
        (lambda: dt.histogram2d(x, [1.0]), dt.ShapeError, "histogram2d: x and y must"),
        (lambda: dt.histogram2d(x, x, range=(1,)), dt.ArgumentTypeError, "histogram2d: range"),
        (lambda: dt.digitize(x, [1.0, 3.0, 2.0]), dt.ArgumentError, "digitize: bins must ascend"),
        (lambda: dt.digitize(x, [[1.0]]), dt.ShapeError, "digitize: bins must be a vector"),
    ]  # fmt: skip
    for call, error, says in calls:
        with pytest.raises(error, match=says):
            call()


# --- extremes -------------------------------------------------------------------------------------

LARGE = {
    "beside 2**53": np.array([2**53, 2**53 + 20, 2**53 + 7]),
    "all of int64": np.array([2**63 - 1, -(2**63), 0, 5]),
    "end of int64": np.array([2**63 - 1, 2**63 - 1025 * 40, 2**63 - 9000]),
    "all of uint64": np.array([2**64 - 1, 0, 5, 2**63], np.uint64),
    "beside 2**24": np.array([2**24, 2**24 + 1, 2**24 + 2], np.int32),
    "one of int32": np.array([2**24 + 1], np.int32),
    "int8": np.array([127, -128, 0], np.int8),
    "bool": np.array([True, False, True]),
}


@pytest.mark.parametrize("bins", [1, 3, 10])
@pytest.mark.parametrize("name", LARGE)
def test_histogram_of_extreme_integers_equals_numpy(name: str, bins: int) -> None:
    given = LARGE[name]
    hist, edges = np.histogram(given.astype("u1") if given.dtype == bool else given, bins)
    made = dt.histogram(dt.asarray(given), bins)
    assert made.hist.tolist() == hist.tolist() and made.bin_edges.dtype is dt.float64
    np.testing.assert_allclose(made.bin_edges.numpy(), edges, rtol=2e-15, atol=4e-16)
    made_edges = dt.histogram_bin_edges(dt.asarray(given), bins)
    assert made_edges.tolist() == made.bin_edges.tolist()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("bins", [2, 7, 100, 1000])
def test_histogram_of_each_dtype_equals_numpy(dtype: str, bins: int) -> None:
    rng = np.random.default_rng(bins)
    if dtype[0] == "f":
        given = (rng.normal(size=500) * 10.0 ** rng.integers(-3, 3)).astype(dtype)
    else:
        info = np.iinfo(dtype)
        given = rng.integers(info.min, info.max, 500, dtype=dtype, endpoint=True)
    hist, _ = np.histogram(given, bins)
    assert dt.histogram(dt.asarray(given), bins).hist.tolist() == hist.tolist()


@pytest.mark.parametrize(
    "given",
    [np.array([2**53]), np.array([2**53, 2**53 + 1]), np.float32([2**24]), np.float32([1e30]),
     np.array([5e-324, 1e-323])],
)  # fmt: skip
def test_histogram_with_more_bins_than_representable_edges_raises(given: np.ndarray) -> None:
    with pytest.raises(ValueError, match="Too many bins"):
        np.histogram(given, 10)
    with pytest.raises(dt.ArgumentError, match=r"histogram: 10 bins from .* are too many"):
        dt.histogram(dt.asarray(given), 10)


@pytest.mark.parametrize("given", [[1.0, np.inf], [-np.inf, 1.0], [np.nan, 1.0]])
def test_histogram_of_infinities_raises(given: list[float]) -> None:
    with pytest.raises(dt.ArgumentError, match="range"):
        dt.histogram(dt.asarray(given))
    with pytest.raises(dt.ArgumentError, match="range"):
        dt.histogram(dt.asarray([1.0]), range=(0.0, np.inf))
    assert dt.histogram(dt.asarray(given), [-np.inf, 0, np.inf]).hist.sum().item() == sum(
        not np.isnan(v) for v in given
    )


def test_histogram_over_a_range_that_overflows_counts() -> None:
    for dtype, high in ((np.float32, 3e38), (np.float64, 1.7e308)):
        made = dt.histogram(dt.asarray(np.array([-high, 0, high, high / 2], dtype)), 3)
        assert made.hist.tolist() == [1, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histogram_over_the_whole_range_of_a_dtype_equals_numpy(dtype: str) -> None:
    most = np.finfo(dtype).max
    a = np.array([-most, most, most / 2, 0, -most / 3], dtype)
    x = dt.asarray(a)
    edges = dt.histogram_bin_edges(x).numpy().astype(np.longdouble)
    want, _ = np.histogram(a.astype(np.longdouble), edges)
    assert dt.histogram(x).hist.tolist() == want.tolist()
    cells, *_ = np.histogram2d(a.astype(np.longdouble), a.astype(np.longdouble), [edges, edges])
    assert dt.histogram2d(x, x).hist.tolist() == cells.tolist()


def test_histogram_of_halves_compares_in_float32() -> None:
    given = np.random.default_rng(3).normal(size=300).astype(np.float16)
    made = dt.histogram(dt.asarray(given), 1000)
    assert made.hist.tolist() == np.histogram(given.astype("f4"), 1000)[0].tolist()
    assert made.bin_edges.dtype is dt.float16


def test_digitize_and_searchsorted_among_floats_keep_digits_of_integers() -> None:
    large = dt.asarray([16777217, 16777216])
    assert dt.digitize(large, [16777216.5]).tolist() == [1, 0]
    assert dt.searchsorted(large.flip(), [16777216.5]).tolist() == [1]
    assert dt.searchsorted(dt.asarray([1, 2, 3]), 2.5).item() == 2
    assert dt.histogram(large, [16777216.5, 16777218.0]).hist.tolist() == [1]
    halves = dt.asarray([2.5, 299.5], dtype=dt.float16)
    assert dt.digitize(dt.asarray([3, 300], dtype=dt.int16), halves).tolist() == [1, 2]


def test_density_of_integers_is_in_float64() -> None:
    given = np.arange(-(2**62), 2**62, 2**58)
    for bins in (7, [-(2**62), 0, 2**62]):
        made = dt.histogram(dt.asarray(given), bins, density=True).hist  # type: ignore[arg-type]
        np.testing.assert_allclose(made.numpy(), np.histogram(given, bins, density=True)[0], 1e-14)
