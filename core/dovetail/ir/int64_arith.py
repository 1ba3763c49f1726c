"""Integers of 64 bits as two words of 32 each, for devices that have no larger ones.

`Words` is (low, high), both uint32, of an int64 or a uint64; `signed` tells the two apart. A
comparison is a bool, a shift has its amount in one word. No operation here traps, for any operands,
as in the kernel IR.
"""

from __future__ import annotations

import math

from ..dtypes import DType, bool_, float32, float64, int32, int64, uint32, uint64
from .language import Value, bitcast, cast, const, eq, ne, quo, trunc, where

Words = tuple[Value, Value]

HALF_MASK = 0xFFFF
WORD_MASK = 0xFFFFFFFF
WORD_BASE = float(1 << 32)


def is_wide(d: DType) -> bool:
    """Return True if a dtype is an integer of 64 bits."""
    return d is int64 or d is uint64


def word_constant(n: int) -> Value:
    """Return a constant of one word: the low bits of `n`."""
    return const(n & WORD_MASK, uint32)


def constant(n: int) -> Words:
    """Return a constant of two words."""
    return word_constant(n), word_constant(n >> 32)


# --- sums and products ---------------------------------------------------------------------------


def add(a: Words, b: Words) -> Words:
    """Return a + b, which wraps."""
    low = a[0] + b[0]
    return low, a[1] + b[1] + cast(low < a[0], uint32)


def sub(a: Words, b: Words) -> Words:
    """Return a - b, which wraps."""
    return a[0] - b[0], a[1] - b[1] - cast(a[0] < b[0], uint32)


def neg(a: Words) -> Words:
    """Return the two words of -a as IR values; the least int64 gives itself."""
    return word_constant(0) - a[0], cast(eq(a[0], 0), uint32) - a[1] - 1


def mul(a: Words, b: Words) -> Words:
    """Return a * b, which wraps."""
    return a[0] * b[0], _high_product(a[0], b[0]) + a[0] * b[1] + a[1] * b[0]


def _high_product(a: Value, b: Value) -> Value:
    """Return the high word of a product of two words; no partial sum wraps."""
    (a0, a1), (b0, b1) = _split_halves(a), _split_halves(b)
    first = a1 * b0 + ((a0 * b0) >> 16)
    second = a0 * b1 + (first & HALF_MASK)
    return a1 * b1 + (first >> 16) + (second >> 16)


def _split_halves(x: Value) -> tuple[Value, Value]:
    """Return the low and the high 16 bits of a word; constants fold."""
    if x.op == "const":
        return word_constant(int(x.number) & HALF_MASK), word_constant(int(x.number) >> 16)
    return x & HALF_MASK, x >> 16


# --- bits ----------------------------------------------------------------------------------------


def shift(op: str, a: Words, amount: Value, signed: bool) -> Words:
    """Return `a` shifted by "shl" or "shr"; `amount` is the low word of the amount: 0 to 63."""
    if amount.op == "const":
        return _shift_by_constant(op, a, int(amount.number) & 63, signed)
    by, far = amount & 31, ne(amount & 32, 0)
    low, high = a
    if op == "shl":
        moved = low << by
        across = (low >> 1) >> (by ^ 31)  # in two shifts: their sum, 32 - by, may be 32
        return where(far, 0, moved), where(far, moved, (high << by) | across)
    moved, sign = _shr(high, by, signed), _sign_word(high, signed)
    across = (high << 1) << (by ^ 31)
    return where(far, moved, (low >> by) | across), where(far, sign, moved)


def _shift_by_constant(op: str, a: Words, n: int, signed: bool) -> Words:
    """Return `a` shifted by "shl" or "shr" by `n` bits, 0 to 63."""
    if n == 0:
        return a
    low, high = a
    if op == "shl":
        if n >= 32:
            return word_constant(0), low << (n - 32)
        return low << n, (high << n) | (low >> (32 - n))
    if n >= 32:
        return _shr(high, word_constant(n - 32), signed), _sign_word(high, signed)
    return (low >> n) | (high << (32 - n)), _shr(high, word_constant(n), signed)


def _shr(high: Value, amount: Value, signed: bool) -> Value:
    """Return the high word shifted right: arithmetically if signed, else with zeros."""
    if not signed:
        return high >> amount
    return bitcast(bitcast(high, int32) >> cast(amount, int32), uint32)


def _sign_word(high: Value, signed: bool) -> Value:
    """Return the word above the high one: copies of its sign bit if signed, else 0."""
    return bitcast(bitcast(high, int32) >> 31, uint32) if signed else word_constant(0)


def is_negative(a: Words) -> Value:
    """Return True where an int64 is below 0."""
    return bitcast(a[1], int32) < 0


# --- comparisons ---------------------------------------------------------------------------------


def less(a: Words, b: Words, signed: bool) -> Value:
    """Return a < b."""
    highs = [bitcast(x, int32) if signed else x for x in (a[1], b[1])]
    return (highs[0] < highs[1]) | (eq(a[1], b[1]) & (a[0] < b[0]))


def compare(op: str, a: Words, b: Words, signed: bool) -> Value:
    """Return the comparison `op`: "eq", "ne", "lt" or "le"."""
    if op in ("eq", "ne"):
        differs = ne((a[0] ^ b[0]) | (a[1] ^ b[1]), 0)
        return differs if op == "ne" else ~differs
    return less(a, b, signed) if op == "lt" else ~less(b, a, signed)


def select(c: Value, a: Words, b: Words) -> Words:
    """Return `a` where `c` is true, else `b`."""
    return where(c, a[0], b[0]), where(c, a[1], b[1])


