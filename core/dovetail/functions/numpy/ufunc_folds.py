"""Folds of NumPy's associative ufuncs: `reduce`, `accumulate`, `reduceat` and `at`.

`protocol` uses the reductions of `dt` where there are any. The folds here take log2(n) steps for n
elements, in an order that depends on n only; `add.at` adds one value after the other, as NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ... import layout as lay
from ...argument_checks import flag
from ...dtypes import DType, bool_, int64, uint64
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops import table as ops
from ...tensor.host import read_values
from ...tensor.primitives import apply
from ...tensor.promotion import Array, Operand, as_operand
from ...tensor.tensor import Tensor, strided
from ...tensor.writes import write_result
from ..creation.constructors import Fill, arange, create_full
from ..datatypes import DTypeLike, any_dtype, cast, result_type
from ..elementwise.op_functions import add
from ..indexing.index_keys import is_array, key_parts, select
from ..indexing.index_reads import searchsorted, take
from ..indexing.index_writes import scatter_selected, setitem
from ..reductions.statistics import Axis, Mask, as_mask
from ..shape.copies import concat, stack
from ..shape.manipulation import broadcast_to, moveaxis, ravel, reshape
from ..sorting.stable_sort import argsort

Binary = Callable[[Any, Any], Any]

_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
_BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
_EXTREMES = (np.maximum, np.minimum, np.fmax, np.fmin)
_OTHERS = (np.add, np.multiply, np.logaddexp, np.logaddexp2, np.gcd, np.lcm, np.hypot)
_ASSOCIATIVE: tuple[np.ufunc, ...] = (*_LOGICAL, *_BITWISE, *_EXTREMES, *_OTHERS)


@lru_cache
def adapt_method(ufunc: np.ufunc, method: str, ours: Binary) -> Callable[..., object] | None:
    """Return a method of a ufunc, by its function of two tensors `ours`; None if it is lacking."""
    if ufunc is np.subtract and method == "at":
        return lambda a, indices, b: _fold_at(np.add, add, a, indices, -_as_values(a, b))
    methods: dict[str, Callable[..., object]] = {
        "reduce": _fold,
        "accumulate": _scan,
        "reduceat": _reduce_slices,
        "at": _fold_at,
    }
    adapted = methods.get(method)
    if ufunc not in _ASSOCIATIVE or adapted is None:
        return None
    return lambda *args, **options: adapted(ufunc, ours, *args, **options)


def _prepare(ufunc: np.ufunc, x: Tensor, dtype: DTypeLike) -> Tensor:
    """Return the elements in the dtype in which a ufunc combines them."""
    if ufunc in _LOGICAL:
        return apply(ops.NOT_EQUAL, (x, 0))
    if dtype is not None:
        return cast(x, any_dtype(ufunc.__name__, dtype))
    wide = {"b": int64, "i": int64, "u": uint64} if ufunc in (np.add, np.multiply) else {}
    return cast(x, wide.get(x.dtype.kind))


def _fold(
    ufunc: np.ufunc,
    ours: Binary,
    array: Tensor,
    axis: Axis = 0,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    initial: Fill | None = None,
    where: Mask = None,
) -> Tensor:
    """Return `ufunc.reduce`: the combination of all elements along axes, by halves.

    Raises: ShapeError without elements if the ufunc has no identity, as NumPy; AxisError.
    """
    name = f"{ufunc.__name__}.reduce"
    keepdims = flag(name, keepdims, "keepdims")
    x = _prepare(ufunc, strided(name, array), dtype)
    axes = lay.axes(name, axis, x.ndim)
    kept_axes = tuple([d for d in range(x.ndim) if d not in axes])
    shape = tuple(
        [1 if d in axes else n for d, n in enumerate(x.shape) if keepdims or d in kept_axes]
    )
    neutral: Fill | None = initial if ufunc.identity is None else ufunc.identity
    if ufunc is np.bitwise_and and x.dtype.kind == "u":  # NumPy's identity is -1
        neutral = x.dtype.max
    start = (
        None if neutral is None else create_full(name, (), neutral, dtype=x.dtype, device=x.device)
    )
    if where is not None and where is not True:
        if start is None:
            raise ArgumentError(f"{name}: where= needs initial=, because there is no identity")
        x = apply(ops.WHERE, (as_mask(name, where, x), x, start))
    combined = prod([x.shape[d] for d in axes])  # not -1, which is unknown where others are 0
    x = reshape(moveaxis(x, axes, range(len(axes))), (combined, *[x.shape[d] for d in kept_axes]))
    if not x.shape[0]:
        if start is None:
            raise ShapeError(f"{name}: expected at least one element, got shape {array.shape}")
        x = broadcast_to(start, (1, *x.shape[1:]))
    while (n := x.shape[0]) > 1:
        half = ours(x[: n // 2], x[n // 2 : n // 2 * 2])
        x = concat([half, x[n - 1 :]]) if n % 2 else half
    result: Tensor = reshape(x, shape)
    if initial is not None:
        result = ours(result, create_full(name, (), initial, dtype=x.dtype, device=x.device))
    return result


def _scan(
    ufunc: np.ufunc, ours: Binary, array: Tensor, axis: int = 0, dtype: DTypeLike = None
) -> Tensor:
    """Return `ufunc.accumulate`: the combination of the elements up to each one, in doubling steps.

    Raises: AxisError.
    """
    name = f"{ufunc.__name__}.accumulate"
    x = _prepare(ufunc, strided(name, array), dtype)
    axis = lay.axis(name, axis, x.ndim)
    return moveaxis(_scan_rows(ours, moveaxis(x, axis, 0), None), 0, axis)


def _scan_rows(ours: Binary, x: Tensor, groups: Tensor | None) -> Tensor:
    """Return running combinations along axis 0, within each run of equal `groups`."""
    step, n = 1, x.shape[0]
    while step < n:
        combined = ours(x[:-step], x[step:])
        if groups is not None:
            combined = apply(ops.WHERE, (groups[step:] == groups[:-step], combined, x[step:]))
        x = concat([x[:step], combined])
        step *= 2
    return x


def _reduce_slices(
    ufunc: np.ufunc,
    ours: Binary,
    array: Tensor,
    indices: Array,
    axis: int = 0,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return `ufunc.reduceat`: the combination of each slice between indices, read by the host.

    Raises: ArgumentError for an index outside of the axis, as NumPy; AxisError.
    """
    name = f"{ufunc.__name__}.reduceat"
    x = strided(name, array)
    axis = lay.axis(name, axis, x.ndim)
    rows, n = moveaxis(_prepare(ufunc, x, dtype), axis, 0), x.shape[axis]
    starts = read_values(name, indices) if isinstance(indices, Tensor) else np.asarray(indices)
    bounds = [int(i) for i in np.asarray(starts).reshape(-1)]
    if any(not 0 <= i < n for i in bounds):
        raise ArgumentError(f"{name}: indices must be in 0..{n - 1}, got {bounds}")
    if not bounds:
        return moveaxis(rows[:0], 0, axis)
    slices = [rows[i : max(j, i + 1)] for i, j in zip(bounds, [*bounds[1:], n], strict=True)]
    return moveaxis(stack([_fold(ufunc, ours, s) for s in slices]), 0, axis)


