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
from ..ops.table import TABLE, Op, common
from ..tensor.tensor import (
    Array,
    Operand,
    Tensor,
    apply,
    brought,
    dispatch,
    operands,
    required,
    untaped,
    write_out,
)
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
    "_floating": "Dtypes: floats; integers and bool become float32.",
    "_comparison": "Dtypes: all, promoted for the comparison; gives bool.",
    "_predicate": "Dtypes: all; gives bool.",
    "_logical": "Dtypes: all, nonzero (NaN too) counting as true; gives bool.",
}
_SHAPES = {
    "x": "Shapes: any; the result has the same.",
    "x1, x2": "Shapes: broadcast; a Python number has none, and takes the other operand's dtype.",
}
_ITS = {"x": "the same", "x1, x2": "the promoted one"}
_RAISES = {
    "x": "Raises: DTypeError.",
    "x1, x2": "Raises: ShapeError, DTypeError, DeviceError, ValueOverflow, naming the operands.",
}
# The largest error found, in ulp, in float32 and float64, rounded up: docs/accuracy.md has it.
ULP = {
    "exp": (0.91, 0.84), "exp2": (0.90, 0.72), "expm1": (0.89, 0.97), "log": (0.89, 0.71),
    "log2": (0.93, 0.71), "log10": (0.91, 0.63), "log1p": (0.95, 0.75), "sin": (0.89, 0.79),
    "cos": (0.89, 0.79), "tan": (0.94, 0.72), "asin": (0.92, 1.03), "acos": (0.89, 0.96),
    "atan": (0.69, 0.58), "sinh": (0.76, 0.66), "cosh": (0.70, 0.62), "tanh": (0.95, 0.64),
    "asinh": (0.95, 0.78), "acosh": (0.91, 0.71), "atanh": (0.96, 0.82), "cbrt": (0.50, 0.50),
    "erf": (0.73, 0.74), "erfc": (1.02, 1.33), "sigmoid": (1.18, 0.85), "rsqrt": (0.50, 0.50),
    "atan2": (0.56, 0.58), "hypot": (0.50, 0.50), "pow": (0.71, 0.57), "logaddexp": (0.53, 0.51),
}  # fmt: skip
_NOT_C99 = ("sigmoid", "rsqrt", "logaddexp")
_ROUNDED = ("add", "subtract", "multiply", "divide", "square", "reciprocal", "sqrt")


def _described(function: Any, op: Op, says: str, args: str, example: str) -> Any:
    """Names the function and writes its docstring: `says`, and what follows from its row.

    The first line of `says` is the docstring's; lines with a label go where it belongs.
    """
    function.__name__ = function.__qualname__ = op.name
    function.__code__ = function.__code__.replace(co_name=op.name)  # what tracebacks show
    first, *more = says.split("\n")
    labels = ("Dtypes:", "Gradient:")
    labelled = {label: line for line in more for label in labels if line.startswith(label)}
    rule = _RULES.get(op.dtypes.__name__, f"Dtypes: {_allowed(op)}; the result has {_ITS[args]}.")
    lines = [first, "", *(line for line in more if line not in labelled.values())]
    lines += [_SHAPES[args], labelled.get("Dtypes:", rule), *_accuracy(op.name)]
    lines += [labelled["Gradient:"]] if "Gradient:" in labelled else []
    lines.append(_RAISES[args])
    if example:
        shown, result = example.split(" -> ")
        lines += ["", ">>> import dovetail as dt", f">>> {_on_reference(shown)}.tolist()", result]
    function.__doc__ = "\n".join(lines)
    return function


def _accuracy(name: str) -> list[str]:
    """What is known of the error of floats."""
    if name in _ROUNDED:
        return ["Accuracy: floats are correctly rounded (IEEE 754)."]
    if name not in ULP:
        return []
    single, double = ULP[name]
    bound = f"within {single:.2f} ulp in float32, {double:.2f} in float64, as measured"
    found = [f"Accuracy: {bound} (docs/accuracy.md)."]
    return found if name in _NOT_C99 else [*found, "Special values: as in C99, annex F."]


