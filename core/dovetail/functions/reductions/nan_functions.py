"""Reductions and running sums that ignore NaN, under NumPy's names."""

from __future__ import annotations

import math

from ...errors import AxisError
from ...ops import table as ops
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, required
from ..creation.constructors import Fill, create_full
from ..datatypes import DTypeLike, move_as
from ..elementwise.composed import fmax, fmin
from ..shape.manipulation import ravel
from ..variants import public
from .cumulative import cumulative_prod, cumulative_sum
from .statistics import Axis, Mask, argmax, as_mask, deviation, float_dtype, variance
from .statistics import all as all_of
from .statistics import any as any_of
from .statistics import max as max_of
from .statistics import mean as mean_of
from .statistics import min as min_of
from .statistics import prod as product_of
from .statistics import sum as sum_of

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _replace_nan(op: str, x: Tensor, value: float) -> Tensor:
    """Return `x` with a number in place of each NaN."""
    if required(op, x).dtype.kind not in "fc":
        return x
    return apply(ops.WHERE, (apply(ops.ISNAN, (x,)), value, x))


def _present(op: str, x: Tensor, where: Mask) -> Mask:
    """Return the mask of the elements that are not NaN and where `where` is True."""
    if required(op, x).dtype.kind not in "fc":
        return where
    present = apply(ops.EQUAL, (x, x))
    return present if where is None else apply(ops.LOGICAL_AND, (present, as_mask(op, where, x)))


