"""Elementary functions in the loop language: no branch, no table, the same bits on every device.

Each takes and gives float32 or float64 Values. Both dtypes share one algorithm where they can; what
differs (coefficients, split constants) stands in `coefficients.py`. A *pair* is an unevaluated sum
`(high, low)` of two Values with |low| about an ulp of high at most: it carries the digits that a
single rounding would lose.

Special values follow C99 annex F. Measured errors are listed in docs/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..dtypes import float32, float64, int32, int64, uint32, uint64
from ..kernel.language import Value, bitcast, cast, const, eq, fma, ne, rint, sqrt, trunc, where
from .coefficients import (
    DOUBLE_LOG2E,
    EXP2,
    FORMATS,
    HALF_PI_SCALED,
    TANH_NEAR,
    TWO_OVER_PI,
    Format,
)

Pair = tuple[Value, Value]


# --- building blocks ------------------------------------------------------------------------------


def _format(x: Value) -> Format:
    return FORMATS[x.dtype]


def _poly(coefficients: Sequence[float], x: Value) -> Value:
    """The polynomial with `coefficients` (lowest power first), by Horner's rule."""
    total = const(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total


def _two_sum(a: Value, b: Value) -> Pair:
    """a + b exactly. Source: Knuth, TAOCP 2, 4.2.2."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _fast_two_sum(a: Value, b: Value) -> Pair:
    """a + b exactly, for |a| >= |b| or a = 0. Source: Dekker 1971."""
    s = a + b
    return s, b - (s - a)


def _two_product(a: Value, b: Value | float) -> Pair:
    """a * b exactly, unless it underflows."""
    p = a * b
    return p, fma(a, b, -p)


def _pair_product(a: Pair, b: Pair) -> Pair:
    p, e = _two_product(a[0], b[0])
    return _fast_two_sum(p, e + fma(a[0], b[1], a[1] * b[0]))


def _pair_sum(a: Pair, b: Pair) -> Pair:
    s, e = _two_sum(a[0], b[0])
    return _fast_two_sum(s, e + (a[1] + b[1]))


def _quotient(n: Pair, d: Pair) -> Pair:
    """n / d as a pair, with one division."""
    r = 1.0 / d[0]
    q = n[0] * r
    return q, fma(-q, d[0], n[0]) * r + (n[1] - q * d[1]) * r


def _root(a: Pair) -> Pair:
    """sqrt(a) as a pair, for a > 0."""
    r = sqrt(a[0])
    return r, (fma(-r, r, a[0]) + a[1]) / (r + r)


def _bits(x: Value) -> Value:
    return bitcast(x, _format(x).uint)


def _sign(x: Value) -> Value:
    return _bits(x) & _format(x).sign


def _abs(x: Value) -> Value:
    return bitcast(_bits(x) & (_format(x).sign - 1), x.dtype)


def _with_sign(x: Value, sign: Value) -> Value:
    """x with the sign bits of `sign` added."""
    return bitcast(_bits(x) | sign, x.dtype)


def _clamp(x: Value, low: float, high: float) -> Value:
    """x kept in low..high; NaN stays."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def _nearest(x: Value, scale: float) -> tuple[Value, Value]:
    """n = x * scale rounded to an integer, and bits whose low part is n.

    Adding 1.5 * 2**mantissa rounds, and needs no cast, which would be undefined for NaN.
    """
    f = _format(x)
    t = fma(x, const(scale, x.dtype), f.shifter)
    return t - f.shifter, _bits(t)


def _power_of_two(bits: Value, x: Value) -> Value:
    """2**n in x's dtype, for `bits` as from `_nearest` and 2**n normal."""
    f = _format(x)
    return bitcast((bits << f.mantissa) + f.one, x.dtype)


def _scale(p: Value, bits: Value) -> Value:
    """p * 2**n with one rounding, also where the result is denormal or infinite."""
    half = bits >> 1
    return p * _power_of_two(half, p) * _power_of_two(bits - half, p)


# --- exponentials -------------------------------------------------------------------------------


def exp(x: Value) -> Value:
    """e ** x."""
    f = _format(x)
    x = _clamp(x, *f.exp_range)
    n, bits = _nearest(x, f.log2e[0])
    r = fma(n, const(-f.ln2[1], x.dtype), fma(n, const(-f.ln2[0], x.dtype), x))
    p = fma(fma(_poly(f.exp, r), r, 1.0), r, 1.0)
    return _scale(p, bits)


def exp2(x: Value) -> Value:
    """2 ** x."""
    f = _format(x)
    x = _clamp(x, -f.bias - f.mantissa - 3.0, f.bias + 2.0)
    n, bits = _nearest(x, 1.0)
    r = x - n
    return _scale(fma(_poly(f.exp2, r), r, 1.0), bits)


def _exp_parts(h: Value, low: Value) -> tuple[Pair, Value]:
    """exp(h + low) as a pair to be scaled by 2**n, and bits of n.

    h must be in the range of exp, and low be some ulp at most.
    """
    r, tail, bits = _reduced(h)
    s, e = _fast_two_sum(const(1.0, h.dtype), r)
    small = fma(r * r, _poly(_format(h).expm1, r), e)
    return (s, fma(tail + low, s + small, small)), bits


def _exp_of_pair(h: Value, low: Value) -> Value:
    """exp(h + low), for any h and a low of some ulp."""
    f = _format(h)
    outside = (h < f.exp_range[0]) | (h > f.exp_range[1])
    (p, q), bits = _exp_parts(_clamp(h, *f.exp_range), where(outside, 0.0, low))
    return _scale(p + q, bits)


def _reduced(x: Value) -> tuple[Value, Value, Value]:
    """r, a small correction, and bits of n: x = n ln 2 + r + correction, |r| <= ln(2) / 2."""
    f = _format(x)
    n, bits = _nearest(x, f.log2e[0])
    a = fma(n, const(-f.ln2[0], x.dtype), x)
    r = fma(n, const(-f.ln2[1], x.dtype), a)
    return r, fma(n, const(-f.ln2[1], x.dtype), a - r), bits


def expm1(x: Value) -> Value:
    """e ** x - 1, accurate near zero."""
    f = _format(x)
    c = _clamp(x, -f.mantissa * 0.9, f.exp_range[1])
    r, tail, bits = _reduced(c)
    s = _power_of_two(bits - 1, x)
    base, lost = _two_sum(s, const(-0.5, x.dtype))
    h, e = _fast_two_sum(base, s * r)
    small = fma(r * r, _poly(f.expm1, r), tail)
    y = (h + fma(s, small, e + lost)) * 2.0
    return where(_abs(x) < f.negligible, x, y)


def _sinh_cosh(x: Value) -> tuple[Pair, Pair]:
    """Half of sinh and of cosh as pairs, for x >= 0 in the range of exp.

    With x = n ln 2 + r and a, b = cosh, sinh(n ln 2):
    sinh x = b cosh r + a sinh r and cosh x = a cosh r + b sinh r.
    """
    f = _format(x)
    r, tail, bits = _reduced(x)
    s = _power_of_two(bits - 2, x)
    t = where(x > float(f.mantissa), 0.0, _power_of_two(0 - bits - 2, x))
    a, al = _fast_two_sum(s, t)
    b, bl = _fast_two_sum(s, -t)
    r2 = r * r
    sinh_r = fma(r2 * r, _poly(f.sinh, r2), tail)  # without r
    cosh_r = fma(r, tail, r2 * fma(_poly(f.cosh, r2), r2, 0.5))  # without 1
    hs, ht = fma(a, r, b), fma(b, r, a)
    ls, lt = fma(a, r, b - hs), fma(b, r, a - ht)
    return (
        (hs, fma(al, r, ls + bl) + fma(b, cosh_r, a * sinh_r)),
        (ht, fma(bl, r, lt + al) + fma(a, cosh_r, b * sinh_r)),
    )


def _capped(x: Value, limit: float) -> Value:
    """|x|, at most `limit`; NaN stays."""
    a = _abs(x)
    return where(a > limit, limit, a)


def sinh(x: Value) -> Value:
    """The hyperbolic sine."""
    f = _format(x)
    h, low = _sinh_cosh(_capped(x, f.exp_range[1] + 0.75))[0]
    return _odd(x, (h + low) * 2.0)


def cosh(x: Value) -> Value:
    """The hyperbolic cosine."""
    h, low = _sinh_cosh(_capped(x, _format(x).exp_range[1] + 0.75))[1]
    return (h + low) * 2.0


def tanh(x: Value) -> Value:
    """The hyperbolic tangent."""
    if x.dtype is float32:
        return _tanh_float32(x)
    s, c = _sinh_cosh(_capped(x, _format(x).mantissa * 0.375 + 1.0))
    h, low = _quotient(_fast_two_sum(*s), _fast_two_sum(*c))
    return _odd(x, h + low)


def _tanh_float32(x: Value) -> Value:
    """x + x**3 P(x**2) below 1, else 1 - 2 / (1 + exp(2 |x|))."""
    f = FORMATS[float32]
    a = _capped(x, 9.25)
    shifter = f.shifter + f.bias  # so that the low bits are those of a power of two
    t = fma(a, const(DOUBLE_LOG2E, float32), shifter)
    r = fma(a, const(DOUBLE_LOG2E, float32), shifter - t)
    s = bitcast(_bits(t) << f.mantissa, float32)
    # an ulp more than 1 makes up for what DOUBLE_LOG2E lacks, where that matters: just above 1
    far = 1.0 - 2.0 / fma(s, _poly(EXP2, r), 1.0 + 2.0**-23)
    z = a * a
    near = fma(a * z, _poly(TANH_NEAR, z), a)
    return _with_sign(where(a >= 1.0, far, near), _sign(x))  # near keeps NaN


def _odd(x: Value, y: Value) -> Value:
    """y with the sign of x, or x where that is tiny: for an odd function f with f(x) ~ x at 0."""
    return where(_abs(x) < _format(x).negligible, x, _with_sign(_abs(y), _sign(x)))


def sigmoid(x: Value) -> Value:
    """1 / (1 + e ** -x)."""
    f = _format(x)
    c = _clamp(-x, -f.mantissa * 0.9, f.exp_range[1] + f.mantissa)
    r, tail, bits = _reduced(c)
    shift = f.bias // 2
    s = _power_of_two(bits - shift, x)
    tiny = 2.0**-shift
    small = fma(fma(_poly(f.exp, r), r, 1.0), r, tail)
    h, low = _two_sum(s, const(tiny, x.dtype))
    h, low = _fast_two_sum(h, fma(s, small, low))
    q = 1.0 / h
    return fma(-q, fma(q, low, fma(q, h, -1.0)), q) * tiny


# --- logarithms -----------------------------------------------------------------------------------


def _split(x: Value) -> tuple[Value, Value, Value]:
    """e, m - 1, and e above the mantissa bits, for normal x = m * 2**e > 0 with m about 1."""
    f = _format(x)
    i = _bits(x) - f.log_low
    k = i & (f.sign * 2 - (1 << f.mantissa))
    m = bitcast(_bits(x) - k, x.dtype)
    e = cast(bitcast(k, int32) >> 23, float32) if x.dtype is float32 else _small_integer(k)
    return e, m - 1.0, k


def _small_integer(k: Value) -> Value:
    n = bitcast(bitcast(k, int64) >> 52, uint64) + FORMATS[float64].shifter_bits
    return bitcast(n, float64) - FORMATS[float64].shifter


def _normal(x: Value) -> tuple[Value, Value]:
    """x scaled up where it is denormal, and the exponent to subtract."""
    f = _format(x)
    tiny = x < f.smallest_normal
    up = f.mantissa + 2
    return where(tiny, x * 2.0**up, x), where(tiny, const(up, x.dtype), 0.0)


def _log_tail(f: Value) -> Value:
    """f - log(1 + f), for 1 + f as `_split` leaves it."""
    form = _format(f)
    if f.dtype is float32:
        return f * f * -_poly(form.log, f)
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return half - s * (fma(_poly(form.log, z), z, half))


def _log_special(x: Value, y: Value) -> Value:
    """y, but log's values where x is negative, zero, infinite or NaN."""
    odd = where(x < 0.0, math.nan, where(eq(x, 0.0), -math.inf, x))
    return where((x > 0.0) & (x < math.inf), y, odd)


def log(x: Value) -> Value:
    """The natural logarithm."""
    form = _format(x)
    normal, up = _normal(x)
    e, f, _ = _split(normal)
    e = e - up
    h, low = _fast_two_sum(e * form.ln2[0], f)
    return _log_special(x, h + (fma(e, const(form.ln2[1], x.dtype), low) - _log_tail(f)))


def _log_to_base(
    x: Value, per_octave: tuple[float, float], per_neper: tuple[float, float]
) -> Value:
    normal, up = _normal(x)
    e, f, _ = _split(normal)
    e = e - up
    fh, fl = _fast_two_sum(f, -_log_tail(f))
    h, low = _two_product(fh, per_neper[0])
    low = fma(fh, const(per_neper[1], x.dtype), low) + fl * per_neper[0]
    s, t = _two_sum(e * per_octave[0], h)
    return _log_special(x, s + (fma(e, const(per_octave[1], x.dtype), t) + low))


def log2(x: Value) -> Value:
    """The logarithm to base 2."""
    return _log_to_base(x, (1.0, 0.0), _format(x).log2e)


def log10(x: Value) -> Value:
    """The logarithm to base 10."""
    return _log_to_base(x, _format(x).log10_2, _format(x).log10_e)


def _log1p_of_pair(h: Value, low: Value, octaves: Value | None = None) -> Pair:
    """log(1 + h + low) + octaves * log(2) as two parts, for a pair > -1 of finite parts."""
    form = _format(h)
    u, v = _two_sum(const(1.0, h.dtype), h)
    e, f, k = _split(u)
    # where 2**-e is not normal, v and low play no part
    scale = where(e > form.bias - 2.0, 0.0, bitcast(form.one - k, h.dtype))
    v = v * scale
    # log(1 + f + v) = log(1 + f) + v / (1 + f) - (v / (1 + f))**2 / 2
    g = f * (1.0 - f)
    small = fma(v, fma(f, g, v * -0.5 - f), low * scale * (1.0 - g))
    e = e if octaves is None else e + octaves
    a, b = _fast_two_sum(e * form.ln2[0], f)
    c, d = _two_sum(a, v)
    return c, d + (fma(e, const(form.ln2[1], h.dtype), b + small) - _log_tail(f))


def log1p(x: Value) -> Value:
    """log(1 + x), accurate near zero."""
    usual = (x > -1.0) & (x < math.inf)
    y, t = _log1p_of_pair(where(usual, x, 0.0), const(0.0, x.dtype))
    odd = where(x < -1.0, math.nan, where(eq(x, -1.0), -math.inf, x))
    return where(usual & ne(x, 0.0), y + t, odd)


def logaddexp(x: Value, y: Value) -> Value:
    """log(e ** x + e ** y)."""
    high, low = where(x < y, y, x), where(x < y, x, y)
    d, e = _two_sum(low, -high)
    usual = d > -math.inf  # false for infinities and NaN
    (p, q), bits = _exp_parts(
        _clamp(where(usual, d, 0.0), _format(x).exp_range[0], 0.0), where(usual, e, 0.0)
    )
    p, q = _fast_two_sum(p, q)
    h, t = _log1p_of_pair(_scale(p, bits), _scale(q, bits))
    h, c = _two_sum(high, h)
    return where(usual, h + (c + t), where(ne(x, x) | ne(y, y), x + y, high))


def asinh(x: Value) -> Value:
    """The inverse hyperbolic sine."""
    form = _format(x)
    a = _abs(x)
    large = a > 2.0 ** (form.mantissa // 2 + 2)
    b = where(large, 1.0, a)
    p, e = _two_product(b, b)
    q, d = _two_sum(const(1.0, x.dtype), p)
    r, t = _root((q, d + e))
    h, low = _two_sum(b, r - 1.0)
    h, low = _fast_two_sum(h, low + t)
    g, c = _two_sum(where(a < math.inf, a, 1.0), const(-1.0, x.dtype))
    octaves = where(large, const(1.0, x.dtype), 0.0)
    y, t = _log1p_of_pair(where(large, g, h), where(large, c, low), octaves)
    y = where((a < math.inf) & (a > form.smallest_normal), y + t, a)
    return _with_sign(_abs(y), _sign(x))


def acosh(x: Value) -> Value:
    """The inverse hyperbolic cosine."""
    form = _format(x)
    large = x > 2.0 ** (form.mantissa // 2 + 2)
    b = where((x >= 1.0) & (x <= 2.0 ** (form.mantissa // 2 + 2)), x, 2.0)
    # x*x - 1 = (x - 1) (x + 1), the first factor exact for x < 2
    m = b - 1.0
    p, e = _two_product(m, m)
    q, d = _two_sum(m + m, p)
    positive = q > 0.0
    r, t = _root((where(positive, q, 1.0), d + e))
    h, low = _two_sum(m, r)
    h, low = _fast_two_sum(h, low + t)
    g, c = _two_sum(where(x < math.inf, x, 1.0), const(-1.0, x.dtype))
    octaves = where(large, const(1.0, x.dtype), 0.0)
    y, t = _log1p_of_pair(where(large, g, h), where(large, c, low), octaves)
    y = where(eq(x, 1.0), 0.0, where(x < math.inf, y + t, x))
    return where(x < 1.0, math.nan, y)


def atanh(x: Value) -> Value:
    """The inverse hyperbolic tangent."""
    a = _abs(x)
    inside = a < 1.0
    b = where(inside, a, 0.0)
    d = _fast_two_sum(const(1.0, x.dtype), -b)
    h, low = _quotient((b + b, const(0.0, x.dtype)), d)
    y, t = _log1p_of_pair(h, low)
    y = where(inside, (y + t) * 0.5, where(eq(a, 1.0), const(math.inf, x.dtype), math.nan))
    y = where(ne(x, x) | (a < _format(x).smallest_normal), a, y)
    return _with_sign(y, _sign(x))


# --- powers and roots ---------------------------------------------------------------------------


def rsqrt(x: Value) -> Value:
    """1 / sqrt(x)."""
    f = _format(x)
    tiny = x < f.smallest_normal
    half = f.mantissa // 2 + 1
    a = where(tiny, x * 4.0**half, x)
    r = 1.0 / sqrt(a)
    # one Newton step on the exact residual 1 - a r r
    p, e = _two_product(a, r)
    better = fma(r * 0.5, fma(-p, r, 1.0) - e * r, r)
    usual = (a > 0.0) & (a < math.inf)
    return where(usual, better, r) * where(tiny, const(2.0**half, x.dtype), 1.0)


def cbrt(x: Value) -> Value:
    """The cube root."""
    f = _format(x)
    third = (f.mantissa + 2) // 3
    a = _abs(x)
    tiny = a < f.smallest_normal
    a = where(tiny, a * 8.0**third, a)
    usual = (a > 0.0) & (a < math.inf)
    b = where(usual, a, 1.0)
    # b = m * 8**k, 1 <= m < 8
    e, _, _ = _split_exponent(b)
    k = rint(fma(e, const(1.0 / 3.0, x.dtype), -1.0 / 3.0))
    e3 = e - k * 3.0
    m = bitcast((_bits(b) & ((1 << f.mantissa) - 1)) | f.one, x.dtype)
    m = m * where(e3 > 1.5, 4.0, where(e3 > 0.5, const(2.0, x.dtype), 1.0))
    r = _poly(f.cbrt, m)
    for _ in range(f.cbrt_steps):  # r -> 1 / cbrt(m)
        r = fma(r * (1.0 / 3.0), fma(-m * r, r * r, 1.0), r)
    c = m * r * r
    p, q = _two_product(c, c)
    rest = fma(-p, c, m) - q * c
    c = fma(rest * (1.0 / 3.0), r * r, c)
    k = k - where(tiny, const(third, x.dtype), 0.0)
    _, bits = _nearest(k, 1.0)
    y = c * _power_of_two(bits, x)
    return _with_sign(where(usual, y, _abs(x)), _sign(x))


def _split_exponent(x: Value) -> tuple[Value, Value, Value]:
    """The exponent of a normal x > 0, as a float, thrice."""
    f = _format(x)
    k = (_bits(x) >> f.mantissa) + (f.shifter_bits - f.bias)
    e = bitcast(k, x.dtype) - f.shifter
    return e, e, e


def hypot(x: Value, y: Value) -> Value:
    """sqrt(x*x + y*y) without undue overflow or underflow."""
    f = _format(x)
    a, b = _abs(x), _abs(y)
    high, low = where(a < b, b, a), where(a < b, a, b)
    big = f.bias // 2
    low_limit, far = 2.0 ** (f.mantissa + 2 - big), 2.0 ** (f.bias * 3 // 4)
    up = where(high < low_limit, const(far, x.dtype), 1.0)
    up = where(high > 2.0**big, 2.0 ** -(big + 1), up)
    down = where(high < low_limit, const(1.0 / far, x.dtype), 1.0)
    down = where(high > 2.0**big, 2.0 ** (big + 1), down)
    h, t = high * up, low * up
    p, e = _two_product(h, h)
    q, d = _two_product(t, t)
    s, c = _fast_two_sum(p, q)
    usual = (s > 0.0) & (s < math.inf)
    r, tail = _root((where(usual, s, 1.0), c + (e + d)))
    y_ = where(usual, (r + tail) * down, a + b)
    infinite = eq(a, math.inf) | eq(b, math.inf)
    return where(infinite, math.inf, y_)


def _log_pair(x: Value) -> Pair:
    """log(x) as a pair with some 12 (float32: 10) extra bits, for finite x > 0."""
    form = _format(x)
    normal, up = _normal(x)
    e, f, _ = _split(normal)
    e = e - up
    s = _quotient((f, const(0.0, x.dtype)), _fast_two_sum(const(2.0, x.dtype), f))
    s = _fast_two_sum(*s)
    z = _pair_product(s, s)
    # atanh(s) = s + s z (1/3 + z Q(z))
    third = form.third
    q = z[0] * _poly(form.atanh, z[0])
    w = _fast_two_sum(const(third[0], x.dtype), q)
    w = w[0], w[1] + third[1]
    t = _pair_product(_pair_product(s, z), w)
    t = _pair_sum(s, t)
    t = t[0] * 2.0, t[1] * 2.0
    big = _two_product(e, form.ln2_full[0])
    big = big[0], fma(e, const(form.ln2_full[1], x.dtype), big[1])
    return _pair_sum(big, t)


def pow(x: Value, y: Value) -> Value:
    """x ** y."""
    form = _format(x)
    a = _abs(x)
    usual = (a > 0.0) & (a < math.inf)
    limit = form.pow_limit
    yc = _clamp(y, -limit, limit)
    yc = where(ne(y, y), 0.0, yc)
    lh, ll = _log_pair(where(usual, a, 1.0))
    p, e = _two_product(lh, yc)
    z = _exp_of_pair(p, fma(ll, yc, e))
    whole = eq(trunc(y), y)
    odd = whole & ne(trunc(y * 0.5) * 2.0, y) & (_abs(y) < math.inf)
    negative = ne(_sign(x), 0)
    # zero and infinity as bases
    outward = eq(eq(a, 0.0), y < 0.0)
    z = where(usual, z, where(outward, const(math.inf, x.dtype), 0.0))
    z = where(usual & negative & ~whole, math.nan, z)
    z = where(odd, _with_sign(z, _sign(x)), z)
    # infinite exponents
    far = eq(_abs(y), math.inf)
    z = where(
        far, where(eq(a, 1.0), 1.0, where(eq(a > 1.0, y > 0.0), const(math.inf, x.dtype), 0.0)), z
    )
    z = where(ne(x, x) | ne(y, y), x + y, z)
    return where(eq(y, 0.0) | eq(x, 1.0), 1.0, z)


# --- circular functions -------------------------------------------------------------------------


def _near_turn(x: Value) -> tuple[Pair, Value]:
    """x - n pi/2 as a pair, and n in the top two bits, for |x| < 2**25.

    Source: Cody and Waite 1980, with pi/2 in three parts.
    """
    f = _format(x)
    n, bits = _nearest(x, 2.0 / math.pi)
    p1, p2, p3 = (const(-p, x.dtype) for p in f.half_pi)
    p, e = _two_product(n, p2)
    h, low = _two_sum(fma(n, p1, x), p)
    return _fast_two_sum(h, low + fma(n, p3, e)), bits << (bits.dtype.bits - 2)


def _high_product(a: Value, b: Value) -> Value:
    """The upper 64 bits of the product of two uint64, by halves."""
    a0, a1, b0, b1 = a & 0xFFFFFFFF, a >> 32, b & 0xFFFFFFFF, b >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)
    other = a0 * b1 + (middle & 0xFFFFFFFF)
    return a1 * b1 + (middle >> 32) + (other >> 32)


def _window(words: Sequence[int], position: Value, count: int) -> list[Value]:
    """`count` 64-bit words of the bit string `words` from bit `position` (uint64) on."""
    index, shift = position >> 6, position & 63
    now = [const(w, uint64) for w in words]
    step = 1 << ((len(words) - count - 1).bit_length() - 1)
    while step:
        bit = ne(index & step, 0)
        keep = min(len(now), count + step)
        now = [
            where(bit, now[i + step], now[i]) if i + step < len(now) else now[i]
            for i in range(keep)
        ]
        step //= 2
    back = 63 - shift
    return [(now[i] << shift) | ((now[i + 1] >> 1) >> back) for i in range(count)]


def _far_turn(x: Value) -> tuple[Pair, Value]:
    """x - n pi/2 as a pair, and n in the top two bits, for finite float64 x >= 2**25.

    Source: Payne and Hanek 1983.
    """
    f = FORMATS[float64]
    m = (_bits(x) & ((1 << 52) - 1)) | (1 << 52)
    e = _bits(x) >> 52
    # x = m 2**(e - 1075). Bits of 2/pi above 2**(1076 - e) only give multiples of 4 quadrants.
    position = where(e > 1045, e - 1045, 0)
    w = _window(_TWO_OVER_PI, where(position > 1001, 1001, position), 3)
    low = m * w[1] + _high_product(m, w[2])
    carry = cast(low < m * w[1], uint64)
    high = m * w[0] + _high_product(m, w[1]) + carry
    n = high + (1 << 61)
    t = bitcast(
        high - (n & (3 << 62)), int64
    )  # the fraction of a quadrant is t / 2**62 + low / 2**126
    h = cast(t, float64)
    rest = fma(cast(t - cast(h, int64), float64), 2.0**64, cast(low, float64)) * 2.0**-64
    half_pi = const(f.half_pi[0], float64), const(f.half_pi[1], float64)
    r = _pair_product(_fast_two_sum(h, rest), half_pi)
    return (r[0] * 2.0**-62, r[1] * 2.0**-62), n


def _turn(x: Value) -> tuple[Pair, Value]:
    """x >= 0 as n pi/2 + a pair within pi/4 (float32: 1), and n in the top two bits.

    The low part is NaN where x is infinite or NaN.
    """
    if x.dtype is float32:
        return _turn_float32(x)
    far = x > 2.0**25
    (a, b), n = _near_turn(x)
    (c, d), m = _far_turn(x)
    low = where(x < math.inf, where(far, d, b), math.nan)
    return (where(far, c, a), low), where(far, m, n)


def _turn_float32(x: Value) -> tuple[Pair, Value]:
    """Float32 x >= 0 as n pi/2 + a pair in -1..1, and n in the top two bits.

    Payne and Hanek's method, for x >= 1: with x = m 2**(e - 150), bits of 2/pi above 2**(151 - e)
    only make multiples of 4 quadrants. The next 32 bits times m are exact in wrapping integers, 23
    more in float32 (their product less its integer part), and the last 24 need no exactness.
    Infinities and NaN make the low part NaN.
    """
    b = _bits(x)
    a, c, d = _window32((b >> 23) - 127)
    m = bitcast((b & 0x7FFFFF) | 0x3F800000, float32)
    middle = cast(bitcast(c >> 9, int32), float32)
    last = cast(bitcast(((c << 23) | (d >> 9)) >> 8, int32), float32)
    whole = rint(m * middle)
    half = fma(x, 0.0, 2.0**-25)  # of the last place; NaN where x is not finite
    rest = fma(fma(last, const(2.0**-24, float32), half), m, fma(m, middle, -whole))
    p = ((b & 0x7FFFFF) | 0x800000) * a + bitcast(cast(whole, int32), uint32)
    # in 2**-31 quadrants, signed: h + t
    p, n = bitcast(p << 2, int32) >> 1, p + (1 << 29)
    h = cast(p, float32)
    t = fma(rest, const(2.0, float32), cast(p - cast(h, int32), float32))
    high, low = _two_product(h, HALF_PI_SCALED[0])
    low = fma(h, const(HALF_PI_SCALED[1], float32), fma(t, const(HALF_PI_SCALED[0], float32), low))
    small = x < 1.0
    return (where(small, x, high), where(small, 0.0, low)), where(small, 0, n)


def _window32(position: Value) -> list[Value]:
    """Three 32-bit words of 2/pi, after 25 zero bits, from bit `position` < 128 on."""
    words = [
        const(TWO_OVER_PI >> (1216 + 25 - 32 * (i + 1)) & 0xFFFFFFFF, uint32) for i in range(7)
    ]
    second, first = ne(position & 64, 0), ne(position & 32, 0)
    words = [where(second, b, a) for a, b in zip(words, words[2:], strict=False)]
    words = [where(first, b, a) for a, b in pairwise(words)]
    shift = position & 31
    # a funnel shift, which compilers know in this form
    return [(a << shift) | ((b >> 1) >> (shift ^ 31)) for a, b in pairwise(words)]


def _sin_cos(x: Value) -> tuple[Pair, Pair, Value]:
    """sin and cos of x - n pi/2 for x >= 0, as two parts each, and n in the top two bits."""
    f = _format(x)
    (h, low), n = _turn(x)
    z = h * h
    sin = fma(h * z, _poly(f.sin, z), fma(low, z * -0.5, low))
    s, e = _fast_two_sum(const(1.0, x.dtype), z * -0.5)
    square = fma(h, h, -z) * -0.5
    cos = e + fma(z * z, _poly(f.cos, z), fma(-h, low, square))
    return (h, sin), (s, cos), n


def _flip(y: Value, sign: Value) -> Value:
    return bitcast(_bits(y) ^ sign, y.dtype)


def _quarter(n: Value) -> Value:
    """Whether n, in the top two bits, is odd."""
    return ne(n & (1 << (n.dtype.bits - 2)), 0)


def _sin_of_turn(x: Value, ahead: int, sign: Value | None) -> Value:
    """sin(x + ahead pi/2) for x >= 0, its sign bit exchanged with `sign`."""
    f = _format(x)
    (h, low), n = _turn(x)
    n = n + (ahead << (n.dtype.bits - 2))
    odd = _quarter(n)
    z = h * h
    # sin(h) = h + h z P(z), cos(h) = 1 - z/2 + z z Q(z): one polynomial with selected coefficients
    p = where(odd, const((*f.cos, 0.0)[len(f.sin) - 1], x.dtype), f.sin[-1])
    for c, d in zip(reversed(f.cos[: len(f.sin) - 1]), reversed(f.sin[:-1]), strict=True):
        p = fma(p, z, where(odd, const(c, x.dtype), d))
    # what low adds, and what rounding h * h took
    half = z * -0.5
    rest = where(odd, fma(-h, low, fma(h, h, -z) * -0.5), fma(half, low, low))
    p = fma(where(odd, z, h) * z, p, rest)
    y = where(odd, 1.0, h) + (where(odd, half, 0.0) + p)
    n = n & f.sign
    return _flip(y, n if sign is None else n ^ sign)


def sin(x: Value) -> Value:
    """The sine."""
    return _sin_of_turn(_abs(x), 0, _sign(x))


def cos(x: Value) -> Value:
    """The cosine."""
    return _sin_of_turn(_abs(x), 1, None)


def tan(x: Value) -> Value:
    """The tangent."""
    s, c, n = _sin_cos(_abs(x))
    s, c = _fast_two_sum(*s), _fast_two_sum(*c)
    odd = _quarter(n)
    q = _quotient(
        (where(odd, c[0], s[0]), where(odd, c[1], s[1])),
        (where(odd, -s[0], c[0]), where(odd, -s[1], c[1])),
    )
    return _flip(q[0] + q[1], _sign(x))


# --- their inverses -------------------------------------------------------------------------------


def _atan_of_quotient(n: Pair, d: Pair) -> Pair:
    """atan(n / d) as a pair for n >= 0 and d > 0, both far from over- and underflow."""
    f = _format(n[0])
    # atan(n/d) = base + atan(q), |q| <= tan(pi/8)
    high = n[0] > d[0] * 2.414213562373095
    middle = (n[0] > d[0] * 0.41421356237309503) & ~high
    plus, minus = _pair_sum(d, n), _pair_sum(n, (-d[0], -d[1]))
    zero = const(0.0, f.dtype)
    top = tuple(where(middle, m, where(high, -o, i)) for m, o, i in zip(minus, d, n, strict=True))
    low = tuple(where(middle, p, where(high, o, i)) for p, o, i in zip(plus, n, d, strict=True))
    h, t = _quotient((top[0], top[1]), (low[0], low[1]))
    z = h * h
    tail = fma(h * z, _poly(f.atan, z), fma(t, -z, t))
    bases = [
        where(
            middle,
            const(p / 2, f.dtype),
            where(high, const(p, f.dtype), zero),
        )
        for p in f.half_pi[:2]
    ]
    s, e = _fast_two_sum(bases[0], h)
    return s, e + (bases[1] + tail)


def atan(x: Value) -> Value:
    """The inverse tangent."""
    f = _format(x)
    a = _abs(x)
    limit = 2.0 ** (f.mantissa * 2)
    zero = const(0.0, x.dtype)
    y, t = _atan_of_quotient((where(a > limit, limit, a), zero), (const(1.0, x.dtype), zero))
    y = where(a < 2.0 ** -(f.mantissa // 2 + 2), a, y + t)
    return _with_sign(y, _sign(x))


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), in -pi..pi."""
    f = _format(x)
    a, b = _abs(y), _abs(x)
    infinite = eq(a, math.inf) & eq(b, math.inf)
    neither = (eq(a, 0.0) & eq(b, 0.0)) | infinite
    high = where(a < b, b, a)
    gap = 2.0 ** (f.mantissa + 4)
    # scale so that the larger is in a safe range
    big = f.bias // 2
    up = where(high > 2.0**big, 2.0**-big, where(high < 2.0**-big, const(2.0**big, x.dtype), 1.0))
    n, d = a * up, b * up
    n, d = where(eq(a, math.inf), 2.0**big, n), where(eq(b, math.inf), 2.0**big, d)
    n, d = where(eq(b, math.inf), 0.0, n), where(eq(a, math.inf), 0.0, d)
    zero = const(0.0, x.dtype)
    steep, flat = n > d * gap, n * gap < d
    negative = ne(_sign(x), 0)
    n1, d1 = where(neither, 1.0, n), where(neither, 1.0, d)
    h, t = _atan_of_quotient(
        (where(steep, const(1.0, x.dtype), n1), zero),
        (where(steep, const(2.0**-100 if f.bias > 127 else 2.0**-40, x.dtype), d1), zero),
    )
    # (0, 0) counts as the angle 0, both infinite as pi/4
    h, t = where(neither & ~infinite, 0.0, h), where(neither & ~infinite, 0.0, t)
    p1, p2 = f.half_pi[0] * 2, f.half_pi[1] * 2
    s, e = _fast_two_sum(const(p1, x.dtype), -h)
    angle = where(
        negative, s + (e + (p2 - t)), where(flat & ~neither, a / where(eq(b, 0.0), 1.0, b), h + t)
    )
    return where(ne(x, x) | ne(y, y), x + y, _with_sign(angle, _sign(y)))


def _asin_small(x: Value) -> Value:
    """asin(x) - x for |x| <= 1/2."""
    z = x * x
    return x * z * _poly(_format(x).asin, z)


def asin(x: Value) -> Value:
    """The inverse sine."""
    f = _format(x)
    a = _abs(x)
    near = a > 0.5
    z = (1.0 - a) * 0.5
    r, t = _root((where(z > 0.0, z, 1.0), const(0.0, x.dtype)))
    r, t = where(z > 0.0, r, 0.0), where(z > 0.0, t, 0.0)
    s = where(near, r, a)
    tail = _asin_small(s)
    p1, p2 = f.half_pi[:2]
    h, e = _fast_two_sum(const(p1, x.dtype), r * -2.0)
    y = where(near, h + (e + (p2 - 2.0 * (tail + t))), a + tail)
    y = where(a < 2.0 ** -(f.mantissa // 2 + 2), a, where(a <= 1.0, y, math.nan))
    return _with_sign(y, _sign(x))


def acos(x: Value) -> Value:
    """The inverse cosine."""
    f = _format(x)
    a = _abs(x)
    near = a > 0.5
    z = (1.0 - a) * 0.5
    r, t = _root((where(z > 0.0, z, 1.0), const(0.0, x.dtype)))
    r, t = where(z > 0.0, r, 0.0), where(z > 0.0, t, 0.0)
    s = where(near, r, x)
    tail = _asin_small(s)
    p1, p2 = f.half_pi[:2]
    h, e = _fast_two_sum(const(p1, x.dtype), -x)
    middle = h + (e + (p2 - tail))
    right = (r + (tail + t)) * 2.0
    k, g = _fast_two_sum(const(p1 * 2.0, x.dtype), r * -2.0)
    left = k + (g + (p2 * 2.0 - 2.0 * (tail + t)))
    y = where(near, where(x < 0.0, left, right), middle)
    return where(a <= 1.0, y, math.nan)


_TWO_OVER_PI = [(TWO_OVER_PI >> (32 + 64 * (18 - i))) & (2**64 - 1) for i in range(19)]


# --- the error function ---------------------------------------------------------------------------

_ERF_SPLIT = 0.75  # where erf turns from a polynomial to 1 - erfc


def _erfc_parts(x: Value) -> tuple[Pair, Value]:
    """erfc(x) as a pair to be scaled by 2**n, and bits of n, for 3/4 <= x <= `erfc_limit`."""
    f = _format(x)
    p, e = _two_product(x, x)
    (g, c), bits = _exp_parts(-p, -e)
    g, c = _fast_two_sum(g, c)
    # erfc(x) exp(x*x) (x + k) is a polynomial in 1 / (x + k), written in t = center - 2 k / (x + k)
    k = f.erfc_pole
    d, v = _two_sum(x, const(k, x.dtype))
    r = 1.0 / d
    rest = r * (fma(-r, d, 1.0) - r * v)
    p, e = _two_product(r, 2.0 * k)
    t = f.erfc_center - p
    u = fma(rest, const(-2.0 * k, x.dtype), ((f.erfc_center - t) - p) - e)
    q = _poly(f.erfc[2:], t)
    h = fma(q, t, f.erfc[0])
    low = fma(q + q - f.erfc[2], u, fma(q, t, f.erfc[0] - h) + f.erfc[1])
    return _pair_product((g, c), _pair_product((h, low), (r, rest))), bits


def erf(x: Value) -> Value:
    """The error function."""
    f = _format(x)
    a = _abs(x)
    z = x * x
    near = fma(x, _poly(f.erf, z), x)
    (h, low), bits = _erfc_parts(_clamp(a, _ERF_SPLIT, f.erf_limit))
    s = _power_of_two(bits, x)
    b, c = _fast_two_sum(const(1.0, x.dtype), -(h * s))
    y = where(a < _ERF_SPLIT, near, _with_sign(b + (c - low * s), _sign(x)))
    return where(a < f.negligible, fma(x, const(f.erf[0], x.dtype), x), y)


def erfc(x: Value) -> Value:
    """The complementary error function, 1 - erf(x)."""
    f = _format(x)
    a = _abs(x)
    z = x * x
    s, e = _fast_two_sum(const(1.0, x.dtype), -x)
    near = s + fma(-x, _poly(f.erf, z), e)
    (h, low), bits = _erfc_parts(_clamp(a, _ERF_SPLIT, f.erfc_limit))
    far = _scale(h + low, bits)
    y = where(a < _ERF_SPLIT, near, where(x < 0.0, 2.0 - far, far))
    return y
