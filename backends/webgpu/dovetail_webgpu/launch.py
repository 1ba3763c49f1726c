"""Launches: constant arguments are packed once; a launch adds buffers, offsets and scalars."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from dovetail.extend import (
    Handles,
    Launch,
    Process,
    Scalar,
    StreamHandle,
    argument_packer,
    place_offsets,
    struct_format,
)

from .compile import FIRST_GROUP, WebgpuProgram
from .memory import Memory

NARROW_GROUP = (8, 8)  # for grids whose last axis is short
WORD_BYTES = 4  # of an argument, at least


class Launcher:
    """A factory of bound launches on one device."""

    def __init__(self, process: Process, memory: Memory) -> None:
        self.process, self.memory = process, memory

    def bind(self, program: WebgpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues `program` with these ints and this grid."""
        kernel, process, memory = program.kernel, self.process, self.memory
        points = [*reversed(grid), 1, 1, 1][:3]
        narrow = points[0] <= NARROW_GROUP[0] and points[1] > 1
        group = NARROW_GROUP if narrow else FIRST_GROUP
        pipeline = program.pipeline(group)
        size = (-(-points[0] // group[0]), -(-points[1] // group[1]), points[2])
        dtypes = [d for _, d in kernel.scalars]
        letters = [struct_format(d, WORD_BYTES) for d in dtypes]
        pack = argument_packer(
            struct.Struct("".join(["<", "i" * len(ints), *letters])).pack, dtypes
        )

        def launch(buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
            """Queue the launch. Raises: DeviceError in a child of fork(), or for earlier work."""
            if not process.alive:
                process.check()
            data = pack(place_offsets(kernel, ints, buffers), scalars)
            group = memory.group(tuple(buffers[::2]))
            memory.queue.launch(kernel.name, pipeline, group, data, size)

        return launch
