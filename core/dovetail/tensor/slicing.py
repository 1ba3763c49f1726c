"""`x[key]` of integers and slices, over memory that is there: the view, at one go.

The general way is in `functions.index_keys`: it knows every key, layout and gradient, and says what
is wrong. It takes four times as long.
"""

from __future__ import annotations

from ..graph.expr import Expr, leaf, spec
from .fields import expr_of
from .tensor import Tensor


def basic_leaf(x: Tensor, key: object) -> Expr | None:
    """The leaf that a key selects of a tensor in memory; None where this is for the general way."""
    if type(x) is not Tensor:
        return None
    e = expr_of(x)
    if e.op is not None or e.storage.pending is not None or e.tape is not None:
        return None
    whole, steps = e.spec.shape, e.strides
    parts = key if type(key) is tuple else (key,)
    used, ndim = len(parts), len(whole)
    if used > ndim:
        return None
    offset = e.offset
    shape, strides = [], []
    for d in range(used):
        part = parts[d]
        kind = type(part)
        extent = whole[d]
        step = steps[d]
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
    if used < ndim:
        shape += whole[used:]
        strides += steps[used:]
    if 0 in shape:
        return None
    s = spec(tuple(shape), e.spec.dtype, e.spec.device)
    return leaf(e.storage, s, tuple(strides), offset)


def span(part: slice, extent: int) -> tuple[int, int, int]:
    """Start, length and step of a slice along an axis. Raises: as `slice.indices` does."""
    start, stop, step = part.indices(extent)
    length = len(range(start, stop, step))
    return start, length, step if length > 1 else 1  # which else may be beyond all memory
