"""Elementary functions of complex numbers in the kernel IR; `elementary` has those of reals.

Special values and branch cuts follow C99 annex G. Errors are small against the result as a whole,
|computed - true| / |true|: a part that is much the smaller one may have fewer digits.
"""

from __future__ import annotations

import math

from ..ir.language import Value, bitcast, complex_value, const, eq, imag, ne, real, where
from . import elementary as el
from . import trigonometry as tr
from .complex_arithmetic import (
    Parts,
    absolute,
    angle,
    is_finite,
    is_infinite,
    parts,
    signed,
    square_root,
)
from .float_parts import (
    bits_of,
    fast_two_sum,
    format_of,
    magnitude,
    sign_of,
    sign_of_number,
    two_product,
    two_sum,
)

# --- exponentials ---------------------------------------------------------------------------------

# The amount that exponents are lowered by if e ** x overflows though e ** x cos y may not.
_EXPONENT_STEP = {127: 64.0, 1023: 512.0}


def _times_exp(x: Value, u: Value, v: Value, factor: float = 1.0) -> Parts:
    """Return u e**x and v e**x for |u|, |v| <= 1; times `factor` where e**x overflows."""
    f = format_of(x)
    step, limit = _EXPONENT_STEP[f.bias], f.exp_range[1] - 1.0
    once, twice = x > limit, x > limit + _EXPONENT_STEP[f.bias]
    lower = where(twice, x - 2.0 * step, where(once, x - step, x))
    e = el.exp(lower)
    first = where(once, const(math.exp(step) * factor, x.dtype), 1.0)
    second = where(twice, const(math.exp(step), x.dtype), 1.0)
    return u * e * first * second, v * e * first * second


def exp(z: Value) -> Value:
    """Return e ** z."""
    x, y = parts(z)
    s, c = tr.sin_cos(y)
    re, im = _times_exp(x, c, s)
    low, wild = eq(x, -math.inf), ~is_finite(y)
    re = where(wild, where(low, 0.0, where(eq(x, math.inf), x, re)), re)
    im = where(wild & low, 0.0, im)
    level = eq(y, 0.0)
    return complex_value(where(level, el.exp(x), re), where(level, y, im))


def exp2(z: Value) -> Value:
    """Return 2 ** z as e ** (z ln 2); exact powers on the real axis."""
    x, y = parts(z)
    w = exp(complex_value(x * math.log(2.0), y * math.log(2.0)))
    return complex_value(where(eq(y, 0.0), el.exp2(x), real(w)), imag(w))


def expm1(z: Value) -> Value:
    """Return e ** z - 1, accurate near 0."""
    f, (x, y) = format_of(real(z)), parts(z)
    whole = exp(z)
    s = tr.sin(y * 0.5)
    near = el.expm1(x) * tr.cos(y) - s * s * 2.0 + 0.0  # no -0
    is_regular = (magnitude(x) < f.mantissa * 1.0) & is_finite(y)
    return complex_value(where(is_regular, near, real(whole) - 1.0), imag(whole))


def _sinh_cosh_products(x: Value, u: Value, v: Value) -> tuple[Value, Value, Value, Value]:
    """Return u sinh x, v cosh x, v sinh x and u cosh x, also if sinh x overflows."""
    f = format_of(x)
    big = magnitude(x) > f.exp_range[1] - 1.0
    inside = where(big, 0.0, x)
    sinh, cosh = el.sinh(inside), el.cosh(inside)
    far_u, far_v = _times_exp(magnitude(x), u, v, 0.5)
    left = ne(sign_of(x), 0)
    far_us, far_vs = where(left, -far_u, far_u), where(left, -far_v, far_v)
    return (
        where(big, far_us, u * sinh),
        where(big, far_v, v * cosh),
        where(big, far_vs, v * sinh),
        where(big, far_u, u * cosh),
    )


def sinh(z: Value) -> Value:
    """Return the hyperbolic sine."""
    x, y = parts(z)
    s, c = tr.sin_cos(y)
    re, im, _, _ = _sinh_cosh_products(x, c, s)
    re = where((eq(x, 0.0) | eq(magnitude(x), math.inf)) & ~is_finite(y), x, re)
    level = eq(y, 0.0)
    return complex_value(where(level, el.sinh(x), re), where(level, y, im))


def cosh(z: Value) -> Value:
    """Return the hyperbolic cosine."""
    x, y = parts(z)
    s, c = tr.sin_cos(y)
    _, _, im, re = _sinh_cosh_products(x, c, s)
    wild, level = ~is_finite(y), eq(y, 0.0)
    re = where(wild & eq(magnitude(x), math.inf), math.inf, where(level, el.cosh(x), re))
    zero = bitcast(sign_of_number(x) ^ sign_of_number(y), x.dtype)
    return complex_value(re, where(level | (wild & eq(x, 0.0)), zero, im))


