"""Passes of `legalize` for devices whose float32 operations are not exact, or missing.

Division, square root and fma are computed through float64, or through integers without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..dtypes import float32, float64, int32, int64, uint32, uint64
from .analysis import values
from .language import Value, bitcast, cast, const, eq, ne, quo, sqrt, where
from .rewrite import rewrite_kernel
from .soft_fma64 import soft_fma64
from .target import Capabilities

if TYPE_CHECKING:
    from .builder import Kernel

# (two significands, True if the first is the lower) -> 26 bits of the quotient, and the remainder
DivisionRule = Callable[[Value, Value, Value], tuple[Value, Value]]

# --- division and square root --------------------------------------------------------------------


def lower_float32_division(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return the kernel with float32 division and square root by float64 or integers.

    Source: Figueroa, When is double rounding innocuous? SIGNUM Newsletter 30(3), 1995: the 53 bits
    of float64 are at least 2 * 24 + 2.
    """
    if kernel.fast_math or capabilities.exact_division:
        return kernel
    if not any(_is_division(v) for v in values(kernel.body)):
        return kernel
    if capabilities.float64:
        return rewrite_kernel(kernel, _divide_in_float64)
    return rewrite_kernel(kernel, _divide_in_integers if capabilities.int64 else _divide_in_words)


def _is_division(v: Value) -> bool:
    """Return True for a float32 division or square root."""
    return v.op in ("div", "sqrt") and v.dtype is float32


def _divide_in_float64(v: Value, args: tuple[Value, ...]) -> Value | None:
    """Return a float32 division or square root by float64 arithmetic; None for other values."""
    if not _is_division(v):
        return None
    wide = [cast(a, float64) for a in args]
    return cast(sqrt(wide[0]) if v.op == "sqrt" else wide[0] / wide[1], float32)


def _divide_in_integers(v: Value, args: tuple[Value, ...]) -> Value | None:
    """Return a float32 division or square root by 64-bit integers; None for other values."""
    if not _is_division(v):
        return None
    if v.op == "sqrt":
        return _integer_sqrt(*args)
    return integer_quotient(*args, divide=divide_directly)


def _divide_in_words(v: Value, args: tuple[Value, ...]) -> Value | None:
    """Return a division like `_divide_in_integers`, without a 64-bit quotient; None for others."""
    if not _is_division(v):
        return None
    if v.op == "sqrt":
        return _integer_sqrt(*args)
    return integer_quotient(*args, divide=divide_by_digits)


_INFINITY, _NAN = 0x7F800000, 0x7FC00000


def significand_and_exponent(x: Value) -> tuple[Value, Value]:
    """Return the 24-bit significand (uint32) and the biased exponent (int32) of a finite float32.

    A denormal is its bits times 2^-149; the float32 that equals its bits is free of leading zeros.
    """
    size = bitcast(x, uint32) & 0x7FFFFFFF
    tiny = size < 0x800000
    bits = where(tiny, bitcast(cast(size, float32), uint32), size)
    exponent = cast(bits >> 23, int32) - where(tiny, const(149, int32), 0)
    return (bits & 0x7FFFFF) | 0x800000, exponent


def _wide_significand_and_exponent(x: Value) -> tuple[Value, Value]:
    """Return what `significand_and_exponent` returns, with the significand as uint64."""
    significand, exponent = significand_and_exponent(x)
    return cast(significand, uint64), exponent


def assemble_float32(significand: Value, exponent: Value) -> Value:
    """Return the bits of the float32 nearest (ties to even) a 27-bit significand.

    The last bit of the significand is sticky.
    """
    denormal = exponent < 1
    dropped = where(denormal, 4 - exponent, 3)
    dropped = cast(where(dropped < 31, dropped, 31), uint32)
    truncated = significand >> dropped
    remainder, half = significand - (truncated << dropped), const(1, uint32) << (dropped - 1)
    up = (half < remainder) | (eq(remainder, half) & eq(truncated & 1, 1))
    base = cast(where(denormal, 0, exponent - 1), uint32) << 23
    bits = base + truncated + cast(up, uint32)  # a carry raises the exponent, as it should
    return where(bits < _INFINITY, bits, _INFINITY)


