"""Sums and products of arrays in chunks, whose bits do not depend on the chunks.

Dask or Cubed holds the array and plans the work; its chunks are tensors or NumPy arrays. Each
function returns an array of the same library, and nothing is read before that array is computed.
The result has the bits of dovetail's function of the whole array, because chunks are reduced in
whole blocks of the canonical order: 4096 elements of a sum, 256 of a product. If a chunk ends
within a block, the array is rechunked, and a DovetailWarning names chunks that avoid it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import (
    CHUNK,
    PRODUCT_BLOCK,
    PRODUCT_BLOCKS,
    arguments,
    broadcast_shapes,
    publish_all,
    warn_user,
)
from dovetail.extend import axis as find_axis

__all__ = ["matmul", "mean", "prod", "std", "sum", "var", "vecdot", "vector_norm"]

Array: TypeAlias = Any
"""An array of Dask or Cubed. Neither library is imported before its arrays are passed."""
Axis: TypeAlias = int | Sequence[int] | None
Chunk: TypeAlias = Any
Function: TypeAlias = Callable[..., dt.Tensor]
CHUNK_ELEMENTS_MIN = 1 << 18  # chunks of fewer elements are merged without splitting other axes
GROUP = PRODUCT_BLOCK * PRODUCT_BLOCKS


def __dir__() -> list[str]:
    return __all__


def sum(x: Array, /, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the sum over `axis`, with the bits of `dt.sum` of the whole array.

    - `x`: an array of Dask or Cubed.
    - `axis`: an int, a tuple of different ints, or None for all axes.
    - `dtype`: the elements are cast to it first. Default: int64 or uint64 for integers and bool,
      else the dtype of `x`.
    - `keepdims`: keep the axes with size 1.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all, as for `dt.sum`.
    Chunks: kept if each border along the first reduced axis is a multiple of 4096 elements of the
    reduced axes, in row-major order, and the other reduced axes have one chunk. Others are
    rechunked with a DovetailWarning.
    Raises: ArgumentTypeError for an array of another library, ArgumentError for chunks of unknown
    sizes, AxisError, DTypeError.
    See also: `mean`, `dt.sum`.

    >>> import dask.array as da, dovetail as dt, numpy as np
    >>> x = np.random.default_rng(0).normal(size=10_000).astype("f4")
    >>> total = dt.chunked.sum(da.from_array(x, chunks=4096)).compute()
    >>> bool(total == dt.sum(dt.asarray(x)).item())
    True
    """
    return _add("sum", dt.sum, x, axis, dtype, keepdims)


