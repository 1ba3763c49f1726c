"""Image operators: resizing, sampling at real positions, and boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dovetail as dt

from .table import OperatorCall, register_operator

Tensor = dt.Tensor


# --- resizing: each axis is a sum of taps ---------------------------------------------------------


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Return weights of cubic convolution at distances `x`, with the coefficient `a`."""
    x = np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _linear(x: np.ndarray, a: float) -> np.ndarray:
    """Return weights of linear interpolation at distances `x`; `a` has no effect."""
    weights: np.ndarray = np.maximum(1 - np.abs(x), 0.0)
    return weights


def _source_positions(
    coordinate_mode: str, n: int, size: int, scale: float, roi: tuple[float, float]
) -> np.ndarray:
    """Return input positions of output positions. Raises: ArgumentError for an unknown mode."""
    x = np.arange(size, dtype=np.float64)
    if coordinate_mode == "align_corners":
        return x * ((n - 1) / (scale * n - 1)) if size > 1 else np.zeros(size)
    if coordinate_mode == "asymmetric":
        return x / scale
    if coordinate_mode == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if size > 1 else np.zeros(size)
    if coordinate_mode == "half_pixel_symmetric":
        adjusted = size / (scale * n)
        return n / 2 * (1 - adjusted) + (x + 0.5) / scale - 0.5
    if coordinate_mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if coordinate_mode == "tf_crop_and_resize":
        start, end = roi
        if size == 1:
            return np.full(1, 0.5 * (start + end) * (n - 1))
        return start * (n - 1) + x * (end - start) * (n - 1) / (size - 1)
    if coordinate_mode == "half_pixel":
        return (x + 0.5) / scale - 0.5
    raise dt.ArgumentError(
        f"Resize: the coordinate_transformation_mode {coordinate_mode!r} is unknown"
    )


_ROUND: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _resize_axis(
    call: OperatorCall, x: Tensor, axis: int, size: int, scale: float, roi: tuple[float, float]
) -> Tensor:
    """Resize one axis, by nearest elements or by sums of taps."""
    n = x.shape[axis]
    call.reserve(4 * 8 * max(size, 0))
    how = call.get(
        "coordinate_transformation_mode", "half_pixel" if call.version > 10 else "asymmetric"
    )
    at = _source_positions(how, n, size, scale, roi)
    mode = call.get("mode", "nearest")
    if mode == "nearest":
        nearest = call.get("nearest_mode", "round_prefer_floor" if call.version > 10 else "floor")
        indices = np.clip(_ROUND[nearest](at), 0, n - 1).astype(np.int64)
        result = dt.take(x, call.tensor(indices), axis=axis)
    else:
        result = _sum_taps(call, x, axis, at, scale, mode)
    if how == "tf_crop_and_resize":
        is_outside = (at < 0) | (at > n - 1)
        if is_outside.any():
            mask = call.tensor(is_outside).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
            fill = call.tensor(call.get("extrapolation_value", 0.0), dt.float32).astype(x.dtype)
            result = dt.where(mask, fill, result)
    return result


def _sum_taps(
    call: OperatorCall, x: Tensor, axis: int, at: np.ndarray, scale: float, mode: str
) -> Tensor:
    """Return weighted sums of neighbouring elements of floats along an axis."""
    n, kernel = x.shape[axis], _cubic if mode == "cubic" else _linear
    reach = 2 if mode == "cubic" else 1
    stretch = min(scale, 1.0) if call.get("antialias", 0) else 1.0
    wide = math.ceil(reach / stretch)
    call.reserve(8 * 8 * 2 * wide * max(at.size, 1))
    low = np.floor(at)
    taps = np.arange(-wide + 1, wide + 1)
    positions = low[:, None] + taps[None, :]
    weights = kernel((positions - at[:, None]) * stretch, call.get("cubic_coeff_a", -0.75))
    if call.get("exclude_outside", 0):
        weights = np.where((positions < 0) | (positions >= n), 0.0, weights)
    if stretch < 1 or call.get("exclude_outside", 0):
        weights = weights / weights.sum(axis=1, keepdims=True)
    positions = np.clip(positions, 0, n - 1).astype(np.int64)
    total: Any = None
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    for k in range(len(taps)):
        if not weights[:, k].any():
            continue
        part = dt.take(x, call.tensor(positions[:, k]), axis=axis)
        part = part * call.tensor(weights[:, k], x.dtype).reshape(shape)
        total = part if total is None else total + part
    if total is None:
        total = dt.take(x, call.tensor(positions[:, 0]), axis)
    result: Tensor = total
    return result


