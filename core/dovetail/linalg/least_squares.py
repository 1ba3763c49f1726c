"""Pseudo-inverses, ranks, condition numbers and least squares, from singular values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..argument_checks import flag, real
from ..autograd.function import Function
from ..errors import ShapeError
from ..functions.datatypes import finfo
from ..functions.elementwise import op_functions as ew
from ..functions.products.matrix_products import matmul
from ..functions.reductions.statistics import count_nonzero
from ..functions.reductions.statistics import max as max_
from ..functions.reductions.statistics import sum as sum_
from ..functions.variants import public
from ..ops.host_routines import PINV
from ..tensor.primitives import view
from ..tensor.promotion import ARRAY_TYPES, Array, as_operand
from ..tensor.tensor import Tensor
from . import lapack
from .eigenvalues import eigvalsh
from .factors import svdvals
from .matrix_checks import (
    adjoint,
    as_column,
    as_scalars,
    extend_to_layouts_of_matrices,
    identity,
    require_matrices,
    right_sides,
    same_batch,
    same_dtype,
    square,
    without_column,
)
from .norms import Order, matrix_norm, squares
from .solving import invert_as, slogdet

__all__ = ["cond", "lstsq", "matrix_rank", "pinv"]

Threshold = float | Array | None


class LstsqResult(NamedTuple):
    """The result of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class _PseudoInverse(Function):
    """The pseudo-inverse, with a gradient.

    Source of the gradient: Golub and Pereyra, Differentiation of pseudo-inverses, 1973.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, threshold: float | Tensor) -> Tensor:
        """Return pseudo-inverses from LAPACK, and save them; `threshold` is a relative one."""
        if isinstance(threshold, Tensor):
            (inverse,) = lapack.call_routine("pinv", PINV, a, threshold)
        else:
            (inverse,) = lapack.call_routine("pinv", PINV, a, options=(threshold,))
        ctx.save_for_backward(a, inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of `a`, and None for the threshold."""
        a, x = ctx.saved_tensors
        adjoint_x, adjoint_g = adjoint(x), adjoint(g)
        gradient = -(adjoint_x @ g @ adjoint_x)
        outside = adjoint_g - a @ (x @ adjoint_g)
        gradient = gradient + outside @ x @ adjoint_x
        return gradient + adjoint_x @ x @ (adjoint_g - (adjoint_g @ x) @ a), None


