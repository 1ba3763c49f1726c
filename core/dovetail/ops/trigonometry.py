"""Sine, cosine, tangent and their inverses in the kernel IR, beside those of `elementary`.

Special values follow C99 annex F. Measured errors are listed in docs/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..dtypes import float32, float64, int32, int64, uint32, uint64
from ..ir.language import Value, bitcast, cast, const, eq, fma, ne, rint, where
from .coefficients import FORMATS, HALF_PI_SCALED, TWO_OVER_PI
from .float_parts import (
    Pair,
    apply_sign_bit,
    bits_of,
    fast_two_sum,
    format_of,
    high_product,
    long_poly,
    magnitude,
    pair_product,
    poly,
    rough_sqrt_pair,
    round_scaled,
    sign_of,
    two_product,
)

_TWO_OVER_PI = [(TWO_OVER_PI >> (32 + 64 * (18 - i))) & (2**64 - 1) for i in range(19)]


# --- reduction by quarter turns -------------------------------------------------------------------


def _reduce_small_angle(x: Value) -> tuple[Pair, Value]:
    """Return x - n pi/2 as two parts, and n in the top two bits, for 0 <= x <= _LARGE_ANGLE_MIN.

    Near a multiple of pi/2 the second part has more than an ulp of the first.
    Source: Cody and Waite 1980, with pi/2 in three parts.
    """
    f = format_of(x)
    n, bits = round_scaled(x, 2.0 / math.pi)
    p1, p2, p3 = f.half_pi
    p, e = two_product(n, -p2)
    # the difference is exact, and a multiple of p's ulp: as exact is the sum
    h, low = fast_two_sum(fma(n, const(-p1, x.dtype), x), p)
    return (h, low + fma(n, const(-p3, x.dtype), e)), bits << (bits.dtype.bits - 2)


def _extract_words(words: Sequence[int], position: Value, count: int) -> list[Value]:
    """Return `count` 64-bit words of the bit string `words` from bit `position` (uint64) on."""
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


def _reduce_large_angle(x: Value) -> tuple[Pair, Value]:
    """Return x - n pi/2 as a pair, and n in the top two bits, for float64 x >= 2**25.

    Infinities and NaN make the low part NaN. Source: Payne and Hanek 1983.
    """
    f = FORMATS[float64]
    m = (bits_of(x) & ((1 << 52) - 1)) | (1 << 52)
    e = bits_of(x) >> 52
    # x = m 2**(e - 1075). Bits of 2/pi above 2**(1076 - e) only give multiples of 4 quadrants.
    position = where(e > 1045, e - 1045, 0)
    w = _extract_words(_TWO_OVER_PI, where(position > 1001, 1001, position), 3)
    low = m * w[1] + high_product(m, w[2])
    carry = cast(low < m * w[1], uint64)
    high = m * w[0] + high_product(m, w[1]) + carry
    n = high + (1 << 61)
    t = bitcast(
        high - (n & (3 << 62)), int64
    )  # the fraction of a quadrant is t / 2**62 + low / 2**126
    h = cast(t, float64)
    low_part = fma(cast(t - cast(h, int64), float64), 2.0**64, cast(low, float64)) * 2.0**-64
    half_pi = const(f.half_pi[0], float64), const(f.half_pi[1], float64)
    r = pair_product(fast_two_sum(h, low_part), half_pi)
    return (r[0] * 2.0**-62, where(x < math.inf, r[1] * 2.0**-62, math.nan)), n


def _reduce_angle(x: Value) -> tuple[Pair, Value]:
    """Return x - n pi/2 as two parts within pi/4, for x >= 0, and n in the top two bits.

    The second part is NaN for infinite or NaN x.
    """
    far = const(_LARGE_ANGLE_MIN[x.dtype], x.dtype) < x
    (a, b), n = _reduce_small_angle(x)
    reduce_large = _reduce_large_angle_float32 if x.dtype is float32 else _reduce_large_angle
    (c, d), m = reduce_large(x)
    return (where(far, c, a), where(far, d, b)), where(far, m, n)


# up to it n is right but for a hundredth, and three parts of pi/2 are enough
_LARGE_ANGLE_MIN = {float32: 2.0**18, float64: 2.0**40}


def _reduce_large_angle_float32(x: Value) -> tuple[Pair, Value]:
    """Return x - n pi/2 as a pair in -1..1, and n in the top two bits, for float32 x >= 1.

    Payne and Hanek's method: with x = m 2**(e - 150), bits of 2/pi above 2**(151 - e)
    only make multiples of 4 quadrants. The next 32 bits times m are exact in wrapping integers, 23
    more in float32 (their product less its integer part), and the last 24 need no exactness.
    Infinities and NaN make the low part NaN.
    """
    b = bits_of(x)
    a, c, d = _extract_words32((b >> 23) - 127)
    m = bitcast((b & 0x7FFFFF) | 0x3F800000, float32)
    middle = cast(bitcast(c >> 9, int32), float32)
    last = cast(bitcast(((c << 23) | (d >> 9)) >> 8, int32), float32)
    whole = rint(m * middle)
    half = fma(x, 0.0, 2.0**-25)  # of the last place; NaN where x is not finite
    fraction = fma(fma(last, const(2.0**-24, float32), half), m, fma(m, middle, -whole))
    p = ((b & 0x7FFFFF) | 0x800000) * a + bitcast(cast(whole, int32), uint32)
    # in 2**-31 quadrants, signed: h + t
    p, n = bitcast(p << 2, int32) >> 1, p + (1 << 29)
    h = cast(p, float32)
    t = fma(fraction, const(2.0, float32), cast(p - cast(h, int32), float32))
    high, low = two_product(h, HALF_PI_SCALED[0])
    low = fma(h, const(HALF_PI_SCALED[1], float32), fma(t, const(HALF_PI_SCALED[0], float32), low))
    return fast_two_sum(high, low), n


def _extract_words32(position: Value) -> list[Value]:
    """Return three 32-bit words of 2/pi, after 25 zero bits, from bit `position` < 128 on."""
    words = [
        const(TWO_OVER_PI >> (1216 + 25 - 32 * (i + 1)) & 0xFFFFFFFF, uint32) for i in range(7)
    ]
    second, first = ne(position & 64, 0), ne(position & 32, 0)
    words = [where(second, b, a) for a, b in zip(words, words[2:], strict=False)]
    words = [where(first, b, a) for a, b in pairwise(words)]
    shift = position & 31
    # a funnel shift, which compilers know in this form
    return [(a << shift) | ((b >> 1) >> (shift ^ 31)) for a, b in pairwise(words)]


# --- circular functions ---------------------------------------------------------------------------


def _sin_cos(x: Value) -> tuple[Pair, Pair, Value]:
    """Return sin and cos of x - n pi/2 for x >= 0, as two parts each, and n in the top two bits."""
    f = format_of(x)
    (h, low), n = _reduce_angle(x)
    z = h * h
    sin = fma(h * z, poly(f.sin, z), fma(low, z * -0.5, low))
    s, e = fast_two_sum(const(1.0, x.dtype), z * -0.5)
    square = fma(h, h, -z) * -0.5
    cos = e + fma(z * z, poly(f.cos, z), fma(-h, low, square))
    return (h, sin), (s, cos), n


def _xor_sign(y: Value, sign: Value) -> Value:
    """Return y, negated where `sign` has the sign bit."""
    return bitcast(bits_of(y) ^ sign, y.dtype)


def _is_odd_quadrant(n: Value) -> Value:
    """Return True where n, in the top two bits, is odd."""
    return ne(n & (1 << (n.dtype.bits - 2)), 0)


def _sin_in_quadrant(x: Value, quadrant_shift: int, sign: Value | None) -> Value:
    """Return sin(x + quadrant_shift pi/2) for x >= 0, negated where `sign` has the sign bit."""
    f = format_of(x)
    (h, low), n = _reduce_angle(x)
    n = n + (quadrant_shift << (n.dtype.bits - 2))
    odd = _is_odd_quadrant(n)
    z, half = h * h, h * -0.5
    # sin(h) = h + h z P(z), cos(h) = 1 - z/2 + z z Q(z): one polynomial with selected coefficients
    p = where(odd, const((*f.cos, 0.0)[len(f.sin) - 1], x.dtype), f.sin[-1])
    for c, d in zip(reversed(f.cos[: len(f.sin) - 1]), reversed(f.sin[:-1]), strict=True):
        p = fma(p, z, where(odd, const(c, x.dtype), d))
    slope = where(odd, -h, fma(z, const(-0.5, x.dtype), 1.0))  # which the second part moves along
    p = fma(where(odd, z, h) * z, p, slope * low)
    y = where(odd, 1.0, h) + fma(where(odd, half, 0.0), h, p)
    n = n & f.sign
    return _xor_sign(y, n if sign is None else n ^ sign)


def sin(x: Value) -> Value:
    """Return the sine."""
    return _sin_in_quadrant(magnitude(x), 0, sign_of(x))


def cos(x: Value) -> Value:
    """Return the cosine."""
    return _sin_in_quadrant(magnitude(x), 1, None)


def sin_cos(x: Value) -> Pair:
    """Return the sine and the cosine, with their common work done once."""
    s, c, n = _sin_cos(magnitude(x))
    sine, cosine = s[0] + s[1], c[0] + c[1]
    odd, sign = _is_odd_quadrant(n), format_of(x).sign
    quadrant_shift = n + (1 << (n.dtype.bits - 2))
    return (
        _xor_sign(where(odd, cosine, sine), (n & sign) ^ sign_of(x)),
        _xor_sign(where(odd, sine, cosine), quadrant_shift & sign),
    )


def tan(x: Value) -> Value:
    """Return the tangent."""
    (h, low), n = _reduce_angle(magnitude(x))
    z = h * h
    # tan(h) = h (9/8 + P), with |P| < 0.155; 0.58 is about its slope, for the rounding error of z
    start = fma(fma(h, h, -z), const(0.58, x.dtype), -0.125)
    p = fma(z, poly(format_of(x).tan, z), start)
    slope = fma(z, const(1.6, x.dtype), 1.0)  # 1 + tan(h)**2, to 8 %
    tail = fma(h, p, slope * low)
    tangent = fma(h, const(1.125, x.dtype), tail)
    lost = fma(h, const(1.125, x.dtype), -tangent) + tail
    r = -1.0 / tangent
    beyond = fma(r, fma(r, lost, fma(r, tangent, 1.0)), r)
    return _xor_sign(where(_is_odd_quadrant(n), beyond, tangent), sign_of(x))


# --- their inverses -------------------------------------------------------------------------------


def _atan_of_pair(h: Value, low: Value, steep: Value) -> Pair:
    """Return atan(h + low) as two parts, plus pi/2 where `steep`; |h| <= 1, low a few ulp."""
    f = format_of(h)
    z = h * h
    # atan(h) = h (7/8 + P), with |P| <= 1/8
    series = poly if h.dtype is float32 else long_poly
    p = fma(z, series(f.atan, z), 0.125)
    tail = fma(h, p, fma(z, const(-0.5, h.dtype), 1.0) * low)  # 1 / (1 + z), to 13 %
    base = where(steep, const(f.half_pi[0], h.dtype), 0.0)
    s = fma(h, const(0.875, h.dtype), base)
    lost = fma(h, const(0.875, h.dtype), base - s)
    return s, lost + where(steep, tail + f.half_pi[1], tail)


def atan(x: Value) -> Value:
    """Return the inverse tangent."""
    a = magnitude(x)
    limit = 2.0 ** (format_of(x).mantissa * 2)
    a = where(a > limit, limit, a)
    steep = a > 1.0
    r = -1.0 / a
    low = where(steep, fma(r, a, 1.0) * r, 0.0)
    y, t = _atan_of_pair(where(steep, r, a), low, steep)
    return apply_sign_bit(y + t, sign_of(x))


def _atan_of_quotient(n: Value, d: Value) -> Pair:
    """Return atan(n / d) as two parts for n >= 0 and d > 0, both far from over- and underflow."""
    steep = n > d
    top, low = where(steep, -d, n), where(steep, n, d)
    r = 1.0 / low
    q = top * r
    return _atan_of_pair(q, fma(-q, low, top) * r, steep)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), in -pi..pi."""
    f = format_of(x)
    a, b = magnitude(y), magnitude(x)
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
    steep, flat = n > d * gap, n * gap < d
    negative = ne(sign_of(x), 0)
    n1, d1 = where(neither, 1.0, n), where(neither, 1.0, d)
    h, t = _atan_of_quotient(
        where(steep, const(1.0, x.dtype), n1),
        where(steep, const(2.0**-100 if f.bias > 127 else 2.0**-40, x.dtype), d1),
    )
    # (0, 0) counts as the angle 0, both infinite as pi/4
    h, t = where(neither & ~infinite, 0.0, h), where(neither & ~infinite, 0.0, t)
    p1, p2 = f.half_pi[0] * 2, f.half_pi[1] * 2
    s, e = fast_two_sum(const(p1, x.dtype), -h)
    angle = where(
        negative, s + (e + (p2 - t)), where(flat & ~neither, a / where(eq(b, 0.0), 1.0, b), h + t)
    )
    return where(ne(x, x) | ne(y, y), x + y, apply_sign_bit(angle, sign_of(y)))


