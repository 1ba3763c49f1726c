"""The gamma function and its relatives in the kernel IR.

The logarithm of gamma is computed as a pair with extra bits, of which gamma and beta are the
exponential. Measured errors are listed in docs/accuracy.md.
"""

from __future__ import annotations

import math

from ..ir.language import Value, const, eq, floor, fma, fold_loop, ne, rint, where
from .elementary import exp_parts, log, log_pair, pow
from .float_parts import (
    Pair,
    clamp,
    fast_two_sum,
    format_of,
    magnitude,
    pair_product,
    pair_sum,
    poly,
    quotient,
    scale_by_power_of_two,
    two_sum,
)
from .special import sin_pi
from .special_coefficients import SPECIAL

_STIRLING_MIN = 8  # the least argument of the asymptotic series
_ZETA_TERMS = 9  # terms of a zeta function that are summed; an integral replaces the others
# B(2j) / (2j)!, coefficients of the corrections to that integral
_CORRECTIONS = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
)


def _is_integer(x: Value) -> Value:
    """Return True where a float is an integer; infinities are."""
    return eq(floor(x), x)


# --- the logarithm of gamma -----------------------------------------------------------------------


def _stirling(x: Value, low: Value) -> Pair:
    """Return log gamma(x + low) for x >= 8 and a low of an ulp at most."""
    s = SPECIAL[x.dtype]
    logarithm = _log_of_pair(x, low)
    a, b = two_sum(x, const(-0.5, x.dtype))
    product = pair_product((a, b + low), logarithm)
    inverse = 1.0 / x
    end = inverse * poly(s.stirling, inverse * inverse)
    half = const(s.half_log_two_pi[0], x.dtype), s.half_log_two_pi[1] + end
    return pair_sum(pair_sum(product, (-x, -low)), fast_two_sum(*half))


def _log_of_pair(x: Value, low: Value) -> Pair:
    """Return log(x + low), for finite x > 0 and a low of an ulp at most."""
    h, t = log_pair(x)
    return fast_two_sum(h, t + low / x)


def _log_gamma(x: Value) -> Pair:
    """Return log gamma(x) as a pair, for 0 < x below 2**(3/4 of the largest exponent)."""
    near = x < _STIRLING_MIN * 1.0
    y, low = two_sum(x, where(near, const(_STIRLING_MIN * 1.0, x.dtype), 0.0))
    far = _stirling(y, low)
    start = where(near, x, 1.0)
    product: Pair = (start, const(0.0, x.dtype))
    for k in range(1, _STIRLING_MIN):
        product = pair_product(product, two_sum(start, const(k * 1.0, x.dtype)))
    h, t = _log_of_pair(where(near, product[0], 1.0), where(near, product[1], 0.0))
    return pair_sum(far, (-h, -t))


def _exp_of(p: Pair, factor: Value) -> Value:
    """Return exp of a pair of any size, times a factor."""
    f = format_of(p[0])
    low, high = f.exp_range[0] - 2.0 * f.mantissa, f.exp_range[1] + 2.0 * f.mantissa
    outside = (p[0] < low) | (p[0] > high)
    (h, t), bits = exp_parts(clamp(p[0], low, high), where(outside, 0.0, p[1]))
    return scale_by_power_of_two((h + t) * factor, bits)


