"""Elementary functions in the kernel IR: no branch, no table, the same bits on every device.

Each takes and gives float32 or float64 Values. Both dtypes share one algorithm where they can; the
numbers that differ (coefficients, split constants) are in `coefficients.py`. Circular functions are
in `trigonometry.py`, the error function in `special.py`, their building blocks in `float_parts.py`.

Special values follow C99 annex F. Measured errors are listed in docs/accuracy.md.
"""

from __future__ import annotations

import math

from ..dtypes import float32, float64, int32, int64, uint64
from ..ir.language import Value, bitcast, cast, const, eq, fma, ne, sqrt, trunc, where
from .coefficients import DOUBLE_LOG2E, EXP2, FORMATS, LOG_BASES, TANH_NEAR, LogBase
from .float_parts import (
    Pair,
    apply_sign_bit,
    bits_of,
    clamp,
    fast_two_sum,
    format_of,
    is_positive_normal,
    magnitude,
    pair_product,
    pair_sum,
    poly,
    power_of_two,
    quotient,
    rough_sqrt_pair,
    round_scaled,
    scale_by_power_of_two,
    sign_of,
    sqrt_pair,
    two_product,
    two_sum,
)

# --- exponentials ---------------------------------------------------------------------------------


def exp(x: Value) -> Value:
    """Return e ** x."""
    f = format_of(x)
    c = clamp(x, *f.exp_range)
    n, bits = round_scaled(c, f.log2e[0])
    r = fma(n, const(-f.ln2[1], x.dtype), fma(n, const(-f.ln2[0], x.dtype), c))
    p = fma(fma(poly(f.exp, r), r, 1.0), r, 1.0)
    return scale_by_power_of_two(p, bits, x < f.exp_range[0])


def exp2(x: Value) -> Value:
    """Return 2 ** x."""
    f = format_of(x)
    least = -f.bias - f.mantissa - 3.0
    c = clamp(x, least, f.bias + 2.0)
    n, bits = round_scaled(c, 1.0)
    r = c - n
    return scale_by_power_of_two(fma(poly(f.exp2, r), r, 1.0), bits, x < least)


def exp_parts(h: Value, low: Value) -> tuple[Pair, Value]:
    """Return exp(h + low) as a pair to be scaled by 2**n, and bits of n.

    h must be in the range of exp, and low be some ulp at most.
    """
    r, tail, bits = _reduce_exponent(h)
    s, e = fast_two_sum(const(1.0, h.dtype), r)
    small = fma(r * r, poly(format_of(h).expm1, r), e)
    return (s, fma(tail + low, s + small, small)), bits


def _reduce_exponent(x: Value) -> tuple[Value, Value, Value]:
    """Return r, a correction, and bits of n: x = n ln 2 + r + correction, |r| <= ln(2) / 2."""
    f = format_of(x)
    n, bits = round_scaled(x, f.log2e[0])
    a = fma(n, const(-f.ln2[0], x.dtype), x)
    r = fma(n, const(-f.ln2[1], x.dtype), a)
    return r, fma(n, const(-f.ln2[1], x.dtype), a - r), bits


def expm1(x: Value) -> Value:
    """Return e ** x - 1, accurate near zero."""
    f = format_of(x)
    c = clamp(x, -f.mantissa * 0.9, f.exp_range[1])
    r, tail, bits = _reduce_exponent(c)
    s = power_of_two(bits - 1, x)
    base, lost = two_sum(s, const(-0.5, x.dtype))
    h, e = fast_two_sum(base, s * r)
    small = fma(r * r, poly(f.expm1, r), tail)
    y = (h + fma(s, small, e + lost)) * 2.0
    return where(magnitude(x) < f.negligible, x, y)