def _append_sticky_bit(root: Value, remainder: Value) -> Value:
    """Return the root with one more bit, which is 1 if there is a remainder."""
    return cast((root << 1) | cast(ne(remainder, 0), uint64), uint32)


def divide_directly(ma: Value, mb: Value, below: Value) -> tuple[Value, Value]:
    """Return 26 bits of ma / mb as uint64, and the remainder."""
    dividend = where(below, ma << 26, ma << 25)
    quotient = quo(dividend, mb)
    return quotient, dividend - quotient * mb


def divide_by_digits(ma: Value, mb: Value, below: Value) -> tuple[Value, Value]:
    """Return 26 bits of ma / mb and the remainder, in steps of 8 bits.

    A remainder of 24 bits and a digit of 8 fit a word.
    """
    ma, mb = cast(ma, uint32), cast(mb, uint32)
    quotient: Value = const(1, uint32)
    remainder = where(below, ma << 1, ma) - mb
    for bits in (8, 8, 8, 1):
        part = remainder << bits
        digit = quo(part, mb)
        quotient, remainder = (quotient << bits) | digit, part - digit * mb
    return cast(quotient, uint64), remainder


def integer_quotient(a: Value, b: Value, *, divide: DivisionRule) -> Value:
    """Return a / b for float32, correctly rounded, by integer arithmetic."""
    (ma, ea), (mb, eb) = map(_wide_significand_and_exponent, (a, b))
    below = ma < mb  # in that case the quotient's first bit is one place lower
    quotient, remainder = divide(ma, mb, below)
    exponent = ea - eb + where(below, const(126, int32), 127)
    bits = assemble_float32(_append_sticky_bit(quotient, remainder), exponent)
    sizes = [bitcast(x, uint32) & 0x7FFFFFFF for x in (a, b)]
    (a_zero, b_zero), (a_inf, b_inf) = ([eq(s, n) for s in sizes] for n in (0, _INFINITY))
    bits = where(a_inf | b_zero, _INFINITY, where(a_zero | b_inf, 0, bits))
    bits = bits | ((bitcast(a, uint32) ^ bitcast(b, uint32)) & 0x80000000)
    is_nan = ne(a, a) | ne(b, b) | (a_inf & b_inf) | (a_zero & b_zero)
    return bitcast(where(is_nan, _NAN, bits), float32)


def _integer_sqrt(x: Value) -> Value:
    """Return the square root, corrected from the device's own by integer arithmetic.

    The device's root is off by at most 3 units in the last place, as in OpenCL.
    """
    m, e = _wide_significand_and_exponent(x)
    odd = eq(e & 1, 0)  # of the unbiased exponent
    m = where(odd, m << 1, m)
    target = m << 27  # its root has 26 bits
    near = sqrt(cast(m, float32) * 2.0**-23) * 2.0**25
    root = cast(near, uint64) - 32  # 3 units in the last place near 2 are up to 24 here
    for step in (32, 16, 8, 4, 2, 1):
        more = root + step
        root = where(more * more <= target, more, root)
    exponent = ((e - where(odd, const(128, int32), 127)) >> 1) + 127
    bits = assemble_float32(_append_sticky_bit(root, target - root * root), exponent)
    plain = (x > 0.0) & (x < math.inf)
    return bitcast(where(plain, bits, where(x < 0.0, _NAN, bitcast(x, uint32))), float32)


# --- fma -----------------------------------------------------------------------------------------


