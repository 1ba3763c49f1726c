# Written by tools/faces.py for type checkers:
# functions that also accept other libraries' parameters.
# fmt: off
# isort: off

from collections.abc import Sequence
from dovetail.functions.creation.constructors import Fill, ShapeLike
from dovetail.functions.datatypes import DTypeLike, DeviceLike
from dovetail.functions.indexing.insert_delete import PositionsLike
from dovetail.functions.reductions.statistics import Axis, Mask
from dovetail.functions.shape.joining import SplitPoints
from dovetail.functions.shape.manipulation import Axes, Sizes
from dovetail.functions.shape.patches import PerAxis
from dovetail.functions.sorting.stable_sort import TopK
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
) -> Tensor:
    """Return a new tensor of this shape, with arbitrary contents."""
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
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, with arbitrary contents."""
@overload
def empty_like(
    input: Tensor,
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
) -> Tensor:
    """Return a new tensor of this shape, filled with one number."""
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
) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with one number."""
@overload
def full_like(
    input: Tensor, fill_value: Fill, *, dtype: DTypeLike = None, device: DeviceLike = None
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
) -> Tensor:
    """Return a new tensor of this shape, filled with 1."""
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
def ones_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with 1."""
@overload
def ones_like(input: Tensor, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor: ...
@overload
def ones_like(x: Tensor, dtype: DTypeLike, /, *, device: DeviceLike = None) -> Tensor: ...
@overload
def zeros(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a new tensor of this shape, filled with 0."""
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
def zeros_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return a new tensor of x's shape, dtype and device, filled with 0."""
@overload
def zeros_like(input: Tensor, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor: ...
@overload
def zeros_like(x: Tensor, dtype: DTypeLike, /, *, device: DeviceLike = None) -> Tensor: ...
def asarray(
    obj: object, /, dtype: DTypeLike = None, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """Return a tensor of numbers, nested lists, an array or an object with DLPack or
    `__array__`."""
@overload
def astype(
    x: Tensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None
) -> Tensor:
    """Return the elements of `x` cast to another dtype, on `device` if one is given."""
@overload
def astype(
    input: Tensor, dtype: DTypeLike, *, copy: bool = True, device: DeviceLike = None
) -> Tensor: ...
@overload
def unwrap(
    x: Tensor,
    /,
    discont: float | None = None,
    axis: int = -1,
    *,
    period: float = 6.283185307179586,
    out: Tensor | None = None,
) -> Tensor:
    """Return the numbers along `axis` with whole periods added, so that no step is large."""
@overload
def unwrap(
    input: Tensor,
    discont: float | None = None,
    dim: int = -1,
    *,
    period: float = 6.283185307179586,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def log_softmax(x: Tensor, /, axis: int = -1, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm of softmax along `axis`, accurate where softmax underflows."""
@overload
def log_softmax(input: Tensor, dim: int = -1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pow(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return x1 to the power x2."""
@overload
def pow(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@overload
def softmax(x: Tensor, /, axis: int = -1, *, out: Tensor | None = None) -> Tensor:
    """Return exp(x) divided by its sum along `axis`, without overflow, in one kernel."""
@overload
def softmax(input: Tensor, dim: int = -1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: Tensor, /) -> tuple[Tensor, ...]:
    """Return x1 where the condition holds, x2 elsewhere."""
@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: Array, x1: Operand, x2: Operand, /, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def where(
    condition: Array, input: Operand, other: Operand, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def take(
    x: Tensor,
    indices: Array,
    /,
    axis: int | None = None,
    *,
    mode: str = "raise",
    out: Tensor | None = None,
) -> Tensor:
    """Return the elements of `x` at `indices` along `axis`, which the axes of `indices`
    replace."""
@overload
def take(
    input: Tensor,
    indices: Array,
    dim: int | None = None,
    *,
    mode: str = "raise",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def take_along_axis(
    x: Tensor, indices: Array, /, axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the elements of `x` at `indices` along `axis`, one index for each result
    element."""
@overload
def take_along_axis(
    input: Tensor, indices: Array, dim: int | None = -1, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def append(
    arr: Operand, values: Operand, axis: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a new tensor with the elements of `arr`, then those of `values`."""
@overload
def append(
    arr: Operand, values: Operand, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def compress(condition: Array, a: Array, axis: int | None = None) -> Tensor:
    """Return the slices of `a` along an axis for which a condition holds."""
@overload
def compress(condition: Array, a: Array, dim: int | None = None) -> Tensor: ...
@overload
def delete(
    arr: Array, obj: PositionsLike, axis: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a new tensor without the slices of `arr` at some positions along an axis."""
@overload
def delete(
    arr: Array, obj: PositionsLike, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def insert(
    arr: Array,
    obj: PositionsLike,
    values: Operand,
    axis: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return a new tensor with `values` inserted before positions of `arr` along an axis."""
@overload
def insert(
    arr: Array,
    obj: PositionsLike,
    values: Operand,
    dim: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def trim_zeros(filt: Tensor, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Tensor:
    """Return a view without the zeros at the ends of some axes."""
@overload
def trim_zeros(
    filt: Tensor, trim: str = "fb", dim: int | Sequence[int] | None = None
) -> Tensor: ...
@overload
def put_along_axis(
    arr: Tensor, indices: Array, values: Operand, axis: int = -1, *, out: Tensor | None = None
) -> Tensor:
    """Write values at `indices` along `axis` of this tensor, and return it."""
@overload
def put_along_axis(
    arr: Tensor, indices: Array, values: Operand, dim: int = -1, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def matmul(
    x1: Array, x2: Array, /, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them are
    broadcast."""
@overload
def matmul(
    input: Array, other: Array, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the sum of the products of two tensors along `axis`, after broadcasting."""
@overload
def vecdot(input: Array, other: Array, *, dim: int = -1, out: Tensor | None = None) -> Tensor: ...
@overload
def cross(x1: Array, x2: Array, /, *, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the cross products of vectors of three elements along an axis."""
@overload
def cross(input: Array, other: Array, *, dim: int = -1, out: Tensor | None = None) -> Tensor: ...
@overload
def average(
    x: Tensor,
    /,
    axis: Axis = None,
    weights: Array | None = None,
    *,
    returned: bool = False,
    keepdims: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the weighted mean over `axis`: sum(x * weights) / sum(weights)."""
@overload
def average(
    input: Tensor,
    dim: Axis = None,
    weights: Array | None = None,
    *,
    returned: bool = False,
    keepdim: bool = False,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def ptp(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the range of values over `axis`: the largest minus the smallest."""
@overload
def ptp(
    input: Tensor, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def cumulative_logsumexp(
    x: Tensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the logarithms of the sums of exponentials up to each element, along `axis`."""
@overload
def cumulative_logsumexp(
    input: Tensor,
    dim: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cumulative_prod(
    x: Tensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the products of the elements up to each one, along `axis`."""
@overload
def cumulative_prod(
    input: Tensor,
    dim: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cumulative_sum(
    x: Tensor,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sums of the elements up to each one, along `axis`."""
@overload
def cumulative_sum(
    input: Tensor,
    dim: int | None = None,
    *,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Operand | None = None,
    append: Operand | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along `axis`, taken `n` times."""
@overload
def diff(
    input: Tensor,
    *,
    dim: int = -1,
    n: int = 1,
    prepend: Operand | None = None,
    append: Operand | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanargmax(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the first position of the largest non-NaN element along `axis`; -1 if all are
    NaN."""
@overload
def nanargmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def nanargmin(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the first position of the smallest non-NaN element along `axis`; -1 if all are
    NaN."""
@overload
def nanargmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def nancumprod(
    x: Tensor, /, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the products of the elements up to each one along `axis`, with NaN as 1."""
@overload
def nancumprod(
    input: Tensor, dim: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def nancumsum(
    x: Tensor, /, axis: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor:
    """Return the sums of the elements up to each one along `axis`, with NaN as 0."""
@overload
def nancumsum(
    input: Tensor, dim: int | None = None, *, dtype: DTypeLike = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def nanmax(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the largest element over `axis` that is not NaN; NaN if all are."""
@overload
def nanmax(
    input: Tensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def nanmean(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the mean over `axis` of the elements that are not NaN; NaN if there are none."""
@overload
def nanmean(
    input: Tensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def nanmin(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the smallest element over `axis` that is not NaN; NaN if all are."""
@overload
def nanmin(
    input: Tensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def nanprod(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the product over `axis` of the elements that are not NaN; 1 if there are
    none."""
@overload
def nanprod(
    input: Tensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def nanstd(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the standard deviation over `axis` of the elements that are not NaN."""
@overload
def nanstd(
    input: Tensor,
    dim: Axis = None,
    *,
    correction: float = 0.0,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def nansum(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the sum over `axis` of the elements that are not NaN; 0 if there are none."""
@overload
def nansum(
    input: Tensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def nanvar(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the variance over `axis` of the elements that are not NaN."""
@overload
def nanvar(
    input: Tensor,
    dim: Axis = None,
    *,
    correction: float = 0.0,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def gradient(
    x: Tensor, /, *spacing: Operand, axis: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Return slopes of samples along each axis: central differences, one-sided at the
    ends."""
@overload
def gradient(
    input: Tensor, *spacing: Operand, dim: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]: ...
@overload
def trapezoid(
    y: Tensor,
    x: Array | None = None,
    /,
    *,
    dx: float | None = None,
    axis: int = -1,
    out: Tensor | None = None,
) -> Tensor:
    """Return the area under samples along `axis`, by the trapezoidal rule."""
@overload
def trapezoid(
    y: Tensor,
    x: Array | None = None,
    *,
    dx: float | None = None,
    dim: int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def median(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the median over `axis`: the middle element in sorted order, or the mean of
    both."""
@overload
def median(
    input: Tensor, axis: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def nanmedian(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the median of the elements that are not NaN over `axis`; NaN if there are only
    NaNs."""
@overload
def nanmedian(
    input: Tensor, axis: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def nanpercentile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the percentiles over `axis` of the elements that are not NaN."""
@overload
def nanpercentile(
    input: Tensor,
    q: Operand,
    dim: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanquantile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the quantiles over `axis` of the elements that are not NaN; NaN if all are."""
@overload
def nanquantile(
    input: Tensor,
    q: Operand,
    dim: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def percentile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the percentiles over `axis`: `quantile` of q / 100."""
@overload
def percentile(
    input: Tensor,
    q: Operand,
    dim: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def quantile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the quantiles over `axis`: the values below which a part `q` of the elements
    lies."""
@overload
def quantile(
    input: Tensor,
    q: Operand,
    dim: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def all(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return True for each position where every element over `axis` is nonzero."""
@overload
def all(
    input: Tensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def any(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return True for each position where some element over `axis` is nonzero."""
@overload
def any(
    input: Tensor,
    dim: Axis = None,
    *,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def argmax(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the position of the largest element along `axis`, as int64."""
@overload
def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def argmin(
    x: Tensor, /, axis: int | None = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the position of the smallest element along `axis`, as int64."""
@overload
def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def count_nonzero(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Count the nonzero elements over `axis`."""
@overload
def count_nonzero(
    input: Tensor, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def logsumexp(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of exp(x) over `axis`, without overflow, in one
    kernel."""
@overload
def logsumexp(
    input: Tensor, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def max(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the largest element over `axis`; NaN if one of them is NaN."""
@overload
def max(
    input: Tensor,
    axis: Axis = None,
    *,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def mean(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the arithmetic mean of the elements over `axis`."""
@overload
def mean(
    input: Tensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def min(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the smallest element over `axis`; NaN if one of them is NaN."""
@overload
def min(
    input: Tensor,
    axis: Axis = None,
    *,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def prod(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the product of the elements over `axis`."""
@overload
def prod(
    input: Tensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def std(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the standard deviation over `axis`: the square root of `var`."""
@overload
def std(
    input: Tensor,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def sum(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the sum of the elements over `axis`."""
@overload
def sum(
    input: Tensor,
    dim: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor: ...
@overload
def var(
    x: Tensor,
    /,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor:
    """Return the variance over `axis`: the mean of the squared distances from the mean."""
@overload
def var(
    input: Tensor,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    keepdim: bool = False,
    out: Tensor | None = None,
    where: Mask = None,
) -> Tensor: ...
def concat(
    arrays: Sequence[Array],
    /,
    axis: int | None = 0,
    *,
    dim: int | None = None,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: Tensor | None = None,
) -> Tensor:
    """Concatenate tensors along an existing axis."""
@overload
def copy(x: Tensor, /) -> Tensor:
    """Return a new contiguous tensor of the same elements; gradients flow through it."""
@overload
def copy(input: Tensor) -> Tensor: ...
@overload
def repeat(
    x: Tensor,
    repeats: int | Sequence[int] | Tensor,
    /,
    *,
    axis: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Repeat each element along an axis."""
@overload
def repeat(
    input: Tensor,
    repeats: int | Sequence[int] | Tensor,
    *,
    dim: int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def roll(
    x: Tensor, /, shift: Axes, axis: Axes | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a new tensor with elements shifted cyclically along some axes."""
@overload
def roll(
    input: Tensor, shift: Axes, dim: Axes | None = None, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def stack(
    arrays: Sequence[Array],
    /,
    axis: int = 0,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: Tensor | None = None,
) -> Tensor:
    """Stack tensors along a new axis."""
@overload
def stack(
    arrays: Sequence[Array],
    dim: int = 0,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def array_split(
    x: Tensor, indices_or_sections: SplitPoints, /, *, axis: int = 0
) -> tuple[Tensor, ...]:
    """Split `x` along `axis` into views of consecutive parts, as equal as possible."""
@overload
def array_split(
    input: Tensor, indices_or_sections: SplitPoints, *, dim: int = 0
) -> tuple[Tensor, ...]: ...
@overload
def broadcast_to(x: Tensor, /, shape: Sizes, *sizes: Sizes) -> Tensor:
    """Return a read-only view of `x` in which axes of size 1 repeat without using memory."""
@overload
def broadcast_to(input: Tensor, shape: Sizes, *sizes: Sizes) -> Tensor: ...
@overload
def diagonal(x: Tensor, /, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of `x` over two axes, which become the last axis."""
@overload
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor: ...
@overload
def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor:
    """Return a view of `x` with inserted axes of size 1."""
@overload
def expand_dims(input: Tensor, dim: Axes = 0) -> Tensor: ...
@overload
def flip(x: Tensor, /, axis: Axes | None = None) -> Tensor:
    """Return a view of `x` with the order along some axes reversed; along all for None."""
@overload
def flip(input: Tensor, dim: Axes | None = None) -> Tensor: ...
@overload
def moveaxis(x: Tensor, /, source: Axes, destination: Axes) -> Tensor:
    """Return a view of `x` with some axes moved to other positions."""
@overload
def moveaxis(input: Tensor, source: Axes, destination: Axes) -> Tensor: ...
@overload
def permute_dims(x: Tensor, /, axes: Sizes, *order: Sizes) -> Tensor:
    """Return a view of `x` with its axes in another order."""
@overload
def permute_dims(input: Tensor, dims: Sizes, *order: Sizes) -> Tensor: ...
@overload
def reshape(x: Tensor, /, shape: Sizes, *sizes: Sizes, copy: bool | None = None) -> Tensor:
    """Return the elements, in row-major order, in another shape; one size may be -1."""
@overload
def reshape(input: Tensor, shape: Sizes, *sizes: Sizes, copy: bool | None = None) -> Tensor: ...
@overload
def split(x: Tensor, sizes: int | Sequence[int], /, axis: int = 0) -> tuple[Tensor, ...]:
    """Split `x` along `axis` into views of consecutive parts, as a tuple."""
@overload
def split(input: Tensor, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]: ...
@overload
def squeeze(x: Tensor, /, axis: Axes | None = None) -> Tensor:
    """Return a view of `x` without some axes of size 1."""
@overload
def squeeze(input: Tensor, dim: Axes | None = None) -> Tensor: ...
@overload
def swapaxes(x: Tensor, /, axis1: int, axis2: int) -> Tensor:
    """Return a view of `x` with `axis1` and `axis2` exchanged."""
@overload
def swapaxes(input: Tensor, axis1: int, axis2: int) -> Tensor: ...
@overload
def transpose(x: Tensor, /, *axes: Sizes | None) -> Tensor:
    """Return a view of `x` with two axes exchanged or, without `axes`, all of them
    reversed."""
@overload
def transpose(input: Tensor, *axes: Sizes | None) -> Tensor: ...
@overload
def unstack(x: Tensor, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Return views of the parts of `x` along `axis`, without that axis, as a tuple."""
@overload
def unstack(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]: ...
@overload
def sliding_window_view(x: Tensor, window_shape: PerAxis, axis: PerAxis | None = None) -> Tensor:
    """Return a view of all windows of a shape, as NumPy's function of this name."""
@overload
def sliding_window_view(
    input: Tensor, window_shape: PerAxis, dim: PerAxis | None = None
) -> Tensor: ...
@overload
def argpartition(
    x: Tensor, /, kth: int | Sequence[int], axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the positions along `axis` of the elements in the order of `partition`."""
@overload
def argpartition(
    input: Tensor, kth: int | Sequence[int], dim: int | None = -1, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def lexsort(
    keys: Sequence[Array] | Tensor, /, axis: int = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the positions along `axis` that sort by several keys; the last key is the
    primary one."""
@overload
def lexsort(
    keys: Sequence[Array] | Tensor, dim: int = -1, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def partition(
    x: Tensor, /, kth: int | Sequence[int], axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the elements of `x` with those at `kth` in their sorted positions."""
@overload
def partition(
    input: Tensor, kth: int | Sequence[int], dim: int | None = -1, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def argsort(
    x: Tensor,
    /,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Return the positions along `axis` of the elements of `x` in order, as int64."""
@overload
def argsort(
    input: Tensor,
    dim: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def topk(
    x: Tensor,
    k: int,
    /,
    axis: int = -1,
    *,
    largest: bool = True,
    out: Sequence[Tensor] | None = None,
) -> TopK:
    """Return the `k` largest elements along `axis` and their positions: (values, indices)."""
@overload
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    *,
    largest: bool = True,
    out: Sequence[Tensor] | None = None,
) -> TopK: ...
@overload
def unique(
    x: Tensor,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements in ascending order or, along an axis, the distinct
    slices."""
@overload
def unique(
    input: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    equal_nan: bool = True,
) -> Tensor | tuple[Tensor, ...]: ...
@overload
def amax(
    x: Tensor, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the largest elements along axes: `dt.max`, and the name that PyTorch has for
    it."""
@overload
def amax(
    input: Tensor, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
@overload
def amin(
    x: Tensor, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the smallest elements along axes: `dt.min`, and the name that PyTorch has for
    it."""
@overload
def amin(
    input: Tensor, dim: Axis = None, *, keepdim: bool = False, out: Tensor | None = None
) -> Tensor: ...
def tensor(
    data: object = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor: ...
