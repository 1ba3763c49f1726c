"""Reductions: sums, extremes, their places, moments.

`axis` is None (all), an int or a tuple of ints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import layout as lay
from ...arguments import flag, real
from ...compat.keywords import UNGIVEN, retold
from ...dtypes import DType, float32
from ...errors import ArgumentTypeError, DTypeError, ShapeError
from ...graph.expr import Spec, node
from ...layout import Shape
from ...ops import table as ops
from ...ops.table import Op
from ...recent import Recent
from ...tensor.fields import expr_of, is_strided
from ...tensor.tensor import Tensor, make, required, strided, untaped
from ...tensor.verbs import apply, dispatch, reduce, view
from ...tensor.writes import write_out
from ..datatypes import DTypeLike, any_dtype, cast, working_float
from ..variants import remade

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "min", "prod",
    "std", "sum", "var",
]  # fmt: skip

Axis = int | Sequence[int] | None


# What was reduced before, as it was asked for -> the result's spec, and what its node says.
_reductions: Recent[tuple[object, ...], tuple[Spec, tuple[Shape, DType | None]]] = Recent(4096)
_young = _reductions.young  # which stays the same dict
_FULL = frozenset((ops.MAX, ops.MIN, ops.ARGMAX, ops.ARGMIN))  # of no elements there is none


def _reduce(
    op: Op, x: Tensor, axis: Axis, keepdims: bool, out: Tensor | None, dtype: DType | None = None
) -> Tensor:
    plain = type(x) is Tensor and type(keepdims) is bool and (axis is None or type(axis) is int)
    key = (op, expr_of(x).spec, axis, keepdims, dtype) if plain else ()
    known = _young.get(key)
    if known is None:
        known = _reductions.find(key)
    if known is None:
        found = _first(op, x, axis, keepdims, dtype)
        if plain:
            made = found._expr.spec
            _reductions[key] = made, (lay.axes(op.name, axis, x.ndim), dtype)
    else:
        s, attrs = known
        found = make(node(op, (expr_of(x),), s, attrs))
    return found if out is None else write_out(op.name, out, found)


def _first(op: Op, x: Tensor, axis: Axis, keepdims: bool, dtype: DType | None) -> Tensor:
    """A reduction of which nothing is known."""
    if op in _FULL:
        _require_elements(op.name, x, axis)
    required(op.name, x)
    if type(keepdims) is not bool:
        keepdims = flag(op.name, keepdims, "keepdims")
    args = (op, x, lay.axes(op.name, axis, x.ndim), keepdims, dtype)
    return reduce(*args) if type(x) is Tensor else dispatch("reduce", op.name, (x,), *args)


def _require_elements(op: str, x: Tensor, axis: Axis) -> None:
    """Raises: ShapeError where nothing is there to choose from."""
    required(op, x)
    if not math.prod(x.shape[d] for d in lay.axes(op, axis, x.ndim)):
        raise ShapeError(
            f"{op}: shape {x.shape} has no elements along axis {axis}, so there is no {op}"
        )


def sum(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, dtype: DTypeLike = None, keepdims:
    bool = False, out: Tensor | None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """The sum of the elements over `axis`.

    Integers and bool are summed in int64 or uint64, floats in their own dtype; `dtype` is another
    one to which the elements are cast first. The sum of no elements is 0.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; float16 and bfloat16 are summed in float32 and rounded once.
    Order: the canonical one (docs/numerics.md): 32 lanes, in chunks of 4096 elements. So the bits
    depend on the number of elements alone: not on device, threads, axis, strides or fusion.
    Raises: AxisError; DTypeError where `dtype` is bool.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> dt.sum(x).item(), dt.sum(x, axis=0).tolist()
    (10, [4, 6])
    """
    if more or theirs:
        return retold(sum, locals())
    d = None if dtype is None else _chosen("sum", dtype)
    return _reduce(ops.SUM, x, axis, keepdims, out, d)


def prod(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, dtype: DTypeLike = None, keepdims:
    bool = False, out: Tensor | None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """The product of the elements over `axis`.

    `dtype` is as for `sum`. The product of no elements is 1.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; integers and bool give int64 or uint64, float16 and bfloat16 are multiplied in
    float32 and rounded once.
    Order: the canonical one (docs/numerics.md), as for `sum`: the same bits on every device.
    Gradient: exact where elements are 0, and so are all higher derivatives.
    Raises: AxisError; DTypeError where `dtype` is bool.

    >>> import dovetail as dt
    >>> dt.prod(dt.asarray([[1, 2], [3, 4]], device="reference"), axis=1).tolist()
    [2, 12]
    """
    if more or theirs:
        return retold(prod, locals())
    d = None if dtype is None else _chosen("prod", dtype)
    return _reduce(ops.PROD, x, axis, keepdims, out, d)


def _chosen(op: str, dtype: DTypeLike) -> DType:
    found = any_dtype(op, dtype)
    if found.kind == "b":
        raise DTypeError(f"{op}: bool holds no sums; use dt.any, dt.all or dt.count_nonzero")
    return found


def mean(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, dtype: DTypeLike = None, keepdims:
    bool = False, out: Tensor | None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """The arithmetic mean of the elements over `axis`.

    The mean of no elements is NaN.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are summed in float32 and
    rounded once. `dtype` is one to which the elements are cast first.
    Order: the canonical one (docs/numerics.md), as for `sum`: the same bits on every device.
    Raises: AxisError; DTypeError where `dtype` is bool.

    >>> import dovetail as dt
    >>> dt.mean(dt.asarray([[1, 2], [3, 4]], device="reference"), axis=0).tolist()
    [2.0, 3.0]
    """
    if more or theirs:
        return retold(mean, locals())
    if dtype is not None:
        x = cast(required("mean", x), _chosen("mean", dtype))
    return _reduce(ops.MEAN, x, axis, keepdims, out)


def _of_two(op: str, what: str, other: str) -> ArgumentTypeError:
    """The error of who gives `max` or `min` a second tensor."""
    return ArgumentTypeError(
        f"{op}: axis is an int or a tuple of ints, not a Tensor; the {what} ones of two tensors: "
        f"dt.{other}(x, y)"
    )


def max(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, keepdims: bool = False, out: Tensor |
    None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """The largest element over `axis`; NaN where one of them is NaN.

    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; the result has the same.
    Gradient: spread evenly over all largest elements (as `torch.amax`), or over the NaNs.
    Raises: ShapeError where there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.max(dt.asarray([[1, 9], [5, 4]], device="reference"), axis=0).tolist()
    [5, 9]
    """
    if more or theirs:
        return retold(max, locals())
    if isinstance(axis, Tensor):
        raise _of_two("max", "larger", "maximum")
    return _reduce(ops.MAX, x, axis, keepdims, out)


def min(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, keepdims: bool = False, out: Tensor |
    None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """The smallest element over `axis`; NaN where one of them is NaN.

    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; the result has the same.
    Gradient: spread evenly over all smallest elements (as `torch.amin`), or over the NaNs.
    Raises: ShapeError where there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.min(dt.asarray([[1, 9], [5, 4]], device="reference"), axis=0).tolist()
    [1, 4]
    """
    if more or theirs:
        return retold(min, locals())
    if isinstance(axis, Tensor):
        raise _of_two("min", "smaller", "minimum")
    return _reduce(ops.MIN, x, axis, keepdims, out)


def any(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, keepdims: bool = False, out: Tensor |
    None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """Whether some element over `axis` is nonzero.

    NaN counts as nonzero; of no elements: False.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; gives bool.
    Raises: AxisError.

    >>> import dovetail as dt
    >>> dt.any(dt.asarray([[0, 0], [0, 4]], device="reference"), axis=1).tolist()
    [False, True]
    """
    if more or theirs:
        return retold(any, locals())
    return _reduce(ops.ANY, x, axis, keepdims, out)


def all(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, keepdims: bool = False, out: Tensor |
    None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """Whether every element over `axis` is nonzero.

    NaN counts as nonzero; of no elements: True.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; gives bool.
    Raises: AxisError.

    >>> import dovetail as dt
    >>> dt.all(dt.asarray([[1, 2], [0, 4]], device="reference"), axis=1).tolist()
    [True, False]
    """
    if more or theirs:
        return retold(all, locals())
    return _reduce(ops.ALL, x, axis, keepdims, out)


def count_nonzero(
    x: Tensor = UNGIVEN, /, axis: Axis = None, *more: object, keepdims: bool = False, out: Tensor |
    None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """How many elements over `axis` are nonzero.

    NaN counts as nonzero.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: AxisError.

    >>> import dovetail as dt
    >>> dt.count_nonzero(dt.asarray([3, 0, 5], device="reference")).item()
    2
    """
    if more or theirs:
        return retold(count_nonzero, locals())
    return _reduce(ops.COUNT_NONZERO, x, axis, keepdims, out)


def argmax(
    x: Tensor = UNGIVEN, /, axis: int | None = None, *more: object, keepdims: bool = False, out:
    Tensor | None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """The position of the largest element along `axis`, as int64.

    It is that of the first one where several are equal, of the first NaN where there is one. With
    None it counts in row-major order over all elements; several axes at once are not taken.
    Shapes: any with elements along `axis`; the axis goes, or stays with size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: ShapeError where there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.argmax(dt.asarray([3, 9, 9], device="reference")).item()
    1
    """
    if more or theirs:
        return retold(argmax, locals())
    return _place(ops.ARGMAX, x, axis, keepdims, out)


def argmin(
    x: Tensor = UNGIVEN, /, axis: int | None = None, *more: object, keepdims: bool = False, out:
    Tensor | None = None, **theirs: object,
) -> Tensor:  # fmt: skip
    """The position of the smallest element along `axis`, as int64.

    It is that of the first one where several are equal, of the first NaN where there is one. With
    None it counts in row-major order over all elements; several axes at once are not taken.
    Shapes: any with elements along `axis`; the axis goes, or stays with size 1 with `keepdims`.
    Dtypes: all; gives int64.
    Raises: ShapeError where there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.argmin(dt.asarray([3, 9, 9], device="reference")).item()
    0
    """
    if more or theirs:
        return retold(argmin, locals())
    return _place(ops.ARGMIN, x, axis, keepdims, out)


def _place(op: Op, x: Tensor, axis: int | None, keepdims: bool, out: Tensor | None) -> Tensor:
    if axis is not None and type(axis) is not int:
        axis = lay.axis(op.name, axis, required(op.name, x).ndim)
    return _reduce(op, x, axis, keepdims, out)


@remade
def var(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The variance over `axis`: the mean of the squared distances from the mean.

    `correction`: c in the divisor n - c; 1 gives the unbiased estimate. Where n - c is not above 0,
    as for no elements, the result is NaN or infinite. One kernel, two passes.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are computed in float32.
    Order: the canonical one (docs/numerics.md) for both sums: the same bits on every device.
    Raises: AxisError, ArgumentError for a `correction` that is no number.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 3.0], device="reference")
    >>> dt.var(x).item(), dt.var(x, correction=1).item()
    (1.0, 2.0)
    """
    return cast(_variance("var", x, axis, correction, keepdims), _floating(x))


