"""Launches on devices with limits of buffer offsets, grids or index width.

Kernels for such devices have extra integer parameters (`ir.lower_limits`, `ir.hide_floats`).
Launches on other devices are unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from ..dtypes import int32
from ..errors import DeviceError
from ..ir.builder import Kernel
from ..ir.int64_arith import WORD_MASK, is_wide
from ..ir.interval_analysis import Int32OverflowError, check_int32
from ..ir.target import Capabilities
from ..lru_cache import LRUCache
from .interface import (
    Backend,
    Compiled,
    Handle,
    Handles,
    Launch,
    QueuedLaunch,
    Replay,
    Scalar,
    StreamHandle,
)
from .iteration_parts import PARTED_LAUNCHES, PartResources, bind_iterations

ALIGNED_LAUNCHES_MAX = 64  # cached launches per bound launch, for other offsets of its buffers


def bind_within_limits(
    backend: Backend,
    program: Compiled,
    ints: Sequence[int],
    grid: Sequence[int],
    resources: PartResources | None = None,
) -> Launch:
    """Bind a legalised kernel's program to ints and a grid; split the launch to fit the limits.

    - `resources`: what launches in parts need; None leaves loops undivided.

    Raises: DeviceError for sizes or indices over 32 bits on a device with 32-bit indices, and for
    loops that cannot be divided to fit the device.
    """
    _check_index_width(backend, program, ints, grid)
    if backend.info.capabilities.changes_launches:
        return _SplitLaunch(backend, program, ints, grid, resources).unwrap_single()
    return bind_iterations(
        backend, program, (*ints, *_offset_placeholders(program)), grid, resources
    )


def launch_within_limits(
    backend: Backend, program: Compiled, buffers: Handles, ints: Sequence[int], grid: Sequence[int]
) -> None:
    """Launch a legalised kernel's program on the default stream, without scalars.

    Raises: DeviceError for sizes that exceed the device's index width.
    """
    _check_index_width(backend, program, ints, grid)
    if backend.info.capabilities.changes_launches:
        _SplitLaunch(backend, program, ints, grid, None)(buffers, (), None)
    else:
        backend.launch(program, buffers, (*ints, *_offset_placeholders(program)), (), grid)


def buffer_starts(capabilities: Capabilities, kernel: Kernel, ints: Sequence[int]) -> list[int]:
    """Return the bytes from each buffer's offset to where the buffer begins.

    `ints`: those of a launch of `bind_within_limits`, of this kernel. Offsets are rounded down to
    the alignment, so they may lie in memory of another owner.
    """
    buffers = (kernel.before or kernel).buffers
    if capabilities.offset_alignment == 1:
        return [0] * len(buffers)
    end = len(ints) - (
        2 * len(kernel.grid) if capabilities.max_grid else 0
    )  # of these: first points and extents
    first_elements = ints[end - len(buffers) : end]
    return [start * b.dtype.itemsize for start, b in zip(first_elements, buffers, strict=True)]


def adopt(backend: Backend, address: int, nbytes: int) -> Handle:
    """Adopt memory that consists of whole words of the device; None if it is unusable."""
    word = backend.info.capabilities.storage_bits // 8
    return None if address % word or nbytes % word else backend.adopt(address, nbytes)


def sequence(backend: Backend, launches: Sequence[QueuedLaunch]) -> Replay | None:
    """Return the replay of a sequence of bound launches, or None to run them one by one."""
    if any(isinstance(q.launch, _SplitLaunch | PARTED_LAUNCHES) for q in launches):
        return None  # the backend cannot adjust these launches
    return backend.sequence(launches)


def _offset_placeholders(program: Compiled) -> tuple[int, ...]:
    """Return a 0 for each integer that the backend replaces by a buffer's first element."""
    return (0,) * len(program.kernel.offset_ints)