def _on_reference(text: str) -> str:
    """Examples run on the device that is always there."""
    return "dt." + text.replace("[", "dt.asarray([", 1).replace("]", '], device="reference")', 1)


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

add = _binary("add", "The sum x1 + x2; for bool: or.", "add([1, 2], [3, 4]) -> [4, 6]")
subtract = _binary("subtract", "The difference x1 - x2.", "subtract([5, 2], 1) -> [4, 1]")
multiply = _binary(
    "multiply", "The product x1 * x2; for bool: and.", "multiply([1, 2], [3, 4]) -> [3, 8]"
)
divide = _binary(
    "divide",
    "The quotient x1 / x2, always a float.\nA number over 0 is infinite, 0 over 0 NaN.",
    "divide([1, 3], 2) -> [0.5, 1.5]",
)
floor_divide = _binary(
    "floor_divide",
    "The quotient x1 / x2 of exact arithmetic, rounded down.\n"
    "For integers x // 0 is 0, and MIN // -1 wraps to MIN.\n"
    "Gradient: 0 everywhere.",
    "floor_divide([7, -7], 2) -> [3, -4]",
)
remainder = _binary(
    "remainder",
    "What x1 leaves when divided by x2, with the sign of x2.\n"
    "Of floats it is that of exact arithmetic, rounded once.\n"
    "x % 0 is 0 for integers, NaN for floats.\n"
    "Gradient: 1 for x1, -floor(x1 / x2) for x2.",
    "remainder([7, -7], 3) -> [1, 2]",
)
maximum = _binary(
    "maximum",
    "The larger of two elements; NaN wins.\n"
    "Gradient: half to each where equal, all to the tensor beside a number, all to both of NaN.",
    "maximum([1, 5], [3, 4]) -> [3, 5]",
)
minimum = _binary(
    "minimum",
    "The smaller of two elements; NaN wins.\n"
    "Gradient: half to each where equal, all to the tensor beside a number, all to both of NaN.",
    "minimum([1, 5], [3, 4]) -> [1, 4]",
)
atan2 = _binary(
    "atan2",
    "The angle in radians of the point (x2, x1), in -pi..pi.\nGradient: 0 at (0, 0).",
    "atan2([1.0, 0.0], [0.0, -1.0]) -> [1.5707963705062866, 3.1415927410125732]",
)
hypot = _binary(
    "hypot",
    "The length sqrt(x1**2 + x2**2), without overflow.\n"
    "Beside an infinite operand it is inf, also of NaN.\n"
    "Gradient: NaN at (0, 0).",
    "hypot([3.0], [4.0]) -> [5.0]",
)
copysign = _binary(
    "copysign",
    "|x1| with the sign of x2.\nThe signs of -0.0 and of NaN count.\nGradient: 0 where x1 is 0.",
    "copysign([1.0, 2.0], [-1.0, 1.0]) -> [-1.0, 2.0]",
)
nextafter = _binary(
    "nextafter",
    "The next number of their dtype after x1 in the direction of x2.\nGradient: none flows.",
    "nextafter([1.0], [2.0]) -> [1.0000001192092896]",
)
logaddexp = _binary(
    "logaddexp",
    "log(exp(x1) + exp(x2)), without overflow.\n"
    "Where the two terms cancel, the error is below 1 ulp of the larger operand.",
    "logaddexp([1000.0], [1000.0]) -> [1000.6931762695312]",
)
_pow = _binary("pow", "x1 to the power x2; a negative power of an integer is truncated.")


