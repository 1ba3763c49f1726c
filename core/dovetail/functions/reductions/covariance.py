"""Weighted means, covariances and the range of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ... import layout as lay
from ...argument_checks import flag, real
from ...dtypes import DType, float32
from ...errors import ArgumentError, ShapeError
from ...ops import table as ops
from ...tensor.primitives import apply, view
from ...tensor.promotion import Array, as_operand
from ...tensor.tensor import Tensor, required, strided
from ..datatypes import cast, move, move_as, move_to_supporting_device, result_type, working_float
from ..products.matrix_products import conjugate, matmul
from ..shape.copies import concat
from ..shape.manipulation import broadcast_to, diagonal
from ..variants import public
from .statistics import Axis
from .statistics import max as max_of
from .statistics import mean as mean_of
from .statistics import min as min_of
from .statistics import sum as sum_of

__all__ = ["average", "corrcoef", "cov", "ptp"]


@public(method=True, out=True)
def ptp(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the range of values over `axis`: the largest minus the smallest.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: integers and floats; the result has the same, and integers wrap.
    Raises: ShapeError if there are no elements, AxisError, DTypeError for bool.
    See also: `max`, `min`, `std`.

    >>> import dovetail as dt
    >>> dt.ptp(dt.asarray([[1, 5], [2, 2]]), axis=1).tolist()
    [4, 0]
    """
    largest = max_of(x, axis=axis, keepdims=keepdims)
    return apply(ops.SUBTRACT, (largest, min_of(x, axis=axis, keepdims=keepdims)))


