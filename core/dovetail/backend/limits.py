"""Launches on devices with limits of buffer offsets, grids or index width.

Kernels for such devices have extra integer parameters (`loops.limits`). Launches on other devices
are unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from ..dtypes import int32
from ..errors import DeviceError
from ..ir.builder import Kernel
from ..ir.int64_arith import WORD, is_wide
from ..ir.interval_analysis import Beyond, refuse_beyond
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

ALIGNED_LAUNCHES_MAX = 64  # cached launches per bound launch, for other offsets of its buffers


def has_limits(backend: Backend) -> bool:
    """Return True if launches must be changed to fit the limits of a device."""
    can = backend.info.capabilities
    return can.offset_alignment > 1 or can.max_grid != () or not can.int64 or can.contraction


def bind(backend: Backend, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
    """Bind a program of a legalised kernel, with the arguments of the kernel before that.

    Raises: DeviceError for sizes that exceed the device's index width.
    """
    _refuse_beyond(backend, program, ints, grid)
    if has_limits(backend):
        return _Launch(backend, program, ints, grid)
    return backend.bind(program, ints, grid)


def launch(
    backend: Backend, program: Compiled, buffers: Handles, ints: Sequence[int], grid: Sequence[int]
) -> None:
    """Launch such a program on the default stream, without scalars. Raises: DeviceError."""
    _refuse_beyond(backend, program, ints, grid)
    if has_limits(backend):
        _Launch(backend, program, ints, grid)(buffers, (), None)
    else:
        backend.launch(program, buffers, ints, (), grid)


def starts(can: Capabilities, kernel: Kernel, ints: Sequence[int]) -> list[int]:
    """Return the bytes from each buffer's offset to where the buffer begins.

    `ints`: those of a launch of `bind`, of this kernel. Offsets are rounded down to the alignment,
    so they may lie in memory of another owner.
    """
    buffers = (kernel.before or kernel).buffers
    if can.offset_alignment == 1:
        return [0] * len(buffers)
    end = len(ints) - (
        2 * len(kernel.grid) if can.max_grid else 0
    )  # of these: first points and extents
    first_elements = ints[end - len(buffers) : end]
    return [start * b.dtype.itemsize for start, b in zip(first_elements, buffers, strict=True)]


def adopt(backend: Backend, address: int, nbytes: int) -> Handle:
    """Adopt memory that consists of whole words of the device; None if it is unusable."""
    word = backend.info.capabilities.storage_bits // 8
    return None if address % word or nbytes % word else backend.adopt(address, nbytes)


def sequence(backend: Backend, launches: Sequence[QueuedLaunch]) -> Replay | None:
    """Return the replay of a sequence of bound launches, or None to run them one by one."""
    if any(isinstance(q.launch, _Launch) for q in launches):
        return None  # the backend cannot adjust these launches
    return backend.sequence(launches)


def _zeros(can: Capabilities) -> tuple[int, ...]:
    """Return the extra integer that prevents contraction of products and sums (`loops.floats`)."""
    return (0,) if can.contraction else ()


def _refuse_beyond(
    backend: Backend, program: Compiled, ints: Sequence[int], grid: Sequence[int]
) -> None:
    kernel, can = program.kernel.before or program.kernel, backend.info.capabilities
    if kernel.index is not int32:
        return
    grid = grid if kernel.grid else ()  # without a grid the kernel computes all points
    spans = [(n, n) for n in (*ints, *_zeros(can))]
    if can.offset_alignment > 1:
        spans += [(0, can.offset_alignment - 1)] * len(kernel.buffers)
    if can.max_grid and grid:
        extents, bounds = _axes(grid, can.max_grid)
        grid = tuple(map(min, extents, bounds))
        spans += [(0, n - 1) for n in extents] + [(1, n) for n in grid]
    try:
        refuse_beyond(kernel, dict(zip(kernel.ints, spans, strict=True)), grid, not can.int64)
    except Beyond as beyond:
        raise DeviceError(
            f"kernel {kernel.name} would be launched over more than 32 bits index, which is what "
            f"{backend.info.type} has: a size or a place of up to {beyond.args[0]}; "
            "do the work in parts, or on another device"
        ) from None


class _Launch:
    """A launch split into launches with aligned offsets, each for a part of the grid."""

    __slots__ = (
        "_alignment",
        "_backend",
        "_grid",
        "_ints",
        "_most",
        "_program",
        "_ready",
        "_sizes",
        "_wide",
    )

    def __init__(
        self, backend: Backend, program: Compiled, ints: Sequence[int], grid: Sequence[int]
    ) -> None:
        can = backend.info.capabilities
        self._alignment, self._most = can.offset_alignment, can.max_grid
        self._backend, self._program = backend, program
        self._ints = (*ints, *_zeros(can))
        self._grid = tuple(grid) if program.kernel.grid else ()
        kernel = program.kernel.before or program.kernel
        self._sizes = [b.dtype.itemsize for b in kernel.buffers]
        self._wide = [not can.int64 and is_wide(d) for _, d in kernel.scalars]
        # by the elements between aligned offset and start of each buffer
        self._ready: LRUCache[tuple[int, ...], list[Launch]] = LRUCache(ALIGNED_LAUNCHES_MAX)

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        starts: tuple[int, ...] = ()
        if self._alignment > 1:
            args, remainders = list(buffers), [offset % self._alignment for offset in buffers[1::2]]
            for k, remainder in enumerate(remainders):
                args[2 * k + 1] -= remainder
            buffers = tuple(args)
            starts = tuple(
                [remainder // n for remainder, n in zip(remainders, self._sizes, strict=True)]
            )
        launches = self._ready.find(starts)
        if launches is None:
            launches = self._ready[starts] = [*self._bind_parts((*self._ints, *starts))]
        if True in self._wide:
            scalars = self._split_int64(scalars)
        for launch in launches:
            launch(buffers, scalars, stream)

    def _bind_parts(self, ints: tuple[int, ...]) -> Iterator[Launch]:
        if not self._most or not self._grid:
            yield self._backend.bind(self._program, ints, self._grid)
            return
        for firsts, points in parts(self._grid, self._most):
            yield self._backend.bind(self._program, (*ints, *firsts, *points), points)

    def _split_int64(self, scalars: Sequence[Scalar]) -> list[Scalar]:
        """Return the scalars, with integers of 64 bits as two words."""
        values: list[Scalar] = []
        for x, wide in zip(scalars, self._wide, strict=True):
            values += (int(x) & WORD, int(x) >> 32 & WORD) if wide else (x,)
        return values


def parts(
    grid: Sequence[int], most: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the parts of a grid with at most the axes, and points per axis, of `most`.

    Each part is a tuple of first points and a tuple of extents. If there are too many axes, the
    first ones are merged.
    """
    extents, bounds = _axes(grid, most)
    steps = [range(0, n, m) for n, m in zip(extents, bounds, strict=True)]
    for firsts in product(*steps):
        yield (
            firsts,
            tuple(min(m, n - f) for f, n, m in zip(firsts, extents, bounds, strict=True)),
        )


def _axes(grid: Sequence[int], most: Sequence[int]) -> tuple[tuple[int, ...], Sequence[int]]:
    """Return the extents of a grid, with axes merged to fit `most`, and the maximum of each."""
    folded = max(1, len(grid) - len(most) + 1)
    extents = (math.prod(grid[:folded]), *grid[folded:])
    return extents, most[len(most) - len(extents) :]
