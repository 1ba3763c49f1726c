"""Launches in parts, on devices that limit the iterations of one point in one launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..dtypes import int32
from ..errors import DeviceError
from ..ir.builder import Kernel
from ..ir.expand_reductions import lower_reductions
from ..ir.interval_analysis import INT32_INDEX_MAX, trip_bounds
from ..ir.language import Loop
from ..ir.lower_int64 import lower_int64_to_words
from ..ir.point_state import WORD_BYTES
from ..ir.split_iterations import split_iterations
from ..ir.trip_counts import (
    TripProbe,
    Trips,
    UnknownTripsError,
    build_trip_probe,
    count_iterations,
)
from ..lru_cache import LRUCache
from .interface import Backend, Compiled, Handles, Launch, Scalar, StreamHandle

BOUND_PARTS_MAX = 4096  # parts of a launch that stay bound for the next call
BOUND_LENGTHS_MAX = 16  # launches that stay bound, by the lengths of loops that depend on data


class PartResources(NamedTuple):
    """The functions of an open device that launches in parts need.

    - `compile`: returns the program of a legalised kernel, from a cache if it is there.
    - `allocate`: allocates bytes for work on a stream; the result has a handle and an offset.
    """

    compile: Callable[[Kernel], Compiled]
    allocate: Callable[[int, StreamHandle], Any]


class _Binder(NamedTuple):
    """The arguments of a launch that are fixed."""

    backend: Backend
    ints: tuple[int, ...]
    grid: tuple[int, ...]
    resources: PartResources

    def bind(self, program: Compiled, kernel: Kernel, trips: Trips) -> Launch:
        """Return the launch of a program, in parts if its loops are beyond the device's limit.

        kernel: equal to the program's, with the loops that are counted in `trips`.
        """
        limit = self.backend.info.capabilities.max_iterations
        more = len(kernel.ints) - len(self.ints)  # the first element of a buffer that was added
        binder = self._replace(ints=(*self.ints, *[0] * more))
        if count_iterations(kernel.body, trips).active <= limit:
            return self.backend.bind(program, binder.ints, self.grid)
        return PartedLaunch(binder, kernel, trips)

    def compile(self, kernel: Kernel) -> Compiled:
        """Return the program of a kernel that has reduce loops, if it has any."""
        return self.resources.compile(lower_reductions(kernel, self.backend.info.capabilities))

    def allocate(self, words: int, stream: StreamHandle) -> tuple[Any, tuple[Any, int]]:
        """Allocate words of 32 bits; return the owner, and the handle and the aligned offset."""
        alignment = self.backend.info.capabilities.offset_alignment
        owner = self.resources.allocate(words * WORD_BYTES + alignment, stream)
        return owner, (owner.handle, -(-owner.offset // alignment) * alignment)


def bind_iterations(
    backend: Backend,
    program: Compiled,
    ints: Sequence[int],
    grid: Sequence[int],
    resources: PartResources | None,
) -> Launch:
    """Bind a program; its launch is divided if the device limits the iterations of a point.

    Raises: DeviceError if the launch cannot be divided.
    """
    limit = backend.info.capabilities.max_iterations
    kernel = program.kernel.unexpanded or program.kernel
    if not limit or resources is None:
        return backend.bind(program, ints, grid)
    binder = _Binder(backend, tuple(ints), tuple(grid), resources)
    trips = trip_bounds(kernel, ints, grid)
    counts = {loop: n for loop, n in trips.items() if n is not None}
    if len(counts) == len(trips):
        return binder.bind(program, kernel, counts)
    try:
        return PartedLaunchOfData(binder, program, kernel, trips)
    except UnknownTripsError:
        raise DeviceError(
            f"kernel {kernel.name} has a loop whose length it computes from values that it writes "
            f"or carries, and {backend.info.type} allows {limit} iterations of a point in one "
            "launch; loop over a range that is counts before the launch, or use another device"
        ) from None


class PartedLaunch:
    """A launch that runs the parts of a kernel in order, with memory for what they share."""

    __slots__ = ("_binder", "_bound", "_programs", "_split", "_words")

    def __init__(self, binder: _Binder, kernel: Kernel, trips: Trips) -> None:
        capabilities = binder.backend.info.capabilities
        self._binder = binder
        self._split = split = split_iterations(kernel, trips, capabilities.max_iterations)
        self._words = split.state_words * math.prod(binder.grid)
        if kernel.index is int32 and self._words > INT32_INDEX_MAX:
            raise DeviceError(
                f"kernel {kernel.name} runs in parts on {binder.backend.info.type}, which share "
                f"{self._words} words, and 32-bit indices reach {INT32_INDEX_MAX}; split the work "
                "into several steps, or use another device"
            )
        self._programs = {
            # the state keeps a float64 as an integer of 64 bits
            id(k): binder.compile(lower_int64_to_words(k, capabilities))
            for k in split.kernels()
        }
        self._bound = [*self._bind_parts()] if split.launch_count <= BOUND_PARTS_MAX else None

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        owner, state = self._binder.allocate(self._words, stream)
        for launch in self._bind_parts() if self._bound is None else self._bound:
            launch((*buffers, *state), scalars, stream)
        del owner  # later work of the stream may have the memory

    def _bind_parts(self) -> Iterator[Launch]:
        """Yield the bound launch of each part, in order."""
        backend, ints, grid, _ = self._binder
        for kernel, more in self._split.launches():
            yield backend.bind(self._programs[id(kernel)], (*ints, *more), grid)


class PartedLaunchOfData:
    """A launch of a kernel with loops whose lengths depend on data.

    Each call finds these lengths by launches of probes, and waits for them.
    """

    __slots__ = ("_binder", "_kernel", "_launches", "_probes", "_program", "_trips")

    def __init__(
        self, binder: _Binder, program: Compiled, kernel: Kernel, trips: Mapping[Loop, int | None]
    ) -> None:
        self._binder, self._program, self._kernel = binder, program, kernel
        self._trips = {loop: n for loop, n in trips.items() if n is not None}
        self._probes: list[tuple[TripProbe, Compiled]] = []
        unknown = dict(trips)
        while None in unknown.values():
            probe = build_trip_probe(kernel, unknown)
            self._probes.append((probe, binder.compile(probe.kernel)))
            unknown.update(dict.fromkeys(probe.loops, 0))
        # the launches of the probes and the kernel, by the lengths that were found before each
        self._launches: LRUCache[tuple[int, ...], Launch] = LRUCache(BOUND_LENGTHS_MAX)

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        lengths: tuple[int, ...] = ()
        trips = dict(self._trips)
        for probe, program in self._probes:
            launch = self._launches.find(lengths)
            if launch is None:
                counts = {loop: trips[origin] for loop, origin in probe.origins.items()}
                launch = self._launches[lengths] = self._binder.bind(program, probe.kernel, counts)
            measured = self._measure(launch, len(probe.loops), buffers, scalars, stream)
            trips.update(zip(probe.loops, measured, strict=True))
            lengths += measured
        launch = self._launches.find(lengths)
        if launch is None:
            launch = self._launches[lengths] = self._binder.bind(self._program, self._kernel, trips)
        launch(buffers, scalars, stream)

    def _measure(
        self,
        launch: Launch,
        count: int,
        buffers: Handles,
        scalars: Sequence[Scalar],
        stream: StreamHandle,
    ) -> tuple[int, ...]:
        """Return the lengths of `count` loops, each rounded up to a power of two."""
        owner, cells = self._binder.allocate(count, stream)
        words = memoryview(bytearray(count * WORD_BYTES))
        self._binder.backend.copy_in(*cells, words, stream)
        launch((*buffers, *cells), scalars, stream)
        self._binder.backend.copy_out(words, *cells, stream)
        del owner
        return tuple([1 << (n - 1).bit_length() if n else 0 for n in words.cast("I")])


PARTED_LAUNCHES = PartedLaunch | PartedLaunchOfData
