"""Resampling of grids: interpolation, padding, patches, pixel shuffles and sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

import dovetail as dt
from dovetail.extend import arguments, required

from .adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .filters import FILTERS, apply_filter
from .sizes import Sizes, check_sizes

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "fold",
    "grid_sample",
    "interpolate",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
    "upsample",
]

Tensor: TypeAlias = dt.Tensor
Array: TypeAlias = np.ndarray[Any, Any]

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
MODES = ("nearest", "nearest-exact", *LINEAR, "bicubic", "lanczos", "area")
CUBIC_COEFFICIENT = -0.75  # Keys' parameter a, as in PyTorch: the overshoot of cubic weights


# --- interpolation --------------------------------------------------------------------------------


def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize a grid over the same area, by the elements near each position.

    - `size`: the size of the result: an int for all axes, or one for each. Pass either `size` or
      `scale_factor`.
    - `scale_factor`: the factor of the sizes: a number for all axes, or one for each.
    - `mode`: "nearest" and "nearest-exact" use one element, by the start of a position or its
      middle; "linear", "bilinear" and "trilinear", for one, two and three axes, use two elements
      along each; "bicubic" four; "area" uses means of windows.
    - `align_corners`: the area is that between the first and last elements, which keep their
      positions.
    - `recompute_scale_factor`: compute positions from the sizes instead of the factor.
    - `antialias`: if the grid becomes smaller, "bilinear" and "bicubic" use as many elements as a
      step is wide, like Pillow. "lanczos" needs it.

    `size` or `scale_factor`: of the result, for all axes or one for each.
    Shapes: (n, c, *axes), of one to three axes; the result has other sizes of axes.
    Dtypes: floats; the nearest modes accept others, too.
    Raises: ShapeError, ArgumentError, DTypeError.
    See also: `grid_sample`, `pixel_shuffle`, `conv_transpose2d`, `dt.nn.Upsample`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[[1.0, 3.0]]])
    >>> dt.nn.functional.interpolate(x, scale_factor=2, mode="linear").tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    op = "interpolate"
    arguments.choice(op, mode, "mode", MODES)
    filters = arguments.flag(op, antialias, "antialias")
    if filters and mode not in FILTERS:
        raise dt.ArgumentError(
            f"{op}: antialias=True is only allowed with mode {' or '.join(map(repr, FILTERS))}, "
            f"got mode={mode!r}"
        )
    if mode == "lanczos" and (not filters or align_corners):
        raise dt.ArgumentError(f"{op}: mode='lanczos' needs antialias=True and align_corners=False")
    x = required(op, input)
    axes = x.ndim - 2
    if axes not in (1, 2, 3) or 0 in x.shape[2:]:
        raise dt.ShapeError(
            f"{op}: the input must have shape (n, c, *axes) with 1 to 3 non-empty axes, got shape "
            f"{x.shape}"
        )
    axes_of_mode = {**LINEAR, "bicubic": 2, "lanczos": 2}.get(mode, axes)
    if axes_of_mode != axes:
        raise dt.ShapeError(
            f"{op}: mode={mode!r} needs an input with {axes_of_mode} axes after (n, c), got shape "
            f"{x.shape}"
        )
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise dt.ArgumentError(
            f"{op}: align_corners is only allowed with the linear modes, 'bicubic' and 'lanczos', "
            f"got mode={mode!r}"
        )
    corners = bool(align_corners)
    out, factors = _output_sizes(x, size, scale_factor)
    if recompute_scale_factor:
        if factors is None:
            raise dt.ArgumentError(
                f"{op}: recompute_scale_factor=True needs scale_factor, got size"
            )
        factors = None
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[axes - 1](x, out)
    if not mode.startswith("nearest") and x.dtype.kind != "f":
        raise dt.DTypeError(
            f"{op}: mode={mode!r} needs a float dtype, got {x.dtype.name}; use x.astype(dt.float32)"
        )
    for axis, m in enumerate(out, 2):
        factor = None if factors is None else factors[axis - 2]
        if mode.startswith("nearest"):
            x = _interpolate_nearest(x, axis, m, factor, mode == "nearest-exact")
        elif filters:
            x = apply_filter(x, axis, m, _typed_position_step(x, axis, m, factor, corners), mode)
        else:
            x = _interpolate_axis(x, axis, m, factor, corners, mode == "bicubic")
    return x


def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resize a grid over the same area: the older name of `interpolate`.

    - `size`, `scale_factor`, `mode`, `align_corners`: those of `interpolate`.

    Shapes: (n, c, *axes).
    Dtypes: floats.
    Raises: as `interpolate`.

    >>> import dovetail as dt
    >>> dt.nn.functional.upsample(dt.ones((1, 1, 2)), scale_factor=2).shape
    (1, 1, 4)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def _output_sizes(
    x: Tensor, size: Sizes | None, scale_factor: float | Sequence[float] | None
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Return the result's sizes, and scale factors or None.

    Raises: ArgumentError unless one of both is given and valid, ShapeError for an output that is
    empty or too large.
    """
    axes = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise dt.ArgumentError("interpolate: exactly one of size and scale_factor must be given")
    if size is not None:
        return check_sizes("interpolate", size, "size", axes, 1), None
    values = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * axes
    factors = tuple([arguments.real("interpolate", f, "scale_factor") for f in values])
    if len(factors) != axes or not all(0 < f < math.inf for f in factors):
        raise dt.ArgumentError(
            f"interpolate: scale_factor must be one or {axes} positive numbers, got "
            f"{scale_factor!r}"
        )
    scaled = [n * f for n, f in zip(x.shape[2:], factors, strict=True)]
    if max(scaled) > arguments.LARGEST:
        raise dt.ShapeError(
            f"interpolate: the output is too large for an input of shape {x.shape} and "
            f"scale_factor={scale_factor}"
        )
    out = tuple([math.floor(n) for n in scaled])
    if min(out) < 1:
        raise dt.ShapeError(
            f"interpolate: the output would have sizes {out}, which must be at least 1; got an "
            f"input of shape {x.shape} and scale_factor={scale_factor}"
        )
    return out, factors


