"""Compiled programs for a given register width, and their runs over arrays, without a device."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from dovetail_cpu_llvm.compile import Compiler, CpuProgram


def compiler_for(native: int) -> Compiler:
    """Return a compiler for registers of `native` bytes, or skip if the processor has none."""
    made = Compiler()
    if native > made.native:
        pytest.skip("the processor has no such registers")
    made.native = native
    return made


def run(
    program: CpuProgram, arrays: Mapping[str, np.ndarray], ints: Mapping[str, int],
    grid: Sequence[int], blocks: Sequence[int] = (),
) -> None:  # fmt: skip
    """Run all tiles in order. `blocks`: points of a tile along each axis, if not the schedule's."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    k, sizes = program.kernel, blocks or program.schedule.blocks(grid)
    slots = [*(arrays[b.name].ctypes.data for b in k.buffers), *(ints[n] for n in k.ints)]
    words = np.array([*slots, *grid, *sizes], dtype=np.int64)
    tiles = math.prod(-(-n // b) for n, b in zip(grid, sizes, strict=True))
    function(program.address)(words.ctypes.data, 0, tiles)
