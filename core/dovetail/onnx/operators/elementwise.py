"""Arithmetic, comparisons, bits, elementary functions, activations, casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import dovetail as dt

from ..library import dtype_of
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


def _round(x: Tensor) -> Tensor:
    """Round to the nearest integer, ties to even, without the options of `dt.round`."""
    return dt.round(x)


_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": dt.add,
    "Sub": dt.subtract,
    "Mul": dt.multiply,
    "And": dt.logical_and,
    "Or": dt.logical_or,
    "Xor": dt.logical_xor,
    "BitwiseAnd": dt.bitwise_and,
    "BitwiseOr": dt.bitwise_or,
    "BitwiseXor": dt.bitwise_xor,
    "Equal": dt.equal,
    "Less": dt.less,
    "Greater": dt.greater,
    "LessOrEqual": dt.less_equal,
    "GreaterOrEqual": dt.greater_equal,
}
_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": dt.abs, "Neg": dt.negative, "Not": dt.logical_not, "BitwiseNot": dt.bitwise_invert,
    "Ceil": dt.ceil, "Floor": dt.floor, "Round": _round, "Sqrt": dt.sqrt,
    "Reciprocal": dt.reciprocal, "Exp": dt.exp, "Log": dt.log, "Erf": dt.erf, "Sign": dt.sign,
    "Sin": dt.sin, "Cos": dt.cos, "Tan": dt.tan, "Asin": dt.asin, "Acos": dt.acos, "Atan": dt.atan,
    "Sinh": dt.sinh, "Cosh": dt.cosh, "Tanh": dt.tanh, "Asinh": dt.asinh, "Acosh": dt.acosh,
    "Atanh": dt.atanh, "IsNaN": dt.isnan, "Relu": dt.relu, "Sigmoid": dt.sigmoid,
}  # fmt: skip


def _apply_binary(
    f: Callable[[Tensor, Tensor], Tensor], call: OperatorCall, x: Tensor, y: Tensor
) -> Tensor:
    """Call `f` on two operands, without the node's attributes."""
    return f(x, y)


def _apply_unary(f: Callable[[Tensor], Tensor], call: OperatorCall, x: Tensor) -> Tensor:
    """Call `f` on an operand, without the node's attributes."""
    return f(x)