@public
def average(
    x: Tensor,
    /,
    axis: Axis = None,
    weights: Array | None = None,
    *,
    returned: bool = False,
    keepdims: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the weighted mean over `axis`: sum(x * weights) / sum(weights).

    - `axis`: an int, a tuple of ints, or None for all axes.
    - `weights`: the weight of each element, as a tensor; None weights all equally.
    - `returned`: True also returns the sum of the weights, as a second tensor.

    Shapes: `weights` has x's, or is a vector along one axis; the axes are removed, or have size 1
    with `keepdims`. If the weights sum to 0, the result is infinite or NaN.
    Dtypes: all, promoted; integers and bool give float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Raises: ShapeError, AxisError, DTypeError, DeviceError.
    See also: `mean`, `cov`.

    >>> import dovetail as dt
    >>> dt.average(dt.asarray([1.0, 3.0]), weights=[3, 1]).item()
    1.5
    """
    axes = lay.ordered_axes("average", axis, required("average", x).ndim)
    returned, keepdims = (
        flag("average", returned, "returned"),
        flag("average", keepdims, "keepdims"),
    )
    if weights is None:
        mean = mean_of(x, axis=axes, keepdims=keepdims)
        count = x.size // max(mean.size, 1)
        ones = apply(ops.EQUAL, (mean, mean)) if returned else mean
        total = apply(ops.WHERE, (ones, float(count), float(count))) if returned else mean
        return (mean, cast(total, mean.dtype)) if returned else mean
    w = weights if isinstance(weights, Tensor) else as_operand("average", weights, (x,))
    d, work = _result_dtype(x, w), _working_dtype(x, w)
    home = x.device
    x, w = move_to_supporting_device("average", work, x, w)
    wide = broadcast_weights(
        "average", x, cast(w, work if w.dtype.kind == "c" else work.part), axes
    )
    total = sum_of(wide, axis=axes, keepdims=keepdims)
    product = apply(ops.MULTIPLY, (cast(x, work), wide))
    mean = cast(apply(ops.DIVIDE, (sum_of(product, axis=axes, keepdims=keepdims), total)), d)
    mean = move(mean, home)
    return (mean, move_as(total, d, home)) if returned else mean


def _result_dtype(*tensors: Tensor) -> DType:
    """Return the float dtype of a result; integers give float32 even if they do not promote."""
    if all(x.dtype.kind not in "fc" for x in tensors):
        return float32
    return result_type(*tensors)


def _working_dtype(*tensors: Tensor) -> DType:
    """Return the dtype in which all operands are computed."""
    return result_type(*[working_float(x.dtype) for x in tensors])


def broadcast_weights(op: str, x: Tensor, w: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the weights in the shape of `x`; weights of some axes follow the order of `axes`."""
    if w.shape == x.shape:
        return w
    if w.shape != tuple(x.shape[d] for d in axes):
        raise ShapeError(
            f"{op}: weights must have the sizes of axis {axes} of shape {x.shape}, "
            f"got shape {w.shape}"
        )
    w = view(w, ("permute", tuple(sorted(range(len(axes)), key=axes.__getitem__))))
    column = tuple(n if d in axes else 1 for d, n in enumerate(x.shape))
    return broadcast_to(view(w, ("reshape", column)), x.shape)


@public(method=True, out=True)
def cov(
    x: Tensor,
    y: Array | None = None,
    /,
    *,
    rowvar: bool = True,
    correction: float = 1.0,
    fweights: Array | None = None,
    aweights: Array | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the covariance matrix of variables; each row of `x` has a variable's observations.

    If a tensor holds a negative weight, the result is NaN.

    - `y`: more variables, with as many observations as `x`; None adds none.
    - `rowvar`: True means a variable in each row, False one in each column.
    - `correction`: c in the divisor n - c; NumPy's `ddof`, and with 0 its `bias=True`.
    - `fweights`: the number of times that each observation counts, as a vector of integers; None
      counts each once.
    - `aweights`: the weight of each observation, as a vector; None weights all equally.

    Shapes: at most 2 dimensions; a vector is one variable. Gives (variables, variables), and () for
    one.
    Dtypes: all; integers and bool give float32. The second factor of complex ones is conjugated.
    Order: the products are summed as by `matmul`.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError unless `correction` is a number, and
    for negative weights that are not in a tensor.
    See also: `corrcoef`, `var`.

    >>> import dovetail as dt
    >>> dt.cov(dt.asarray([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])).tolist()
    [[1.0, -2.0], [-2.0, 4.0]]
    """
    weights = {"fweights": fweights, "aweights": aweights}
    tensors, c = _parts("cov", x, y), real("cov", correction, "correction")
    return _cast_matrix(_compute_covariance("cov", tensors, rowvar, c, weights), tensors)


def _parts(op: str, x: Tensor, y: Array | None) -> tuple[Tensor, ...]:
    """Return the tensors that hold the variables."""
    x = strided(op, x)
    return (x,) if y is None else (x, y if isinstance(y, Tensor) else as_operand(op, y, (x,)))


def _stack_variables(op: str, tensors: Sequence[Tensor], rowvar: bool, work: DType) -> Tensor:
    """Return a matrix with one variable per row, in the dtype of the computation."""
    rowvar = flag(op, rowvar, "rowvar")
    rows: list[Tensor] = []
    for part in tensors:
        if part.ndim > 2:
            raise ShapeError(f"{op}: expected a matrix or a vector, got shape {part.shape}")
        if part.ndim < 2:
            rows.append(view(part, ("reshape", (1, part.size))))
        else:  # a row as `y` is one variable, as in NumPy
            in_rows = rowvar or (len(rows) == 1 and part.shape[0] == 1)
            rows.append(part if in_rows else part.mT)
    rows = [cast(part, work) for part in rows]
    return rows[0] if len(rows) == 1 else concat(rows, axis=0)


def _compute_covariance(
    op: str,
    tensors: Sequence[Tensor],
    rowvar: bool,
    correction: float,
    weights: dict[str, Array | None],
) -> Tensor:
    """Return the covariance matrix, divided by weights less `correction`, at least 0.

    It is in the dtype of the computation, on a device that supports that.
    """
    work, count = _working_dtype(*tensors), len(tensors)
    operands = move_to_supporting_device(op, work, *tensors, *weights.values())
    rows = _stack_variables(op, operands[:count], rowvar, work)
    n = rows.shape[1]
    named = zip(weights, operands[count:], strict=True)
    weight_of = {k: _check_weights(op, k, w, rows) for k, w in named if w is not None}
    w = None
    for weight in weight_of.values():
        w = weight if w is None else w * weight
    if w is None:
        away = rows - mean_of(rows, axis=1, keepdims=True)
        left = n - correction
        return matmul(away, conjugate(away).mT) / (left if left > 0 else 0.0)
    total = sum_of(w)
    away = rows - sum_of(rows * w, axis=1, keepdims=True) / total
    divisor = total
    if correction:
        aw = weight_of.get("aweights")
        share = 1.0 if aw is None else sum_of(w * aw) / total
        divisor = total - share * correction
    divisor = apply(ops.MAXIMUM, (divisor, 0.0))
    return matmul(away, conjugate(away * w).mT) / divisor


def _check_weights(op: str, name: str, w: Array, rows: Tensor) -> Tensor:
    """Return weights as a vector in the variables' real dtype.

    Negative ones of a tensor are NaN, because its values are not read.
    Raises: ShapeError unless there is one for each observation, ArgumentError for `fweights` that
    are floats, and for negative numbers that are not in a tensor.
    """
    vector = w if isinstance(w, Tensor) else as_operand(op, w, (rows,))
    if vector.shape != (rows.shape[1],):
        raise ShapeError(
            f"{op}: {name} must have shape ({rows.shape[1]},), one for each observation, "
            f"got {vector.shape}"
        )
    if name == "fweights" and vector.dtype.kind == "f":
        raise ArgumentError(
            f"{op}: fweights must be integers, got {vector.dtype.name}; use aweights"
        )
    vector = cast(vector, rows.dtype.part)
    if not isinstance(w, Tensor) and (least := np.asarray(w).min(initial=0)) < 0:
        raise ArgumentError(f"{op}: {name} must not be negative, got {least}")
    return apply(ops.WHERE, (apply(ops.LESS, (vector, 0.0)), math.nan, vector))


@public(method=True, out=True)
def corrcoef(
    x: Tensor, y: Array | None = None, /, *, rowvar: bool = True, out: Tensor | None = None
) -> Tensor:
    """Return the correlation coefficients of variables: `cov` divided by the standard deviations.

    - `y`: more variables, with as many observations as `x`; None adds none.
    - `rowvar`: True means a variable in each row, False one in each column.

    Shapes: at most 2 dimensions; a vector is one variable. Gives (variables, variables), and () for
    one.
    Dtypes: all; integers and bool give float32.
    Order: the products are summed as by `matmul`.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `cov`, `correlate`.

    >>> import dovetail as dt
    >>> dt.corrcoef(dt.asarray([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    tensors = _parts("corrcoef", x, y)
    c = _compute_covariance("corrcoef", tensors, rowvar, 1.0, {})
    scale = apply(ops.SQRT, (apply(ops.REAL, (diagonal(c),)),))
    n = scale.shape[0]
    row, column = view(scale, ("reshape", (1, n))), view(scale, ("reshape", (n, 1)))
    return _cast_matrix(_clip_to_unit(c / column / row), tensors)


def _cast_matrix(matrix: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """Return a matrix in the float dtype of its variables; for one variable, a scalar."""
    result = move_as(matrix, _result_dtype(*tensors), tensors[0].device)
    return view(result, ("reshape", ())) if result.shape == (1, 1) else result


def _clip_to_unit(x: Tensor) -> Tensor:
    """Clip coefficients, or both parts of complex ones, to -1..1, which rounding may exceed."""
    if x.dtype.kind != "c":
        return apply(ops.CLIP, (x, -1.0, 1.0))
    clipped = [apply(ops.CLIP, (apply(part, (x,)), -1.0, 1.0)) for part in (ops.REAL, ops.IMAG)]
    return clipped[0] + clipped[1] * 1j
