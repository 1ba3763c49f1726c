"""The interface of backends: a raw allocator, a compiler of kernels, a launch, and nothing else.

A `Backend` is one opened device. It never sees a tensor, a layout, a shape rule or a gradient: only
kernels, buffers (a handle of its own choosing and a byte offset), integers and scalars.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ..dtypes import DType
from ..errors import CompileError
from ..ir.builder import Kernel
from ..ir.target import Capabilities

INTERFACE = (1, 0)
"""The version of the interface: the entry points' group has the major number, and
`BackendInfo.minimum_interface` may ask for a minor one."""


@dataclass(frozen=True)
class DeviceInfo:
    """One device of a plugin.

    - `type`: the type of the plugin, such as "opencl".
    - `index`: the number of the device of its type, from 0.
    - `name`: the name that users read.
    - `fingerprint`: identifies all that a cached binary depends on.
    - `capabilities`: the features that kernels may use.
    - `total_memory`: the memory in bytes; 0 if unknown.
    - `details`: further facts for `dovetail devices` and `dovetail doctor`.
    - `companion`: the name of the device that runs what `Backend.accepts` refuses; None if there is
      none.
    """

    type: str
    index: int
    name: str
    fingerprint: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    total_memory: int = 0  # bytes; 0 if unknown
    details: Mapping[str, str] = field(default_factory=dict)  # for `dovetail devices`, the doctor
    companion: str | None = None  # the device that runs what `Backend.accepts` refuses


@dataclass(frozen=True)
class BackendInfo:
    """The description of a plugin, from `dovetail_backend_info`: pure data, no probing.

    - `type`: the device type that the plugin adds.
    - `version`: the version of the plugin.
    - `minimum_interface`: the least interface (major, minor) that it needs.
    - `summary`: one line for `dovetail devices`.
    """

    type: str
    version: str
    minimum_interface: tuple[int, int] = (1, 0)
    summary: str = ""


@dataclass(frozen=True)
class Unavailable:
    """The result of a probe without devices: the reason, and what the user can do.

    - `reason`: the reason, one sentence.
    - `hint`: what the user can do.
    """

    reason: str
    hint: str


class Program(ABC):
    """A compiled kernel. `dt.explain` shows `source`; the disk cache stores `binary`, if any."""

    kernel: Kernel
    source: str = ""
    binary: bytes | None = None


Handle: TypeAlias = Any
"""Memory, from `allocate` or `adopt`: an address, a number or any object of a driver."""
StreamHandle: TypeAlias = Any
"""A queue of work, from `create_stream`; None is the default stream."""
EventHandle: TypeAlias = Any
"""A place in a queue, from `record_event`."""
Compiled: TypeAlias = Any
"""A subclass of `Program`, from `compile` or `load`."""
Handles = tuple[Handle, ...]
"""Handle and byte offset of each buffer: `(handle0, offset0, handle1, offset1, ...)`."""
Scalar = float | int | bool
"""The argument of a scalar parameter, as a Python number."""
StridedOperand = tuple[Handle, int, tuple[int, ...], tuple[int, ...], DType]
"""An operand of a library call: handle, byte offset, shape, strides in elements, dtype."""
LibraryCall = Callable[[Any, Sequence[StridedOperand], StridedOperand, StreamHandle], None]
"""A vendor's routine: `routine(backend, inputs, output, stream)`."""
Launch = Callable[[Handles, Sequence[Scalar], StreamHandle], None]
"""A function that launches a program, from `bind`: `launch(handles, scalars, stream)`."""


def mark_ordered(
    routine: LibraryCall,
    accepted: Mapping[DType, Collection[DType]] | None = None,
    scales: bool = False,
) -> LibraryCall:
    """Mark a routine that gives the bits of the generated kernels, and return it.

    It is used under `dt.vendor_products(False)`, too, and may get parts of the operands.

    - `routine`: the library call.
    - `accepted`: by the dtype for which it is registered, the dtypes of the operands that it takes:
      it casts the others. None takes operands of that dtype.
    - `scales`: True if it may get two further inputs in the shapes of the operands, which are
      matrices: factors by which it multiplies what it casts, constant along k; for an operand
      without factors the operand itself.
    """
    routine.multiplies_scales = scales  # type: ignore[attr-defined]  # of a function
    routine.accepted_dtypes = accepted or {}  # type: ignore[attr-defined]  # of a function
    return routine


def find_accepted_dtypes(routine: LibraryCall, dtype: DType) -> frozenset[DType]:
    """Return the dtypes of operands that an ordered routine takes; none for other routines."""
    accepted = getattr(routine, "accepted_dtypes", None)
    return frozenset() if accepted is None else frozenset(accepted.get(dtype, (dtype,)))


def multiplies_scales(routine: LibraryCall) -> bool:
    """Return True if a routine multiplies operands by scales."""
    return bool(getattr(routine, "multiplies_scales", False))


