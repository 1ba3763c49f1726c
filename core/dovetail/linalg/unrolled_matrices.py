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

UNROLLED = 6  # rows: LLVM takes 0.9 s for the inverse of 6 x 6, and 2.5 s for that of 8 x 8
LARGEST = 32  # rows; matrices of more than UNROLLED rows use the kernels of `looped`

Rows: TypeAlias = list[list[Value]]


def fits(x: Tensor, columns: int = 1) -> bool:
    """Return True if these kernels handle such matrices; it depends on the size of one alone."""
    return x.dtype.kind == "f" and 0 < x.shape[-1] <= LARGEST and 0 < columns <= LARGEST


# --- kernels --------------------------------------------------------------------------------------


def _batch(site: KernelSite, axes: int) -> list[Value]:
    """Return the batch indices of the grid point."""
    return [site.axis(-1, d) for d in range(site.rank(-1) - axes)]


def _read(site: KernelSite, operand: int, batch: list[Value], shape: Shape) -> Rows:
    rows, columns = shape[:2]
    return [
        [site.read(operand, *batch, _at(i), _at(j)) for j in range(columns)] for i in range(rows)
    ]


def _at(i: int) -> Value:
    return const(i, int64)


def _eliminate(rows: Rows, n: int) -> Value | None:
    """Run Gaussian elimination in place, with partial pivoting.

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


def _exchange(a: list[Value], b: list[Value], start: int, when: Value) -> None:
    for j in range(start, len(a)):
        a[j], b[j] = where(when, b[j], a[j]), where(when, a[j], b[j])


def _store_solutions(site: KernelSite, batch: list[Value], rows: Rows, n: int) -> None:
    """Divide the right-hand columns by the triangle, last row first, and store them."""
    for j in range(n, len(rows[0])):
        solution: dict[int, Value] = {}
        for i in reversed(range(n)):
            total = rows[i][j]
            for k in range(i + 1, n):
                total = fma(-rows[i][k], solution[k], total)
            solution[i] = total / rows[i][i]
            site.store(solution[i], *batch, _at(i), _at(j - n))


def _solve(site: KernelSite) -> None:
    """Build the kernel that solves equations. attrs: (rows, right-hand columns)."""
    n, columns = site.attrs
    batch, rows = _batch(site, 2), []
    right = _read(site, 1, batch, (n, columns))
    for row, more in zip(_read(site, 0, batch, (n, n)), right, strict=True):
        rows.append(row + more)
    _eliminate(rows, n)
    _store_solutions(site, batch, rows, n)


def _inverse(site: KernelSite) -> None:
    n, batch, dtype = site.attrs, _batch(site, 2), site.casts[0]
    rows = _read(site, 0, batch, (n, n))
    for i, row in enumerate(rows):
        row += [const(float(i == j), dtype) for j in range(n)]
    _eliminate(rows, n)
    _store_solutions(site, batch, rows, n)


def _determinant(site: KernelSite) -> None:
    n, batch = site.attrs, _batch(site, 0)
    rows = _read(site, 0, batch, (n, n))
    odd = _eliminate(rows, n)
    product = rows[0][0]
    for k in range(1, n):
        product = product * rows[k][k]
    site.store(product if odd is None else where(odd, -product, product), *batch)


def _cholesky(site: KernelSite) -> None:
    """Build the Cholesky kernel; it reads the lower triangle. A pivot <= 0 becomes NaN."""
    n, batch, dtype = site.attrs, _batch(site, 2), site.casts[0]
    low: dict[tuple[int, int], Value] = {}
    for j in range(n):
        for i in range(j, n):
            total = site.read(0, *batch, _at(i), _at(j))
            for k in range(j):
                total = fma(-low[i, k], low[j, k], total)
            pivot = where(const(0, dtype) < total, total, float("nan"))
            low[i, j] = sqrt(pivot) if i == j else total / low[j, j]
            site.store(low[i, j], *batch, _at(i), _at(j))
            if i > j:
                site.store(const(0, dtype), *batch, _at(j), _at(i))


def _row(name: str, build: Callable[[KernelSite], None], arity: int = 1) -> Op:
    return Op(name, "kernel", same("f"), build=build, many="front", arity=arity)


def _triangular(site: KernelSite) -> None:
    """Build the kernel that divides by a triangle.

    attrs: (rows, right-hand columns, upper, unit diagonal, transposed).
    """
    n, columns, upper, unit, transposed = site.attrs
    batch = _batch(site, 2)

    def element(i: int, j: int) -> Value:
        return (
            site.read(0, *batch, _at(j), _at(i))
            if transposed
            else site.read(0, *batch, _at(i), _at(j))
        )

    rows = range(n) if upper == transposed else range(n - 1, -1, -1)
    for j in range(columns):
        solution: dict[int, Value] = {}
        for i in rows:
            total = site.read(1, *batch, _at(i), _at(j))
            for k, value in solution.items():
                total = fma(-element(i, k), value, total)
            solution[i] = total if unit else total / element(i, i)
            site.store(solution[i], *batch, _at(i), _at(j))


SOLVE = _row("solve_small", _solve, 2)
TRIANGULAR = _row("solve_triangular_small", _triangular, 2)
INVERSE = _row("inverse_small", _inverse)
DETERMINANT = _row("determinant_small", _determinant)
CHOLESKY = _row("cholesky_small", _cholesky)

# --- as tensors -----------------------------------------------------------------------------------


def _is_looped(a: Tensor, *b: Tensor) -> bool:
    return max(x.shape[-1] for x in (a, *b)) > UNROLLED


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Return solutions, unchecked."""
    if _is_looped(a, b):
        return looped_matrices.run_looped(looped_matrices.SOLVE, (a, b), b.shape)
    return make_node(SOLVE, (a, b), b.shape, a.dtype, (a.shape[-1], b.shape[-1]))


def solve_triangular(a: Tensor, b: Tensor, upper: bool, unit: bool, transposed: bool) -> Tensor:
    """Return solutions for a real triangle, or for its transpose, unchecked."""
    if _is_looped(a, b):
        return looped_matrices.run_looped(
            looped_matrices.TRIANGULAR, (a, b), b.shape, (upper, unit, transposed)
        )
    attrs = a.shape[-1], b.shape[-1], upper, unit, transposed
    return make_node(TRIANGULAR, (a, b), b.shape, a.dtype, attrs)


def inverse(a: Tensor) -> Tensor:
    """Return inverses, unchecked."""
    if _is_looped(a):
        return looped_matrices.run_looped(looped_matrices.INVERSE, (a,), a.shape)
    return make_node(INVERSE, (a,), a.shape, a.dtype, a.shape[-1])


def determinant(a: Tensor) -> Tensor:
    """Return determinants."""
    if _is_looped(a):
        return looped_matrices.run_looped(looped_matrices.DETERMINANT, (a,), a.shape[:-2])
    return make_node(DETERMINANT, (a,), a.shape[:-2], a.dtype, a.shape[-1])


def cholesky(a: Tensor) -> Tensor:
    """Return lower triangles, unchecked."""
    if _is_looped(a):
        return looped_matrices.run_looped(looped_matrices.CHOLESKY, (a,), a.shape)
    return make_node(CHOLESKY, (a,), a.shape, a.dtype, a.shape[-1])
