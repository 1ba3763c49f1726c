"""Factors of matrices: Cholesky, QR, singular values, LU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..arguments import choice, flag, refused, sequence
from ..autograd.function import Function
from ..errors import GradientError
from ..functions.creation.constructors import tril, triu
from ..functions.elementwise import op_functions as ew
from ..functions.products.matrix_products import matmul
from ..functions.shape.copies import concat
from ..functions.variants import into
from ..ops.host_routines import CHOLESKY, LU, QR, SVD, SVDVALS, HostCall
from ..tensor.operands import Array
from ..tensor.tensor import Tensor
from . import lapack, small
from .eigenvalues import inverse_differences
from .matrices import (
    adjoint,
    as_column,
    as_row,
    hermitian_part,
    identity,
    matrices,
    right_sides,
    same_batch,
    square,
    without_column,
)
from .triangular import solved

__all__ = ["cholesky", "lu", "lu_solve", "qr", "svd", "svdvals"]


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LUResult(NamedTuple):
    """What `lu` gives."""

    P: Tensor
    L: Tensor
    U: Tensor


# --- Cholesky -------------------------------------------------------------------------------------


class _Cholesky(Function):
    """Source of the gradient: Murray, Differentiation of the Cholesky decomposition, 2016."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        if small.fits(a):
            made = small.cholesky(a)
            made = lapack.checked(HostCall("cholesky", CHOLESKY, checks=True), made, a)
        else:
            (made,) = lapack.call("cholesky", CHOLESKY, a)
        ctx.save_for_backward(made)
        return made

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (low,) = ctx.saved_tensors
        inner = _halved(adjoint(low) @ tril(g))
        for _ in range(2):
            inner = solved("cholesky", low, adjoint(inner), upper=False, turned=True)
        return hermitian_part(inner)


def _halved(x: Tensor) -> Tensor:
    """The lower triangle with half of the diagonal."""
    return tril(x) - x * identity(x.shape[-1], x) * 0.5


