"""Reductions: sums, extremes and their positions, moments.

`axis` is None (all), an int or a tuple of ints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ... import callbacks
from ... import layout as lay
from ...argument_checks import flag, real
from ...compat.keywords import MISSING, rebind_keywords
from ...dtypes import DType, float32
from ...errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...layout import Shape
from ...ops import table as ops
from ...ops.table import Op
from ...settings import flags
from ...tensor.c_fields import is_strided
from ...tensor.other_layouts import require_along
from ...tensor.primitives import apply, dispatch, reduce, view
from ...tensor.promotion import Array, as_operand
from ...tensor.tensor import Tensor, drop_tape, required
from ...tensor.writes import write_out
from ..creation.constructors import Fill, create_full
from ..datatypes import (
    DTypeLike,
    any_dtype,
    cast,
    move_as,
    move_to_supporting_device,
    working_float,
)
from ..known_calls import reduce_cached, reduction_cache, reduction_key
from ..plain_calls import accelerate
from ..shape.manipulation import broadcast_to
from ..variants import public

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Axis = int | Sequence[int] | None
Mask = Array | bool | None


_NEEDS_ELEMENTS = frozenset((ops.MAX, ops.MIN, ops.ARGMAX, ops.ARGMIN))  # undefined for no elements


def _reduce(
    op: Op, x: Tensor, axis: Axis, keepdims: bool, out: Tensor | None, dtype: DType | None = None
) -> Tensor:
    """Record a reduction, with spec and axes from a cache; write into `out` if given."""
    result = reduce_cached(op, x, axis, keepdims, dtype)
    if result is None:
        result = _reduce_uncached(op, x, axis, keepdims, dtype)
        key = reduction_key(op, x, axis, keepdims, dtype)
        if key is not None:
            reduction_cache[key] = result._expr.spec, (lay.axes(op.name, axis, x.ndim), dtype)
    return result if out is None else write_out(op.name, out, result)


def _reduce_uncached(op: Op, x: Tensor, axis: Axis, keepdims: bool, dtype: DType | None) -> Tensor:
    """Check the arguments of a reduction and record it."""
    if op in _NEEDS_ELEMENTS:
        _require_elements(op.name, x, axis)
    required(op.name, x)
    if type(keepdims) is not bool:
        keepdims = flag(op.name, keepdims, "keepdims")
    args = (op, x, lay.axes(op.name, axis, x.ndim), keepdims, dtype)
    return reduce(*args) if is_strided(x) else dispatch("reduce", op.name, (x,), *args)


def _require_elements(op: str, x: Tensor, axis: Axis) -> None:
    """Raise ShapeError if there are no elements along the axes."""
    required(op, x)
    if not math.prod(x.shape[d] for d in lay.axes(op, axis, x.ndim)):
        where = "" if axis is None else f" along axis {axis}"
        raise ShapeError(f"{op}: expected at least one element{where}, got shape {x.shape}")


# op -> the value of no elements, and the op that adds `initial`, each None if there is none.
_MONOIDS: dict[Op, tuple[bool | Tensor | None, Op | None]] = {
    ops.SUM: (False, ops.ADD),
    ops.PROD: (True, ops.MULTIPLY),
    ops.MAX: (None, ops.MAXIMUM),
    ops.MIN: (None, ops.MINIMUM),
    ops.ANY: (False, None),
    ops.ALL: (True, None),
}


def _reduce_where(
    op: Op,
    x: Tensor,
    axis: Axis,
    keepdims: bool,
    out: Tensor | None,
    dtype: DType | None,
    where: Mask,
    initial: Fill | None,
) -> Tensor:
    """Record a reduction of the elements where a mask is True, combined with `initial`.

    Masked elements become the value of no elements, which for `max` and `min` is `initial`.
    Raises: ArgumentError for a mask without `initial` in `max` or `min`; as `full`, `_reduce`.
    """
    identity, combine = _MONOIDS[op]
    x, rounded = required(op.name, x), None
    if initial is not None:
        own = dtype or x.dtype
        if own.kind in "fc":  # one rounding, after `initial`
            x, dtype, rounded = cast(cast(x, own), own.compute), None, own
        if identity is None:
            identity = create_full(op.name, (), initial, dtype=x.dtype, device=x.device)
    if where is not None and where is not True:
        if identity is None:
            raise ArgumentError(
                f"{op.name}: where= needs initial=, the result if no element is True in where"
            )
        x = apply(ops.WHERE, (as_mask(op.name, where, x), x, identity))
    if isinstance(identity, Tensor) and not x.size:
        axes = lay.axes(op.name, axis, x.ndim)
        x = broadcast_to(identity, tuple([1 if d in axes else n for d, n in enumerate(x.shape)]))
    result = _reduce(op, x, axis, keepdims, None, dtype)
    if initial is not None and combine is not None:
        first = create_full(op.name, (), initial, dtype=result.dtype, device=x.device)
        result = cast(apply(combine, (result, first)), rounded)
    return result if out is None else write_out(op.name, out, result)


def as_mask(op: str, where: Mask, x: Tensor) -> Tensor:
    """Return the mask of a reduction as a tensor of the shape of `x`.

    Raises: DTypeError for a mask that is not bool, ShapeError for one that does not broadcast.
    """
    values = np.asarray(where) if isinstance(where, bool) else where
    mask = values if isinstance(values, Tensor) else as_operand(op, values, (x,))
    if mask.dtype.kind != "b":
        raise DTypeError(f"{op}: where must be bool, got {mask.dtype.name}; use x != 0")
    sizes = zip(reversed(mask.shape), reversed(x.shape), strict=False)
    if mask.ndim > x.ndim or not {True}.issuperset(n in (1, m) for n, m in sizes):
        raise ShapeError(
            f"{op}: where must broadcast to the shape of x, {x.shape}, got {mask.shape}"
        )
    return broadcast_to(mask, x.shape)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.SUM))
def sum(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
    **theirs: object,
) -> Tensor:
    """Return the sum of the elements over `axis`.

    The sum of no elements is 0. An empty axis therefore sums to 0, and `axis=()` returns the
    elements themselves.

    - `axis`: an int, a tuple of different ints such as (0, -1), or None for all axes; () sums over
      no axis.
    - `dtype`: the elements are cast to it first. Default: int64 or uint64 for integers and bool,
      else the dtype of `x`.
    - `initial`: a number that is added to the result.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; float16 and bfloat16 are summed in float32 and rounded once.
    Order: the canonical one (docs/numerics.md): 32 lanes, in chunks of 4096 elements. The bits
    depend only on the number of elements: not on device, threads, axis, strides or fusion.
    Raises: AxisError; DTypeError if `dtype` is bool.
    See also: `mean`, `prod`, `cumulative_sum`, `nansum`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]])
    >>> dt.sum(x).item(), dt.sum(x, axis=0).tolist()
    (10, [4, 6])
    """
    if more or theirs:
        return rebind_keywords(sum, locals())
    if flags.has_autocast and dtype is None and out is None:
        x = callbacks.autocast_operand("sum", x)
    d = None if dtype is None else _accumulation_dtype("sum", dtype)
    if where is not None or initial is not None:
        return _reduce_where(ops.SUM, x, axis, keepdims, out, d, where, initial)
    return _reduce(ops.SUM, x, axis, keepdims, out, d)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.PROD))
def prod(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
    **theirs: object,
) -> Tensor:
    """Return the product of the elements over `axis`.

    The product of no elements is 1.

    - `dtype`: the elements are cast to it first. Default: int64 or uint64 for integers and bool,
      else the dtype of `x`.
    - `initial`: a number that the result is multiplied by.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; float16 and bfloat16 are multiplied in float32 and rounded once.
    Order: the canonical one (docs/numerics.md), as for `sum`: the same bits on every device.
    Gradient: exact where elements are 0, and so are all higher derivatives.
    Raises: AxisError; DTypeError if `dtype` is bool.
    See also: `sum`, `cumulative_prod`, `nanprod`.

    >>> import dovetail as dt
    >>> dt.prod(dt.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [2, 12]
    """
    if more or theirs:
        return rebind_keywords(prod, locals())
    if flags.has_autocast and dtype is None and out is None:
        x = callbacks.autocast_operand("prod", x)
    d = None if dtype is None else _accumulation_dtype("prod", dtype)
    if where is not None or initial is not None:
        return _reduce_where(ops.PROD, x, axis, keepdims, out, d, where, initial)
    return _reduce(ops.PROD, x, axis, keepdims, out, d)


def _accumulation_dtype(op: str, dtype: DTypeLike) -> DType:
    """Return the dtype of a sum or product. Raises: DTypeError for bool."""
    resolved = any_dtype(op, dtype)
    if resolved.kind == "b":
        raise DTypeError(f"{op}: dtype must not be bool; use dt.any, dt.all or dt.count_nonzero")
    return resolved


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.MEAN))
def mean(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
    **theirs: object,
) -> Tensor:
    """Return the arithmetic mean of the elements over `axis`.

    The mean of no elements is NaN.

    - `dtype`: the elements are cast to it first. Default: float32 for integers and bool, else the
      dtype of `x`.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are summed in float32 and
    rounded once.
    Order: the canonical one (docs/numerics.md), as for `sum`: the same bits on every device.
    Raises: AxisError; DTypeError if `dtype` is bool.
    See also: `average`, `median`, `nanmean`, `var`.

    >>> import dovetail as dt
    >>> dt.mean(dt.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [2.0, 3.0]
    """
    if more or theirs:
        return rebind_keywords(mean, locals())
    if dtype is not None:
        x = cast(required("mean", x), _accumulation_dtype("mean", dtype))
    if where is not None and where is not True:
        work = working_float(required("mean", x).dtype)
        if work is x.dtype:
            result = _masked_mean("mean", x, where, axis, keepdims)
        else:
            wide, where = move_to_supporting_device("mean", work, x, where)
            result = _masked_mean("mean", cast(wide, work), where, axis, keepdims)
            result = move_as(result, x.dtype if x.dtype.kind in "fc" else float32, x.device)
        return result if out is None else write_out("mean", out, result)
    return _reduce(ops.MEAN, x, axis, keepdims, out)


def _masked_mean(op: str, x: Tensor, where: Mask, axis: Axis, keepdims: bool) -> Tensor:
    """Return the mean of the floats where a mask is True; NaN if there are none."""
    mask = as_mask(op, where, x)
    total = _reduce_where(ops.SUM, x, axis, keepdims, None, None, mask, None)
    count = _reduce(ops.COUNT_NONZERO, mask, axis, keepdims, None)
    return apply(ops.DIVIDE, (total, cast(count, total.dtype)))


def _second_tensor_error(op: str, what: str, other: str) -> ArgumentTypeError:
    """Return the error for a second tensor in the place of `axis` in `max` or `min`."""
    return ArgumentTypeError(
        f"{op}: axis must be an int or a tuple of ints, got a Tensor; for the {what} of two "
        f"tensors use dt.{other}(x, y)"
    )


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.MAX))
def max(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
    **theirs: object,
) -> Tensor:
    """Return the largest element over `axis`; NaN if one of them is NaN.

    - `axis`: an int, a tuple of ints, or None for all axes; a second tensor is an error, see
      `maximum`.
    - `initial`: the result is at least this number, also if there are no elements;
      required for `where`.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; the result has the same.
    Gradient: spread evenly over all largest elements (as `torch.amax`), or over the NaNs.
    Raises: ShapeError if there are no elements, AxisError.
    See also: `argmax`, `maximum`, `nanmax`, `topk`.

    >>> import dovetail as dt
    >>> dt.max(dt.asarray([[1, 9], [5, 4]]), axis=0).tolist()
    [5, 9]
    """
    if more or theirs:
        return rebind_keywords(max, locals())
    if isinstance(axis, Tensor):
        raise _second_tensor_error("max", "larger elements", "maximum")
    if where is not None or initial is not None:
        return _reduce_where(ops.MAX, x, axis, keepdims, out, None, where, initial)
    return _reduce(ops.MAX, x, axis, keepdims, out)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.MIN))
def min(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
    **theirs: object,
) -> Tensor:
    """Return the smallest element over `axis`; NaN if one of them is NaN.

    - `axis`: an int, a tuple of ints, or None for all axes; a second tensor is an error, see
      `minimum`.
    - `initial`: the result is at most this number, also if there are no elements;
      required for `where`.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; the result has the same.
    Gradient: spread evenly over all smallest elements (as `torch.amin`), or over the NaNs.
    Raises: ShapeError if there are no elements, AxisError.
    See also: `argmin`, `minimum`, `nanmin`.

    >>> import dovetail as dt
    >>> dt.min(dt.asarray([[1, 9], [5, 4]]), axis=0).tolist()
    [1, 4]
    """
    if more or theirs:
        return rebind_keywords(min, locals())
    if isinstance(axis, Tensor):
        raise _second_tensor_error("min", "smaller elements", "minimum")
    if where is not None or initial is not None:
        return _reduce_where(ops.MIN, x, axis, keepdims, out, None, where, initial)
    return _reduce(ops.MIN, x, axis, keepdims, out)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.ANY))
def any(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
    **theirs: object,
) -> Tensor:
    """Return True for each position where some element over `axis` is nonzero.

    NaN counts as nonzero; of no elements: False.

    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; gives bool.
    Raises: AxisError.
    See also: `all`, `count_nonzero`.

    >>> import dovetail as dt
    >>> dt.any(dt.asarray([[0, 0], [0, 4]]), axis=1).tolist()
    [False, True]
    """
    if more or theirs:
        return rebind_keywords(any, locals())
    if where is not None:
        return _reduce_where(ops.ANY, x, axis, keepdims, out, None, where, None)
    return _reduce(ops.ANY, x, axis, keepdims, out)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.ALL))
def all(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
    **theirs: object,
) -> Tensor:
    """Return True for each position where every element over `axis` is nonzero.

    NaN counts as nonzero; of no elements: True.

    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; gives bool.
    Raises: AxisError.
    See also: `any`, `count_nonzero`, `array_equal`.

    >>> import dovetail as dt
    >>> dt.all(dt.asarray([[1, 2], [0, 4]]), axis=1).tolist()
    [True, False]
    """
    if more or theirs:
        return rebind_keywords(all, locals())
    if where is not None:
        return _reduce_where(ops.ALL, x, axis, keepdims, out, None, where, None)
    return _reduce(ops.ALL, x, axis, keepdims, out)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.COUNT_NONZERO))
def count_nonzero(
    x: Tensor = MISSING,
    /,
    axis: Axis = None,
    *more: object,
    keepdims: bool = False,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Count the nonzero elements over `axis`.

    NaN counts as nonzero.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: AxisError.
    See also: `nonzero`, `any`.

    >>> import dovetail as dt
    >>> dt.count_nonzero(dt.asarray([3, 0, 5])).item()
    2
    """
    if more or theirs:
        return rebind_keywords(count_nonzero, locals())
    return _reduce(ops.COUNT_NONZERO, x, axis, keepdims, out)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.ARGMAX))
