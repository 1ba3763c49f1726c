"""Norms of vectors and of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

from .. import layout as lay
from ..argument_checks import choice, flag, integers, number, real
from ..errors import ArgumentError, DTypeError
from ..functions.datatypes import cast
from ..functions.elementwise import op_functions as ew
from ..functions.reductions.statistics import max as max_
from ..functions.reductions.statistics import min as min_
from ..functions.reductions.statistics import sum as sum_
from ..functions.shape.manipulation import moveaxis
from ..functions.variants import public
from ..layout import Shape
from ..tensor.other_layouts import has_rule
from ..tensor.primitives import view
from ..tensor.tensor import Tensor, required, strided
from .factors import svdvals
from .matrix_checks import extend_to_layouts_of_matrices, require_matrices

__all__ = ["matrix_norm", "norm", "vector_norm"]

Axis = int | tuple[int, ...] | None
Order: TypeAlias = "int | float | Literal['fro', 'nuc']"


@public(cache=True)
def vector_norm(
    x: Tensor,
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    ord: int | float = 2,
    out: Tensor | None = None,
) -> Tensor:
    """Return the norms of vectors along one axis, or of all elements along several.

    - `ord`: 2 is Euclid's, inf and -inf are the largest and the smallest absolute value, 0 counts
      the non-zero elements, another p gives `sum(abs(x) ** p) ** (1 / p)`.

    Shapes: the axes go, or are of size 1 with keepdims.
    Dtypes: floats and complex; the result is real.
    Order: that of `sum`: the same bits on every device.
    Gradient: 0 if the norm is 0.
    Raises: DTypeError, AxisError, ArgumentTypeError for another `ord`; ShapeError for -inf of no
    elements.
    See also: `linalg.matrix_norm`, `linalg.norm`, `cdist`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[3.0, 4.0], [6.0, 8.0]])
    >>> dt.linalg.vector_norm(x, axis=1).tolist()
    [5.0, 10.0]
    """
    x = required("vector_norm", x)
    if not has_rule(x, "along"):
        strided("vector_norm", x)
    if x.dtype.kind not in "fc":
        raise DTypeError(
            f"vector_norm: x must be real or complex floating-point, got {x.dtype.name}; use "
            "x.astype(dt.float32)"
        )
    keepdims = flag("vector_norm", keepdims, "keepdims")
    p = number("vector_norm", ord, "ord")
    real("vector_norm", p, "ord")  # the root takes 1 / ord
    axes = tuple(range(x.ndim)) if axis is None else integers("vector_norm", axis, "axis")
    axes = tuple([lay.axis("vector_norm", a, x.ndim) for a in axes])
    return _compute_norm(x, axes, keepdims, p)


def _compute_norm(x: Tensor, axes: Shape, keepdims: bool, p: int | float) -> Tensor:
    """Return the p-norm of all elements along the axes, with gradient 0 where it is 0."""
    if p == 2:
        return _flat_at_zero(ew.sqrt, sum_(squares(x), axis=axes, keepdims=keepdims))
    if p == 0:
        return sum_(cast(ew.not_equal(x, 0), x.dtype.part), axis=axes, keepdims=keepdims)
    size = ew.abs(x)
    if math.isinf(p):
        return _extreme_size(size, axes, keepdims, p)
    if p == 1:
        return sum_(size, axis=axes, keepdims=keepdims)
    powers = ew.pow(size, p) if p >= 2 else _power(size, p)
    return _power(sum_(powers, axis=axes, keepdims=keepdims), 1 / p)


def _power(x: Tensor, p: float) -> Tensor:
    """Return x ** p for x >= 0, with slope 0 at 0, where a root has an infinite one."""
    return _flat_at_zero(lambda t: ew.pow(t, p), x, 0.0 if p > 0 else math.inf)


def _flat_at_zero(f: Callable[[Tensor], Tensor], x: Tensor, value: float = 0.0) -> Tensor:
    """Return f(x); where x is 0, return `value` with gradient 0."""
    zero = ew.equal(x, 0)
    return ew.where(zero, value, f(ew.where(zero, 1.0, x)))


def _extreme_size(sizes: Tensor, axes: Shape, keepdims: bool, p: int | float) -> Tensor:
    """Return the largest of `sizes` along `axes` for p > 0 (0 of none), else the smallest."""
    if p < 0:
        return min_(sizes, axis=axes, keepdims=keepdims)
    reduction = max_ if all(sizes.shape[a] for a in axes) else sum_
    return reduction(sizes, axis=axes, keepdims=keepdims)


def squares(x: Tensor) -> Tensor:
    """Return the squares of absolute values, as real numbers."""
    if x.dtype.kind != "c":
        return x * x
    real, imag = ew.real(x), ew.imag(x)
    return real * real + imag * imag


@public(out=True, widen=False)
@extend_to_layouts_of_matrices
def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: Order = "fro", out: Tensor | None = None
) -> Tensor:
    """Return the norms of matrices.

    - `ord`: "fro" is the root of the sum of squares, "nuc" the sum of the singular values, 2 and -2
      the largest and smallest of these, 1 and -1 the largest and smallest sum of a column's
      absolute values, inf and -inf those of a row's.

    Shapes: (..., m, n) gives (...), or (..., 1, 1) with keepdims.
    Dtypes: float32, float64 and complex; the result is real.
    Raises: ShapeError, also for the smallest of nothing; DTypeError, ArgumentError for another
    `ord`; LinAlgError for NaN and infinity where singular values are needed.
    See also: `linalg.vector_norm`, `linalg.norm`, `linalg.cond`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> dt.linalg.matrix_norm(x, ord=1).item(), dt.linalg.matrix_norm(x, ord=dt.inf).item()
    (6.0, 7.0)
    """
    x = require_matrices("matrix_norm", x)
    keepdims = flag("matrix_norm", keepdims, "keepdims")
    ord = _check_matrix_order("matrix_norm", ord)
    if ord == "fro":
        return _compute_norm(x, (x.ndim - 2, x.ndim - 1), keepdims, 2)
    if ord == "nuc":
        norms = sum_(svdvals(x), axis=-1)
    else:
        sizes = svdvals(x) if abs(ord) == 2 else sum_(ew.abs(x), axis=-2 if abs(ord) == 1 else -1)
        norms = _extreme_size(sizes, (sizes.ndim - 1,), False, ord)
    return view(norms, ("reshape", (*norms.shape, 1, 1))) if keepdims else norms


def _check_matrix_order(name: str, ord: Order) -> Order:
    """Return a valid order of a matrix norm.

    Raises: ArgumentError; ArgumentTypeError for no number.
    """
    if isinstance(ord, str):
        return choice(name, ord, "ord", ("fro", "nuc"))
    order = number(name, ord, "ord")
    if order not in (1, -1, 2, -2, math.inf, -math.inf):
        raise ArgumentError(
            f'{name}: ord must be "fro", "nuc", 1, -1, 2, -2, inf or -inf, got {order!r}; for '
            "other orders of a vector use dt.linalg.vector_norm"
        )
    return order


@public
def norm(
    x: Tensor,
    ord: Order | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the norm of a matrix for two axes, else of vectors, as NumPy's and PyTorch's `norm`.

    - `ord`: the order, as in `dt.linalg.matrix_norm` or `vector_norm`; None is the root of the sum
      of squares.
    - `axis`: one axis for vectors, two for matrices; None is all axes, and the norm of a matrix if
      x has two and `ord` is given.

    Shapes: x's without these axes.
    Dtypes: floats and complex; the result is real.
    Raises: ArgumentError for three axes with `ord`, AxisError, DTypeError.
    See also: `linalg.vector_norm`, `linalg.matrix_norm`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[3.0, 0.0], [0.0, 4.0]])
    >>> dt.linalg.norm(x).item(), dt.linalg.norm(x, 1).item()
    (5.0, 4.0)
    """
    strided("norm", x)
    if axis is None and ord is not None:
        axis = tuple(range(x.ndim))
    if isinstance(axis, tuple) and len(axis) > 2:
        raise ArgumentError(f"norm: axis must be one or two axes if ord is given, got {axis}")
    if isinstance(axis, tuple) and len(axis) == 2:
        order = "fro" if ord is None else ord
        value = matrix_norm(moveaxis(x, axis, (-2, -1)), keepdims=keepdims, ord=order)
        return moveaxis(value, (-2, -1), axis) if keepdims else value
    p: int | float = 2 if ord is None else ord  # type: ignore[assignment]  # it refuses words
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=p)
