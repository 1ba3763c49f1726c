"""The queue of a device: launches are collected in a batch, which is submitted as a whole.

A device of WebGPU has one queue, so all streams are in one order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import starmap
from time import perf_counter_ns
from typing import Any, NamedTuple

import wgpu
from dovetail.extend import DeviceError, Lock
from wgpu.backends.wgpu_native import ffi, lib
from wgpu.backends.wgpu_native._api import libf

from .adapters import TIMESTAMPS

BATCH_LAUNCHES_MAX = 64  # launches that are submitted together
ARGUMENT_BYTES = 1 << 14  # of one launch: the size of its binding
NESTED_LAUNCHES_MAX = 16  # launches of finalizers that may be in a batch beyond these
NAMES_MAX = 256  # names of kernels in an error


def _fill(status: int, message: Any, handle: Any, _: Any) -> None:
    """Put the status of finished work into the state that waits for it."""
    state, callbacks = ffi.from_handle(handle)
    state.append(status)
    callbacks.pop(int(ffi.cast("intptr_t", handle)), None)


_WORK_DONE = ffi.callback("WGPUQueueWorkDoneCallback", _fill)
_MODE = lib.WGPUCallbackMode_AllowProcessEvents
_MAPPED = ffi.callback("WGPUBufferMapCallback", _fill)


class Event:
    """The end of the work that was queued before it.

    - `state`: empty until the device has passed the event.
    - `ticks`: a buffer with a timestamp; None if the device has none.
    - `host_ns`: the host's time in nanoseconds, on a device without timestamps.
    """

    __slots__ = ("__weakref__", "host_ns", "state", "ticks")

    def __init__(self, ticks: Any = None) -> None:
        self.state: list[int] = []
        self.ticks, self.host_ns = ticks, 0


class QueuedLaunch(NamedTuple):
    """A launch: the kernel's name, its bind group, its arguments, the groups along each axis."""

    name: str
    pipeline: Any
    group: Any
    data: bytes
    size: tuple[int, ...]


class QueuedCopy(NamedTuple):
    """A copy of words from the byte `start` of a buffer to the begin of another."""

    source: Any
    start: int
    target: Any
    nbytes: int


class QueuedTimestamp(NamedTuple):
    """A query, and the buffer that its result is written to."""

    queries: Any
    ticks: Any


Command = QueuedLaunch | QueuedCopy | QueuedTimestamp


