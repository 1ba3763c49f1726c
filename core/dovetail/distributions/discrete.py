"""Distributions of integers: events, trials, successes."""

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
    all_valid,
    computed,
    constraints_of,
    masked_log_density,
)
from .parameters import (
    Value,
    logits_to_probs,
    only_argument,
    probs_to_logits,
    softplus,
    xlog1py,
    xlogy,
    xsoftplus,
)

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]

PROBABILITY_CONSTRAINTS = {"probs": constraints.unit_interval, "logits": constraints.real}


class _OfChance(Distribution):
    """A distribution with `probs` or `logits`; the other one is computed."""

    @computed
    def probs(self: Any) -> Tensor:
        """Return the probability of a success."""
        return logits_to_probs(self.logits, is_binary=True)

    @computed
    def logits(self: Any) -> Tensor:
        """Return log(probs / (1 - probs))."""
        return probs_to_logits(self.probs, is_binary=True)

    def _sequence_log_prob(self, successes: Value, failures: Value) -> Tensor:
        """Return the log probability of these numbers of successes and failures in one order."""
        if "probs" in self.__dict__:
            return xlogy(successes, self.probs) + xlog1py(failures, -self.probs)
        return -(xsoftplus(successes, -self.logits) + xsoftplus(failures, self.logits))

    def _possible_successes(self, trials: Value) -> Tensor:
        """Return a number of successes in `trials` with a probability above 0."""
        return dt.where(self.probs < 0.5, 0.0, trials)

    def _failure_probability(self) -> Tensor:
        """Return the probability of a failure."""
        return 1.0 - self.probs if "probs" in self.__dict__ else dt.sigmoid(-self.logits)

    def _given_parameter(self) -> Tensor:
        """Return the parameter that the user passed: `probs` or `logits`."""
        parameter: Tensor = self.__dict__["probs" if "probs" in self.__dict__ else "logits"]
        return parameter


