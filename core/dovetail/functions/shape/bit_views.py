"""`x.view`: a view of the same memory in another shape, or of its bits as another dtype."""

from __future__ import annotations

import numpy as np

from ... import layout as lay
from ...declarations import public
from ...dtypes import DType, bool_, uint8, uint16, uint32, uint64
from ...dtypes import dtype as find_dtype
from ...errors import ArgumentError, DTypeError, GradientError, ShapeError
from ...graph.expr import leaf, spec, storage_of
from ...layout import Shape
from ...tensor.host import evaluate_leaf
from ...tensor.primitives import is_viewable, view
from ...tensor.tensor import Tensor, create_tensor, strided
from ..datatypes import DTypeLike
from .manipulation import Sizes, parse_ints

VOIDS = {"V1": uint8, "V2": uint16, "V4": uint32, "V8": uint64}
"""NumPy's names of elements without a meaning. zarr compares the bits of chunks by them."""


@public(method=("view",), wrap=False)
def view_as(x: Tensor, /, *shape: Sizes | DTypeLike, dtype: DTypeLike = None) -> Tensor:
    """Return a view in another shape or dtype, never a copy: `x.view(2, 3)`, `x.view(dt.int32)`.

    - `shape`: the sizes, one by one or as a tuple; one may be -1 and is then computed. Or `dtype`.
    - `dtype`: the dtype to which the bits are reinterpreted: the last axis grows as the elements
      shrink. NumPy's dtypes of bytes without a meaning, "V1" to "V8", are unsigned integers.

    Shapes: any with an equal number of elements that the strides permit.
    Dtypes: all.
    Gradient: flows through another shape; a view of the bits has none.
    Raises: ShapeError, also if a copy would be needed; see `reshape`. GradientError for the bits of
    a tensor that requires a gradient.
    See also: `reshape`, `Tensor.astype`.

    >>> import dovetail as dt
    >>> dt.arange(6).view(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> hex(dt.ones(1).view(dt.uint32).item())
    '0x3f800000'
    """
    if dtype is None and len(shape) == 1 and isinstance(shape[0], DType | str | type | np.dtype):
        dtype, shape = shape[0], ()
    if dtype is not None:
        if shape:
            raise ArgumentError(f"view: expected a shape or dtype, got both: {shape} and {dtype}")
        bits = VOIDS.get(str(dtype).removeprefix("|"), dtype)
        return _reinterpret(strided("view", x), find_dtype(bits, "view"))
    sizes = parse_ints("view", shape)  # type: ignore[arg-type]  # rejects all but sizes
    wanted = lay.resolve_reshape("view", strided("view", x).shape, sizes)
    if not is_viewable(x, ("reshape", wanted)):
        raise ShapeError(
            f"view: strides {x.stride()} of shape {x.shape} do not permit a view as {wanted}; "
            f"use x.reshape()"
        )
    return view(x, ("reshape", wanted))


def _reinterpret(x: Tensor, target_dtype: DType) -> Tensor:
    """Evaluate `x`, and return its memory as elements of another dtype.

    Raises: GradientError if `x` requires gradients, DTypeError for bool, ShapeError if a dense last
    axis does not divide into the new elements.
    """
    if x.requires_grad:
        raise GradientError("view: bits have no gradient; use x.detach().view(...)")
    if target_dtype is bool_ and x.dtype is not target_dtype:
        raise DTypeError("view: bytes cannot be viewed as bool; use x != 0")
    e = evaluate_leaf(x)
    shape, strides, offset = _divide_elements(x, e.strides, e.offset, target_dtype.itemsize)
    return create_tensor(
        leaf(storage_of(e), spec(shape, target_dtype, x.device, "view"), strides, offset)
    )


def _divide_elements(
    x: Tensor, strides: Shape, offset: int, itemsize: int
) -> tuple[Shape, Shape, int]:
    """Return shape, strides and offset of the same bytes in elements of another size."""
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
