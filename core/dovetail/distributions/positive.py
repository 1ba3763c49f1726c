"""Distributions of positive numbers."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

from . import constraints, noise
from .distribution import (
    Distribution,
    ExponentialFamily,
    Generator,
    Sizes,
    Tensor,
    constraints_of,
    masked_log_density,
)
from .parameters import EULER, Value, xlogy
from .transformed import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform

__all__ = [
    "Chi2",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "InverseGamma",
    "Pareto",
    "Weibull",
]


class Exponential(ExponentialFamily):
    """The exponential distribution: of the time between events that occur at `rate`.

    - `rate`: positive numbers.

    >>> import dovetail as dt
    >>> dt.distributions.Exponential(dt.asarray([2.0])).mean.tolist()
    [0.5]
    """

    arg_constraints = constraints_of(rate=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    rate: Tensor

    def __init__(self, rate: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameters(rate=rate), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.rate

    @property
    def mode(self) -> Tensor:
        return dt.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1.0 / self.rate

    @property
    def variance(self) -> Tensor:
        return 1.0 / (self.rate * self.rate)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        return (
            noise.exponential(self._extended_shape(sample_shape), self.rate, generator) / self.rate
        )

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        return masked_log_density(x >= 0.0, x, 0.0, lambda x: self._log("rate") - self.rate * x)

    def cdf(self, value: Value) -> Tensor:
        return -dt.expm1(-self.rate * dt.maximum(self._as_value(value), 0.0))

    def icdf(self, value: Value) -> Tensor:
        return -dt.log1p(-self._as_probability(value)) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - dt.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -dt.log(-natural_params[0])


class Gamma(ExponentialFamily):
    """The gamma distribution, whose mean is concentration / rate.

    - `concentration`, `rate`: positive numbers.

    Both `rsample` and `cdf` have gradients by the concentration; that of `rsample` is implicit.
    See also: `Exponential`, `Chi2`, `InverseGamma`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Gamma(dt.asarray([1.0]), 2.0)
    >>> d.cdf(1.0).tolist()
    [0.8646647334098816]
    """

    arg_constraints = constraints_of(concentration=constraints.positive, rate=constraints.positive)
    support: Any = constraints.nonnegative
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def __init__(
        self, concentration: Value, rate: Value, validate_args: bool | None = None
    ) -> None:
        super().__init__(
            self._set_parameters(concentration=concentration, rate=rate), (), validate_args
        )

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return dt.clip((self.concentration - 1.0) / self.rate, 0.0, None)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate / self.rate

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = noise.gamma(self.concentration, shape, generator) / self.rate
        return dt.where(x > 0, x, float(dt.finfo(x.dtype).smallest_normal))

    def log_prob(self, value: Value) -> Tensor:
        x, a = self._as_value(value), self.concentration

        def logs(x: Tensor) -> Tensor:
            """Return the log density of x >= 0."""
            return a * dt.log(self.rate) + xlogy(a - 1.0, x) - self.rate * x - dt.lgamma(a)

        return masked_log_density(x >= 0.0, x, 1.0, logs)

    def cdf(self, value: Value) -> Tensor:
        return noise.lower_gamma(self.concentration, self.rate * self._as_value(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - dt.log(self.rate) + dt.lgamma(a) + (1.0 - a) * dt.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1.0, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return dt.lgamma(x + 1.0) - (x + 1.0) * dt.log(-y)


class Chi2(Gamma):
    """The chi-squared distribution: of the sum of `df` squared normal variables.

    - `df`: degrees of freedom, positive.

    >>> import dovetail as dt
    >>> dt.distributions.Chi2(dt.asarray([3.0])).variance.tolist()
    [6.0]
    """

    arg_constraints = constraints_of(df=constraints.positive)

    def __init__(self, df: Value, validate_args: bool | None = None) -> None:
        half = df * 0.5
        super().__init__(half, 0.5, validate_args)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2.0


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x of a gamma variable x.

    - `concentration`, `rate`: positive numbers.

    >>> import dovetail as dt
    >>> dt.distributions.InverseGamma(dt.asarray([3.0]), 1.0).mean.tolist()
    [0.5]
    """

    arg_constraints = constraints_of(concentration=constraints.positive, rate=constraints.positive)
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self, concentration: Value, rate: Value, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args=False)
        super().__init__(base, PowerTransform(-1.0), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The concentration of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = dt.where(self.concentration > 1.0, self.concentration, 2.0)
        return dt.where(self.concentration > 1.0, self.rate / (a - 1.0), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1.0)

    @property
    def variance(self) -> Tensor:
        a, b = dt.where(self.concentration > 2.0, self.concentration, 3.0), self.rate
        mean = b / (a - 1.0)
        variance = mean * (mean / (a - 2.0))
        return dt.where(self.concentration > 2.0, variance, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + dt.log(self.rate) + dt.lgamma(a) - (1.0 + a) * dt.digamma(a)


class FisherSnedecor(Distribution):
    """The F distribution: of the ratio of two chi-squared variables, each over its `df`.

    - `df1`, `df2`: degrees of freedom, positive.

    >>> import dovetail as dt
    >>> dt.distributions.FisherSnedecor(dt.asarray([1.0]), 4.0).mean.tolist()
    [2.0]
    """

    arg_constraints = constraints_of(df1=constraints.positive, df2=constraints.positive)
    support = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Value, df2: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameters(df1=df1, df2=df2), (), validate_args)

    @property
    def mean(self) -> Tensor:
        few = dt.where(self.df2 > 2.0, self.df2, 3.0)
        return dt.where(self.df2 > 2.0, few / (few - 2.0), math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2.0) / self.df1 * self.df2 / (self.df2 + 2.0)
        return dt.where(self.df1 > 2.0, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, dt.where(self.df2 > 4.0, self.df2, 5.0)
        less, more = b - 2.0, b - 4.0
        mean = b / less
        variance = mean * mean * 2.0 * (1.0 / more + less / more / a)
        return dt.where(self.df2 > 4.0, variance, math.nan)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = noise.gamma(self.df1 * 0.5, shape, generator) / self.df1
        y = noise.gamma(self.df2 * 0.5, shape, generator) / self.df2
        tiny = float(dt.finfo(x.dtype).smallest_normal)
        return dt.maximum(x / dt.maximum(y, tiny), tiny)

    def log_prob(self, value: Value) -> Tensor:
        x, a, b = self._as_value(value), self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        first = dt.lgamma(a + b) - dt.lgamma(a) - dt.lgamma(b)

        def logs(x: Tensor) -> Tensor:
            """Return the log density of x >= 0."""
            second = a * dt.log(ratio) + xlogy(a - 1.0, x)
            return first + second - (a + b) * dt.log1p(ratio * x)

        return masked_log_density(x >= 0.0, x, 1.0, logs)


class Weibull(TransformedDistribution):
    """The Weibull distribution.

    - `scale`: the factor of its values, positive.
    - `concentration`: its shape, positive.

    >>> import dovetail as dt
    >>> dt.distributions.Weibull(dt.asarray([2.0]), 1.0).mean.tolist()
    [2.0]
    """

    arg_constraints = constraints_of(scale=constraints.positive, concentration=constraints.positive)
    support = constraints.positive
    has_rsample = True
    scale: Tensor
    concentration: Tensor
    base_dist: Exponential

    def __init__(
        self, scale: Value, concentration: Value, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(scale=scale, concentration=concentration)
        base = Exponential(dt.ones_like(self.scale), validate_args=False)
        super().__init__(base, self._build_transforms(), validate_args=validate_args)

    def _build_transforms(self) -> list[Any]:
        """Return x ** (1 / concentration) and the scale as transforms."""
        power = PowerTransform(1.0 / self.concentration)
        return [power, AffineTransform(0.0, self.scale)]

    def expand(self, batch_shape: Sizes) -> Weibull:
        new = super().expand(batch_shape)
        new._update_derived()
        return new

    def _update_derived(self) -> None:
        self.transforms = self._build_transforms()

    def log_prob(self, value: Value) -> Tensor:
        x, k = self._as_value(value), self.concentration
        constant = dt.log(k) - dt.log(self.scale)

        def logs(x: Tensor) -> Tensor:
            """Return the log density of x > 0."""
            r = x / self.scale
            return constant + (k - 1.0) * dt.log(r) - dt.pow(r, k)

        at_zero = dt.where(k > 1.0, -math.inf, dt.where(k < 1.0, math.inf, constant))
        log_density = masked_log_density((x > 0.0) & (x < math.inf), x, 1.0, logs)
        return dt.where(x == 0.0, at_zero, log_density)

    @property
    def mean(self) -> Tensor:
        return self.scale * dt.exp(dt.lgamma(1.0 / self.concentration + 1.0))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        some = dt.where(k > 1.0, (k - 1.0) / k, 1.0)
        mode = self.scale * dt.pow(some, 1.0 / k)
        return dt.where(k > 1.0, mode, dt.zeros_like(mode))

    @property
    def variance(self) -> Tensor:
        return self.scale * self._unit_variance() * self.scale

    @property
    def stddev(self) -> Tensor:
        return self.scale * dt.sqrt(self._unit_variance())

    def _unit_variance(self) -> Tensor:
        """Return the variance at scale 1."""
        k = self.concentration
        square = dt.exp(dt.lgamma(2.0 / k + 1.0))
        return square - dt.exp(dt.lgamma(1.0 / k + 1.0) * 2.0)

    def entropy(self) -> Tensor:
        k = 1.0 / self.concentration
        return (1.0 - k) * EULER + dt.log(self.scale * k) + 1.0


class Pareto(TransformedDistribution):
    """The Pareto distribution, over x >= scale.

    - `scale`: the least value, positive.
    - `alpha`: the exponent of the tail, positive.

    >>> import dovetail as dt
    >>> dt.distributions.Pareto(dt.asarray([1.0]), 2.0).mean.tolist()
    [2.0]
    """

    arg_constraints = constraints_of(alpha=constraints.positive, scale=constraints.positive)
    has_rsample = True
    scale: Tensor
    alpha: Tensor
    base_dist: Exponential

    def __init__(self, scale: Value, alpha: Value, validate_args: bool | None = None) -> None:
        self._set_parameters(scale=scale, alpha=alpha)
        base = Exponential(self.alpha, validate_args=False)
        super().__init__(base, self._build_transforms(), validate_args=validate_args)

    def _build_transforms(self) -> list[Any]:
        """Return exp and the scale as transforms."""
        return [ExpTransform(), AffineTransform(0.0, self.scale)]

    def expand(self, batch_shape: Sizes) -> Pareto:
        new = super().expand(batch_shape)
        new._update_derived()
        return new

    def _update_derived(self) -> None:
        self.transforms = self._build_transforms()

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = dt.where(self.alpha > 1.0, self.alpha, 2.0)
        return dt.where(self.alpha > 1.0, a / (a - 1.0) * self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = dt.where(self.alpha > 2.0, self.alpha, 3.0)
        less = a - 1.0
        variance = self.scale / less * (self.scale / (a - 2.0)) * (a / less)
        return dt.where(self.alpha > 2.0, variance, math.inf)

    def entropy(self) -> Tensor:
        return dt.log(self.scale / self.alpha) + (1.0 + 1.0 / self.alpha)
