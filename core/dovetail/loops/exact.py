"""Passes of `legalize` for devices whose float32 operations are not exact, or missing.

Division, square root and fma through float64, or without it through integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..dtypes import float32, float64, int32, int64, uint32, uint64
from .analysis import values
from .builder import Kernel
from .language import Value, bitcast, cast, const, eq, ne, quo, sqrt, where
from .rewrite import rewrite
from .target import Capabilities

# (significands, whether the first is the lower) -> 26 bits of the quotient, and the rest
Division = Callable[[Value, Value, Value], tuple[Value, Value]]

# --- division and square root --------------------------------------------------------------------


def round_division(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """float32 division and square root through float64 (or, without it, integers).

    Source: Figueroa, When is double rounding innocuous? SIGNUM Newsletter 30(3), 1995: the 53 bits
    of float64 are at least 2 * 24 + 2.
    """
    if capabilities.exact_division or not any(_is_division(v) for v in values(kernel.body)):
        return kernel
    if capabilities.float64:
        return rewrite(kernel, _divide_in_float64)
    return rewrite(kernel, _divide_in_integers if capabilities.int64 else _divide_in_words)


def _is_division(v: Value) -> bool:
    return v.op in ("div", "sqrt") and v.dtype is float32


def _divide_in_float64(v: Value, args: tuple[Value, ...]) -> Value | None:
    if not _is_division(v):
        return None
    wide = [cast(a, float64) for a in args]
    return cast(sqrt(wide[0]) if v.op == "sqrt" else wide[0] / wide[1], float32)


def _divide_in_integers(v: Value, args: tuple[Value, ...]) -> Value | None:
    if not _is_division(v):
        return None
    return _integer_sqrt(*args) if v.op == "sqrt" else _integer_quotient(*args, divided=_at_once)


def _divide_in_words(v: Value, args: tuple[Value, ...]) -> Value | None:
    """As in integers, without a quotient of 64 bits."""
    if not _is_division(v):
        return None
    return _integer_sqrt(*args) if v.op == "sqrt" else _integer_quotient(*args, divided=_by_digits)


_INFINITY, _NAN = 0x7F800000, 0x7FC00000


def _parts(x: Value) -> tuple[Value, Value]:
    """The 24 bits of a finite float32's significand, as uint64, and its biased exponent, as int32.

    A denormal is its bits times 2^-149; the float32 that equals its bits is free of leading zeros.
    """
    size = bitcast(x, uint32) & 0x7FFFFFFF
    tiny = size < 0x800000
    bits = where(tiny, bitcast(cast(size, float32), uint32), size)
    exponent = cast(bits >> 23, int32) - where(tiny, const(149, int32), 0)
    return cast((bits & 0x7FFFFF) | 0x800000, uint64), exponent


def _assembled(significand: Value, exponent: Value) -> Value:
    """The bits of the float32 nearest (ties to even) a 27-bit significand, its last bit sticky."""
    denormal = exponent < 1
    lost = where(denormal, 4 - exponent, 3)
    lost = cast(where(lost < 31, lost, 31), uint32)
    kept = significand >> lost
    rest, half = significand - (kept << lost), const(1, uint32) << (lost - 1)
    up = (half < rest) | (eq(rest, half) & eq(kept & 1, 1))
    base = cast(where(denormal, 0, exponent - 1), uint32) << 23
    bits = base + kept + cast(up, uint32)  # a carry raises the exponent, as it should
    return where(bits < _INFINITY, bits, _INFINITY)


def _sticky(root: Value, rest: Value) -> Value:
    return cast((root << 1) | cast(ne(rest, 0), uint64), uint32)


def _at_once(ma: Value, mb: Value, below: Value) -> tuple[Value, Value]:
    """26 bits of ma / mb, as uint64, and what is left."""
    dividend = where(below, ma << 26, ma << 25)
    quotient = quo(dividend, mb)
    return quotient, dividend - quotient * mb


def _by_digits(ma: Value, mb: Value, below: Value) -> tuple[Value, Value]:
    """The same by digits of 8 bits, as 24 and 8 bits fit a word."""
    ma, mb = cast(ma, uint32), cast(mb, uint32)
    quotient: Value = const(1, uint32)
    rest = where(below, ma << 1, ma) - mb
    for bits in (8, 8, 8, 1):
        part = rest << bits
        digit = quo(part, mb)
        quotient, rest = (quotient << bits) | digit, part - digit * mb
    return cast(quotient, uint64), rest


def _integer_quotient(a: Value, b: Value, *, divided: Division) -> Value:
    (ma, ea), (mb, eb) = _parts(a), _parts(b)
    below = ma < mb  # then the quotient's first bit is one place lower
    quotient, rest = divided(ma, mb, below)
    exponent = ea - eb + where(below, const(126, int32), 127)
    bits = _assembled(_sticky(quotient, rest), exponent)
    sizes = [bitcast(x, uint32) & 0x7FFFFFFF for x in (a, b)]
    (a_zero, b_zero), (a_inf, b_inf) = ([eq(s, n) for s in sizes] for n in (0, _INFINITY))
    bits = where(a_inf | b_zero, _INFINITY, where(a_zero | b_inf, 0, bits))
    bits = bits | ((bitcast(a, uint32) ^ bitcast(b, uint32)) & 0x80000000)
    nothing = ne(a, a) | ne(b, b) | (a_inf & b_inf) | (a_zero & b_zero)
    return bitcast(where(nothing, _NAN, bits), float32)


def _integer_sqrt(x: Value) -> Value:
    """The device's root, mended: it is off by at most 3 units in the last place, as in OpenCL."""
    m, e = _parts(x)
    odd = eq(e & 1, 0)  # of the unbiased exponent
    m = where(odd, m << 1, m)
    target = m << 27  # its root has 26 bits
    near = sqrt(cast(m, float32) * 2.0**-23) * 2.0**25
    root = cast(near, uint64) - 32  # 3 units near 2 are up to 24 of its own
    for step in (32, 16, 8, 4, 2, 1):
        more = root + step
        root = where(more * more <= target, more, root)
    exponent = ((e - where(odd, const(128, int32), 127)) >> 1) + 127
    bits = _assembled(_sticky(root, target - root * root), exponent)
    plain = (x > 0.0) & (x < math.inf)
    return bitcast(where(plain, bits, where(x < 0.0, _NAN, bitcast(x, uint32))), float32)


