"""Medians and quantiles: elements in sorted order, and interpolation between two of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ... import layout as lay
from ...argument_checks import choice, flag, refused, shown
from ...compat.value_pairs import warn_if_pair
from ...dtypes import DType, float32, float64, int64, zero_low_bits
from ...errors import ArgumentError, ShapeError
from ...graph.expr import node, spec
from ...layout import Shape
from ...ops import table as ops
from ...ops.histogram import BitRange
from ...ops.sort import key_dtype
from ...tensor.host import from_host, read_values
from ...tensor.primitives import apply, view
from ...tensor.promotion import ARRAY_TYPES, Array, Operand, as_operand
from ...tensor.tensor import Tensor, create_tensor, required, strided, to_strided
from ..creation.constructors import full
from ..datatypes import cast, device_supporting, move, move_to_supporting_device, working_float
from ..elementwise import op_functions
from ..elementwise.lerp import lerp
from ..graph_cache import CachedFunction
from ..indexing.index_reads import gather_along_unchecked, take
from ..shape.copies import concat
from ..shape.manipulation import expand_dims, moveaxis
from ..sorting.stable_sort import argsort, sort
from ..variants import public
from .covariance import broadcast_weights
from .cumulative import cumulative_sum
from .statistics import Axis
from .statistics import any as any_of
from .statistics import min as min_of
from .statistics import sum as sum_of

__all__ = [
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]


# --- methods --------------------------------------------------------------------------------------

Numbers = Any  # NumPy values for rows of one length, tensors for rows with different NaN counts

# Alpha and beta. Source: Hyndman and Fan, "Sample quantiles in statistical packages", 1996.
_ALPHA_BETA = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_PICKING_METHODS = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
_METHODS = ("linear", "averaged_inverted_cdf", "midpoint", *_PICKING_METHODS, *_ALPHA_BETA)


def _rank_of_element(method: str, n: Numbers, q: Numbers, xp: ModuleType) -> Numbers:
    """Return the rank, from 0, of the element that a method returns unchanged."""
    if method in ("lower", "higher", "nearest"):
        rule = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.round}[method]
        return rule((n - 1) * q)
    v = n * q - (1.0 if method == "inverted_cdf" else 1.5)
    low = xp.floor(v)
    exact = xp.equal(v, low)
    if method == "closest_observation":
        exact = xp.logical_and(exact, xp.equal(xp.remainder(low, 2.0), 1.0))
    return xp.where(exact, low, low + 1.0)


def _rank_and_weight(
    method: str, n: Numbers, q: Numbers, xp: ModuleType
) -> tuple[Numbers, Numbers]:
    """Return the rank of the lower neighbour, and the weight of the upper one."""
    if method in _ALPHA_BETA:
        alpha, beta = _ALPHA_BETA[method]
        v = n * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
    else:
        v = n * q - 1.0 if method == "averaged_inverted_cdf" else (n - 1) * q
    low = xp.floor(v)
    weight = v - low
    if method == "averaged_inverted_cdf":
        weight = xp.where(xp.equal(weight, 0.0), 0.5, 1.0)
    elif method == "midpoint":
        weight = xp.where(xp.equal(weight, 0.0), 0.0, 0.5)
    return low, weight


# --- arguments ------------------------------------------------------------------------------------


def _read_probabilities(op: str, q: Operand, high: float) -> np.ndarray:
    """Return probabilities in 0..1 as float64, read by the host."""
    if not isinstance(q, (Tensor, *ARRAY_TYPES, int, float, np.generic)):
        raise refused(op, "q", "numbers", q)
    try:
        values = read_values(op, q) if isinstance(q, Tensor) else np.asarray(q)
    except ValueError:  # a ragged list
        raise refused(op, "q", "numbers", q) from None
    if values.dtype.kind not in "biuf":
        raise refused(op, "q", "numbers", q)
    probabilities = np.asarray(values.astype(np.float64) / high)
    is_outside = ~((probabilities >= 0) & (probabilities <= 1))
    if np.any(is_outside):
        bad = np.asarray(values)[np.asarray(is_outside)].item(0)
        raise ArgumentError(f"{op}: q must be between 0 and {high:g}, got {shown(bad)}")
    return probabilities


def _merge_reduced_axes(op: str, x: Tensor, axis: Axis) -> tuple[Tensor, Shape, Shape]:
    """Return `x` with the reduced axes merged as its last axis, and the results' two shapes.

    These are the shapes without and with `keepdims`.
    """
    x = to_strided(required(op, x))
    axes = lay.axes(op, axis, x.ndim)
    kept_axes = tuple(d for d in range(x.ndim) if d not in axes)
    n = math.prod(x.shape[d] for d in axes)
    if not n:
        where = "" if axis is None else f" along axis {axis}"
        raise ShapeError(f"{op}: expected at least one element{where}, got shape {x.shape}")
    kept_shape = tuple(x.shape[d] for d in kept_axes)
    wide = tuple(1 if d in axes else m for d, m in enumerate(x.shape))
    return (
        view(view(x, ("permute", (*kept_axes, *axes)), op), ("reshape", (*kept_shape, n)), op),
        kept_shape,
        wide,
    )


def _float_of(x: Tensor) -> DType:
    """Return a float tensor's dtype, else float32."""
    return x.dtype if x.dtype.kind == "f" else float32


