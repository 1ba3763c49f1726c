"""Memory of a device: buffers of whole words, which the host cannot see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import wgpu
from dovetail.extend import DeviceMemory, Lock, StreamHandle
from wgpu.backends.wgpu_native import ffi, lib

from .queue import Event, Queue

STAGING_BYTES = 1 << 22  # bytes of one copy to the host
GROUPS_KEPT_MAX = 4096  # bind groups
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.COPY_SRC
_READ = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


class Block:
    """An allocation. `groups`: the keys of its bind groups."""

    __slots__ = ("buffer", "groups")

    def __init__(self, buffer: Any) -> None:
        self.buffer, self.groups = buffer, set[tuple[Block, ...]]()


class Memory(DeviceMemory):
    """The memory of one device, and the bind groups of its blocks. All streams are one queue."""

    pins = waits_to_free = False

    def __init__(self, device: Any, queue: Queue, bytes_max: int) -> None:
        self.device, self.queue, self.bytes_max = device, queue, bytes_max
        self._groups = dict[tuple[Block, ...], Any]()
        self._layouts = dict[int, Any]()  # by the number of buffers
        self._staging: list[Any] = []  # free buffers that copies to the host go through
        self._lock = Lock()

    def allocate(self, nbytes: int) -> Block:
        """Allocate memory. Raises: MemoryError."""
        what = f"{self.queue.name} could not allocate {nbytes} bytes"
        if nbytes > self.bytes_max:
            raise MemoryError(f"{what}: WebGPU allows {self.bytes_max} bytes in one buffer here")
        try:
            return Block(self.device.create_buffer(size=-(-nbytes // 4) * 4, usage=_STORAGE))
        except wgpu.GPUError as error:
            self.queue.wait()  # released memory is free once the work before is done
            raise MemoryError(f"{what}: {error}") from error

    def free(self, block: Block) -> None:
        """Release a block, which the driver frees after the work that uses it."""
        with self._lock:
            for key in tuple(block.groups):
                self._groups.pop(key, None)
                for other in key:  # which would keep this block's memory
                    other.groups.discard(key)

    # --- bind groups

    def layout(self, count: int) -> Any:
        """Return the layout of a bind group of some buffers."""
        if count not in self._layouts:
            entry = {"visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}
            self._layouts[count] = self.device.create_bind_group_layout(
                entries=[{"binding": i, **entry} for i in range(count)]
            )
        return self._layouts[count]

    def group(self, blocks: tuple[Block, ...]) -> Any:
        """Return the bind group of these blocks, each bound as a whole."""
        group = self._groups.get(blocks)
        if group is None:
            entries = [
                {"binding": i, "resource": {"buffer": b.buffer, "offset": 0, "size": b.buffer.size}}
                for i, b in enumerate(blocks)
            ]
            group = self.device.create_bind_group(layout=self.layout(len(blocks)), entries=entries)
            with self._lock:
                if len(self._groups) >= GROUPS_KEPT_MAX:
                    for block in {block for key in self._groups for block in key}:
                        block.groups.clear()
                    self._groups.clear()
                self._groups[blocks] = group
                for block in blocks:
                    block.groups.add(blocks)
        return group

    # --- copies

    def copy_in(
        self, block: Block, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Write bytes of the host after all queued work; keep the other bytes of their words.

        Wait for that work if the bytes do not fill whole words.
        """
        start, end = offset & ~3, -(-(offset + source.nbytes) // 4) * 4
        if end - start == source.nbytes:
            self.queue.write(block.buffer._internal, start, source)
            return
        words = memoryview(bytearray(end - start))  # some keep a part of their bytes
        with self.queue.lock:  # other threads may change those bytes
            self.copy_out(words[:4], block, start)
            self.copy_out(words[-4:], block, end - 4)
            words[offset - start :][: source.nbytes] = source
            self.queue.write(block.buffer._internal, start, words)

    def read_ns(self, event: Event) -> float:
        """Wait for an event; return its time in nanoseconds of the device's or the host's clock."""
        if event.ticks is None:
            return event.host_ns
        ticks = memoryview(bytearray(8))
        self.copy_out(ticks, Block(event.ticks), 0)
        return ticks.cast("Q")[0] * float(lib.wgpuQueueGetTimestampPeriod(self.queue.queue))

    def copy_out(
        self, target: memoryview, block: Block, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy to the host after all queued work, and wait."""
        end = offset + target.nbytes
        with self._borrow_staging() as staging:
            for start in range(offset & ~3, end, STAGING_BYTES):
                nbytes = min(STAGING_BYTES, -(-(end - start) // 4) * 4)
                self.queue.copy(block.buffer, start, staging, nbytes)
                first, last = max(start, offset), min(start + nbytes, end)
                address = ffi.cast("char *", self.queue.map(staging._internal, nbytes))
                part = target[first - offset : last - offset]
                ffi.memmove(part, address + (first - start), last - first)
                lib.wgpuBufferUnmap(staging._internal)

    @contextmanager
    def _borrow_staging(self) -> Iterator[Any]:
        """Lend a buffer for a copy to the host; after an error it may be mapped, and is dropped.

        A thread, and a finalizer in the midst of a copy, get their own.
        """
        try:
            staging = self._staging.pop()
        except IndexError:
            staging = self.device.create_buffer(size=STAGING_BYTES, usage=_READ)
        yield staging
        self._staging.append(staging)
