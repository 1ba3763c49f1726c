"""`x[key]` of integers, slices, `...` and None, over memory that is there: the view, at one go.

The general way is in `functions.indexing.index_keys`: it knows every key, layout and gradient, and
says what is wrong. It takes four times as long.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from ..arguments import DIMENSIONS
from ..graph.expr import Expr, leaf, spec
from .fields import expr_of, is_strided
from .tensor import Tensor


def basic_leaf(x: Tensor, key: object) -> Expr | None:
    """The leaf that a key selects of a tensor in memory; None where this is for the general way."""
    if type(x) is not Tensor:
        return None
    e = expr_of(x)
    if e.op is not None or e.storage.pending is not None or e.tape is not None:
        return None
    whole, steps = e.spec.shape, e.strides
    parts: list[Any] = list(key) if type(key) is tuple else [key]
    ndim = len(whole)
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if taken > ndim:
        return None
    offset, d = e.offset, 0
    shape: list[int] = []
    strides: list[int] = []
    new: list[int] = []  # the places of new axes
    parts += [] if any(part is Ellipsis for part in parts) else [Ellipsis]
    rest = ndim - taken  # axes that "..." stands for
    for part in parts:
        if part is None:
            new.append(len(shape))
            shape.append(1)
            strides.append(1)
            continue
        if part is Ellipsis:
            if rest < 0:
                return None
            shape += whole[d : d + rest]
            strides += steps[d : d + rest]
            d, rest = d + rest, -1
            continue
        kind = type(part)
        extent = whole[d]
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
                start, length, by = span(part, extent)
            except (TypeError, ValueError):
                return None
            offset += start * step
            shape.append(length)
            strides.append(step * by)
        else:
            return None
    if 0 in shape or len(shape) > DIMENSIONS:
        return None
    for place in new:  # as in a dense tensor
        strides[place] = math.prod(shape[place + 1 :])
    s = spec(tuple(shape), e.spec.dtype, e.spec.device)
    return leaf(e.storage, s, tuple(strides), offset)


def span(part: slice, extent: int) -> tuple[int, int, int]:
    """Start, length and step of a slice along an axis. Raises: as `slice.indices` does."""
    start, stop, step = part.indices(extent)
    length = len(range(start, stop, step))
    return start, length, step if length > 1 else 1  # which else may be beyond all memory


def is_integer_tensor(key: object) -> TypeGuard[Tensor]:
    """Whether a key is nothing but a tensor of integers."""
    return is_strided(key) and expr_of(key).spec.dtype.kind in "iu"
