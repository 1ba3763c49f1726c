"""Index arithmetic: raveled positions, open meshes, diagonals and triangles of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...argument_checks import LARGEST, choice, dimensions, integer, sequence
from ...argument_checks import function as a_function
from ...dtypes import bool_, int64
from ...errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from ...graph.expr import Expr, Spec, mark_index_check, node, spec
from ...layout import Move, Shape
from ...memory.tracing.stacktrace import current_line
from ...ops import table as ops
from ...tensor.c_fields import expr_of
from ...tensor.other_layouts import call_along, has_rule
from ...tensor.primitives import apply, pending_view, view
from ...tensor.promotion import ARRAY_TYPES, Array
from ...tensor.tensor import Tensor, create_tensor, required, strided
from ..creation.constructors import extents, ones, tril, triu, zeros
from ..creation.from_values import asarray
from ..datatypes import DeviceLike, cast
from ..shape.manipulation import unstack
from ..shape.orientation import diag_indices, tril_indices, triu_indices
from ..variants import public
from .index_keys import index_array, parts_along
from .index_reads import _gather_selection, _take_one_axis
from .masks import nonzero

__all__ = [
    "diag_indices_from",
    "ix_",
    "mask_indices",
    "ravel_multi_index",
    "tril_indices_from",
    "triu_indices_from",
    "unravel_index",
]

MODES = ("raise", "wrap", "clip")
Index = Array | int


def _device_of(operands: Sequence[object], device_like: DeviceLike) -> DeviceLike:
    """Return the device of the first tensor, or `device_like` if there is none."""
    return next((x.device for x in operands if isinstance(x, Tensor)), device_like)


# --- raveled positions ----------------------------------------------------------------------------


@public(widen=False)
def unravel_index(
    indices: Index, /, shape: int | Sequence[int], *, device: DeviceLike = None
) -> tuple[Tensor, ...]:
    """Return the indices along each axis of positions in a raveled shape.

    - `indices`: integers from 0 on. Those in a list or array are checked at once, those in a tensor
      when the work runs.
    - `shape`: the shape: an int or a tuple of ints.
    - `device`: the result's device, unless `indices` is a tensor.

    Shapes: `shape` is an int or a tuple of ints; the results have the shape of `indices`.
    Dtypes: integers; gives int64.
    Raises: OutOfRangeError, also for negative ones; ShapeError, DTypeError, DeviceError.
    See also: `ravel_multi_index`, `argmax`.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.unravel_index([1, 5], (2, 3))]
    [[0, 1], [1, 2]]
    """
    sizes = _countable_shape("unravel_index", shape)
    total = math.prod(sizes)
    device = _device_of((indices,), device)
    positions = _check_indices("unravel_index", indices, 0, total, f"shape {sizes}", device)
    if not sizes and positions.ndim:
        raise ShapeError(
            f"unravel_index: shape () takes one index, got indices of shape {positions.shape}"
        )
    indices_along = []
    for n in reversed(sizes[1:]):
        indices_along.append(apply(ops.REMAINDER, (positions, max(n, 1))))
        positions = apply(ops.FLOOR_DIVIDE, (positions, max(n, 1)))
    return (positions, *reversed(indices_along)) if sizes else ()


@public(out=True, widen=False)
def ravel_multi_index(
    multi_index: Sequence[Index] | Tensor,
    /,
    dims: int | Sequence[int],
    mode: str | Sequence[str] = "raise",
    *,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the positions in a raveled shape of indices along its axes.

    - `multi_index`: one index array per axis, or a tensor whose first axis goes over the axes.
    - `dims`: the shape.
    - `mode`: the treatment of indices out of range, one for all axes or a tuple with one for each:
      "raise" checks those in lists and arrays at once and those in tensors when the work runs,
      "wrap" takes them modulo the size, "clip" takes the nearest.
    - `device`: the result's device, if no index is in a tensor.

    Shapes: the indices are broadcast.
    Dtypes: integers; gives int64.
    Raises: OutOfRangeError, also for negative ones; ArgumentError for another mode or another
    number of axes; ShapeError, DTypeError, DeviceError.
    See also: `unravel_index`.

    >>> import dovetail as dt
    >>> dt.ravel_multi_index(([0, 1], [1, 2]), (2, 3)).tolist()
    [1, 5]
    """
    op = "ravel_multi_index"
    sizes = _countable_shape(op, dims)
    index_list = _index_list(multi_index)
    modes = [mode] * len(sizes) if isinstance(mode, str) else sequence(op, mode, "mode", "modes")
    if len(index_list) != len(sizes) or len(modes) != len(sizes):
        raise ArgumentError(
            f"{op}: expected an index and a mode for each of the {len(sizes)} axes of "
            f"shape {sizes}, got {len(index_list)} indices and {len(modes)} modes"
        )
    device = _device_of(index_list, device)
    if not index_list:
        return zeros((), dtype=int64, device=device)
    raveled, *others = [
        _indices_along(op, i, d, n, choice(op, m, "mode", MODES), device)
        for d, (i, n, m) in enumerate(zip(index_list, sizes, modes, strict=True))
    ]
    for along, n in zip(others, sizes[1:], strict=True):
        raveled = raveled * n + along
    return raveled


