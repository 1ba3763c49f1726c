"""Elementwise functions under NumPy's names that are composed of several ops."""

from __future__ import annotations

import math

from ... import layout as lay
from ...argument_checks import number, real, shown
from ...dtypes import bool_, float32, uint8, uint16, uint32, uint64
from ...errors import ArgumentError, DTypeError, ShapeError
from ...tensor.primitives import slice_along
from ...tensor.promotion import Array, Operand, as_tensors
from ...tensor.tensor import Tensor, drop_tape, required, strided
from ..creation.constructors import ones, zeros
from ..datatypes import cast, promote_operands
from ..reductions.cumulative import cumulative_sum, diff
from ..reductions.statistics import all as all_of
from ..shape.copies import concat
from ..shape.manipulation import broadcast_shapes
from ..variants import public
from . import op_functions as ew

__all__ = [
    "array_equiv",
    "bitwise_count",
    "fmax",
    "fmin",
    "fmod",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "logaddexp2",
    "unwrap",
]


# --- two operands ---------------------------------------------------------------------------------


def _as_floats(op: str, x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Return both operands as floats of one dtype. Raises: DTypeError for complex numbers."""
    a, b = promote_operands(op, x1, x2)
    if a.dtype.kind not in "biuf":
        raise DTypeError(f"{op}: expected real numbers, got {a.dtype.name}")
    d = a.dtype if a.dtype.kind == "f" else float32
    return cast(a, d), cast(b, d)


@public(in_place=True, out=True, widen=False)
def fmax(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the larger of x1 and x2, element by element, and the other one for a NaN.

    The result is NaN only where both are; that of `maximum` is where either is.
    Shapes: broadcast; a Python number has none.
    Dtypes: all but complex; the result has the promoted one.
    Gradient: to the larger one, or to the one that is not NaN; equal ones as for `maximum`.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError, naming the operands.

    >>> import dovetail as dt
    >>> dt.fmax(dt.asarray([1.0, dt.nan, 3.0]), 2).tolist()
    [2.0, 2.0, 3.0]
    """
    a, b = promote_operands("fmax", x1, x2)
    return _other_if_nan(a, b, ew.maximum(a, b))


@public(in_place=True, out=True, widen=False)
def fmin(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the smaller of x1 and x2, element by element, and the other one for a NaN.

    The result is NaN only where both are; that of `minimum` is where either is.
    Shapes: broadcast; a Python number has none.
    Dtypes: all but complex; the result has the promoted one.
    Gradient: to the smaller one, or to the one that is not NaN; equal ones as for `minimum`.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError, naming the operands.

    >>> import dovetail as dt
    >>> dt.fmin(dt.asarray([1.0, dt.nan, 3.0]), 2).tolist()
    [1.0, 2.0, 2.0]
    """
    a, b = promote_operands("fmin", x1, x2)
    return _other_if_nan(a, b, ew.minimum(a, b))


def _other_if_nan(a: Tensor, b: Tensor, result: Tensor) -> Tensor:
    """Return the result, except where one operand is NaN; there the other operand."""
    if result.dtype.kind != "f":
        return result
    return ew.where(ew.isnan(a), b, ew.where(ew.isnan(b), a, result))


@public(in_place=True, out=True)
def fmod(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return the remainder of x1 / x2 with the sign of x1, as C's `fmod`.

    `remainder` has the sign of x2. The result is exact. For integers x % 0 is 0, for floats NaN;
    for an infinite x2 it is x1.
    Shapes: broadcast; a Python number has none.
    Dtypes: integers and floats; the result has the promoted one.
    Gradient: 1 for x1; for x2 the negative quotient without its fraction.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError, naming the operands.

    >>> import dovetail as dt
    >>> dt.fmod(dt.asarray([-7.0, 7.0]), 3).tolist()
    [-1.0, 1.0]
    """
    a, b = promote_operands("fmod", x1, x2)
    if a.dtype.kind != "f":
        remainder = ew.remainder(a, b)
        if a.dtype.kind == "u":
            return remainder
        wrong = ew.logical_and(
            ew.not_equal(remainder, 0), ew.not_equal(ew.less(a, 0), ew.less(b, 0))
        )
        return ew.where(wrong, remainder - b, remainder)
    below = ew.signbit(a)
    remainder = ew.remainder(ew.where(below, -a, a), ew.abs(b))
    return ew.where(below, -remainder, remainder)


@public(in_place=True, out=True)
def logaddexp2(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """Return log2(2**x1 + 2**x2), without overflow.

    Shapes: broadcast; a Python number has none.
    Dtypes: floats; integers and bool become float32. float16 and bfloat16 are computed in float32.
    Gradient: the share that each of the two powers has in their sum.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError, naming the operands.

    >>> import dovetail as dt
    >>> dt.logaddexp2(dt.asarray([1000.0, 3.0]), [1000.0, 3.0]).tolist()
    [1001.0, 4.0]
    """
    a, b = _as_floats("logaddexp2", x1, x2)
    first = ew.greater_equal(a, b)  # not maximum, which has no second derivative at equal operands
    high, low = ew.where(first, a, b), ew.where(first, b, a)
    same = ew.logical_and(ew.isinf(a), ew.equal(a, b))  # infinities, whose difference is NaN
    distance = ew.where(same, 0.0, low - high)
    total = high + ew.log1p(ew.exp2(distance)) * (1.0 / math.log(2.0))
    return ew.where(same, a * 0.5 + b * 0.5, total)


# --- one operand ----------------------------------------------------------------------------------


@public(out=True, widen=False)
def isneginf(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where an element is negative infinity.

    Shapes: any; the result has the same.
    Dtypes: all but complex; gives bool.
    Raises: DTypeError.

    >>> import dovetail as dt
    >>> dt.isneginf(dt.asarray([-dt.inf, 0.0, dt.inf])).tolist()
    [True, False, False]
    """
    return _equals_infinity("isneginf", x, -math.inf)


@public(out=True, widen=False)
def isposinf(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where an element is positive infinity.

    Shapes: any; the result has the same.
    Dtypes: all but complex; gives bool.
    Raises: DTypeError.

    >>> import dovetail as dt
    >>> dt.isposinf(dt.asarray([-dt.inf, 0.0, dt.inf])).tolist()
    [False, False, True]
    """
    return _equals_infinity("isposinf", x, math.inf)


def _equals_infinity(op: str, x: Tensor, value: float) -> Tensor:
    """Return True where `x` is that infinity; False for integers. Raises: DTypeError if complex."""
    kind = strided(op, x).dtype.kind
    if kind == "c":
        raise DTypeError(f"{op}: expected real numbers, got {x.dtype.name}; use dt.real or dt.imag")
    if kind != "f":
        return zeros(x.shape, dtype=bool_, device=x.device)
    return ew.equal(x, value)


@public(out=True, widen=False)
def isreal(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where an element is real or has an imaginary part of 0.

    Shapes: any; the result has the same.
    Dtypes: all; gives bool.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> dt.isreal(dt.asarray([1 + 2j, 3 + 0j])).tolist()
    [False, True]
    """
    if strided("isreal", x).dtype.kind != "c":
        return ones(x.shape, dtype=bool_, device=x.device)
    return ew.equal(ew.imag(x), 0.0)


@public(out=True, widen=False)
def iscomplex(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Return True where an element has an imaginary part other than 0.

    Shapes: any; the result has the same.
    Dtypes: all; gives bool.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> dt.iscomplex(dt.asarray([1 + 2j, 3 + 0j])).tolist()
    [True, False]
    """
    if strided("iscomplex", x).dtype.kind != "c":
        return zeros(x.shape, dtype=bool_, device=x.device)
    return ew.not_equal(ew.imag(x), 0.0)


_UNSIGNED = {1: uint8, 2: uint16, 4: uint32, 8: uint64}  # by their bytes


@public(out=True, widen=False)
def bitwise_count(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """Count the 1 bits of each integer; for a negative one, of its absolute value.

    Shapes: any; the result has the same.
    Dtypes: integers and bool; gives uint8.
    Raises: DTypeError.

    >>> import dovetail as dt
    >>> dt.bitwise_count(dt.asarray([0, 7, -8])).tolist()
    [0, 3, 1]
    """
    kind = required("bitwise_count", x).dtype.kind
    if kind not in "biu":
        raise DTypeError(
            f"bitwise_count: expected integers or bool, got {x.dtype.name}; "
            "cast with x.astype(dtype)"
        )
    if kind == "b":
        return cast(x, uint8)
    d = _UNSIGNED[x.dtype.itemsize]
    bits = 8 * d.itemsize
    pairs, fours, eights, unit = (int(s * d.itemsize, 16) for s in ("55", "33", "0f", "01"))
    v = cast(ew.abs(x) if kind == "i" else x, d)  # also correct for the least integer, which wraps
    v = v - ((v >> 1) & pairs)
    v = (v & fours) + ((v >> 2) & fours)
    v = (v + (v >> 4)) & eights  # a count in every byte; the product adds them in the highest
    return cast((v * unit) >> (bits - 8), uint8)


# --- angles ---------------------------------------------------------------------------------------


@public(in_place=True, out=True)
def unwrap(
    x: Tensor,
    /,
    discont: float | None = None,
    axis: int = -1,
    *,
    period: float = 2 * math.pi,
    out: Tensor | None = None,
) -> Tensor:
    """Return the numbers along `axis` with whole periods added, so that no step is large.

    - `discont`: steps below it stay; None is half a period, the least value.
    - `period`: steps are taken modulo it.

    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: floats; integers become float32, unless `period` is an int: then they stay integers.
    Gradient: 1 for each element.
    Order: the periods are added up along the axis, one after the other.
    Raises: AxisError, DTypeError, ArgumentTypeError; ArgumentError unless the period is positive.

    >>> import dovetail as dt
    >>> dt.unwrap(dt.asarray([0, 1, 2, -1, 0]), period=4).tolist()
    [0, 1, 2, 3, 4]
    """
    d = lay.axis("unwrap", axis, strided("unwrap", x).ndim)
    period = number("unwrap", period, "period")
    if not 0 < period < math.inf:
        raise ArgumentError(f"unwrap: period must be positive and finite, got {shown(period)}")
    if x.dtype.kind not in ("iuf" if isinstance(period, float) else "if"):
        raise DTypeError(
            f"unwrap: expected real numbers, got {x.dtype.name}; cast with x.astype(dtype)"
        )
    x = x if x.dtype.kind == "f" or isinstance(period, int) else cast(x, float32)
    n = x.shape[d]
    offsets = cumulative_sum(drop_tape(_periods(x, d, period, discont)), axis=d, dtype=x.dtype)
    first, later = slice_along(x, d, 0, min(1, n)), slice_along(x, d, min(1, n), max(n - 1, 0))
    return concat([first, later + offsets], axis=d)


def _periods(x: Tensor, d: int, period: float, discont: float | None) -> Tensor:
    """Return the multiple of the period to add to each step, so that the step is smallest."""
    discont_min = period / 2 if discont is None else real("unwrap", discont, "discont")
    steps, whole = diff(x, axis=d), x.dtype.kind == "i"
    half = period // 2 if whole else period / 2
    nearest = ew.remainder(steps + half, period) - half
    if not whole or period % 2 == 0:  # a step of half a period up stays one up
        nearest = ew.where(
            ew.logical_and(ew.equal(nearest, -half), ew.greater(steps, 0)), half, nearest
        )
    if whole:
        discont_min = x.dtype.max if discont_min > x.dtype.max else math.ceil(discont_min)
    return ew.where(ew.less(ew.abs(steps), discont_min), 0, nearest - steps)


# --- two tensors ----------------------------------------------------------------------------------


@public(widen=False)
def array_equiv(x1: Array, x2: Array, /) -> bool:
    """Return True if two tensors are equal after broadcasting.

    The call computes and reads the values. In a captured function it returns a bool tensor. NaN
    equals nothing; dtypes may differ.
    Shapes: any; tensors that do not broadcast are not equivalent.
    Dtypes: all.
    Raises: DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.array_equiv(dt.asarray([[1, 2], [1, 2]]), [1, 2])
    True
    """
    a, b = as_tensors("array_equiv", x1, x2)
    try:
        broadcast_shapes(a.shape, b.shape)
    except ShapeError:
        return False
    return ew.read_truth(all_of(ew.equal(a, b)))
