"""Conversions of floats of reduced precision to bits and back, in kernel IR; plugins add theirs."""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import UNSIGNED, DType, bfloat16, float16, float32, uint16, uint32
from .language import Value, bitcast, cast, const, ne, where


def _bfloat16_bits(x: Value) -> Value:
    """Return a float32 rounded to bfloat16, as bits; a NaN stays one, quiet."""
    bits = bitcast(x, uint32)
    rounded = bits + ((bits >> 16) & 1) + 0x7FFF
    return cast(where(ne(x, x), bits | 0x400000, rounded) >> 16, uint16)


def _bfloat16_value(bits: Value) -> Value:
    """Return the bits of a bfloat16 as the equal float32."""
    return bitcast(cast(bits, uint32) << 16, float32)


def _float16_bits(x: Value) -> Value:
    """Return a float32 rounded to float16, as bits.

    Below 2^-14 the sum with 0.5 rounds: its last bit is 2^-24, as that of a denormal float16.
    """
    bits = bitcast(x, uint32)
    size = bits & 0x7FFFFFFF
    normal = ((size + ((size >> 13) & 1) + 0xFFF) >> 13) - (112 << 10)
    denormal = bitcast(bitcast(size, float32) + 0.5, uint32) - 0x3F000000
    half = where(size < 0x38800000, denormal, normal)
    half = where(size >= 0x477FF000, 0x7C00, half)  # 65520, half way beyond the largest
    half = where(size > 0x7F800000, ((size >> 13) & 0x1FF) | 0x7E00, half)
    return cast(half | ((bits >> 16) & 0x8000), uint16)


def _float16_value(bits: Value) -> Value:
    """Return the bits of a float16 as the equal float32."""
    wide = cast(bits, uint32)
    size = wide & 0x7FFF
    # the first for infinity and NaN, the second for normal numbers
    rebased = where(size >= 0x7C00, const(224 << 23, uint32), 112 << 23)
    denormal = bitcast(cast(size, float32) * 2.0**-24, uint32)
    magnitude = where(size < 0x400, denormal, (size << 13) + rebased)
    return bitcast(magnitude | ((wide & 0x8000) << 16), float32)


UNSIGNED_BY_ITEMSIZE = {d.itemsize: d for d in UNSIGNED}
# Conversions of floats of reduced precision to bits, and to float32; plugins add theirs.
TO_BITS: dict[DType, Callable[[Value], Value]] = {float16: _float16_bits, bfloat16: _bfloat16_bits}
FROM_BITS: dict[DType, Callable[[Value], Value]] = {
    float16: _float16_value,
    bfloat16: _bfloat16_value,
}