def _position_step(n: int, m: int, factor: float | None, kind: Any) -> Any:
    """Return the distance of the result's positions in the input, as the NumPy type `kind`."""
    return kind(1.0 / factor) if factor is not None else kind(n) / kind(m)


def _typed_position_step(x: Tensor, axis: int, m: int, factor: float | None, corners: bool) -> Any:
    """Return the distance of `m` positions along an axis, as a NumPy scalar of the tensor's dtype.

    `corners`: the first and last position are those of the first and last element.
    """
    n, kind = x.shape[axis], cast(Any, np.float64 if x.dtype is dt.float64 else np.float32)
    if not corners:
        return _position_step(n, m, factor, kind)
    return kind(n - 1) / kind(m - 1) if m > 1 else kind(0)


def _take_at(x: Tensor, axis: int, index: Array) -> Tensor:
    """Return the elements at host indices along an axis."""
    return dt.take(x, dt.asarray(index.astype(np.int64), device=x.device), axis=axis)


def _interpolate_nearest(x: Tensor, axis: int, m: int, factor: float | None, exact: bool) -> Tensor:
    """Return the nearest element at each of `m` positions; a view if each repeats equally often."""
    n = x.shape[axis]
    step = _position_step(n, m, factor, np.float32)
    numbers = np.arange(m, dtype=np.float32)
    at = np.minimum(np.floor((numbers + np.float32(0.5 if exact else 0)) * step), n - 1).astype(int)
    if m % n == 0 and np.array_equal(at, np.arange(m) // (m // n)):
        if m == n:
            return x
        shape = (*x.shape[: axis + 1], m // n, *x.shape[axis + 1 :])
        wide = x.reshape((*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])).expand(shape)
        return wide.reshape((*x.shape[:axis], m, *x.shape[axis + 1 :]))
    return _take_at(x, axis, at)


def _interpolate_axis(
    x: Tensor, axis: int, m: int, factor: float | None, corners: bool, cubic: bool
) -> Tensor:
    """Return weighted sums of the two or four elements around each of `m` positions on an axis."""
    n, kind = x.shape[axis], cast(Any, np.float64 if x.dtype is dt.float64 else np.float32)
    numbers: Any = np.arange(m, dtype=kind)
    step = _typed_position_step(x, axis, m, factor, corners)
    if corners:
        positions = numbers * step
    else:
        positions = (numbers + kind(0.5)) * step - kind(0.5)
        positions = positions if cubic else np.maximum(positions, kind(0))
    low = np.floor(positions)
    low = low if cubic else np.minimum(low, n - 1)
    fraction = np.clip(positions - low, 0, 1)
    first = low.astype(int)
    weights = _cubic_weights(fraction) if cubic else [1 - fraction, fraction]
    total: Tensor | None = None
    for i, w in enumerate(weights):
        part = _take_at(x, axis, np.clip(first + i - (1 if cubic else 0), 0, n - 1))
        factors = dt.asarray(w.astype(kind), dtype=x.dtype, device=x.device)
        part = part * factors.reshape((-1, *(1,) * (x.ndim - axis - 1)))
        total = part if total is None else total + part
    assert total is not None
    return total


def _cubic_weights(t: Any) -> list[Any]:
    """Return the weights of four elements, at distance t from the second. Source: Keys, 1981."""

    def near(d: Any) -> Any:
        """Return the weight of an element at a distance of 0 to 1."""
        return ((CUBIC_COEFFICIENT + 2) * d - (CUBIC_COEFFICIENT + 3)) * d * d + 1

    def far(d: Any) -> Any:
        """Return the weight of an element at a distance of 1 to 2."""
        return (
            (CUBIC_COEFFICIENT * d - 5 * CUBIC_COEFFICIENT) * d + 8 * CUBIC_COEFFICIENT
        ) * d - 4 * CUBIC_COEFFICIENT

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


# --- padding --------------------------------------------------------------------------------------

_NUMPY_PAD_MODES = {
    "constant": "constant",
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Return a tensor with elements added or removed at its ends.

    - `pad`: the numbers of elements before and after each axis, the last axis first: (left, right,
      top, bottom, ...). A negative number removes elements.
    - `mode`: the added elements: "constant" is `value`; "reflect" mirrored elements; "replicate"
      the nearest one; "circular" those from the other end.
    - `value`: the number of mode "constant"; None is 0.

    Shapes: any; modes other than "constant" are for up to three axes behind one or two others.
    Dtypes: all.
    Raises: ShapeError, ArgumentError.
    See also: `dt.pad`, `dt.nn.ZeroPad2d`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0, 3.0]])
    >>> dt.nn.functional.pad(x, (2, 1), "reflect").tolist()
    [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]
    """
    x = required("pad", input)
    arguments.choice("pad", mode, "mode", tuple(_NUMPY_PAD_MODES))
    pad_widths = arguments.integers("pad", pad, "pad")
    if len(pad_widths) % 2 or len(pad_widths) > 2 * x.ndim:
        raise dt.ArgumentError(
            f"pad: pad must have two numbers for each padded axis, at most {2 * x.ndim} for an "
            f"input of shape {x.shape}, got {pad!r}"
        )
    if value is not None and mode != "constant" and value != 0:
        raise dt.ArgumentError(
            f"pad: value is only allowed with mode='constant', got value={value!r} and "
            f"mode={mode!r}"
        )
    pairs = [(pad_widths[i], pad_widths[i + 1]) for i in range(0, len(pad_widths), 2)][::-1]
    lead = x.ndim - len(pairs)
    for a, (low, high) in enumerate(pairs):
        _require_fitting(x, lead + a, low, high, mode)
    key = tuple(
        [
            slice(max(0, -low), n - max(0, -high))
            for n, (low, high) in zip(x.shape[lead:], pairs, strict=True)
        ]
    )
    x = x[(..., *key)] if any(low < 0 or high < 0 for low, high in pairs) else x
    widths = [(0, 0)] * lead + [(max(0, low), max(0, high)) for low, high in pairs]
    fill = value if mode == "constant" else None
    return dt.pad(x, widths, _NUMPY_PAD_MODES[mode], constant_values=fill)


def _require_fitting(x: Tensor, axis: int, low: int, high: int, mode: str) -> None:
    """Raise ShapeError if an axis has too few elements for the padding."""
    n = x.shape[axis]
    if n + low + high < 0 or n + min(low, 0) + min(high, 0) < 0:
        raise dt.ShapeError(
            f"pad: axis {axis} of shape {x.shape} would have a negative size; cropping must leave "
            f"at least 0 elements, got {low} and {high}"
        )
    most = {"reflect": n - 1, "circular": n}.get(mode)
    if most is not None and max(low, high) > most:
        raise dt.ShapeError(
            f"pad: mode={mode!r} allows at most {most} elements for axis {axis} of shape "
            f"{x.shape}, got {max(low, high)}"
        )
    if mode == "replicate" and not n and max(low, high) > 0:
        raise dt.ShapeError(
            f"pad: mode='replicate' needs a non-empty axis, got axis {axis} of shape {x.shape}"
        )


# --- patches --------------------------------------------------------------------------------------


def unfold(
    input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Return the patches of images as columns; see `dt.unfold`.

    - `padding`: the number of zeros before and after each axis.

    Shapes: (n, c, h, w) or (c, h, w) gives (n, c * elements of a patch, patches), without n if
    there was none.
    Dtypes: all.
    Raises: ShapeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.arange(6).reshape((1, 2, 3))
    >>> dt.nn.functional.unfold(x, (2, 2)).tolist()
    [[0, 1], [1, 2], [3, 4], [4, 5]]
    """
    x = required("unfold", input)
    if x.ndim not in (3, 4):
        raise dt.ShapeError(
            f"unfold: the input must have shape (n, c, h, w) or (c, h, w), got shape {x.shape}"
        )
    return dt.unfold(x, *_check_patches("unfold", kernel_size, dilation, padding, stride))


