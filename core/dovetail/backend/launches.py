"""The base of backends that bind launches once and then run them often."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ..dtypes import DType, float32, float64
from ..errors import InternalError
from ..ir.builder import Kernel
from .interface import Backend, Compiled, Handles, Launch, Scalar, StreamHandle

Packed = TypeVar("Packed")  # the result of packing: bytes, or None for packing in place


class BindingBackend(Backend):
    """A backend with bound launches: it implements `bound`, and inherits `bind` and `launch`."""

    @abstractmethod
    def bound(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a launch with fixed ints and grid, whose numbers fit the kernel's parameters."""

    def bind(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a bound launch. Raises: InternalError if the sizes do not fit the kernel."""
        check_sizes(program.kernel, ints, grid)
        return self.bound(program, ints, grid)

    def launch(
        self,
        program: Compiled,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[Scalar],
        grid: Sequence[int],
        stream: StreamHandle = None,
    ) -> None:
        """Bind a launch, and run it."""
        self.bind(program, ints, grid)(buffers, scalars, stream)


def check_sizes(kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> None:
    """Raise InternalError if the number of integers or axes is not that of the kernel."""
    if len(ints) != len(kernel.ints) or len(grid) != len(kernel.grid):
        text = f"a launch with {len(ints)} ints and a grid of {len(grid)} axes"
        raise InternalError(text, kernel)


def scalar_argument(dtype: DType) -> Callable[[Scalar], np.generic]:
    """Return a function that converts a Python number to a kernel's scalar argument of a dtype.

    Integers wrap, floats overflow to infinity.
    """
    if dtype.kind == "b":
        return lambda x: np.uint8(bool(x))
    numpy = np.dtype(dtype.__numpy_dtype__).type
    if dtype.kind == "f":
        return numpy
    below, low = 1 << dtype.bits, int(dtype.min)
    return lambda x: numpy((int(x) - low) % below + low)


def struct_format(dtype: DType, bytes_min: int = 1) -> str:
    """Return the letter of a number in a format of `struct`, such as "f" for float32.

    - `dtype`: its dtype: a bool, an integer, float32 or float64.
    - `bytes_min`: the least size; a narrower integer is extended to it.

    Raises: InternalError for other dtypes.
    """
    if dtype.kind not in "biu" and dtype not in (float32, float64):
        raise InternalError("struct_format: no format for the dtype", dtype)
    size = max(dtype.itemsize, bytes_min).bit_length() - 1
    letter = "bhiqfd"[size + 2 * (dtype.kind == "f")]
    return letter.upper() if dtype.kind in "bu" else letter


def argument_packer(
    pack: Callable[..., Packed], dtypes: Sequence[DType]
) -> Callable[[Sequence[int], Sequence[Scalar]], Packed]:
    """Return a function that packs integers, then scalars; those out of range wrap or overflow.

    For example `argument_packer(struct.Struct("<Qf").pack, [float32])([address], [0.5])`.

    - `pack`: the method `pack` of a `struct.Struct`, or `pack_into` with its first arguments.
    - `dtypes`: the dtypes of the scalars.
    """
    convert = [scalar_argument(d) for d in dtypes]

    def pack_arguments(integers: Sequence[int], scalars: Sequence[Scalar]) -> Packed:
        """Pack the arguments of a launch."""
        try:
            return pack(*integers, *scalars)
        except (struct.error, OverflowError):
            with np.errstate(over="ignore"):
                numbers = [f(x).item() for f, x in zip(convert, scalars, strict=True)]
            return pack(*integers, *numbers)

    return pack_arguments


def place_offsets(kernel: Kernel, ints: Sequence[int], buffers: Handles) -> list[int]:
    """Return the integers of a launch, with the first element of each buffer.

    A backend with `offset_params` calls it at each launch, and binds whole allocations.

    - `kernel`: the compiled kernel.
    - `ints`: the integers that `bind` got, with 0 in place of each first element.
    - `buffers`: handle and byte offset of each buffer.
    """
    placed = list(ints)
    for (name, itemsize), offset in zip(kernel.offset_ints, buffers[1::2], strict=True):
        placed[kernel.ints.index(name)] = offset // itemsize
    return placed
