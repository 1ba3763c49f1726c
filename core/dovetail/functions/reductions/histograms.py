"""How often values occur: in bins, and by themselves."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from ...arguments import flag, integer, named, real, refused, sequence, shown
from ...dtypes import DType, float32, float64, int32, int64, uint8
from ...engine import recording
from ...errors import ArgumentError, DTypeError, ShapeError
from ...graph.expr import node, spec
from ...ops import table as ops
from ...ops.counting import CLIPPED
from ...tensor.host import evaluate, values_of
from ...tensor.operands import ARRAYS, Array, beside
from ...tensor.tensor import Tensor, make, required, strided
from ...tensor.verbs import apply, view
from ..creation.constructors import linspace, zeros
from ..datatypes import cast, finfo, result_type
from ..indexing.index_reads import comparable, exact, fetch, searchsorted
from ..indexing.index_writes import index_add
from ..shape.manipulation import flip, ravel
from ..variants import into
from .cumulative import diff
from .statistics import all as all_of
from .statistics import max as max_of
from .statistics import min as min_of
from .statistics import sum as sum_of

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges"]

EPSILON = {float32: 2.0**-23, float64: 2.0**-52}  # between 1 and the next number
SMALLEST = {float32: 2.0**-149, float64: 2.0**-1074}  # above 0
HUGE = 1e38  # a scale of bins that every float holds

Bins: TypeAlias = int | Array
Range: TypeAlias = tuple[float, float] | None


class Histogram(NamedTuple):
    """What `histogram` gives."""

    hist: Tensor
    bin_edges: Tensor


class Histogram2D(NamedTuple):
    """What `histogram2d` gives."""

    hist: Tensor
    x_edges: Tensor
    y_edges: Tensor


# --- counts ---------------------------------------------------------------------------------------


@named
def bincount(x: Tensor, /, weights: Array | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2, ... occurs in a vector of such integers.

    `weights`: what each element counts, instead of 1. `minlength`: how long the result is at least.
    The largest element is read by the host.
    Shapes: a vector, and `weights` like it; the result is as long as the largest element + 1,
    within `vmap` that of all examples.
    Dtypes: integers and bool; gives int64, or the weights' dtype, for integers and bool float64.
    Order: weights of one number are added in order: the same bits on every device.
    Raises: ArgumentError for a negative element or `minlength`; ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.bincount(dt.asarray([0, 2, 2], device="reference")).tolist()
    [1, 0, 2]
    """
    least = integer("bincount", minlength, "minlength", 0, 1 << 40)
    if strided("bincount", x).ndim != 1:
        raise ShapeError(f"bincount: needs a vector, not shape {x.shape}")
    if x.dtype.kind == "f":
        raise DTypeError(f"bincount: counts integers, not {x.dtype.name}; see dt.histogram")
    w = None if weights is None else _beside("bincount", weights, x)
    if w is not None and w.shape != x.shape:
        raise ShapeError(f"bincount: weights of shape {w.shape} for x of shape {x.shape}")
    one = w is None and x.size and not recording.is_batched(x._expr)
    if one and (found := _guessed(x, least)) is not None:
        return found
    bins = least
    if x.size:
        low, high = recording.look(_extremes, x)
        if low < 0:
            raise ArgumentError(f"bincount: x has the negative element {low}")
        bins = max(high + 1, least)
    return _counted(x, bins, w)


def _extremes(x: Tensor) -> tuple[int, int]:
    """Return the smallest and the largest element."""
    low, high = min_of(x), max_of(x)
    evaluate(low, high)
    return int(low.item()), int(high.item())


def _beside(op: str, given: object, x: Tensor) -> Tensor:
    return given if isinstance(given, Tensor) else beside(op, given, (x,))


SAMPLE = 1 << 10  # elements by which the largest one is guessed
GUESSED = 1 << 10, 1 << 17  # the least guess, and the greatest one whose counts fit a cache


