"""Location-scale distributions of real numbers, sampled mostly by inverting uniform variables."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

from . import constraints, noise
from .distribution import Distribution, Generator, Sizes, Tensor, all_valid, constraints_of
from .parameters import EULER, Value, log1p_square
from .transformed import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "Laplace", "StudentT", "Uniform"]

LOCATION_SCALE_CONSTRAINTS = {"loc": constraints.real, "scale": constraints.positive}


class Uniform(Distribution):
    """The uniform distribution over low <= x < high.

    - `low`, `high`: its ends, numbers or tensors.

    Raises: ArgumentError unless low < high, ShapeError, DTypeError.
    See also: `dt.random.uniform`, `Normal`, `Beta`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Uniform(dt.zeros(2), 4.0)
    >>> d.mean.tolist(), d.icdf(0.25).tolist()
    ([2.0, 2.0], [1.0, 1.0])
    """

    arg_constraints = constraints_of(
        low=constraints.dependent(is_discrete=False, event_dim=0),
        high=constraints.dependent(is_discrete=False, event_dim=0),
    )
    has_rsample = True
    low: Tensor
    high: Tensor

    def __init__(self, low: Value, high: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameters(low=low, high=high), (), validate_args)
        if self._validate_args:
            with dt.no_grad():
                if not all_valid([self.low < self.high]):
                    raise dt.ArgumentError(
                        f"Uniform: low must be less than high, got low={_as_text(self.low)} and "
                        f"high={_as_text(self.high)}"
                    )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return self.high * 0.5 + self.low * 0.5

    @property
    def mode(self) -> Tensor:
        return dt.full_like(self.low, math.nan)

    @property
    def stddev(self) -> Tensor:
        return (self.high * 0.5 - self.low * 0.5) / math.sqrt(3.0)

    @property
    def variance(self) -> Tensor:
        half = self.high * 0.5 - self.low * 0.5  # the square of the width may overflow
        return half * (half / 3.0)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        u = noise.uniform(self._extended_shape(sample_shape), self.low, generator)
        low, high = self.low, self.high
        u = dt.minimum(u.astype(low.dtype), 1.0 - float(dt.finfo(low.dtype).eps) / 2)
        width = high - low
        x = dt.where(dt.isfinite(width), low + u * width, self._interpolate(u))
        with dt.no_grad():
            last = dt.maximum(dt.nextafter(high, low), low)
            beyond = dt.maximum(x - last, 0.0)
        return x - beyond

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        in_support = (x >= self.low) & (x < self.high)
        return dt.where(in_support, -self.entropy(), -math.inf)

    def cdf(self, value: Value) -> Tensor:
        low, high = self.low * 0.5, self.high * 0.5  # half of the range does not overflow
        x = dt.clip(self._as_value(value), self.low, self.high)
        return dt.clip((x * 0.5 - low) / (high - low), 0.0, 1.0)

    def icdf(self, value: Value) -> Tensor:
        p, width = self._as_probability(value), self.high - self.low
        quantile = dt.where(dt.isfinite(width), p * width + self.low, self._interpolate(p))
        return dt.where(p == 1.0, self.high, quantile)

    def _interpolate(self, p: Tensor) -> Tensor:
        """Return low + (high - low) * p without computing the width, which may overflow."""
        return self.low * (1.0 - p) + self.high * p

    def entropy(self) -> Tensor:
        width = self.high - self.low
        half = self.high * 0.5 - self.low * 0.5
        wide = dt.isfinite(width)
        return dt.where(wide, dt.log(dt.where(wide, width, 1.0)), dt.log(half) + math.log(2.0))


def _as_text(x: Tensor) -> str:
    """Return the values of a small tensor, or the shape of a larger one, for an error."""
    return str(x.tolist()) if x.size <= 9 else f"of shape {x.shape}"


class Laplace(Distribution):
    """The Laplace distribution: exponential on both sides of `loc`.

    - `loc`, `scale`: its mean, and the mean distance from it, which is positive.

    >>> import dovetail as dt
    >>> dt.distributions.Laplace(dt.zeros(2), 1.0).variance.tolist()
    [2.0, 2.0]
    """

    arg_constraints = LOCATION_SCALE_CONSTRAINTS
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameters(loc=loc, scale=scale), (), validate_args)

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
        below = u < 0.5  # below 0.5: left of loc; the remaining bits give the distance
        size = noise.exponential_from_uniform(u * 2.0 - dt.where(below, 0.0, 1.0))
        return self.loc + self.scale * dt.where(below, -size, size).astype(self.loc.dtype)

    def log_prob(self, value: Value) -> Tensor:
        off = dt.abs(self._as_value(value) - self.loc) / self.scale
        return -off - self._log("scale") - math.log(2.0)

    def cdf(self, value: Value) -> Tensor:
        off = (self._as_value(value) - self.loc) / self.scale
        tail = dt.exp(-dt.abs(off)) * 0.5
        return dt.where(off < 0.0, tail, 1.0 - tail)

    def icdf(self, value: Value) -> Tensor:
        p = self._as_probability(value)
        below = p < 0.5
        off = dt.log(dt.where(below, p, 1.0 - p) * 2.0)
        return self.loc + self.scale * dt.where(below, off, -off)

    def entropy(self) -> Tensor:
        return dt.log(self.scale) + (1.0 + math.log(2.0))


class Cauchy(Distribution):
    """The Cauchy distribution, which has no mean.

    - `loc`, `scale`: its median, and the positive distance from it within which half of the values
      lie.

    >>> import dovetail as dt
    >>> dt.distributions.Cauchy(dt.zeros(2), 1.0).cdf(0.0).tolist()
    [0.5, 0.5]
    """

    arg_constraints = LOCATION_SCALE_CONSTRAINTS
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameters(loc=loc, scale=scale), (), validate_args)

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
        z = (self._as_value(value) - self.loc) / self.scale
        return -math.log(math.pi) - self._log("scale") - log1p_square(z)

    def cdf(self, value: Value) -> Tensor:
        z = (self._as_value(value) - self.loc) / self.scale
        far = z < -1.0
        tail = dt.atan(-1.0 / dt.where(far, z, -1.0)) / math.pi
        return dt.where(far, tail, dt.atan(z) / math.pi + 0.5)

    def icdf(self, value: Value) -> Tensor:
        p = self._as_probability(value)
        end = dt.minimum(p, 1.0 - p)
        tail = 1.0 / dt.tan(dt.where(end < 0.25, end, 0.25) * math.pi)
        middle = dt.tan((dt.clip(p, 0.25, 0.75) - 0.5) * math.pi)
        z = dt.where(end < 0.25, dt.where(p < 0.5, -tail, tail), middle)
        return z * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4.0 * math.pi) + dt.log(self.scale)


class HalfCauchy(TransformedDistribution):
    """The distribution of the absolute value of a Cauchy variable around 0.

    - `scale`: the median.

    >>> import dovetail as dt
    >>> dt.distributions.HalfCauchy(dt.ones(2)).cdf(1.0).tolist()
    [0.5, 0.5]
    """

    arg_constraints = constraints_of(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy

    def __init__(self, scale: Value, validate_args: bool | None = None) -> None:
        base = Cauchy(0.0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The median."""
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
        x = self._as_value(value)
        log_density = self.base_dist.log_prob(x) + math.log(2.0)
        return dt.where(x >= 0, log_density, -math.inf)

    def cdf(self, value: Value) -> Tensor:
        return dt.atan(dt.maximum(self._as_value(value), 0.0) / self.scale) * (2.0 / math.pi)

    def icdf(self, value: Value) -> Tensor:
        p = self._as_probability(value) * 0.5
        near = p <= 0.25
        tail = 1.0 / dt.tan(dt.where(near, 0.25, 0.5 - p) * math.pi)
        return dt.where(near, dt.tan(dt.where(near, p, 0.25) * math.pi), tail) * self.scale

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2.0)


