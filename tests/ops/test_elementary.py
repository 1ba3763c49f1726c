"""Elementary functions in the reference interpreter: special values, and errors in ulp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, float32, float64
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import Value, load
from dovetail.ops.table import TABLE

Array = Any
INF, NAN = math.inf, math.nan
PI = math.pi
DTYPES = pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)


def evaluate(name: str, dtype: DType, *arrays: Any) -> Array:
    """Compute the op `name` on the arrays with the reference interpreter."""
    operands = [np.ascontiguousarray(a, dtype.__numpy_dtype__) for a in arrays]
    builder = KernelBuilder(name)
    index = builder.axis(builder.int("n"))
    inputs = [builder.buffer(f"x{i}", dtype, "r") for i in range(len(operands))]
    output = builder.buffer("out", dtype, "w")
    function: Callable[..., Value] = TABLE[name].expression
    builder.store(output, index, function(*(load(b, index) for b in inputs)))
    out = np.empty_like(operands[0])
    with np.errstate(all="ignore"):
        interpret(builder.build(), [*operands, out], [out.size], [], [out.size])
    return out


def agree(got: Array, true: Array, slack: int = 0) -> Array:
    """Return where two arrays are equal, including signs of zero, except for `slack` spacings."""
    with np.errstate(all="ignore"):
        near = (got == true) | (np.abs(got - true) <= slack * np.spacing(np.abs(true)))
    return (np.isnan(got) & np.isnan(true)) | (near & (np.signbit(got) == np.signbit(true)))


# --- special values -------------------------------------------------------------------------------

ODD_IDENTITIES = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p")
SPECIAL = {
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e30, INF), (-1e30, 0)],
    "exp2": [(0, 1), (3, 8), (-1, 0.5), (INF, INF), (-INF, 0), (NAN, NAN), (1e30, INF)],
    "expm1": [(INF, INF), (-INF, -1), (NAN, NAN), (1e30, INF), (-1e30, -1)],
    "log": [(1, 0), (0, -INF), (-0.0, -INF), (-1, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "log2": [(1, 0), (8, 3), (0.125, -3), (0, -INF), (-1, NAN), (INF, INF), (NAN, NAN)],
    "log10": [(1, 0), (1000, 3), (0, -INF), (-1, NAN), (INF, INF), (NAN, NAN)],
    "log1p": [(-1, -INF), (-2, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "sin": [(INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos": [(0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(INF, NAN), (-INF, NAN), (NAN, NAN)],
    "asin": [(1, PI / 2), (-1, -PI / 2), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
    "acos": [(1, 0), (-1, PI), (0, PI / 2), (1.5, NAN), (INF, NAN), (NAN, NAN)],
    "atan": [(INF, PI / 2), (-INF, -PI / 2), (1, PI / 4), (NAN, NAN)],
    "sinh": [(INF, INF), (-INF, -INF), (NAN, NAN), (1e30, INF)],
    "cosh": [(0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (-1e30, INF)],
    "tanh": [(INF, 1), (-INF, -1), (NAN, NAN), (1e30, 1)],
    "asinh": [(INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1, 0), (0.5, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [(1, INF), (-1, -INF), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
    "cbrt": [(0, 0), (-0.0, -0.0), (27, 3), (-8, -2), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN)],
    "erfc": [(0, 1), (INF, 0), (-INF, 2), (NAN, NAN), (1e30, 0), (-1e30, 2)],
    "sigmoid": [(0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN)],
    "rsqrt": [(4, 0.5), (0, INF), (-0.0, -INF), (INF, 0), (-1, NAN), (NAN, NAN)],
}


@DTYPES
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_equal_c99(name: str, dtype: DType) -> None:
    """C99 annex F, and exactness if the result is a small integer."""
    x, true = (np.array(c, dtype.__numpy_dtype__) for c in zip(*SPECIAL[name], strict=True))
    got = evaluate(name, dtype, x)
    assert agree(got, true).all(), list(zip(x, got, true, strict=True))


@DTYPES
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_exponentials_far_below_the_range_are_zero_without_underflow(
    name: str, dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masked scores of attention are of this kind."""
    x = [-INF, np.finfo(dtype.__numpy_dtype__).min, -1e30, -2000]
    monkeypatch.setattr(np, "errstate", partial(np.errstate, under="raise"))
    assert not evaluate(name, dtype, x).any()


@DTYPES
@pytest.mark.parametrize("name", ODD_IDENTITIES)
def test_zeros_and_denormals_are_returned_unchanged(name: str, dtype: DType) -> None:
    """f(x) is x, with its sign, for zeros and denormals if f is x + O(x**2)."""
    tiny = np.finfo(dtype.__numpy_dtype__).smallest_subnormal
    x = np.array([0.0, -0.0, tiny, -tiny, 77 * tiny, -77 * tiny])
    assert agree(evaluate(name, dtype, x), x).all()


