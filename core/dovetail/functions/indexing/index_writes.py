"""Writes at indices: `x[key] = value`, `scatter_`, `index_add_`.

Integers, slices, `...` and None write through a view, arrays through the `scatter` row. Of several
values for one position the last one stays.

An expression to be written is built in a function of its own, which keeps no reference to it. An
expression without other references gets no memory; the kernel that writes computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal
from typing import cast as typed_cast

import numpy as np

from ... import layout as lay
from ...backend.faults import IndexPurpose
from ...dtypes import bool_, int64
from ...engine import tracer_api
from ...errors import DeviceError, ShapeError
from ...graph.expr import Expr, mark_index_check, node, spec
from ...graph.refcount import Box, pop
from ...layout import Shape
from ...memory.tracing.stacktrace import current_line
from ...ops import table as ops
from ...ops.scatter import COLUMN_VALUES_MIN, Manner
from ...ops.table import SCATTER, SCATTER_REDUCE, WHERE
from ...tensor.c_fields import create_view, expr_of, is_strided
from ...tensor.host import allocate_leaf, from_host
from ...tensor.other_layouts import call_along, has_rule
from ...tensor.primitives import apply, pending_view, slice_along, view
from ...tensor.promotion import ARRAY_TYPES, Operand, as_tensors
from ...tensor.slicing import basic_leaf, is_integer_tensor
from ...tensor.tensor import Tensor, create_tensor, required, strided, to_strided
from ...tensor.writes import (
    cast_to_spec,
    fill_elements,
    value_node,
    write_element,
    write_tensor,
    write_value,
)
from ..datatypes import cast
from ..graph_cache import build_recipe
from ..known_calls import is_number, put_cache, record_check, write_cached
from ..shape.manipulation import broadcast_to
from ..variants import public
from .index_keys import (
    Key,
    Part,
    Selection,
    basic_view,
    index_array,
    is_array,
    is_mask,
    key_parts,
    parts_along,
    positions_along,
    select,
    select_along,
)
from .masks import nonzero

__all__ = ["index_add", "scatter"]

ScatterMode = Literal["set", "add", "mul", "max", "min"]
PLAIN_MODES = ("set", "add")  # whose gradients need no values; the others are SCATTER_REDUCE


@public(method=("__setitem__",), wrap=False)
def setitem(x: Tensor, key: Key, value: Operand) -> None:
    """Write `x[key] = value`: the value is broadcast and cast to the memory of `x[key]`.

    If integer arrays contain a position several times, the last value stays. A mask with a value
    that does not depend on the number of its true elements needs no host read.
    Raises: as `x[key]`; DTypeError if the value's kind does not fit; ReadOnlyError; GradientError.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, -2, 3])
    >>> x[x < 0] = 0
    >>> x.tolist()
    [1, 0, 3]
    """
    e = basic_leaf(x, key)
    if e is not None:
        if not (write_element(x, key, value) or fill_elements(x, e, value)):
            write_value("setitem", create_view(x, e), value)
        return
    if write_cached(x, key, value):
        return
    if is_integer_tensor(key) and is_strided(x) and expr_of(x).spec.shape:
        write_tensor("setitem", x, _put_rows(x, key, value), is_update=True)
        return
    parts = key_parts(strided("setitem", x), key)
    if not any(is_array(p) for p in parts):
        write_value("setitem", basic_view(x, parts), value)
    elif not _try_masked_write(x, [p for p in parts if p is not Ellipsis], value):
        traced = tracer_api.current() is not None
        selectors = _count_by_value(x, parts, value) if traced else parts
        scatter_selected("setitem", select("setitem", x, selectors), value, "set")


def set_rows(name: str, x: Tensor, index: Tensor, value: Operand) -> None:
    """Write `x[index] = value` for integers along the first axis; errors name `name`."""
    scatter_selected(name, select_along(name, x, index, 0), value, "set")


# --- masks ----------------------------------------------------------------------------------------


def _try_masked_write(x: Tensor, parts: list[Part], value: Operand) -> bool:
    """Write by `where`, and return True, if the only array is a mask over one shared value."""
    lead = _find_mask(x, parts)
    if lead is None:
        return False
    mask, after = typed_cast("Tensor | np.ndarray", parts[lead]), len(parts) - lead - 1
    new = _value_at_mask(x, mask.ndim, lead, after, value)
    if not new:
        return False
    slices = [*parts[:lead], *parts[lead + 1 :]]
    target = x  # not a view of it: the gradient of a view's write loses the sign of zeros
    if any(part != slice(None) for part in slices):
        whole = [slice(None)] * mask.ndim
        target = basic_view(x, [*parts[:lead], *whole, *parts[lead + 1 :]])
    write_tensor("setitem", target, [_where_expr(_mask_expr(mask, after, x), new, target._expr)])
    return True


def _find_mask(x: Tensor, selectors: Sequence[Part]) -> int | None:
    """Return the place of a mask that fits `x`, if all other parts are slices; else None."""
    arrays = [part for part in selectors if is_array(part)]
    mask = arrays[0]
    if len(arrays) > 1 or isinstance(mask, bool) or not is_mask(mask) or mask.ndim == 0:
        return None
    if any(not isinstance(p, slice) for p in selectors if p is not mask):
        return None
    lead = next(i for i, p in enumerate(selectors) if p is mask)
    return lead if tuple(mask.shape) == x.shape[lead : lead + mask.ndim] else None


def _count_by_value(x: Tensor, selectors: list[Part], value: Operand) -> list[Part]:
    """Return the parts of a key with positions for a mask, as many as the value's shape says.

    So the host need not read their number. Other keys are returned as they are.
    """
    slices_and_mask = [p for p in selectors if p is not Ellipsis]
    lead = _find_mask(x, slices_and_mask)
    shape = value_node("setitem", value, x.dtype, x.device).spec.shape
    cut = -1 if lead is None else len(shape) - (len(slices_and_mask) - lead - 1) - 1
    if lead is None or not 0 <= cut <= lead:
        return selectors
    mask = typed_cast("Tensor | np.ndarray", slices_and_mask[lead])
    if isinstance(mask, np.ndarray):
        mask = from_host(mask, bool_, x.device)
    positions = _find_positions("setitem", mask, shape[cut])
    return [*slices_and_mask[:lead], *positions, *slices_and_mask[lead + 1 :]]


def _find_positions(op: str, mask: Tensor, count: int) -> tuple[Tensor, ...]:
    """Return for each axis the positions of a mask's true elements, of which there are `count`.

    The host reads nothing: another number of them raises OutOfRangeError when the work runs.
    """
    if not mask.size:
        return nonzero(mask)
    flat = pending_view(strided(op, mask)._expr, ("reshape", (mask.size,)))
    s = spec((mask.size,), int64, mask.device)
    number = create_tensor(node(ops.CUMULATIVE_SUM, (flat,), s, (0, False, None)))
    excess = apply(ops.SUBTRACT, (slice_along(number, 0, mask.size - 1, 1), count))
    purpose = IndexPurpose(
        f"{op}: the mask must have {count} true elements, as many as the value; the difference "
        "must be 0",
        -1,
        1,
    )
    zero = create_tensor(record_check(purpose, apply(ops.ABS, (excess,))._expr))
    return tuple([apply(ops.ADD, (c, zero)) for c in nonzero(mask, size=count)])


def _value_at_mask(
    x: Tensor, dims: int, lead: int, trailing_axes: int, value: Operand
) -> Box[Expr]:
    """Return, in a box, the value with axes of size 1 in place of the mask's axes.

    The box is empty if the value has one element for each true element.
    """
    e = value_node("setitem", value, x.dtype, x.device)
    shape = e.spec.shape
    cut = len(shape) - trailing_axes - 1  # the value's axis along the true elements
    if (cut >= 0 and shape[cut] != 1) or cut > lead:
        return []
    if cut < 0:
        return [e]
    return [pending_view(e, ("reshape", (*shape[:cut], *(1,) * dims, *shape[cut + 1 :])))]


def _mask_expr(mask: Tensor | np.ndarray, trailing_axes: int, x: Tensor) -> Expr:
    """Return the mask's expression, with axes of size 1 for the axes after it."""
    if isinstance(mask, np.ndarray):
        mask = from_host(mask, bool_, x.device)
    return pending_view(
        strided("setitem", mask)._expr, ("reshape", (*mask.shape, *(1,) * trailing_axes))
    )


