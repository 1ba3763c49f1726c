"""Counts of values: histograms, bin counts and bin numbers."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from ...argument_checks import choice, flag, integer, real, refused, sequence
from ...dtypes import DType, float32, float64, int32, int64, uint8, uint64
from ...engine import tracer_api
from ...errors import ArgumentError, CaptureError, DTypeError, ShapeError
from ...graph.expr import node, spec
from ...ops import table as ops
from ...ops.histogram import CLIPPED
from ...tensor.host import evaluate, read_values
from ...tensor.primitives import apply, view
from ...tensor.promotion import ARRAY_TYPES, Array, as_operand
from ...tensor.tensor import Tensor, create_tensor, required, strided
from ..creation.constructors import linspace, zeros
from ..datatypes import cast, finfo, move_as, move_to_supporting_device, result_type
from ..indexing.index_reads import (
    gather_unchecked,
    keep_digits,
    promote_for_comparison,
    searchsorted,
)
from ..indexing.index_writes import index_add
from ..shape.manipulation import flip, ravel
from ..variants import public
from .cumulative import diff
from .statistics import all as all_of
from .statistics import max as max_of
from .statistics import min as min_of
from .statistics import sum as sum_of

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges"]

EPSILON = {float32: 2.0**-23, float64: 2.0**-52}  # the distance of 1 from the next number
SMALLEST_SUBNORMAL = {float32: 2.0**-149, float64: 2.0**-1074}  # the smallest number above 0
SCALE_MAX = 1e38  # bins per unit: representable in every float dtype

ESTIMATORS = ("auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt")

Bins: TypeAlias = int | str | Array
Range: TypeAlias = tuple[float, float] | None


class Histogram(NamedTuple):
    """The result of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


class Histogram2D(NamedTuple):
    """The result of `histogram2d`."""

    hist: Tensor
    x_edges: Tensor
    y_edges: Tensor


# --- counts ---------------------------------------------------------------------------------------