EDGES = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 4.0, 100.0, 2.0**53, 1e10, 1e38, 1e-38, 1e-45, INF, NAN]


@DTYPES
@pytest.mark.parametrize("name", ["atan2", "pow", "hypot"])
def test_special_pairs_equal_numpy(name: str, dtype: DType) -> None:
    """All pairs of special numbers: zeros, infinities, NaN, odd, even and fractional exponents."""
    values = [s * v for v in EDGES for s in (1.0, -1.0)]
    x, y = np.array(list(itertools.product(values, values)), dtype.__numpy_dtype__).T
    numpy = {"atan2": np.arctan2, "pow": np.power, "hypot": np.hypot}[name]
    with np.errstate(all="ignore"):
        true = numpy(x, y)
    got = evaluate(name, dtype, x, y)
    bad = ~agree(got, true, slack=2)
    assert not bad.any(), list(zip(x[bad], y[bad], got[bad], true[bad], strict=True))[:5]


@DTYPES
def test_logaddexp_of_infinities(dtype: DType) -> None:
    x = np.array([INF, INF, -INF, -INF, 5.0, -INF, NAN, INF])
    y = np.array([INF, -INF, -INF, 3.0, INF, INF, 1.0, NAN])
    true = np.array([INF, INF, -INF, 3.0, INF, INF, NAN, NAN])
    assert agree(evaluate("logaddexp", dtype, x, y), true).all()


# --- errors ---------------------------------------------------------------------------------------

EXACT: dict[str, tuple[Callable[..., Any], float, float]] = {
    # name: (mpmath's function, and the range of its samples)
    "exp": (mpmath.exp, -750, 712),
    "exp2": (lambda x: mpmath.mpf(2) ** x, -1080, 1026),
    "expm1": (mpmath.expm1, -50, 712),
    "log": (mpmath.log, 0, INF),
    "log2": (lambda x: mpmath.log(x) / mpmath.log(2), 0, INF),
    "log10": (mpmath.log10, 0, INF),
    "log1p": (mpmath.log1p, -1, INF),
    "sin": (mpmath.sin, -INF, INF),
    "cos": (mpmath.cos, -INF, INF),
    "tan": (mpmath.tan, -INF, INF),
    "asin": (mpmath.asin, -1, 1),
    "acos": (mpmath.acos, -1, 1),
    "atan": (mpmath.atan, -INF, INF),
    "sinh": (mpmath.sinh, -712, 712),
    "cosh": (mpmath.cosh, -712, 712),
    "tanh": (mpmath.tanh, -40, 40),
    "asinh": (mpmath.asinh, -INF, INF),
    "acosh": (mpmath.acosh, 1, INF),
    "atanh": (mpmath.atanh, -1, 1),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), -INF, INF),
    "erf": (mpmath.erf, -7, 7),
    "erfc": (mpmath.erfc, -7, 28),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), -750, 50),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), 0, INF),
    "atan2": (mpmath.atan2, -INF, INF),
    "hypot": (mpmath.hypot, -INF, INF),
    "pow": (mpmath.power, -INF, INF),
}
BOUNDS = {("erfc", "float64"): 1.3}  # everything else: 1 ulp


def samples(dtype: DType, low: float, high: float, rng: np.random.Generator) -> Array:
    """Return arguments of all magnitudes, near 1, near multiples of pi/2, denormal and huge."""
    n, top = 100, 127 if dtype is float32 else 1023
    sign = rng.choice([-1.0, 1.0], n)
    nearest_to_a_multiple_of_half_pi = math.ldexp(6381956970095103.0, 797)
    x = np.concatenate(
        [
            rng.uniform(max(low, -800.0), min(high, 800.0), n),
            sign * rng.uniform(1, 2, n) * 2.0 ** rng.integers(-8, 8, n),
            sign * rng.uniform(1, 2, n) * 2.0 ** rng.integers(-top, top, n),
            1 + sign * 2.0 ** -rng.uniform(1, 52, n),
            np.arange(-30, 31) * PI / 2,
            [1e-45, 5e-324, 1e-310, 16367173.0 * 2.0**72, nearest_to_a_multiple_of_half_pi],
        ]
    )
    with np.errstate(over="ignore"):
        x = x.astype(dtype.__numpy_dtype__)
    return x[(x >= low) & (x <= high) & np.isfinite(x) & (x != 0)]


