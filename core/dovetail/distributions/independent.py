"""`Independent`: a distribution with trailing batch dimensions as dimensions of an event."""

from __future__ import annotations

from typing import Self

import dovetail as dt

from . import constraints
from .distribution import Distribution, Generator, Sizes, Tensor, constraints_of, sizes_of
from .parameters import Value, sum_last

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution that takes the last dimensions of the batch as dimensions of an event.

    - `base_distribution`: the distribution.
    - `reinterpreted_batch_ndims`: the number of dimensions.

    Raises: ShapeError if its batch has fewer.
    See also: `MultivariateNormal`, `MixtureSameFamily`.

    >>> import dovetail as dt
    >>> D = dt.distributions
    >>> d = D.Independent(D.Normal(dt.zeros((2, 3)), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(dt.zeros(3)).shape
    ((2,), (3,), (2,))
    """

    arg_constraints = constraints_of()

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        n = reinterpreted_batch_ndims
        if not 0 <= n <= len(batch):
            raise dt.ShapeError(
                f"Independent: reinterpreted_batch_ndims must be between 0 and {len(batch)} for a "
                f"batch of shape {batch}, got {n}"
            )
        cut = len(batch) - n
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n
        self.has_rsample = base_distribution.has_rsample
        self.has_enumerate_support = base_distribution.has_enumerate_support and not n
        super().__init__(batch[:cut], (*batch[cut:], *event), validate_args)

    def expand(self, batch_shape: Sizes) -> Self:
        shape = sizes_of("Independent.expand", batch_shape)
        new = super().expand(shape)
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*shape, *inner))
        return new

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        base_support: constraints.Constraint = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(base_support, n) if n else base_support

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    @property
    def stddev(self) -> Tensor:
        return self.base_dist.stddev

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        return self.base_dist.sample(sample_shape, generator=generator)

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        return self.base_dist.rsample(sample_shape, generator=generator)

    def log_prob(self, value: Value) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise self._unsupported_error("enumerate_support over combinations of its elements")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