class StudentT(Distribution):
    """Student's t distribution.

    - `df`: degrees of freedom, positive.
    - `loc`, `scale`: its median, and the factor of its width, which is positive.

    >>> import dovetail as dt
    >>> dt.distributions.StudentT(dt.asarray([4.0])).variance.tolist()
    [2.0]
    """

    arg_constraints = constraints_of(df=constraints.positive, **LOCATION_SCALE_CONSTRAINTS)
    support = constraints.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self, df: Value, loc: Value = 0.0, scale: Value = 1.0, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._set_parameters(df=df, loc=loc, scale=scale), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return dt.where(self.df > 1.0, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._where_defined(self.scale * self._unit_variance() * self.scale)

    @property
    def stddev(self) -> Tensor:
        return self._where_defined(self.scale * dt.sqrt(self._unit_variance()))

    def _unit_variance(self) -> Tensor:
        """Return the variance at scale 1, and an arbitrary number if it is not finite."""
        few = dt.where(self.df > 2.0, self.df, 3.0)
        return few / (few - 2.0)

    def _where_defined(self, value: Tensor) -> Tensor:
        """Return the value, infinity for 1 < df <= 2, and NaN up to 1."""
        value = dt.where(self.df > 2.0, value, math.inf)
        return dt.where(self.df > 1.0, value, math.nan)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = noise.normal(shape, self.df, generator)
        half = noise.gamma(self.df * 0.5, shape, generator) / (self.df * 0.5)
        return self.loc + self.scale * x * dt.rsqrt(half)

    def log_prob(self, value: Value) -> Tensor:
        y = (self._as_value(value) - self.loc) / self.scale
        df = self.df
        normal = self._log("scale") + 0.5 * math.log(math.pi) + _log_ratio(df)
        far = dt.abs(y) > 1e15  # y * y may overflow
        near, size = dt.where(far, 0.0, y), dt.where(far, dt.abs(y), 1.0)
        tail = dt.logaddexp(dt.log(size) * 2.0 - dt.log(df), 0.0)
        return (df + 1.0) * -0.5 * dt.where(far, tail, dt.log1p(near * near / df)) - normal

    def entropy(self) -> Tensor:
        half, more = self.df * 0.5, (self.df + 1.0) * 0.5
        many = self.df > SERIES_DF_MIN
        few, r = dt.where(many, 1.0, half), 1.0 / dt.where(many, self.df, SERIES_DF_MIN)
        q = r * r
        series = r + q * (1 / 2 - q * (1 / 4 - q * (1 / 2 - q * (17 / 8))))
        slope = dt.where(many, series, dt.digamma(few + 0.5) - dt.digamma(few))
        return dt.log(self.scale) + more * slope + _log_ratio(self.df) + math.lgamma(0.5)


SERIES_DF_MIN = 60.0  # from here on, series replace differences of lgamma and digamma


def _log_ratio(df: Tensor) -> Tensor:
    """Return log(df) / 2 + lgamma(df / 2) - lgamma((df + 1) / 2)."""
    many = df > SERIES_DF_MIN
    few, r = dt.where(many, SERIES_DF_MIN, df), 1.0 / dt.where(many, df, SERIES_DF_MIN)
    exact = dt.log(few) * 0.5 + dt.lgamma(few * 0.5) - dt.lgamma((few + 1.0) * 0.5)
    q = r * r
    series = r * (1 / 4 - q * (1 / 24 - q * (1 / 20 - q * (17 / 112))))
    return dt.where(many, 0.5 * math.log(2.0) + series, exact)


class Gumbel(Distribution):
    """The Gumbel distribution, of the maximum of many values.

    - `loc`, `scale`: its mode, and the factor of its width, which is positive.

    >>> import dovetail as dt
    >>> dt.distributions.Gumbel(dt.zeros(2), 1.0).mode.tolist()
    [0.0, 0.0]
    """

    arg_constraints = LOCATION_SCALE_CONSTRAINTS
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameters(loc=loc, scale=scale), (), validate_args)

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
        z = -dt.log(noise.exponential_from_uniform(u)).astype(
            self.loc.dtype
        )  # the logarithm first: the variable may round to 0 as a half
        return self.loc + self.scale * z

    def log_prob(self, value: Value) -> Tensor:
        y = (self.loc - self._as_value(value)) / self.scale
        return y - dt.exp(y) - self._log("scale")

    def cdf(self, value: Value) -> Tensor:
        return dt.exp(-dt.exp((self.loc - self._as_value(value)) / self.scale))

    def icdf(self, value: Value) -> Tensor:
        return self.loc - self.scale * dt.log(-dt.log(self._as_probability(value)))

    def entropy(self) -> Tensor:
        return dt.log(self.scale) + (1.0 + EULER)