@remade
def std(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation over `axis`: the square root of `var`.

    `correction`: c in the divisor n - c; see `var`, also for what there is of no elements.
    Shapes: any; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32, float16 and bfloat16 are computed in float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Gradient: 0 where all elements are equal.
    Raises: AxisError, ArgumentError for a `correction` that is no number.

    >>> import dovetail as dt
    >>> dt.std(dt.asarray([1.0, 3.0], device="reference")).item()
    1.0
    """
    v = _variance("std", x, axis, correction, keepdims)
    if not is_strided(v) or v._expr.tape is None:
        return cast(apply(ops.SQRT, (v,)), _floating(x))
    none = apply(ops.EQUAL, (v, 0))  # where nothing varies the gradient is 0, not 0 / 0
    root = apply(ops.SQRT, (apply(ops.WHERE, (none, 1.0, v)),))
    return cast(apply(ops.WHERE, (none, 0.0, root)), _floating(x))


def _floating(x: Tensor) -> DType:
    return x.dtype.part if x.dtype.kind in "fc" else float32


def squared_size(x: Tensor) -> Tensor:
    """x * x; of a complex number its size squared."""
    if x.dtype.kind != "c":
        return apply(ops.SQUARE, (x,))
    return apply(ops.REAL, (apply(ops.MULTIPLY, (x, apply(ops.CONJ, (x,)))),))


def _variance(op: str, x: Tensor, axis: Axis, correction: float, keepdims: bool) -> Tensor:
    """Return the variance in the dtype in which it is computed, of halves float32."""
    if isinstance(axis, bool):
        raise ArgumentTypeError(
            f"{op}: axis must be an int or a tuple of ints, got {axis}; for PyTorch's "
            f"unbiased={axis} write correction={int(axis)}"
        )
    correction, keepdims = real(op, correction, "correction"), flag(op, keepdims, "keepdims")
    axes = lay.axes(op, axis, required(op, x).ndim)  # raises on behalf of the op
    if not is_strided(x):
        return dispatch("variance", op, (x,), x, axes, correction, keepdims)
    wide = cast(x, working_float(x.dtype))
    away = wide - _reduce(ops.MEAN, wide, axis, True, None)
    total = _reduce(ops.SUM, squared_size(away), axis, keepdims, None)
    left = x.size // (total.size or 1) - correction
    return total / (left if left > 0 else 0.0)


@remade
def logsumexp(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exp(x) over `axis`, without overflow; one kernel.

    The largest element is taken off first and added again at the end. Of -inf alone it is -inf.
    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: signed and unsigned integers (giving float32) and floats.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Raises: ShapeError where there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.logsumexp(dt.asarray([1000.0, -dt.inf], device="reference")).item()
    1000.0
    """
    _require_elements("logsumexp", strided("logsumexp", x), axis)
    axes, keepdims = lay.axes("logsumexp", axis, x.ndim), flag("logsumexp", keepdims, "keepdims")
    d, x = _floating(x), cast(x, working_float(x.dtype)) if x.dtype.is_integer else x
    top = reduce(ops.MAX, cast(x, _floating(x)), axes, True)
    top = untaped(apply(ops.WHERE, (apply(ops.ISFINITE, (top,)), top, 0.0)))
    total = reduce(ops.SUM, apply(ops.TABLE["exp"], (x - top,)), axes, keepdims)
    return cast(apply(ops.TABLE["log"], (total,)) + _squeezed(top, axes, keepdims), d)


def _squeezed(x: Tensor, axes: Shape, keepdims: bool) -> Tensor:
    kept = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    return x if keepdims else view(x, ("reshape", kept))
