"""Writers of elementwise ops.

Each writer adds operators to the graph, and returns the name of their result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import GraphNode

from .writer import GraphWriter, UnsupportedOpError, register_node_writer

W: TypeAlias = GraphWriter
N: TypeAlias = GraphNode

_ONE_OPERATOR = {
    "subtract": "Sub", "equal": "Equal", "less": "Less",
    "greater": "Greater", "less_equal": "LessOrEqual", "greater_equal": "GreaterOrEqual",
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not",
    "abs": "Abs", "sign": "Sign", "reciprocal": "Reciprocal", "sqrt": "Sqrt", "isnan": "IsNaN",
    "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin",
    "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "sigmoid": "Sigmoid",
    "positive": "Identity", "copy": "Identity", "isinf": "IsInf",
}  # fmt: skip
_BOOL_VARIANTS = {
    "add": ("Add", "Or"),
    "multiply": ("Mul", "And"),
    "bitwise_and": ("BitwiseAnd", "And"),
    "bitwise_or": ("BitwiseOr", "Or"),
    "bitwise_xor": ("BitwiseXor", "Xor"),
    "bitwise_invert": ("BitwiseNot", "Not"),
    "maximum": ("Max", "Or"),
    "minimum": ("Min", "And"),
}
_FLOATS_ONLY = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}


def _compute_kind(n: N) -> str:
    """Return the kind of the dtype in which a node computes."""
    return n.casts[0].kind if n.casts else n.dtype.kind


def _require_real(n: N) -> None:
    """Raise UnsupportedOpError if operands or results are complex."""
    if _compute_kind(n) == "c" or n.dtype.kind == "c":
        raise UnsupportedOpError("ONNX has no operators on complex numbers")


def _write_operator(op: str, w: W, n: N) -> str:
    """Write a node as one operator of the same operands. Raises: UnsupportedOpError if complex."""
    _require_real(n)
    return w.add(op, w.args(n))


def _write_variant(ops: tuple[str, str], w: W, n: N) -> str:
    """Write a node as the second operator for bools, else as the first."""
    _require_real(n)
    if _compute_kind(n) != "b" and ops[0].startswith("Bitwise"):
        w.require_opset(18, ops[0])
    return w.add(ops[_compute_kind(n) == "b"], w.args(n))


def _write_for_floats(op: str, w: W, n: N) -> str:
    """Write an operator for floats; integers are unchanged."""
    return w.add(op if _compute_kind(n) == "f" else "Identity", w.args(n))


for _name, _op in _ONE_OPERATOR.items():
    register_node_writer(_name)(partial(_write_operator, _op))
for _name, _ops in _BOOL_VARIANTS.items():
    register_node_writer(_name)(partial(_write_variant, _ops))
for _name, _op in _FLOATS_ONLY.items():
    register_node_writer(_name)(partial(_write_for_floats, _op))


def unary(f: Callable[[W, str, Callable[[float], str]], str]) -> Callable[[W, N], str]:
    """Return a node writer for one operand from f(writer, operand, constant of its dtype)."""

    def run(w: W, n: N) -> str:
        """Write the node. Raises: UnsupportedOpError for complex numbers."""
        _require_real(n)
        return f(w, w.arg(n, 0), lambda v: w.number(v, n.casts[0]))

    return run


register_node_writer("square")(unary(lambda w, x, c: w.add("Mul", [x, x])))
register_node_writer("rsqrt")(unary(lambda w, x, c: w.add("Reciprocal", [w.add("Sqrt", [x])])))
register_node_writer("exp2")(unary(lambda w, x, c: w.add("Pow", [c(2), x])))
register_node_writer("log2")(
    unary(lambda w, x, c: w.add("Div", [w.add("Log", [x]), c(math.log(2))]))
)
register_node_writer("log10")(
    unary(lambda w, x, c: w.add("Div", [w.add("Log", [x]), c(math.log(10))]))
)
register_node_writer("erfc")(unary(lambda w, x, c: w.add("Sub", [c(1), w.add("Erf", [x])])))
register_node_writer("deg2rad")(unary(lambda w, x, c: w.add("Mul", [x, c(math.pi / 180)])))
register_node_writer("rad2deg")(unary(lambda w, x, c: w.add("Mul", [x, c(180 / math.pi)])))
register_node_writer("isfinite")(
    unary(lambda w, x, c: w.add("Less", [w.add("Abs", [x]), c(math.inf)]))
)


@register_node_writer("ndtr")
@unary
def _write_ndtr(w: W, x: str, c: Callable[[float], str]) -> str:
    """Write (erf(x * sqrt(1/2)) + 1) / 2."""
    erf = w.add("Erf", [w.add("Mul", [x, c(math.sqrt(0.5))])])
    return w.add("Mul", [w.add("Add", [erf, c(1)]), c(0.5)])


@register_node_writer("log1p")
@unary
def _write_log1p(w: W, x: str, c: Callable[[float], str]) -> str:
    """Write log(u) x / (u - 1) with u = 1 + x, and x if u is 1."""
    u = w.add("Add", [x, c(1)])
    difference = w.add("Sub", [u, c(1)])
    log = w.add("Mul", [w.add("Log", [u]), w.add("Div", [x, difference])])
    is_limit = w.add("Or", [w.add("Equal", [difference, c(0)]), w.add("Equal", [u, c(math.inf)])])
    return w.where(w.add("Equal", [difference, c(0)]), x, w.where(is_limit, u, log))


@register_node_writer("expm1")
@unary
def _write_expm1(w: W, x: str, c: Callable[[float], str]) -> str:
    """Write exp(x) - 1, or a series for x near 0."""
    small = w.add("Less", [w.add("Abs", [x]), c(1e-2)])
    total = c(1 / 720)
    for k in (120, 24, 6, 2, 1):
        total = w.add("Add", [w.add("Mul", [total, x]), c(1 / k)])
    return w.where(small, w.add("Mul", [total, x]), w.add("Sub", [w.add("Exp", [x]), c(1)]))


@register_node_writer("trunc")
def _write_trunc(w: W, n: N) -> str:
    """Write sign(x) * floor(abs(x)); integers are unchanged."""
    x = w.arg(n, 0)
    if _compute_kind(n) != "f":
        return x
    return w.add("Mul", [w.add("Sign", [x]), w.add("Floor", [w.add("Abs", [x])])])


@register_node_writer("cbrt")
@unary
def _write_cbrt(w: W, x: str, c: Callable[[float], str]) -> str:
    """Write sign(x) * abs(x) ** (1 / 3)."""
    return w.add("Mul", [w.add("Sign", [x]), w.add("Pow", [w.add("Abs", [x]), c(1 / 3)])])


@register_node_writer("logit")
@unary
def _write_logit(w: W, x: str, c: Callable[[float], str]) -> str:
    """Write log(x / (1 - x))."""
    return w.add("Log", [w.add("Div", [x, w.add("Sub", [c(1), x])])])


@register_node_writer("sinc")
@unary
def _write_sinc(w: W, x: str, c: Callable[[float], str]) -> str:
    """Write sin(pi x) / (pi x), and 1 at 0."""
    angle = w.add("Mul", [x, c(math.pi)])
    return w.where(w.add("Equal", [x, c(0)]), c(1), w.add("Div", [w.add("Sin", [angle]), angle]))


def _write_sign_mask(w: W, x: str, d: dt.DType) -> str:
    """Write a mask of negative numbers and -0: the sign bit."""
    below = w.add("Less", [w.add("Reciprocal", [x]), w.number(0, d)])
    return w.add("Or", [w.add("Less", [x, w.number(0, d)]), below])


@register_node_writer("signbit")
def _write_signbit(w: W, n: N) -> str:
    """Write a mask of negative numbers and -0."""
    return _write_sign_mask(w, w.arg(n, 0), n.casts[0])


@register_node_writer("copysign")
def _write_copysign(w: W, n: N) -> str:
    """Write abs(x) with the sign of y."""
    x, y = w.args(n)
    size = w.add("Abs", [x])
    return w.where(_write_sign_mask(w, y, n.casts[1]), w.add("Neg", [size]), size)


@register_node_writer("negative")
def _write_negative(w: W, n: N) -> str:
    """Write Neg, or 0 - x for unsigned integers, which Neg does not accept."""
    _require_real(n)
    x = w.arg(n, 0)
    return (
        w.add("Sub", [w.number(0, n.casts[0]), x]) if _compute_kind(n) == "u" else w.add("Neg", [x])
    )


@register_node_writer("not_equal")
def _write_not_equal(w: W, n: N) -> str:
    """Write the negation of Equal."""
    _require_real(n)
    return w.add("Not", [w.add("Equal", w.args(n))])


@register_node_writer("relu")
def _write_relu(w: W, n: N) -> str:
    """Write Relu; unsigned integers are unchanged."""
    if _compute_kind(n) == "u":
        return w.arg(n, 0)
    return w.add("Relu", [w.arg(n, 0)])


@register_node_writer("where")
def _write_where(w: W, n: N) -> str:
    """Write Where; bools use And and Or, as few runtimes support Where for them."""
    condition, x, y = w.args(n)
    if n.dtype.kind != "b":
        return w.where(condition, x, y)
    no = w.add("Not", [condition])
    return w.add("Or", [w.add("And", [condition, x]), w.add("And", [no, y])])


def _widen_for_pow(d: dt.DType) -> dt.DType:
    """Return the dtype in which Pow computes a dtype. Raises: UnsupportedOpError for uint64."""
    if d is dt.uint64:
        raise UnsupportedOpError("ONNX has no powers of uint64")
    if d.kind == "u" or (d.kind == "i" and d.itemsize < 4):
        return dt.int64 if d.itemsize == 4 else dt.int32
    return d


@register_node_writer("pow")
def _write_pow(w: W, n: N) -> str:
    """Write Pow, of some dtypes in a wider one. Raises: UnsupportedOpError for uint64."""
    _require_real(n)
    d = n.casts[0]
    wide = _widen_for_pow(d)
    return w.cast(w.add("Pow", [w.cast(a, d, wide) for a in w.args(n)]), wide, n.dtype)


@register_node_writer("divide")
def _write_divide(w: W, n: N) -> str:
    """Write Div of operands that are floats."""
    return _write_operator("Div", w, n)


def _write_signs_differ(w: W, x: str, y: str, d: dt.DType) -> str:
    """Write a mask of elements at which just one of x and y is below 0."""
    zero = w.number(0, d)
    return w.add("Xor", [w.add("Less", [x, zero]), w.add("Less", [y, zero])])


@register_node_writer("floor_divide")
def _write_floor_divide(w: W, n: N) -> str:
    """Write a quotient rounded down; integer division, which truncates, is corrected."""
    x, y = w.args(n)
    d = n.casts[0]
    quotient: str = w.add("Div", [x, y])
    if d.kind == "f":
        return w.add("Floor", [quotient])
    if d.kind == "u":
        return quotient
    has_remainder = w.add("Not", [w.add("Equal", [w.add("Mul", [quotient, y]), x])])
    down = w.add("And", [has_remainder, _write_signs_differ(w, x, y, d)])
    return w.where(down, w.add("Sub", [quotient, w.number(1, d)]), quotient)


@register_node_writer("remainder")
def _write_remainder(w: W, n: N) -> str:
    """Write a remainder with the sign of the divisor."""
    x, y = w.args(n)
    d = n.casts[0]
    remainder: str = w.add("Mod", [x, y], fmod=int(d.kind == "f"))
    if d.kind != "f":
        return remainder
    zero = w.number(0, d)
    wrong = w.add(
        "And",
        [
            w.add("Not", [w.add("Equal", [remainder, zero])]),
            _write_signs_differ(w, remainder, y, d),
        ],
    )
    return w.where(wrong, w.add("Add", [remainder, y]), remainder)


@register_node_writer("bitwise_left_shift", "bitwise_right_shift")
def _write_shift(w: W, n: N) -> str:
    """Write a shift; of signed integers as a product with, or floored quotient by, a power of 2."""
    x, y = w.args(n)
    left = n.op == "bitwise_left_shift"
    if _compute_kind(n) == "u":
        return w.add("BitShift", [x, y], direction="LEFT" if left else "RIGHT")
    d = n.casts[0]
    wide = _widen_for_pow(d)
    x, y = w.cast(x, d, wide), w.cast(y, d, wide)
    factor = w.add("Pow", [w.number(2, wide), y])
    if left:
        return w.cast(w.add("Mul", [x, factor]), wide, d)
    quotient = w.add("Div", [x, factor])
    has_remainder = w.add("Not", [w.add("Equal", [w.add("Mul", [quotient, factor]), x])])
    down = w.add("And", [has_remainder, w.add("Less", [x, w.number(0, wide)])])
    floored = w.where(down, w.add("Sub", [quotient, w.number(1, wide)]), quotient)
    return w.cast(floored, wide, d)


@register_node_writer("atan2")
def _write_atan2(w: W, n: N) -> str:
    """Write the angle by Atan of the quotient, with cases for quadrants, axes and signed zeros."""
    y, x = w.args(n)
    d = n.casts[0]
    zero, pi = w.number(0, d), w.number(math.pi, d)
    are_infinite = w.add("And", [w.add("IsInf", [y]), w.add("IsInf", [x])])  # a quotient of NaN
    y, x = (w.where(are_infinite, w.add("Sign", [a]), a) for a in (y, x))
    base = w.add("Atan", [w.add("Div", [y, x])])
    opposite = w.where(
        _write_sign_mask(w, y, d), w.add("Sub", [base, pi]), w.add("Add", [base, pi])
    )
    angle = w.where(w.add("Less", [x, zero]), opposite, base)
    half = w.where(_write_sign_mask(w, y, d), w.number(-math.pi / 2, d), w.number(math.pi / 2, d))
    straight = w.where(_write_sign_mask(w, y, d), w.number(-math.pi, d), pi)
    on_axis = w.where(_write_sign_mask(w, x, d), straight, y)
    at_zero = w.where(w.add("Equal", [y, zero]), on_axis, half)
    on_y_axis = w.add("And", [w.add("Equal", [x, zero]), w.add("Not", [w.add("IsNaN", [y])])])
    return w.where(on_y_axis, at_zero, angle)


@register_node_writer("hypot")
def _write_hypot(w: W, n: N) -> str:
    """Write sqrt(x * x + y * y), scaled by the larger operand against overflow."""
    x, y = (w.add("Abs", [a]) for a in w.args(n))
    d = n.casts[0]
    large, small = w.add("Max", [x, y]), w.add("Min", [x, y])
    none = w.add("Equal", [large, w.number(0, d)])
    ratio = w.add("Div", [small, w.where(none, w.number(1, d), large)])
    root = w.add("Sqrt", [w.add("Add", [w.add("Mul", [ratio, ratio]), w.number(1, d)])])
    is_infinite = w.add("Or", [w.add("IsInf", [x]), w.add("IsInf", [y])])
    return w.where(is_infinite, w.number(math.inf, d), w.add("Mul", [large, root]))


@register_node_writer("logaddexp")
def _write_logaddexp(w: W, n: N) -> str:
    """Write max(x, y) + log(1 + exp(-abs(x - y)))."""
    x, y = w.args(n)
    d = n.casts[0]
    same = w.add("Equal", [x, y])  # also two infinities, whose difference is NaN
    gap = w.where(same, w.number(0, d), w.add("Sub", [x, y]))
    gap = w.add("Neg", [w.add("Abs", [gap])])
    more = w.add("Log", [w.add("Add", [w.add("Exp", [gap]), w.number(1, d)])])
    return w.add("Add", [w.add("Max", [x, y]), more])


@register_node_writer("xlogy")
def _write_xlogy(w: W, n: N) -> str:
    """Write x log(y), and 0 where x is 0 and y is not NaN."""
    x, y = w.args(n)
    zero = w.number(0, n.casts[0])
    product = w.add("Mul", [x, w.add("Log", [y])])
    is_number = w.add("Not", [w.add("IsNaN", [y])])
    is_zero = w.add("And", [w.add("Equal", [x, zero]), is_number])
    return w.where(is_zero, zero, product)


@register_node_writer("heaviside")
def _write_heaviside(w: W, n: N) -> str:
    """Write 1 for x > 0, y for x = 0, NaN for NaN, else 0."""
    x, y = w.args(n)
    d = n.casts[0]
    above = w.cast(w.add("Greater", [x, w.number(0, d)]), dt.bool, d)
    step = w.where(w.add("Equal", [x, w.number(0, d)]), y, above)
    return w.where(w.add("IsNaN", [x]), x, step) if d.kind == "f" else step


@register_node_writer("ldexp")
def _write_ldexp(w: W, n: N) -> str:
    """Write x * 2 ** y of a truncated y; 0 and infinity stay unless y is NaN."""
    x, y = w.args(n)
    d = n.casts[0]
    steps = w.add("Mul", [w.add("Sign", [y]), w.add("Floor", [w.add("Abs", [y])])])
    scaled = w.add("Mul", [x, w.add("Pow", [w.number(2, d), steps])])
    is_fixed = w.add("Or", [w.add("Equal", [x, w.number(0, d)]), w.add("IsInf", [x])])
    is_fixed = w.add("And", [is_fixed, w.add("Not", [w.add("IsNaN", [y])])])
    return w.where(is_fixed, x, scaled)


@register_node_writer("clip")
def _write_clip(w: W, n: N) -> str:
    """Write x limited to low and high, of which high wins."""
    x, low, high = w.args(n)
    return w.add("Min", [w.add("Max", [x, low]), high])


@register_node_writer("astype")
def _write_astype(w: W, n: N) -> str:
    """Write a cast, to short integers via int32. Raises: UnsupportedOpError for complex numbers."""
    a = n.args[0]
    assert isinstance(a, GraphNode)
    if "c" in (a.dtype.kind, n.dtype.kind):
        raise UnsupportedOpError("ONNX cannot cast complex numbers")
    if a.dtype is n.dtype:
        return w.add("Identity", [w.value(a)])
    if a.dtype.kind == "f" and n.dtype.kind in "iu" and n.dtype.itemsize < 4:
        return w.cast(w.cast(w.value(a), a.dtype, dt.int32), dt.int32, n.dtype)
    return w.cast(w.value(a), a.dtype, n.dtype)


@register_node_writer("real", "conj")
def _write_real(w: W, n: N) -> str:
    """Write the operand itself. Raises: UnsupportedOpError for complex numbers."""
    _require_real(n)
    return w.arg(n, 0)
