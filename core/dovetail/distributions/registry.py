"""Registries of transforms from the real numbers to a constraint: `biject_to`, `transform_to`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import dovetail as dt

from ..nn.constructor_errors import Explained
from . import constraints, transforms
from .constraints import Constraint
from .transform import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory: TypeAlias = "Callable[[Any], Transform]"


class ConstraintRegistry(Explained):
    """A registry of transforms to constraints; call it with a constraint to get the transform.

    - `constraint`: the constraint of a call, an object of a registered class.

    >>> import dovetail as dt
    >>> t = dt.distributions.biject_to(dt.distributions.constraints.positive)
    >>> t(dt.asarray([0.0])).tolist()
    [1.0]
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(
        self, constraint: type[Constraint] | Constraint, factory: Factory | None = None
    ) -> Any:
        """Register a function of a constraint that returns its transform, or return a decorator.

        - `constraint`: a class of constraints, or one of its objects.
        - `factory`: a function from the constraint to a transform; None returns a decorator.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise dt.ArgumentTypeError(
                f"register: expected a constraint or a subclass of Constraint, got {kind!r}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise dt.UnsupportedError(
                f"no transform is registered for {constraint!r}; add one with register()"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register_both(*kinds: Any) -> Callable[[Factory], Factory]:
    """Return a decorator that registers a factory in both registries, for constraints."""

    def add(factory: Factory) -> Factory:
        """Register the factory for each constraint, and return it."""
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return add


@_register_both(constraints.real)
def _to_real(constraint: Any) -> Transform:
    """Return the identity."""
    return transforms.identity_transform


@_register_both(constraints.positive, constraints.nonnegative)
def _to_greater(constraint: Any) -> Transform:
    """Return exp, plus the bound unless that is the number 0."""
    bound = constraint.lower_bound
    if not isinstance(bound, dt.Tensor) and bound == 0:
        return transforms.ExpTransform()
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, 1)]
    )


@_register_both(constraints.less_than)
def _to_less(constraint: Any) -> Transform:
    """Return the bound minus exp."""
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_register_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Transform:
    """Return the sigmoid, scaled to the interval unless that is 0..1."""
    low, high = constraint.lower_bound, constraint.upper_bound
    if not isinstance(low, dt.Tensor) and not isinstance(high, dt.Tensor) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@_register_both(constraints.corr_cholesky)
def _to_correlation(constraint: Any) -> Transform:
    """Return the transform to Cholesky factors of correlation matrices."""
    return transforms.CorrCholeskyTransform()


def _register_composites(registry: ConstraintRegistry) -> None:
    """Register transforms of the constraints that are composed of others."""

    def independent(c: Any) -> Transform:
        """Return the base constraint's transform, with more event dimensions."""
        return transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        )

    def cat(c: Any) -> Transform:
        """Return the transforms of the pieces, joined."""
        return transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)

    def stack(c: Any) -> Transform:
        """Return the transforms of the slices, stacked."""
        return transforms.StackTransform([registry(part) for part in c.cseq], c.dim)

    registry.register(constraints.independent, independent)
    registry.register(constraints.cat, cat)
    registry.register(constraints.stack, stack)


_register_composites(biject_to)
_register_composites(transform_to)


def _to_simplex(constraint: Any) -> Transform:
    """Return softmax, which is not a bijection."""
    return transforms.SoftmaxTransform()


def _to_lower_cholesky(constraint: Any) -> Transform:
    """Return the transform to lower triangles with a positive diagonal."""
    return transforms.LowerCholeskyTransform()


def _to_positive_definite(constraint: Any) -> Transform:
    """Return the transform to positive definite matrices."""
    return transforms.PositiveDefiniteTransform()


biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, _to_simplex)
transform_to.register(constraints.lower_cholesky, _to_lower_cholesky)
transform_to.register(constraints.positive_definite, _to_positive_definite)
transform_to.register(constraints.positive_semidefinite, _to_positive_definite)
