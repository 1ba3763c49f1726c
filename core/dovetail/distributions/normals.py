"""The normal distribution, and elementwise transforms of it."""

from __future__ import annotations

import math

import dovetail as dt

from . import constraints, noise
from .distribution import ExponentialFamily, Generator, Sizes, Tensor, constraints_of
from .parameters import Value
from .transformed import TransformedDistribution
from .transforms import AbsTransform, ExpTransform

__all__ = ["HalfNormal", "LogNormal", "Normal"]

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Normal(ExponentialFamily):
    """The normal distribution.

    - `loc`, `scale`: its mean and its standard deviation, which is positive; numbers or tensors.

    Raises: ArgumentError for invalid parameters, ShapeError, DTypeError.
    See also: `LogNormal`, `MultivariateNormal`, `HalfNormal`, `dt.random.normal`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Normal(dt.zeros(2), 1.0)
    >>> d.log_prob(0.0).tolist()
    [-0.9189385175704956, -0.9189385175704956]
    """

    arg_constraints = constraints_of(loc=constraints.real, scale=constraints.positive)
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
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        z = noise.normal(self._extended_shape(sample_shape), self.loc, generator)
        return self.loc + z * self.scale

    def _standardise(self, value: Value) -> Tensor:
        """Return (value - loc) / scale, after validation of the value."""
        return (self._as_value(value) - self.loc) / self.scale

    def log_prob(self, value: Value) -> Tensor:
        z = self._standardise(value)
        return z * -0.5 * z - self._log("scale") - HALF_LOG_TWO_PI

    def cdf(self, value: Value) -> Tensor:
        return dt.ndtr(self._standardise(value))

    def icdf(self, value: Value) -> Tensor:
        return self.loc + self.scale * dt.ndtri(self._as_probability(value))

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_TWO_PI + dt.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        inverse = 1.0 / self.variance
        return self.loc * inverse, inverse * -0.5

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return x * x * -0.25 / y + dt.log(-math.pi / y) * 0.5


class LogNormal(TransformedDistribution):
    """The distribution of exp of a normal variable.

    - `loc`, `scale`: the mean and the standard deviation of the logarithm.

    >>> import dovetail as dt
    >>> dt.distributions.LogNormal(dt.zeros(2), 1.0).median.tolist()
    [1.0, 1.0]
    """

    arg_constraints = constraints_of(loc=constraints.real, scale=constraints.positive)
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=False)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def median(self) -> Tensor:
        """The median of each distribution."""
        return dt.exp(self.loc)

    @property
    def mean(self) -> Tensor:
        return dt.exp(self.loc + self.base_dist.variance * 0.5)

    @property
    def mode(self) -> Tensor:
        return dt.exp(self.loc - self.base_dist.variance)

    @property
    def variance(self) -> Tensor:
        square = self.base_dist.variance
        return dt.expm1(square) * dt.exp(self.loc * 2.0 + square)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(TransformedDistribution):
    """The distribution of the absolute value of a normal variable with mean 0.

    - `scale`: the standard deviation of the normal variable.

    >>> import dovetail as dt
    >>> dt.distributions.HalfNormal(dt.ones(2)).cdf(0.0).tolist()
    [0.0, 0.0]
    """

    arg_constraints = constraints_of(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Normal

    def __init__(self, scale: Value, validate_args: bool | None = None) -> None:
        base = Normal(0.0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal variable."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2.0 / math.pi)

    @property
    def mode(self) -> Tensor:
        return dt.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale * (self.scale * (1.0 - 2.0 / math.pi))

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(1.0 - 2.0 / math.pi)

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        log_density = self.base_dist.log_prob(x) + math.log(2.0)
        return dt.where(x >= 0, log_density, -math.inf)

    def cdf(self, value: Value) -> Tensor:
        return dt.erf(dt.maximum(self._as_value(value), 0.0) / (self.scale * math.sqrt(2.0)))

    def icdf(self, value: Value) -> Tensor:
        return dt.erfinv(self._as_probability(value)) * (self.scale * math.sqrt(2.0))

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2.0)
