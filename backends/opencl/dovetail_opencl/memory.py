"""Buffers in the device's own memory, or in memory that the host can access, too.

A device on the host's memory with fine-grained shared virtual memory (OpenCL 2.0, 5.6.1) sees the
host's writes and the other way round, at each wait for a queue, without mapping. There a buffer
lies over memory whose address the host knows.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import Any

import numpy as np
import pyopencl as cl
from dovetail.extend import DeviceMemory

ALIGNMENT = 64
ALLOCATION_BYTES_MAX = 1 << 63  # bytes: larger sizes would wrap in C
_BYTE: Any = np.dtype(np.uint8)
_FLAGS = cl.mem_flags.READ_WRITE
_SVM = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
_FINE = cl.device_svm_capabilities.FINE_GRAIN_BUFFER


class HostBuffer(cl.Buffer):
    """A buffer over the memory at `address`. `owner` keeps it alive; None: the caller does."""

    def __init__(self, context: Any, address: int, nbytes: int, owner: Any = None) -> None:
        there = (ctypes.c_char * nbytes).from_address(address)
        super().__init__(context, _FLAGS | cl.mem_flags.USE_HOST_PTR, hostbuf=there)
        self.address, self.owner = address, owner


class Memory(DeviceMemory):
    """The memory of one device. `shared`: the host can access it."""

    def __init__(self, context: Any, device: Any, queue: Any) -> None:
        self.context, self.device, self.queue = context, device, queue
        self.shared = shares_memory(device)
        self._pinned: dict[int, tuple[Any, Any]] = {}  # address -> the buffer, and its map
        self._copies: deque[Any] = deque()  # pyopencl waits for a copy whose event is dropped

    def allocate(self, nbytes: int) -> Any:
        """Allocate a buffer, over shared memory if the device has it. Raises: MemoryError."""
        if nbytes >= ALLOCATION_BYTES_MAX:
            raise MemoryError(f"{self.device.name} could not allocate {nbytes} bytes")
        try:
            if not self.shared:
                return cl.Buffer(self.context, _FLAGS, nbytes)
            owner = cl.SVMAllocation(self.context, nbytes, ALIGNMENT, _SVM)
            return HostBuffer(self.context, owner.svm_ptr, nbytes, owner)
        except cl.Error as error:
            raise MemoryError(
                f"{self.device.name} could not allocate {nbytes} bytes: {error}"
            ) from error

    def free(self, buffer: Any) -> None:
        """Release a buffer and its shared memory; no queued work may use the buffer."""
        buffer.release()
        if self.shared and buffer.owner is not None:
            buffer.owner.release()

    def adopt(self, address: int, nbytes: int) -> Any:
        """Return a buffer over host memory, of any alignment, or None if it is not shared."""
        if not self.shared:
            return None
        if nbytes == 0:
            return self.allocate(1)
        return HostBuffer(self.context, address, nbytes)

    def address(self, buffer: Any) -> int:
        """Return the host's address of a shared buffer."""
        address: int = buffer.address
        return address

    # --- copies

    def copy_in(self, buffer: Any, offset: int, source: memoryview, queue: Any) -> None:
        """Copy from the host after queued work, and wait."""
        cl.enqueue_copy(queue, buffer, source, dst_offset=offset, is_blocking=True)

    def copy_out(self, target: memoryview, buffer: Any, offset: int, queue: Any) -> None:
        """Copy to the host after queued work, and wait."""
        cl.enqueue_copy(queue, target, buffer, src_offset=offset, is_blocking=True)

    def queue_copy_in(self, buffer: Any, offset: int, source: memoryview, queue: Any) -> bool:
        """Queue a copy from the host without waiting."""
        return self._queue_copy(queue, buffer, source, dst_offset=offset)

    def queue_copy_out(self, target: memoryview, buffer: Any, offset: int, queue: Any) -> bool:
        """Queue a copy to the host without waiting."""
        return self._queue_copy(queue, target, buffer, src_offset=offset)

    def _queue_copy(self, queue: Any, target: Any, source: Any, **offset: Any) -> bool:
        """Queue a copy, and keep its event until it is done; return True."""
        while self._copies and _is_done(self._copies[0]):
            self._copies.popleft()
        self._copies.append(cl.enqueue_copy(queue, target, source, is_blocking=False, **offset))
        return True

    # --- page-locked memory of the host

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate and map a page-locked buffer; return its host address. Raises: MemoryError."""
        flags: Any = _FLAGS | cl.mem_flags.ALLOC_HOST_PTR
        both: Any = cl.map_flags.READ | cl.map_flags.WRITE
        try:
            buffer = cl.Buffer(self.context, flags, nbytes)
            there, _ = cl.enqueue_map_buffer(self.queue, buffer, both, 0, (nbytes,), _BYTE)
        except cl.Error as error:
            raise MemoryError(f"could not allocate {nbytes} page-locked bytes: {error}") from error
        address: int = there.__array_interface__["data"][0]
        self._pinned[address] = buffer, there
        return address

    def free_pinned(self, address: int) -> None:
        """Unmap page-locked memory, and release its buffer."""
        buffer, there = self._pinned.pop(address)
        there.base.release(self.queue)
        buffer.release()


def shares_memory(device: Any) -> bool:
    """Return True if host and device see each other's writes to the same memory."""
    try:
        return bool(device.host_unified_memory and device.svm_capabilities & _FINE)
    except (AttributeError, cl.Error):  # OpenCL 1.x does not know of it
        return False


def _is_done(event: Any) -> bool:
    """Return True if an event's command is complete."""
    return bool(event.command_execution_status == cl.command_execution_status.COMPLETE)
