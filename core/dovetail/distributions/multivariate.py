"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Self

import dovetail as dt

from ..nn.functional.precision import cast_like, widen_half
from . import constraints, noise
from .distribution import Distribution, Generator, Shape, Sizes, Tensor, constraints_of, sizes_of
from .half_rounding import in_float32
from .parameters import Value, as_float_tensors, joint_shape, only_argument

__all__ = ["MultivariateNormal"]

MATRIX_PARAMETERS = ("covariance_matrix", "precision_matrix", "scale_tril")


class MultivariateNormal(Distribution):
    """The normal distribution of vectors.

    - `loc`: the mean, a vector or a batch of them.
    - `covariance_matrix`: the covariance, a matrix or a batch of them. Pass one of the three
      matrices.
    - `precision_matrix`: the inverse of the covariance.
    - `scale_tril`: the lower Cholesky factor of the covariance. It costs least: the others are
      factored.

    Raises: ShapeError, ArgumentError for invalid matrices, and unless exactly one is passed;
    LinAlgError, DTypeError.
    See also: `Normal`, `Independent`.

    >>> import dovetail as dt
    >>> x = dt.zeros(2)
    >>> d = dt.distributions.MultivariateNormal(x, covariance_matrix=dt.eye(2))
    >>> d.log_prob(x).item()
    -1.8378770351409912
    """

    arg_constraints = constraints_of(
        loc=constraints.real_vector,
        covariance_matrix=constraints.positive_definite,
        precision_matrix=constraints.positive_definite,
        scale_tril=constraints.lower_cholesky,
    )
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name = "MultivariateNormal"
        which, value = only_argument(
            name,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        at, matrix = as_float_tensors(name, {"loc": loc, which: value})
        n = at.shape[-1] if at.ndim else 0
        if not n or matrix.shape[-2:] != (n, n):
            raise dt.ShapeError(
                f"{name}: loc must be a non-empty vector or a batch of vectors, and {which} must "
                f"end in {(n, n)}, got shapes {at.shape} and {matrix.shape}"
            )
        batch = joint_shape(name, ("loc", which), (at.shape[:-1], matrix.shape[:-2]))
        self.loc = dt.broadcast_to(at, (*batch, n))
        self._parameter_name, self._matrix = which, matrix
        self.__dict__[which] = dt.broadcast_to(matrix, (*batch, n, n))
        super().__init__(batch, (n,), validate_args)
        self._update_derived()

    def _update_derived(self) -> None:
        """Set `_scale`, the lower Cholesky factor of the covariance."""
        self._scale = cast_like(self._factor(widen_half(self._matrix)), self._matrix)

    def _is_computed(self, name: str) -> bool:
        """Return True for a matrix that the user did not pass."""
        return name not in self.__dict__

    def _factor(self, matrix: Tensor) -> Tensor:
        """Return the lower Cholesky factor of the covariance, from the matrix that was given."""
        if self._parameter_name == "scale_tril":
            return matrix
        if self._parameter_name == "covariance_matrix":
            return dt.linalg.cholesky(matrix)
        # the inverse is P = U U^T with U upper: the flipped factor of the flipped matrix
        upper = dt.flip(dt.linalg.cholesky(dt.flip(matrix, axis=(-2, -1))), axis=(-2, -1))
        eye = dt.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        return dt.linalg.solve_triangular(upper.mT, eye, upper=False)

    def __getattr__(self, name: str) -> Tensor:
        """Return a matrix that the user did not pass; else raise AttributeError."""
        whole = (*self.__dict__.get("_batch_shape", ()), *self.__dict__.get("_event_shape", ()) * 2)
        if name in MATRIX_PARAMETERS and "_scale" in self.__dict__:
            return dt.broadcast_to(self._compute_matrix(name), whole)
        missing: Tensor = super().__getattr__(name)  # type: ignore[misc]  # it raises
        return missing

    @in_float32
    def _compute_matrix(self, name: str) -> Tensor:
        """Return the matrix parameter `name`, computed from the Cholesky factor."""
        if name == "scale_tril":
            return self._scale
        if name == "covariance_matrix":
            return dt.matmul(self._scale, self._scale.mT)
        eye = dt.eye(self._scale.shape[-1], dtype=self.loc.dtype, device=self.loc.device)
        inverse = dt.linalg.solve_triangular(self._scale, eye, upper=False)
        return dt.matmul(inverse.mT, inverse)

    def expand(self, batch_shape: Sizes) -> Self:
        shape: Shape = sizes_of("MultivariateNormal.expand", batch_shape)
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        n = self._event_shape
        new._batch_shape = shape
        new.loc = dt.broadcast_to(self.loc, (*shape, *n))
        new.__dict__[self._parameter_name] = dt.broadcast_to(
            self.__dict__[self._parameter_name], (*shape, *n, *n)
        )
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = dt.sum(self._scale * self._scale, axis=-1)
        return dt.broadcast_to(variance, (*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Sizes = (), *, generator: Generator | None = None) -> Tensor:
        z = noise.normal(self._extended_shape(sample_shape), self.loc, generator)
        if self._scale.ndim == 2 and z.ndim > 1:
            return self.loc + dt.matmul(z, self._scale.mT)
        return self.loc + dt.matmul(self._scale, z[..., None])[..., 0]

    def log_prob(self, value: Value) -> Tensor:
        off = self._as_value(value) - self.loc
        n = self._event_shape[0]
        logs = half_log_det(self._scale)
        return (
            inverse_quadratic_form(self._scale, off) + n * math.log(2.0 * math.pi)
        ) * -0.5 - logs

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = half_log_det(self._scale) + 0.5 * n * (1.0 + math.log(2.0 * math.pi))
        return dt.broadcast_to(entropy, self._batch_shape)


def half_log_det(scale: Tensor) -> Tensor:
    """Return half of the logarithm of the covariance's determinant."""
    return dt.sum(dt.log(dt.linalg.diagonal(scale)), axis=-1)


def inverse_quadratic_form(scale: Tensor, x: Tensor) -> Tensor:
    """Return x^T C^-1 x for the lower factor of C, by one solve for all vectors that share it."""
    if scale.ndim == 2 and x.ndim > 1:
        n = x.shape[-1]
        rows = x.reshape((x.size // n if n else 0, n))
        z = dt.linalg.solve_triangular(scale, rows.mT, upper=False)
        return dt.sum(z * z, axis=0).reshape(x.shape[:-1])
    shape = dt.broadcast_shapes(scale.shape[:-2], x.shape[:-1])
    x = dt.broadcast_to(x, (*shape, x.shape[-1]))
    factor = dt.broadcast_to(scale, (*shape, *scale.shape[-2:]))
    z = dt.linalg.solve_triangular(factor, x[..., None], upper=False)[..., 0]
    return dt.sum(z * z, axis=-1)
