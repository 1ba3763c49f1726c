"""Functions of samples: slopes, areas, interpolation, convolution, polynomials."""

from __future__ import annotations

import math

from ... import layout as lay
from ...argument_checks import choice, exclusive, flag, integer, real
from ...dtypes import DType, float32, int64, uint64
from ...errors import ArgumentError, ShapeError
from ...ops import table as ops
from ...tensor.primitives import apply, slice_along, view
from ...tensor.promotion import Array, Operand, as_operand, as_tensors
from ...tensor.tensor import Tensor, required, strided
from ..creation.constructors import arange, ones, zeros
from ..datatypes import cast, move_as, move_to_supporting_device, result_type, working_float
from ..elementwise.lerp import lerp
from ..indexing.index_reads import gather_unchecked, searchsorted
from ..products.matrix_products import conjugate, matmul
from ..shape.copies import concat
from ..shape.manipulation import broadcast_to, flip, ravel
from ..shape.patches import sliding_window_view
from ..sorting.stable_sort import argsort
from ..variants import public
from .cumulative import cumulative_prod, diff
from .statistics import Axis
from .statistics import sum as sum_of

__all__ = [
    "convolve",
    "correlate",
    "ediff1d",
    "gradient",
    "interp",
    "polyval",
    "trapezoid",
    "vander",
]


def _as_floats(x: Tensor) -> Tensor:
    """Return floating-point tensors unchanged, others as float32."""
    return x if x.dtype.kind in "fc" else cast(x, float32)


def _require_vector(op: str, name: str, x: Tensor) -> Tensor:
    """Return the tensor unchanged. Raises: ShapeError unless it is a vector."""
    if x.ndim != 1:
        raise ShapeError(f"{op}: {name} must be a vector, got shape {x.shape}")
    return x


