"""The elementwise functions: one line for each row of the op table, and what is composed of them.

`dt.add(x, y)` returns, `dt.add(x, y, out=z)` writes into `z`; `x.add(y)` and `x.add_(y)` are the
methods.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from .. import layout as lay
from ..arguments import flag, integer, named, real
from ..dtypes import bool_, float32, float64, int64, uint64
from ..errors import DTypeError
from ..ops import table as ops
from ..ops.dtype_rules import common
from ..ops.table import TABLE, Op
from ..tensor.operands import Array, Operand, brought, operands
from ..tensor.tensor import Tensor, required, untaped
from ..tensor.verbs import apply, dispatch
from ..tensor.writes import write_out
from .creation import full
from .datatypes import cast
from .statistics import all as all_
from .statistics import max as max_
from .statistics import sum as sum_

Number = bool | int | float


class Unary(Protocol):
    """A function of one tensor."""

    __name__: str

    def __call__(self, x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
        """The result, elementwise."""


class Binary(Protocol):
    """A function of two tensors, or of a tensor and a Python number."""

    __name__: str

    def __call__(self, x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        """The result, elementwise and broadcast."""


FUNCTIONS: dict[str, Op] = {}  # the public functions that are one row each


def _unary(name: str, says: str, example: str = "") -> Unary:
    op = FUNCTIONS[name] = TABLE[name]

    def function(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
        return apply(op, (x,), None, out)

    described: Unary = _described(function, op, says, "x", example)
    return described


def _binary(name: str, says: str, example: str = "") -> Binary:
    op = FUNCTIONS[name] = TABLE[name]

    def function(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
        return apply(op, (x1, x2), None, out)

    described: Binary = _described(function, op, says, "x1, x2", example)
    return described


_RULES = {
    "floating": "Dtypes: floats; integers and bool become float32.",
    "comparison": "Dtypes: all; gives bool.",
    "predicate": "Dtypes: all; gives bool.",
    "logical": "Dtypes: all, nonzero counting as true; gives bool.",
}


def _described(function: Any, op: Op, says: str, args: str, example: str) -> Any:
    """Names the function and writes its docstring, from its row."""
    function.__name__ = function.__qualname__ = op.name
    function.__code__ = function.__code__.replace(co_name=op.name)  # what tracebacks show
    rule = _RULES.get(
        op.dtypes.__name__, "Dtypes: " + _allowed(op) + "; keeps the (promoted) dtype."
    )
    lines = [says, "", rule]
    if args != "x":
        lines.append("Shapes: broadcast; a Python number takes the other operand's dtype.")
    lines.append("Raises: ShapeError, DTypeError, DeviceError, naming the operands.")
    if example:
        shown, result = example.split(" -> ")
        lines += ["", ">>> import dovetail as dt", f">>> {_on_reference(shown)}.tolist()", result]
    function.__doc__ = "\n".join(lines)
    return function


def _on_reference(text: str) -> str:
    """Examples run on the device that is always there."""
    return "dt." + text.replace("[", "dt.asarray([").replace("]", '], device="reference")')


def _allowed(op: Op) -> str:
    words = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats"}
    found = []
    for kind, sample in (("b", bool_), ("i", int64), ("u", uint64), ("f", float32)):
        try:
            op.dtypes(op.name, [sample] * op.arity, None)
        except DTypeError:
            continue
        found.append(words[kind])
    return ", ".join(found)


# --- arithmetic ----------------------------------------------------------------------------------

add = _binary("add", "x1 + x2; for bool: or.", "add([1, 2], [3, 4]) -> [4, 6]")
subtract = _binary("subtract", "x1 - x2.", "subtract([5, 2], 1) -> [4, 1]")
multiply = _binary("multiply", "x1 * x2; for bool: and.", "multiply([1, 2], [3, 4]) -> [3, 8]")
divide = _binary("divide", "x1 / x2, always a float.", "divide([1, 3], 2) -> [0.5, 1.5]")
floor_divide = _binary(
    "floor_divide",
    "x1 / x2 rounded down; for integers x // 0 is 0.",
    "floor_divide([7, -7], 2) -> [3, -4]",
)
remainder = _binary(
    "remainder",
    "What x1 leaves when divided by x2, with the sign of x2, exact; for integers x % 0 is 0.",
    "remainder([7, -7], 3) -> [1, 2]",
)
maximum = _binary("maximum", "The larger; NaN wins.", "maximum([1, 5], [3, 4]) -> [3, 5]")
minimum = _binary("minimum", "The smaller; NaN wins.", "minimum([1, 5], [3, 4]) -> [1, 4]")
atan2 = _binary("atan2", "The angle of the point (x2, x1), in -pi..pi.")
hypot = _binary("hypot", "sqrt(x1**2 + x2**2), without overflow.", "hypot([3.0], [4.0]) -> [5.0]")
copysign = _binary(
    "copysign", "|x1| with the sign of x2.", "copysign([1.0, 2.0], [-1.0, 1.0]) -> [-1.0, 2.0]"
)
nextafter = _binary("nextafter", "The next number of their dtype after x1 in the direction of x2.")
logaddexp = _binary("logaddexp", "log(exp(x1) + exp(x2)), without overflow.")
_pow = _binary("pow", "x1 to the power x2; a negative power of an integer is truncated.")


def pow(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """x1 to the power x2. The power 2 is a multiplication.

    >>> import dovetail as dt
    >>> dt.pow(dt.asarray([2, 3], device="reference"), 2).tolist()
    [4, 9]
    """
    if type(x2) is int and x2 == 2 and isinstance(x1, Tensor) and x1.dtype is not bool_:
        return apply(ops.SQUARE, (x1,), None, out)
    return _pow(x1, x2, out=out)


abs = _unary("abs", "The absolute value.", "abs([-1, 2]) -> [1, 2]")
negative = _unary("negative", "-x.", "negative([1, -2]) -> [-1, 2]")
positive = _unary("positive", "x, as a new tensor.", "positive([1, -2]) -> [1, -2]")
sign = _unary("sign", "-1, 0 or 1; NaN stays.", "sign([-3, 0, 5]) -> [-1, 0, 1]")
square = _unary("square", "x * x.", "square([2, 3]) -> [4, 9]")
reciprocal = _unary("reciprocal", "1 / x.", "reciprocal([2.0, 4.0]) -> [0.5, 0.25]")
sqrt = _unary("sqrt", "The square root, rounded correctly.", "sqrt([4.0, 9.0]) -> [2.0, 3.0]")
rsqrt = _unary("rsqrt", "1 / sqrt(x).", "rsqrt([4.0]) -> [0.5]")
cbrt = _unary("cbrt", "The cube root.", "cbrt([8.0, -27.0]) -> [2.0, -3.0]")
ceil = _unary("ceil", "The least integer that is not less.", "ceil([1.2, -1.2]) -> [2.0, -1.0]")
floor = _unary(
    "floor", "The largest integer that is not more.", "floor([1.2, -1.2]) -> [1.0, -2.0]"
)
trunc = _unary("trunc", "x without its fraction.", "trunc([1.7, -1.7]) -> [1.0, -1.0]")
_round = _unary("round", "The nearest integer, halves to the even one.")

# --- comparison and logic ------------------------------------------------------------------------

equal = _binary("equal", "x1 == x2.", "equal([1, 2], [1, 3]) -> [True, False]")
not_equal = _binary("not_equal", "x1 != x2.", "not_equal([1, 2], [1, 3]) -> [False, True]")
less = _binary("less", "x1 < x2.", "less([1, 2], 2) -> [True, False]")
less_equal = _binary("less_equal", "x1 <= x2.", "less_equal([1, 3], 2) -> [True, False]")
greater = _binary("greater", "x1 > x2.", "greater([1, 3], 2) -> [False, True]")
greater_equal = _binary("greater_equal", "x1 >= x2.", "greater_equal([1, 2], 2) -> [False, True]")
logical_and = _binary(
    "logical_and", "Whether both.", "logical_and([1, 0], [2, 3]) -> [True, False]"
)
logical_or = _binary(
    "logical_or", "Whether one or both.", "logical_or([1, 0], [0, 0]) -> [True, False]"
)
logical_xor = _binary(
    "logical_xor", "Whether one only.", "logical_xor([1, 0], [2, 3]) -> [False, True]"
)
logical_not = _unary("logical_not", "Whether zero.", "logical_not([0, 2]) -> [True, False]")
bitwise_and = _binary("bitwise_and", "The bits in both.", "bitwise_and([6], [3]) -> [2]")
bitwise_or = _binary("bitwise_or", "The bits in either.", "bitwise_or([6], [3]) -> [7]")
bitwise_xor = _binary("bitwise_xor", "The bits in one only.", "bitwise_xor([6], [3]) -> [5]")
bitwise_left_shift = _binary(
    "bitwise_left_shift",
    "x1 * 2**x2, wrapping; an amount out of range shifts everything out.",
    "bitwise_left_shift([3], [2]) -> [12]",
)
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    "x1 / 2**x2 rounded down; an amount out of range shifts everything out.",
    "bitwise_right_shift([12], [2]) -> [3]",
)
bitwise_invert = _unary("bitwise_invert", "All bits flipped.", "bitwise_invert([0, 5]) -> [-1, -6]")
isnan = _unary("isnan", "Whether NaN.", "isnan([1.0]) -> [False]")
isinf = _unary("isinf", "Whether infinite.", "isinf([1.0]) -> [False]")
isfinite = _unary("isfinite", "Whether neither infinite nor NaN.", "isfinite([1.0]) -> [True]")
signbit = _unary(
    "signbit", "Whether the sign bit is set: -0.0 has it.", "signbit([-0.0]) -> [True]"
)

# --- elementary functions: within 1 ulp, and the same bits on every device -----------------------

exp = _unary("exp", "e to the power x.", "exp([0.0]) -> [1.0]")
exp2 = _unary("exp2", "2 to the power x.", "exp2([3.0]) -> [8.0]")
expm1 = _unary("expm1", "exp(x) - 1, accurate near 0.", "expm1([0.0]) -> [0.0]")
log = _unary("log", "The natural logarithm.", "log([1.0]) -> [0.0]")
log2 = _unary("log2", "The logarithm to base 2.", "log2([8.0]) -> [3.0]")
log10 = _unary("log10", "The logarithm to base 10.", "log10([1.0]) -> [0.0]")
log1p = _unary("log1p", "log(1 + x), accurate near 0.", "log1p([0.0]) -> [0.0]")
sin = _unary("sin", "The sine of an angle in radians.", "sin([0.0]) -> [0.0]")
cos = _unary("cos", "The cosine of an angle in radians.", "cos([0.0]) -> [1.0]")
tan = _unary("tan", "The tangent of an angle in radians.", "tan([0.0]) -> [0.0]")
asin = _unary("asin", "The inverse sine, in -pi/2..pi/2.", "asin([0.0]) -> [0.0]")
acos = _unary("acos", "The inverse cosine, in 0..pi.", "acos([1.0]) -> [0.0]")
atan = _unary("atan", "The inverse tangent, in -pi/2..pi/2.", "atan([0.0]) -> [0.0]")
sinh = _unary("sinh", "The hyperbolic sine.", "sinh([0.0]) -> [0.0]")
cosh = _unary("cosh", "The hyperbolic cosine.", "cosh([0.0]) -> [1.0]")
tanh = _unary("tanh", "The hyperbolic tangent.", "tanh([0.0]) -> [0.0]")
asinh = _unary("asinh", "The inverse hyperbolic sine.", "asinh([0.0]) -> [0.0]")
acosh = _unary("acosh", "The inverse hyperbolic cosine.", "acosh([1.0]) -> [0.0]")
atanh = _unary("atanh", "The inverse hyperbolic tangent.", "atanh([0.0]) -> [0.0]")
erf = _unary("erf", "The error function.", "erf([0.0]) -> [0.0]")
erfc = _unary("erfc", "1 - erf(x), accurate where that is small.", "erfc([0.0]) -> [1.0]")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).", "sigmoid([0.0]) -> [0.5]")

# --- composed ------------------------------------------------------------------------------------


def round(x: Tensor, /, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer (or multiple of 10**-decimals), halves to the even one.

    >>> import dovetail as dt
    >>> dt.round(dt.asarray([0.5, 1.5, 2.6], device="reference")).tolist()
    [0.0, 2.0, 3.0]
    """
    decimals = integer("round", decimals, "decimals", -308, 308)
    if decimals == 0 or required("round", x).dtype.kind != "f":
        return _round(x, out=out)
    scale = 10.0 ** math.fabs(decimals)
    found = _round(x * scale) / scale if decimals > 0 else _round(x / scale) * scale
    return found if out is None else write_out("round", out, found)


