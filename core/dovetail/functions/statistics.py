"""Reductions: sums, extremes, their places, moments. `axis` is None (all), an int or a tuple of
ints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import layout as lay
from ..arguments import flag, named, real
from ..dtypes import DType, float32
from ..errors import DTypeError, ShapeError
from ..layout import Shape
from ..ops import table as ops
from ..ops.table import Op
from ..tensor.tensor import Tensor, required, strided, untaped
from ..tensor.verbs import apply, dispatch, reduce, view
from ..tensor.writes import write_out
from .datatypes import DTypeLike, cast, real_dtype

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "min", "prod",
    "std", "sum", "var",
]  # fmt: skip

Axis = int | Sequence[int] | None


def _reduce(
    op: Op, x: Tensor, axis: Axis, keepdims: bool, out: Tensor | None, dtype: DType | None = None
) -> Tensor:
    required(op.name, x)
    if type(keepdims) is not bool:
        keepdims = flag(op.name, keepdims, "keepdims")
    args = (op, x, lay.axes(op.name, axis, x.ndim), keepdims, dtype)
    found = reduce(*args) if type(x) is Tensor else dispatch("reduce", op.name, (x,), *args)
    return found if out is None else write_out(op.name, out, found)


def _require_elements(op: str, x: Tensor, axis: Axis) -> None:
    """Raises: ShapeError where nothing is there to choose from."""
    required(op, x)
    if not math.prod(x.shape[d] for d in lay.axes(op, axis, x.ndim)):
        raise ShapeError(
            f"{op}: shape {x.shape} has no elements along axis {axis}, so there is no {op}"
        )


def sum(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over `axis`. Integers and bool are summed in int64 or uint64 unless `dtype` is given.

    >>> import dovetail as dt
    >>> dt.sum(dt.asarray([[1, 2], [3, 4]], device="reference"), axis=0).tolist()
    [4, 6]
    """
    return _reduce(ops.SUM, x, axis, keepdims, out, _chosen("sum", dtype))


def prod(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The product over `axis`; dtypes as for `sum`."""
    return _reduce(ops.PROD, x, axis, keepdims, out, _chosen("prod", dtype))


def _chosen(op: str, dtype: DTypeLike) -> DType | None:
    if dtype is None:
        return None
    found = real_dtype(op, dtype)
    if found.kind == "b":
        raise DTypeError(f"{op}: bool holds no sums; use dt.any, dt.all or dt.count_nonzero")
    return found


def mean(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The arithmetic mean over `axis`; of integers, in float32. Of nothing: NaN."""
    return _reduce(ops.MEAN, cast(required("mean", x), _chosen("mean", dtype)), axis, keepdims, out)


def max(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The largest element over `axis`; NaN wins. Raises: ShapeError where there are no elements."""
    _require_elements("max", x, axis)
    return _reduce(ops.MAX, x, axis, keepdims, out)


def min(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The smallest element over `axis`; NaN wins. Raises: ShapeError where there are no
    elements.
    """
    _require_elements("min", x, axis)
    return _reduce(ops.MIN, x, axis, keepdims, out)


def any(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether some element over `axis` is nonzero."""
    return _reduce(ops.ANY, x, axis, keepdims, out)


def all(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether every element over `axis` is nonzero."""
    return _reduce(ops.ALL, x, axis, keepdims, out)


def count_nonzero(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """How many elements over `axis` are nonzero, as int64."""
    return _reduce(ops.COUNT_NONZERO, x, axis, keepdims, out)


def argmax(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Where the first largest element along `axis` is (of all elements, in row-major order, for
    None), as int64.

    >>> import dovetail as dt
    >>> dt.argmax(dt.asarray([3, 9, 9], device="reference")).item()
    1
    """
    return _place(ops.ARGMAX, x, axis, keepdims, out)


def argmin(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Where the first smallest element along `axis` is (of all elements, in row-major order, for
    None), as int64.
    """
    return _place(ops.ARGMIN, x, axis, keepdims, out)


def _place(op: Op, x: Tensor, axis: int | None, keepdims: bool, out: Tensor | None) -> Tensor:
    axis = axis if axis is None else lay.axis(op.name, axis, required(op.name, x).ndim)
    _require_elements(op.name, x, axis)
    return _reduce(op, x, axis, keepdims, out)


@named
def var(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The variance over `axis`: squared distances from the mean, over n - correction. One kernel,
    two passes.

    >>> import dovetail as dt
    >>> dt.var(dt.asarray([1.0, 3.0], device="reference")).item()
    1.0
    """
    found = _variance("var", x, axis, correction, keepdims)
    result = cast(found, _floating(x))
    return result if out is None else write_out("var", out, result)


@named
def std(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation over `axis`: the square root of `var`."""
    v = _variance("std", x, axis, correction, keepdims)
    none = apply(ops.EQUAL, (v, 0))  # where nothing varies the gradient is 0, not 0 / 0
    root = apply(ops.SQRT, (apply(ops.WHERE, (none, 1.0, v)),))
    result = cast(apply(ops.WHERE, (none, 0.0, root)), _floating(x))
    return result if out is None else write_out("std", out, result)


def _floating(x: Tensor) -> DType:
    return x.dtype if x.dtype.kind == "f" else float32


def _variance(op: str, x: Tensor, axis: Axis, correction: float, keepdims: bool) -> Tensor:
    """In float32 for floats of reduced precision: their squares would not do."""
    axes = lay.axes(op, axis, strided(op, x).ndim)
    correction, keepdims = real(op, correction, "correction"), flag(op, keepdims, "keepdims")
    n = math.prod(x.shape[d] for d in axes)
    wide = cast(x, x.dtype.compute)
    away = wide - reduce(ops.MEAN, wide, axes, True)
    total = reduce(ops.SUM, apply(ops.SQUARE, (away,)), axes, keepdims)
    left = n - correction
    return total / (left if left > 0 else 0.0)


@named
def logsumexp(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over `axis`, without overflow."""
    _require_elements("logsumexp", strided("logsumexp", x), axis)
    axes, keepdims = lay.axes("logsumexp", axis, x.ndim), flag("logsumexp", keepdims, "keepdims")
    top = reduce(ops.MAX, cast(x, _floating(x)), axes, True)
    top = untaped(apply(ops.WHERE, (apply(ops.ISFINITE, (top,)), top, 0.0)))
    total = reduce(ops.SUM, apply(ops.TABLE["exp"], (x - top,)), axes, keepdims)
    return apply(ops.TABLE["log"], (total,)) + _squeezed(top, axes, keepdims)


def _squeezed(x: Tensor, axes: Shape, keepdims: bool) -> Tensor:
    kept = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    return x if keepdims else view(x, ("reshape", kept))
