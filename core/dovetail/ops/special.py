"""The error function in the loop language; see `elementary`.

Special values follow C99 annex F. Measured errors are listed in docs/accuracy.md.
"""

from __future__ import annotations

from ..kernel.language import Value, const, fma, where
from .elementary import exp_parts
from .float_parts import (
    Pair,
    clamp,
    fast_two_sum,
    format_of,
    magnitude,
    pair_product,
    poly,
    power_of_two,
    scaled,
    sign_of,
    two_product,
    two_sum,
    with_sign,
)

_ERF_SPLIT = 0.75  # where erf turns from a polynomial to 1 - erfc


def _erfc_parts(x: Value) -> tuple[Pair, Value]:
    """erfc(x) as a pair to be scaled by 2**n, and bits of n, for 3/4 <= x <= `erfc_limit`."""
    f = format_of(x)
    p, e = two_product(x, x)
    (g, c), bits = exp_parts(-p, -e)
    g, c = fast_two_sum(g, c)
    # erfc(x) exp(x*x) (x + k) is a polynomial in 1 / (x + k), written in t = center - 2 k / (x + k)
    k = f.erfc_pole
    d, v = two_sum(x, const(k, x.dtype))
    r = 1.0 / d
    rest = r * (fma(-r, d, 1.0) - r * v)
    p, e = two_product(r, 2.0 * k)
    t = f.erfc_center - p
    u = fma(rest, const(-2.0 * k, x.dtype), ((f.erfc_center - t) - p) - e)
    q = poly(f.erfc[2:], t)
    h = fma(q, t, f.erfc[0])
    low = fma(q + q - f.erfc[2], u, fma(q, t, f.erfc[0] - h) + f.erfc[1])
    return pair_product((g, c), pair_product((h, low), (r, rest))), bits


def erf(x: Value) -> Value:
    """The error function."""
    f = format_of(x)
    a = magnitude(x)
    z = x * x
    near = fma(x, poly(f.erf, z), x)
    (h, low), bits = _erfc_parts(clamp(a, _ERF_SPLIT, f.erf_limit))
    s = power_of_two(bits, x)
    b, c = fast_two_sum(const(1.0, x.dtype), -(h * s))
    y = where(a < _ERF_SPLIT, near, with_sign(b + (c - low * s), sign_of(x)))
    return where(a < f.negligible, fma(x, const(f.erf[0], x.dtype), x), y)


def erfc(x: Value) -> Value:
    """The complementary error function, 1 - erf(x)."""
    f = format_of(x)
    a = magnitude(x)
    z = x * x
    s, e = fast_two_sum(const(1.0, x.dtype), -x)
    near = s + fma(-x, poly(f.erf, z), e)
    (h, low), bits = _erfc_parts(clamp(a, _ERF_SPLIT, f.erfc_limit))
    far = scaled(h + low, bits)
    y = where(a < _ERF_SPLIT, near, where(x < 0.0, 2.0 - far, far))
    return y