@into(widen=False)
def cholesky(x: Tensor, /, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangular L of Hermitian, positive definite matrices: `L @ conj(L).mT`.

    `upper`: whether to give the upper triangular U instead, so that they are `conj(U).mT @ U`. Only
    that triangle of x is looked at; the gradient is spread over both, and Hermitian.
    Shapes: (..., n, n) gives the same.
    Dtypes: float32, float64 and complex.
    Raises: LinAlgError, with its place, for a matrix that is not positive definite; ShapeError
    unless they are square, DTypeError.

    >>> import dovetail as dt
    >>> dt.linalg.cholesky(dt.asarray([[4.0, 2.0], [2.0, 2.0]], device="reference")).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    x = square("cholesky", x)
    if flag("cholesky", upper, "upper"):
        return adjoint(_Cholesky.apply(adjoint(x)))
    return _Cholesky.apply(x)


# --- QR -------------------------------------------------------------------------------------------

Mode = Literal["reduced", "complete"]


class _QR(Function):
    """Source of the gradient: Roberts and Roberts, QR and LQ backpropagation, 2020."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, mode: Mode) -> tuple[Tensor, ...]:
        q, r = lapack.call("qr", QR, a, options=(mode,))
        ctx.save_for_backward(q, r, a)
        return q, r

    @staticmethod
    def backward(ctx: Any, of_q: Tensor, of_r: Tensor) -> tuple[Tensor | None, ...]:
        q, r, a = ctx.saved_tensors
        rows, columns = a.shape[-2:]
        if q.shape[-1] > columns:
            raise GradientError('qr: mode="complete" of more rows than columns has no gradient')
        if rows >= columns:
            return _qr_gradient(q, r, of_q, of_r), None
        left, right = of_r[..., :rows], of_r[..., rows:]
        of_q = of_q + a[..., rows:] @ adjoint(right)
        return concat([_qr_gradient(q, r[..., :rows], of_q, left), q @ right], axis=-1), None


def _qr_gradient(q: Tensor, r: Tensor, of_q: Tensor, of_r: Tensor) -> Tensor:
    """Of at least as many rows as columns."""
    inner = r @ adjoint(triu(of_r)) - adjoint(of_q) @ q
    inner = hermitian_part(tril(inner) + adjoint(tril(inner, k=-1)))
    return adjoint(solved("qr", r, adjoint(of_q + q @ inner), upper=True))


@into(widen=False)
def qr(x: Tensor, /, *, mode: Mode = "reduced", out: Sequence[Tensor] | None = None) -> QRResult:
    """Matrices with orthonormal columns and upper triangular ones whose products `Q @ R` are x.

    `mode`: "reduced" for as many columns of Q as x has rows or columns; "complete" for a square Q.
    Signs are LAPACK's; the diagonal of R is real.
    Shapes: (..., m, n) gives (..., m, k) and (..., k, n); k is min(m, n), or m.
    Dtypes: float32, float64 and complex.
    Raises: ShapeError, DTypeError, ArgumentError for another mode; of the gradient, LinAlgError
    where the first columns depend on each other, and GradientError for "complete" where m > n.

    >>> import dovetail as dt
    >>> q, r = dt.linalg.qr(dt.asarray([[0.0, 2.0], [1.0, 3.0]], device="reference"))
    >>> dt.allclose(q @ r, [[0.0, 2.0], [1.0, 3.0]])
    True
    """
    mode = choice("qr", mode, "mode", ("reduced", "complete"))
    return QRResult(*_QR.apply(matrices("qr", x), mode))


# --- singular values ------------------------------------------------------------------------------


class _SVD(Function):
    """Source of the gradient: Townsend, Differentiating the singular value decomposition, 2016."""

    @staticmethod
    def forward(ctx: Any, name: str, a: Tensor, full: bool) -> tuple[Tensor, ...]:
        made = lapack.call(name, SVD, a, options=(full,))
        ctx.save_for_backward(*made)
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        u, s, vh = ctx.saved_tensors
        if u.shape[-1] != s.shape[-1] or vh.shape[-2] != s.shape[-1]:
            raise GradientError("svd: give full_matrices=False: the others have no gradient")
        return None, _svd_gradient(u, s, vh, *gradients), None


def _svd_gradient(
    u: Tensor, s: Tensor, vh: Tensor, of_u: Tensor, of_s: Tensor, of_vh: Tensor
) -> Tensor:
    v, of_v, squares = adjoint(vh), adjoint(of_vh), s * s
    apart = inverse_differences(squares, squares)
    left = adjoint(u) @ of_u
    right = vh @ of_v
    inner = apart * (left - adjoint(left)) * as_row(s) + as_column(s) * (
        apart * (right - adjoint(right))
    )
    inner = inner + as_row(of_s) * identity(s.shape[-1], s)
    zero = ew.equal(s, 0)
    inverse = as_row(ew.where(zero, 0.0, 1 / ew.where(zero, 1.0, s)))
    if left.dtype.kind == "c":  # where phases turn: those of both vectors turn together
        inner = inner + (left - adjoint(left)) * identity(s.shape[-1], s) * inverse * 0.5
    found = u @ inner @ vh
    if u.shape[-2] > s.shape[-1]:
        found = found + (of_u - u @ left) * inverse @ vh
    if v.shape[-2] > s.shape[-1]:
        found = found + u @ adjoint((of_v - v @ right) * inverse)
    return found


@into(widen=False)
def svd(
    x: Tensor, /, *, full_matrices: bool = True, out: Sequence[Tensor] | None = None
) -> SVDResult:
    """The singular value decomposition: x is `U @ diag(S) @ Vh`, with S descending.

    `full_matrices`: whether U and Vh are square. Where one of them then is larger than x asks for,
    there is no gradient. That of vectors is right for what does not depend on their signs or
    phases.
    Shapes: (..., m, n) gives (..., m, m), (..., k) and (..., n, n), k being min(m, n); unless full,
    (..., m, k), (..., k) and (..., k, n).
    Dtypes: float32, float64 and complex; S is real.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0.0, 2.0], [1.0, 0.0]], device="reference")
    >>> dt.linalg.svd(x).S.tolist()
    [2.0, 1.0]
    """
    full = flag("svd", full_matrices, "full_matrices")
    return SVDResult(*_SVD.apply("svd", matrices("svd", x), full))


@into(widen=False)
def svdvals(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """The singular values of matrices, descending; see `svd`.

    Shapes: (..., m, n) gives (..., min(m, n)).
    Dtypes: float32, float64 and complex; the result is real.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.linalg.svdvals(dt.asarray([[0.0, 2.0], [1.0, 0.0]], device="reference")).tolist()
    [2.0, 1.0]
    """
    x = matrices("svdvals", x)
    if x.requires_grad:
        return _SVD.apply("svdvals", x, False)[1]
    return lapack.call("svdvals", SVDVALS, x)[0]


# --- LU -------------------------------------------------------------------------------------------


class _LU(Function):
    """The gradient is that of the square block; what lies beside it is solved for by the other."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, ...]:
        p, low, up = lapack.call("lu", LU, a)
        ctx.save_for_backward(p, low, up)
        ctx.mark_non_differentiable(p)
        return p, low, up

    @staticmethod
    def backward(ctx: Any, _: Tensor, of_low: Tensor, of_up: Tensor) -> Tensor:
        p, low, up = ctx.saved_tensors
        k = up.shape[-2]
        first, last = low[..., :k, :], up[..., :k]

        def after_last(x: Tensor) -> Tensor:
            return adjoint(solved("lu", last, adjoint(x), upper=True))

        def before_first(x: Tensor) -> Tensor:
            return solved("lu", first, x, upper=False, unit=True, turned=True)

        of_first, of_last, parts = of_low[..., :k, :], of_up[..., :k], []
        if low.shape[-2] > k:
            below = after_last(of_low[..., k:, :])
            of_last = of_last - adjoint(low[..., k:, :]) @ below
            parts.append(below)
        if up.shape[-1] > k:
            beside = before_first(of_up[..., k:])
            of_first = of_first - beside @ adjoint(up[..., k:])
        inner = tril(adjoint(first) @ of_first, k=-1) + triu(of_last @ adjoint(last))
        found = after_last(before_first(inner))
        if parts:
            found = concat([found, *parts], axis=-2)
        elif up.shape[-1] > k:
            found = concat([found, beside], axis=-1)
        return matmul(p, found)