def _sinh_cosh(x: Value) -> tuple[Pair, Pair]:
    """Return half of sinh and of cosh as pairs, for x >= 0 in the range of exp.

    With x = n ln 2 + r and a, b = cosh, sinh(n ln 2):
    sinh x = b cosh r + a sinh r and cosh x = a cosh r + b sinh r.
    """
    f = format_of(x)
    r, tail, bits = _reduce_exponent(x)
    s = power_of_two(bits - 2, x)
    t = where(x > float(f.mantissa), 0.0, power_of_two(0 - bits - 2, x))
    r2 = r * r
    sinh_r = fma(r2 * r, poly(f.sinh, r2), tail)  # without r
    cosh_r = fma(r, tail, r2 * fma(poly(f.cosh, r2), r2, 0.5))  # without 1
    (a, al), (b, bl) = fast_two_sum(s, t), fast_two_sum(s, -t)
    hs, ht = fma(a, r, b), fma(b, r, a)
    ls, lt = fma(a, r, b - hs), fma(b, r, a - ht) + al
    if x.dtype is float64:  # in float32 these are a third of an ulp at most
        ls, lt = fma(al, r, ls + bl), fma(bl, r, lt)
    return (
        (hs, ls + fma(b, cosh_r, a * sinh_r)),
        (ht, lt + fma(a, cosh_r, b * sinh_r)),
    )


def _cap_magnitude(x: Value, limit: float) -> Value:
    """Return |x|, at most `limit`; NaN stays."""
    a = magnitude(x)
    return where(a > limit, limit, a)


def sinh(x: Value) -> Value:
    """Return the hyperbolic sine."""
    f = format_of(x)
    h, low = _sinh_cosh(_cap_magnitude(x, f.exp_range[1] + 0.75))[0]
    return _restore_sign(x, (h + low) * 2.0)