RowQuantiles = Callable[
    [Tensor, np.ndarray, str], Tensor
]  # rows (*shape, n), q -> (*shape, q.size)


def _row_quantiles(rows: Tensor, q: np.ndarray, method: str) -> Tensor:
    """Return quantiles of rows, NaN for a row with a NaN."""
    n, d = rows.shape[-1], _float_of(rows)
    work = d if d is rows.dtype else working_float(rows.dtype)
    if (wide := device_supporting(work, rows.device)) is not rows.device:
        return move(_row_quantiles(move(rows, wide), q, method), rows.device)
    if n >= SELECT_ELEMENTS_MIN and q.size <= SELECT_RANKS_MAX and rows._expr.tape is None:
        at: Callable[[Tensor, np.ndarray], Tensor] = _select_ranks
        ordered = rows
    else:
        at, ordered = _take_ranks, sort(rows)
    if method in _PICKING_METHODS:
        quantiles = at(ordered, _rank_of_element(method, n, q, np))
    else:
        low, weight = _rank_and_weight(method, n, q, np)
        below = at(ordered, low)
        a = b = cast(below, work)
        if weight.any():
            quick = at is _select_ranks and rows.dtype.kind != "b"
            above = _next_elements(rows, below, low) if quick else at(ordered, low + 1)
            b = cast(above, work)
        if weight.size == 1:
            t = full((1,), weight.item(), dtype=work.compute, device=rows.device)
        else:
            t = from_host(weight.astype(work.compute.__numpy_dtype__), work.compute, rows.device)
        quantiles = cast(lerp(a, b, t), d)
    if rows.dtype.kind != "f":
        return quantiles
    if at is _take_ranks:
        last = ordered[..., -1:]  # NaN if any is; it gets the gradient, as in PyTorch
        return apply(ops.WHERE, (apply(ops.ISNAN, (last,)), last, quantiles))
    spoiled = any_of(apply(ops.ISNAN, (rows,)), axis=-1, keepdims=True)
    return apply(ops.WHERE, (spoiled, math.nan, quantiles))


# Counting digits beats sorting for at least this many elements in a row (10 M take a third of the
# time) and at most this many ranks.
SELECT_ELEMENTS_MIN = 1 << 16
SELECT_RANKS_MAX = 2


def _select_ranks(rows: Tensor, ranks: np.ndarray) -> Tensor:
    """Return the elements that a sort of each row would put at some ranks."""
    clipped = np.clip(ranks, 0, rows.shape[-1] - 1).astype(np.int64)
    elements = [_select_rank(rows, k) for k in clipped.tolist()]
    return elements[0] if len(elements) == 1 else concat(elements, axis=-1)


def _next_elements(rows: Tensor, elements: Tensor, ranks: np.ndarray) -> Tensor:
    """Return the elements of sorted rows that follow those at some ranks."""
    n, d = rows.shape[-1], rows.dtype
    beyond = math.inf if d.kind == "f" else d.max
    following = []
    for i, k in enumerate(np.clip(ranks, 0, n - 1).astype(np.int64).tolist()):
        element = elements[..., i : i + 1]
        at_most = cast(apply(ops.LESS_EQUAL, (rows, element)), int64)
        above = apply(ops.WHERE, (apply(ops.GREATER, (rows, element)), rows, beyond))
        least = min_of(above, axis=-1, keepdims=True)
        least = apply(ops.WHERE, (apply(ops.EQUAL, (least, 0)), 0, least))  # no -0
        repeats = apply(ops.GREATER, (sum_of(at_most, axis=-1, keepdims=True), min(k + 1, n - 1)))
        following.append(apply(ops.WHERE, (repeats, element, least)))
    return following[0] if len(following) == 1 else concat(following, axis=-1)


