"""Convolutions and transposed convolutions along one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import (
    ConvolutionGeometry,
    call_along,
    convolved,
    required,
    transposed_convolution,
    widen_halves,
)

from .precision import obey_autocast
from .sizes import Sizes, check_sizes, with_batch, without_batch

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

Tensor: TypeAlias = dt.Tensor


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of signals with filters: sums of products at each position.

    - `weight`: the filters, of the shape below.
    - `bias`: a number for each filter; None adds none.
    - `stride`: the distance between positions of a filter.
    - `padding`: the number of zeros before and after the input, or "same" for a result of the
      input's length (needs `stride` 1), or "valid" for none.
    - `dilation`: the distance between the taps of a filter.
    - `groups`: the number g of equal parts of the c channels and o filters. Filters of a part read
      the channels of that part only; g = c is a depthwise convolution.

    The number of positions is floor((length + 2 padding - dilation * (taps - 1) - 1) / stride) + 1.
    Filters are not flipped, as in other network libraries.
    Shapes: input (n, c, length) or (c, length), weight (o, c // groups, taps), bias (o,); the
    result (n, o, positions) or (o, positions).
    Dtypes: floats and integers, the same for all; float16 and bfloat16 are summed in float32.
    Order: channel by channel, tap by tap, with one fused multiply-add each; then the bias. The bits
    are equal on every device, for all sizes.
    Raises: ShapeError, DTypeError, ArgumentError, DeviceError.
    See also: `conv2d`, `conv_transpose1d`, `unfold`, `dt.convolve`, `dt.nn.Conv1d`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0, 4.0, 8.0]])
    >>> w = dt.asarray([[[1.0, -1.0]]])
    >>> dt.nn.functional.conv1d(x, w).tolist()
    [[-1.0, -2.0, -4.0]]
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of images with filters; see `conv1d`.

    - `weight`: the filters, of the shape below.
    - `bias`: a number for each filter; None adds none.
    - `stride`: the distance between positions of a filter: an int for both axes, or one for each.
    - `padding`: the number of zeros before and after each axis: an int or a pair; or "same" for a
      result of the input's size (needs `stride` 1); or "valid" for none.
    - `dilation`: the distance between the taps of a filter: an int or a pair.
    - `groups`: the number g of equal parts of the c channels and o filters. Filters of a part read
      the channels of that part only; g = c is a depthwise convolution.

    Along each axis of n elements and k taps, the number of positions is floor((n + 2 padding -
    dilation * (k - 1) - 1) / stride) + 1. With padding = k // 2 and odd k, it is n for stride 1 and
    ceil(n / 2) for stride 2.
    Shapes: input (n, c, h, w) or (c, h, w), weight (o, c // groups, *taps), bias (o,); the result
    (n, o, *positions) or (o, *positions).
    Dtypes: floats and integers, the same for all.
    Raises: ShapeError, DTypeError, ArgumentError, DeviceError.
    See also: `conv1d`, `conv_transpose2d`, `max_pool2d`, `unfold`, `dt.nn.Conv2d`.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 3, 3))
    >>> dt.nn.functional.conv2d(x, dt.ones((1, 1, 2, 2)), padding=1).tolist()
    [[[1.0, 2.0, 2.0, 1.0], [2.0, 4.0, 4.0, 2.0], [2.0, 4.0, 4.0, 2.0], [1.0, 2.0, 2.0, 1.0]]]
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of volumes with filters; see `conv1d`.

    - `weight`: the filters, of the shape below.
    - `bias`: a number for each filter; None adds none.
    - `stride`: the distance between positions of a filter: an int for all axes, or one for each.
    - `padding`: the number of zeros before and after each axis: an int or one for each; or "same"
      for a result of the input's size (needs `stride` 1); or "valid" for none.
    - `dilation`: the distance between the taps of a filter: an int or one for each axis.
    - `groups`: the number of equal parts of the channels and filters, see `conv2d`.

    Shapes: input (n, c, d, h, w) or (c, d, h, w), weight (o, c // groups, *taps), bias (o,); the
    result (n, o, *positions) or (o, *positions).
    Dtypes: floats and integers, the same for all.
    Raises: ShapeError, DTypeError, ArgumentError, DeviceError.
    See also: `conv2d`, `conv_transpose3d`, `dt.nn.Conv3d`.

    >>> import dovetail as dt
    >>> x = dt.ones((2, 3, 3, 3))
    >>> w = dt.ones((1, 2, 2, 2, 2))
    >>> dt.nn.functional.conv3d(x, w, stride=2).tolist()
    [[[[16.0]]]]
    """
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv1d` at `input`: each element is spread by a filter.

    - `weight`: the filters, of the shape below.
    - `bias`: a number for each channel of the result; None adds none.
    - `stride`: the distance between the spread filters.
    - `padding`: the number of elements removed at both ends of each axis of the result.
    - `output_padding`: additional elements at the end of each axis, less than `stride` or
      `dilation`: with a stride several input sizes of a convolution have the same number of
      positions.
    - `dilation`: the distance between the taps of a filter.

    Shapes: input (n, c, length) or (c, length), weight (c, o // groups, taps), bias (o,); the
    result (n, o, more) or (o, more), of (length - 1) * stride - 2 * padding + output_padding + 1 +
    dilation * (taps - 1).
    Dtypes: floats and integers, the same for all.
    Raises: ShapeError, DTypeError, ArgumentError, DeviceError.
    See also: `conv1d`, `dt.nn.ConvTranspose1d`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0]])
    >>> w = dt.asarray([[[1.0, 10.0]]])
    >>> dt.nn.functional.conv_transpose1d(x, w).tolist()
    [[1.0, 12.0, 20.0]]
    """
    return _transposed_convolution(
        "conv_transpose1d",
        1,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv2d` at `input`; see `conv_transpose1d`.

    - `weight`: the filters, of the shape below.
    - `bias`: a number for each channel of the result; None adds none.
    - `stride`: the distance between the spread filters.
    - `padding`: the number of elements removed at both ends of each axis of the result.
    - `output_padding`: additional elements at the end of each axis, less than `stride` or
      `dilation`: with a stride several input sizes of a convolution have the same number of
      positions.
    - `dilation`: the distance between the taps of a filter.

    Shapes: input (n, c, h, w) or (c, h, w), weight (c, o // groups, *taps), bias (o,); the result
    (n, o, *more) or (o, *more).
    Dtypes: floats and integers, the same for all.
    Raises: ShapeError, DTypeError, ArgumentError, DeviceError.
    See also: `conv2d`, `fold`, `dt.nn.ConvTranspose2d`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[[1.0, 2.0]]])
    >>> w = dt.ones((1, 1, 2, 2))
    >>> dt.nn.functional.conv_transpose2d(x, w, stride=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]
    """
    return _transposed_convolution(
        "conv_transpose2d",
        2,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv3d` at `input`; see `conv_transpose1d`.

    - `weight`: the filters, of the shape below.
    - `bias`: a number for each channel of the result; None adds none.
    - `stride`: the distance between the spread filters.
    - `padding`: the number of elements removed at both ends of each axis of the result.
    - `output_padding`: additional elements at the end of each axis, less than `stride` or
      `dilation`: with a stride several input sizes of a convolution have the same number of
      positions.
    - `dilation`: the distance between the taps of a filter.

    Shapes: input (n, c, d, h, w) or (c, d, h, w), weight (c, o // groups, *taps), bias (o,); the
    result (n, o, *more) or (o, *more).
    Dtypes: floats and integers, the same for all.
    Raises: ShapeError, DTypeError, ArgumentError, DeviceError.
    See also: `conv3d`, `dt.nn.ConvTranspose3d`.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 1, 1, 2))
    >>> dt.nn.functional.conv_transpose3d(x, dt.ones((1, 2, 1, 1, 2))).tolist()
    [[[[1.0, 2.0, 1.0]]], [[[1.0, 2.0, 1.0]]]]
    """
    return _transposed_convolution(
        "conv_transpose3d",
        3,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


# --- checks and calls of the ops ------------------------------------------------------------------


@obey_autocast("conv1d")
def _convolve(
    op: str,
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """Check the arguments and return a convolution.

    Raises: ShapeError for shapes that do not fit; ArgumentError for invalid sizes, groups or
    padding; DTypeError, DeviceError if the weight or the bias differs from the input.
    """
    x, had_batch = with_batch(op, input, axes)
    w = _check_weight(op, weight, axes, x)
    strides, dilations = (
        check_sizes(op, stride, "stride", axes, 1),
        check_sizes(op, dilation, "dilation", axes, 1),
    )
    g = _check_groups(op, groups, w.shape[0], "filters")
    if x.shape[1] != w.shape[1] * g:
        raise dt.ShapeError(
            f"{op}: an input of shape {input.shape} has {x.shape[1]} channels, and a weight of "
            f"shape {w.shape} with groups={g} takes {w.shape[1] * g}"
        )
    b = _check_bias(op, bias, w.shape[0], x)
    reach = tuple([a * (k - 1) for a, k in zip(dilations, w.shape[2:], strict=True)])
    low, high = _resolve_padding(op, padding, axes, reach, strides)
    positions = []
    for n, r, p, q, s in zip(x.shape[2:], reach, low, high, strides, strict=True):
        span = n + p + q - r - 1
        if span < 0:
            raise dt.ShapeError(
                f"{op}: the kernel spans {tuple([m + 1 for m in reach])} elements and must not "
                f"exceed the padded input, got an input of shape {input.shape} with "
                f"padding={padding!r}"
            )
        positions.append(span // s + 1)
    is_pointwise = set(w.shape[2:]) == set(strides) == {1} and not any((*low, *high))
    geometry = ConvolutionGeometry(strides, low, dilations, g)

    def convolve(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        """Return the convolution of strided tensors."""
        if is_pointwise:
            return _pointwise(x, w, b, g)
        return convolved(x, w, b, tuple(positions), geometry)

    if x.layout is not dt.strided:
        return without_batch(_convolve_in_layout(op, convolve, x, w, b, g, False), had_batch)
    return without_batch(convolve(x, w, b), had_batch)


def _convolve_in_layout(
    op: str,
    convolve: Callable[..., Tensor],
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    groups: int,
    is_transposed: bool,
) -> Tensor:
    """Return the convolution of a tensor of another layout, by its rule "along".

    Axis 0 is the batch, along which weight and bias repeat. Axis 1 are the filters, along which the
    input repeats; filters in groups read different channels, so that axis is then mixed.
    """
    w = w.swapaxes(0, 1) if is_transposed else w
    operands = [dt.expand_dims(x, axis=1), dt.expand_dims(w, axis=0)]
    if b is not None:
        operands.append(b.reshape((1, -1, *(1,) * (w.ndim - 1))))
    alike = [x.shape[0] > 1, groups == 1]
    mixed = tuple([d for d in range(w.ndim + 1) if d > 1 or not alike[d]])

    def convolve_examples(x: Tensor, w: Tensor, *bias: Tensor) -> Tensor:
        """Return the convolution, with an axis of size 1 for the input's channels."""
        filters = w[0].swapaxes(0, 1) if is_transposed else w[0]
        return dt.expand_dims(convolve(x[:, 0], filters, *[t.reshape((-1,)) for t in bias]), axis=2)

    result: Tensor = call_along(op, convolve_examples, operands, mixed)
    return result[:, :, 0]


def _pointwise(x: Tensor, w: Tensor, b: Tensor | None, groups: int) -> Tensor:
    """Return the convolution with filters of one tap, stride 1, no padding: a matrix product."""
    n, c, *within = x.shape
    rows, taps = x.reshape((n, c, math.prod(within))), w.reshape((*w.shape[:2], 1))
    one = ConvolutionGeometry((1,), (0,), (1,), groups)
    return convolved(rows, taps, b, rows.shape[2:], one).reshape((n, w.shape[0], *within))


@obey_autocast("conv1d")
def _transposed_convolution(
    op: str,
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Tensor:
    """Check the arguments and return a transposed convolution, plus the bias."""
    y, had_batch = with_batch(op, input, axes)
    w = _check_weight(op, weight, axes, y)
    strides, dilations = (
        check_sizes(op, stride, "stride", axes, 1),
        check_sizes(op, dilation, "dilation", axes, 1),
    )
    low, more = (
        check_sizes(op, padding, "padding", axes),
        check_sizes(op, output_padding, "output_padding", axes),
    )
    g = _check_groups(op, groups, w.shape[0], "channels of the input")
    if y.shape[1] != w.shape[0]:
        raise dt.ShapeError(
            f"{op}: an input of shape {input.shape} has {y.shape[1]} channels, and a weight of "
            f"shape {w.shape} takes {w.shape[0]}; the weight is (channels, filters // groups, "
            "*taps)"
        )
    for n, s, d in zip(more, strides, dilations, strict=True):
        if n >= max(s, d):
            raise dt.ArgumentError(
                f"{op}: output_padding must be less than the stride or the dilation, got "
                f"{output_padding!r}"
            )
    b = _check_bias(op, bias, w.shape[1] * g, y)
    out = []
    for n, s, p, d, k, m in zip(
        y.shape[2:], strides, low, dilations, w.shape[2:], more, strict=True
    ):
        out.append((n - 1) * s - 2 * p + d * (k - 1) + m + 1)
    if min(out) < 1:
        raise dt.ShapeError(
            f"{op}: the output would have sizes {tuple(out)}, which must be at least 1; got an "
            f"input of shape {input.shape} with padding={padding!r}"
        )
    geometry = ConvolutionGeometry(strides, low, dilations, g)

    def convolve(y: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        """Return the transposed convolution of strided tensors."""
        if b is None:
            return transposed_convolution(y, w, tuple(out), geometry)
        return _add_bias(y, w, b, tuple(out), geometry)

    if y.layout is not dt.strided:
        return without_batch(_convolve_in_layout(op, convolve, y, w, b, g, True), had_batch)
    return without_batch(convolve(y, w, b), had_batch)


@widen_halves
def _add_bias(
    y: Tensor, w: Tensor, b: Tensor, within: tuple[int, ...], geometry: ConvolutionGeometry
) -> Tensor:
    """Return a transposed convolution plus a bias; halves are rounded once."""
    x = transposed_convolution(y, w, within, geometry)
    return x + b.reshape((-1, *(1,) * len(within)))


def _check_weight(op: str, weight: object, axes: int, x: Tensor) -> Tensor:
    """Return the weight. Raises: ShapeError; DTypeError, DeviceError if it differs from `x`."""
    w = required(op, weight)
    if w.ndim != axes + 2 or 0 in w.shape[2:]:
        raise dt.ShapeError(
            f"{op}: weight must have shape (filters, channels // groups, *taps) with {axes} "
            f"non-empty axes of taps, got shape {w.shape}"
        )
    _require_compatible(op, "weight", w, x)
    return w


def _check_bias(op: str, bias: object, filters: int, x: Tensor) -> Tensor | None:
    """Return the bias, None for None.

    Raises: ShapeError unless it has one element for each filter; DTypeError, DeviceError if it
    differs from `x`.
    """
    if bias is None:
        return None
    b = required(op, bias)
    if b.shape != (filters,):
        raise dt.ShapeError(
            f"{op}: bias must have shape ({filters},), one element for each filter, got shape "
            f"{b.shape}"
        )
    _require_compatible(op, "bias", b, x)
    return b


def _require_compatible(op: str, name: str, weight: Tensor, x: Tensor) -> None:
    """Raise an error for a weight of another dtype or device, or an input that is not real."""
    if weight.dtype is not x.dtype:
        raise dt.DTypeError(
            f"{op}: the input and the {name} must have the same dtype, got {x.dtype.name} and "
            f"{weight.dtype.name}; use x.astype(dtype)"
        )
    if weight.device is not x.device:
        raise dt.DeviceError(
            f"{op}: the input and the {name} must be on the same device, got {x.device} and "
            f"{weight.device}; use x.to(device)"
        )
    if x.dtype.kind not in "iuf":
        raise dt.DTypeError(f"{op}: the input must have a real dtype, got {x.dtype.name}")


def _check_groups(op: str, groups: object, channels: int, what: str) -> int:
    """Return `groups` as an int. Raises: ArgumentError if it does not divide `channels`."""
    (g,) = check_sizes(op, groups, "groups", 1, 1)
    if channels % g:
        raise dt.ArgumentError(
            f"{op}: the number of {what} must be divisible by groups, got {channels} and groups={g}"
        )
    return g


def _resolve_padding(
    op: str, padding: Sizes | str, axes: int, reach: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the zeros before, and those after, along each axis.

    Raises: ArgumentError for invalid sizes, an unknown name, and "same" with strides.
    """
    if not isinstance(padding, str):
        low = check_sizes(op, padding, "padding", axes)
        return low, low
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if padding != "same":
        raise dt.ArgumentError(f"{op}: padding must be sizes, 'same' or 'valid', got {padding!r}")
    if any(s != 1 for s in strides):
        raise dt.ArgumentError(f"{op}: padding='same' needs stride=1, got stride={strides}")
    low = tuple([r // 2 for r in reach])
    return low, tuple([r - p for r, p in zip(reach, low, strict=True)])