def argmax(
    x: Tensor = MISSING,
    /,
    axis: int | None = None,
    *more: object,
    keepdims: bool = False,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return the position of the largest element along `axis`, as int64.

    Of several equal elements it is the first, and the first NaN if there is one.

    - `axis`: one axis; None gives the position in row-major order among all elements.

    Shapes: any with elements along `axis`; the axis is removed, or has size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: ShapeError if there are no elements, AxisError.
    See also: `max`, `argmin`, `topk`.

    >>> import dovetail as dt
    >>> dt.argmax(dt.asarray([3, 9, 9])).item()
    1
    """
    if more or theirs:
        return rebind_keywords(argmax, locals())
    return _reduce_to_position(ops.ARGMAX, x, axis, keepdims, out)


@public(method=True, wrap=False, compiled=partial(accelerate, work=ops.ARGMIN))
def argmin(
    x: Tensor = MISSING,
    /,
    axis: int | None = None,
    *more: object,
    keepdims: bool = False,
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Return the position of the smallest element along `axis`, as int64.

    Of several equal elements it is the first, and the first NaN if there is one.

    - `axis`: one axis; None gives the position in row-major order among all elements.

    Shapes: any with elements along `axis`; the axis is removed, or has size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: ShapeError if there are no elements, AxisError.
    See also: `min`, `argmax`.

    >>> import dovetail as dt
    >>> dt.argmin(dt.asarray([3, 9, 9])).item()
    0
    """
    if more or theirs:
        return rebind_keywords(argmin, locals())
    return _reduce_to_position(ops.ARGMIN, x, axis, keepdims, out)


def _reduce_to_position(
    op: Op, x: Tensor, axis: int | None, keepdims: bool, out: Tensor | None
) -> Tensor:
    """Record `argmax` or `argmin`; accept any integer as the axis."""
    if axis is not None and type(axis) is not int:
        axis = lay.axis(op.name, axis, required(op.name, x).ndim)
    return _reduce(op, x, axis, keepdims, out)


@public(method=True, cache=True)
def var(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the variance over `axis`: the mean of the squared distances from the mean.

    One kernel, two passes.
    If n - c is not positive, as for no elements, the result is NaN or infinite.

    - `correction`: c in the divisor n - c, a number. The default 0 divides by n as NumPy does; 1
      gives the unbiased estimate, PyTorch's default.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are computed in float32.
    Order: the canonical one (docs/numerics.md) for both sums: the same bits on every device.
    Raises: AxisError, ArgumentError for a `correction` that is not a number.
    See also: `std`, `mean`, `nanvar`, `cov`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 3.0])
    >>> dt.var(x).item(), dt.var(x, correction=1).item()
    (1.0, 2.0)
    """
    return move_as(variance("var", x, axis, correction, keepdims, where), float_dtype(x), x.device)


@public(method=True, cache=True)
def std(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the standard deviation over `axis`: the square root of `var`.

    See `var`, also for the result of no elements.

    - `correction`: c in the divisor n - c, a number. The default 0 divides by n as NumPy does; 1
      gives PyTorch's default.
    - `where`: a bool mask that broadcasts to `x`: elements where it is False are left out.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are computed in float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Gradient: 0 where all elements are equal.
    Raises: AxisError, ArgumentError for a `correction` that is not a number.
    See also: `var`, `nanstd`.

    >>> import dovetail as dt
    >>> dt.std(dt.asarray([1.0, 3.0])).item()
    1.0
    """
    return deviation("std", x, axis, correction, keepdims, where)