def cosh(x: Value) -> Value:
    """Return the hyperbolic cosine."""
    h, low = _sinh_cosh(_cap_magnitude(x, format_of(x).exp_range[1] + 0.75))[1]
    return (h + low) * 2.0


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent."""
    if x.dtype is float32:
        return _tanh_float32(x)
    s, c = _sinh_cosh(_cap_magnitude(x, format_of(x).mantissa * 0.375 + 1.0))
    h, low = quotient(fast_two_sum(*s), fast_two_sum(*c))
    return _restore_sign(x, h + low)


def _tanh_float32(x: Value) -> Value:
    """Return tanh as x + x**3 P(x**2) below 1, else as 1 - 2 / (1 + exp(2 |x|))."""
    f = FORMATS[float32]
    a = _cap_magnitude(x, 9.25)
    shifter = f.shifter + f.bias  # so that the low bits are those of a power of two
    t = fma(a, const(DOUBLE_LOG2E, float32), shifter)
    r = fma(a, const(DOUBLE_LOG2E, float32), shifter - t)
    s = bitcast(bits_of(t) << f.mantissa, float32)
    # an ulp more than 1 makes up for the error of DOUBLE_LOG2E where that matters: just above 1
    far = 1.0 - 2.0 / fma(s, poly(EXP2, r), 1.0 + 2.0**-23)
    z = a * a
    near = fma(a * z, poly(TANH_NEAR, z), a)
    return apply_sign_bit(where(a >= 1.0, far, near), sign_of(x))  # near keeps NaN


def _restore_sign(x: Value, y: Value) -> Value:
    """Return y with the sign of x, or a tiny x itself: for an odd function f with f(x) ~ x at 0."""
    return where(
        magnitude(x) < format_of(x).negligible, x, apply_sign_bit(magnitude(y), sign_of(x))
    )


def sigmoid(x: Value) -> Value:
    """Return 1 / (1 + e ** -x)."""
    f = format_of(x)
    c = clamp(-x, -f.mantissa * 0.9, f.exp_range[1] + f.mantissa)
    r, tail, bits = _reduce_exponent(c)
    shift = f.bias // 2
    s = power_of_two(bits - shift, x)
    tiny = 2.0**-shift
    small = fma(fma(poly(f.exp, r), r, 1.0), r, tail)
    h, low = two_sum(s, const(tiny, x.dtype))
    h, low = fast_two_sum(h, fma(s, small, low))
    q = 1.0 / h
    return fma(-q, fma(q, low, fma(q, h, -1.0)), q) * tiny


# --- logarithms -----------------------------------------------------------------------------------


def _split_octave(x: Value, low: int) -> tuple[Value, Value, Value]:
    """Return e, m, and e above the mantissa bits, for normal x = m * 2**e > 0.

    m is in the octave that begins at the mantissa `low`.
    """
    f = format_of(x)
    k = (bits_of(x) - low) & (f.sign * 2 - (1 << f.mantissa))
    e = cast(bitcast(k, int32) >> 23, float32) if x.dtype is float32 else _upper_bits_as_float(k)
    return e, bitcast(bits_of(x) - k, x.dtype), k


def _upper_bits_as_float(k: Value) -> Value:
    """Return the signed integer in the upper 12 bits of a uint64, as a float64."""
    n = bitcast(bitcast(k, int64) >> 52, uint64) + FORMATS[float64].shifter_bits
    return bitcast(n, float64) - FORMATS[float64].shifter


def _scale_denormal(x: Value) -> tuple[Value, Value]:
    """Return x, scaled up if it is denormal, and the exponent to subtract."""
    f = format_of(x)
    tiny = x < f.smallest_normal
    up = f.mantissa + 2
    return where(tiny, x * 2.0**up, x), where(tiny, const(up, x.dtype), 0.0)


def _log_tail(f: Value) -> Value:
    """Return f - log(1 + f), for 1 + f in the octave from `log_low` or `log1p_low` on."""
    form = format_of(f)
    if f.dtype is float32:
        return f * f * -poly(form.log, f)
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return fma(-s, fma(poly(form.log, z), z, half), half)


def _log_of_normal(x: Value, base: LogBase, up: float = 0.0) -> Value:
    """Return the logarithm of x * 2**-up, for normal x > 0."""
    e, m, _ = _split_octave(x, format_of(x).log_low)
    e = e - up if up else e
    f, scale = m - 1.0, const(base.neper[0], x.dtype)
    # the sum of h and low is all but exact, since |f scale| is at most half of an octave
    octaves = e * base.octave[0]
    h = fma(f, scale, octaves)
    low = fma(f, scale, octaves - h)
    if base.octave[1]:
        low = fma(e, const(base.octave[1], x.dtype), low)
    if x.dtype is float32:
        return h + fma(f, poly(base.series, f), low)
    if base.neper[1]:
        low = fma(f, const(base.neper[1], x.dtype), low)
    return h + fma(_log_tail(f), -scale, low)


def _log(x: Value, base: LogBase) -> Value:
    """Return the logarithm of any x to a base."""
    up = format_of(x).mantissa + 2.0
    odd = where(eq(x, 0.0), const(-math.inf, x.dtype), math.nan)
    scaled = where(x < math.inf, _log_of_normal(x * 2.0**up, base, up), x)
    return where(is_positive_normal(x), _log_of_normal(x, base), where(x > 0.0, scaled, odd))


def log(x: Value) -> Value:
    """Return the natural logarithm."""
    return _log(x, LOG_BASES[x.dtype]["e"])


def log2(x: Value) -> Value:
    """Return the logarithm to base 2."""
    return _log(x, LOG_BASES[x.dtype]["2"])


def log10(x: Value) -> Value:
    """Return the logarithm to base 10."""
    return _log(x, LOG_BASES[x.dtype]["10"])


def log1p_of_pair(h: Value, low: Value | None, octaves: Value | None = None) -> Pair:
    """Return log(1 + h + low) + octaves * log(2) as two parts, for -1 < h < 2**100, low a few ulp.

    The first part is exact enough that the second is small.
    """
    form = format_of(h)
    e, _, k = _split_octave(h + 1.0, form.log1p_low)
    scale = bitcast(form.one - k, h.dtype)
    f = fma(h, scale, scale - 1.0)  # exact: 1 + h is between 3/4 and 3/2 of 1 / scale
    e = e if octaves is None else e + octaves
    s, c = fast_two_sum(e * form.ln2[0], f)
    c = fma(e, const(form.ln2[1], h.dtype), c)
    if low is not None:
        # log(1 + f + v) = log(1 + f) + v / (1 + f), the quotient to 1.6 %
        c = fma(low * scale, fma(f, fma(f, const(0.8074, f.dtype), -1.0500), 1.0), c)
    return s, c - _log_tail(f)


def log1p(x: Value) -> Value:
    """Return log(1 + x), accurate near zero."""
    y, t = log1p_of_pair(x, None)
    large = where(x < math.inf, _log_of_normal(x, LOG_BASES[x.dtype]["e"]), x)
    odd = where(x > 1.0, large, where(eq(x, -1.0), const(-math.inf, x.dtype), math.nan))
    y = where((x > -1.0) & (x < 2.0**100), y + t, odd)
    return bitcast(bits_of(magnitude(y)) | sign_of(x), x.dtype)


def logaddexp(x: Value, y: Value) -> Value:
    """Return log(e ** x + e ** y)."""
    high, low = where(x < y, y, x), where(x < y, x, y)
    d, e = two_sum(low, -high)
    is_regular = d > -math.inf  # false for infinities and NaN
    (p, q), bits = exp_parts(
        clamp(where(is_regular, d, 0.0), format_of(x).exp_range[0], 0.0), where(is_regular, e, 0.0)
    )
    p, q = fast_two_sum(p, q)
    h, t = log1p_of_pair(scale_by_power_of_two(p, bits), scale_by_power_of_two(q, bits))
    h, c = two_sum(high, h)
    return where(is_regular, h + (c + t), where(ne(x, x) | ne(y, y), x + y, high))


def _log_of_double(x: Value) -> Value:
    """Return log(2 x) for normal x > 0, and x itself for infinity and NaN."""
    return where(x < math.inf, _log_of_normal(x, LOG_BASES[x.dtype]["e"], -1.0), x)


def asinh(x: Value) -> Value:
    """Return the inverse hyperbolic sine."""
    a = magnitude(x)
    p, e = two_product(a, a)
    q, d = two_sum(const(1.0, x.dtype), p)
    r, t = sqrt_pair((q, d + e))
    h, low = fast_two_sum(a, r - 1.0)
    y, t = log1p_of_pair(h, low + t)
    limit = 2.0 ** (format_of(x).mantissa // 2 + 2)
    y = where(a < limit, y + t, _log_of_double(a))
    return apply_sign_bit(magnitude(y), sign_of(x))


def acosh(x: Value) -> Value:
    """Return the inverse hyperbolic cosine."""
    # x*x - 1 = (x - 1) (x + 1), the first factor exact for x < 2
    m = x - 1.0
    p, e = two_product(m, m)
    q, d = two_sum(m + m, p)
    r, t = rough_sqrt_pair((q, d + e))
    h, low = fast_two_sum(r, m)
    y, t = log1p_of_pair(h, low + t)
    limit = 2.0 ** (format_of(x).mantissa // 2 + 2)
    y = where(x < limit, y + t, _log_of_double(x))
    return where(x < 1.0, math.nan, y)


def atanh(x: Value) -> Value:
    """Return the inverse hyperbolic tangent."""
    a = magnitude(x)
    d, lost = fast_two_sum(const(1.0, x.dtype), -a)
    r, n = 1.0 / d, a + a
    q = n * r
    y, t = log1p_of_pair(q, fma(-q, lost, fma(-q, d, n)) * r)
    odd = where(eq(a, 1.0), const(math.inf, x.dtype), math.nan)
    return apply_sign_bit(where(a < 1.0, (y + t) * 0.5, odd), sign_of(x))


# --- roots and powers -----------------------------------------------------------------------------


def rsqrt(x: Value) -> Value:
    """Return 1 / sqrt(x)."""
    f = format_of(x)
    tiny = x < f.smallest_normal
    half = f.mantissa // 2 + 1
    a = where(tiny, x * 4.0**half, x)
    r = 1.0 / sqrt(a)
    # one Newton step on the exact residual 1 - a r r
    p, e = two_product(a, r)
    better = fma(r * 0.5, fma(-p, r, 1.0) - e * r, r)
    is_regular = (a > 0.0) & (a < math.inf)
    return where(is_regular, better, r) * where(tiny, const(2.0**half, x.dtype), 1.0)


def cbrt(x: Value) -> Value:
    """Return the cube root."""
    f = format_of(x)
    a = magnitude(x)
    up = 2.0 ** (f.mantissa + 11)  # scales the smallest number above `cbrt_min`
    scaled = _cbrt_of_normal(a * up**3) * (1.0 / up)
    other = where((a > 0.0) & (a < math.inf), scaled, a)
    y = where((a > f.cbrt_min) & (a < math.inf), _cbrt_of_normal(a), other)
    return apply_sign_bit(y, sign_of(x))


def _cbrt_of_normal(a: Value) -> Value:
    """Return the cube root of a finite a > `cbrt_min`."""
    r = _estimate_inverse_cbrt(a)
    for coefficients in format_of(a).cbrt:  # r -> 1 / cbrt(a)
        e = fma(-a * r, r * r, 1.0)
        r = fma(r * e, poly(coefficients, e), r)
    square = r * r
    c = a * square
    p, q = two_product(c, c)
    residual = fma(-p, c, a) - q * c
    return fma(residual, square * (1.0 / 3.0), c)


def _estimate_inverse_cbrt(a: Value) -> Value:
    """Return 1 / cbrt(a) with a relative error below 3.5 %: a line through the bits of a."""
    f = format_of(a)
    line = 4 / 3 * f.bias - 0.0686379
    if a.dtype is float32:
        t = fma(cast(bitcast(a, int32), float32), -1.0 / 3.0, line * 2.0**f.mantissa)
        return bitcast(cast(t, int32), float32)
    # of the upper halves of the bits, in the low part of a float64
    upper = bitcast((bits_of(a) >> 32) | bits_of(const(2.0**52, float64)), float64)
    t = fma(upper, const(-1.0 / 3.0, float64), line * 2.0**20 + 2.0**52 * 4 / 3)
    return bitcast(bits_of(t) << 32, float64)


def hypot(x: Value, y: Value) -> Value:
    """Return sqrt(x*x + y*y) without undue overflow or underflow."""
    f = format_of(x)
    a, b = magnitude(x), magnitude(y)
    high, low = where(a < b, b, a), where(a < b, a, b)
    big = f.bias // 2
    low_limit, far = 2.0 ** (f.mantissa + 2 - big), 2.0 ** (f.bias * 3 // 4)
    up = where(high < low_limit, const(far, x.dtype), 1.0)
    up = where(high > 2.0**big, 2.0 ** -(big + 1), up)
    down = where(high < low_limit, const(1.0 / far, x.dtype), 1.0)
    down = where(high > 2.0**big, 2.0 ** (big + 1), down)
    h, t = high * up, low * up
    p, e = two_product(h, h)
    q, d = two_product(t, t)
    s, c = fast_two_sum(p, q)
    is_regular = (s > 0.0) & (s < math.inf)
    r, tail = sqrt_pair((where(is_regular, s, 1.0), c + (e + d)))
    y_ = where(is_regular, (r + tail) * down, a + b)
    infinite = eq(a, math.inf) | eq(b, math.inf)
    return where(infinite, math.inf, y_)


def log_pair(x: Value) -> Pair:
    """Return log(x) as a pair with some 12 (float32: 10) extra bits, for finite x > 0."""
    form = format_of(x)
    normal, up = _scale_denormal(x)
    e, m, _ = _split_octave(normal, form.root_half)
    e, f = e - up, m - 1.0
    s = quotient((f, const(0.0, x.dtype)), fast_two_sum(const(2.0, x.dtype), f))
    s = fast_two_sum(*s)
    z = pair_product(s, s)
    # atanh(s) = s + s z (1/3 + z Q(z))
    third = form.third
    q = z[0] * poly(form.atanh, z[0])
    w = fast_two_sum(const(third[0], x.dtype), q)
    w = w[0], w[1] + third[1]
    t = pair_product(pair_product(s, z), w)
    t = pair_sum(s, t)
    t = t[0] * 2.0, t[1] * 2.0
    big = two_product(e, form.ln2_full[0])
    big = big[0], fma(e, const(form.ln2_full[1], x.dtype), big[1])
    return pair_sum(big, t)


def _log2_pair(x: Value) -> Pair:
    """Return log2(x) as a pair with some 12 (float32: 9) extra bits, for finite x > 0."""
    normal, up = _scale_denormal(x)
    e, m, _ = _split_octave(normal, format_of(x).root_half)  # m from sqrt(1/2) to sqrt(2)
    f, (base, base_low) = _reduce_near_one(m)
    # 2 log2(e) atanh(s) of s = f / (2 + f)
    s, t = quotient((f, const(0.0, x.dtype)), fast_two_sum(const(2.0, x.dtype), f))
    k, k_low = (2.0 * part for part in format_of(x).log2e)
    h, tail = two_product(s, k)
    tail = fma(s, const(k_low, x.dtype), fma(t, const(k, x.dtype), tail))
    more, more_low = _atanh_bend(s, t)
    bend, bend_low = two_product(h, more)
    tail = fma(tail, more, fma(h, more_low, tail)) + (bend_low + base_low)
    h, lost = fast_two_sum(e - up + base, h)
    h, lost_too = fast_two_sum(h, bend)
    return h, lost + lost_too + tail


def _reduce_near_one(m: Value) -> tuple[Value, Pair]:
    """Return f and b of m = (1 + f) 2**b, f small and exact, for m from sqrt(1/2) to sqrt(2)."""
    form = format_of(m)
    low, high = m < 8 / 9, m > 7 / 6
    factor = where(low, 1.25, where(high, const(0.75, m.dtype), 1.0))
    (a, b), (c, d) = form.log2_4_5, form.log2_4_3
    base = where(low, a, where(high, const(c, m.dtype), 0.0))
    return fma(m, factor, -1.0), (base, where(low, b, where(high, const(d, m.dtype), 0.0)))


def _atanh_bend(s: Value, t: Value) -> Pair:
    """Return atanh(s + t) / (s + t) - 1 as a pair, for a pair whose square is at most 0.00595."""
    form = format_of(s)
    z = s * s
    z_low = fma(s, s, -z) + (s + s) * t
    third, third_low = form.third
    p, p_low = fast_two_sum(const(third, s.dtype), z * poly(form.atanh_near, z))
    more, more_low = two_product(z, p)
    return more, fma(z, p_low + third_low, fma(z_low, const(third, s.dtype), more_low))


def _power(a: Value, y: Value) -> Value:
    """Return a ** y for finite a > 0."""
    form = format_of(a)
    h, low = _log2_pair(a)
    p, e = two_product(h, y)
    least, most = -form.bias - form.mantissa - 2.0, form.bias + 2.0
    n, bits = round_scaled(clamp(p, least, most), 1.0)
    r = where((p > least) & (p < most), (p - n) + fma(low, y, e), 0.0)
    return scale_by_power_of_two(fma(poly(form.exp2, r), r, 1.0), bits)


def pow(x: Value, y: Value) -> Value:
    """Return x ** y."""
    limit = format_of(x).pow_limit
    z = _power(magnitude(x), clamp(y, -limit, limit))
    is_regular = (x > 0.0) & (x < math.inf) & eq(y, y)
    return where(is_regular, z, _special_power(x, y, z))


def _special_power(x: Value, y: Value, z: Value) -> Value:
    """Return x ** y for x that is not finite and positive, or a NaN y.

    z is |x| ** y for finite x.
    """
    a = magnitude(x)
    is_regular = (a > 0.0) & (a < math.inf)
    whole = eq(trunc(y), y)
    odd = whole & ne(trunc(y * 0.5) * 2.0, y) & (magnitude(y) < math.inf)
    negative = ne(sign_of(x), 0)
    # zero and infinity as bases
    outward = eq(eq(a, 0.0), y < 0.0)
    z = where(is_regular, z, where(outward, const(math.inf, x.dtype), 0.0))
    z = where(is_regular & negative & ~whole, math.nan, z)
    z = where(odd, apply_sign_bit(z, sign_of(x)), z)
    # infinite exponents
    far = eq(magnitude(y), math.inf)
    z = where(
        far, where(eq(a, 1.0), 1.0, where(eq(a > 1.0, y > 0.0), const(math.inf, x.dtype), 0.0)), z
    )
    z = where(ne(x, x) | ne(y, y), x + y, z)
    return where(eq(y, 0.0) | eq(x, 1.0), 1.0, z)
