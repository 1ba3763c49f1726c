"""Mantissas and exponents, divisors and steps, in the kernel IR."""

from __future__ import annotations

import math

from ..dtypes import float64, int32, int64
from ..ir.language import Value, bitcast, cast, const, eq, fold_loop, ne, quo, rem, where
from .arithmetic import absolute, mantissa_of, multiply
from .float_parts import apply_sign_bit, clamp, format_of, magnitude, power_of_two, sign_of

_EUCLID = {8: 13, 16: 24, 32: 47, 64: 93}  # most steps by bits: Fibonacci neighbours need them


def gcd(x: Value, y: Value) -> Value:
    """Return the greatest common divisor, by Euclid's algorithm; of 0 and 0 it is 0."""

    def step(_: Value, a: Value, b: Value) -> tuple[Value, ...]:
        """Do one step of Euclid's algorithm; keep both numbers once the second is 0."""
        done = eq(b, 0)
        remainder = rem(a, where(done, const(1, b.dtype), b))
        return where(done, a, b), where(done, b, remainder)

    # Signs of remainders do no harm; only the least integer divided by -1 must be avoided.
    a, b = absolute(x), absolute(y)
    if x.dtype.kind == "i":
        swap = eq(a, x.dtype.min)
        a, b = where(swap, b, a), where(swap, a, b)
        first_step = eq(a, x.dtype.min) & eq(b, x.dtype.min)
        b = where(first_step, const(0, x.dtype), b)
    return absolute(fold_loop(0, _EUCLID[x.dtype.bits], (a, b), step).results[0])


def lcm(x: Value, y: Value) -> Value:
    """Return the least common multiple, wrapping; 0 if an operand is 0."""
    g = gcd(x, y)
    multiple = multiply(quo(absolute(x), where(eq(g, 0), const(1, g.dtype), g)), absolute(y))
    return where(eq(g, 0), const(0, g.dtype), multiple)


def heaviside(x: Value, y: Value) -> Value:
    """Return 0 below 0, 1 above it, and y at 0; NaN stays."""
    step = where(x < 0.0, 0.0, where(x > 0.0, const(1.0, x.dtype), y))
    return where(ne(x, x), x, step)


def frexp_mantissa(x: Value) -> Value:
    """Return m with x = m * 2**e and 1/2 <= |m| < 1; x itself if it is 0, infinite or NaN."""
    m, _ = mantissa_of(_replace_special(x))
    return where(_is_finite_nonzero(x), apply_sign_bit(m * 0.5, sign_of(x)), x)


def frexp_exponent(x: Value) -> Value:
    """Return the e of `frexp_mantissa`; 0 if x is 0, infinite or NaN."""
    _, e = mantissa_of(_replace_special(x))
    return where(_is_finite_nonzero(x), cast(e, int32) + 1, const(0, int32))


def _is_finite_nonzero(x: Value) -> Value:
    """Return True where x is neither 0 nor infinite nor NaN."""
    a = magnitude(x)
    return (a > 0.0) & (a < math.inf)


def _replace_special(x: Value) -> Value:
    """Return x, but 1 where x is 0, infinite or NaN."""
    return where(_is_finite_nonzero(x), x, 1.0)


def ldexp(x: Value, y: Value) -> Value:
    """Return x * 2**y, y truncated, with one rounding."""
    f = format_of(x)
    m, e = mantissa_of(_replace_special(x))
    reach = 4.0 * f.bias  # beyond it every result is 0 or infinite
    n = cast(where(ne(y, y), 0.0, clamp(y, -reach, reach)), int64 if x.dtype is float64 else int32)
    total = e + n
    low, high = const(-2 * f.bias + 1, e.dtype), const(2 * f.bias - 1, e.dtype)
    total = where(total < low, low, where(high < total, high, total))
    bits = bitcast(total, f.uint)
    half = bitcast(total >> 1, f.uint)
    result = apply_sign_bit(m * power_of_two(half, x) * power_of_two(bits - half, x), sign_of(x))
    return where(ne(y, y), y, where(_is_finite_nonzero(x), result, x))
