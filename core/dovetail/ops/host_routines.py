"""Routines of the host for batches of matrices: LAPACK's, which NumPy and SciPy call.

A row of the table says what a routine computes, how it fails, and which shapes and dtypes its
results have. So a function can be captured without running it, and a file can name a routine.
NumPy's errors do not name the matrix: errors of this module do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..argument_checks import host_memory
from ..dtypes import DType, complex64, promote
from ..errors import LinAlgError
from ..layout import Shape
from . import elimination

RoutineFunction: TypeAlias = Callable[..., "np.ndarray | tuple[np.ndarray, ...]"]
ResultTypes: TypeAlias = "tuple[tuple[Shape, DType], ...]"


class Failure:
    """The message of a routine's failure: what is wrong with the matrix, and a way out."""

    def __init__(self, problem: str, advice: str) -> None:
        self.problem, self.advice = problem, advice

    def error(self, name: str, at: tuple[int, ...], matrix: np.ndarray) -> LinAlgError:
        """Return the error, for the caller to raise, of one matrix at an index of the batch."""
        wrong, way_out = self.problem, self.advice
        if not np.isfinite(matrix).all():
            wrong, way_out = "has NaN or infinite elements", "check it with dt.isfinite"
        return LinAlgError(f"{name}: the matrix{_format_batch_index(at)} {wrong}; {way_out}")


def _format_batch_index(at: tuple[int, ...]) -> str:
    """Return the index of a matrix for an error message; "" without a batch."""
    return f" at {list(at)} of the batch" if at else ""


SINGULAR = Failure("is singular", "use dt.linalg.pinv or dt.linalg.lstsq")
INDEFINITE = Failure("is not positive definite", "use dt.linalg.eigh")
NOT_CONVERGED = Failure("did not converge in LAPACK's iteration", "scale it or use float64")


class HostRoutine(NamedTuple):
    """A routine of the host: how it runs, how it fails, and what its results look like.

    `run` takes arrays (batch, rows, columns), then the options. `results` returns the shape behind
    the batch and the dtype of each result; it takes the dtype, the rows and the columns of the
    first operand, the columns of the last one, and the options.
    """

    name: str
    failure: Failure
    run: RoutineFunction
    results: Callable[..., ResultTypes]


