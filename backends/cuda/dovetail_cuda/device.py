"""The open device: an implementation of `Backend` by the other modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dovetail.extend import (
    BindingBackend,
    DeviceInfo,
    DType,
    Kernel,
    Launch,
    LibraryCall,
    QueuedLaunch,
    RawArgument,
    RawLaunch,
    Replay,
    StreamHandle,
)

from . import driver as cuda
from .compile import Compiler, CudaProgram
from .graph import GRAPH_LAUNCHES_MIN, CudaGraph
from .launch import bind
from .matmul import library_calls
from .memory import Memory
from .raw import compile_raw

NOT_READY = 600


class CudaBackend(BindingBackend):
    """One GPU. A handle is an address; a stream is the driver's, as a number (0: its default one).

    All work is in the device's primary context, which CUDA libraries in this process share.
    """

    dlpack_type = 2
    pins_memory = True
    asynchronous = True

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        d = cuda.driver
        cuda.unwrap_result(d.cuInit(0), "cuInit")
        self._device = cuda.unwrap_result(d.cuDeviceGet(info.index), "cuDeviceGet")
        retained = d.cuDevicePrimaryCtxRetain(self._device)
        self._context = cuda.unwrap_result(retained, "cuDevicePrimaryCtxRetain")
        self._set_current = d.cuCtxSetCurrent
        self._memory = Memory(self.enter)
        self._compiler = Compiler(info.details["arch"], info.fingerprint)

    def enter(self) -> None:
        """Make the device's context current in this thread; other CUDA code may change it."""
        status = self._set_current(self._context)[0]
        if status != 0:
            raise cuda.status_error(status, "cuCtxSetCurrent")

    def close(self) -> None:
        """Release the device's primary context."""
        cuda.driver.cuDevicePrimaryCtxRelease(self._device)

    # --- memory

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory; return its address.

        Raises: MemoryError; CudaError for other failures.
        """
        return self._memory.allocate(nbytes)

    def free(self, handle: int, nbytes: int) -> None:
        """Free device memory; do nothing in a child of fork()."""
        self._memory.free(handle)

    def copy_in(
        self, handle: int, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy to the device in the stream's order, and wait for the stream."""
        self._memory.copy_in(handle + offset, source, stream or 0)

    def copy_out(
        self, target: memoryview, handle: int, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy to the host in the stream's order, and wait for the stream."""
        self._memory.copy_out(target, handle + offset, stream or 0)

    def queue_copy_in(
        self, handle: int, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Queue a copy to the device without waiting; no bytes are no copy."""
        self._memory.queue_in(handle + offset, source, stream or 0)

    def queue_copy_out(
        self, target: memoryview, handle: int, offset: int, stream: StreamHandle = None
    ) -> None:
        """Queue a copy to the host without waiting; no bytes are no copy."""
        self._memory.queue_out(target, handle + offset, stream or 0)

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate page-locked host memory; return its address.

        Raises: MemoryError; CudaError for other failures.
        """
        return self._memory.allocate_pinned(nbytes)

    def free_pinned(self, address: int, nbytes: int) -> None:
        """Free page-locked host memory; do nothing in a child of fork()."""
        self._memory.free_pinned(address)

    def adopt(self, address: int, nbytes: int) -> int | None:
        """Return the address if the driver knows the memory, else None."""
        return address if not nbytes or self._memory.is_known(address) else None

    # --- work

    def compile(self, kernel: Kernel) -> CudaProgram:
        """Compile a kernel in the device's context. Raises: CompileError if NVRTC rejects it."""
        self.enter()
        return self._compiler.compile(kernel)

    def load(self, kernel: Kernel, binary: bytes) -> CudaProgram:
        """Load a program from its cubin. Raises: ValueError or CudaError if it is unusable."""
        self.enter()
        return self._compiler.load(kernel, binary)

    def bound(self, program: CudaProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues a program with fixed ints and grid."""
        self.enter()
        return bind(self.enter, program, ints, grid)

    raw_language = "CUDA C"

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        """Compile CUDA C; return a launcher of function `name`.

        Raises: CompileError if NVRTC rejects the text, or it has no such function.
        """
        self.enter()
        return compile_raw(self._compiler, self.enter, source, name, arguments, options)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay | None:
        """Return the replay of a CUDA graph, or None for fewer than GRAPH_LAUNCHES_MIN launches."""
        return (
            CudaGraph(self.enter, launches).replay if len(launches) >= GRAPH_LAUNCHES_MIN else None
        )

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for a stream; for None wait for the whole device."""
        if stream is not None:
            self._memory.wait(stream)
        else:
            self.enter()
            cuda.unwrap_result(cuda.driver.cuCtxSynchronize(), "waiting for the device")

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        """Return cuBLAS's matmul routines; {} if the library is not installed."""
        return library_calls()

    # --- streams and events

    def create_stream(self) -> int:
        """Create a stream that does not wait for the default one; return its number."""
        self.enter()
        independent = cuda.driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        return int(cuda.unwrap_result(cuda.driver.cuStreamCreate(independent), "cuStreamCreate"))

    def record_event(self, stream: StreamHandle) -> _Event:
        """Create an event, and record it at the current end of a stream."""
        self.enter()
        event = _Event()
        cuda.unwrap_result(cuda.driver.cuEventRecord(event.handle, stream or 0), "cuEventRecord")
        return event

    def event_done(self, event: _Event) -> bool:
        """Return True if the event has passed; do not wait.

        Raises: CudaError if the query fails.
        """
        status = cuda.driver.cuEventQuery(event.handle)[0]
        if status != NOT_READY:
            cuda.unwrap_result((status,), "cuEventQuery")
        return bool(status != NOT_READY)

    def wait_event(self, stream: StreamHandle, event: _Event) -> None:
        """Make a stream wait for the event; for None block the host."""
        self.enter()
        if stream is None:
            cuda.unwrap_result(cuda.driver.cuEventSynchronize(event.handle), "waiting for an event")
        else:
            cuda.unwrap_result(
                cuda.driver.cuStreamWaitEvent(stream, event.handle, 0), "cuStreamWaitEvent"
            )

    def elapsed_ms(self, start: _Event, end: _Event) -> float:
        """Return the milliseconds between two events that have passed."""
        elapsed = cuda.driver.cuEventElapsedTime(start.handle, end.handle)
        return float(cuda.unwrap_result(elapsed, "cuEventElapsedTime"))


class _Event:
    """An event of the driver that is destroyed with this object."""

    __slots__ = ("__del__", "handle")

    # In a slot, so that Python calls the driver's function itself: no interrupt comes between.
    __del__: Callable[[], object]

    def __init__(self) -> None:
        flags = cuda.driver.CUevent_flags.CU_EVENT_DEFAULT
        self.handle = cuda.unwrap_result(cuda.driver.cuEventCreate(flags), "cuEventCreate")
        self.__del__ = partial(cuda.driver.cuEventDestroy, self.handle)