def pow(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """x1 to the power x2.

    A negative power of an integer is truncated: 2 ** -1 is 0. The power 2 is a multiplication.
    Shapes: broadcast; a Python number has none.
    Dtypes: integers and floats; the promoted dtype, of a number the other operand's.
    Accuracy: within 0.71 ulp in float32, 0.57 in float64, as measured (docs/accuracy.md).
    Special values: x ** 0 and 1 ** y are 1, also of NaN; a power of a negative number that is no
    integer is NaN (C99, annex F).
    Gradient: 0 for x1 where x2 is 0; 0 for x2 where x1 is 0 and x2 not negative.
    Raises: ShapeError, DTypeError, DeviceError, ValueOverflow, naming the operands.

    >>> import dovetail as dt
    >>> dt.pow(dt.asarray([2, 3], device="reference"), 2).tolist()
    [4, 9]
    """
    if type(x2) is int and x2 == 2 and isinstance(x1, Tensor) and x1.dtype is not bool_:
        return apply(ops.SQUARE, (x1,), None, out)
    return _pow(x1, x2, out=out)


abs = _unary(
    "abs",
    "The absolute value.\n"
    "Of the least integer of a signed dtype it wraps to itself.\n"
    "Gradient: 0 at 0.",
    "abs([-1, 2]) -> [1, 2]",
)
negative = _unary("negative", "The negative -x; integers wrap.", "negative([1, -2]) -> [-1, 2]")
positive = _unary("positive", "x itself, as a new tensor.", "positive([1, -2]) -> [1, -2]")
sign = _unary(
    "sign",
    "The sign of x: -1, 0 or 1; NaN stays.\nGradient: 0 everywhere.",
    "sign([-3, 0, 5]) -> [-1, 0, 1]",
)
square = _unary("square", "The square x * x; integers wrap.", "square([2, 3]) -> [4, 9]")
reciprocal = _unary(
    "reciprocal",
    "The reciprocal 1 / x, always a float; of 0 it is infinite.",
    "reciprocal([2.0, 4.0]) -> [0.5, 0.25]",
)
sqrt = _unary(
    "sqrt",
    "The square root; NaN below 0.\nGradient: infinite at 0.",
    "sqrt([4.0, 9.0]) -> [2.0, 3.0]",
)
rsqrt = _unary(
    "rsqrt",
    "The reciprocal 1 / sqrt(x) of the square root; NaN below 0.",
    "rsqrt([4.0, 2.0]) -> [0.5, 0.7071067690849304]",
)
cbrt = _unary(
    "cbrt", "The cube root, also of negative numbers.", "cbrt([8.0, -27.0]) -> [2.0, -3.0]"
)
ceil = _unary(
    "ceil",
    "The least integer that is not less than x.\n"
    "Integers stay as they are.\n"
    "Gradient: 0 everywhere.",
    "ceil([1.2, -1.2]) -> [2.0, -1.0]",
)
floor = _unary(
    "floor",
    "The largest integer that is not more than x.\n"
    "Integers stay as they are.\n"
    "Gradient: 0 everywhere.",
    "floor([1.2, -1.2]) -> [1.0, -2.0]",
)
trunc = _unary(
    "trunc",
    "The integer part of x, without its fraction.\n"
    "Integers stay as they are.\n"
    "Gradient: 0 everywhere.",
    "trunc([1.7, -1.7]) -> [1.0, -1.0]",
)
_round = _unary("round", "The nearest integer, halves to the even one.")

# --- comparison and logic ------------------------------------------------------------------------

equal = _binary(
    "equal",
    "Whether x1 and x2 are equal.\nNaN equals nothing; -0.0 equals 0.",
    "equal([1, 2], [1, 3]) -> [True, False]",
)
not_equal = _binary(
    "not_equal",
    "Whether x1 and x2 differ.\nNaN differs from everything; -0.0 equals 0.",
    "not_equal([1, 2], [1, 3]) -> [False, True]",
)
less = _binary(
    "less", "Whether x1 < x2; False where one is NaN.", "less([1, 2], 2) -> [True, False]"
)
less_equal = _binary(
    "less_equal",
    "Whether x1 <= x2; False where one is NaN.",
    "less_equal([1, 3], 2) -> [True, False]",
)
greater = _binary(
    "greater", "Whether x1 > x2; False where one is NaN.", "greater([1, 3], 2) -> [False, True]"
)
greater_equal = _binary(
    "greater_equal",
    "Whether x1 >= x2; False where one is NaN.",
    "greater_equal([1, 2], 2) -> [False, True]",
)
logical_and = _binary(
    "logical_and", "Whether both are true.", "logical_and([1, 0], [2, 3]) -> [True, False]"
)
logical_or = _binary(
    "logical_or", "Whether one or both are true.", "logical_or([1, 0], [0, 0]) -> [True, False]"
)
logical_xor = _binary(
    "logical_xor", "Whether one only is true.", "logical_xor([1, 0], [2, 3]) -> [False, True]"
)
logical_not = _unary(
    "logical_not", "Whether x is zero, or False.", "logical_not([0, 2]) -> [True, False]"
)
bitwise_and = _binary(
    "bitwise_and", "The bits that are set in both.", "bitwise_and([6], [3]) -> [2]"
)
bitwise_or = _binary(
    "bitwise_or", "The bits that are set in one or both.", "bitwise_or([6], [3]) -> [7]"
)
bitwise_xor = _binary(
    "bitwise_xor", "The bits that are set in one only.", "bitwise_xor([6], [3]) -> [5]"
)
bitwise_left_shift = _binary(
    "bitwise_left_shift",
    "x1 * 2**x2, wrapping.\nAn amount below 0, or of all bits or more, shifts everything out.",
    "bitwise_left_shift([3], [2]) -> [12]",
)
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    "x1 / 2**x2 rounded down.\n"
    "An amount below 0, or of all bits or more, shifts everything out: 0, or -1 below 0.",
    "bitwise_right_shift([12], [2]) -> [3]",
)
bitwise_invert = _unary(
    "bitwise_invert", "All bits flipped; for bool: not.", "bitwise_invert([0, 5]) -> [-1, -6]"
)
isnan = _unary("isnan", "Whether x is NaN.", "isnan([1.0]) -> [False]")
isinf = _unary("isinf", "Whether x is inf or -inf.", "isinf([1.0]) -> [False]")
isfinite = _unary("isfinite", "Whether x is neither infinite nor NaN.", "isfinite([1.0]) -> [True]")
signbit = _unary(
    "signbit",
    "Whether the sign bit is set: -0.0 has it.\nDtypes: floats; gives bool.",
    "signbit([1.0, -0.0]) -> [False, True]",
)

