"""Convolutions in any number of dimensions, as matrix products with the windows of the input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dovetail as dt

from ...nn import functional
from ..limits import size_of
from .matmul import round_and_clamp, subtract_zero_point
from .shapes import pad
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


@dataclass(frozen=True)
class Window:
    """The windows of an operator, along each axis behind the first two."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def spans(self) -> tuple[int, ...]:
        """Return the number of positions that a window covers along each axis."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the number of windows along each axis."""
        return tuple(
            max(0, (n + a + b - span) // s + 1)
            for n, a, b, span, s in zip(
                shape, self.begins, self.ends, self.spans, self.strides, strict=True
            )
        )


def window_of(call: OperatorCall, spatial_shape: Sequence[int], kernel: Sequence[int]) -> Window:
    """Return the windows over spatial sizes. Raises: ShapeError for inconsistent attributes."""
    n = len(spatial_shape)
    strides = tuple(call.get("strides", [1] * n))
    dilations = tuple(call.get("dilations", [1] * n))
    kernel = tuple(kernel)
    pads = list(call.get("pads", [0] * (2 * n)))
    if not len(kernel) == len(strides) == len(dilations) == n or len(pads) != 2 * n:
        raise dt.ShapeError(
            f"{call.op}: the kernel, strides and dilations must have {n} sizes and pads {2 * n}, "
            f"got {kernel}, {strides}, {dilations} and {pads}"
        )
    if min((*kernel, *strides, *dilations), default=1) < 1 or min(pads, default=0) < 0:
        raise dt.ShapeError(
            f"{call.op}: the kernel, strides and dilations must be at least 1 and pads at least "
            f"0, got {kernel}, {strides}, {dilations} and {pads}"
        )
    auto = call.get("auto_pad", "NOTSET")
    begins, ends = pads[:n], pads[n:]
    if auto == "VALID":
        begins = ends = [0] * n
    elif auto.startswith("SAME"):
        begins, ends = _same_padding(
            spatial_shape, kernel, strides, dilations, auto == "SAME_UPPER"
        )
    return Window(kernel, strides, dilations, tuple(begins), tuple(ends))


def _same_padding(
    shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    upper: bool,
) -> tuple[list[int], list[int]]:
    """Return the padding before and after for an output of size n / stride, rounded up."""
    begins, ends = [], []
    for n, k, s, d in zip(shape, kernel, strides, dilations, strict=True):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        begins.append(total // 2 if upper else total - total // 2)
        ends.append(total - begins[-1])
    return begins, ends


def reserve_padded(call: OperatorCall, x: Tensor, w: Window) -> None:
    """Reserve the bytes of the padded input. Raises: OutOfMemoryError beyond the limit."""
    sizes = [n + a + b for n, a, b in zip(x.shape[2:], w.begins, w.ends, strict=True)]
    call.reserve(size_of((*x.shape[:2], *sizes), x.dtype))


def windows(x: Tensor, w: Window, fill: Any = 0) -> Tensor:
    """Return (N, C, *windows, *kernel), a view of the input padded with `fill`."""
    sizes = w.sizes(x.shape[2:])
    x = pad(x, [(0, 0), (0, 0), *zip(w.begins, w.ends, strict=True)], "constant", fill)
    x = x.contiguous()
    steps = x.stride()
    if math.prod(sizes) == 0 or x.size == 0:
        return dt.zeros((*x.shape[:2], *sizes, *w.kernel), dtype=x.dtype, device=x.device)
    outer = [s * t for s, t in zip(w.strides, steps[2:], strict=True)]
    inner = [d * t for d, t in zip(w.dilations, steps[2:], strict=True)]
    shape = (*x.shape[:2], *sizes, *w.kernel)
    return dt.as_strided(x, shape, (*steps[:2], *outer, *inner))


def convolve(call: OperatorCall, x: Tensor, weight: Tensor, w: Window, group: int) -> Tensor:
    """Convolve `x` with filters in groups, without bias.

    Raises: ShapeError if groups do not fit.
    """
    n, c = x.shape[:2]
    m = weight.shape[0]
    if group < 1 or c % group or m % group or weight.shape[1] != c // group:
        raise dt.ShapeError(
            f"{call.op}: the input and the weight must fit {group} groups, got shapes {x.shape} "
            f"and {weight.shape}"
        )
    reserve_padded(call, x, w)
    quick = _convolve_by_functional(x, weight, w, group)
    if quick is not None:
        return quick
    sizes = w.sizes(x.shape[2:])
    positions, taps = math.prod(sizes), math.prod(w.kernel)
    views = windows(x, w).reshape((n, group, c // group, positions, taps))
    columns = views.permute_dims((0, 1, 2, 4, 3)).reshape((n, group, c // group * taps, positions))
    filters = weight.reshape((group, m // group, c // group * taps))
    return dt.matmul(filters, columns).reshape((n, m, *sizes))


def _convolve_by_functional(x: Tensor, weight: Tensor, w: Window, group: int) -> Tensor | None:
    """Convolve by dt.nn.functional, or return None if it lacks the case."""
    function = getattr(functional, f"conv{len(w.kernel)}d", None)
    if function is None or x.dtype.kind != "f":
        return None
    if w.begins != w.ends:
        x = pad(x, [(0, 0), (0, 0), *zip(w.begins, w.ends, strict=True)])
    padding = w.begins if w.begins == w.ends else (0,) * len(w.kernel)
    result: Tensor = function(x, weight, None, w.strides, padding, w.dilations, group)
    return result


def channels(bias: Tensor, ndim: int) -> Tensor:
    """Reshape one number for each channel so that it broadcasts over `ndim` axes."""
    return bias.reshape((1, -1, *[1] * (ndim - 2)))


@register_operator("Conv", folds=False)
def _conv(call: OperatorCall, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Convolve, and add a bias for each channel."""
    w = window_of(call, x.shape[2:], call.get("kernel_shape", weight.shape[2:]))
    result = convolve(call, x, weight, w, call.get("group", 1))
    return result if bias is None else result + channels(bias, result.ndim)


@register_operator("ConvInteger", folds=False)
def _conv_integer(
    call: OperatorCall,
    x: Tensor,
    weight: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
) -> Tensor:
    """Convolve integers after subtraction of their zero points, in int32."""
    w = window_of(call, x.shape[2:], call.get("kernel_shape", weight.shape[2:]))
    return convolve(
        call,
        subtract_zero_point(x, x_zero),
        _subtract_filter_zeros(weight, w_zero),
        w,
        call.get("group", 1),
    )


def _subtract_filter_zeros(weight: Tensor, zero: Tensor | None) -> Tensor:
    """Subtract a zero point, one for all or one for each filter, from the weight."""
    if zero is not None and zero.ndim == 1:
        zero = zero.reshape((-1, *[1] * (weight.ndim - 1)))
    return subtract_zero_point(weight, zero)


@register_operator("QLinearConv", folds=False)
def _qlinear_conv(
    call: OperatorCall,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    weight: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Convolve quantised values, and requantise the result."""
    w = window_of(call, x.shape[2:], call.get("kernel_shape", weight.shape[2:]))
    result = convolve(
        call,
        subtract_zero_point(x, x_zero),
        _subtract_filter_zeros(weight, w_zero),
        w,
        call.get("group", 1),
    )
    result = result if bias is None else result + channels(bias, result.ndim)
    factor = channels((x_scale * w_scale / scale).reshape((-1,)), result.ndim)
    return round_and_clamp(
        dt.round(result.astype(dt.float32) * factor) + zero.astype(dt.float32), zero.dtype
    )


@register_operator("ConvTranspose", folds=False)
def _conv_transpose(
    call: OperatorCall, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Convolve the input, spread by the strides, with the flipped filters; add the bias."""
    kernel = tuple(call.get("kernel_shape", weight.shape[2:]))
    n, group = len(kernel), call.get("group", 1)
    strides = tuple(call.get("strides", [1] * n))
    dilations = tuple(call.get("dilations", [1] * n))
    extra = tuple(call.get("output_padding", [0] * n))
    begins, ends = _conv_transpose_pads(call, x.shape[2:], kernel, strides, dilations, extra)
    m = weight.shape[1]
    filters = dt.flip(weight, axis=tuple(range(2, weight.ndim)))
    filters = filters.reshape((group, weight.shape[0] // group, m, *kernel))
    filters = filters.permute_dims((0, 2, 1, *range(3, 3 + n))).reshape(
        (group * m, weight.shape[0] // group, *kernel)
    )
    spans = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    pads = [(s - a, s - b + e) for s, a, b, e in zip(spans, begins, ends, extra, strict=True)]
    call.reserve(size_of(x.shape, x.dtype) * math.prod(strides))
    x = pad(_insert_zeros(x, strides), [(0, 0), (0, 0), *pads])
    w = Window(kernel, (1,) * n, dilations, (0,) * n, (0,) * n)
    result = convolve(call, x, filters, w, group)
    return result if bias is None else result + channels(bias, result.ndim)


def _conv_transpose_pads(
    call: OperatorCall,
    shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return the padding before and after, by `pads` or by the wanted output shape."""
    n = len(kernel)
    pads, output_shape = list(call.get("pads", [0] * (2 * n))), call.get("output_shape")
    auto = call.get("auto_pad", "NOTSET")
    if output_shape is None and not auto.startswith("SAME"):
        return pads[:n], pads[n:]
    output_shape = output_shape or [a * s for a, s in zip(shape, strides, strict=True)]
    output_shape = output_shape[-n:]
    begins, ends = [], []
    for size, k, s, d, e, want in zip(
        shape, kernel, strides, dilations, extra, output_shape, strict=True
    ):
        # a negative total makes the output wider at the end
        total = s * (size - 1) + e + (k - 1) * d + 1 - want
        begins.append(total // 2 if auto == "SAME_UPPER" else total - total // 2)
        ends.append(total - begins[-1])
    return begins, ends


def _insert_zeros(x: Tensor, strides: Sequence[int]) -> Tensor:
    """Insert zeros between elements, so that they are `strides` apart."""
    for axis, s in enumerate(strides, 2):
        if s > 1 and x.shape[axis] > 1:
            n = x.shape[axis]
            wide = dt.expand_dims(x, axis=axis + 1)
            wide = pad(wide, [(0, s - 1 if d == axis + 1 else 0) for d in range(wide.ndim)])
            x = wide.reshape((*x.shape[:axis], n * s, *x.shape[axis + 1 :]))
            x = x[(*(slice(None),) * axis, slice(0, (n - 1) * s + 1))]
    return x


@register_operator("Col2Im", host=(1, 2), folds=False)
def _col2im(call: OperatorCall, x: Tensor, image: Any, block: Any) -> Tensor:
    """Sum columns (N, C * taps, windows) of overlapping windows to images, without padding."""
    sizes, kernel = call.ints(image), call.ints(block)
    w = window_of(call, sizes, kernel)
    n, taps = x.shape[0], math.prod(kernel)
    wide = tuple(s + a + b for s, a, b in zip(sizes, w.begins, w.ends, strict=True))
    c = x.shape[1] // taps
    call.reserve(3 * 8 * taps * math.prod(w.sizes(sizes)) + size_of((n, c, *wide), x.dtype))
    at = _tap_indices(w, w.sizes(sizes), wide)
    rows = x.reshape((n * c, taps * math.prod(w.sizes(sizes)))).permute_dims((1, 0))
    empty = dt.zeros((math.prod(wide), n * c), dtype=x.dtype, device=x.device)
    flat = dt.index_add(empty, 0, call.tensor(at), rows)
    padded_image = flat.permute_dims((1, 0)).reshape((n, c, *wide))
    cut = tuple(slice(a, a + s) for a, s in zip(w.begins, sizes, strict=True))
    return padded_image[(slice(None), slice(None), *cut)]


def _tap_indices(w: Window, counts: Sequence[int], padded_shape: Sequence[int]) -> np.ndarray:
    """Return the index of each tap of each window in a flat image, taps first."""
    indices = np.zeros((1, 1), np.int64)
    for k, s, d, count, size in zip(
        w.kernel, w.strides, w.dilations, counts, padded_shape, strict=True
    ):
        here = np.arange(k)[:, None] * d + np.arange(count)[None, :] * s
        taps, spots = indices.shape
        indices = (indices[:, None, :, None] * size + here[None, :, None, :]).reshape(
            taps * k, spots * count
        )
    return indices.reshape(-1)


@register_operator("DeformConv", folds=False)
def _deform_conv(
    call: OperatorCall,
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Convolve with taps that are moved by real offsets, by interpolation."""
    w = window_of(call, x.shape[2:], call.get("kernel_shape", weight.shape[2:]))
    n, c = x.shape[:2]
    dims, sizes, groups = len(w.kernel), w.sizes(x.shape[2:]), call.get("offset_group", 1)
    taps, positions = math.prod(w.kernel), math.prod(sizes)
    moved = offset.reshape((n, groups, taps, dims, positions))
    where = []
    for a in range(dims):
        tap = np.asarray([t[a] for t in itertools.product(*map(range, w.kernel))])
        spot = np.asarray([s[a] for s in itertools.product(*map(range, sizes))])
        base = tap[:, None] * w.dilations[a] + spot[None, :] * w.strides[a] - w.begins[a]
        where.append(moved[:, :, :, a] + call.tensor(base, x.dtype))
    flat = x.reshape((n, groups, c // groups, math.prod(x.shape[2:])))
    samples = interpolate(
        flat, x.shape[2:], [p.reshape((n, groups, taps * positions)) for p in where]
    )
    samples = samples.reshape((n, c, taps, positions))
    if mask is not None:
        factor = mask.reshape((n, groups, 1, taps, positions))
        whole = samples.reshape((n, groups, c // groups, taps, positions)) * factor
        samples = whole.reshape((n, c, taps, positions))
    group, m = call.get("group", 1), weight.shape[0]
    columns = samples.reshape((n, group, c // group * taps, positions))
    filters = weight.reshape((group, m // group, c // group * taps))
    result = dt.matmul(filters, columns).reshape((n, m, *sizes))
    return result if bias is None else result + channels(bias, result.ndim)


def interpolate(flat: Tensor, shape: Sequence[int], where: Sequence[Tensor]) -> Tensor:
    """Interpolate (N, G, C, pixels) at real positions (N, G, points), with 0 outside.

    Shapes: the result is (N, G, C, points).
    """
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(shape)):
        index: Any = 0
        weight: Any = 1.0
        inside: Any = True
        for size, p, c in zip(shape, where, corner, strict=True):
            low = dt.floor(p)
            at = low + c
            weight = weight * (p - low if c else 1.0 - (p - low))
            inside = (at >= 0) & (at < size) & inside
            index = index * size + dt.clip(at, 0, size - 1).astype(dt.int64)
        index = dt.expand_dims(index, axis=2)
        index = dt.broadcast_to(index, (*flat.shape[:3], index.shape[-1]))
        values = dt.take_along_axis(flat, index, axis=3)
        part = values * dt.expand_dims(dt.where(inside, weight, 0.0), axis=2)
        total = part if total is None else total + part
    result: Tensor = total
    return result
