"""Devices with limits: the reference, which raises for work beyond its declared capabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import gt
from typing import Any, ClassVar
from unittest import mock

import broken_backends
import numpy as np
from dovetail.backend import reference
from dovetail.backend.interface import DeviceInfo, Handles
from dovetail.backend.launches import place_offsets
from dovetail.backend.reference import ReferenceBackend
from dovetail.device_class import Device, device
from dovetail.dtypes import float64, int32, int64, uint64
from dovetail.ir.builder import Kernel, combine
from dovetail.ir.language import Atomic, Block, Buffer, Loop, Value, walk
from dovetail.ir.target import Capabilities
from dovetail.ir.trip_counts import count_iterations, count_of_loop
from dovetail.ir.verify import verify
from dovetail.memory import CachingAllocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail.plugins.hooks import hookimpl

WIDE = (int64, uint64)
OF_REFERENCE = ReferenceBackend.info.capabilities


class Plugin(broken_backends.Plugin):
    """A plugin whose one device has the limits of its backend's class."""

    backend: type[Limited]

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        return [self.backend.described()]


class CountingRun(reference._BlockRun):
    """A run of a block that counts the iterations of each point, all loops together.

    The test that ends a loop is one, too; the loops in its body count it once more.
    """

    most: ClassVar[int]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.done, self.shape = np.zeros(1, np.int64), (1,)

    def block(self, block: Block, shape: tuple[int, ...], active: Any) -> None:
        outer, self.shape = self.shape, shape
        super().block(block, shape, active)
        self.shape = outer

    def trip_counts(self, loop: Loop, active: Any) -> tuple[Any, int]:
        n, _ = super().trip_counts(loop, active)
        n = np.broadcast_to(np.asarray(n, np.int64), self.shape)
        values, at = np.unique(n, return_inverse=True)
        cells = np.array([count_alone(loop, int(v)) for v in values])[at.reshape(n.shape)]
        if active is not None:
            cells = np.where(active, cells, 0)
        cells = cells.reshape(-1, self.shape[-1])  # iterations of outer loops; points
        done = self.done + np.cumsum(cells, axis=0)
        self.done = done[-1]
        n = self.limit(n, (done - cells).reshape(self.shape))
        return n, int(n.max())

    def limit(self, n: Any, done: Any) -> Any:
        """Return how many of `n` iterations run after `done`. Raises: RuntimeError."""
        if self.done.max() > self.most:
            raise RuntimeError(f"{self.done.max()} iterations of a point, more than {self.most}")
        return n


def count_alone(loop: Loop, count: int) -> int:
    """Return what `count` iterations of a loop count without those of loops in it."""
    loops = [s for s in walk(loop.body) if isinstance(s, Loop)]
    if loop.kind != "reduce":
        return count + 1 + len(loops)
    trips = {**dict.fromkeys(loops, 0), loop: count}
    return count_of_loop(loop, trips).active - count * count_iterations(loop.body, trips).active


class EndingRun(CountingRun):
    """A run whose loops end in silence at the limit, as those of llvmpipe."""

    def limit(self, n: Any, done: Any) -> Any:
        return np.minimum(n, np.maximum(self.most - done, 0))


def counting(run: type[CountingRun], most: int) -> AbstractContextManager[object]:
    """Count iterations while kernels are interpreted; without a limit do nothing."""
    limited_run = type(run.__name__, (run,), {"most": most})
    return mock.patch.object(reference, "_BlockRun", limited_run) if most else nullcontext()


