"""The opened device: dovetail's backend interface on top of the driver."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from dovetail.extend import (
    BindingBackend,
    DeviceError,
    DeviceInfo,
    Handles,
    Kernel,
    Launch,
    Process,
    Scalar,
    scalar_argument,
)

from . import driver
from .compile import STYLE, ItemProgram, compile_kernel

Queue = driver.Queue


class ItemBackend(BindingBackend):
    """A device with its own memory and queues. A stream is a queue; None is `self.queue`."""

    asynchronous = True  # `launch` and copies in return before the work is done

    def __init__(self, info: DeviceInfo, command: Sequence[str], delay_seconds: float) -> None:
        self.info, self.command = info, command
        self._context = driver.Context(delay_seconds)
        self._process = Process(f"{info.type}:{info.index}", "its driver")
        self.queue = self._context.queue()

    @contextmanager
    def _driver(self) -> Iterator[driver.Context]:
        """Yield the driver, and convert its errors to dovetail's.

        A call that waits also raises the errors of queued work.
        """
        self._process.check()  # a child of fork() has no queue threads
        try:
            yield self._context
        except driver.DriverError as error:
            advice = "its results may be wrong; compute them again"
            raise DeviceError(f"{self.info.type}:{self.info.index}: {error}; {advice}") from error

    # --- memory

    def allocate(self, nbytes: int) -> int:
        with self._driver() as device:
            return device.malloc(nbytes)

    def free(self, handle: int, nbytes: int) -> None:
        """Free memory; in a forked process do nothing."""
        if self._process.alive:
            self._context.free(handle)

    # Copies are queued as well: earlier work in the queue may still read the target memory.
    def queue_copy_in(
        self, handle: int, offset: int, source: memoryview, stream: Queue | None = None
    ) -> None:
        with self._driver():
            (stream or self.queue).write(handle, offset, source)

    def queue_copy_out(
        self, target: memoryview, handle: int, offset: int, stream: Queue | None = None
    ) -> None:
        with self._driver():
            (stream or self.queue).read(target, handle, offset)

    def copy_in(
        self, handle: int, offset: int, source: memoryview, stream: Queue | None = None
    ) -> None:
        """Queue a copy of a snapshot of `source`, which may change at once."""
        kept = memoryview(bytes(source))  # the caller may change its own before the copy runs
        self.queue_copy_in(handle, offset, kept, stream)

    def copy_out(
        self, target: memoryview, handle: int, offset: int, stream: Queue | None = None
    ) -> None:
        """Copy to `target`, and wait for the stream."""
        self.queue_copy_out(target, handle, offset, stream)
        self.synchronize(stream or self.queue)

    # --- kernels

    def compile(self, kernel: Kernel) -> ItemProgram:
        with self._driver():
            return compile_kernel(self.command, kernel)

    def load(self, kernel: Kernel, binary: bytes) -> ItemProgram:
        with self._driver():
            return ItemProgram(kernel, STYLE.render(kernel), binary)

    def bound(self, program: ItemProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a launch with these sizes, packed; it takes buffers, scalars and a stream."""
        groups = -(-math.prod(grid) // driver.GROUP_ITEMS)
        sizes = [np.int64(n).tobytes() for n in ints]
        holders = [scalar_argument(dtype) for _, dtype in program.kernel.scalars]

        def launch(buffers: Handles, scalars: Sequence[Scalar], stream: Queue | None) -> None:
            """Queue the launch on a stream, or on the default queue for None."""
            places = [np.int64(b).tobytes() if k % 2 else b for k, b in enumerate(buffers)]
            numbers = [hold(x).tobytes() for hold, x in zip(holders, scalars, strict=True)]
            with self._driver():
                (stream or self.queue).launch(program.module, groups, [*places, *sizes, *numbers])

        return launch

    # --- streams and events

    def create_stream(self) -> Queue:
        with self._driver() as device:
            return device.queue()

    def synchronize(self, stream: Queue | None = None) -> None:
        with self._driver() as device:
            (stream or device).synchronize()  # None: all queues

    def record_event(self, stream: Queue | None) -> driver.Event:
        with self._driver():
            return (stream or self.queue).record()

    def event_done(self, event: driver.Event) -> bool:
        with self._driver():
            return event.passed()

    def wait_event(self, stream: Queue | None, event: driver.Event) -> None:
        """Let a stream wait for an event; for None wait on the host, and raise its errors."""
        with self._driver() as device:
            if stream is not None:
                stream.wait(event)
            else:  # the host waits, not the default queue
                event.wait()
                device.check()

    def elapsed_ms(self, start: driver.Event, end: driver.Event) -> float:
        return end.ms_since(start)

    def close(self) -> None:
        """End the queues and free all memory; in a forked process do nothing."""
        if self._process.alive:
            self._context.close()
