"""The fma of float64 by integers of 128 bits, for devices that have none.

The product of two significands is exact in 106 bits. It is added to the third one in 128 bits, with
a sticky last bit, and rounded once, also to the fewer bits of a denormal result.
"""

from __future__ import annotations

from ..dtypes import float64, int32, uint64
from .language import Value, bitcast, cast, const, eq, ne, where

Wide = tuple[Value, Value]  # an unsigned number of 128 bits: its low and its high 64 bits

_SIGNIFICAND_MASK, _SIGN_MASK = (1 << 52) - 1, 1 << 63
_INFINITY = 0x7FF0 << 48  # as bits
_ZERO_POWER = -5000  # of a term that is 0: far below those of all others


def soft_fma64(a: Value, b: Value, c: Value) -> Value:
    """Return a * b + c of float64, rounded once."""
    sizes = [bitcast(x, uint64) & (_SIGN_MASK - 1) for x in (a, b, c)]
    signs = [bitcast(x, uint64) >> 63 for x in (a, b, c)]
    (ma, ea), (mb, eb), (mc, ec) = map(_split_float, sizes)
    has_no_product, has_no_addend = eq(sizes[0], 0) | eq(sizes[1], 0), eq(sizes[2], 0)
    # The product and the addend as up to 124 bits, times a power of two.
    product = _shift_left(_multiply(ma, mb), 18)
    product = _select(has_no_product, (const(0, uint64), const(0, uint64)), product)
    addend = const(0, uint64), where(has_no_addend, 0, mc << 7)
    powers = (
        where(has_no_product, _ZERO_POWER, ea + eb - (2 * 1075 + 18)),
        where(has_no_addend, _ZERO_POWER, ec - (1075 + 71)),
    )
    distance = powers[0] - powers[1]
    product = _shift_right_sticky(product, -distance)
    addend = _shift_right_sticky(addend, distance)
    power = where(distance < 0, powers[1], powers[0])
    negative = signs[0] ^ signs[1], signs[2]
    differ, below = ne(negative[0], negative[1]), _is_less(product, addend)
    larger, smaller = _select(below, addend, product), _select(below, product, addend)
    total = _select(differ, _subtract(larger, smaller), _add(product, addend))
    sign = where(differ & below, negative[1], negative[0])
    is_zero = eq(total[0] | total[1], 0)
    # The sum is 0 only if both are 0 or cancel: then it is +0 unless both are negative.
    sign = where(is_zero, negative[0] & negative[1], sign)
    total, power = _normalize(total, power)
    sticky = cast(ne((total[1] & 255) | total[0], 0), uint64)
    bits = where(is_zero, 0, _assemble_float64((total[1] >> 8) | sticky, power + 1150))
    result = bitcast(bits | (sign << 63), float64)
    special = [size >= _INFINITY for size in sizes]
    result = where(special[2], c, result)
    return where(special[0] | special[1], a * b + c, result)


def _split_float(size: Value) -> tuple[Value, Value]:
    """Return the 53-bit significand and the biased exponent (int32) of |x|, given as bits.

    A denormal is its bits times 2^-1074; the float64 that equals its bits has no leading zeros.
    """
    tiny = size <= _SIGNIFICAND_MASK
    bits = where(tiny, bitcast(cast(size, float64), uint64), size)
    exponent = cast(bits >> 52, int32) - where(tiny, const(1074, int32), 0)
    return (bits & _SIGNIFICAND_MASK) | (_SIGNIFICAND_MASK + 1), exponent


def _assemble_float64(significand: Value, exponent: Value) -> Value:
    """Return the bits of the float64 nearest (ties to even) a 56-bit significand.

    The last bit of the significand is sticky.
    """
    denormal = exponent < 1
    dropped = where(denormal, 4 - exponent, 3)
    dropped = cast(where(dropped < 60, dropped, 60), uint64)
    truncated = significand >> dropped
    remainder, half = significand - (truncated << dropped), const(1, uint64) << (dropped - 1)
    up = (half < remainder) | (eq(remainder, half) & eq(truncated & 1, 1))
    too_large = exponent > 2046
    base = cast(where(denormal | too_large, 0, exponent - 1), uint64) << 52
    bits = base + truncated + cast(up, uint64)  # a carry raises the exponent, as it should
    return where(too_large, _INFINITY, bits)


# --- unsigned numbers of 128 bits -----------------------------------------------------------------


def _multiply(a: Value, b: Value) -> Wide:
    """Return the product of two numbers below 2^54, by halves of 27 bits."""
    (a0, a1), (b0, b1) = ((x & ((1 << 27) - 1), x >> 27) for x in (a, b))
    middle, top = a1 * b0 + a0 * b1, a1 * b1
    lower = _add((a0 * b0, const(0, uint64)), (middle << 27, middle >> 37))
    return _add(lower, (top << 54, top >> 10))


def _add(a: Wide, b: Wide) -> Wide:
    """Return a + b, which is below 2^128."""
    low = a[0] + b[0]
    return low, a[1] + b[1] + cast(low < a[0], uint64)


def _subtract(a: Wide, b: Wide) -> Wide:
    """Return a - b, which is not negative."""
    return a[0] - b[0], a[1] - b[1] - cast(a[0] < b[0], uint64)


def _is_less(a: Wide, b: Wide) -> Value:
    """Return True where a < b."""
    return (a[1] < b[1]) | (eq(a[1], b[1]) & (a[0] < b[0]))


def _select(c: Value, a: Wide, b: Wide) -> Wide:
    """Return `a` where `c` is true, else `b`."""
    return where(c, a[0], b[0]), where(c, a[1], b[1])


def _shift_left(a: Wide, n: int) -> Wide:
    """Return `a` shifted left by 1 to 63 bits."""
    return a[0] << n, (a[1] << n) | (a[0] >> (64 - n))


def _shift_right_sticky(a: Wide, shift: Value) -> Wide:
    """Return `a` shifted right by `shift`, if positive; its last bit is 1 if bits were lost."""
    by = where(shift < 0, const(0, int32), where(shift < 127, shift, 127))
    far, near = by >= 64, cast(by & 63, uint64)
    low, high = _select(far, (a[1], const(0, uint64)), a)
    lost = (far & ne(a[0], 0)) | ne((low >> near) << near, low)
    moved = (low >> near) | ((high << 1) << (63 - near))
    return moved | cast(lost, uint64), high >> near


def _normalize(a: Wide, power: Value) -> tuple[Wide, Value]:
    """Return `a` without leading zeros, and the power of two that makes up for the shift."""
    empty = eq(a[1], 0)
    a, power = _select(empty, (const(0, uint64), a[0]), a), where(empty, power - 64, power)
    for k in (32, 16, 8, 4, 2, 1):
        low = a[1] < 1 << (64 - k)
        a, power = _select(low, _shift_left(a, k), a), where(low, power - k, power)
    return a, power