def deviation(
    op: str,
    x: Tensor,
    axis: Axis,
    correction: float,
    keepdims: bool,
    where: Mask,
    without_divisor: float = 0.0,
) -> Tensor:
    """Return the root of `variance`, in the dtype of `std`; its gradient is 0 at 0."""
    v = variance(op, x, axis, correction, keepdims, where, without_divisor)
    if not is_strided(v) or v._expr.tape is None:
        return move_as(apply(ops.SQRT, (v,)), float_dtype(x), x.device)
    none = apply(ops.EQUAL, (v, 0))  # for equal elements the gradient is 0, not 0 / 0
    root = apply(ops.SQRT, (apply(ops.WHERE, (none, 1.0, v)),))
    return cast(apply(ops.WHERE, (none, 0.0, root)), float_dtype(x))


def float_dtype(x: Tensor) -> DType:
    """Return the real dtype of a float or complex tensor, float32 for others."""
    return x.dtype.part if x.dtype.kind in "fc" else float32


def abs_squared(x: Tensor) -> Tensor:
    """Return x * x, for a complex number the square of its absolute value."""
    if x.dtype.kind != "c":
        return apply(ops.SQUARE, (x,))
    return apply(ops.REAL, (apply(ops.MULTIPLY, (x, apply(ops.CONJ, (x,)))),))


