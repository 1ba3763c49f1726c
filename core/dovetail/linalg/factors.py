"""Factors of matrices: Cholesky, QR, singular values, LU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..argument_checks import choice, flag, refused, sequence
from ..autograd.function import Function
from ..errors import GradientError
from ..functions.creation.constructors import tril, triu
from ..functions.elementwise import op_functions as ew
from ..functions.products.matrix_products import matmul
from ..functions.shape.copies import concat
from ..functions.variants import public
from ..ops.host_routines import CHOLESKY, LU, QR, SVD, SVDVALS, HostCall
from ..tensor.promotion import Array
from ..tensor.tensor import Tensor
from . import lapack, unrolled_matrices
from .eigenvalues import inverse_differences
from .matrix_checks import (
    adjoint,
    as_column,
    as_row,
    extend_to_layouts_of_matrices,
    hermitian_part,
    identity,
    require_matrices,
    right_sides,
    same_batch,
    square,
    without_column,
)
from .triangular import solve_triangle

__all__ = ["cholesky", "lu", "lu_solve", "qr", "svd", "svdvals"]


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LUResult(NamedTuple):
    """The result of `lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


# --- Cholesky -------------------------------------------------------------------------------------


class _Cholesky(Function):
    """The Cholesky factor, with a gradient.

    Source of the gradient: Murray, Differentiation of the Cholesky decomposition, 2016.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        """Return the lower factors, and save them. Raises: LinAlgError unless positive definite."""
        if unrolled_matrices.has_kernel(a):
            factor = unrolled_matrices.cholesky(a)
            factor = lapack.verify_result(
                HostCall("cholesky", CHOLESKY, checks_results=True), factor, a
            )
        else:
            (factor,) = lapack.call_routine("cholesky", CHOLESKY, a)
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        """Return the gradient of `a`, spread over both triangles; it is Hermitian."""
        (low,) = ctx.saved_tensors
        inner = _halve_diagonal(adjoint(low) @ tril(g))
        for _ in range(2):
            inner = solve_triangle("cholesky", low, adjoint(inner), upper=False, transposed=True)
        return hermitian_part(inner)


def _halve_diagonal(x: Tensor) -> Tensor:
    """Return the lower triangle of `x`, with half of the diagonal."""
    return tril(x) - x * identity(x.shape[-1], x) * 0.5


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def cholesky(x: Tensor, /, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Return the lower triangular L of Hermitian, positive definite matrices: `L @ conj(L).mT`.

    - `upper`: True returns the upper triangular U instead, for which they are `conj(U).mT @ U`.
      Only that triangle of x is read.

    Shapes: (..., n, n) gives the same.
    Dtypes: float32, float64 and complex.
    Gradient: spread over both triangles, and Hermitian.
    Cost: kernels for real matrices of at most 32 rows; else LAPACK on the host.
    Raises: LinAlgError, with its place, for a matrix that is not positive definite; ShapeError
    unless they are square, DTypeError.
    See also: `linalg.cholesky_solve`, `linalg.eigh`, `linalg.solve_triangular`.

    >>> import dovetail as dt
    >>> dt.linalg.cholesky(dt.asarray([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    x = square("cholesky", x)
    if flag("cholesky", upper, "upper"):
        return adjoint(_Cholesky.apply(adjoint(x)))
    return _Cholesky.apply(x)


# --- QR -------------------------------------------------------------------------------------------

Mode = Literal["reduced", "complete"]


class _QR(Function):
    """QR factors, with a gradient.

    Source of the gradient: Roberts and Roberts, QR and LQ backpropagation, 2020.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, mode: Mode) -> tuple[Tensor, ...]:
        """Return Q and R from LAPACK, and save them and `a` for the backward pass."""
        q, r = lapack.call_routine("qr", QR, a, options=(mode,))
        ctx.save_for_backward(q, r, a)
        return q, r

    @staticmethod
    def backward(ctx: Any, grad_q: Tensor, grad_r: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient. Raises: GradientError for a complete Q of a matrix with m > n."""
        q, r, a = ctx.saved_tensors
        rows, columns = a.shape[-2:]
        if q.shape[-1] > columns:
            raise GradientError(
                'qr: mode="complete" has no gradient for a matrix with more rows than columns, got '
                f'shape {a.shape}; use mode="reduced"'
            )
        if rows >= columns:
            return _qr_gradient(q, r, grad_q, grad_r), None
        left, right = grad_r[..., :rows], grad_r[..., rows:]
        grad_q = grad_q + a[..., rows:] @ adjoint(right)
        return concat([_qr_gradient(q, r[..., :rows], grad_q, left), q @ right], axis=-1), None


def _qr_gradient(q: Tensor, r: Tensor, grad_q: Tensor, grad_r: Tensor) -> Tensor:
    """Return x's gradient from those of Q and R, for as many rows as columns or more."""
    inner = r @ adjoint(triu(grad_r)) - adjoint(grad_q) @ q
    inner = hermitian_part(tril(inner) + adjoint(tril(inner, k=-1)))
    return adjoint(solve_triangle("qr", r, adjoint(grad_q + q @ inner), upper=True))


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def qr(x: Tensor, /, *, mode: Mode = "reduced", out: Sequence[Tensor] | None = None) -> QRResult:
    """Return orthonormal Q and upper triangular R whose products `Q @ R` are x.

    Signs are LAPACK's; the diagonal of R is real.

    - `mode`: "reduced" for as many columns of Q as x has rows or columns; "complete" for a square
      Q.

    Shapes: (..., m, n) gives (..., m, k) and (..., k, n); k is min(m, n), or m.
    Dtypes: float32, float64 and complex.
    Cost: LAPACK on the host.
    Raises: ShapeError, DTypeError, ArgumentError for another mode; of the gradient, LinAlgError
    where the first columns depend on each other, and GradientError for "complete" where m > n.
    See also: `linalg.svd`, `linalg.lstsq`, `linalg.householder`.

    >>> import dovetail as dt
    >>> q, r = dt.linalg.qr(dt.asarray([[0.0, 2.0], [1.0, 3.0]]))
    >>> dt.allclose(q @ r, [[0.0, 2.0], [1.0, 3.0]])
    True
    """
    mode = choice("qr", mode, "mode", ("reduced", "complete"))
    return QRResult(*_QR.apply(require_matrices("qr", x), mode))


# --- singular values ------------------------------------------------------------------------------


class _SVD(Function):
    """The singular value decomposition, with a gradient.

    Source of the gradient: Townsend, Differentiating the singular value decomposition, 2016.
    """

    @staticmethod
    def forward(ctx: Any, name: str, a: Tensor, full: bool) -> tuple[Tensor, ...]:
        """Return U, S and Vh from LAPACK, and save them for the backward pass."""
        factors = lapack.call_routine(name, SVD, a, options=(full,))
        ctx.save_for_backward(*factors)
        return factors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient. Raises: GradientError for full matrices of a matrix with m != n."""
        u, s, vh = ctx.saved_tensors
        if u.shape[-1] != s.shape[-1] or vh.shape[-2] != s.shape[-1]:
            raise GradientError(
                "svd: the gradient of a matrix that is not square requires full_matrices=False, "
                "got True"
            )
        return None, _svd_gradient(u, s, vh, *gradients), None


def _svd_gradient(
    u: Tensor, s: Tensor, vh: Tensor, grad_u: Tensor, grad_s: Tensor, grad_vh: Tensor
) -> Tensor:
    """Return the gradient of x from those of U, S and Vh; terms of equal values are 0."""
    v, of_v, squares = adjoint(vh), adjoint(grad_vh), s * s
    inverses = inverse_differences(squares, squares)
    left = adjoint(u) @ grad_u
    right = vh @ of_v
    inner = inverses * (left - adjoint(left)) * as_row(s) + as_column(s) * (
        inverses * (right - adjoint(right))
    )
    inner = inner + as_row(grad_s) * identity(s.shape[-1], s)
    zero = ew.equal(s, 0)
    inverse = as_row(ew.where(zero, 0.0, 1 / ew.where(zero, 1.0, s)))
    if left.dtype.kind == "c":  # a phase is free: it turns both vectors together
        inner = inner + (left - adjoint(left)) * identity(s.shape[-1], s) * inverse * 0.5
    gradient = u @ inner @ vh
    if u.shape[-2] > s.shape[-1]:
        gradient = gradient + (grad_u - u @ left) * inverse @ vh
    if v.shape[-2] > s.shape[-1]:
        gradient = gradient + u @ adjoint((of_v - v @ right) * inverse)
    return gradient


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def svd(
    x: Tensor, /, *, full_matrices: bool = True, out: Sequence[Tensor] | None = None
) -> SVDResult:
    """Return the singular value decomposition: x is `U @ diag(S) @ Vh`, with S descending.

    The result is a named tuple (U, S, Vh); Vh is the conjugate transpose of V. The gradient of
    vectors is right for what does not depend on their signs or phases.

    - `full_matrices`: True makes U and Vh square; False keeps the first min(m, n) columns of U and
      rows of Vh. If one of them is larger than x requires, there is no gradient: pass False to
      differentiate.

    Shapes: (..., m, n) gives (..., m, m), (..., k) and (..., n, n), k being min(m, n); unless full,
    (..., m, k), (..., k) and (..., k, n).
    Dtypes: float32, float64 and complex; S is real.
    Cost: LAPACK on the host, in the order of m n min(m, n) for each matrix; the matrices of a batch
    follow one another. The call waits for pending work, and copies from and to a device with its
    own memory. `svdvals` is several times quicker.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError, DTypeError.
    See also: `linalg.svdvals`, `linalg.pinv`, `linalg.eigh`, `linalg.qr`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0.0, 2.0], [1.0, 0.0]])
    >>> dt.linalg.svd(x).S.tolist()
    [2.0, 1.0]
    """
    full = flag("svd", full_matrices, "full_matrices")
    return SVDResult(*_SVD.apply("svd", require_matrices("svd", x), full))


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def svdvals(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the singular values of matrices, descending; see `svd`.

    Shapes: (..., m, n) gives (..., min(m, n)).
    Dtypes: float32, float64 and complex; the result is real.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError, DTypeError.
    See also: `linalg.svd`, `linalg.matrix_rank`, `linalg.cond`.

    >>> import dovetail as dt
    >>> dt.linalg.svdvals(dt.asarray([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    x = require_matrices("svdvals", x)
    if x.requires_grad:
        return _SVD.apply("svdvals", x, False)[1]
    return lapack.call_routine("svdvals", SVDVALS, x)[0]


# --- LU -------------------------------------------------------------------------------------------


class _LU(Function):
    """LU factors, with a gradient.

    The square block of L and U has the gradient of the factorisation. Rows below it, or columns to
    its right, are solutions of triangular systems with the block, and get the gradient of those.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, ...]:
        """Return P, L and U from LAPACK, and save them; P gets no gradient."""
        p, low, up = lapack.call_routine("lu", LU, a)
        ctx.save_for_backward(p, low, up)
        ctx.mark_non_differentiable(p)
        return p, low, up

    @staticmethod
    def backward(ctx: Any, _: Tensor, grad_lower: Tensor, grad_upper: Tensor) -> Tensor:
        """Return the gradient of `a`. Raises: LinAlgError for linearly dependent first columns."""
        p, low, up = ctx.saved_tensors
        k = up.shape[-2]
        first, last = low[..., :k, :], up[..., :k]

        def divide_by_last(x: Tensor) -> Tensor:
            """Return `x` times the inverse of the adjoint of `last`."""
            return adjoint(solve_triangle("lu", last, adjoint(x), upper=True))

        def divide_by_first(x: Tensor) -> Tensor:
            """Return the inverse of the adjoint of `first` times `x`."""
            return solve_triangle("lu", first, x, upper=False, unit=True, transposed=True)

        of_first, of_last, more_rows = grad_lower[..., :k, :], grad_upper[..., :k], []
        if low.shape[-2] > k:
            below = divide_by_last(grad_lower[..., k:, :])
            of_last = of_last - adjoint(low[..., k:, :]) @ below
            more_rows.append(below)
        if up.shape[-1] > k:
            beside = divide_by_first(grad_upper[..., k:])
            of_first = of_first - beside @ adjoint(up[..., k:])
        inner = tril(adjoint(first) @ of_first, k=-1) + triu(of_last @ adjoint(last))
        gradient = divide_by_last(divide_by_first(inner))
        if more_rows:
            gradient = concat([gradient, *more_rows], axis=-2)
        elif up.shape[-1] > k:
            gradient = concat([gradient, beside], axis=-1)
        return matmul(p, gradient)


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def lu(x: Tensor, /, *, out: Sequence[Tensor] | None = None) -> LUResult:
    """Return the factors of Gaussian elimination with partial pivoting: x is `P @ L @ U`.

    P is a permutation, L lower triangular with ones on its diagonal, U upper triangular.
    Shapes: (..., m, n) gives (..., m, m), (..., m, k) and (..., k, n), k being min(m, n).
    Dtypes: float32, float64 and complex.
    Raises: ShapeError, DTypeError; of the gradient, LinAlgError where the first columns depend on
    each other.

    >>> import dovetail as dt
    >>> p, low, up = dt.linalg.lu(dt.asarray([[1.0, 2.0], [2.0, 2.0]]))
    >>> p.tolist(), low.tolist(), up.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 2.0], [0.0, 1.0]])
    """
    return LUResult(*_LU.apply(require_matrices("lu", x)))


@public(out=True, widen=False)
def lu_solve(
    lu: LUResult | tuple[Tensor, Tensor, Tensor], x2: Array, /, *, out: Tensor | None = None
) -> Tensor:
    """Return the solutions x of `a @ x = x2`, given the LU factors of a.

    - `lu`: the result of `dt.linalg.lu` for square matrices: three factors.

    Shapes: as those of `solve`.
    Dtypes: float32, float64 and complex, promoted.
    Raises: LinAlgError, with its place, for a singular matrix; ArgumentTypeError unless there are
    three factors; ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1.0, 2.0], [2.0, 2.0]])
    >>> b = dt.asarray([5.0, 6.0])
    >>> dt.linalg.lu_solve(dt.linalg.lu(a), b).tolist()
    [1.0, 2.0]
    """
    if len(sequence("lu_solve", lu, "lu", "three factors")) != 3:
        raise refused("lu_solve", "lu", "three factors", lu)
    p, low, up = (square("lu_solve", part) for part in lu)
    up, b, vector = right_sides("lu_solve", up, x2)
    low, b = same_batch("lu_solve", low, matmul(adjoint(p), b))
    b = solve_triangle("lu_solve", low, b, upper=False, unit=True)
    return without_column(solve_triangle("lu_solve", up, b, upper=True), vector)
