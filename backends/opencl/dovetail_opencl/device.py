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
    DeviceInfo,
    DriverBackend,
    EventHandle,
    Kernel,
    RawArgument,
    RawLaunch,
    StreamHandle,
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


class OpenCLBackend(DriverBackend):
    """One OpenCL device. A handle is a buffer; a stream is a queue."""

    programs_kept = 512  # Intel's runtime takes 3 MiB for each
    compiler: Compiler

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info, "OpenCL")
        self.device = [d for p in loader.platforms() for d in devices_of(p)][info.index]
        self.context = cl.Context([self.device])
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._orphaned_queues: deque[cl.CommandQueue] = deque()  # queues of ended streams
        queue = self.create_stream()
        memory = Memory(self.context, self.device, queue)
        compiler = Compiler(self.context, self.device, info)
        self.attach(memory, compiler, Launcher(queue, self.device, self.process), queue)

    # --- work

    def compile_all(self, kernels: Sequence[Kernel]) -> Sequence[OpenCLProgram]:
        """Build kernels together, without binaries if that succeeds, else one by one.

        Raises: CompileError for a kernel that the driver rejects; DeviceError in a child of fork().
        """
        self.enter()
        return self.compiler.compile_all(kernels)

    raw_language = "OpenCL C"

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        """Build OpenCL C; return a launcher of kernel `name`.

        Raises: CompileError if the driver rejects the text, it has no such kernel, or the number of
        parameters differs; DeviceError in a child of fork().
        """
        self.enter()
        return compile_raw(self.compiler, self.stream, source, name, arguments, options)

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for a queue; for None wait for all, also for those of ended streams."""
        self.enter()
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
        self.enter()
        queue = Queue(self.context, self.device, self._orphaned_queues)
        self._queues.add(queue)
        return queue

    def record_event(self, stream: StreamHandle) -> EventHandle:
        """Queue a marker, and return it as the event."""
        self.enter()
        return cl.enqueue_marker(stream or self.stream)

    def event_done(self, event: EventHandle) -> bool:
        """Return True if the event's marker has been passed, without waiting."""
        complete: bool = event.command_execution_status == cl.command_execution_status.COMPLETE
        return complete

    def wait_event(self, stream: StreamHandle, event: EventHandle) -> None:
        """Queue a barrier on `stream` that waits for the event; without stream block the host."""
        self.enter()
        if stream is None:
            event.wait()
        else:
            cl.enqueue_barrier(stream, wait_for=[event])

    def elapsed_ms(self, start: EventHandle, end: EventHandle) -> float:
        """Return the milliseconds between the ends of two profiled markers."""
        return float(end.profile.end - start.profile.end) / 1e6
