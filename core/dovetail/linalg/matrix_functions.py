"""Matrix functions composed of products: powers, exponentials, chains, blocks, reflections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..argument_checks import integer, sequence
from ..autograd.function import Function
from ..capture.control_flow import fori_loop
from ..dtypes import int64
from ..engine import tracer_api
from ..errors import ArgumentError, DTypeError, ShapeError
from ..functions.creation.constructors import tril, zeros
from ..functions.datatypes import DTypeLike, cast, result_type
from ..functions.elementwise import op_functions as ew
from ..functions.products.matrix_products import matmul
from ..functions.products.vector_products import cross, kron
from ..functions.reductions.statistics import max as max_
from ..functions.reductions.statistics import sum as sum_
from ..functions.shape.copies import concat
from ..functions.shape.manipulation import diagonal
from ..functions.variants import public
from ..ops import table as ops
from ..ops.host_routines import FINITE, HostCall
from ..tensor.primitives import apply, view
from ..tensor.tensor import Tensor, required, strided
from . import lapack
from .matrix_checks import (
    adjoint,
    as_column,
    as_row,
    as_scalars,
    extend_to_layouts_of_matrices,
    identity,
    require_matrices,
    same_batch,
    square,
)
from .solving import invert_as, solve_as

__all__ = [
    "block_diag",
    "cross",
    "expm",
    "householder",
    "kron",
    "matrix_power",
    "multi_dot",
    "trace",
]


@public(out=True, widen=False)
def trace(
    x: Tensor, /, *, offset: int = 0, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the sums of diagonals of matrices.

    - `offset`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.

    Shapes: (..., m, n) gives (...).
    Dtypes: numbers; the result has the dtype of `sum`.
    Raises: ShapeError below 2 dimensions, DTypeError.

    >>> import dovetail as dt
    >>> dt.linalg.trace(dt.asarray([[1, 2], [3, 4]])).item()
    5
    """
    diagonals = diagonal(required("trace", x), integer("trace", offset, "offset"), -2, -1)
    return sum_(diagonals, axis=-1, dtype=dtype)


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def matrix_power(x: Tensor, n: int, /, *, out: Tensor | None = None) -> Tensor:
    """Return square matrices to the power n; their inverses to -n if n is negative.

    - `n`: the power, an int; 0 gives the identity.

    Shapes: (..., m, m) gives the same.
    Dtypes: float32, float64, complex, and for n >= 0 integers, which wrap.
    Raises: LinAlgError for a negative power of a singular matrix; ShapeError unless they are
    square, DTypeError, ArgumentTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 1.0], [0.0, 1.0]])
    >>> dt.linalg.matrix_power(x, 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    n = integer("matrix_power", n, "n")
    if n < 0 or required("matrix_power", x).dtype.kind not in "iu":
        x = square("matrix_power", x)
    elif x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: expected square matrices, got shape {x.shape}")
    if n < 0:
        x, n = invert_as("matrix_power", x), -n
    product: Tensor | None = None
    while n:
        if n & 1:
            product = x if product is None else matmul(product, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return x * 0 + identity(x.shape[-1], x) if product is None else apply(ops.COPY, (product,))


@public(out=True)
def multi_dot(arrays: Sequence[Tensor], /, *, out: Tensor | None = None) -> Tensor:
    """Return the product of several matrices, in the order of the fewest multiplications.

    - `arrays`: two matrices or more, in a list; the first and the last may be vectors.

    Shapes: (m, ...), ..., (..., n) give (m, n); a vector's axis is left out.
    Dtypes: integers, floats and complex, promoted, as for `matmul`.
    Raises: ShapeError where columns and rows do not fit, ArgumentError for fewer than two,
    ArgumentTypeError, DTypeError, DeviceError.
    See also: `matmul`, `einsum`.

    >>> import dovetail as dt
    >>> a = dt.ones((2, 3))
    >>> dt.linalg.multi_dot([a, a.mT, a]).tolist()
    [[6.0, 6.0, 6.0], [6.0, 6.0, 6.0]]
    """
    operands = [
        strided("multi_dot", required("multi_dot", x))
        for x in sequence("multi_dot", arrays, "arrays", "tensors")
    ]
    if len(operands) < 2:
        raise ArgumentError(f"multi_dot: expected at least 2 matrices, got {len(operands)}")
    row, column = operands[0].ndim == 1, operands[-1].ndim == 1
    operands[0] = as_row(operands[0]) if row else operands[0]
    operands[-1] = as_column(operands[-1]) if column else operands[-1]
    for a, b in pairwise(operands):
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise ShapeError(
                "multi_dot: the columns of each matrix must equal the rows of the next, got shapes "
                f"{a.shape} and {b.shape}"
            )
    product = _multiply_chain(
        operands,
        _find_splits([operands[0].shape[0], *(x.shape[1] for x in operands)]),
        0,
        len(operands),
    )
    shape = (() if row else product.shape[:1]) + (() if column else product.shape[1:])
    return product if shape == product.shape else view(product, ("reshape", shape))


def _find_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return the cheapest split k of each run i..j-1 of a chain; `sizes`: rows, then all columns.

    Source: Cormen et al., Introduction to Algorithms, section 15.2.
    """
    count = len(sizes) - 1
    cost, splits = {(i, i + 1): 0 for i in range(count)}, {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length
            cost[i, j], splits[i, j] = min(
                (cost[i, k] + cost[k, j] + sizes[i] * sizes[k] * sizes[j], k)
                for k in range(i + 1, j)
            )
    return splits


def _multiply_chain(
    operands: list[Tensor], splits: dict[tuple[int, int], int], i: int, j: int
) -> Tensor:
    """Return the product of operands i to j - 1, split at the positions in `splits`."""
    if j == i + 1:
        return operands[i]
    k = splits[i, j]
    return matmul(_multiply_chain(operands, splits, i, k), _multiply_chain(operands, splits, k, j))


@public(out=True, widen=False)
def block_diag(*arrays: Tensor, out: Tensor | None = None) -> Tensor:
    """Return a matrix with the given blocks on its diagonal, one after the other, and 0 elsewhere.

    - `arrays`: matrices; vectors are rows, numbers have one element.

    Shapes: (m1, n1), (m2, n2), ... give (m1 + m2 + ..., n1 + n2 + ...).
    Dtypes: all, promoted.
    Raises: ShapeError for more than 2 dimensions, ArgumentError for none at all, DTypeError,
    DeviceError.
    See also: `block`, `diag`.

    >>> import dovetail as dt
    >>> one = dt.ones((1, 2), dtype=dt.int64)
    >>> dt.linalg.block_diag(one, one * 2).tolist()
    [[1, 1, 0, 0], [0, 0, 2, 2]]
    """
    if not arrays:
        raise ArgumentError("block_diag: expected at least one matrix, got none")
    blocks = [strided("block_diag", required("block_diag", x)) for x in arrays]
    if any(x.ndim > 2 for x in blocks):
        raise ShapeError(
            f"block_diag: expected at most 2 dimensions, got shapes {[x.shape for x in blocks]}"
        )
    blocks = [as_row(x) if x.ndim == 1 else as_scalars(x) if not x.ndim else x for x in blocks]
    dtype, width, left = result_type(*blocks), sum(x.shape[1] for x in blocks), 0
    rows = []
    for x in blocks:
        sides = (left, width - left - x.shape[1])
        before, after = (zeros((x.shape[0], n), dtype=dtype, device=x.device) for n in sides)
        rows.append(concat([before, cast(x, dtype), after], axis=1))
        left += x.shape[1]
    return concat(rows, axis=0)


@public(out=True, widen=False)
def householder(x: Tensor, tau: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the first columns of a product of Householder reflections, as in LAPACK's QR.

    Reflection i is `I - tau[i] * outer(v, conj(v))`. Column i of x has below its diagonal the rest
    of the vector v, with v[i] = 1. Also known as orgqr and householder_product.

    - `tau`: the factors of the reflections.

    Shapes: (..., m, n) with n <= m and (..., k) with k <= n give (..., m, n).
    Dtypes: float32, float64 and complex, of both the same.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0.0], [1.0]])
    >>> dt.linalg.householder(x, dt.asarray([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    x, tau = (
        require_matrices("householder", x),
        strided("householder", required("householder", tau)),
    )
    m, n = x.shape[-2:]
    if tau.dtype is not x.dtype:
        raise DTypeError(
            f"householder: x and tau must have the same dtype, got {x.dtype.name} and "
            f"{tau.dtype.name}"
        )
    if not tau.ndim or n > m or tau.shape[-1] > n:
        raise ShapeError(
            "householder: x must have at most as many columns as rows, and tau at most as many "
            f"elements as x has columns, got shapes {x.shape} and {tau.shape}"
        )
    x, factors = same_batch("householder", x, as_row(tau))
    one = identity(m, x)
    product = view(one[:, :n], ("expand", x.shape))
    below = ew.where(ew.not_equal(one[:, :n], 0), 1.0, tril(x, k=-1))
    for i in reversed(range(tau.shape[-1])):
        v = below[..., i : i + 1]
        product = product - factors[..., i : i + 1] * v * matmul(adjoint(v), product)
    return product


# The Pade approximant of degree 13, and the norm up to which it is exact to rounding. Source:
# Higham, The scaling and squaring method for the matrix exponential revisited, 2005, table 2.3
# and (2.3).
_DEGREE = 13
_PADE_NORM_MAX = 5.371920351148152
_PADE = [
    math.factorial(26 - k) * math.factorial(13) // (math.factorial(13 - k) * math.factorial(k))
    for k in range(_DEGREE + 1)
]


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def expm(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return the exponentials of square matrices, by scaling and squaring.

    Shapes: (..., n, n) gives the same.
    Dtypes: float32, float64 and complex.
    Raises: LinAlgError for NaN and infinity, ShapeError unless they are square, DTypeError.

    >>> import dovetail as dt
    >>> dt.linalg.expm(dt.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = square("expm", x)
    if not x.size:
        return apply(ops.COPY, (x,))
    halvings = _count_halvings(x.detach())
    exponential = _pade(x * as_scalars(ew.exp2(-halvings)))
    if tracer_api.is_captured():
        return _RepeatedSquaring.apply(exponential, halvings)
    for i in range(tracer_api.call_on_batch(lambda h: int(max_(h).item()), halvings)):
        exponential = _square_once(i, exponential, halvings)
    return exponential


def _square_once(i: int | Tensor, x: Tensor, times: Tensor) -> Tensor:
    """Return the square of matrices whose `times` exceeds `i`, and the others unchanged."""
    return ew.where(as_scalars(times) > i, matmul(x, x), x)


class _RepeatedSquaring(Function):
    """Repeated squaring in a captured function, which does not know how often.

    The backward pass squares again up to each step, so that no intermediate is stored.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, times: Tensor) -> Tensor:
        """Return each matrix squared `times` times, by a loop on the device; save both operands."""
        ctx.save_for_backward(x, times)
        many = tracer_api.call_batched(_square_repeatedly, (x, times))
        return (_square_repeatedly(x, times) if many is None else many)[0]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of `x`, and None for `times`."""
        operands = (*ctx.saved_tensors, g)
        many = tracer_api.call_batched(_square_backward, operands)
        return (_square_backward(*operands) if many is None else many)[0], None


def _square_repeatedly(x: Tensor, times: Tensor, count_max: Tensor | None = None) -> list[Tensor]:
    """Return a list of one tensor: each matrix squared `times` (at most `count_max`) times."""
    count = max_(times) if count_max is None else count_max
    return [fori_loop(0, cast(count, int64), lambda i, c: _square_once(i, c, times), x)]


def _square_backward(x: Tensor, times: Tensor, g: Tensor) -> list[Tensor]:
    """Return a list of one tensor: the gradient of repeated squaring."""
    count = cast(max_(times), int64)

    def step(i: Tensor, g: Tensor) -> Tensor:
        """Return the gradient before squaring `count - 1 - i`."""
        k = count - 1 - i
        factor = adjoint(_square_repeatedly(x, times, k)[0])
        return ew.where(as_scalars(times) > k, matmul(g, factor) + matmul(factor, g), g)

    return [fori_loop(0, count, step, g)]


def _count_halvings(x: Tensor) -> Tensor:
    """Return each matrix's number of halvings, as a float. Raises: LinAlgError unless finite."""
    x = lapack.verify_result(HostCall("expm", FINITE, checks_results=True), x, x)
    # Elements are divided by the number of rows first, so that the sums do not overflow.
    share = max_(sum_(ew.abs(x) / x.shape[-1], axis=-2), axis=-1)
    return ew.maximum(ew.ceil(ew.log2(share) + math.log2(x.shape[-1] / _PADE_NORM_MAX)), 0.0)


def _pade(x: Tensor) -> Tensor:
    """Return exp of matrices of a small norm, as a quotient of polynomials.

    Source: Higham 2005, algorithm 2.3.
    """
    c = [k / _PADE[0] for k in _PADE]
    one = identity(x.shape[-1], x)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    odd = matmul(x6, x6 * c[13] + x4 * c[11] + x2 * c[9])
    odd = matmul(x, odd + x6 * c[7] + x4 * c[5] + x2 * c[3] + one * c[1])
    even = matmul(x6, x6 * c[12] + x4 * c[10] + x2 * c[8])
    even = even + x6 * c[6] + x4 * c[4] + x2 * c[2] + one * c[0]
    return solve_as("expm", even - odd, even + odd)
