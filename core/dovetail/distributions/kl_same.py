"""Divergences between distributions of one class.

Source: Gil, "On Renyi divergence measures for continuous alphabet sources", 2011, for many of them.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

from .categories import Categorical, OneHotCategorical
from .composed import Independent
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import ExponentialFamily, Tensor, all_valid
from .kl import kl_divergence, register_kl
from .location_scale import Cauchy, Gumbel, Laplace, Uniform
from .multivariate import MultivariateNormal, half_log_det, inverse_quadratic_form
from .normals import HalfNormal, Normal
from .parameters import EULER, sum_last, xlogy
from .positive import Exponential, Gamma, Pareto
from .simplex import Beta, Dirichlet
from .transformed import TransformedDistribution

__all__: list[str] = []


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli(p: Any, q: Any) -> Tensor:
    """Return the divergence of two Bernoulli distributions."""
    yes, no = p.probs, p._failure_probability()
    divergence: Tensor = p._sequence_log_prob(yes, no) - q._sequence_log_prob(yes, no)
    return divergence


@register_kl(Binomial, Binomial)
def _kl_binomial(p: Binomial, q: Binomial) -> Tensor:
    """Return the divergence of two binomials; infinite if p has more trials than q.

    Raises: UnsupportedError if q has more.
    """
    if not all_valid([p.total_count >= q.total_count]):
        raise dt.UnsupportedError(
            "kl_divergence(Binomial, Binomial): total_count of q must be at most that of p"
        )
    none = p.total_count == 0.0
    each = dt.where(none, 0.0, _kl_bernoulli(p, q))
    return dt.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Geometric, Geometric)
def _kl_geometric(p: Geometric, q: Geometric) -> Tensor:
    """Return the divergence of two geometric distributions."""
    return -p.entropy() - q._sequence_log_prob(1.0, p.mean)


@register_kl(Poisson, Poisson)
def _kl_poisson(p: Poisson, q: Poisson) -> Tensor:
    """Return the divergence of two Poisson distributions; 0 if both rates are 0."""
    none = (p.rate == 0.0) & (q.rate == 0.0)
    ratio = p.rate / dt.where(none, 1.0, q.rate)
    return xlogy(p.rate, ratio) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _kl_categorical(p: Any, q: Any) -> Tensor:
    """Return the divergence of two categorical distributions."""
    a = p.probs
    return dt.sum(p._weighted_logs(a) - q._weighted_logs(a), axis=-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    """Return the divergence of the categories."""
    return _kl_categorical(p, q)


@register_kl(Beta, Beta)
def _kl_beta(p: Beta, q: Beta) -> Tensor:
    """Return the divergence of two beta distributions."""
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    total, other = a + b, c + d
    normal = (
        dt.lgamma(c)
        + dt.lgamma(d)
        + dt.lgamma(total)
        - dt.lgamma(a)
        - dt.lgamma(b)
        - dt.lgamma(other)
    )
    slopes = (a - c) * dt.digamma(a) + (b - d) * dt.digamma(b)
    return normal + slopes + (other - total) * dt.digamma(total)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    """Return the divergence of two Dirichlet distributions."""
    a, b = p.concentration, q.concentration
    total = dt.sum(a, axis=-1)
    slopes = dt.digamma(a) - dt.digamma(total)[..., None]
    each = dt.lgamma(b) - dt.lgamma(a) + (a - b) * slopes
    return dt.lgamma(total) - dt.lgamma(dt.sum(b, axis=-1)) + dt.sum(each, axis=-1)


@register_kl(Exponential, Exponential)
def _kl_exponential(p: Exponential, q: Exponential) -> Tensor:
    """Return the divergence of two exponential distributions."""
    ratio = q.rate / p.rate
    return ratio - 1.0 - dt.log(ratio)


@register_kl(Gamma, Gamma)
def _kl_gamma(p: Gamma, q: Gamma) -> Tensor:
    """Return the divergence of two gamma distributions."""
    a, b = p.concentration, q.concentration
    return (
        b * dt.log(p.rate / q.rate)
        + dt.lgamma(b)
        - dt.lgamma(a)
        + (a - b) * dt.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _kl_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    """Return the divergence of two Gumbel distributions."""
    ratio, off = p.scale / q.scale, (q.loc - p.loc) / q.scale
    moment = dt.exp(off + dt.lgamma(ratio + 1.0))
    return -dt.log(ratio) - off + ratio * EULER + moment - (1.0 + EULER)


@register_kl(Normal, Normal)
def _kl_normal(p: Normal, q: Normal) -> Tensor:
    """Return the divergence of two normal distributions."""
    ratio, off = p.scale / q.scale, (p.loc - q.loc) / q.scale
    square = ratio * ratio
    return (square + off * off - 1.0 - dt.log(square)) * 0.5


@register_kl(HalfNormal, HalfNormal)
def _kl_half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    """Return the divergence of two half-normal distributions, that of the normal ones."""
    return _kl_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace(p: Laplace, q: Laplace) -> Tensor:
    """Return the divergence of two Laplace distributions."""
    ratio, off = p.scale / q.scale, dt.abs(p.loc - q.loc)
    return -dt.log(ratio) + off / q.scale + ratio * dt.exp(-off / p.scale) - 1.0


@register_kl(Cauchy, Cauchy)
def _kl_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Return the divergence of two Cauchy distributions, which is symmetric.

    Source: Chyzak, Nielsen, "A closed-form formula for the Kullback-Leibler divergence between
    Cauchy distributions", 2019.
    """
    both, off = p.scale + q.scale, p.loc - q.loc
    return dt.log(both * both + off * off) - dt.log(p.scale * q.scale * 4.0)


