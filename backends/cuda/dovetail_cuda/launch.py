"""Launches: arguments are packed for the driver; a launch writes those that change."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from operator import add
from typing import Any

import numpy as np
from dovetail.extend import Handles, Kernel, Launch, Scalar, StreamHandle, scalar_argument

from . import driver as cuda
from .compile import CudaFunction, CudaProgram
from .render import LaunchShape
from .schedule import launch_shape

SLOT_BYTES = 8  # bytes of an argument: no type is wider
_FORMATS = {
    "bool": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}


def bind(
    enter: Callable[[], None], program: CudaProgram, ints: Sequence[int], grid: Sequence[int]
) -> Launch:
    """Choose the schedule for these sizes; return the function that queues `program`."""
    k = program.kernel
    schedule, function, ints, grid = program.best(ints, grid)
    return CudaLaunch(enter, k, function, ints, launch_shape(k, schedule, grid)).launch


class PackedArguments:
    """The arguments of one launch, packed.

    Slots: addresses, scalars, then integers, which are written once. The driver gets an array of
    pointers to them, in the order of the kernel's parameters, and copies what they point to.
    """

    def __init__(self, k: Kernel, ints: Sequence[int]) -> None:
        self.kernel = k
        count, changing = len(k.buffers), len(k.buffers) + len(k.scalars)
        formats = [f"{_FORMATS[d.name]}{SLOT_BYTES - d.itemsize}x" for _, d in k.scalars]
        self._pack = struct.Struct("<" + "Q" * count + "".join(formats)).pack_into
        self._slots = ctypes.create_string_buffer(SLOT_BYTES * max(1, changing + len(ints)))
        struct.pack_into(f"<{len(ints)}q", self._slots, SLOT_BYTES * changing, *ints)
        order = [*range(count), *range(changing, changing + len(ints)), *range(count, changing)]
        base = ctypes.addressof(self._slots)
        self._pointers = (ctypes.c_void_p * max(1, len(order)))(
            *(base + SLOT_BYTES * i for i in order)
        )
        self.address = ctypes.addressof(self._pointers)

    def write(self, addresses: Sequence[int], scalars: Sequence[Scalar]) -> None:
        """Write addresses and scalars into the slots; scalars out of range wrap or overflow."""
        try:
            self._pack(self._slots, 0, *addresses, *scalars)
        except (struct.error, OverflowError):
            self._pack(self._slots, 0, *addresses, *self._convert_scalars(scalars))

    def _convert_scalars(self, scalars: Sequence[Scalar]) -> list[Any]:
        """Return numbers as their dtypes hold them: integers wrap, floats overflow to infinity."""
        pairs = zip(self.kernel.scalars, scalars, strict=True)
        with np.errstate(over="ignore"):
            return [scalar_argument(d)(x).item() for (_, d), x in pairs]


class CudaLaunch:
    """A launch with everything fixed but buffers, scalars and stream."""

    def __init__(
        self,
        enter: Callable[[], None],
        k: Kernel,
        function: CudaFunction,
        ints: Sequence[int],
        shape: LaunchShape,
    ) -> None:
        self.enter, self.kernel, self.ints, self.shape = enter, k, ints, shape
        self.owner, self.function = (
            function,
            function.handle,
        )  # the reference keeps its module loaded
        self.free = [PackedArguments(k, ints)]
        self.launch_kernel = cuda.driver.cuLaunchKernel

    def launch(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        """Pack the arguments in free slots, and queue the kernel.

        The driver copies the arguments. A finalizer before it has, and another thread, gets slots
        of its own.

        Raises: MemoryError if the driver is out of memory, CudaError if it refuses the launch
        otherwise.
        """
        addresses = [*map(add, buffers[::2], buffers[1::2])]
        try:
            arguments = self.free.pop()
        except IndexError:
            arguments = PackedArguments(self.kernel, self.ints)
        arguments.write(addresses, scalars)
        self.enter()
        status = self.launch_kernel(
            self.function, *self.shape, 0, stream or 0, arguments.address, 0
        )[0]
        self.free.append(arguments)
        if status != 0:
            raise cuda.status_error(status, f"launching {self.kernel.name}")
