"""Distributions over categories: one of several, as an index or a vector, and counts of each."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
from dovetail.extend import arguments, widen_halves

from ..nn.functional.precision import is_half
from . import constraints, noise
from .distribution import (
    Distribution,
    Generator,
    Sizes,
    Tensor,
    computed,
    masked_log_density,
    sizes_of,
)
from .parameters import Value, as_float_tensors, only_argument, probs_to_logits

__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]

CATEGORY_CONSTRAINTS = {"probs": constraints.simplex, "logits": constraints.real_vector}


class _OfKinds(Distribution):
    """A distribution with `probs` or `logits` of categories along the last dimension."""

    _unnormalized: Tensor  # the parameter before normalization; set for halves only

    def _set_category_parameters(self, probs: object, logits: object) -> tuple[int, ...]:
        """Store `probs` or `logits`, normalised, and return the shape.

        Raises: ArgumentError unless one of them is passed, ShapeError.
        """
        name = type(self).__name__
        which, value = only_argument(name, probs=probs, logits=logits)
        (x,) = as_float_tensors(name, {which: value})
        if not x.ndim or not x.shape[-1]:
            raise dt.ShapeError(
                f"{name}: {which} must be a non-empty vector or a batch of vectors, got shape "
                f"{x.shape}"
            )
        self.__dict__[which] = _normalize(which, x)
        if is_half(x):
            self._unnormalized = x
        return x.shape

    def _update_derived(self) -> None:
        """Normalise `probs` or `logits` again, from the halves that the user passed."""
        if "_unnormalized" in self.__dict__:
            which = "probs" if "probs" in self.__dict__ else "logits"
            self.__dict__[which] = _normalize(which, self._unnormalized)

    def _event_dims(self, name: str) -> int:
        """Return 1 for `_unnormalized`, else the dimensions of one value by the constraint."""
        return 1 if name == "_unnormalized" else super()._event_dims(name)

    @computed
    def probs(self: Any) -> Tensor:
        """Return the probability of each category."""
        return dt.exp(self.logits)  # normalized: the probabilities sum to 1

    @computed
    def logits(self: Any) -> Tensor:
        """Return the logarithm of the probability of each category."""
        return probs_to_logits(self.probs)

    def _weighted_logs(self, weights: Tensor) -> Tensor:
        """Return weights times the logarithms of the probabilities, and 0 for a weight of 0.

        An infinite result has no gradient.
        """
        if "probs" in self.__dict__:
            never = self.probs == 0.0
            logs = dt.log(dt.where(never, 1.0, self.probs))
        else:
            never = self.logits == -math.inf
            logs = dt.where(never, 0.0, self.logits)
        return dt.where(never & (weights != 0.0), -math.inf, weights * logs)

    def _draw_categories(self, sample_shape: Sizes, generator: Generator | None) -> Tensor:
        """Draw indices of categories by inverting the cumulative sums of the probabilities."""
        shape = (*sizes_of(f"{type(self).__name__}.sample", sample_shape), *self._batch_shape)
        with dt.no_grad():
            p = self.probs
            p = p.astype(dt.float64 if p.dtype is dt.float64 else dt.float32)
            sums = dt.cumulative_sum(p, axis=-1)
            u = noise.uniform(shape, p, generator)
            last = dt.sum(dt.cumulative_sum(p, axis=-1) < sums[..., -1:], axis=-1)
            if p.ndim == 1:
                index = dt.searchsorted(sums, u * sums[-1], side="right")
            else:
                index = dt.sum((u * sums[..., -1])[..., None] >= sums, axis=-1)
            return dt.minimum(index, last)  # rounding may give an index beyond the last category


@widen_halves
def _normalize(which: str, x: Tensor) -> Tensor:
    """Return probabilities, or logarithms of them, normalized to a sum of 1."""
    if which == "logits":
        return dt.log_softmax(x, axis=-1)
    return x / dt.sum(x, axis=-1, keepdims=True)


class Categorical(_OfKinds):
    """The distribution of the index, from 0, of one of several categories.

    - `probs`: weights of the categories along the last dimension, >= 0, which are divided by their
      sum. Pass either `probs` or `logits`.
    - `logits`: logarithms of such weights, any numbers.

    Raises: ArgumentError for both or neither, and for invalid values; ShapeError.
    See also: `OneHotCategorical`, `Multinomial`, `Bernoulli`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Categorical(dt.asarray([1.0, 3.0]))
    >>> d.probs.tolist(), d.log_prob(1).exp().item()
    ([0.25, 0.75], 0.75)
    """

    arg_constraints = CATEGORY_CONSTRAINTS
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._set_category_parameters(probs, logits)
        self._num_events = shape[-1]
        super().__init__(shape[:-1], (), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of `probs`."""
        return (*self._batch_shape, self._num_events)

    @property
    def mean(self) -> Tensor:
        return dt.full(
            self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mode(self) -> Tensor:
        return dt.argmax(self.probs, axis=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        return self._draw_categories(sample_shape, generator)

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value, allow_integers=True).astype(dt.int64)
        name = "probs" if "probs" in self.__dict__ else "logits"
        shape = dt.broadcast_shapes(x.shape, self._batch_shape)
        x = dt.broadcast_to(x, shape)
        valid = (x >= 0) & (x < self._num_events)
        at = dt.where(valid, x, 0)[..., None]
        kinds = dt.broadcast_to(self.__dict__[name], (*shape, self._num_events))
        at_value = dt.take_along_axis(kinds, at, axis=-1)[..., 0]
        if name == "probs":
            return masked_log_density(valid & (at_value != 0.0), at_value, 1.0, dt.log)
        return dt.where(valid, at_value, -math.inf)

    def entropy(self) -> Tensor:
        return 0.0 - dt.sum(
            self._weighted_logs(self.probs), axis=-1
        )  # 0.0 - x gives no -0.0 for a certain category

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        indices = dt.arange(n, dtype=dt.int64, device=self._any_parameter().device)
        indices = indices.reshape((n, *[1] * len(self._batch_shape)))
        return dt.broadcast_to(indices, (n, *self._batch_shape)) if expand else indices


class OneHotCategorical(_OfKinds):
    """The distribution of one of several categories, as a vector of zeros with a 1.

    - `probs`: weights of the categories along the last dimension, >= 0, which are divided by their
      sum. Pass either `probs` or `logits`.
    - `logits`: logarithms of such weights, any numbers.

    >>> import dovetail as dt
    >>> d = dt.distributions.OneHotCategorical(dt.asarray([0.0, 3.0]))
    >>> d.sample().tolist()
    [0.0, 1.0]
    """

    arg_constraints = CATEGORY_CONSTRAINTS
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._set_category_parameters(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def _categorical(self) -> Categorical:
        """The distribution of the index of the category."""
        parameters = {
            name: self.__dict__[name] for name in CATEGORY_CONSTRAINTS if name in self.__dict__
        }
        categorical = Categorical.__new__(Categorical)
        categorical.__dict__.update(parameters)
        categorical._num_events = self._event_shape[0]
        Distribution.__init__(categorical, self._batch_shape, (), False)
        return categorical

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of `probs`."""
        return (*self._batch_shape, *self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._to_one_hot(dt.argmax(self.probs, axis=-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _to_one_hot(self, kind: Tensor) -> Tensor:
        """Return vectors with a 1 at the index of the category, in the parameters' dtype."""
        like = self._any_parameter()
        kinds = dt.arange(self._event_shape[0], dtype=kind.dtype, device=like.device)
        return (kind[..., None] == kinds).astype(like.dtype)

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        return self._to_one_hot(self._draw_categories(sample_shape, generator))

    def log_prob(self, value: Value) -> Tensor:
        kind = dt.argmax(self._as_value(value), axis=-1)
        return self._categorical.log_prob(kind)

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n, like = self._event_shape[0], self._any_parameter()
        vectors = dt.eye(n, dtype=like.dtype, device=like.device)
        vectors = vectors.reshape((n, *[1] * len(self._batch_shape), n))
        return dt.broadcast_to(vectors, (n, *self._batch_shape, n)) if expand else vectors


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical with an `rsample` that has the gradient of the probabilities.

    - `probs`: weights of the categories along the last dimension, >= 0, which are divided by their
      sum. Pass either `probs` or `logits`.
    - `logits`: logarithms of such weights, any numbers.

    Source: Bengio, Leonard, Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation", 2013.

    >>> import dovetail as dt
    >>> p = dt.asarray([1.0, 0.0])
    >>> dt.distributions.OneHotCategoricalStraightThrough(p).rsample().tolist()
    [1.0, 0.0]
    """

    has_rsample = True

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        x = self.sample(sample_shape, generator=generator)
        p = self.probs
        return x + (p - p.detach())


class Multinomial(_OfKinds):
    """The distribution of the number of elements of each category, of `total_count` elements.

    - `total_count`: the number of elements, an int.
    - `probs`: weights of the categories along the last dimension, >= 0, which are divided by their
      sum. Pass either `probs` or `logits`.
    - `logits`: logarithms of such weights, any numbers.

    >>> import dovetail as dt
    >>> d = dt.distributions.Multinomial(6, dt.asarray([0.0, 1.0]))
    >>> d.sample((2,)).tolist()
    [[0.0, 6.0], [0.0, 6.0]]
    """

    arg_constraints = CATEGORY_CONSTRAINTS

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count = arguments.integer(
            "Multinomial", total_count, "total_count", 0, arguments.LARGEST
        )
        shape = self._set_category_parameters(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of `probs`."""
        return (*self._batch_shape, *self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs) * self.total_count

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = sizes_of("Multinomial.sample", sample_shape)
        with dt.no_grad():
            p = self.probs
            return dt.random.multinomial(
                self.total_count, p, shape, dtype=p.dtype, generator=generator
            )

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        each = masked_log_density(
            x >= 0.0, x, 0.0, lambda x: self._weighted_logs(x) - dt.lgamma(x + 1.0)
        )
        return dt.sum(each, axis=-1) + dt.lgamma(dt.sum(dt.maximum(x, 0.0), axis=-1) + 1.0)

    def entropy(self) -> Tensor:
        """Return the entropy: that of n draws in order, less the mean information of the order.

        The latter is a sum over the counts 0..n of each category.
        """
        n, probs = self.total_count, self.probs
        never, always = probs == 0.0, probs == 1.0
        p = dt.where(never | always, 0.5, probs)
        k = dt.arange(1, n + 1, dtype=p.dtype, device=p.device).reshape((n, *[1] * p.ndim))
        logs = (
            math.lgamma(n + 1)
            - dt.lgamma(k + 1.0)
            - dt.lgamma(n - k + 1.0)
            + k * dt.log(p)
            + (n - k) * dt.log1p(-p)
        )
        each = dt.sum(dt.exp(logs) * dt.lgamma(k + 1.0), axis=0)
        each = dt.where(never, 0.0, dt.where(always, math.lgamma(n + 1), each))
        order = dt.sum(each, axis=-1)
        one = -dt.sum(self._weighted_logs(probs), axis=-1)
        return one * n - math.lgamma(n + 1) + order
