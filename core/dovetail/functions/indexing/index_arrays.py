"""Places of a tensor: counted through and by axes, on open meshes, in triangles of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...arguments import LARGEST, choice, dimensions, integer, named, sequence
from ...arguments import function as a_function
from ...dtypes import bool_, int64
from ...errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from ...graph.expr import Expr, Spec, ask, node, spec
from ...layout import Move, Shape
from ...memory.tracing.stacktrace import line
from ...ops import table as ops
from ...recent import Recent
from ...tensor.fields import expr_of
from ...tensor.operands import ARRAYS, Array
from ...tensor.tensor import Tensor, make, required, strided
from ...tensor.verbs import apply, pending_view, view
from ..creation.constructors import extents, ones, tril, triu, zeros
from ..creation.from_values import asarray
from ..datatypes import DeviceLike, cast
from ..shape.manipulation import unstack
from ..shape.orientation import diag_indices, tril_indices, triu_indices
from ..variants import into
from .index_keys import index_array
from .index_reads import _taken
from .masks import nonzero

__all__ = [
    "diag_indices_from", "ix_", "mask_indices", "ravel_multi_index", "tril_indices_from",
    "triu_indices_from", "unravel_index",
]  # fmt: skip

MODES = ("raise", "wrap", "clip")
Index = Array | int


def _device(given: Sequence[object], wanted: DeviceLike) -> DeviceLike:
    """That of the first tensor; where there is none, the one that is wanted."""
    return next((x.device for x in given if isinstance(x, Tensor)), wanted)


# --- counted through and by axes ------------------------------------------------------------------


@named(widen=False)
def unravel_index(
    indices: Index, /, shape: int | Sequence[int], *, device: DeviceLike = None
) -> tuple[Tensor, ...]:
    """The indices along each axis of places that are counted through a shape, row by row.

    `indices`: integers from 0 on. In a list or array they are checked at once, in a tensor when the
    work runs. `device`: where the result goes, if they are not in a tensor.
    Shapes: `shape` is an int or a tuple of ints; the results have the shape of `indices`.
    Dtypes: integers; gives int64.
    Raises: IndexOutOfRange, also for negative ones; ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.unravel_index([1, 5], (2, 3), device="reference")]
    [[0, 1], [1, 2]]
    """
    sizes = _sizes("unravel_index", shape)
    total = math.prod(sizes)
    device = _device((indices,), device)
    at = _in_range("unravel_index", indices, 0, total, f"shape {sizes}", device)
    if not sizes and at.ndim:
        raise ShapeError(f"unravel_index: indices of shape {at.shape} for shape (): give one index")
    found = []
    for n in reversed(sizes[1:]):
        found.append(apply(ops.REMAINDER, (at, max(n, 1))))
        at = apply(ops.FLOOR_DIVIDE, (at, max(n, 1)))
    return (at, *reversed(found)) if sizes else ()


@into(widen=False)
def ravel_multi_index(
    multi_index: Sequence[Index] | Tensor, /, dims: int | Sequence[int],
    mode: str | Sequence[str] = "raise", *, device: DeviceLike = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Which places of a shape, counted through it row by row, have these indices along its axes.

    `multi_index`: a list of indices for each axis, or a tensor whose first axis goes over them.
    `dims`: the shape. `mode`: what becomes of indices out of range, for all axes or a tuple of one
    for each: "raise" checks those in lists and arrays at once and those in tensors when the work
    runs, "wrap" takes them modulo the size, "clip" takes the nearest. `device`: where the result
    goes, if no index is in a tensor.
    Shapes: the indices are broadcast.
    Dtypes: integers; gives int64.
    Raises: IndexOutOfRange, also for negative ones; ArgumentError for another mode or another
    number of axes; ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.ravel_multi_index(([0, 1], [1, 2]), (2, 3), device="reference").tolist()
    [1, 5]
    """
    op = "ravel_multi_index"
    sizes = _sizes(op, dims)
    parts = _parts(multi_index)
    modes = [mode] * len(sizes) if isinstance(mode, str) else sequence(op, mode, "mode", "modes")
    if len(parts) != len(sizes) or len(modes) != len(sizes):
        raise ArgumentError(
            f"{op}: {len(parts)} indices and {len(modes)} modes for the {len(sizes)} axes of shape "
            f"{sizes}: give as many"
        )
    device = _device(parts, device)
    if not parts:
        return zeros((), dtype=int64, device=device)
    found, *rest = [
        _along(op, i, d, n, choice(op, m, "mode", MODES), device)
        for d, (i, n, m) in enumerate(zip(parts, sizes, modes, strict=True))
    ]
    for at, n in zip(rest, sizes[1:], strict=True):
        found = found * n + at
    return found


def _parts(multi_index: object) -> list[Index]:
    if isinstance(multi_index, Tensor):
        return list(unstack(multi_index))
    if isinstance(multi_index, np.ndarray) and multi_index.ndim:
        return list(multi_index)
    return list(sequence("ravel_multi_index", multi_index, "multi_index", "indices"))  # type: ignore[arg-type]  # each is looked at


