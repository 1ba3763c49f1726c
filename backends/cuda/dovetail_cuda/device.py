"""The open device: an implementation of `Backend` by the other modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dovetail.extend import (
    DeviceInfo,
    DriverBackend,
    DType,
    LibraryCall,
    QueuedLaunch,
    RawArgument,
    RawLaunch,
    Replay,
    StreamHandle,
)

from . import driver as cuda
from .compile import Compiler
from .graph import GRAPH_LAUNCHES_MIN, CudaGraph
from .launch import Launcher
from .matmul import library_calls
from .memory import Memory, wait
from .raw import compile_raw

NOT_READY = 600


class CudaBackend(DriverBackend):
    """One GPU. A handle is an address; a stream is the driver's, as a number (0: its default one).

    All work is in the device's primary context, which CUDA libraries in this process share.
    """

    dlpack_type = 2
    compiler: Compiler

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info, "CUDA", cuda.process)
        d = cuda.driver
        cuda.unwrap_result(d.cuInit(0), "cuInit")
        self._device = cuda.unwrap_result(d.cuDeviceGet(info.index), "cuDeviceGet")
        retained = d.cuDevicePrimaryCtxRetain(self._device)
        self._context = cuda.unwrap_result(retained, "cuDevicePrimaryCtxRetain")
        self._set_current = d.cuCtxSetCurrent
        compiler = Compiler(info.details["arch"], info.fingerprint)
        self.attach(Memory(self.enter), compiler, Launcher(self.enter), 0)

    def enter(self) -> None:
        """Make the device's context current in this thread; other CUDA code may change it."""
        status = self._set_current(self._context)[0]
        if status != 0:
            raise cuda.status_error(status, "cuCtxSetCurrent")

    def close(self) -> None:
        """Release the device's primary context."""
        cuda.driver.cuDevicePrimaryCtxRelease(self._device)

    # --- work

    raw_language = "CUDA C"

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        """Compile CUDA C; return a launcher of function `name`.

        Raises: CompileError if NVRTC rejects the text, or it has no such function.
        """
        self.enter()
        return compile_raw(self.compiler, self.enter, source, name, arguments, options)

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay | None:
        """Return the replay of a CUDA graph, or None for fewer than GRAPH_LAUNCHES_MIN launches."""
        return (
            CudaGraph(self.enter, launches).replay if len(launches) >= GRAPH_LAUNCHES_MIN else None
        )

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for a stream; for None wait for the whole device."""
        self.enter()
        if stream is not None:
            wait(stream)
        else:
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