@public(out=True)
def ediff1d(
    x: Tensor,
    /,
    to_end: Array | None = None,
    to_begin: Array | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours in the raveled tensor.

    - `to_end`, `to_begin`: tensors or numbers that follow and precede the differences; None adds
      none.

    Shapes: any; gives a vector.
    Dtypes: numbers; integers wrap.
    Raises: DTypeError, DeviceError.
    See also: `diff`.

    >>> import dovetail as dt
    >>> dt.ediff1d(dt.asarray([1, 4, 9]), to_begin=[0]).tolist()
    [0, 3, 5]
    """
    flat = ravel(required("ediff1d", x))
    ends = [
        None if e is None else ravel(as_tensors("ediff1d", flat, e)[1]) for e in (to_begin, to_end)
    ]
    pieces = [p for p in (ends[0], diff(flat), ends[1]) if p is not None]
    return concat([cast(p, x.dtype) for p in pieces]) if len(pieces) > 1 else pieces[0]


@public(out=True)
def trapezoid(
    y: Tensor,
    x: Array | None = None,
    /,
    *,
    dx: float | None = None,
    axis: int = -1,
    out: Tensor | None = None,
) -> Tensor:
    """Return the area under samples along `axis`, by the trapezoidal rule.

    - `y`: the samples.
    - `x`: the positions of the samples; None takes samples that are `dx` apart.
    - `dx`: the distance of samples, a number; None is 1. Not with `x`.

    Shapes: `x` broadcasts to y's, or is a vector along the axis, which goes.
    Dtypes: numbers, promoted; integers give float32.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Raises: ShapeError, AxisError, DTypeError, DeviceError, ArgumentError for both x and dx.
    See also: `sum`, `gradient`, `polyint`.

    >>> import dovetail as dt
    >>> dt.trapezoid(dt.asarray([1.0, 2.0, 3.0])).item()
    4.0
    """
    d = lay.axis("trapezoid", axis, required("trapezoid", y).ndim)
    exclusive("trapezoid", x=x, dx=dx)
    y = _as_floats(y)
    n = max(y.shape[d] - 1, 0)
    mean = (slice_along(y, d, min(1, y.shape[d]), n) + slice_along(y, d, 0, n)) * 0.5
    if x is None:
        return sum_of(mean * real("trapezoid", 1.0 if dx is None else dx, "dx"), axis=d)
    at = x if isinstance(x, Tensor) else as_operand("trapezoid", x, (y,))
    return sum_of(mean * _steps("trapezoid", at, y, d), axis=d)


def _steps(op: str, coordinates: Tensor, y: Tensor, d: int) -> Tensor:
    """Return the distances of neighbours along an axis; of integers modulo 2**64, as int64."""
    coordinates = cast(coordinates, int64) if coordinates.dtype.kind not in "fc" else coordinates
    if coordinates.ndim != 1:
        return diff(coordinates, axis=d)
    if coordinates.shape[0] != y.shape[d]:
        raise ShapeError(
            f"{op}: expected a coordinate for each of {y.shape[d]} samples along axis {d}, "
            f"got {coordinates.shape[0]}"
        )
    steps = diff(coordinates)
    return view(steps, ("reshape", tuple(steps.size if i == d else 1 for i in range(y.ndim))))


@public(widen="first")
def gradient(
    x: Tensor, /, *spacing: Operand, axis: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Return slopes of samples along each axis: central differences, one-sided at the ends.

    One axis gives one tensor, several a tuple in the order of `axis`.

    - `spacing`: the distance of samples: one number for all axes or one for each, or a vector of
      positions for each axis. Default: 1.
    - `axis`: an int or a tuple of ints; None takes all axes.
    - `edge_order`: 1 or 2, the order of the differences at the ends.

    Shapes: at least edge_order + 1 samples along each axis; the results have x's.
    Dtypes: numbers; integers give float32.
    Raises: ShapeError, AxisError, ArgumentError, DTypeError, DeviceError.
    See also: `diff`, `trapezoid`; `func.grad` differentiates functions.

    >>> import dovetail as dt
    >>> dt.gradient(dt.asarray([1.0, 2.0, 4.0, 7.0])).tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    axes = lay.ordered_axes("gradient", axis, required("gradient", x).ndim)
    order = integer("gradient", edge_order, "edge_order", 1, 2)
    if len(spacing) not in (0, 1, len(axes)):
        raise ArgumentError(
            f"gradient: expected 1 spacing or one for each of {len(axes)} axes, got {len(spacing)}"
        )
    work = working_float(x.dtype)
    wide, *spacings = move_to_supporting_device("gradient", work, x, *(spacing or (1.0,)))
    spacings = spacings * (len(axes) if len(spacings) < 2 else 1)
    wide = cast(wide, work)
    like = x.dtype if x.dtype.kind in "fc" else float32
    slopes = tuple(
        move_as(_slopes(wide, d, h, order), like, x.device)
        for d, h in zip(axes, spacings, strict=True)
    )
    return slopes[0] if len(slopes) == 1 else slopes


def _slopes(x: Tensor, d: int, spacing: Operand, order: int) -> Tensor:
    """Return slopes along axis `d`, of `order` 1 or 2 at the ends.

    Raises: ShapeError for fewer than `order` + 1 samples, and for `spacing` that does not fit.
    """
    n = x.shape[d]
    if n < order + 1:
        raise ShapeError(f"gradient: expected at least {order + 1} samples along axis {d}, got {n}")
    if isinstance(spacing, (int, float)):
        steps = None
        h = real("gradient", spacing, "spacing")
    else:
        at = spacing if isinstance(spacing, Tensor) else as_operand("gradient", spacing, (x,))
        if at.ndim != 1:
            raise ShapeError(
                f"gradient: spacing must be a number or a vector, got shape {at.shape}"
            )
        steps, h = cast(_steps("gradient", at, x, d), x.dtype.part), 1.0

    def samples(k: int) -> Tensor:
        """Return the samples at index `k`, from the end if negative."""
        return slice_along(x, d, k % n, 1)

    def step(k: int) -> Tensor | float:
        """Return the step between samples k and k + 1, from the end if negative."""
        return h if steps is None else slice_along(steps, d, k % (n - 1), 1)

    inner = []
    if n > 2:
        before, here, after = (slice_along(x, d, k, n - 2) for k in (0, 1, 2))
        if steps is None:
            inner = [(after - before) / (2.0 * h)]
        else:
            a, b = (slice_along(steps, d, k, n - 2) for k in (0, 1))
            inner = [
                before * (-b / (a * (a + b)))
                + here * ((b - a) / (a * b))
                + after * (a / (b * (a + b)))
            ]
    first, last = (samples(1) - samples(0)) / step(0), (samples(-1) - samples(-2)) / step(-1)
    if order == 2:
        first = _end_slope(samples(0), samples(1), samples(2), step(0), step(1))
        last = -_end_slope(samples(-1), samples(-2), samples(-3), step(-1), step(-2))
    return concat([first, *inner, last], axis=d)


def _end_slope(p: Tensor, q: Tensor, r: Tensor, a: Tensor | float, b: Tensor | float) -> Tensor:
    """Return the slope at p of the parabola through p, q and r, with steps a and b between them."""
    return p * (-(a * 2.0 + b) / (a * (a + b))) + q * ((a + b) / (a * b)) - r * (a / (b * (a + b)))


@public(out=True)
def interp(
    x: Tensor,
    xp: Array,
    fp: Array,
    /,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Interpolate linearly between samples at `x`.

    - `xp`: the positions of the samples, in ascending order.
    - `fp`: the values of the samples.
    - `left`, `right`: the values before and after all samples; None takes those of the first and
      the last sample.
    - `period`: samples repeat after it and are sorted; `left` and `right` have no meaning then.
      None does not repeat them.

    Shapes: x any; `xp` and `fp` are vectors of one length. The result has x's shape.
    Dtypes: numbers, promoted; integers give float32. Only values may be complex.
    Raises: ShapeError, ArgumentError for a period of 0 or with `left` or `right`, DTypeError,
    DeviceError.
    See also: `searchsorted`, `lerp`, `nn.functional.interpolate`.

    >>> import dovetail as dt
    >>> dt.interp(dt.asarray([0.5, 9.0]), [0.0, 1.0], [10.0, 20.0]).tolist()
    [15.0, 20.0]
    """
    x, positions, values = as_tensors("interp", required("interp", x), xp, fp)
    n = _require_vector("interp", "xp", positions).shape[0]
    if _require_vector("interp", "fp", values).shape[0] != n or not n:
        raise ShapeError(
            f"interp: xp and fp must have equal sizes of at least 1, got {n} and {values.shape[0]}"
        )
    d: DType = result_type(x, positions, values)
    d = d if d.kind in "fc" else float32
    work = result_type(*[working_float(t.dtype) for t in (x, positions)]).part
    home = x.device
    x, positions, values = move_to_supporting_device("interp", work, x, positions, values)
    x, positions = cast(x, work), cast(positions, work)
    values = cast(values, d if values.dtype.kind == "c" else d.part)
    if period is not None:
        exclusive("interp", period=period, left=left)
        exclusive("interp", period=period, right=right)
        x, positions, values = _extend_period(
            x, positions, values, abs(real("interp", period, "period"))
        )
        n = n + 2
    after = apply(ops.CLIP, (searchsorted(positions, x, side="right"), 1, max(n - 1, 1)))
    low = apply(ops.MINIMUM, (after - 1, n - 1))
    high = apply(ops.MINIMUM, (after, n - 1))
    a, b = gather_unchecked(positions, low), gather_unchecked(positions, high)
    result = lerp(
        gather_unchecked(values, low), gather_unchecked(values, high), _fraction_between(x, a, b)
    )
    below, above = apply(ops.LESS, (x, positions[0])), apply(ops.GREATER, (x, positions[n - 1]))
    first = values[0] if left is None else real("interp", left, "left")
    last = values[n - 1] if right is None else real("interp", right, "right")
    result = apply(ops.WHERE, (below, first, apply(ops.WHERE, (above, last, result))))
    return move_as(apply(ops.WHERE, (apply(ops.ISNAN, (x,)), math.nan, result)), d, home)


def _fraction_between(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the position of `x` between `a` and `b` as a fraction in 0..1.

    If `a` is -inf the fraction is 1 for finite `x`; if `b` is inf it is 0; if both are, it is NaN.
    """
    width = b - a
    half = (x * 0.5 - a * 0.5) / (b * 0.5 - a * 0.5)  # for a width that overflows
    share = apply(ops.WHERE, (apply(ops.ISFINITE, (width,)), (x - a) / width, half))
    share = apply(ops.WHERE, (apply(ops.EQUAL, (a, -math.inf)), 1.0 + (b - b), share))
    share = apply(ops.WHERE, (apply(ops.EQUAL, (x, a)), 0.0, share))
    share = apply(ops.WHERE, (apply(ops.EQUAL, (x, b)), 1.0, share))
    return apply(ops.CLIP, (share, 0.0, 1.0))


def _extend_period(
    x: Tensor, positions: Tensor, values: Tensor, period: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the samples of one period in order, extended by one sample on each side."""
    if not period:
        raise ArgumentError("interp: period must not be 0")
    x, positions = x % period, positions % period
    order = argsort(positions)
    positions, values = gather_unchecked(positions, order), gather_unchecked(values, order)
    positions = concat([positions[-1:] - period, positions, positions[:1] + period])
    return x, positions, concat([values[-1:], values, values[:1]])


@public(out=True)
def vander(
    x: Array, n: int | None = None, /, *, increasing: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the Vandermonde matrix: the powers of each element, the highest first.

    - `n`: the number of powers, from 0 on; None takes the number of elements.
    - `increasing`: True puts the lowest power first.

    Shapes: a vector (m,) gives (m, n).
    Dtypes: numbers; bool and integers but uint64 give int64, others the same.
    Order: each power is the one below it times the element.
    Raises: ShapeError unless it is a vector, ArgumentError for a negative n, DTypeError.
    See also: `polyval`, `polyfit`.

    >>> import dovetail as dt
    >>> dt.vander(dt.asarray([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    (x,) = as_tensors("vander", x)
    m = _require_vector("vander", "x", x).shape[0]
    if x.dtype.kind not in "fc" and x.dtype is not uint64:
        x = cast(x, int64)
    count = m if n is None else integer("vander", n, "n", 0, 1 << 31)
    column = view(x, ("reshape", (m, 1)))
    one = ones((m, min(count, 1)), dtype=x.dtype, device=x.device)
    if count > 1:
        factors = broadcast_to(column, (m, count - 1))
        one = concat([one, cast(cumulative_prod(factors, axis=1), x.dtype)], axis=1)
    return one if flag("vander", increasing, "increasing") else flip(one, axis=1)


MODES = ("full", "same", "valid")


@public(out=True, cache=True)
def convolve(x1: Array, x2: Array, /, *, mode: str = "full", out: Tensor | None = None) -> Tensor:
    """Return the convolution of two vectors: sums of products with one of them reversed.

    - `mode`: "full" returns all sums, "same" the middle ones, as many as the longer vector has
      elements, "valid" those in which the shorter vector is inside the other.

    Shapes: vectors of at least one element.
    Dtypes: numbers, promoted.
    Order: that of `matmul`.
    Raises: ShapeError, ArgumentError for another mode, DTypeError, DeviceError.
    See also: `correlate`, `nn.functional.conv1d`, `fft.fft`.

    >>> import dovetail as dt
    >>> dt.convolve(dt.asarray([1, 2, 3]), [0, 1, 5]).tolist()
    [0, 1, 7, 13, 15]
    """
    a, b = as_tensors("convolve", x1, x2)
    return _convolve_windows("convolve", a, b, mode)


@public(out=True, cache=True)
def correlate(x1: Array, x2: Array, /, *, mode: str = "valid", out: Tensor | None = None) -> Tensor:
    """Return the cross-correlation of two vectors: sums of products at every shift.

    A complex second vector is conjugated.

    - `mode`: "full" returns all sums, "same" the middle ones, as many as the longer vector has
      elements, "valid" those in which the shorter vector is inside the other.

    Shapes: vectors of at least one element.
    Dtypes: numbers, promoted.
    Order: that of `matmul`.
    Raises: ShapeError, ArgumentError for another mode, DTypeError, DeviceError.
    See also: `convolve`, `corrcoef`.

    >>> import dovetail as dt
    >>> dt.correlate(dt.asarray([1, 2, 3]), [0, 1, 5]).tolist()
    [17]
    """
    a, b = as_tensors("correlate", x1, x2)
    b = _require_vector("correlate", "x2", b)
    return _convolve_windows("correlate", a, flip(conjugate(b)), mode)


def _convolve_windows(op: str, a: Tensor, b: Tensor, mode: str) -> Tensor:
    """Convolve vectors; `op` selects how mode `same` aligns (`correlate` passes b reversed)."""
    choice(op, mode, "mode", MODES)
    _require_vector(op, "x1", a), _require_vector(op, "x2", b)
    if not a.size or not b.size:
        raise ShapeError(f"{op}: vectors must not be empty, got {a.size} and {b.size} elements")
    d = result_type(a, b)
    long, short = (a, b) if a.size >= b.size else (b, a)
    n, m = long.size, short.size
    middle = (m - 1) // 2 if op == "convolve" or long is a else m // 2  # as in NumPy
    skipped = {"full": 0, "same": middle, "valid": m - 1}[mode]
    length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    long, weights = cast(long, d), flip(cast(short, d))
    inner = matmul(sliding_window_view(long, m), weights)
    if m == 1 or mode == "valid":
        return inner
    outer = _sum_outer_windows(long, weights)
    return slice_along(concat([outer[: m - 1], inner, outer[m - 1 :]]), 0, skipped, length)


def _sum_outer_windows(x: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sums of the windows that begin in front of a vector or end behind it.

    A weight beside the vector is left out, since a product of NaN and zero would be NaN.
    """
    n, m = x.size, weights.size
    window = arange(2 * m - 2, device=x.device)[:, None]
    start = apply(ops.WHERE, (window < m - 1, window, window + (n - m + 1))) - (m - 1)
    index = start + arange(m, device=x.device)
    is_inside = apply(ops.BITWISE_AND, (index >= 0, index < n))
    values = gather_unchecked(x, apply(ops.CLIP, (index, 0, n - 1)))
    return cast(sum_of(apply(ops.WHERE, (is_inside, values * weights, 0)), 1), x.dtype)


@public(out=True)
def polyval(p: Array, x: Tensor | float, /, *, out: Tensor | None = None) -> Tensor:
    """Return the values of a polynomial at `x`, by Horner's scheme.

    - `p`: the coefficients, the highest power first.

    Shapes: `p` is a vector, x any; the result has x's shape.
    Dtypes: numbers, promoted.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `polyfit`, `roots`, `vander`.

    >>> import dovetail as dt
    >>> dt.polyval([3, 0, 1], dt.asarray([0, 2])).tolist()
    [1, 13]
    """
    if not isinstance(x, Tensor):
        (p,) = as_tensors("polyval", p)
        x = zeros((), dtype=p.dtype, device=p.device) + x
    coefficients = _require_vector("polyval", "p", as_tensors("polyval", p, x)[0])
    result = apply(ops.MULTIPLY, (strided("polyval", x), 0))
    result = cast(result, result_type(coefficients, result))
    for i in range(coefficients.shape[0]):
        result = result * x + coefficients[i]
    return result