def where(condition: Array, x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """x1 where the condition holds, x2 elsewhere; all three are broadcast.

    Raises: DTypeError unless the condition is bool; ShapeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([-1, 2], device="reference")
    >>> dt.where(x < 0, 0, x).tolist()
    [0, 2]
    """
    return apply(ops.WHERE, (condition, x1, x2), None, out)


@named
def clip(
    x: Tensor,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """x, but not below `min` and not above `max`; None is no bound. Where min > max: max.

    >>> import dovetail as dt
    >>> dt.clip(dt.asarray([-1, 2, 9], device="reference"), 0, 5).tolist()
    [0, 2, 5]
    """
    required("clip", x)
    low, high = _bound(x, min), _bound(x, max)
    if low is not None and high is not None:
        return apply(ops.CLIP, (x, low, high), None, out)
    if low is not None:
        return apply(ops.MAXIMUM, (x, low), None, out)
    if high is not None:
        return apply(ops.MINIMUM, (x, high), None, out)
    return apply(ops.COPY, (x,), None, out)


def _bound(x: Tensor, b: Operand | None) -> Operand | None:
    """A Python number that lies outside of an integer dtype bounds nothing, or everything: its
    nearest value.
    """
    if isinstance(b, int) and not isinstance(b, bool) and x.dtype.is_integer:
        return x.dtype.min if b < x.dtype.min else x.dtype.max if b > x.dtype.max else b
    return b


def relu(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """max(x, 0)."""
    return apply(ops.RELU, (x,), None, out)


@named
def softmax(x: Tensor, /, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum along an axis, without overflow; one kernel."""
    if type(required("softmax", x)) is not Tensor:
        return dispatch("softmax", "softmax", (x,), x, lay.axis("softmax", axis, x.ndim))
    axis = lay.axis("softmax", axis, x.ndim)
    e = exp(x - _shift(x, axis))
    return e / sum_(e, axis=axis, keepdims=True)


@named
def log_softmax(x: Tensor, /, axis: int = -1) -> Tensor:
    """The logarithm of softmax, accurate where that underflows; one kernel."""
    if type(required("log_softmax", x)) is not Tensor:
        along = lay.axis("log_softmax", axis, x.ndim)
        return dispatch("log_softmax", "log_softmax", (x,), x, along)
    axis = lay.axis("log_softmax", axis, x.ndim)
    d = x - _shift(x, axis)
    return d - log(sum_(exp(d), axis=axis, keepdims=True))


def _shift(x: Tensor, axis: int) -> Tensor:
    """What keeps exp from overflowing. No result depends on it, so it has no gradient."""
    return untaped(max_(x, axis=axis, keepdims=True)) if x.size else x


@named
def isclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Whether |x1 - x2| <= atol + rtol * |x2|, or both are the same infinity (or, if asked for,
    both NaN).
    """
    a, b = _floats(x1, x2)
    rtol, atol = real("isclose", rtol, "rtol"), real("isclose", atol, "atol")
    near = less_equal(abs(subtract(a, b)), add(multiply(abs(b), rtol), atol))
    close = logical_or(logical_and(near, isfinite(b)), equal(a, b))
    if flag("isclose", equal_nan, "equal_nan"):
        return logical_or(close, logical_and(isnan(a), isnan(b)))
    return close


def _floats(x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of floats; integers as float64."""
    given = operands("isclose", x1, x2)
    device = next(x.device for x in given if isinstance(x, Tensor))
    found = common("isclose", [x.dtype for x in given if isinstance(x, Tensor)])
    found = found if found.kind == "f" else float64
    a, b = (
        x if isinstance(x, Tensor) else full((), real("isclose", x, "x"), device=device)
        for x in given
    )
    return cast(a, found), cast(b, found)


@named
def allclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are close; see `isclose`. Looks at the values."""
    return bool(all_(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)))


@named
def array_equal(x1: Array, x2: Array, /) -> bool:
    """Whether two tensors have one shape and equal elements. Looks at the values."""
    x1, x2 = brought("array_equal", x1, x2)
    return x1.shape == x2.shape and bool(all_(equal(x1, x2)))
