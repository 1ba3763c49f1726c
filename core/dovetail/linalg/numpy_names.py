"""The implementation of `np.linalg.*` for tensors: NumPy's names and parameters.

A function that is missing here raises a TypeError that names the alternative, as everywhere in
`functions.numpy.protocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..argument_checks import choice, exclusive
from ..dtypes import int32
from ..functions.creation.constructors import zeros
from ..functions.datatypes import cast
from ..functions.elementwise import op_functions as ew
from ..functions.reductions.statistics import count_nonzero
from ..functions.shape.manipulation import reshape
from ..tensor.promotion import ARRAY_TYPES, Array, as_operand, as_tensors
from ..tensor.tensor import Tensor
from ..tensor.writes import write_out
from . import eigenvalues, factors, least_squares, matrix_functions, norms, solving
from .least_squares import Threshold
from .matrix_checks import adjoint
from .norms import Order

Function: TypeAlias = Callable[..., object]


def _eigh(a: Tensor, UPLO: str = "L") -> eigenvalues.EighResult:
    """Return `np.linalg.eigh` for the chosen triangle."""
    return eigenvalues.eigh(_select_lower("eigh", a, UPLO))


def _eigvalsh(a: Tensor, UPLO: str = "L") -> Tensor:
    """Return `np.linalg.eigvalsh` for the chosen triangle."""
    return eigenvalues.eigvalsh(_select_lower("eigvalsh", a, UPLO))


def _select_lower(name: str, a: Tensor, triangle: str) -> Tensor:
    """Return `a` for "L" or "l", its adjoint for "U" or "u". Raises: ArgumentError for others."""
    uplo = triangle.upper() if isinstance(triangle, str) else triangle
    return a if choice(name, uplo, "UPLO", ("L", "U")) == "L" else adjoint(a)


def _svd(
    a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> factors.SVDResult | Tensor:
    """Return `np.linalg.svd`: factors, or values only; `hermitian` changes nothing."""
    return factors.svd(a, full_matrices=full_matrices) if compute_uv else factors.svdvals(a)


def _qr(a: Tensor, mode: str = "reduced") -> factors.QRResult | Tensor:
    """Return `np.linalg.qr`; R alone for mode "r". Raises: ArgumentError for mode "raw"."""
    if mode == "r":
        return factors.qr(a).R
    return factors.qr(a, mode=choice("qr", mode, "mode", ("reduced", "complete")))


def _pinv(
    a: Tensor, rcond: Threshold = None, hermitian: bool = False, *, rtol: Threshold = None
) -> Tensor:
    """Return `np.linalg.pinv`; `hermitian` changes nothing; rcond and rtol exclude each other."""
    exclusive("pinv", rcond=rcond, rtol=rtol)
    return least_squares.pinv(a, rtol=rcond if rtol is None else rtol)


def _matrix_rank(
    A: Tensor, tol: Threshold = None, hermitian: bool = False, *, rtol: Threshold = None
) -> Tensor:
    """Return `np.linalg.matrix_rank`; `tol` is absolute. Raises: ArgumentError for tol and rtol."""
    exclusive("matrix_rank", tol=tol, rtol=rtol)
    if A.ndim < 2:
        return ew.minimum(count_nonzero(A), 1)
    if tol is None:
        return least_squares.matrix_rank(A, rtol=rtol, hermitian=hermitian)
    if isinstance(tol, (*ARRAY_TYPES, np.generic)):
        tol = as_operand("matrix_rank", tol, (A,))
    least = reshape(tol, (*tol.shape, 1)) if isinstance(tol, Tensor) else tol
    values = ew.abs(eigenvalues.eigvalsh(A)) if hermitian else factors.svdvals(A)
    return count_nonzero(ew.greater(values, least), axis=-1)


def _lstsq(a: Array, b: Array, rcond: float | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return `np.linalg.lstsq`; the host reads the rank to decide whether there are residuals.

    There are no residuals unless the rank is full and there are more rows than columns.
    """
    a, b = as_tensors("lstsq", a, b)
    rcond = None if rcond is not None and rcond < 0 else rcond
    solution, residuals, rank, values = least_squares.lstsq(a, b, rcond)
    if a.shape[0] > a.shape[1] == rank.item():
        residuals = reshape(residuals, (-1,))
    else:
        residuals = zeros(0, dtype=residuals.dtype, device=residuals.device)
    return solution, residuals, cast(rank, int32), values  # LAPACK's integers, as in NumPy


def _cond(x: Tensor, p: Order | None = None) -> Tensor:
    """Return `np.linalg.cond`."""
    return least_squares.cond(x, ord=p)


def _multi_dot(arrays: Sequence[Array], *, out: Tensor | None = None) -> Tensor:
    """Return `np.linalg.multi_dot` of tensors and arrays; write it to `out` if given."""
    product = matrix_functions.multi_dot(as_tensors("multi_dot", *arrays))
    return product if out is None else write_out("multi_dot", out, product)


_ADAPTED_FUNCTIONS: dict[str, Function] = {
    "cholesky": factors.cholesky,
    "cond": _cond,
    "cross": matrix_functions.cross,
    "det": solving.det,
    "eig": eigenvalues.eig,
    "eigh": _eigh,
    "eigvals": eigenvalues.eigvals,
    "eigvalsh": _eigvalsh,
    "inv": solving.inv,
    "lstsq": _lstsq,
    "matrix_norm": norms.matrix_norm,
    "matrix_power": matrix_functions.matrix_power,
    "matrix_rank": _matrix_rank,
    "multi_dot": _multi_dot,
    "norm": norms.norm,
    "pinv": _pinv,
    "qr": _qr,
    "slogdet": solving.slogdet,
    "solve": solving.solve,
    "svd": _svd,
    "svdvals": factors.svdvals,
    "trace": matrix_functions.trace,
    "vector_norm": norms.vector_norm,
}
LINALG_FUNCTIONS: dict[object, Function] = {  # the installed NumPy may lack some
    getattr(np.linalg, name): ours
    for name, ours in _ADAPTED_FUNCTIONS.items()
    if hasattr(np.linalg, name)
}