# --- fma -----------------------------------------------------------------------------------------


def fuse_exactly(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """float32 fma of products and sums, where the device has none; float64 stays (see `floats`).

    Source: Boldo and Melquiond 2008, as for `reference.fma`.
    """
    if capabilities.fma or not any(_is_fma(v) for v in values(kernel.body)):
        return kernel
    return rewrite(kernel, _fma_in_float64 if capabilities.float64 else _fma_in_integers)


def _is_fma(v: Value) -> bool:
    return v.op == "fma" and v.dtype is float32


def _fma_in_float64(v: Value, args: tuple[Value, ...]) -> Value | None:
    """The exact product plus the third number rounded to odd, which may be rounded again."""
    if not _is_fma(v):
        return None
    a, b, c = (cast(x, float64) for x in args)
    product = a * b
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = bitcast(total, int64)
    away = where(eq(error, 0.0) | eq(bits & 1, 1) | ne(total - total, 0.0), const(0, int64),
                 where((error > 0.0) ^ (total > 0.0), const(-1, int64), 1))  # fmt: skip
    return cast(bitcast(bits + away, float64), float32)


def _fma_in_integers(v: Value, args: tuple[Value, ...]) -> Value | None:
    if not _is_fma(v):
        return None
    sizes = [bitcast(x, uint32) & 0x7FFFFFFF for x in args]
    signs = [bitcast(x, uint32) >> 31 for x in args]
    (ma, ea), (mb, eb), (mc, ec) = map(_parts, args)
    none = eq(sizes[0], 0) | eq(sizes[1], 0)  # of the product
    nothing = eq(sizes[2], 0)
    # both as 62 bits or one less, times a power of two
    a, b = where(none, 0, (ma * mb) << 14), where(nothing, 0, mc << 38)
    powers = where(none, -2000, ea + eb - 314), where(nothing, -2000, ec - 188)
    apart = powers[0] - powers[1]
    a, b = _shifted_to_odd(a, -apart), _shifted_to_odd(b, apart)
    power = where(apart < 0, powers[1], powers[0])
    negative = signs[0] ^ signs[1], signs[2]
    differ = ne(negative[0], negative[1])
    total = where(differ, where(a < b, b - a, a - b), a + b)
    sign = where(differ & (a < b), negative[1], negative[0])
    # no sum is 0 but where both are, or where they cancel: then it is +0 unless both are negative
    sign = where(eq(total, 0), negative[0] & negative[1], sign)
    for k in (32, 16, 8, 4, 2, 1):
        low = total < 1 << (63 - k)
        total, power = where(low, total << k, total), where(low, power - k, power)
    rest = ne(total & ((1 << 36) - 1), 0)
    significand = cast((total >> 36) | cast(rest, uint64), uint32)
    bits = where(eq(total, 0), 0, _assembled(significand, power + 189))
    found = bitcast(bits | (sign << 31), float32)
    special = [size >= _INFINITY for size in sizes]
    found = where(special[2], args[2], found)
    return where(special[0] | special[1], args[0] * args[1] + args[2], found)


def _shifted_to_odd(x: Value, places: Value) -> Value:
    """`x` moved down so many places, if any; where bits are lost the last one is 1."""
    by = where(places < 0, const(0, int32), where(places < 63, places, 63))
    wide = cast(by, uint64)
    kept = x >> wide
    return kept | cast(ne(kept << wide, x), uint64)
