"""Standard random variables for samples, drawn by Philox, with the same bits on every device."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import dovetail as dt

from .distribution import Generator, Shape
from .implicit import FLOAT32_PRECISION, FLOAT64_PRECISION, beta_slope, gamma_cdf, gamma_slope
from .parameters import sampling_dtype

__all__ = [
    "beta",
    "cauchy",
    "dirichlet",
    "exponential",
    "gamma",
    "lower_gamma",
    "normal",
    "uniform",
]

Tensor: TypeAlias = dt.Tensor


def uniform(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Draw floats in 0 <= u < 1, in float32 for narrower dtypes."""
    d = sampling_dtype(like.dtype)
    return dt.random.uniform(shape, dtype=d, device=like.device, generator=generator)


def normal(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Draw standard normal variables."""
    return dt.random.normal(shape, dtype=like.dtype, device=like.device, generator=generator)


def exponential_from_uniform(u: Tensor) -> Tensor:
    """Return exponential variables from uniform ones; half of the least step replaces 0."""
    least = 2.0**-54 if u.dtype is dt.float64 else 2.0**-25
    return dt.maximum(-dt.log1p(-u), least)


def exponential(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Draw exponential variables of rate 1, which are positive."""
    x = exponential_from_uniform(uniform(shape, like, generator)).astype(like.dtype)
    facts = dt.finfo(like.dtype)
    least = float(facts.smallest_normal) * float(facts.eps)  # a half may have rounded to 0
    return x if sampling_dtype(like.dtype) is like.dtype else dt.maximum(x, least)


def cauchy(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Draw standard Cauchy variables."""
    u = uniform(shape, like, generator)
    half = 2.0**-54 if u.dtype is dt.float64 else 2.0**-25
    return dt.tan((u - (0.5 - half)) * math.pi).astype(like.dtype)


def _unpack_saved(ctx: dt.autograd.Context) -> tuple[Tensor, Tensor]:
    """Return the parameter and the sample that a Function saved."""
    a, x = ctx.saved_tensors
    assert a is not None and x is not None
    return a, x


def _precision(x: Tensor) -> dict[str, Any]:
    """Return the options of `gamma_slope`, `gamma_cdf` and `beta_slope` for the dtype of x."""
    panels, terms, cut = FLOAT64_PRECISION if x.dtype is dt.float64 else FLOAT32_PRECISION
    return {"panels": panels, "terms": terms, "cut": cut, "tiny": _tiny(x)}


def _tiny(x: Tensor) -> float:
    """Return the smallest normal number of a tensor's dtype."""
    return float(dt.finfo(x.dtype).smallest_normal)


class _StandardGamma(dt.autograd.Function):
    """The identity on gamma variables, with the implicit gradient."""

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        return x * 1.0

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, None]:
        a, x = _unpack_saved(ctx)
        return g * standard_gamma_grad(a, x), None


def standard_gamma_grad(concentration: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of gamma variables by their concentration at a fixed probability."""
    d = sampling_dtype(x.dtype)
    a, y = concentration.astype(d), x.astype(d)
    slope: Tensor = gamma_slope(a, y, **_precision(y))
    return slope.astype(x.dtype)


def gamma(concentration: Tensor, shape: Shape, generator: Generator | None) -> Tensor:
    """Draw gamma variables of rate 1, which are positive, with gradients."""
    a = dt.broadcast_to(concentration, shape)
    with dt.no_grad():
        x = dt.random.gamma(a.astype(sampling_dtype(a.dtype)), generator=generator)
        x = dt.maximum(x.astype(a.dtype), _tiny(a))
    return _StandardGamma.apply(a, x)


class _LowerGamma(dt.autograd.Function):
    """The distribution function of a gamma variable."""

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, x: Tensor) -> Tensor:
        """Return the probabilities, in the dtype of x; save a and x."""
        ctx.save_for_backward(a, x)
        d = sampling_dtype(x.dtype)
        k, y = a.astype(d), x.astype(d)
        probability: Tensor = gamma_cdf(k, y, **_precision(y))
        return probability.astype(x.dtype)

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients by a, which is implicit, and by x."""
        a, x = _unpack_saved(ctx)
        density = g * dt.exp(dt.xlogy(a - 1.0, x) - x - dt.lgamma(a))
        return -density * standard_gamma_grad(a, x), density


def lower_gamma(concentration: Tensor, value: Tensor) -> Tensor:
    """Return the probability of a gamma variable of rate 1 not above a value."""
    shape = dt.broadcast_shapes(concentration.shape, value.shape)
    a, x = (dt.broadcast_to(v, shape) for v in (concentration, value))
    probability: Tensor = _LowerGamma.apply(a, x)
    return probability


class _Dirichlet(dt.autograd.Function):
    """The identity on Dirichlet variables, with the implicit gradient of each share.

    The other shares change in proportion.
    """

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        return x * 1.0

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, None]:
        """Return the gradient by the concentrations, and None for the sample."""
        a, x = _unpack_saved(ctx)
        total = dt.sum(a, axis=-1, keepdims=True)
        slope = dirichlet_grad(x, a, total)
        return slope * (g - dt.sum(x * g, axis=-1, keepdims=True)), None


def dirichlet_grad(x: Tensor, concentration: Tensor, total: Tensor) -> Tensor:
    """Return the derivative of beta variables by their first concentration, over 1 - x."""
    d = sampling_dtype(x.dtype)
    a, y = concentration.astype(d), x.astype(d)
    b = dt.broadcast_to(total.astype(d), y.shape) - a
    slope: Tensor = beta_slope(a, b, y, 1.0 - y, **_precision(y))
    return slope.astype(x.dtype)


class _Beta(dt.autograd.Function):
    """The identity on beta variables, with the implicit gradient."""

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, b, x)
        return x * 1.0

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients by a and b, and None for the sample."""
        a, b, x = ctx.saved_tensors
        assert a is not None and b is not None and x is not None
        y = 1.0 - x
        by_a, by_b = dirichlet_grad(x, a, a + b), dirichlet_grad(y, b, a + b)
        return g * y * by_a, -g * x * by_b, None


def _log_gamma_factors(a: Tensor, generator: Generator | None) -> tuple[Tensor, Tensor]:
    """Return log(x) and w, such that log(x) - w / a are logarithms of gamma variables.

    A gamma variable of concentration a is one of a + 1, times a uniform one to the power of 1 / a.
    For small concentrations it underflows to 0, but its logarithm does not.
    """
    more = dt.random.gamma(a + 1.0, generator=generator)
    return dt.log(more), exponential_from_uniform(uniform(a.shape, a, generator))


def _clip_open_unit(x: Tensor) -> Tensor:
    """Clip shares so that they are neither 0 nor 1."""
    return dt.clip(x, _tiny(x), 1.0 - float(dt.finfo(x.dtype).eps) / 2)


def dirichlet(concentration: Tensor, shape: Shape, generator: Generator | None) -> Tensor:
    """Draw Dirichlet variables, with gradients: gamma variables over their sum; evaluate them."""
    a = dt.broadcast_to(concentration, shape)
    with dt.no_grad():
        k = a.astype(sampling_dtype(a.dtype))
        x, w = _log_gamma_factors(k, generator)
        logs = x - w / k
        least = dt.min(k, axis=-1, keepdims=True)  # divided by last, as 1 / k may be infinite
        far = w * (least / k)
        far = (dt.min(far, axis=-1, keepdims=True) - far) / least + x
        logs = dt.where(dt.max(logs, axis=-1, keepdims=True) > -math.inf, logs, far)
        dt.evaluate(logs)  # 70 ms instead of 330: each pass of the softmax would draw them
        x = _clip_open_unit(dt.softmax(logs, axis=-1).astype(a.dtype))
    sample: Tensor = _Dirichlet.apply(a, x)
    return sample


def beta(a: Tensor, b: Tensor, shape: Shape, generator: Generator | None) -> Tensor:
    """Draw beta variables, with gradients: the share of one of two gamma variables."""
    a, b = dt.broadcast_to(a, shape), dt.broadcast_to(b, shape)
    with dt.no_grad():
        j, k = a.astype(sampling_dtype(a.dtype)), b.astype(sampling_dtype(b.dtype))
        (x, v), (y, w) = _log_gamma_factors(j, generator), _log_gamma_factors(k, generator)
        odds = (x - v / j) - (y - w / k)
        least = dt.minimum(j, k)  # divided by last, as 1 / k may be infinite
        far = (w * (least / k) - v * (least / j)) / least
        x = _clip_open_unit(dt.sigmoid(dt.where(dt.isnan(odds), far, odds)).astype(a.dtype))
    sample: Tensor = _Beta.apply(a, b, x)
    return sample