def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Return images whose patches are columns, summed where they overlap; see `dt.fold`.

    - `output_size`: the height and width of the images: an int for both, or a pair.
    - `kernel_size`, `dilation`, `padding`, `stride`: those of the `unfold` that made the columns.

    Shapes: (n, c * elements of a patch, patches), or without n, gives (n, c, *output_size).
    Dtypes: numbers.
    Raises: ShapeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.ones((4, 2))
    >>> dt.nn.functional.fold(x, (2, 3), (2, 2)).tolist()
    [[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]
    """
    x = required("fold", input)
    if x.ndim not in (2, 3):
        raise dt.ShapeError(
            "fold: the input must have shape (n, elements, patches) or (elements, patches), got "
            f"shape {x.shape}"
        )
    out = check_sizes("fold", output_size, "output_size", 2, 1)
    return dt.fold(x, out, *_check_patches("fold", kernel_size, dilation, padding, stride))


def _check_patches(
    op: str, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> tuple[tuple[int, ...], ...]:
    """Return kernel, dilation, padding and stride, each along both axes.

    Raises: as `check_sizes`.
    """
    return (
        check_sizes(op, kernel, "kernel_size", 2, 1),
        check_sizes(op, dilation, "dilation", 2, 1),
        check_sizes(op, padding, "padding", 2),
        check_sizes(op, stride, "stride", 2, 1),
    )


# --- channels -------------------------------------------------------------------------------------


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return images larger by a factor r, with each r * r channels moved to a square.

    - `upscale_factor`: the factor r.

    Shapes: (..., c * r * r, h, w) gives (..., c, h * r, w * r).
    Dtypes: all.
    Raises: ShapeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.arange(4).reshape((4, 1, 1))
    >>> dt.nn.functional.pixel_shuffle(x, 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    x = required("pixel_shuffle", input)
    (r,) = check_sizes("pixel_shuffle", upscale_factor, "upscale_factor", 1, 1)
    if x.ndim < 3 or x.shape[-3] % (r * r):
        raise dt.ShapeError(
            f"pixel_shuffle: the input must have shape (..., n * {r * r}, h, w), got shape "
            f"{x.shape}"
        )
    *lead, c, h, w = x.shape
    split = x.reshape((*lead, c // (r * r), r, r, h, w))
    at = len(lead)
    order = (*range(at + 1), at + 3, at + 1, at + 4, at + 2)
    return split.permute_dims(order).reshape((*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return images smaller by a factor and with more channels: invert `pixel_shuffle`.

    - `downscale_factor`: the factor r.

    Shapes: (..., c, h * r, w * r) gives (..., c * r * r, h, w).
    Dtypes: all.
    Raises: ShapeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.arange(4).reshape((1, 2, 2))
    >>> dt.nn.functional.pixel_unshuffle(x, 2).tolist()
    [[[0]], [[1]], [[2]], [[3]]]
    """
    x = required("pixel_unshuffle", input)
    (r,) = check_sizes("pixel_unshuffle", downscale_factor, "downscale_factor", 1, 1)
    if x.ndim < 3 or x.shape[-2] % r or x.shape[-1] % r:
        raise dt.ShapeError(
            f"pixel_unshuffle: the input must have shape (..., c, h * {r}, w * {r}), got shape "
            f"{x.shape}"
        )
    *lead, c, h, w = x.shape
    split = x.reshape((*lead, c, h // r, r, w // r, r))
    at = len(lead)
    order = (*range(at + 1), at + 2, at + 4, at + 1, at + 3)
    return split.permute_dims(order).reshape((*lead, c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Reorder channels: the first of each group, then the second of each group, and so on.

    - `groups`: the number of groups; it divides the number of channels.

    Shapes: (n, c, *axes); the result has the same.
    Dtypes: all.
    Raises: ShapeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.arange(4).reshape((1, 4, 1))
    >>> dt.nn.functional.channel_shuffle(x, 2).ravel().tolist()
    [0, 2, 1, 3]
    """
    x = required("channel_shuffle", input)
    (g,) = check_sizes("channel_shuffle", groups, "groups", 1, 1)
    if x.ndim < 3 or x.shape[1] % g:
        raise dt.ShapeError(
            f"channel_shuffle: the input must have shape (n, m * {g}, *axes), got shape {x.shape}"
        )
    n, c, *axes = x.shape
    split = x.reshape((n, g, c // g, *axes))
    return split.permute_dims((0, 2, 1, *range(3, 3 + len(axes)))).reshape(x.shape)


# --- sampling -------------------------------------------------------------------------------------


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the positions, from -1 to 1 along each axis, to which affine maps move a grid's.

    - `theta`: the matrix of each map.
    - `size`: the shape of the sampled images, (n, c, h, w) or (n, c, d, h, w).
    - `align_corners`: True if -1 and 1 are the middles of the first and last elements, False if
      they are the outer edges.

    The result is the `grid` of `grid_sample`.
    Shapes: theta (n, 2, 3) or (n, 3, 4); the result (n, h, w, 2) or (n, d, h, w, 3).
    Dtypes: floats.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> theta = dt.asarray([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> dt.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=False).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    t = required("affine_grid", theta)
    shape = arguments.integers("affine_grid", tuple(size), "size")
    axes = len(shape) - 2
    if axes not in (2, 3) or t.shape != (shape[0], axes, axes + 1) or min(shape) < 1:
        raise dt.ShapeError(
            "affine_grid: theta must have shape (n, 2, 3) for size (n, c, h, w), or (n, 3, 4) for "
            f"(n, c, d, h, w), got shape {t.shape} for size={tuple(size)!r}"
        )
    if t.dtype.kind != "f":
        raise dt.DTypeError(
            f"affine_grid: theta must have a float dtype, got {t.dtype.name}; use "
            "theta.astype(dt.float32)"
        )
    total = t[:, :, axes].reshape((shape[0], *(1,) * axes, axes))
    for a, n in enumerate(shape[2:]):
        along = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        along = along if align_corners or n == 1 else along * (n - 1) / n
        positions = dt.asarray(along, dtype=t.dtype, device=t.device)
        positions = positions.reshape((-1, *(1,) * (axes - a)))
        total = total + positions * t[:, :, axes - 1 - a].reshape((shape[0], *(1,) * axes, axes))
    return total


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample images at fractional positions.

    - `grid`: positions, x first, from -1 to 1.
    - `mode`: "bilinear" (for volumes along three axes), "nearest", or for images "bicubic".
    - `padding_mode`: the values outside: "zeros"; "border", the nearest element; "reflection",
      mirrored elements.
    - `align_corners`: as for `affine_grid`.

    Shapes: input (n, c, h, w) and grid (n, p, q, 2), or with one axis more each and 3; the result
    (n, c, p, q).
    Dtypes: floats, the same for both.
    Raises: ShapeError, ArgumentError, DTypeError.
    See also: `affine_grid`, `interpolate`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[[[1.0, 3.0]]]])
    >>> grid = dt.asarray([[[[0.0, 0.0]]]])
    >>> dt.nn.functional.grid_sample(x, grid, align_corners=False).tolist()
    [[[[2.0]]]]
    """
    op = "grid_sample"
    x, positions = required(op, input), required(op, grid)
    arguments.choice(op, mode, "mode", ("bilinear", "nearest", "bicubic"))
    arguments.choice(op, padding_mode, "padding_mode", ("zeros", "border", "reflection"))
    axes = x.ndim - 2
    fits = axes in (2, 3) and positions.ndim == x.ndim and positions.shape[-1] == axes
    if not fits or positions.shape[0] != x.shape[0] or 0 in x.shape[2:]:
        raise dt.ShapeError(
            f"{op}: expected an input (n, c, h, w) and a grid (n, p, q, 2), or (n, c, d, h, w) "
            f"and (n, p, q, r, 3), got shapes {x.shape} and {positions.shape}"
        )
    if mode == "bicubic" and axes != 2:
        raise dt.ShapeError(
            f"{op}: mode='bicubic' needs an input (n, c, h, w), got shape {x.shape}"
        )
    if x.dtype is not positions.dtype or x.dtype.kind != "f":
        raise dt.DTypeError(
            f"{op}: the input and the grid must have the same float dtype, got {x.dtype.name} and "
            f"{positions.dtype.name}; use x.astype(dtype)"
        )
    corners = bool(align_corners)
    at = []
    for a, n in enumerate(x.shape[2:]):
        along = positions[..., axes - 1 - a]
        along = (along + 1) * ((n - 1) / 2) if corners else ((along + 1) * n - 1) * 0.5
        at.append(along if mode == "bicubic" else _move_inside(along, n, padding_mode, corners))
    if mode == "bicubic":
        return _sample_cubic(x, at, padding_mode, corners)
    return _sample_corners(x, at, mode)


def _move_inside(at: Tensor, n: int, padding_mode: str, corners: bool) -> Tensor:
    """Move positions outside of an axis of n elements inside, except for "zeros"."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
        if span == 0:
            return at * 0
        distance = dt.abs(at - low)
        reflections = dt.floor(distance / span).detach()
        remainder = distance - reflections * span
        parity = reflections - 2 * dt.floor(reflections / 2)
        at = dt.where(parity == 0, remainder, span - remainder) + low
    return dt.clip(at, 0, n - 1)


def _gather_pixels(x: Tensor, positions: list[Tensor]) -> Tensor:
    """Return the elements of images at integer positions, channels last.

    Values outside are 0, also if the nearest element is infinite or NaN.
    """
    rows = dt.arange(x.shape[0], dtype=dt.int64, device=x.device)
    index, inside = [rows.reshape((-1, *(1,) * (positions[0].ndim - 1)))], None
    for along, n in zip(positions, x.shape[2:], strict=True):
        fits = (along >= 0) & (along <= n - 1)
        inside = fits if inside is None else inside & fits
        index.append(dt.clip(along, 0, n - 1).astype(dt.int64))
    assert inside is not None
    values = x.permute_dims((0, *range(2, x.ndim), 1))[tuple(index)]
    return dt.where(inside.reshape((*inside.shape, 1)), values, 0.0)


def _move_channels_first(x: Tensor) -> Tensor:
    """Return a view with the last axis moved behind the batch axis."""
    return x.permute_dims((0, x.ndim - 1, *range(1, x.ndim - 1)))


def _sample_cubic(x: Tensor, at: list[Tensor], padding_mode: str, corners: bool) -> Tensor:
    """Return weighted sums of sixteen elements around each position; padding applies to each."""
    low = [dt.floor(along).detach() for along in at]
    weights = [_cubic_weights(along - below) for along, below in zip(at, low, strict=True)]
    around = [
        [_move_inside(below + (k - 1), n, padding_mode, corners) for k in range(4)]
        for below, n in zip(low, x.shape[2:], strict=True)
    ]
    rows = []
    for i in range(4):
        terms = [
            _gather_pixels(x, [around[0][i], around[1][j]]) * weights[1][j][..., None]
            for j in range(4)
        ]
        rows.append(_add_all(terms) * weights[0][i][..., None])
    return _move_channels_first(_add_all(rows))


def _add_all(terms: list[Tensor]) -> Tensor:
    """Return the sum of a few tensors, added in order."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _sample_corners(x: Tensor, at: list[Tensor], mode: str) -> Tensor:
    """Return `x` at the positions: weighted corners, or the nearest; 0 for elements outside x."""
    terms = []
    for corner in range(1 if mode == "nearest" else 1 << len(at)):
        positions, weight = [], None
        for a, along in enumerate(at):
            low = (dt.round(along) if mode == "nearest" else dt.floor(along)).detach()
            up = corner >> a & 1
            positions.append(low + up)
            if mode != "nearest":
                fraction = along - low if up else 1 - (along - low)
                weight = fraction if weight is None else weight * fraction
        value = _gather_pixels(x, positions)
        terms.append(value if weight is None else value * weight[..., None])
    return _move_channels_first(_add_all(terms))
