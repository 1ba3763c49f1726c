"""`x.view`: the same memory as another shape, or its bits as another dtype."""

from __future__ import annotations

import numpy as np

from ... import layout as lay
from ...dtypes import DType, bool_, dtype
from ...errors import DTypeError, GradientError, ShapeError
from ...graph.expr import leaf, spec, storage_of
from ...layout import Shape
from ...tensor.host import evaluated
from ...tensor.tensor import Tensor, make, strided
from ...tensor.verbs import is_viewable, view
from ..datatypes import DTypeLike
from .manipulation import Sizes, ints_of


def view_as(x: Tensor, /, *shape: Sizes | DTypeLike) -> Tensor:
    """The same memory as another shape or dtype, never a copy: `x.view(2, 3)`, `x.view(dt.int32)`.

    `shape`: the sizes, one by one or as a tuple; one may be -1: what is left. Or a dtype, as which
    the bits are read: the last axis is as much longer as elements are smaller.
    Shapes: any of as many elements, as far as the strides permit.
    Dtypes: all.
    Gradient: flows through another shape; a view of the bits has none.
    Raises: ShapeError, also where a copy would be needed; see `reshape`. GradientError where bits
    of what requires a gradient are asked for.

    >>> import dovetail as dt
    >>> dt.arange(6, device="reference").view(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> hex(dt.ones(1, device="reference").view(dt.uint32).item())
    '0x3f800000'
    """
    if len(shape) == 1 and isinstance(shape[0], DType | str | type | np.dtype):
        return _bits(strided("view", x), dtype(shape[0], "view"))
    sizes = ints_of("view", shape)  # type: ignore[arg-type]  # which refuses all but sizes
    wanted = lay.resolve_reshape("view", strided("view", x).shape, sizes)
    if not is_viewable(x, ("reshape", wanted)):
        raise ShapeError(
            f"view: strides {x.stride()} of shape {x.shape} do not permit a view as {wanted}; "
            f"use x.reshape()"
        )
    return view(x, ("reshape", wanted))


def _bits(x: Tensor, want: DType) -> Tensor:
    """The memory of `x` as elements of another dtype."""
    if x.requires_grad:
        raise GradientError("view: bits have no gradient; take x.detach().view(...)")
    if want is bool_ and x.dtype is not want:
        raise DTypeError("view: not all bytes are bools; see x != 0")
    e = evaluated(x)
    shape, strides, offset = _rescaled(x, e.strides, e.offset, want.itemsize)
    return make(leaf(storage_of(e), spec(shape, want, x.device, "view"), strides, offset))


def _rescaled(x: Tensor, strides: Shape, offset: int, itemsize: int) -> tuple[Shape, Shape, int]:
    """Shape, strides and offset of the same bytes in elements of another size."""
    have = x.itemsize
    if have == itemsize:
        return x.shape, strides, offset
    ends = [] if not x.ndim else [x.shape[-1] * have, offset * have]
    ends += [s * have for s in strides[:-1]]
    if not x.ndim or (strides[-1] != 1 and x.shape[-1] > 1) or any(n % itemsize for n in ends):
        raise ShapeError(
            f"view: elements of {have} bytes, shape {x.shape}, strides {strides}, do not divide "
            f"into elements of {itemsize} along a dense last axis; use x.copy()"
        )
    rows = tuple(s * have // itemsize for s in strides[:-1])
    shape = (*x.shape[:-1], x.shape[-1] * have // itemsize)
    return shape, (*rows, 1), offset * have // itemsize
