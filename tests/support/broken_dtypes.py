"""A small honest dtype, and variants with one error each.

Each must be caught: by the registry if the description is invalid, otherwise by the dtype kit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dovetail.extend import (
    DTypeInfo,
    Value,
    bitcast,
    cast,
    choose,
    const,
    float32,
    float64,
    hookimpl,
    ne,
    uint8,
    uint16,
    uint32,
)


def encode(x: Value) -> Value:
    """Encode float8_e5m2: two bits of fraction, as float16 without its lower byte."""
    bits = bitcast(x, uint32)
    size = bits & 0x7FFFFFFF
    normal = ((size + ((size >> 21) & 1) + 0xFFFFF) >> 21) - (112 << 2)
    denormal = bitcast(bitcast(size, float32) + 128.0, uint32) - 0x43000000
    code = choose(size < 0x38800000, denormal, normal)
    code = choose(size >= 0x47700000, 0x7C, code)
    code = choose(size > 0x7F800000, 0x7E, code)
    return cast(code | ((bits >> 24) & 0x80), uint8)


def decode(bits: Value) -> Value:
    wide = cast(bits, uint32)
    size = wide & 0x7F
    rebased = choose(size >= 0x7C, const(224 << 23, uint32), 112 << 23)
    denormal = bitcast(cast(size, float32) * 2.0**-16, uint32)
    magnitude = choose(size < 4, denormal, (size << 21) + rebased)
    return bitcast(magnitude | ((wide & 0x80) << 24), float32)


HONEST = DTypeInfo(
    name="honest8", code="h8", itemsize=1, encode=encode, decode=decode, digits=3, max=57344.0,
    smallest_normal=2.0**-14, smallest=2.0**-16, dlpack=12,
    safetensors=("F8_E5M2", "float8_e5m2"), elsewhere=("float8_e5m2",),
)  # fmt: skip


class Plugin:
    """A plugin that offers one dtype, under the name of its info unless `entry` is another."""

    def __init__(self, info: Any, entry: str = "", shown_by: str = "", sign: str = "") -> None:
        self.info, self.entry = info, entry or info.name
        # part of the kit that detects it, and a part of its message
        self.shown_by, self.sign = shown_by, sign

    @hookimpl
    def dovetail_dtype_info(self) -> Any:
        return self.info


honest8 = Plugin(HONEST)


def lie(name: str, entry: str = "", shown_by: str = "", sign: str = "", **wrong: Any) -> Plugin:
    code = "l" + name.replace("_", "")
    return Plugin(replace(HONEST, **{"name": name, "code": code, **wrong}), entry, shown_by, sign)


def raises(x: Value) -> Value:
    raise ZeroDivisionError("in encode")


# --- detected when it is loaded
# ---------------------------------------------------------------------

others_name = lie("float16", sign="is a built-in dtype of dovetail")
others_code = lie("others_code", code="f16", sign="'f16' already names dovetail.float16")
other_entry = lie("other_entry", "promised", sign='named "promised" but its info says')
too_large = lie("too_large", itemsize=2, sign="encode must return uint16 for float32, got uint8")
too_small = lie(
    "too_small",
    encode=lambda x: cast(encode(x), uint16),
    sign="encode must return uint8 for float32, got uint16",
)
half_a_byte = lie("half_a_byte", itemsize=0.5, sign="itemsize must be 1 or 2 bytes")
three_bytes = lie("three_bytes", itemsize=3, sign="itemsize must be 1 or 2 bytes")
in_float64 = lie(
    "in_float64",
    decode=lambda b: cast(decode(b), float64),
    sign="decode must return float32 for uint8, got float64",
)
not_a_value = lie(
    "not_a_value", decode=lambda b: 1.0, sign="decode must return float32 for uint8, got float"
)
raising = lie("raising", encode=raises, sign="encode raises ZeroDivisionError: in encode")
no_format = lie("no_format", max=-1.0, sign="digits must be from 2")
bad_code = lie("bad_code", code="f 8", sign="code must match [a-z]")
others_bits = lie("others_bits", dlpack=1, sign="type code 1 already belongs to a built-in")
others_file = lie(
    "others_file", safetensors=("F16", "float16"), sign="F16 already belongs to a built-in"
)
newer = lie("newer", minimum_interface=(1, 9), sign="needs dtype interface 1.9")
no_info = Plugin("a dtype", "no_info", sign="must return a DTypeInfo")
REFUSED = (
    "others_code", "other_entry", "too_large", "too_small", "half_a_byte", "three_bytes",
    "in_float64", "not_a_value", "raising", "no_format", "bad_code", "newer", "no_info",
    "others_name", "others_bits", "others_file",
)  # fmt: skip

# --- detected by the kit --------------------------------------------------------------------------


def _bits(x: Value) -> Value:
    return bitcast(x, uint32)


def truncated(x: Value) -> Value:
    """Round towards zero."""
    bits = _bits(x)
    cut = bits & 0xFFE00000
    return encode(choose(ne(x, x), x, bitcast(cut, float32)))


def ties_away(x: Value) -> Value:
    """Round ties to the larger."""
    bits = _bits(x)
    tie = ne(bits & 0x1FFFFF, 0x100000)
    return encode(choose(tie, x, bitcast(bits + 1, float32)))


def flushed(x: Value) -> Value:
    """Flush denormals to zero."""
    size = _bits(x) & 0x7FFFFFFF
    return encode(choose(size < 0x38800000, x * 0.0, x))


def saturated(x: Value) -> Value:
    """Map too large numbers and infinity to the largest number."""
    code = encode(x)
    size = code & 0x7F
    return choose(size < 0x7C, code, choose(ne(x, x), code, (code & 0x80) | 0x7B))


def forgets_nan(x: Value) -> Value:
    return choose(ne(x, x), const(0, uint8), encode(x))


def forgets_sign(x: Value) -> Value:
    return encode(x) & 0x7F


def forgets_sign_of_zero(x: Value) -> Value:
    code = encode(x)
    return choose(ne(code & 0x7F, 0), code, const(0, uint8))


def off_by_one(x: Value) -> Value:
    code = encode(x)
    return choose(ne(code & 0x7F, 0x3C), code, code + 1)


def nothing(bits: Value) -> Value:
    return bitcast(cast(bits, uint32) * 0 + 0x7FC00000, float32)


def sloppy(bits: Value) -> Value:
    """Decode one as slightly more."""
    return choose(ne(bits, 0x3C), decode(bits), const(1.0000001, float32))


def descending(bits: Value) -> Value:
    return decode(bits ^ 0x03)


def unsigned(bits: Value) -> Value:
    """Read the sign from the other end."""
    return decode((bits >> 1) | ((bits & 1) << 7))


def coarse(bits: Value) -> Value:
    return decode(bits & 0xFE)


all_nan = lie("all_nan", decode=nothing, shown_by="codes_are_numbers", sign="are numbers")
not_ascending = lie("not_ascending", decode=descending, shown_by="codes_are_numbers",
                    sign="")  # fmt: skip
sign_last = lie("sign_last", decode=unsigned, shown_by="codes_are_numbers", sign="")
joined = lie("joined", decode=coarse, shown_by="codes_are_numbers", sign="below the next ones")
inexact = lie("inexact", decode=sloppy, shown_by="limits", sign="digits")
not_nearest = lie("not_nearest", encode=truncated, shown_by="nearest", sign="differ")
not_even = lie("not_even", encode=ties_away, shown_by="nearest", sign="differ")
no_denormals = lie("no_denormals", encode=flushed, shown_by="round_trip", sign="differ")
largest = lie("largest", encode=saturated, shown_by="special_values", sign="differ")
no_nan = lie("no_nan", encode=forgets_nan, shown_by="special_values", sign="NaN becomes")
no_sign = lie("no_sign", encode=forgets_sign, shown_by="round_trip", sign="differ")
one_zero = lie("one_zero", encode=forgets_sign_of_zero, shown_by="special_values", sign="differ")
not_inverse = lie("not_inverse", encode=off_by_one, shown_by="round_trip", sign="differ")
wrong_digits = lie("wrong_digits", digits=4, shown_by="limits", sign="digits")
wrong_max = lie("wrong_max", max=65504.0, shown_by="limits", sign="max is 57344.0")
wrong_smallest = lie("wrong_smallest", smallest=2.0**-24, shown_by="limits", sign="smallest is")
wrong_normal = lie("wrong_normal", smallest_normal=2.0**-13, shown_by="limits", sign="")
no_infinities = lie("no_infinities", infinities=False, shown_by="codes_are_numbers",
                    sign="infinities: True")  # fmt: skip
BROKEN = (
    "all_nan", "not_ascending", "sign_last", "joined", "inexact", "not_nearest", "not_even",
    "no_denormals", "largest", "no_nan", "no_sign", "one_zero", "not_inverse", "wrong_digits",
    "wrong_max", "wrong_smallest", "wrong_normal", "no_infinities",
)  # fmt: skip
