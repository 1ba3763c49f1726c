"""Complex numbers in the kernel IR: arithmetic, parts, roots.

An operand is complex, or real and of the dtype of the other one's parts: a real operand has no
imaginary part, not one of zero, so that infinities and signs of zeros are as they should be. A
product is the textbook's, (ac - bd) + (ad + bc)i, each operation rounded, as NumPy's and PyTorch's:
infinities that it loses in NaN are not put back. Quotients and roots neither overflow nor underflow
needlessly, and their special values follow C99 annex G.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..ir.language import Value, bitcast, complex_value, const, eq, fma, imag, ne, real, sqrt, where
from . import elementary as el
from . import trigonometry as tr
from .float_parts import apply_sign_bit, bits_of, format_of, magnitude, sign_of, sign_of_number

Parts = tuple[Value, Value]
Expression = Callable[..., Value]


def either(of_reals: Expression, of_complex: Expression) -> Expression:
    """Return an expression that calls `of_complex` if an operand is complex, else `of_reals`."""

    def expression(*operands: Value) -> Value:
        """Return `of_complex` of the operands if one is complex, else `of_reals` of them."""
        is_complex = any(x.dtype.kind == "c" for x in operands)
        return (of_complex if is_complex else of_reals)(*operands)

    return expression


def parts(z: Value) -> Parts:
    """Return the real and the imaginary part."""
    return real(z), imag(z)


def signed(size: float | Value, like: Value) -> Value:
    """Return the non-negative `size` with the sign of `like`; no sign if `like` is NaN."""
    size = size if isinstance(size, Value) else const(size, like.dtype)
    return apply_sign_bit(size, sign_of_number(like))


def is_finite(x: Value) -> Value:
    """Return True where a float is neither infinite nor NaN."""
    return magnitude(x) < math.inf


def is_infinite(z: Value) -> Value:
    """Return True where the real or the imaginary part is infinite, even beside a NaN."""
    a, b = parts(z)
    return eq(magnitude(a), math.inf) | eq(magnitude(b), math.inf)


# --- sums, products, quotients --------------------------------------------------------------------


def add(x: Value, y: Value) -> Value:
    """Return the sum."""
    if x.dtype is y.dtype:
        return x + y
    x, y = (x, y) if x.dtype.kind == "c" else (y, x)
    return complex_value(real(x) + y, imag(x))


def subtract(x: Value, y: Value) -> Value:
    """Return the difference."""
    if x.dtype is y.dtype:
        return x - y
    if x.dtype.kind == "c":
        return complex_value(real(x) - y, imag(x))
    return complex_value(x - real(y), -imag(y))


def multiply(x: Value, y: Value) -> Value:
    """Return the product."""
    if x.dtype is y.dtype:
        return x * y
    x, y = (x, y) if x.dtype.kind == "c" else (y, x)
    return complex_value(real(x) * y, imag(x) * y)


def divide(x: Value, y: Value) -> Value:
    """Return the quotient.

    The divisor is scaled by a power of two so that its larger part is in 1..4, the dividend if it
    is very large or very small. Then the textbook's quotient is scaled back. z / 0 and inf / z are
    infinite, z / inf is 0 (C99, G.5.1).
    """
    if y.dtype.kind != "c":
        return complex_value(real(x) / y, imag(x) / y)
    f, (c, d) = format_of(real(y)), parts(y)
    a, b = parts(x) if x.dtype.kind == "c" else (x, None)
    by = _scale(bits_of(_larger(c, d)), c)
    size, half = magnitude(a) if b is None else _larger(a, b), f.bias // 2 + 1
    up = where(size < 2.0**-half, const(2.0**half, f.dtype), 1.0)
    up = where(size > 2.0 ** (f.bias - 5), 2.0**-5, up)
    back = where(size < 2.0**-half, const(2.0**-half, f.dtype), 1.0) * by
    down = where(size > 2.0 ** (f.bias - 5), const(2.0**5, f.dtype), 1.0)
    re, im = _divide_textbook(a * up, None if b is None else b * up, c * by, d * by)
    re, im = re * back * down, im * back * down
    return _correct_limits((a, const(0.0, f.dtype) if b is None else b), (c, d), (re, im))


def _larger(a: Value, b: Value) -> Value:
    """Return the larger magnitude; infinite if one is infinite, else |b| if one is NaN."""
    a, b = magnitude(a), magnitude(b)
    return where((a > b) | eq(a, math.inf), a, b)


def _divide_textbook(a: Value, b: Value | None, c: Value, d: Value) -> Parts:
    """Return the parts of (a + bi) / (c + di); without `b` the dividend is real."""
    size = c * c + d * d
    if b is None:
        return a * c / size, -(a * d) / size
    return (a * c + b * d) / size, (b * c - a * d) / size


def _correct_limits(x: Parts, y: Parts, quotient: Parts) -> Value:
    """Return a quotient, corrected for operands that are 0 or infinite."""
    (a, b), (c, d), (re, im) = x, y, quotient
    lost = ne(re, re) & ne(im, im)
    by_zero = eq(c, 0.0) & eq(d, 0.0) & (eq(a, a) | eq(b, b))
    infinite = eq(_larger(a, b), math.inf)
    divided = lost & infinite & is_finite(c) & is_finite(d)
    over = eq(_larger(c, d), math.inf) & is_finite(a) & is_finite(b)
    a1, b1, c1, d1 = (_direction(v) for v in (*x, *y))
    pole = signed(math.inf, c)
    re = where(by_zero, pole * a, where(divided, (a1 * c + b1 * d) * math.inf, re))
    im = where(by_zero, pole * b, where(divided, (b1 * c - a1 * d) * math.inf, im))
    re = where(over, (a * c1 + b * d1) * 0.0, re)
    im = where(over, (b * c1 - a * d1) * 0.0, im)
    return complex_value(re, im)


def _direction(x: Value) -> Value:
    """Return 1 where infinite, else 0, with the sign of x."""
    return signed(where(eq(magnitude(x), math.inf), const(1.0, x.dtype), 0.0), x)


def reciprocal(z: Value) -> Value:
    """Return 1 / z."""
    return divide(const(1.0, z.dtype.part), z)


def mean(total: Value, n: Value) -> Value:
    """Return a sum divided by a number of elements, as a float."""
    return divide(total, n) if total.dtype.kind == "c" else total / n


# --- parts ----------------------------------------------------------------------------------------


def conj(z: Value) -> Value:
    """Return a - bi."""
    return complex_value(real(z), -imag(z))


def absolute(z: Value) -> Value:
    """Return the distance from 0, within an ulp and without needless overflow.

    Infinite where a part is.

    `el.hypot` has half the error, and takes three times as long.
    """
    f, (a, b) = format_of(real(z)), (magnitude(p) for p in parts(z))
    u, v = bits_of(a), bits_of(b)
    larger, smaller = where(u < v, v, u), where(u < v, u, v)
    # a power of two; the larger magnitude is 2**-2 to 2**30 (float64: 2**254) times it
    back = (larger & (f.sign - (f.sign >> 3))) | const(2 << f.mantissa, f.uint)
    down = bitcast((2 * f.bias << f.mantissa) - back, f.dtype)
    x, y = a * down, b * down
    infinity = const((2 * f.bias + 1) << f.mantissa, f.uint)  # smaller than the bits of any NaN
    return where(eq(smaller, infinity), math.inf, sqrt(fma(x, x, y * y)) * bitcast(back, f.dtype))


def _scale(bits: Value, x: Value) -> Value:
    """Return 1 / p for the power of two p below a number of these bits, or the closest in range."""
    f = format_of(x)
    p = bits & ~const((1 << f.mantissa) - 1, f.uint)
    least, most = 1 << f.mantissa, (2 * f.bias - 1) << f.mantissa
    p = where(p < least, least, p)
    p = where(p < most, p, most)
    return bitcast((2 * f.bias << f.mantissa) - p, f.dtype)


def angle(z: Value) -> Value:
    """Return the angle to the positive real axis, in -pi..pi."""
    return tr.atan2(imag(z), real(z))


def angle_of_real(x: Value) -> Value:
    """Return the angle of a real number: 0 or pi; NaN stays."""
    return where(ne(sign_of(x), 0), const(math.pi, x.dtype), 0.0) + where(ne(x, x), x, 0.0)


def sign(z: Value) -> Value:
    """Return z / |z|, and 0 of 0; of infinite ones by the parts that are infinite."""
    f, (a, b) = format_of(real(z)), parts(z)
    infinite = is_infinite(z)
    a, b = where(infinite, _direction(a), a), where(infinite, _direction(b), b)
    size = _larger(a, b)
    by = where(size > 1.0, const(0.25, f.dtype), 2.0 ** (f.mantissa + 1))
    by = where(size < f.smallest_normal, by, where(size > 1.0, by, 1.0))
    a, b = a * by, b * by
    far = el.hypot(a, b)
    zero = eq(far, 0.0)
    far = where(zero, 1.0, far)
    return complex_value(where(zero, 0.0, a / far), where(zero, 0.0, b / far))


def square_root(z: Value) -> Value:
    """Return the root with a real part that is not negative.

    Source: Kahan, Branch cuts for complex elementary functions, 1987: the root of (|a| + |z|) / 2,
    in which nothing cancels.
    """
    f, (a, b) = format_of(real(z)), parts(z)
    size = _larger(a, b)
    huge, tiny = size > 2.0 ** (f.bias - 1), size < f.smallest_normal * 4.0
    even = f.mantissa + 2 + f.mantissa % 2
    by = where(huge, const(0.0625, f.dtype), where(tiny, 2.0**even, const(1.0, f.dtype)))
    back = where(huge, const(4.0, f.dtype), where(tiny, 2.0 ** -(even // 2), const(1.0, f.dtype)))
    x, y = magnitude(a) * by, magnitude(b) * by
    t = sqrt((x + el.hypot(x, y)) * 0.5)
    other = where(eq(t, 0.0), 0.0, y / (t + t))
    right = ne(sign_of_number(a), 0)
    re, im = where(right, other, t) * back, where(right, t, other) * back
    high, nan = eq(magnitude(b), math.inf), ne(b, b)
    re, im = where(high, math.inf, re), where(high, math.inf, im)
    far = eq(magnitude(a), math.inf) & ~high
    re = where(far, where(right, where(nan, b, 0.0), a), re)
    im = where(far, where(right, math.inf, where(nan, b, 0.0)), im)
    return complex_value(re, signed(magnitude(im), b))


def all_finite(z: Value) -> Value:
    """Return True where both parts are finite."""
    return is_finite(real(z)) & is_finite(imag(z))