class Limited(broken_backends.Honest):
    """A backend that raises RuntimeError for kernels and launches beyond its capabilities."""

    capabilities: ClassVar[Capabilities] = OF_REFERENCE

    def __init_subclass__(cls) -> None:
        cls.plugin = Plugin(cls)

    @classmethod
    def described(cls) -> DeviceInfo:
        name = cls.__name__.lower()
        return replace(
            ReferenceBackend.info, type=name, fingerprint=name, capabilities=cls.capabilities
        )

    @classmethod
    def device(cls) -> Device:
        """Return the device, which no plugin offers: the same one each time."""
        made = device(cls.__name__.lower())
        if made.opened is None:
            backend = cls(cls.described())
            made.opened = OpenedDevice(backend, CachingAllocator(backend, made), made, {})
        return made

    def allocate(self, nbytes: int) -> Any:
        most = self.capabilities.max_buffer
        if most and nbytes > most:
            raise RuntimeError(f"an allocation of {nbytes} bytes, more than {most}")
        return super().allocate(nbytes)

    def compile(self, kernel: Kernel) -> Any:
        most = self.capabilities.max_buffers
        if most and len(kernel.buffers) > most:
            raise RuntimeError(f"{len(kernel.buffers)} buffers, more than {most}:\n{kernel}")
        if self.capabilities.index_bits == 32 and kernel.index is not int32:
            raise RuntimeError(f"indices of 64 bits:\n{kernel}")
        if not self.capabilities.int64 and has_int64(kernel):
            raise RuntimeError(f"integers of 64 bits:\n{kernel}")
        if not self.capabilities.reductions and has_reductions(kernel.body):
            raise RuntimeError(f"a reduce loop:\n{kernel}")
        words = self.capabilities.storage_bits == 32
        if words and any(b.dtype.itemsize < 4 for b in kernel.buffers):
            raise RuntimeError(f"elements of less than 32 bits:\n{kernel}")
        verify(kernel)
        return super().compile(kernel)

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: broken_backends.Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        can = self.capabilities
        if any(offset % can.offset_alignment for offset in buffers[1::2]):
            raise RuntimeError(f"offsets {buffers[1::2]}, not multiples of {can.offset_alignment}")
        most = can.max_grid
        if most and (len(grid) > len(most) or any(map(gt, grid[::-1], most[::-1]))):
            raise RuntimeError(f"a grid of {tuple(grid)}, more than {most}")
        with counting(CountingRun, can.max_iterations):
            super().launch(program, buffers, ints, scalars, grid, stream)


def has_reductions(block: Block) -> bool:
    """Return True if a block or a loop in it has a reduce loop."""
    return any(isinstance(s, Loop) and s.kind == "reduce" for s in walk(block))


def has_int64(kernel: Kernel) -> bool:
    """Return True if a kernel contains a 64-bit integer: memory, scalars, values, combines."""
    found = [
        kernel.index,
        *(b.dtype for b in (*kernel.buffers, *kernel.arrays)),
        *(d for _, d in kernel.scalars),
    ]
    values: list[Value] = [*kernel.grid]
    for s in walk(kernel.body):
        if isinstance(s, Value):
            values += (s, *s.args)
        elif isinstance(s, Loop):
            values += (s.start, s.stop, s.var, *s.init, *s.carry, *s.update, *s.results)
            if s.combine is not None:
                rule = combine(s.combine, tuple(u.dtype for u in s.update))
                values += (*rule.identity, *rule.left, *rule.right, *rule.body, *rule.result)
        else:
            values += (s.index, s.value)
    return any(d in WIDE for d in (*found, *(v.dtype for v in values)))


class FewBuffers(Limited):
    """A backend with at most eight buffers per kernel, as in WebGPU."""

    capabilities = replace(OF_REFERENCE, max_buffers=8)


class Aligned(Limited):
    """A backend that binds buffers at multiples of 256 bytes, as in WebGPU."""

    capabilities = replace(OF_REFERENCE, offset_alignment=256)


class SmallGrids(Limited):
    """A backend that launches grids of two axes and few points."""

    capabilities = replace(OF_REFERENCE, max_grid=(7, 100))


class SmallIndices(Limited):
    """A backend with 32-bit indices and sizes."""

    capabilities = replace(OF_REFERENCE, index_bits=32)


class Packed(Limited):
    """A backend that accesses memory in 32-bit words."""

    capabilities = replace(OF_REFERENCE, offset_alignment=4, storage_bits=32)


class Words(Limited):
    """A backend without 64-bit integers."""

    capabilities = replace(OF_REFERENCE, index_bits=32, int64=False)


class ShortLoops(Limited):
    """A backend with at most 8192 iterations of a point in a launch."""

    capabilities = replace(OF_REFERENCE, max_iterations=1 << 13)


class NoReductions(Limited):
    """A backend without reduce loops."""

    capabilities = replace(OF_REFERENCE, reductions=False)


class NoReductionsOfWords(Limited):
    """A backend of 32-bit words without reduce loops and with short launches."""

    capabilities = replace(
        OF_REFERENCE, index_bits=32, int64=False, offset_alignment=4, storage_bits=32,
        max_iterations=1 << 13, reductions=False,
    )  # fmt: skip