def align_old_operand(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Return the second operand of an opset below 7, with the axes that broadcast it now.

    With `broadcast`, its axes are those of `x` from `axis` on; by default they are the last ones.
    """
    axis = call.get("axis", None)
    if not call.get("broadcast", 0) or axis is None or not y.ndim:
        return y
    first = axis + x.ndim if axis < 0 else axis
    return y.reshape((*y.shape, *(1,) * (x.ndim - first - y.ndim)))


def _apply_old_binary(
    f: Callable[[Tensor, Tensor], Tensor], call: OperatorCall, x: Tensor, y: Tensor
) -> Tensor:
    """Call `f` on two operands of an opset below 7."""
    return f(x, align_old_operand(call, x, y))


for _name, _f in _BINARY.items():
    register_operator(_name)(partial(_apply_old_binary, _f))
    register_operator(_name, since=7)(partial(_apply_binary, _f))
for _name, _g in _UNARY.items():
    register_operator(_name)(partial(_apply_unary, _g))


@register_operator("Div")
def _old_div(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Divide as in an opset below 7."""
    return _div(call, x, align_old_operand(call, x, y))


@register_operator("Div", since=7)
def _div(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Divide; integers are rounded towards zero."""
    if x.dtype.kind not in "iu":
        return dt.divide(x, y)
    quotient = dt.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    is_rounded_down = (quotient * y != x) & ((x < 0) != (y < 0)) & (y != 0)
    return quotient + is_rounded_down.astype(x.dtype)


@register_operator("Mod")
def _mod(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Return the remainder with the divisor's sign, or with the dividend's by `fmod`."""
    return dt.fmod(x, y) if call.get("fmod", 0) else dt.remainder(x, y)


@register_operator("Pow")
def _old_pow(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Return a power as in an opset below 7."""
    return _pow(call, x, align_old_operand(call, x, y))


@register_operator("Pow", since=7)
def _pow(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Return a power in the dtype of x; other dtypes of y compute in a wider one."""
    if x.dtype is y.dtype:
        return dt.pow(x, y)
    wide = x.dtype if x.dtype.kind == "f" and x.dtype.itemsize >= 4 else dt.float64
    if y.dtype.kind != "f" and x.dtype.kind in "iu":
        wide = x.dtype
    return dt.pow(x.astype(wide), y.astype(wide)).astype(x.dtype)


def _apply_variadic(
    f: Callable[[Tensor, Tensor], Tensor], call: OperatorCall, *xs: Tensor
) -> Tensor:
    """Combine any number of operands by `f`, in order; copy a single one."""
    return reduce(f, xs) if len(xs) > 1 else xs[0].copy()


register_operator("Min")(partial(_apply_variadic, dt.minimum))
register_operator("Max")(partial(_apply_variadic, dt.maximum))
register_operator("Sum")(partial(_apply_variadic, dt.add))


@register_operator("Mean")
def _mean(call: OperatorCall, *xs: Tensor) -> Tensor:
    """Return the mean of the operands."""
    return _apply_variadic(dt.add, call, *xs) / len(xs)


@register_operator("Clip")
def _clip(
    call: OperatorCall, x: Tensor, low: Tensor | None = None, high: Tensor | None = None
) -> Tensor:
    """Limit x by inputs, or by the attributes of older opsets."""
    least: Any = call.get("min") if low is None else low
    most: Any = call.get("max") if high is None else high
    if least is not None:
        x = dt.maximum(x, least)
    return dt.minimum(x, most) if most is not None else x


@register_operator("Where")
def _where(call: OperatorCall, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return elements of x where the condition is true, else of y."""
    return dt.where(condition, x, y)


@register_operator("BitShift")
def _bit_shift(call: OperatorCall, x: Tensor, y: Tensor) -> Tensor:
    """Shift x by y bits, in the node's direction."""
    left = call.get("direction") == "LEFT"
    return (dt.bitwise_left_shift if left else dt.bitwise_right_shift)(x, y)


@register_operator("IsInf")
def _is_inf(call: OperatorCall, x: Tensor) -> Tensor:
    """Return a mask of infinities of the signs that the node detects."""
    result = dt.isinf(x)
    if not call.get("detect_positive", 1):
        result = result & (x < 0)
    return result & (x > 0) if not call.get("detect_negative", 1) else result


# --- casts ----------------------------------------------------------------------------------------


def cast(x: Tensor, d: dt.DType) -> Tensor:
    """Cast; floats become short integers by way of int32, of which the low bits are taken."""
    if x.dtype.kind == "f" and d.kind in "iu" and d.itemsize < 4:
        return x.astype(dt.int32).astype(d)
    return x.astype(d)


@register_operator("Cast")
def _cast(call: OperatorCall, x: Tensor) -> Tensor:
    """Cast to the dtype of the attribute `to`. Raises: DTypeError if dovetail does not have it."""
    return cast(x, dtype_of(call.get("to"), "Cast"))


@register_operator("CastLike")
def _cast_like(call: OperatorCall, x: Tensor, like: Tensor) -> Tensor:
    """Cast x to the dtype of `like`."""
    return cast(x, like.dtype)


@register_operator("BitCast")
def _bit_cast(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the bits as another dtype. Raises: DTypeError if the sizes differ."""
    d = dtype_of(call.get("to"), "BitCast")
    if d.itemsize != x.dtype.itemsize:
        raise dt.DTypeError(
            f"BitCast: the dtypes must have the same size, got {x.dtype.name} and {d.name}"
        )
    if dt.bool in (d, x.dtype):
        return (x.view(dt.uint8) != 0) if d is dt.bool else x.astype(dt.uint8).view(d)
    return x.contiguous().view(d)


# --- activations ----------------------------------------------------------------------------------


@register_operator("LeakyRelu")
def _leaky_relu(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x, or alpha x below 0."""
    return dt.where(x < 0, x * call.get("alpha", 0.01), x)


@register_operator("PRelu")
def _old_prelu(call: OperatorCall, x: Tensor, slope: Tensor) -> Tensor:
    """Return x, or slope x below 0; one slope, or one for each channel."""
    return _prelu(call, x, slope.reshape((-1, *(1,) * (x.ndim - 2))))


@register_operator("PRelu", since=7)
def _prelu(call: OperatorCall, x: Tensor, slope: Tensor) -> Tensor:
    """Return x, or slope x below 0."""
    return dt.where(x < 0, x * slope, x)


@register_operator("ThresholdedRelu")
def _thresholded_relu(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x above alpha, else 0."""
    return dt.where(x > call.get("alpha", 1.0), x, dt.zeros_like(x))


@register_operator("Elu")
def _elu(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x, or alpha (exp(x) - 1) below 0."""
    return dt.where(x < 0, dt.expm1(x) * call.get("alpha", 1.0), x)


@register_operator("Selu")
def _selu(call: OperatorCall, x: Tensor) -> Tensor:
    """Return gamma x, or gamma alpha (exp(x) - 1) up to 0."""
    alpha, gamma = call.get("alpha", 1.6732632423543772), call.get("gamma", 1.0507009873554805)
    return dt.where(x <= 0, dt.expm1(x) * float(alpha), x) * float(gamma)


@register_operator("Celu")
def _celu(call: OperatorCall, x: Tensor) -> Tensor:
    """Return max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)."""
    alpha = call.get("alpha", 1.0)
    return dt.maximum(x, 0.0) + dt.minimum(dt.expm1(x / alpha) * alpha, 0.0)


@register_operator("Gelu")
def _gelu(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x times the normal distribution function at x, exact or by tanh."""
    if call.get("approximate", "none") == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (dt.tanh(inner) + 1.0)
    return x * 0.5 * (dt.erf(x * math.sqrt(0.5)) + 1.0)


@register_operator("HardSigmoid")
def _hard_sigmoid(call: OperatorCall, x: Tensor) -> Tensor:
    """Return alpha x + beta, limited to 0..1."""
    return dt.clip(x * call.get("alpha", 0.2) + call.get("beta", 0.5), 0.0, 1.0)


@register_operator("HardSwish")
def _hard_swish(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x times (x / 6 + 1 / 2) limited to 0..1."""
    return x * dt.clip(x * (1 / 6) + 0.5, 0.0, 1.0)


@register_operator("Mish")
def _mish(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x tanh(softplus(x))."""
    return x * dt.tanh(_softplus(call, x))


@register_operator("Softplus")
def _softplus(call: OperatorCall, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), without overflow."""
    return dt.maximum(x, 0.0) + dt.log1p(dt.exp(-dt.abs(x)))


@register_operator("Softsign")
def _softsign(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x / (1 + abs(x))."""
    return x / (dt.abs(x) + 1.0)


@register_operator("Shrink")
def _shrink(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x moved by `bias` towards 0 outside of +-lambd, and 0 inside."""
    bias, edge = call.get("bias", 0.0), call.get("lambd", 0.5)
    wide = x if x.dtype.kind == "f" else x.astype(dt.float64)
    inner = dt.where(wide > edge, wide - bias, dt.zeros_like(wide))
    return cast(dt.where(wide < -edge, wide + bias, inner), x.dtype)


@register_operator("Swish")
def _swish(call: OperatorCall, x: Tensor) -> Tensor:
    """Return x sigmoid(alpha x)."""
    return x * dt.sigmoid(x * call.get("alpha", 1.0))


@register_operator("Binarizer", domain="ai.onnx.ml")
def _binarizer(call: OperatorCall, x: Tensor) -> Tensor:
    """Return 1 above the threshold, else 0, in the dtype of x."""
    return (x > float(call.get("threshold", 0.0))).astype(x.dtype)


def apply_along_axis(call: OperatorCall, x: Tensor, f: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Apply a function along an axis; before opset 13, along the flattened axes from `axis` on."""
    if call.version >= 13:
        return f(x, call.axis(call.get("axis", -1), x.ndim))
    axis = call.split_position(call.get("axis", 1), x.ndim)
    flat = x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return f(flat, 1).reshape(x.shape)


@register_operator("Softmax")
def _softmax(call: OperatorCall, x: Tensor) -> Tensor:
    """Return softmax along an axis, before opset 13 along several flattened ones."""
    return apply_along_axis(call, x, lambda y, axis: dt.softmax(y, axis))


@register_operator("LogSoftmax")
def _log_softmax(call: OperatorCall, x: Tensor) -> Tensor:
    """Return the log of softmax along an axis, before opset 13 along several flattened ones."""
    return apply_along_axis(call, x, lambda y, axis: dt.log_softmax(y, axis))


@register_operator("Hardmax")
def _hardmax(call: OperatorCall, x: Tensor) -> Tensor:
    """Return 1 at the first maximum along an axis, else 0."""

    def hardmax(y: Tensor, axis: int) -> Tensor:
        """Return 1 at the first maximum along `axis`, else 0."""
        positions = dt.arange(y.shape[axis], device=y.device).reshape(
            [-1 if d == axis else 1 for d in range(y.ndim)]
        )
        return (dt.argmax(y, axis=axis, keepdims=True) == positions).astype(y.dtype)

    return apply_along_axis(call, x, hardmax)
