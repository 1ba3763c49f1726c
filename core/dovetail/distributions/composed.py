"""Distributions composed of others: mixtures, and `Independent`."""

from __future__ import annotations

from typing import Self

import dovetail as dt

from . import constraints
from .categories import Categorical
from .distribution import Distribution, Generator, Shape, Sizes, Tensor, constraints_of, sizes_of
from .independent import Independent
from .parameters import Value, weighted_logsumexp

__all__ = ["Independent", "MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: a random component, then a random value of it.

    - `mixture_distribution`: a Categorical.
    - `component_distribution`: the last dimension of its batch holds the components, as many as
      there are categories.

    Raises: ArgumentTypeError, ShapeError if they do not fit.

    >>> import dovetail as dt
    >>> D = dt.distributions
    >>> m = D.MixtureSameFamily(
    ...     D.Categorical(dt.asarray([0.25, 0.75])),
    ...     D.Normal(dt.asarray([0.0, 4.0]), 1.0))
    >>> m.mean.item()
    3.0
    """

    arg_constraints = constraints_of()

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise dt.ArgumentTypeError(
                "MixtureSameFamily: mixture_distribution must be a Categorical, got "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise dt.ArgumentTypeError(
                "MixtureSameFamily: component_distribution must be a Distribution, got "
                f"{type(component_distribution).__name__}"
            )
        chosen, batch = mixture_distribution.batch_shape, component_distribution.batch_shape
        kinds = mixture_distribution.probs.shape[-1]
        if not batch or batch[-1] != kinds:
            raise dt.ShapeError(
                "MixtureSameFamily: the last dimension of component_distribution's batch must "
                f"have {kinds} elements, one for each category, got batch shape {batch}"
            )
        try:
            fits = dt.broadcast_shapes(chosen, batch[:-1]) == batch[:-1]
        except dt.ShapeError:
            fits = False
        if not fits:
            raise dt.ShapeError(
                "MixtureSameFamily: the batch of mixture_distribution must broadcast with "
                f"component_distribution's batch without its last dimension, got {chosen} and "
                f"{batch}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_components = kinds
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch[:-1], event, validate_args)

    def expand(self, batch_shape: Sizes) -> Self:
        shape = sizes_of("MixtureSameFamily.expand", batch_shape)
        new = super().expand(shape)
        components = self._component_distribution.expand((*shape, self._num_components))
        new._component_distribution = components
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        return new

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the component's index."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last dimension of the batch."""
        return self._component_distribution

    def _add_component_axis(self, x: Tensor) -> Tensor:
        """Insert an axis of length 1 in front of the event's, for the components."""
        return dt.expand_dims(x, -1 - self._event_ndims)

    def _component_weights(self) -> Tensor:
        """Return the probabilities of the components, with dimensions for an event."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * self._event_ndims))

    def _average_components(self, x: Tensor) -> Tensor:
        """Return the mean over the components' axis, by their probabilities."""
        return dt.sum(self._component_weights() * x, axis=-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._average_components(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        of = self._component_distribution
        off = of.mean - self._add_component_axis(self.mean)
        return self._average_components(of.variance) + self._average_components(off * off)

    def cdf(self, value: Value) -> Tensor:
        x = dt.expand_dims(self._as_value(value), -1 - self._event_ndims)
        each = self._component_distribution.cdf(x)
        return dt.sum(each * self._mixture_distribution.probs, axis=-1)

    def log_prob(self, value: Value) -> Tensor:
        x = self._add_component_axis(self._as_value(value))
        each = self._component_distribution.log_prob(x)
        chosen = self._mixture_distribution
        if "probs" in chosen.__dict__:
            return weighted_logsumexp(each, chosen.probs)
        logs = each + chosen.logits
        return weighted_logsumexp(logs, dt.ones_like(logs))

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        with dt.no_grad():
            kind = self._mixture_distribution.expand(self._batch_shape).sample(
                sample_shape, generator=generator
            )
            each = self._component_distribution.sample(sample_shape, generator=generator)
            at: Shape = (*kind.shape, *[1] * (self._event_ndims + 1))
            index = dt.broadcast_to(kind.reshape(at), (*kind.shape, 1, *self._event_shape))
            axis = -1 - self._event_ndims
            return dt.squeeze(dt.take_along_axis(each, index, axis=axis), axis=axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