# --- quotients -----------------------------------------------------------------------------------


def divide_by_half(a: Words, divisor: Value) -> tuple[Words, Words]:
    """Return quotient and remainder of an unsigned number by 1 to 65535, by digits of 16 bits."""
    remainder: Value = word_constant(0)
    digits = []
    for half in (*_split_halves(a[1])[::-1], *_split_halves(a[0])[::-1]):
        part = (remainder << 16) | half
        digit = quo(part, divisor)
        remainder = part - digit * divisor
        digits.append(digit)
    high, low = ((digits[k] << 16) | digits[k + 1] for k in (0, 2))
    return (low, high), (remainder, word_constant(0))


def division_step(a: Words, remainder: Words, divisor: Words) -> tuple[Words, Words]:
    """Return `a` and the remainder after one of 64 steps of a division.

    The step moves the top bit of `a` to the remainder, and appends a bit of the quotient to `a`.
    """
    carry = remainder[1] >> 31  # bit 65 of the remainder
    remainder = remainder[0] << 1 | a[1] >> 31, remainder[1] << 1 | remainder[0] >> 31
    fits = ne(carry, 0) | ~less(remainder, divisor, False)
    a = a[0] << 1 | cast(fits, uint32), a[1] << 1 | a[0] >> 31
    return a, select(fits, sub(remainder, divisor), remainder)


# --- casts ---------------------------------------------------------------------------------------


def widen(x: Value) -> Words:
    """Return a bool, an integer of at most 32 bits or a float as 64 bits."""
    if x.dtype.kind == "f":
        return _truncate_float(x)
    low = cast(x, uint32)
    return low, _sign_word(low, True) if x.dtype.kind == "i" else word_constant(0)


def _truncate_float(x: Value) -> Words:
    """Return a float rounded towards zero as 64 bits, negative ones in two's complement."""
    negative = x < 0.0
    size = trunc(where(negative, -x, x))
    high = trunc(size * (1 / WORD_BASE))  # exact, and so is the difference below
    words = cast(size - high * WORD_BASE, uint32), cast(high, uint32)
    return select(negative, neg(words), words)


def narrow(a: Words, d: DType, signed: bool) -> Value:
    """Return 64 bits as a bool, an integer of at most 32 bits, or the nearest float."""
    if d is bool_:
        return ne(a[0] | a[1], 0)
    if d is float64:
        high = bitcast(a[1], int32) if signed else a[1]
        return cast(high, float64) * WORD_BASE + cast(a[0], float64)  # only the sum rounds
    if d is not float32:
        return cast(a[0], d)
    if not signed:
        return _round_to_float32(a)
    negative = is_negative(a)
    size = _round_to_float32(select(negative, neg(a), a))
    return where(negative, -size, size)


def _round_to_float32(a: Words) -> Value:
    """Return an unsigned number as float32, from its first 27 bits or more.

    The last of these bits is sticky.
    """
    dropped: Value = word_constant(0)
    for below, bits in ((0, 6), (6, 12), (12, 18), (18, 24), (24, 30), (30, 32)):
        dropped = where(ne(a[1] >> below, 0), bits, dropped)
    truncated, _ = shift("shr", a, dropped, False)
    back = shift("shl", (truncated, word_constant(0)), dropped, False)
    sticky = cast(compare("ne", back, a, False), uint32)
    return cast(truncated | sticky, float32) * bitcast((dropped + 127) << 23, float32)


# --- the bits of a float64, by arithmetic alone ---------------------------------------------------

_STEPS = tuple(1 << k for k in range(9, -1, -1))  # 512 to 1: steps of a binary search of exponents
_INFINITE, _NAN = 0x7FF00000, 0x7FF80000  # high words


def bits_of(x: Value) -> Words:
    """Return the bits of a float64; every NaN gives the quiet NaN of its sign."""
    sign = bitcast(cast(x, float32), uint32) >> 31
    size = where(x < 0.0, -x, x)
    below_one = size < 1.0
    exponent = where(below_one, const(1, uint32), 1023)  # biased
    m = where(below_one, size * 2.0**1022, size)
    for k in _STEPS:
        large = m >= 2.0**k
        m, exponent = where(large, m * 2.0**-k, m), where(large, exponent + k, exponent)
    fraction = where(size < 2.0**-1022, size * 2.0**537 * 2.0**537, (m - 1.0) * 2.0**52)
    high = trunc(fraction * (1 / WORD_BASE))
    low = cast(fraction - high * WORD_BASE, uint32)
    exponent = where(size < 2.0**-1022, 0, exponent)
    word_above = cast(high, uint32) | (exponent << 20)
    special = ne(x, x) | eq(size, math.inf)
    word_above = where(special, where(ne(x, x), word_constant(_NAN), _INFINITE), word_above)
    return where(special, 0, low), word_above | (sign << 31)


def float_of(a: Words) -> Value:
    """Return the float64 of these bits."""
    low, high = a
    exponent = (high >> 20) & 0x7FF
    fraction = cast(high & 0xFFFFF, float64) * WORD_BASE + cast(low, float64)
    x = (fraction * 2.0**-52 + 1.0) * 2.0**-1022
    beyond = where(eq(exponent, 0), const(1, uint32), exponent) - 1
    for k in (512, 512, *_STEPS):
        applies = beyond >= k
        x, beyond = where(applies, x * 2.0**k, x), where(applies, beyond - k, beyond)
    x = where(eq(exponent, 0), fraction * 2.0**-1074, x)
    special = where(eq(fraction, 0.0), const(math.inf, float64), math.nan)
    x = where(eq(exponent, 0x7FF), special, x)
    return where(ne(high >> 31, 0), -x, x)