def variance(
    op: str,
    x: Tensor,
    axis: Axis,
    correction: float,
    keepdims: bool,
    where: Mask,
    without_divisor: float = 0.0,
) -> Tensor:
    """Return the variance in the dtype in which it is computed, on a device that supports it.

    without_divisor: the divisor in place of one that is not positive.
    """
    if isinstance(axis, bool):
        raise ArgumentTypeError(
            f"{op}: axis must be an int or a tuple of ints, got {axis}; instead of PyTorch's "
            f"unbiased={axis} use correction={int(axis)}"
        )
    correction, keepdims = real(op, correction, "correction"), flag(op, keepdims, "keepdims")
    axes = lay.axes(op, axis, required(op, x).ndim)  # raises on behalf of the op
    masked = where is not None and where is not True
    if (work := working_float(x.dtype)) is not x.dtype:
        x, where = move_to_supporting_device(op, work, x, where)
    if not is_strided(x) and not masked:
        return dispatch("variance", op, (x,), x, axes, correction, keepdims)
    wide = cast(x, work)
    if masked:
        mask = as_mask(op, where, x)
        away = apply(ops.SUBTRACT, (wide, _masked_mean(op, wide, mask, axes, True)))
        away = apply(ops.WHERE, (mask, away, 0.0))  # before squaring: no NaN enters the gradient
    else:
        away = wide - _reduce(ops.MEAN, wide, axis, True, None)
    total = _reduce(ops.SUM, abs_squared(away), axis, keepdims, None)
    if not masked:
        left = x.size // (total.size or 1) - correction
        return total / (left if left > 0 else without_divisor)
    count = _reduce(ops.COUNT_NONZERO, mask, axis, keepdims, None)
    divisor = apply(ops.SUBTRACT, (cast(count, total.dtype), correction))
    positive = apply(ops.GREATER, (divisor, 0))
    return apply(ops.DIVIDE, (total, apply(ops.WHERE, (positive, divisor, without_divisor))))


