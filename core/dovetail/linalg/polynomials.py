"""Polynomials by their coefficients, the highest power first: fits, zeros, arithmetic."""

from __future__ import annotations

import numpy as np

from ..argument_checks import integer, real
from ..dtypes import float32, float64, int64, uint64
from ..errors import ArgumentError, ShapeError
from ..functions.creation.constructors import arange, eye, ones, zeros
from ..functions.datatypes import cast, finfo, promote_operands, result_type
from ..functions.elementwise import op_functions as ew
from ..functions.reductions.numerical import convolve, vander
from ..functions.reductions.statistics import sum as sum_
from ..functions.shape.copies import concat
from ..functions.variants import public
from ..tensor.host import read_values
from ..tensor.primitives import slice_along, view
from ..tensor.promotion import Array, Operand, as_tensors
from ..tensor.tensor import Tensor
from .eigenvalues import eigvals
from .least_squares import lstsq

__all__ = ["poly", "polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "roots"]

DEGREE_MAX = 1 << 16  # largest degree, and largest number of repeated integrals

# --- fits to samples ------------------------------------------------------------------------------


@public(out=True, widen=False)
def polyfit(
    x: Array,
    y: Array,
    deg: int,
    /,
    *,
    rcond: float | None = None,
    w: Array | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the coefficients of a polynomial that fits samples by least squares.

    - `x`: the points of the samples.
    - `y`: the samples.
    - `deg`: the degree.
    - `rcond`: singular values up to this share of the largest count as 0; None is the number of
      samples times the dtype's eps.
    - `w`: the factor of each difference before it is squared; None is 1.

    Shapes: `x` and `w` are vectors (n,), y (n,) or (n, k): gives (deg + 1,) or (deg + 1, k), the
    highest power first, for `polyval`.
    Dtypes: float32 and float64, promoted; integers become float32.
    Gradient: as long as the matrix of powers keeps its rank.
    Raises: ShapeError, DTypeError, DeviceError; ArgumentError for a negative degree; LinAlgError
    where a place is NaN or infinite.
    See also: `polyval`, `linalg.lstsq`, `vander`.

    >>> import dovetail as dt
    >>> x = dt.asarray([0.0, 1.0, 2.0])
    >>> dt.allclose(dt.polyfit(x, [1.0, 3.0, 7.0], 2), [1.0, 1.0, 1.0], atol=1e-4)
    True
    """
    n = integer("polyfit", deg, "deg", 0, DEGREE_MAX)
    at, samples, *weights = as_tensors("polyfit", x, y, *([] if w is None else [w]))
    if at.ndim != 1 or not at.size or any(v.shape != at.shape for v in weights):
        raise ShapeError(
            "polyfit: x and w must be vectors of the same length, at least 1, got shapes "
            + " and ".join(str(v.shape) for v in (at, *weights))
        )
    if samples.ndim not in (1, 2) or samples.shape[0] != at.size:
        raise ShapeError(
            f"polyfit: y must be ({at.size},) or ({at.size}, k), as x has {at.size} elements, got "
            f"shape {samples.shape}"
        )
    d = result_type(at, samples, *weights)
    d = d if d.kind == "f" else float32
    powers, right = vander(cast(at, d), n + 1), cast(samples, d)
    for v in weights:
        column = view(cast(v, d), ("reshape", (at.size, 1)))
        powers = powers * column
        right = right * (column if right.ndim == 2 else cast(v, d))
    scale = ew.sqrt(sum_(ew.square(powers), axis=0))
    scale = ew.where(ew.equal(scale, 0.0), 1.0, scale)
    share = at.size * float(finfo(d).eps) if rcond is None else real("polyfit", rcond, "rcond")
    solution = lstsq(powers / scale, right, rcond=share).solution
    return solution / (view(scale, ("reshape", (n + 1, 1))) if right.ndim == 2 else scale)


# --- zeros ----------------------------------------------------------------------------------------


@public(widen=False)
def roots(p: Array, /) -> Tensor:
    """Return a polynomial's zeros, in no order; the host looks for leading coefficients of 0.

    Zeros of the polynomial that are 0 come last, one for each trailing coefficient 0.

    - `p`: the coefficients, the highest power first. The host reads them to leave out leading
      zeros.

    Shapes: a vector; gives a vector with an element for each degree.
    Dtypes: float32, float64 and complex; integers, float16 and bfloat16 become float32. The result
    is complex, also where all zeros are real.
    Gradient: of single zeros; see `dt.linalg.eig`.
    Raises: ShapeError unless it is a vector, LinAlgError for NaN or infinity, DTypeError.
    See also: `poly`, `polyval`, `linalg.eigvals`.

    >>> import dovetail as dt
    >>> dt.allclose(dt.roots(dt.asarray([1.0, -3.0, 0.0])), [3.0, 0.0])
    True
    """
    p = _require_vector("roots", "p", as_tensors("roots", p)[0])
    d = p.dtype if p.dtype.kind == "c" or p.dtype is float64 else float32
    p, nonzero = cast(p, d), np.flatnonzero(read_values("roots", p)).tolist()
    first, last = (nonzero[0], nonzero[-1]) if nonzero else (0, 0)
    degree = last - first
    none = zeros((p.size - 1 - last if nonzero else 0,), dtype=d, device=p.device)
    if not degree:
        return ew.add(none, 0j)
    lead, others = slice_along(p, 0, first, 1), slice_along(p, 0, first + 1, degree)
    row = view(-others / lead, ("reshape", (1, degree)))
    values = eigvals(concat([row, eye(degree - 1, degree, dtype=d, device=p.device)]))
    return concat([values, none]) if none.size else values


@public
def poly(x: Array, /) -> Tensor:
    """Return the coefficients of the monic polynomial with zeros `x`, highest power first.

    The result is complex where the zeros are, unlike NumPy's, which is real where they are pairs of
    conjugates. Of a matrix its eigenvalues can be given: `dt.linalg.eigvals`.

    Shapes: a vector (n,); gives (n + 1,), of no zeros [1].
    Dtypes: floats and complex; integers and bool become float32.
    Order: it is multiplied by one factor after the other.
    Raises: ShapeError unless it is a vector, DTypeError.

    >>> import dovetail as dt
    >>> dt.poly(dt.asarray([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    x = _require_vector("poly", "x", as_tensors("poly", x)[0])
    x = x if x.dtype.kind in "fc" else cast(x, float32)
    coefficients, zero = (f((1,), dtype=x.dtype, device=x.device) for f in (ones, zeros))
    for i in range(x.size):
        coefficients = concat([coefficients, zero]) - concat(
            [zero, coefficients * slice_along(x, 0, i, 1)]
        )
    return coefficients


# --- sums, products, derivatives, integrals -------------------------------------------------------


@public(out=True)
def polyadd(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the coefficients of the sum of two polynomials, the highest power first.

    Shapes: vectors or numbers; gives as many elements as the longer one has.
    Dtypes: all, promoted.
    Raises: ShapeError unless it is a vector, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.polyadd(dt.asarray([1, 2]), [9, 5, 4]).tolist()
    [9, 6, 6]
    """
    a, b = _align("polyadd", x1, x2)
    return ew.add(a, b)


@public(out=True)
def polysub(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the coefficients of the difference of two polynomials, the highest power first.

    Shapes: vectors or numbers; gives as many elements as the longer one has.
    Dtypes: numbers, promoted.
    Raises: ShapeError unless it is a vector, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.polysub(dt.asarray([1, 2]), [9, 5, 4]).tolist()
    [-9, -4, -2]
    """
    a, b = _align("polysub", x1, x2)
    return ew.subtract(a, b)


@public(out=True)
def polymul(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the coefficients of the product of two polynomials, the highest power first.

    Leading zeros stay, unlike in NumPy's, so that no shape depends on values. It is `convolve`.

    Shapes: vectors or numbers; n and m elements give n + m - 1.
    Dtypes: numbers, promoted.
    Order: that of `matmul`.
    Raises: ShapeError unless it is a vector with elements, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.polymul(dt.asarray([1, 2]), [1, 3]).tolist()
    [1, 5, 6]
    """
    a, b = _as_coefficients("polymul", x1, x2)
    return convolve(a, b)


@public(out=True)
def polyder(p: Array, /, m: int = 1, *, out: Tensor | None = None) -> Tensor:
    """Return the coefficients of the derivative of a polynomial, the highest power first.

    - `p`: the coefficients, the highest power first.
    - `m`: how many times the derivative is taken.

    Shapes: a vector (n,); gives (n - m,), empty from m = n on.
    Dtypes: numbers; bool and integers but uint64 give int64, others the same.
    Raises: ShapeError unless it is a vector, ArgumentError for a negative `m`, DTypeError.

    >>> import dovetail as dt
    >>> dt.polyder(dt.asarray([1, 1, 1, 1])).tolist()
    [3, 2, 1]
    """
    p = _require_vector("polyder", "p", as_tensors("polyder", p)[0])
    if p.dtype.kind not in "fc" and p.dtype is not uint64:
        p = cast(p, int64)
    for _ in range(min(integer("polyder", m, "m", 0), p.size)):
        n = p.size - 1
        powers = arange(n, 0, -1, device=p.device)
        p = ew.multiply(slice_along(p, 0, 0, n), cast(powers, p.dtype))
    return p


@public(out=True)
def polyint(
    p: Array, /, m: int = 1, k: Operand | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the coefficients of the integral of a polynomial, the highest power first.

    - `p`: the coefficients, the highest power first.
    - `m`: how many times the integral is taken.
    - `k`: the constants of integration, that of the first time first: a vector of m, or a number
      for all; None is 0.

    Shapes: a vector (n,); gives (n + m,).
    Dtypes: floats and complex, promoted with those of `k`; integers and bool become float32.
    Raises: ShapeError unless it is a vector, ArgumentError for a negative `m` and for other than m
    constants, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.polyint(dt.asarray([3.0, 2.0, 1.0]), k=7).tolist()
    [1.0, 1.0, 1.0, 7.0]
    """
    p = _require_vector("polyint", "p", as_tensors("polyint", p)[0])
    times = integer("polyint", m, "m", 0, DEGREE_MAX)
    if not times:
        return p
    p, constants = _as_coefficients("polyint", p, 0 if k is None else k)
    if constants.size not in (1, times):
        raise ArgumentError(
            f"polyint: k must hold 1 or m={times} integration constants, got {constants.size}"
        )
    if p.dtype.kind not in "fc":
        p, constants = cast(p, float32), cast(constants, float32)
    for i in range(times):
        powers = cast(arange(p.size, 0, -1, device=p.device), p.dtype.part)
        p = concat([p / powers, slice_along(constants, 0, i % constants.size, 1)])
    return p


def _require_vector(op: str, name: str, x: Tensor) -> Tensor:
    """Return `x` if it is a vector. Raises: ShapeError if it is not."""
    if x.ndim != 1:
        raise ShapeError(f"{op}: {name} must be a vector, got shape {x.shape}; use dt.ravel")
    return x


def _as_coefficients(op: str, x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Return two vectors of one dtype; a number becomes a vector. Raises: ShapeError for others."""
    a, b = (
        _require_vector(op, name, x if x.ndim else view(x, ("reshape", (1,))))
        for name, x in zip(("x1", "x2"), promote_operands(op, x1, x2), strict=True)
    )
    return a, b


def _align(op: str, x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Return two vectors of equal length and dtype, the shorter one with leading zeros."""
    polynomials = _as_coefficients(op, x1, x2)
    n = max(x.size for x in polynomials)
    a, b = (
        x if x.size == n else concat([zeros((n - x.size,), dtype=x.dtype, device=x.device), x])
        for x in polynomials
    )
    return a, b
