"""Decomposition of numbers: mantissas, fractions, quotients with remainders; NaN replacement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...argument_checks import real
from ...dtypes import float32
from ...errors import DTypeError
from ...ops import table as ops
from ...tensor.primitives import apply
from ...tensor.promotion import Operand
from ...tensor.tensor import Tensor, required
from ..datatypes import cast, finfo
from ..variants import public

__all__ = ["divmod", "frexp", "modf", "nan_to_num"]


@public(method=True, in_place=True, out=True, widen=False)
def nan_to_num(
    x: Tensor,
    /,
    nan: float = 0.0,
    *,
    posinf: float | None = None,
    neginf: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return `x` with numbers in place of NaN and infinities.

    - `nan`: the number that replaces NaN.
    - `posinf`, `neginf`: the numbers that replace infinities; None takes the largest and the least
      finite number of the dtype.

    Shapes: any; the result has the same.
    Dtypes: all; the result has the same. Integers and bool stay as they are; complex numbers are
    replaced part by part.
    Gradient: 0 for replaced elements.
    Raises: DTypeError, ArgumentTypeError for a replacement that is not a number.
    See also: `isnan`, `isfinite`, `where`.

    >>> import dovetail as dt
    >>> x = dt.asarray([dt.nan, dt.inf, 1.0])
    >>> dt.nan_to_num(x, posinf=9.0).tolist()
    [0.0, 9.0, 1.0]
    """
    nan = real("nan_to_num", nan, "nan")
    if required("nan_to_num", x).dtype.kind == "c":
        real_and_imag = [apply(part, (x,)) for part in (ops.REAL, ops.IMAG)]
        re, im = (nan_to_num(p, nan, posinf=posinf, neginf=neginf) for p in real_and_imag)
        return re + im * 1j
    if x.dtype.kind != "f":
        return apply(ops.COPY, (x,))
    limits = finfo(x.dtype)
    top = limits.max if posinf is None else real("nan_to_num", posinf, "posinf")
    bottom = limits.min if neginf is None else real("nan_to_num", neginf, "neginf")
    replaced = apply(ops.WHERE, (apply(ops.EQUAL, (x, math.inf)), top, x))
    replaced = apply(ops.WHERE, (apply(ops.EQUAL, (x, -math.inf)), bottom, replaced))
    return apply(ops.WHERE, (apply(ops.ISNAN, (x,)), nan, replaced))


@public(out=True, widen=False)
def divmod(
    x1: Operand, x2: Operand, /, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the quotients rounded down and the remainders: (floor_divide, remainder).

    Shapes: broadcast; a Python number has none.
    Dtypes: integers and floats; the result has the promoted one.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflowError, naming the operands.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.divmod(dt.asarray([7, -7]), 2)]
    [[3, -4], [1, 1]]
    """
    return apply(ops.FLOOR_DIVIDE, (x1, x2)), apply(ops.REMAINDER, (x1, x2))


@public(out=True, widen=False)
def modf(x: Tensor, /, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Return the fractions and the integer parts, both with the sign of x: (fractions, integers).

    An infinity gives 0 and itself.
    Shapes: any; the results have the same.
    Dtypes: floats; integers and bool become float32.
    Gradient: 1 for the fractions, 0 for the integers.
    Raises: DTypeError.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.modf(dt.asarray([1.5, -0.25]))]
    [[0.5, -0.25], [1.0, -0.0]]
    """
    x = _as_floats("modf", x)
    whole = apply(ops.TRUNC, (x,))
    fraction = apply(ops.WHERE, (apply(ops.ISINF, (x,)), 0.0, x - whole))
    zero = apply(ops.EQUAL, (fraction, 0.0))
    return apply(ops.WHERE, (zero, apply(ops.COPYSIGN, (fraction, x)), fraction)), whole


@public(method=True, out=True, widen=False)
def frexp(x: Tensor, /, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Return mantissas m and exponents e with x = m * 2**e and 1/2 <= |m| < 1: (m, e).

    0, infinities and NaN are their own mantissa, with the exponent 0. `ldexp` is the inverse.
    Shapes: any; the results have the same.
    Dtypes: floats; integers and bool become float32. Exponents are int32.
    Gradient: 2**-e for the mantissas.
    Raises: DTypeError.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.frexp(dt.asarray([3.0, -0.5]))]
    [[0.75, -0.5], [2, 0]]
    """
    x = _as_floats("frexp", x)
    return apply(ops.TABLE["frexp_mantissa"], (x,)), apply(ops.TABLE["frexp_exponent"], (x,))


def _as_floats(op: str, x: Tensor) -> Tensor:
    """Return floats unchanged, integers and bools as float32. Raises: DTypeError for complex."""
    if required(op, x).dtype.kind not in "biuf":
        raise DTypeError(f"{op}: expected real numbers, got {x.dtype.name}")
    return x if x.dtype.kind == "f" else cast(x, float32)
