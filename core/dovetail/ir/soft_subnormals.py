"""Float32 operations with IEEE 754 subnormals, for devices that flush them to zero.

The functions here take and return subnormal numbers. Of the device's own float arithmetic they use
only operations on normal numbers, or discard the result. All other work is done on the bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dtypes import DType, bool_, float32, float64, int32, uint32
from .hidden_floats import bits_of_constant
from .language import EXACT_SUFFIX, Value, bitcast, cast, const, eq, ne, rint, sqrt, where
from .rewrite import Cloner
from .soft_float import (
    assemble_float32,
    divide_by_digits,
    divide_directly,
    integer_fma,
    integer_quotient,
    significand_and_exponent,
)
from .target import Capabilities

if TYPE_CHECKING:
    from .builder import Combine

LEAST_NORMAL = 0x800000  # bits of 2^-126
_INFINITY, _ONE = 0x7F800000, 0x3F800000
_SIGN = 0x80000000


def magnitude_bits(x: Value) -> Value:
    """Return the bits of |x|, as uint32."""
    if x.op == "const":
        return const(bits_of_constant(x) & 0x7FFFFFFF, uint32)
    return bitcast(x, uint32) & 0x7FFFFFFF


def sign_bit(x: Value) -> Value:
    """Return the sign of `x` at its place, as uint32."""
    if x.op == "const":
        return const(bits_of_constant(x) & _SIGN, uint32)
    return bitcast(x, uint32) & _SIGN


def flip_sign(x: Value) -> Value:
    """Return -x by its bits."""
    return bitcast(bitcast(x, uint32) ^ _SIGN, float32)


def _is_tiny(x: Value) -> Value:
    """Return the condition that `x` is 0 or subnormal."""
    return magnitude_bits(x) < LEAST_NORMAL


# --- arithmetic ----------------------------------------------------------------------------------


def _scale_up(x: Value) -> Value:
    """Return x * 2^64, exact for |x| < 1."""
    scaled = cast(magnitude_bits(x), float32) * 2.0 ** (64 - 149)
    return where(_is_tiny(x), bitcast(bitcast(scaled, uint32) | sign_bit(x), float32), x * 2.0**64)


def _scale_down(x: Value) -> Value:
    """Return x * 2^-64 for a multiple of 2^(64-149)."""
    size = bitcast(magnitude_bits(x), float32)
    subnormal = cast(size * 2.0 ** (149 - 64), uint32) | sign_bit(x)
    return where(size < 2.0 ** (64 - 126), bitcast(subnormal, float32), x * 2.0**-64)


def add(a: Value, b: Value) -> Value:
    """Return a + b. Of two numbers below 1 the scaled sum is exact where the sum is subnormal."""
    small = (magnitude_bits(a) < _ONE) & (magnitude_bits(b) < _ONE)
    return where(small, _scale_down(_scale_up(a) + _scale_up(b)), a + b)


def subtract(a: Value, b: Value) -> Value:
    """Return a - b."""
    return add(a, flip_sign(b))


def multiply(a: Value, b: Value) -> Value:
    """Return a * b, by the product of the significands in words of 32 bits."""
    (ma, ea), (mb, eb) = map(significand_and_exponent, (a, b))
    (high_a, low_a), (high_b, low_b) = ((m >> 12, m & 0xFFF) for m in (ma, mb))
    low = low_a * low_b
    middle = high_a * low_b + low_a * high_b + (low >> 12)
    high = high_a * high_b + (middle >> 12)  # the product is high, and 12 bits each of the others
    bits = (high << 4) | ((middle & 0xFFF) >> 8)  # 27 bits, or 28
    long = bits >= 1 << 27
    lost = ne((middle & 0xFF) | (low & 0xFFF), 0) | (long & ne(bits & 1, 0))
    significand = where(long, bits >> 1, bits) | cast(lost, uint32)
    exponent = ea + eb - where(long, const(126, int32), 127)
    product = assemble_float32(significand, exponent) | (sign_bit(a) ^ sign_bit(b))
    plain = _is_plain(a) & _is_plain(b)
    return where(plain, bitcast(product, float32), _normal_stand_in(a) * _normal_stand_in(b))


def _normal_stand_in(x: Value) -> Value:
    """Return `x` if it is zero, infinite or NaN, else 1 with its sign.

    Where an operand is infinite or NaN, the other one's size does not matter.
    """
    bits = bitcast(x, uint32)
    return bitcast(where(_is_plain(x), (bits & _SIGN) | _ONE, bits), float32)


def _is_plain(x: Value) -> Value:
    """Return the condition that `x` is finite and not 0."""
    return magnitude_bits(x) - 1 < _INFINITY - 1


def _square_root(x: Value) -> Value:
    """Return sqrt(x)."""
    return where(_is_tiny(x), sqrt(_scale_up(x)) * 2.0**-32, sqrt(x))


def _round(op: str, x: Value) -> Value:
    """Return the trunc, floor or rint of `x`."""
    tiny = sign_bit(x)
    if op == "floor":
        tiny = where(bitcast(x, uint32) > _SIGN, const(0xBF800000, uint32), tiny)  # -1
    return where(_is_tiny(x), bitcast(tiny, float32), Value(op, float32, (x,)))


# --- comparisons and casts -----------------------------------------------------------------------


def _order(x: Value) -> Value:
    """Return an int32 that is ordered as the number `x`; both zeros give 0."""
    signs = bitcast(x, int32) >> 31
    return (bitcast(magnitude_bits(x), int32) ^ signs) - signs


def _compare(op: str, a: Value, b: Value) -> Value:
    """Return a comparison of two floats by integers."""
    if a is b:
        return Value(op, bool_, (a, b))  # a test for NaN
    if op == "ne":
        return ~_compare("eq", a, b)
    return Value(op, bool_, (_order(a), _order(b))) & eq(a, a) & eq(b, b)


def _cast(x: Value, dtype: DType) -> Value:
    """Return a cast from or to float32."""
    if dtype is bool_:
        return ne(magnitude_bits(x), 0)
    if dtype is float64:
        subnormal = cast(magnitude_bits(x), float64) * 2.0**-149
        subnormal = where(bitcast(x, int32) < 0, -subnormal, subnormal)
        return where(_is_tiny(x), subnormal, cast(x, float64))
    size = where(x < 0.0, -x, x)  # a float64
    tiny = size < 2.0**-126
    units = cast(rint(where(tiny, size, 0.0) * 2.0**149), uint32)
    narrow = cast(x, float32)
    return where(tiny, bitcast(units | sign_bit(narrow), float32), narrow)


# --- rules ---------------------------------------------------------------------------------------


def exact_operation(v: Value, args: tuple[Value, ...], capabilities: Capabilities) -> Value | None:
    """Return a float32 operation that keeps subnormals; None for operations that are exact."""
    if v.op in _ARITHMETIC and v.dtype is float32:
        return _ARITHMETIC[v.op](*args)
    if v.op == "fma" and v.dtype is float32:
        return integer_fma(args)
    if v.op == "div" and v.dtype is float32:
        divide = divide_directly if capabilities.int64 else divide_by_digits
        return integer_quotient(*args, divide=divide)
    if v.op in ("trunc", "floor", "rint") and v.dtype is float32:
        return _round(v.op, *args)
    if v.op in ("lt", "le", "eq", "ne") and args[0].dtype is float32:
        return _compare(v.op, *args)
    if v.op == "cast" and (args[0].dtype, v.dtype) in _CASTS:
        return _cast(args[0], v.dtype)
    return None


_ARITHMETIC: dict[str, Callable[..., Value]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "neg": flip_sign,
    "sqrt": _square_root,
}
_CASTS = ((float32, bool_), (float32, float64), (float64, float32))


class _CombineCloner(Cloner):
    """A cloner of a combine's operations, which have no division and no fma."""

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the operation with subnormals kept; None for other operations."""
        return exact_operation(v, args, Capabilities())


def exact_combine(rule: Combine) -> Combine:
    """Return a combine whose float32 operations keep subnormals."""
    cloner = _CombineCloner()
    body = cloner.block(rule.body)
    return rule._replace(
        name=rule.name + EXACT_SUFFIX,
        body=tuple(s for s in body if isinstance(s, Value)),
        result=cloner.operands(rule.result),
    )
