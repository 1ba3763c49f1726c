"""The open device: an implementation of `Backend` by the other modules."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress

from dovetail.extend import DeviceError, DeviceInfo, DriverBackend, Lock, StreamHandle

from .compile import Compiler
from .launch import Launcher
from .loader import LogicalDevice, PhysicalDevice
from .memory import Memory
from .stream import Event, Stream


class VulkanBackend(DriverBackend):
    """One Vulkan device. A handle is an address on the device."""

    stream: Stream
    memory: Memory

    def __init__(self, info: DeviceInfo, physical: PhysicalDevice) -> None:
        super().__init__(info, "Vulkan")
        self.device = physical.open(self.process)
        self.memory = Memory(self.device)
        self._streams: list[Stream] = []
        self._lock = Lock()
        stream = self.create_stream()
        is_cpu = physical.kind == "CPU"
        launcher = Launcher(
            stream,
            self.process,
            shares=not is_cpu,
            vectorizes=is_cpu,
            concurrency=info.capabilities.concurrency,
        )
        self.attach(self.memory, Compiler(self.device, info), launcher, stream)
        weakref.finalize(self, _finish, self._streams, self.device)

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for a stream; for None wait for all. Raises: DeviceError if the device is lost."""
        self.enter()
        for waiting in tuple(self._streams) if stream is None else (stream,):
            waiting.wait()

    # --- streams and events

    def create_stream(self) -> Stream:
        """Create a stream, which lives as long as the device."""
        self.enter()
        with self._lock:
            stream = Stream(self.device, self.memory, len(self._streams))
            self._streams.append(stream)
        return stream

    def record_event(self, stream: StreamHandle) -> Event:
        """Record a timestamp at the current end of a stream; return it as the event."""
        self.enter()
        recorded: Event = (stream or self.stream).record()
        return recorded

    def event_done(self, event: Event) -> bool:
        """Return True if the stream has passed the event, without waiting."""
        self.enter()
        return event.is_done()

    def wait_event(self, stream: StreamHandle, event: Event) -> None:
        """Make later work on `stream` wait for the event; without stream block the host."""
        self.enter()
        if stream is None:
            event.stream.wait(event.value)
        else:
            stream.wait_for(event)

    def elapsed_ms(self, start: Event, end: Event) -> float:
        """Return the milliseconds between the timestamps of two events."""
        physical, ticks = self.device.physical, end.read_ticks() - start.read_ticks()
        half = 1 << (physical.timestamp_bits - 1)  # the clock begins again at 0 after two halves
        return ((ticks + half) % (2 * half) - half) * float(physical.tick_ns) / 1e6


def _finish(streams: Sequence[Stream], device: LogicalDevice) -> None:
    """Wait for all work, and leave the driver's objects to the end of the process.

    It runs at the end of the backend, or of the interpreter, which ends objects in any order.
    """
    if device.process.alive:
        with suppress(DeviceError):
            for stream in tuple(streams):
                stream.wait()
    device.ended = True