def _where_expr(mask: Expr, new: Box[Expr], old: Expr) -> Expr:
    """Return `new` where the mask is true, else `old`."""
    if mask.spec.device is not old.spec.device:
        raise DeviceError(
            f"index: the mask is on {mask.spec.device} and the tensor on {old.spec.device}; "
            "move one with x.to(device)"
        )
    return node(WHERE, (mask, cast_to_spec("setitem", pop(new), old.spec), old), old.spec)


# --- arrays ---------------------------------------------------------------------------------------


def scatter_selected(
    name: str, s: Selection, value: Operand, mode: ScatterMode, in_place: bool = True
) -> Tensor:
    """Write or combine a value into the elements that a key selects, and return the sliced tensor.

    If `in_place` is false, nothing is written, and the result is a new tensor.
    """
    index_axes = [i.axis for i in s.indices]
    result_axes = [d for d in s.result if d >= 0]
    ones = [d for d in range(s.merged.ndim) if d not in index_axes and d not in result_axes]
    row_shape = tuple(s.merged.shape[d] for d in result_axes) + (1,) * len(ones)
    order = (*index_axes, *result_axes, *ones)
    whole = order == (*range(len(order)),)
    target = s.merged if whole else view(s.merged, ("permute", order))
    scattered = [_scatter_expr(name, s, target, _value(name, value, target), row_shape, mode)]
    if s.shares_memory and in_place:
        write_tensor(name, target, scattered, is_update=True)
        return s.sliced
    back = ("permute", tuple(order.index(d) for d in range(len(order))))
    result = [pending_view(pop(scattered), back, ("reshape", s.sliced.shape))]
    if not in_place:
        return create_tensor(pop(result))
    write_tensor(name, s.sliced, result)
    return s.sliced