def prod(x: Array, /, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the product over `axis`, with the bits of `dt.prod` of the whole array.

    The parameters, chunks and errors are those of `sum`.

    - `x`: an array of Dask or Cubed.
    - `axis`: an int, a tuple of different ints, or None for all axes.
    - `dtype`: the elements are cast to it first. Default: as for `sum`.
    - `keepdims`: keep the axes with size 1.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all, as for `dt.sum`.
    Raises: as `sum`.
    See also: `sum`, `dt.prod`.

    >>> import dask.array as da, dovetail as dt
    >>> dt.chunked.prod(da.arange(1, 6, chunks=5)).compute().item()
    120
    """
    return _add("prod", dt.prod, x, axis, dtype, keepdims)


def _add(op: str, fold: Function, x: Array, axis: Axis, dtype: Any, keepdims: bool) -> Array:
    """Return a reduction that casts its elements first."""
    rows = Rows(op, x, axis, keepdims)
    own = fold(dt.zeros(1, dtype=rows.dtype), dtype=dtype).dtype
    cast = partial(_cast, own, own.compute)
    return rows.reduce(fold, own.compute, own, before=cast)


def mean(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Return the mean over `axis`, with the bits of `dt.mean` of the whole array.

    - `x`: an array of Dask or Cubed.
    - `axis`: an int, a tuple of different ints, or None for all axes.
    - `keepdims`: keep the axes with size 1.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32.
    Chunks: as for `sum`.
    Raises: as `sum`.
    See also: `var`, `dt.mean`.

    >>> import dask.array as da, dovetail as dt
    >>> dt.chunked.mean(da.arange(5, chunks=5)).compute().item()
    2.0
    """
    rows = Rows("mean", x, axis, keepdims)
    own = rows.dtype if rows.dtype.kind in "fc" else dt.float32
    return rows.mean(own, rows.keepdims)


def var(
    x: Array, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Return the variance over `axis`, with the bits of `dt.var` of the whole array.

    The elements are read twice: for the mean, and for the squared distances from it.

    - `x`: an array of Dask or Cubed.
    - `axis`: an int, a tuple of different ints, or None for all axes.
    - `correction`: c in the divisor n - c.
    - `keepdims`: keep the axes with size 1.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32.
    Chunks: as for `sum`.
    Raises: as `sum`; ArgumentError for a `correction` that is not a number.
    See also: `std`, `dt.var`.

    >>> import dask.array as da, dovetail as dt
    >>> dt.chunked.var(da.asarray([1.0, 3.0]), correction=1).compute().item()
    2.0
    """
    return _variance("var", x, axis, correction, keepdims, _divide)


def std(
    x: Array, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Return the standard deviation over `axis`, with the bits of `dt.std` of the whole array.

    - `x`: an array of Dask or Cubed.
    - `axis`: an int, a tuple of different ints, or None for all axes.
    - `correction`: c in the divisor n - c.
    - `keepdims`: keep the axes with size 1.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32.
    Chunks: as for `sum`. The elements are read twice.
    Raises: as `var`.
    See also: `var`, `dt.std`.

    >>> import dask.array as da, dovetail as dt
    >>> dt.chunked.std(da.asarray([1.0, 3.0])).compute().item()
    1.0
    """
    return _variance("std", x, axis, correction, keepdims, _root_of_quotient)


def _variance(
    op: str, x: Array, axis: Axis, correction: float, keepdims: bool, after: Function
) -> Array:
    """Return `after` of the sum of squared distances from the mean and its divisor."""
    correction = arguments.real(op, correction, "correction")
    rows = Rows(op, x, axis, keepdims)
    own = rows.dtype if rows.dtype.kind in "fc" else dt.float32
    wide, left = own.compute, rows.length - correction
    return rows.reduce(
        dt.sum,
        wide.part,
        own.part,
        before=partial(_square_distances, wide, rows.axis),
        means=rows.mean(wide, keepdims=False),
        after=partial(after, left if left > 0 else 0.0),
    )


def vector_norm(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float = 2
) -> Array:
    """Return the norm over `axis`, with the bits of `dt.linalg.vector_norm` of the whole array.

    - `x`: an array of Dask or Cubed, of floats or complex numbers.
    - `axis`: an int, a tuple of different ints, or None for all axes.
    - `keepdims`: keep the axes with size 1.
    - `ord`: 2 is Euclid's, inf and -inf are the largest and the smallest absolute value, 0 counts
      the non-zero elements, another p gives `sum(abs(x) ** p) ** (1 / p)`.

    Shapes: any; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: floats and complex; the result is real.
    Chunks: as for `sum`.
    Raises: as `sum`; ArgumentTypeError for another `ord`.
    See also: `dt.linalg.vector_norm`.

    >>> import dask.array as da, dovetail as dt
    >>> dt.chunked.vector_norm(da.asarray([3.0, 4.0])).compute().item()
    5.0
    """
    p = arguments.number("vector_norm", ord, "ord")
    rows = Rows("vector_norm", x, axis, keepdims)
    own = dt.linalg.vector_norm(dt.zeros(1, dtype=rows.dtype), ord=p).dtype
    fold = (dt.max if p > 0 and rows.length else dt.sum) if math.isinf(p) else dt.sum
    if p == -math.inf:
        fold = dt.min
    before = partial(_norm_terms, rows.dtype.compute, p)
    return rows.reduce(fold, own.compute, own, before=before, after=partial(_root, p))


class Rows:
    """An array whose reduced axes are one axis, with chunks of whole blocks.

    - `op`: the function that errors and warnings name.
    - `x`: the array.
    - `axis`: the axes to reduce.
    - `keepdims`: keep them in results with size 1.

    Raises: ArgumentTypeError, ArgumentError, AxisError.
    """

    def __init__(self, op: str, x: Array, axis: Axis, keepdims: bool) -> None:
        self.dtype, self.keepdims = _check_array(op, x), arguments.flag(op, keepdims, "keepdims")
        self.ndim, self.axes = x.ndim, _find_axes(op, axis, x.ndim)
        if not self.axes:  # each element is a sum of its own
            x = x[..., None]
        self.array, self.axis = _flatten(op, x, self.axes or (x.ndim - 1,))
        self.length: int = self.array.shape[self.axis]

    def reduce(
        self,
        fold: Function,
        wide: dt.DType,
        own: dt.DType,
        *,
        before: Function,
        after: Function | None = None,
        means: Array | None = None,
        keepdims: bool | None = None,
    ) -> Array:
        """Return the reduction of the rows in the canonical order.

        - `fold`: the reduction of a tensor.
        - `wide`, `own`: the dtypes of partial results and of the result.
        - `before`: the terms of a chunk, of it and the means.
        - `after`: the result, of the reduced terms.
        - `means`: an array without the reduced axis, the second argument of `before`.
        - `keepdims`: keep the axes with size 1. None: as the rows say.
        """
        x, axis = self.array, self.axis
        indices = tuple(range(x.ndim))
        other_indices = indices[:axis] + indices[axis + 1 :]
        operands = [x, indices] if means is None else [x, indices, means, other_indices]
        blocks_max = max(max(x.chunks[axis], default=0) // CHUNK, 1) * CHUNK
        while len(x.chunks[axis]) > 1:
            blocks = partial(_fold_blocks, fold, before, axis)
            x = _blockwise(blocks, indices, operands, wide, adjust_chunks={axis: _count_blocks})
            if len(x.chunks[axis]) > 1:
                x = x.rechunk({axis: min(blocks_max, x.shape[axis])})
            operands, before = [x, indices], _keep
        whole = partial(_fold_all, fold, before, after or _keep, axis, own)
        result = _blockwise(whole, other_indices, operands, own)
        if not (self.keepdims if keepdims is None else keepdims):
            return result
        return result[tuple([None if d in self.axes else slice(None) for d in range(self.ndim)])]

    def mean(self, own: dt.DType, keepdims: bool) -> Array:
        """Return the means of the rows."""
        cast, quotient = partial(_cast, own, own.compute), partial(_divide, self.length)
        return self.reduce(dt.sum, own.compute, own, before=cast, after=quotient, keepdims=keepdims)


def _flatten(op: str, x: Array, axes: Sequence[int]) -> tuple[Array, int]:
    """Return an array whose reduced axes are one, with borders at multiples of CHUNK; its axis."""
    long = [d for d in axes if x.shape[d] != 1]
    first, inner = (long[0] if long else axes[0]), long[1:]
    if len(axes) == 1:
        return _align(op, x, first, CHUNK), first
    width = math.prod([x.shape[d] for d in inner])
    unit = CHUNK // math.gcd(CHUNK, width)  # so many rows are whole blocks
    others = math.prod([max(c, default=0) for d, c in enumerate(x.chunks) if d not in axes])
    rows = max(_elements_max(x) // max(others * width, 1), 1)
    rows = min(rows // unit * unit or rows, x.shape[first])
    is_split = any(len(x.chunks[d]) > 1 for d in inner)
    if is_split or not _has_borders(x, first, unit):
        advice = {first: rows if rows >= unit else unit, **dict.fromkeys(inner, -1)}
        _warn_of_chunks(op, advice, CHUNK)
        if is_split or rows >= min(unit, x.shape[first]):
            x = _rechunk(x, {first: rows, **{d: x.shape[d] for d in inner}})
    indices = [d for d in range(x.ndim) if d == first or d not in axes]
    flat, adjust = partial(_flatten_chunk, first, tuple(axes)), {first: partial(_scale, width)}
    operands = [x, tuple(range(x.ndim))]
    x = _blockwise(flat, indices, operands, _dtype_of(x), adjust_chunks=adjust)
    return _align(None, x, axis := indices.index(first), CHUNK), axis


def _align(op: str | None, x: Array, axis: int, multiple: int) -> Array:
    """Return an array whose borders along an axis are at multiples of a number of elements.

    op: the function that a warning names; None gives no warning.
    """
    if _has_borders(x, axis, multiple):
        return x
    sizes = {axis: max(max(x.chunks[axis]) // multiple, 1) * multiple}
    if op is not None:
        _warn_of_chunks(op, sizes, multiple)
    return _rechunk(x, sizes)


def _has_borders(x: Array, axis: int, multiple: int) -> bool:
    """Return True if the borders of chunks along an axis are at multiples of a number."""
    return not any(border % multiple for border in [*accumulate(x.chunks[axis])][:-1])


def _warn_of_chunks(op: str, sizes: dict[int, int], multiple: int) -> None:
    """Warn the user of a copy, and name chunks that avoid it."""
    warn_user(
        f"{op}: the array is rechunked, because chunks must end at multiples of {multiple} "
        f"elements, or the bits of the result would depend on the chunks; to avoid the copy, make "
        f"the array in such chunks, as x.rechunk({sizes}) has",
        dt.DovetailWarning,
    )


def _rechunk(x: Array, sizes: dict[int, int]) -> Array:
    """Return an array with other sizes of chunks along some axes.

    Other axes are split if chunks would have more elements than before.
    """
    elements = max(_elements_max(x) // max(math.prod(sizes.values()), 1), 1)
    for d in reversed(range(x.ndim)):
        if d not in sizes:
            largest: int = max(x.chunks[d], default=0)
            if largest > elements:
                sizes = {**sizes, d: elements}
            elements = max(elements // max(min(largest, elements), 1), 1)
    return x.rechunk(sizes)


def _elements_max(x: Array) -> int:
    """Return the number of elements that a new chunk may have."""
    largest: int = math.prod([max(sizes, default=0) for sizes in x.chunks])
    return max(largest, CHUNK_ELEMENTS_MIN)


# --- products -------------------------------------------------------------------------------------


def matmul(x1: Array, x2: Array, /) -> Array:
    """Return the matrix product, with the bits of `dt.matmul` of the whole arrays.

    The chunks along k are multiplied one after the other; different rows, columns and matrices of
    the result are independent. `dt.vendor_products` is off.

    - `x1`, `x2`: arrays of Dask or Cubed.

    Shapes: (..., m, k) and (..., k, n) give (..., m, n); a vector is a row of x1 or a column of x2.
    Dtypes: all; the result has the promoted dtype.
    Chunks: kept if each border along k is a multiple of 256. Others are rechunked with a
    DovetailWarning.
    Raises: ArgumentTypeError for arrays of another library, ArgumentError for chunks of unknown
    sizes, ShapeError, DTypeError.
    See also: `vecdot`, `dt.matmul`.

    >>> import dask.array as da, dovetail as dt, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 600, 600)).astype("f4")
    >>> product = dt.chunked.matmul(da.from_array(a, chunks=256), da.from_array(b, chunks=256))
    >>> product.compute().tolist() == dt.matmul(dt.asarray(a), dt.asarray(b)).tolist()
    True
    """
    return _multiply("matmul", x1, x2)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the products of vectors along an axis, with the bits of `dt.vecdot`.

    - `x1`, `x2`: arrays of Dask or Cubed; x1 is conjugated.
    - `axis`: the axis of the vectors, in both arrays, counted from the end (-1, -2, ...).

    Shapes: the axis is removed; the others broadcast.
    Dtypes: all; the result has the promoted dtype.
    Chunks: as for `matmul`.
    Raises: as `matmul`; AxisError, ArgumentError for an axis that is not negative.
    See also: `matmul`, `dt.vecdot`.

    >>> import dask.array as da, dovetail as dt
    >>> dt.chunked.vecdot(da.asarray([1.0, 2.0]), da.asarray([3.0, 4.0])).compute().item()
    11.0
    """
    operands, sizes, axis = [], [], arguments.integer("vecdot", axis, "axis")
    if axis >= 0:
        raise dt.ArgumentError(f"vecdot: axis must be negative, got {axis}")
    for x, is_first in ((x1, True), (x2, False)):
        d = _check_array("vecdot", x)
        last = find_axis("vecdot", axis, x.ndim)
        sizes.append(x.shape[last])
        x = _align("vecdot", x, last, PRODUCT_BLOCK)
        indices = tuple(range(x.ndim))
        moved = (*indices[:last], *indices[last + 1 :], last)
        order = partial(_order_vectors, last, is_first)
        operands.append(_blockwise(order, moved, [x, indices], d))
    if sizes[0] != sizes[1]:
        raise dt.ShapeError(
            f"vecdot: sizes along axis {axis} must be equal, got shapes {x1.shape} and {x2.shape}"
        )
    row, column = operands[0][..., None, :], operands[1][..., :, None]
    return _multiply("vecdot", row, column)[..., 0, 0]


def _multiply(op: str, x1: Array, x2: Array) -> Array:
    """Return the product of matrices or vectors, chunk by chunk along k."""
    dtypes = [_check_array(op, x) for x in (x1, x2)]
    if _library(op, x1) != _library(op, x2):
        raise dt.ArgumentTypeError(f"{op}: x1 and x2 must be arrays of one library")
    if not (x1.ndim and x2.ndim) or x1.shape[-1] != x2.shape[-2 if x2.ndim > 1 else 0]:
        raise dt.ShapeError(f"{op}: shapes {x1.shape} and {x2.shape} do not match")
    broadcast_shapes(op, x1.shape[:-2], x2.shape[:-2])
    x1 = _align(op, x1, x1.ndim - 1, PRODUCT_BLOCK)
    x2 = _align(op, x2, k := max(x2.ndim - 2, 0), PRODUCT_BLOCK)
    x2 = x2 if x2.chunks[k] == x1.chunks[-1] else x2.rechunk({k: x1.chunks[-1]})
    is_row, is_column = x1.ndim == 1, x2.ndim == 1
    x1, x2 = (x1[None, :] if is_row else x1), (x2[:, None] if is_column else x2)
    product = _multiply_matrices(
        x1, x2, dt.matmul(*[dt.zeros((1, 1), dtype=d) for d in dtypes]).dtype
    )
    if is_row or is_column:
        product = product[(..., 0 if is_row else slice(None), 0 if is_column else slice(None))]
    return product


def _multiply_matrices(x1: Array, x2: Array, own: dt.DType) -> Array:
    """Return the product of matrices whose borders along k are equal multiples of PRODUCT_BLOCK.

    The state between two chunks has an axis of size 2 in front of the columns: the sum of the
    current group, and the sum of the groups before it.
    """
    batch = max(x1.ndim, x2.ndim) - 2
    row, k, state_axis, column = range(batch, batch + 4)
    left = (*range(batch + 2 - x1.ndim, batch), row, k)
    right = (*range(batch + 2 - x2.ndim, batch), k, column)
    out, total = (*range(batch), row, column), (*range(batch), row, state_axis, column)
    borders = [0, *accumulate(x1.chunks[-1])]
    state: list[Any] = []
    for start, stop in pairwise(borders):
        a, b = (x1, x2) if len(borders) == 2 else (x1[..., start:stop], x2[..., start:stop, :])
        add = partial(_add_products, start, own.compute)
        operands, new_axes = [a, left, b, right, *state], None if state else {state_axis: 2}
        state = [_blockwise(add, total, operands, own.compute, new_axes=new_axes), total]
    return _blockwise(partial(_finish_products, x1.shape[-1], own), out, state, own)


# --- arrays of the libraries ----------------------------------------------------------------------


def _library(op: str, x: Array) -> str:
    """Return "dask" or "cubed". Raises: ArgumentTypeError."""
    roots = [cls.__module__.partition(".")[0] for cls in type(x).__mro__]
    for root in roots:
        if root in ("dask", "cubed") and hasattr(x, "chunks"):
            return root
    advice = f"; for a tensor use dt.{op}" if isinstance(x, dt.Tensor) else ""
    raise dt.ArgumentTypeError(
        f"{op}: x must be an array of Dask or Cubed, got {arguments.foreign_type_name(x)}{advice}"
    )


def _check_array(op: str, x: Array) -> dt.DType:
    """Return the dtype of an array. Raises: ArgumentTypeError, DTypeError; ArgumentError."""
    _library(op, x)
    if any(math.isnan(size) for sizes in x.chunks for size in sizes):
        raise dt.ArgumentError(
            f"{op}: the sizes of chunks must be known; call x.compute_chunk_sizes() first"
        )
    return _dtype_of(x)


def _dtype_of(x: Array) -> dt.DType:
    """Return the dtype of an array as dovetail's."""
    return dt.empty(0, dtype=x.dtype).dtype


def _find_axes(op: str, axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return non-negative axes in ascending order. Raises: AxisError, ArgumentTypeError."""
    if axis is None:
        return tuple(range(ndim))
    named: list[Any] = [*axis] if isinstance(axis, (list, tuple)) else [axis]
    axes = sorted(find_axis(op, d, ndim) for d in named)
    if len({*axes}) < len(axes):
        raise dt.AxisError(f"{op}: axis must have different axes, got {axis}")
    return tuple(axes)


def _blockwise(
    function: Function,
    indices: Sequence[int],
    operands: Sequence[Any],
    dtype: dt.DType,
    **options: Any,
) -> Array:
    """Return an array whose chunks are `function` of the operands' chunks.

    operands: arrays, each with its indices. An index that the result lacks has one chunk.
    """
    x = operands[0]
    empty = dt.empty((0,) * len(indices), dtype=dtype)
    if _library("blockwise", x) == "dask":
        library = importlib.import_module("dask.array")
        options["meta"] = empty if isinstance(x._meta, dt.Tensor) else empty.numpy()
    else:
        library = importlib.import_module("cubed.core")
        options["dtype"] = empty.numpy().dtype
    return library.blockwise(partial(_run, function), tuple(indices), *operands, **options)


# --- functions of chunks --------------------------------------------------------------------------


def _run(function: Function, *chunks: Chunk) -> Chunk:
    """Return the evaluated result of `function`; a NumPy array if the chunks are such."""
    operands = []
    for chunk in chunks:
        while isinstance(chunk, list):  # Dask lists the chunks along an axis without a result
            (chunk,) = chunk
        operands.append(chunk)
    with dt.vendor_products(False):
        result = function(*map(dt.asarray, operands))
        dt.evaluate(result)
    return result if any(isinstance(x, dt.Tensor) for x in operands) else result.numpy()


def _keep(x: dt.Tensor) -> dt.Tensor:
    """Return the tensor."""
    return x


def _cast(own: dt.DType, wide: dt.DType, x: dt.Tensor) -> dt.Tensor:
    """Return a tensor rounded to `own`, in the dtype of the computation."""
    return x.astype(own).astype(wide)


def _count_blocks(elements: int) -> int:
    """Return the number of blocks of a chunk."""
    return -(-elements // CHUNK)


def _scale(factor: int, size: int) -> int:
    """Return a multiple of a size."""
    return size * factor


def _fold_blocks(fold: Function, before: Function, axis: int, *operands: dt.Tensor) -> dt.Tensor:
    """Return the reduction of each block of 4096 elements along an axis."""
    x = before(*operands)
    shape, every = x.shape, (slice(None),) * axis
    count, more = divmod(shape[axis], CHUNK)
    head = x[(*every, slice(0, count * CHUNK))].reshape(
        (*shape[:axis], count, CHUNK, *shape[axis + 1 :])
    )
    sums = [fold(head, axis=axis + 1)]
    if more:
        sums.append(fold(x[(*every, slice(count * CHUNK, None))], axis=axis, keepdims=True))
    return dt.concat(sums, axis=axis)


def _fold_all(
    fold: Function,
    before: Function,
    after: Function,
    axis: int,
    own: dt.DType,
    *operands: dt.Tensor,
) -> dt.Tensor:
    """Return the result of the last blocks along an axis."""
    return after(fold(before(*operands), axis=axis)).astype(own)


def _flatten_chunk(first: int, axes: tuple[int, ...], x: dt.Tensor) -> dt.Tensor:
    """Return a chunk whose axes are one, at the place of `first`."""
    before = [d for d in range(first) if d not in axes]
    after = [d for d in range(first, x.ndim) if d not in axes]
    ordered = dt.permute_dims(x, (*before, *axes, *after))
    count = math.prod([x.shape[d] for d in axes])
    return ordered.reshape([*ordered.shape[: len(before)], count, *[x.shape[d] for d in after]])


def _square_distances(wide: dt.DType, axis: int, x: dt.Tensor, mean: dt.Tensor) -> dt.Tensor:
    """Return squared absolute values of differences, as `dt.var` computes them."""
    away = x.astype(wide) - dt.expand_dims(mean, axis=axis)
    return dt.real(away * dt.conj(away)) if wide.is_complex else away * away


def _divide(divisor: float, total: dt.Tensor) -> dt.Tensor:
    """Return the quotient of a sum and a number."""
    return total / divisor


def _root_of_quotient(divisor: float, total: dt.Tensor) -> dt.Tensor:
    """Return the root of the quotient of a sum and a number."""
    return dt.sqrt(total / divisor)


def _norm_terms(wide: dt.DType, p: float, x: dt.Tensor) -> dt.Tensor:
    """Return the terms whose sum or extreme `dt.linalg.vector_norm` takes."""
    x = x.astype(wide)
    if p == 2 and wide.is_complex:
        return dt.real(x) * dt.real(x) + dt.imag(x) * dt.imag(x)
    if p == 2:
        return x * x
    if p == 0:
        return (x != 0).astype(wide.part)
    sizes = dt.abs(x)
    return sizes if p == 1 or math.isinf(p) else sizes**p


def _root(p: float, total: dt.Tensor) -> dt.Tensor:
    """Return the norm, of the reduced terms."""
    if p == 2:
        return dt.sqrt(total)
    return total if p in (0, 1) or math.isinf(p) else total ** (1 / p)


def _order_vectors(axis: int, is_conjugated: bool, x: dt.Tensor) -> dt.Tensor:
    """Return vectors along the last axis; conjugate those of the first operand."""
    x = dt.moveaxis(x, axis, -1)
    return dt.conj(x) if is_conjugated and x.dtype.is_complex else x


def _add_products(
    start: int, wide: dt.DType, x1: dt.Tensor, x2: dt.Tensor, *state: dt.Tensor
) -> dt.Tensor:
    """Return the state after the products of a chunk that starts at k = `start`."""
    x1, x2 = x1.astype(wide), x2.astype(wide)
    group = state[0][..., 0, :] if state else None
    total = state[0][..., 1, :] if start > GROUP else None  # there is none before the second group
    k, stop = start, start + x1.shape[-1]
    while k < stop or group is None:
        if group is not None and k % GROUP == 0:
            total, group = group if total is None else total + group, None
        end = min(stop, (k // GROUP + 1) * GROUP if group is None else k + PRODUCT_BLOCK)
        part = x1[..., k - start : end - start] @ x2[..., k - start : end - start, :]
        group, k = part if group is None else group + part, end
    return dt.stack([group, group if total is None else total], axis=-2)


def _finish_products(length: int, own: dt.DType, state: dt.Tensor) -> dt.Tensor:
    """Return the product, of the last state."""
    group, total = state[..., 0, :], state[..., 1, :]
    return (total + group if length > GROUP else group).astype(own)


publish_all(globals())
