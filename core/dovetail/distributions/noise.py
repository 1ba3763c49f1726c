"""What samples are made of: standard variables, drawn by Philox, the same on every device."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import dovetail as dt

from .distribution import Generator, Shape
from .implicit import NARROW, WIDE, beta_slope, gamma_cdf, gamma_slope
from .parameters import wide

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
    """Floats in 0 <= u < 1, in float32 for narrower ones."""
    d = wide(like.dtype)
    return dt.random.uniform(shape, dtype=d, device=like.device, generator=generator)


def normal(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Standard normal variables."""
    return dt.random.normal(shape, dtype=like.dtype, device=like.device, generator=generator)


def waits(u: Tensor) -> Tensor:
    """Exponential variables from uniform ones; never 0, half of the least step stands for that."""
    least = 2.0**-54 if u.dtype is dt.float64 else 2.0**-25
    return dt.maximum(-dt.log1p(-u), least)


def exponential(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Exponential variables of rate 1, which are positive."""
    x = waits(uniform(shape, like, generator)).astype(like.dtype)
    facts = dt.finfo(like.dtype)
    least = float(facts.smallest_normal) * float(facts.eps)  # a half may have rounded to 0
    return x if wide(like.dtype) is like.dtype else dt.maximum(x, least)


def cauchy(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Standard Cauchy variables."""
    u = uniform(shape, like, generator)
    half = 2.0**-54 if u.dtype is dt.float64 else 2.0**-25
    return dt.tan((u - (0.5 - half)) * math.pi).astype(like.dtype)


def _kept(ctx: dt.autograd.Context) -> tuple[Tensor, Tensor]:
    """The parameter and the sample that a Function has kept."""
    a, x = ctx.saved_tensors
    assert a is not None and x is not None
    return a, x


def _options(x: Tensor) -> dict[str, Any]:
    """How far integrals and series go for a dtype."""
    panels, terms, cut = WIDE if x.dtype is dt.float64 else NARROW
    return {"panels": panels, "terms": terms, "cut": cut, "tiny": _tiny(x)}


def _tiny(x: Tensor) -> float:
    return float(dt.finfo(x.dtype).smallest_normal)


class _StandardGamma(dt.autograd.Function):
    """Gamma variables, whose gradient is implicit."""

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        return x * 1.0

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, None]:
        a, x = _kept(ctx)
        return g * standard_gamma_grad(a, x), None


def standard_gamma_grad(concentration: Tensor, x: Tensor) -> Tensor:
    """The derivative of gamma variables by their concentration, their probability being fixed."""
    d = wide(x.dtype)
    a, y = concentration.astype(d), x.astype(d)
    found: Tensor = gamma_slope(a, y, **_options(y))
    return found.astype(x.dtype)


def gamma(concentration: Tensor, shape: Shape, generator: Generator | None) -> Tensor:
    """Gamma variables of rate 1, which are positive, with gradients."""
    a = dt.broadcast_to(concentration, shape)
    with dt.no_grad():
        x = dt.random.gamma(a.astype(wide(a.dtype)), generator=generator)
        x = dt.maximum(x.astype(a.dtype), _tiny(a))
    return _StandardGamma.apply(a, x)


class _LowerGamma(dt.autograd.Function):
    """The distribution function of a gamma variable."""

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        d = wide(x.dtype)
        k, y = a.astype(d), x.astype(d)
        found: Tensor = gamma_cdf(k, y, **_options(y))
        return found.astype(x.dtype)

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, Tensor]:
        a, x = _kept(ctx)
        density = g * dt.exp(dt.xlogy(a - 1.0, x) - x - dt.lgamma(a))
        return -density * standard_gamma_grad(a, x), density


def lower_gamma(concentration: Tensor, value: Tensor) -> Tensor:
    """The probability of a gamma variable of rate 1 not above a value."""
    shape = dt.broadcast_shapes(concentration.shape, value.shape)
    a, x = (dt.broadcast_to(v, shape) for v in (concentration, value))
    found: Tensor = _LowerGamma.apply(a, x)
    return found


