"""The error function, the normal distribution and Bessel functions in the kernel IR.

Special values follow C99 annex F. Measured errors are listed in docs/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dtypes import float32, float64
from ..ir.language import Value, bitcast, const, eq, floor, fma, ne, rint, sqrt, where
from .coefficients import ERF_CENTER, EXP2, LOG2_ERFC
from .elementary import exp_parts, log, log1p
from .float_parts import (
    Pair,
    apply_sign_bit,
    bits_of,
    clamp,
    fast_two_sum,
    format_of,
    magnitude,
    poly,
    power_of_two,
    scale_by_power_of_two,
    sign_of,
    two_product,
    two_sum,
)
from .special_coefficients import CENTRAL, FAR_TAIL, SPECIAL, TAIL

_ERF_SPLIT = {float32: 0.72, float64: 0.75}  # erf is a polynomial below, and 1 - erfc above


def _erfc_parts(x: Value, low: Value | None = None) -> tuple[Pair, Value]:
    """Return erfc(x) as a pair to be scaled by 2**n, and bits of n.

    x is between `_ERF_SPLIT` and `erfc_limit`. With `low`, an ulp at most, it is erfc(x + low).
    """
    f = format_of(x)
    p, e = two_product(x, x)
    if low is not None:
        e = fma(x + x, low, e)
    (g, c), bits = exp_parts(-p, -e)
    g, c = fast_two_sum(g, c)
    # erfc(x) exp(x*x) (x + k) is a polynomial in 1 / (x + k), written in t = center - 2 k / (x + k)
    k = f.erfc_pole
    d, v = two_sum(x, const(k, x.dtype))
    r = 1.0 / d
    lost = r * (fma(-r, d, 1.0) - r * v)
    p, e = two_product(r, 2.0 * k)
    t = f.erfc_center - p
    u = fma(lost, const(-2.0 * k, x.dtype), ((f.erfc_center - t) - p) - e)
    q = poly(f.erfc[2:], t)
    h = fma(q, t, f.erfc[0])
    h_low = fma(q + q - f.erfc[2], u, fma(q, t, f.erfc[0] - h) + f.erfc[1])
    return _multiply_pairs((g, c), _multiply_pairs((h, h_low), (r, lost))), bits


def _multiply_pairs(a: Pair, b: Pair) -> Pair:
    """Return a * b as two parts, the second one a few ulp of the first."""
    p, e = two_product(a[0], b[0])
    return p, e + fma(a[0], b[1], a[1] * b[0])


def erf(x: Value) -> Value:
    """Return the error function."""
    if x.dtype is float32:
        return _erf_float32(x)
    f = format_of(x)
    a = magnitude(x)
    near = fma(x, poly(f.erf, x * x), x)
    (h, low), bits = _erfc_parts(clamp(a, _ERF_SPLIT[x.dtype], f.erf_limit))
    s = power_of_two(bits, x)
    b, c = fast_two_sum(const(1.0, x.dtype), -(h * s))
    return where(a < _ERF_SPLIT[x.dtype], near, apply_sign_bit(b + (c - low * s), sign_of(x)))


def _erf_float32(x: Value) -> Value:
    """Return erf as x + x P(x**2) below ERF_CENTER, else as 1 - 2**log2(erfc)."""
    f = format_of(x)
    a = magnitude(x)
    near = fma(x, poly(f.erf, x * x), x)
    d = where(a > f.erf_limit, f.erf_limit, a) - ERF_CENTER
    q = poly(LOG2_ERFC, d)
    shifter = f.shifter + f.bias  # so that the low bits are those of a power of two
    t = fma(q, d, shifter - 2.0)
    r = fma(q, d, (shifter - 2.0) - t)
    far = fma(-poly(EXP2, r), bitcast(bits_of(t) << f.mantissa, float32), 1.0)
    return where(a < ERF_CENTER, near, apply_sign_bit(far, sign_of(x)))


def erfc(x: Value) -> Value:
    """Return the complementary error function, 1 - erf(x)."""
    f = format_of(x)
    a = magnitude(x)
    z = x * x
    s, e = fast_two_sum(const(1.0, x.dtype), -x)
    near = s + fma(-x, poly(f.erf, z), e)
    (h, low), bits = _erfc_parts(clamp(a, _ERF_SPLIT[x.dtype], f.erfc_limit))
    far = scale_by_power_of_two(h + low, bits)
    y = where(a < _ERF_SPLIT[x.dtype], near, where(x < 0.0, 2.0 - far, far))
    return y


# --- the normal distribution ----------------------------------------------------------------------


def ndtr(x: Value) -> Value:
    """Return the normal distribution's probability below x: erfc(-x / sqrt(2)) / 2."""
    f = format_of(x)
    root_half = math.sqrt(0.5) if x.dtype.bits == 64 else _ROOT_HALF[0]
    beyond = _ROOT_HALF_64 if x.dtype.bits == 64 else _ROOT_HALF[1]
    h, e = two_product(magnitude(x), root_half)
    low = fma(magnitude(x), const(beyond, x.dtype), e)
    z = h * h
    near = fma(h * 0.5, poly(f.erf, z), h * 0.5)
    near = where(x < 0.0, 0.5 - near, 0.5 + near)
    inside = h < f.erfc_limit
    (p, q), bits = _erfc_parts(clamp(h, _ERF_SPLIT[x.dtype], f.erfc_limit), where(inside, low, 0.0))
    far = scale_by_power_of_two((p + q) * 0.5, bits)
    # (p + q) / 2 is far from denormal; only scaling can make it so, with one rounding
    return where(h < _ERF_SPLIT[x.dtype], near, where(x < 0.0, far, where(ne(x, x), x, 1.0 - far)))


