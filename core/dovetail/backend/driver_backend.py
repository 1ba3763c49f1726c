"""The base of backends on a driver: memory, programs and launches are objects of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from ..errors import DeviceError
from ..ir.builder import Kernel
from .host import bytes_at
from .interface import (
    HOST_MEMORY,
    Backend,
    Compiled,
    DeviceInfo,
    Handle,
    Handles,
    Launch,
    Program,
    Scalar,
    StreamHandle,
)
from .launches import check_sizes
from .process import Process, end_without_driver


class DeviceMemory(ABC):
    """The memory of one device. `DriverBackend` calls it with a stream, and for one byte or more.

    - `shared`: True if the host accesses this memory at `address`; it is not copied then.
    - `pins`: True if it has page-locked memory of the host.
    - `waits_to_free`: True if memory must not be freed before all queued work is done.
    """

    shared: bool = False
    pins: bool = True
    waits_to_free: bool = True

    @abstractmethod
    def allocate(self, nbytes: int) -> Handle:
        """Allocate memory; return its handle. Raises: MemoryError."""

    @abstractmethod
    def free(self, handle: Handle) -> None:
        """Free memory of `allocate` or `adopt`."""

    @abstractmethod
    def copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle
    ) -> None:
        """Copy from the host after the stream's work, and wait.

        - `source`: the host bytes, contiguous, with format "B".
        """

    @abstractmethod
    def copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle
    ) -> None:
        """Copy to the host after the stream's work, and wait.

        - `target`: writable host memory, contiguous.
        """

    def queue_copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle
    ) -> bool:
        """Queue a copy from the host; return False, as here, if it must be waited for.

        - `source`: the host bytes, contiguous, with format "B".
        """
        return False

    def queue_copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle
    ) -> bool:
        """Queue a copy to the host; return False, as here, if it must be waited for.

        - `target`: writable host memory, contiguous.
        """
        return False

    def address(self, handle: Handle) -> int:
        """Return the host's address of shared memory."""
        raise NotImplementedError

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate page-locked memory of the host; return its address. Raises: MemoryError."""
        raise NotImplementedError

    def free_pinned(self, address: int) -> None:
        """Free page-locked memory.

        - `address`: the result of `allocate_pinned`.
        """
        raise NotImplementedError

    def adopt(self, address: int, nbytes: int) -> Handle:
        """Return a handle to foreign memory, or None, as here, if the device cannot use it.

        - `address`: the address of the memory.
        """
        return None


class KernelCompiler(Protocol):
    """A compiler of one device, such as a `ScheduledCompiler`."""

    def compile(self, kernel: Kernel) -> Program:
        """Compile a kernel. Raises: CompileError with the kernel and the compiler's log."""

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        """Load a program from the binary of an earlier process. Raises: any error."""


