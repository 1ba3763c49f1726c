"""Patches of images and other grids: windows, im2col and col2im."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ... import layout as lay
from ...argument_checks import integers, shown
from ...dtypes import int64
from ...errors import ArgumentError, ShapeError
from ...ops import table as ops
from ...tensor.other_layouts import call_along, has_rule, require_along
from ...tensor.primitives import apply, view
from ...tensor.tensor import Tensor
from ..creation.constructors import arange, extents, zeros
from ..indexing.index_writes import index_add
from ..variants import public
from .manipulation import as_strided
from .padding import pad

__all__ = ["fold", "sliding_window_view", "unfold"]

PerAxis = int | Sequence[int]


@public(widen=False)
def sliding_window_view(x: Tensor, window_shape: PerAxis, axis: PerAxis | None = None) -> Tensor:
    """Return a view of all windows of a shape, as NumPy's function of this name.

    Windows overlap, so an element that is written to one of them changes in the others too.

    - `window_shape`: the sizes of a window, one for each axis of `axis`.
    - `axis`: the axes along which windows move; one may occur several times. None: all.

    Shapes: (n, ...) gives (n - window + 1, ..., window): the axes of the windows come last.
    Dtypes: all.
    Raises: ShapeError for a window that is longer than its axis, ArgumentError for another number
    of sizes than axes, or a size below 1; AxisError.
    See also: `x.unfold` for windows that are further apart, `as_strided`.

    >>> import dovetail as dt
    >>> dt.sliding_window_view(dt.arange(4), 3).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    x = require_along("sliding_window_view", x)
    window = integers("sliding_window_view", window_shape, "window_shape")
    along = range(x.ndim) if axis is None else integers("sliding_window_view", axis, "axis")
    axes = [lay.axis("sliding_window_view", d, x.ndim) for d in along]
    if len(axes) != len(window) or min(window, default=1) < 1:
        raise ArgumentError(
            f"sliding_window_view: window_shape must have a positive size for each of {len(axes)} "
            f"axes, got {shown(window)}"
        )
    sizes = list(x.shape)
    for d, n in zip(axes, window, strict=True):
        sizes[d] -= n - 1
    if min(sizes, default=1) < 1:
        raise ShapeError(
            f"sliding_window_view: windows must fit into shape {x.shape}, got {shown(window)}"
        )
    if has_rule(x, "along"):
        windows = partial(sliding_window_view, window_shape=window, axis=axes)
        return _call_with_new_axes("sliding_window_view", windows, x, axes, len(window))
    strides = x.stride()
    return as_strided(x, (*sizes, *window), (*strides, *[strides[d] for d in axes]))


def _call_with_new_axes(
    name: str, function: Callable[[Tensor], Tensor], x: Tensor, axes: Sequence[int], count: int
) -> Tensor:
    """Call a function along axes, by the layout's rule "along".

    - `count`: the number of last axes that the result has more than `x`; negative: less.
    """
    last, none = ((..., *[i] * abs(count)) for i in (0, None))
    if count < 0:
        wide: Tensor = call_along(name, lambda t: function(t)[none], (x,), tuple(axes))
        return wide[last]
    mixed = (*axes, *range(x.ndim, x.ndim + count))
    result: Tensor = call_along(name, lambda t: function(t[last]), (x[none],), mixed)
    return result


