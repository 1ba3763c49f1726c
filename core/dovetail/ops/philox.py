"""Random numbers in the kernel IR: Philox4x32-10, a function of a counter and a key.

The counter is an element's index, the key a seed, so every element can be computed by itself, on
any device, with the same bits.
Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dtypes import float32, float64, uint32, uint64
from ..ir.language import Value, cast, const, eq, floor, fma, sqrt, where
from .coefficients import FORMATS
from .elementary import log
from .float_parts import high_product, poly

ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)

Words = tuple[Value, Value, Value, Value]


def philox(counter: Sequence[Value], key: Sequence[Value]) -> Words:
    """Return four random uint32 of a counter of four uint32 and a key of two."""
    a, b, c, d = counter
    k, m = key
    for r in range(ROUNDS):
        if r:
            k, m = k + _WEYL[0], m + _WEYL[1]
        (high, low), (top, bottom) = (
            _product(v, f) for v, f in zip((a, c), _MULTIPLIERS, strict=True)
        )
        a, b, c, d = top ^ b ^ k, bottom, high ^ d ^ m, low
    return a, b, c, d


def _product(v: Value, factor: int) -> tuple[Value, Value]:
    """Return the upper and lower half of a 64-bit product.

    The lower half is a product of its own, so that compilers see a multiplication for high bits.
    """
    return cast(cast(v, uint64) * factor >> 32, uint32), v * factor


def _split_halves(v: Value) -> tuple[Value, Value]:
    """Return the upper and the lower 32 bits of a uint64."""
    return cast(v >> 32, uint32), cast(v, uint32)


def random_words(index: Value, seed: Value, offset: Value) -> Words:
    """Return the four words that belong to element `index` of a stream, `offset` further on."""
    high, low = _split_halves(cast(index, uint64) + offset)
    top, bottom = _split_halves(seed)
    zero = const(0, uint32)
    return philox((low, high, zero, zero), (bottom, top))


def bits64(index: Value, seed: Value, offset: Value) -> Value:
    """Return 64 random bits."""
    a, b, _, _ = random_words(index, seed, offset)
    return cast(a, uint64) | (cast(b, uint64) << 32)


def uniform32(index: Value, seed: Value, offset: Value, shift: Value, scale: Value) -> Value:
    """Return float32 in 0 <= u < 1: the upper 32 - shift bits of a word times scale.

    The scale is 2**(shift - 32).
    """
    return cast(random_words(index, seed, offset)[0] >> shift, float32) * scale


def uniform64(index: Value, seed: Value, offset: Value) -> Value:
    """Return float64 in 0 <= u < 1, of 53 bits."""
    return cast(bits64(index, seed, offset) >> 11, float64) * 2.0**-53


def uniform_below(index: Value, seed: Value, offset: Value, n: Value, low: Value) -> Value:
    """Return uint64 low + k, 0 <= k < n: the upper half of a 128-bit product.

    N = 0 stands for 2**64.

    No number is more probable than another by more than n / 2**64.
    Source: Lemire, "Fast random integer generation in an interval", 2019, without the rejection.
    """
    r = bits64(index, seed, offset)
    return low + where(eq(n, 0), r, high_product(r, n))


def normal32(index: Value, seed: Value, offset: Value) -> Value:
    """Return a float32 of the normal distribution: sqrt(-2 log u) cos(2 pi v).

    u has 32 bits, v has 24. The largest possible value is sqrt(64 log 2), about 6.66. Source: Box
    and Muller, 1958.
    """
    a, b, _, _ = random_words(index, seed, offset)
    u = (cast(a, float32) + 1.0) * 2.0**-32
    return sqrt(log(u) * -2.0) * _cos_two_pi(cast(b >> 8, float32) * 2.0**-24)


def normal64(index: Value, seed: Value, offset: Value) -> Value:
    """Return a float64 of the normal distribution as `normal32` does, u and v of 53 bits.

    Up to 8.57.
    """
    a, b, c, d = random_words(index, seed, offset)
    u = cast((cast(a, uint64) | (cast(b, uint64) << 32)) >> 11, float64)
    v = cast((cast(c, uint64) | (cast(d, uint64) << 32)) >> 11, float64)
    return sqrt(log((u + 1.0) * 2.0**-53) * -2.0) * _cos_two_pi(v * 2.0**-53)


def _cos_two_pi(v: Value) -> Value:
    """Return cos(2 pi v) for 0 <= v < 1; the reduction to an eighth of a turn is exact."""
    f = FORMATS[v.dtype]
    n = floor(v * 4.0 + 0.5)
    h = (v * 4.0 - n) * (math.pi / 2)
    z = h * h
    cos = fma(z * z, poly(f.cos, z), 1.0 - z * 0.5)
    sin = fma(h * z, poly(f.sin, z), h)
    y = where(eq(n, 1.0) | eq(n, 3.0), sin, cos)
    return where(eq(n, 1.0) | eq(n, 2.0), -y, y)
