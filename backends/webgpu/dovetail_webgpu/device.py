"""The open device: an implementation of `Backend` by the other modules."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dovetail.extend import (
    BindingBackend,
    DeviceError,
    DeviceInfo,
    Kernel,
    Launch,
    Process,
    StreamHandle,
    end_without_driver,
)

from .adapters import open_device
from .compile import WebgpuProgram
from .launch import bind_launch
from .memory import Block, Memory
from .queue import Event, Queue


class Stream:
    """A stream: all streams are in the order of the one queue."""


class WebgpuBackend(BindingBackend):
    """One WebGPU device. A handle is a `Block`."""

    asynchronous = True

    def __init__(self, info: DeviceInfo, adapter: Any) -> None:
        self.info = info
        name = f"{info.type}:{info.index} ({info.name})"
        self._process = Process(name, "wgpu", end_without_driver)
        self._device = open_device(adapter)
        self.queue = Queue(self._device, name)
        self._memory = Memory(self._device, self.queue, info.capabilities.max_buffer)
        weakref.finalize(self, _finish, self.queue, self._process)

    # --- memory

    def allocate(self, nbytes: int) -> Block:
        """Allocate memory. Raises: MemoryError; DeviceError in a child of fork()."""
        self._process.check()
        return self._memory.allocate(nbytes)

    def free(self, handle: Block, nbytes: int) -> None:
        """Free memory; do nothing in a child of fork()."""
        if self._process.alive:
            self._memory.free(handle)

    def copy_in(
        self, handle: Block, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy from the host after all queued work; do nothing if `source` is empty.

        Raises: DeviceError in a child of fork(), or for an error of that work.
        """
        self._process.check()
        if source.nbytes:
            self._memory.copy_in(handle, offset, source)

    def copy_out(
        self, target: memoryview, handle: Block, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy to the host after all queued work, and wait; do nothing if `target` is empty.

        Raises: DeviceError in a child of fork(), or for an error of that work.
        """
        self._process.check()
        if target.nbytes:
            self._memory.copy_out(target, handle, offset)

    # --- work

    def compile(self, kernel: Kernel) -> WebgpuProgram:
        """Render a kernel as WGSL, and build its first pipeline with the driver.

        Raises: CompileError if wgpu rejects it; DeviceError in a child of fork().
        """
        self._process.check()
        return WebgpuProgram(self._device, self._memory, kernel)

    def bound(self, program: WebgpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues a program with fixed ints and grid."""
        self._process.check()
        return bind_launch(self._process, self._memory, program, ints, grid)

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for all queued work. Raises: DeviceError for errors of it."""
        self._process.check()
        self.queue.wait()

    # --- streams and events

    def create_stream(self) -> Stream:
        """Create a stream."""
        self._process.check()
        return Stream()

    def record_event(self, stream: StreamHandle) -> Event:
        """Record an event at the current end of the queue."""
        self._process.check()
        return self.queue.record()

    def event_done(self, event: Event) -> bool:
        """Return True if the queue has passed the event, without waiting."""
        self._process.check()
        if not event.state:
            self.queue.poll(wait=False)
        return bool(event.state)

    def wait_event(self, stream: StreamHandle, event: Event) -> None:
        """Block the host until the event if there is no stream; streams are in order anyway."""
        self._process.check()
        if stream is None and not event.state:
            self.queue.wait()

    def elapsed_ms(self, start: Event, end: Event) -> float:
        """Return the milliseconds between two events."""
        return (self._memory.read_ns(end) - self._memory.read_ns(start)) / 1e6


def _finish(queue: Queue, process: Process) -> None:
    """Wait for all work, at the end of the backend or of the interpreter."""
    if process.alive:
        with suppress(DeviceError):
            queue.wait()