@into(widen=False)
def lu(x: Tensor, /, *, out: Sequence[Tensor] | None = None) -> LUResult:
    """The factors of Gauss' elimination with partial pivoting: x is `P @ L @ U`.

    P is a permutation, L lower triangular with ones on its diagonal, U upper triangular.
    Shapes: (..., m, n) gives (..., m, m), (..., m, k) and (..., k, n), k being min(m, n).
    Dtypes: float32, float64 and complex.
    Raises: ShapeError, DTypeError; of the gradient, LinAlgError where the first columns depend on
    each other.

    >>> import dovetail as dt
    >>> p, low, up = dt.linalg.lu(dt.asarray([[1.0, 2.0], [2.0, 2.0]], device="reference"))
    >>> p.tolist(), low.tolist(), up.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 2.0], [0.0, 1.0]])
    """
    return LUResult(*_LU.apply(matrices("lu", x)))


@into(widen=False)
def lu_solve(
    lu: LUResult | tuple[Tensor, Tensor, Tensor], x2: Array, /, *, out: Tensor | None = None
) -> Tensor:
    """The solutions x of `a @ x = x2`, given the factors of a.

    `lu`: what `dt.linalg.lu` gives of square matrices.
    Shapes: as those of `solve`.
    Dtypes: float32, float64 and complex, promoted.
    Raises: LinAlgError, with its place, for a singular matrix; ArgumentTypeError for what are no
    three factors; ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1.0, 2.0], [2.0, 2.0]], device="reference")
    >>> b = dt.asarray([5.0, 6.0], device="reference")
    >>> dt.linalg.lu_solve(dt.linalg.lu(a), b).tolist()
    [1.0, 2.0]
    """
    if len(sequence("lu_solve", lu, "lu", "three factors")) != 3:
        raise refused("lu_solve", "lu", "three factors", lu)
    p, low, up = (square("lu_solve", part) for part in lu)
    up, b, vector = right_sides("lu_solve", up, x2)
    low, b = same_batch("lu_solve", low, matmul(adjoint(p), b))
    b = solved("lu_solve", low, b, upper=False, unit=True)
    return without_column(solved("lu_solve", up, b, upper=True), vector)