def _asin_parts(a: Value, x: Value) -> tuple[Value, Value, Value]:
    """Return whether a = |x| > 1/2, s, and asin(s) - s.

    s is sqrt((1 - a) / 2) where a > 1/2, so that asin(a) = pi/2 - 2 asin(s), and x elsewhere.
    NaN where a > 1.
    """
    near = a > 0.5
    half = fma(a, const(-0.5, x.dtype), 0.5)
    r, t = rough_sqrt_pair((half, const(-0.0, x.dtype)))
    s, z = where(near, r, x), where(near, half, a * a)
    return near, s, fma(s * z, poly(format_of(x).asin, z), where(near, t, 0.0))


def asin(x: Value) -> Value:
    """Return the inverse sine."""
    p1, p2 = format_of(x).half_pi[:2]
    a = magnitude(x)
    near, s, tail = _asin_parts(a, a)
    h = fma(s, const(-2.0, x.dtype), p1)
    low = fma(s, const(-2.0, x.dtype), p1 - h)
    beyond = h + fma(tail, const(-2.0, x.dtype), low + p2)
    return apply_sign_bit(where(near, beyond, s + tail), sign_of(x))


def acos(x: Value) -> Value:
    """Return the inverse cosine."""
    p1, p2 = format_of(x).half_pi[:2]
    near, s, tail = _asin_parts(magnitude(x), x)
    negative = x < 0.0
    # pi - 2 asin(s), 2 asin(s) or pi/2 - asin(s)
    factor = where(near, where(negative, const(-2.0, x.dtype), 2.0), -1.0)
    base = where(near, where(negative, const(p1 * 2.0, x.dtype), 0.0), p1)
    h = fma(s, factor, base)
    low = fma(s, factor, base - h)
    return h + fma(tail, factor, fma(base, const(p2 / p1, x.dtype), low))