@public(method=True, cache=True)
def logsumexp(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of exp(x) over `axis`, without overflow, in one kernel.

    The largest element is subtracted first and added at the end. The result of -inf alone is -inf.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: signed and unsigned integers (giving float32) and floats.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Raises: ShapeError if there are no elements, AxisError.
    See also: `softmax`, `log_softmax`, `logaddexp`, `cumulative_logsumexp`.

    >>> import dovetail as dt
    >>> dt.logsumexp(dt.asarray([1000.0, -dt.inf])).item()
    1000.0
    """
    x = require_along("logsumexp", x)
    _require_elements("logsumexp", x, axis)
    axes, keepdims = lay.axes("logsumexp", axis, x.ndim), flag("logsumexp", keepdims, "keepdims")
    d, home = float_dtype(x), x.device
    if x.dtype.is_integer:
        work = working_float(x.dtype)
        (x,) = move_to_supporting_device("logsumexp", work, x)
        x = cast(x, work)
    top = _reduce(ops.MAX, cast(x, float_dtype(x)), axes, True, None)
    top = apply(ops.WHERE, (apply(ops.ISFINITE, (top,)), top, 0.0))
    top = drop_tape(top) if is_strided(top) else top.detach()
    total = _reduce(ops.SUM, apply(ops.TABLE["exp"], (x - top,)), axes, keepdims, None)
    result = apply(ops.TABLE["log"], (total,)) + _squeeze(top, axes, keepdims)
    return move_as(result, d, home)


def _squeeze(x: Tensor, axes: Shape, keepdims: bool) -> Tensor:
    """Return a view without the axes, which have size 1; `x` itself if `keepdims`."""
    shape = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    return x if keepdims else view(x, ("reshape", shape))
