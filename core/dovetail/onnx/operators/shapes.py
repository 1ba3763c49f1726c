"""Constants, shapes, and operators that change shape or order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dovetail as dt

from ..library import dtype_of, numpy_dtype
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


@register_operator("Constant", folds=False)
def _constant(call: OperatorCall) -> np.ndarray:
    """Return the node's value as an array. Raises: UnsupportedError unless it has numbers."""
    kinds = {
        "value_int": np.int64,
        "value_ints": np.int64,
        "value_float": np.float32,
        "value_floats": np.float32,
    }
    for name, value in call.attributes.items():
        if name == "value" and isinstance(value, np.ndarray):
            return value
        if name in kinds:
            return np.asarray(value, kinds[name])
    raise dt.UnsupportedError(
        f"Constant: the value must be a tensor, got {', '.join(call.attributes) or 'nothing'}"
    )


@register_operator("ConstantOfShape", host=(0,))
def _constant_of_shape(call: OperatorCall, shape: Any) -> Tensor:
    """Return a tensor filled with a value, by default 0. Raises: ShapeError for several values."""
    value = call.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    if value.size != 1:
        raise dt.ShapeError(f"ConstantOfShape: value must have one element, got {value.size}")
    return dt.broadcast_to(call.tensor(value.reshape(())), call.ints(shape)).contiguous()


@register_operator("Identity", host=None, folds=False)
def _identity(call: OperatorCall, x: Any) -> Any:
    """Return x itself."""
    return x


@register_operator("Shape", host=None, folds=False)
def _shape(call: OperatorCall, x: Any) -> np.ndarray:
    """Return the sizes from axis `start` to `end` as an int64 array."""
    return np.asarray(x.shape[slice(call.get("start"), call.get("end"))], np.int64)


@register_operator("Size", host=None, folds=False)
def _size(call: OperatorCall, x: Any) -> np.ndarray:
    """Return the number of elements as an int64 array."""
    return np.asarray(math.prod(x.shape), np.int64)


@register_operator("Reshape", host=(1,))
def _reshape(call: OperatorCall, x: Tensor, shape: Any) -> Tensor:
    """Reshape; 0 copies a size of x unless `allowzero`, and -1 is inferred."""
    sizes = call.ints(shape)
    if not call.get("allowzero", 0):
        sizes = [x.shape[d] if n == 0 and d < x.ndim else n for d, n in enumerate(sizes)]
    if -1 in sizes and x.size == 0:
        sizes = [0 if n == -1 else n for n in sizes]
    return dt.reshape(x, sizes)


@register_operator("Flatten")
def _flatten(call: OperatorCall, x: Tensor) -> Tensor:
    """Reshape to a matrix, split before an axis."""
    axis = call.split_position(call.get("axis", 1), x.ndim)
    return dt.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@register_operator("Squeeze", host=(1,))
def _squeeze(call: OperatorCall, x: Tensor, axes_input: Any = None) -> Tensor:
    """Remove axes of length 1: those given, or all."""
    axes = call.axes(axes_input, x.ndim)
    if axes is None:
        axes = tuple(d for d, n in enumerate(x.shape) if n == 1)
    return dt.squeeze(x, axis=axes) if axes else x


@register_operator("Unsqueeze", host=(1,))
def _unsqueeze(call: OperatorCall, x: Tensor, axes_input: Any = None) -> Tensor:
    """Insert axes of length 1. Raises: AxisError for duplicates."""
    new_axes = call.get("axes", ()) if axes_input is None else call.ints(axes_input)
    ndim = x.ndim + len(new_axes)
    positions = {call.axis(a, ndim) for a in new_axes}
    if len(positions) < len(new_axes):
        raise dt.AxisError(f"Unsqueeze: axes must be different, got {list(new_axes)}")
    sizes = iter(x.shape)
    return dt.reshape(x, [1 if d in positions else next(sizes) for d in range(ndim)])


@register_operator("Transpose")
def _transpose(call: OperatorCall, x: Tensor) -> Tensor:
    """Permute the axes, by default to reverse order."""
    return dt.permute_dims(x, call.get("perm", list(reversed(range(x.ndim)))))


@register_operator("Concat")
def _concat(call: OperatorCall, *xs: Tensor) -> Tensor:
    """Join tensors along an axis."""
    return dt.concat(xs, axis=call.get("axis"))


def even_sizes(size: int, count: int) -> list[int]:
    """Return the sizes of `count` parts of equal size, except for the last."""
    each = -(-size // count) if count else 0
    return [min(each, max(0, size - k * each)) for k in range(count)]


@register_operator("Split", host=(1,))
def _split(call: OperatorCall, x: Tensor, split_input: Any = None) -> tuple[Tensor, ...]:
    """Split along an axis, by sizes or into equal parts.

    Raises: ShapeError unless the sizes add up to the axis, ArgumentError for another number of
    parts than outputs.
    """
    axis = call.axis(call.get("axis", 0), x.ndim)
    sizes = call.get("split") if split_input is None else call.ints(split_input)
    if sizes is None:
        count = call.get("num_outputs", call.outputs)
        if count != call.outputs:
            raise dt.ArgumentError(
                f"Split: num_outputs must be {call.outputs}, the number of outputs, got {count}"
            )
        sizes = even_sizes(x.shape[axis], count)
    if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):
        raise dt.ShapeError(
            f"Split: the sizes must be non-negative with the sum {x.shape[axis]}, got {sizes}"
        )
    return split_at(x, sizes, axis)


