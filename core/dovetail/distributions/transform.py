"""The base class of transforms (functions with inverse and log determinant), and compositions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from ..nn.constructor_errors import Explained
from . import constraints
from .constraints import Constraint
from .parameters import sum_last

__all__ = ["ComposeTransform", "IndependentTransform", "Transform", "identity_transform"]

Tensor: TypeAlias = dt.Tensor
Shape: TypeAlias = tuple[int, ...]


class Transform(Explained):
    """The base class of transforms; implement `_call`, `_inverse` and `log_abs_det_jacobian`.

    - `cache_size`: 0, or 1 for an inverse that caches the last input and output.

    A subclass has the attributes `domain` and `codomain`, constraints of inputs and outputs;
    `bijective`, True if `inv` returns the input; and `sign`, +1 if it is increasing, -1 if
    decreasing.

    >>> import dovetail as dt
    >>> t = dt.distributions.transforms.ExpTransform()
    >>> t.inv(t(dt.asarray([0.0]))).tolist()
    [0.0]
    """

    captured_for: ClassVar = ()  # captures depend on the settings that methods of subclasses name
    _checks_annotations = True
    bijective: bool = False
    domain: Any
    codomain: Any
    sign: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise dt.ArgumentError(
                f"{type(self).__name__}: cache_size must be 0 or 1, got "
                f"{arguments.shown(cache_size)}"
            )
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached: tuple[Tensor | None, Tensor | None] = None, None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_inv": None, "_cached": (None, None)}

    def __getattr__(self, name: str) -> Any:
        if name == "sign":
            raise dt.UnsupportedError(f"{type(self).__name__} has no sign")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def event_dim(self) -> int:
        """The number of dimensions of one value, if it is equal for inputs and outputs."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise dt.ShapeError(
            f"{type(self).__name__}: event_dim is ambiguous, because events of "
            f"{self.domain.event_dim} dimensions become events of {self.codomain.event_dim}; use "
            ".domain.event_dim or .codomain.event_dim"
        )

    @property
    def inv(self) -> Transform:
        """The inverse; its own inverse is this transform."""
        if self._inv is None:
            self._inv = _Inverse(self)
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Self:
        """Return the transform with that cache size: itself, or a copy with an empty cache."""
        if self._cache_size == cache_size:
            return self
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        Transform.__init__(new, cache_size)
        return new

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._comparison_key() == other._comparison_key()

    def _comparison_key(self) -> object:
        """Return the parameters by which two transforms of a class are compared."""
        return ()

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        self._require_event(x, "domain")
        if not self._cache_size:
            return self._call(x)
        before, after = self._cached
        if x is before and after is not None:
            return after
        y = self._call(x)
        self._cached = x, y
        return y

    def _require_event(self, x: object, of: str) -> None:
        """Raise ShapeError for a tensor with fewer dimensions than one value has."""
        dims = getattr(getattr(self, of, None), "event_dim", 0)
        if isinstance(x, dt.Tensor) and x.ndim < dims:
            raise dt.ShapeError(
                f"{type(self).__name__}: expected at least {dims} dimensions, got shape {x.shape}"
            )

    def _inv_call(self, y: Tensor) -> Tensor:
        """Return the input for an output; use and update the cache.

        Raises: ShapeError for fewer dimensions than one value has.
        """
        self._require_event(y, "codomain")
        if not self._cache_size:
            return self._inverse(y)
        before, after = self._cached
        if y is after and before is not None:
            return before
        x = self._inverse(y)
        self._cached = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        """Return the output for an input; subclasses implement this method."""
        raise NotImplementedError(f"{type(self).__name__} has no _call(self, x)")

    def _inverse(self, y: Tensor) -> Tensor:
        """Return the input for an output; subclasses implement this method."""
        raise NotImplementedError(f"{type(self).__name__} has no _inverse(self, y)")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log(abs(det(dy / dx))) for input x and output y."""
        raise dt.UnsupportedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the output for that of the input."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the input for that of the output."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._transform = transform

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        constraint: Constraint = self._transform.codomain
        return constraint

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Return the constraint of outputs."""
        constraint: Constraint = self._transform.domain
        return constraint

    @property
    def bijective(self) -> bool:  # type: ignore[override]  # that of the transform
        """True if each output is that of exactly one input."""
        return self._transform.bijective

    @property
    def sign(self) -> Any:
        """1 if it is increasing, -1 if decreasing."""
        return self._transform.sign

    @property
    def inv(self) -> Transform:
        return self._transform

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._transform.with_cache(cache_size).inv

    def _comparison_key(self) -> object:
        return self._transform

    def __call__(self, x: Tensor) -> Tensor:
        return self._transform._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._transform.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._transform.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._transform!r}.inv"