def _scatter_expr(
    name: str, s: Selection, target: Tensor, e: Expr, row_shape: Shape, mode: ScatterMode
) -> Expr:
    """Return the expression that updates the target with a value."""
    values = target._expr.spec
    unique = len(s.indices) == 1 and s.indices[0].unique
    count = math.prod(s.shape) * math.prod(row_shape)
    simple = (
        count < COLUMN_VALUES_MIN and not unique and target._expr.tape is None and e.tape is None
    )
    number = simple and is_number(e, values)
    rows = e.args[0] if number else _value_rows(name, s, e, row_shape)
    index_check = None
    if simple and len(s.indices) == 1 and not s.indices[0].in_range and values.size:
        index_check = s.index_check(name, s.indices[0])
    positions = [
        s.in_range_positions(name, i) if index_check is None else i.node for i in s.indices
    ]
    indices = [_index_rows(s, i, row_shape) for i in positions]
    scattered = node(
        SCATTER if mode in PLAIN_MODES else SCATTER_REDUCE,
        (target._expr, rows, *indices),
        values,
        Manner(mode, unique, number, index_check),
    )
    if index_check is not None:
        mark_index_check(scattered, current_line())
    return scattered


def _value(name: str, value: Operand, target: Tensor) -> Expr:
    """Return the value's expression in the dtype and on the device of the target."""
    want = expr_of(target).spec
    return value_node(name, value, want.dtype, want.device)


def _value_rows(name: str, s: Selection, e: Expr, row_shape: Shape) -> Expr:
    """Return the value in the shape (number of positions, *row_shape)."""
    want, n = s.merged._expr.spec, math.prod(s.shape)
    if e.spec.size == 1 and len(e.spec.shape) <= len(s.full_shape):
        scalar = spec((), want.dtype, want.device)
        one = cast_to_spec(name, pending_view(e, ("reshape", ())), scalar)
        return pending_view(
            one, ("reshape", (1,) * (1 + len(row_shape))), ("expand", (n, *row_shape))
        )
    axes = range(len(s.full_shape))
    front = tuple(axes[s.leading_axes : s.leading_axes + len(s.shape)])
    order = front + tuple(d for d in axes if d not in front)
    e = cast_to_spec(name, e, spec(s.full_shape, want.dtype, want.device))
    moved = e if order == (*axes,) else pending_view(e, ("permute", order))
    return pending_view(moved, ("reshape", (n, *row_shape)))


