"""Rearranged tensors in new memory: copies, concatenation, repetition, rolling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import cast as typed_cast

import numpy as np

from ... import layout as lay
from ...argument_checks import choice, dimensions, host_memory, integer, integers, sequence, shown
from ...compat.keywords import MISSING, rebind_keywords
from ...dtypes import KIND_RANKS, int64
from ...engine import evaluate as run
from ...errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...graph.expr import Expr, node, spec, tape_of
from ...layout import Move, Shape
from ...ops import table as ops
from ...ops.dtype_rules import common
from ...ops.table import CONCAT
from ...tensor.c_fields import is_strided
from ...tensor.host import allocate_leaf, from_host, read_values
from ...tensor.primitives import apply, dispatch, is_viewable, pending_view, slice_along, view
from ...tensor.promotion import Array, as_tensors
from ...tensor.tensor import Tensor, create_tensor, required, strided
from ...tensor.writes import write_out
from ..creation.constructors import extents
from ..datatypes import DTypeLike, any_dtype, cast, require_same_device
from ..graph_cache import CachedFunction
from ..known_calls import (
    CONCAT_LAZY_TENSORS_MAX,
    concat_cache,
    concat_cached,
    concat_key,
    concat_plain,
    copy_plain,
    exprs_if_strided,
    join_on_host,
)
from ..plain_calls import accelerate
from ..variants import public
from .manipulation import Axes, expand_dims, ravel, reshape

__all__ = ["concat", "contiguous", "copy", "repeat", "roll", "stack", "tile"]

CONCAT_LAZY_ROW_MIN = 2  # mean elements of a tensor per row of the result; columns are copied
# Small columns are not copied: copies of two columns of 1 K take 33 us, the arithmetic 12 us.
CONCAT_LAZY_ELEMENTS_MAX = 1 << 13


@public(method=("copy", "clone"), wrap=False, compiled=partial(accelerate, work=copy_plain))
def copy(x: Tensor = MISSING, /, *more: object, **theirs: object) -> Tensor:
    """Return a new contiguous tensor of the same elements; gradients flow through it.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> x = dt.zeros(2)
    >>> y = dt.copy(x).fill_(1)
    >>> x.tolist(), y.tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    if more or theirs:
        return rebind_keywords(copy, locals())
    return apply(ops.COPY, (required("copy", x),))


@public(method=True, wrap=False)
def contiguous(x: Tensor, /, memory_format: None = None) -> Tensor:
    """Return `x` itself if its elements are dense in row-major order, else a dense copy.

    - `memory_format`: only None; strides are always row-major.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError if the argument is not a tensor; ArgumentTypeError for another
    `memory_format` than None.
    See also: `copy`, `is_contiguous`.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 3))
    >>> dt.contiguous(x) is x, dt.contiguous(x.T).stride()
    (True, (2, 1))
    """
    if memory_format is not None:
        raise ArgumentTypeError(
            "contiguous: memory_format must be None; strides are always row-major"
        )
    return x if required("contiguous", x).is_contiguous() else copy(x)


