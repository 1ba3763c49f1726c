"""Reductions, running sums and products, argmax, argmin and top-k."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import dovetail as dt

from .table import OperatorCall, register_operator

Tensor = dt.Tensor
Reduction = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _sum(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Return the sum in the dtype of x."""
    return dt.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _reduce_as_floats(f: Reduction, x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Reduce in floats, as integers have no roots and logarithms."""
    wide = x if x.dtype.kind == "f" else x.astype(dt.float64)
    return f(wide, axes, keep).astype(x.dtype)


def _log_sum_exp(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Return log(sum(exp(x))), and -inf for no elements."""
    if any(x.shape[d] == 0 for d in axes):
        return dt.log(_sum(x, axes, keep))
    return dt.logsumexp(x, axis=axes, keepdims=keep)


def _mean(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Return the mean; of integers, rounded down."""
    if x.dtype.kind == "f":
        return dt.mean(x, axis=axes, keepdims=keep)
    return dt.floor_divide(_sum(x, axes, keep), math.prod(x.shape[d] for d in axes))


def _extreme(
    f: Callable[..., Tensor], use_lowest: bool, x: Tensor, axes: tuple[int, ...], keep: bool
) -> Tensor:
    """Reduce to the extreme; of no elements, to the least or largest value of the dtype."""
    if any(x.shape[d] == 0 for d in axes):
        shape = [1 if d in axes else n for d, n in enumerate(x.shape) if keep or d not in axes]
        return dt.full(shape, dtype_bound(x.dtype, use_lowest), dtype=x.dtype, device=x.device)
    return f(x, axis=axes, keepdims=keep)


def dtype_bound(d: dt.DType, use_lowest: bool) -> Any:
    """Return the lowest or the highest value of a dtype; for floats, an infinity."""
    if d is dt.bool:
        return not use_lowest
    if d.kind == "f":
        return -math.inf if use_lowest else math.inf
    info = dt.iinfo(d)
    return info.min if use_lowest else info.max


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": _sum,
    "ReduceProd": lambda x, axes, keep: dt.prod(x, axis=axes, keepdims=keep, dtype=x.dtype),
    "ReduceMean": _mean,
    "ReduceMax": partial(_extreme, dt.max, True),
    "ReduceMin": partial(_extreme, dt.min, False),
    "ReduceL1": lambda x, axes, keep: _sum(dt.abs(x), axes, keep),
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceL2": partial(_reduce_as_floats, lambda x, axes, keep: dt.sqrt(_sum(x * x, axes, keep))),
    "ReduceLogSum": partial(_reduce_as_floats, lambda x, axes, keep: dt.log(_sum(x, axes, keep))),
    "ReduceLogSumExp": partial(_reduce_as_floats, _log_sum_exp),
}


def _reduce(f: Reduction, call: OperatorCall, x: Tensor, axes_input: Any = None) -> Tensor:
    """Reduce over the axes of an input or attribute, by default over all."""
    axes = call.axes(axes_input, x.ndim)
    if not axes:
        if call.get("noop_with_empty_axes", 0):
            return _reduce_each(call.op, x)
        axes = tuple(range(x.ndim))
    return f(x, tuple(sorted(set(axes))), bool(call.get("keepdims", 1)))


def _reduce_each(op: str, x: Tensor) -> Tensor:
    """Reduce each element on its own, as a reduction over no axis does."""
    ones = _REDUCTIONS[op](dt.expand_dims(x, axis=0), (0,), False)
    return ones if op not in ("ReduceSum", "ReduceProd", "ReduceMean") else x.copy()


for _name, _f in _REDUCTIONS.items():
    register_operator(_name, host=(1,))(partial(_reduce, _f))


def _arg_reduce(f: Callable[..., Tensor], call: OperatorCall, x: Tensor) -> Tensor:
    """Return the index of an extreme along an axis: the first one, or the last if wanted."""
    axis, keep = call.axis(call.get("axis", 0), x.ndim), bool(call.get("keepdims", 1))
    if not call.get("select_last_index", 0):
        return f(x, axis=axis, keepdims=keep)
    return x.shape[axis] - 1 - f(dt.flip(x, axis=axis), axis=axis, keepdims=keep)


register_operator("ArgMax")(partial(_arg_reduce, dt.argmax))
register_operator("ArgMin")(partial(_arg_reduce, dt.argmin))


def _accumulate(f: Callable[..., Tensor], call: OperatorCall, x: Tensor, axis_input: Any) -> Tensor:
    """Run a cumulative function along an axis, reversed or exclusive if the node says so."""
    axis = call.axis(call.number(axis_input), x.ndim)
    x = dt.flip(x, axis=axis) if call.get("reverse", 0) else x
    if call.get("exclusive", 0):
        result = f(x, axis=axis, dtype=x.dtype, include_initial=True)
        index = [slice(None)] * x.ndim
        index[axis] = slice(0, x.shape[axis])
        result = result[tuple(index)]
    else:
        result = f(x, axis=axis, dtype=x.dtype)
    return dt.flip(result, axis=axis) if call.get("reverse", 0) else result


@register_operator("CumSum", host=(1,))
def _cumulative_sum(call: OperatorCall, x: Tensor, axis_input: Any) -> Tensor:
    """Return the running sum along an axis."""
    return _accumulate(dt.cumulative_sum, call, x, axis_input)


@register_operator("CumProd", host=(1,))
def _cumulative_prod(call: OperatorCall, x: Tensor, axis_input: Any) -> Tensor:
    """Return the running product along an axis."""
    return _accumulate(dt.cumulative_prod, call, x, axis_input)


@register_operator("TopK", host=(1,))
def _top_k(call: OperatorCall, x: Tensor, k: Any = None) -> tuple[Tensor, Tensor]:
    """Return the k largest or smallest elements, sorted, and their indices.

    Raises: ArgumentError unless the axis has k elements.
    """
    axis = call.axis(call.get("axis", -1), x.ndim)
    count = call.get("k") if k is None else call.number(k)
    if not 0 <= count <= x.shape[axis]:
        raise dt.ArgumentError(
            f"TopK: k must be between 0 and {x.shape[axis]}, the size of the axis, got {count}"
        )
    order = dt.argsort(x, axis=axis, descending=bool(call.get("largest", 1)), stable=True)
    index = [slice(None)] * x.ndim
    index[axis] = slice(0, count)
    order = order[tuple(index)]
    return dt.take_along_axis(x, order, axis=axis), order
