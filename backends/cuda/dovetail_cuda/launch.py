"""Launches: arguments are packed for the driver; a launch writes those that change."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import partial
from operator import add

from dovetail.extend import (
    Handles,
    Kernel,
    Launch,
    Scalar,
    StreamHandle,
    argument_packer,
    struct_format,
)

from . import driver as cuda
from .compile import CudaFunction, CudaProgram
from .render import LaunchShape
from .schedule import launch_shape

SLOT_BYTES = 8  # bytes of an argument: no type is wider


class Launcher:
    """A factory of bound launches; `enter` makes the device's context current."""

    def __init__(self, enter: Callable[[], None]) -> None:
        self.enter = enter

    def bind(self, program: CudaProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Choose the schedule for these sizes; return the function that queues `program`."""
        k = program.kernel
        schedule, function, ints, grid = program.best(ints, grid)
        return CudaLaunch(self.enter, k, function, ints, launch_shape(k, schedule, grid)).launch


class PackedArguments:
    """The arguments of one launch, packed; `write` packs addresses and scalars.

    Slots: addresses, scalars, then integers, which are written once. The driver gets an array of
    pointers to them, in the order of the kernel's parameters, and copies what they point to.
    """

    def __init__(self, k: Kernel, ints: Sequence[int]) -> None:
        count, changing = len(k.buffers), len(k.buffers) + len(k.scalars)
        dtypes = [d for _, d in k.scalars]
        formats = [f"{struct_format(d)}{SLOT_BYTES - d.itemsize}x" for d in dtypes]
        pack = struct.Struct("<" + "Q" * count + "".join(formats)).pack_into
        self._slots = ctypes.create_string_buffer(SLOT_BYTES * max(1, changing + len(ints)))
        struct.pack_into(f"<{len(ints)}q", self._slots, SLOT_BYTES * changing, *ints)
        order = [*range(count), *range(changing, changing + len(ints)), *range(count, changing)]
        base = ctypes.addressof(self._slots)
        self._pointers = (ctypes.c_void_p * max(1, len(order)))(
            *(base + SLOT_BYTES * i for i in order)
        )
        self.address = ctypes.addressof(self._pointers)
        self.write = argument_packer(partial(pack, self._slots, 0), dtypes)


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
