"""Kernels that users write in CUDA C: compiled by NVRTC, launched by the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dovetail.extend import CompileError, Grid, RawArgument, RawLaunch, Scalar, scalar_argument

from . import driver as cuda
from .compile import Compiler, CudaFunction, compile_cubin

BLOCK_SHAPES = {
    1: (256, 1, 1),
    2: (32, 8, 1),
    3: (32, 4, 2),
}  # threads of a block, by the grid's axes


def compile_raw(
    compiler: Compiler,
    enter: Callable[[], None],
    source: str,
    name: str,
    arguments: Sequence[RawArgument],
    options: Sequence[str],
) -> RawLaunch:
    """Compile a user's text; return a launcher of function `name`.

    Raises: CompileError if NVRTC rejects the text, or it has no such function.
    """
    cubin = compile_cubin(source, compiler.arch, name, options)
    try:
        function = compiler.function(name, cubin)
    except cuda.CudaError as error:
        raise CompileError(
            f'the source must define the kernel {name}; declare it `extern "C" __global__ void '
            f"{name}(...)` ({error})"
        ) from error
    return _RawKernel(enter, function, arguments).launch


class _RawKernel:
    """A loaded function of a cubin."""

    def __init__(
        self, enter: Callable[[], None], function: CudaFunction, arguments: Sequence[RawArgument]
    ) -> None:
        self.enter, self.function = enter, function
        self.numbers = [None if a.access else scalar_argument(a.dtype) for a in arguments]

    def launch(
        self, at: list[Any], numbers: Sequence[Scalar], grid: Grid | None, stream: Any
    ) -> None:
        """Pack all arguments, and queue the function over blocks that cover a grid."""
        assert grid is not None
        threads = (*(grid.group or BLOCK_SHAPES[len(grid.points)]), 1, 1)[:3]
        blocks = [-(-n // m) for n, m in zip(grid.points, threads, strict=False)]
        addresses, scalars = iter(zip(at[::2], at[1::2], strict=True)), iter(numbers)
        values: list[Any] = []  # alive until the driver has copied them
        for number in self.numbers:
            if number is None:
                handle, offset = next(addresses)
                values.append(np.uint64(handle + offset))
            else:
                values.append(number(next(scalars)))
        packed = [np.asarray(x) for x in values]
        pointers = (ctypes.c_void_p * max(1, len(packed)))(*(x.ctypes.data for x in packed))
        self.enter()
        status = cuda.driver.cuLaunchKernel(
            self.function.handle,
            *(*blocks, 1, 1)[:3],
            *threads,
            0,
            stream or 0,
            ctypes.addressof(pointers),
            0,
        )[0]
        if status != 0:
            raise cuda.status_error(status, "launching a raw kernel")
