"""What a backend implements: a raw allocator, a compiler of kernels, a launch, and nothing else.

A `Backend` is one opened device. It never sees a tensor, a layout, a shape rule or a gradient: only
kernels, buffers (a handle of its own choosing and a byte offset), integers and scalars.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ..dtypes import DType
from ..errors import CompileError
from ..loops.builder import Kernel
from ..loops.target import Capabilities

# (major: the entry-point group's, minor: the least that `dovetail_backend_info` may ask for)
INTERFACE = (1, 0)


@dataclass(frozen=True)
class DeviceInfo:
    """One device that a plugin offers. `fingerprint` names all that a cached binary depends on."""

    type: str
    index: int
    name: str
    fingerprint: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    total_memory: int = 0  # bytes; 0 where unknown
    details: Mapping[str, str] = field(default_factory=dict)  # for `dovetail devices`, the doctor
    companion: str | None = None  # the device that runs what `Backend.accepts` refuses


@dataclass(frozen=True)
class BackendInfo:
    """What `dovetail_backend_info` returns: pure data, no probing."""

    type: str
    version: str
    minimum_interface: tuple[int, int] = (1, 0)
    summary: str = ""


@dataclass(frozen=True)
class Unavailable:
    """A probe's answer where there is no device: why, and what to do about it."""

    reason: str
    hint: str


class Program(ABC):
    """A compiled kernel. `source` is shown by `dt.explain`; `binary`, if any, is kept on disk."""

    kernel: Kernel
    source: str = ""
    binary: bytes | None = None


# What a backend makes them is its own affair: addresses, numbers, objects of a driver.
Handle: TypeAlias = Any  # of memory, from `allocate` or `adopt`
StreamHandle: TypeAlias = Any  # from `create_stream`; None: the default stream
EventHandle: TypeAlias = Any  # from `record_event`
Compiled: TypeAlias = Any  # its own kind of `Program`, from `compile` or `load`
Handles = tuple[Handle, ...]  # handle0, byte offset0, handle1, byte offset1, ...
Scalar = float | int | bool
# (handle, byte offset, shape, strides in elements, dtype): what a library call reads or writes
StridedOperand = tuple[Handle, int, tuple[int, ...], tuple[int, ...], DType]
# routine(backend, inputs, output, stream)
LibraryCall = Callable[[Any, Sequence[StridedOperand], StridedOperand, StreamHandle], None]
Launch = Callable[[Handles, Sequence[Scalar], StreamHandle], None]


class Entry(int):
    """The address of a C function that does what a `Launch` does, for those who are compiled, too.

    `int entry(const void *block, const int64_t *places, PyObject *const *scalars)`: `places` are
    sums of handle and byte offset, of each buffer one; it holds the GIL, and returns -1 where it
    has set an error. The launch is a built-in function whose `__self__` is a tuple that begins with
    bytes, the `block`, and this address. There are no streams then.
    """


class QueuedLaunch(NamedTuple):
    """A launch of a sequence: what `bind` or `bind_call` gave, and where its arguments are.

    They are read when that is replayed. `buffers`: of each the slot that it lies in, and its byte
    there. `scalars`: of each its value, or where that is to be read the number of a variable.
    """

    launch: Launch
    buffers: tuple[tuple[int, int], ...]
    scalars: tuple[tuple[Scalar, int | None], ...]


class RawArgument(NamedTuple):
    """A parameter of a kernel in the device's own language: memory, or ("" as access) a number."""

    name: str
    dtype: DType
    access: str  # "r", "w", "rw"


class Grid(NamedTuple):
    """How many work items there are along each axis, up to three, and, if asked for, in a group."""

    points: tuple[int, ...]
    group: tuple[int, ...] | None


# Launches a kernel in the device's own language: handle and byte offset of each memory, in order;
# numbers, in order; a grid (None: of a function that is called once); a stream.
RawLaunch = Callable[[list[Any], Sequence[Scalar], Grid | None, StreamHandle], None]


# What replays a sequence: of (handle, byte offset) of each slot, one after the other; the variables
# (Python numbers); a stream.
Replay = Callable[[list[Any], list[Any], StreamHandle], None]

HOST_MEMORY = 1  # DLPack's device type of memory that the host reaches (kDLCPU)


