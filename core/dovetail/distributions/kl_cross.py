"""Divergences between distributions of two classes: means of log(p / q) under p."""

from __future__ import annotations

import math

import dovetail as dt

from .discrete import Bernoulli, Binomial, Poisson
from .distribution import Distribution, Tensor
from .kl import register_kl
from .location_scale import Gumbel, Laplace, Uniform
from .normals import Normal
from .parameters import EULER, xlogy
from .positive import Exponential, Gamma, Pareto
from .simplex import Beta

__all__: list[str] = []

LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """Return infinity: p has values outside of the support of q."""
    like = p._some_tensor()
    shape = dt.broadcast_shapes(p.batch_shape, q.batch_shape)
    return dt.full(shape, math.inf, dtype=like.dtype, device=like.device)


for _p, _qs in (
    (Beta, (Pareto,)),
    (Exponential, (Beta, Pareto, Uniform)),
    (Gamma, (Beta, Pareto, Uniform)),
    (Gumbel, (Beta, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, (Beta, Exponential, Gamma, Pareto, Uniform)),
    (Normal, (Beta, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, (Beta, Uniform)),
    (Poisson, (Bernoulli, Binomial)),
):
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


def _by_normal(q: Normal, mean: Tensor, square: Tensor) -> Tensor:
    """Return the mean of -log q(x), from the mean of x and that of x * x."""
    off = square - mean * q.loc * 2.0 + q.loc * q.loc
    return LOG_ROOT + dt.log(q.scale) + off / (q.scale * q.scale * 2.0)


def _by_gamma(q: Gamma, mean: Tensor, mean_log: Tensor) -> Tensor:
    """Return the mean of -log q(x), from the mean of x and that of log(x)."""
    a = q.concentration
    return dt.lgamma(a) - a * dt.log(q.rate) - (a - 1.0) * mean_log + q.rate * mean


def _by_exponential(q: Exponential, mean: Tensor) -> Tensor:
    return q.rate * mean - dt.log(q.rate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (xlogy(p.probs, q.rate) - q.rate)


@register_kl(Beta, Exponential)
def _beta_exponential(p: Beta, q: Exponential) -> Tensor:
    return _by_exponential(q, p.mean) - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    mean_log = dt.digamma(p.concentration1) - dt.digamma(p.concentration1 + p.concentration0)
    return _by_gamma(q, p.mean, mean_log) - p.entropy()


@register_kl(Beta, Normal)
def _beta_normal(p: Beta, q: Normal) -> Tensor:
    mean = p.mean
    return _by_normal(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    divergence = dt.log(q.high - q.low) - p.entropy()
    return dt.where((q.low > 0.0) | (q.high < 1.0), math.inf, divergence)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _by_gamma(q, p.mean, -dt.log(p.rate) - EULER) - p.entropy()


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product, off = p.rate * q.scale, q.loc / q.scale
    moment = dt.exp(off) * product / (product + 1.0)
    return dt.log(product) - 1.0 - off + moment + 1.0 / product


@register_kl(Exponential, Normal)
def _exponential_normal(p: Exponential, q: Normal) -> Tensor:
    mean = p.mean
    return _by_normal(q, mean, mean * mean * 2.0) - p.entropy()


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return _by_exponential(q, p.mean) - p.entropy()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    a = p.concentration
    product, off = p.rate * q.scale, q.loc / q.scale
    own = (a - 1.0) * dt.digamma(a) - dt.lgamma(a) - a
    moment = dt.exp(off - a * dt.log1p(1.0 / product)) - off
    return own + dt.log(product) + a / product + moment


@register_kl(Gamma, Normal)
def _gamma_normal(p: Gamma, q: Normal) -> Tensor:
    mean = p.mean
    return _by_normal(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    mean = p.mean
    return _by_normal(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    return _by_normal(q, p.loc, p.variance + p.loc * p.loc) - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    off, ratio = (p.loc - q.loc) / q.scale, p.scale / q.scale
    moment = dt.exp(ratio * ratio * 0.5 - off)
    return off + moment - dt.log(ratio) - (0.5 + LOG_ROOT)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    off = p.loc - q.loc
    z = off / p.scale
    near = math.sqrt(2.0 / math.pi) * p.scale * dt.exp(z * z * -0.5)
    far = off * dt.erf(z * math.sqrt(0.5))
    return (near + far) / q.scale - dt.log(p.scale / q.scale) - 0.5 * (1.0 + math.log(math.pi / 2))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    return _by_exponential(q, p.mean) - p.entropy()  # infinite if the mean is


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    return _by_gamma(q, p.mean, dt.log(p.scale) + 1.0 / p.alpha) - p.entropy()


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    alpha = dt.where(p.alpha > 2.0, p.alpha, 3.0)
    mean, square = alpha / (alpha - 1.0) * p.scale, alpha / (alpha - 2.0) * p.scale * p.scale
    return dt.where(p.alpha > 2.0, _by_normal(q, mean, square) - p.entropy(), math.inf)


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of log(x) over low..high."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1.0


def _infinite_below(p: Uniform, divergence: Tensor, low: Tensor | float) -> Tensor:
    return dt.where(p.low < low, math.inf, divergence)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    normal = dt.lgamma(a) + dt.lgamma(b) - dt.lgamma(a + b)
    each = (a - 1.0) * _mean_log(p.low, p.high) + (b - 1.0) * _mean_log(1.0 - p.high, 1.0 - p.low)
    divergence = normal - each - dt.log(p.high - p.low)
    return dt.where((p.high > 1.0) | (p.low < 0.0), math.inf, divergence)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _infinite_below(p, _by_exponential(q, p.mean) - p.entropy(), 0.0)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _infinite_below(p, _by_gamma(q, p.mean, _mean_log(p.low, p.high)) - p.entropy(), 0.0)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    share = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return dt.log(share) + (high + low) * 0.5 - share * (dt.exp(-high) - dt.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    mean = p.mean
    return _by_normal(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    a = q.alpha
    each = _mean_log(p.low, p.high) * (a + 1.0) - dt.log(a) - a * dt.log(q.scale)
    return _infinite_below(p, each - p.entropy(), q.scale)