def _index_rows(s: Selection, i: Expr, row_shape: Shape) -> Expr:
    """Return an index's positions in the shape (number of positions, *row_shape)."""
    n = math.prod(s.shape)
    column = ("reshape", (n, *(1,) * len(row_shape)))
    return pending_view(i, ("expand", s.shape), column, ("expand", (n, *row_shape)))


# --- integers along the first axis ----------------------------------------------------------------


def _put_rows(x: Tensor, index: Tensor, value: Operand) -> Box[Expr]:
    """Return, in a box, the expression of `x[index] = value` for an index along the first axis."""
    e, i = expr_of(x), expr_of(index)
    v = _value("setitem", value, x)
    scattered = _scatter_expr(
        "setitem", select_along("setitem", x, index, 0), x, v, e.spec.shape[1:], "set"
    )
    if e.tape is None and v.tape is None:
        _, rows, indices = scattered.args
        manner: Manner = scattered.attrs
        to_rows = [] if manner.is_scalar else build_recipe(rows, [v])
        to_indices = build_recipe(indices, [i])
        if to_rows is not None and to_indices is not None:
            key = (e.spec, i.spec, v.spec, is_number(v, e.spec))
            checks = manner.purpose is not None
            put_cache[key] = to_rows, to_indices, manner, manner.is_scalar, checks
    return [scattered]


# --- other layouts --------------------------------------------------------------------------------


def scatter_in_layout(
    function: Callable[..., Tensor],
    x: Tensor,
    dim: int,
    index: Operand,
    values: Operand,
    *args: object,
    of_slices: bool = False,
    **options: object,
) -> Tensor:
    """Return the function of a tensor of another layout, by its rule "along".

    The function is `scatter` or another one of elements, or, with `of_slices`, `index_add` or
    another one of slices, for a vector of indices. `args` and `options` follow the values.
    Raises: ShapeError for indices of elements that are shorter than x beside the axis.
    """
    name = function.__name__
    d = lay.axis(name, dim, x.ndim)
    array = index_array(name, index)
    operands, shape = [x], (*x.shape[:d], array.size, *x.shape[d + 1 :])
    if of_slices:
        array = to_strided(array) if isinstance(array, Tensor) else array
    else:
        operands += as_tensors(name, x, array)[1:]
        shape = (*x.shape[:d], *array.shape[d : d + 1], *x.shape[d + 1 :])
        if tuple(array.shape) != shape:
            raise ShapeError(
                f"{name}: indices of a {x.layout.name} tensor of shape {x.shape} must have shape "
                f"{shape} for their size along axis {d}, got {tuple(array.shape)}"
            )
    if isinstance(values, (Tensor, *ARRAY_TYPES)):
        operands.append(broadcast_to(as_tensors(name, x, values)[1], shape))

    def call(t: Tensor, *more: Tensor) -> Tensor:
        """Call the function with strided operands."""
        operand = iter(more)
        at = array if of_slices else next(operand)
        return function(t, d, at, next(operand, values), *args, **options)

    result: Tensor = call_along(name, call, operands, (d,))
    return result


# --- complete sets of positions -------------------------------------------------------------------


def scatter_to(values: Tensor, positions: Tensor) -> Tensor:
    """Return a vector with values[i] at positions[i]; each position occurs exactly once."""
    out = create_tensor(allocate_leaf(values._expr.spec))
    args = (out._expr, values._expr, positions._expr)
    write_tensor(
        "scatter", out, [node(SCATTER, args, out._expr.spec, Manner("set", True))], is_update=True
    )
    return out


# --- functions ------------------------------------------------------------------------------------