def _check_index_width(
    backend: Backend, program: Compiled, ints: Sequence[int], grid: Sequence[int]
) -> None:
    """Raise DeviceError if a launch's sizes or indices exceed 32 bits on a 32-bit device."""
    kernel, can = program.kernel.before or program.kernel, backend.info.capabilities
    if kernel.index is not int32:
        return
    grid = grid if kernel.grid else ()  # without a grid the kernel computes all points
    spans = [(n, n) for n in (*ints, *can.hiding_zeros)]
    if can.offset_params:
        spans += [(0, 0)] * len(kernel.buffers)  # `max_buffer` keeps all indices within 32 bits
    if can.offset_alignment > 1:
        spans += [(0, (can.offset_alignment - 1) // b.dtype.itemsize) for b in kernel.buffers]
    if can.max_grid and grid:
        extents, bounds = _fold_axes(grid, can.max_grid)
        grid = tuple(map(min, extents, bounds))
        spans += [(0, n - 1) for n in extents] + [(1, n) for n in grid]
    try:
        check_int32(kernel, dict(zip(kernel.ints, spans, strict=True)), grid, not can.int64)
    except Int32OverflowError as beyond:
        raise DeviceError(
            f"kernel {kernel.name} needs sizes or indices up to {beyond.args[0]}, and "
            f"{backend.info.type} has 32-bit indices; split the work into parts, or use another "
            "device"
        ) from None


class _SplitLaunch:
    """A launch split into launches with aligned offsets, each for a part of the grid."""

    __slots__ = (
        "_alignment",
        "_backend",
        "_extents_max",
        "_grid",
        "_ints",
        "_is_int64",
        "_launch_cache",
        "_program",
        "_resources",
        "_sizes",
    )

    def __init__(
        self,
        backend: Backend,
        program: Compiled,
        ints: Sequence[int],
        grid: Sequence[int],
        resources: PartResources | None,
    ) -> None:
        can = backend.info.capabilities
        self._alignment, self._extents_max = can.offset_alignment, can.max_grid
        self._backend, self._program, self._resources = backend, program, resources
        self._ints = (*ints, *can.hiding_zeros)
        self._grid = tuple(grid) if program.kernel.grid else ()
        kernel = program.kernel.before or program.kernel
        self._sizes = [b.dtype.itemsize for b in kernel.buffers]
        self._is_int64 = [not can.int64 and is_wide(d) for _, d in kernel.scalars]
        # by the elements between aligned offset and start of each buffer
        self._launch_cache: LRUCache[tuple[int, ...], list[Launch]] = LRUCache(ALIGNED_LAUNCHES_MAX)

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        starts = _offset_placeholders(self._program)
        if self._alignment > 1:
            args, remainders = list(buffers), [offset % self._alignment for offset in buffers[1::2]]
            for k, remainder in enumerate(remainders):
                args[2 * k + 1] -= remainder
            buffers = tuple(args)
            starts = tuple(
                [remainder // n for remainder, n in zip(remainders, self._sizes, strict=True)]
            )
        launches = self._launch_cache.find(starts)
        if launches is None:
            launches = self._launch_cache[starts] = [*self._bind_parts((*self._ints, *starts))]
        if True in self._is_int64:
            scalars = self._split_int64(scalars)
        for launch in launches:
            launch(buffers, scalars, stream)

    def unwrap_single(self) -> Launch:
        """Return the only launch, if calls change none of its arguments, or else this object."""
        if self._alignment > 1 or True in self._is_int64:
            return self
        starts = _offset_placeholders(self._program)
        launches = self._launch_cache[starts] = [*self._bind_parts((*self._ints, *starts))]
        return launches[0] if len(launches) == 1 else self

    def _bind_parts(self, ints: tuple[int, ...]) -> Iterator[Launch]:
        """Yield a bound launch for each part of the grid, or one for all of the grid."""
        if not self._extents_max or not self._grid:
            yield self._bind(ints, self._grid)
            return
        for firsts, points in grid_parts(self._grid, self._extents_max):
            yield self._bind((*ints, *firsts, *points), points)

    def _bind(self, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a bound launch with all integers of the kernel."""
        return bind_iterations(self._backend, self._program, ints, grid, self._resources)

    def _split_int64(self, scalars: Sequence[Scalar]) -> list[Scalar]:
        """Return the scalars, with integers of 64 bits as two words."""
        values: list[Scalar] = []
        for x, wide in zip(scalars, self._is_int64, strict=True):
            values += (int(x) & WORD_MASK, int(x) >> 32 & WORD_MASK) if wide else (x,)
        return values


def grid_parts(
    grid: Sequence[int], extents_max: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the parts of a grid with at most the axes, and points per axis, of `extents_max`.

    Each part is a tuple of first points and a tuple of extents. If there are too many axes, the
    first ones are merged.
    """
    extents, bounds = _fold_axes(grid, extents_max)
    steps = [range(0, n, m) for n, m in zip(extents, bounds, strict=True)]
    for firsts in product(*steps):
        yield (
            firsts,
            tuple(min(m, n - f) for f, n, m in zip(firsts, extents, bounds, strict=True)),
        )


def _fold_axes(
    grid: Sequence[int], extents_max: Sequence[int]
) -> tuple[tuple[int, ...], Sequence[int]]:
    """Return a grid with axes merged to fit `extents_max`, and the maximum of each axis."""
    folded = max(1, len(grid) - len(extents_max) + 1)
    extents = (math.prod(grid[:folded]), *grid[folded:])
    return extents, extents_max[len(extents_max) - len(extents) :]