def _to_floats(x: Tensor) -> Tensor:
    """Return x as floats: itself, float32 for integers of up to 16 bits, else float64."""
    if x.dtype.kind == "f":
        return x
    return x.astype(dt.float32 if x.dtype.itemsize < 4 else dt.float64)


def _round_to(x: Tensor, d: dt.DType) -> Tensor:
    """Return floats in a dtype, rounded to the nearest integers unless it is their own."""
    return x if x.dtype is d else dt.round(x).astype(d)


@register_operator("Resize", since=11, host=(1, 2, 3), folds=False)
def _resize(
    call: OperatorCall, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None
) -> Tensor:
    """Resize the axes by scales or to sizes. Raises: ArgumentError unless just one is given."""
    axes = call.axes(None, x.ndim) or tuple(range(x.ndim))
    scale_factors = None if scales is None else call.array(scales).astype(np.float64).reshape(-1)
    target_sizes = None if sizes is None else call.ints(sizes)
    if scale_factors is not None and scale_factors.size == 0:
        scale_factors = None
    if (scale_factors is None) == (not target_sizes):
        raise dt.ArgumentError("Resize: exactly one of scales and sizes must be given")
    have = [x.shape[a] for a in axes]
    if target_sizes:
        factors = [w / n for w, n in zip(target_sizes, have, strict=True)]
        policy = call.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors = [factor] * len(axes)
            target_sizes = [math.floor(factor * n + 0.5) for n in have]
    else:
        assert scale_factors is not None
        factors = [float(f) for f in scale_factors]
        target_sizes = [math.floor(f * n) for f, n in zip(factors, have, strict=True)]
    whole = call.get("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    bounds = call.array(roi).astype(np.float64).reshape(-1) if roi is not None and whole else None
    changes = [
        (a, size, factor, (0.0, 1.0) if bounds is None else (bounds[i], bounds[i + len(axes)]))
        for i, (a, size, factor) in enumerate(zip(axes, target_sizes, factors, strict=True))
        if size != x.shape[a] or factor != 1 or whole
    ]
    if call.get("mode", "nearest") == "nearest" or not changes:
        return _resize_axes(call, x, changes)
    return _round_to(_resize_axes(call, _to_floats(x), changes), x.dtype)


def _resize_axes(
    call: OperatorCall, x: Tensor, changes: Sequence[tuple[int, int, float, tuple[float, float]]]
) -> Tensor:
    """Resize axes one after the other. `changes`: (axis, size, scale, roi) of each."""
    for change in changes:
        x = _resize_axis(call, x, *change)
    return x


@register_operator("Resize", "Upsample", host=(1,), folds=False)
def _upsample(call: OperatorCall, x: Tensor, scales: Any = None) -> Tensor:
    """Run the older forms of Resize: asymmetric positions, nearest elements by floor."""
    scale_factors = (
        call.get("scales") if scales is None else call.array(scales).reshape(-1).tolist()
    )
    attributes = {
        "mode": call.get("mode", "nearest"),
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    inner = OperatorCall(call.op, 11, attributes, call.device, 1, call.graphs, call.reserve)
    return _resize(inner, x, None, np.asarray(scale_factors, np.float32))


# --- sampling -------------------------------------------------------------------------------------


def _reflect(x: Tensor, low: float, high: float) -> Tensor:
    """Return positions reflected at the ends until they lie in low..high."""
    span = high - low
    if span <= 0:
        return dt.zeros_like(x)
    distance = dt.abs(x - low)
    periods = dt.floor(distance / span)
    offset = distance - periods * span
    return dt.where(dt.remainder(periods, 2.0) == 0, offset + low, high - offset)


def _grid_positions(call: OperatorCall, grid: Tensor, shape: Sequence[int]) -> list[Tensor]:
    """Return positions in elements from a grid of -1..1; x is first in the grid, last in images."""
    align_corners = call.get("align_corners", 0)
    positions = []
    for d, n in enumerate(shape):
        g = grid[..., len(shape) - 1 - d]
        positions.append(
            (g + 1.0) * ((n - 1) / 2) if align_corners else ((g + 1.0) * n - 1.0) * 0.5
        )
    return positions


def _read_at(call: OperatorCall, x: Tensor, at: Sequence[Tensor]) -> Tensor:
    """Return the elements (N, C, points) at integer positions, with `padding_mode` outside."""
    how, shape = call.get("padding_mode", "zeros"), x.shape[2:]
    flat = x.reshape((*x.shape[:2], math.prod(shape)))
    index: Any = 0
    inside: Any = True
    for n, p in zip(shape, at, strict=True):
        if how == "reflection":
            low, high = (0.0, n - 1.0) if call.get("align_corners", 0) else (-0.5, n - 0.5)
            p = dt.round(_reflect(p, low, high))
        inside = (p >= 0) & (p < n) & inside
        index = index * n + dt.clip(p, 0, n - 1).astype(dt.int64)
    index = dt.expand_dims(index.reshape((x.shape[0], -1)), axis=1)
    values = dt.take_along_axis(
        flat, dt.broadcast_to(index, (*x.shape[:2], index.shape[2])), axis=2
    )
    if how == "zeros":
        zero = dt.zeros((), dtype=x.dtype, device=x.device)
        values = dt.where(dt.expand_dims(inside.reshape((x.shape[0], -1)), axis=1), values, zero)
    return values


@register_operator("GridSample", folds=False)
def _grid_sample(call: OperatorCall, x: Tensor, grid: Tensor) -> Tensor:
    """Sample x at the positions of a grid, nearest, linear or cubic."""
    mode, shape, wide_x = call.get("mode", "linear"), x.shape[2:], _to_floats(x)
    at = _grid_positions(call, grid.astype(wide_x.dtype), shape)
    how = call.get("padding_mode", "zeros")
    sizes = (*x.shape[:2], *grid.shape[1:-1])
    if how != "zeros" and mode not in ("cubic", "bicubic"):
        edges = [(0.0, n - 1.0) if call.get("align_corners", 0) else (-0.5, n - 0.5) for n in shape]
        if how == "reflection":
            at = [_reflect(p, *e) for p, e in zip(at, edges, strict=True)]
        at = [dt.clip(p, 0.0, n - 1.0) for p, n in zip(at, shape, strict=True)]
    if mode == "nearest":
        return _read_at(call, x, [dt.round(p) for p in at]).reshape(sizes)
    a = -0.75
    taps = range(-1, 3) if mode in ("cubic", "bicubic") else range(2)
    lows = [dt.floor(p) for p in at]
    total: Any = None
    for corner in itertools.product(taps, repeat=len(shape)):
        weight: Any = 1.0
        for p, low, c in zip(at, lows, corner, strict=True):
            distance = dt.abs(p - low - c)
            if len(taps) == 2:
                weight = weight * (1.0 - distance)
                continue
            near = ((a + 2) * distance - (a + 3)) * distance * distance + 1.0
            far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
            weight = weight * dt.where(distance <= 1, near, far)
        values = _read_at(call, wide_x, [low + c for low, c in zip(lows, corner, strict=True)])
        part = values * dt.expand_dims(weight.reshape((x.shape[0], -1)), axis=1)
        total = part if total is None else total + part
    return _round_to(total.reshape(sizes), x.dtype)


# --- boxes ----------------------------------------------------------------------------------------


@register_operator("RoiAlign", folds=False)
def _roi_align(call: OperatorCall, x: Tensor, rois: Tensor, batches: Tensor) -> Tensor:
    """Pool samples of each box to a grid of cells, by mean or maximum; wait for the boxes."""
    height, width = call.get("output_height", 1), call.get("output_width", 1)
    default = "half_pixel" if call.version >= 16 else "output_half_pixel"
    how = call.get("coordinate_transformation_mode", default)
    half = 0.5 if how == "half_pixel" else 0.0
    scale, ratio = call.get("spatial_scale", 1.0), call.get("sampling_ratio", 0)
    boxes, which = call.array(rois).astype(np.float64) * scale - half, call.ints(batches)
    regions = []
    for (x1, y1, x2, y2), b in zip(boxes, which, strict=True):
        w, h = x2 - x1, y2 - y1
        if not half:
            w, h = max(w, 1.0), max(h, 1.0)
        rows = ratio or max(math.ceil(h / height), 1)
        columns = ratio or max(math.ceil(w / width), 1)
        call.reserve(8 * 8 * max(0, height * rows, width * columns))
        ys = y1 + (np.arange(height * rows) + 0.5) * (h / height / rows)
        xs = x1 + (np.arange(width * columns) + 0.5) * (w / width / columns)
        samples = _interpolate_axis(
            call, _interpolate_axis(call, x[b], ys, 1), xs, 2, call.get("mode", "avg"), ys
        )
        cells = samples.reshape((x.shape[1], height, rows, width, columns))
        last = call.get("mode", "avg") == "max"
        regions.append(dt.max(cells, axis=(2, 4)) if last else dt.mean(cells, axis=(2, 4)))
    return dt.stack(regions, axis=0)


def _interpolate_axis(
    call: OperatorCall, x: Tensor, at: np.ndarray, axis: int, mode: str = "avg", other: Any = None
) -> Tensor:
    """Interpolate along an axis at real positions; 0 more than one element outside."""
    n = x.shape[axis]
    outside = (at < -1) | (at > n)
    at = np.clip(at, 0, n - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    share = np.where(outside, 0.0, 1.0)
    a = call.tensor(share * (1 - (at - low)), x.dtype).reshape(shape)
    b = call.tensor(share * (at - low), x.dtype).reshape(shape)
    return (
        dt.take(x, call.tensor(low), axis=axis) * a + dt.take(x, call.tensor(high), axis=axis) * b
    )


@register_operator("NonMaxSuppression", host=(0, 1, 2, 3, 4), folds=False)
def _non_max_suppression(
    call: OperatorCall,
    boxes: Any,
    scores: Any,
    boxes_max: Any = None,
    iou_threshold: Any = None,
    score_threshold: Any = None,
) -> np.ndarray:
    """Return rows (batch, class, box) of the best boxes that overlap no better one; on the host."""
    corners, values = call.array(boxes), call.array(scores)
    count = 0 if boxes_max is None else call.number(boxes_max)
    limit = 0.0 if iou_threshold is None else float(call.array(iou_threshold).reshape(-1)[0])
    threshold = (
        -math.inf if score_threshold is None else float(call.array(score_threshold).reshape(-1)[0])
    )
    selected = []
    for b in range(values.shape[0]):
        y1, x1, y2, x2 = _corners(corners[b], call.get("center_point_box", 0))
        area = (y2 - y1) * (x2 - x1)
        for c in range(values.shape[1]):
            order = [
                i for i in np.argsort(-values[b, c], kind="stable") if values[b, c, i] > threshold
            ]
            chosen: list[int] = []
            while order and len(chosen) < count:
                i = order.pop(0)
                chosen.append(i)
                others = np.asarray(order, np.int64)
                h = np.minimum(y2[i], y2[others]) - np.maximum(y1[i], y1[others])
                w = np.minimum(x2[i], x2[others]) - np.maximum(x1[i], x1[others])
                both = np.maximum(h, 0) * np.maximum(w, 0)
                whole = area[i] + area[others] - both
                order = [j for j, s, u in zip(order, both, whole, strict=True) if s <= limit * u]
            selected += [[b, c, i] for i in chosen]
    return np.asarray(selected, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, centred: int) -> tuple[np.ndarray, ...]:
    """Return y1, x1, y2, x2 of boxes given by corners in any order, or by centre and size."""
    a, b, c, d = boxes.T.astype(np.float64)
    if centred:
        return b - d / 2, a - c / 2, b + d / 2, a + c / 2
    return np.minimum(a, c), np.minimum(b, d), np.maximum(a, c), np.maximum(b, d)