class HostCall(NamedTuple):
    """A routine with its options, on behalf of the public function `name`.

    `checks_results`: the call checks results that a kernel has computed, and gives nothing if the
    routine would not fail. Its operands are then True if all results are finite, the results, and
    the operands of the routine. `fallback`: of a check, the routine for the matrices at which the
    checked one fails; the operand after the results has the values of all others.
    """

    name: str
    routine: HostRoutine
    options: tuple[Any, ...] = ()
    checks_results: bool = False
    fallback: HostRoutine | None = None

    def results(self, operands: Sequence[tuple[Shape, DType]]) -> list[tuple[Shape, DType]]:
        """Return the shape and the dtype of each result, from those of the operands."""
        if self.checks_results:
            return [] if self.fallback is None else [operands[2]]
        (shape, dtype), columns = operands[0], operands[-1][0][-1]
        own_results = self.routine.results(dtype, *shape[-2:], columns, *self.options)
        return [(shape[:-2] + own, d) for own, d in own_results]

    def __call__(self, operands: Iterable[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the results. Operands are read one by one: a check mostly needs the first alone.

        Raises: LinAlgError, with the place in the batch.
        """
        read = iter(operands)
        if not self.checks_results:
            return self._run_batch([*read])
        if next(read):
            return ()
        computed, *arrays = read
        return self._check(computed, arrays)

    def _run(self, arrays: Sequence[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the routine on one batch axis. Raises: NumPy's LinAlgError, OutOfMemoryError."""
        try:
            with np.errstate(all="ignore"):
                return self.routine.run(*arrays, *self.options)
        except MemoryError:
            with host_memory(f"{self.name}: what LAPACK makes of shape {arrays[0].shape}"):
                raise

    def _run_batch(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Run the routine with the batch as one axis. Raises: LinAlgError with the batch index."""
        batch = arrays[0].shape[:-2]
        rows = [a.reshape(math.prod(batch), *a.shape[-2:]) for a in arrays]
        try:
            results = self._run(rows)
        except np.linalg.LinAlgError:
            first = self._first_refused(rows)
            at = tuple(map(int, np.unravel_index(first, batch))) if batch else ()
            raise self.routine.failure.error(self.name, at, rows[0][first]) from None
        every = results if isinstance(results, tuple) else (results,)
        return tuple([a.reshape((*batch, *a.shape[1:])) for a in every])

    def _refuses(self, arrays: Sequence[np.ndarray]) -> bool:
        """Return True if the routine raises LinAlgError for one of the matrices."""
        try:
            self._run(arrays)
        except np.linalg.LinAlgError:
            return True
        return False

    def _first_refused(self, arrays: Sequence[np.ndarray]) -> int:
        """Return the index of the first matrix that the routine refuses, by bisection."""
        low, high = 0, len(arrays[0])
        while high - low > 1:
            middle = (low + high) // 2
            if self._refuses([a[low:middle] for a in arrays]):
                high = middle
            else:
                low = middle
        return low

    def _check(self, computed: np.ndarray, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Run LAPACK on the matrices with non-finite results; return ().

        With `fallback`, return the values with that routine's in place of those refused, if any.
        Raises: LinAlgError if LAPACK refuses a matrix and there is no `fallback`.
        """
        bad = ~np.isfinite(computed).all(axis=(-2, -1))
        values, matrices = None, arrays if self.fallback is None else arrays[1:]
        for at in map(tuple, np.argwhere(bad).tolist()):
            refused = [a[at][None] for a in matrices]
            if self._refuses(refused):
                if self.fallback is None:
                    raise self.routine.failure.error(self.name, at, matrices[0][at])
                values = arrays[0].copy() if values is None else values
                values[at] = HostCall(self.name, self.fallback)(refused)[0][0]
        return () if values is None else (values,)


# --- routines of NumPy and SciPy ------------------------------------------------------------------


def _numpy_routine(name: str) -> RoutineFunction:
    """Return a function that calls np.linalg's `name`; several results are a plain tuple."""

    def run(*arrays: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """Call the routine; return its results as a plain tuple if there are several."""
        results: np.ndarray | tuple[np.ndarray, ...] = getattr(np.linalg, name)(*arrays)
        return tuple(results) if isinstance(results, tuple) else results

    return run


def _reject_nonfinite(run: RoutineFunction) -> RoutineFunction:
    """Return a routine that raises LinAlgError if its first array has NaN or infinity.

    LAPACK may never end with them.
    """

    @wraps(run)
    def run_if_finite(*arrays: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the routine. Raises: NumPy's LinAlgError if the first array is not finite."""
        if not np.isfinite(arrays[0]).all():
            raise np.linalg.LinAlgError
        return run(*arrays)

    return run_if_finite


def _cholesky(a: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor. Raises: LinAlgError if not positive definite, or not finite.

    Such an element of a row reaches the diagonal of the factor, so that only diagonals are checked.
    To look at all of a matrix of 1000 x 1000 would take a twentieth of the time.
    """
    factor = np.linalg.cholesky(a)
    for x in (a, factor):  # both: LAPACK reads only the real part of the diagonal
        if not np.isfinite(np.diagonal(x, axis1=-2, axis2=-1)).all():
            raise np.linalg.LinAlgError
    return factor


def _inverse_or_nan(a: np.ndarray) -> np.ndarray:
    """Return inverses, and NaN for each matrix that LAPACK refuses."""
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        inverses = np.full_like(a, np.nan)
        for at in np.ndindex(a.shape[:-2]):
            with suppress(np.linalg.LinAlgError):
                inverses[at] = np.linalg.inv(a[at])
        return inverses


def _cofactors(a: np.ndarray) -> np.ndarray:
    """Return the cofactor matrix from the singular values; it exists for singular matrices, too."""
    u, s, vh = np.linalg.svd(a.conj())
    n = s.shape[-1]
    other_products = np.where(np.eye(n, dtype=bool), s.dtype.type(1), s[..., None, :]).prod(-1)
    determinant_phase = (np.linalg.det(u) * np.linalg.det(vh)).conj()
    cofactors: np.ndarray = determinant_phase[..., None, None] * (
        (u * other_products[..., None, :]) @ vh
    )
    return cofactors


def _pseudo_inverse(a: np.ndarray, *relative_cutoff: Any) -> np.ndarray:
    """Return the pseudoinverse.

    relative_cutoff: of the largest singular value, from which other values count; a number, or
        (batch, 1, 1).
    """
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    (cutoff,) = relative_cutoff
    largest = s.max(-1, keepdims=True, initial=0)
    is_large = s > (cutoff[..., 0] if isinstance(cutoff, np.ndarray) else cutoff) * largest
    inverse = np.where(is_large, 1 / np.where(is_large, s, 1), 0).astype(s.dtype)
    inverse_matrix: np.ndarray = np.matmul(vh.mT.conj() * inverse[..., None, :], u.mT.conj())
    return inverse_matrix


def _as_complex(a: np.ndarray) -> np.ndarray:
    """Return an array as complex, of at least complex64.

    NumPy gives real ones if all eigenvalues of a real matrix are real.
    """
    return a.astype(np.result_type(a.dtype, np.complex64), copy=False)


# --- the table ------------------------------------------------------------------------------------


def _like_first(d: DType, m: int, n: int, k: int, *options: Any) -> ResultTypes:
    """Return the shape and dtype of the first operand as those of the result."""
    return (((m, n), d),)


def _like_last(d: DType, m: int, n: int, k: int, *options: Any) -> ResultTypes:
    """Return the shape and dtype of a solution: the columns of the last operand."""
    return (((m, k), d),)


def _qr_results(d: DType, m: int, n: int, k: int, mode: str) -> ResultTypes:
    """Return the shapes and dtypes of Q and R."""
    inner = m if mode == "complete" else min(m, n)
    return ((m, inner), d), ((inner, n), d)


def _svd_results(d: DType, m: int, n: int, k: int, full: bool) -> ResultTypes:
    """Return the shapes and dtypes of U, the singular values and the adjoint of V."""
    inner = min(m, n)
    rows, columns = (m, n) if full else (inner, inner)
    return ((m, rows), d), ((inner,), d.part), ((columns, n), d)


def _lu_results(d: DType, m: int, n: int, k: int) -> ResultTypes:
    """Return the shapes and dtypes of P, L and U."""
    inner = min(m, n)
    return ((m, m), d), ((m, inner), d), ((inner, n), d)


ROUTINES: dict[str, HostRoutine] = {}


def _register(
    name: str, failure: Failure, run: RoutineFunction, results: Callable[..., ResultTypes]
) -> HostRoutine:
    """Add a routine to ROUTINES and return its row."""
    row = ROUTINES[name] = HostRoutine(name, failure, run, results)
    return row


def _complex_dtype(d: DType) -> DType:
    """Return the complex dtype of a dtype's precision."""
    return promote(d, complex64)


CHOLESKY = _register("cholesky", INDEFINITE, _cholesky, _like_first)
QR = _register("qr", NOT_CONVERGED, _numpy_routine("qr"), _qr_results)
SVD = _register("svd", NOT_CONVERGED, _reject_nonfinite(_numpy_routine("svd")), _svd_results)
SVDVALS = _register(
    "svdvals",
    NOT_CONVERGED,
    _reject_nonfinite(_numpy_routine("svdvals")),
    lambda d, m, n, k: (((min(m, n),), d.part),),
)
LU = _register("lu", SINGULAR, elimination.lu, _lu_results)
EIGH = _register(
    "eigh",
    NOT_CONVERGED,
    _reject_nonfinite(_numpy_routine("eigh")),
    lambda d, m, n, k: (((n,), d.part), ((n, n), d)),
)
EIGVALSH = _register(
    "eigvalsh",
    NOT_CONVERGED,
    _reject_nonfinite(_numpy_routine("eigvalsh")),
    lambda d, m, n, k: (((n,), d.part),),
)
EIG = _register(
    "eig",
    NOT_CONVERGED,
    _reject_nonfinite(lambda a: tuple(map(_as_complex, np.linalg.eig(a)))),
    lambda d, m, n, k: (((n,), _complex_dtype(d)), ((n, n), _complex_dtype(d))),
)
EIGVALS = _register(
    "eigvals",
    NOT_CONVERGED,
    _reject_nonfinite(lambda a: _as_complex(np.linalg.eigvals(a))),
    lambda d, m, n, k: (((n,), _complex_dtype(d)),),
)
PINV = _register(
    "pinv",
    NOT_CONVERGED,
    _reject_nonfinite(_pseudo_inverse),
    lambda d, m, n, k, *share: (((n, m), d),),
)
SOLVE = _register("solve", SINGULAR, _numpy_routine("solve"), _like_last)
TRIANGULAR = _register("solve_triangular", SINGULAR, elimination.solve_triangular, _like_last)
INVERSE = _register("inv", SINGULAR, _numpy_routine("inv"), _like_first)
INVERSE_OR_NAN = _register("inverse_or_nan", SINGULAR, _inverse_or_nan, _like_first)
DETERMINANT = _register("det", SINGULAR, _numpy_routine("det"), lambda d, m, n, k: (((), d),))
LOG_DETERMINANT = _register(
    "slogdet",
    SINGULAR,
    _numpy_routine("slogdet"),
    lambda d, m, n, k: (((), d), ((), d.part)),
)
COFACTORS = _register("cofactors", NOT_CONVERGED, _reject_nonfinite(_cofactors), _like_first)
FINITE = _register("finite", NOT_CONVERGED, _reject_nonfinite(np.positive), _like_first)
