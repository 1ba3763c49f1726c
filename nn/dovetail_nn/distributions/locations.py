"""Distributions of real numbers with a place and a width, by inverting uniform variables."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

from . import constraints, noise
from .distribution import Distribution, Generator, Sizes, Tensor, having, holds
from .parameters import EULER, Value
from .transformed import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "Laplace", "StudentT", "Uniform"]

REAL_AND_SCALE = {"loc": constraints.real, "scale": constraints.positive}


class Uniform(Distribution):
    """The uniform distribution over low <= x < high.

    `low`, `high`: its ends, numbers or tensors.
    Raises: ArgumentError unless low < high, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> d = dt.distributions.Uniform(dt.zeros(2, device="reference"), 4.0)
    >>> d.mean.tolist(), d.icdf(0.25).tolist()
    ([2.0, 2.0], [1.0, 1.0])
    """

    arg_constraints = having(
        low=constraints.dependent(is_discrete=False, event_dim=0),
        high=constraints.dependent(is_discrete=False, event_dim=0),
    )
    has_rsample = True
    low: Tensor
    high: Tensor

    def __init__(self, low: Value, high: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._take(low=low, high=high), (), validate_args)
        if self._validate_args:
            with dt.no_grad():
                if not holds([self.low < self.high]):
                    raise dt.ArgumentError(
                        f"Uniform: low has to be less than high, not {_few(self.low)} for high "
                        f"{_few(self.high)}"
                    )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) * 0.5

    @property
    def mode(self) -> Tensor:
        return dt.full_like(self.low, math.nan)

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12.0)

    @property
    def variance(self) -> Tensor:
        width = self.high - self.low
        return width * width / 12.0

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        u = noise.uniform(self._extended_shape(sample_shape), self.low, generator)
        low, high = self.low, self.high
        u = dt.minimum(u.astype(low.dtype), 1.0 - float(dt.finfo(low.dtype).eps) / 2)
        width = high - low
        x = dt.where(dt.isfinite(width), low + u * width, low * (1.0 - u) + high * u)
        with dt.no_grad():
            last = dt.maximum(dt.nextafter(high, low), low)
            beyond = dt.maximum(x - last, 0.0)
        return x - beyond

    def log_prob(self, value: Value) -> Tensor:
        x = self._taken(value)
        inside = (x >= self.low) & (x < self.high)
        return dt.where(inside, -dt.log(self.high - self.low), -math.inf)

    def cdf(self, value: Value) -> Tensor:
        return dt.clip((self._taken(value) - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Value) -> Tensor:
        return self._probability(value) * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return dt.log(self.high - self.low)


def _few(x: Tensor) -> str:
    return str(x.tolist()) if x.size <= 9 else f"of shape {x.shape}"


class Laplace(Distribution):
    """The Laplace distribution: exponential on both sides of `loc`.

    `loc`, `scale`: its mean and how wide it is.

    >>> import dovetail as dt
    >>> dt.distributions.Laplace(dt.zeros(2, device="reference"), 1.0).variance.tolist()
    [2.0, 2.0]
    """

    arg_constraints = REAL_AND_SCALE
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._take(loc=loc, scale=scale), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * 2.0

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(2.0)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        u = noise.uniform(self._extended_shape(sample_shape), self.loc, generator)
        below = u < 0.5  # which side; the rest of the number is how far
        size = noise.waits(u * 2.0 - dt.where(below, 0.0, 1.0))
        return self.loc + self.scale * dt.where(below, -size, size).astype(self.loc.dtype)

    def log_prob(self, value: Value) -> Tensor:
        off = dt.abs(self._taken(value) - self.loc) / self.scale
        return -off - self._log("scale") - math.log(2.0)

    def cdf(self, value: Value) -> Tensor:
        off = (self._taken(value) - self.loc) / self.scale
        return 0.5 - dt.sign(off) * dt.expm1(-dt.abs(off)) * 0.5

    def icdf(self, value: Value) -> Tensor:
        off = self._probability(value) - 0.5
        return self.loc - self.scale * dt.sign(off) * dt.log1p(dt.abs(off) * -2.0)

    def entropy(self) -> Tensor:
        return dt.log(self.scale) + (1.0 + math.log(2.0))


class Cauchy(Distribution):
    """The Cauchy distribution, which has no mean.

    `loc`, `scale`: its median, and how far from it half of the values are.

    >>> import dovetail as dt
    >>> dt.distributions.Cauchy(dt.zeros(2, device="reference"), 1.0).cdf(0.0).tolist()
    [0.5, 0.5]
    """

    arg_constraints = REAL_AND_SCALE
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._take(loc=loc, scale=scale), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return dt.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return dt.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        z = noise.cauchy(self._extended_shape(sample_shape), self.loc, generator)
        return self.loc + z * self.scale

    def log_prob(self, value: Value) -> Tensor:
        z = (self._taken(value) - self.loc) / self.scale
        return -math.log(math.pi) - self._log("scale") - dt.log1p(z * z)

    def cdf(self, value: Value) -> Tensor:
        return dt.atan((self._taken(value) - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Value) -> Tensor:
        return dt.tan((self._probability(value) - 0.5) * math.pi) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4.0 * math.pi) + dt.log(self.scale)


class HalfCauchy(TransformedDistribution):
    """The distribution of the size of a Cauchy variable around 0.

    `scale`: what half of the values are below.

    >>> import dovetail as dt
    >>> dt.distributions.HalfCauchy(dt.ones(2, device="reference")).cdf(1.0).tolist()
    [0.5, 0.5]
    """

    arg_constraints = having(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy

    def __init__(self, scale: Value, validate_args: bool | None = None) -> None:
        base = Cauchy(0.0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """What half of the values are below."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return dt.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return dt.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Value) -> Tensor:
        x = self._taken(value)
        found = self.base_dist.log_prob(x) + math.log(2.0)
        return dt.where(x >= 0, found, -math.inf)

    def cdf(self, value: Value) -> Tensor:
        return dt.clip(self.base_dist.cdf(self._taken(value)) * 2.0 - 1.0, 0.0, None)

    def icdf(self, value: Value) -> Tensor:
        return self.base_dist.icdf((self._probability(value) + 1.0) * 0.5)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2.0)


