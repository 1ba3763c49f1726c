"""Reductions and writes at indices under PyTorch's names, and JAX's reductions of segments."""

from __future__ import annotations

from collections.abc import Callable

from ...argument_checks import choice, flag, integer
from ...backend.faults import IndexPurpose
from ...dtypes import DType, bool_, float32, int64
from ...engine import tracer_api
from ...errors import CaptureError, DTypeError, ShapeError
from ...graph.expr import spec
from ...ops import table as ops
from ...tensor.host import item
from ...tensor.other_layouts import has_rule
from ...tensor.primitives import apply, slice_along
from ...tensor.promotion import Array, Operand, as_tensors
from ...tensor.tensor import Tensor, create_tensor, required, strided
from ...tensor.writes import cast_to_spec
from ..creation.constructors import full, zeros
from ..datatypes import cast
from ..known_calls import record_check
from ..reductions.cumulative import cumulative_sum
from ..reductions.statistics import max as max_of
from ..shape.copies import concat
from ..shape.manipulation import broadcast_arrays, ravel, reshape
from ..variants import public
from .index_reads import gather_unchecked
from .index_writes import (
    ScatterMode,
    scatter_add_,
    scatter_along,
    scatter_in_layout,
    scatter_slices,
)

__all__ = [
    "index_copy",
    "index_fill",
    "index_reduce",
    "masked_scatter",
    "scatter_add",
    "scatter_reduce",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
]

MODES: dict[str, ScatterMode] = {
    "sum": "add",
    "prod": "mul",
    "mean": "add",
    "amax": "max",
    "amin": "min",
}


def _neutral_number(mode: ScatterMode, d: DType) -> float:
    """Return the number that changes nothing when it is combined."""
    if mode in ("add", "mul"):
        return int(mode == "mul")
    if d is bool_:
        return mode == "min"
    infinity = float("inf") if d.kind == "f" else None
    if mode == "max":
        return d.min if infinity is None else -infinity
    return d.max if infinity is None else infinity


def _reduce_at(
    name: str,
    x: Tensor,
    reduce: str,
    include_self: bool,
    combine: Callable[[Tensor, Operand, ScatterMode], Tensor],
    source: Operand,
) -> Tensor:
    """Return `x` with `source` reduced into it; `combine` combines values at the indices."""
    mode = MODES[choice(name, reduce, "reduce", tuple(MODES))]
    include = flag(name, include_self, "include_self")
    d = strided(name, x).dtype
    if (d is bool_ and reduce == "mean") or (d.kind == "c" and mode in ("max", "min")):
        raise DTypeError(f"{name}: reduce={reduce!r} must not have {d.name}; cast x to a float")
    total = cast(x, d.compute)
    if not include:
        total = combine(total, _neutral_number(mode, d), "set")
    total = combine(total, source, mode)
    if reduce == "mean":
        counts = combine(full(x.shape, int(include), dtype=int64, device=x.device), 1, "add")
        counts = cast(apply(ops.MAXIMUM, (counts, 1)), total.dtype.part)
        total = apply(ops.FLOOR_DIVIDE if d.is_integer else ops.DIVIDE, (total, counts))
    return cast(total, d)


# --- PyTorch's functions --------------------------------------------------------------------------