@public(method=True)
def bincount(
    x: Tensor,
    /,
    weights: Array | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
) -> Tensor:
    """Count the occurrences of each of 0, 1, 2, ... in a vector of integers.

    - `weights`: the weight of each element, as a vector; None counts each element once.
    - `minlength`: the least length of the result.
    - `length`: the length of the result; elements out of range are not counted. So the host reads
      nothing, as `dt.jit` requires.

    Shapes: a vector, and `weights` like it; the length of the result is `length`, else the largest
    element + 1, within `vmap` the largest of all examples.
    Dtypes: integers and bool; gives int64, or the weights' dtype, for integers and bool float64.
    Order: weights of one number are added in order: the same bits on every device.
    Cost: without `length` the host reads the largest element, and waits for it.
    Raises: ArgumentError for a negative element, `minlength` or `length`; ShapeError, DTypeError.
    See also: `histogram`, `unique_counts`, `digitize`.

    >>> import dovetail as dt
    >>> dt.bincount(dt.asarray([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    length_min = integer("bincount", minlength, "minlength", 0, 1 << 40)
    if strided("bincount", x).ndim != 1:
        raise ShapeError(f"bincount: expected a vector, got shape {x.shape}")
    if x.dtype.kind == "f":
        raise DTypeError(f"bincount: expected integers, got {x.dtype.name}; use dt.histogram")
    w = None if weights is None else _as_operand_tensor("bincount", weights, x)
    if w is not None and w.shape != x.shape:
        raise ShapeError(f"bincount: weights must have the shape {x.shape} of x, got {w.shape}")
    if length is not None:
        return _count_below(x, integer("bincount", length, "length", 0, 1 << 40), w)
    one = w is None and x.size >= GUESS_ELEMENTS_MIN and not tracer_api.is_batched(x._expr)
    try:
        if one and (counts := _count_by_guess(x, length_min)) is not None:
            return counts
        low, high = tracer_api.call_on_batch(_read_extremes, x) if x.size else (0, -1)
    except CaptureError:
        raise CaptureError(
            "bincount: in dt.jit the length must be known; use dt.bincount(x, length=n)"
        ) from None
    bins = length_min
    if x.size:
        if low < 0:
            raise ArgumentError(f"bincount: x must not hold negative elements, got {low}")
        bins = max(high + 1, length_min)
    return _count_or_sum(x, bins, w)


def _count_below(x: Tensor, bins: int, weights: Tensor | None) -> Tensor:
    """Return the counts of 0..bins-1, or sums of weights, without a host read."""
    if weights is not None:
        wide = x if x.dtype is uint64 else cast(x, int64)
        inside = apply(ops.LOGICAL_AND, (wide >= 0, wide < bins))
        x = cast(apply(ops.WHERE, (inside, wide, bins)), int64)
    return _count_or_sum(x, bins + 1, weights, CLIPPED)[:bins]


def _read_extremes(x: Tensor) -> tuple[int, int]:
    """Return the smallest and the largest element as ints, read by the host."""
    low, high = min_of(x), max_of(x)
    evaluate(low, high)
    return int(low.item()), int(high.item())


def _as_operand_tensor(op: str, value: object, x: Tensor) -> Tensor:
    """Return a tensor unchanged, another value as an operand beside `x`."""
    return value if isinstance(value, Tensor) else as_operand(op, value, (x,))


# fewer elements: reading their range takes less time than counting into bins that stay empty
GUESS_ELEMENTS_MIN = 1 << 16
SAMPLE_ELEMENTS = 1 << 10  # sampled to guess the largest element
GUESS_BINS = 1 << 10, 1 << 17  # the least guess, and the largest whose counts fit a cache


def _count_by_guess(x: Tensor, length_min: int) -> Tensor | None:
    """Count with a guess at the largest element, read by the host; None if it is too small.

    Reading the range before counting takes two thirds of the time of counting many elements.
    """
    sample = x[:: x.size // SAMPLE_ELEMENTS]
    largest = max(int(max_of(sample).item()), length_min - 1)
    bins = max(1 << max(largest, 0).bit_length(), GUESS_BINS[0])
    if bins > min(GUESS_BINS[1], x.size):
        return None
    counts = _count_or_sum(x, bins + 1, None, CLIPPED)
    used = np.flatnonzero(read_values("bincount", counts))
    if used[-1] == bins:
        return None
    return counts[: max(int(used[-1]) + 1, length_min)]


def _count_or_sum(
    positions: Tensor, bins: int, weights: Tensor | None, clipping: str | None = None
) -> Tensor:
    """Return counts, or sums of weights, of positions in 0..bins-1; CLIPPED counts others last."""
    if weights is not None:
        d = weights.dtype if weights.dtype.kind == "f" else float64
        total = zeros((bins,), dtype=d, device=positions.device)
        return (
            index_add(total, 0, cast(positions, int64), cast(weights, d))
            if positions.size
            else total
        )
    if not positions.size or not bins:
        return zeros((bins,), dtype=int64, device=positions.device)
    s = spec((bins,), int64, positions.device, "bincount")
    return create_tensor(node(ops.COUNT_VALUES, (positions._expr,), s, clipping))


@public(out=True, widen=False)
def digitize(
    x: Tensor, bins: Array, /, *, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the number of each element's bin; elements before the first edge get 0.

    NaN is in the last bin.

    - `bins`: the edges, in ascending or descending order, which the host checks.
    - `right`: True means that a bin contains its right edge instead of its left one.

    Shapes: x any; `bins` is a vector. The result has x's shape.
    Dtypes: all but bool, promoted for the comparison. Gives int64.
    Raises: ArgumentError for edges in no order, ShapeError, DTypeError, DeviceError.
    See also: `searchsorted`, `histogram`.

    >>> import dovetail as dt
    >>> dt.digitize(dt.asarray([0.2, 6.4, 3.0]), [0.0, 1.0, 3.0]).tolist()
    [1, 3, 3]
    """
    right = flag("digitize", right, "right")
    edges = _as_operand_tensor("digitize", keep_digits(bins, required("digitize", x)), x)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins must be a vector, got shape {edges.shape}")
    up, down = _is_ordered(edges)
    if not up and not down:
        raise ArgumentError("digitize: bins must ascend or descend; use dt.sort(bins)")
    if up:
        return searchsorted(edges, x, side="left" if right else "right")
    behind = searchsorted(flip(edges), x, side="left" if right else "right")
    return apply(ops.SUBTRACT, (edges.shape[0], behind))


