"""The fast path of `x[key]` for integers, slices, `...` and None, on tensors in memory.

The general path is `functions.indexing.index_keys`: it accepts every key, layout and gradient, and
raises the errors. It takes four times as long.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from ..argument_checks import DIMENSIONS
from ..graph.expr import Expr, leaf, spec, storage_of
from .c_fields import expr_of, is_strided
from .tensor import Tensor


def basic_leaf(x: Tensor, key: object) -> Expr | None:
    """Return the leaf of `x[key]` for a tensor in memory, or None if the general path must run."""
    if not is_strided(x):
        return None
    e = expr_of(x)
    if e.op is not None or storage_of(e).pending is not None or e.tape is not None:
        return None
    extents, steps = e.spec.shape, e.strides
    parts: list[Any] = list(key) if type(key) is tuple else [key]
    ndim = len(extents)
    indexed_axes = sum(part is not None and part is not Ellipsis for part in parts)
    if indexed_axes > ndim:
        return None
    offset, d = e.offset, 0
    shape: list[int] = []
    strides: list[int] = []
    new_axes: list[int] = []  # positions of new axes
    parts += [] if any(part is Ellipsis for part in parts) else [Ellipsis]
    ellipsis_axes = ndim - indexed_axes  # axes that "..." stands for
    for part in parts:
        if part is None:
            new_axes.append(len(shape))
            shape.append(1)
            strides.append(1)
            continue
        if part is Ellipsis:
            if ellipsis_axes < 0:
                return None
            shape += extents[d : d + ellipsis_axes]
            strides += steps[d : d + ellipsis_axes]
            d, ellipsis_axes = d + ellipsis_axes, -1
            continue
        kind = type(part)
        extent = extents[d]
        step = steps[d]
        d += 1
        if kind is int:
            if part < 0:
                part += extent
            if not 0 <= part < extent:
                return None
            offset += part * step
        elif kind is slice:
            try:
                start, length, by = resolve_slice(part, extent)
            except (TypeError, ValueError):
                return None
            offset += start * step
            shape.append(length)
            strides.append(step * by)
        else:
            return None
    if 0 in shape or len(shape) > DIMENSIONS:
        return None
    for new_axis in new_axes:  # new axes get the strides of a dense tensor
        strides[new_axis] = math.prod(shape[new_axis + 1 :])
    s = spec(tuple(shape), e.spec.dtype, e.spec.device)
    return leaf(e.storage, s, tuple(strides), offset)


NO_ELEMENT = -(1 << 62) - 1  # no position relative to an element


def element_position(e: Expr, key: object) -> int:
    """Return the position of the element at ints, relative to the first one; else NO_ELEMENT.

    A key is an int or a tuple with one int for each axis. NO_ELEMENT is returned for other keys,
    and where an index is out of range.
    """
    indices: Any = key if type(key) is tuple else (key,)
    extents = e.spec.shape
    if len(indices) != len(extents):
        return NO_ELEMENT
    position = 0
    for d in range(len(extents)):
        index = indices[d]
        if type(index) is not int or not -extents[d] <= index < extents[d]:
            return NO_ELEMENT
        position += (index if index >= 0 else index + extents[d]) * e.strides[d]
    return position


def resolve_slice(part: slice, extent: int) -> tuple[int, int, int]:
    """Return start, length and step of a slice; the step is 1 if the length is below 2."""
    start, stop, step = part.indices(extent)
    length = len(range(start, stop, step))
    return start, length, step if length > 1 else 1  # a larger step may exceed any memory


def is_integer_tensor(key: object) -> TypeGuard[Tensor]:
    """Return True if a key is a tensor of integers."""
    return is_strided(key) and expr_of(key).spec.dtype.kind in "iu"