class Entry(int):
    """The address of a C function that runs a launch, for compiled callers.

    `int entry(const void *block, const int64_t *places, PyObject *const *scalars)`: `places` are
    sums of handle and byte offset, one per buffer; it is called with the GIL, and returns -1 after
    setting an error. The launch is a built-in function whose `__self__` is a tuple that begins with
    bytes, the `block`, and this address. Such a backend has no streams.
    """


class QueuedLaunch(NamedTuple):
    """A launch of a sequence: the result of `bind` or `bind_call`, and its arguments.

    A replay reads the arguments. `buffers`: slot and byte offset of each buffer. `scalars`: value
    and variable of each scalar; if the variable is a number, the replay reads the value there.

    - `launch`: the result of `bind` or `bind_call`.
    """

    launch: Launch
    buffers: tuple[tuple[int, int], ...]
    scalars: tuple[tuple[Scalar, int | None], ...]


class RawArgument(NamedTuple):
    """A parameter of a kernel in the device's own language: memory, or a number (access "").

    - `name`: the name of the parameter.
    - `dtype`: the dtype of the number, or of the elements.
    - `access`: "r", "w" or "rw" for memory, "" for a number.
    """

    name: str
    dtype: DType
    access: str  # "r", "w", "rw"


class Grid(NamedTuple):
    """The number of work items along each of up to three axes, and per group if specified.

    - `points`: the number of work items along each axis.
    - `group`: the work items of a group along each axis; None lets the device choose.
    """

    points: tuple[int, ...]
    group: tuple[int, ...] | None


RawLaunch = Callable[[list[Any], Sequence[Scalar], Grid | None, StreamHandle], None]
"""A function that launches a kernel in the device's own language, from `compile_raw`.

Its arguments are a list with handle and byte offset of each memory, the numbers, a grid (None for a
function that is called once) and a stream.
"""
Replay = Callable[[list[Any], list[Any], StreamHandle], None]
"""A function that replays launches, from `sequence`.

Its arguments are a list with handle and byte offset of each slot, a list of the variables (Python
numbers) and a stream.
"""
HOST_MEMORY = 1
"""DLPack's device type of memory that the host reaches (kDLCPU): a value of `dlpack_type`."""