def _sizes(op: str, shape: object) -> Shape:
    """A shape whose places can be counted."""
    sizes = extents(op, shape)
    if math.prod(sizes) > LARGEST:
        raise ShapeError(f"{op}: shape {sizes} has 2**63 places or more; int64 cannot count them")
    return sizes


def _along(op: str, index: object, d: int, n: int, mode: str, device: DeviceLike) -> Tensor:
    """Indices along an axis, in range."""
    if mode == "raise":
        return _in_range(op, index, d, n, f"axis {d} of size {n}", device)
    given = index_array(op, index)
    at = cast(given if isinstance(given, Tensor) else asarray(given, device=device), int64)
    if at.size and not n:
        raise IndexOutOfRange(f"{op}: axis {d} of size 0 has no index, also with mode={mode!r}")
    if mode == "wrap":
        return apply(ops.REMAINDER, (at, n))
    return apply(ops.CLIP, (at, 0, max(n - 1, 0)))


def _in_range(op: str, index: object, d: int, n: int, of: str, device: DeviceLike) -> Tensor:
    """Indices in 0..n-1: the host's are checked now, a tensor's when the work runs."""
    given = index_array(op, index)
    if isinstance(given, Tensor):
        return make(_counted(op, d, n, strided(op, given)._expr))
    low, high = (int(given.min()), int(given.max())) if given.size else (0, -1)
    if low < 0 or high >= n:
        raise IndexOutOfRange(f"{op}: {low if low < 0 else high} is out of range for {of}")
    return asarray(given.astype(np.int64), device=device)


def read_at(op: str, x: Tensor, indices: Tensor, axis: int, *, from_end: bool = True) -> Tensor:
    """`dt.take` on behalf of a function of another name, which errors say.

    `from_end`: False where negative indices are out of range.
    Raises: IndexOutOfRange when the work runs; LayoutError, DTypeError, DeviceError.
    """
    index = index_array(op, strided(op, indices))
    assert isinstance(index, Tensor)
    x = strided(op, x)
    if from_end or index.device is not x.device:
        return _taken(op, x, index, axis)
    e, i = expr_of(x), expr_of(index)
    key = e.spec, i.spec, axis
    found = _READ.young.get(key) or _READ.find(key)
    if found is None:
        _READ[key] = found = _reading(e.spec, i.spec, axis)
    attrs, s, move = found
    at = _counted(op, axis, e.spec.shape[axis], i)
    return make(node(ops.GATHER, (e, at if move is None else pending_view(at, move)), s, attrs))


def _reading(of: Spec, at: Spec, axis: int) -> Reading:
    """How elements at indices that are known are read."""
    width, after = len(at.shape), len(of.shape) - axis - 1
    shape = (*of.shape[:axis], *at.shape, *of.shape[axis + 1 :])
    axes = (*range(axis), *(-1,) * width, *range(axis + 1, len(of.shape)))
    move = ("reshape", (*at.shape, *(1,) * after)) if after else None
    return (shape, axes, (axis,), None), spec(shape, of.dtype, of.device), move


# A GATHER's attributes and spec, and how indices come beside later axes.
Reading: TypeAlias = tuple[tuple[Any, ...], Spec, Move | None]
_READ: Recent[tuple[Spec, Spec, int], Reading] = Recent(1024)


def _counted(op: str, axis: int, size: int, at: Expr, ignored: int | None = None) -> Expr:
    """Indices in 0..size-1, checked when the work runs; `ignored` becomes 0."""
    s = spec(at.spec.shape, int64, at.spec.device)
    made = node(ops.CHECKED_INDICES, (at,), s, ((op, axis, size), False, ignored))
    ask(made, line())
    return made


def in_range(
    op: str, indices: Tensor, size: int, counts: Tensor | None = None, ignored: int | None = None
) -> Tensor:
    """The indices, int64, each in 0..size-1, which is checked when the work runs.

    `op`: who asks, for the error. `counts`: a mask of those that count; others become 0, as an
    index that is `ignored` does. Without `counts` it is one kernel.
    Raises: IndexOutOfRange when the work runs; LayoutError.
    """
    at = strided(op, indices)
    if not at.size:
        return cast(at, int64)
    at = at if counts is None else apply(ops.WHERE, (counts, at, 0))
    return make(_counted(op, 0, size, at._expr, ignored))


# --- open meshes ----------------------------------------------------------------------------------


