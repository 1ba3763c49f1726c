"""Floats of reduced precision that plugins bring: their descriptions, checks and registration.

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
_DLPACK_BUILT_IN_MAX = 6  # DLPack's codes up to it: integers, IEEE floats, bfloat16, complex, bool
_BUILT_IN_SAFETENSORS = r"BOOL|BF16|[CFIU]\d+"


@dataclass(frozen=True)
class DTypeInfo:
    """A float of reduced precision, stored in one or two bytes and computed in float32.

    `name`: as in `dt.float8_e4m3`. `code`: as in kernel texts, a letter and then letters or digits.
    `encode`: a function from a float32 `Value` to the bits of the nearest number (ties to even), an
    unsigned integer of `itemsize` bytes. `decode`: the inverse function, exact. The first bit is
    the sign, the other bits ascend with the size, 0 being zero. `digits` of the significand, the
    first one included; `max`, `smallest_normal` and `smallest`: its numbers; `infinities`: True if
    it has them.
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
        """The precision and the range of its numbers."""
        return Format(self.digits, self.max, self.smallest_normal, self.smallest, self.infinities)


INFOS: dict[DType, DTypeInfo] = {}  # the descriptions of plugins' dtypes that are in use


def install(info: DTypeInfo) -> DType:
    """Register the dtype of a description by its name and code, and return it.

    Raises: DTypeError for a description that cannot be right: a name or code that another dtype
    has, a size that is none, an encode or decode that gives something else than it should.
    """
    check(info)
    dtype = DType(info.name, info.code, "f", info.itemsize, in_numpy=False)
    TO_BITS[dtype], FROM_BITS[dtype] = info.encode, info.decode
    INFOS[dtype] = info
    D.add(dtype, info.format)
    return dtype


def uninstall(d: DType) -> None:
    """Remove a plugin's dtype again, for tests."""
    D.forget(d)
    del TO_BITS[d], FROM_BITS[d], INFOS[d]


def check(info: DTypeInfo) -> None:
    """Check a description. Raises: DTypeError, as `install`, with what is wrong."""
    if not info.name.isidentifier() or not re.fullmatch("[a-z][a-z0-9]*", info.code):
        raise _wrong(info, f"a name is an identifier, a code [a-z][a-z0-9]*, not {info.code!r}")
    for registry, key in ((D.BY_NAME, info.name), (D.BY_CODE, info.code)):
        if key in registry:
            raise _wrong(info, f"{key!r} is what dovetail.{registry[key].name} is called")
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
    if info.dlpack is not None and info.dlpack <= _DLPACK_BUILT_IN_MAX:
        raise _wrong(info, f"DLPack's type code {info.dlpack} is that of numbers of dovetail's own")
    if info.safetensors is not None and re.fullmatch(_BUILT_IN_SAFETENSORS, info.safetensors[0]):
        raise _wrong(info, f"{info.safetensors[0]} is a dtype of dovetail's own in safetensors")
    bits = BITS_OF[info.itemsize]
    _check_conversion(info, "encode", float32, bits)
    _check_conversion(info, "decode", bits, float32)


def _check_conversion(info: DTypeInfo, which: str, source: DType, target: DType) -> None:
    """Trace `encode` or `decode`. Raises: DTypeError if it fails or gives another dtype."""
    try:
        conversion(getattr(info, which), source, target)
    except Exception as error:
        if isinstance(error, DTypeError) and str(error).startswith(_PREFIX):
            raise _wrong(info, f"{which} {str(error).removeprefix(_PREFIX)}") from None
        raise _wrong(info, f"{which} raises {type(error).__name__}: {error}") from error


_PREFIX = "conversion: "


def conversion(change: Callable[[Value], Value], given: DType, wanted: DType) -> Kernel:
    """Return a kernel that converts an array by `encode` or `decode`, as the reference can run it.

    Raises: DTypeError if the result is of another dtype than `wanted`.
    """
    b = KernelBuilder("conversion")
    x, y = b.buffer("x", given, "r"), b.buffer("y", wanted, "w")
    i = b.axis(b.int("n"))
    result = change(load(x, i))
    if not isinstance(result, Value) or result.dtype is not wanted:
        what = result.dtype.name if isinstance(result, Value) else type(result).__name__
        raise DTypeError(f"{_PREFIX}gives {what} of {given.name}, and not {wanted.name}")
    b.store(y, i, result)
    kernel = b.build()
    verify(kernel)
    return kernel


def _wrong(info: DTypeInfo, what: str) -> DTypeError:
    return DTypeError(f"dtype {info.name!r}: {what}")
