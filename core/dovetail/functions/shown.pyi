# Written by tools/faces.py for type checkers:
# functions that also accept other libraries' parameters.
# isort: off

from collections.abc import Sequence
from dovetail.functions.creation.constructors import Fill, ShapeLike
from dovetail.functions.datatypes import DTypeLike, DeviceLike
from dovetail.functions.reductions.statistics import Axis
from dovetail.functions.shape.manipulation import Axes, Sizes
from dovetail.memory.allocator import Allocator
from dovetail.tensor.promotion import Array, Operand
from dovetail.tensor.tensor import Tensor
from typing import overload

@overload
def empty(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def empty(
    shape: ShapeLike,
    dtype: DTypeLike,
    /,
    *,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def empty(
    shape: int,
    /,
    *more: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def empty_like(
    x: Tensor,
    /,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    allocator: Allocator | None = None,
) -> Tensor: ...
@overload
def empty_like(
    x: Tensor, dtype: DTypeLike, /, *, device: DeviceLike = None, allocator: Allocator | None = None
) -> Tensor: ...
@overload
def full(
    shape: ShapeLike,
    fill_value: Fill,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def full(
    shape: ShapeLike,
    fill_value: Fill,
    dtype: DTypeLike,
    /,
    *,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def full_like(
    x: Tensor, /, fill_value: Fill, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor: ...
@overload
def full_like(
    x: Tensor, fill_value: Fill, dtype: DTypeLike, /, *, device: DeviceLike = None
) -> Tensor: ...
@overload
def ones(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def ones(
    shape: ShapeLike, dtype: DTypeLike, /, *, device: DeviceLike = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def ones(
    shape: int,
    /,
    *more: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def ones_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor: ...
@overload
def ones_like(x: Tensor, dtype: DTypeLike, /, *, device: DeviceLike = None) -> Tensor: ...
@overload
def zeros(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def zeros(
    shape: ShapeLike, dtype: DTypeLike, /, *, device: DeviceLike = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def zeros(
    shape: int,
    /,
    *more: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def zeros_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor: ...
@overload
def zeros_like(x: Tensor, dtype: DTypeLike, /, *, device: DeviceLike = None) -> Tensor: ...
def asarray(
    obj: object, /, dtype: DTypeLike = None, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor: ...
def astype(
    x: Tensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None
) -> Tensor: ...
def pow(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: Tensor, /) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: Array, x1: Operand, x2: Operand, /, *, out: Tensor | None = None
) -> Tensor: ...
def matmul(
    x1: Array, x2: Array, /, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor: ...
def all(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor: ...
def any(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor: ...
def argmax(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor: ...
def argmin(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor: ...
def count_nonzero(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor: ...
def max(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor: ...
def mean(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def min(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor: ...
def prod(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def sum(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def concat(
    arrays: Sequence[Array],
    /,
    axis: int | None = 0,
    *,
    dim: int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def copy(x: Tensor, /) -> Tensor: ...
def broadcast_to(x: Tensor, /, shape: Sizes, *sizes: Sizes) -> Tensor: ...
def diagonal(x: Tensor, /, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor: ...
def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor: ...
def flip(x: Tensor, /, axis: Axes | None = None) -> Tensor: ...
def moveaxis(x: Tensor, /, source: Axes, destination: Axes) -> Tensor: ...
def permute_dims(x: Tensor, /, axes: Sizes, *order: Sizes) -> Tensor: ...
def reshape(x: Tensor, /, shape: Sizes, *sizes: Sizes, copy: bool | None = None) -> Tensor: ...
def split(x: Tensor, sizes: int | Sequence[int], /, axis: int = 0) -> tuple[Tensor, ...]: ...
def squeeze(x: Tensor, /, axis: Axes | None = None) -> Tensor: ...
def swapaxes(x: Tensor, /, axis1: int, axis2: int) -> Tensor: ...
def transpose(x: Tensor, /, *axes: Sizes | None) -> Tensor: ...
def unstack(x: Tensor, /, axis: int = 0) -> tuple[Tensor, ...]: ...
