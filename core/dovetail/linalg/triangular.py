"""Equations with triangular matrices; their work grows with the square of n, not the cube."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..argument_checks import flag
from ..autograd.function import Function
from ..engine import tracer_api
from ..errors import ArgumentError, ShapeError
from ..functions.creation.constructors import tril, triu
from ..functions.elementwise import op_functions as ew
from ..functions.reductions.statistics import all as all_
from ..functions.variants import public
from ..ops.host_routines import TRIANGULAR, HostCall
from ..tensor.promotion import Array, as_tensors
from ..tensor.tensor import Tensor
from . import lapack, unrolled_matrices
from .matrix_checks import adjoint, right_sides, square, without_column

__all__ = ["cholesky_solve", "solve_triangular"]


class _Triangular(Function):
    """Solutions of triangular equations; `transposed`: with the adjoint of the triangle."""

    @staticmethod
    def forward(
        ctx: Any, name: str, a: Tensor, b: Tensor, upper: bool, unit: bool, transposed: bool
    ) -> Tensor:
        """Return solutions, and save them and `a`. Raises: LinAlgError for a 0 on the diagonal."""
        attrs = upper, unit, transposed
        if unrolled_matrices.has_kernel(a, b.shape[-1]):
            solution = unrolled_matrices.solve_triangular(a, b, *attrs)
            solution = lapack.verify_result(
                HostCall(name, TRIANGULAR, attrs, checks_results=True), solution, a, b
            )
        else:
            (solution,) = lapack.call_routine(name, TRIANGULAR, a, b, options=attrs)
        ctx.save_for_backward(a, solution)
        ctx.how = name, upper, unit, transposed
        return solution

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `a` (its triangle only) and `b`, and None for the others."""
        (a, x), (name, upper, unit, transposed) = ctx.saved_tensors, ctx.how
        of_b = _Triangular.apply(name, a, g, upper, unit, not transposed)
        of_a = x @ adjoint(of_b) if transposed else of_b @ adjoint(x)
        of_a = triu(of_a, k=int(unit)) if upper else tril(of_a, k=-int(unit))
        return None, -of_a, of_b, None, None, None


def solve_triangle(
    name: str, a: Tensor, b: Tensor, *, upper: bool, unit: bool = False, transposed: bool = False
) -> Tensor:
    """Return solutions for a triangle of checked matrices, or its adjoint.

    Raises: LinAlgError for a 0 on the diagonal.
    """
    return _Triangular.apply(name, a, b, upper, unit, transposed)


@public(out=True, widen=False)
def solve_triangular(
    x1: Array, x2: Array, /, *, upper: bool, unit_diagonal: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the solutions x of `x1 @ x = x2` for triangular x1.

    The other triangle of x1 is not read.

    - `upper`: True for the upper triangle; required.
    - `unit_diagonal`: True takes the diagonal to be ones.

    Shapes: as those of `solve`.
    Dtypes: float32, float64 and complex, promoted.
    Raises: LinAlgError for a 0 on the diagonal; ShapeError, DTypeError, DeviceError.
    See also: `linalg.solve`, `linalg.cholesky_solve`.

    >>> import dovetail as dt
    >>> a = dt.asarray([[2.0, 7.0], [1.0, 4.0]])
    >>> b = dt.asarray([2.0, 9.0])
    >>> dt.linalg.solve_triangular(a, b, upper=False).tolist()
    [1.0, 2.0]
    """
    upper = flag("solve_triangular", upper, "upper")
    unit = flag("solve_triangular", unit_diagonal, "unit_diagonal")
    a, b, vector = right_sides("solve_triangular", x1, x2)
    square("solve_triangular", a)
    return without_column(solve_triangle("solve_triangular", a, b, upper=upper, unit=unit), vector)


@public(out=True, widen=False)
def cholesky_solve(
    b: Array, factor: Array, /, *, upper: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the solutions x of `a @ x = b`, given the Cholesky factor of a, which comes second.

    The order is PyTorch's.

    - `b`: the right-hand sides.
    - `factor`: the Cholesky factor of a; the other triangle is not used.
    - `upper`: True if it is the upper factor.

    Shapes: (..., n, k) and (..., n, n) give (..., n, k), the axes before them broadcast; (n,) as b
    is one vector, and gives (..., n).
    Dtypes: float32, float64 and complex, promoted.
    Raises: LinAlgError for a 0 on the diagonal; ShapeError where the factor is not square,
    ArgumentError where b is triangular and the factor is not; DTypeError, DeviceError.
    See also: `linalg.cholesky`, `linalg.solve`.

    >>> import dovetail as dt
    >>> factor = dt.linalg.cholesky(dt.asarray([[4.0, 0.0], [0.0, 1.0]]))
    >>> b = dt.asarray([4.0, 3.0])
    >>> dt.linalg.cholesky_solve(b, factor).tolist()
    [1.0, 3.0]
    """
    upper = flag("cholesky_solve", upper, "upper")
    b, factor = as_tensors("cholesky_solve", b, factor)
    if factor.ndim < 2 or factor.shape[-1] != factor.shape[-2]:
        raise ShapeError(
            f"cholesky_solve: the factor must be square, got shape {factor.shape}; it comes "
            f"second, after b, which has shape {b.shape}"
        )
    a, b, vector = right_sides("cholesky_solve", factor, b)
    if a.shape == b.shape and tracer_api.current() is None:
        _require_order(a, b, upper)
    for transposed in (upper, not upper):
        b = solve_triangle("cholesky_solve", a, b, upper=upper, transposed=transposed)
    return without_column(b, vector)


def _require_order(factor: Tensor, b: Tensor, upper: bool) -> None:
    """Raise ArgumentError if b is triangular and the factor is not; read both on the host."""
    keep, other = (triu, tril) if upper else (tril, triu)

    def is_kept(triangle: Callable[[Tensor], Tensor], x: Tensor) -> bool:
        """Return True if a triangle has all of x's non-zero elements."""
        return bool(all_(ew.equal(triangle(x), x)))

    if is_kept(keep, b) and not is_kept(other, b) and not is_kept(keep, factor):
        raise ArgumentError(
            "cholesky_solve: b is triangular and the factor is not; write "
            "cholesky_solve(b, factor), as in PyTorch"
        )
