"""The open device: an implementation of `Backend` by the other modules."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyopencl as cl
from dovetail.extend import (
    HOST_MEMORY,
    BindingBackend,
    DeviceInfo,
    EventHandle,
    Handle,
    Kernel,
    Launch,
    Process,
    RawArgument,
    RawLaunch,
    StreamHandle,
    end_without_driver,
)

from . import loader
from .compile import Compiler, OpenCLProgram
from .launch import Launcher
from .memory import Memory
from .plugin import devices_of
from .raw import compile_raw


class Queue(cl.CommandQueue):
    """A stream: an in-order queue.

    When it ends, the driver's queue is kept for a last wait, because its work may go on.
    (pyopencl's own class has no weak references.)
    """

    __slots__ = ("__del__", "__weakref__")

    __del__: Callable[[], object]  # in a slot: no interrupt comes between

    def __init__(self, context: Any, device: Any, orphaned: deque[cl.CommandQueue]) -> None:
        super().__init__(context, device, cl.command_queue_properties.PROFILING_ENABLE)
        self.__del__ = partial(orphaned.append, cl.CommandQueue.from_int_ptr(self.int_ptr))


class OpenCLBackend(BindingBackend):
    """One OpenCL device. A handle is a buffer; a stream is a queue."""

    asynchronous = True
    programs_kept = 512  # Intel's runtime takes 3 MiB for each

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.device = [d for p in loader.platforms() for d in devices_of(p)][info.index]
        self.context = cl.Context([self.device])
        name = f"{info.type}:{info.index} ({info.name})"
        self._process = Process(name, "OpenCL", end_without_driver)
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._orphaned_queues: deque[cl.CommandQueue] = deque()  # queues of ended streams
        self.queue = self.create_stream()
        self._memory = Memory(self.context, self.device)
        self.dlpack_type = HOST_MEMORY if self._memory.shared else None
        self.pins_memory = not self._memory.shared
        self._compiler = Compiler(self.context, self.device, info)
        self._launcher = Launcher(self.queue, self.device, self._process)

    # --- memory

    def allocate(self, nbytes: int) -> Handle:
        """Allocate a buffer. Raises: MemoryError; DeviceError in a child of fork()."""
        self._process.check()
        return self._memory.allocate(nbytes)

    def free(self, handle: Handle, nbytes: int) -> None:
        """Wait for all queues, then release the buffer; do nothing in a child of fork()."""
        if self._process.alive:
            self.synchronize()  # drivers do not know whether shared memory is in use
            self._memory.free(handle)

    def copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy from the host after the stream's work, and wait; no bytes are no copy."""
        self._process.check()
        if source.nbytes:
            self._memory.copy_in(stream or self.queue, handle, offset, source)

    def copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy to the host after the stream's work, and wait; no bytes are no copy."""
        self._process.check()
        if target.nbytes:
            self._memory.copy_out(stream or self.queue, target, handle, offset)

    def queue_copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Queue a copy from the host without waiting; no bytes are no copy."""
        self._process.check()
        if source.nbytes:
            self._memory.queue_copy(stream or self.queue, handle, source, dst_offset=offset)

    def queue_copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Queue a copy to the host without waiting; no bytes are no copy."""
        self._process.check()
        if target.nbytes:
            self._memory.queue_copy(stream or self.queue, target, handle, src_offset=offset)

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate and map page-locked memory; return its address.

        Raises: MemoryError; DeviceError in a child of fork().
        """
        self._process.check()
        return self._memory.allocate_pinned(self.queue, nbytes)

    def free_pinned(self, address: int, nbytes: int) -> None:
        """Unmap and release page-locked memory; do nothing in a child of fork()."""
        if self._process.alive:
            self._memory.free_pinned(self.queue, address)

    def host_address(self, handle: Handle, offset: int) -> int | None:
        """Return the host address in a shared buffer, or None for device memory."""
        return handle.address + offset if self._memory.shared else None

    def adopt(self, address: int, nbytes: int) -> Handle:
        """Return a buffer over host memory, or None if the device does not share it."""
        self._process.check()
        return self._memory.adopt(address, nbytes)

    # --- work

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """Build a kernel in its first schedule.

        Raises: CompileError if the driver rejects it; DeviceError in a child of fork().
        """
        self._process.check()
        return self._compiler.compile(kernel)

    def compile_all(self, kernels: Sequence[Kernel]) -> Sequence[OpenCLProgram]:
        """Build kernels together, without binaries if that succeeds, else one by one.

        Raises: CompileError for a kernel that the driver rejects; DeviceError in a child of fork().
        """
        self._process.check()
        return self._compiler.compile_all(kernels)

    def load(self, kernel: Kernel, binary: bytes) -> OpenCLProgram:
        """Build a program from its binary. Raises: ValueError or cl.Error if it is unusable."""
        self._process.check()
        return self._compiler.load(kernel, binary)

    def bound(self, program: OpenCLProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues a program with fixed ints and grid."""
        return self._launcher.bind(program, ints, grid)

    raw_language = "OpenCL C"

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        """Build OpenCL C; return a launcher of kernel `name`.

        Raises: CompileError if the driver rejects the text, it has no such kernel, or the number of
        parameters differs; DeviceError in a child of fork().
        """
        self._process.check()
        return compile_raw(self._compiler, self.queue, source, name, arguments, options)

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for a queue; for None wait for all, also for those of ended streams."""
        self._process.check()
        if stream is not None:
            stream.finish()
            return
        for queue in tuple(self._queues):
            queue.finish()
        for orphan in tuple(self._orphaned_queues):
            orphan.finish()
            with suppress(ValueError):  # another thread has done so
                self._orphaned_queues.remove(orphan)

    # --- streams and events

    def create_stream(self) -> Queue:
        """Create an in-order queue, which `synchronize` waits for."""
        self._process.check()
        queue = Queue(self.context, self.device, self._orphaned_queues)
        self._queues.add(queue)
        return queue

    def record_event(self, stream: StreamHandle) -> EventHandle:
        """Queue a marker, and return it as the event."""
        self._process.check()
        return cl.enqueue_marker(stream or self.queue)

    def event_done(self, event: EventHandle) -> bool:
        """Return True if the event's marker has been passed, without waiting."""
        complete: bool = event.command_execution_status == cl.command_execution_status.COMPLETE
        return complete

    def wait_event(self, stream: StreamHandle, event: EventHandle) -> None:
        """Queue a barrier on `stream` that waits for the event; without stream block the host."""
        self._process.check()
        if stream is None:
            event.wait()
        else:
            cl.enqueue_barrier(stream, wait_for=[event])

    def elapsed_ms(self, start: EventHandle, end: EventHandle) -> float:
        """Return the milliseconds between the ends of two profiled markers."""
        return float(end.profile.end - start.profile.end) / 1e6