@public(method=True, in_place=True, out=True, widen=False)
def index_reduce(
    x: Tensor,
    dim: int,
    index: Operand,
    source: Operand,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy of `x` with slices of `source` reduced into it at `index` along `dim`.

    Values for one position are combined one after the other, in the order of `index`. The bits are
    the same on every device. float16 and bfloat16 are combined in float32 and rounded at the end.

    - `dim`: the axis along which `source` has slices.
    - `index`: the positions along the axis; negative ones count from the end.
    - `source`: the slices: a tensor, an array or a number, broadcast.
    - `reduce`: "sum", "prod", "mean", "amax" or "amin".
    - `include_self`: False leaves the elements of `x` at the positions out of the reduction.

    Shapes: `index` is a vector; `source` has x's shape, but the length of `index` along `dim`.
    Dtypes: `index` integers; `source` is cast to x's if that loses no kind of number. "mean" takes
    no bools, and rounds down for integers; "amax" and "amin" take no complex numbers.
    Gradient: equal extremes share it evenly. Second derivatives of "prod" are 0 where two factors
    of a product are 0.
    Raises: OutOfRangeError, ArgumentError for another `reduce`, ShapeError, DTypeError, AxisError,
    DeviceError.
    See also: `index_add`, `scatter_reduce`, `segment_sum`.

    >>> import dovetail as dt
    >>> dt.index_reduce(dt.ones(3), 0, [0, 0, 2], [5, 2, 3], "amax").tolist()
    [5.0, 1.0, 3.0]
    """

    def combine(target: Tensor, values: Operand, mode: ScatterMode) -> Tensor:
        """Combine values into slices of the target."""
        return scatter_slices("index_reduce", target, dim, index, values, mode, False)

    if has_rule(x, "along"):
        return scatter_in_layout(
            index_reduce,
            x,
            dim,
            index,
            source,
            reduce,
            of_slices=True,
            include_self=include_self,
        )
    return _reduce_at("index_reduce", x, reduce, include_self, combine, source)


@public(method=True, in_place=True, out=True, widen=False)
def scatter_reduce(
    x: Tensor,
    dim: int,
    index: Operand,
    src: Operand,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy of `x` with the elements of `src` reduced into it at `index` along `dim`.

    Every element keeps its position along the other axes, as in `dt.scatter`. Elements for one
    position are combined one after the other, in order along `dim`. The bits are the same on every
    device. float16 and bfloat16 are combined in float32 and rounded at the end.

    - `dim`: the axis along which `index` has positions.
    - `index`: the positions along the axis; negative ones count from the end.
    - `src`: the elements: a tensor, an array or a number, broadcast.
    - `reduce`: "sum", "prod", "mean", "amax" or "amin".
    - `include_self`: False leaves the elements of `x` at the positions out of the reduction.

    Shapes: `index` has x's number of dimensions, and is not longer along the other axes; `src` has
    the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's if that loses no kind of number. "mean" takes no
    bools, and rounds down for integers; "amax" and "amin" take no complex numbers.
    Gradient: equal extremes share it evenly. Second derivatives of "prod" are 0 where two factors
    of a product are 0.
    Raises: OutOfRangeError, ArgumentError for another `reduce`, ShapeError, DTypeError, AxisError,
    DeviceError.
    See also: `index_reduce`, `scatter_add`, `scatter`.

    >>> import dovetail as dt
    >>> dt.scatter_reduce(dt.ones(3), 0, [0, 0, 2], [5, 2, 3], "prod").tolist()
    [10.0, 1.0, 3.0]
    """

    def combine(target: Tensor, values: Operand, mode: ScatterMode) -> Tensor:
        """Combine values into elements of the target."""
        return scatter_along("scatter_reduce", target, dim, index, values, mode, False)

    if has_rule(x, "along"):
        return scatter_in_layout(
            scatter_reduce, x, dim, index, src, reduce, include_self=include_self
        )
    return _reduce_at("scatter_reduce", x, reduce, include_self, combine, src)


@public(method=True, out=True, widen=False)
def scatter_add(
    x: Tensor, dim: int, index: Operand, src: Operand, *, out: Tensor | None = None
) -> Tensor:
    """Return a copy of `x` with the elements of `src` added at `index` along `dim`.

    Every element keeps its position along the other axes, as in `dt.scatter`. Additions to one
    position happen one after the other, in order along `dim`.

    - `dim`: the axis along which `index` has positions.
    - `index`: the positions along the axis; negative ones count from the end.
    - `src`: the elements: a tensor, an array or a number, broadcast.

    Shapes: `index` has x's number of dimensions, and is not longer along the other axes; `src` has
    the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, DeviceError.
    See also: `scatter_reduce`, `index_add`, `Tensor.scatter_add_`.

    >>> import dovetail as dt
    >>> dt.scatter_add(dt.zeros(3), 0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    if has_rule(x, "along"):
        return scatter_in_layout(scatter_add, x, dim, index, src)
    return scatter_add_(apply(ops.COPY, (required("scatter_add", x),)), dim, index, src)


@public(method=True, out=True, widen=False)
def index_copy(
    x: Tensor, dim: int, index: Operand, source: Operand, *, out: Tensor | None = None
) -> Tensor:
    """Return a copy of `x` with slices of `source` written at `index` along `dim`.

    Of several slices for one position the last one stays.

    - `dim`: the axis along which slices are written.
    - `index`: the positions along the axis; negative ones count from the end.
    - `source`: the slices: a tensor, an array or a number, broadcast.

    Shapes: `index` is a vector; `source` has x's shape, but the length of `index` along `dim`.
    Dtypes: `index` integers; `source` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, DeviceError.
    See also: `index_add`, `index_fill`, `scatter`.

    >>> import dovetail as dt
    >>> dt.index_copy(dt.zeros(3), 0, [2, 0], [7, 9]).tolist()
    [9.0, 0.0, 7.0]
    """
    if has_rule(x, "along"):
        return scatter_in_layout(index_copy, x, dim, index, source, of_slices=True)
    return index_copy_(apply(ops.COPY, (required("index_copy", x),)), dim, index, source)


@public(method=True, widen=False)
def index_copy_(x: Tensor, dim: int, index: Operand, source: Operand) -> Tensor:
    """Write slices of `source` to the slices of `x` at `index` along `dim`, and return `x`.

    Of several slices for one position the last one stays.

    - `dim`: the axis along which slices are written.
    - `index`: the positions along the axis; negative ones count from the end.
    - `source`: the slices: a tensor, an array or a number, broadcast.

    Shapes: `index` is a vector; `source` has x's shape, but the length of `index` along `dim`.
    Dtypes: `index` integers; `source` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3).index_copy_(0, [2, 0], [7, 9]).tolist()
    [9.0, 0.0, 7.0]
    """
    scatter_slices("index_copy", x, dim, index, source, "set")
    return x


@public(method=True, out=True, widen=False)
def index_fill(
    x: Tensor, dim: int, index: Operand, value: Operand, *, out: Tensor | None = None
) -> Tensor:
    """Return a copy of `x` with one value written to the slices at `index` along `dim`.

    - `dim`: the axis along which slices are written.
    - `index`: the positions along the axis; negative ones count from the end.
    - `value`: a number, or a tensor of no dimensions.

    Shapes: `index` is a vector.
    Dtypes: `index` integers; `value` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, DeviceError.
    See also: `index_copy`, `masked_fill`.

    >>> import dovetail as dt
    >>> dt.index_fill(dt.zeros(3), 0, [2, 0], 7).tolist()
    [7.0, 0.0, 7.0]
    """
    if has_rule(x, "along"):
        return scatter_in_layout(index_fill, x, dim, index, value, of_slices=True)
    return index_fill_(apply(ops.COPY, (required("index_fill", x),)), dim, index, value)


@public(method=True, widen=False)
def index_fill_(x: Tensor, dim: int, index: Operand, value: Operand) -> Tensor:
    """Write one value to the slices of `x` at `index` along `dim`, and return `x`.

    - `dim`: the axis along which slices are written.
    - `index`: the positions along the axis; negative ones count from the end.
    - `value`: a number, or a tensor of no dimensions.

    Shapes: `index` is a vector.
    Dtypes: `index` integers; `value` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3).index_fill_(0, [2, 0], 7).tolist()
    [7.0, 0.0, 7.0]
    """
    if getattr(value, "ndim", 0):
        raise ShapeError(
            f"index_fill: value must be a number, got shape {value.shape}; use dt.index_copy"  # type: ignore[union-attr]  # it has ndim
        )
    scatter_slices("index_fill", x, dim, index, value, "set")
    return x


@public(method=True, in_place=True, out=True, widen=False)
def masked_scatter(x: Tensor, mask: Array, source: Array, *, out: Tensor | None = None) -> Tensor:
    """Return a copy of `x` with the first elements of `source` where `mask` is true, in order.

    The host reads nothing: missing elements of `source` raise when the work runs.

    - `mask`: True at the positions that are written.
    - `source`: the elements, in row-major order, at least as many as the mask has true ones.

    Shapes: x and the mask broadcast; `source` has any shape.
    Dtypes: the mask is of bools; `source` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError for too few elements; ShapeError, DTypeError, DeviceError.
    See also: `masked_fill`, `masked_select`, `where`.

    >>> import dovetail as dt
    >>> dt.masked_scatter(dt.zeros(4), [True, False, True, False], [7.0, 9.0, 5.0]).tolist()
    [7.0, 0.0, 9.0, 0.0]
    """
    x, where, values = as_tensors("masked_scatter", strided("masked_scatter", x), mask, source)
    if where.dtype is not bool_:
        raise DTypeError(f"masked_scatter: the mask must be of bools, got {where.dtype.name}")
    x, where = broadcast_arrays(x, where)
    number = cumulative_sum(ravel(where))  # from 1 for the first true element
    start = zeros((1,), dtype=values.dtype, device=values.device)
    position = apply(ops.WHERE, (ravel(where), number, 0))
    check = IndexPurpose("masked_scatter", 0, values.size + 1)
    position = create_tensor(record_check(check, position._expr))
    chosen = gather_unchecked(concat([start, ravel(values)]), position)
    want = spec(x.shape, x.dtype, x.device)
    written = create_tensor(cast_to_spec("masked_scatter", reshape(chosen, x.shape)._expr, want))
    return apply(ops.WHERE, (where, written, x))


# --- JAX's functions ------------------------------------------------------------------------------


def _largest(ids: Tensor) -> int:
    """Return the largest element, or -1, read by the host."""
    return max(int(item(max_of(ids))), -1)


def _reduce_segments(
    name: str, data: Tensor, segment_ids: Array, num_segments: int | None, reduce: str
) -> Tensor:
    """Return the reduction of each segment of rows; an empty one has the neutral number."""
    data, ids = as_tensors(name, strided(name, data), segment_ids)
    if not ids.dtype.is_integer or data.ndim == 0 or ids.shape != data.shape[:1]:
        raise ShapeError(
            f"{name}: segment_ids must be integers of shape {data.shape[:1]}, one for each row of "
            f"data, got {ids.dtype.name} of shape {ids.shape}"
        )
    if num_segments is None:
        try:
            num_segments = tracer_api.call_on_batch(_largest, ids) + 1 if ids.size else 0
        except CaptureError:
            raise CaptureError(f"{name}: num_segments= must be given in dt.jit") from None
    n = integer(name, num_segments, "num_segments", 0, 1 << 40)
    ids = cast(ids, int64)
    inside = apply(ops.LOGICAL_AND, (apply(ops.GREATER_EQUAL, (ids, 0)), apply(ops.LESS, (ids, n))))
    if reduce == "mean" and data.dtype.kind in "iub":
        data = cast(data, float32)
    start = full(
        (n + 1, *data.shape[1:]),
        _neutral_number(MODES[reduce], data.dtype),
        dtype=data.dtype,
        device=data.device,
    )
    at = apply(ops.WHERE, (inside, ids, n))  # the last row collects ids out of range
    reduced = index_reduce(start, 0, at, data, reduce, include_self=reduce != "mean")
    return slice_along(reduced, 0, 0, n)


@public(widen=False)
def segment_sum(data: Tensor, segment_ids: Array, num_segments: int | None = None) -> Tensor:
    """Return the sum of the rows of each segment.

    Row i belongs to segment `segment_ids[i]`; ids out of range are left out. An empty segment
    gives 0. Rows are combined in their order.

    - `data`: the rows.
    - `segment_ids`: the segment of each row, in any order.
    - `num_segments`: the number of segments; None is the largest id + 1, which the host reads.

    Shapes: data (n, ...), `segment_ids` (n,); the result is (num_segments, ...).
    Dtypes: numbers; `segment_ids` integers.
    Raises: CaptureError without `num_segments` in `dt.jit`; ArgumentError for a negative one;
    ShapeError, DTypeError, DeviceError.
    See also: `index_reduce`, `bincount`.

    >>> import dovetail as dt
    >>> dt.segment_sum(dt.asarray([5.0, 1.0, 2.0]), [0, 2, 0], 3).tolist()
    [7.0, 0.0, 1.0]
    """
    return _reduce_segments("segment_sum", data, segment_ids, num_segments, "sum")


@public(widen=False)
def segment_prod(data: Tensor, segment_ids: Array, num_segments: int | None = None) -> Tensor:
    """Return the product of the rows of each segment.

    Row i belongs to segment `segment_ids[i]`; ids out of range are left out. An empty segment
    gives 1. Rows are combined in their order.

    - `data`: the rows.
    - `segment_ids`: the segment of each row, in any order.
    - `num_segments`: the number of segments; None is the largest id + 1, which the host reads.

    Shapes: data (n, ...), `segment_ids` (n,); the result is (num_segments, ...).
    Dtypes: numbers; `segment_ids` integers.
    Raises: CaptureError without `num_segments` in `dt.jit`; ArgumentError for a negative one;
    ShapeError, DTypeError, DeviceError.
    See also: `index_reduce`.

    >>> import dovetail as dt
    >>> dt.segment_prod(dt.asarray([5.0, 1.0, 2.0]), [0, 2, 0], 3).tolist()
    [10.0, 1.0, 1.0]
    """
    return _reduce_segments("segment_prod", data, segment_ids, num_segments, "prod")


@public(widen=False)
def segment_max(data: Tensor, segment_ids: Array, num_segments: int | None = None) -> Tensor:
    """Return the largest value of the rows of each segment.

    Row i belongs to segment `segment_ids[i]`; ids out of range are left out. An empty segment
    gives -inf, or the least integer.

    - `data`: the rows.
    - `segment_ids`: the segment of each row, in any order.
    - `num_segments`: the number of segments; None is the largest id + 1, which the host reads.

    Shapes: data (n, ...), `segment_ids` (n,); the result is (num_segments, ...).
    Dtypes: real numbers; `segment_ids` integers.
    Raises: CaptureError without `num_segments` in `dt.jit`; ArgumentError for a negative one;
    ShapeError, DTypeError, DeviceError.
    See also: `index_reduce`.

    >>> import dovetail as dt
    >>> dt.segment_max(dt.asarray([5.0, 1.0, 2.0]), [0, 2, 0], 3).tolist()
    [5.0, -inf, 1.0]
    """
    return _reduce_segments("segment_max", data, segment_ids, num_segments, "amax")


@public(widen=False)
def segment_min(data: Tensor, segment_ids: Array, num_segments: int | None = None) -> Tensor:
    """Return the smallest value of the rows of each segment.

    Row i belongs to segment `segment_ids[i]`; ids out of range are left out. An empty segment
    gives inf, or the largest integer.

    - `data`: the rows.
    - `segment_ids`: the segment of each row, in any order.
    - `num_segments`: the number of segments; None is the largest id + 1, which the host reads.

    Shapes: data (n, ...), `segment_ids` (n,); the result is (num_segments, ...).
    Dtypes: real numbers; `segment_ids` integers.
    Raises: CaptureError without `num_segments` in `dt.jit`; ArgumentError for a negative one;
    ShapeError, DTypeError, DeviceError.
    See also: `index_reduce`.

    >>> import dovetail as dt
    >>> dt.segment_min(dt.asarray([5.0, 1.0, 2.0]), [0, 2, 0], 3).tolist()
    [2.0, inf, 1.0]
    """
    return _reduce_segments("segment_min", data, segment_ids, num_segments, "amin")


@public(widen=False)
def segment_mean(data: Tensor, segment_ids: Array, num_segments: int | None = None) -> Tensor:
    """Return the mean of the rows of each segment.

    Row i belongs to segment `segment_ids[i]`; ids out of range are left out. An empty segment
    gives 0. Rows are combined in their order.

    - `data`: the rows.
    - `segment_ids`: the segment of each row, in any order.
    - `num_segments`: the number of segments; None is the largest id + 1, which the host reads.

    Shapes: data (n, ...), `segment_ids` (n,); the result is (num_segments, ...).
    Dtypes: numbers; integers and bools give float32. `segment_ids` integers.
    Raises: CaptureError without `num_segments` in `dt.jit`; ArgumentError for a negative one;
    ShapeError, DTypeError, DeviceError.
    See also: `index_reduce`.

    >>> import dovetail as dt
    >>> dt.segment_mean(dt.asarray([5.0, 1.0, 2.0]), [0, 2, 0], 3).tolist()
    [3.5, 0.0, 1.0]
    """
    return _reduce_segments("segment_mean", data, segment_ids, num_segments, "mean")
