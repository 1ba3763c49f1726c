"""Pooling: the maximum, the mean or the norm of each window, and unpooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail as dt

from ..limits import size_of
from .convolutions import Window, reserve_padded, window_of, windows
from .reductions import dtype_bound
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


def _pool_windows(call: OperatorCall, x: Tensor) -> Window:
    """Return the windows; with `ceil_mode`, also one that starts inside and ends outside."""
    w = window_of(call, x.shape[2:], call.get("kernel_shape"))
    if not call.get("ceil_mode", 0) or call.get("auto_pad", "NOTSET") != "NOTSET":
        return w
    ends = []
    for n, a, b, span, s in zip(x.shape[2:], w.begins, w.ends, w.spans, w.strides, strict=True):
        count = -(-max(n + a + b - span, 0) // s) + 1
        if (count - 1) * s >= n + a:
            count -= 1
        ends.append(max((count - 1) * s + span - n - a, b if count == 1 else 0))
    return Window(w.kernel, w.strides, w.dilations, w.begins, tuple(ends))


def _kernel_axes(x: Tensor, w: Window) -> tuple[int, ...]:
    """Return the numbers of the last axes of the windows' view, those of the kernel."""
    return tuple(range(x.ndim - len(w.kernel), x.ndim))


def _count_elements(call: OperatorCall, x: Tensor, w: Window, sizes: Sequence[int]) -> np.ndarray:
    """Return the number of elements of each window that count for the mean."""
    n, pads = len(w.kernel), call.get("pads", [0] * (2 * len(w.kernel)))
    auto = call.get("auto_pad", "NOTSET")
    ends = pads[n:] if auto == "NOTSET" else w.ends
    call.reserve(
        3 * 8 * (sum(map(math.prod, zip(sizes, w.kernel, strict=True))) + math.prod(sizes))
    )
    total = np.ones((1,) * n)
    for d, size in enumerate(sizes):
        at = np.arange(size)[:, None] * w.strides[d] + np.arange(w.kernel[d])[None] * w.dilations[d]
        low, high = w.begins[d], w.begins[d] + x.shape[2 + d]
        if call.get("count_include_pad", 0):
            low, high = 0, high + ends[d]
        mine = ((at >= low) & (at < high)).sum(axis=1)
        total = total * mine.reshape([-1 if e == d else 1 for e in range(n)])
    return total


@register_operator("AveragePool", folds=False)
def _average_pool(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the mean of each window, with or without its padding."""
    w = _pool_windows(call, x)
    reserve_padded(call, x, w)
    views = windows(x, w)
    total = dt.sum(views, axis=_kernel_axes(views, w), dtype=x.dtype)
    return total / call.tensor(_count_elements(call, x, w, total.shape[2:]), x.dtype)


@register_operator("LpPool", folds=False)
def _lp_pool(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the p-norm of each window."""
    w, p = _pool_windows(call, x), float(call.get("p", 2))
    reserve_padded(call, x, w)
    views = windows(x, w)
    return dt.pow(dt.sum(dt.pow(dt.abs(views), p), axis=_kernel_axes(views, w)), 1.0 / p)


@register_operator("MaxPool", folds=False)
def _max_pool(call: OperatorCall, x: Tensor) -> Any:
    """Return the maximum of each window, and its flat index if a second output is wanted."""
    w = _pool_windows(call, x)
    reserve_padded(call, x, w)
    views = windows(x, w, dtype_bound(x.dtype, True))
    sizes, n = views.shape[2 : 2 + len(w.kernel)], len(w.kernel)
    flat = views.reshape((*x.shape[:2], *sizes, math.prod(w.kernel)))
    largest = dt.max(flat, axis=-1)
    if call.outputs < 2:
        return largest
    tap, at = dt.argmax(flat, axis=-1), []
    for d in reversed(range(n)):
        spot = dt.arange(sizes[d], device=x.device).reshape(
            [-1 if e == d + 2 else 1 for e in range(n + 2)]
        )
        start, step, inner = spot * w.strides[d] - w.begins[d], w.dilations[d], tap % w.kernel[d]
        if w.begins[d]:  # padding that is as large as the maximum: the next element after it
            inner = dt.maximum(inner, (step - 1 - start) // step)
        at.append(dt.minimum(inner * step + start, x.shape[2 + d] - 1))
        tap = dt.floor_divide(tap, w.kernel[d])
    at.reverse()
    return largest, _flat_indices(x, at, bool(call.get("storage_order", 0)))


def _flat_indices(x: Tensor, at: Sequence[Tensor], columns_first: bool) -> Tensor:
    """Return indices in the flat tensor, for positions along each axis."""
    lead = dt.arange(x.shape[0] * x.shape[1], device=x.device).reshape(
        (*x.shape[:2], *[1] * len(at))
    )
    inner: Any = 0
    pairs = list(zip(x.shape[2:], at, strict=True))
    for size, p in reversed(pairs) if columns_first else pairs:
        inner = inner * size + p
    result: Tensor = lead * math.prod(x.shape[2:]) + inner
    return result


@register_operator("MaxUnpool", host=(2,), folds=False)
def _max_unpool(call: OperatorCall, x: Tensor, indices: Tensor, shape: Any = None) -> Tensor:
    """Store values at their flat indices in zeros of the unpooled shape."""
    w = window_of(call, x.shape[2:], call.get("kernel_shape"))
    small = [
        (n - 1) * s + k - a - b
        for n, s, k, a, b in zip(x.shape[2:], w.strides, w.kernel, w.begins, w.ends, strict=True)
    ]
    natural = (*x.shape[:2], *small)
    output_shape = natural if shape is None else tuple(call.ints(shape))
    call.reserve(size_of(natural, x.dtype))
    flat = dt.zeros(math.prod(natural), dtype=x.dtype, device=x.device)
    flat[indices.reshape((-1,))] = x.reshape((-1,))
    result = flat.reshape(natural)
    if output_shape != natural:
        whole = dt.zeros(output_shape, dtype=x.dtype, device=x.device)
        whole[tuple(slice(0, n) for n in natural)] = result
        result = whole
    return result


@register_operator("GlobalAveragePool", folds=False)
def _global_average_pool(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the mean over all axes behind the channels, which are kept."""
    return dt.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@register_operator("GlobalMaxPool", folds=False)
def _global_max_pool(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the maximum over all axes behind the channels, which are kept."""
    return dt.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@register_operator("GlobalLpPool", folds=False)
def _global_lp_pool(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the p-norm over all axes behind the channels, which are kept."""
    p = float(call.get("p", 2))
    total = dt.sum(dt.pow(dt.abs(x), p), axis=tuple(range(2, x.ndim)), keepdims=True)
    return dt.pow(total, 1.0 / p)