@register_kl(Pareto, Pareto)
def _kl_pareto(p: Pareto, q: Pareto) -> Tensor:
    """Return the divergence of two Pareto distributions, infinite if p begins below q."""
    ratio = q.alpha / p.alpha
    divergence = q.alpha * dt.log(p.scale / q.scale) - dt.log(ratio) + ratio - 1.0
    return dt.where(p.scale < q.scale, math.inf, divergence)


@register_kl(Uniform, Uniform)
def _kl_uniform(p: Uniform, q: Uniform) -> Tensor:
    """Return the divergence of two uniform distributions, infinite unless q covers p."""
    divergence = dt.log((q.high - q.low) / (p.high - p.low))
    return dt.where((q.low > p.low) | (q.high < p.high), math.inf, divergence)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    """Return the divergence of two multivariate normals.

    Raises: ShapeError for unequal event shapes.
    """
    if p.event_shape != q.event_shape:
        raise dt.ShapeError(
            f"kl_divergence: p and q must have the same event shape, got {p.event_shape} and "
            f"{q.event_shape}"
        )
    a, b = p._scale, q._scale
    batch = dt.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    n = p.event_shape[0]
    ours, theirs = (dt.broadcast_to(x, (*batch, n, n)) for x in (a, b))
    z = dt.linalg.solve_triangular(theirs, ours, upper=False)
    spread = dt.sum(z * z, axis=(-2, -1))
    off = inverse_quadratic_form(b, q.loc - p.loc)
    return half_log_det(b) - half_log_det(a) + (spread + off - n) * 0.5


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Return the divergence of two members of one family.

    Raises: UnsupportedError for two families.

    Source: Nielsen, Nock, "Entropies and cross-entropies of exponential families", 2010.
    """
    if type(p) is not type(q):
        raise dt.UnsupportedError(
            f"kl_divergence: dovetail has no rule for two families, {type(p).__name__} and "
            f"{type(q).__name__}"
        )
    ours = [x.detach().requires_grad_() for x in p._natural_params]
    normal = p._log_normalizer(*ours)
    slopes = dt.autograd.grad(normal.sum(), ours, create_graph=True)
    divergence = q._log_normalizer(*q._natural_params) - normal
    for a, b, slope in zip(ours, q._natural_params, slopes, strict=True):
        divergence = divergence - sum_last((b - a) * slope, len(q.event_shape))
    return divergence


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """Return the divergence of the bases.

    Raises: UnsupportedError unless the transforms are equal.
    """
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise dt.UnsupportedError(
            f"kl_divergence: p and q must have the same transforms and event shape, got {p!r} and "
            f"{q!r}"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent(p: Independent, q: Independent) -> Tensor:
    """Return the sum of the bases' divergences.

    Raises: UnsupportedError for other event dimensions.
    """
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise dt.UnsupportedError(
            f"kl_divergence: p and q must have the same reinterpreted_batch_ndims, got {n} and "
            f"{q.reinterpreted_batch_ndims}"
        )
    return sum_last(kl_divergence(p.base_dist, q.base_dist), n)
