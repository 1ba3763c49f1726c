"""Unrolled kernels for batches of small matrices; each grid point computes one matrix.

The elimination is unrolled, so that a matrix is in registers and neighbours are lanes of a vector;
rows are exchanged by `where`. Such kernels have the same bits on every device. 100,000 matrices of
4 x 4 in float32 are inverted in 1.3 ms by the cpu's two threads, where NumPy takes 167.

A result is checked where it can fail: a pivot of 0 leaves elements that are not finite. LAPACK then
runs on the matrices, and its error is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..dtypes import int64
from ..ir.language import Value, const, eq, fma, sqrt, where
from ..layout import Shape
from ..ops.arithmetic import absolute
from ..ops.dtype_rules import same
from ..ops.kernel_context import KernelSite
from ..ops.table import Op
from ..tensor.other_layouts import make_node
from ..tensor.tensor import Tensor
from . import looped_matrices

UNROLLED_ROWS_MAX = (
    6  # rows: LLVM takes 0.9 s for the inverse of 6 x 6, and 2.5 s for that of 8 x 8
)
# rows; matrices of more than UNROLLED_ROWS_MAX rows use the kernels of `looped`
KERNEL_ROWS_MAX = 32

Rows: TypeAlias = list[list[Value]]


def has_kernel(x: Tensor, columns: int = 1) -> bool:
    """Return True if a kernel handles square matrices like `x` with so many right-hand columns."""
    return (
        x.dtype.kind == "f"
        and 0 < x.shape[-1] <= KERNEL_ROWS_MAX
        and 0 < columns <= KERNEL_ROWS_MAX
    )


# --- kernels --------------------------------------------------------------------------------------


def _declare_batch_axes(site: KernelSite, axes: int) -> list[Value]:
    """Add the grid axes of all dimensions but the last `axes`; return their indices."""
    return [site.axis(-1, d) for d in range(site.rank(-1) - axes)]


def _read_rows(site: KernelSite, operand: int, batch: list[Value], shape: Shape) -> Rows:
    """Return the elements of an operand's matrix, as rows of IR values."""
    rows, columns = shape[:2]
    return [
        [site.read(operand, *batch, _index_const(i), _index_const(j)) for j in range(columns)]
        for i in range(rows)
    ]


def _index_const(i: int) -> Value:
    """Return a constant index."""
    return const(i, int64)


def _eliminate(rows: Rows, n: int) -> Value | None:
    """Run Gaussian elimination in place on `rows`, with partial pivoting.

    Return True if the number of row exchanges is odd, or None of one row. Rows may be longer than
    n.
    Source: Golub and Van Loan, Matrix Computations, algorithm 3.4.1.
    """
    odd: Value | None = None
    for k in range(n):
        for i in range(k + 1, n):
            exchange = absolute(rows[k][k]) < absolute(rows[i][k])
            _exchange(rows[k], rows[i], k, exchange)
            odd = exchange if odd is None else odd ^ exchange
        for i in range(k + 1, n):
            # A pivot of 0 is the largest of its column: all elements below are 0, too.
            factor = where(eq(rows[k][k], 0.0), 0.0, -(rows[i][k] / rows[k][k]))
            for j in range(k + 1, len(rows[i])):
                rows[i][j] = fma(factor, rows[k][j], rows[i][j])
    return odd


def _exchange(a: list[Value], b: list[Value], start: int, condition: Value) -> None:
    """Exchange two rows in place from column `start` on, where the condition holds."""
    for j in range(start, len(a)):
        a[j], b[j] = where(condition, b[j], a[j]), where(condition, a[j], b[j])


def _store_solutions(site: KernelSite, batch: list[Value], rows: Rows, n: int) -> None:
    """Add stores of the right-hand columns solved with the triangle, last row first."""
    for j in range(n, len(rows[0])):
        solution: dict[int, Value] = {}
        for i in reversed(range(n)):
            total = rows[i][j]
            for k in range(i + 1, n):
                total = fma(-rows[i][k], solution[k], total)
            solution[i] = total / rows[i][i]
            site.store(solution[i], *batch, _index_const(i), _index_const(j - n))


def _build_solve(site: KernelSite) -> None:
    """Build the kernel that solves equations. attrs: (rows, right-hand columns)."""
    n, columns = site.attrs
    batch, rows = _declare_batch_axes(site, 2), []
    right = _read_rows(site, 1, batch, (n, columns))
    for row, more in zip(_read_rows(site, 0, batch, (n, n)), right, strict=True):
        rows.append(row + more)
    _eliminate(rows, n)
    _store_solutions(site, batch, rows, n)


def _build_inverse(site: KernelSite) -> None:
    """Build the kernel that inverts. attrs: rows."""
    n, batch, dtype = site.attrs, _declare_batch_axes(site, 2), site.casts[0]
    rows = _read_rows(site, 0, batch, (n, n))
    for i, row in enumerate(rows):
        row += [const(float(i == j), dtype) for j in range(n)]
    _eliminate(rows, n)
    _store_solutions(site, batch, rows, n)