class Bernoulli(_OfChance, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability `probs`, else 0.

    - `probs`: the probability of 1: a number or a tensor, between 0 and 1. Pass either `probs` or
      `logits`.
    - `logits`: log(probs / (1 - probs)).

    Raises: ArgumentError for both or neither, and for invalid values.
    See also: `Binomial`, `Categorical`, `Geometric`.

    >>> import dovetail as dt
    >>> d = dt.distributions.Bernoulli(dt.asarray([0.5]))
    >>> d.log_prob(1.0).exp().tolist()
    [0.5]
    """

    arg_constraints = PROBABILITY_CONSTRAINTS
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0.0

    def __init__(
        self,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, parameter = only_argument("Bernoulli", probs=probs, logits=logits)
        super().__init__(self._set_parameters(**{name: parameter}), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        p = self.probs
        most = (p >= 0.5).astype(p.dtype)
        return dt.where(p == 0.5, math.nan, most)

    @property
    def variance(self) -> Tensor:
        return self.probs * self._failure_probability()

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        with dt.no_grad():
            p = self.probs
            u = noise.uniform(self._extended_shape(sample_shape), p, generator)
            return (u < p).astype(p.dtype)

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        valid = (x >= 0.0) & (x <= 1.0)
        return masked_log_density(
            valid, x, self._possible_successes(1.0), lambda x: self._sequence_log_prob(x, 1.0 - x)
        )

    def entropy(self) -> Tensor:
        return 0.0 - self._sequence_log_prob(
            self.probs, self._failure_probability()
        )  # 0.0 - x gives no -0.0 for a certain value

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return enumerate_counts(self._given_parameter(), 2, self._batch_shape, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return softplus(natural_params[0])


def enumerate_counts(like: Tensor, n: int, batch: tuple[int, ...], expand: bool) -> Tensor:
    """Return 0, 1, ... n - 1 along a first dimension, before those of the batch."""
    values = dt.arange(n, dtype=like.dtype, device=like.device)
    values = values.reshape((n, *[1] * len(batch)))
    return dt.broadcast_to(values, (n, *batch)) if expand else values


class Geometric(_OfChance):
    """The distribution of the number of failures before the first success.

    - `probs`: the probability of a success: a number or a tensor, above 0 and at most 1. Pass
      either `probs` or `logits`.
    - `logits`: log(probs / (1 - probs)).

    >>> import dovetail as dt
    >>> dt.distributions.Geometric(dt.asarray([0.25])).mean.tolist()
    [3.0]
    """

    arg_constraints = PROBABILITY_CONSTRAINTS
    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, parameter = only_argument("Geometric", probs=probs, logits=logits)
        super().__init__(self._set_parameters(**{name: parameter}), (), validate_args)
        if self._validate_args and probs is not None:
            with dt.no_grad():
                if not all_valid([self.probs > 0]):
                    raise dt.ArgumentError("Geometric: probs must be greater than 0, got 0")

    @property
    def mean(self) -> Tensor:
        return self._odds_against()

    @property
    def mode(self) -> Tensor:
        return dt.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return self._odds_against() / self.probs

    def _odds_against(self) -> Tensor:
        """Return (1 - probs) / probs."""
        has_probs = "probs" in self.__dict__
        return (1.0 - self.probs) / self.probs if has_probs else dt.exp(-self.logits)

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        with dt.no_grad():
            p = self.probs
            wait = noise.exponential(self._extended_shape(sample_shape), p, generator)
            return dt.floor(wait / -dt.log1p(-p))

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        return masked_log_density(x >= 0.0, x, 0.0, lambda x: self._sequence_log_prob(1.0, x))

    def entropy(self) -> Tensor:
        never = self.probs == 0.0
        return dt.where(
            never, math.inf, -self._sequence_log_prob(1.0, dt.where(never, 0.0, self.mean))
        )


class Poisson(ExponentialFamily):
    """The Poisson distribution: the number of events if `rate` events are expected.

    - `rate`: numbers >= 0.

    >>> import dovetail as dt
    >>> dt.distributions.Poisson(dt.asarray([0.0])).sample((2,)).tolist()
    [[0.0], [0.0]]
    """

    arg_constraints = constraints_of(rate=constraints.nonnegative)
    support = constraints.nonnegative_integer
    rate: Tensor

    def __init__(self, rate: Value, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameters(rate=rate), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return dt.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with dt.no_grad():
            # for a rate that is a number, only one of two algorithms runs
            return dt.random.poisson(
                self._number_or_tensor("rate"),
                shape,
                dtype=self.rate.dtype,
                device=self.rate.device,
                generator=generator,
            )

    def log_prob(self, value: Value) -> Tensor:
        x = self._as_value(value)
        return masked_log_density(
            x >= 0.0, x, 0.0, lambda x: xlogy(x, self.rate) - self.rate - dt.lgamma(x + 1.0)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (dt.log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return dt.exp(natural_params[0])


class Binomial(_OfChance):
    """The distribution of the number of successes in `total_count` trials.

    - `total_count`: integers >= 0, a number or a tensor.
    - `probs`: the probability of a success: a number or a tensor, between 0 and 1. Pass either
      `probs` or `logits`.
    - `logits`: log(probs / (1 - probs)).

    The entropy and `enumerate_support` need one total_count for the whole batch; if it is a tensor,
    the host reads it.

    >>> import dovetail as dt
    >>> d = dt.distributions.Binomial(4, dt.asarray([0.25]))
    >>> d.mean.tolist()
    [1.0]
    """

    arg_constraints = constraints_of(
        total_count=constraints.nonnegative_integer, **PROBABILITY_CONSTRAINTS
    )
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self,
        total_count: Value = 1,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, parameter = only_argument("Binomial", probs=probs, logits=logits)
        shape = self._set_parameters(total_count=total_count, **{name: parameter})
        super().__init__(shape, (), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        n = self.total_count
        return dt.minimum(dt.floor((n + 1.0) * self.probs), n)

    @property
    def variance(self) -> Tensor:
        p = self.probs
        return self.total_count * p * self._failure_probability()

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with dt.no_grad():
            p = self.probs
            n = self.total_count.astype(dt.int64)
            return dt.random.binomial(n, p, shape, dtype=p.dtype, generator=generator)

    def log_prob(self, value: Value) -> Tensor:
        x, n = self._as_value(value), self.total_count
        log_total = dt.lgamma(n + 1.0)

        def logs(x: Tensor) -> Tensor:
            """Return the log probability of x successes, without a check of the range."""
            ways = log_total - dt.lgamma(x + 1.0) - dt.lgamma(n - x + 1.0)
            return ways + self._sequence_log_prob(x, n - x)

        return masked_log_density((x >= 0.0) & (x <= n), x, self._possible_successes(n), logs)

    def _common_total_count(self, what: str) -> int:
        """Read the one total count of the batch. Raises: UnsupportedError if counts differ."""
        number = self._scalar_parameters.get("total_count")
        if number is not None:
            return int(number)
        least, most = int(dt.min(self.total_count)), int(dt.max(self.total_count))
        if least != most:
            raise dt.UnsupportedError(
                f"Binomial: {what} needs the same total_count everywhere, got {least} to {most}"
            )
        return most

    def entropy(self) -> Tensor:
        self._common_total_count("the entropy")
        sure = (self.probs == 0.0) | (self._failure_probability() == 0.0)
        unsure = self._without_validation()
        name = "probs" if "probs" in self.__dict__ else "logits"
        unsure.__dict__[name] = dt.where(sure, 0.5, self.__dict__[name])
        logs = Binomial.log_prob(unsure, self.enumerate_support(False))
        return dt.where(sure, 0.0, -dt.sum(dt.exp(logs) * logs, axis=0))

    def _without_validation(self) -> Binomial:
        """Return a copy that does not validate values."""
        copy = self.expand(self._batch_shape)
        copy._validate_args = False
        return copy

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._common_total_count("enumerate_support")
        return enumerate_counts(self._given_parameter(), n + 1, self._batch_shape, expand)


class NegativeBinomial(_OfChance):
    """The distribution of the number of successes before `total_count` failures.

    - `total_count`: numbers >= 0, also fractions.
    - `probs`: the probability of a success: a number or a tensor, at least 0 and below 1. Pass
      either `probs` or `logits`.
    - `logits`: log(probs / (1 - probs)).

    >>> import dovetail as dt
    >>> d = dt.distributions.NegativeBinomial(2.0, dt.asarray([0.5]))
    >>> d.mean.tolist()
    [2.0]
    """

    arg_constraints = constraints_of(
        total_count=constraints.greater_than_eq(0),
        probs=constraints.half_open_interval(0.0, 1.0),
        logits=constraints.real,
    )
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self,
        total_count: Value,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, parameter = only_argument("NegativeBinomial", probs=probs, logits=logits)
        shape = self._set_parameters(total_count=total_count, **{name: parameter})
        super().__init__(shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * dt.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return dt.maximum(dt.floor((self.total_count - 1.0) * dt.exp(self.logits)), 0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean * (dt.exp(self.logits) + 1.0)

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with dt.no_grad():
            rate = noise.gamma(self.total_count, shape, generator) * dt.exp(self.logits)
            return dt.random.poisson(rate, dtype=rate.dtype, generator=generator)

    def log_prob(self, value: Value) -> Tensor:
        x, n = self._as_value(value), self.total_count

        def logs(x: Tensor) -> Tensor:
            """Return the log probability of x successes; for no failures, 0 at x = 0."""
            none = (n == 0.0) & (x == 0.0)
            some = dt.where(none, 1.0, n)
            ways = dt.lgamma(some + x) - dt.lgamma(x + 1.0) - dt.lgamma(some)
            return self._sequence_log_prob(x, n) + dt.where(none, 0.0, ways)

        return masked_log_density(x >= 0.0, x, 0.0, logs)