class ComposeTransform(Transform):
    """A composition of transforms, applied in order; of none, the identity.

    - `parts`: a list of transforms.

    >>> import dovetail as dt
    >>> T = dt.distributions.transforms
    >>> t = T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])
    >>> t(dt.asarray([0.0])).tolist()
    [3.0]
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [p.with_cache(cache_size) if cache_size else p for p in parts]

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(
                dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim
            )
        return _add_event_dims(self.parts[0].domain, dims)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Return the constraint of outputs."""
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            change = part.codomain.event_dim - part.domain.event_dim
            dims = max(dims + change, part.codomain.event_dim)
        return _add_event_dims(self.parts[-1].codomain, dims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]  # computed from its parts
        """True if each output is that of exactly one input."""
        return all(p.bijective for p in self.parts)

    @property
    def sign(self) -> Any:
        """1 if it is increasing, -1 if decreasing."""
        return functools.reduce(operator.mul, [p.sign for p in self.parts], 1)

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _comparison_key(self) -> object:
        return self.parts

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return dt.zeros_like(x)
        dims = self.domain.event_dim
        total: Tensor | None = None
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            term = sum_last(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            total = term if total is None else total + term
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        assert total is not None
        return total

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


def _add_event_dims(constraint: Constraint, dims: int) -> Constraint:
    """Return the constraint for values with `dims` dimensions, by `independent`."""
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform that takes the last dimensions of the batch as dimensions of an event.

    - `base_transform`: the transform.
    - `reinterpreted_batch_ndims`: the number of dimensions.

    >>> import dovetail as dt
    >>> T = dt.distributions.transforms
    >>> t = T.IndependentTransform(T.ExpTransform(), 1)
    >>> x = dt.asarray([1.0, 2.0])
    >>> t.log_abs_det_jacobian(x, t(x)).item()
    3.0
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Return the constraint of outputs."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]  # that of the base
        """True if each output is that of exactly one input."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        """1 if it is increasing, -1 if decreasing."""
        return self.base_transform.sign

    def _comparison_key(self) -> object:
        return self.base_transform, self.reinterpreted_batch_ndims

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(_require_dims(self, x, self.domain.event_dim))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(_require_dims(self, y, self.codomain.event_dim))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        logs = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(logs, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _require_dims(t: Transform, x: Tensor, dims: int) -> Tensor:
    """Return x. Raises: ShapeError if it has fewer than `dims` dimensions."""
    if x.ndim < dims:
        raise dt.ShapeError(
            f"{type(t).__name__}: expected at least {dims} dimensions, got shape {x.shape}"
        )
    return x


def leading_shape(t: Transform, shape: Shape, event: Shape | int) -> Shape:
    """Return a shape without its trailing event. Raises: ShapeError unless it ends in the event.

    `event`: a shape, or a number of axes.
    """
    name = type(t).__name__
    if isinstance(event, int):
        if len(shape) < event:
            raise dt.ShapeError(f"{name}: expected at least {event} dimensions, got shape {shape}")
        return shape[: len(shape) - event]
    cut = len(shape) - len(event)
    if cut < 0 or shape[cut:] != event:
        raise dt.ShapeError(f"{name}: the shape must end in {event}, got {shape}")
    return shape[:cut]