@public(method=True, out=True, widen=False)
def nansum(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the sum over `axis` of the elements that are not NaN; 0 if there are none.

    - `initial`: a number that is added to the result.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; `dtype` and the result as for `sum`.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Gradient: 0 for NaN.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nansum(dt.asarray([1.0, dt.nan, 2.0])).item()
    3.0
    """
    present = _present("nansum", x, where)
    return sum_of(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=present)


@public(out=True, widen=False)
def nanprod(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the product over `axis` of the elements that are not NaN; 1 if there are none.

    - `initial`: a number that the result is multiplied by.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; `dtype` and the result as for `prod`.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Gradient: 0 for NaN.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nanprod(dt.asarray([3.0, dt.nan, 2.0])).item()
    6.0
    """
    present = _present("nanprod", x, where)
    return product_of(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=present)


@public(method=True, out=True, widen=False)
def nanmean(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the mean over `axis` of the elements that are not NaN; NaN if there are none.

    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are summed in float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Gradient: 0 for NaN.
    Raises: AxisError.

    >>> import dovetail as dt
    >>> dt.nanmean(dt.asarray([1.0, dt.nan, 2.0])).item()
    1.5
    """
    return mean_of(x, axis=axis, keepdims=keepdims, where=_present("nanmean", x, where))


@public(method=True, out=True, widen=False)
def nanvar(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the variance over `axis` of the elements that are not NaN.

    The result is NaN unless the divisor is positive.

    - `correction`: c in the divisor n - c, where n is the number of elements that are not NaN.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are computed in float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Gradient: 0 for NaN.
    Raises: AxisError, ArgumentError for a `correction` that is not a number.

    >>> import dovetail as dt
    >>> dt.nanvar(dt.asarray([1.0, dt.nan, 3.0])).item()
    1.0
    """
    present = _present("nanvar", x, where)
    result = variance("nanvar", x, axis, correction, keepdims, present, math.nan)
    return move_as(result, float_dtype(x), x.device)


@public(method=True, out=True, widen=False)
def nanstd(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the standard deviation over `axis` of the elements that are not NaN.

    The result is NaN unless the divisor is positive.

    - `correction`: c in the divisor n - c, where n is the number of elements that are not NaN.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are computed in float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Raises: AxisError, ArgumentError for a `correction` that is not a number.

    >>> import dovetail as dt
    >>> dt.nanstd(dt.asarray([1.0, dt.nan, 3.0])).item()
    1.0
    """
    present = _present("nanstd", x, where)
    return deviation("nanstd", x, axis, correction, keepdims, present, math.nan)


@public(method=True, out=True, widen=False)
def nanmin(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the smallest element over `axis` that is not NaN; NaN if all are.

    - `initial`: the result is at most this number; required for `where`.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; the result has the same.
    Gradient: evenly to all that are the smallest one.
    Raises: ShapeError if there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.nanmin(dt.asarray([3.0, dt.nan, 2.0])).item()
    2.0
    """
    return _nan_extreme("nanmin", x, axis, keepdims, initial, where)


@public(method=True, out=True, widen=False)
def nanmax(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the largest element over `axis` that is not NaN; NaN if all are.

    - `initial`: the result is at least this number; required for `where`.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; the result has the same.
    Gradient: evenly to all that are the largest one.
    Raises: ShapeError if there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.nanmax(dt.asarray([3.0, dt.nan, 2.0])).item()
    3.0
    """
    return _nan_extreme("nanmax", x, axis, keepdims, initial, where)


def _nan_extreme(
    op: str,
    x: Tensor,
    axis: Axis,
    keepdims: bool,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the minimum or maximum without NaN; NaN if all are."""
    least = op == "nanmin"
    reduction, other = (min_of, math.inf) if least else (max_of, -math.inf)
    filled = _replace_nan(op, x, other)
    if x.dtype.kind != "f":
        return reduction(filled, axis=axis, keepdims=keepdims, initial=initial, where=where)
    no_elements = None if initial is None else other
    result = reduction(filled, axis=axis, keepdims=keepdims, initial=no_elements, where=where)
    present = as_mask(op, _present(op, x, where), x)
    result = apply(ops.WHERE, (any_of(present, axis=axis, keepdims=keepdims), result, math.nan))
    if initial is None:
        return result
    first = create_full(op, (), initial, dtype=x.dtype, device=x.device)
    return (fmin if least else fmax)(result, first)


@public(method=True, out=True, widen=False)
def nanargmin(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the first position of the smallest non-NaN element along `axis`; -1 if all are NaN.

    NumPy raises an error where all are NaN.

    - `axis`: one axis; None looks at the raveled tensor.

    Shapes: any with elements along `axis`; it is removed, or has size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: ShapeError if there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.nanargmin(dt.asarray([3.0, dt.nan, 2.0])).item()
    2
    """
    return _nan_extreme_position("nanargmin", x, axis, keepdims)


@public(method=True, out=True, widen=False)
def nanargmax(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the first position of the largest non-NaN element along `axis`; -1 if all are NaN.

    NumPy raises an error where all are NaN.

    - `axis`: one axis; None looks at the raveled tensor.

    Shapes: any with elements along `axis`; it is removed, or has size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: ShapeError if there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.nanargmax(dt.asarray([3.0, dt.nan, 2.0])).item()
    0
    """
    return _nan_extreme_position("nanargmax", x, axis, keepdims)


def _nan_extreme_position(op: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """Return the first position of the extreme without NaN; -1 if all are NaN."""
    if isinstance(axis, (tuple, list)):
        raise AxisError(f"{op}: axis must be one int, got {len(axis)} axes")
    extreme = _nan_extreme("nanmin" if op == "nanargmin" else "nanmax", x, axis, True)
    position = argmax(apply(ops.EQUAL, (x, extreme)), axis=axis, keepdims=keepdims)
    if x.dtype.kind != "f":
        return position
    all_nan = all_of(apply(ops.ISNAN, (x,)), axis=axis, keepdims=keepdims)
    return apply(ops.WHERE, (all_nan, -1, position))


@public(in_place=True, out=True, widen=False)
def nancumsum(
    x: Tensor, /, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the sums of the elements up to each one along `axis`, with NaN as 0.

    - `axis`: one axis; None ravels the tensor first.
    - `dtype`: the elements are cast to it first.

    Shapes: of at least 1 dimension; the result has the same, or is a vector.
    Dtypes: all, as for `cumulative_sum`.
    Order: k ascending, one after the other: the same bits on every device.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nancumsum(dt.asarray([1.0, dt.nan, 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    x = _replace_nan("nancumsum", x, 0.0)
    return cumulative_sum(
        ravel(x) if axis is None else x, axis=_axis_or_first("nancumsum", axis), dtype=dtype
    )


@public(in_place=True, out=True, widen=False)
def nancumprod(
    x: Tensor, /, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the products of the elements up to each one along `axis`, with NaN as 1.

    - `axis`: one axis; None ravels the tensor first.
    - `dtype`: the elements are cast to it first.

    Shapes: of at least 1 dimension; the result has the same, or is a vector.
    Dtypes: all, as for `cumulative_prod`.
    Order: k ascending, one after the other: the same bits on every device.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nancumprod(dt.asarray([3.0, dt.nan, 2.0])).tolist()
    [3.0, 3.0, 6.0]
    """
    x = _replace_nan("nancumprod", x, 1.0)
    along = _axis_or_first("nancumprod", axis)
    return cumulative_prod(ravel(x) if axis is None else x, axis=along, dtype=dtype)


def _axis_or_first(op: str, axis: int | None) -> int:
    """Return the axis, 0 for None. Raises: AxisError for a sequence of axes."""
    if isinstance(axis, (tuple, list)):
        raise AxisError(f"{op}: axis must be one int, got {len(axis)} axes")
    return 0 if axis is None else axis