def _select_rank(rows: Tensor, rank: int) -> Tensor:
    """Return the element at one rank of each row, without a sort."""
    d = rows.dtype
    first, stop, zero = 0, d.bits, 0
    if d.kind == "f":
        first, stop = zero_low_bits(d), max(d.bits, 32)
    elif d.kind == "i":
        zero = d.min % (key_dtype(d).max + 1)
    elif d.kind == "b":
        stop = 1
    s = spec(rows.shape[:-1], d, rows.device, "quantile")
    selected = create_tensor(node(ops.SELECT, (rows._expr, zero, rank), s, BitRange(first, stop)))
    return view(selected, ("reshape", (*s.shape, 1)))


def _take_ranks(ordered: Tensor, ranks: np.ndarray) -> Tensor:
    """Return the elements at ranks of sorted rows; ranks are clipped to the row."""
    n = ordered.shape[-1]
    clipped = np.clip(ranks, 0, n - 1).astype(np.int64)
    if clipped.size == 1:
        k = int(clipped[0])
        return ordered[..., k : k + 1]
    return take(ordered, clipped, axis=-1)


def _row_nanquantiles(rows: Tensor, q: np.ndarray, method: str) -> Tensor:
    """Return quantiles of the elements of each row that are not NaN."""
    if rows.dtype.kind != "f":
        return _row_quantiles(rows, q, method)
    ordered = sort(rows)  # NaN last
    count = sum_of(cast(apply(ops.EQUAL, (rows, rows)), int64), axis=-1, keepdims=True)
    low, *weights = _ranks_of_counts(method, rows, count, q)
    if not weights:
        return _take_rank_per_row(ordered, low, count)
    (weight,) = weights
    return lerp(
        _take_rank_per_row(ordered, low, count), _take_rank_per_row(ordered, low + 1, count), weight
    )


def _ranks_of_counts(method: str, rows: Tensor, count: Tensor, q: np.ndarray) -> list[Tensor]:
    """Return the rank of the lower neighbour and the weight of the upper one for each row and q.

    A method that picks an element has no weights. Without float64 on the device, the host computes
    a table of them for all counts.
    """

    def compute(n: Numbers, q: Numbers, xp: ModuleType) -> tuple[Numbers, ...]:
        if method in _PICKING_METHODS:
            return (_rank_of_element(method, n, q, xp),)
        return _rank_and_weight(method, n, q, xp)

    device, dtypes = rows.device, (int64, rows.dtype.compute)
    if device_supporting(float64, device) is device:
        numbers = compute(cast(count, float64), from_host(q, float64, device), op_functions)
        return [cast(x, d) for x, d in zip(numbers, dtypes, strict=False)]
    tables = compute(np.arange(rows.shape[-1] + 1.0)[:, None], q, np)
    return [
        take(from_host(x.astype(d.__numpy_dtype__), d, device), count[..., 0], axis=0)
        for x, d in zip(tables, dtypes, strict=False)
    ]


def _take_rank_per_row(ordered: Tensor, ranks: Tensor, count: Tensor) -> Tensor:
    """Return the elements at ranks of sorted rows, clipped to each row's count."""
    last = apply(ops.MAXIMUM, (count - 1, 0))  # the count is 0 if all are NaN: take a NaN
    clipped = apply(ops.CLIP, (ranks, 0, last))
    return gather_along_unchecked(ordered, clipped, ordered.ndim - 1)


def _row_weighted_quantiles(
    weights: Tensor, ignores_nan: bool, rows: Tensor, q: np.ndarray, method: str
) -> Tensor:
    """Return the first elements of sorted rows whose running weight is at least q of the total.

    A row of floats is NaN if a weight is negative, NaN or infinite, or if all are 0.
    """
    home, last = rows.device, rows.ndim - 1
    rows, weights = move_to_supporting_device("quantile", float64, rows, weights)
    order = argsort(rows)
    ordered = gather_along_unchecked(rows, order, last)
    w = gather_along_unchecked(cast(weights, float64), order, last)
    if ignores_nan and rows.dtype.kind == "f":
        w = apply(ops.WHERE, (apply(ops.ISNAN, (ordered,)), 0.0, w))
    running = cumulative_sum(w, axis=-1)
    part = apply(ops.DIVIDE, (running, running[..., -1:]))
    part = apply(ops.WHERE, (apply(ops.EQUAL, (part, 0)), -1.0, part))  # without weight: never
    below = apply(ops.LESS, (expand_dims(part, -2), from_host(q[:, None], float64, rows.device)))
    ranks = apply(ops.MINIMUM, (sum_of(cast(below, int64), axis=-1), rows.shape[-1] - 1))
    quantiles = gather_along_unchecked(ordered, ranks, last)
    if rows.dtype.kind != "f":
        return move(quantiles, home)
    total = running[..., -1:]
    is_finite = apply(
        ops.LOGICAL_AND, (apply(ops.GREATER, (total, 0)), apply(ops.LESS, (total, math.inf)))
    )
    has_sign = apply(ops.LESS, (min_of(w, axis=-1, keepdims=True), 0))
    is_valid = apply(ops.LOGICAL_AND, (is_finite, apply(ops.LOGICAL_NOT, (has_sign,))))
    quantiles = apply(ops.WHERE, (is_valid, quantiles, math.nan))
    if not ignores_nan:
        largest = ordered[..., -1:]
        quantiles = apply(ops.WHERE, (apply(ops.ISNAN, (largest,)), largest, quantiles))
    return move(quantiles, home)


