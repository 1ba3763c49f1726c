"""The base of backends that bind launches once and then run them often."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from ..dtypes import DType
from ..errors import InternalError
from ..ir.builder import Kernel
from .interface import Backend, Compiled, Handles, Launch, Scalar, StreamHandle


class BindingBackend(Backend):
    """A backend with bound launches: it implements `bound`, and inherits `bind` and `launch`."""

    @abstractmethod
    def bound(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a launch with fixed ints and grid, whose numbers fit the kernel's parameters."""

    def bind(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a bound launch. Raises: InternalError if the sizes do not fit the kernel."""
        k: Kernel = program.kernel
        if len(ints) != len(k.ints) or len(grid) != len(k.grid):
            raise InternalError(f"a launch with {len(ints)} ints and a grid of {len(grid)} axes", k)
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