def concat(
    arrays: Sequence[Array] = MISSING,
    /,
    axis: int | None = 0,
    *more: object,
    dim: int | None = None,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: Tensor | None = None,
    **theirs: object,
) -> Tensor:
    """Concatenate tensors along an existing axis.

    - `arrays`: a list or tuple of tensors.
    - `axis`: one axis; None ravels all of them first.
    - `dim`: PyTorch's name of `axis`.
    - `dtype`: the dtype of the result.
    - `casting`: "same_kind" refuses a `dtype` that loses a kind of number; "unsafe" does not.

    Shapes: equal number of dimensions, and equal sizes except along the axis.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError unless the other sizes agree, DeviceError, DTypeError, ArgumentError for no
    tensors.
    See also: `stack`, `hstack`, `vstack`, `split`.

    >>> import dovetail as dt
    >>> dt.concat([dt.ones(1), dt.zeros(2)]).tolist()
    [1.0, 0.0, 0.0]
    """
    if more or theirs:
        return rebind_keywords(concat, locals())
    if dim is not None:
        axis = dim
    if out is not None:
        joined = concat(arrays, axis, dtype=dtype, casting=casting)
        return write_out("concat", out, joined)
    if dtype is not None:
        arrays = _cast_all("concat", arrays, dtype, casting)
    exprs = exprs_if_strided(arrays) if type(axis) is int else []
    key = concat_key("concat", axis, exprs)
    if exprs and (repeated := concat_cached(key, exprs)) is not None:
        return repeated
    if exprs and axis == 0 and (copied := join_on_host("concat", exprs)) is not None:
        return copied
    tensors = [*as_tensors("concat", *sequence("concat", arrays, "arrays", "tensors"))]
    require_same_device("concat", tensors)
    if axis is None:
        tensors, axis = [ravel(a) for a in tensors], 0
    d = lay.axis("concat", axis, tensors[0].ndim)
    if any(not is_strided(a) for a in tensors):
        return dispatch("concat", "concat", tensors, tensors, d)
    other_sizes = {
        a.shape[:d] + a.shape[d + 1 :] if a.ndim == tensors[0].ndim else None for a in tensors
    }
    if len(other_sizes) > 1:
        raise ShapeError(
            f"concat: the shapes {', '.join(str(a.shape) for a in tensors)} must be equal except "
            f"along axis {d}; "
            "use dt.pad or x.reshape first"
        )
    whole_dtype = common("concat", [a.dtype for a in tensors], allowed="biufc")
    rows = [math.prod(a.shape[d:]) for a in tensors]
    small = sum(a.size for a in tensors) <= CONCAT_LAZY_ELEMENTS_MAX
    if len(tensors) <= CONCAT_LAZY_TENSORS_MAX and (
        small or sum(rows) >= CONCAT_LAZY_ROW_MIN * len(tensors)
    ):
        joined = _concat_lazily([cast(a, whole_dtype)._expr for a in tensors], d)
        if exprs and all(a.dtype is whole_dtype for a in tensors):
            concat_cache[key] = None, joined._expr.spec, d
        return joined
    first = tensors[0].shape
    shape = dimensions("concat", (*first[:d], sum(a.shape[d] for a in tensors), *first[d + 1 :]))
    whole = create_tensor(allocate_leaf(spec(shape, whole_dtype, tensors[0].device, "concat")))
    start = 0
    for a in tensors:
        run.write([cast(a, whole_dtype)._expr], slice_along(whole, d, start, a.shape[d])._expr)
        start += a.shape[d]
    whole._expr.tape = tape_of(CONCAT, tuple(a._expr for a in tensors), whole._expr.spec, d)
    return whole


concat = accelerate(concat, concat_plain)


def _cast_all(op: str, arrays: Sequence[Array], dtype: DTypeLike, casting: str) -> list[Tensor]:
    """Return the tensors cast to a dtype. Raises: DTypeError if one loses its kind of number."""
    target, casting = any_dtype(op, dtype), choice(op, casting, "casting", ("same_kind", "unsafe"))
    tensors = as_tensors(op, *sequence(op, arrays, "arrays", "tensors"))
    for x in tensors if casting == "same_kind" else ():
        kinds = x.dtype.kind, target.kind
        if KIND_RANKS[kinds[0]] > KIND_RANKS[kinds[1]] or kinds == ("i", "u"):
            raise DTypeError(
                f"{op}: a cast from {x.dtype.name} to {target.name} loses a kind of number; pass "
                'casting="unsafe"'
            )
    return [cast(x, target) for x in tensors]


def _concat_lazily(exprs: Sequence[Expr], axis: int) -> Tensor:
    """Record a concatenation as a pending expression of this axis, and return its tensor."""
    first = exprs[0].spec
    size = sum(e.spec.shape[axis] for e in exprs)
    shape = dimensions("concat", (*first.shape[:axis], size, *first.shape[axis + 1 :]))
    return create_tensor(node(CONCAT, tuple(exprs), spec(shape, first.dtype, first.device), axis))