def _reduce_rows(
    op: str,
    x: Tensor,
    q: np.ndarray,
    axis: Axis,
    keepdims: bool,
    method: str,
    row_quantiles: RowQuantiles,
    weights: Array | None = None,
) -> Tensor:
    """Return quantiles over axes by `row_quantiles`; the axis of q comes first."""
    choice(op, method, "method", _METHODS)
    if weights is not None:
        if method != "inverted_cdf":
            raise ArgumentError(f'{op}: method must be "inverted_cdf" with weights, got {method!r}')
        axes = lay.ordered_axes(op, axis, strided(op, x).ndim)
        w = weights if isinstance(weights, Tensor) else as_operand(op, weights, (x,))
        w = _merge_reduced_axes(op, broadcast_weights(op, x, w, axes), axis)[0]
        row_quantiles = partial(_row_weighted_quantiles, w, row_quantiles is _row_nanquantiles)
    keepdims = flag(op, keepdims, "keepdims")
    rows, kept_shape, wide = _merge_reduced_axes(op, x, axis)
    shape = (*q.shape, *(wide if keepdims else kept_shape))
    quantiles = row_quantiles(rows, q.reshape(-1), method)
    return view(moveaxis(quantiles, -1, 0), ("reshape", shape), op)


def _quantile(
    op: str, x: Tensor, q: float, high: float, axis: Axis, keepdims: bool, method: str
) -> Tensor:
    """Return one quantile over axes, of a probability of 0 to `high`."""
    p = _read_probabilities(op, q, high)
    return _reduce_rows(op, x, p, axis, keepdims, method, _row_quantiles)


_cached_quantile = CachedFunction(_quantile)


# --- functions ------------------------------------------------------------------------------------