# sqrt(1/2): as two float32, and the error of the float64
_ROOT_HALF = (0.7071067690849304, 1.210161749206747e-08)
_ROOT_HALF_64 = -4.833646656726457e-17


def _ratio(fraction: tuple[Sequence[float], Sequence[float]], r: Value) -> Value:
    """Return a quotient of two polynomials in r."""
    return poly(fraction[0], r) / poly(fraction[1], r)


def _quantile(q: Value, tail: Value) -> Value:
    """Return the value that is exceeded with probability 1/2 - q.

    tail: 1/2 - |q|, which may be more exact. Source: Wichura, "Algorithm AS 241", 1988.
    """
    center = q * _ratio(CENTRAL, fma(-q, q, 0.180625))
    r = sqrt(-log(where(magnitude(q) < 0.425, 0.25, tail)))
    far = where(r < 5.0, _ratio(TAIL, r - 1.6), _ratio(FAR_TAIL, r - 5.0))
    far = where(eq(tail, 0.0), math.inf, far)
    return where(magnitude(q) <= 0.425, center, where(q < 0.0, -far, far))


def ndtri(p: Value) -> Value:
    """Return the normal quantile: x with ndtr(x) = p; NaN for p outside of 0..1."""
    upper = p > 0.5
    y = _quantile(p - 0.5, where(upper, 1.0 - p, p))
    return where((p >= 0.0) & (p <= 1.0), y, math.nan)


def erfinv(x: Value) -> Value:
    """Return the inverse error function; NaN outside of -1..1."""
    a = magnitude(x)
    y = _quantile(x * 0.5, (1.0 - a) * 0.5) * math.sqrt(0.5)
    # x = erf(y) ~ 2 y / sqrt(pi), where half of x may be denormal
    tiny = x * (math.sqrt(math.pi) / 2)
    y = where(a < format_of(x).negligible, tiny, y)
    return where(a <= 1.0, y, math.nan)


def logit(x: Value) -> Value:
    """Return log(x / (1 - x)); NaN outside of 0..1."""
    middle = log1p((x + x - 1.0) / (1.0 - x))
    y = where((x > 0.34) & (x < 0.66), middle, log(x / (1.0 - x)))
    return where(eq(x, 1.0), math.inf, where((x >= 0.0) & (x <= 1.0), y, math.nan))


def xlogy(x: Value, y: Value) -> Value:
    """Return x * log(y), and 0 if x is 0 and y no NaN."""
    return where(eq(x, 0.0) & eq(y, y), 0.0, x * log(y))


# --- sines of half turns --------------------------------------------------------------------------


def sin_pi(x: Value) -> Value:
    """Return sin(pi x), exact in its reduction: 0 at every integer. NaN of infinity."""
    f, (pi, pi_low) = format_of(x), SPECIAL[x.dtype].pi
    n = rint(x)
    r = x - n
    a = magnitude(r)
    reduced = where(a > 0.25, 0.5 - a, r)
    h, e = two_product(reduced, pi)
    low = fma(reduced, const(pi_low, x.dtype), e)
    z = h * h
    sine = h + fma(h * z, poly(f.sin, z), low)
    cosine = fma(z * z, poly(f.cos, z), fma(z, const(-0.5, x.dtype), 1.0))
    y = where(a > 0.25, apply_sign_bit(cosine, sign_of(r)), sine)
    odd = ne(n, floor(n * 0.5) * 2.0)
    return where(odd, -y, y)


def sinc(x: Value) -> Value:
    """Return sin(pi x) / (pi x), and 1 at 0."""
    pi = SPECIAL[x.dtype].pi[0]
    y = sin_pi(x) / (x * pi)
    infinite = eq(magnitude(x), math.inf)
    return where(magnitude(x) < format_of(x).negligible, 1.0, where(infinite, 0.0, y))


# --- modified Bessel functions --------------------------------------------------------------------

_BESSEL_SPLIT = 8.0


def _bessel(x: Value, near: Sequence[float], far: Sequence[float]) -> tuple[Value, Value]:
    """Return the series below and above _BESSEL_SPLIT; each is invalid elsewhere and for NaN."""
    a = magnitude(x)
    half = where(a < _BESSEL_SPLIT, a, 0.0) * 0.5
    b = clamp(a, _BESSEL_SPLIT, format_of(x).exp_range[1] + 8.0)
    (p, q), bits = exp_parts(b, const(0.0, x.dtype))
    series = poly(far, 1.0 / b - 0.0625) / sqrt(b)
    return poly(near, half * half), scale_by_power_of_two((p + q) * series, bits)


def i0(x: Value) -> Value:
    """Return the modified Bessel function of the first kind and order 0."""
    s = SPECIAL[x.dtype]
    near, far = _bessel(x, s.i0, s.i0_far)
    return where(magnitude(x) < _BESSEL_SPLIT, near, where(ne(x, x), x, far))


def i1(x: Value) -> Value:
    """Return the modified Bessel function of the first kind and order 1."""
    s = SPECIAL[x.dtype]
    near, far = _bessel(x, s.i1, s.i1_far)
    near, far = near * magnitude(x), where(ne(x, x), magnitude(x), far)
    return apply_sign_bit(where(magnitude(x) < _BESSEL_SPLIT, near, far), sign_of(x))