class _PatchGrid(NamedTuple):
    """The arrangement of patches in a grid, along each of its axes."""

    kernel: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]

    def counts(self, op: str, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the number of patches along each axis of a grid of these sizes."""
        counts = tuple(
            [
                (n + 2 * p - d * (k - 1) - 1) // s + 1
                for n, k, d, p, s in zip(sizes, *self, strict=True)
            ]
        )
        if min(counts) < 1:
            raise ShapeError(f"{op}: patches must fit into the size {sizes}, got {self.kernel}")
        return counts


def _parse_patches(
    op: str, kernel: PerAxis, dilation: PerAxis, padding: PerAxis, stride: PerAxis
) -> _PatchGrid:
    """Return the grid of patches; one int stands for all axes, for `kernel` for two.

    Raises: ArgumentError for another number of sizes and sizes out of range, ArgumentTypeError for
    other objects than ints.
    """
    sizes_given = integers(op, kernel, "kernel_size")
    sizes = sizes_given * 2 if isinstance(kernel, int) else sizes_given
    options = [("dilation", dilation, 1), ("padding", padding, 0), ("stride", stride, 1)]
    parsed = [sizes]
    for name, value, least in (("kernel_size", sizes, 1), *options):
        listed = integers(op, value, name)
        listed = listed * len(sizes) if len(listed) == 1 else listed
        if len(listed) != len(sizes) or not sizes:
            raise ArgumentError(
                f"{op}: {name} must have one size for each of {len(sizes)} axes, got {len(listed)}"
            )
        if not all(least <= n < 1 << 40 for n in listed):
            sizes_text = ", ".join(map(shown, listed))
            raise ArgumentError(
                f"{op}: {name} must be at least {least} along each axis, got {sizes_text}"
            )
        parsed.append(listed)
    return _PatchGrid(*parsed[1:])


@public(out=True, widen=False)
def unfold(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    dilation: PerAxis = 1,
    padding: PerAxis = 0,
    stride: PerAxis = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the patches of images as columns: PyTorch's `nn.functional.unfold`, im2col.

    - `kernel_size`: the size of a patch: an int for two axes, or a tuple with one size for each
      axis.
    - `dilation`: the distance of a patch's elements, an int or a tuple.
    - `padding`: the number of zeros that are added before and after each axis first.
    - `stride`: the distance of patches, an int or a tuple.

    Shapes: (..., channels, *axes) gives (..., channels * elements of a patch, patches).
    Dtypes: all; the result has the same.
    Raises: ShapeError if no patch fits; ArgumentError for sizes out of range; DTypeError.
    See also: `fold`, `as_strided`, `nn.functional.conv2d`.

    >>> import dovetail as dt
    >>> x = dt.arange(6).reshape((1, 2, 3))
    >>> dt.unfold(x, (2, 2)).tolist()
    [[0, 1], [1, 2], [3, 4], [4, 5]]
    """
    p = _parse_patches("unfold", kernel_size, dilation, padding, stride)
    k = len(p.kernel)
    if require_along("unfold", x).ndim <= k:
        raise ShapeError(f"unfold: expected channels and {k} axes, got shape {x.shape}")
    if has_rule(x, "along"):
        axes = range(x.ndim - k - 1, x.ndim)
        return _call_with_new_axes("unfold", lambda t: unfold(t, *p), x, axes, 1 - k)
    lead, sizes = x.shape[:-k], x.shape[-k:]
    counts = p.counts("unfold", sizes)
    padded = pad(x, [(0, 0)] * len(lead) + [(n, n) for n in p.padding])
    strides = padded.stride()
    within = [s * d for s, d in zip(strides[-k:], p.dilation, strict=True)]
    between = [s * d for s, d in zip(strides[-k:], p.stride, strict=True)]
    patches = as_strided(padded, (*lead, *p.kernel, *counts), (*strides[:-k], *within, *between))
    shape = (*lead[:-1], lead[-1] * math.prod(p.kernel), math.prod(counts))
    return view(patches, ("reshape", shape), "unfold")


@public(out=True)
def fold(
    x: Tensor,
    /,
    output_size: PerAxis,
    kernel_size: PerAxis,
    dilation: PerAxis = 1,
    padding: PerAxis = 0,
    stride: PerAxis = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Sum columns of patches into images: PyTorch's `nn.functional.fold`, col2im.

    - `output_size`: the sizes of the images, a tuple.
    - `kernel_size`, `dilation`, `padding`, `stride`: those of `unfold`, whose gradient this is.

    Shapes: (..., channels * elements of a patch, patches) gives (..., channels, *output_size).
    Dtypes: numbers; the result has the same.
    Order: the elements of a patch row by row, and for each the patches: the same bits everywhere.
    Raises: ShapeError for another number of columns or rows; ArgumentError for sizes out of range;
    DTypeError.
    See also: `unfold`.

    >>> import dovetail as dt
    >>> x = dt.ones((4, 2))
    >>> dt.fold(x, (2, 3), (2, 2)).tolist()
    [[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]
    """
    p = _parse_patches("fold", kernel_size, dilation, padding, stride)
    k = len(p.kernel)
    sizes = extents("fold", output_size)
    sizes = sizes * k if len(sizes) == 1 else sizes
    if len(sizes) != k:
        raise ShapeError(f"fold: output_size must have one size for each of {k} axes, got {sizes}")
    counts, area = p.counts("fold", sizes), math.prod(p.kernel)
    if require_along("fold", x).ndim < 2 or x.shape[-2] % area or x.shape[-1] != math.prod(counts):
        raise ShapeError(
            f"fold: expected shape (..., n * {area}, {math.prod(counts)}), got {x.shape}"
        )
    if has_rule(x, "along"):
        axes = range(x.ndim - 2, x.ndim)
        return _call_with_new_axes("fold", lambda t: fold(t, sizes, *p), x, axes, k - 1)
    lead = (*x.shape[:-2], x.shape[-2] // area)
    wide = tuple([n + 2 * q for n, q in zip(sizes, p.padding, strict=True)])
    at = _element_positions(p, counts, wide, x)
    grid = zeros((*lead, math.prod(wide)), dtype=x.dtype, device=x.device)
    images = index_add(grid, -1, at, view(x, ("reshape", (*lead, at.size))))
    images = view(images, ("reshape", (*lead, *wide)))
    begin = (*(0 for _ in lead), *p.padding)
    inner = view(images, ("slice", begin, (*lead, *sizes), (1,) * len(begin)))
    return apply(ops.COPY, (inner,)) if any(p.padding) else images


def _element_positions(
    p: _PatchGrid, counts: Sequence[int], sizes: Sequence[int], like: Tensor
) -> Tensor:
    """Return the position of each element of each patch in the raveled grid."""
    k, positions = len(sizes), zeros((1,) * (2 * len(sizes)), dtype=int64, device=like.device)
    for d in range(k):
        step = math.prod(sizes[d + 1 :])
        for axis, n, distance in ((d, p.kernel[d], p.dilation[d]), (k + d, counts[d], p.stride[d])):
            steps = arange(0, n * distance * step, distance * step, dtype=int64, device=like.device)
            column = tuple([n if i == axis else 1 for i in range(2 * k)])
            positions = positions + view(steps, ("reshape", column))
    return view(positions, ("reshape", (positions.size,)))
