"""Command lists: several launches as one built-in function, without Python between them.

A block of bytes holds a template of the slots of all launches. It lists the slots that are buffers
(a base and an offset) and those that are numbers which change. The function (`launch.c`) copies the
template, sets these slots, and runs one kernel after the other. It releases the GIL if they take
long.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail.extend import QueuedLaunch, Scalar

INTEGER, FLOAT32, FLOAT64, BOOL = range(4)  # kinds of scalars, as in launch.c


class LaunchTemplate(NamedTuple):
    """The part of a launch that is the same in all calls."""

    function: int
    tiles: int
    shared: int  # `pool.weight` of what its threads share, or 0
    operations: float
    slots: list[int]  # buffers, ints, scalars, extents of the grid, extents of a tile
    first_scalar: int  # its slot
    kinds: list[int]  # of scalars


def pack_command_list(launches: Sequence[QueuedLaunch], release_from: int, state: int) -> bytes:
    """Return the block of these launches, a `struct sequence` of launch.c.

    release_from: the scalar operations from which other Python threads may run.
    state: the address of the pool's state.
    """
    words: list[int] = []
    slots: dict[int, int] = {}
    buffers: list[int] = []
    numbers: list[int] = []
    runs: list[int] = []
    operations = 0.0
    firsts: dict[int, int] = {}  # the first word of each launch
    for queued in launches:
        launch, operands, scalars = queued
        template, first = _find_template(launch), firsts.setdefault(id(queued), len(words))
        operations += template.operations
        runs += (template.function, template.tiles, template.shared, first)
        if first < len(words):  # a loop repeats it
            continue
        words += template.slots
        for k, (slot, offset) in enumerate(operands):
            buffers += (first + k, slots.setdefault(slot, len(slots)), offset)
        for k, ((value, variable), kind) in enumerate(zip(scalars, template.kinds, strict=True)):
            word = first + template.first_scalar + k
            words[word] = scalar_bits(value, kind)
            if variable is not None:
                numbers += (word, kind, variable)
    release = operations >= release_from or any(runs[2::4])
    counts = [len(words), len(slots), len(buffers) // 3, len(numbers) // 3, len(launches)]
    every = [*counts, release, state, *words, *slots, *buffers, *numbers, *runs]
    return struct.pack(f"={len(every)}q", *every)


def _find_template(launch: Any) -> LaunchTemplate:
    """Return the LaunchTemplate of a built-in function that `Launcher.bind` returned."""
    fixed: LaunchTemplate = launch.__self__[-1]
    return fixed


def scalar_bits(value: Scalar, kind: int) -> int:
    """Return the bits of a number in a slot, as an int, for a kind of scalar."""
    if kind == FLOAT32:
        return int.from_bytes(ctypes.c_float(value), "little")
    if kind == FLOAT64:
        return int.from_bytes(ctypes.c_double(value), "little", signed=True)
    return int(bool(value)) if kind == BOOL else ctypes.c_int64(int(value)).value
