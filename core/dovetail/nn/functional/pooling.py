"""Pooling: maxima, means and norms of windows of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments, call_along, required

from .sizes import Sizes, check_sizes, with_batch, without_batch
from .windows import Windows, WindowSum, require_dtype_kind, window_max

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

Tensor: TypeAlias = dt.Tensor
MaxPoolResult: TypeAlias = Tensor | tuple[Tensor, Tensor]

TILE_TAPS_MAX = 16  # larger windows that tile the grid are summed as rows, not tap by tap


# --- maxima ---------------------------------------------------------------------------------------


def _max_pool(
    axes: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    return_indices: bool,
) -> MaxPoolResult:
    """Return the maxima of windows, and their flat indices if `return_indices`."""
    op = f"max_pool{axes}d"
    x, had_batch = with_batch(op, input, axes)
    require_dtype_kind(op, x)
    arguments.flag(op, return_indices, "return_indices")
    if x.layout is not dt.strided:
        options = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        pooled = call_along(op, lambda t: _max_pool(axes, t, *options), (x,), _window_axes(axes))
        if return_indices:
            return without_batch(pooled[0], had_batch), without_batch(pooled[1], had_batch)
        return without_batch(pooled, had_batch)
    w = Windows(op, x, kernel_size, stride, padding, dilation, ceil_mode, axes)
    best, which = window_max(x, w)
    best = without_batch(best, had_batch)
    return (best, without_batch(w.flat_indices(which), had_batch)) if return_indices else best


def _window_axes(axes: int) -> tuple[int, ...]:
    """Return the axes of windows, after batch and channels."""
    return tuple(range(2, axes + 2))


def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResult:
    """Return the largest element of each window of signals.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of elements before and after each axis, which are less than any number;
      at most half of a window.
    - `dilation`: the distance of a window's elements.
    - `ceil_mode`: include windows that begin within the input and end beyond it.
    - `return_indices`: also return the elements' indices in the input, for `max_unpool1d`.

    A window spans s = dilation * (kernel_size - 1) + 1 elements, and there are
    floor((length + 2 padding - s) / stride) + 1 windows; with `ceil_mode` it is rounded up.
    Shapes: (n, c, length) or (c, length); the result has as many windows as last axis.
    Dtypes: real numbers. NaN is larger than any number.
    Gradient: to the element that is the result; of equal ones to the first.
    Raises: ShapeError, ArgumentError, DTypeError.
    See also: `avg_pool1d`, `max_unpool1d`, `adaptive_max_pool1d`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 3.0, 2.0, 5.0, 4.0]])
    >>> dt.nn.functional.max_pool1d(x, 2).tolist()
    [[3.0, 5.0]]
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResult:
    """Return the largest element of each window of images; see `max_pool1d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of elements before and after each axis, which are less than any number;
      at most half of a window.
    - `ceil_mode`: include windows that begin within the input and end beyond it.
    - `return_indices`: also return the elements' indices in the image, counted row by row, for
      `max_unpool2d`.

    Shapes: (n, c, h, w) or (c, h, w); the result has as many windows as last axes.
    Dtypes: real numbers.
    Raises: ShapeError, ArgumentError, DTypeError.
    See also: `avg_pool2d`, `max_unpool2d`, `adaptive_max_pool2d`.

    >>> import dovetail as dt
    >>> x = dt.arange(16.0).reshape((1, 4, 4))
    >>> dt.nn.functional.max_pool2d(x, 2).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResult:
    """Return the largest element of each window of volumes; see `max_pool1d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of elements before and after each axis, which are less than any number;
      at most half of a window.
    - `ceil_mode`: include windows that begin within the input and end beyond it.
    - `return_indices`: also return the elements' indices in the volume, counted row by row, for
      `max_unpool3d`.

    Shapes: (n, c, d, h, w) or (c, d, h, w); the result has as many windows as last axes.
    Dtypes: real numbers.
    Raises: ShapeError, ArgumentError, DTypeError.
    See also: `avg_pool3d`, `max_unpool3d`, `adaptive_max_pool3d`.

    >>> import dovetail as dt
    >>> x = dt.arange(8.0).reshape((1, 2, 2, 2))
    >>> dt.nn.functional.max_pool3d(x, 2).tolist()
    [[[[7.0]]]]
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


# --- unpooling ------------------------------------------------------------------------------------


def _max_unpool(
    axes: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
) -> Tensor:
    """Return zeros with the input at flat indices of each plane.

    Raises: ShapeError if shapes do not fit or the output is empty, ArgumentError for invalid sizes.
    """
    op = f"max_unpool{axes}d"
    x, had_batch = with_batch(op, input, axes)
    at = required(op, indices)
    if at.shape != required(op, input).shape:
        raise dt.ShapeError(
            f"{op}: indices must have the input's shape {input.shape}, got shape {at.shape}"
        )
    kernel = check_sizes(op, kernel_size, "kernel_size", axes, 1)
    strides = kernel if stride is None else check_sizes(op, stride, "stride", axes, 1)
    low = check_sizes(op, padding, "padding", axes)
    steps = zip(x.shape[2:], strides, low, kernel, strict=True)
    out = tuple([(n - 1) * s - 2 * p + k for n, s, p, k in steps])
    if output_size is not None:
        out = check_sizes(op, tuple(output_size)[-axes:], "output_size", axes, 1)
    if min(out) < 1:
        raise dt.ShapeError(
            f"{op}: the output would have sizes {out}, which must be at least 1; got an input of "
            f"shape {input.shape}"
        )
    lead = x.shape[:2]
    zeros = dt.zeros((*lead, math.prod(out)), dtype=x.dtype, device=x.device)
    flat = at.reshape((*lead, -1)).astype(dt.int64)
    result = dt.put_along_axis(zeros, flat, x.reshape((*lead, -1)), axis=-1)
    return without_batch(result.reshape((*lead, *out)), had_batch)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return signals of zeros with window maxima at the positions that `max_pool1d` returned.

    - `indices`: the indices that the pooling function returned.
    - `kernel_size`, `stride`, `padding`: those of the pooling function. Default of `stride`:
      `kernel_size`.
    - `output_size`: the sizes of the result's last axes, which the windows may leave undetermined.

    Shapes: those of `max_pool1d`, exchanged.
    Dtypes: real numbers; `indices` integers.
    Raises: ShapeError, ArgumentError, OutOfRangeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 3.0, 2.0, 5.0]])
    >>> best, at = dt.nn.functional.max_pool1d(x, 2, return_indices=True)
    >>> dt.nn.functional.max_unpool1d(best, at, 2).tolist()
    [[0.0, 3.0, 0.0, 5.0]]
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return images of zeros with window maxima at their positions; see `max_unpool1d`.

    - `indices`: the indices that the pooling function returned.
    - `kernel_size`, `stride`, `padding`: those of the pooling function. Default of `stride`:
      `kernel_size`.
    - `output_size`: the sizes of the result's last axes, which the windows may leave undetermined.

    Shapes: those of `max_pool2d`, back.
    Dtypes: real numbers; `indices` integers.
    Raises: ShapeError, ArgumentError, OutOfRangeError, DTypeError.

    >>> import dovetail as dt
    >>> x, at = dt.ones((1, 1, 1)), dt.zeros((1, 1, 1))
    >>> dt.nn.functional.max_unpool2d(x, at.astype(dt.int64), 2).tolist()
    [[[1.0, 0.0], [0.0, 0.0]]]
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return volumes of zeros with window maxima at their positions; see `max_unpool1d`.

    - `indices`: the indices that the pooling function returned.
    - `kernel_size`, `stride`, `padding`: those of the pooling function. Default of `stride`:
      `kernel_size`.
    - `output_size`: the sizes of the result's last axes, which the windows may leave undetermined.

    Shapes: those of `max_pool3d`, back.
    Dtypes: real numbers; `indices` integers.
    Raises: ShapeError, ArgumentError, OutOfRangeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 1, 1, 1))
    >>> at = dt.zeros((1, 1, 1, 1), dtype=dt.int64)
    >>> dt.nn.functional.max_unpool3d(x, at, (1, 1, 2)).tolist()
    [[[[1.0, 0.0]]]]
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


# --- means ----------------------------------------------------------------------------------------


def pool_means(
    axes: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    op: str = "",
) -> Tensor:
    """Return the mean of each window; `op`: the name in errors, by default avg_pool{axes}d."""
    op = op or f"avg_pool{axes}d"
    x, had_batch = with_batch(op, input, axes)
    require_dtype_kind(op, x, "f")
    arguments.flag(op, count_include_pad, "count_include_pad")
    if x.layout is not dt.strided:
        options = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, op)
        pooled = call_along(op, lambda t: pool_means(axes, t, *options), (x,), _window_axes(axes))
        return without_batch(pooled, had_batch)
    w = Windows(op, x, kernel_size, stride, padding, 1, ceil_mode, axes)
    if (
        divisor_override is not None
        and arguments.integer(op, divisor_override, "divisor_override") == 0
    ):
        raise dt.ArgumentError(f"{op}: divisor_override must not be 0")
    if w.are_tiles and math.prod(w.kernel) > TILE_TAPS_MAX:
        total = dt.sum(w.tiles(x), axis=tuple(range(-axes, 0)))
    else:
        total = WindowSum.apply(x, w)
    if divisor_override is not None:
        means = total / divisor_override
    else:
        means = _divide_by_counts(total, w, count_include_pad)
    return without_batch(means, had_batch)


def _divide_by_counts(total: Tensor, w: Windows, with_padding: bool) -> Tensor:
    """Divide the sums of windows by their numbers of elements."""
    counts = []
    steps = zip(w.within, w.kernel, w.stride, w.padding, w.counts, strict=True)
    for n, k, s, p, m in steps:
        first, last = (-p, n + p) if with_padding else (0, n)
        starts = [i * s - p for i in range(m)]
        counts.append([min(a + k, last) - max(a, first) for a in starts])
    if all(len(set(along)) == 1 for along in counts):
        return total / math.prod(along[0] for along in counts)
    product: Tensor | None = None
    for a, along in enumerate(counts):
        factor = dt.asarray(along, dtype=total.dtype, device=total.device)
        factor = factor.reshape((-1, *(1,) * (len(counts) - a - 1)))
        product = factor if product is None else product * factor
    assert product is not None
    return total / product


def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of signals.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of zeros before and after each axis; at most half of a window.
    - `ceil_mode`: include windows that begin within the input and end beyond it.
    - `count_include_pad`: True counts the zeros of `padding` in the divisor of the mean.

    Shapes: (n, c, length) or (c, length); the result has as many windows as last axis.
    Dtypes: floats; float16 and bfloat16 are summed in float32.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 3.0, 2.0, 5.0, 4.0]])
    >>> dt.nn.functional.avg_pool1d(x, 2).tolist()
    [[2.0, 3.5]]
    """
    return pool_means(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of images; see `avg_pool1d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of zeros before and after each axis; at most half of a window.
    - `ceil_mode`: include windows that begin within the input and end beyond it.
    - `count_include_pad`: True counts the zeros of `padding` in the divisor of the mean.
    - `divisor_override`: the divisor of the sums. Default: the number of elements of the window.

    Shapes: (n, c, h, w) or (c, h, w); the result has as many windows as last axes.
    Dtypes: floats; float16 and bfloat16 are summed in float32.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.arange(16.0).reshape((1, 4, 4))
    >>> dt.nn.functional.avg_pool2d(x, 2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    return pool_means(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of volumes; see `avg_pool1d` and `avg_pool2d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of zeros before and after each axis; at most half of a window.
    - `ceil_mode`: include windows that begin within the input and end beyond it.
    - `count_include_pad`: True counts the zeros of `padding` in the divisor of the mean.
    - `divisor_override`: the divisor of the sums. Default: the number of elements of the window.

    Shapes: (n, c, d, h, w) or (c, d, h, w); the result has as many windows as last axes.
    Dtypes: floats; float16 and bfloat16 are summed in float32.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.arange(8.0).reshape((1, 2, 2, 2))
    >>> dt.nn.functional.avg_pool3d(x, 2).tolist()
    [[[[3.5]]]]
    """
    return pool_means(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


# --- norms ----------------------------------------------------------------------------------------


def _lp_pool(
    axes: int,
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None,
    ceil_mode: bool,
) -> Tensor:
    """Return the p-norms of windows, their maxima of |x| for infinity; slope 0 at a norm of 0."""
    op = f"lp_pool{axes}d"
    p = arguments.real(op, norm_type, "norm_type")
    if p == 0:
        raise dt.ArgumentError(f"{op}: norm_type must not be 0, which has no root, got {p}")
    kernel = check_sizes(op, kernel_size, "kernel_size", axes, 1)
    require_dtype_kind(op, required(op, input), "f")
    if math.isinf(p) and p > 0:
        largest = _max_pool(axes, dt.abs(input), kernel, stride, 0, 1, ceil_mode, False)
        assert isinstance(largest, dt.Tensor)
        return largest
    means = pool_means(axes, dt.pow(input, p), kernel, stride, 0, ceil_mode, True, None, op)
    total = means * math.prod(kernel)
    zero = total == 0  # the root has an infinite slope at 0, but the norm's slope is 0
    root = dt.pow(dt.where(zero, 1.0, total), 1.0 / p)
    return dt.where(zero, 0.0 if p > 0 else math.inf, root)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the root of the sum of powers of each window of signals, both of `norm_type`.

    - `norm_type`: the exponent p of the norm: (sum of x**p)**(1/p).
    - `stride`: the distance between windows. Default: `kernel_size`.
    - `ceil_mode`: include windows that begin within the input and end beyond it.

    Powers are of the elements, not of their sizes, as in PyTorch; an infinite `norm_type` gives the
    largest absolute value.
    Gradient: 0 if the norm is 0.
    Shapes: (n, c, length) or (c, length); the result has as many windows as last axis.
    Dtypes: floats.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[3.0, 4.0, 6.0, 8.0]])
    >>> dt.nn.functional.lp_pool1d(x, 2, 2).tolist()
    [[5.0, 10.0]]
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the norm of each window of images; see `lp_pool1d`.

    - `norm_type`: the exponent p of the norm: (sum of x**p)**(1/p).
    - `stride`: the distance between windows. Default: `kernel_size`.
    - `ceil_mode`: include windows that begin within the input and end beyond it.

    Shapes: (n, c, h, w) or (c, h, w); the result has as many windows as last axes.
    Dtypes: floats.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 2, 2))
    >>> dt.nn.functional.lp_pool2d(x, 2, 2).tolist()
    [[[2.0]]]
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the norm of each window of volumes; see `lp_pool1d`.

    - `norm_type`: the exponent p of the norm: (sum of x**p)**(1/p).
    - `stride`: the distance between windows. Default: `kernel_size`.
    - `ceil_mode`: include windows that begin within the input and end beyond it.

    Shapes: (n, c, d, h, w) or (c, d, h, w); the result has as many windows as last axes.
    Dtypes: floats.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 1, 2, 2))
    >>> dt.nn.functional.lp_pool3d(x, 2, (1, 2, 2)).tolist()
    [[[[2.0]]]]
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