@named(widen=False)
def ix_(*args: Array, device: DeviceLike = None) -> tuple[Tensor, ...]:
    """Vectors of indices as an open mesh: x[dt.ix_(rows, columns)] has every combination.

    `*args`: a vector for each axis, of integers, or of bool for where it is true, which the host
    reads. `device`: where the result goes, if none of them is a tensor.
    Shapes: vectors; the result of the i-th one has its length along axis i, and 1 along the others.
    Dtypes: integers, which they keep; bool gives int64.
    Raises: ShapeError for what is no vector, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0, 1, 2], [10, 11, 12]], device="reference")
    >>> x[dt.ix_([True, True], [2, 0], device=x.device)].tolist()
    [[2, 0], [12, 10]]
    """
    found = [_mesh_vector(x, _device(args, device)) for x in args]
    return tuple([
        view(v, ("reshape", tuple(v.size if d == i else 1 for d in range(len(found)))))
        for i, v in enumerate(found)
    ])  # fmt: skip


def _mesh_vector(given: object, device: DeviceLike) -> Tensor:
    if not isinstance(given, (Tensor, *ARRAYS)):
        raise DTypeError(f"ix_: takes indices, not {type(given).__name__}; see dt.asarray")
    x = strided("ix_", given if isinstance(given, Tensor) else asarray(given, device=device))
    if x.ndim != 1:
        raise ShapeError(f"ix_: takes vectors of indices, not shape {x.shape}; see dt.ravel")
    if x.dtype is bool_:
        return nonzero(x)[0]
    if not x.dtype.is_integer and x.size:
        raise DTypeError(f"ix_: indices are integers or bool, not {x.dtype.name}; see astype()")
    return x if x.dtype.is_integer else zeros((0,), dtype=int64, device=x.device)


# --- diagonals and triangles ----------------------------------------------------------------------


@named(widen=False)
def diag_indices_from(arr: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor, one vector for each axis.

    `arr`: only its shape and its device count.
    Shapes: (n, n) or more axes, all of one size; gives (n,) each.
    Dtypes: all; gives int64.
    Raises: ShapeError below 2 dimensions and for several sizes, DTypeError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.diag_indices_from(dt.ones((2, 2), device="reference"))]
    [[0, 1], [0, 1]]
    """
    shape = required("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ShapeError(
            f"diag_indices_from: needs 2 dimensions or more, all of one size, not shape {shape}; "
            "see dt.diag_indices"
        )
    return diag_indices(shape[0], len(shape), device=arr.device)


@named(widen=False)
def tril_indices_from(arr: Tensor, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """The indices of the lower triangle of a matrix, row by row: (rows, columns).

    `arr`: only its shape and its device count. `k`: the last diagonal that belongs to it: 0 is the
    main one, above it positive, below it negative.
    Shapes: a matrix; gives two vectors.
    Dtypes: all; gives int64.
    Raises: ShapeError for what is no matrix, DTypeError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.tril_indices_from(dt.ones((2, 2), device="reference"))]
    [[0, 1, 1], [0, 0, 1]]
    """
    n, m = _matrix("tril_indices_from", arr)
    return tril_indices(n, k, m, device=arr.device)


@named(widen=False)
def triu_indices_from(arr: Tensor, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """The indices of the upper triangle of a matrix, row by row: (rows, columns).

    `arr`: only its shape and its device count. `k`: the first diagonal that belongs to it: 0 is the
    main one, above it positive, below it negative.
    Shapes: a matrix; gives two vectors.
    Dtypes: all; gives int64.
    Raises: ShapeError for what is no matrix, DTypeError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.triu_indices_from(dt.ones((2, 2), device="reference"))]
    [[0, 0, 1], [0, 1, 1]]
    """
    n, m = _matrix("triu_indices_from", arr)
    return triu_indices(n, k, m, device=arr.device)


def _matrix(op: str, x: Tensor) -> tuple[int, int]:
    if required(op, x).ndim != 2:
        raise ShapeError(f"{op}: needs a matrix, not shape {x.shape}; see dt.{op[:12]}")
    rows, columns = x.shape
    return rows, columns


@named(widen=False)
def mask_indices(
    n: int, mask_func: Callable[..., Tensor], /, k: int = 0, *, device: DeviceLike = None
) -> tuple[Tensor, ...]:
    """The indices of what a function leaves of a square matrix of ones: (rows, columns).

    `n`: its rows. `mask_func`: gets the matrix and `k`, an int, as `dt.triu` and `dt.tril`; what
    is not 0 in its result counts, and how much that is, is read by the host.
    Shapes: two vectors.
    Dtypes: int64.
    Raises: ArgumentError for a negative `n`, ArgumentTypeError for no function, ShapeError,
    DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.mask_indices(2, dt.triu, device="reference")]
    [[0, 0, 1], [0, 1, 1]]
    """
    a_function("mask_indices", mask_func, "mask_func")
    size, k = integer("mask_indices", n, "n", 0), integer("mask_indices", k, "k")
    whole = ones(dimensions("mask_indices", (size, size)), dtype=int64, device=device)
    ours = mask_func is tril or mask_func is triu  # whose `k` is given by name
    return nonzero(mask_func(whole, k=k) if ours else mask_func(whole, k))
