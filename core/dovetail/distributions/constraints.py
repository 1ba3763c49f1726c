"""Constraints: the valid values of a parameter, and the support of a distribution.

`check(value)` is true for each valid element, or for each valid vector or matrix of a batch. Names
are PyTorch's: `positive`, `simplex`, `interval(a, b)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import publish_all

from ..nn.constructor_errors import Explained
from ..nn.functional.precision import widen_half

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]

Tensor: TypeAlias = dt.Tensor
Bound: TypeAlias = "dt.Tensor | float"


class Constraint(Explained):
    """The base class of constraints; a subclass implements `check`.

    - `event_dim`: the number of trailing dimensions of one value.
    - `is_discrete`: True if values are integers.
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Any) -> Any:
        """Return True for each valid value, in the shape of `value` without `event_dim` dims."""
        raise NotImplementedError(f"{type(self).__name__} has no check(self, value)")

    def __repr__(self) -> str:
        bounds = ", ".join(
            f"{k}={_format_bound(v)}" for k, v in self.__dict__.items() if k[0] != "_"
        )
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


def _format_bound(bound: object) -> str:
    """Return the shape of a tensor with dimensions, or the repr of another bound."""
    return f"shape {bound.shape}" if isinstance(bound, dt.Tensor) and bound.ndim else repr(bound)


def _all_last(valid: Tensor, dims: int) -> Tensor:
    """Return True where all elements along the last `dims` dimensions are true."""
    return dt.all(valid, axis=tuple(range(-dims, 0))) if dims else valid


class _Dependent(Constraint):
    """A constraint that depends on other values, and cannot be checked by itself.

    - `is_discrete`, `event_dim`: those of the constraint, if they are known.
    """

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Any) -> Any:
        raise ValueError(
            "a dependent constraint cannot be checked without the object that it depends on"
        )

    def __repr__(self) -> str:
        return "Dependent()"


class dependent_property(property):  # PyTorch's name
    """A property that builds a constraint from the object's parameters.

    - `fn`: the function of the object that returns the constraint.
    - `is_discrete`, `event_dim`: those of the constraint, if they are equal for all objects.
    """

    is_discrete: bool
    event_dim: int

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: object) -> bool:
    """Return True if a constraint cannot be checked by itself.

    - `constraint`: a constraint, or a `dependent_property`.
    """
    return isinstance(constraint, (_Dependent, dependent_property))


class _Independent(Constraint):
    """A constraint of vectors or matrices: each element must satisfy `base_constraint`.

    - `base_constraint`: the constraint of each element.
    - `reinterpreted_batch_ndims`: the number of trailing dimensions that become dimensions of one
      value.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]  # that of the base
        """True if the base constraint is discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # computed from its parts
        """The dimensions of one value: those of the base constraint, and the reinterpreted ones."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise dt.ShapeError(
                f"{self!r}: expected at least {self.event_dim} dimensions, got shape {value.shape}"
            )
        return _all_last(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Bound) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        one = dt.sum(value, axis=-1) == 1
        return _all_last((value == 0) | (value == 1), 1) & one


class _IntegerInterval(Constraint):
    """Integers between two bounds, both included.

    - `lower_bound`, `upper_bound`: numbers, or tensors of one for each value.
    """

    is_discrete = True

    def __init__(self, lower_bound: Bound, upper_bound: Bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Bound) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(Constraint):
    """Integers from a bound on.

    - `lower_bound`: a number, or a tensor of one for each value.
    """

    is_discrete = True

    def __init__(self, lower_bound: Bound) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Bound) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Bound) -> Any:
        return value == value  # False for NaN


class _GreaterThan(Constraint):
    """Numbers greater than a bound.

    - `lower_bound`: a number, or a tensor of one for each value.
    """

    def __init__(self, lower_bound: Bound) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Bound) -> Any:
        return value > self.lower_bound


class _GreaterThanEq(Constraint):
    """Numbers greater than or equal to a bound.

    - `lower_bound`: a number, or a tensor of one for each value.
    """

    def __init__(self, lower_bound: Bound) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Bound) -> Any:
        return value >= self.lower_bound


class _LessThan(Constraint):
    """Numbers less than a bound.

    - `upper_bound`: a number, or a tensor of one for each value.
    """

    def __init__(self, upper_bound: Bound) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Bound) -> Any:
        return value < self.upper_bound


class _Interval(Constraint):
    """Numbers between two bounds, both included.

    - `lower_bound`, `upper_bound`: numbers, or tensors of one for each value.
    """

    def __init__(self, lower_bound: Bound, upper_bound: Bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Bound) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(Constraint):
    """Numbers from a lower bound up to an upper bound, which is excluded.

    - `lower_bound`, `upper_bound`: numbers, or tensors of one for each value.
    """

    def __init__(self, lower_bound: Bound, upper_bound: Bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Bound) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Return True for vectors of numbers >= 0 whose sum is 1, within 1e-6 or 4 eps."""
        near = max(1e-6, 4.0 * float(dt.finfo(value.dtype).eps))
        return _all_last(value >= 0, 1) & (dt.abs(dt.sum(value, axis=-1) - 1.0) < near)