def _is_ordered(edges: Tensor) -> tuple[bool, bool]:
    """Return (True if a vector ascends, True if it descends), read by the host."""
    if edges.shape[0] < 2:
        return True, True
    before, after = edges[:-1], edges[1:]
    checks = [all_of(apply(op, (before, after))) for op in (ops.LESS_EQUAL, ops.GREATER_EQUAL)]
    evaluate(*checks)
    return bool(checks[0]), bool(checks[1])


# --- histograms -----------------------------------------------------------------------------------


class _AxisBins(NamedTuple):
    """The bins along one axis: their number and edges."""

    bins: int
    comparison_edges: Tensor  # the edges, in the dtype of the comparison
    dtype: DType  # of the edges that the caller gets
    even_range: tuple[float, float] | None  # (low, high) if a multiplication finds the bin

    @property
    def edges(self) -> Tensor:
        """Return the edges in the caller's dtype."""
        return cast(self.comparison_edges, self.dtype)

    def bin_positions(self, x: Tensor, cells: int) -> Tensor:
        """Return the bin of each element, and `bins` for elements outside."""
        d = int32 if cells <= int32.max else int64
        n, home = self.bins, x.device
        edges, x = promote_for_comparison("histogram", self.comparison_edges, x)
        first, last = edges[0], edges[n]
        if self.even_range is None:
            positions = apply(ops.SUBTRACT, (searchsorted(edges, x, side="right"), 1))
        else:
            low, high = self.even_range
            scale = n / (high - low)
            rough = apply(ops.FLOOR, (apply(ops.MULTIPLY, (x - low, scale)),))
            positions = cast(apply(ops.CLIP, (rough, 0.0, float(n - 1))), int64)
            # rounding may have put an element on the wrong side of an edge: compare with both
            positions = positions - cast(
                apply(ops.LESS, (x, gather_unchecked(edges, positions))), int64
            )
            positions = apply(ops.MAXIMUM, (positions, 0))
            positions = positions + cast(
                apply(ops.GREATER_EQUAL, (x, gather_unchecked(edges, positions + 1))), int64
            )
        positions = apply(ops.MINIMUM, (positions, n - 1))  # the last edge belongs to the last bin
        inside = apply(
            ops.LOGICAL_AND,
            (apply(ops.GREATER_EQUAL, (x, first)), apply(ops.LESS_EQUAL, (x, last))),
        )
        return move_as(apply(ops.WHERE, (inside, positions, n)), d, home)