class Backend(ABC):
    """One opened device. All sizes are bytes."""

    info: DeviceInfo
    asynchronous: bool = False  # whether `launch` may return before the work is done
    programs_kept: int = 1024  # that are loaded, besides those of plans in use
    careful: bool = False  # whether kernels of users' own always check their indices here
    dlpack_type: int | None = None  # DLPack's device type of this memory, if it has one

    @property
    def host(self) -> bool:
        """Whether this memory is the host's own."""
        return self.dlpack_type == HOST_MEMORY

    # --- memory: a raw allocator. Reuse, statistics and streams are the core's business.
    @abstractmethod
    def allocate(self, nbytes: int) -> Handle:
        """A handle to `nbytes` > 0 of fresh memory, aligned to 64 bytes. Raises: MemoryError."""

    @abstractmethod
    def free(self, handle: Handle, nbytes: int) -> None:
        """Returns what `allocate` gave."""

    @abstractmethod
    def copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copies host bytes (contiguous, format "B") in, after everything queued on `stream`.

        And before what is queued there later. `source` may be reused on return.
        """

    @abstractmethod
    def copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copies device bytes into writable host memory, after everything queued on `stream`."""

    # --- copies that the host does not wait for: blocking ones unless overridden
    def queue_copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """As `copy_in`, in order too, but may return early.

        `source` is left alone until `stream` has passed.
        """
        self.copy_in(handle, offset, source, stream)

    def queue_copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """As `copy_out`, but may return at once: `target` is good when `stream` has passed."""
        self.copy_out(target, handle, offset, stream)

    pins_memory: bool = False  # whether there is page-locked memory, for which these are meant

    def allocate_pinned(self, nbytes: int) -> int:
        """The address of `nbytes` > 0 of page-locked host memory, aligned to 64 bytes.

        Raises: MemoryError when refused.
        """
        raise MemoryError(f"{self.info.name} has no page-locked memory")

    def free_pinned(self, address: int, nbytes: int) -> None:  # noqa: B027
        """Returns what `allocate_pinned` gave."""

    def host_address(self, handle: Handle, offset: int) -> int | None:
        """The address at which the host may read and write this memory, or None where it cannot."""
        return None

    def adopt(self, address: int, nbytes: int) -> Handle:
        """A handle to memory of `dlpack_type` that somebody else owns; None where it is no use."""
        return None

    # --- work
    def accepts(self, kernel: Kernel) -> bool:
        """Whether `compile` takes this (legalised) kernel; asked once, before it.

        What it does not take runs on `DeviceInfo.companion`, between copies there and back.
        """
        return True

    @abstractmethod
    def compile(self, kernel: Kernel) -> Program:
        """The program for a (legalised) kernel.

        Raises: CompileError with the kernel and the compiler's log.
        """

    def compile_all(self, kernels: Sequence[Kernel]) -> Sequence[Program]:
        """`compile` for each; override it where building several at once takes less time."""
        return [self.compile(k) for k in kernels]

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        """The program from `Program.binary` of an earlier process. Raises: anything, if not."""
        return self.compile(kernel)

    @abstractmethod
    def launch(
        self,
        program: Compiled,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[Scalar],
        grid: Sequence[int],
        stream: StreamHandle = None,
    ) -> None:
        """Runs (or queues) a program over a grid of these extents, none of which is 0.

        Buffers may share memory, scalars be whole numbers where the parameter is a float.
        """

    def bind(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """`launch` with everything fixed but buffers, scalars and stream.

        What it returns is called often: a fast version is worth the while.
        """
        frozen_ints, frozen_grid = tuple(ints), tuple(grid)

        def launch(buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
            self.launch(program, buffers, frozen_ints, scalars, frozen_grid, stream)

        return launch

    def launch_all(
        self,
        launches: Sequence[tuple[Launch, Handles, Sequence[Scalar]]],
        stream: StreamHandle = None,
    ) -> None:
        """Runs (or queues) several launches in order: what `bind` gave, handles, scalars of each.

        Called only where it is overridden: plans of several launches then come in one piece.
        What one writes is seen by those after it.
        """
        for launch, buffers, scalars in launches:
            launch(buffers, scalars, stream)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay | None:
        """One function that does these launches in order; None where one by one is as good.

        A captured function does them again and again. What one writes is seen by those after it.
        A launch that a loop repeats without a change is one object, several times in the list.
        """
        return None

    def synchronize(self, stream: StreamHandle = None) -> None:  # noqa: B027
        """Returns when everything queued on `stream` (None: on the device) is done."""

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        """Vendor routines by op and dtype, e.g. ("matmul", float32), instead of generated kernels.

        A routine writes the output; all its inputs are of this dtype.
        """
        return {}

    def bind_call(
        self, routine: LibraryCall, inputs: Sequence[StridedOperand], output: StridedOperand
    ) -> Launch | None:
        """A library call with everything fixed but handles, offsets and stream.

        The operands come without handles, with offset 0. What it returns is called as what `bind`
        does, with those of the inputs and then the output, and may be part of a sequence. None: the
        routine itself is called.
        """
        return None

    def close(self) -> None:  # noqa: B027
        """Gives up what the device holds; nothing is called afterwards."""

    # --- kernels that users write in the device's own language
    raw_language: str = ""  # its name; none: there are no such kernels
    raw_grids: bool = True  # whether they are run at each point of a grid; else called once

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        """What launches the function `name` of a text. Raises: CompileError with the log."""
        raise CompileError(
            f"{self.info.type} has no language for kernels of one's own; write it as dt.kernel"
        )

    # --- streams and events: in order and immediate unless overridden
    def create_stream(self) -> StreamHandle:
        """A handle of a new stream, hashable; kept as long as the device is in use."""
        return object()

    def record_event(self, stream: StreamHandle) -> EventHandle:
        """A handle that marks the present end of `stream`; its own `__del__` gives it back."""
        return time.perf_counter_ns()

    def event_done(self, event: EventHandle) -> bool:
        """Whether everything before the event has been done."""
        return True

    def wait_event(self, stream: StreamHandle, event: EventHandle) -> None:  # noqa: B027
        """Makes later work on `stream` wait for `event` (None as stream: the host waits)."""

    def elapsed_ms(self, start: EventHandle, end: EventHandle) -> float:
        """Milliseconds between two events."""
        return float(end - start) / 1e6
