"""Transforms of vectors and matrices: to the simplex, triangular and correlation matrices."""

from __future__ import annotations

import dovetail as dt

from . import constraints
from .parameters import log_cosh, softplus
from .transform import Shape, Tensor, Transform, leading_shape

__all__ = [
    "CorrCholeskyTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StickBreakingTransform",
]


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last dimension; the inverse is the logarithm.

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0, 0.0])
    >>> dt.distributions.SoftmaxTransform()(x).tolist()
    [0.5, 0.5]
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return dt.softmax(x, axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return dt.log(y)

    def forward_shape(self, shape: Shape) -> Shape:
        leading_shape(self, shape, 1)
        return shape

    inverse_shape = forward_shape


def _log_remaining(n: int, like: Tensor) -> Tensor:
    """Return the logarithms of n, n - 1, ... 1: the numbers of shares that are left."""
    return dt.log(dt.arange(n, 0, -1, dtype=like.dtype, device=like.device))


def _shift_right(x: Tensor) -> Tensor:
    """Shift the elements of the last dimension by one, with 1 in front."""
    return dt.concat([dt.ones_like(x[..., :1]), x[..., :-1]], axis=-1)


class StickBreakingTransform(Transform):
    """A transform of n numbers to n + 1 shares: each sigmoid breaks off a part of the remainder.

    Zeros give equal shares.

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0])
    >>> dt.distributions.StickBreakingTransform()(x).tolist()
    [0.5, 0.5]
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        z = dt.sigmoid(x - _log_remaining(x.shape[-1], x))
        limits = dt.finfo(x.dtype)
        z = dt.clip(z, float(limits.smallest_normal), 1.0 - float(limits.eps))
        remainder = dt.cumulative_prod(1.0 - z, axis=-1)
        one = dt.ones_like(remainder[..., :1])
        return dt.concat([z, one], axis=-1) * dt.concat([one, remainder], axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        part = y[..., :-1]
        remainder = 1.0 - dt.cumulative_sum(part, axis=-1)
        remainder = dt.maximum(remainder, float(dt.finfo(y.dtype).smallest_normal))
        return dt.log(part) - dt.log(remainder) + _log_remaining(part.shape[-1], y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # each part y is z times the remainder; dz = z (1 - z), and log(1 - z) = -softplus
        off = x - _log_remaining(x.shape[-1], x)
        return dt.sum(dt.log(y[..., :-1]) - softplus(off), axis=-1)

    def forward_shape(self, shape: Shape) -> Shape:
        return (*leading_shape(self, shape, 1), shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*leading_shape(self, shape, 1), shape[-1] - 1)


def _with_diagonal(lower: Tensor, diagonal: Tensor) -> Tensor:
    """Return the strictly lower triangle of a matrix with another diagonal."""
    n = lower.shape[-1]
    eye = dt.eye(n, dtype=dt.bool, device=lower.device)
    return dt.where(eye, diagonal[..., None], dt.tril(lower, k=-1))


class LowerCholeskyTransform(Transform):
    """A transform of a square matrix to its lower triangle, with exp of its diagonal.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 2))
    >>> dt.distributions.LowerCholeskyTransform()(x).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return _with_diagonal(x, dt.exp(dt.linalg.diagonal(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return _with_diagonal(y, dt.log(dt.linalg.diagonal(y)))


class PositiveDefiniteTransform(Transform):
    """A transform of a square matrix to the positive definite L L^T of `LowerCholeskyTransform`.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 2))
    >>> dt.distributions.PositiveDefiniteTransform()(x).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return dt.matmul(lower, lower.mT)

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform()._inverse(dt.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """A transform of d (d - 1) / 2 numbers to the Cholesky factor of a d x d correlation matrix.

    Rows have length 1. In each row, tanh of a number is the fraction of the remaining length.

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0])
    >>> dt.distributions.CorrCholeskyTransform()(x).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _below_diagonal(self, d: int, like: Tensor) -> Tensor:
        """Return the row-major indices of the elements below the diagonal of a d x d matrix."""
        rows = [i * d + j for i in range(d) for j in range(i)]
        return dt.asarray(rows, dtype=dt.int64, device=like.device)

    def _fill_below_diagonal(self, x: Tensor, d: int) -> Tensor:
        """Return a matrix with the elements of x below a diagonal of zeros, row by row."""
        at = [i * (i - 1) // 2 + j + 1 if j < i else 0 for i in range(d) for j in range(d)]
        index = dt.asarray(at, dtype=dt.int64, device=x.device)  # 0 is the zero in front of x
        padded = dt.concat(
            [dt.zeros((*x.shape[:-1], 1), dtype=x.dtype, device=x.device), x], axis=-1
        )
        return dt.take(padded, index, axis=-1).reshape((*x.shape[:-1], d, d))

    def _take_below_diagonal(self, y: Tensor) -> Tensor:
        """Return the elements below the diagonal, row by row."""
        d = y.shape[-1]
        return dt.take(y.reshape((*y.shape[:-2], d * d)), self._below_diagonal(d, y), axis=-1)

    def _call(self, x: Tensor) -> Tensor:
        d = self.forward_shape(x.shape)[-1]
        near = 1.0 - float(dt.finfo(x.dtype).eps)
        r = self._fill_below_diagonal(dt.clip(dt.tanh(x), -near, near), d)
        left = dt.cumulative_prod(dt.sqrt(1.0 - r * r), axis=-1)
        eye = dt.eye(d, dtype=x.dtype, device=x.device)
        return (r + eye) * _shift_right(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = _shift_right(1.0 - dt.cumulative_sum(y * y, axis=-1))
        r = self._take_below_diagonal(y) / dt.sqrt(self._take_below_diagonal(left))
        return (dt.log1p(r) - dt.log1p(-r)) * 0.5

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the log determinant for the numbers below the diagonal."""
        left = _shift_right(1.0 - dt.cumulative_sum(y * y, axis=-1))
        tanh = dt.sum(log_cosh(x), axis=-1) * -2.0
        return dt.sum(dt.log(self._take_below_diagonal(left)), axis=-1) * 0.5 + tanh

    def forward_shape(self, shape: Shape) -> Shape:
        before = leading_shape(self, shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise dt.ShapeError(
                "CorrCholeskyTransform: the last dimension must have n * (n - 1) / 2 elements (1, "
                f"3, 6, 10, ...), got {n}"
            )
        return (*before, d, d)

    def inverse_shape(self, shape: Shape) -> Shape:
        before = leading_shape(self, shape, 2)
        if shape[-1] != shape[-2]:
            raise dt.ShapeError(
                f"CorrCholeskyTransform: the matrices must be square, got shape {shape}"
            )
        return (*before, shape[-1] * (shape[-1] - 1) // 2)
