"""Insertion, deletion and overwriting of elements, as by NumPy's `insert`, `delete`, `putmask`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ... import layout as lay
from ...argument_checks import DIMENSIONS, choice, flag, refused, shown
from ...dtypes import bool_, int64
from ...errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from ...graph.expr import spec
from ...ops import table as ops
from ...tensor.host import read_values
from ...tensor.primitives import apply, slice_along
from ...tensor.promotion import ARRAY_TYPES, Array, Operand, as_operand, as_tensors
from ...tensor.tensor import Tensor, create_tensor, strided
from ...tensor.writes import (
    array_of,
    cast_to_spec,
    require_not_broadcast,
    value_node,
    write_result,
    write_value,
)
from ..creation.constructors import ShapeLike, extents, zeros
from ..datatypes import cast, promote_operands
from ..reductions.statistics import any as any_of
from ..reductions.statistics import argmax
from ..reductions.statistics import max as max_of
from ..shape.copies import concat, stack
from ..shape.manipulation import broadcast_to, diagonal, flip, moveaxis, ravel, reshape
from ..variants import public
from .index_keys import check_parts, index_array
from .index_reads import getitem, take
from .index_writes import setitem
from .masks import nonzero
from .selection import put

__all__ = [
    "append",
    "block",
    "compress",
    "copyto",
    "delete",
    "extract",
    "fill_diagonal",
    "flatnonzero",
    "insert",
    "place",
    "putmask",
    "resize",
    "trim_zeros",
]

PositionsLike = int | slice | Array  # positions along an axis
DELETE_SLICES_MAX = 4  # for so many slices the others are concatenated, for more they are gathered


# --- insertion and deletion -----------------------------------------------------------------------


@public(out=True, widen=False)
def append(
    arr: Operand, values: Operand, axis: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a new tensor with the elements of `arr`, then those of `values`.

    - `arr`, `values`: tensors, of which one may be an array, a list or a number.
    - `axis`: None ravels both first.

    Shapes: any; with an axis, equal except along it.
    Dtypes: all; the result has the promoted one. A number takes the other's.
    Cost: copies both; a loop of calls is quadratic. Collect parts in a list for one `concat`.
    Raises: ShapeError, DTypeError, AxisError, DeviceError.
    See also: `concat`, `insert`.

    >>> import dovetail as dt
    >>> dt.append(dt.asarray([[1, 2]]), [[3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    return concat(_promote_tensors("append", arr, values), axis=axis)


@public(out=True, widen=False)
def insert(
    arr: Array,
    obj: PositionsLike,
    values: Operand,
    axis: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return a new tensor with `values` inserted before positions of `arr` along an axis.

    - `arr`: the tensor.
    - `obj`: the positions in the original `arr`: an int, several ints, a slice or a mask; the host
      reads those in a tensor.
    - `values`: one slice for each position, or several for a single position, broadcast.
    - `axis`: one axis; None ravels `arr` first.

    Shapes: arr's, longer along the axis.
    Dtypes: all; `values` are cast to arr's if that loses no kind of number.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, DeviceError.
    See also: `append`, `delete`, `concat`.

    >>> import dovetail as dt
    >>> dt.insert(dt.asarray([1, 2, 3]), [0, 2], [7, 8]).tolist()
    [7, 1, 2, 8, 3]
    """
    x, d = _tensor_and_axis("insert", arr, axis, (values, obj))
    inserted, n = _cast_to_stored("insert", values, x), x.shape[d]
    positions = _positions_along("insert", obj, n, n)
    if positions.ndim > 1:
        raise ShapeError(
            f"insert: positions must be an int or a vector, got shape {positions.shape}"
        )
    count = positions.size
    if count == 1:
        if inserted.ndim > x.ndim:
            raise ShapeError(
                f"insert: values must have at most {x.ndim} dimensions, got shape {inserted.shape}"
            )
        inserted = reshape(inserted, (1,) * (x.ndim - inserted.ndim) + inserted.shape)
        inserted = inserted if positions.ndim else moveaxis(inserted, 0, d)
        count = inserted.shape[d]
    inserted = broadcast_to(inserted, (*x.shape[:d], count, *x.shape[d + 1 :]))
    if positions.size == 1:
        i = int(positions.item())
        return concat([slice_along(x, d, 0, i), inserted, slice_along(x, d, i, n - i)], axis=d)
    new = np.sort(positions) + np.arange(count)
    order = np.zeros(n + count, np.int64)
    order[new] = n + np.argsort(positions, kind="stable")
    order[_complement(new, n + count)] = np.arange(n)
    return take(concat([x, inserted], axis=d), order, axis=d)