def _guessed(x: Tensor, least: int) -> Tensor | None:
    """Counts from one pass, by a guess at the largest element; None where that was too small.

    Reading the range before counting takes two thirds of the time of counting.
    """
    some = x if x.size <= GUESSED[0] else x[:: x.size // SAMPLE]
    largest = least - 1 if some is x else max(int(max_of(some).item()), least - 1)
    bins = max(1 << max(largest, 0).bit_length(), GUESSED[0])
    if bins > max(min(GUESSED[1], x.size), GUESSED[0]):
        return None
    counts = _counted(x, bins + 1, None, CLIPPED)
    used = np.flatnonzero(values_of("bincount", counts))
    if used[-1] == bins:
        return None
    return counts[: max(int(used[-1]) + 1, least)]


def _counted(at: Tensor, bins: int, weights: Tensor | None, how: str | None = None) -> Tensor:
    """Counts, or sums of weights, of positions known to be in 0..bins-1 unless CLIPPED."""
    if weights is not None:
        d = weights.dtype if weights.dtype.kind == "f" else float64
        total = zeros((bins,), dtype=d, device=at.device)
        return index_add(total, 0, cast(at, int64), cast(weights, d)) if at.size else total
    if not at.size or not bins:
        return zeros((bins,), dtype=int64, device=at.device)
    s = spec((bins,), int64, at.device, "bincount")
    return make(node(ops.COUNT_VALUES, (at._expr,), s, how))


@into(widen=False)
def digitize(
    x: Tensor, bins: Array, /, *, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """For each element the number of the bin that it lies in: 0 before the first edge.

    `bins`: the edges, in ascending or descending order, which the host checks. `right`: whether a
    bin has its right edge instead of its left one. NaN comes last.
    Shapes: x any; `bins` is a vector. The result has x's shape.
    Dtypes: all but bool, promoted for the comparison. Gives int64.
    Raises: ArgumentError for edges in no order, ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.digitize(dt.asarray([0.2, 6.4, 3.0], device="reference"), [0.0, 1.0, 3.0]).tolist()
    [1, 3, 3]
    """
    right = flag("digitize", right, "right")
    edges = _beside("digitize", exact(bins, required("digitize", x)), x)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins is a vector, not of shape {edges.shape}")
    up, down = _is_ordered(edges)
    if not up and not down:
        raise ArgumentError("digitize: bins are in no order")
    if up:
        return searchsorted(edges, x, side="left" if right else "right")
    behind = searchsorted(flip(edges), x, side="left" if right else "right")
    return apply(ops.SUBTRACT, (edges.shape[0], behind))


def _is_ordered(edges: Tensor) -> tuple[bool, bool]:
    """Whether a vector ascends, and whether it descends."""
    if edges.shape[0] < 2:
        return True, True
    before, after = edges[:-1], edges[1:]
    found = [all_of(apply(op, (before, after))) for op in (ops.LESS_EQUAL, ops.GREATER_EQUAL)]
    evaluate(*found)
    return bool(found[0]), bool(found[1])


# --- histograms -----------------------------------------------------------------------------------


class _Axis(NamedTuple):
    """The bins along one axis: how many, and their edges."""

    bins: int
    cuts: Tensor  # the edges, as they are compared with
    dtype: DType  # of the edges as the caller gets them
    even: tuple[float, float] | None  # from where to where, where a multiplication finds the bin

    @property
    def edges(self) -> Tensor:
        """The edges as the caller gets them."""
        return cast(self.cuts, self.dtype)

    def places(self, x: Tensor, cells: int) -> Tensor:
        """Return the bin of each element, and `bins` for what lies outside; of `cells` in all."""
        d = int32 if cells <= int32.max else int64
        n = self.bins
        edges, x = comparable("histogram", self.cuts, x)
        first, last = edges[0], edges[n]
        if self.even is None:
            at = apply(ops.SUBTRACT, (searchsorted(edges, x, side="right"), 1))
        else:
            low, high = self.even
            scale = n / (high - low)
            rough = apply(ops.FLOOR, (apply(ops.MULTIPLY, (x - low, scale)),))
            at = cast(apply(ops.CLIP, (rough, 0.0, float(n - 1))), int64)
            # the edges decide, as rounding may have put what is beside one on its other side
            at = at - cast(apply(ops.LESS, (x, fetch(edges, at))), int64)
            at = apply(ops.MAXIMUM, (at, 0))
            at = at + cast(apply(ops.GREATER_EQUAL, (x, fetch(edges, at + 1))), int64)
        at = apply(ops.MINIMUM, (at, n - 1))  # the last edge belongs to the last bin
        inside = apply(
            ops.LOGICAL_AND,
            (apply(ops.GREATER_EQUAL, (x, first)), apply(ops.LESS_EQUAL, (x, last))),
        )
        return cast(apply(ops.WHERE, (inside, at, n)), d)


def _ends(op: str, x: Tensor, given: Range) -> tuple[float, float]:
    """Return from where to where bins reach: over the data unless given."""
    if given is not None:
        listed = sequence(op, given, "range", "two numbers")
        if len(listed) != 2:
            raise refused(op, "range", "two numbers", given)
        low, high = (real(op, v, "range") for v in listed)
    elif not x.size:
        low, high = 0.0, 1.0
    else:
        ends = min_of(x), max_of(x)
        evaluate(*ends)
        low, high = (float(e.item()) for e in ends)
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ArgumentError(f"{op}: the range {low}..{high} is none; see range=")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _axis(op: str, x: Tensor, bins: object, given: Range) -> _Axis:
    if isinstance(bins, str):
        raise ArgumentError(f"{op}: bins is a number or edges, not the rule {shown(bins)}")
    if isinstance(bins, (Tensor, *ARRAYS)) and not (isinstance(bins, np.ndarray) and not bins.ndim):
        edges = _beside(op, exact(bins, x), x)
        if edges.ndim != 1 or edges.shape[0] < 2:
            raise ShapeError(f"{op}: edges are a vector of 2 at least, not shape {edges.shape}")
        if not _is_ordered(edges)[0]:
            raise ArgumentError(f"{op}: bins do not ascend")
        return _Axis(edges.shape[0] - 1, edges, edges.dtype, None)
    n = integer(op, bins, "bins", 1, 1 << 40)
    low, high = _ends(op, x, given)
    d = x.dtype if x.dtype.kind == "f" else float64
    wide = float64 if d is float64 else float32
    width, largest = high - low, max(abs(low), abs(high), high - low)
    digit = max(EPSILON[wide] * largest, SMALLEST[wide])
    # more than half a digit for the rounding of each edge; NumPy refuses what does not ascend, too
    few = width / n < 2 * digit
    cuts = linspace(low, high, n + 1, dtype=wide, device=x.device)
    if few and not all_of(apply(ops.LESS, (cuts[:-1], cuts[1:]))):
        raise ArgumentError(
            f"{op}: {n} bins from {low} to {high} are too many for {wide.name}, whose numbers are "
            f"{digit:g} apart there; give fewer bins, or range="
        )
    # x - low, the scale and their product are rounded: by less than one bin altogether
    sure = width <= finfo(wide).max and n * digit < width / 8 and n / width < HUGE
    return _Axis(n, cuts, d, (low, high) if sure else None)


def _widths(along: _Axis) -> Tensor:
    """Return the widths of bins, as floats."""
    cuts = along.cuts
    return diff(cuts if cuts.dtype.kind == "f" else cast(cuts, float64))


def _whole(op: str, x: Tensor) -> Tensor:
    x = ravel(strided(op, x))
    return cast(x, uint8) if x.dtype.kind == "b" else x


@named
def histogram_bin_edges(x: Tensor, /, bins: Bins = 10, *, range: Range = None) -> Tensor:
    """The edges of the bins of `histogram`.

    `bins`: how many of one width, or their edges. `range`: from where to where they reach; over all
    the data unless given, which the host reads.
    Shapes: any; gives a vector of bins + 1.
    Dtypes: all; gives the float of x, for integers float64, or the dtype of the edges given.
    Raises: ArgumentError, ArgumentTypeError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.histogram_bin_edges(dt.asarray([0, 4], device="reference"), 2).tolist()
    [0.0, 2.0, 4.0]
    """
    return _axis("histogram_bin_edges", _whole("histogram_bin_edges", x), bins, range).edges


@named
def histogram(
    x: Tensor, /, bins: Bins = 10, *, range: Range = None, density: bool = False,
    weights: Array | None = None,
) -> Histogram:  # fmt: skip
    """How many elements lie in each bin, and the edges of the bins: (hist, bin_edges).

    `bins`: how many of one width, or their edges. `range`: from where to where they reach; over all
    the data unless given, which the host reads. A bin has its left edge, the last one its right
    edge too; what lies outside, and NaN where `range` is given, does not count. `density`: so that
    the area under it is 1. `weights`: what each element counts, instead of 1. As in NumPy, `range`
    has no effect where edges are given.
    Shapes: any, `weights` like x; `hist` is a vector, the edges one more.
    Dtypes: counts are int64, sums those of the weights; `density` gives the edges' float. Bins of
    integers have edges in float64.
    Raises: ArgumentError for a range that is none, for more bins than it has numbers, or edges that
    do not ascend; ArgumentTypeError, ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> hist, edges = dt.histogram(dt.asarray([1, 2, 1, 4], device="reference"), 3)
    >>> hist.tolist(), edges.tolist()
    ([2, 1, 1], [1.0, 2.0, 3.0, 4.0])
    """
    density = flag("histogram", density, "density")
    flat = _whole("histogram", x)
    along = _axis("histogram", flat, bins, range)
    w = None if weights is None else ravel(_beside("histogram", weights, x))
    if w is not None and w.shape != flat.shape:
        raise ShapeError(f"histogram: {w.size} weights for {flat.size} elements")
    found = _counted(along.places(flat, along.bins + 1), along.bins + 1, w)[: along.bins]
    if w is not None and w.dtype.kind in "iu":
        found = cast(found, w.dtype)
    if density:
        widths = _widths(along)
        found = cast(found, widths.dtype) / widths / cast(sum_of(found), widths.dtype)
        found = cast(found, along.dtype if along.dtype.kind == "f" else widths.dtype)
    return Histogram(found, along.edges)


@named
def histogram2d(
    x: Tensor, y: Array, /, bins: Bins | tuple[Bins, Bins] = 10, *,
    range: tuple[Range, Range] | None = None, density: bool = False, weights: Array | None = None,
) -> Histogram2D:  # fmt: skip
    """How many points (x, y) lie in each cell of a grid, and its edges: (hist, x_edges, y_edges).

    `y`: as many elements as x. `bins`: how many along both axes, or a pair: of numbers or edges.
    `range`: a pair of ranges. `density`, `weights`: as for `histogram`.
    Shapes: vectors; `hist` is (bins of x, bins of y).
    Dtypes: counts are int64, sums those of the weights; `density` gives the edges' float.
    Raises: ArgumentError, ArgumentTypeError, ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.histogram2d(dt.asarray([0.0, 1.0], device="reference"), [0.0, 1.0], 2).hist.tolist()
    [[1, 0], [0, 1]]
    """
    op = "histogram2d"
    density = flag(op, density, "density")
    a, b = _whole(op, x), _whole(op, _beside(op, y, x))
    if a.shape != b.shape:
        raise ShapeError(f"{op}: x has {a.size} elements and y {b.size}")
    pair = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    reach = (None, None) if range is None else sequence(op, range, "range", "two ranges")
    if len(reach) != 2:
        raise refused(op, "range", "two ranges", range)
    first, second = (_axis(op, t, p, r) for t, p, r in zip((a, b), pair, reach, strict=True))  # type: ignore[arg-type]  # checked there
    wide = second.bins + 1
    cells = (first.bins + 1) * wide
    i, j = first.places(a, cells), second.places(b, cells)
    places = apply(ops.ADD, (apply(ops.MULTIPLY, (i, wide)), j))
    w = None if weights is None else ravel(_beside(op, weights, x))
    if w is not None and w.shape != a.shape:
        raise ShapeError(f"{op}: {w.size} weights for {a.size} points")
    found = view(_counted(places, cells, w), ("reshape", (first.bins + 1, wide)))
    found = found[: first.bins, : second.bins]
    if density:
        d = result_type(_widths(first), _widths(second))
        widths = [cast(_widths(a), d) for a in (first, second)]
        area = view(widths[0], ("reshape", (first.bins, 1))) * widths[1]
        found = cast(found, d) / area / cast(sum_of(found), d)
    return Histogram2D(found, first.edges, second.edges)