def _index_list(multi_index: object) -> list[Index]:
    """Return one index array for each axis. Raises: ArgumentTypeError for other than a sequence."""
    if isinstance(multi_index, Tensor):
        return list(unstack(multi_index))
    if isinstance(multi_index, np.ndarray) and multi_index.ndim:
        return list(multi_index)
    return list(sequence("ravel_multi_index", multi_index, "multi_index", "indices"))  # type: ignore[arg-type]  # each is checked later


def _countable_shape(op: str, shape: object) -> Shape:
    """Return a shape as a tuple. Raises: ShapeError if its element count exceeds int64."""
    sizes = extents(op, shape)
    if math.prod(sizes) > LARGEST:
        raise ShapeError(f"{op}: a shape must have fewer than 2**63 elements, got {sizes}")
    return sizes


def _indices_along(op: str, index: object, d: int, n: int, mode: str, device: DeviceLike) -> Tensor:
    """Return indices along an axis, brought into range by the mode."""
    if mode == "raise":
        return _check_indices(op, index, d, n, f"axis {d} of size {n}", device)
    array = index_array(op, index)
    along = cast(array if isinstance(array, Tensor) else asarray(array, device=device), int64)
    if along.size and not n:
        raise OutOfRangeError(f"{op}: axis {d} of size 0 has no valid index with mode={mode!r}")
    if mode == "wrap":
        return apply(ops.REMAINDER, (along, n))
    return apply(ops.CLIP, (along, 0, max(n - 1, 0)))


def _check_indices(
    op: str, index: object, d: int, n: int, bounds_text: str, device: DeviceLike
) -> Tensor:
    """Return indices in 0..n-1; the host's are checked now, a tensor's when the work runs."""
    array = index_array(op, index)
    if isinstance(array, Tensor):
        return create_tensor(_check_node(op, d, n, strided(op, array)._expr))
    low, high = (int(array.min()), int(array.max())) if array.size else (0, -1)
    if low < 0 or high >= n:
        raise OutOfRangeError(f"{op}: {low if low < 0 else high} is out of range for {bounds_text}")
    return asarray(array.astype(np.int64), device=device)


def read_at(op: str, x: Tensor, indices: Tensor, axis: int, *, from_end: bool = True) -> Tensor:
    """Return `dt.take` along one axis, in the name of `op`, maybe without indices from the end.

    - `op`: the function that errors name.
    - `indices`: the positions along the axis, integers.
    - `axis`: the axis.
    - `from_end`: False means that negative indices are out of range.

    Raises: OutOfRangeError when the work runs; LayoutError, DTypeError, DeviceError.
    """
    if has_rule(x, "along") or has_rule(indices, "along"):
        if not from_end:
            indices = in_range(op, indices, x.shape[axis])
        return _gather_selection(op, x, parts_along(x, axis, indices))
    index = index_array(op, strided(op, indices))
    assert isinstance(index, Tensor)
    x = strided(op, x)
    if from_end or index.device is not x.device:
        return _take_one_axis(op, x, index, axis)
    e, i = expr_of(x), expr_of(index)
    attrs, s, move = _gather_attrs(e.spec, i.spec, axis)
    checked_index = _check_node(op, axis, e.spec.shape[axis], i)
    return create_tensor(
        node(
            ops.GATHER,
            (e, checked_index if move is None else pending_view(checked_index, move)),
            s,
            attrs,
        )
    )


