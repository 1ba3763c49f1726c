"""The opened device: what `dovetail.extend.Backend` asks for, from the rooms next door."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from dovetail.extend import Backend, DeviceInfo, DType, Handles, Kernel, Launch, float32, float64

from .compile import Compiler, CpuProgram
from .launch import Launcher
from .memory import raw_memory


class CpuBackend(Backend):
    """The host's CPU. A handle is an address; every stream is in order and immediate."""

    dlpack_type = 1

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self._memory = raw_memory()
        self._compiler = Compiler()
        self._launcher = Launcher(self._compiler, info.fingerprint)

    def allocate(self, nbytes: int) -> int:
        return self._memory.allocate(nbytes)

    def free(self, handle: int, nbytes: int) -> None:
        self._memory.free(handle, nbytes)

    def copy_in(self, handle: int, offset: int, source: memoryview, stream: Any = None) -> None:
        array = np.frombuffer(source, np.uint8)
        ctypes.memmove(handle + offset, array.__array_interface__["data"][0], array.size)

    def copy_out(self, target: memoryview, handle: int, offset: int, stream: Any = None) -> None:
        array = np.frombuffer(target, np.uint8)
        ctypes.memmove(array.__array_interface__["data"][0], handle + offset, array.size)

    def host_address(self, handle: int, offset: int) -> int:
        return handle + offset

    def adopt(self, address: int, nbytes: int) -> int:
        return address

    def compile(self, kernel: Kernel) -> CpuProgram:
        return self._compiler.compile(kernel)

    def load(self, kernel: Kernel, binary: bytes) -> CpuProgram:
        return self._compiler.load(kernel, binary)

    def launch(
        self,
        program: CpuProgram,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[float | int | bool],
        grid: Sequence[int],
        stream: Any = None,
    ) -> None:
        self.bind(program, ints, grid)(buffers, scalars, stream)

    def bind(self, program: CpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        return self._launcher.bind(program, ints, grid)

    def library_calls(self) -> Mapping[tuple[str, DType], Callable[..., Any]]:
        return {("matmul", float32): matmul, ("matmul", float64): matmul}

    def rest(self) -> None:
        """Idle threads of the pool stop waiting for the next launch, and sleep."""
        self._launcher.pool.rest()

    def get_num_threads(self) -> int:
        """How many threads share a large launch."""
        return self._launcher.pool.num_threads

    def set_num_threads(self, n: int) -> None:
        """Sets how many threads share a large launch; no result depends on it.

        Raises: ArgumentError for less than 1.
        """
        self._launcher.pool.set_num_threads(n)


BLAS_ALONE = 1 << 18  # multiplications up to which OpenBLAS takes one thread


def matmul(backend: CpuBackend, inputs: Sequence[Any], output: Any, stream: Any) -> None:
    """Writes the product of two float matrices (or stacks of them) with NumPy's BLAS."""
    a, b = map(_array, inputs)
    out = _array(output)
    if out.size * a.shape[-1] > BLAS_ALONE:
        backend.rest()
    if 0 in a.shape:
        out[...] = 0
    else:
        np.matmul(a, b, out=out)


class _Foreign:
    """Memory as NumPy's array interface shows it."""

    def __init__(self, operand: Any) -> None:
        address, offset, shape, strides, dtype = operand
        self.__array_interface__ = {
            "data": (address + offset, False),
            "shape": shape,
            "strides": tuple(s * dtype.itemsize for s in strides),
            "typestr": dtype.__numpy_dtype__.str,
            "version": 3,
        }


def _array(operand: Any) -> np.ndarray[Any, Any]:
    return np.asarray(_Foreign(operand))
