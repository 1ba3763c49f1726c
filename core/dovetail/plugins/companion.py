"""Devices that do a part of the work: what their backend does not accept runs on a companion.

`Accompanied` is what the core sees in place of such a backend. It compiles a kernel that is not
accepted for the companion, and binds it to a launch that copies what the kernel may touch there,
launches, and copies what it may have written back, in the order of the stream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from .. import callbacks
from ..arguments import shown
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
from ..backend.limits import starts
from ..device_class import Device
from ..dtypes import DType
from ..errors import CompileError, PluginError
from ..loops.bounds import reach_of_each
from ..loops.builder import Kernel
from ..loops.floats import keeps_all, lacking
from ..memory import make_allocator
from ..memory.pointer import DataPtr
from ..recent import Recent
from .opened import LibraryCalls, Opened

Span: TypeAlias = tuple[int, int]  # first byte and end
ALIGNED = 64  # places keep their remainder by this, on which alignment depends


class Elsewhere(Program):
    """A kernel that the device does not accept, compiled by the companion."""

    def __init__(self, kernel: Kernel, program: Program) -> None:
        self.kernel, self.program, self.source = kernel, program, program.source


class Accompanied:
    """A backend that does not accept every kernel, and its companion; else as the backend itself.

    `own`: the backend as its author wrote it. `companion`: None where it names none. `launches`,
    `copied`: how many launches the companion did, and the bytes that were copied to and fro.
    """

    opened: Opened  # set when it is

    def __init__(self, own: Backend, device: Device, companion: Opened | None) -> None:
        self.own, self.device, self.companion = own, device, companion
        self.launches = self.copied = 0
        self._accepted: Recent[str, bool] = Recent(4096)  # by the kernel's text
        self._sizes: dict[object, tuple[Handle, int]] = {}  # of what is allocated
        self._adopted: Recent[object, tuple[Handle, int]] = Recent(4096)
        self.shares = companion is not None and own.host and companion.backend.host

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    # --- memory: how large it is
    def allocate(self, nbytes: int) -> Handle:
        """See `Backend.allocate`."""
        handle = self.own.allocate(nbytes)
        self._sizes[_key(handle)] = handle, nbytes
        return handle

    def free(self, handle: Handle, nbytes: int) -> None:
        """See `Backend.free`."""
        self._sizes.pop(_key(handle), None)
        self.own.free(handle, nbytes)

    def adopt(self, address: int, nbytes: int) -> Handle:
        """See `Backend.adopt`."""
        handle = self.own.adopt(address, nbytes)
        if handle is not None:
            self._adopted[_key(handle)] = handle, nbytes
        return handle

    def size(self, handle: Handle) -> int:
        """The bytes behind a handle. Raises: PluginError for one that is none of the device's."""
        key = _key(handle)
        found = self._sizes.get(key) or self._adopted.find(key)
        if found is None:
            raise PluginError(f"{self.device}: {shown(handle)} is no memory that it has given")
        return found[1]

    def extent(self, handle: Handle, offset: int) -> Span:
        """The memory around a place that has one owner; all behind the handle if that is unknown.

        What lies beyond may be written by others meanwhile.
        """
        found: Span | None = self.opened.allocator.extent(handle, offset)
        return found or (0, self.size(handle))

    # --- programs
    def accepts(self, kernel: Kernel) -> bool:
        """Whether the device itself runs a kernel; its backend is asked once.

        Raises: PluginError for an answer that is no bool.
        """
        text = str(kernel)
        known = self._accepted.find(text)
        if known is None:
            answer: object = self._lacks(kernel) == "" and self.own.accepts(kernel)
            if not isinstance(answer, bool):
                what = f"{self.device}: accepts({kernel.name}) returned {shown(answer)}"
                raise PluginError(f"{what}, not True or False")
            known = self._accepted[text] = answer
        return known

    def _lacks(self, kernel: Kernel) -> str:
        return lacking(kernel, self.own.info.capabilities)

    def compile(self, kernel: Kernel) -> Program:
        """See `Backend.compile`. Raises: CompileError where nobody takes the kernel."""
        return self.own.compile(kernel) if self.accepts(kernel) else self._elsewhere(kernel)

    def compile_all(self, kernels: Sequence[Kernel]) -> list[Program]:
        """See `Backend.compile_all`."""
        mine = [k for k in kernels if self.accepts(k)]
        made = iter(self.own.compile_all(mine) if mine else ())
        return [next(made) if self.accepts(k) else self._elsewhere(k) for k in kernels]

    def _elsewhere(self, kernel: Kernel) -> Elsewhere:
        if self.companion is None:
            lacks = self._lacks(kernel)
            raise CompileError(
                f"{self.device} does not accept the kernel {kernel.name}"
                f"{f', which needs {lacks}' if lacks else ''}, and has no companion to "
                'run it. Its backend can name one, DeviceInfo(..., companion="reference"); or '
                f"compute this on another device: x.to(...)\n{kernel}"
            )
        return Elsewhere(kernel, callbacks.program_of(self.companion, kernel))

    # --- launches
    def bind(self, program: Program, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """See `Backend.bind`."""
        if isinstance(program, Elsewhere):
            return _Launch(self, program, ints, grid)
        return self.own.bind(program, ints, grid)

    def launch(
        self,
        program: Program,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[Scalar],
        grid: Sequence[int],
        stream: StreamHandle = None,
    ) -> None:
        """See `Backend.launch`."""
        if isinstance(program, Elsewhere):
            self.bind(program, ints, grid)(buffers, scalars, stream)
        else:
            self.own.launch(program, buffers, ints, scalars, grid, stream)

    def launch_all(
        self, launches: Sequence[tuple[Launch, Handles, Sequence[Scalar]]],
        stream: StreamHandle = None,
    ) -> None:  # fmt: skip
        """See `Backend.launch_all`: those between launches of the companion in one piece."""
        waiting: list[tuple[Launch, Handles, Sequence[Scalar]]] = []
        for each in launches:
            if not isinstance(each[0], _Launch):
                waiting.append(each)
                continue
            if waiting:
                self.own.launch_all(waiting, stream)
                waiting = []
            each[0](each[1], each[2], stream)
        if waiting:
            self.own.launch_all(waiting, stream)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay | None:
        """See `Backend.sequence`; one by one where the companion does any of them."""
        if any(isinstance(x.launch, _Launch) for x in launches):
            return None
        return self.own.sequence(launches)

    # --- vendor routines, which are called with the backend itself
    def bind_call(
        self, routine: LibraryCall, inputs: Sequence[StridedOperand], output: StridedOperand
    ) -> Launch | None:
        """See `Backend.bind_call`."""
        inner = routine.routine if isinstance(routine, _Routine) else routine
        return self.own.bind_call(inner, inputs, output)

    def routines(
        self, calls: Mapping[tuple[str, DType], LibraryCall]
    ) -> dict[tuple[str, DType], LibraryCall]:
        """Vendor routines that are given the backend itself."""
        return {key: _Routine(self.own, routine) for key, routine in calls.items()}


Backend.register(Accompanied)


class _Routine:
    """A vendor's routine, for the backend as its author wrote it."""

    def __init__(self, own: Backend, routine: LibraryCall) -> None:
        self.own, self.routine = own, routine

    def __call__(
        self, backend: object, inputs: Sequence[StridedOperand], output: StridedOperand,
        stream: StreamHandle,
    ) -> None:  # fmt: skip
        self.routine(self.own, inputs, output, stream)


def accompanied(
    dev: Device, backend: Backend, companion: Opened | None, calls: LibraryCalls
) -> Opened:
    """A device that is opened: with `Accompanied` before it, if not every kernel may run there."""
    accepts_all = type(backend).accepts is Backend.accepts
    if accepts_all and keeps_all(backend.info.capabilities):
        return Opened(backend, make_allocator(dev, backend), dev, calls)
    partly = Accompanied(backend, dev, companion)
    seen = cast(Backend, partly)  # which it is registered as
    partly.opened = Opened(seen, make_allocator(dev, seen), dev, partly.routines(calls))
    return partly.opened


def own(backend: Backend) -> Backend:
    """The backend as its author wrote it."""
    return backend.own if isinstance(backend, Accompanied) else backend


def companion_of(backend: Backend) -> Opened | None:
    """The companion that does a part of a backend's work; None where it needs none."""
    return backend.companion if isinstance(backend, Accompanied) else None


def _key(handle: Handle) -> object:
    """What a handle is known by: itself, or, as it has no hash, its identity; it is held."""
    try:
        hash(handle)
    except TypeError:
        return "by identity", id(handle)
    return handle


# --- a launch -------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Memory of one owner that several buffers of a launch may share.

    `span`: its bytes; `buffers`: which lie in it; `written`: the spans that they may write.
    """

    span: Span
    buffers: tuple[int, ...]
    written: tuple[Span, ...]

    @property
    def nbytes(self) -> int:
        """How many bytes are copied there and back."""
        return self.span[1] - self.span[0] + sum(high - low for low, high in self.written)


class Touched:
    """What a launch of these sizes may touch: of each buffer bytes from where it begins.

    None is all that belongs to its owner.
    """

    def __init__(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> None:
        kernel = kernel.before or kernel  # of which more is known
        known = reach_of_each(kernel, ints, grid)
        self.writes = [b.access != "r" for b in kernel.buffers]
        self.spans: list[Span | None] = []
        for b in kernel.buffers:
            found, size = known.get(b.name, (0, -1)), b.dtype.itemsize
            self.spans.append(None if found is None else (found[0] * size, (found[1] + 1) * size))

    def pieces(
        self, places: Sequence[tuple[object, int]], extents: Sequence[Span | None]
    ) -> list[tuple[object, Piece]]:
        """Memory that is apart, by where it is: `places` are owners' names and offsets of buffers.

        `extents`: as far as a buffer's memory reaches at most; None: nobody knows.
        """
        found: dict[object, list[tuple[Span, int, Span]]] = {}
        for k, ((owner, offset), extent) in enumerate(zip(places, extents, strict=True)):
            span = self._span(k, offset, extent)
            whole = min(span[0], offset) & -ALIGNED, max(span[1], offset)
            found.setdefault(owner, []).append((whole, k, span))
        return [(owner, p) for owner, spans in found.items() for p in self._joined(spans)]

    def _span(self, k: int, offset: int, extent: Span | None) -> Span:
        span = self.spans[k]
        if span is None:
            return extent or (offset, offset)
        low, high = span[0] + offset, span[1] + offset
        if extent is not None:
            low, high = max(low, extent[0]), min(high, extent[1])
        return (low, high) if low < high else (offset, offset)

    def _joined(self, spans: list[tuple[Span, int, Span]]) -> list[Piece]:
        """Those that overlap are one piece: what is written by one is read by another."""
        groups: list[list[tuple[Span, int, Span]]] = []
        end = -1
        for each in sorted(spans):
            if groups and each[0][0] < end:
                groups[-1].append(each)
            else:
                groups.append([each])
            end = max(end, each[0][1]) if len(groups[-1]) > 1 else each[0][1]
        return [self._piece(g) for g in groups]

    def _piece(self, group: list[tuple[Span, int, Span]]) -> Piece:
        span = group[0][0][0], max(whole[1] for whole, _, _ in group)
        written = {s: None for _, k, s in group if self.writes[k] and s[0] < s[1]}
        return Piece(span, tuple(k for _, k, _ in group), (*written,))


class _Launch:
    """A launch of a kernel on the companion, of memory of the device."""

    def __init__(
        self, device: Accompanied, program: Elsewhere, ints: Sequence[int], grid: Sequence[int]
    ) -> None:
        assert device.companion is not None
        self.device, self.companion = device, device.companion
        self.name = program.kernel.name
        self.run = self.companion.backend.bind(program.program, ints, grid)
        self.touched = Touched(program.kernel, ints, grid)
        self.starts = starts(device.own.info.capabilities, program.kernel, ints)

    def __call__(self, buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
        handles, offsets = buffers[::2], buffers[1::2]
        shared = self._shared(handles) if self.device.shares else None
        if shared is not None:
            self.device.own.synchronize(stream)
            self._work(shared, offsets, scalars)
            return
        places = [(_key(h), o) for h, o in zip(handles, offsets, strict=True)]
        begins = [offset + start for offset, start in zip(offsets, self.starts, strict=True)]
        extents = [self.device.extent(h, b) for h, b in zip(handles, begins, strict=True)]
        pieces = [p for _, p in self.touched.pieces(places, extents)]
        moved = self._copied_there(pieces, handles, stream)
        there: list[Any] = [None] * len(handles)
        at = [0] * len(handles)
        for p, ptr in zip(pieces, moved, strict=True):
            for k in p.buffers:
                there[k], at[k] = ptr.handle, ptr.offset + offsets[k] - p.span[0]
        self._work(there, at, scalars)
        self._copied_back(pieces, moved, handles, stream)

    def _shared(self, handles: Sequence[Handle]) -> list[Handle] | None:
        """The same memory as the companion's; None where it is no use to it."""
        found: list[Handle] = []
        for handle in handles:
            address = self.device.own.host_address(handle, 0)
            if address is None:
                return None
            adopted = self.companion.backend.adopt(address, self.device.size(handle))
            if adopted is None:
                return None
            found.append(adopted)
        return found

    def _work(
        self, handles: Sequence[Handle], offsets: Sequence[int], scalars: Sequence[Scalar]
    ) -> None:
        begun = time.perf_counter_ns()
        args = tuple([x for pair in zip(handles, offsets, strict=True) for x in pair])
        self.run(args, scalars, None)
        self.companion.backend.synchronize(None)
        self.device.launches += 1
        callbacks.note_event(f"companion {self.name}", begun, device=str(self.companion.device))

    def _copied_there(
        self, pieces: Sequence[Piece], handles: Sequence[Handle], stream: StreamHandle
    ) -> list[DataPtr]:
        begun, nbytes = time.perf_counter_ns(), 0
        moved = []
        for p in pieces:
            low, high = p.span
            ptr = self.companion.allocate(high - low, None)
            moved.append(ptr)
            if high > low:
                host = memoryview(bytearray(high - low))
                self.device.own.copy_out(host, handles[p.buffers[0]], low, stream)
                self.companion.backend.copy_in(ptr.handle, ptr.offset, host, None)
                nbytes += high - low
        self._note("to", begun, nbytes)
        return moved

    def _copied_back(
        self, pieces: Sequence[Piece], moved: Sequence[DataPtr], handles: Sequence[Handle],
        stream: StreamHandle,
    ) -> None:  # fmt: skip
        begun, nbytes = time.perf_counter_ns(), 0
        for p, ptr in zip(pieces, moved, strict=True):
            for low, high in p.written:
                host = memoryview(bytearray(high - low))
                place = ptr.offset + low - p.span[0]
                self.companion.backend.copy_out(host, ptr.handle, place, None)
                self.device.own.copy_in(handles[p.buffers[0]], low, host, stream)
                nbytes += high - low
        self._note("from", begun, nbytes)

    def _note(self, way: str, begun: int, nbytes: int) -> None:
        self.device.copied += nbytes
        callbacks.note_event(f"copy {way} {self.companion.device}", begun, bytes=nbytes)
