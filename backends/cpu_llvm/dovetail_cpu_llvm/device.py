"""The opened device: what `Backend` asks for, from the rooms next door."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np
from dovetail.extend import (
    HOST_MEMORY,
    BindingBackend,
    DeviceInfo,
    DType,
    Kernel,
    Launch,
    LibraryCall,
    QueuedLaunch,
    RawArgument,
    RawLaunch,
    Replay,
    StreamHandle,
    StridedOperand,
    address_of,
    complex64,
    complex128,
    float32,
    float64,
)

from .compile import Compiler, CpuProgram
from .launch import Launcher
from .memory import operand_array, raw_memory
from .raw import compile_raw
from .sorting import sort_routines
from .threadpool_hook import register


class CpuBackend(BindingBackend):
    """The host's CPU. A handle is an address; every stream is in order and immediate."""

    dlpack_type = HOST_MEMORY

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self._memory = raw_memory()
        self._compiler = Compiler()
        self._launcher = Launcher(self._compiler, info.fingerprint)
        register(self)

    def allocate(self, nbytes: int) -> int:
        return self._memory.allocate(nbytes)

    def free(self, handle: int, nbytes: int) -> None:
        self._memory.free(handle, nbytes)

    def copy_in(
        self, handle: int, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        ctypes.memmove(handle + offset, address_of(source), source.nbytes)

    def copy_out(
        self, target: memoryview, handle: int, offset: int, stream: StreamHandle = None
    ) -> None:
        ctypes.memmove(address_of(target), handle + offset, target.nbytes)

    def host_address(self, handle: int, offset: int) -> int:
        return handle + offset

    def adopt(self, address: int, nbytes: int) -> int:
        return address

    def compile(self, kernel: Kernel) -> CpuProgram:
        register(self)  # it may have been imported meanwhile
        return self._compiler.compile(kernel)

    def load(self, kernel: Kernel, binary: bytes) -> CpuProgram:
        register(self)
        return self._compiler.load(kernel, binary)

    def bound(self, program: CpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        return self._launcher.bind(program, ints, grid)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay:
        return self._launcher.sequence(launches)

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        products = {("matmul", d): matmul for d in (float32, float64, complex64, complex128)}
        return {**products, **sort_routines(self.get_num_threads(), self._compiler.native)}

    def bind_call(
        self, routine: LibraryCall, inputs: Sequence[StridedOperand], output: StridedOperand
    ) -> Launch | None:
        return self._launcher.bind_product(inputs, output) if routine is matmul else None

    raw_language, raw_grids = "C", False

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        return compile_raw(self.info.fingerprint, source, name, arguments, options)

    def park_threads(self) -> None:
        """Let idle threads of the pool sleep at once, in place of a spin for the next launch."""
        self._launcher.pool.park_workers()

    def get_num_threads(self) -> int:
        """Return the number of threads that share a large launch."""
        register(self)
        return self._launcher.pool.num_threads

    def set_num_threads(self, n: int) -> None:
        """Set the number of threads that share a large launch.

        No result depends on it. Raises: ArgumentError for less than 1.
        """
        self._launcher.pool.set_num_threads(n)


BLAS_ONE_THREAD_OPERATIONS_MAX = 1 << 18  # multiplications up to which OpenBLAS takes one thread


def matmul(
    backend: CpuBackend,
    inputs: Sequence[StridedOperand],
    output: StridedOperand,
    stream: StreamHandle,
) -> None:
    """Write the product of two float or complex matrices (or stacks) with NumPy's BLAS."""
    a, b = map(operand_array, inputs)
    out = operand_array(output)
    if out.size * a.shape[-1] > BLAS_ONE_THREAD_OPERATIONS_MAX:
        backend.park_threads()
    if 0 in a.shape:
        out[...] = 0
    else:
        np.matmul(a, b, out=out)
