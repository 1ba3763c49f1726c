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

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """Return infinity: p has values outside of the support of q."""
    like = p._any_parameter()
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


def _normal_cross_entropy(q: Normal, mean: Tensor, square: Tensor) -> Tensor:
    """Return the mean of -log q(x), from the mean of x and that of x * x."""
    off = square - mean * q.loc * 2.0 + q.loc * q.loc
    return HALF_LOG_TWO_PI + dt.log(q.scale) + off / (q.scale * q.scale * 2.0)


def _gamma_cross_entropy(q: Gamma, mean: Tensor, mean_log: Tensor) -> Tensor:
    """Return the mean of -log q(x), from the mean of x and that of log(x)."""
    a = q.concentration
    return dt.lgamma(a) - a * dt.log(q.rate) - (a - 1.0) * mean_log + q.rate * mean


def _exponential_cross_entropy(q: Exponential, mean: Tensor) -> Tensor:
    """Return the mean of -log q(x), from the mean of x."""
    return q.rate * mean - dt.log(q.rate)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    """Return the divergence of a Poisson from a Bernoulli distribution."""
    return -p.entropy() - (xlogy(p.probs, q.rate) - q.rate)


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p: Beta, q: Exponential) -> Tensor:
    """Return the divergence of an exponential from a beta distribution."""
    return _exponential_cross_entropy(q, p.mean) - p.entropy()


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Beta, q: Gamma) -> Tensor:
    """Return the divergence of a gamma from a beta distribution."""
    mean_log = dt.digamma(p.concentration1) - dt.digamma(p.concentration1 + p.concentration0)
    return _gamma_cross_entropy(q, p.mean, mean_log) - p.entropy()


@register_kl(Beta, Normal)
def _kl_beta_normal(p: Beta, q: Normal) -> Tensor:
    """Return the divergence of a normal from a beta distribution."""
    mean = p.mean
    return _normal_cross_entropy(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Beta, q: Uniform) -> Tensor:
    """Return the divergence of a uniform from a beta one; infinite unless q covers 0..1."""
    divergence = dt.log(q.high - q.low) - p.entropy()
    return dt.where((q.low > 0.0) | (q.high < 1.0), math.inf, divergence)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    """Return the divergence of a gamma from an exponential distribution."""
    return _gamma_cross_entropy(q, p.mean, -dt.log(p.rate) - EULER) - p.entropy()


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    """Return the divergence of a Gumbel from an exponential distribution."""
    product, off = p.rate * q.scale, q.loc / q.scale
    moment = dt.exp(off) * product / (product + 1.0)
    return dt.log(product) - 1.0 - off + moment + 1.0 / product


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p: Exponential, q: Normal) -> Tensor:
    """Return the divergence of a normal from an exponential distribution."""
    mean = p.mean
    return _normal_cross_entropy(q, mean, mean * mean * 2.0) - p.entropy()


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    """Return the divergence of an exponential from a gamma distribution."""
    return _exponential_cross_entropy(q, p.mean) - p.entropy()


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    """Return the divergence of a Gumbel from a gamma distribution."""
    a = p.concentration
    product, off = p.rate * q.scale, q.loc / q.scale
    own = (a - 1.0) * dt.digamma(a) - dt.lgamma(a) - a
    moment = dt.exp(off - a * dt.log1p(1.0 / product)) - off
    return own + dt.log(product) + a / product + moment


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p: Gamma, q: Normal) -> Tensor:
    """Return the divergence of a normal from a gamma distribution."""
    mean = p.mean
    return _normal_cross_entropy(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    """Return the divergence of a normal from a Gumbel distribution."""
    mean = p.mean
    return _normal_cross_entropy(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p: Laplace, q: Normal) -> Tensor:
    """Return the divergence of a normal from a Laplace distribution."""
    return _normal_cross_entropy(q, p.loc, p.variance + p.loc * p.loc) - p.entropy()


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    """Return the divergence of a Gumbel from a normal distribution."""
    off, ratio = (p.loc - q.loc) / q.scale, p.scale / q.scale
    moment = dt.exp(ratio * ratio * 0.5 - off)
    return off + moment - dt.log(ratio) - (0.5 + HALF_LOG_TWO_PI)


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """Return the divergence of a Laplace from a normal distribution."""
    off = p.loc - q.loc
    z = off / p.scale
    near = math.sqrt(2.0 / math.pi) * p.scale * dt.exp(z * z * -0.5)
    far = off * dt.erf(z * math.sqrt(0.5))
    return (near + far) / q.scale - dt.log(p.scale / q.scale) - 0.5 * (1.0 + math.log(math.pi / 2))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    """Return the divergence of an exponential from a Pareto distribution; it may be infinite."""
    return _exponential_cross_entropy(q, p.mean) - p.entropy()  # infinite if the mean is


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    """Return the divergence of a gamma from a Pareto distribution."""
    return _gamma_cross_entropy(q, p.mean, dt.log(p.scale) + 1.0 / p.alpha) - p.entropy()


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Pareto, q: Normal) -> Tensor:
    """Return the divergence of a normal from a Pareto distribution, infinite for alpha <= 2."""
    alpha = dt.where(p.alpha > 2.0, p.alpha, 3.0)
    mean, square = alpha / (alpha - 1.0) * p.scale, alpha / (alpha - 2.0) * p.scale * p.scale
    return dt.where(p.alpha > 2.0, _normal_cross_entropy(q, mean, square) - p.entropy(), math.inf)


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of log(x) over low..high."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1.0


def _infinite_below(p: Uniform, divergence: Tensor, low: Tensor | float) -> Tensor:
    """Return the divergence, or infinity where p's lower bound is below `low`."""
    return dt.where(p.low < low, math.inf, divergence)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    """Return the divergence of a beta from a uniform distribution; infinite if p leaves 0..1."""
    a, b = q.concentration1, q.concentration0
    normal = dt.lgamma(a) + dt.lgamma(b) - dt.lgamma(a + b)
    each = (a - 1.0) * _mean_log(p.low, p.high) + (b - 1.0) * _mean_log(1.0 - p.high, 1.0 - p.low)
    divergence = normal - each - dt.log(p.high - p.low)
    return dt.where((p.high > 1.0) | (p.low < 0.0), math.inf, divergence)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    """Return the divergence of an exponential from a uniform one; infinite if p goes below 0."""
    return _infinite_below(p, _exponential_cross_entropy(q, p.mean) - p.entropy(), 0.0)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    """Return the divergence of a gamma from a uniform distribution; infinite if p goes below 0."""
    return _infinite_below(
        p, _gamma_cross_entropy(q, p.mean, _mean_log(p.low, p.high)) - p.entropy(), 0.0
    )


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    """Return the divergence of a Gumbel from a uniform distribution."""
    share = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return dt.log(share) + (high + low) * 0.5 - share * (dt.exp(-high) - dt.exp(-low))


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p: Uniform, q: Normal) -> Tensor:
    """Return the divergence of a normal from a uniform distribution."""
    mean = p.mean
    return _normal_cross_entropy(q, mean, p.variance + mean * mean) - p.entropy()


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """Return the divergence of a Pareto from a uniform one; infinite if p goes below q's scale."""
    a = q.alpha
    each = _mean_log(p.low, p.high) * (a + 1.0) - dt.log(a) - a * dt.log(q.scale)
    return _infinite_below(p, each - p.entropy(), q.scale)
