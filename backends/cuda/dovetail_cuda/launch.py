"""Launches: arguments lie packed where the driver reads them; a launch fills in what changes."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from operator import add
from typing import Any

import numpy as np
from dovetail.extend import DType, Handles, InternalError, Kernel, Launch

from . import driver as cuda
from . import ways
from .compile import CudaProgram

SLOT = 8  # bytes of an argument: no type is wider
_FORMATS = {
    "bool": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B",
    "uint16": "H", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip


def bind(
    enter: Callable[[], None], program: CudaProgram, ints: Sequence[int], grid: Sequence[int]
) -> Launch:
    """A function of (buffers, scalars, stream) that queues `program`."""
    k = program.kernel
    if len(ints) != len(k.ints) or len(grid) != len(k.grid):
        raise InternalError(f"a launch with {len(ints)} ints and a grid of {len(grid)} axes", k)
    way = ways.best(k, program.way, ints, grid)
    ints, grid = ways.sizes(k, way, ints, grid)
    blocks = ways.launch_shape(k, way, grid)
    return _Bound(enter, k, program, program.function(way), ints, blocks).launch


class _Bound:
    """A launch with everything fixed but buffers, scalars and stream.

    Slots: addresses, scalars, then integers, which are written once. The driver gets an array of
    pointers to them, in the order of the kernel's parameters, and copies what they point to.
    """

    def __init__(
        self, enter: Callable[[], None], k: Kernel, program: Any, function: Any, ints: Any,
        shape: Any,
    ) -> None:  # fmt: skip
        self.enter, self.kernel, self.function, self.shape = enter, k, function, shape
        self.program = program  # whose module has the function
        count, changing = len(k.buffers), len(k.buffers) + len(k.scalars)
        formats = [f"{_FORMATS[d.name]}{SLOT - d.itemsize}x" for _, d in k.scalars]
        self.pack = struct.Struct("<" + "Q" * count + "".join(formats)).pack_into
        self.slots = ctypes.create_string_buffer(SLOT * max(1, changing + len(ints)))
        struct.pack_into(f"<{len(ints)}q", self.slots, SLOT * changing, *ints)
        order = [*range(count), *range(changing, changing + len(ints)), *range(count, changing)]
        base = ctypes.addressof(self.slots)
        self.pointers = (ctypes.c_void_p * max(1, len(order)))(*(base + SLOT * i for i in order))
        self.arguments = ctypes.addressof(self.pointers)
        self.start, self.lock = cuda.driver.cuLaunchKernel, threading.Lock()

    def launch(self, buffers: Handles, scalars: Sequence[float | int | bool], stream: Any) -> None:
        addresses = map(add, buffers[::2], buffers[1::2])
        with self.lock:  # until the driver has copied the arguments
            try:
                self.pack(self.slots, 0, *addresses, *scalars)
            except (struct.error, OverflowError):
                self.pack(self.slots, 0, *map(add, buffers[::2], buffers[1::2]), *self.fit(scalars))
            self.enter()
            status = self.start(self.function, *self.shape, 0, stream or 0, self.arguments, 0)[0]
        if status != 0:
            raise cuda.error(status, f"launching {self.kernel.name}")

    def fit(self, scalars: Sequence[float | int | bool]) -> list[Any]:
        """Numbers as their dtypes hold them: integers wrap, floats overflow to infinity."""
        return [_fitted(x, d) for (_, d), x in zip(self.kernel.scalars, scalars, strict=True)]


def _fitted(x: float | int | bool, d: DType) -> Any:
    if d.kind == "b":
        return bool(x)
    if d.kind == "f":
        with np.errstate(over="ignore"):
            return float(np.float32(x)) if d.bits == 32 else float(x)
    wrapped = int(x) & (1 << d.bits) - 1
    return wrapped - (1 << d.bits) if d.kind == "i" and wrapped >> d.bits - 1 else wrapped