# --- elementary functions: within 1 ulp, and the same bits on every device -----------------------

exp = _unary("exp", "e to the power x.", "exp([0.0, 1.0]) -> [1.0, 2.7182817459106445]")
exp2 = _unary("exp2", "2 to the power x.", "exp2([3.0, 0.5]) -> [8.0, 1.4142135381698608]")
expm1 = _unary(
    "expm1", "exp(x) - 1, accurate near 0.", "expm1([0.0, 1.0]) -> [0.0, 1.718281865119934]"
)
log = _unary(
    "log",
    "The natural logarithm; -inf at 0, NaN below.",
    "log([1.0, 2.0]) -> [0.0, 0.6931471824645996]",
)
log2 = _unary(
    "log2",
    "The logarithm to base 2; -inf at 0, NaN below.",
    "log2([8.0, 3.0]) -> [3.0, 1.5849624872207642]",
)
log10 = _unary(
    "log10",
    "The logarithm to base 10; -inf at 0, NaN below.",
    "log10([1000.0, 2.0]) -> [3.0, 0.3010300099849701]",
)
log1p = _unary(
    "log1p",
    "log(1 + x), accurate near 0; -inf at -1, NaN below.",
    "log1p([0.0, 1.0]) -> [0.0, 0.6931471824645996]",
)
sin = _unary(
    "sin",
    "The sine of an angle in radians; NaN of infinity.",
    "sin([0.0, 1.0]) -> [0.0, 0.8414709568023682]",
)
cos = _unary(
    "cos",
    "The cosine of an angle in radians; NaN of infinity.",
    "cos([0.0, 1.0]) -> [1.0, 0.5403023362159729]",
)
tan = _unary(
    "tan",
    "The tangent of an angle in radians; NaN of infinity.",
    "tan([0.0, 1.0]) -> [0.0, 1.5574077367782593]",
)
asin = _unary(
    "asin",
    "The inverse sine in radians, in -pi/2..pi/2; NaN outside of -1..1.",
    "asin([0.0, 1.0]) -> [0.0, 1.5707963705062866]",
)
acos = _unary(
    "acos",
    "The inverse cosine in radians, in 0..pi; NaN outside of -1..1.",
    "acos([1.0, 0.0]) -> [0.0, 1.5707963705062866]",
)
atan = _unary(
    "atan",
    "The inverse tangent in radians, in -pi/2..pi/2.",
    "atan([0.0, 1.0]) -> [0.0, 0.7853981852531433]",
)
sinh = _unary("sinh", "The hyperbolic sine.", "sinh([0.0, 1.0]) -> [0.0, 1.175201177597046]")
cosh = _unary("cosh", "The hyperbolic cosine.", "cosh([0.0, 1.0]) -> [1.0, 1.5430806875228882]")
tanh = _unary("tanh", "The hyperbolic tangent.", "tanh([0.0, 1.0]) -> [0.0, 0.7615941762924194]")
asinh = _unary(
    "asinh", "The inverse hyperbolic sine.", "asinh([0.0, 1.0]) -> [0.0, 0.8813735842704773]"
)
acosh = _unary(
    "acosh",
    "The inverse hyperbolic cosine; NaN below 1.",
    "acosh([1.0, 2.0]) -> [0.0, 1.316957950592041]",
)
atanh = _unary(
    "atanh",
    "The inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.",
    "atanh([0.0, 0.5]) -> [0.0, 0.5493061542510986]",
)
erf = _unary("erf", "The error function.", "erf([0.0, 1.0]) -> [0.0, 0.8427007794380188]")
erfc = _unary(
    "erfc",
    "1 - erf(x), accurate where that is small.",
    "erfc([0.0, 5.0]) -> [1.0, 1.5374598295869735e-12]",
)
sigmoid = _unary("sigmoid", "The logistic function 1 / (1 + exp(-x)).", "sigmoid([0.0]) -> [0.5]")

