"""Launches on devices that bind buffers, or launch grids, or index, within limits.

Their kernels have integers more than they were built with (`loops.limits`). Other devices get
their launches as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from ..dtypes import int32
from ..errors import DeviceError
from ..loops.bounds import Beyond, refuse_beyond
from ..loops.builder import Kernel
from ..loops.target import Capabilities
from ..loops.words import WORD, is_wide
from ..recent import Recent
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

KNOWN = 64  # launches that are kept ready, of one that is bound: for other places of its buffers


def has_limits(backend: Backend) -> bool:
    """Whether launches of a device are other ones than those that are asked for."""
    can = backend.info.capabilities
    return can.offset_alignment > 1 or can.max_grid != () or not can.int64 or can.contraction


def bind(backend: Backend, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
    """`Backend.bind` of a program whose kernel is legalised, with what that was given before.

    Raises: DeviceError for sizes beyond what the device indexes.
    """
    _refuse_beyond(backend, program, ints, grid)
    if has_limits(backend):
        return _Launch(backend, program, ints, grid)
    return backend.bind(program, ints, grid)


def launch(
    backend: Backend, program: Compiled, buffers: Handles, ints: Sequence[int], grid: Sequence[int]
) -> None:
    """The same of `Backend.launch`, on the default stream and without scalars."""
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
    end = len(ints) - (2 * len(kernel.grid) if can.max_grid else 0)  # first points, and how many
    found = ints[end - len(buffers) : end]
    return [start * b.dtype.itemsize for start, b in zip(found, buffers, strict=True)]


def adopt(backend: Backend, address: int, nbytes: int) -> Handle:
    """`Backend.adopt` of what is whole words of the device's; None where it is of no use."""
    word = backend.info.capabilities.storage_bits // 8
    return None if address % word or nbytes % word else backend.adopt(address, nbytes)


def sequence(backend: Backend, launches: Sequence[QueuedLaunch]) -> Replay | None:
    """`Backend.sequence` of what `bind` gave."""
    if any(isinstance(q.launch, _Launch) for q in launches):
        return None  # these have more to do than the backend's own
    return backend.sequence(launches)


def _zeros(can: Capabilities) -> tuple[int, ...]:
    """The integer that keeps products and sums apart (`loops.floats`)."""
    return (0,) if can.contraction else ()


def _refuse_beyond(
    backend: Backend, program: Compiled, ints: Sequence[int], grid: Sequence[int]
) -> None:
    kernel, can = program.kernel.before or program.kernel, backend.info.capabilities
    if kernel.index is not int32:
        return
    grid = grid if kernel.grid else ()  # it does all points in one
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
    """A launch by the backend's own, at aligned offsets, each for a part of the grid."""

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
        # the elements that each buffer begins after its offset -> the launches
        self._ready: Recent[tuple[int, ...], list[Launch]] = Recent(KNOWN)

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        starts: tuple[int, ...] = ()
        if self._alignment > 1:
            args, rests = list(buffers), [offset % self._alignment for offset in buffers[1::2]]
            for k, rest in enumerate(rests):
                args[2 * k + 1] -= rest
            buffers = tuple(args)
            starts = tuple([rest // n for rest, n in zip(rests, self._sizes, strict=True)])
        found = self._ready.find(starts)
        if found is None:
            found = self._ready[starts] = [*self._bound((*self._ints, *starts))]
        if True in self._wide:
            scalars = self._in_words(scalars)
        for launch in found:
            launch(buffers, scalars, stream)

    def _bound(self, ints: tuple[int, ...]) -> Iterator[Launch]:
        if not self._most or not self._grid:
            yield self._backend.bind(self._program, ints, self._grid)
            return
        for firsts, points in parts(self._grid, self._most):
            yield self._backend.bind(self._program, (*ints, *firsts, *points), points)

    def _in_words(self, scalars: Sequence[Scalar]) -> list[Scalar]:
        """The scalars, those of 64 bits as two numbers."""
        found: list[Scalar] = []
        for x, wide in zip(scalars, self._wide, strict=True):
            found += (int(x) & WORD, int(x) >> 32 & WORD) if wide else (x,)
        return found


def parts(
    grid: Sequence[int], most: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The parts of a grid with no more axes and points along each than `most`.

    Each is the first point and how many there are, along each axis. The first axes are one where
    there are too many.
    """
    extents, bounds = _axes(grid, most)
    steps = [range(0, n, m) for n, m in zip(extents, bounds, strict=True)]
    for firsts in product(*steps):
        yield (
            firsts,
            tuple(min(m, n - f) for f, n, m in zip(firsts, extents, bounds, strict=True)),
        )


def _axes(grid: Sequence[int], most: Sequence[int]) -> tuple[tuple[int, ...], Sequence[int]]:
    """The extents of a grid of no more axes than `most`, and the most points along each."""
    folded = max(1, len(grid) - len(most) + 1)
    extents = (math.prod(grid[:folded]), *grid[folded:])
    return extents, most[len(most) - len(extents) :]