def _build_determinant(site: KernelSite) -> None:
    """Build the kernel that computes determinants. attrs: rows."""
    n, batch = site.attrs, _declare_batch_axes(site, 0)
    rows = _read_rows(site, 0, batch, (n, n))
    odd = _eliminate(rows, n)
    product = rows[0][0]
    for k in range(1, n):
        product = product * rows[k][k]
    site.store(product if odd is None else where(odd, -product, product), *batch)


def _build_cholesky(site: KernelSite) -> None:
    """Build the Cholesky kernel; it reads the lower triangle. A pivot <= 0 becomes NaN."""
    n, batch, dtype = site.attrs, _declare_batch_axes(site, 2), site.casts[0]
    low: dict[tuple[int, int], Value] = {}
    for j in range(n):
        for i in range(j, n):
            total = site.read(0, *batch, _index_const(i), _index_const(j))
            for k in range(j):
                total = fma(-low[i, k], low[j, k], total)
            pivot = where(const(0, dtype) < total, total, float("nan"))
            low[i, j] = sqrt(pivot) if i == j else total / low[j, j]
            site.store(low[i, j], *batch, _index_const(i), _index_const(j))
            if i > j:
                site.store(const(0, dtype), *batch, _index_const(j), _index_const(i))


def _make_op(name: str, build: Callable[[KernelSite], None], arity: int = 1) -> Op:
    """Return an op of float matrices with any batch axes; it is not put into the table."""
    return Op(name, "kernel", same("f"), build=build, many="front", arity=arity)


def _build_triangular(site: KernelSite) -> None:
    """Build the kernel that solves triangular equations.

    attrs: (rows, right-hand columns, upper, unit diagonal, transposed).
    """
    n, columns, upper, unit, transposed = site.attrs
    batch = _declare_batch_axes(site, 2)

    def element(i: int, j: int) -> Value:
        """Return element (i, j) of the triangle or of its transpose."""
        return (
            site.read(0, *batch, _index_const(j), _index_const(i))
            if transposed
            else site.read(0, *batch, _index_const(i), _index_const(j))
        )

    rows = range(n) if upper == transposed else range(n - 1, -1, -1)
    for j in range(columns):
        solution: dict[int, Value] = {}
        for i in rows:
            total = site.read(1, *batch, _index_const(i), _index_const(j))
            for k, value in solution.items():
                total = fma(-element(i, k), value, total)
            solution[i] = total if unit else total / element(i, i)
            site.store(solution[i], *batch, _index_const(i), _index_const(j))


SOLVE = _make_op("solve_small", _build_solve, 2)
TRIANGULAR = _make_op("solve_triangular_small", _build_triangular, 2)
INVERSE = _make_op("inverse_small", _build_inverse)
DETERMINANT = _make_op("determinant_small", _build_determinant)
CHOLESKY = _make_op("cholesky_small", _build_cholesky)

# --- as tensors -----------------------------------------------------------------------------------


def _is_looped(a: Tensor, *b: Tensor) -> bool:
    """Return True if a matrix has too many columns for unrolled code."""
    return any(x.shape[-1] > UNROLLED_ROWS_MAX for x in (a, *b))


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Return the pending solutions of `a @ x = b`; singular matrices are not detected."""
    if _is_looped(a, b):
        return looped_matrices.run_looped(looped_matrices.SOLVE, (a, b), b.shape)
    return make_node(SOLVE, (a, b), b.shape, a.dtype, (a.shape[-1], b.shape[-1]))


def solve_triangular(a: Tensor, b: Tensor, upper: bool, unit: bool, transposed: bool) -> Tensor:
    """Return pending solutions for a real triangle, or its transpose; zeros are not detected."""
    if _is_looped(a, b):
        return looped_matrices.run_looped(
            looped_matrices.TRIANGULAR, (a, b), b.shape, (upper, unit, transposed)
        )
    attrs = a.shape[-1], b.shape[-1], upper, unit, transposed
    return make_node(TRIANGULAR, (a, b), b.shape, a.dtype, attrs)


def inverse(a: Tensor) -> Tensor:
    """Return pending inverses; singular matrices are not detected."""
    if _is_looped(a):
        return looped_matrices.run_looped(looped_matrices.INVERSE, (a,), a.shape)
    return make_node(INVERSE, (a,), a.shape, a.dtype, a.shape[-1])


def determinant(a: Tensor) -> Tensor:
    """Return the pending determinants of matrices that `fits` accepts."""
    if _is_looped(a):
        return looped_matrices.run_looped(looped_matrices.DETERMINANT, (a,), a.shape[:-2])
    return make_node(DETERMINANT, (a,), a.shape[:-2], a.dtype, a.shape[-1])


def cholesky(a: Tensor) -> Tensor:
    """Return pending lower factors; a matrix that is not positive definite gives NaN."""
    if _is_looped(a):
        return looped_matrices.run_looped(looped_matrices.CHOLESKY, (a,), a.shape)
    return make_node(CHOLESKY, (a,), a.shape, a.dtype, a.shape[-1])
