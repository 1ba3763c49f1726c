"""Batches of small matrices: generated kernels, in which each grid point does one matrix.

The elimination is unrolled, so that a matrix is in registers and neighbours are lanes of a vector;
rows are exchanged by `where`. Such kernels have the same bits on every device. 100,000 matrices of
4 x 4 in float32 are inverted in 1.3 ms by the cpu's two threads, where NumPy takes 167.

What a kernel gives is checked where it can fail: a pivot of 0 leaves something that is not finite,
and what LAPACK says of such a matrix is the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..dtypes import int64
from ..layout import Shape
from ..loops.language import Value, const, eq, fma, sqrt, where
from ..ops.arithmetic import absolute
from ..ops.dtype_rules import same
from ..ops.site import KernelSite
from ..ops.table import Op
from ..tensor.other_layouts import make_node
from ..tensor.tensor import Tensor
from . import looped

UNROLLED = 6  # rows: LLVM takes 0.9 s for the inverse of 6 x 6, and 2.5 s for that of 8 x 8
LARGEST = 32  # rows, those above 6 by the kernels of `looped`

Rows: TypeAlias = list[list[Value]]


def fits(x: Tensor, columns: int = 1) -> bool:
    """Return True if these kernels are for such matrices; it depends on the size of one alone."""
    return x.dtype.kind == "f" and 0 < x.shape[-1] <= LARGEST and 0 < columns <= LARGEST


# --- kernels --------------------------------------------------------------------------------------


def _batch(site: KernelSite, axes: int) -> list[Value]:
    """The point's place in the batch."""
    return [site.axis(-1, d) for d in range(site.rank(-1) - axes)]


def _read(site: KernelSite, operand: int, batch: list[Value], shape: Shape) -> Rows:
    rows, columns = shape[:2]
    return [
        [site.read(operand, *batch, _at(i), _at(j)) for j in range(columns)] for i in range(rows)
    ]


def _at(i: int) -> Value:
    return const(i, int64)


def _eliminate(rows: Rows, n: int) -> Value | None:
    """Gauss' elimination in place, with partial pivoting. Whether rows were exchanged oddly often.

    Rows may be longer than n. Source: Golub and Van Loan, Matrix Computations, algorithm 3.4.1.
    """
    odd: Value | None = None
    for k in range(n):
        for i in range(k + 1, n):
            exchange = absolute(rows[k][k]) < absolute(rows[i][k])
            _exchange(rows[k], rows[i], k, exchange)
            odd = exchange if odd is None else odd ^ exchange
        for i in range(k + 1, n):
            factor = where(eq(rows[k][k], 0.0), 0.0, -(rows[i][k] / rows[k][k]))  # all below are 0
            for j in range(k + 1, len(rows[i])):
                rows[i][j] = fma(factor, rows[k][j], rows[i][j])
    return odd


def _exchange(a: list[Value], b: list[Value], start: int, when: Value) -> None:
    for j in range(start, len(a)):
        a[j], b[j] = where(when, b[j], a[j]), where(when, a[j], b[j])


def _store_solutions(site: KernelSite, batch: list[Value], rows: Rows, n: int) -> None:
    """What stands right of a triangle in n columns, divided by it from the last row on."""
    for j in range(n, len(rows[0])):
        found: dict[int, Value] = {}
        for i in reversed(range(n)):
            total = rows[i][j]
            for k in range(i + 1, n):
                total = fma(-rows[i][k], found[k], total)
            found[i] = total / rows[i][i]
            site.store(found[i], *batch, _at(i), _at(j - n))


def _solve(site: KernelSite) -> None:
    """attrs: (rows, columns on the right)."""
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
    found = rows[0][0]
    for k in range(1, n):
        found = found * rows[k][k]
    site.store(found if odd is None else where(odd, -found, found), *batch)


def _cholesky(site: KernelSite) -> None:
    """Reads the lower triangle. A pivot that is not positive becomes NaN."""
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
    """attrs: (rows, columns on the right, upper, unit diagonal, whether it is transposed)."""
    n, columns, upper, unit, turned = site.attrs
    batch = _batch(site, 2)

    def element(i: int, j: int) -> Value:
        return (
            site.read(0, *batch, _at(j), _at(i)) if turned else site.read(0, *batch, _at(i), _at(j))
        )

    rows = range(n) if upper == turned else range(n - 1, -1, -1)
    for j in range(columns):
        found: dict[int, Value] = {}
        for i in rows:
            total = site.read(1, *batch, _at(i), _at(j))
            for k, known in found.items():
                total = fma(-element(i, k), known, total)
            found[i] = total if unit else total / element(i, i)
            site.store(found[i], *batch, _at(i), _at(j))


SOLVE = _row("solve_small", _solve, 2)
TRIANGULAR = _row("solve_triangular_small", _triangular, 2)
INVERSE = _row("inverse_small", _inverse)
DETERMINANT = _row("determinant_small", _determinant)
CHOLESKY = _row("cholesky_small", _cholesky)

# --- as tensors -----------------------------------------------------------------------------------


def _is_looped(a: Tensor, *b: Tensor) -> bool:
    return max(x.shape[-1] for x in (a, *b)) > UNROLLED


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Solutions, unchecked."""
    if _is_looped(a, b):
        return looped.made(looped.SOLVE, (a, b), b.shape)
    return make_node(SOLVE, (a, b), b.shape, a.dtype, (a.shape[-1], b.shape[-1]))


def solve_triangular(a: Tensor, b: Tensor, upper: bool, unit: bool, turned: bool) -> Tensor:
    """Solutions for a triangle of real matrices, or for that transposed, unchecked."""
    if _is_looped(a, b):
        return looped.made(looped.TRIANGULAR, (a, b), b.shape, (upper, unit, turned))
    how = a.shape[-1], b.shape[-1], upper, unit, turned
    return make_node(TRIANGULAR, (a, b), b.shape, a.dtype, how)


def inverse(a: Tensor) -> Tensor:
    """Inverses, unchecked."""
    if _is_looped(a):
        return looped.made(looped.INVERSE, (a,), a.shape)
    return make_node(INVERSE, (a,), a.shape, a.dtype, a.shape[-1])


def determinant(a: Tensor) -> Tensor:
    """Determinants."""
    if _is_looped(a):
        return looped.made(looped.DETERMINANT, (a,), a.shape[:-2])
    return make_node(DETERMINANT, (a,), a.shape[:-2], a.dtype, a.shape[-1])


def cholesky(a: Tensor) -> Tensor:
    """Lower triangles, unchecked."""
    if _is_looped(a):
        return looped.made(looped.CHOLESKY, (a,), a.shape)
    return make_node(CHOLESKY, (a,), a.shape, a.dtype, a.shape[-1])
