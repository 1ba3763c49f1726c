"""Launches in parts, on devices that limit the iterations of one point in one launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..dtypes import int32
from ..errors import DeviceError
from ..ir.builder import Kernel
from ..ir.interval_analysis import INT32_INDEX_MAX
from ..ir.split_iterations import WORD_BYTES, IterationLimitError, SplitKernel, split_iterations
from .interface import Backend, Compiled, Handles, Launch, Scalar, StreamHandle

BOUND_PARTS_MAX = 4096  # bound launches that are kept for the next call


class PartResources(NamedTuple):
    """The functions of an open device that launches in parts need.

    - `compile`: returns the program of a legalised kernel, from a cache if it is there.
    - `allocate`: allocates bytes for work on a stream; the result has an address and an offset.
    """

    compile: Callable[[Kernel], Compiled]
    allocate: Callable[[int, StreamHandle], Any]


def bind_iterations(
    backend: Backend,
    program: Compiled,
    ints: Sequence[int],
    grid: Sequence[int],
    resources: PartResources | None,
) -> Launch:
    """Bind a program; its launch is divided if the device limits the iterations of a point.

    Raises: DeviceError if no division keeps the limit.
    """
    kernel, limit = program.kernel, backend.info.capabilities.max_iterations
    if not limit or resources is None:
        return backend.bind(program, ints, grid)
    try:
        split = split_iterations(kernel, ints, grid, limit)
    except IterationLimitError as error:
        raise DeviceError(
            f"kernel {kernel.name} needs {error.args[0]} iterations of a point that no division "
            f"separates, and {backend.info.type} allows at most {limit} in a launch; use smaller "
            "sizes, or another device"
        ) from None
    if split is None:
        return backend.bind(program, ints, grid)
    return PartedLaunch(backend, kernel, split, ints, grid, resources)


class PartedLaunch:
    """A launch that runs the parts of a kernel in order, with memory for what they share."""

    __slots__ = ("_backend", "_bound", "_grid", "_ints", "_nbytes", "_programs", "_resources")
    __slots__ += ("_split",)

    def __init__(
        self,
        backend: Backend,
        kernel: Kernel,
        split: SplitKernel,
        ints: Sequence[int],
        grid: Sequence[int],
        resources: PartResources,
    ) -> None:
        self._backend, self._split, self._resources = backend, split, resources
        self._ints, self._grid = tuple(ints), tuple(grid)
        words = split.state_words * math.prod(grid)
        if kernel.index is int32 and words > INT32_INDEX_MAX:
            raise DeviceError(
                f"kernel {kernel.name} runs in parts on {backend.info.type}, which keep {words} "
                f"words in memory, and 32-bit indices reach {INT32_INDEX_MAX}; split the work, or "
                "use another device"
            )
        self._nbytes = words * WORD_BYTES + backend.info.capabilities.offset_alignment
        self._programs = {id(k): resources.compile(k) for k in split.kernels()}
        self._bound = [*self._bind_parts()] if split.launch_count <= BOUND_PARTS_MAX else None

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        alignment = self._backend.info.capabilities.offset_alignment
        state = self._resources.allocate(self._nbytes, stream)  # until the last part is queued
        handles = (*buffers, state.handle, -(-state.offset // alignment) * alignment)
        for launch in self._bind_parts() if self._bound is None else self._bound:
            launch(handles, scalars, stream)

    def _bind_parts(self) -> Iterator[Launch]:
        """Yield the bound launch of each part, in order."""
        for kernel, ints in self._split.launches():
            yield self._backend.bind(self._programs[id(kernel)], (*self._ints, *ints), self._grid)