@public(cache=True, widen=False)
def stack(
    arrays: Sequence[Array],
    /,
    axis: int = 0,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: Tensor | None = None,
) -> Tensor:
    """Stack tensors along a new axis.

    - `arrays`: a list or tuple of tensors.
    - `axis`: the position of the new axis in the result.
    - `dtype`: the dtype of the result.
    - `casting`: "same_kind" refuses a `dtype` that loses a kind of number; "unsafe" does not.

    Shapes: all equal.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, AxisError, ArgumentError for no tensors.
    See also: `concat`, `unstack`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1, 2])
    >>> dt.stack([x, x * 10], axis=1).tolist()
    [[1, 10], [2, 20]]
    """
    if dtype is not None:
        arrays = _cast_all("stack", arrays, dtype, casting)
    exprs = exprs_if_strided(arrays) if type(axis) is int else []
    key = concat_key("stack", axis, exprs)
    if exprs and (repeated := concat_cached(key, exprs)) is not None:
        return repeated
    if exprs and axis == 0 and (copied := join_on_host("stack", exprs)) is not None:
        return copied
    tensors = as_tensors("stack", *sequence("stack", arrays, "arrays", "tensors"))
    require_same_device("stack", tensors)
    if len({a.shape for a in tensors}) > 1:
        raise ShapeError(
            f"stack: shapes must be equal, got {', '.join(str(a.shape) for a in tensors)}; "
            "use dt.concat for different sizes"
        )
    d = lay.axis("stack", axis, tensors[0].ndim + 1)
    stacked = concat([expand_dims(a, axis=d) for a in tensors], axis=d)
    if not exprs or len({a.dtype for a in tensors}) > 1 or stacked._expr.op is not CONCAT:
        return stacked
    e, shape = stacked._expr, tensors[0].shape
    m: Move = ("reshape", (*shape[:d], 1, *shape[d:]))
    concat_cache[key] = (m,) * len(tensors), e.spec, d
    return typed_cast("Tensor", concat_cached(key, exprs))