class LaunchBinder(Protocol):
    """A factory of bound launches on one device."""

    def bind(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a function that queues a program with fixed ints and grid."""


class DriverBackend(Backend):
    """A backend that hands its calls to a memory, a compiler and a launcher, set by `attach`.

    Each call first calls `enter`, which raises in a child of fork(). A subclass adds the waiting,
    the streams and the events, for example:

        class MyBackend(DriverBackend):
            def __init__(self, info):
                super().__init__(info, "MyDriver")
                self.attach(MyMemory(), MyCompiler(), MyLauncher())

            def synchronize(self, stream=None):
                self.enter()
                driver.wait(stream)

    - `info`: the device.
    - `driver`: the name of the driver, for errors.
    - `process`: the process that has loaded the driver; None is a new object for this device.
    """

    asynchronous = True

    def __init__(self, info: DeviceInfo, driver: str, process: Process | None = None) -> None:
        self.info = info
        name = f"{info.type}:{info.index} ({info.name})"
        self.process = process or Process(name, driver, end_without_driver)

    def attach(
        self,
        memory: DeviceMemory,
        compiler: KernelCompiler,
        launcher: LaunchBinder,
        stream: StreamHandle = None,
    ) -> None:
        """Set the parts of the open device.

        - `memory`: its memory.
        - `compiler`: its compiler.
        - `launcher`: the factory of its launches.
        - `stream`: the default stream, as the memory gets it.
        """
        self.memory, self.compiler, self.launcher = memory, compiler, launcher
        self.stream = stream
        self.pins_memory = memory.pins and not memory.shared
        if memory.shared:
            self.dlpack_type = HOST_MEMORY

    def enter(self) -> None:
        """Prepare a call of the driver. Raises: DeviceError in a child of fork()."""
        self.process.check()

    # --- memory

    def allocate(self, nbytes: int) -> Handle:
        """Allocate memory; return its handle. Raises: MemoryError; DeviceError after a fork()."""
        self.enter()
        return self.memory.allocate(nbytes)

    def free(self, handle: Handle, nbytes: int) -> None:
        """Free memory after all queued work; do nothing in a child of fork()."""
        if self.process.alive:
            self._wait_to_free()
            self.memory.free(handle)

    def _wait_to_free(self) -> None:
        """Enter the driver, and wait for all work if the memory needs that."""
        self.enter()
        if self.memory.waits_to_free:
            with suppress(DeviceError):  # a lost device frees its memory, too
                self.synchronize()

    def copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy from the host after the stream's work, and wait; no bytes are no copy.

        - `source`: the host bytes, contiguous, with format "B".
        """
        self.enter()
        if not source.nbytes:
            return
        stream = stream or self.stream
        if self.memory.shared:
            self.synchronize(stream)
            bytes_at(self.memory.address(handle) + offset, source.nbytes)[:] = source
        else:
            self.memory.copy_in(handle, offset, source, stream)

    def copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy to the host after the stream's work, and wait; no bytes are no copy.

        - `target`: writable host memory, contiguous.
        """
        self.enter()
        if not target.nbytes:
            return
        stream = stream or self.stream
        if self.memory.shared:
            self.synchronize(stream)
            target[:] = bytes_at(self.memory.address(handle) + offset, target.nbytes)
        else:
            self.memory.copy_out(target, handle, offset, stream)

    def queue_copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Queue a copy from the host, or copy and wait; no bytes are no copy.

        - `source`: the host bytes, contiguous, with format "B".
        """
        self.enter()
        if source.nbytes and not self.memory.queue_copy_in(
            handle, offset, source, stream or self.stream
        ):
            self.copy_in(handle, offset, source, stream)

    def queue_copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Queue a copy to the host, or copy and wait; no bytes are no copy.

        - `target`: writable host memory, contiguous.
        """
        self.enter()
        if target.nbytes and not self.memory.queue_copy_out(
            target, handle, offset, stream or self.stream
        ):
            self.copy_out(target, handle, offset, stream)

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate page-locked memory of the host; return its address. Raises: MemoryError."""
        self.enter()
        return self.memory.allocate_pinned(nbytes)

    def free_pinned(self, address: int, nbytes: int) -> None:
        """Free page-locked memory after all queued work; do nothing in a child of fork()."""
        if self.process.alive:
            self._wait_to_free()
            self.memory.free_pinned(address)

    def host_address(self, handle: Handle, offset: int) -> int | None:
        """Return the host's address of shared memory, or None for the device's own."""
        return self.memory.address(handle) + offset if self.memory.shared else None

    def adopt(self, address: int, nbytes: int) -> Handle:
        """Return a handle to foreign memory; None if the device cannot use it.

        - `address`: the address of the memory.
        """
        self.enter()
        return self.memory.adopt(address, nbytes)

    # --- work

    def compile(self, kernel: Kernel) -> Program:
        """Compile a kernel. Raises: CompileError; DeviceError in a child of fork()."""
        self.enter()
        return self.compiler.compile(kernel)

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        """Load a program from its binary. Raises: any error if it is unusable.

        - `binary`: the bytes of `Program.binary`.
        """
        self.enter()
        return self.compiler.load(kernel, binary)

    def bind(self, program: Compiled, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return the function that queues a program with fixed ints and grid.

        Raises: InternalError if the sizes do not fit the kernel; DeviceError after a fork().
        """
        check_sizes(program.kernel, ints, grid)
        self.enter()
        return self.launcher.bind(program, ints, grid)

    def launch(
        self,
        program: Compiled,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[Scalar],
        grid: Sequence[int],
        stream: StreamHandle = None,
    ) -> None:
        """Bind a launch, and queue it."""
        self.bind(program, ints, grid)(buffers, scalars, stream)
