"""Floats of reduced precision that plugins bring: their descriptions, checks and registration.

`legalize` does the rest with their conversions: in every kernel, on every device.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .. import dtypes as D
from ..dtypes import DType, FloatFormat, float32
from ..errors import DTypeError
from .builder import Kernel, KernelBuilder
from .float_bits import FROM_BITS, TO_BITS, UNSIGNED_BY_ITEMSIZE
from .language import Value, load
from .verify import verify

INTERFACE = (1, 0)  # of dtype plugins; the group of entry points carries the first number
ITEMSIZES = (1, 2)
_DLPACK_BUILT_IN_MAX = 6  # DLPack's codes up to it: integers, IEEE floats, bfloat16, complex, bool
_BUILT_IN_SAFETENSORS = r"BOOL|BF16|[CFIU]\d+"


@dataclass(frozen=True)
class DTypeInfo:
    """A float of reduced precision, stored in one or two bytes and computed in float32.

    The first bit is the sign, the other bits ascend with the size, 0 being zero.

    - `name`: the name, as in `dt.float8_e4m3`.
    - `code`: the code in kernel texts: a letter and then letters or digits.
    - `itemsize`: the bytes of a number, 1 or 2.
    - `encode`: a function from a float32 `Value` to the bits of the nearest number (ties to even),
      an unsigned integer of `itemsize` bytes.
    - `decode`: the inverse function, exact.
    - `digits`: the digits of the significand, the first one included.
    - `max`, `smallest_normal`, `smallest`: the largest, the smallest normal and the smallest
      positive number.
    - `infinities`: True if it has them.
    - `dlpack`: DLPack's type code; None if it has none.
    - `safetensors`: its names in the header of a file and in the library.
    - `elsewhere`: names of dtypes of other libraries (ml_dtypes) with the same bits.
    - `minimum_interface`: the least interface (major, minor) that the plugin needs.
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
    def format(self) -> FloatFormat:
        """The precision and the range of its numbers."""
        return FloatFormat(
            self.digits, self.max, self.smallest_normal, self.smallest, self.infinities
        )


DTYPE_INFOS: dict[DType, DTypeInfo] = {}  # the descriptions of plugins' dtypes that are in use


def install(info: DTypeInfo) -> DType:
    """Register the dtype of a description by its name and code, and return it.

    Raises: DTypeError for a description that cannot be right: a name or code that another dtype
    has, a size that is none, an encode or decode that gives something else than it should.
    """
    check_info(info)
    dtype = DType(info.name, info.code, "f", info.itemsize, in_numpy=False)
    TO_BITS[dtype], FROM_BITS[dtype] = info.encode, info.decode
    DTYPE_INFOS[dtype], D.FOREIGN_NAMES[dtype] = info, info.elsewhere
    D.register_dtype(dtype, info.format)
    return dtype


def uninstall(d: DType) -> None:
    """Remove a plugin's dtype from all registries, for tests."""
    D.unregister_dtype(d)
    del TO_BITS[d], FROM_BITS[d], DTYPE_INFOS[d], D.FOREIGN_NAMES[d]


def check_info(info: DTypeInfo) -> None:
    """Check a description without registering it. Raises: DTypeError that names the wrong field."""
    if not info.name.isidentifier() or not re.fullmatch("[a-z][a-z0-9]*", info.code):
        raise _dtype_error(
            info,
            "name must be an identifier, and code must match [a-z][a-z0-9]*, got "
            f"name={info.name!r}, code={info.code!r}",
        )
    for registry, key in ((D.BY_NAME, info.name), (D.BY_CODE, info.code)):
        if key in registry:
            raise _dtype_error(info, f"{key!r} already names dovetail.{registry[key].name}")
    if info.itemsize not in ITEMSIZES:
        raise _dtype_error(
            info,
            f"itemsize must be 1 or 2 bytes, got {info.itemsize!r}; write a layout for numbers of "
            "fewer bits or with a shared scale (docs/writing-a-layout.md)",
        )
    numbers = (info.smallest, info.smallest_normal, info.max)
    if not 2 <= info.digits <= 23 or not 0.0 < numbers[0] <= numbers[1] < numbers[2]:
        raise _dtype_error(
            info,
            "digits must be from 2 to 23, and (smallest, smallest_normal, max) positive and "
            f"ascending, got {info.digits} and {numbers}",
        )
    for d, other in DTYPE_INFOS.items():
        if info.dlpack is not None and (other.dlpack, d.itemsize) == (info.dlpack, info.itemsize):
            raise _dtype_error(
                info, f"dlpack: the type code {info.dlpack} already belongs to dovetail.{d.name}"
            )
        if info.safetensors is not None and other.safetensors == info.safetensors:
            raise _dtype_error(
                info, f"safetensors: {info.safetensors} already belongs to dovetail.{d.name}"
            )
    if info.dlpack is not None and info.dlpack <= _DLPACK_BUILT_IN_MAX:
        raise _dtype_error(
            info, f"dlpack: the type code {info.dlpack} already belongs to a built-in dtype"
        )
    if info.safetensors is not None and re.fullmatch(_BUILT_IN_SAFETENSORS, info.safetensors[0]):
        raise _dtype_error(
            info, f"safetensors: {info.safetensors[0]} already belongs to a built-in dtype"
        )
    bits = UNSIGNED_BY_ITEMSIZE[info.itemsize]
    _check_conversion(info, "encode", float32, bits)
    _check_conversion(info, "decode", bits, float32)


def _check_conversion(info: DTypeInfo, direction: str, source: DType, target: DType) -> None:
    """Raise DTypeError unless `encode` or `decode` can be traced to `target`."""
    try:
        build_conversion_kernel(getattr(info, direction), source, target)
    except Exception as error:
        if isinstance(error, DTypeError) and str(error).startswith(_ERROR_PREFIX):
            raise _dtype_error(
                info, f"{direction} {str(error).removeprefix(_ERROR_PREFIX)}"
            ) from None
        raise _dtype_error(info, f"{direction} raises {type(error).__name__}: {error}") from error


_ERROR_PREFIX = "conversion: "


def build_conversion_kernel(
    convert: Callable[[Value], Value], source: DType, target: DType
) -> Kernel:
    """Return a kernel that converts an array by `encode` or `decode`, as the reference can run it.

    Raises: DTypeError if the result is of another dtype than `target`.
    """
    b = KernelBuilder("conversion")
    x, y = b.buffer("x", source, "r"), b.buffer("y", target, "w")
    i = b.axis(b.int("n"))
    result = convert(load(x, i))
    if not isinstance(result, Value) or result.dtype is not target:
        what = result.dtype.name if isinstance(result, Value) else type(result).__name__
        raise DTypeError(f"{_ERROR_PREFIX}must return {target.name} for {source.name}, got {what}")
    b.store(y, i, result)
    kernel = b.build()
    verify(kernel)
    return kernel


def _dtype_error(info: DTypeInfo, problem: str) -> DTypeError:
    """Return a DTypeError, for the caller to raise, that names the dtype and the problem."""
    return DTypeError(f"dtype {info.name!r}: {problem}")
