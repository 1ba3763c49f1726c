"""Determinants, inverses and linear equations.

LAPACK solves them on the host, for every device; nothing is copied if the device shares its memory
with the host. Real matrices of up to 32 rows, one or many, are solved by generated
kernels on the device, whose last bits differ from LAPACK's. Work that may fail is computed at once,
so that the error comes from the user's line, and names the matrix; in a captured function, at
replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..autograd.function import Function
from ..functions.elementwise import op_functions as ew
from ..functions.products.matrix_products import conjugate, matmul
from ..functions.reductions.statistics import sum as sum_
from ..functions.variants import public
from ..ops.host_routines import (
    COFACTORS,
    DETERMINANT,
    INVERSE,
    INVERSE_OR_NAN,
    LOG_DETERMINANT,
    SOLVE,
    HostCall,
)
from ..tensor.c_fields import expr_of
from ..tensor.other_layouts import call_along, has_rule
from ..tensor.promotion import Array, as_tensors
from ..tensor.tensor import Tensor
from . import lapack, unrolled_matrices
from .matrix_checks import (
    adjoint,
    as_scalars,
    extend_to_layouts_of_matrices,
    right_sides,
    square,
    without_column,
)

__all__ = ["det", "inv", "slogdet", "solve"]


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


# --- values without gradients ---------------------------------------------------------------------


def _solve(name: str, a: Tensor, b: Tensor) -> Tensor:
    """Return the solutions. Raises: LinAlgError if `a` is singular."""
    if unrolled_matrices.has_kernel(a, b.shape[-1]):
        solution = unrolled_matrices.solve(a, b)
        return lapack.verify_result(HostCall(name, SOLVE, (), True), solution, a, b)
    return lapack.call_routine(name, SOLVE, a, b)[0]


def _invert(name: str, a: Tensor) -> Tensor:
    """Return the inverses. Raises: LinAlgError for a singular matrix."""
    if unrolled_matrices.has_kernel(a):
        inverse = unrolled_matrices.inverse(a)
        return lapack.verify_result(HostCall(name, INVERSE, (), True), inverse, a)
    return lapack.call_routine(name, INVERSE, a)[0]


def _determinant(a: Tensor) -> Tensor:
    """Return the determinants, by a kernel for small real matrices, else by LAPACK."""
    if unrolled_matrices.has_kernel(a):
        return unrolled_matrices.determinant(a)
    return lapack.call_routine("det", DETERMINANT, a)[0]


# --- functions with gradients ---------------------------------------------------------------------


class _Solve(Function):
    """The solutions of linear equations, with a gradient."""

    @staticmethod
    def forward(ctx: Any, name: str, a: Tensor, b: Tensor) -> Tensor:
        """Return the solutions, and save them and `a`. Raises: LinAlgError if `a` is singular."""
        solution = _solve(name, a, b)
        ctx.name = name
        ctx.save_for_backward(a, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        """Return None, and the gradients of `a` and `b`."""
        a, x = ctx.saved_tensors
        of_b = solve_as(ctx.name, adjoint(a), g)
        return None, -(of_b @ adjoint(x)), of_b


class _Inverse(Function):
    """The inverse, with a gradient."""

    @staticmethod
    def forward(ctx: Any, name: str, a: Tensor) -> Tensor:
        """Return the inverses, and save them. Raises: LinAlgError for a singular matrix."""
        inverse = _invert(name, a)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        """Return None, and the gradient of `a`."""
        (x,) = ctx.saved_tensors
        return None, -matmul(matmul(adjoint(x), g), adjoint(x))


class _Determinant(Function):
    """The determinant, with a gradient also for singular matrices."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        """Return determinants, by a kernel for small real matrices, else by LAPACK; save `a`."""
        ctx.save_for_backward(a)
        return _determinant(a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        """Return the gradient of `a` from the cofactors, also for singular matrices."""
        (a,) = ctx.saved_tensors
        return as_scalars(g) * conjugate(_Cofactors.apply(a))


class _Cofactors(Function):
    """The cofactor matrix, the derivative of the determinant, also of singular matrices."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        """Return the cofactors, by LAPACK for singular matrices; save them and `a`."""
        fits = unrolled_matrices.has_kernel(a)
        inverse = (
            unrolled_matrices.inverse(a)
            if fits
            else lapack.call_routine("det", INVERSE_OR_NAN, a)[0]
        )
        cofactors = as_scalars(_Determinant.apply(a)) * inverse.mT
        host = HostCall("det", INVERSE, checks_results=True, fallback=COFACTORS)
        cofactors = lapack.verify_result(host, inverse, a, target=cofactors)
        ctx.save_for_backward(a, cofactors)
        return cofactors

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        """Return the gradient of `a`. Raises: LinAlgError for a singular matrix."""
        a, c = ctx.saved_tensors
        x, c = adjoint(invert_as("det", a)), conjugate(c)
        return as_scalars(sum_(g * c, axis=(-2, -1))) * x - matmul(matmul(c, g.mT), x)


class _LogDeterminant(Function):
    """The sign and the logarithm of a determinant, with a gradient of regular matrices."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, ...]:
        """Return signs and logarithms from LAPACK; save `a` and the sign, constant if real."""
        sign, logabsdet = lapack.call_routine("slogdet", LOG_DETERMINANT, a)
        if a.dtype.kind == "f":
            ctx.mark_non_differentiable(sign)
        ctx.save_for_backward(a, sign)
        return sign, logabsdet

    @staticmethod
    def backward(ctx: Any, grad_sign: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of `a`. Raises: LinAlgError for a singular matrix."""
        a, sign = ctx.saved_tensors
        if a.dtype.kind == "c":  # the sign's phase is the imaginary part of the logarithm
            phase = conjugate(sign) * grad_sign
            g = g + (phase - ew.real(phase))
        return as_scalars(g) * adjoint(invert_as("slogdet", a))


def invert_as(name: str, a: Tensor) -> Tensor:
    """Return the inverses of checked square matrices. Raises: LinAlgError, which names `name`."""
    if expr_of(a).tape is None:
        return _invert(name, a)
    inverse: Tensor = _Inverse.apply(name, a)
    return inverse


def solve_as(name: str, a: Tensor, b: Tensor) -> Tensor:
    """Return solutions of `a @ x = b`, checked before. Raises: LinAlgError, which names `name`."""
    if expr_of(a).tape is None and expr_of(b).tape is None:
        return _solve(name, a, b)
    solution: Tensor = _Solve.apply(name, a, b)
    return solution


# --- public ---------------------------------------------------------------------------------------


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def det(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the determinants of square matrices.

    Shapes: (..., n, n) gives (...); of n = 0 it is 1.
    Dtypes: float32, float64 and complex.
    Gradient: that of a singular matrix too, by its singular values.
    Raises: ShapeError unless they are square, DTypeError.
    See also: `linalg.slogdet`, `logdet`, `linalg.inv`.

    >>> import dovetail as dt
    >>> dt.linalg.det(dt.asarray([[2.0, 0.0], [1.0, 3.0]])).item()
    6.0
    """
    a = square("det", x)
    return _determinant(a) if expr_of(a).tape is None else _Determinant.apply(a)


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def slogdet(x: Tensor, /, *, out: Sequence[Tensor] | None = None) -> SlogdetResult:
    """Return the signs of determinants and the logarithms of their absolute values.

    Of a singular matrix these are 0 and -inf; of a complex one the sign is of length 1.

    Shapes: (..., n, n) gives (...) twice.
    Dtypes: float32, float64 and complex; the logarithm is real.
    Raises: ShapeError unless they are square, DTypeError; of the gradient, LinAlgError where a
    matrix is singular.
    See also: `linalg.det`, `logdet`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0.0, 1.0], [1.0, 0.0]])
    >>> sign, logabsdet = dt.linalg.slogdet(x)
    >>> sign.item(), logabsdet.item()
    (-1.0, 0.0)
    """
    sign, logabsdet = _LogDeterminant.apply(square("slogdet", x))
    return SlogdetResult(sign, logabsdet)


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def inv(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the inverses of square matrices.

    Shapes: (..., n, n) gives the same.
    Dtypes: float32, float64 and complex.
    Raises: LinAlgError, with its place, for a singular matrix; ShapeError unless they are square,
    DTypeError.
    See also: `linalg.solve`, which is faster and more exact, `linalg.pinv`.

    >>> import dovetail as dt
    >>> dt.linalg.inv(dt.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return invert_as("inv", square("inv", x))


@public(out=True, widen=False)
def solve(x1: Array, x2: Array, /, *, out: Tensor | None = None) -> Tensor:
    """Return the solutions x of the equations `x1 @ x = x2`, with one exact solution each.

    Shapes: (..., n, n) and (..., n, k) give (..., n, k), the axes before them broadcast; (n,) as x2
    is one vector, and gives (..., n).
    Dtypes: float32, float64 and complex, promoted.
    Raises: LinAlgError, with its place, for a singular matrix; ShapeError, DTypeError, DeviceError.
    See also: `linalg.lstsq`, `linalg.lu`, `linalg.solve_triangular`, `linalg.inv`.

    >>> import dovetail as dt
    >>> a = dt.asarray([[2.0, 0.0], [1.0, 4.0]])
    >>> dt.linalg.solve(a, dt.asarray([2.0, 9.0])).tolist()
    [1.0, 2.0]
    """
    if has_rule(x1, "along") or has_rule(x2, "along"):
        return _solve_in_layout(*as_tensors("solve", x1, x2))
    a, b, vector = right_sides("solve", x1, x2)
    square("solve", a)
    return without_column(solve_as("solve", a, b), vector)


def _solve_in_layout(a: Tensor, b: Tensor) -> Tensor:
    """Return the solutions of tensors of another layout, by its rule "along"."""
    is_vector = b.ndim == 1
    columns = b[:, None] if is_vector else b
    ndim = max(a.ndim, columns.ndim)
    a, columns = (x[(*[None] * (ndim - x.ndim), ...)] for x in (a, columns))
    result: Tensor = call_along("solve", solve, (a, columns), (ndim - 2, ndim - 1))
    return result[..., 0] if is_vector else result
