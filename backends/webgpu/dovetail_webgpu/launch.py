"""Launches: constant arguments are packed once; a launch adds buffers, offsets and scalars."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from dovetail.extend import Handles, Launch, Process, Scalar, StreamHandle, scalar_argument

from .compile import FIRST_GROUP, WebgpuProgram
from .memory import Memory

NARROW_GROUP = (8, 8)  # for grids whose last axis is short
_FORMATS = {"b": "I", "u": "I", "i": "i", "f": "f"}  # of a word, by the kind of the number


def bind_launch(
    process: Process,
    memory: Memory,
    program: WebgpuProgram,
    ints: Sequence[int],
    grid: Sequence[int],
) -> Launch:
    """Return the function that queues `program` with these ints and this grid."""
    kernel, queue = program.kernel, memory.queue
    points = [*reversed(grid), 1, 1, 1][:3]
    narrow = points[0] <= NARROW_GROUP[0] and points[1] > 1
    group = NARROW_GROUP if narrow else FIRST_GROUP
    pipeline = program.pipeline(group)
    size = (-(-points[0] // group[0]), -(-points[1] // group[1]), points[2])
    offset_positions = [
        (kernel.ints.index(name), itemsize) for name, itemsize in kernel.offset_ints
    ]
    formats = [_FORMATS[d.kind] for _, d in kernel.scalars]
    pack = struct.Struct("<" + "i" * len(ints) + "".join(formats)).pack
    convert = [scalar_argument(d) for _, d in kernel.scalars]
    words = list(ints)

    def launch(buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        """Queue the launch. Raises: DeviceError in a child of fork(), or for earlier work."""
        if not process.alive:
            process.check()
        placed = words.copy()
        for (position, itemsize), offset in zip(offset_positions, buffers[1::2], strict=True):
            placed[position] = offset // itemsize
        try:
            data = pack(*placed, *scalars)
        except (struct.error, OverflowError):
            with np.errstate(over="ignore"):  # as the dtypes hold them
                numbers = [f(x).item() for f, x in zip(convert, scalars, strict=True)]
            data = pack(*placed, *numbers)
        queue.launch(kernel.name, pipeline, memory.group(tuple(buffers[::2])), data, size)

    return launch