class _Multinomial(Constraint):
    """Vectors of counts whose sum is at most a bound.

    - `upper_bound`: a number, or a tensor of one for each value.
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Bound) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        counts = _all_last((value >= 0) & (value % 1 == 0), 1)
        return counts & (dt.sum(value, axis=-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_last(dt.tril(value) == value, 2)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_last(dt.tril(value) == value, 2) & _all_last(dt.linalg.diagonal(value) > 0, 1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """Return True for lower Cholesky factors whose rows have length 1, within 10 n eps."""
        tolerance = float(dt.finfo(value.dtype).eps) * value.shape[-1] * 10
        rows = dt.abs(dt.sum(value * value, axis=-1) - 1.0) <= tolerance
        return _all_last(rows, 1) & lower_cholesky.check(value)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """Return one bool for all matrices; False if they are not square."""
        fits = value.ndim >= 2 and value.shape[-1] == value.shape[-2]
        return dt.full(value.shape[:-2], fits, dtype=dt.bool, device=value.device)


class _Symmetric(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """Return True for square matrices that equal their transpose within `isclose` and 1e-6."""
        if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
            return square.check(value)
        return _all_last(dt.isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        """Return True for symmetric matrices without a computed eigenvalue below 0."""
        symmetric = super().check(value)
        if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
            return symmetric
        return symmetric & _all_last(dt.linalg.eigvalsh(widen_half(value)) >= 0, 1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        """Return True for symmetric matrices whose computed eigenvalues are above 0."""
        symmetric = super().check(value)
        if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
            return symmetric
        return symmetric & _all_last(dt.linalg.eigvalsh(widen_half(value)) > 0, 1)


class _Cat(Constraint):
    """The constraints of consecutive pieces of a dimension, of these lengths.

    - `cseq`: the constraints.
    - `dim`: the dimension.
    - `lengths`: the lengths of the pieces; None is 1 each.
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise dt.ArgumentError(
                f"cat: expected one length for each of {len(self.cseq)} constraints, got "
                f"{len(self.lengths)}"
            )

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]  # computed from its parts
        """True if a constraint of a piece is discrete."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # computed from its parts
        """The largest `event_dim` of the pieces' constraints."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        pieces = dt.split(value, self.lengths, axis=self.dim)
        checked = [c.check(v) for c, v in zip(self.cseq, pieces, strict=True)]
        return dt.concat(checked, axis=self.dim)


class _Stack(Constraint):
    """The constraints of the slices along a dimension.

    - `cseq`: the constraints, one for each slice.
    - `dim`: the dimension.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]  # computed from its parts
        """True if a constraint of a slice is discrete."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # computed from its parts
        """The largest `event_dim` of the slices, plus 1 if the slices' axis is within an event."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        slices = dt.unstack(value, axis=self.dim)
        return dt.stack([c.check(v) for c, v in zip(self.cseq, slices, strict=True)], axis=self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """The constraint of a mixture's components, for values without the component dimension."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]  # that of the base
        """True if the constraint of the components is discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # computed from its parts
        """The dimensions of one value of a component."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        padded = dt.expand_dims(value, -1 - self.event_dim)
        return dt.all(self.base_constraint.check(padded), axis=-1)


dependent = _Dependent()
independent = _Independent
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack


publish_all(globals())


def __dir__() -> list[str]:
    return __all__
