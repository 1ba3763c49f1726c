"""Kernels that users write in OpenCL C: built by the driver, queued like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyopencl as cl
from dovetail.extend import (
    ArgumentError,
    CompileError,
    Grid,
    RawArgument,
    RawLaunch,
    Scalar,
    scalar_argument,
)

from .compile import Compiler


def compile_raw(
    compiler: Compiler,
    queue: Any,
    source: str,
    name: str,
    arguments: Sequence[RawArgument],
    options: Sequence[str],
) -> RawLaunch:
    """Build a user's text; return a launcher of kernel `name`.

    Raises: CompileError if the driver rejects the text, it has no such kernel, or the number of
    parameters differs.
    """
    program = cl.Program(compiler.context, source)
    try:
        built = compiler.build_text(program, options)
        kernel = cl.Kernel(built, name)
    except cl.Error as error:
        raise CompileError(f"{compiler.device.name} rejected the source: {error}") from error
    if kernel.num_args != len(arguments):
        raise CompileError(
            f"the kernel {name} must have {len(arguments)} parameters, got {kernel.num_args}"
        )
    create = partial(cl.Kernel, built, name)
    return _RawKernel(compiler.device, queue, create, arguments).launch


class _RawKernel:
    """A kernel whose arguments are set anew for each launch."""

    def __init__(
        self,
        device: Any,
        queue: Any,
        create: Callable[[], Any],
        arguments: Sequence[RawArgument],
    ) -> None:
        self.queue, self.create, self.free = queue, create, list[Any]()
        self.alignment = device.mem_base_addr_align // 8  # of bits
        self.memory = [k for k, a in enumerate(arguments) if a.access]
        self.numbers = [
            (k, scalar_argument(a.dtype)) for k, a in enumerate(arguments) if not a.access
        ]

    def launch(
        self, at: list[Any], numbers: Sequence[Scalar], grid: Grid | None, stream: Any
    ) -> None:
        """Set all arguments and queue the kernel over a grid, rounded up to whole groups."""
        assert grid is not None
        group, points = grid.group, grid.points
        if group is not None:  # the points of a grid are whole groups
            points = tuple(-(-n // m) * m for n, m in zip(points, group, strict=True))
        # The list keeps buffers alive until the launch is queued: `set_arg` retains nothing.
        memory = [self._create_sub_buffer(*pair) for pair in zip(at[::2], at[1::2], strict=True)]
        try:  # an object of its own: a finalizer in between, or another thread, may launch, too
            kernel = self.free.pop()
        except IndexError:
            kernel = self.create()
        for k, buffer in zip(self.memory, memory, strict=True):
            kernel.set_arg(k, buffer)
        for (k, number), x in zip(self.numbers, numbers, strict=True):
            kernel.set_arg(k, number(x))
        cl.enqueue_nd_range_kernel(stream or self.queue, kernel, points, group)
        self.free.append(kernel)

    def _create_sub_buffer(self, buffer: Any, offset: int) -> Any:
        """Return the rest of a buffer from an offset on. Raises: ArgumentError if misaligned."""
        if offset == 0:
            return buffer
        if offset % self.alignment:
            raise ArgumentError(
                f"the offset of a buffer must be a multiple of {self.alignment} bytes on this "
                f"device, got {offset}; pass a copy of the view"
            )
        return buffer.get_sub_region(offset, buffer.size - offset)