def tanh(z: Value) -> Value:
    """Return the hyperbolic tangent. Source: Kahan 1987."""
    f, (x, y) = format_of(real(z)), parts(z)
    s, c = tr.sin_cos(y)
    far = magnitude(x) > f.mantissa * 0.5
    inside = where(far, 0.0, x)
    t, sh = s / c, el.sinh(inside)
    slope = t * t + 1.0
    size = slope * sh * sh + 1.0
    re, im = slope * el.cosh(inside) * sh / size, t / size
    decay = el.exp(magnitude(x) * -1.0)
    re = where(far, signed(1.0, x), re)
    im = where(far, s * c * decay * decay * 4.0, im)
    end, wild = eq(magnitude(x), math.inf), ~is_finite(y)
    im = where(end, signed(0.0, y), im)  # as the Array API has it; C99: the sign of sin(2 y)
    im = where(eq(y, 0.0), y, im)
    re = where(eq(x, 0.0), x, where(eq(y, 0.0), el.tanh(x), re))
    return complex_value(where(ne(x, x) | (wild & ~end & ne(x, 0.0)), math.nan, re), im)


def sin(z: Value) -> Value:
    """Return the sine: -i sinh(iz)."""
    w = sinh(_times_i(z))
    return complex_value(imag(w), -real(w))


def cos(z: Value) -> Value:
    """Return the cosine: cosh(iz)."""
    return cosh(_times_i(z))


def tan(z: Value) -> Value:
    """Return the tangent: -i tanh(iz)."""
    w = tanh(_times_i(z))
    return complex_value(imag(w), -real(w))


def _times_i(z: Value) -> Value:
    """Return i * z, exactly."""
    return complex_value(-imag(z), real(z))


def _swap_parts(z: Value) -> Value:
    """Return b + ai for a + bi."""
    return complex_value(imag(z), real(z))


# --- logarithms -----------------------------------------------------------------------------------


def _log_of_squares(x: Value, y: Value) -> Value:
    """Return log|x + yi|, accurate also where |x + yi| is near 1."""
    f = format_of(x)
    a, b = magnitude(x), magnitude(y)
    high, low = where(a > b, a, b), where(a > b, b, a)
    is_regular = (high > 0.0) & (high < math.inf) & eq(low, low)
    tiny, up = high < f.smallest_normal, f.mantissa + 2
    high = where(is_regular, where(tiny, high * 2.0**up, high), 1.0)
    low = where(is_regular, where(tiny, low * 2.0**up, low), 0.0)
    k = (bits_of(high) >> f.mantissa) + (f.shifter_bits - f.bias)
    e = bitcast(k, x.dtype) - f.shifter  # 2**e <= high < 2**(e + 1)
    power = bitcast((bits_of(high) >> f.mantissa) << f.mantissa, x.dtype)
    m, n = high / power, low / power
    less = m - 1.0  # m * m - 1 = less * (less + 2), less is exact
    p, q = two_product(less, less)
    r, s = two_product(n, n)
    t, u = two_sum(less + less, p)
    t, v = two_sum(t, r)
    h, w = fast_two_sum(t, u + v + q + s)
    octaves = (e - where(tiny, const(float(up), x.dtype), 0.0)) * 2.0
    y1, y2 = el.log1p_of_pair(h, w, octaves)
    infinite = eq(a, math.inf) | eq(b, math.inf)
    odd = where(ne(a, a) | ne(b, b), const(math.nan, x.dtype), -math.inf)
    return where(is_regular, (y1 + y2) * 0.5, where(infinite, math.inf, odd))


def log(z: Value) -> Value:
    """Return the natural logarithm: log|z| + i angle(z)."""
    return complex_value(_log_of_squares(*parts(z)), angle(z))


def log2(z: Value) -> Value:
    """Return the logarithm to base 2."""
    return _change_log_base(z, 1.0 / math.log(2.0))


def log10(z: Value) -> Value:
    """Return the logarithm to base 10."""
    return _change_log_base(z, 1.0 / math.log(10.0))


def _change_log_base(z: Value, factor: float) -> Value:
    """Return log(z) times a real factor."""
    w = log(z)
    return complex_value(real(w) * factor, imag(w) * factor)


def log1p(z: Value) -> Value:
    """Return log(1 + z), accurate near 0."""
    f, (x, y) = format_of(real(z)), parts(z)
    near = (magnitude(x) < 0.5) & (magnitude(y) < 0.5)
    a, b = where(near, x, 0.0), where(near, y, 0.0)
    p, q = two_product(a, a)
    r, s = two_product(b, b)
    t, u = two_sum(a + a, p)  # |1 + z|**2 - 1 = 2 a + a**2 + b**2
    t, v = two_sum(t, r)
    h, w = two_sum(t, u + v + q + s)
    y1, y2 = el.log1p_of_pair(h, w)
    tiny = magnitude(a) < f.smallest_normal * 4.0
    re = where(tiny & (magnitude(b) < f.negligible), a, (y1 + y2) * 0.5)
    u = x + 1.0
    return complex_value(where(near, re, _log_of_squares(u, y)), tr.atan2(y, u))


