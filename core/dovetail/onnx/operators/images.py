"""Images: resized, sampled at real places, and boxes in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dovetail as dt

from .table import Call, row

Tensor = dt.Tensor


# --- resizing: each axis is a sum of taps ---------------------------------------------------------


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """The kernel of cubic convolution. Source: R. Keys, 1981."""
    x = np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _linear(x: np.ndarray, a: float) -> np.ndarray:
    made: np.ndarray = np.maximum(1 - np.abs(x), 0.0)
    return made


def _sources(how: str, n: int, size: int, scale: float, roi: tuple[float, float]) -> np.ndarray:
    """Where in the input each place of the output is."""
    x = np.arange(size, dtype=np.float64)
    if how == "align_corners":
        return x * ((n - 1) / (scale * n - 1)) if size > 1 else np.zeros(size)
    if how == "asymmetric":
        return x / scale
    if how == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if size > 1 else np.zeros(size)
    if how == "half_pixel_symmetric":
        adjusted = size / (scale * n)
        return n / 2 * (1 - adjusted) + (x + 0.5) / scale - 0.5
    if how == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if how == "tf_crop_and_resize":
        start, end = roi
        if size == 1:
            return np.full(1, 0.5 * (start + end) * (n - 1))
        return start * (n - 1) + x * (end - start) * (n - 1) / (size - 1)
    if how == "half_pixel":
        return (x + 0.5) / scale - 0.5
    raise dt.ArgumentError(f"Resize: coordinate_transformation_mode {how!r}")


_ROUND: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5), "floor": np.floor, "ceil": np.ceil,
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}  # fmt: skip


def _axis(
    call: Call, x: Tensor, axis: int, size: int, scale: float, roi: tuple[float, float]
) -> Tensor:
    n = x.shape[axis]
    how = call.get("coordinate_transformation_mode", "half_pixel" if call.version > 10 else
                   "asymmetric")  # fmt: skip
    at = _sources(how, n, size, scale, roi)
    mode = call.get("mode", "nearest")
    if mode == "nearest":
        nearest = call.get("nearest_mode", "round_prefer_floor" if call.version > 10 else "floor")
        places = np.clip(_ROUND[nearest](at), 0, n - 1).astype(np.int64)
        made = dt.take(x, call.tensor(places), axis=axis)
    else:
        made = _summed(call, x, axis, at, scale, mode)
    if how == "tf_crop_and_resize":
        beyond = (at < 0) | (at > n - 1)
        if beyond.any():
            mask = call.tensor(beyond).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
            made = dt.where(mask, call.get("extrapolation_value", 0.0), made).astype(x.dtype)
    return made


def _summed(call: Call, x: Tensor, axis: int, at: np.ndarray, scale: float, mode: str) -> Tensor:
    n, kernel = x.shape[axis], _cubic if mode == "cubic" else _linear
    reach = 2 if mode == "cubic" else 1
    stretch = min(scale, 1.0) if call.get("antialias", 0) else 1.0
    wide = math.ceil(reach / stretch)
    low = np.floor(at)
    taps = np.arange(-wide + 1, wide + 1)
    places = low[:, None] + taps[None, :]
    weights = kernel((places - at[:, None]) * stretch, call.get("cubic_coeff_a", -0.75))
    if call.get("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= n), 0.0, weights)
    if stretch < 1 or call.get("exclude_outside", 0):
        weights = weights / weights.sum(axis=1, keepdims=True)
    places = np.clip(places, 0, n - 1).astype(np.int64)
    total: Any = None
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    wide_x = x if x.dtype.kind == "f" else x.astype(dt.float32)
    for k in range(len(taps)):
        if not weights[:, k].any():
            continue
        part = dt.take(wide_x, call.tensor(places[:, k]), axis=axis)
        part = part * call.tensor(weights[:, k], wide_x.dtype).reshape(shape)
        total = part if total is None else total + part
    made: Tensor = total if total is not None else dt.take(wide_x, call.tensor(places[:, 0]), axis)
    return made if made.dtype is x.dtype else dt.round(made).astype(x.dtype)


@row("Resize", since=11, host=(1, 2, 3), folds=False)
def _resize(
    call: Call, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None
) -> Tensor:
    axes = call.axes(None, x.ndim) or tuple(range(x.ndim))
    given = None if scales is None else call.array(scales).astype(np.float64).reshape(-1)
    wanted = None if sizes is None else call.ints(sizes)
    if given is not None and given.size == 0:
        given = None
    if (given is None) == (not wanted):
        raise dt.ArgumentError("Resize: one of scales and sizes is wanted")
    have = [x.shape[a] for a in axes]
    if wanted:
        factors = [w / n for w, n in zip(wanted, have, strict=True)]
        policy = call.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors = [factor] * len(axes)
            wanted = [math.floor(factor * n + 0.5) for n in have]
    else:
        assert given is not None
        factors = [float(f) for f in given]
        wanted = [math.floor(f * n) for f, n in zip(factors, have, strict=True)]
    whole = call.get("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    bounds = call.array(roi).astype(np.float64).reshape(-1) if roi is not None and whole else None
    for i, (a, size, factor) in enumerate(zip(axes, wanted, factors, strict=True)):
        if size == x.shape[a] and factor == 1 and not whole:
            continue
        part = (0.0, 1.0) if bounds is None else (bounds[i], bounds[i + len(axes)])
        x = _axis(call, x, a, size, factor, part)
    return x


@row("Resize", "Upsample", host=(1,), folds=False)
def _upsample(call: Call, x: Tensor, scales: Any = None) -> Tensor:
    given = call.get("scales") if scales is None else call.array(scales).reshape(-1).tolist()
    attributes = {
        "mode": call.get("mode", "nearest"), "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }  # fmt: skip
    inner = Call(call.op, 11, attributes, call.device, 1, call.graphs)
    return _resize(inner, x, None, np.asarray(given, np.float32))


# --- sampling -------------------------------------------------------------------------------------


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span <= 0:
        return dt.zeros_like(x)
    away = dt.abs(x - low)
    turns = dt.floor(away / span)
    rest = away - turns * span
    return dt.where(dt.remainder(turns, 2.0) == 0, rest + low, high - rest)


def _real_places(call: Call, grid: Tensor, shape: Sequence[int]) -> list[Tensor]:
    """Where a grid of -1 to 1 says, in elements: x comes last in the image, first in the grid."""
    aligned = call.get("align_corners", 0)
    found = []
    for d, n in enumerate(shape):
        g = grid[..., len(shape) - 1 - d]
        found.append((g + 1.0) * ((n - 1) / 2) if aligned else ((g + 1.0) * n - 1.0) * 0.5)
    return found


def _read(call: Call, x: Tensor, at: Sequence[Tensor]) -> Tensor:
    """The elements (N, C, places) at whole places, by the padding that is wanted outside."""
    how, shape = call.get("padding_mode", "zeros"), x.shape[2:]
    flat = x.reshape((*x.shape[:2], math.prod(shape)))
    index: Any = 0
    inside: Any = True
    for n, p in zip(shape, at, strict=True):
        if how == "reflection":
            low, high = (0.0, n - 1.0) if call.get("align_corners", 0) else (-0.5, n - 0.5)
            p = dt.round(_reflected(p, low, high))
        inside = (p >= 0) & (p < n) & inside
        index = index * n + dt.clip(p, 0, n - 1).astype(dt.int64)
    index = dt.expand_dims(index.reshape((x.shape[0], -1)), axis=1)
    seen = dt.take_along_axis(flat, dt.broadcast_to(index, (*x.shape[:2], index.shape[2])), axis=2)
    if how == "zeros":
        seen = dt.where(dt.expand_dims(inside.reshape((x.shape[0], -1)), axis=1), seen, 0.0)
    return seen


@row("GridSample", folds=False)
def _grid_sample(call: Call, x: Tensor, grid: Tensor) -> Tensor:
    mode, shape = call.get("mode", "linear"), x.shape[2:]
    at = _real_places(call, grid.astype(x.dtype), shape)
    how = call.get("padding_mode", "zeros")
    sizes = (*x.shape[:2], *grid.shape[1:-1])
    if how != "zeros" and mode not in ("cubic", "bicubic"):
        edges = [(0.0, n - 1.0) if call.get("align_corners", 0) else (-0.5, n - 0.5) for n in shape]
        if how == "reflection":
            at = [_reflected(p, *e) for p, e in zip(at, edges, strict=True)]
        at = [dt.clip(p, 0.0, n - 1.0) for p, n in zip(at, shape, strict=True)]
    if mode == "nearest":
        return _read(call, x, [dt.round(p) for p in at]).reshape(sizes)
    a = -0.75
    taps = range(-1, 3) if mode in ("cubic", "bicubic") else range(2)
    lows = [dt.floor(p) for p in at]
    total: Any = None
    for corner in itertools.product(taps, repeat=len(shape)):
        weight: Any = 1.0
        for p, low, c in zip(at, lows, corner, strict=True):
            away = dt.abs(p - low - c)
            if len(taps) == 2:
                weight = weight * (1.0 - away)
                continue
            near = ((a + 2) * away - (a + 3)) * away * away + 1.0
            far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
            weight = weight * dt.where(away <= 1, near, far)
        seen = _read(call, x, [low + c for low, c in zip(lows, corner, strict=True)])
        part = seen * dt.expand_dims(weight.reshape((x.shape[0], -1)), axis=1)
        total = part if total is None else total + part
    made: Tensor = total.reshape(sizes)
    return made


# --- boxes ----------------------------------------------------------------------------------------


@row("RoiAlign", folds=False)
def _roi_align(call: Call, x: Tensor, rois: Tensor, batches: Tensor) -> Tensor:
    height, width = call.get("output_height", 1), call.get("output_width", 1)
    default = "half_pixel" if call.version >= 16 else "output_half_pixel"
    how = call.get("coordinate_transformation_mode", default)
    half = 0.5 if how == "half_pixel" else 0.0
    scale, ratio = call.get("spatial_scale", 1.0), call.get("sampling_ratio", 0)
    boxes, which = call.array(rois).astype(np.float64) * scale - half, call.ints(batches)
    parts = []
    for (x1, y1, x2, y2), b in zip(boxes, which, strict=True):
        w, h = x2 - x1, y2 - y1
        if not half:
            w, h = max(w, 1.0), max(h, 1.0)
        rows = ratio or max(math.ceil(h / height), 1)
        columns = ratio or max(math.ceil(w / width), 1)
        ys = y1 + (np.arange(height * rows) + 0.5) * (h / height / rows)
        xs = x1 + (np.arange(width * columns) + 0.5) * (w / width / columns)
        found = _at_lines(call, _at_lines(call, x[b], ys, 1), xs, 2, call.get("mode", "avg"), ys)
        cells = found.reshape((x.shape[1], height, rows, width, columns))
        last = call.get("mode", "avg") == "max"
        parts.append(dt.max(cells, axis=(2, 4)) if last else dt.mean(cells, axis=(2, 4)))
    return dt.stack(parts, axis=0)


def _at_lines(
    call: Call, x: Tensor, at: np.ndarray, axis: int, mode: str = "avg", other: Any = None
) -> Tensor:
    """Between places along an axis; 0 more than one place outside."""
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


@row("NonMaxSuppression", host=(0, 1, 2, 3, 4), folds=False)
def _non_max_suppression(
    call: Call, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> np.ndarray:
    """On the host: how many boxes there are depends on values."""
    corners, values = call.array(boxes), call.array(scores)
    count = 0 if most is None else call.number(most)
    limit = 0.0 if overlap is None else float(call.array(overlap).reshape(-1)[0])
    threshold = -math.inf if least is None else float(call.array(least).reshape(-1)[0])
    found = []
    for b in range(values.shape[0]):
        y1, x1, y2, x2 = _corners(corners[b], call.get("center_point_box", 0))
        area = (y2 - y1) * (x2 - x1)
        for c in range(values.shape[1]):
            order = [i for i in np.argsort(-values[b, c], kind="stable")
                     if values[b, c, i] > threshold]  # fmt: skip
            kept: list[int] = []
            while order and len(kept) < count:
                i = order.pop(0)
                kept.append(i)
                rest = np.asarray(order, np.int64)
                h = np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest])
                w = np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest])
                both = np.maximum(h, 0) * np.maximum(w, 0)
                whole = area[i] + area[rest] - both
                order = [j for j, s, u in zip(order, both, whole, strict=True) if s <= limit * u]
            found += [[b, c, i] for i in kept]
    return np.asarray(found, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, centred: int) -> tuple[np.ndarray, ...]:
    a, b, c, d = boxes.T.astype(np.float64)
    if centred:
        return b - d / 2, a - c / 2, b + d / 2, a + c / 2
    return np.minimum(a, c), np.minimum(b, d), np.maximum(a, c), np.maximum(b, d)