def lower_fma(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return the kernel with each fma as products and sums, or by integers, on devices without.

    Source of that of float32 in float64: Boldo and Melquiond 2008, as for `reference.fma`.
    """
    if not capabilities.has_fma64 and any(v.op == "fma" for v in values(kernel.body)):
        kernel = rewrite_kernel(kernel, _soft_fma64)
    if capabilities.fma or not any(_is_fma(v) for v in values(kernel.body)):
        return kernel
    return rewrite_kernel(kernel, _fma_in_float64 if capabilities.float64 else _fma_in_integers)


def _soft_fma64(v: Value, args: tuple[Value, ...]) -> Value | None:
    """Return an fma of float64 by integers; None for other values."""
    return soft_fma64(*args) if v.op == "fma" and v.dtype is float64 else None


def _is_fma(v: Value) -> bool:
    """Return True for a float32 fma."""
    return v.op == "fma" and v.dtype is float32


def _fma_in_float64(v: Value, args: tuple[Value, ...]) -> Value | None:
    """Return a float32 fma as a float64 sum, rounded to odd, then to float32; None for others.

    The product is exact in float64.
    """
    if not _is_fma(v):
        return None
    a, b, c = (cast(x, float64) for x in args)
    product = a * b
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = bitcast(total, int64)
    is_exact_or_odd = eq(error, 0.0) | eq(bits & 1, 1) | ne(total - total, 0.0)
    step = where((error > 0.0) ^ (total > 0.0), const(-1, int64), 1)
    away = where(is_exact_or_odd, const(0, int64), step)
    return cast(bitcast(bits + away, float64), float32)


def _fma_in_integers(v: Value, args: tuple[Value, ...]) -> Value | None:
    """Return a float32 fma by 64-bit integers; None for other values."""
    return integer_fma(args) if _is_fma(v) else None


def integer_fma(args: Sequence[Value]) -> Value:
    """Return a * b + c for float32, rounded once, by 64-bit integers."""
    sizes = [bitcast(x, uint32) & 0x7FFFFFFF for x in args]
    signs = [bitcast(x, uint32) >> 31 for x in args]
    (ma, ea), (mb, eb), (mc, ec) = map(_wide_significand_and_exponent, args)
    product_is_zero = eq(sizes[0], 0) | eq(sizes[1], 0)
    addend_is_zero = eq(sizes[2], 0)
    # the product and the addend as 61 or 62 bits, times a power of two
    a, b = where(product_is_zero, 0, (ma * mb) << 14), where(addend_is_zero, 0, mc << 38)
    powers = where(product_is_zero, -2000, ea + eb - 314), where(addend_is_zero, -2000, ec - 188)
    distance = powers[0] - powers[1]
    a, b = _shift_right_sticky(a, -distance), _shift_right_sticky(b, distance)
    power = where(distance < 0, powers[1], powers[0])
    negative = signs[0] ^ signs[1], signs[2]
    differ = ne(negative[0], negative[1])
    # one difference of 62 bits, whose sign tells which is larger
    difference = cast(a - b, int64)
    is_below = difference < 0
    total = where(differ, cast(where(is_below, -difference, difference), uint64), a + b)
    sign = where(differ & is_below, negative[1], negative[0])
    # The sum is 0 only if both are 0 or cancel: then it is +0 unless both are negative.
    sign = where(eq(total, 0), negative[0] & negative[1], sign)
    for k in (32, 16, 8, 4, 2, 1):
        low = total < 1 << (63 - k)
        total, power = where(low, total << k, total), where(low, power - k, power)
    has_remainder = ne(total & ((1 << 36) - 1), 0)
    significand = cast((total >> 36) | cast(has_remainder, uint64), uint32)
    bits = where(eq(total, 0), 0, assemble_float32(significand, power + 189))
    bits = bits | (sign << 31)
    bits = where(sizes[2] < _INFINITY, bits, bitcast(args[2], uint32))
    product_is_special = (sizes[0] >= _INFINITY) | (sizes[1] >= _INFINITY)
    bits = where(product_is_special, (negative[0] << 31) | _INFINITY, bits)
    is_nan = product_is_special & (product_is_zero | (differ & eq(sizes[2], _INFINITY)))
    for size in sizes:
        is_nan = is_nan | (size > _INFINITY)
    return bitcast(where(is_nan, _NAN, bits), float32)


def _shift_right_sticky(x: Value, places: Value) -> Value:
    """Return `x` shifted right by `places`, if positive; its last bit is 1 if bits were lost."""
    by = where(places < 0, const(0, int32), where(places < 63, places, 63))
    wide = cast(by, uint64)
    shifted = x >> wide
    return shifted | cast(ne(shifted << wide, x), uint64)
