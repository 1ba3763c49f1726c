"""The open device: an implementation of `Backend` by the other modules."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress

from dovetail.extend import (
    HOST_MEMORY,
    BindingBackend,
    DeviceError,
    DeviceInfo,
    Kernel,
    Launch,
    Lock,
    Process,
    StreamHandle,
    end_without_driver,
)

from .compile import Compiler, VulkanProgram
from .launch import Launcher
from .loader import LogicalDevice, PhysicalDevice
from .memory import Memory
from .stream import Event, Stream


class VulkanBackend(BindingBackend):
    """One Vulkan device. A handle is an address on the device."""

    asynchronous = True

    def __init__(self, info: DeviceInfo, physical: PhysicalDevice) -> None:
        self.info = info
        name = f"{info.type}:{info.index} ({info.name})"
        self._process = Process(name, "Vulkan", end_without_driver)
        self._device = physical.open(self._process)
        self._memory = Memory(self._device)
        self.dlpack_type = HOST_MEMORY if self._memory.shared else None
        self.pins_memory = not self._memory.shared
        self._streams: list[Stream] = []
        self._lock = Lock()
        self.stream = self.create_stream()
        self._compiler = Compiler(self._device, info)
        self._launcher = Launcher(self.stream, self._process, shares=physical.kind != "CPU")
        weakref.finalize(self, _finish, self._streams, self._device)

    # --- memory

    def allocate(self, nbytes: int) -> int:
        """Allocate memory; return its address. Raises: MemoryError; DeviceError after a fork()."""
        self._process.check()
        return self._memory.allocate(nbytes)

    def free(self, handle: int, nbytes: int) -> None:
        """Free memory after all queued work; do nothing in a child of fork()."""
        if self._process.alive:
            _wait_for_all(self._streams)
            self._memory.free(handle)

    def copy_in(
        self, handle: int, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy from the host after the stream's work, and wait; do nothing if `source` is empty."""
        self._process.check()
        if source.nbytes:
            self._memory.copy_in(stream or self.stream, handle, offset, source)

    def copy_out(
        self, target: memoryview, handle: int, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy to the host after the stream's work, and wait; do nothing if `target` is empty."""
        self._process.check()
        if target.nbytes:
            self._memory.copy_out(stream or self.stream, target, handle, offset)

    def queue_copy_in(
        self, handle: int, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Queue a copy from page-locked memory; copy from other memory, and wait."""
        self._process.check()
        if source.nbytes:
            self._memory.queue_copy_in(stream or self.stream, handle, offset, source)

    def queue_copy_out(
        self, target: memoryview, handle: int, offset: int, stream: StreamHandle = None
    ) -> None:
        """Queue a copy to page-locked memory; copy to other memory, and wait."""
        self._process.check()
        if target.nbytes:
            self._memory.queue_copy_out(stream or self.stream, target, handle, offset)

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate page-locked memory; return its address.

        Raises: MemoryError; DeviceError in a child of fork().
        """
        self._process.check()
        return self._memory.allocate_pinned(nbytes)

    def free_pinned(self, address: int, nbytes: int) -> None:
        """Free page-locked memory after all queued work; do nothing in a child of fork()."""
        if self._process.alive:
            _wait_for_all(self._streams)
            self._memory.free_pinned(address)

    def host_address(self, handle: int, offset: int) -> int | None:
        """Return the host's address of shared memory, or None for the device's own."""
        return self._memory.blocks[handle].host + offset if self._memory.shared else None

    # --- work

    def compile(self, kernel: Kernel) -> VulkanProgram:
        """Render a kernel as SPIR-V, and build its first pipeline with the driver.

        Raises: CompileError if the driver rejects it; DeviceError in a child of fork().
        """
        self._process.check()
        return self._compiler.compile(kernel)

    def load(self, kernel: Kernel, binary: bytes) -> VulkanProgram:
        """Build a program from its binary. Raises: ValueError if it is unusable."""
        self._process.check()
        return self._compiler.load(kernel, binary)

    def bound(self, program: VulkanProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues a program with fixed ints and grid."""
        self._process.check()
        return self._launcher.bind(program, ints, grid)

    def synchronize(self, stream: StreamHandle = None) -> None:
        """Wait for a stream; for None wait for all. Raises: DeviceError if the device is lost."""
        self._process.check()
        for waiting in tuple(self._streams) if stream is None else (stream,):
            waiting.wait()

    # --- streams and events

    def create_stream(self) -> Stream:
        """Create a stream, which lives as long as the device."""
        self._process.check()
        with self._lock:
            stream = Stream(self._device, self._memory, len(self._streams))
            self._streams.append(stream)
        return stream

    def record_event(self, stream: StreamHandle) -> Event:
        """Record a timestamp at the current end of a stream; return it as the event."""
        self._process.check()
        recorded: Event = (stream or self.stream).record()
        return recorded

    def event_done(self, event: Event) -> bool:
        """Return True if the stream has passed the event, without waiting."""
        self._process.check()
        return event.is_done()

    def wait_event(self, stream: StreamHandle, event: Event) -> None:
        """Make later work on `stream` wait for the event; without stream block the host."""
        self._process.check()
        if stream is None:
            event.stream.wait(event.value)
        else:
            stream.wait_for(event)

    def elapsed_ms(self, start: Event, end: Event) -> float:
        """Return the milliseconds between the timestamps of two events."""
        return (end.read_ns() - start.read_ns()) / 1e6


def _wait_for_all(streams: Sequence[Stream]) -> None:
    """Wait for all work of a device that is not lost."""
    with suppress(DeviceError):
        for stream in tuple(streams):
            stream.wait()


def _finish(streams: Sequence[Stream], device: LogicalDevice) -> None:
    """Wait for all work, and leave the driver's objects to the end of the process.

    It runs at the end of the backend, or of the interpreter, which ends objects in any order.
    """
    if device.process.alive:
        _wait_for_all(streams)
    device.ended = True
