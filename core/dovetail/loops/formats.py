"""Floats of reduced precision that plugins bring: what a description has to say, and its check.

`TO_BITS` and `FROM_BITS` of `legalize` do the rest: in every kernel, on every device.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .. import dtypes as D
from ..dtypes import DType, Format, float32
from ..errors import DTypeError
from .builder import Kernel, KernelBuilder
from .language import Value, load
from .legalize import BITS_OF, FROM_BITS, TO_BITS
from .verify import verify

INTERFACE = (1, 0)  # of dtype plugins; the group of entry points carries the first number
SIZES = (1, 2)
_DLPACK_S = 6  # up to this one its type codes are of integers, IEEE 754's, bfloat16, complex, bool
_OWN_CODES = r"BOOL|BF16|[CFIU]\d+"  # in safetensors


@dataclass(frozen=True)
class DTypeInfo:
    """A float of reduced precision, stored in one or two bytes and computed in float32.

    `name`: as in `dt.float8_e4m3`. `code`: as in kernel texts, a letter and then letters or digits.
    `encode`: a float32 `Value` as the bits of the nearest number (ties to even), an unsigned
    integer of `itemsize` bytes. `decode`: the other way, exactly. The first bit is the sign, the
    rest ascends with the size, 0 being zero.
    `digits` of the significand, the first one included; `max`, `smallest_normal` and `smallest`:
    its numbers; `infinities`: whether it has them.
    `dlpack`: DLPack's type code. `safetensors`: its names in the header of a file and in its
    library. `elsewhere`: names of dtypes of other libraries (ml_dtypes) with the same bits.
    """

    name: str
    code: str
    itemsize: int
    encode: Callable[[Value], Value]
    decode: Callable[[Value], Value]
    digits: int
    max: float
    smallest_normal: float
    smallest: float
    infinities: bool = True
    dlpack: int | None = None
    safetensors: tuple[str, str] | None = None
    elsewhere: tuple[str, ...] = ()
    minimum_interface: tuple[int, int] = INTERFACE

    @property
    def format(self) -> Format:
        """What it holds."""
        return Format(self.digits, self.max, self.smallest_normal, self.smallest, self.infinities)


INFOS: dict[DType, DTypeInfo] = {}  # of the dtypes of plugins that are in use


def install(info: DTypeInfo) -> DType:
    """The dtype of a description, known from now on by its name and code.

    Raises: DTypeError for a description that cannot be right: a name or code that another dtype
    has, a size that is none, an encode or decode that gives something else than it should.
    """
    check(info)
    made = DType(info.name, info.code, "f", info.itemsize, in_numpy=False)
    TO_BITS[made], FROM_BITS[made] = info.encode, info.decode
    INFOS[made] = info
    D.add(made, info.format)
    return made


def uninstall(d: DType) -> None:
    """Makes a plugin's dtype unknown again, for tests."""
    D.forget(d)
    del TO_BITS[d], FROM_BITS[d], INFOS[d]


def check(info: DTypeInfo) -> None:
    """Raises: DTypeError, as `install`, with what is wrong."""
    if not info.name.isidentifier() or not re.fullmatch("[a-z][a-z0-9]*", info.code):
        raise _wrong(info, f"a name is an identifier, a code [a-z][a-z0-9]*, not {info.code!r}")
    for known, given in ((D.BY_NAME, info.name), (D.BY_CODE, info.code)):
        if given in known:
            raise _wrong(info, f"{given!r} is what dovetail.{known[given].name} is called")
    if info.itemsize not in SIZES:
        raise _wrong(
            info,
            f"itemsize {info.itemsize!r}: elements are one or two whole bytes; numbers of fewer "
            "bits or with a scale in common are a layout (docs/writing-a-layout.md)",
        )
    numbers = (info.smallest, info.smallest_normal, info.max)
    if not 2 <= info.digits <= 23 or not 0.0 < numbers[0] <= numbers[1] < numbers[2]:
        raise _wrong(info, f"{info.digits} digits and 0 < {numbers} ascending are no format")
    for d, other in INFOS.items():
        if info.dlpack is not None and (other.dlpack, d.itemsize) == (info.dlpack, info.itemsize):
            raise _wrong(info, f"DLPack's type code {info.dlpack} is that of dovetail.{d.name}")
        if info.safetensors is not None and other.safetensors == info.safetensors:
            raise _wrong(info, f"{info.safetensors} is what safetensors calls dovetail.{d.name}")
    if info.dlpack is not None and info.dlpack <= _DLPACK_S:
        raise _wrong(info, f"DLPack's type code {info.dlpack} is that of numbers of dovetail's own")
    if info.safetensors is not None and re.fullmatch(_OWN_CODES, info.safetensors[0]):
        raise _wrong(info, f"{info.safetensors[0]} is a dtype of dovetail's own in safetensors")
    bits = BITS_OF[info.itemsize]
    _traced(info, "encode", float32, bits)
    _traced(info, "decode", bits, float32)


def _traced(info: DTypeInfo, which: str, given: DType, wanted: DType) -> None:
    try:
        conversion(getattr(info, which), given, wanted)
    except Exception as error:
        if isinstance(error, DTypeError) and str(error).startswith(_PREFIX):
            raise _wrong(info, f"{which} {str(error).removeprefix(_PREFIX)}") from None
        raise _wrong(info, f"{which} raises {type(error).__name__}: {error}") from error


_PREFIX = "conversion: "


def conversion(change: Callable[[Value], Value], given: DType, wanted: DType) -> Kernel:
    """A kernel that converts an array: `encode` or `decode` alone, as the reference can run it.

    Raises: DTypeError where what comes out is of another dtype than `wanted`.
    """
    b = KernelBuilder("conversion")
    x, y = b.buffer("x", given, "r"), b.buffer("y", wanted, "w")
    i = b.axis(b.int("n"))
    found = change(load(x, i))
    if not isinstance(found, Value) or found.dtype is not wanted:
        what = found.dtype.name if isinstance(found, Value) else type(found).__name__
        raise DTypeError(f"{_PREFIX}gives {what} of {given.name}, and not {wanted.name}")
    b.store(y, i, found)
    made = b.build()
    verify(made)
    return made


def _wrong(info: DTypeInfo, what: str) -> DTypeError:
    return DTypeError(f"dtype {info.name!r}: {what}")
