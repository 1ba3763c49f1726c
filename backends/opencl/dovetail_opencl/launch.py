"""Launches: constant arguments are set once, on the kernel objects of each bound launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl
from dovetail.extend import (
    LANES,
    Handles,
    Kernel,
    Launch,
    Loop,
    Process,
    Scalar,
    Schedule,
    StreamHandle,
    scalar_argument,
)

from .compile import OpenCLProgram
from .render import ndrange_sizes

# Work items in a group, for few, more and many points: PoCL compiles a kernel for each size.
GROUP_SIZES = {True: (1, 16, 256), False: (32, 64, 256)}  # True: for CPUs


class Launcher:
    """A factory of bound launches on one device."""

    def __init__(self, queue: Any, device: Any, process: Process) -> None:
        self.queue, self.compute_units, self.process = queue, device.max_compute_units, process
        cpu, most = bool(device.type & cl.device_type.CPU), device.max_work_group_size
        self.sizes = [n for n in GROUP_SIZES[cpu] if n <= most] or [1]

    def bind(self, program: OpenCLProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues `program`; its constant arguments are set once."""
        k = program.kernel
        schedule, built, ints, grid = program.best(ints, grid)
        costly = any(isinstance(s, Loop) for s in k.body)
        global_size, local = self.launch_sizes(grid, schedule, costly)
        sizes = global_size, local
        return _OpenCLLaunch(self, program, built, schedule.kernel, ints, sizes).launch

    def launch_sizes(
        self, grid: Sequence[int], schedule: Schedule, costly: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the global and the local size; the global one is a multiple of the local one."""
        sizes = ndrange_sizes(grid)
        if schedule.tile:
            local = (*reversed(schedule.tile.items), 1)[: len(sizes)]
            groups = ndrange_sizes(schedule.tile.groups(grid))
            return tuple(n * m for n, m in zip(groups, local, strict=True)), local
        ones = (1,) * (len(sizes) - 1)
        if schedule.lanes:
            return (sizes[0] * LANES, *sizes[1:]), (LANES, *ones)
        local = (self.group_size(sizes[0], costly), *ones)
        return tuple(-(-n // m) * m for n, m in zip(sizes, local, strict=True)), local

    def group_size(self, points: int, costly: bool) -> int:
        """Return the group size for points of dimension 0; small for `costly` points."""
        least = self.sizes[0 if costly or points == 1 else min(1, len(self.sizes) - 1)]
        return max(least, *(n for n in self.sizes if n * 2 * self.compute_units <= points), 1)


class _KernelObject:
    """A kernel object of OpenCL, to which arguments belong. `offsets`: as they are set."""

    def __init__(self, built: tuple[Any, str], k: Kernel, ints: Sequence[int]) -> None:
        self.kernel = cl.Kernel(*built)
        self.offsets: list[Any] = [None] * len(k.buffers)
        for position, value in enumerate(ints, 2 * len(k.buffers)):
            self.kernel.set_arg(position, np.int64(value))


class _OpenCLLaunch:
    """A launch with everything fixed but buffers, scalars and stream."""

    def __init__(
        self,
        launcher: Launcher,
        program: Any,
        built: tuple[Any, str],
        k: Kernel,
        ints: Sequence[int],
        sizes: tuple[Any, Any],
    ) -> None:
        self.queue, self.process = launcher.queue, launcher.process
        self.program = program  # keeps it alive
        self.create = partial(_KernelObject, built, k, ints)
        self.free = [self.create()]
        self.sizes = sizes
        first = 2 * len(k.buffers) + len(k.ints)
        self.scalars = [(p, scalar_argument(d)) for p, (_, d) in enumerate(k.scalars, first)]

    def launch(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        """Set the changed arguments of a free kernel object, and queue it.

        A finalizer in between, and another thread, gets another object.

        Raises: DeviceError in a child of fork().
        """
        if not self.process.alive:
            self.process.check()
        try:
            owner = self.free.pop()
        except IndexError:
            owner = self.create()
        set_arg, offsets = owner.kernel.set_arg, owner.offsets
        for i in range(len(offsets)):
            set_arg(2 * i, buffers[2 * i])
            if buffers[2 * i + 1] != offsets[i]:
                set_arg(2 * i + 1, np.int64(buffers[2 * i + 1]))
                offsets[i] = buffers[2 * i + 1]
        for (position, number), x in zip(self.scalars, scalars, strict=True):
            set_arg(position, number(x))
        cl.enqueue_nd_range_kernel(stream or self.queue, owner.kernel, *self.sizes)
        self.free.append(owner)