def _fold_at(ufunc: np.ufunc, ours: Binary, a: Tensor, indices: Any, b: Operand) -> None:
    """Write `ufunc.at`: combine elements of `a` at indices with `b`; a repeated index combines all.

    Real numbers are added by a scatter. For other ufuncs and dtypes the elements and those of `b`
    are sorted by position, then combined within equal positions.
    """
    name = f"{ufunc.__name__}.at"
    values = _as_values(strided(name, a), b)
    d = bool_ if ufunc in _LOGICAL else a.dtype
    if d is a.dtype and result_type(a, values).kind != d.kind:
        raise DTypeError(
            f"{name}: values must not lose their kind, got {values.dtype.name} for {d.name}; "
            "cast them with x.astype"
        )
    if ufunc is np.add and d.kind in "iuf" and d.compute is d:
        _add_at(name, a, indices, values)
        return
    at = reshape(arange(a.size, device=a.device), a.shape)[indices]
    more = ravel(broadcast_to(values, at.shape))
    items = concat([_to(ravel(a), d), _to(more, d)])
    groups = concat([arange(a.size, device=a.device), ravel(at)])
    order = argsort(groups, axis=0)
    groups = take(groups, order, axis=0)
    combined = _scan_rows(ours, take(items, order, axis=0), groups)
    positions = arange(a.size, device=a.device)
    last = searchsorted(groups, positions, side="right") - 1
    result = cast(take(combined, last, axis=0), a.dtype)
    if d is bool_:  # other elements keep values other than 0 and 1
        is_target = apply(ops.NOT_EQUAL, (searchsorted(groups, positions), last))
        result = apply(ops.WHERE, (is_target, result, ravel(a)))
    write_result(name, a, [reshape(result, a.shape)])


def _add_at(name: str, a: Tensor, indices: Any, values: Tensor) -> None:
    """Add values to the elements of `a` at indices, in the order of the indices."""
    keys = key_parts(a, indices)
    if any(is_array(key) for key in keys):
        scatter_selected(name, select(name, a, keys), values, "add")
    else:
        setitem(a, indices, add(a[indices], values))


def _as_values(a: Tensor, b: Operand) -> Tensor:
    """Return the second operand of `ufunc.at` as a tensor on the device of the first."""
    return b if isinstance(b, Tensor) else as_operand("at", np.asarray(b), (a,))


def _to(x: Tensor, d: DType) -> Tensor:
    """Return the elements in a dtype; as bool, True for each nonzero element."""
    return apply(ops.NOT_EQUAL, (x, 0)) if d is bool_ else cast(x, d)
