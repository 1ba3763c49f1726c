"""Implicit gradients: derivatives of a sample by its parameters at a fixed probability.

For a variable with distribution function F(x; a) and density p, a sample x of fixed probability
moves by dx/da = -(dF/da) / p. For the gamma and the beta distribution, the derivative of F is an
integral over one side of x: of the density times the distance of the logarithm from its mean. The
side is chosen so that this factor keeps its sign. Nothing cancels, and no incomplete gamma or beta
function is needed. Near the ends of the support a series replaces the integral.
Source: Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018, for the identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail as dt

__all__ = ["beta_slope", "gamma_cdf", "gamma_slope"]

# Gauss and Legendre's rule of eight points on -1..1: the positive points, and their weights
QUADRATURE_POINTS = (
    (0.1834346424956498, 0.36268378337836199),
    (0.5255324099163290, 0.31370664587788727),
    (0.7966664774136267, 0.22238103445337448),
    (0.9602898564975363, 0.10122853629037626),
)
# (rounds of eight points, terms of series, the exponent at which the integral ends)
FLOAT32_PRECISION, FLOAT64_PRECISION = (2, 26, 17.0), (5, 60, 38.0)


def _integrate(f: Callable[[Any], Any], end: Any, panels: int) -> Any:
    """Integrate f over 0..end, with more points near 0: at end * u * u."""
    half = 0.5 / panels

    def panel(k: Any, total: Any) -> Any:
        """Add the eight points of panel `k` to the total."""
        middle = (dt.astype(k, end.dtype) * 2.0 + 1.0) * half
        for point, weight in QUADRATURE_POINTS:
            for u in (middle - half * point, middle + half * point):
                total = total + f(end * u * u) * u * weight
        return total

    return dt.fori_loop(0, panels, panel, end * 0.0) * end * (2.0 * half)


def _expm1_minus(w: Any) -> Any:
    """Return exp(w) - 1 - w."""
    s = w * (1.0 / 9.0) + 1.0
    for k in (8.0, 7.0, 6.0, 5.0, 4.0, 3.0):
        s = s * w * (1.0 / k) + 1.0
    return dt.where(dt.abs(w) < 0.1, w * w * 0.5 * s, dt.expm1(w) - w)


def _log_less_digamma(a: Any, digamma: Any) -> Any:
    """Return log(a) - digamma(a); the asymptotic series for large a."""
    r = 1.0 / a
    q = r * r
    far = r * 0.5 + q * (1 / 12 - q * (1 / 120 - q * (1 / 252 - q * (1 / 240 - q * (1 / 132)))))
    return dt.where(a > 12.0, far, dt.log(a) - digamma)


def _log_quotient(x: Any, a: Any) -> Any:
    """Return log(x / a)."""
    d = (x - a) / a
    near = dt.abs(d) < 0.5
    return dt.where(near, dt.log1p(dt.where(near, d, 0.0)), dt.log(x) - dt.log(a))


def _cutoff(upper: Any, x: Any, slope: Any, cut: float) -> Any:
    """Return a bound a little beyond the w at which x (exp(w) - 1 - w) + slope w is `cut`."""
    c = cut / x
    s = dt.sqrt(c * 2.0)
    up, down = dt.log1p(s + c), (c + dt.sqrt(c * (c + 8.0))) * 0.5
    steep = cut / dt.maximum(dt.abs(slope), 1e-30)
    return dt.minimum(dt.where(upper, up, down), steep)


def _gamma_side(a: Any, x: Any, panels: int, terms: int, cut: float, factor: bool) -> Any:
    """Return (integral, upper, series, use_series) for one side of x.

    The integrand is the density over x p(x). With `factor`, it is multiplied by the distance of the
    logarithm from its mean. `upper`: the integral is over the side above x.
    """
    digamma_next = dt.digamma(a + 1.0)
    digamma = digamma_next - 1.0 / a
    kappa = _log_quotient(x, a) + _log_less_digamma(a, digamma)
    upper = kappa >= 0.0
    sign, slope = dt.where(upper, 1.0, -1.0), x - a
    safe = dt.maximum(x, 0.5)

    def density(v: Any) -> Any:
        """Return the integrand at distance `v` from log(x)."""
        w = v * sign
        weight = dt.exp(-(_expm1_minus(w) * safe + slope * w))
        return weight * dt.abs(kappa + w) if factor else weight

    integral = _integrate(density, _cutoff(upper, safe, slope, cut), panels)

    def term(k: Any, carried: Any) -> Any:
        """Return the total with term `k`, and the factors of the next term."""
        total, c, d = carried
        shifted = a + (dt.astype(k, a.dtype) + 1.0)
        return total + (c * d if factor else c), c * x / shifted, d - 1.0 / shifted

    start = (a * 0.0, 1.0 / a, dt.log(x) - digamma_next)
    series = dt.fori_loop(0, terms, term, start)[0]
    use_series = (x <= 1.0) | (~upper & (x <= 4.0))
    return integral, upper, series, use_series


def _gamma_slope(
    a: Any, x: Any, *, panels: int = 5, terms: int = 60, cut: float = 38.0, tiny: float = 1e-300
) -> Any:
    """Return the derivative of a gamma variable x by its concentration a."""
    x = dt.maximum(x, tiny)
    integral, _, series, use_series = _gamma_side(a, x, panels, terms, cut, True)
    return x * dt.where(use_series, -series, integral)


def _gamma_cdf(
    a: Any, x: Any, *, panels: int = 5, terms: int = 60, cut: float = 38.0, tiny: float = 1e-300
) -> Any:
    """Return the probability of a gamma variable of concentration a up to x."""
    y = dt.minimum(dt.maximum(x, tiny), 1e30)
    integral, upper, series, use_series = _gamma_side(a, y, panels, terms, cut, False)
    peak = dt.exp(_log_density(a, y))
    side = peak * dt.where(use_series, series, integral)
    lower = dt.where(upper & ~use_series, 1.0 - side, side)
    return dt.where(x <= 0.0, 0.0, dt.where(x >= 1e30, 1.0, dt.minimum(lower, 1.0)))


def _log_density(a: Any, x: Any) -> Any:
    """Return a log(x) - x - lgamma(a), without a difference of large numbers for large a."""
    d = (x - a) / a
    s = d * 0.0
    for k in range(12, 1, -1):
        s = s * d + (1.0 / k if k % 2 else -1.0 / k)
    near = dt.where(dt.abs(d) < 0.1, s * d * d, _log_quotient(x, a) - d)
    r = 1.0 / a
    q = r * r
    correction = -r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q * (1 / 1680))))
    far = a * near + dt.log(a * (0.5 / math.pi)) * 0.5 + correction
    return dt.where(a > 12.0, far, a * dt.log(x) - x - dt.lgamma(a))


def _beta_slope(
    a: Any,
    b: Any,
    x: Any,
    y: Any,
    *,
    panels: int = 5,
    terms: int = 80,
    cut: float = 38.0,
    tiny: float = 1e-300,
) -> Any:
    """Return the derivative by a of x = 1 - y, a beta variable of a and b, over y."""
    n = a + b
    x, y = dt.maximum(x, tiny), dt.maximum(y, tiny)
    after_a, after_n = dt.digamma(a + 1.0), dt.digamma(n + 1.0)
    digamma_n = after_n - 1.0 / n
    logx = dt.where(x < 0.5, dt.log(x), dt.log1p(-y))
    kappa = _log_share(x, y, a, b, logx) + (
        _log_less_digamma(a, after_a - 1.0 / a) - _log_less_digamma(n, digamma_n)
    )
    upper = kappa >= 0.0
    left = (x <= 0.5) & ((n * x <= 1.0) | (~upper & (n * x <= 4.0)))
    right = (y <= 0.5) & ((n * y <= 1.0) | (upper & (n * y <= 4.0)))
    first = dt.where(left, logx + digamma_n - after_a, kappa)
    series = _beta_series(n, dt.where(left, x, y), dt.where(left, a, b), first, left, terms)
    integral = _beta_integral(n, x, y, a, b, kappa, panels, cut)
    return x * dt.where(left | right, series, integral)


def _beta_series(n: Any, z: Any, m: Any, first: Any, left: Any, terms: int) -> Any:
    """Return the derivative over x y, by powers of the value near 0: x on the left, else y."""
    falls = dt.where(left, 1.0, 0.0)

    def term(k: Any, carried: Any) -> Any:
        """Return the total with term `k`, and the factors of the next term."""
        total, c, d = carried
        k = dt.astype(k, n.dtype)
        inverse = 1.0 / (m + (k + 1.0))
        return total + c * d, c * z * (n + k) * inverse, d + 1.0 / (n + k) - inverse * falls

    series = dt.fori_loop(0, terms, term, (n * 0.0, 1.0 / m, first))[0]
    return dt.where(left, -series, series)


def _beta_integral(
    n: Any, x: Any, y: Any, a: Any, b: Any, kappa: Any, panels: int, cut: float
) -> Any:
    """Return the derivative over x y, by an integral over the log odds on one side of x."""
    upper = kappa >= 0.0
    p = dt.maximum(dt.where(upper, x, y), 1e-6)
    slope = dt.where(upper, 1.0, -1.0) * (b * x - a * y)

    def growth(v: Any) -> Any:
        """Return log(1 + p (exp(v) - 1))."""
        return dt.log1p(p * dt.expm1(v))

    def exponent(v: Any, g: Any) -> Any:
        """Return the negative exponent of the density at distance `v`."""
        return n * (g - p * v) + slope * v

    def density(v: Any) -> Any:
        """Return the integrand at distance `v`."""
        g = growth(v)
        return dt.exp(-exponent(v, g)) * dt.abs(kappa + dt.where(upper, v - g, -g))

    def newton_step(
        k: Any, v: Any
    ) -> Any:  # Newton's method: from the first step on it stays beyond the root
        """Return the next approximation of the distance at which the exponent is `cut`."""
        share = p * dt.exp(v)
        rate = n * (share / (1.0 - p + share) - p) + slope
        return dt.minimum(v + (cut - exponent(v, growth(v))) / dt.maximum(rate, 0.05), 80.0)

    curved = dt.sqrt(2.0 * cut / (n * p * dt.maximum(1.0 - p, 1e-6)))
    begin = dt.minimum(dt.minimum(curved, cut / dt.maximum(slope, 1e-30)), 20.0)
    return _integrate(density, dt.fori_loop(0, 4, newton_step, begin), panels)


def _log_share(x: Any, y: Any, a: Any, b: Any, logx: Any) -> Any:
    """Return log(x (a + b) / a)."""
    n = a + b
    d = (x * b - y * a) / a
    near = dt.abs(d) < 0.5
    return dt.where(near, dt.log1p(dt.where(near, d, 0.0)), logx + dt.log(n / a))


gamma_slope = dt.elementwise(_gamma_slope)
gamma_cdf = dt.elementwise(_gamma_cdf)
beta_slope = dt.elementwise(_beta_slope)
