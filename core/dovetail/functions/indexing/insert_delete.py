"""Elements put in, taken out and overwritten, as NumPy's `insert`, `delete` and `putmask` do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ... import layout as lay
from ...arguments import DIMENSIONS, choice, flag, named, refused, shown
from ...dtypes import bool_, int64
from ...errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from ...graph.expr import spec
from ...ops import table as ops
from ...tensor.host import values_of
from ...tensor.operands import ARRAYS, Array, Operand, beside, brought
from ...tensor.tensor import Tensor, make, strided
from ...tensor.verbs import apply, slice_along
from ...tensor.writes import array_of, to_spec, value_node, write_result, write_value
from ..creation.constructors import ShapeLike, extents, zeros
from ..datatypes import cast, meet
from ..reductions.statistics import any as any_of
from ..reductions.statistics import argmax
from ..reductions.statistics import max as max_of
from ..shape.copies import concat, stack
from ..shape.manipulation import broadcast_to, diagonal, flip, moveaxis, ravel, reshape
from ..variants import into
from .index_keys import check_parts, index_array
from .index_reads import getitem, take
from .index_writes import setitem
from .masks import nonzero
from .selection import put

__all__ = [
    "append", "block", "compress", "copyto", "delete", "extract", "fill_diagonal", "flatnonzero",
    "insert", "place", "putmask", "resize", "trim_zeros",
]  # fmt: skip

Places = int | slice | Array  # of slices along an axis
FEW = 4  # slices that are taken out one by one: what is left is joined, not gathered


# --- more elements, or fewer ----------------------------------------------------------------------


@into(widen=False)
def append(
    arr: Operand, values: Operand, axis: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A new tensor with the elements of `arr`, then those of `values`.

    `arr`, `values`: tensors, of which one may be an array, a list or a number. `axis`: along which
    one follows the other; None ravels both first.
    Shapes: any; with an axis alike but along it.
    Dtypes: all; the result has the promoted one, and a number the other's.
    Raises: ShapeError, DTypeError, AxisError, DeviceError.

    >>> import dovetail as dt
    >>> dt.append(dt.asarray([[1, 2]], device="reference"), [[3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    return concat(_tensors("append", arr, values), axis=axis)


@into(widen=False)
def insert(
    arr: Array, obj: Places, values: Operand, axis: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A new tensor with `values` put in before some places of `arr` along an axis.

    `obj`: the places, in `arr` as it is: an int, several of them, a slice or a mask; those in a
    tensor are read by the host. `values`: one slice for each place, or several for a single place,
    broadcast. `axis`: None ravels `arr` first.
    Shapes: arr's, longer along the axis.
    Dtypes: all; `values` are cast to arr's where that loses no kind of number.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, DeviceError.

    >>> import dovetail as dt
    >>> dt.insert(dt.asarray([1, 2, 3], device="reference"), [0, 2], [7, 8]).tolist()
    [7, 1, 2, 8, 3]
    """
    x, d = _along("insert", arr, axis, (values, obj))
    found, n = _stored("insert", values, x), x.shape[d]
    at = _places("insert", obj, n, n)
    if at.ndim > 1:
        raise ShapeError(f"insert: places of shape {at.shape}: a vector of them at most")
    count = at.size
    if count == 1:
        if found.ndim > x.ndim:
            raise ShapeError(f"insert: values of shape {found.shape} for shape {x.shape}")
        found = reshape(found, (1,) * (x.ndim - found.ndim) + found.shape)
        found = found if at.ndim else moveaxis(found, 0, d)
        count = found.shape[d]
    found = broadcast_to(found, (*x.shape[:d], count, *x.shape[d + 1 :]))
    if at.size == 1:
        i = int(at.item())
        return concat([slice_along(x, d, 0, i), found, slice_along(x, d, i, n - i)], axis=d)
    new = np.sort(at) + np.arange(count)
    order = np.zeros(n + count, np.int64)
    order[new] = n + np.argsort(at, kind="stable")
    order[_others(new, n + count)] = np.arange(n)
    return take(concat([x, found], axis=d), order, axis=d)


