"""Fallback devices: kernels that a backend does not accept run on its companion.

The core uses `FallbackBackend` in place of such a backend. It compiles a kernel that is not
accepted for the companion. The launch copies the memory that the kernel may access to the
companion, runs there, and copies the memory that it may have written back, in the order of the
stream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from .. import callbacks
from ..argument_checks import shown
from ..backend.interface import (
    Backend,
    Handle,
    Handles,
    Launch,
    LibraryCall,
    Program,
    QueuedLaunch,
    Replay,
    Scalar,
    StreamHandle,
    StridedOperand,
)
from ..backend.limits import buffer_starts
from ..device_class import Device
from ..dtypes import DType
from ..errors import CompileError, PluginError
from ..ir.builder import Kernel
from ..ir.floats import find_missing_feature, supports_all_floats
from ..ir.interval_analysis import index_intervals_or_none
from ..lru_cache import LRUCache
from ..memory import make_allocator
from ..memory.pointer import DataPtr
from .device_handle import LibraryCalls, OpenedDevice

Span: TypeAlias = tuple[int, int]  # first byte and end, excluded
ALIGNMENT_BYTES = (
    64  # copies keep the remainder of addresses by this, for kernels that depend on alignment
)


class CompanionProgram(Program):
    """A kernel that the device does not accept, compiled for the companion."""

    def __init__(self, kernel: Kernel, program: Program) -> None:
        self.kernel, self.program, self.source = kernel, program, program.source


class FallbackBackend:
    """A proxy of a backend that does not accept every kernel, with its companion.

    `wrapped`: the plugin's backend. `companion`: None if the device names none.
    `companion_launches`, `copied_bytes`: the number of launches on the companion, and of bytes
    copied in both directions. Every launch holds the engine lock, which guards these two.
    """

    opened: OpenedDevice  # set once the device is open

    def __init__(self, wrapped: Backend, device: Device, companion: OpenedDevice | None) -> None:
        self.wrapped, self.device, self.companion = wrapped, device, companion
        self.companion_launches = self.copied_bytes = 0
        self._accepted: LRUCache[str, bool] = LRUCache(4096)  # by the kernel's text
        self._sizes: dict[object, tuple[Handle, int]] = {}  # handle and size of allocated memory
        self._adopted: LRUCache[object, tuple[Handle, int]] = LRUCache(4096)
        self.shares_memory = companion is not None and wrapped.host and companion.backend.host

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    # --- memory: the sizes are recorded
    def allocate(self, nbytes: int) -> Handle:
        """Allocate memory, and record its size."""
        handle = self.wrapped.allocate(nbytes)
        self._sizes[_hashable_key(handle)] = handle, nbytes
        return handle

    def free(self, handle: Handle, nbytes: int) -> None:
        """Free memory on the device, and drop its recorded size."""
        self._sizes.pop(_hashable_key(handle), None)
        self.wrapped.free(handle, nbytes)

    def adopt(self, address: int, nbytes: int) -> Handle:
        """Adopt foreign memory, and record its size; return None if the device cannot use it."""
        handle = self.wrapped.adopt(address, nbytes)
        if handle is not None:
            self._adopted[_hashable_key(handle)] = handle, nbytes
        return handle

    def size(self, handle: Handle) -> int:
        """Return the size of a handle's memory. Raises: PluginError for an unknown handle."""
        key = _hashable_key(handle)
        entry = self._sizes.get(key) or self._adopted.find(key)
        if entry is None:
            raise PluginError(f"{self.device} did not allocate the memory {shown(handle)}")
        return entry[1]

    def extent(self, handle: Handle, offset: int) -> Span:
        """Return the span around an offset that has one owner; all of the handle if unknown.

        Memory beyond it may be written by other launches meanwhile.
        """
        span: Span | None = self.opened.allocator.extent(handle, offset)
        return span or (0, self.size(handle))

    # --- programs
    def accepts(self, kernel: Kernel) -> bool:
        """Return True if the device itself runs a kernel; the backend's answer is cached.

        Raises: PluginError for an answer that is no bool.
        """
        text = str(kernel)
        accepted = self._accepted.find(text)
        if accepted is None:
            answer: object = self._find_missing_feature(kernel) == "" and self.wrapped.accepts(
                kernel
            )
            if not isinstance(answer, bool):
                what = f"{self.device}: accepts({kernel.name}) must return True or False"
                raise PluginError(f"{what}, got {shown(answer)}")
            accepted = self._accepted[text] = answer
        return accepted

    def _find_missing_feature(self, kernel: Kernel) -> str:
        """Return the name of a feature that a kernel needs and the device lacks, or ""."""
        return find_missing_feature(kernel, self.wrapped.info.capabilities)

    def compile(self, kernel: Kernel) -> Program:
        """Compile a kernel for the device, or for its companion if the device does not accept it.

        Raises: CompileError if that fails, or there is no companion.
        """
        return (
            self.wrapped.compile(kernel)
            if self.accepts(kernel)
            else self._compile_on_companion(kernel)
        )

    def compile_all(self, kernels: Sequence[Kernel]) -> list[Program]:
        """Compile kernels in order: accepted ones in one call, others for the companion."""
        accepted = [k for k in kernels if self.accepts(k)]
        programs = iter(self.wrapped.compile_all(accepted) if accepted else ())
        return [
            next(programs) if self.accepts(k) else self._compile_on_companion(k) for k in kernels
        ]

    def _compile_on_companion(self, kernel: Kernel) -> CompanionProgram:
        """Compile a kernel for the companion. Raises: CompileError if there is none."""
        if self.companion is None:
            lacks = self._find_missing_feature(kernel)
            raise CompileError(
                f"{self.device} does not accept the kernel {kernel.name}"
                f"{f', which needs {lacks}' if lacks else ''}, and has no companion "
                "device to run it; its backend can name one, DeviceInfo(..., "
                'companion="reference"); or move the tensors to another device with x.to(...)'
                f"\n{kernel}"
            )
        whole = kernel.unexpanded or kernel
        return CompanionProgram(kernel, callbacks.program_of(self.companion, whole))

    # --- launches
    def bind(self, program: Program, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Bind a launch on the device, or on the companion for a CompanionProgram."""
        if isinstance(program, CompanionProgram):
            return _CompanionLaunch(self, program, ints, grid)
        return self.wrapped.bind(program, ints, grid)

    def launch(
        self,
        program: Program,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[Scalar],
        grid: Sequence[int],
        stream: StreamHandle = None,
    ) -> None:
        """Run a program on the device or its companion."""
        if isinstance(program, CompanionProgram):
            self.bind(program, ints, grid)(buffers, scalars, stream)
        else:
            self.wrapped.launch(program, buffers, ints, scalars, grid, stream)

    def launch_all(
        self,
        launches: Sequence[tuple[Launch, Handles, Sequence[Scalar]]],
        stream: StreamHandle = None,
    ) -> None:
        """Run launches in order; runs of launches on the device itself in one call each."""
        waiting: list[tuple[Launch, Handles, Sequence[Scalar]]] = []
        for each in launches:
            if not isinstance(each[0], _CompanionLaunch):
                waiting.append(each)
                continue
            if waiting:
                self.wrapped.launch_all(waiting, stream)
                waiting = []
            each[0](each[1], each[2], stream)
        if waiting:
            self.wrapped.launch_all(waiting, stream)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay | None:
        """Return a replay of the launches, or None if the companion runs any of them."""
        if any(isinstance(x.launch, _CompanionLaunch) for x in launches):
            return None
        return self.wrapped.sequence(launches)

    # --- vendor routines, which get the plugin's backend
    def bind_call(
        self, routine: LibraryCall, inputs: Sequence[StridedOperand], output: StridedOperand
    ) -> Launch | None:
        """Bind a library call of the plugin's own routine, or return None if it cannot."""
        inner = routine.routine if isinstance(routine, _UnwrappingRoutine) else routine
        return self.wrapped.bind_call(inner, inputs, output)

    def routines(
        self, calls: Mapping[tuple[str, DType], LibraryCall]
    ) -> dict[tuple[str, DType], LibraryCall]:
        """Wrap vendor routines so that they get the plugin's backend, not this proxy."""
        return {key: _UnwrappingRoutine(self.wrapped, routine) for key, routine in calls.items()}


Backend.register(FallbackBackend)


class _UnwrappingRoutine:
    """A vendor's routine that gets the plugin's backend."""

    def __init__(self, wrapped: Backend, routine: LibraryCall) -> None:
        self.wrapped, self.routine = wrapped, routine

    def __call__(
        self,
        backend: object,
        inputs: Sequence[StridedOperand],
        output: StridedOperand,
        stream: StreamHandle,
    ) -> None:
        self.routine(self.wrapped, inputs, output, stream)


def open_with_companion(
    dev: Device, backend: Backend, companion: OpenedDevice | None, calls: LibraryCalls
) -> OpenedDevice:
    """Build the state of an open device, with a FallbackBackend if it may refuse kernels."""
    accepts_all = type(backend).accepts is Backend.accepts
    if accepts_all and supports_all_floats(backend.info.capabilities):
        return OpenedDevice(backend, make_allocator(dev, backend), dev, calls)
    proxy = FallbackBackend(backend, dev, companion)
    as_backend = cast(Backend, proxy)  # registered as one
    proxy.opened = OpenedDevice(
        as_backend, make_allocator(dev, as_backend), dev, proxy.routines(calls)
    )
    return proxy.opened


def unwrap_backend(backend: Backend) -> Backend:
    """Return the plugin's backend behind a FallbackBackend; return others unchanged."""
    return backend.wrapped if isinstance(backend, FallbackBackend) else backend


def companion_of(backend: Backend) -> OpenedDevice | None:
    """Return the companion of a backend, or None."""
    return backend.companion if isinstance(backend, FallbackBackend) else None


def _hashable_key(handle: Handle) -> object:
    """Return a dict key for a handle: itself, or its identity if it is not hashable."""
    try:
        hash(handle)
    except TypeError:
        return "by identity", id(handle)
    return handle


# --- a launch -------------------------------------------------------------------------------------


class MemoryPiece(NamedTuple):
    """Memory of one owner that several buffers of a launch may share.

    `span`: its bytes; `buffers`: the buffers in it; `written`: the spans that they may write.
    """

    span: Span
    buffers: tuple[int, ...]
    written: tuple[Span, ...]

    @property
    def nbytes(self) -> int:
        """Return the number of bytes copied, to the companion and back."""
        return self.span[1] - self.span[0] + sum(high - low for low, high in self.written)


class TouchedMemory:
    """The memory that a launch of these sizes may access: per buffer a span from its start.

    None is all memory of the buffer's owner.
    """

    def __init__(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> None:
        kernel = kernel.before or kernel  # bounds of the original kernel are tighter
        reach_by_buffer = index_intervals_or_none(kernel, ints, grid)
        self.writes = [b.access != "r" for b in kernel.buffers]
        self.spans: list[Span | None] = []
        for b in kernel.buffers:
            reach, size = reach_by_buffer.get(b.name, (0, -1)), b.dtype.itemsize
            self.spans.append(None if reach is None else (reach[0] * size, (reach[1] + 1) * size))

    def pieces(
        self, buffers: Sequence[tuple[object, int]], extents: Sequence[Span | None]
    ) -> list[tuple[object, MemoryPiece]]:
        """Return pairs (owner, piece) of disjoint pieces of the memory that a launch may access.

        `buffers`: owner and offset of each buffer. `extents`: the span to which a buffer is
        limited. A launch knows all extents; `explain` passes None for memory that it does not know.
        """
        spans_by_owner: dict[object, list[tuple[Span, int, Span]]] = {}
        for k, ((owner, offset), extent) in enumerate(zip(buffers, extents, strict=True)):
            span = self._span(k, offset, extent)
            aligned_span = min(span[0], offset) & -ALIGNMENT_BYTES, max(span[1], offset)
            spans_by_owner.setdefault(owner, []).append((aligned_span, k, span))
        return [(owner, p) for owner, spans in spans_by_owner.items() for p in self._merge(spans)]

    def _span(self, k: int, offset: int, extent: Span | None) -> Span:
        """Return the first byte and the end of the bytes of `extent` that buffer k may touch.

        Only `explain` can know neither the bytes nor the extent, and then counts no bytes.
        """
        span = self.spans[k]
        if span is None:
            return extent or (offset, offset)
        low, high = span[0] + offset, span[1] + offset
        if extent is not None:
            low, high = max(low, extent[0]), min(high, extent[1])
        return (low, high) if low < high else (offset, offset)

    def _merge(self, spans: list[tuple[Span, int, Span]]) -> list[MemoryPiece]:
        """Merge overlapping (aligned span, buffer, touched span) of one owner into pieces.

        Overlapping buffers share a piece, because one may read what another one writes.
        """
        groups: list[list[tuple[Span, int, Span]]] = []
        end = -1
        for each in sorted(spans):
            if groups and each[0][0] < end:
                groups[-1].append(each)
            else:
                groups.append([each])
            end = max(end, each[0][1]) if len(groups[-1]) > 1 else each[0][1]
        return [self._build_piece(g) for g in groups]

    def _build_piece(self, group: list[tuple[Span, int, Span]]) -> MemoryPiece:
        """Return the piece of a group of overlapping spans, with the spans it may write."""
        span = group[0][0][0], max(whole[1] for whole, _, _ in group)
        written = {s: None for _, k, s in group if self.writes[k] and s[0] < s[1]}
        return MemoryPiece(span, tuple(k for _, k, _ in group), (*written,))


class _CompanionLaunch:
    """A launch on the companion with memory of the device."""

    def __init__(
        self,
        device: FallbackBackend,
        program: CompanionProgram,
        ints: Sequence[int],
        grid: Sequence[int],
    ) -> None:
        assert device.companion is not None
        self.device, self.companion = device, device.companion
        self.name = program.kernel.name
        self.run = self.companion.backend.bind(program.program, ints, grid)
        self.touched = TouchedMemory(program.kernel, ints, grid)
        self.starts = buffer_starts(device.wrapped.info.capabilities, program.kernel, ints)

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        handles, offsets = buffers[::2], buffers[1::2]
        shared = self._share_handles(handles) if self.device.shares_memory else None
        if shared is not None:
            self.device.wrapped.synchronize(stream)
            self._run_on_companion(shared, offsets, scalars)
            return
        owners = [(_hashable_key(h), o) for h, o in zip(handles, offsets, strict=True)]
        starts = [offset + start for offset, start in zip(offsets, self.starts, strict=True)]
        extents = [self.device.extent(h, b) for h, b in zip(handles, starts, strict=True)]
        pieces = [p for _, p in self.touched.pieces(owners, extents)]
        moved = self._copy_to_companion(pieces, handles, stream)
        handles_there: list[Any] = [None] * len(handles)
        offsets_there = [0] * len(handles)
        for p, ptr in zip(pieces, moved, strict=True):
            for k in p.buffers:
                handles_there[k], offsets_there[k] = ptr.handle, ptr.offset + offsets[k] - p.span[0]
        self._run_on_companion(handles_there, offsets_there, scalars)
        self._copy_from_companion(pieces, moved, handles, stream)

    def _share_handles(self, handles: Sequence[Handle]) -> list[Handle] | None:
        """Adopt the memory on the companion; return its handles, or None if one cannot be used."""
        shared: list[Handle] = []
        for handle in handles:
            address = self.device.wrapped.host_address(handle, 0)
            if address is None:
                return None
            adopted = self.companion.backend.adopt(address, self.device.size(handle))
            if adopted is None:
                return None
            shared.append(adopted)
        return shared

    def _run_on_companion(
        self, handles: Sequence[Handle], offsets: Sequence[int], scalars: Sequence[Scalar]
    ) -> None:
        """Launch on the companion's memory and wait; count and profile the launch."""
        start_ns = time.perf_counter_ns()
        args = tuple([x for pair in zip(handles, offsets, strict=True) for x in pair])
        self.run(args, scalars, None)
        self.companion.backend.synchronize(None)
        self.device.companion_launches += 1
        callbacks.record_event(
            f"companion {self.name}", start_ns, device=str(self.companion.device)
        )

    def _copy_to_companion(
        self, pieces: Sequence[MemoryPiece], handles: Sequence[Handle], stream: StreamHandle
    ) -> list[DataPtr]:
        """Copy pieces through the host to new memory of the companion; return its pointers."""
        start_ns, nbytes = time.perf_counter_ns(), 0
        moved = []
        for p in pieces:
            low, high = p.span
            ptr = self.companion.allocate(high - low, None)
            moved.append(ptr)
            if high > low:
                host = memoryview(bytearray(high - low))
                self.device.wrapped.copy_out(host, handles[p.buffers[0]], low, stream)
                self.companion.backend.copy_in(ptr.handle, ptr.offset, host, None)
                nbytes += high - low
        self._record_copy("to", start_ns, nbytes)
        return moved

    def _copy_from_companion(
        self,
        pieces: Sequence[MemoryPiece],
        companion_copies: Sequence[DataPtr],
        handles: Sequence[Handle],
        stream: StreamHandle,
    ) -> None:
        """Copy written spans back to the device, in stream order; the copies may be freed then."""
        start_ns, nbytes = time.perf_counter_ns(), 0
        for p, ptr in zip(pieces, companion_copies, strict=True):
            for low, high in p.written:
                host = memoryview(bytearray(high - low))
                offset = ptr.offset + low - p.span[0]
                self.companion.backend.copy_out(host, ptr.handle, offset, None)
                self.device.wrapped.copy_in(handles[p.buffers[0]], low, host, stream)
                nbytes += high - low
        self._record_copy("from", start_ns, nbytes)

    def _record_copy(self, direction: str, start_ns: int, nbytes: int) -> None:
        """Add the bytes to the device's counter, and an event to the profiles."""
        self.device.copied_bytes += nbytes
        callbacks.record_event(f"copy {direction} {self.companion.device}", start_ns, bytes=nbytes)
