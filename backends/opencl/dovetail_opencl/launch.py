"""Launches: arguments that do not change are set once, on a kernel object of each bound launch's own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from dovetail.extend import LANES, DType, Handles, InternalError, Launch, bool_

from .compile import OpenCLProgram
from .render import dimensions

GROUP = 256  # work items in a group, at most


class Launcher:
    """Makes bound launches on one device."""

    def __init__(self, queue: Any, device: Any) -> None:
        self.queue = queue
        self.group = min(GROUP, device.max_work_group_size)

    def bind(self, program: OpenCLProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """A function of (buffers, scalars, stream) that queues `program`."""
        k = program.kernel
        if len(ints) != len(k.ints) or len(grid) != len(k.grid):
            raise InternalError(f"a launch with {len(ints)} ints and a grid of {len(grid)} axes", k)
        kernel = cl.Kernel(program.built, program.entry)
        first = 2 * len(k.buffers)
        for position, value in enumerate(ints, first):
            kernel.set_arg(position, np.int64(value))
        first += len(ints)
        types = [_numpy(d) for _, d in k.scalars]
        whole, local = self.range(grid, program.lanes)
        lock, default = threading.Lock(), self.queue

        def launch(buffers: Handles, scalars: Sequence[float | int | bool], stream: Any) -> None:
            with lock:
                for i in range(0, len(buffers), 2):
                    kernel.set_arg(i, buffers[i])
                    kernel.set_arg(i + 1, np.int64(buffers[i + 1]))
                for i, (t, x) in enumerate(zip(types, scalars, strict=True), first):
                    kernel.set_arg(i, t(x))
                cl.enqueue_nd_range_kernel(stream or default, kernel, whole, local)

        return launch

    def range(self, grid: Sequence[int], lanes: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The global and the local size; the former is a multiple of the latter."""
        sizes = dimensions(grid)
        if lanes:
            return (sizes[0] * LANES, *sizes[1:]), (LANES, *(1 for _ in sizes[1:]))
        local, left = [], self.group
        for n in sizes[:2]:
            local.append(min(left, 1 << max(n - 1, 0).bit_length()))
            left //= local[-1]
        local += [1] * (len(sizes) - 2)
        return tuple(-(-n // m) * m for n, m in zip(sizes, local, strict=True)), tuple(local)


def _numpy(d: DType) -> Any:
    """What makes a scalar argument of a Python number; it wraps as C does."""
    if d is bool_:
        return lambda x: np.uint8(bool(x))
    assert d.__numpy_dtype__ is not None
    if d.kind == "f":
        return d.__numpy_dtype__.type
    return lambda x: np.asarray(x).astype(d.__numpy_dtype__)[()]