# --- composed ------------------------------------------------------------------------------------


def round(x: Tensor, /, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer, or multiple of 10**-decimals; halves go to the even one.

    `decimals`: digits after the point, from -308 to 308. Integers stay as they are.
    Shapes: any; the result has the same.
    Dtypes: integers and floats; the result has the same.
    Gradient: 0 everywhere.
    Raises: DTypeError; ArgumentError for `decimals` out of range.

    >>> import dovetail as dt
    >>> dt.round(dt.asarray([0.5, 1.5, 2.6], device="reference")).tolist()
    [0.0, 2.0, 3.0]
    """
    decimals = integer("round", decimals, "decimals", -308, 308)
    if decimals == 0 or required("round", x).dtype.kind != "f":
        return _round(x, out=out)
    scale = 10.0 ** math.fabs(decimals)
    found = _round(x * scale) / scale if decimals > 0 else _round(x / scale) * scale
    return found if out is None else write_out("round", out, found._expr)


def where(condition: Array, x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor:
    """x1 where the condition holds, x2 elsewhere.

    Shapes: `condition`, x1 and x2 are broadcast; Python numbers have none.
    Dtypes: `condition` is bool, x1 and x2 are anything; the result has their promoted dtype.
    Gradient: flows to the chosen operand only; an infinite slope of the other one does no harm.
    Raises: DTypeError unless the condition is bool; ShapeError, DeviceError, ValueOverflow.

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
    """x, but not below `min` and not above `max`.

    Each bound is a tensor, a number, or None for no bound. Where min > max: max. NaN in x stays,
    and a bound that is NaN gives NaN.
    Shapes: x and the bounds are broadcast.
    Dtypes: all, promoted; a number that an integer dtype cannot hold bounds nothing or everything.
    Gradient: at a bound it passes to x; where min > max, to `max`.
    Raises: ShapeError, DTypeError, DeviceError.

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
    """The bound as an integer dtype has it: its nearest value, for a number that lies outside."""
    if isinstance(b, int) and not isinstance(b, bool) and x.dtype.is_integer:
        return x.dtype.min if b < x.dtype.min else x.dtype.max if b > x.dtype.max else b
    return b


def relu(x: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """max(x, 0), elementwise; NaN stays.

    Shapes: any; the result has the same.
    Dtypes: integers and floats; the result has the same.
    Gradient: 0 at 0.
    Raises: DTypeError.

    >>> import dovetail as dt
    >>> dt.relu(dt.asarray([-1.5, 0.0, 2.0], device="reference")).tolist()
    [0.0, 0.0, 2.0]
    """
    return apply(ops.RELU, (x,), None, out)


@named
def softmax(x: Tensor, /, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum along `axis`, without overflow; one kernel.

    The largest element is taken off first, so exp cannot overflow. An element of -inf gives 0;
    where all are -inf, or one is inf or NaN, all results along that axis are NaN. No elements: none
    come.
    Shapes: any of at least 1 dimension; the result has the same. `axis` is one integer.
    Dtypes: integers (giving float32) and floats, not bool; in float16 and bfloat16 each step is
    rounded.
    Order: the sum runs in the canonical order (docs/numerics.md): the same bits on every device.
    Gradient: y * (g - sum(g * y)), as differentiation of the steps gives it.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.softmax(dt.asarray([[1.0, 1.0], [0.0, -dt.inf]], device="reference")).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    if type(required("softmax", x)) is not Tensor:
        return dispatch("softmax", (x,), x, lay.axis("softmax", axis, x.ndim))  # type: ignore[no-any-return]
    axis = lay.axis("softmax", axis, x.ndim)
    e = exp(x - _shift(x, axis))
    return e / sum_(e, axis=axis, keepdims=True)


@named
def log_softmax(x: Tensor, /, axis: int = -1) -> Tensor:
    """The logarithm of softmax along `axis`, accurate where softmax underflows; one kernel.

    An element of -inf gives -inf; where all are -inf, or one is inf or NaN, all results along that
    axis are NaN.
    Shapes: any of at least 1 dimension; the result has the same. `axis` is one integer.
    Dtypes: integers (giving float32) and floats, not bool.
    Order: the sum runs in the canonical order (docs/numerics.md): the same bits on every device.
    Raises: AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.log_softmax(dt.asarray([0.0, -1000.0], device="reference")).tolist()
    [0.0, -1000.0]
    """
    if type(required("log_softmax", x)) is not Tensor:
        return dispatch("log_softmax", (x,), x, lay.axis("log_softmax", axis, x.ndim))  # type: ignore[no-any-return]
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
    """Whether two tensors are equal but for rounding, elementwise: |x1 - x2| <= atol + rtol * |x2|.

    `rtol`, `atol`: the relative and the absolute tolerance. The same infinity is close to itself;
    NaN is close to NaN only with `equal_nan`.
    Shapes: broadcast; a Python number has none.
    Dtypes: all; integers and bool are compared in float64. Gives bool.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError for a tolerance that is no number.

    >>> import dovetail as dt
    >>> dt.isclose(dt.asarray([1.0, 2.0], device="reference"), 1.000001).tolist()
    [True, False]
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
    x1, x2 = operands("isclose", x1, x2)
    device = next(x.device for x in (x1, x2) if isinstance(x, Tensor))
    found = common("isclose", [x.dtype for x in (x1, x2) if isinstance(x, Tensor)])
    found = found if found.kind == "f" else float64
    a, b = (
        x if isinstance(x, Tensor) else full((), real("isclose", x, "x"), device=device)
        for x in (x1, x2)
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
    """Whether all elements of two tensors are close, as one Python bool.

    `rtol`, `atol`, `equal_nan` are as for `isclose`. The values are computed and looked at now.
    Shapes: broadcast; of no elements: True.
    Dtypes: all; integers and bool are compared in float64.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError for a tolerance that is no number.

    >>> import dovetail as dt
    >>> dt.allclose(dt.asarray([1.0, 2.0], device="reference"), [1.0, 2.000001])
    True
    """
    return bool(all_(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)))


@named
def array_equal(x1: Array, x2: Array, /) -> bool:
    """Whether two tensors have one shape and equal elements, as one Python bool.

    The values are computed and looked at now. NaN equals nothing; dtypes may differ.
    Shapes: any; different ones make it False, also where they would broadcast.
    Dtypes: all.
    Raises: DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.array_equal(dt.asarray([1, 2], device="reference"), [1, 2])
    True
    """
    x1, x2 = brought("array_equal", x1, x2)
    return x1.shape == x2.shape and bool(all_(equal(x1, x2)))
