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
    magnitude,
    pair_product,
    pair_sum,
    poly,
    quotient,
    round_scaled,
    sign_of,
    sqrt_pair,
    two_product,
    two_sum,
)

_TWO_OVER_PI = [(TWO_OVER_PI >> (32 + 64 * (18 - i))) & (2**64 - 1) for i in range(19)]


# --- reduction by quarter turns -------------------------------------------------------------------


def _reduce_small_angle(x: Value) -> tuple[Pair, Value]:
    """Return x - n pi/2 as a pair, and n in the top two bits, for |x| < 2**25 (float32: 2**15).

    Source: Cody and Waite 1980, with pi/2 in three parts.
    """
    f = format_of(x)
    n, bits = round_scaled(x, 2.0 / math.pi)
    p1, p2, p3 = (const(-p, x.dtype) for p in f.half_pi)
    p, e = two_product(n, p2)
    h, low = two_sum(fma(n, p1, x), p)
    return fast_two_sum(h, low + fma(n, p3, e)), bits << (bits.dtype.bits - 2)


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
    """Return x - n pi/2 as a pair, and n in the top two bits, for finite float64 x >= 2**25.

    Source: Payne and Hanek 1983.
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
    return (r[0] * 2.0**-62, r[1] * 2.0**-62), n


def _reduce_angle(x: Value) -> tuple[Pair, Value]:
    """Return a pair within pi/4 (float32: 1) for x >= 0 minus n pi/2, and n in the top two bits.

    The low part is NaN for infinite or NaN x.
    """
    single = x.dtype is float32
    far = const(_LARGE_ANGLE_MIN[x.dtype], x.dtype) < x
    (a, b), n = _reduce_small_angle(x)
    (c, d), m = _reduce_large_angle_float32(x) if single else _reduce_large_angle(x)
    high, low, n = where(far, c, a), where(far, d, b), where(far, m, n)
    if not single:
        return (high, where(x < math.inf, low, math.nan)), n
    small = x < 1.0
    return (where(small, x, high), where(small, 0.0, low)), where(small, 0, n)


_LARGE_ANGLE_MIN = {float32: 2.0**15, float64: 2.0**25}  # up to it a few bits of n pi/2 are enough


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
    return (high, low), n


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
    z = h * h
    # sin(h) = h + h z P(z), cos(h) = 1 - z/2 + z z Q(z): one polynomial with selected coefficients
    p = where(odd, const((*f.cos, 0.0)[len(f.sin) - 1], x.dtype), f.sin[-1])
    for c, d in zip(reversed(f.cos[: len(f.sin) - 1]), reversed(f.sin[:-1]), strict=True):
        p = fma(p, z, where(odd, const(c, x.dtype), d))
    # the term of low, and the rounding error of h * h
    half = z * -0.5
    corrections = where(odd, fma(-h, low, fma(h, h, -z) * -0.5), fma(half, low, low))
    p = fma(where(odd, z, h) * z, p, corrections)
    y = where(odd, 1.0, h) + (where(odd, half, 0.0) + p)
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
    s, c, n = _sin_cos(magnitude(x))
    s, c = fast_two_sum(*s), fast_two_sum(*c)
    odd = _is_odd_quadrant(n)
    q = quotient(
        (where(odd, c[0], s[0]), where(odd, c[1], s[1])),
        (where(odd, -s[0], c[0]), where(odd, -s[1], c[1])),
    )
    return _xor_sign(q[0] + q[1], sign_of(x))


# --- their inverses -------------------------------------------------------------------------------


def _atan_of_quotient(n: Pair, d: Pair) -> Pair:
    """Return atan(n / d) as a pair for n >= 0 and d > 0, both far from over- and underflow."""
    f = format_of(n[0])
    # atan(n/d) = base + atan(q), |q| <= tan(pi/8)
    high = n[0] > d[0] * 2.414213562373095
    middle = (n[0] > d[0] * 0.41421356237309503) & ~high
    plus, minus = pair_sum(d, n), pair_sum(n, (-d[0], -d[1]))
    zero = const(0.0, f.dtype)
    top = tuple(where(middle, m, where(high, -o, i)) for m, o, i in zip(minus, d, n, strict=True))
    low = tuple(where(middle, p, where(high, o, i)) for p, o, i in zip(plus, n, d, strict=True))
    h, t = quotient((top[0], top[1]), (low[0], low[1]))
    z = h * h
    tail = fma(h * z, poly(f.atan, z), fma(t, -z, t))
    bases = [
        where(
            middle,
            const(p / 2, f.dtype),
            where(high, const(p, f.dtype), zero),
        )
        for p in f.half_pi[:2]
    ]
    s, e = fast_two_sum(bases[0], h)
    return s, e + (bases[1] + tail)


def atan(x: Value) -> Value:
    """Return the inverse tangent."""
    f = format_of(x)
    a = magnitude(x)
    limit = 2.0 ** (f.mantissa * 2)
    zero = const(0.0, x.dtype)
    y, t = _atan_of_quotient((where(a > limit, limit, a), zero), (const(1.0, x.dtype), zero))
    y = where(a < 2.0 ** -(f.mantissa // 2 + 2), a, y + t)
    return apply_sign_bit(y, sign_of(x))


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
    zero = const(0.0, x.dtype)
    steep, flat = n > d * gap, n * gap < d
    negative = ne(sign_of(x), 0)
    n1, d1 = where(neither, 1.0, n), where(neither, 1.0, d)
    h, t = _atan_of_quotient(
        (where(steep, const(1.0, x.dtype), n1), zero),
        (where(steep, const(2.0**-100 if f.bias > 127 else 2.0**-40, x.dtype), d1), zero),
    )
    # (0, 0) counts as the angle 0, both infinite as pi/4
    h, t = where(neither & ~infinite, 0.0, h), where(neither & ~infinite, 0.0, t)
    p1, p2 = f.half_pi[0] * 2, f.half_pi[1] * 2
    s, e = fast_two_sum(const(p1, x.dtype), -h)
    angle = where(
        negative, s + (e + (p2 - t)), where(flat & ~neither, a / where(eq(b, 0.0), 1.0, b), h + t)
    )
    return where(ne(x, x) | ne(y, y), x + y, apply_sign_bit(angle, sign_of(y)))


def _asin_small(x: Value) -> Value:
    """Return asin(x) - x for |x| <= 1/2."""
    z = x * x
    return x * z * poly(format_of(x).asin, z)


def asin(x: Value) -> Value:
    """Return the inverse sine."""
    f = format_of(x)
    a = magnitude(x)
    near = a > 0.5
    z = (1.0 - a) * 0.5
    r, t = sqrt_pair((where(z > 0.0, z, 1.0), const(0.0, x.dtype)))
    r, t = where(z > 0.0, r, 0.0), where(z > 0.0, t, 0.0)
    s = where(near, r, a)
    tail = _asin_small(s)
    p1, p2 = f.half_pi[:2]
    h, e = fast_two_sum(const(p1, x.dtype), r * -2.0)
    y = where(near, h + (e + (p2 - 2.0 * (tail + t))), a + tail)
    y = where(a < 2.0 ** -(f.mantissa // 2 + 2), a, where(a <= 1.0, y, math.nan))
    return apply_sign_bit(y, sign_of(x))


def acos(x: Value) -> Value:
    """Return the inverse cosine."""
    f = format_of(x)
    a = magnitude(x)
    near = a > 0.5
    z = (1.0 - a) * 0.5
    r, t = sqrt_pair((where(z > 0.0, z, 1.0), const(0.0, x.dtype)))
    r, t = where(z > 0.0, r, 0.0), where(z > 0.0, t, 0.0)
    s = where(near, r, x)
    tail = _asin_small(s)
    p1, p2 = f.half_pi[:2]
    h, e = fast_two_sum(const(p1, x.dtype), -x)
    middle = h + (e + (p2 - tail))
    right = (r + (tail + t)) * 2.0
    k, g = fast_two_sum(const(p1 * 2.0, x.dtype), r * -2.0)
    left = k + (g + (p2 * 2.0 - 2.0 * (tail + t)))
    y = where(near, where(x < 0.0, left, right), middle)
    return where(a <= 1.0, y, math.nan)
