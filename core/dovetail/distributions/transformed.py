"""`TransformedDistribution`: the distribution of transformed values of another one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import dovetail as dt

from . import constraints
from .distribution import Distribution, Generator, Sizes, Tensor, constraints_of, sizes_of
from .independent import Independent
from .parameters import Value, sum_last
from .transform import ComposeTransform, Transform

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = f(x), for x from a base and f a composition of transforms.

    - `base_distribution`: that of x.
    - `transforms`: a Transform, or a list applied in order.

    Raises: ArgumentTypeError for others, ShapeError if the base has too few dimensions.
    See also: `Transform`, `ComposeTransform`, `LogNormal`.

    >>> import dovetail as dt
    >>> D = dt.distributions
    >>> base = D.Uniform(dt.zeros(2), 1.0)
    >>> logistic = D.TransformedDistribution(base, [D.SigmoidTransform().inv])
    >>> logistic.cdf(0.0).tolist()
    [0.5, 0.5]
    """

    arg_constraints = constraints_of()

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        name = type(self).__name__
        sequence = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(sequence, (list, tuple)) or not all(
            isinstance(t, Transform) for t in sequence
        ):
            raise dt.ArgumentTypeError(
                f"{name}: transforms must be a Transform or a list of them, got {transforms!r}"
            )
        self.transforms = list(sequence)
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        transform = ComposeTransform(self.transforms)
        inner, outer = transform.domain.event_dim, transform.codomain.event_dim
        if len(batch) + len(event) < inner:
            raise dt.ShapeError(
                f"{name}: the transforms need values with at least {inner} dimensions, got a base "
                f"of shape {(*batch, *event)}"
            )
        forward = transform.forward_shape((*batch, *event))
        expanded = transform.inverse_shape(forward)
        if expanded != (*batch, *event):
            base_distribution = base_distribution.expand(expanded[: len(expanded) - len(event)])
        if inner > len(event):
            base_distribution = Independent(base_distribution, inner - len(event))
        self.base_dist: Distribution = base_distribution
        self.has_rsample = base_distribution.has_rsample
        cut = len(forward) - max(outer, len(event) + outer - inner)
        super().__init__(forward[:cut], forward[cut:], validate_args)

    def expand(self, batch_shape: Sizes) -> Self:
        batch = sizes_of(f"{type(self).__name__}.expand", batch_shape)
        new = super().expand(batch)
        shape = (*batch, *self._event_shape)
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        more = len(self._event_shape) - codomain.event_dim
        return constraints.independent(codomain, more) if more > 0 else codomain

    def _forward(self, x: Tensor) -> Tensor:
        """Apply the transforms, in order."""
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        with dt.no_grad():
            return self._forward(self.base_dist.sample(sample_shape, generator=generator))

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape, generator=generator))

    def _split_support(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return masks of values below and above the support, and y with those moved inside."""
        support = self.support
        low, high = (getattr(support, n, None) for n in ("lower_bound", "upper_bound"))
        above = y == math.inf if high is None else y > high
        if low is None:
            below, safe = y == -math.inf, 0.0 if high is None else high - 1.0
        else:
            is_open = isinstance(support, constraints.greater_than)
            below = (y <= low) if is_open else (y < low)
            safe = low + 1.0 if high is None else (low + high) * 0.5
        return below, above, dt.where(below | above, safe, y)

    def log_prob(self, value: Value) -> Tensor:
        y = self._as_value(value)
        if self._event_shape or self.support.event_dim:
            return self._log_prob(y)
        if (
            self.transforms and self.transforms[-1]._cached[1] is y
        ):  # y is a sample whose x is cached
            return self._log_prob(y)
        below, above, inner = self._split_support(y)
        if getattr(self.support, "upper_bound", None) is not None:
            with dt.no_grad():
                is_limit = dt.isinf(self._base_value(inner))  # no finite x gives tanh(x) = 1
            below, above, inner = self._split_support(dt.where(is_limit, math.inf, y))
        return dt.where(below | above, -math.inf, self._log_prob(inner))

    def _base_value(self, y: Tensor) -> Tensor:
        """Apply the inverse transforms, from the last to the first."""
        for t in reversed(self.transforms):
            y = t.inv(y)
        return y

    def _log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at a value inside of the support."""
        dims = len(self._event_shape)
        stretched: Tensor | None = None
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            term = sum_last(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            stretched = term if stretched is None else stretched + term
            y = x
        log_density = sum_last(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))
        return log_density if stretched is None else log_density - stretched

    def _flip_if_decreasing(self, value: Tensor) -> Tensor:
        """Return a probability, or 1 - value if the transforms are decreasing."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        if isinstance(sign, int):
            return value if sign == 1 else 1.0 - value
        return dt.where(sign > 0, value, 1.0 - value)

    def cdf(self, value: Value) -> Tensor:
        below, above, y = self._split_support(self._as_value(value))
        probability = self._flip_if_decreasing(self.base_dist.cdf(self._base_value(y)))
        return dt.where(below, 0.0, dt.where(above, 1.0, probability))

    def icdf(self, value: Value) -> Tensor:
        return self._forward(
            self.base_dist.icdf(self._flip_if_decreasing(self._as_probability(value)))
        )

    def __repr__(self) -> str:
        if self.arg_constraints:
            texts = [f"{n}: {_format_parameter(getattr(self, n))}" for n in self.arg_constraints]
            return f"{type(self).__name__}({', '.join(texts)})"
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"


def _format_parameter(x: Any) -> object:
    """Return the shape of a tensor, and any other value unchanged."""
    return x.shape if isinstance(x, dt.Tensor) else x