class StudentT(Distribution):
    """Student's t distribution.

    `df`: degrees of freedom; `loc`, `scale`: its middle, and how wide it is.

    >>> import dovetail as dt
    >>> dt.distributions.StudentT(dt.asarray([4.0], device="reference")).variance.tolist()
    [2.0]
    """

    arg_constraints = having(df=constraints.positive, **REAL_AND_SCALE)
    support = constraints.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self, df: Value, loc: Value = 0.0, scale: Value = 1.0, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._take(df=df, loc=loc, scale=scale), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return dt.where(self.df > 1.0, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        few = dt.where(self.df > 2.0, self.df, 3.0)
        found = self.scale * self.scale * few / (few - 2.0)
        found = dt.where(self.df > 2.0, found, math.inf)
        return dt.where(self.df > 1.0, found, math.nan)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = noise.normal(shape, self.df, generator)
        half = noise.gamma(self.df * 0.5, shape, generator) / (self.df * 0.5)
        return self.loc + self.scale * x * dt.rsqrt(half)

    def log_prob(self, value: Value) -> Tensor:
        y = (self._taken(value) - self.loc) / self.scale
        df = self.df
        normal = (
            self._log("scale") + dt.log(df) * 0.5 + 0.5 * math.log(math.pi)
            + dt.lgamma(df * 0.5) - dt.lgamma((df + 1.0) * 0.5)
        )  # fmt: skip
        return (df + 1.0) * -0.5 * dt.log1p(y * y / df) - normal

    def entropy(self) -> Tensor:
        half, more = self.df * 0.5, (self.df + 1.0) * 0.5
        beta = dt.lgamma(half) + math.lgamma(0.5) - dt.lgamma(more)
        return (
            dt.log(self.scale) + more * (dt.digamma(more) - dt.digamma(half))
            + dt.log(self.df) * 0.5 + beta
        )  # fmt: skip


class Gumbel(Distribution):
    """The Gumbel distribution, of the largest of many.

    `loc`, `scale`: its most probable value, and how wide it is.

    >>> import dovetail as dt
    >>> dt.distributions.Gumbel(dt.zeros(2, device="reference"), 1.0).mode.tolist()
    [0.0, 0.0]
    """

    arg_constraints = REAL_AND_SCALE
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._take(loc=loc, scale=scale), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6.0))

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (math.pi**2 / 6.0)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        u = noise.uniform(self._extended_shape(sample_shape), self.loc, generator)
        z = -dt.log(noise.waits(u)).astype(self.loc.dtype)  # a wait of a half may round to 0
        return self.loc + self.scale * z

    def log_prob(self, value: Value) -> Tensor:
        y = (self.loc - self._taken(value)) / self.scale
        return y - dt.exp(y) - self._log("scale")

    def cdf(self, value: Value) -> Tensor:
        return dt.exp(-dt.exp((self.loc - self._taken(value)) / self.scale))

    def icdf(self, value: Value) -> Tensor:
        return self.loc - self.scale * dt.log(-dt.log(self._probability(value)))

    def entropy(self) -> Tensor:
        return dt.log(self.scale) + (1.0 + EULER)
