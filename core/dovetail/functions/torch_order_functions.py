"""Functions of PyTorch that order, count or search elements; most return positions, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from .. import layout as lay
from ..argument_checks import flag, integer, real, shown
from ..dtypes import bool_, float64, int32, int64, uint8
from ..errors import ArgumentError, ShapeError
from ..graph.expr import node
from ..ops import table as ops
from ..tensor.other_layouts import call_along, has_rule
from ..tensor.primitives import apply, slice_along
from ..tensor.promotion import Array
from ..tensor.tensor import Tensor, create_tensor, strided
from .creation.constructors import arange, ones
from .datatypes import cast, move_as, move_to_supporting_device
from .indexing.index_reads import gather_along_unchecked, searchsorted, take
from .indexing.masks import nonzero
from .reductions.cumulative import cumulative_sum, diff
from .reductions.histograms import histogram
from .reductions.statistics import any as any_of
from .reductions.statistics import argmax
from .reductions.statistics import max as max_of
from .reductions.statistics import min as min_of
from .shape.copies import concat
from .shape.manipulation import moveaxis, ravel, reshape, squeeze
from .sorting.stable_sort import argsort
from .variants import public

__all__ = ["bucketize", "cummax", "cummin", "histc", "kthvalue", "mode", "unique_consecutive"]


class ValuesIndices(NamedTuple):
    """The result of `cummax`, `cummin`, `kthvalue` and `mode`."""

    values: Tensor
    indices: Tensor


def _rows(op: str, x: Tensor, dim: int) -> tuple[Tensor, int]:
    """Return `x`, with one axis if it has none, and the number of the axis `dim`."""
    x = reshape(x, (1,)) if strided(op, x).ndim == 0 else x
    return x, lay.axis(op, integer(op, dim, "dim"), x.ndim)


def _pick(
    x: Tensor, index: Tensor, axis: int, keepdim: bool, shape: tuple[int, ...]
) -> ValuesIndices:
    """Return the elements at positions of size 1 along the axis; `shape`: that of the operand."""
    pair = gather_along_unchecked(x, index, axis), index
    if not shape:
        return ValuesIndices(*(reshape(t, ()) for t in pair))
    return ValuesIndices(*(pair if keepdim else (squeeze(t, axis) for t in pair)))


def _call_in_layout(
    op: str, function: Callable[..., ValuesIndices], x: Tensor, dim: int, keepdim: bool = True
) -> ValuesIndices:
    """Return the pair of a tensor of another layout; `function` gets `dim`, and keeps the axis."""
    axis = lay.axis(op, integer(op, dim, "dim"), x.ndim)
    pair = call_along(op, partial(function, dim=axis), (x,), (axis,))
    return ValuesIndices(*(t if keepdim else squeeze(t, axis) for t in pair))


# --- running extremes


def _positions(x: Tensor, axis: int) -> Tensor:
    """Return the positions along an axis, with size 1 along the others."""
    column = tuple(n if d == axis else 1 for d, n in enumerate(x.shape))
    return reshape(arange(x.shape[axis], dtype=int64, device=x.device), column)


def _scan(op: ops.Op, x: Tensor, axis: int) -> Tensor:
    """Return the running extreme of a tensor, which has no gradient."""
    return create_tensor(node(op, (x._expr,), x._expr.spec, (axis, False, None)))


def _running_extreme(op: str, rule: ops.Op, x: Tensor, dim: int) -> ValuesIndices:
    """Return the running extremes and the last positions at which they occur so far."""
    if has_rule(x, "along"):
        return _call_in_layout(op, partial(_running_extreme, op, rule), x, dim)
    shape = strided(op, x).shape
    x, axis = _rows(op, x, dim)
    keys = cast(x, uint8) if x.dtype is bool_ else x.detach()
    best = _scan(rule, keys, axis)
    record = apply(ops.EQUAL, (keys, best))
    if x.dtype.kind == "f":
        record = apply(ops.LOGICAL_OR, (record, apply(ops.ISNAN, (keys,))))
    at = apply(ops.WHERE, (record, _positions(x, axis), 0))
    indices = _scan(ops.CUMULATIVE_MAX, at, axis)
    values = gather_along_unchecked(x, indices, axis)
    return ValuesIndices(reshape(values, shape), reshape(indices, shape))


@public(method=True, out=True, widen=False)
def cummax(x: Tensor, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> ValuesIndices:
    """Return the largest elements up to each one along `dim`: (values, indices).

    From the first NaN on all values are NaN. Of equal elements, and of NaNs, the index is that of
    the last one.

    - `dim`: the axis.

    Shapes: any; both results have x's.
    Dtypes: real; the indices are int64.
    Gradient: flows to the elements at the indices.
    Raises: AxisError, DTypeError for complex numbers.
    See also: `cummin`, `cumulative_sum`, `max`.

    >>> import dovetail as dt
    >>> values, indices = dt.cummax(dt.asarray([1, 3, 2, 3]), 0)
    >>> values.tolist(), indices.tolist()
    ([1, 3, 3, 3], [0, 1, 1, 3])
    """
    return _running_extreme("cummax", ops.CUMULATIVE_MAX, x, dim)


@public(method=True, out=True, widen=False)
def cummin(x: Tensor, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> ValuesIndices:
    """Return the smallest elements up to each one along `dim`: (values, indices).

    From the first NaN on all values are NaN. Of equal elements, and of NaNs, the index is that of
    the last one.

    - `dim`: the axis.

    Shapes: any; both results have x's.
    Dtypes: real; the indices are int64.
    Gradient: flows to the elements at the indices.
    Raises: AxisError, DTypeError for complex numbers.
    See also: `cummax`, `cumulative_sum`, `min`.

    >>> import dovetail as dt
    >>> values, indices = dt.cummin(dt.asarray([3, 1, 2, 1]), 0)
    >>> values.tolist(), indices.tolist()
    ([3, 1, 1, 1], [0, 1, 1, 3])
    """
    return _running_extreme("cummin", ops.CUMULATIVE_MIN, x, dim)


# --- elements of sorted rows


@public(method=True, out=True, widen=False)
def kthvalue(
    x: Tensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> ValuesIndices:
    """Return the k-th smallest elements along `dim`: (values, indices).

    Of equal elements the first one counts first; NaNs come last.

    - `k`: the rank, which counts from 1.
    - `dim`: the axis.
    - `keepdim`: True leaves the axis with size 1.

    Shapes: both results lack the axis.
    Dtypes: real; the indices are int64.
    Gradient: flows to the elements at the indices.
    Cost: a sort along the axis.
    Raises: ArgumentError for a rank out of range; AxisError, DTypeError for complex numbers.
    See also: `topk`, `sort`, `partition`, `quantile`.

    >>> import dovetail as dt
    >>> values, indices = dt.kthvalue(dt.asarray([5, 1, 3]), 2)
    >>> values.item(), indices.item()
    (3, 2)
    """
    if has_rule(x, "along"):
        function = partial(kthvalue, k=k, keepdim=True)
        return _call_in_layout("kthvalue", function, x, dim, flag("kthvalue", keepdim, "keepdim"))
    shape = strided("kthvalue", x).shape
    x, axis = _rows("kthvalue", x, dim)
    rank, size = integer("kthvalue", k, "k"), x.shape[axis]
    if not 1 <= rank <= size:
        raise ArgumentError(
            f"kthvalue: k must be between 1 and {size} (size of axis {dim}), got {shown(k)}"
        )
    index = slice_along(argsort(x.detach(), axis=axis), axis, rank - 1, 1)
    return _pick(x, index, axis, flag("kthvalue", keepdim, "keepdim"), shape)


@public(method=True, out=True, widen=False)
def mode(
    x: Tensor,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> ValuesIndices:
    """Return the most common elements along `dim`: (values, indices).

    Of equally common ones this is the smallest, and the index is that of its last occurrence. Each
    NaN differs from all others.

    - `dim`: the axis.
    - `keepdim`: True leaves the axis with size 1.

    Shapes: both results lack the axis.
    Dtypes: real; the indices are int64.
    Gradient: flows to the elements at the indices.
    Cost: a sort along the axis.
    Raises: ShapeError for an empty axis; AxisError, DTypeError for complex numbers.
    See also: `unique_counts`, `bincount`, `median`.

    >>> import dovetail as dt
    >>> values, indices = dt.mode(dt.asarray([3, 1, 3, 1, 2]))
    >>> values.item(), indices.item()
    (1, 3)
    """
    if has_rule(x, "along"):
        function = partial(mode, keepdim=True)
        return _call_in_layout("mode", function, x, dim, flag("mode", keepdim, "keepdim"))
    shape = strided("mode", x).shape
    x, axis = _rows("mode", x, dim)
    if not x.shape[axis]:
        raise ShapeError(f"mode: expected at least one element along axis {dim}, got shape {shape}")
    order = argsort(x.detach(), axis=axis)
    ordered, positions = gather_along_unchecked(x.detach(), order, axis), _positions(x, axis)
    starts = apply(ops.WHERE, (_differs_from_last(ordered, axis), positions, 0))
    length = apply(ops.SUBTRACT, (positions, _scan(ops.CUMULATIVE_MAX, starts, axis)))
    best = argmax(length, axis=axis, keepdims=True)  # the end of the first one of the longest runs
    index = gather_along_unchecked(order, best, axis)
    return _pick(x, index, axis, flag("mode", keepdim, "keepdim"), shape)


def _differs_from_last(x: Tensor, axis: int) -> Tensor:
    """Return True for each element that differs from the one before it, and for the first one."""
    n = x.shape[axis]
    first = ones((*x.shape[:axis], min(n, 1), *x.shape[axis + 1 :]), dtype=bool_, device=x.device)
    before, after = (slice_along(x, axis, k, max(n - 1, 0)) for k in (0, min(n, 1)))
    return concat([first, apply(ops.NOT_EQUAL, (after, before))], axis=axis)


@public(method=True, widen=False)
def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the first element of each run of equal elements.

    With options, the result is a tuple (values, inverse, counts) of what they ask for. NaNs differ
    from each other. The host reads the number of runs.

    - `return_inverse`: True also returns for each element the number of its run.
    - `return_counts`: True also returns the lengths of the runs.
    - `dim`: the axis whose slices are compared; None flattens `x`.

    Shapes: the values are a vector, or x's with the number of runs along `dim`; the inverse has the
    shape of x, or is a vector along `dim`; the counts are a vector.
    Dtypes: all; inverse and counts are int64.
    Raises: AxisError.
    See also: `unique_values`, `unique`.

    >>> import dovetail as dt
    >>> dt.unique_consecutive(dt.asarray([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    op = "unique_consecutive"
    axis = 0 if dim is None else lay.axis(op, integer(op, dim, "dim"), strided(op, x).ndim)
    source = ravel(strided(op, x)) if dim is None else x
    n = source.shape[axis]
    rows = reshape(moveaxis(source, axis, 0), (n, source.size // n if n else 0))
    is_new = (
        any_of(_differs_from_last(rows, 0), axis=1)
        if n
        else ones((0,), dtype=bool_, device=x.device)
    )
    (starts,) = nonzero(is_new)
    results = [take(source, starts, axis=axis)]
    if flag(op, return_inverse, "return_inverse"):
        inverse = apply(ops.SUBTRACT, (cumulative_sum(is_new), 1))
        results.append(reshape(inverse, x.shape) if dim is None else inverse)
    if flag(op, return_counts, "return_counts"):
        results.append(diff(starts, append=n) if n else starts)
    return results[0] if len(results) == 1 else tuple(results)


# --- bins


@public(method=True, out=True, widen=False)
def bucketize(
    x: Array,
    boundaries: Array,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return for each element the number of boundaries below it: `dt.searchsorted(boundaries, x)`.

    - `boundaries`: a sorted vector.
    - `out_int32`: True gives int32 instead of int64.
    - `right`: True also counts a boundary that is equal to the element.

    Shapes: any; the result has x's.
    Dtypes: all, promoted for the comparison.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `searchsorted`, `digitize`.

    >>> import dovetail as dt
    >>> dt.bucketize(dt.asarray([1, 2, 9]), [2, 5]).tolist()
    [0, 0, 2]
    """
    side = "right" if flag("bucketize", right, "right") else "left"
    bins = searchsorted(boundaries, x, side=side)
    return cast(bins, int32) if flag("bucketize", out_int32, "out_int32") else bins


@public(method=True, out=True, widen=False)
def histc(
    x: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
) -> Tensor:
    """Count the elements in each of `bins` bins of equal width from `min` to `max`.

    The last bin contains its right edge. Elements outside are not counted, nor is NaN.

    - `bins`: the number of bins.
    - `min`, `max`: the ends of the bins. If they are equal, they are those of the data, which the
      host reads; if those are equal, too, the bins reach 1 further on both sides.

    Shapes: any; gives (bins,).
    Dtypes: real; the counts have x's dtype.
    Raises: ArgumentError for `min` above `max`, or ends that are not finite; DTypeError.
    See also: `histogram`, `bincount`.

    >>> import dovetail as dt
    >>> dt.histc(dt.asarray([1.0, 2.0, 1.0]), 4, 0, 3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    low, high = real("histc", min, "min"), real("histc", max, "max")
    if low == high and strided("histc", x).size:
        low, high = (float(end.item()) for end in (min_of(x), max_of(x)))
    if low == high:
        low, high = low - 1, high + 1
    work = x.dtype if x.dtype.kind in "fc" else float64  # of the edges
    (moved,) = move_to_supporting_device("histc", work, x)
    return move_as(histogram(moved, bins, range=(low, high)).hist, x.dtype, x.device)