def _relative_threshold(name: str, x: Tensor, rtol: Threshold) -> float | Tensor:
    """Return `rtol` as a float or a real tensor; for None max(m, n) times the dtype's eps."""
    if rtol is None:
        return max(x.shape[-2:]) * float(finfo(x.dtype).eps)
    if isinstance(rtol, ARRAY_TYPES):
        rtol = as_operand(name, rtol, (x,))
    if isinstance(rtol, Tensor):
        return same_dtype(name, ew.real(x), rtol)[1]
    return real(name, rtol, "rtol")


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def pinv(x: Tensor, /, *, rtol: Threshold = None, out: Tensor | None = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverses of matrices.

    - `rtol`: singular values up to this share of the largest count as 0; one number, or an array
      with one for each matrix. None is max(m, n) times the dtype's eps.

    Shapes: (..., m, n) gives (..., n, m).
    Dtypes: float32, float64 and complex.
    Gradient: where the rank stays the same.
    Cost: LAPACK on the host.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError, DTypeError.
    See also: `linalg.lstsq`, `linalg.svd`, `linalg.inv`.

    >>> import dovetail as dt
    >>> dt.linalg.pinv(dt.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = require_matrices("pinv", x)
    share = _relative_threshold("pinv", x, rtol)
    if isinstance(share, Tensor):
        x, share = same_batch("pinv", x, view(share, ("reshape", (*share.shape, 1, 1))))
    return _PseudoInverse.apply(x, share)


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def matrix_rank(
    x: Tensor, /, *, rtol: Threshold = None, hermitian: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the number of non-zero singular values of each matrix.

    - `rtol`: singular values up to this share of the largest count as 0; one number, or an array
      with one for each matrix. None is max(m, n) times the dtype's eps.
    - `hermitian`: True for Hermitian matrices, which takes half the time.

    Shapes: (..., m, n) gives (...).
    Dtypes: float32, float64 and complex; the result is int64.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.linalg.matrix_rank(dt.asarray([[2.0, 2.0], [1.0, 1.0]])).item()
    1
    """
    x = require_matrices("matrix_rank", x.detach() if isinstance(x, Tensor) else x)
    share = _relative_threshold("matrix_rank", x, rtol)
    if flag("matrix_rank", hermitian, "hermitian"):
        values = ew.abs(eigvalsh(square("matrix_rank", x)))
    else:
        values = svdvals(x)
    return _count_above(values, share)


def _count_above(values: Tensor, threshold: float | Tensor) -> Tensor:
    """Count for each matrix the values above `threshold` times the largest, as int64."""
    if not values.shape[-1]:
        return count_nonzero(values, axis=-1)
    largest = max_(values, axis=-1)
    least = largest * threshold
    return (
        count_nonzero(values > as_column(least), axis=-1)
        if least.ndim
        else count_nonzero(values > least, axis=-1)
    )


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def cond(x: Tensor, /, *, ord: Order | None = None, out: Tensor | None = None) -> Tensor:
    """Return the condition numbers of matrices: the norm times that of the inverse.

    A singular matrix has inf, but with -2 only where it is zero.

    - `ord`: the order of the norm, see `matrix_norm`; None and 2 divide singular values, -2 the
      other way round.

    Shapes: (..., m, n) gives (...); square unless `ord` is None, 2 or -2.
    Dtypes: float32, float64 and complex; the result is real.
    Raises: ShapeError, DTypeError, ArgumentError for another `ord`; LinAlgError for NaN and
    infinity.

    >>> import dovetail as dt
    >>> dt.linalg.cond(dt.asarray([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    x = require_matrices("cond", x)
    if not x.shape[-1] or not x.shape[-2]:
        raise ShapeError(f"cond: x must have at least one row and one column, got shape {x.shape}")
    if ord is None or ord in (2, -2):
        s = svdvals(x)
        high, low = (s[..., -1], s[..., 0]) if ord == -2 else (s[..., 0], s[..., -1])
        return ew.where(ew.equal(low, 0), math.inf, high / low)
    x = square("cond", x)
    singular = ew.equal(slogdet(x.detach()).sign, 0)
    invertible = ew.where(as_scalars(singular), identity(x.shape[-1], x), x)
    product = matrix_norm(x, ord=ord) * matrix_norm(invert_as("cond", invertible), ord=ord)
    return ew.where(singular, math.inf, product)


@public(widen=False)
def lstsq(x1: Array, x2: Array, /, rcond: float | None = None) -> LstsqResult:
    """Return the x of least norm that minimises the norm of `x1 @ x - x2`, and its statistics.

    - `rcond`: singular values up to this share of the largest count as 0: the `rtol` of `pinv`.
      None is max(m, n) times the dtype's eps.

    Shapes: (..., m, n) and (..., m, k) give the solution (..., n, k), residuals (..., k), rank
    (...) and singular values (..., min(m, n)); (m,) as x2 is one vector, and its solution (..., n).
    Dtypes: float32, float64 and complex, promoted; residuals and singular values are real, the rank
    is int64.
    Gradient: of the solution and the residuals, where the rank stays the same.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError, DTypeError,
    DeviceError.
    See also: `linalg.pinv`, `linalg.solve`, `polyfit`.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> b = dt.asarray([1.0, 3.0, 5.0])
    >>> dt.allclose(dt.linalg.lstsq(a, b).solution, [1.0, 2.0], atol=1e-5)
    True
    """
    a, b, vector = right_sides("lstsq", x1, x2)
    least = share = _relative_threshold("lstsq", a, rcond)
    if isinstance(share, Tensor):
        a, least = same_batch("lstsq", a, view(share, ("reshape", (*share.shape, 1, 1))))
    solution = matmul(_PseudoInverse.apply(a, least), b)
    residuals = b - matmul(a, solution)
    values = svdvals(a.detach())
    return LstsqResult(
        without_column(solution, vector),
        sum_(squares(residuals), axis=-2),
        _count_above(values, share),
        values,
    )