def split_at(x: Tensor, sizes: list[int], axis: int) -> tuple[Tensor, ...]:
    """Split a tensor into views of these sizes along an axis."""
    pieces, start = [], 0
    for n in sizes:
        index = [slice(None)] * x.ndim
        index[axis] = slice(start, start + n)
        pieces.append(x[tuple(index)])
        start += n
    return tuple(pieces)


@register_operator("Slice", since=10, host=(1, 2, 3, 4))
def _slice(
    call: OperatorCall, x: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> Tensor:
    """Slice by inputs (opset 10).

    Raises: ShapeError if lengths differ, ArgumentError for step 0.
    """
    first, last = call.ints(starts), call.ints(ends)
    which = list(range(len(first))) if axes is None else call.ints(axes)
    each = [1] * len(first) if steps is None else call.ints(steps)
    return _slice_axes(call, x, first, last, which, each)


@register_operator("Slice")
def _slice_by_attributes(call: OperatorCall, x: Tensor) -> Tensor:
    """Slice by attributes, before opset 10. Raises: ShapeError if their lengths differ."""
    first, last = call.get("starts"), call.get("ends")
    which = call.get("axes", list(range(len(first))))
    return _slice_axes(call, x, first, last, which, [1] * len(first))


def _slice_axes(
    call: OperatorCall,
    x: Tensor,
    first: list[int],
    last: list[int],
    which: list[int],
    each: list[int],
) -> Tensor:
    """Slice axes, bounds outside of the tensor clamped.

    `first`, `last`, `each`: the start, stop and step of each axis in `which`.
    Raises: ShapeError if their lengths differ, ArgumentError for a step of 0.
    """
    if not len(first) == len(last) == len(which) == len(each):
        raise dt.ShapeError("Slice: starts, ends, axes and steps must have the same length")
    index = [slice(None)] * x.ndim
    for start, stop, a, step in zip(first, last, which, each, strict=True):
        axis = call.axis(a, x.ndim)
        if step == 0:
            raise dt.ArgumentError("Slice: a step must not be 0")
        n = x.shape[axis]
        begin = start + n if start < 0 else start
        end = stop + n if stop < 0 else stop
        if step > 0:
            index[axis] = slice(min(max(begin, 0), n), min(max(end, 0), n), min(step, max(n, 1)))
        else:
            begin, end = min(max(begin, 0), n - 1), min(max(end, -1), n - 1)
            stop_at = None if end < 0 else end
            index[axis] = slice(begin, stop_at, max(step, -max(n, 1))) if n else slice(0, 0)
    return x[tuple(index)]


@register_operator("Expand", host=(1,))
def _expand(call: OperatorCall, x: Tensor, shape: Any) -> Tensor:
    """Broadcast x and a shape to their common shape."""
    sizes = call.ints(shape)
    return dt.broadcast_to(x, dt.broadcast_shapes(x.shape, tuple(sizes)))


@register_operator("Tile", host=(1,))
def _tile(call: OperatorCall, x: Tensor, repeats: Any) -> Tensor:
    """Repeat x along each axis. Raises: ShapeError unless there is a count for each axis."""
    times = call.ints(repeats)
    if len(times) != x.ndim or any(n < 0 for n in times):
        raise dt.ShapeError(f"Tile: repeats must be {x.ndim} non-negative numbers, got {times}")
    return dt.tile(x, times)


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@register_operator("Pad", host=(1, 2, 3))
def _pad(
    call: OperatorCall, x: Tensor, pads: Any = None, value: Any = None, axes: Any = None
) -> Tensor:
    """Pad axes by inputs or attributes; negative widths crop.

    Raises: ShapeError for another number of widths, ArgumentError for an unknown mode.
    """
    widths = call.get("pads", call.get("paddings", [])) if pads is None else call.ints(pads)
    which = list(range(x.ndim)) if axes is None else [call.axis(a, x.ndim) for a in call.ints(axes)]
    fill = call.get("value", 0.0) if value is None else call.array(value).reshape(-1)[0].item()
    if len(widths) != 2 * len(which):
        raise dt.ShapeError(
            f"Pad: pads must have {2 * len(which)} numbers for {len(which)} axes, got {len(widths)}"
        )
    each = {a: (widths[i], widths[i + len(which)]) for i, a in enumerate(which)}
    return pad(x, [each.get(d, (0, 0)) for d in range(x.ndim)], call.get("mode", "constant"), fill)


def pad(x: Tensor, widths: list[tuple[int, int]], mode: str = "constant", fill: Any = 0) -> Tensor:
    """Pad axes by (before, after) elements; a negative one crops.

    Raises: ArgumentError for another mode.
    """
    index = tuple(
        slice(max(-a, 0), max(n - max(-b, 0), max(-a, 0)))
        for n, (a, b) in zip(x.shape, widths, strict=True)
    )
    x = x[index]
    wider = [(max(a, 0), max(b, 0)) for a, b in widths]
    if all(w == (0, 0) for w in wider):
        return x
    if mode not in _MODES:
        raise dt.ArgumentError(f"Pad: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if mode == "constant":
        fill = (
            (x.dtype.kind == "f" and float(fill)) or fill if x.dtype is not dt.bool else bool(fill)
        )
        return dt.pad(x, wider, constant_values=fill if x.dtype.kind != "i" else int(fill))
    return dt.pad(x, wider, mode)


@register_operator("CenterCropPad", host=(1,))
def _center_crop_pad(call: OperatorCall, x: Tensor, shape: Any) -> Tensor:
    """Crop or pad axes to sizes, centred."""
    sizes = call.ints(shape)
    axes = call.axes(None, x.ndim) or tuple(range(x.ndim))
    widths = [(0, 0)] * x.ndim
    for axis, want in zip(axes, sizes, strict=True):
        have = x.shape[axis]
        if want < have:
            first = (have - want) // 2
            widths[axis] = (-first, -(have - want - first))
        else:
            first = (want - have) // 2
            widths[axis] = (first, want - have - first)
    return pad(x, widths)


@register_operator("Range")
def _range(call: OperatorCall, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    """Return start, start + step, ... before `stop`; the bounds are read on the host."""
    bounds = [call.array(v).reshape(-1)[0] for v in (start, stop, step)]
    if start.dtype.kind in "iu":  # a difference of short integers does not fit into their dtype
        bounds = [int(v) for v in bounds]
    first, last, each = bounds
    if each == 0:
        raise dt.ArgumentError("Range: delta must not be 0")
    count = max(0, math.ceil((last - first) / each))
    return dt.arange(count, device=start.device).astype(start.dtype) * step.reshape(
        ()
    ) + start.reshape(())


@register_operator("EyeLike")
def _eye_like(call: OperatorCall, x: Tensor) -> Tensor:
    """Return ones on a diagonal, in the shape of x. Raises: ShapeError unless x is a matrix."""
    d = call.get("dtype")
    dtype = x.dtype if d is None else dtype_of(d, "EyeLike")
    if x.ndim != 2:
        raise dt.ShapeError(f"EyeLike: the input must have 2 dimensions, got shape {x.shape}")
    return dt.eye(*x.shape, k=call.get("k", 0), dtype=dtype, device=x.device)


@register_operator("Trilu", host=(1,))
def _trilu(call: OperatorCall, x: Tensor, k: Any = None) -> Tensor:
    """Return the upper or lower triangle from diagonal `k`."""
    diagonal = 0 if k is None else call.number(k)
    n = x.shape[-1] + x.shape[-2]
    return (dt.triu if call.get("upper", 1) else dt.tril)(x, k=max(-n, min(diagonal, n)))


@register_operator("DepthToSpace")
def _depth_to_space(call: OperatorCall, x: Tensor) -> Tensor:
    """Move blocks of channels to height and width."""
    n, c, h, w = x.shape
    b = call.get("blocksize")
    if call.get("mode", "DCR") == "DCR":
        blocks = x.reshape((n, b, b, c // (b * b), h, w)).permute_dims((0, 3, 4, 1, 5, 2))
    else:
        blocks = x.reshape((n, c // (b * b), b, b, h, w)).permute_dims((0, 1, 4, 2, 5, 3))
    return blocks.reshape((n, c // (b * b), h * b, w * b))


@register_operator("SpaceToDepth")
def _space_to_depth(call: OperatorCall, x: Tensor) -> Tensor:
    """Move blocks of height and width to channels."""
    n, c, h, w = x.shape
    b = call.get("blocksize")
    blocks = x.reshape((n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.permute_dims(order).reshape((n, c * b * b, h // b, w // b))


@register_operator("ReverseSequence")
def _reverse_sequence(call: OperatorCall, x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each sequence within its length."""
    time, batch = call.get("time_axis", 0), call.get("batch_axis", 1)
    k = dt.arange(x.shape[time], device=x.device).reshape(
        [-1 if d == time else 1 for d in range(x.ndim)]
    )
    n = lengths.reshape([-1 if d == batch else 1 for d in range(x.ndim)])
    indices = dt.where(k < n, n - 1 - k, k)
    return dt.take_along_axis(x, dt.broadcast_to(indices, x.shape), axis=time)


__all__ = ["even_sizes", "numpy_dtype", "pad", "split_at"]
