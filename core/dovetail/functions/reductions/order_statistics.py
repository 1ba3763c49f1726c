"""Medians and quantiles: elements in sorted order, and what lies between two of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ... import layout as lay
from ...arguments import choice, flag, refused
from ...dtypes import DType, float32, float64, int64, spare_bits
from ...errors import ArgumentError, ShapeError
from ...graph.expr import node, spec
from ...layout import Shape
from ...ops import table as ops
from ...ops.counting import Bits
from ...ops.sort import key_dtype
from ...tensor.host import from_host, values_of
from ...tensor.operands import ARRAYS, Operand
from ...tensor.tensor import Tensor, make, strided
from ...tensor.verbs import apply, view
from ..datatypes import cast, working_float
from ..elementwise import op_functions
from ..elementwise.lerp import lerp
from ..indexing.index_reads import fetch_along, take
from ..shape.copies import concat
from ..shape.manipulation import moveaxis
from ..sorting.stable_sort import sort
from ..variants import into
from .statistics import Axis
from .statistics import any as any_of
from .statistics import min as min_of
from .statistics import sum as sum_of

__all__ = [
    "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip


# --- methods --------------------------------------------------------------------------------------

Numbers = Any  # of NumPy or tensors: the same arithmetic gives places of rows of one or many sizes

# Of Hyndman and Fan's methods ("Sample quantiles in statistical packages", 1996) alpha and beta.
_BETWEEN = {
    "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
_WHOLE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
_METHODS = ("linear", "averaged_inverted_cdf", "midpoint", *_WHOLE, *_BETWEEN)


def _whole(method: str, n: Numbers, q: Numbers, of: ModuleType) -> Numbers:
    """The place of the element that a method picks, from 0 on."""
    if method in ("lower", "higher", "nearest"):
        rule = {"lower": of.floor, "higher": of.ceil, "nearest": of.round}[method]
        return rule((n - 1) * q)
    v = n * q - (1.0 if method == "inverted_cdf" else 1.5)
    low = of.floor(v)
    exact = of.equal(v, low)
    if method == "closest_observation":
        exact = of.logical_and(exact, of.equal(of.remainder(low, 2.0), 1.0))
    return of.where(exact, low, low + 1.0)


def _between(method: str, n: Numbers, q: Numbers, of: ModuleType) -> tuple[Numbers, Numbers]:
    """The place of the lower neighbour, and how far towards the upper one."""
    if method in _BETWEEN:
        alpha, beta = _BETWEEN[method]
        v = n * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
    else:
        v = n * q - 1.0 if method == "averaged_inverted_cdf" else (n - 1) * q
    low = of.floor(v)
    weight = v - low
    if method == "averaged_inverted_cdf":
        weight = of.where(of.equal(weight, 0.0), 0.5, 1.0)
    elif method == "midpoint":
        weight = of.where(of.equal(weight, 0.0), 0.0, 0.5)
    return low, weight


# --- what users give ------------------------------------------------------------------------------


def _quantiles(op: str, q: Operand, high: float) -> np.ndarray:
    """Probabilities in 0..1 as float64, read by the host."""
    if not isinstance(q, (Tensor, *ARRAYS, int, float, np.generic)):
        raise refused(op, "q", "numbers", q)
    try:
        values = values_of(op, q) if isinstance(q, Tensor) else np.asarray(q)
    except ValueError:  # of a ragged list
        raise refused(op, "q", "numbers", q) from None
    if values.dtype.kind not in "biuf":
        raise refused(op, "q", "numbers", q)
    found = np.asarray(values.astype(np.float64) / high)
    if not np.all((found >= 0) & (found <= 1)):
        raise ArgumentError(f"{op}: q lies outside of 0..{high:g}")
    return found


def _rows(op: str, x: Tensor, axis: Axis) -> tuple[Tensor, Shape, Shape]:
    """`x` with what is reduced as its last axis; what stays, and the same with axes of size 1."""
    axes = lay.axes(op, axis, strided(op, x).ndim)
    rest = tuple(d for d in range(x.ndim) if d not in axes)
    n = math.prod(x.shape[d] for d in axes)
    if not n:
        raise ShapeError(f"{op}: shape {x.shape} has no elements along axis {axis}: no {op}")
    kept = tuple(x.shape[d] for d in rest)
    wide = tuple(1 if d in axes else m for d, m in enumerate(x.shape))
    return view(view(x, ("permute", (*rest, *axes)), op), ("reshape", (*kept, n)), op), kept, wide


def _float_of(x: Tensor) -> DType:
    return x.dtype if x.dtype.kind == "f" else float32


Picker = Callable[[Tensor, np.ndarray, str], Tensor]  # (*rows, n) and q give (*rows, q's)


def _picked(rows: Tensor, q: np.ndarray, method: str) -> Tensor:
    """Return quantiles of rows, NaN where a row has one."""
    n, d = rows.shape[-1], _float_of(rows)
    work = d if d is rows.dtype else working_float(rows.dtype)
    if n >= LONG and q.size <= FEW and rows._expr.tape is None:
        at: Callable[[Tensor, np.ndarray], Tensor] = _selected
        ordered = rows
    else:
        at, ordered = _at, sort(rows)
    if method in _WHOLE:
        found = at(ordered, _whole(method, n, q, np))
    else:
        low, weight = _between(method, n, q, np)
        below = at(ordered, low)
        a = b = cast(below, work)
        if weight.any():
            quick = at is _selected and rows.dtype.kind != "b"
            above = _following(rows, below, low) if quick else at(ordered, low + 1)
            b = cast(above, work)
        found = cast(lerp(a, b, from_host(weight, float64, rows.device)), d)
    if rows.dtype.kind != "f":
        return found
    if at is _at:
        last = ordered[..., -1:]  # NaN if any is: it gets the gradient, as PyTorch has it
        return apply(ops.WHERE, (apply(ops.ISNAN, (last,)), last, found))
    spoiled = any_of(apply(ops.ISNAN, (rows,)), axis=-1, keepdims=True)
    return apply(ops.WHERE, (spoiled, math.nan, found))


LONG = 1 << 16  # elements of a row from which counting digits beats sorting: 10 M take a third
FEW = 2  # places in it


def _selected(rows: Tensor, places: np.ndarray) -> Tensor:
    """The elements of rows that a sort would put at some places."""
    clipped = np.clip(places, 0, rows.shape[-1] - 1).astype(np.int64)
    found = [_of_rank(rows, k) for k in clipped.tolist()]
    return found[0] if len(found) == 1 else concat(found, axis=-1)


def _following(rows: Tensor, found: Tensor, places: np.ndarray) -> Tensor:
    """The elements of rows after those that `_selected` has found at some places."""
    n, d = rows.shape[-1], rows.dtype
    beyond = math.inf if d.kind == "f" else d.max
    following = []
    for i, k in enumerate(np.clip(places, 0, n - 1).astype(np.int64).tolist()):
        here = found[..., i : i + 1]
        known = cast(apply(ops.LESS_EQUAL, (rows, here)), int64)
        above = apply(ops.WHERE, (apply(ops.GREATER, (rows, here)), rows, beyond))
        least = min_of(above, axis=-1, keepdims=True)
        least = apply(ops.WHERE, (apply(ops.EQUAL, (least, 0)), 0, least))  # no -0
        again = apply(ops.GREATER, (sum_of(known, axis=-1, keepdims=True), min(k + 1, n - 1)))
        following.append(apply(ops.WHERE, (again, here, least)))
    return following[0] if len(following) == 1 else concat(following, axis=-1)


def _of_rank(rows: Tensor, rank: int) -> Tensor:
    d = rows.dtype
    first, stop, zero = 0, d.bits, 0
    if d.kind == "f":
        first, stop = spare_bits(d), max(d.bits, 32)
    elif d.kind == "i":
        zero = d.min % (key_dtype(d).max + 1)
    elif d.kind == "b":
        stop = 1
    s = spec(rows.shape[:-1], d, rows.device, "quantile")
    found = make(node(ops.SELECT, (rows._expr, zero, rank), s, Bits(first, stop)))
    return view(found, ("reshape", (*s.shape, 1)))


def _at(ordered: Tensor, places: np.ndarray) -> Tensor:
    n = ordered.shape[-1]
    clipped = np.clip(places, 0, n - 1).astype(np.int64)
    if clipped.size == 1:
        k = int(clipped[0])
        return ordered[..., k : k + 1]
    return take(ordered, clipped, axis=-1)


def _picked_present(rows: Tensor, q: np.ndarray, method: str) -> Tensor:
    """Quantiles of what is not NaN in each row."""
    if rows.dtype.kind != "f":
        return _picked(rows, q, method)
    ordered = sort(rows)  # NaN last
    count = sum_of(cast(apply(ops.EQUAL, (rows, rows)), int64), axis=-1, keepdims=True)
    n, each = cast(count, float64), from_host(q, float64, rows.device)
    if method in _WHOLE:
        return _at_each(ordered, _whole(method, n, each, op_functions), n)
    low, weight = _between(method, n, each, op_functions)
    return lerp(_at_each(ordered, low, n), _at_each(ordered, low + 1.0, n), weight)


def _at_each(ordered: Tensor, places: Tensor, n: Tensor) -> Tensor:
    last = apply(ops.MAXIMUM, (n - 1.0, 0.0))  # where all are NaN, one of these
    clipped = cast(apply(ops.CLIP, (places, 0.0, last)), int64)
    return fetch_along(ordered, clipped, ordered.ndim - 1)


def _reduced(
    op: str, x: Tensor, q: np.ndarray, axis: Axis, keepdims: bool, method: str, pick: Picker
) -> Tensor:
    choice(op, method, "method", _METHODS)
    keepdims = flag(op, keepdims, "keepdims")
    rows, kept, wide = _rows(op, x, axis)
    shape = (*q.shape, *(wide if keepdims else kept))
    found = pick(rows, q.reshape(-1), method)
    return view(moveaxis(found, -1, 0), ("reshape", shape), op)


# --- functions ------------------------------------------------------------------------------------


@into(widen=False)
def median(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The median over `axis`: the middle element in sorted order, or between two of them halfway.

    NaN where a row has one. PyTorch's is the lower of the two.
    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32.
    Gradient: to the middle elements; to the last NaN where there is one.
    Raises: ShapeError where there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.median(dt.asarray([[5, 1, 3], [4, 1, 2]], device="reference"), axis=1).tolist()
    [3.0, 2.0]
    """
    return _reduced("median", x, np.array(0.5), axis, keepdims, "linear", _picked)


