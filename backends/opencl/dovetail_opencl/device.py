"""The opened device: what `Backend` asks for, from the rooms next door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyopencl as cl
from dovetail.extend import Backend, DeviceInfo, Handles, Kernel, Launch

from . import loader
from .compile import Compiler, OpenCLProgram
from .launch import Launcher
from .plugin import devices_of


def groups(device: Any) -> bool:
    """Whether groups of work items are fast: on GPUs, and where Intel's compiler makes vectors of
    them. PoCL does better with one item per point: sums of 4096 rows of 4096 take 2 ms, not 13."""
    return device.type & cl.device_type.CPU == 0 or "cl_intel_vec_len_hint" in device.extensions


class OpenCLBackend(Backend):
    """One OpenCL device. A handle is a buffer; a stream is a queue, in order."""

    asynchronous = True

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.device = [d for p in loader.platforms() for d in devices_of(p)][info.index]
        self.context = cl.Context([self.device])
        self.queue = self.create_stream()
        exact = info.capabilities.exact_division
        self._compiler = Compiler(
            self.context, self.device, info.fingerprint, exact, groups(self.device)
        )
        self._launcher = Launcher(self.queue, self.device)

    def allocate(self, nbytes: int) -> Any:
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes)
        except cl.Error as error:
            raise MemoryError(f"{self.device.name} has no {nbytes} bytes left: {error}") from error

    def free(self, handle: Any, nbytes: int) -> None:
        handle.release()

    def copy_in(self, handle: Any, offset: int, source: memoryview, stream: Any = None) -> None:
        if source.nbytes:
            queue = stream or self.queue
            cl.enqueue_copy(queue, handle, source, dst_offset=offset, is_blocking=True)

    def copy_out(self, target: memoryview, handle: Any, offset: int, stream: Any = None) -> None:
        if target.nbytes:
            queue = stream or self.queue
            cl.enqueue_copy(queue, target, handle, src_offset=offset, is_blocking=True)

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        return self._compiler.compile(kernel)

    def load(self, kernel: Kernel, binary: bytes) -> OpenCLProgram:
        return self._compiler.load(kernel, binary)

    def launch(
        self,
        program: OpenCLProgram,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[float | int | bool],
        grid: Sequence[int],
        stream: Any = None,
    ) -> None:
        self.bind(program, ints, grid)(buffers, scalars, stream)

    def bind(self, program: OpenCLProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        return self._launcher.bind(program, ints, grid)

    def synchronize(self, stream: Any = None) -> None:
        (stream or self.queue).finish()

    # --- streams and events

    def create_stream(self) -> Any:
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        return cl.CommandQueue(self.context, self.device, profiling)

    def record_event(self, stream: Any) -> Any:
        return cl.enqueue_marker(stream or self.queue)

    def event_done(self, event: Any) -> bool:
        complete: bool = event.command_execution_status == cl.command_execution_status.COMPLETE
        return complete

    def wait_event(self, stream: Any, event: Any) -> None:
        if stream is None:
            event.wait()
        else:
            cl.enqueue_barrier(stream, wait_for=[event])

    def elapsed_ms(self, start: Any, end: Any) -> float:
        return float(end.profile.end - start.profile.end) / 1e6