def ulps(got: float, true: Any, dtype: DType) -> float:
    """Return |got - true| in units of the true value's last place; infinity stands for 2**top."""
    digits, lowest, top = (24, -126, 128) if dtype is float32 else (53, -1022, 1024)
    limit = mpmath.mpf(2) ** top
    size = min(abs(true), limit)
    exponent = max(mpmath.frexp(size)[1] - 1, lowest) if size else lowest
    unit = mpmath.mpf(2) ** (min(exponent, top - 1) - digits + 1)
    a, b = (max(min(mpmath.mpf(v), limit), -limit) for v in (got, true))
    return float(abs(a - b) / unit)


@DTYPES
@pytest.mark.parametrize("name", EXACT)
def test_error_is_within_the_documented_bound(name: str, dtype: DType) -> None:
    """The bounds in ulp are those of docs/accuracy.md."""
    rng = np.random.default_rng(1)
    exact, low, high = EXACT[name]
    xs: tuple[Array, ...] = (samples(dtype, low, high, rng),)
    if name in ("atan2", "hypot"):
        with np.errstate(over="ignore"):
            y = (xs[0] * rng.uniform(-30, 30, xs[0].size)).astype(xs[0].dtype)
        xs = (xs[0], np.where(np.isfinite(y), y, xs[0]))
    elif name == "pow":
        x = np.abs(xs[0])
        x = x[np.abs(np.log2(x)) > 1e-6]
        wanted = rng.uniform(-1080, 1030, x.size) * (1 if dtype is float64 else 0.13)
        xs = (x, (wanted / np.log2(x.astype(np.float64))).astype(x.dtype))
    got = evaluate(name, dtype, *xs)
    with mpmath.workprec(1300):
        errors = [
            (ulps(float(g), exact(*(mpmath.mpf(float(v)) for v in at)), dtype), *at)
            for g, *at in zip(got, *xs, strict=True)
        ]
    worst = max(errors)
    assert worst[0] <= BOUNDS.get((name, dtype.name), 1.0), worst


HARD = {
    ("asin", float64): 0.5346711820424483,
    ("erfc", float32): 0.748596847,
    ("acos", float32): 0.543824434,
    ("tan", float32): 1.0341291951386403e27,
    ("atan", float64): 0.9981818182939679,
    ("log10", float32): 1.3321701288223267,
    ("log2", float64): 1.3546810518802053,
    ("asinh", float32): 0.41473907232284546,
}  # where the error of these algorithms, or of simpler ones, is largest


@pytest.mark.parametrize(("name", "dtype"), HARD, ids=str)
def test_error_is_below_one_ulp_at_the_hardest_arguments(name: str, dtype: DType) -> None:
    x = np.array([HARD[name, dtype]], dtype.__numpy_dtype__)
    with mpmath.workprec(200):
        true = EXACT[name][0](mpmath.mpf(float(x[0])))
        assert ulps(float(evaluate(name, dtype, x)[0]), true, dtype) < 1.0


def test_log1p_is_the_argument_near_zero_and_a_logarithm_far_from_it() -> None:
    """The exact reduction of 1 + x ends where 2**-e is not normal."""
    x = np.array([1e-30, -1e-30, 2.0**99, 2.0**100, 2.0**127, 3e38], np.float32)
    true = np.log1p(x.astype(np.float64)).astype(np.float32)
    assert agree(evaluate("log1p", float32, x), true, slack=1).all()


@DTYPES
def test_cbrt_of_the_smallest_numbers_is_correctly_rounded(dtype: DType) -> None:
    """Residuals of tiny numbers would underflow without scaling."""
    tiny = float(np.finfo(dtype.__numpy_dtype__).smallest_subnormal)
    x = np.array([tiny, 3 * tiny, 2**24 * tiny, 8 * 5 * tiny, -(2**30) * tiny])
    got = evaluate("cbrt", dtype, x)
    with mpmath.workprec(200):
        for g, v in zip(got, x.astype(dtype.__numpy_dtype__), strict=True):
            assert ulps(float(g), EXACT["cbrt"][0](mpmath.mpf(float(v))), dtype) <= 0.51


@DTYPES
def test_logaddexp_keeps_small_terms(dtype: DType) -> None:
    """Without cancellation, the sum is within an ulp."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 300, 200).astype(dtype.__numpy_dtype__)
    y = (x - rng.uniform(0, 60, 200)).astype(x.dtype)
    got = evaluate("logaddexp", dtype, x, y)
    for g, a, b in zip(got, x, y, strict=True):
        p, q = mpmath.mpf(float(a)), mpmath.mpf(float(b))
        assert ulps(float(g), mpmath.log(mpmath.exp(p) + mpmath.exp(q)), dtype) <= 1.0