class Backend(ABC):
    """One opened device. All sizes are bytes."""

    info: DeviceInfo
    asynchronous: bool = False  # True if `launch` may return before the work is done
    programs_kept: int = 1024  # limit of loaded programs, besides those of plans in use
    compile_threads: int = 1  # threads that compile the kernels of a plan at the same time
    careful: bool = False  # True if user kernels always check their indices
    dlpack_type: int | None = None  # DLPack's device type of this memory, if it has one

    @property
    def host(self) -> bool:
        """True if the device uses the host's memory."""
        return self.dlpack_type == HOST_MEMORY

    # --- memory: a raw allocator. The core implements reuse, statistics and streams.
    @abstractmethod
    def allocate(self, nbytes: int) -> Handle:
        """Allocate `nbytes` > 0, aligned to 64 bytes; return the handle. Raises: MemoryError."""

    @abstractmethod
    def free(self, handle: Handle, nbytes: int) -> None:
        """Free memory of `allocate`.

        - `nbytes`: the size that was allocated.
        """

    @abstractmethod
    def copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy host bytes (contiguous, format "B") to the device, in the order of `stream`.

        The caller may reuse `source` on return.

        - `source`: the host bytes, contiguous, with format "B".
        """

    @abstractmethod
    def copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy device bytes into writable host memory, after everything queued on `stream`.

        - `target`: writable host memory, contiguous.
        """

    # --- asynchronous copies: blocking unless overridden
    def queue_copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy to the device in the order of `stream`, and perhaps return early.

        The caller leaves `source` unchanged until `stream` has passed.

        - `source`: the host bytes, contiguous, with format "B".
        """
        self.copy_in(handle, offset, source, stream)

    def queue_copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy to the host, perhaps return early; `target` is valid when `stream` has passed.

        - `target`: writable host memory, contiguous.
        """
        self.copy_out(target, handle, offset, stream)

    pins_memory: bool = False  # True if the device has page-locked memory, for these copies

    def allocate_pinned(self, nbytes: int) -> int:
        """Return the address of `nbytes` > 0 of page-locked host memory, aligned to 64 bytes.

        Raises: MemoryError.
        """
        raise MemoryError(f"{self.info.name} has no page-locked memory")

    def free_pinned(self, address: int, nbytes: int) -> None:  # noqa: B027
        """Free memory of `allocate_pinned`."""

    def host_address(self, handle: Handle, offset: int) -> int | None:
        """Return the address where the host can access this memory, or None."""
        return None

    def adopt(self, address: int, nbytes: int) -> Handle:
        """Return a handle to foreign memory of `dlpack_type`; None if the device cannot use it.

        - `address`: the address of the memory.
        """
        return None

    # --- work
    def accepts(self, kernel: Kernel) -> bool:
        """Return True if `compile` supports this (legalised) kernel; called once, before it.

        Other kernels run on `DeviceInfo.companion`, with copies of their buffers.
        """
        return True

    @abstractmethod
    def compile(self, kernel: Kernel) -> Program:
        """Compile a (legalised) kernel.

        Raises: CompileError with the kernel and the compiler's log.
        """

    def compile_all(self, kernels: Sequence[Kernel]) -> Sequence[Program]:
        """Compile several kernels; override it if that is faster than one by one.

        - `kernels`: legalised kernels.
        """
        return [self.compile(k) for k in kernels]

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        """Load a program from `Program.binary` of an earlier process. Raises: any error.

        - `binary`: the bytes of `Program.binary`.
        """
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
        """Run (or queue) a program over a grid of these extents, none of which is 0.

        Buffers may share memory. A scalar may be an int although the parameter is a float.
        """

    def bind(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return `launch` with everything fixed except buffers, scalars and stream.

        The result is called often, so a backend should override it with a fast version.
        """
        frozen_ints, frozen_grid = tuple(ints), tuple(grid)

        def launch(buffers: Handles, scalars: Sequence[Scalar], stream: StreamHandle) -> None:
            """Launch the program with the fixed ints and grid."""
            self.launch(program, buffers, frozen_ints, scalars, frozen_grid, stream)

        return launch

    def launch_all(
        self,
        launches: Sequence[tuple[Launch, Handles, Sequence[Scalar]]],
        stream: StreamHandle = None,
    ) -> None:
        """Run (or queue) launches in order: (result of `bind`, handles, scalars) each.

        The core calls it only if it is overridden, with consecutive launches of a plan. A launch
        reads the results of those before it.

        - `launches`: (result of `bind`, handles, scalars) each.
        """
        for launch, buffers, scalars in launches:
            launch(buffers, scalars, stream)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay | None:
        """Return a function that replays these launches in order, or None to run them one by one.

        A captured function calls it repeatedly. A launch reads the results of those before it. A
        launch that a loop repeats unchanged is one object, several times in the list.

        - `launches`: the launches, as `QueuedLaunch`.
        """
        return None

    def synchronize(self, stream: StreamHandle = None) -> None:  # noqa: B027
        """Wait for everything queued on `stream` (None: on the device)."""

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        """Return vendor routines by op and dtype, for use instead of generated kernels.

        For example ("matmul", float32). A routine writes the output; all inputs are of this dtype.
        One with the bits of the generated kernels is marked by `mark_ordered`, and may take inputs
        of other dtypes.
        """
        return {}

    def bind_call(
        self, routine: LibraryCall, inputs: Sequence[StridedOperand], output: StridedOperand
    ) -> Launch | None:
        """Return a library call with everything fixed except handles, offsets and stream.

        The operands have no handles, and offset 0. The result is called like that of `bind`, with
        handles and offsets of the inputs and then the output, and may be part of a sequence. None:
        the core calls the routine itself.

        - `routine`: a vendor routine of `library_calls`.
        - `inputs`: the operands, as `StridedOperand`.
        - `output`: the operand that the routine writes.
        """
        return None

    def close(self) -> None:  # noqa: B027
        """Release the device's resources; no method is called afterwards."""

    # --- user kernels in the device's own language
    raw_language: str = ""  # name of the language; "": not supported
    raw_grids: bool = True  # True if kernels run at each point of a grid, else they are called once

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        """Compile function `name` of a source; return its launch. Raises: CompileError with log.

        - `source`: the text in the device's own language.
        - `name`: the name of the function in it.
        - `arguments`: the parameters, in order.
        - `options`: words for the compiler.
        """
        raise CompileError(
            f"{self.info.type} compiles no raw kernel source; write the kernel as dt.kernel"
        )

    # --- streams and events: in order and immediate unless overridden
    def create_stream(self) -> StreamHandle:
        """Return a hashable handle of a new stream, which lives as long as the device."""
        return object()

    def record_event(self, stream: StreamHandle) -> EventHandle:
        """Return a handle that marks the current end of `stream`; its `__del__` frees the event."""
        return time.perf_counter_ns()

    def event_done(self, event: EventHandle) -> bool:
        """Return True if everything before the event is done."""
        return True

    def wait_event(self, stream: StreamHandle, event: EventHandle) -> None:  # noqa: B027
        """Make later work on `stream` wait for `event` (None as stream: the host waits).

        - `stream`: the stream that waits; None: the host waits.
        """

    def elapsed_ms(self, start: EventHandle, end: EventHandle) -> float:
        """Return the milliseconds between two events.

        - `start`, `end`: handles of events.
        """
        return float(end - start) / 1e6
