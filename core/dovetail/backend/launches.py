"""Launches that are prepared once: what backends with a `bind` of their own have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from ..dtypes import DType
from ..errors import InternalError
from ..loops.builder import Kernel
from .interface import Backend, Compiled, Handles, Launch, Scalar, StreamHandle


class BindingBackend(Backend):
    """A backend that prepares its launches: `bound` is what it writes, `launch` follows."""

    @abstractmethod
    def bound(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """As `bind`, with as many integers and axes as the program's kernel has."""

    def bind(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """A prepared launch. Raises: InternalError where the sizes do not fit the kernel."""
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
        """Binds, and launches that."""
        self.bind(program, ints, grid)(buffers, scalars, stream)


def scalar_argument(dtype: DType) -> Callable[[Scalar], np.generic]:
    """What makes a kernel's scalar argument of a Python number, as its dtype holds it.

    Integers wrap, floats overflow to infinity.
    """
    if dtype.kind == "b":
        return lambda x: np.uint8(bool(x))
    numpy = np.dtype(dtype.__numpy_dtype__).type
    if dtype.kind == "f":
        return numpy
    below, low = 1 << dtype.bits, int(dtype.min)
    return lambda x: numpy((int(x) - low) % below + low)
