"""The dtype float8_e4m3: one sign bit, four bits of exponent and three of fraction.

The format is E4M3 of the Open Compute Project's "OFP8": no infinities, so that the largest number
is 448; larger numbers become NaN. PyTorch and ml_dtypes call it float8_e4m3fn.
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

NAN = 0x7F


def encode(x: Value) -> Value:
    """Return the code nearest to a float32, of two equally near ones the even code.

    Below 2^-6 the sum with 2^14 rounds, because its last bit is 2^-9, as that of all small codes.
    """
    bits = bitcast(x, uint32)
    size = bits & 0x7FFFFFFF
    normal = ((size + ((size >> 20) & 1) + 0x7FFFF) >> 20) - (120 << 3)
    denormal = bitcast(bitcast(size, float32) + 16384.0, uint32) - 0x46800000
    code = choose(size < 0x3C800000, denormal, normal)
    code = choose(size > 0x43E80000, NAN, code)  # 464, half way beyond 448, goes to 448: it is even
    return cast(code | ((bits >> 24) & 0x80), uint8)


def decode(bits: Value) -> Value:
    """Return the value of a code, exactly."""
    wide = cast(bits, uint32)
    size = wide & 0x7F
    denormal = bitcast(cast(size, float32) * 2.0**-9, uint32)
    magnitude = choose(size < 8, denormal, (size << 20) + (120 << 23))
    magnitude = choose(size < NAN, magnitude, const(0x7FC00000, uint32))
    return bitcast(magnitude | ((wide & 0x80) << 24), float32)


@hookimpl
def dovetail_dtype_info() -> DTypeInfo:
    """Return the description of the dtype."""
    return DTypeInfo(
        name="float8_e4m3",
        code="e4m3",
        itemsize=1,
        encode=encode,
        decode=decode,
        digits=4,
        max=448.0,
        smallest_normal=2.0**-6,
        smallest=2.0**-9,
        infinities=False,
        dlpack=10,
        safetensors=("F8_E4M3", "float8_e4m3fn"),
        elsewhere=("float8_e4m3fn",),
    )