@public(method=True, out=True, widen=False)
def median(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the median over `axis`: the middle element in sorted order, or the mean of both.

    NaN if a row has one. PyTorch's median is the lower of two middle elements.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32.
    Gradient: to the middle elements; to the last NaN where there is one.
    Cost: a sort along the axis; for long rows, passes that count digits.
    Raises: ShapeError if there are no elements, AxisError.
    See also: `quantile`, `nanmedian`, `mean`.

    >>> import dovetail as dt
    >>> dt.median(dt.asarray([[5, 1, 3], [4, 1, 2]]), axis=1).tolist()
    [3.0, 2.0]
    """
    if axis is not None:
        warn_if_pair("median", along_first=axis == 0, at_call=True)
    return _cached_quantile.call(("median", x, 0.5, 1.0, axis, keepdims, "linear"), {})


@public(method=True, out=True, widen=False)
def nanmedian(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the median of the elements that are not NaN over `axis`; NaN if there are only NaNs.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32.
    Gradient: to the middle elements.
    Raises: ShapeError if there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.nanmedian(dt.asarray([5.0, dt.nan, 3.0, 1.0])).item()
    3.0
    """
    if axis is not None:
        warn_if_pair("nanmedian", along_first=axis == 0, at_call=True)
    return _reduce_rows("nanmedian", x, np.array(0.5), axis, keepdims, "linear", _row_nanquantiles)


@public(method=True, out=True, widen=False)
def quantile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the quantiles over `axis`: the values below which a part `q` of the elements lies.

    NaN if a row has one.

    - `q`: one number in 0..1 or several, which the host reads.
    - `method`: the value between two elements: "linear", or another of NumPy's: "lower", "higher",
      "nearest", "midpoint", "hazen", "weibull", "median_unbiased", "normal_unbiased",
      "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf".
    - `weights`: the weights of the elements, in the shape of `x` or of its reduced axes, only for
      method="inverted_cdf". Negative or infinite ones, or zeros alone, give NaN for floats.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    The axes of q come first.
    Dtypes: all; integers and bool give float32, or keep theirs if the method returns an element.
    Gradient: to the neighbours of each quantile; to the last NaN where there is one.
    Cost: a sort along the axis; for long rows, passes that count digits.
    Raises: ShapeError if there are no elements, AxisError, ArgumentError for q outside of 0..1 or
    another method.
    See also: `percentile`, `median`, `nanquantile`.

    >>> import dovetail as dt
    >>> dt.quantile(dt.asarray([4.0, 1.0, 3.0, 2.0]), [0.0, 0.5]).tolist()
    [1.0, 2.5]
    """
    if type(q) is float and weights is None:
        return _cached_quantile.call(("quantile", x, q, 1.0, axis, keepdims, method), {})
    p = _read_probabilities("quantile", q, 1.0)
    return _reduce_rows("quantile", x, p, axis, keepdims, method, _row_quantiles, weights)


@public(method=True, out=True, widen=False)
def nanquantile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the quantiles over `axis` of the elements that are not NaN; NaN if all are.

    - `q`: one number in 0..1 or several, which the host reads.
    - `method`: the value between two elements; see `quantile`.
    - `weights`: the weights of the elements, in the shape of `x` or of its reduced axes, only for
      method="inverted_cdf". Negative or infinite ones, or zeros alone, give NaN for floats.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    The axes of q come first.
    Dtypes: all; integers and bool give float32, or keep theirs if the method returns an element.
    Gradient: to the neighbours of each quantile.
    Raises: ShapeError if there are no elements, AxisError, ArgumentError for q outside of 0..1 or
    another method.

    >>> import dovetail as dt
    >>> dt.nanquantile(dt.asarray([4.0, 1.0, dt.nan, 2.0]), 0.5).item()
    2.0
    """
    p = _read_probabilities("nanquantile", q, 1.0)
    return _reduce_rows("nanquantile", x, p, axis, keepdims, method, _row_nanquantiles, weights)


@public(method=True, out=True, widen=False)
def percentile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the percentiles over `axis`: `quantile` of q / 100.

    - `q`: one number in 0..100 or several, which the host reads.
    - `method`: the value between two elements; see `quantile`.
    - `weights`: the weights of the elements, in the shape of `x` or of its reduced axes, only for
      method="inverted_cdf". Negative or infinite ones, or zeros alone, give NaN for floats.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    The axes of q come first.
    Dtypes: all; integers and bool give float32, or keep theirs if the method returns an element.
    Gradient: to the neighbours of each percentile; to the last NaN where there is one.
    Raises: ShapeError if there are no elements, AxisError, ArgumentError for q outside of 0..100 or
    another method.
    See also: `quantile`, `median`, `nanpercentile`.

    >>> import dovetail as dt
    >>> dt.percentile(dt.asarray([4.0, 1.0, 3.0, 2.0]), 50).item()
    2.5
    """
    if type(q) in (int, float) and weights is None:
        return _cached_quantile.call(("percentile", x, q, 100.0, axis, keepdims, method), {})
    p = _read_probabilities("percentile", q, 100.0)
    return _reduce_rows("percentile", x, p, axis, keepdims, method, _row_quantiles, weights)


@public(out=True, widen=False)
def nanpercentile(
    x: Tensor,
    q: Operand,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    weights: Array | None = None,
    keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the percentiles over `axis` of the elements that are not NaN.

    - `q`: one number in 0..100 or several, which the host reads.
    - `method`: the value between two elements; see `quantile`.
    - `weights`: the weights of the elements, in the shape of `x` or of its reduced axes, only for
      method="inverted_cdf". Negative or infinite ones, or zeros alone, give NaN for floats.

    Shapes: any with elements along `axis`; the axes are removed, or have size 1 with `keepdims`.
    The axes of q come first.
    Dtypes: all; integers and bool give float32, or keep theirs if the method returns an element.
    Gradient: to the neighbours of each percentile.
    Raises: ShapeError if there are no elements, AxisError, ArgumentError for q outside of 0..100 or
    another method.

    >>> import dovetail as dt
    >>> dt.nanpercentile(dt.asarray([4.0, 1.0, dt.nan, 2.0]), 50).item()
    2.0
    """
    p = _read_probabilities("nanpercentile", q, 100.0)
    return _reduce_rows("nanpercentile", x, p, axis, keepdims, method, _row_nanquantiles, weights)
