"""Distributions of shares: numbers in 0..1, and vectors that sum to 1."""

from __future__ import annotations

import dovetail as dt

from . import constraints, noise
from .distribution import (
    ExponentialFamily,
    Generator,
    Sizes,
    Tensor,
    constraints_of,
    masked_log_density,
)
from .parameters import Value, as_float_tensors, xlog1py, xlogy

__all__ = ["Beta", "Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, of vectors of shares.

    - `concentration`: a vector of positive numbers, or a batch of them.

    `rsample` has the implicit gradient.
    Raises: ShapeError unless it is a vector or a batch, ArgumentError, DTypeError.
    See also: `Beta`, `Categorical`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Dirichlet(dt.asarray([1.0, 3.0]))
    >>> d.mean.tolist(), d.event_shape
    ([0.25, 0.75], (2,))
    """

    arg_constraints = constraints_of(concentration=constraints.independent(constraints.positive, 1))
    support = constraints.simplex
    has_rsample = True
    concentration: Tensor

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        (self.concentration,) = as_float_tensors("Dirichlet", {"concentration": concentration})
        shape = self.concentration.shape
        if not shape or not shape[-1]:
            raise dt.ShapeError(
                "Dirichlet: concentration must be a non-empty vector or a batch of vectors, got "
                f"shape {shape}"
            )
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        return noise.dirichlet(self.concentration, self._extended_shape(sample_shape), generator)

    def _sum_concentrations(self) -> Tensor:
        """Return the sum of the concentrations; the last dimension stays, with length 1."""
        return dt.sum(self.concentration, axis=-1, keepdims=True)

    def log_prob(self, value: Value) -> Tensor:
        a = self.concentration
        x = self._as_value(value)
        each = masked_log_density(x >= 0.0, x, 1.0, lambda x: xlogy(a - 1.0, x) - dt.lgamma(a))
        return dt.sum(each, axis=-1) + dt.lgamma(dt.sum(a, axis=-1))

    @property
    def mean(self) -> Tensor:
        return self.concentration / self._sum_concentrations()

    @property
    def mode(self) -> Tensor:
        less = dt.clip(self.concentration - 1.0, 0.0, None)
        mode = less / dt.sum(less, axis=-1, keepdims=True)
        corner = dt.all(self.concentration <= 1.0, axis=-1, keepdims=True)
        corner = corner & dt.any(self.concentration < 1.0, axis=-1, keepdims=True)
        kinds = dt.arange(mode.shape[-1], device=mode.device)
        largest = dt.argmax(self.concentration, axis=-1, keepdims=True)
        return dt.where(corner, (kinds == largest).astype(mode.dtype), mode)

    @property
    def variance(self) -> Tensor:
        total, mean = self._sum_concentrations(), self.mean
        return mean * ((total - self.concentration) / total) / (total + 1.0)

    def entropy(self) -> Tensor:
        a = self.concentration
        k, total = a.shape[-1], dt.sum(a, axis=-1)
        each = dt.sum(dt.lgamma(a) - (a - 1.0) * dt.digamma(a), axis=-1)
        return each - dt.lgamma(total) - (k - total) * dt.digamma(total)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return dt.sum(dt.lgamma(x), axis=-1) - dt.lgamma(dt.sum(x, axis=-1))


class Beta(ExponentialFamily):
    """The beta distribution, of a share in 0..1.

    - `concentration1`, `concentration0`: positive numbers, alpha and beta.

    `rsample` has the implicit gradient.
    See also: `Dirichlet`, `Uniform`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Beta(dt.asarray([1.0]), 3.0)
    >>> d.mean.tolist()
    [0.25]
    """

    arg_constraints = constraints_of(
        concentration1=constraints.positive,
        concentration0=constraints.positive,
    )
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self, concentration1: Value, concentration0: Value, validate_args: bool | None = None
    ) -> None:
        shape = self._set_parameters(concentration1=concentration1, concentration0=concentration0)
        super().__init__(shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        less_a, less_b = dt.clip(a - 1.0, 0.0, None), dt.clip(b - 1.0, 0.0, None)
        corner = (a <= 1.0) & (b <= 1.0) & (a + b < 2.0)
        end = dt.where(a >= b, 1.0, 0.0)
        return dt.where(corner, end, less_a / (less_a + less_b))

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return (a / total) * (b / total) / (total + 1.0)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return noise.beta(self.concentration1, self.concentration0, shape, generator)

    def _log_beta(self) -> Tensor:
        """Return the logarithm of the beta function of the concentrations."""
        a, b = self.concentration1, self.concentration0
        return dt.lgamma(a) + dt.lgamma(b) - dt.lgamma(a + b)

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        a, b = self.concentration1 - 1.0, self.concentration0 - 1.0
        log_beta = self._log_beta()
        return masked_log_density(
            (x >= 0.0) & (x <= 1.0), x, 0.5, lambda x: xlogy(a, x) + xlog1py(b, -x) - log_beta
        )

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        each = (a - 1.0) * dt.digamma(a) + (b - 1.0) * dt.digamma(b)
        return self._log_beta() - each + (a + b - 2.0) * dt.digamma(a + b)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return dt.lgamma(x) + dt.lgamma(y) - dt.lgamma(x + y)