# --- inverses -------------------------------------------------------------------------------------


def _large_argument(z: Value) -> tuple[Value, Value]:
    """Return (a mask: a part of z is above 2**(mantissa bits + 2), log|2 z| where it is true)."""
    f, (x, y) = format_of(real(z)), parts(z)
    limit = 2.0 ** (f.mantissa + 2)
    far = (magnitude(x) > limit) | (magnitude(y) > limit)
    a, b = where(far, x, 1.0), where(far, y, 1.0)
    size = _log_of_squares(a, b) + math.log(2.0)
    return far, where(is_infinite(z), math.inf, size)


def acos(z: Value) -> Value:
    """Return the inverse cosine. Source: Kahan 1987."""
    x, y = parts(z)
    a, b = square_root(complex_value(1.0 - x, -y)), square_root(complex_value(x + 1.0, y))
    re = tr.atan2(real(a), real(b)) * 2.0
    im = el.asinh(real(b) * imag(a) - imag(b) * real(a))
    far, log_2z = _large_argument(z)
    re = where(far, tr.atan2(magnitude(y), x), re)
    im = where(far, signed(log_2z, -y), im)
    at_zero = eq(x, 0.0) & ne(y, y)
    return complex_value(where(at_zero, math.pi / 2.0, re), im)


def asin(z: Value) -> Value:
    """Return the inverse sine. Source: Kahan 1987."""
    x, y = parts(z)
    a, b = square_root(complex_value(1.0 - x, -y)), square_root(complex_value(x + 1.0, y))
    re = tr.atan2(x, real(a) * real(b) - imag(a) * imag(b))
    im = el.asinh(real(a) * imag(b) - imag(a) * real(b))
    far, log_2z = _large_argument(z)
    re = where(far, tr.atan2(x, magnitude(y)), re)
    im = where(far, signed(log_2z, y), im)
    return complex_value(where(eq(x, 0.0), x, re), im)


def asinh(z: Value) -> Value:
    """Return the inverse hyperbolic sine: the inverse sine with parts exchanged on both sides."""
    return _swap_parts(asin(_swap_parts(z)))


def acosh(z: Value) -> Value:
    """Return the inverse hyperbolic cosine: i or -i times the inverse cosine."""
    w = acos(z)
    re, im = real(w), imag(w)
    nan = ne(re, re)
    swapped = where(nan & eq(im, im), magnitude(im), where(nan, im, magnitude(im)))
    return complex_value(swapped, where(nan, re, signed(magnitude(re), imag(z))))


def atanh(z: Value) -> Value:
    """Return the inverse hyperbolic tangent."""
    f, (x, y) = format_of(real(z)), parts(z)
    a, b = magnitude(x), magnitude(y)
    limit = 2.0 ** (f.mantissa + 2)
    far = (a > limit) | (b > limit)
    a1, b1 = where(far, 0.5, a), where(far, 0.5, b)
    left = 1.0 - a1
    size = left * left + b1 * b1
    pole = eq(left, 0.0) & (b1 < 2.0 ** -(f.bias // 4))
    re = el.log1p(a1 * 4.0 / where(pole, 1.0, size)) * 0.25
    re = where(pole, (el.log(b1) - math.log(2.0)) * -0.5, re)
    im = tr.atan2(b1 + b1, left * (a1 + 1.0) - b1 * b1) * 0.5
    reach = absolute(complex_value(where(far, a, 1.0), where(far, b, 1.0)))
    flat = a / reach / reach
    re = where(far, flat, re)
    infinite, zero = is_infinite(z), eq(x, 0.0)
    re = where(infinite | zero, 0.0, re)
    im = where(far | infinite, math.pi / 2.0, im)
    im = where(ne(y, y) | (ne(x, x) & ne(b, math.inf)), math.nan, im)
    return complex_value(signed(magnitude(re), x), signed(magnitude(im), y))


def atan(z: Value) -> Value:
    """Return the inverse tangent: the inverse hyperbolic one with parts exchanged on both sides."""
    return _swap_parts(atanh(_swap_parts(z)))


# --- powers ---------------------------------------------------------------------------------------


def pow(x: Value, y: Value) -> Value:
    """Return x ** y = e ** (y log x), its size by a real power.

    x ** 0 is 1, and 0 ** y is 0 for real(y) > 0.
    """
    c, d = parts(y)
    size, turn = absolute(x), angle(x)
    height = el.pow(size, c) * el.exp(-d * turn)
    phase = c * turn + d * _log_of_squares(*parts(x))
    s, cosine = tr.sin_cos(phase)
    re, im = height * cosine, height * s
    level = eq(phase, 0.0)
    re, im = where(level, height, re), where(level, phase, im)
    none = eq(c, 0.0) & eq(d, 0.0)
    from_zero = eq(size, 0.0) & (c > 0.0) & ~none
    re = where(none, 1.0, where(from_zero, 0.0, re))
    im = where(none | from_zero, 0.0, im)
    return complex_value(re, im)
