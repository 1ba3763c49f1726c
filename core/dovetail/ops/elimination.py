"""LU factors and triangular equations on the host, by SciPy if it is installed.

NumPy has no routine for them. Without SciPy this module does the elimination, and solves triangular
equations as general ones.
"""

from __future__ import annotations

import math

import numpy as np


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P, L and U of matrices `a` (..., m, n), with a = P @ L @ U; P has the dtype of `a`."""
    try:
        import scipy.linalg
    except ImportError:
        return lu_by_columns(a)
    if not a.size:  # for which SciPy gives other shapes
        return lu_by_columns(a)
    p, low, up = scipy.linalg.lu(a, check_finite=False)
    return p.astype(a.dtype), low, up


def lu_by_columns(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same factors as `lu`, by elimination column by column in all matrices."""
    m, n = a.shape[-2:]
    k = min(m, n)
    flat: np.ndarray = np.array(a, copy=True).reshape(math.prod(a.shape[:-2]), m, n)
    rows = _eliminate(flat).reshape(a.shape[:-1])
    packed = flat.reshape(a.shape)
    low = np.tril(packed[..., :k], -1) + np.eye(m, k, dtype=a.dtype)
    order = rows[..., None, :] == np.arange(m)[:, None]
    return order.astype(a.dtype), low, np.triu(packed[..., :k, :])


def _eliminate(a: np.ndarray) -> np.ndarray:
    """Replace (b, m, n) matrices by packed LU factors; return the row order of each: (b, m)."""
    b, m, n = a.shape
    rows, each = np.tile(np.arange(m), (b, 1)), np.arange(b)
    for j in range(min(m, n)):
        pivot = np.argmax(np.abs(a[:, j:, j].real) + np.abs(a[:, j:, j].imag), -1) + j  # LAPACK's
        for of in (a, rows):
            of[each, j], of[each, pivot] = of[each, pivot], of[each, j]
        divisor = np.where(a[:, j, j] == 0, 1, a[:, j, j])
        a[:, j + 1 :, j] /= divisor[:, None]
        a[:, j + 1 :, j + 1 :] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 :]
    return rows


def solve_triangular(
    a: np.ndarray, b: np.ndarray, upper: bool, unit: bool, adjoint: bool
) -> np.ndarray:
    """Solve triangular (batch, n, n) equations. Raises: LinAlgError if a matrix is singular."""
    try:
        from scipy.linalg import get_lapack_funcs
    except ImportError:
        return solve_as_general(a, b, upper, unit, adjoint)
    (trtrs,) = get_lapack_funcs(("trtrs",), (a, b))
    solutions = np.empty_like(b, order="C")
    for x, matrix, right in zip(solutions, a, b, strict=True) if b.size else ():
        right = right.conj() if adjoint else right  # Fortran reads the transpose
        x[:], info = trtrs(matrix.T, right, lower=upper, trans=int(not adjoint), unitdiag=unit)
        if info:
            raise np.linalg.LinAlgError
    return solutions.conj() if adjoint else solutions


def solve_as_general(
    a: np.ndarray, b: np.ndarray, upper: bool, unit: bool, adjoint: bool
) -> np.ndarray:
    """Solve the equations of `solve_triangular` by NumPy's general solver."""
    a = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    a = a + np.eye(a.shape[-1], dtype=a.dtype) if unit else a
    return np.linalg.solve(a.conj().mT if adjoint else a, b)