@into(widen=False)
def delete(
    arr: Array, obj: Places, axis: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A new tensor without the slices of `arr` at some places along an axis.

    `obj`: the places: an int, several of them, a slice or a mask; those in a tensor are read by the
    host. `axis`: None ravels `arr` first.
    Shapes: arr's, shorter along the axis; a mask is as long as that.
    Dtypes: all.
    Raises: IndexOutOfRange, ShapeError, DTypeError, AxisError, DeviceError.

    >>> import dovetail as dt
    >>> dt.delete(dt.asarray([[1, 2, 3], [4, 5, 6]], device="reference"), 1, axis=1).tolist()
    [[1, 3], [4, 6]]
    """
    x, d = _along("delete", arr, axis, (obj,))
    n = x.shape[d]
    gone = np.unique(_places("delete", obj, n, n - 1))
    if gone.size and gone[-1] - gone[0] + 1 == gone.size:
        cuts = [(int(gone[0]), int(gone[-1]) + 1)]
    elif gone.size <= FEW:
        cuts = [(i, i + 1) for i in gone.tolist()]
    else:
        return take(x, _others(gone, n), axis=d)
    starts, ends = [0, *[b for _, b in cuts]], [*[a for a, _ in cuts], n]
    parts = [slice_along(x, d, a, b - a) for a, b in zip(starts, ends, strict=True)]
    return concat(parts, axis=d)


@named(widen=False)
def trim_zeros(filt: Tensor, trim: str = "fb") -> Tensor:
    """A view of a vector without the zeros at its ends.

    `filt`: the vector. `trim`: "f" looks at the front, "b" at the back, "fb" at both. Where the
    others begin and end is read by the host.
    Shapes: (n,).
    Dtypes: all.
    Raises: ShapeError for other than vectors, ArgumentError for another `trim`, DTypeError.

    >>> import dovetail as dt
    >>> dt.trim_zeros(dt.asarray([0, 0, 1, 0, 2, 0], device="reference")).tolist()
    [1, 0, 2]
    """
    given = trim.lower() if isinstance(trim, str) else trim
    ends = choice("trim_zeros", given, "trim", ("fb", "bf", "f", "b"))
    n = strided("trim_zeros", filt).size
    if filt.ndim != 1:
        raise ShapeError(f"trim_zeros: needs a vector, not shape {filt.shape}; see dt.ravel")
    if not n:
        return filt
    some = cast(_mask(filt), int64)
    asked = stack([max_of(some), argmax(some), argmax(flip(some))])
    found, front, back = np.asarray(values_of("trim_zeros", asked)).tolist()
    if not found:
        return slice_along(filt, 0, 0, 0)
    front, back = front * ("f" in ends), back * ("b" in ends)
    return slice_along(filt, 0, front, n - front - back)


@into(widen=False)
def resize(a: Array, new_shape: ShapeLike, *, out: Tensor | None = None) -> Tensor:
    """A new tensor of another shape with the elements of `a` in row-major order.

    `a` is repeated as often as there is room, and cut off where there is none; of nothing zeros are
    made. `new_shape`: an int or a tuple of ints.
    Shapes: any.
    Dtypes: all.
    Gradient: parts for one element are added.
    Raises: ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.resize(dt.asarray([1, 2, 3], device="reference"), (2, 4)).tolist()
    [[1, 2, 3, 1], [2, 3, 1, 2]]
    """
    shape = extents("resize", new_shape)
    x = ravel(strided("resize", a))
    n = math.prod(shape)
    if not x.size or not n:
        return zeros(shape, dtype=x.dtype, device=x.device)
    return apply(ops.COPY, (reshape(_repeated("resize", x, n), shape),))


@into(widen=False)
def block(arrays: Operand, *, out: Tensor | None = None) -> Tensor:
    """A new tensor made of blocks, which stand in nested lists as they stand in the tensor.

    `arrays`: lists of lists, all as deep, of tensors, arrays and numbers. The innermost lists are
    joined along the last axis, those around them along the one before, and so on; what has fewer
    axes than there are lists gets axes of size 1 in front.
    Shapes: those that are joined are alike but along that axis.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, also for lists that are not as deep; ArgumentError for an empty list or a
    tuple, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.ones((2, 2), dtype=dt.int64, device="reference")
    >>> dt.block([[x, 2 * x], [dt.zeros((1, 3), dtype=dt.int64, device="reference"), 7]]).tolist()
    [[1, 1, 2, 2], [1, 1, 2, 2], [0, 0, 0, 7]]
    """
    leaves: list[object] = []
    depth = _gather_blocks(arrays, 0, leaves)
    found = _tensors("block", *leaves)
    ndim = max(depth, *(x.ndim for x in found))
    found = [reshape(x, (1,) * (ndim - x.ndim) + x.shape) for x in found]
    if not depth:
        return apply(ops.COPY, (found[0],))
    return _joined(arrays, ndim - depth, iter(found))


# --- what a condition chooses ---------------------------------------------------------------------


@named(widen=False)
def compress(condition: Array, a: Array, axis: int | None = None) -> Tensor:
    """A new tensor of the slices of `a` along an axis for which a condition holds.

    `condition`: a vector, which holds where it is not zero; it does not where it ends before the
    axis. `axis`: None ravels `a` first. How many slices there are is read by the host.
    Shapes: a's, with another size along the axis.
    Dtypes: all.
    Gradient: flows to what is chosen only.
    Raises: IndexOutOfRange where it holds beyond the axis, ShapeError for other than a vector,
    AxisError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4], [5, 6]], device="reference")
    >>> dt.compress([False, True], x, axis=0).tolist()
    [[3, 4]]
    """
    given, x = brought("compress", condition, a)
    if given.ndim != 1:
        raise ShapeError(f"compress: the condition is a vector, not of shape {given.shape}")
    x, d = _along("compress", x, axis, ())
    return _compressed("compress", _mask(given), x, d)


@named(widen=False)
def extract(condition: Array, arr: Array) -> Tensor:
    """A vector of the elements of `arr` for which a condition holds, in row-major order.

    `condition`: of as many elements, or fewer; it holds where it is not zero. `arr`: a tensor, or
    an array if the condition is one. How many there are is read by the host.
    Shapes: any; both are raveled.
    Dtypes: all; the result has arr's.
    Gradient: flows to what is chosen only.
    Raises: IndexOutOfRange where the condition holds beyond, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> dt.extract(x % 2 == 0, x).tolist()
    [2, 4]
    """
    given, x = brought("extract", condition, arr)
    return _compressed("extract", _mask(ravel(given)), ravel(strided("extract", x)), 0)


@named(widen=False)
def flatnonzero(a: Tensor) -> Tensor:
    """The positions of the elements that are not zero, in row-major order.

    `a`: the tensor. NaN is not zero. How many there are is read by the host, once.
    Shapes: any; the result is a vector.
    Dtypes: all; gives int64.
    Raises: DTypeError for what is no tensor.

    >>> import dovetail as dt
    >>> dt.flatnonzero(dt.asarray([[0, 3], [4, 0]], device="reference")).tolist()
    [1, 2]
    """
    return nonzero(ravel(strided("flatnonzero", a)))[0]


# --- in place -------------------------------------------------------------------------------------


@named(widen=False)
def fill_diagonal(a: Tensor, val: Operand, wrap: bool = False) -> None:
    """None, after the main diagonal of `a` has been overwritten.

    `a`: the tensor, which is written. `val`: a number, or as many elements, or fewer that are
    repeated. `wrap`: whether the diagonal of a matrix of more rows than columns goes on below, with
    a row left out in between.
    Shapes: a matrix; or more axes, all as long.
    Dtypes: `val` is cast to a's where that loses no kind of number.
    Raises: ShapeError, also for no elements; DTypeError, ReadOnlyError, GradientError for a leaf
    that requires one, ArgumentTypeError where `wrap` is no flag.

    >>> import dovetail as dt
    >>> x = dt.zeros((3, 3), dtype=dt.int64, device="reference")
    >>> dt.fill_diagonal(x, [1, 2])
    >>> x.tolist()
    [[1, 0, 0], [0, 2, 0], [0, 0, 1]]
    """
    shape = strided("fill_diagonal", a).shape
    wrap = flag("fill_diagonal", wrap, "wrap")
    if len(shape) < 2 or (len(shape) > 2 and len({*shape}) > 1):
        raise ShapeError(f"fill_diagonal: needs a matrix, or axes of one length, not shape {shape}")
    wraps = wrap and len(shape) == 2 and shape[0] > shape[1] + 1 and shape[1] > 0
    count = -(-math.prod(shape) // (shape[1] + 1)) if wraps else min(shape)
    if isinstance(val, (*ARRAYS, Tensor)):
        found = beside("fill_diagonal", val, (a,)) if not isinstance(val, Tensor) else val
        val = _repeated("fill_diagonal", ravel(strided("fill_diagonal", found)), count)
    if wraps:
        at = np.arange(count) * (shape[1] + 1)
        setitem(a, (at // shape[1], at % shape[1]), val)
        return
    seen = a
    for _ in shape[1:]:
        seen = diagonal(seen)
    write_value("fill_diagonal", seen, val)


@named(widen=False)
def place(arr: Tensor, mask: Array, vals: Operand) -> None:
    """None, after the elements of `arr` under a mask have been overwritten, one after the other.

    `arr`: the tensor, which is written. `mask`: true where it is not zero. `vals`: a number, or one
    element for each that is true, or fewer that are repeated; how many are true is read by the host
    unless there is one value.
    Shapes: `mask` has as many elements as `arr`.
    Dtypes: `vals` are cast to arr's where that loses no kind of number.
    Raises: ShapeError, also for no values; DTypeError, DeviceError, ReadOnlyError, GradientError
    for a leaf that requires one.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, -2, 3, -4], device="reference")
    >>> dt.place(x, x < 0, [7, 8])
    >>> x.tolist()
    [1, 7, 3, 8]
    """
    chosen = _mask_of("place", mask, arr)
    if isinstance(vals, ARRAYS):
        vals = beside("place", vals, (arr,))
    if isinstance(vals, Tensor) and strided("place", vals).size != 1:
        (at,) = nonzero(ravel(chosen))
        if at.size:
            put(arr, at, _repeated("place", ravel(vals), at.size))
        return
    one = reshape(vals, ()) if isinstance(vals, Tensor) else vals
    write_result("place", arr, [apply(ops.WHERE, (chosen, _stored("place", one, arr), arr))])


@named(widen=False)
def putmask(a: Tensor, mask: Array, values: Operand) -> None:
    """None, after the elements of `a` under a mask have been overwritten with those of `values`.

    `a`: the tensor, which is written. `mask`: true where it is not zero. `values`: a number, or as
    many elements as `a` has, or fewer that are repeated: each element has its own, whether it is
    true or not. Without values nothing is written.
    Shapes: `mask` has as many elements as `a`.
    Dtypes: `values` are cast to a's where that loses no kind of number.
    Raises: ShapeError, DTypeError, DeviceError, ReadOnlyError, GradientError for a leaf that
    requires one.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, -2, 3, -4], device="reference")
    >>> dt.putmask(x, x < 0, [7, 8])
    >>> x.tolist()
    [1, 8, 3, 8]
    """
    chosen = _mask_of("putmask", mask, a)
    found = ravel(_stored("putmask", values, a))
    if not found.size or not a.size:
        return
    if found.size > 1:
        found = reshape(_repeated("putmask", found, a.size), a.shape)
    write_result("putmask", a, [apply(ops.WHERE, (chosen, found, a))])


@named(widen=False)
def copyto(dst: Tensor, src: Operand, *, where: Array | bool = True) -> None:
    """None, after `src` has been written into `dst`.

    `dst`: the tensor, which is written. `src`: a tensor, an array, a list or a number. `where`: a
    tensor of bool; where it is not true `dst` stays as it is.
    Shapes: `src` and `where` are broadcast to dst's.
    Dtypes: `src` is cast to dst's where that loses no kind of number.
    Raises: ShapeError, DTypeError, DeviceError, ReadOnlyError, GradientError for a leaf that
    requires one.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 2), device="reference")
    >>> dt.copyto(x, [1, 2], where=[[True], [False]])
    >>> x.tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """
    strided("copyto", dst)
    if isinstance(where, (bool, np.bool_)):
        if where:
            write_value("copyto", dst, src)
        return
    chosen = where if isinstance(where, Tensor) else beside("copyto", where, (dst,))
    if chosen.dtype is not bool_:
        raise DTypeError(f"copyto: where is of bool, not {chosen.dtype.name}; see where != 0")
    found = broadcast_to(_stored("copyto", src, dst), dst.shape)
    made = apply(ops.WHERE, (broadcast_to(chosen, dst.shape), found, dst))
    write_result("copyto", dst, [made])


# --- operands -------------------------------------------------------------------------------------


def _tensors(op: str, *given: object) -> list[Tensor]:
    """All of them on the device of the tensors, and in the dtype of the result."""
    return [strided(op, x) for x in meet(op, *given)]


def _along(op: str, arr: object, axis: int | None, among: Sequence[object]) -> tuple[Tensor, int]:
    """A tensor, or an array beside one, and the axis; without one it is raveled."""
    x = strided(op, beside(op, arr, among) if isinstance(arr, ARRAYS) else arr)
    return (ravel(x), 0) if axis is None else (x, lay.axis(op, axis, x.ndim))


def _stored(op: str, value: object, x: Tensor) -> Tensor:
    """A value as it is stored in `x`: cast to its dtype, where that loses no kind of number."""
    e = value_node(op, value, x.dtype, x.device)
    kept = to_spec(op, e, spec(e.spec.shape, x.dtype, x.device))
    return value if isinstance(value, Tensor) and kept is value._expr else make(kept)


def _repeated(op: str, values: Tensor, n: int) -> Tensor:
    """The first `n` of a vector that is repeated."""
    if values.size == n:
        return values
    if not values.size:
        raise ShapeError(f"{op}: no values for {n} places; give one at least")
    rounds = -(-n // values.size)
    wide = reshape(broadcast_to(values, (rounds, values.size)), (-1,))
    return slice_along(wide, 0, 0, n)


def _places(op: str, obj: object, n: int, last: int) -> np.ndarray:
    """Places along an axis of size `n`, none of them negative, up to `last`.

    Raises: IndexOutOfRange, ShapeError, DTypeError.
    """
    if isinstance(obj, slice):
        check_parts((obj,))
        return np.arange(*obj.indices(n))
    if obj is None:
        raise refused(op, "obj", "an int, a slice, or several places", obj)
    given = obj if isinstance(obj, Tensor) else array_of(op, obj)
    if given.ndim == 1 and given.dtype in (bool_, np.bool_):
        if given.shape[0] != n:
            raise ShapeError(f"{op}: a mask of {given.shape[0]} elements for an axis of size {n}")
        return np.flatnonzero(values_of(op, given))
    at = np.asarray(values_of(op, index_array(op, obj)))
    low, high = (int(at.min()), int(at.max())) if at.size else (0, 0)
    if low < -n or (high > last and at.size):
        wrong = low if low < -n else high
        raise IndexOutOfRange(f"{op}: place {wrong} for an axis of size {n}; see -{n}..{last}")
    at = at.astype(np.int64)
    return np.where(at < 0, at + n, at)


def _others(at: np.ndarray, n: int) -> np.ndarray:
    """The places up to `n` that are not these."""
    left = np.ones(n, np.bool_)
    left[at] = False
    return np.flatnonzero(left)


# --- masks ----------------------------------------------------------------------------------------


def _mask(x: Tensor) -> Tensor:
    return x if x.dtype is bool_ else apply(ops.NOT_EQUAL, (x, 0))


def _mask_of(op: str, mask: object, x: Tensor) -> Tensor:
    """A mask, of the shape of the tensor that is written under it."""
    strided(op, x)
    found = strided(op, mask if isinstance(mask, Tensor) else beside(op, mask, (x,)))
    if found.size != x.size:
        raise ShapeError(f"{op}: a mask of shape {found.shape} for shape {x.shape}: as many")
    return reshape(_mask(found), x.shape)


def _compressed(op: str, mask: Tensor, x: Tensor, d: int) -> Tensor:
    """The slices along an axis for which a vector of bool is true."""
    n = x.shape[d]
    if mask.size > n:
        if any_of(slice_along(mask, 0, n, mask.size - n)):
            raise IndexOutOfRange(
                f"{op}: a condition of {mask.size} elements holds beyond axis {d} of shape "
                f"{x.shape}"
            )
        mask = slice_along(mask, 0, 0, n)
    return getitem(slice_along(x, d, 0, mask.size), (*[slice(None)] * d, mask))


# --- blocks ---------------------------------------------------------------------------------------


def _gather_blocks(arrays: object, level: int, leaves: list[object]) -> int:
    """How deep lists are nested, after what they hold has been put into `leaves`."""
    if isinstance(arrays, tuple):
        raise refused("block", "arrays", "lists of lists, not of tuples", arrays)
    if not isinstance(arrays, list):
        leaves.append(arrays)
        return level
    if not arrays or level == DIMENSIONS:
        what = "an empty list" if not arrays else f"more than {DIMENSIONS} lists in each other"
        raise ArgumentError(f"block: arrays has {what}")
    depths = {_gather_blocks(part, level + 1, leaves) for part in arrays}
    if len(depths) > 1:
        raise ShapeError(
            f"block: lists are nested {shown(sorted(depths))} deep; put what is less deep in lists"
        )
    return depths.pop()


def _joined(arrays: object, axis: int, blocks: Iterator[Tensor]) -> Tensor:
    if not isinstance(arrays, list):
        return next(blocks)
    return concat([_joined(part, axis + 1, blocks) for part in arrays], axis=axis)