@public(out=True, widen=False)
def delete(
    arr: Array, obj: PositionsLike, axis: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a new tensor without the slices of `arr` at some positions along an axis.

    - `arr`: the tensor.
    - `obj`: the positions: an int, several ints, a slice or a mask; the host reads those in a
      tensor.
    - `axis`: one axis; None ravels `arr` first.

    Shapes: arr's, shorter along the axis; a mask has the length of the axis.
    Dtypes: all.
    Raises: OutOfRangeError, ShapeError, DTypeError, AxisError, DeviceError.
    See also: `insert`, `append`, `compress`.

    >>> import dovetail as dt
    >>> dt.delete(dt.asarray([[1, 2, 3], [4, 5, 6]]), 1, axis=1).tolist()
    [[1, 3], [4, 6]]
    """
    x, d = _tensor_and_axis("delete", arr, axis, (obj,))
    n = x.shape[d]
    deleted = np.unique(_positions_along("delete", obj, n, n - 1))
    if deleted.size and deleted[-1] - deleted[0] + 1 == deleted.size:
        cuts = [(int(deleted[0]), int(deleted[-1]) + 1)]
    elif deleted.size <= DELETE_SLICES_MAX:
        cuts = [(i, i + 1) for i in deleted.tolist()]
    else:
        return take(x, _complement(deleted, n), axis=d)
    starts, ends = [0, *[b for _, b in cuts]], [*[a for a, _ in cuts], n]
    pieces = [slice_along(x, d, a, b - a) for a, b in zip(starts, ends, strict=True)]
    return concat(pieces, axis=d)


@public(widen=False)
def trim_zeros(filt: Tensor, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Tensor:
    """Return a view without the zeros at the ends of some axes.

    The host reads the first and the last position of a nonzero element.

    - `filt`: the tensor.
    - `trim`: "f" trims the front, "b" the back, "fb" both.
    - `axis`: an int, a tuple of ints, or None for all axes.

    Shapes: any; an axis becomes shorter, and empty if all elements are 0.
    Dtypes: all.
    Raises: AxisError, ArgumentError for another `trim`, DTypeError.

    >>> import dovetail as dt
    >>> dt.trim_zeros(dt.asarray([0, 0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    requested = trim.lower() if isinstance(trim, str) else trim
    ends = choice("trim_zeros", requested, "trim", ("fb", "bf", "f", "b"))
    axes = lay.axes("trim_zeros", axis, strided("trim_zeros", filt).ndim)
    bounds: list[Tensor] = []
    for d in axes if filt.size else ():
        others = tuple([k for k in range(filt.ndim) if k != d])
        line = cast(any_of(_nonzero_mask(filt), axis=others), int64)
        bounds += [max_of(line), argmax(line), argmax(flip(line))]
    read = np.zeros((len(axes), 3), np.int64)
    if bounds:
        read = np.asarray(read_values("trim_zeros", stack(bounds))).reshape(-1, 3)
    for d, (any_nonzero, front, back) in zip(axes, read.tolist(), strict=True):
        front, back = front * ("f" in ends), back * ("b" in ends)
        length = filt.shape[d] - front - back if any_nonzero else 0
        filt = slice_along(filt, d, front if any_nonzero else 0, length)
    return filt


@public(out=True, widen=False)
def resize(a: Array, new_shape: ShapeLike, *, out: Tensor | None = None) -> Tensor:
    """Return a new tensor of another shape with the elements of `a` in row-major order.

    - `a`: the tensor, which is repeated or truncated to fit; an empty one gives zeros.
    - `new_shape`: an int or a tuple of ints.

    Shapes: any.
    Dtypes: all.
    Gradient: contributions to one element are added.
    Raises: ShapeError, DTypeError.
    See also: `reshape`, `Tensor.resize_`.

    >>> import dovetail as dt
    >>> dt.resize(dt.asarray([1, 2, 3]), (2, 4)).tolist()
    [[1, 2, 3, 1], [2, 3, 1, 2]]
    """
    shape = extents("resize", new_shape)
    x = ravel(strided("resize", a))
    n = math.prod(shape)
    if not x.size or not n:
        return zeros(shape, dtype=x.dtype, device=x.device)
    return apply(ops.COPY, (reshape(_repeat_to("resize", x, n), shape),))


@public(out=True, widen=False)
def block(arrays: Operand, *, out: Tensor | None = None) -> Tensor:
    """Assemble a new tensor from blocks in nested lists.

    The innermost lists are concatenated along the last axis, those around them along the one
    before, and so on. A block with fewer axes than there are lists gets axes of size 1 in front.

    - `arrays`: lists of lists, all of one depth, of tensors, arrays and numbers.

    Shapes: concatenated blocks are equal except along that axis.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, also for lists of different depths; ArgumentError for an empty list or a
    tuple, DTypeError, DeviceError.
    See also: `concat`, `stack`, `linalg.block_diag`.

    >>> import dovetail as dt
    >>> x = dt.ones((2, 2), dtype=dt.int64)
    >>> dt.block([[x, 2 * x], [dt.zeros((1, 3), dtype=dt.int64), 7]]).tolist()
    [[1, 1, 2, 2], [1, 1, 2, 2], [0, 0, 0, 7]]
    """
    leaves: list[object] = []
    depth = _collect_leaves(arrays, 0, leaves)
    tensors = _promote_tensors("block", *leaves)
    ndim = max(depth, *(x.ndim for x in tensors))
    tensors = [reshape(x, (1,) * (ndim - x.ndim) + x.shape) for x in tensors]
    if not depth:
        return apply(ops.COPY, (tensors[0],))
    return _concat_blocks(arrays, ndim - depth, iter(tensors))


# --- selection by a condition ---------------------------------------------------------------------


@public(widen=False)
def compress(condition: Array, a: Array, axis: int | None = None) -> Tensor:
    """Return the slices of `a` along an axis for which a condition holds.

    The host reads the number of slices.

    - `condition`: a vector, which holds where it is not zero; it may be shorter than the axis.
    - `a`: the tensor.
    - `axis`: one axis; None ravels `a` first.

    Shapes: a's, with another size along the axis.
    Dtypes: all.
    Gradient: flows only to the chosen slices.
    Raises: OutOfRangeError if it holds beyond the axis, ShapeError unless it is a vector,
    AxisError, DTypeError, DeviceError.
    See also: `extract`, `masked_select`, `take`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4], [5, 6]])
    >>> dt.compress([False, True], x, axis=0).tolist()
    [[3, 4]]
    """
    condition_tensor, x = as_tensors("compress", condition, a)
    if condition_tensor.ndim != 1:
        raise ShapeError(
            f"compress: condition must be a vector, got shape {condition_tensor.shape}"
        )
    x, d = _tensor_and_axis("compress", x, axis, ())
    return _compress_along("compress", _nonzero_mask(condition_tensor), x, d)


@public(widen=False)
def extract(condition: Array, arr: Array) -> Tensor:
    """Return the elements of `arr` for which a condition holds, in row-major order.

    The host reads the number of elements.

    - `condition`: as many elements as `arr` or fewer; it holds where it is not zero.
    - `arr`: a tensor, or an array if the condition is a tensor.

    Shapes: any; both are raveled. The result is a vector.
    Dtypes: all; the result has arr's.
    Gradient: flows only to the chosen elements.
    Raises: OutOfRangeError if the condition holds beyond `arr`, DTypeError, DeviceError.
    See also: `compress`, `place`, `masked_select`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]])
    >>> dt.extract(x % 2 == 0, x).tolist()
    [2, 4]
    """
    condition_tensor, x = as_tensors("extract", condition, arr)
    return _compress_along(
        "extract", _nonzero_mask(ravel(condition_tensor)), ravel(strided("extract", x)), 0
    )


@public(widen=False)
def flatnonzero(a: Tensor) -> Tensor:
    """Return the positions of the nonzero elements of the raveled tensor.

    NaN is not zero. The host reads their number, once.

    - `a`: the tensor.

    Shapes: any; the result is a vector.
    Dtypes: all; gives int64.
    Raises: DTypeError unless it is a tensor.
    See also: `nonzero`, `argwhere`.

    >>> import dovetail as dt
    >>> dt.flatnonzero(dt.asarray([[0, 3], [4, 0]])).tolist()
    [1, 2]
    """
    return nonzero(ravel(strided("flatnonzero", a)))[0]


# --- in place -------------------------------------------------------------------------------------


@public(widen=False)
def fill_diagonal(a: Tensor, val: Operand, wrap: bool = False) -> None:
    """Write `val` to the main diagonal of `a`, in place.

    - `a`: the tensor to write.
    - `val`: a number, or as many elements as the diagonal, or fewer that are repeated.
    - `wrap`: True continues the diagonal of a matrix with more rows than columns below its end,
      after one skipped row.

    Shapes: a matrix; or more axes, all of one length.
    Dtypes: `val` is cast to a's if that loses no kind of number.
    Raises: ShapeError, also for no elements; DTypeError, ReadOnlyError, GradientError for a leaf
    that requires one, ArgumentTypeError unless `wrap` is a flag.

    >>> import dovetail as dt
    >>> x = dt.zeros((3, 3), dtype=dt.int64)
    >>> dt.fill_diagonal(x, [1, 2])
    >>> x.tolist()
    [[1, 0, 0], [0, 2, 0], [0, 0, 1]]
    """
    e = strided("fill_diagonal", a)._expr
    require_not_broadcast("fill_diagonal", e)  # the diagonal itself may have distinct elements
    shape = e.spec.shape
    wrap = flag("fill_diagonal", wrap, "wrap")
    if len(shape) < 2 or (len(shape) > 2 and len({*shape}) > 1):
        raise ShapeError(f"fill_diagonal: expected a matrix or equal sizes, got shape {shape}")
    wraps = wrap and len(shape) == 2 and shape[0] > shape[1] + 1 and shape[1] > 0
    count = -(-math.prod(shape) // (shape[1] + 1)) if wraps else min(shape)
    if isinstance(val, (*ARRAY_TYPES, Tensor)):
        values = as_operand("fill_diagonal", val, (a,)) if not isinstance(val, Tensor) else val
        val = _repeat_to("fill_diagonal", ravel(strided("fill_diagonal", values)), count)
    if wraps:
        at = np.arange(count) * (shape[1] + 1)
        setitem(a, (at // shape[1], at % shape[1]), val)
        return
    diagonal_view = a
    for _ in shape[1:]:
        diagonal_view = diagonal(diagonal_view)
    write_value("fill_diagonal", diagonal_view, val)


@public(widen=False)
def place(arr: Tensor, mask: Array, vals: Operand) -> None:
    """Overwrite the elements of `arr` under a mask with consecutive values.

    The host reads the number of true positions unless there is one value.

    - `arr`: the tensor to write.
    - `mask`: true where it is not zero.
    - `vals`: a number, or one element for each true position, or fewer that are repeated.

    Shapes: `mask` has as many elements as `arr`.
    Dtypes: `vals` are cast to arr's if that loses no kind of number.
    Raises: ShapeError, also for no values; DTypeError, DeviceError, ReadOnlyError, GradientError
    for a leaf that requires one.
    See also: `putmask`, `masked_fill`, `extract`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, -2, 3, -4])
    >>> dt.place(x, x < 0, [7, 8])
    >>> x.tolist()
    [1, 7, 3, 8]
    """
    chosen = _mask_like("place", mask, arr)
    if isinstance(vals, ARRAY_TYPES):
        vals = as_operand("place", vals, (arr,))
    if isinstance(vals, Tensor) and strided("place", vals).size != 1:
        (positions,) = nonzero(ravel(chosen))
        if positions.size:
            put(arr, positions, _repeat_to("place", ravel(vals), positions.size))
        return
    one = reshape(vals, ()) if isinstance(vals, Tensor) else vals
    write_result(
        "place", arr, [apply(ops.WHERE, (chosen, _cast_to_stored("place", one, arr), arr))]
    )


@public(widen=False)
def putmask(a: Tensor, mask: Array, values: Operand) -> None:
    """Overwrite the elements of `a` under a mask with the values at their positions.

    - `a`: the tensor to write.
    - `mask`: true where it is not zero.
    - `values`: a number, or as many elements as `a` has, or fewer that are repeated: one for each
      position, true or not. Empty values write nothing.

    Shapes: `mask` has as many elements as `a`.
    Dtypes: `values` are cast to a's if that loses no kind of number.
    Raises: ShapeError, DTypeError, DeviceError, ReadOnlyError, GradientError for a leaf that
    requires one.
    See also: `place`, `copyto`, `masked_fill`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, -2, 3, -4])
    >>> dt.putmask(x, x < 0, [7, 8])
    >>> x.tolist()
    [1, 8, 3, 8]
    """
    chosen = _mask_like("putmask", mask, a)
    new_values = ravel(_cast_to_stored("putmask", values, a))
    if not new_values.size or not a.size:
        return
    if new_values.size > 1:
        new_values = reshape(_repeat_to("putmask", new_values, a.size), a.shape)
    write_result("putmask", a, [apply(ops.WHERE, (chosen, new_values, a))])


@public(widen=False)
def copyto(dst: Tensor, src: Operand, *, where: Array | bool = True) -> None:
    """Write `src` into `dst`.

    - `dst`: the tensor to write.
    - `src`: a tensor, an array, a list or a number.
    - `where`: a tensor of bool; where it is not true `dst` stays as it is.

    Shapes: `src` and `where` are broadcast to dst's.
    Dtypes: `src` is cast to dst's if that loses no kind of number.
    Raises: ShapeError, DTypeError, DeviceError, ReadOnlyError, GradientError for a leaf that
    requires one.
    See also: `Tensor.copy_`, `putmask`, `where`.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 2))
    >>> dt.copyto(x, [1, 2], where=[[True], [False]])
    >>> x.tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """
    strided("copyto", dst)
    if isinstance(where, (bool, np.bool_)):
        if where:
            write_value("copyto", dst, src)
        return
    chosen = where if isinstance(where, Tensor) else as_operand("copyto", where, (dst,))
    if chosen.dtype is not bool_:
        raise DTypeError(f"copyto: where must be bool, got {chosen.dtype.name}; use where != 0")
    new_values = broadcast_to(_cast_to_stored("copyto", src, dst), dst.shape)
    written = apply(ops.WHERE, (broadcast_to(chosen, dst.shape), new_values, dst))
    write_result("copyto", dst, [written])


# --- operands -------------------------------------------------------------------------------------


def _promote_tensors(op: str, *args: object) -> list[Tensor]:
    """Return all operands as strided tensors on one device, in their promoted dtype."""
    return [strided(op, x) for x in promote_operands(op, *args)]


def _tensor_and_axis(
    op: str, arr: object, axis: int | None, tensors: Sequence[object]
) -> tuple[Tensor, int]:
    """Return an operand as a tensor, and its axis; without an axis it is raveled."""
    x = strided(op, as_operand(op, arr, tensors) if isinstance(arr, ARRAY_TYPES) else arr)
    return (ravel(x), 0) if axis is None else (x, lay.axis(op, axis, x.ndim))


def _cast_to_stored(op: str, value: object, x: Tensor) -> Tensor:
    """Return a value in x's dtype. Raises: DTypeError for a cast that loses a kind of number."""
    e = value_node(op, value, x.dtype, x.device)
    cast_expr = cast_to_spec(op, e, spec(e.spec.shape, x.dtype, x.device))
    return (
        value
        if isinstance(value, Tensor) and cast_expr is value._expr
        else create_tensor(cast_expr)
    )


def _repeat_to(op: str, values: Tensor, n: int) -> Tensor:
    """Return the first `n` elements of a repeated vector. Raises: ShapeError for an empty one."""
    if values.size == n:
        return values
    if not values.size:
        raise ShapeError(f"{op}: expected at least one value for {n} positions, got none")
    rounds = -(-n // values.size)
    wide = reshape(broadcast_to(values, (rounds, values.size)), (-1,))
    return slice_along(wide, 0, 0, n)


def _positions_along(op: str, obj: object, n: int, last: int) -> np.ndarray:
    """Read positions on an axis of size `n` on the host; return them in 0..last.

    Raises: OutOfRangeError, ShapeError, DTypeError.
    """
    if isinstance(obj, slice):
        check_parts((obj,))
        return np.arange(*obj.indices(n))
    if obj is None:
        raise refused(op, "obj", "an int, a slice or a list of ints", obj)
    array = obj if isinstance(obj, Tensor) else array_of(op, obj)
    if array.ndim == 1 and array.dtype in (bool_, np.bool_):
        if array.shape[0] != n:
            raise ShapeError(
                f"{op}: a mask must have the size {n} of the axis, got {array.shape[0]} elements"
            )
        return np.flatnonzero(read_values(op, array))
    positions = np.asarray(read_values(op, index_array(op, obj)))
    low, high = (int(positions.min()), int(positions.max())) if positions.size else (0, 0)
    if low < -n or (high > last and positions.size):
        wrong = low if low < -n else high
        raise OutOfRangeError(
            f"{op}: position {wrong} is out of range for an axis of size {n} (allowed: "
            f"-{n}..{last})"
        )
    positions = positions.astype(np.int64)
    return np.where(positions < 0, positions + n, positions)


def _complement(positions: np.ndarray, n: int) -> np.ndarray:
    """Return the positions below `n` that are not in the array."""
    is_other = np.ones(n, np.bool_)
    is_other[positions] = False
    return np.flatnonzero(is_other)


# --- masks ----------------------------------------------------------------------------------------


def _nonzero_mask(x: Tensor) -> Tensor:
    """Return True where an element is nonzero; a bool tensor unchanged."""
    return x if x.dtype is bool_ else apply(ops.NOT_EQUAL, (x, 0))


def _mask_like(op: str, mask: object, x: Tensor) -> Tensor:
    """Return a mask as a tensor of bool in x's shape. Raises: ShapeError for another size."""
    strided(op, x)
    mask_tensor = strided(op, mask if isinstance(mask, Tensor) else as_operand(op, mask, (x,)))
    if mask_tensor.size != x.size:
        raise ShapeError(
            f"{op}: the mask must have {x.size} elements, as shape {x.shape}, "
            f"got shape {mask_tensor.shape}"
        )
    return reshape(_nonzero_mask(mask_tensor), x.shape)


def _compress_along(op: str, mask: Tensor, x: Tensor, d: int) -> Tensor:
    """Return the slices along an axis where a bool vector is true; the host reads their number."""
    n = x.shape[d]
    if mask.size > n:
        if any_of(slice_along(mask, 0, n, mask.size - n)):
            raise OutOfRangeError(
                f"{op}: a condition of {mask.size} elements is true beyond axis {d} of shape "
                f"{x.shape}"
            )
        mask = slice_along(mask, 0, 0, n)
    return getitem(slice_along(x, d, 0, mask.size), (*[slice(None)] * d, mask))


# --- blocks ---------------------------------------------------------------------------------------


def _collect_leaves(arrays: object, level: int, leaves: list[object]) -> int:
    """Append the elements of nested lists to `leaves`, and return the depth of the lists."""
    if isinstance(arrays, tuple):
        raise refused("block", "arrays", "nested lists, not tuples", arrays)
    if not isinstance(arrays, list):
        leaves.append(arrays)
        return level
    if not arrays or level == DIMENSIONS:
        what = "an empty list" if not arrays else f"more than {DIMENSIONS} levels"
        raise ArgumentError(
            f"block: arrays must be nested lists with at most {DIMENSIONS} levels, got {what}"
        )
    depths = {_collect_leaves(part, level + 1, leaves) for part in arrays}
    if len(depths) > 1:
        raise ShapeError(
            f"block: lists must have equal depths, got {shown(sorted(depths))}; "
            "wrap the shallower elements in lists"
        )
    return depths.pop()


def _concat_blocks(arrays: object, axis: int, blocks: Iterator[Tensor]) -> Tensor:
    """Return nested lists joined, each level along its axis; take elements from `blocks`."""
    if not isinstance(arrays, list):
        return next(blocks)
    return concat([_concat_blocks(part, axis + 1, blocks) for part in arrays], axis=axis)