class _Dirichlet(dt.autograd.Function):
    """Dirichlet variables, whose gradient is implicit: that of each one, the rest in proportion."""

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        return x * 1.0

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, None]:
        a, x = _kept(ctx)
        total = dt.sum(a, axis=-1, keepdims=True)
        slope = dirichlet_grad(x, a, total)
        return slope * (g - dt.sum(x * g, axis=-1, keepdims=True)), None


def dirichlet_grad(x: Tensor, concentration: Tensor, total: Tensor) -> Tensor:
    """The derivative of beta variables by their first concentration, over 1 - x."""
    d = wide(x.dtype)
    a, y = concentration.astype(d), x.astype(d)
    b = dt.broadcast_to(total.astype(d), y.shape) - a
    found: Tensor = beta_slope(a, b, y, 1.0 - y, **_options(y))
    return found.astype(x.dtype)


class _Beta(dt.autograd.Function):
    """Beta variables, whose gradient is implicit."""

    @staticmethod
    def forward(ctx: dt.autograd.Context, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, b, x)
        return x * 1.0

    @staticmethod
    def backward(ctx: dt.autograd.Context, g: Tensor) -> tuple[Tensor, Tensor, None]:
        a, b, x = ctx.saved_tensors
        assert a is not None and b is not None and x is not None
        y = 1.0 - x
        by_a, by_b = dirichlet_grad(x, a, a + b), dirichlet_grad(y, b, a + b)
        return g * y * by_a, -g * x * by_b, None


def _log_gamma_factors(a: Tensor, generator: Generator | None) -> tuple[Tensor, Tensor]:
    """Return log(x) and w, such that log(x) - w / a are logarithms of gamma variables.

    A gamma variable of concentration a is one of a + 1, times a uniform one to the power of 1 / a:
    of small concentrations only the logarithm is no 0.
    """
    more = dt.random.gamma(a + 1.0, generator=generator)
    return dt.log(more), waits(uniform(a.shape, a, generator))


def _between(x: Tensor) -> Tensor:
    """Shares that are neither 0 nor 1."""
    return dt.clip(x, _tiny(x), 1.0 - float(dt.finfo(x.dtype).eps) / 2)


def dirichlet(concentration: Tensor, shape: Shape, generator: Generator | None) -> Tensor:
    """Dirichlet variables, with gradients: gamma variables over their sum."""
    a = dt.broadcast_to(concentration, shape)
    with dt.no_grad():
        k = a.astype(wide(a.dtype))
        x, w = _log_gamma_factors(k, generator)
        logs = x - w / k
        least = dt.min(k, axis=-1, keepdims=True)  # it goes last, since 1 / k may be infinite
        far = w * (least / k)
        far = (dt.min(far, axis=-1, keepdims=True) - far) / least + x
        logs = dt.where(dt.max(logs, axis=-1, keepdims=True) > -math.inf, logs, far)
        dt.evaluate(logs)  # or each pass of the softmax would draw them: 70 ms for 330
        x = _between(dt.softmax(logs, axis=-1).astype(a.dtype))
    found: Tensor = _Dirichlet.apply(a, x)
    return found


def beta(a: Tensor, b: Tensor, shape: Shape, generator: Generator | None) -> Tensor:
    """Beta variables, with gradients: a gamma variable's share of two."""
    a, b = dt.broadcast_to(a, shape), dt.broadcast_to(b, shape)
    with dt.no_grad():
        j, k = a.astype(wide(a.dtype)), b.astype(wide(b.dtype))
        (x, v), (y, w) = _log_gamma_factors(j, generator), _log_gamma_factors(k, generator)
        odds = (x - v / j) - (y - w / k)
        least = dt.minimum(j, k)  # it goes last, since 1 / k may be infinite
        far = (w * (least / k) - v * (least / j)) / least
        x = _between(dt.sigmoid(dt.where(dt.isnan(odds), far, odds)).astype(a.dtype))
    found: Tensor = _Beta.apply(a, b, x)
    return found
