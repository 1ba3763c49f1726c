"""Transforms that reshape, and transforms of the pieces or slices of a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence

import dovetail as dt

from . import constraints
from .constraints import Constraint
from .parameters import sum_last
from .transform import Shape, Tensor, Transform, leading_shape

__all__ = ["CatTransform", "ReshapeTransform", "StackTransform"]


class ReshapeTransform(Transform):
    """A transform that reshapes the last dimensions.

    - `in_shape`, `out_shape`: the shapes of inputs and outputs, with equal numbers of elements.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0, 3.0, 4.0])
    >>> dt.distributions.ReshapeTransform((4,), (2, 2))(x).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise dt.ShapeError(
                "ReshapeTransform: in_shape and out_shape must have the same number of elements, "
                f"got {self.in_shape} and {self.out_shape}"
            )

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Return the constraint of outputs."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _comparison_key(self) -> object:
        return self.in_shape, self.out_shape

    def _call(self, x: Tensor) -> Tensor:
        return dt.reshape(x, self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return dt.reshape(y, self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        before = leading_shape(self, x.shape, self.in_shape)
        return dt.zeros(before, dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Shape) -> Shape:
        return (*leading_shape(self, shape, self.in_shape), *self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*leading_shape(self, shape, self.out_shape), *self.in_shape)


class CatTransform(Transform):
    """A transform for each piece of a dimension.

    - `tseq`: the transforms.
    - `dim`: the dimension.
    - `lengths`: of the pieces, 1 each by default.

    >>> import dovetail as dt
    >>> D, x = dt.distributions, dt.asarray([0.0, -1.0, -2.0])
    >>> D.CatTransform([D.ExpTransform(), D.AbsTransform()], lengths=[1, 2])(x).tolist()
    [1.0, 1.0, 2.0]
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise dt.ArgumentError(
                f"CatTransform: expected one length for each of {len(self.transforms)} "
                f"transforms, got {len(self.lengths)}"
            )

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    @property
    def bijective(self) -> bool:  # type: ignore[override]  # computed from its parts
        """True if each output is that of exactly one input."""
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Return the constraint of outputs."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _comparison_key(self) -> object:
        return self.transforms, self.dim, self.lengths

    def _split_pieces(self, x: Tensor) -> list[Tensor]:
        """Split the dimension by the lengths. Raises: ShapeError for another size."""
        _require_length(self, x, self.dim, self.length)
        return list(dt.split(x, self.lengths, axis=self.dim))

    def _call(self, x: Tensor) -> Tensor:
        pieces = self._split_pieces(x)
        return dt.concat(
            [t(p) for t, p in zip(self.transforms, pieces, strict=True)], axis=self.dim
        )

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = self._split_pieces(y)
        outputs = [t.inv(p) for t, p in zip(self.transforms, pieces, strict=True)]
        return dt.concat(outputs, axis=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        every = zip(self.transforms, self._split_pieces(x), self._split_pieces(y), strict=True)
        terms = [
            sum_last(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in every
        ]
        axis = self.dim - (x.ndim if self.dim >= 0 else 0) + self.event_dim
        if axis < 0:
            return dt.concat(terms, axis=axis)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total


class StackTransform(Transform):
    """A transform for each slice along a dimension.

    - `tseq`: the transforms.
    - `dim`: the dimension.

    >>> import dovetail as dt
    >>> D, x = dt.distributions, dt.asarray([[0.0, 0.0], [-1.0, -2.0]])
    >>> D.StackTransform([D.ExpTransform(), D.AbsTransform()])(x).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]  # computed from its parts
        """True if each output is that of exactly one input."""
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Return the constraint of inputs."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Return the constraint of outputs."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _comparison_key(self) -> object:
        return self.transforms, self.dim

    def _unstack_slices(self, x: Tensor) -> list[Tensor]:
        """Return the slices of the dimension. Raises: ShapeError for another number."""
        _require_length(self, x, self.dim, len(self.transforms))
        return list(dt.unstack(x, axis=self.dim))

    def _call(self, x: Tensor) -> Tensor:
        every = zip(self.transforms, self._unstack_slices(x), strict=True)
        return dt.stack([t(s) for t, s in every], axis=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        every = zip(self.transforms, self._unstack_slices(y), strict=True)
        return dt.stack([t.inv(s) for t, s in every], axis=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        every = zip(self.transforms, self._unstack_slices(x), self._unstack_slices(y), strict=True)
        return dt.stack([t.log_abs_det_jacobian(a, b) for t, a, b in every], axis=self.dim)


def _require_length(t: Transform, x: Tensor, dim: int, n: int) -> None:
    """Raise ShapeError unless dimension `dim` of x exists and has `n` elements."""
    if not -x.ndim <= dim < x.ndim or x.shape[dim] != n:
        raise dt.ShapeError(
            f"{type(t).__name__}: dimension {dim} must have {n} elements, got shape {x.shape}"
        )
