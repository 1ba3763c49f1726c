"""The queue of a device: launches are collected in a batch, which is submitted as a whole.

A device of WebGPU has one queue, so all streams are in one order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import wgpu
from dovetail.extend import DeviceError, Lock
from wgpu.backends.wgpu_native import ffi, lib
from wgpu.backends.wgpu_native._api import libf

BATCH_LAUNCHES_MAX = 64  # launches that are submitted together
ARGUMENT_BYTES = 1 << 14  # of one launch: the size of its binding
BATCH_BYTES = 1 << 16  # bytes of a batch's arguments
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
    """

    __slots__ = ("__weakref__", "state", "ticks")

    def __init__(self, ticks: Any) -> None:
        self.state: list[int] = []
        self.ticks = ticks  # a buffer with a timestamp; None if the device has none


class Queue:
    """The queue of one device. The lock is for the open batch."""

    def __init__(self, device: Any, name: str) -> None:
        self.device, self.name, self.lock = device, name, Lock()
        self.queue, self._device = device.queue._internal, device._internal
        self._alignment = device.limits["min-uniform-buffer-offset-alignment"]
        usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        self._arguments = device.create_buffer(size=BATCH_BYTES + ARGUMENT_BYTES, usage=usage)
        entry = {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE}
        buffer = {"type": "uniform", "has_dynamic_offset": True, "min_binding_size": 0}
        self.layout = device.create_bind_group_layout(entries=[{**entry, "buffer": buffer}])
        binding = {"buffer": self._arguments, "offset": 0, "size": ARGUMENT_BYTES}
        self._group = device.create_bind_group(
            layout=self.layout, entries=[{"binding": 0, "resource": binding}]
        )
        self._offset = ffi.new("uint32_t[1]")
        self._data = bytearray()  # arguments of the open batch
        self._encoder: Any = None
        self._pass: Any = None
        self._names: list[str] = []  # kernels of the open batch
        self._submitted = deque[str](maxlen=NAMES_MAX)  # kernels that may be unfinished
        self._callbacks = dict[int, Any]()  # handles of states that callbacks will fill

    # --- the open batch; the caller holds the lock

    def _begin(self) -> Any:
        """Return the open encoder of commands."""
        if self._encoder is None:
            self._encoder = libf.wgpuDeviceCreateCommandEncoder(self._device, ffi.NULL)
        return self._encoder

    def _end_pass(self) -> None:
        """End the open pass."""
        if self._pass is not None:
            lib.wgpuComputePassEncoderEnd(self._pass)
            lib.wgpuComputePassEncoderRelease(self._pass)
            self._pass = None

    # --- work; these take the lock

    def launch(
        self, name: str, pipeline: Any, group: Any, data: bytes, size: tuple[int, ...]
    ) -> None:
        """Record a launch, and submit it with those before it if there are enough.

        - `name`: the name of the kernel.
        - `group`: the bind group of its buffers.
        - `data`: its arguments.
        - `size`: the number of groups along x, y and z.
        """
        with self.lock:
            if len(self._names) >= BATCH_LAUNCHES_MAX or len(self._data) + len(data) > BATCH_BYTES:
                self.flush()
            if self._pass is None:
                encoder = self._begin()
                self._pass = lib.wgpuCommandEncoderBeginComputePass(encoder, ffi.NULL)
            work, start = self._pass, len(self._data)
            self._names.append(name)
            self._data += data + bytes(-len(data) % self._alignment)
            self._offset[0] = start
            lib.wgpuComputePassEncoderSetPipeline(work, pipeline._internal)
            lib.wgpuComputePassEncoderSetBindGroup(work, 0, group._internal, 0, ffi.NULL)
            lib.wgpuComputePassEncoderSetBindGroup(work, 1, self._group._internal, 1, self._offset)
            lib.wgpuComputePassEncoderDispatchWorkgroups(work, *size)

    def copy(self, source: Any, start: int, target: Any, nbytes: int) -> None:
        """Queue a copy of words from the byte `start` of a buffer to the begin of another."""
        with self.lock:
            encoder = self._begin()
            self._end_pass()
            libf.wgpuCommandEncoderCopyBufferToBuffer(encoder, source, start, target, 0, nbytes)

    def write(self, buffer: Any, offset: int, source: memoryview) -> None:
        """Write whole words to a buffer after all queued work."""
        with self.lock, self._translate_errors():
            self.flush()
            data = ffi.from_buffer(source)
            libf.wgpuQueueWriteBuffer(self.queue, buffer, offset, data, source.nbytes)

    def record(self) -> Event:
        """Return an event at the current end, with a timestamp if the device has them."""
        with self.lock:
            event = Event(self._write_timestamp() if self.device.features else None)
            self.flush()
            self.when_done(event.state)
            return event

    def _write_timestamp(self) -> Any:
        """Queue a timestamp; return the buffer that it is written to."""
        queries = self.device.create_query_set(type="timestamp", count=1)
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        ticks, encoder = self.device.create_buffer(size=8, usage=usage), self._begin()
        self._end_pass()
        libf.wgpuCommandEncoderWriteTimestamp(encoder, queries._internal, 0)
        libf.wgpuCommandEncoderResolveQuerySet(encoder, queries._internal, 0, 1, ticks._internal, 0)
        return ticks

    def flush(self) -> None:
        """Submit the open batch. Raises: DeviceError for an error of it, or of the device."""
        with self.lock, self._translate_errors():
            if self._encoder is None:
                return
            self._end_pass()
            encoder, self._encoder = self._encoder, None
            data, self._data = self._data, bytearray()
            self._submitted.extend(self._names)
            self._names.clear()
            try:
                commands = libf.wgpuCommandEncoderFinish(encoder, ffi.NULL)
            finally:
                lib.wgpuCommandEncoderRelease(encoder)
            if data:
                libf.wgpuQueueWriteBuffer(
                    self.queue, self._arguments._internal, 0, ffi.from_buffer(data), len(data)
                )
            libf.wgpuQueueSubmit(self.queue, 1, ffi.new("WGPUCommandBuffer[]", [commands]))
            lib.wgpuCommandBufferRelease(commands)

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
        """Submit the open batch, and wait for all work. An empty list frees staging memory."""
        with self._translate_errors():
            self.flush()
            libf.wgpuQueueSubmit(self.queue, 0, ffi.NULL)
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
        names = ", ".join(dict.fromkeys((*self._submitted, *self._names)))
        work = f"; unfinished kernels: {names}" if names else ""
        return DeviceError(
            f"{self.name}: {reason}{work}. If the device is lost, restart the process"
        )
