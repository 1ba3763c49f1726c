"""Parts of floats: pairs of floats, bits, powers of two, polynomials.

A *pair* is an unevaluated sum `(high, low)` of two Values with |low| about an ulp of high at most:
it carries the digits that a single rounding would lose.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.language import Value, bitcast, const, eq, fma, sqrt, where
from .coefficients import FORMATS, FloatFormat

Pair = tuple[Value, Value]


def format_of(x: Value) -> FloatFormat:
    """Return the constants of x's dtype."""
    return FORMATS[x.dtype]


def poly(coefficients: Sequence[float], x: Value, total: Value | None = None) -> Value:
    """Return the polynomial with `coefficients` (lowest power first), by Horner's rule.

    total: a further coefficient, of the highest power.
    """
    if total is None:
        *coefficients, last = coefficients
        total = const(last, x.dtype)
    for c in reversed(coefficients):
        total = fma(total, x, c)
    return total


def long_poly(coefficients: Sequence[float], x: Value) -> Value:
    """Return `poly` with less latency: from the fifth coefficient on, by two chains at once.

    The first four, of which errors matter most, are added as by `poly`.
    """
    higher = coefficients[4:]
    length, power = 2, x * x
    while length * 2 < len(higher):
        length, power = length * 2, power * power
    total = fma(poly(higher[length:], x), power, poly(higher[:length], x))
    return poly(coefficients[:4], x, total)


# --- pairs ----------------------------------------------------------------------------------------


def two_sum(a: Value, b: Value) -> Pair:
    """Return a + b exactly. Source: Knuth, TAOCP 2, 4.2.2."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a: Value, b: Value) -> Pair:
    """Return a + b exactly, for |a| >= |b| or a = 0. Source: Dekker 1971."""
    s = a + b
    return s, b - (s - a)


def two_product(a: Value, b: Value | float) -> Pair:
    """Return a * b exactly, unless it underflows."""
    p = a * b
    return p, fma(a, b, -p)


def pair_product(a: Pair, b: Pair) -> Pair:
    """Return a * b as a pair."""
    p, e = two_product(a[0], b[0])
    return fast_two_sum(p, e + fma(a[0], b[1], a[1] * b[0]))


def pair_sum(a: Pair, b: Pair) -> Pair:
    """Return a + b as a pair."""
    s, e = two_sum(a[0], b[0])
    return fast_two_sum(s, e + (a[1] + b[1]))


def quotient(n: Pair, d: Pair) -> Pair:
    """Return n / d as a pair, with one division."""
    r = 1.0 / d[0]
    q = n[0] * r
    return q, fma(-q, d[0], n[0]) * r + (n[1] - q * d[1]) * r


def sqrt_pair(a: Pair) -> Pair:
    """Return sqrt(a) as a pair, for a > 0."""
    r = sqrt(a[0])
    return r, (fma(-r, r, a[0]) + a[1]) / (r + r)


def rough_sqrt_pair(a: Pair) -> Pair:
    """Return sqrt(a) as a pair, for a >= 0, with 6 % of error in the low part but no division."""
    r, f = sqrt(a[0]), format_of(a[0])
    # a line through the bits of r is near 1 / (2 r)
    half = bitcast(int((2 * f.bias - 1.10102) * 2.0**f.mantissa) - bits_of(r), f.dtype)
    return r, (fma(-r, r, a[0]) + a[1]) * half


# --- bits -----------------------------------------------------------------------------------------


def bits_of(x: Value) -> Value:
    """Return the bits of a float, as an unsigned integer."""
    return bitcast(x, format_of(x).uint)


def sign_of(x: Value) -> Value:
    """Return the sign bit of a float, with all other bits 0."""
    return bits_of(x) & format_of(x).sign


def sign_of_number(x: Value) -> Value:
    """Return the sign bit of a float, but 0 of NaN, whose sign differs between processors."""
    return where(eq(x, x), sign_of(x), 0)


def magnitude(x: Value) -> Value:
    """Return x without its sign bit."""
    return bitcast(bits_of(x) & (format_of(x).sign - 1), x.dtype)


def apply_sign_bit(x: Value, sign: Value) -> Value:
    """Return x, whose sign bit is 0, with the sign bit of the integer `sign`."""
    return bitcast(bits_of(x) | sign, x.dtype)


def is_positive_normal(x: Value) -> Value:
    """Return True where x is positive, normal and finite."""
    f = format_of(x)
    smallest, infinity = 1 << f.mantissa, (f.bias * 2 + 1) << f.mantissa
    return bits_of(x) - smallest < infinity - smallest


def clamp(x: Value, low: float, high: float) -> Value:
    """Return x limited to low..high; NaN stays."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def round_scaled(x: Value, scale: float) -> tuple[Value, Value]:
    """Return n = x * scale rounded to an integer, and bits whose low part is n.

    Adding 1.5 * 2**mantissa rounds, and needs no cast, which would be undefined for NaN.
    """
    f = format_of(x)
    t = fma(x, const(scale, x.dtype), f.shifter)
    return t - f.shifter, bits_of(t)


def power_of_two(bits: Value, x: Value) -> Value:
    """Return 2**n in x's dtype, for `bits` as from `round_scaled` and 2**n normal."""
    f = format_of(x)
    return bitcast((bits << f.mantissa) + f.one, x.dtype)


def scale_by_power_of_two(p: Value, bits: Value, is_zero: Value | None = None) -> Value:
    """Return p * 2**n with one rounding, also where the result is denormal or infinite.

    Where `is_zero`, a factor is 0: to underflow takes an Intel CPU 150 cycles a vector.
    """
    half = bits >> 1
    factor = power_of_two(bits - half, p)
    if is_zero is not None:
        factor = where(is_zero, 0.0, factor)
    return p * power_of_two(half, p) * factor


def high_product(a: Value, b: Value) -> Value:
    """Return the upper 64 bits of the product of two uint64, by halves."""
    a0, a1, b0, b1 = a & 0xFFFFFFFF, a >> 32, b & 0xFFFFFFFF, b >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)
    other = a0 * b1 + (middle & 0xFFFFFFFF)
    return a1 * b1 + (middle >> 32) + (other >> 32)