@lru_cache(1024)
def _gather_attrs(
    source_spec: Spec, index_spec: Spec, axis: int
) -> tuple[tuple[Any, ...], Spec, Move | None]:
    """Return a GATHER's attributes and spec, and the move that aligns the indices with later axes.

    The indices must be in range.
    """
    width, after = len(index_spec.shape), len(source_spec.shape) - axis - 1
    shape = (*source_spec.shape[:axis], *index_spec.shape, *source_spec.shape[axis + 1 :])
    axes = (*range(axis), *(-1,) * width, *range(axis + 1, len(source_spec.shape)))
    move = ("reshape", (*index_spec.shape, *(1,) * after)) if after else None
    return (shape, axes, (axis,), None), spec(shape, source_spec.dtype, source_spec.device), move


def _check_node(op: str, axis: int, size: int, index: Expr, ignored: int | None = None) -> Expr:
    """Return indices as an expression that checks 0..size-1 when it runs; `ignored` becomes 0."""
    s = spec(index.spec.shape, int64, index.spec.device)
    checked = node(ops.CHECKED_INDICES, (index,), s, ((op, axis, size), False, ignored))
    mark_index_check(checked, current_line())
    return checked


def in_range(
    op: str,
    indices: Tensor,
    size: int,
    counts: Tensor | None = None,
    ignored: int | None = None,
    rule: str = "",
) -> Tensor:
    """Return int64 indices, which are checked to be in 0..size-1 when the work runs.

    - `op`: the function that errors name.
    - `indices`: integers.
    - `size`: the number of allowed positions.
    - `counts`: a mask of the indices that count; others become 0. Without it the check is one
      kernel.
    - `ignored`: an index that becomes 0.
    - `rule`: the sentence of errors in place of the range, to which they add the bad value.

    Raises: OutOfRangeError when the work runs; LayoutError.
    """
    if has_rule(indices, "along"):
        operands = (indices,) if counts is None else (indices, counts)
        checked: Tensor = call_along(
            op,
            lambda t, mask=None: in_range(op, t, size, mask, ignored, rule),
            operands,
            (),
        )
        return checked
    index = strided(op, indices)
    if not index.size:
        return cast(index, int64)
    index = index if counts is None else apply(ops.WHERE, (counts, index, 0))
    if rule:
        return create_tensor(_check_node(f"{op}: {rule}", -1, size, index._expr, ignored))
    return create_tensor(_check_node(op, 0, size, index._expr, ignored))


# --- open meshes ----------------------------------------------------------------------------------


@public(widen=False)
def ix_(*args: Array, device: DeviceLike = None) -> tuple[Tensor, ...]:
    """Return vectors of indices as an open mesh: x[dt.ix_(rows, columns)] has every combination.

    - `args`: a vector for each axis, of integers, or of bool, whose true positions the host reads.
    - `device`: the result's device, if none of them is a tensor.

    Shapes: vectors; the i-th result has its vector's length along axis i, and 1 along the others.
    Dtypes: integers, which keep theirs; bool gives int64.
    Raises: ShapeError unless all are vectors, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0, 1, 2], [10, 11, 12]])
    >>> x[dt.ix_([True, True], [2, 0], device=x.device)].tolist()
    [[2, 0], [12, 10]]
    """
    vectors = [_mesh_vector(x, _device_of(args, device)) for x in args]
    return tuple(
        [
            view(v, ("reshape", tuple(v.size if d == i else 1 for d in range(len(vectors)))))
            for i, v in enumerate(vectors)
        ]
    )