def _regular_or_one(x: Value) -> Value:
    """Return |x| where the logarithm of its gamma is finite and computed as a pair, else 1."""
    f, a = format_of(x), magnitude(x)
    return where((a >= f.smallest_normal) & (a < 2.0 ** (f.bias * 3 // 4)), a, 1.0)


def gamma(x: Value) -> Value:
    """Return the gamma function; NaN at negative integers, infinite at 0."""
    f, a = format_of(x), magnitude(x)
    h, t = _log_gamma(_regular_or_one(x))
    negative = x < 0.0
    # gamma(-a) = -pi / (a sin(pi a) gamma(a)) = pi / (x sin(pi a) gamma(a))
    sine = sin_pi(a)
    factor = SPECIAL[x.dtype].pi[0] / (x * where(eq(sine, 0.0), 1.0, sine))
    factor = where(negative, factor, 1.0)
    y = _exp_of((where(negative, -h, h), where(negative, -t, t)), factor)
    large = 2.0 ** (f.bias * 3 // 4)
    y = where(x >= large, math.inf, y)
    y = where(negative & _is_integer(x), math.nan, y)
    y = where(a < f.negligible * f.negligible, 1.0 / x, y)
    return where(ne(x, x) | eq(x, -math.inf), math.nan, y)


def lgamma(x: Value) -> Value:
    """Return the logarithm of the absolute value of gamma(x).

    Infinite at 0 and negative integers.
    """
    f, a = format_of(x), magnitude(x)
    s = SPECIAL[x.dtype]
    # near its zeros at 1 and 2: lgamma(2 + z) = z P(z), and lgamma(x) = lgamma(x + 1) - log(x)
    low = x < 1.5
    z = where(low, x - 1.0, x - 2.0)
    near = z * poly(s.lgamma, z) - where(low, log(where(x > 0.0, x, 1.0)), 0.0)
    b = _regular_or_one(x)
    h, t = _log_gamma(b)
    sine = magnitude(sin_pi(a))
    is_reflected = (x < 0.0) & ne(sine, 0.0)
    pi = const(s.pi[0], x.dtype), const(s.pi[1], x.dtype)
    divisor = b * where(is_reflected, sine, 1.0), const(0.0, x.dtype)
    reflected = _log_of_pair(*quotient(pi, divisor))
    below = pair_sum(reflected, (-h, -t))
    y = where(x < 0.0, below[0] + below[1], where((x >= 0.5) & (x <= 2.5), near, h + t))
    large = 2.0 ** (f.bias * 3 // 4)
    b = where(a >= large, a, large)
    y = where(a >= large, where(b < math.inf, b * (log(b) - 1.0), math.inf), y)
    y = where(a < f.negligible * f.negligible, -log(where(eq(a, 0.0), 1.0, a)), y)
    pole = eq(a, 0.0) | ((x < 0.0) & _is_integer(x))
    return where(ne(x, x), x, where(pole, math.inf, y))


# --- its derivatives ------------------------------------------------------------------------------


def digamma(x: Value) -> Value:
    """Return the derivative of lgamma; NaN at negative integers."""
    f, s = format_of(x), SPECIAL[x.dtype]
    reflects = x < 0.0
    a = where(reflects, 1.0 - x, x)
    near = a < _STIRLING_MIN * 1.0
    # a = b + k with 1 <= b < 2, or b + 1 where a < 1
    b = where(near & (a > 0.0), a, 1.5)
    total = where(b < 1.0, -1.0 / b, const(0.0, x.dtype))
    b = where(b < 1.0, b + 1.0, b)
    for _ in range(2, _STIRLING_MIN):
        above = b >= 2.0
        b = where(above, b - 1.0, b)
        total = where(above, total + 1.0 / b, total)
    root, root_low = s.digamma_root
    close = ((b - root) - root_low) * poly(s.digamma, b - 1.5) + total
    c = where(near, _STIRLING_MIN * 1.0, a)
    inverse = 1.0 / c
    w = inverse * inverse
    far = log(c) - fma(w, poly(s.digamma_far, w), inverse * 0.5)
    y = where(near, close, where(eq(c, math.inf), c, far))
    # digamma(1 - x) - digamma(x) = pi / tan(pi x)
    r = x - rint(x)
    whole = eq(r, 0.0)
    tangent = sin_pi(r) / _cos_pi(r)
    mirrored = y - s.pi[0] / where(whole, 1.0, tangent)
    y = where(reflects, where(whole, math.nan, mirrored), y)
    y = where(magnitude(x) < f.negligible * f.negligible, -1.0 / x, y)
    return where(ne(x, x), x, where(eq(x, -math.inf), math.nan, y))


def _cos_pi(x: Value) -> Value:
    """Return cos(pi x) for |x| <= 1/2."""
    return sin_pi(0.5 - magnitude(x))


def zeta(x: Value, q: Value) -> Value:
    """Return the sum of (q + k)**-x over k >= 0; infinite at x = 1, NaN for x < 1 and for q < 0.

    Source: Euler and Maclaurin's sum: some terms, an integral, and corrections to it.
    """
    is_regular = (x > 1.0) & (q > 0.0) & (q < math.inf) & (x < math.inf)
    s, start = where(is_regular, x, 2.0), where(is_regular, q, 1.0)

    def step(k: Value, total: Value, at: Value) -> tuple[Value, ...]:
        """Add the term at `at` to the total; return the total and the next `at`."""
        return total + pow(at, -s), at + 1.0

    zero = const(0.0, x.dtype)
    total, at = fold_loop(0, _ZETA_TERMS, (zero, start), step).results
    power = pow(at, -s)
    inverse = 1.0 / at
    term = power * s * inverse
    corrections = const(0.0, x.dtype)
    for j, correction in enumerate(_CORRECTIONS):
        corrections = fma(term, const(correction, x.dtype), corrections)
        k = 2.0 * j
        term = term * (s + (k + 1.0)) * inverse * (s + (k + 2.0)) * inverse
    # for large x the terms overflow, and the corrections are negligible
    corrections = where(magnitude(corrections) < math.inf, corrections, 0.0)
    underflows = power < format_of(x).smallest_normal
    integral = where(underflows, pow(at, 1.0 - s), at * power) / (s - 1.0)
    y = total + (fma(power, const(0.5, x.dtype), integral) + corrections)
    one = eq(x, math.inf) & eq(q, 1.0)
    limit = where(q < 1.0, const(math.inf, x.dtype), where(one, const(1.0, x.dtype), 0.0))
    y = where(is_regular, y, where(eq(x, math.inf), limit, 0.0))  # of q = inf: 0
    y = where(eq(q, 0.0) | eq(x, 1.0), math.inf, y)
    return where((x < 1.0) | (q < 0.0) | ne(x, x) | ne(q, q), math.nan, y)


def beta(x: Value, y: Value) -> Value:
    """Return gamma(x) gamma(y) / gamma(x + y) for x, y > 0; infinite at 0, NaN below."""
    f = format_of(x)
    is_regular = (x > 0.0) & (y > 0.0) & (x < math.inf) & (y < math.inf)
    p, q = where(x < y, y, x), where(x < y, x, y)
    p, q = where(is_regular, p, 1.0), where(is_regular, q, 1.0)
    large = 2.0 ** (f.bias * 3 // 4)  # if both are so large the result is 0
    tiny = q < f.smallest_normal
    small, q = q, where(tiny, 1.0, where(q < large, q, large))
    first, total = _log_gamma(q), two_sum(p, q)
    near = where(p < _STIRLING_MIN * 1.0, p, 1.0)
    few = where(p < _STIRLING_MIN * 1.0, q, 1.0)
    joint = two_sum(near, few)
    less = _log_gamma_of_pair(*joint)
    close = pair_sum(_log_gamma(near), (-less[0], -less[1]))
    far = _log_gamma_ratio(where(p < _STIRLING_MIN * 1.0, _STIRLING_MIN * 1.0, p), q)
    ratio = tuple(where(p < _STIRLING_MIN * 1.0, a, b) for a, b in zip(close, far, strict=True))
    result = _exp_of(pair_sum(first, (ratio[0], ratio[1])), const(1.0, x.dtype))
    result = where(is_regular, where(tiny, 1.0 / small, result), 0.0)
    pole = eq(x, 0.0) | eq(y, 0.0)
    wrong = (x < 0.0) | (y < 0.0) | ne(x, x) | ne(y, y) | (pole & ~(magnitude(total[0]) < math.inf))
    return where(wrong, math.nan, where(pole, math.inf, result))


def _log_gamma_of_pair(x: Value, low: Value) -> Pair:
    """Return log gamma(x + low), where low is an ulp at most: its slope is below log(x) + 1."""
    h, t = _log_gamma(x)
    return h, t + low * _log_gamma_slope(x)


def _log_gamma_slope(x: Value) -> Value:
    """Return the slope of log gamma, to a few digits, for x > 0: enough for what is an ulp away."""
    y = x + 2.0
    return log(y) - 0.5 / y - (1.0 / 12.0) / (y * y) - 1.0 / x - 1.0 / (x + 1.0)


def _log_gamma_ratio(p: Value, q: Value) -> Pair:
    """Return log(gamma(p) / gamma(p + q)) for p >= 8 and p >= q, without cancellation.

    It is -(p - 1/2) log(1 + q / p) - q log(p + q) + q and the difference of the series' ends.
    """
    s = SPECIAL[p.dtype]
    n, n_low = two_sum(p, q)
    part, lost = quotient((q, const(0.0, p.dtype)), (p, const(0.0, p.dtype)))
    one, under = two_sum(const(1.0, p.dtype), part)
    h, t = _log_of_pair(one, under + lost)
    a, b = two_sum(p, const(-0.5, p.dtype))
    first = pair_product((a, b), (h, t))
    second = pair_product((q, const(0.0, p.dtype)), _log_of_pair(n, n_low))
    i, j = 1.0 / p, 1.0 / n
    ends = i * poly(s.stirling, i * i) - j * poly(s.stirling, j * j)
    first_part = pair_sum((q, ends), (-first[0], -first[1]))
    return pair_sum(first_part, (-second[0], -second[1]))