@public(method=True, in_place=True, cache=True, widen=False)
def roll(
    x: Tensor, /, shift: Axes, axis: Axes | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a new tensor with elements shifted cyclically along some axes.

    - `shift`: the distance towards higher indices; one for all axes or one for each.
    - `axis`: an int or a tuple of ints; None rolls the raveled tensor.

    Shapes: any; the result has the same.
    Dtypes: all.
    Raises: AxisError, ArgumentError unless there are as many shifts as axes.
    See also: `flip`, `fft.fftshift`.

    >>> import dovetail as dt
    >>> dt.roll(dt.asarray([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    required("roll", x)
    plain = is_strided(x) and type(shift) is int and (axis is None or type(axis) is int)
    key = ("roll", shift, axis, x._expr.spec) if plain else ()
    if plain and (repeated := concat_cached(key, [x._expr, x._expr])) is not None:
        return repeated
    rolled = _roll_axes(x, shift, axis)
    if plain and (e := rolled._expr).op is CONCAT:
        moves = [a.attrs for a in e.args if isinstance(a, Expr)]
        concat_cache[key] = moves, e.spec, e.attrs
    return rolled


def _roll_axes(x: Tensor, shift: Axes, axis: Axes | None) -> Tensor:
    """Return a rolled copy; without an axis roll the raveled elements.

    Raises: ArgumentError unless there is an axis for each shift.
    """
    shifts = integers("roll", shift, "shift")
    if axis is None:
        if len(shifts) != 1:
            raise ArgumentError(
                f"roll: expected an axis for each of {len(shifts)} shifts, got axis=None"
            )
        if x.ndim == 1:
            return _roll_axes(x, shifts[0], 0)
        flat = ravel(x)
        rolled = _roll(flat, shifts[0], 0)
        return reshape(rolled, x.shape, copy=rolled is flat or None)
    axes = integers("roll", axis, "axis")
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        raise ArgumentError(
            f"roll: expected an axis for each of {len(shifts)} shifts, got {len(axes)} axes"
        )
    result = x
    for s, a in zip(shifts, axes, strict=True):
        result = _roll(result, s, lay.axis("roll", a, x.ndim))
    return result if result is not x else copy(x)


def _roll(x: Tensor, shift: int, axis: int) -> Tensor:
    """Return a copy rolled along one axis; `x` itself if the shift is a multiple of the size."""
    n = x.shape[axis]
    cut = -shift % n if n else 0
    if cut == 0:
        return x
    if not is_strided(x):
        halves = [slice_along(x, axis, a, k, "roll") for a, k in ((cut, n - cut), (0, cut))]
        return concat(halves, axis=axis)
    moves = (lay.slice_along(x.shape, axis, a, k) for a, k in ((cut, n - cut), (0, cut)))
    return _concat_lazily([pending_view(x._expr, m) for m in moves], axis)


@public(method=True, out=True, widen=False)
def repeat(
    x: Tensor,
    repeats: int | Sequence[int] | Tensor,
    /,
    *,
    axis: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Repeat each element along an axis.

    - `repeats`: one count, or one for each element along the axis; the host reads a tensor of
      counts.
    - `axis`: one axis; None ravels x first.

    Shapes: any; the axis becomes as long as the sum of the counts.
    Dtypes: all.
    Raises: ShapeError for another number of counts, ArgumentError for a negative one, AxisError.
    See also: `tile`, `repeat_interleave`, `broadcast_to`.

    >>> import dovetail as dt
    >>> x = dt.arange(2)
    >>> dt.repeat(x, 2).tolist(), dt.repeat(x, [3, 1]).tolist()
    ([0, 0, 1, 1], [0, 0, 0, 1])
    """
    if type(repeats) is int:
        return _cached_repeat.call((x, repeats, axis), {})
    return _repeat_axis(x, repeats, axis)


def _repeat_axis(x: Tensor, repeats: int | Sequence[int] | Tensor, axis: int | None) -> Tensor:
    """Repeat each element along an axis; read the counts of a tensor on the host."""
    if axis is None:
        x, axis = ravel(required("repeat", x)), 0
    d = lay.axis("repeat", axis, required("repeat", x).ndim)
    n = x.shape[d]
    counts: object = repeats
    if isinstance(repeats, Tensor | np.ndarray):
        counts = read_values("repeat", repeats).tolist()
    times = integers("repeat", counts, "repeats")
    if len(times) != 1:
        return _repeat_each(x, times, d)
    repeats = integer("repeat", times[0], "repeats", 0)
    dimensions("repeat", (n * repeats,))
    inner = (*x.shape[: d + 1], repeats, *x.shape[d + 1 :])
    wide = view(expand_dims(x, axis=d + 1), ("expand", inner))
    return _copy_reshaped(wide, (*x.shape[:d], n * repeats, *x.shape[d + 1 :]))


_cached_repeat = CachedFunction(_repeat_axis)  # for an int; a tensor of counts is read by the host


def _repeat_each(x: Tensor, times: Shape, axis: int) -> Tensor:
    """Repeat each slice along an axis by its own count. Raises: ShapeError unless counts fit."""
    n = strided("repeat", x).shape[axis]
    if len(times) != n or any(t < 0 for t in times):
        raise ShapeError(
            f"repeat: repeats must be {n} counts for axis {axis} of shape {x.shape}, got "
            f"{shown(times)}"
        )
    dimensions("repeat", (sum(times),))
    with host_memory(f"repeat: {sum(times):,} positions"):
        positions = np.repeat(np.arange(n), times)
    shape = (*x.shape[:axis], positions.size, *x.shape[axis + 1 :])
    index = from_host(positions.reshape(-1, *(1,) * (x.ndim - axis - 1)), int64, x.device)
    source_axes = tuple(-1 if d == axis else d for d in range(x.ndim))
    return create_tensor(
        node(
            ops.GATHER,
            (x._expr, index._expr),
            spec(shape, x.dtype, x.device),
            (shape, source_axes, (axis,), None),
        )
    )


@public(method=True, cache=True, widen=False)
def tile(x: Tensor, repetitions: int | Sequence[int], /, *, out: Tensor | None = None) -> Tensor:
    """Repeat the whole tensor along each axis.

    - `repetitions`: the counts for the last axes, as an int or a tuple; other axes have count 1.

    Shapes: any; each size is multiplied.
    Dtypes: all.
    Raises: ShapeError for a negative number of repetitions.
    See also: `repeat`, `broadcast_to`.

    >>> import dovetail as dt
    >>> dt.tile(dt.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    required("tile", x)
    times = extents("tile", repetitions)
    times = (1,) * (x.ndim - len(times)) + times
    shape = (1,) * (len(times) - x.ndim) + x.shape
    pairs = list(zip(times, shape, strict=True))
    split_shape = tuple(k for t, n in pairs for k in ((n,) if t == 1 else (1, n)))
    wide = tuple(k for t, n in pairs for k in ((n,) if t == 1 else (t, n)))
    dimensions("tile", wide)
    expanded = view(view(x, ("reshape", split_shape), "tile"), ("expand", wide), "tile")
    return _copy_reshaped(expanded, dimensions("tile", [t * n for t, n in pairs]))


def _copy_reshaped(x: Tensor, shape: Shape) -> Tensor:
    """Return the elements in another shape, in new memory, with a single copy."""
    m = ("reshape", shape)
    shares = not is_strided(x) or is_viewable(x, m)
    return copy(view(x, m)) if shares else view(copy(x), m)
