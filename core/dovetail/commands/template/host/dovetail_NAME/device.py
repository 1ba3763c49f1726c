"""The opened device: the C library allocates memory, and a launch is a function call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail.extend import Backend, DeviceInfo, Handles, Kernel

from .compile import STYLE, CProgram, compile_kernel

ALIGNMENT = 64  # bytes; dovetail requires it
_libc = ctypes.CDLL(None)
_libc.aligned_alloc.argtypes, _libc.aligned_alloc.restype = [ctypes.c_size_t] * 2, ctypes.c_void_p
_libc.free.argtypes, _libc.free.restype = [ctypes.c_void_p], None


class CBackend(Backend):
    """The host. A handle is an address. `launch` is synchronous, so streams need no code."""

    dlpack_type = 1  # kDLCPU

    def __init__(self, info: DeviceInfo, command: Sequence[str]) -> None:
        self.info, self.command = info, command

    def allocate(self, nbytes: int) -> int:
        address = _libc.aligned_alloc(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        if address is None:
            raise MemoryError(f"the C library could not allocate {nbytes} bytes")
        return int(address)

    def free(self, handle: int, nbytes: int) -> None:
        _libc.free(handle)

    def copy_in(self, handle: int, offset: int, source: memoryview, stream: Any = None) -> None:
        host = np.frombuffer(source, np.uint8)
        ctypes.memmove(handle + offset, host.ctypes.data, host.nbytes)

    def copy_out(self, target: memoryview, handle: int, offset: int, stream: Any = None) -> None:
        host = np.frombuffer(target, np.uint8)
        ctypes.memmove(host.ctypes.data, handle + offset, host.nbytes)

    def host_address(self, handle: int, offset: int) -> int:
        return handle + offset

    def adopt(self, address: int, nbytes: int) -> int:
        return address

    def compile(self, kernel: Kernel) -> CProgram:
        return compile_kernel(self.command, kernel)

    def load(self, kernel: Kernel, binary: bytes) -> CProgram:
        return CProgram(kernel, STYLE.render(kernel), binary)

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int],
        scalars: Sequence[float | int | bool], grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        """Call the kernel's function; it returns when the work is done."""
        pointers = (h + offset for h, offset in zip(buffers[::2], buffers[1::2], strict=True))
        program.function(*pointers, *ints, *scalars)  # the grid's extents are among the ints