def _range_ends(op: str, x: Tensor, limits: Range) -> tuple[float, float]:
    """Return the ends of the bins, by default those of the data, which the host reads."""
    if limits is not None:
        listed = sequence(op, limits, "range", "two numbers")
        if len(listed) != 2:
            raise refused(op, "range", "two numbers", limits)
        low, high = (real(op, v, "range") for v in listed)
    elif not x.size:
        low, high = 0.0, 1.0
    else:
        ends = min_of(x), max_of(x)
        evaluate(*ends)
        low, high = (float(e.item()) for e in ends)
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ArgumentError(
            f"{op}: range must be finite and ascending, got {low}..{high}; pass range=(low, high)"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _parse_bins(op: str, x: Tensor, bins: object, limits: Range) -> _AxisBins:
    """Return the bins from their number or edges, which the host reads, or the ends of `x`.

    Raises: ArgumentError for an invalid number or range, too fine bins, and edges that do not
    ascend; ShapeError unless edges are a vector of at least 2; ArgumentTypeError for other objects.
    """
    if isinstance(bins, str):
        choice(op, bins, "bins", ESTIMATORS)
        values = np.asarray(read_values(op, x))
        low, high = _range_ends(op, x, limits)
        bins = len(np.histogram_bin_edges(values, bins, (low, high))) - 1
    if isinstance(bins, (Tensor, *ARRAY_TYPES)) and not (
        isinstance(bins, np.ndarray) and not bins.ndim
    ):
        edges = _as_operand_tensor(op, keep_digits(bins, x), x)
        if edges.ndim != 1 or edges.shape[0] < 2:
            raise ShapeError(
                f"{op}: edges must be a vector of at least 2 elements, got shape {edges.shape}"
            )
        if not _is_ordered(edges)[0]:
            raise ArgumentError(f"{op}: bins must ascend; use dt.sort(bins)")
        return _AxisBins(edges.shape[0] - 1, edges, edges.dtype, None)
    n = integer(op, bins, "bins", 1, 1 << 40)
    low, high = _range_ends(op, x, limits)
    d = x.dtype if x.dtype.kind == "f" else float64
    wide = float64 if d is float64 else float32
    width, largest = high - low, max(abs(low), abs(high), high - low)
    digit = max(EPSILON[wide] * largest, SMALLEST_SUBNORMAL[wide])
    # Rounding moves each edge by up to half a digit. NumPy also rejects edges that do not ascend.
    is_too_fine = width / n < 2 * digit
    cuts = linspace(low, high, n + 1, dtype=wide, device=x.device)
    if is_too_fine and not all_of(apply(ops.LESS, (cuts[:-1], cuts[1:]))):
        raise ArgumentError(
            f"{op}: {n} bins from {low} to {high} are too many for {wide.name}, whose values are "
            f"{digit:g} apart there; use fewer bins or a wider range="
        )
    # The rounding errors of x - low, of the scale and of their product must add to under one bin.
    is_exact = width <= finfo(wide).max and n * digit < width / 8 and n / width < SCALE_MAX
    return _AxisBins(n, cuts, d, (low, high) if is_exact else None)


def _widths(axis_bins: _AxisBins) -> Tensor:
    """Return the widths of bins, as floats."""
    cuts = axis_bins.comparison_edges
    return diff(cuts if cuts.dtype.kind == "f" else cast(cuts, float64))


def _ravel_operand(op: str, x: Tensor) -> Tensor:
    """Return the operand raveled, a bool one as uint8."""
    x = ravel(strided(op, x))
    return cast(x, uint8) if x.dtype.kind == "b" else x


@public
def histogram_bin_edges(x: Tensor, /, bins: Bins = 10, *, range: Range = None) -> Tensor:
    """Return the edges of the bins of `histogram`.

    - `bins`: the number of bins of equal width, a vector of their edges, or NumPy's name of an
      estimator of the number: "auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt".
      The host reads all elements for an estimate.
    - `range`: the lower and the upper end; None takes those of the data, which the host reads.

    Shapes: any; gives a vector of bins + 1.
    Dtypes: all; gives the float dtype of x, for integers float64, or the dtype of given edges.
    Raises: ArgumentError, ArgumentTypeError, ShapeError, DTypeError.
    See also: `histogram`.

    >>> import dovetail as dt
    >>> dt.histogram_bin_edges(dt.asarray([0, 4]), 2).tolist()
    [0.0, 2.0, 4.0]
    """
    return _parse_bins(
        "histogram_bin_edges", _ravel_operand("histogram_bin_edges", x), bins, range
    ).edges


@public(method=True)
def histogram(
    x: Tensor,
    /,
    bins: Bins = 10,
    *,
    range: Range = None,
    density: bool = False,
    weights: Array | None = None,
) -> Histogram:
    """Count the elements in each bin, and return the counts and the edges: (hist, bin_edges).

    A bin contains its left edge, the last one also its right edge. Elements outside are not
    counted, nor is NaN if `range` is given.

    - `bins`: the number of bins of equal width, a vector of their edges, or NumPy's name of an
      estimator of the number: "auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt".
      The host reads all elements for an estimate.
    - `range`: the lower and the upper end; None takes those of the data, which the host reads. As
      in NumPy, it has no effect if edges are given.
    - `density`: True scales the counts to an area of 1.
    - `weights`: the weight of each element, as a tensor; None counts each once.

    Shapes: any, `weights` like x; `hist` is a vector, and there is one edge more.
    Dtypes: counts are int64, sums have the dtype of the weights; `density` gives the edges' float
    dtype. Bins of integers have edges in float64.
    Raises: ArgumentError for an invalid range, for more bins than the range has numbers, or edges
    that do not ascend; ArgumentTypeError, ShapeError, DTypeError, DeviceError.
    See also: `histogram_bin_edges`, `histogram2d`, `bincount`.

    >>> import dovetail as dt
    >>> hist, edges = dt.histogram(dt.asarray([1, 2, 1, 4]), 3)
    >>> hist.tolist(), edges.tolist()
    ([2, 1, 1], [1.0, 2.0, 3.0, 4.0])
    """
    density = flag("histogram", density, "density")
    if isinstance(bins, str) and weights is not None:
        raise ArgumentError(f"histogram: bins must be a number with weights, got {bins!r}")
    flat = _ravel_operand("histogram", x)
    axis_bins = _parse_bins("histogram", flat, bins, range)
    w = None if weights is None else ravel(_as_operand_tensor("histogram", weights, x))
    if w is not None and w.shape != flat.shape:
        raise ShapeError(
            f"histogram: expected one weight for each of {flat.size} elements, got {w.size}"
        )
    n = axis_bins.bins
    positions = axis_bins.bin_positions(flat, n + 1)
    if w is not None and w.dtype.kind in "iu":  # sums in float64
        positions, w = move_to_supporting_device("histogram", float64, positions, w)
        hist = move_as(_count_or_sum(positions, n + 1, w)[:n], w.dtype, flat.device)
    else:
        hist = _count_or_sum(positions, n + 1, w)[:n]
    if density:
        widths = _widths(axis_bins)
        hist = cast(hist, widths.dtype) / widths / cast(sum_of(hist), widths.dtype)
        hist = cast(hist, axis_bins.dtype if axis_bins.dtype.kind == "f" else widths.dtype)
    return Histogram(hist, axis_bins.edges)


@public
def histogram2d(
    x: Tensor,
    y: Array,
    /,
    bins: Bins | tuple[Bins, Bins] = 10,
    *,
    range: tuple[Range, Range] | None = None,
    density: bool = False,
    weights: Array | None = None,
) -> Histogram2D:
    """Count the points (x, y) in each cell of a grid; return (hist, x_edges, y_edges).

    - `y`: the second coordinates, as many elements as x.
    - `bins`: the number for both axes, or a pair of numbers or edges.
    - `range`: a pair of ranges; None takes those of the data.
    - `density`: True scales the counts to a volume of 1.
    - `weights`: the weight of each point, as a vector; None counts each once.

    Shapes: vectors; `hist` is (bins of x, bins of y).
    Dtypes: counts are int64, sums have the dtype of the weights; `density` gives the edges' float.
    Raises: ArgumentError, ArgumentTypeError, ShapeError, DTypeError, DeviceError.
    See also: `histogram`.

    >>> import dovetail as dt
    >>> dt.histogram2d(dt.asarray([0.0, 1.0]), [0.0, 1.0], 2).hist.tolist()
    [[1, 0], [0, 1]]
    """
    op = "histogram2d"
    density = flag(op, density, "density")
    a, b = _ravel_operand(op, x), _ravel_operand(op, _as_operand_tensor(op, y, x))
    if a.shape != b.shape:
        raise ShapeError(f"{op}: x and y must have equal sizes, got {a.size} and {b.size}")
    pair = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    reach = (None, None) if range is None else sequence(op, range, "range", "two ranges")
    if len(reach) != 2:
        raise refused(op, "range", "two ranges", range)
    first, second = (_parse_bins(op, t, p, r) for t, p, r in zip((a, b), pair, reach, strict=True))  # type: ignore[arg-type]  # _axis checks them
    wide = second.bins + 1
    cells = (first.bins + 1) * wide
    i, j = first.bin_positions(a, cells), second.bin_positions(b, cells)
    positions = apply(ops.ADD, (apply(ops.MULTIPLY, (i, wide)), j))
    w = None if weights is None else ravel(_as_operand_tensor(op, weights, x))
    if w is not None and w.shape != a.shape:
        raise ShapeError(f"{op}: expected one weight for each of {a.size} points, got {w.size}")
    hist = view(_count_or_sum(positions, cells, w), ("reshape", (first.bins + 1, wide)))
    hist = hist[: first.bins, : second.bins]
    if density:
        d = result_type(_widths(first), _widths(second))
        widths = [cast(_widths(a), d) for a in (first, second)]
        area = view(widths[0], ("reshape", (first.bins, 1))) * widths[1]
        hist = cast(hist, d) / area / cast(sum_of(hist), d)
    return Histogram2D(hist, first.edges, second.edges)
