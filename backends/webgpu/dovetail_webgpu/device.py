"""The open device: an implementation of `Backend` by the other modules."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

from dovetail.extend import (
    DeviceError,
    DeviceInfo,
    DriverBackend,
    Process,
    StreamHandle,
)

from .adapters import open_device
from .compile import Compiler
from .launch import Launcher
from .memory import Memory
from .queue import Event, Queue


class Stream:
    """A stream: all streams are in the order of the one queue."""


class WebgpuBackend(DriverBackend):
    """One WebGPU device. A handle is a `Block`."""

    memory: Memory

    def __init__(self, info: DeviceInfo, adapter: Any) -> None:
        super().__init__(info, "wgpu")
        device = open_device(adapter)
        self.queue = Queue(device, self.process.name)
        memory = Memory(device, self.queue, info.capabilities.max_buffer)
        self.attach(memory, Compiler(device, memory), Launcher(self.process, memory))
        weakref.finalize(self, _finish, self.queue, self.process)

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for all queued work. Raises: DeviceError for errors of it."""
        self.enter()
        self.queue.wait()

    # --- streams and events

    def create_stream(self) -> Stream:
        """Create a stream."""
        self.enter()
        return Stream()

    def record_event(self, stream: StreamHandle) -> Event:
        """Record an event at the current end of the queue."""
        self.enter()
        return self.queue.record()

    def event_done(self, event: Event) -> bool:
        """Return True if the queue has passed the event, without waiting."""
        self.enter()
        if not event.state:
            self.queue.poll(wait=False)
        return bool(event.state)

    def wait_event(self, stream: StreamHandle, event: Event) -> None:
        """Block the host until the event if there is no stream; streams are in order anyway."""
        self.enter()
        if stream is None and not event.state:
            self.queue.wait()

    def elapsed_ms(self, start: Event, end: Event) -> float:
        """Return the milliseconds between two events."""
        return (self.memory.read_ns(end) - self.memory.read_ns(start)) / 1e6


def _finish(queue: Queue, process: Process) -> None:
    """Wait for all work, at the end of the backend or of the interpreter."""
    if process.alive:
        with suppress(DeviceError):
            queue.wait()