def _mesh_vector(vector: object, device: DeviceLike) -> Tensor:
    """Return a vector of indices; a mask gives its true positions.

    Raises: ShapeError unless it has one axis, DTypeError for other objects and dtypes.
    """
    if not isinstance(vector, (Tensor, *ARRAY_TYPES)):
        raise DTypeError(
            f"ix_: expected tensors or arrays, got {type(vector).__name__}; use dt.asarray"
        )
    x = strided("ix_", vector if isinstance(vector, Tensor) else asarray(vector, device=device))
    if x.ndim != 1:
        raise ShapeError(f"ix_: expected vectors of indices, got shape {x.shape}; use dt.ravel")
    if x.dtype is bool_:
        return nonzero(x)[0]
    if not x.dtype.is_integer and x.size:
        raise DTypeError(
            f"ix_: indices must be integers or bool, got {x.dtype.name}; use x.astype(dt.int64)"
        )
    return x if x.dtype.is_integer else zeros((0,), dtype=int64, device=x.device)


# --- diagonals and triangles ----------------------------------------------------------------------


@public(widen=False)
def diag_indices_from(arr: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the main diagonal of a tensor, one vector for each axis.

    - `arr`: the tensor, of which only the shape and the device matter.

    Shapes: (n, n) or more axes, all of one size; gives (n,) each.
    Dtypes: all; gives int64.
    Raises: ShapeError below 2 dimensions and for several sizes, DTypeError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.diag_indices_from(dt.ones((2, 2)))]
    [[0, 1], [0, 1]]
    """
    shape = required("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ShapeError(
            "diag_indices_from: expected 2 or more dimensions of the same size, "
            f"got shape {shape}; "
            "use dt.diag_indices"
        )
    return diag_indices(shape[0], len(shape), device=arr.device)


@public(widen=False)
def tril_indices_from(arr: Tensor, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """Return the indices of the lower triangle of a matrix, row by row: (rows, columns).

    - `arr`: the matrix, of which only the shape and the device matter.
    - `k`: the last diagonal of the triangle: 0 is the main one, positive ones are above it,
      negative ones below it.

    Shapes: a matrix; gives two vectors.
    Dtypes: all; gives int64.
    Raises: ShapeError unless it is a matrix, DTypeError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.tril_indices_from(dt.ones((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m, device=arr.device)


@public(widen=False)
def triu_indices_from(arr: Tensor, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """Return the indices of the upper triangle of a matrix, row by row: (rows, columns).

    - `arr`: the matrix, of which only the shape and the device matter.
    - `k`: the first diagonal of the triangle: 0 is the main one, positive ones are above it,
      negative ones below it.

    Shapes: a matrix; gives two vectors.
    Dtypes: all; gives int64.
    Raises: ShapeError unless it is a matrix, DTypeError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.triu_indices_from(dt.ones((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m, device=arr.device)


def _matrix_shape(op: str, x: Tensor) -> tuple[int, int]:
    """Return the numbers of rows and columns. Raises: ShapeError unless 2-dimensional."""
    if required(op, x).ndim != 2:
        raise ShapeError(f"{op}: expected a matrix, got shape {x.shape}; use dt.{op[:12]}")
    rows, columns = x.shape
    return rows, columns


@public(widen=False)
def mask_indices(
    n: int, mask_func: Callable[..., Tensor], /, k: int = 0, *, device: DeviceLike = None
) -> tuple[Tensor, ...]:
    """Return the indices at which a function leaves a matrix of ones nonzero: (rows, columns).

    The host reads the number of nonzero elements of its result.

    - `n`: the number of rows and columns.
    - `mask_func`: gets the matrix and `k`, as `dt.triu` and `dt.tril` do.
    - `k`: an int that `mask_func` gets, such as the diagonal of `dt.triu`.

    Shapes: two vectors.
    Dtypes: int64.
    Raises: ArgumentError for a negative `n`, ArgumentTypeError unless `mask_func` is a function,
    ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.mask_indices(2, dt.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    a_function("mask_indices", mask_func, "mask_func")
    size, k = integer("mask_indices", n, "n", 0), integer("mask_indices", k, "k")
    whole = ones(dimensions("mask_indices", (size, size)), dtype=int64, device=device)
    ours = mask_func is tril or mask_func is triu  # these take `k` as a keyword
    return nonzero(mask_func(whole, k=k) if ours else mask_func(whole, k))