@into(widen=False)
def nanmedian(
    x: Tensor, /, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The median over `axis` of the elements that are not NaN; NaN where all are.

    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`.
    Dtypes: all; integers and bool give float32.
    Gradient: to the middle elements.
    Raises: ShapeError where there are no elements, AxisError.

    >>> import dovetail as dt
    >>> dt.nanmedian(dt.asarray([5.0, dt.nan, 3.0, 1.0], device="reference")).item()
    3.0
    """
    return _reduced("nanmedian", x, np.array(0.5), axis, keepdims, "linear", _picked_present)


@into(widen=False)
def quantile(
    x: Tensor, q: Operand, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The quantiles over `axis`: what a part `q` of the elements lies below.

    `q`: one number in 0..1 or several, which the host reads. `method`: what lies between two
    elements: "linear", or another of NumPy's: "lower", "higher", "nearest", "midpoint", "hazen",
    "weibull", "median_unbiased", "normal_unbiased", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf". NaN where a row has one.
    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`, and
    those of q come first.
    Dtypes: all; integers and bool give float32, or stay where a method only picks.
    Gradient: to the elements beside each quantile; to the last NaN where there is one.
    Raises: ShapeError where there are no elements, AxisError, ArgumentError for q outside of 0..1
    or another method.

    >>> import dovetail as dt
    >>> dt.quantile(dt.asarray([4.0, 1.0, 3.0, 2.0], device="reference"), [0.0, 0.5]).tolist()
    [1.0, 2.5]
    """
    p = _quantiles("quantile", q, 1.0)
    return _reduced("quantile", x, p, axis, keepdims, method, _picked)


@into(widen=False)
def nanquantile(
    x: Tensor, q: Operand, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The quantiles over `axis` of the elements that are not NaN; NaN where all are.

    `q`, `method`: as for `quantile`.
    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`, and
    those of q come first.
    Dtypes: all; integers and bool give float32, or stay where a method only picks.
    Gradient: to the elements beside each quantile.
    Raises: ShapeError where there are no elements, AxisError, ArgumentError for q outside of 0..1
    or another method.

    >>> import dovetail as dt
    >>> dt.nanquantile(dt.asarray([4.0, 1.0, dt.nan, 2.0], device="reference"), 0.5).item()
    2.0
    """
    p = _quantiles("nanquantile", q, 1.0)
    return _reduced("nanquantile", x, p, axis, keepdims, method, _picked_present)


@into(widen=False)
def percentile(
    x: Tensor, q: Operand, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The percentiles over `axis`: `quantile` of q / 100.

    `q`: one number in 0..100 or several. `method`: as for `quantile`.
    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`, and
    those of q come first.
    Dtypes: all; integers and bool give float32, or stay where a method only picks.
    Gradient: to the elements beside each percentile; to the last NaN where there is one.
    Raises: ShapeError where there are no elements, AxisError, ArgumentError for q outside of
    0..100 or another method.

    >>> import dovetail as dt
    >>> dt.percentile(dt.asarray([4.0, 1.0, 3.0, 2.0], device="reference"), 50).item()
    2.5
    """
    p = _quantiles("percentile", q, 100.0)
    return _reduced("percentile", x, p, axis, keepdims, method, _picked)


@into(widen=False)
def nanpercentile(
    x: Tensor, q: Operand, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The percentiles over `axis` of the elements that are not NaN: `nanquantile` of q / 100.

    `q`: one number in 0..100 or several. `method`: as for `quantile`.
    Shapes: any with elements along `axis`; the axes go, or stay with size 1 with `keepdims`, and
    those of q come first.
    Dtypes: all; integers and bool give float32, or stay where a method only picks.
    Gradient: to the elements beside each percentile.
    Raises: ShapeError where there are no elements, AxisError, ArgumentError for q outside of
    0..100 or another method.

    >>> import dovetail as dt
    >>> dt.nanpercentile(dt.asarray([4.0, 1.0, dt.nan, 2.0], device="reference"), 50).item()
    2.0
    """
    p = _quantiles("nanpercentile", q, 100.0)
    return _reduced("nanpercentile", x, p, axis, keepdims, method, _picked_present)
