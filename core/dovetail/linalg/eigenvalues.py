"""Eigenvalues and eigenvectors of Hermitian matrices and of any square ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..autograd.function import Function
from ..functions.elementwise import op_functions as ew
from ..functions.products.matrix_products import conjugate, diagonal
from ..functions.variants import public
from ..ops.host_routines import EIG, EIGH, EIGVALS, EIGVALSH
from ..tensor.tensor import Tensor
from . import lapack
from .matrix_checks import (
    adjoint,
    as_column,
    as_row,
    extend_to_layouts_of_matrices,
    hermitian_part,
    identity,
    square,
)
from .solving import solve_as

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


# --- of Hermitian matrices ------------------------------------------------------------------------


class _Eigh(Function):
    """Eigenvalues and vectors of Hermitian matrices, with a gradient.

    Source of the gradient: Giles, Collected matrix derivative results, 2008, section 3.1.
    """

    @staticmethod
    def forward(ctx: Any, name: str, a: Tensor) -> tuple[Tensor, ...]:
        """Return eigenvalues and vectors from LAPACK, and save both for the backward pass."""
        w, v = lapack.call_routine(name, EIGH, a)
        ctx.save_for_backward(w, v)
        return w, v

    @staticmethod
    def backward(ctx: Any, grad_w: Tensor, grad_v: Tensor) -> tuple[Tensor | None, ...]:
        """Return None for `name`, and the gradient of `a`, which is Hermitian."""
        w, v = ctx.saved_tensors
        inner = adjoint(v) @ grad_v * inverse_differences(w, w)
        inner = inner + as_row(grad_w) * identity(w.shape[-1], w)
        return None, hermitian_part(v @ inner @ adjoint(v))


def inverse_differences(columns: Tensor, rows: Tensor) -> Tensor:
    """Return the matrices 1 / (columns[j] - rows[i]), with 0 where both are equal.

    A result that does not depend on the choice of vectors has no gradient between equal values.
    """
    differences = as_row(columns) - as_column(rows)
    same = ew.equal(differences, 0)
    return ew.where(same, 0.0, 1 / ew.where(same, 1.0, differences))


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def eigh(x: Tensor, /, *, out: Sequence[Tensor] | None = None) -> EighResult:
    """Return the eigenvalues of Hermitian matrices, ascending, and their vectors, as columns.

    Real ones are symmetric. Only the lower triangle is read; the gradient is spread over both, and
    Hermitian. The gradient of vectors is right for what does not depend on their signs or phases,
    nor on their choice for equal values.

    Shapes: (..., n, n) gives (..., n) and (..., n, n).
    Dtypes: float32, float64 and complex; the eigenvalues are real.
    Cost: LAPACK on the host.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError unless they
    are square, DTypeError.
    See also: `linalg.eigvalsh`, `linalg.eig`, `linalg.svd`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[2.0, 0.0], [0.0, 1.0]])
    >>> dt.linalg.eigh(x).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return EighResult(*_Eigh.apply("eigh", square("eigh", x)))


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def eigvalsh(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, ascending; see `eigh`.

    Shapes: (..., n, n) gives (..., n).
    Dtypes: float32, float64 and complex; the result is real.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError unless they
    are square, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[2.0, 1.0], [1.0, 2.0]])
    >>> dt.allclose(dt.linalg.eigvalsh(x), [1.0, 3.0])
    True
    """
    x = square("eigvalsh", x)
    if x.requires_grad:
        return _Eigh.apply("eigvalsh", x)[0]
    return lapack.call_routine("eigvalsh", EIGVALSH, x)[0]


# --- of any square matrices -----------------------------------------------------------------------


class _Eig(Function):
    """Eigenvalues and vectors of square matrices, with a gradient.

    Source of the gradient: Boeddeker et al., Complex gradients of eigenvectors, 2017, (4.77).
    """

    @staticmethod
    def forward(ctx: Any, name: str, a: Tensor) -> tuple[Tensor, ...]:
        """Return complex eigenvalues and vectors from LAPACK, and save both for `backward`."""
        w, v = lapack.call_routine(name, EIG, a)
        ctx.save_for_backward(w, v)
        ctx.name, ctx.real = name, a.dtype.kind == "f"
        return w, v

    @staticmethod
    def backward(ctx: Any, grad_w: Tensor, grad_v: Tensor) -> tuple[Tensor | None, ...]:
        """Return None and the gradient of `a`. Raises: LinAlgError for dependent vectors."""
        w, v = ctx.saved_tensors
        unit, adjoint_v = identity(w.shape[-1], w), adjoint(v)
        inner = adjoint_v @ grad_v
        inner = inner - adjoint_v @ v * as_row(ew.real(diagonal(inner)))  # vectors have length 1
        inner = inner * conjugate(inverse_differences(w, w)) + as_row(grad_w) * unit
        gradient = solve_as(ctx.name, adjoint_v, inner @ adjoint_v)
        return None, ew.real(gradient) if ctx.real else gradient


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def eig(x: Tensor, /, *, out: Sequence[Tensor] | None = None) -> EigResult:
    """Return the eigenvalues of square matrices, in no order, and their vectors, as unit columns.

    The gradient of vectors is right for what does not depend on their phases. Where the vectors are
    linearly dependent nothing has a gradient: it is huge, or a LinAlgError.

    Shapes: (..., n, n) gives (..., n) and (..., n, n).
    Dtypes: float32, float64 and complex; the results are complex.
    Cost: LAPACK on the host.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError unless they
    are square, DTypeError.
    See also: `linalg.eigvals`, `linalg.eigh`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0.0, -1.0], [1.0, 0.0]])
    >>> dt.linalg.eig(x).eigenvalues.tolist()
    [1j, -1j]
    """
    return EigResult(*_Eig.apply("eig", square("eig", x)))


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def eigvals(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of square matrices, in no order; see `eig`.

    Shapes: (..., n, n) gives (..., n).
    Dtypes: float32, float64 and complex; the result is complex.
    Raises: LinAlgError, with its place, for a matrix with NaN or infinity; ShapeError unless they
    are square, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[2.0, 1.0], [0.0, 3.0]])
    >>> dt.linalg.eigvals(x).tolist()
    [(2+0j), (3+0j)]
    """
    x = square("eigvals", x)
    if x.requires_grad:
        return _Eig.apply("eigvals", x)[0]
    return lapack.call_routine("eigvals", EIGVALS, x)[0]
