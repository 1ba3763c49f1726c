"""The dtype float8_e5m2: one sign bit, five bits of exponent and two of fraction.

It is the upper byte of a float16. PyTorch and ml_dtypes have the same name for it.
"""

from __future__ import annotations

from dovetail.extend import (
    DTypeInfo,
    Value,
    bitcast,
    cast,
    choose,
    const,
    float32,
    hookimpl,
    uint8,
    uint32,
)


def encode(x: Value) -> Value:
    """Return the code nearest to a float32.

    Below 2^-14 the sum with 128 rounds, because its last bit is 2^-16.
    """
    bits = bitcast(x, uint32)
    magnitude = bits & 0x7FFFFFFF
    normal = ((magnitude + ((magnitude >> 21) & 1) + 0xFFFFF) >> 21) - (112 << 2)
    denormal = bitcast(bitcast(magnitude, float32) + 128.0, uint32) - 0x43000000
    code = choose(magnitude < 0x38800000, denormal, normal)
    code = choose(magnitude >= 0x47700000, 0x7C, code)  # 61440, half way above the largest number
    code = choose(magnitude > 0x7F800000, 0x7E, code)
    return cast(code | ((bits >> 24) & 0x80), uint8)


def decode(code: Value) -> Value:
    """Return the value of a code, exactly."""
    bits = cast(code, uint32)
    magnitude = bits & 0x7F
    bias = choose(magnitude >= 0x7C, const(224 << 23, uint32), 112 << 23)  # infinite or NaN, finite
    denormal = bitcast(cast(magnitude, float32) * 2.0**-16, uint32)
    value = choose(magnitude < 4, denormal, (magnitude << 21) + bias)
    return bitcast(value | ((bits & 0x80) << 24), float32)


@hookimpl
def dovetail_dtype_info() -> DTypeInfo:
    """Return the description of the dtype."""
    return DTypeInfo(
        name="float8_e5m2",
        code="e5m2",
        itemsize=1,
        encode=encode,
        decode=decode,
        digits=3,
        max=57344.0,
        smallest_normal=2.0**-14,
        smallest=2.0**-16,
        dlpack=12,
        safetensors=("F8_E5M2", "float8_e5m2"),
        elsewhere=("float8_e5m2",),
    )