class NarrowAtomics(Limited):
    """A backend with 64-bit integers, and atomics of 32 bits."""

    capabilities = replace(OF_REFERENCE, atomic_bits=32)

    def compile(self, kernel: Kernel) -> Any:
        if any(isinstance(s, Atomic) and s.buffer.dtype in WIDE for s in walk(kernel.body)):
            raise RuntimeError(f"an atomic of 64 bits:\n{kernel}")
        return super().compile(kernel)


class SmallBlocks(Limited):
    """A backend whose allocations have at most 16 MiB, as the bindings of WebGPU 128 MiB."""

    capabilities = replace(OF_REFERENCE, max_buffer=16 << 20)


class WholeBindings(Limited):
    """A backend that binds whole allocations and passes the first element of each buffer."""

    capabilities = replace(OF_REFERENCE, offset_params=True)

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: broken_backends.Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        placed = place_offsets(program.kernel, ints, buffers)
        whole = tuple(x for handle in buffers[::2] for x in (handle, 0))
        super().launch(program, whole, placed, scalars, grid, stream)


class WholeWords(WholeBindings):
    """A backend that binds whole allocations of words, in few buffers and short launches."""

    capabilities = replace(
        OF_REFERENCE, offset_params=True, max_buffer=64 << 20, max_buffers=9, max_grid=(7, 100),
        index_bits=32, int64=False, storage_bits=32, max_iterations=1 << 13,
    )  # fmt: skip


class Small(Limited):
    """A backend with all of these limits."""

    capabilities = replace(
        OF_REFERENCE,
        max_buffers=9,
        offset_alignment=256,
        max_grid=(7, 100),
        index_bits=32,
        max_iterations=1 << 13,
    )


class SmallWords(Limited):
    """A backend with all of these limits, 32-bit words and no 64-bit numbers, as weak GPUs have."""

    capabilities = replace(
        Small.capabilities, int64=False, storage_bits=32, float64=False,
        dtypes=OF_REFERENCE.dtypes - {float64},
    )  # fmt: skip


LIMITED = (
    FewBuffers,
    Aligned,
    SmallGrids,
    ShortLoops,
    NoReductions,
    NoReductionsOfWords,
    SmallBlocks,
    WholeBindings,
    WholeWords,
    SmallIndices,
    Packed,
    Words,
    NarrowAtomics,
    Small,
    SmallWords,
)


class EndsLoops(Limited):
    """Declare no limit, and end all loops of a point after 65,535 iterations."""

    shown_by = "test_limits and long_fold"
    sign = "buffer y"

    def launch(self, *given: Any) -> None:
        with counting(EndingRun, 65_535):
            super().launch(*given)


class EndsReductions(EndsLoops):
    """The same, shown by the loops over lanes of many reductions."""

    shown_by = "test_limits and many_reductions"


class OverstatesItsBlocks(Limited):
    """Declare allocations of 16 MiB, and refuse more than 15."""

    capabilities = SmallBlocks.capabilities
    shown_by = "test_allocator and largest"
    sign = "15 MiB at most"

    def allocate(self, nbytes: int) -> Any:
        if nbytes > 15 << 20:
            raise MemoryError("15 MiB at most")
        return super().allocate(nbytes)


class KeepsItsPlaces(WholeBindings):
    """Pass the first elements of a bound launch's first call in all of its calls."""

    shown_by = "test_limits and places"
    sign = "place 2"

    def bind(self, program: Any, ints: Sequence[int], grid: Sequence[int]) -> Any:
        placed: list[int] = []

        def launch(buffers: Handles, scalars: broken_backends.Numbers, stream: Any) -> None:
            placed[:] = placed or place_offsets(program.kernel, ints, buffers)
            whole = tuple(x for handle in buffers[::2] for x in (handle, 0))
            Limited.launch(self, program, whole, placed, scalars, grid, stream)

        return launch


class SharesItsArrays(Limited):
    """Compile no reduce loops, and let all points of a block share one private array."""

    capabilities = NoReductions.capabilities
    shown_by = "test_reductions and test_combine and add-float32-rows"

    def launch(self, *given: Any) -> None:
        with mock.patch.object(reference, "_create_private_array", create_shared_array):
            super().launch(*given)


def create_shared_array(array: Buffer, points: int) -> Any:
    """Return a private array that is one for all points."""
    data = np.zeros(array.length * points * array.dtype.itemsize, np.uint8)
    return reference._InterpretedBuffer(array.name, array.dtype, data, 0)


BROKEN = (EndsLoops, EndsReductions, SharesItsArrays, OverstatesItsBlocks, KeepsItsPlaces)