class Queue:
    """The queue of one device. The lock is for the open batch.

    Garbage collection, which runs finalizers that may launch and read, can come between any two
    statements that allocate objects. So a batch is a list of commands until it is submitted. A
    nested `flush` encodes and submits the closing batch itself, and the outer one drops what it
    encoded.
    """

    def __init__(self, device: Any, name: str) -> None:
        self.device, self.name, self.lock = device, name, Lock()
        self.queue, self._device = device.queue._internal, device._internal
        self._alignment = device.limits["min-uniform-buffer-offset-alignment"]
        usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        nbytes = (BATCH_LAUNCHES_MAX + NESTED_LAUNCHES_MAX) * ARGUMENT_BYTES
        self._arguments = device.create_buffer(size=nbytes, usage=usage)
        entry = {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE}
        buffer = {"type": "uniform", "has_dynamic_offset": True, "min_binding_size": 0}
        self.layout = device.create_bind_group_layout(entries=[{**entry, "buffer": buffer}])
        binding = {"buffer": self._arguments, "offset": 0, "size": ARGUMENT_BYTES}
        self._group = device.create_bind_group(
            layout=self.layout, entries=[{"binding": 0, "resource": binding}]
        )
        self._batch: list[Command] = []  # the open one
        self._closing: list[Command] = []  # the one that `flush` submits
        self._submitted = deque[str](maxlen=NAMES_MAX)  # kernels that may be unfinished
        self._callbacks = dict[int, Any]()  # handles of states that callbacks will fill

    # --- work; these take the lock

    def launch(
        self, name: str, pipeline: Any, group: Any, data: bytes, size: tuple[int, ...]
    ) -> None:
        """Queue a launch, and submit it with those before it if there are enough.

        - `name`: the name of the kernel.
        - `group`: the bind group of its buffers.
        - `data`: its arguments.
        - `size`: the number of groups along x, y and z.
        """
        with self.lock:
            self._batch.append(QueuedLaunch(name, pipeline, group, data, size))
            if len(self._batch) >= BATCH_LAUNCHES_MAX:
                self.flush()

    def copy(self, source: Any, start: int, target: Any, nbytes: int) -> None:
        """Queue a copy of words from the byte `start` of a buffer to the begin of another."""
        with self.lock:
            self._batch.append(QueuedCopy(source, start, target, nbytes))

    def write(self, buffer: Any, offset: int, source: memoryview) -> None:
        """Write whole words to a buffer after all queued work."""
        with self.lock, self._translate_errors():
            self.flush()
            data = ffi.from_buffer(source)
            libf.wgpuQueueWriteBuffer(self.queue, buffer, offset, data, source.nbytes)

    def record(self) -> Event:
        """Return an event at the current end.

        Without timestamps, as on Apple's GPUs, it waits for the work, and takes the host's time.
        """
        if not self.device.features >= TIMESTAMPS:
            self.wait()
            event = Event()
            event.state.append(lib.WGPUQueueWorkDoneStatus_Success)
            event.host_ns = perf_counter_ns()
            return event
        with self.lock:
            event = Event(self._write_timestamp())
            self.flush()
            self.when_done(event.state)
            return event

    def _write_timestamp(self) -> Any:
        """Queue a timestamp; return the buffer that it is written to."""
        queries = self.device.create_query_set(type="timestamp", count=1)
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        ticks = self.device.create_buffer(size=8, usage=usage)
        self._batch.append(QueuedTimestamp(queries, ticks))
        return ticks

    def flush(self) -> None:
        """Submit the open batch. Raises: DeviceError for an error of it, or of the device."""
        with self.lock, self._translate_errors():
            while self._closing or self._batch:
                empty = list[Command]()
                if not self._closing:
                    self._closing, self._batch = self._batch, empty
                self._submit(self._closing)

    def _submit(self, batch: list[Command]) -> None:
        """Encode and submit the closing batch, unless a nested call does it meanwhile."""
        self._submitted.extend([c.name for c in batch if isinstance(c, QueuedLaunch)])
        encoder = libf.wgpuDeviceCreateCommandEncoder(self._device, ffi.NULL)
        try:
            data = self._encode(encoder, batch)
            commands = libf.wgpuCommandEncoderFinish(encoder, ffi.NULL)
        except wgpu.GPUError:
            if self._closing is batch:
                self._closing = []
            raise
        finally:
            lib.wgpuCommandEncoderRelease(encoder)
        if data:
            libf.wgpuQueueWriteBuffer(
                self.queue, self._arguments._internal, 0, ffi.from_buffer(data), len(data)
            )
        call, empty = (self.queue, 1, ffi.new("WGPUCommandBuffer[]", [commands])), list[Command]()
        submission = starmap(lib.wgpuQueueSubmit, (call,))
        if self._closing is batch:  # from here on no objects are allocated
            self._closing = empty
            next(submission)
        lib.wgpuCommandBufferRelease(commands)

    def _encode(self, encoder: Any, batch: Sequence[Command]) -> bytearray:
        """Encode the commands of a batch; return the arguments of its launches."""
        data, work, position = bytearray(), None, ffi.new("uint32_t[1]")
        for command in batch:
            if work is not None and not isinstance(command, QueuedLaunch):
                _end_pass(work)
                work = None
            if isinstance(command, QueuedCopy):
                source, target = command.source._internal, command.target._internal
                libf.wgpuCommandEncoderCopyBufferToBuffer(
                    encoder, source, command.start, target, 0, command.nbytes
                )
            elif isinstance(command, QueuedTimestamp):
                queries, ticks = command.queries._internal, command.ticks._internal
                libf.wgpuCommandEncoderWriteTimestamp(encoder, queries, 0)
                libf.wgpuCommandEncoderResolveQuerySet(encoder, queries, 0, 1, ticks, 0)
            else:
                if work is None:
                    work = lib.wgpuCommandEncoderBeginComputePass(encoder, ffi.NULL)
                position[0] = len(data)
                data += command.data + bytes(-len(command.data) % self._alignment)
                own, numbers = command.group._internal, self._group._internal
                lib.wgpuComputePassEncoderSetPipeline(work, command.pipeline._internal)
                lib.wgpuComputePassEncoderSetBindGroup(work, 0, own, 0, ffi.NULL)
                lib.wgpuComputePassEncoderSetBindGroup(work, 1, numbers, 1, position)
                lib.wgpuComputePassEncoderDispatchWorkgroups(work, *command.size)
        if work is not None:
            _end_pass(work)
        return data

    # --- waiting

    def when_done(self, state: list[int]) -> None:
        """Fill a list with the status once the submitted work is done."""
        handle, info = self._keep(state), ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        info.mode, info.callback, info.userdata1 = _MODE, _WORK_DONE, handle
        libf.wgpuQueueOnSubmittedWorkDone(self.queue, info[0])

    def map(self, buffer: Any, nbytes: int) -> Any:
        """Wait for the queued work; return the address of a mapped buffer's bytes."""
        self.flush()
        state, info = list[int](), ffi.new("WGPUBufferMapCallbackInfo *")
        info.mode, info.callback, info.userdata1 = _MODE, _MAPPED, self._keep(state)
        with self._translate_errors():
            libf.wgpuBufferMapAsync(buffer, lib.WGPUMapMode_Read, 0, nbytes, info[0])
            while not state:
                self.poll(True)
        if state[0] != lib.WGPUMapAsyncStatus_Success:
            raise self.explain("memory could not be mapped")
        return libf.wgpuBufferGetConstMappedRange(buffer, 0, nbytes)

    def _keep(self, state: list[int]) -> Any:
        """Return a handle to a state, which lives until a callback has filled it."""
        handle = ffi.new_handle((state, self._callbacks))
        self._callbacks[int(ffi.cast("intptr_t", handle))] = handle
        return handle

    def poll(self, wait: bool) -> None:
        """Run the callbacks of finished work; wait for all submitted work if `wait`."""
        with self._translate_errors():
            libf.wgpuDevicePoll(self._device, wait, ffi.NULL)

    def wait(self) -> None:
        """Submit the open batch, and wait for all work."""
        with self._translate_errors():
            self.flush()
            libf.wgpuQueueSubmit(self.queue, 0, ffi.NULL)  # wgpu frees its staging memory
            self.poll(True)
            self._submitted.clear()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of wgpu as those of dovetail."""
        try:
            yield
        except wgpu.GPUError as error:
            raise self.explain(str(error)) from error

    def explain(self, reason: str) -> DeviceError:
        """Return an error of the device that names the kernels that may be unfinished."""
        queued = [c.name for c in self._batch if isinstance(c, QueuedLaunch)]
        names = ", ".join(dict.fromkeys((*self._submitted, *queued)))
        work = f"; unfinished kernels: {names}" if names else ""
        return DeviceError(
            f"{self.name}: {reason}{work}. If the device is lost, restart the process"
        )


def _end_pass(compute_pass: Any) -> None:
    """End a compute pass, and release its encoder."""
    lib.wgpuComputePassEncoderEnd(compute_pass)
    lib.wgpuComputePassEncoderRelease(compute_pass)
