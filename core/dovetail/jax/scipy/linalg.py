"""The functions of `jax.scipy.linalg`."""

from __future__ import annotations

from typing import Any

import dovetail as dt

from ..dtype_config import as_tensor
from ..lookup import make_module_dir, make_module_getattr, table

__all__ = ["cho_factor", "cho_solve", "cholesky", "solve_triangular"]

_NAMES = {name: f"linalg.{name}" for name in table("block_diag det eigh expm inv qr solve svd")}
__getattr__ = make_module_getattr(globals(), _NAMES)
__dir__ = make_module_dir(globals(), _NAMES)


def cholesky(a: Any, lower: bool = False) -> dt.Tensor:
    """Return the triangular factor of a positive definite matrix, by default the upper one.

    - `a`: the matrix.
    - `lower`: True returns the lower factor.

    >>> import dovetail.jax as jax
    >>> jax.scipy.linalg.cholesky(4 * jax.numpy.eye(2)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    return dt.linalg.cholesky(as_tensor(a), upper=not lower)


def cho_factor(a: Any, lower: bool = False) -> tuple[dt.Tensor, bool]:
    """Return the factor of `cholesky` and `lower`, for `cho_solve`.

    - `a`: a positive definite matrix.
    - `lower`: True computes the lower factor.

    >>> import dovetail.jax as jax
    >>> jax.scipy.linalg.cho_factor(jax.numpy.eye(1), lower=True)[1]
    True
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> dt.Tensor:
    """Return the solution of `a @ x = b` by the Cholesky factor of a.

    - `c_and_lower`: the factor, and True if it is the lower one; see `cho_factor`.
    - `b`: a vector, or a matrix of columns.

    >>> import dovetail.jax as jax
    >>> jax.scipy.linalg.cho_solve((2 * jax.numpy.eye(2), True), jax.numpy.ones(2)).tolist()
    [0.25, 0.25]
    """
    factor, lower = c_and_lower
    return dt.linalg.cholesky_solve(as_tensor(b), as_tensor(factor), upper=not lower)


def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> dt.Tensor:
    """Return the solution of `a @ x = b` for a triangular matrix.

    - `a`: the matrix, of which one triangle is read.
    - `b`: a vector, or a matrix of columns.
    - `trans`: 1 or "T" solves with the transpose, 2 or "C" with its conjugate.
    - `lower`: True reads the lower triangle.
    - `unit_diagonal`: True takes 1 for the elements on the diagonal.

    >>> import dovetail.jax as jax
    >>> jax.scipy.linalg.solve_triangular(2 * jax.numpy.eye(2), jax.numpy.ones(2)).tolist()
    [0.5, 0.5]
    """
    a, b = as_tensor(a), as_tensor(b)
    if trans not in (0, "N"):
        a, lower = (a.mT if trans in (1, "T") else dt.conj(a).mT), not lower
    columns = b[..., None] if b.ndim == 1 else b
    x = dt.linalg.solve_triangular(a, columns, upper=not lower, unit_diagonal=unit_diagonal)
    return x[..., 0] if b.ndim == 1 else x