@public(method=True, out=True, widen=False)
def index_add(
    x: Tensor, dim: int, index: Operand, source: Operand, *, out: Tensor | None = None
) -> Tensor:
    """Return a copy of `x` with slices of `source` added at `index` along `dim`.

    Additions to one position happen one after the other, in the order of `index`. float16 and
    bfloat16 are added in float32 and rounded at the end. The bits are the same on every device.

    - `dim`: the axis along which slices are added.
    - `index`: the positions along the axis; negative ones count from the end.
    - `source`: the slices: a tensor, an array or a number, broadcast.

    Shapes: `index` is a vector; `source` has x's shape, but the length of `index` along `dim`.
    Dtypes: `index` integers; `source` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, DeviceError.
    See also: `scatter`, `Tensor.scatter_add_`, `bincount`.

    >>> import dovetail as dt
    >>> dt.index_add(dt.zeros(3), 0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    if has_rule(x, "along"):
        return scatter_in_layout(index_add, x, dim, index, source, of_slices=True)
    return index_add_(apply(ops.COPY, (required("index_add", x),)), dim, index, source)


@public(method=True, widen=False)
def index_add_(x: Tensor, dim: int, index: Operand, source: Operand) -> Tensor:
    """Add slices of `source` to the slices of `x` at `index` along `dim`, and return `x`.

    Order and dtypes are as for `dt.index_add`.

    - `dim`: the axis along which slices are added.
    - `index`: the positions along the axis; negative ones count from the end.
    - `source`: the slices: a tensor, an array or a number, broadcast.

    Shapes: `index` is a vector; `source` has x's shape, but the length of `index` along `dim`.
    Dtypes: `index` integers; `source` is cast to x's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.

    >>> import dovetail as dt
    >>> dt.zeros(3).index_add_(0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    if strided("index_add", x).dtype.compute is not x.dtype:
        return _add_in_float32(index_add_, x, dim, index, source)
    scatter_slices("index_add", x, dim, index, source, "add")
    return x


def scatter_slices(
    name: str,
    x: Tensor,
    dim: int,
    index: Operand,
    source: Operand,
    mode: ScatterMode,
    in_place: bool = True,
) -> Tensor:
    """Write or combine `source` into the slices of `x` at `index` along `dim`.

    If `in_place` is false, the result is a new tensor.
    """
    d = lay.axis(name, dim, strided(name, x).ndim)
    array = index_array(name, index)
    if array.ndim != 1:
        raise ShapeError(f"{name}: index must be a vector, got shape {tuple(array.shape)}")
    return scatter_selected(name, select(name, x, parts_along(x, d, array)), source, mode, in_place)


@public(method=True, out=True, widen=False)
def scatter(
    x: Tensor, dim: int, index: Operand, src: Operand, *, out: Tensor | None = None
) -> Tensor:
    """Return a copy of `x` with the elements of `src` written at `index` along `dim`.

    Every element keeps its position along the other axes. In three dimensions the result `out` is

        out[index[i, j, k], j, k] = src[i, j, k]   # dim = 0
        out[i, index[i, j, k], k] = src[i, j, k]   # dim = 1
        out[i, j, index[i, j, k]] = src[i, j, k]   # dim = 2

    Of several elements for one position the last one along `dim` stays. There is no `reduce=`: to
    combine elements use `dt.scatter_reduce`, or `dt.index_reduce` for whole slices.

    - `dim`: the axis along which `index` has positions.
    - `index`: the positions along the axis; negative ones count from the end.
    - `src`: the elements: a tensor, an array or a number, broadcast.

    Shapes: `index` has x's number of dimensions, and is not longer along the other axes; `src` has
    the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, DeviceError.
    See also: `gather`, which reads, `index_add`, `put_along_axis`, `Tensor.scatter_add_`.

    >>> import dovetail as dt
    >>> dt.scatter(dt.zeros(4), 0, [1, 3], [7, 9]).tolist()
    [0.0, 7.0, 0.0, 9.0]
    """
    if has_rule(x, "along"):
        return scatter_in_layout(scatter, x, dim, index, src)
    return scatter_(apply(ops.COPY, (required("scatter", x),)), dim, index, src)


@public(method=True, widen=False)
def scatter_(x: Tensor, dim: int, index: Operand, src: Operand) -> Tensor:
    """Write the elements of `src` to `x` at `index` along `dim`, and return `x`.

    Every element keeps its position along the other axes. As in `dt.scatter`, of several elements
    for one position the last one stays.

    - `dim`: the axis along which `index` has positions.
    - `index`: the positions along the axis; negative ones count from the end.
    - `src`: the elements: a tensor, an array or a number, broadcast.

    Shapes: `index` has x's number of dimensions, and is not longer along the other axes; `src` has
    the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.
    See also: `scatter`, `Tensor.scatter_add_`.

    >>> import dovetail as dt
    >>> dt.zeros(4).scatter_(0, [1, 3], [7, 9]).tolist()
    [0.0, 7.0, 0.0, 9.0]
    """
    return scatter_along("scatter", x, dim, index, src, "set")


@public(method=True, widen=False)
def scatter_add_(x: Tensor, dim: int, index: Operand, src: Operand) -> Tensor:
    """Add the elements of `src` to `x` at `index` along `dim`, and return `x`.

    Every element keeps its position along the other axes. Positions are as in `dt.scatter`.
    Additions to one position happen one after the other, in order along `dim`. float16 and bfloat16
    are added in float32 and rounded at the end. The bits are the same on every device.

    - `dim`: the axis along which `index` has positions.
    - `index`: the positions along the axis; negative ones count from the end.
    - `src`: the elements: a tensor, an array or a number, broadcast.

    Shapes: `index` has x's number of dimensions, and is not longer along the other axes; `src` has
    the shape of `index`.
    Dtypes: `index` integers; `src` is cast to x's where that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, ReadOnlyError, GradientError for a
    leaf that requires a gradient.
    See also: `scatter`, `index_add`.

    >>> import dovetail as dt
    >>> dt.zeros(3).scatter_add_(0, [0, 0, 2], [1, 2, 3]).tolist()
    [3.0, 0.0, 3.0]
    """
    if strided("scatter_add", x).dtype.compute is not x.dtype:
        return _add_in_float32(scatter_add_, x, dim, index, src)
    return scatter_along("scatter_add", x, dim, index, src, "add")


def _add_in_float32(add_: Callable[..., Tensor], x: Tensor, *args: Operand) -> Tensor:
    """Add to `x`, of reduced precision, in float32, so that sums are rounded once."""
    write_value(add_.__name__.rstrip("_"), x, add_(cast(x, x.dtype.compute), *args))
    return x


def scatter_along(
    name: str,
    x: Tensor,
    dim: int,
    index: Operand,
    src: Operand,
    mode: ScatterMode,
    in_place: bool = True,
) -> Tensor:
    """Write or combine `src` into `x` at the indices along `dim`, and return `x`.

    If `in_place` is false, the result is a new tensor.
    """
    d = lay.axis(name, dim, strided(name, x).ndim)
    operands = _scatter_operands(name, x, d, index, src)
    shape = operands[0].spec.shape
    lengths = (*shape[:d], x.shape[d], *shape[d + 1 :])
    order = (d, *(i for i in range(x.ndim) if i != d))
    part = view(x, ("slice", (0,) * x.ndim, lengths, (1,) * x.ndim))
    target = view(part, ("permute", order))
    scattered = [_scatter_into(target, operands, order, mode)]
    if in_place:
        write_tensor(name, target, scattered, is_update=True)
        return x
    back = ("permute", tuple(order.index(i) for i in range(x.ndim)))
    result = create_tensor(pending_view(pop(scattered), back))
    if lengths == x.shape:
        return result
    whole = apply(ops.COPY, (x,))
    write_value(name, view(whole, ("slice", (0,) * x.ndim, lengths, (1,) * x.ndim)), result)
    return whole


def _scatter_operands(name: str, x: Tensor, d: int, index: Operand, src: Operand) -> list[Expr]:
    """Return the source and the positions of a scatter, both in the indices' shape."""
    positions, asked = positions_along(name, x, index, d)
    shape = positions.spec.shape
    if any(n > m for i, (n, m) in enumerate(zip(shape, x.shape, strict=True)) if i != d):
        raise ShapeError(
            f"{name}: indices must not be larger than shape {x.shape}, got shape {shape}"
        )
    e = cast_to_spec(name, value_node(name, src, x.dtype, x.device), spec(shape, x.dtype, x.device))
    return [e, positions if asked is None else record_check(asked, positions)]


def _scatter_into(target: Tensor, operands: list[Expr], order: Shape, mode: ScatterMode) -> Expr:
    """Return the target's expression after the update; empty `operands`, which frees them."""
    permuted = [pending_view(e, ("permute", order)) for e in operands]
    operands.clear()
    op = SCATTER if mode in PLAIN_MODES else SCATTER_REDUCE
    return node(op, (target._expr, *permuted), target._expr.spec, Manner(mode))
