"""Memory: buffers of the device's own, or such as the host reaches too, without a copy.

A device on the host's memory with fine-grained shared virtual memory (OpenCL 2.0, 5.6.1) sees what
the host writes and the other way round, at each wait for a queue, without mapping: there a buffer
lies over memory whose address the host knows.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import Any

import numpy as np
import pyopencl as cl
from dovetail.extend import bytes_at

ALIGNMENT = 64
LIMIT = 1 << 63  # bytes: larger sizes would wrap in C
_BYTE: Any = np.dtype(np.uint8)
_FLAGS = cl.mem_flags.READ_WRITE
_SVM = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
_FINE = cl.device_svm_capabilities.FINE_GRAIN_BUFFER


class HostBuffer(cl.Buffer):
    """A buffer over the memory at `address`, which `owner` keeps (None: somebody else does)."""

    def __init__(self, context: Any, address: int, nbytes: int, owner: Any = None) -> None:
        there = (ctypes.c_char * nbytes).from_address(address)
        super().__init__(context, _FLAGS | cl.mem_flags.USE_HOST_PTR, hostbuf=there)
        self.address, self.owner = address, owner


class Memory:
    """The memory of one device. `shared`: the host reaches it."""

    def __init__(self, context: Any, device: Any) -> None:
        self.context, self.device = context, device
        self.shared = shares_memory(device)
        self._pinned: dict[int, tuple[Any, Any]] = {}  # address -> the buffer, and its map
        self._copies: deque[Any] = deque()  # pyopencl waits for a copy whose event is dropped

    def allocate(self, nbytes: int) -> Any:
        """A buffer. Raises: MemoryError."""
        if nbytes >= LIMIT:
            raise MemoryError(f"{self.device.name} has no {nbytes} bytes")
        try:
            if not self.shared:
                return cl.Buffer(self.context, _FLAGS, nbytes)
            owner = cl.SVMAllocation(self.context, nbytes, ALIGNMENT, _SVM)
            return HostBuffer(self.context, owner.svm_ptr, nbytes, owner)
        except cl.Error as error:
            raise MemoryError(f"{self.device.name} has no {nbytes} bytes left: {error}") from error

    def free(self, buffer: Any) -> None:
        """Gives a buffer up; nothing that is queued uses it."""
        buffer.release()
        if self.shared and buffer.owner is not None:
            buffer.owner.release()

    def adopt(self, address: int, nbytes: int) -> Any:
        """A buffer over somebody else's memory, of whatever alignment; None where it is no use."""
        if not self.shared:
            return None
        if nbytes == 0:
            return self.allocate(1)
        return HostBuffer(self.context, address, nbytes)

    # --- copies

    def copy_in(self, queue: Any, buffer: Any, offset: int, source: memoryview) -> None:
        """Copies from the host, after what is queued."""
        if self.shared:
            queue.finish()
            bytes_at(buffer.address + offset, source.nbytes)[:] = source
        else:
            cl.enqueue_copy(queue, buffer, source, dst_offset=offset, is_blocking=True)

    def copy_out(self, queue: Any, target: memoryview, buffer: Any, offset: int) -> None:
        """Copies to the host, after what is queued."""
        if self.shared:
            queue.finish()
            target[:] = bytes_at(buffer.address + offset, target.nbytes)
        else:
            cl.enqueue_copy(queue, target, buffer, src_offset=offset, is_blocking=True)

    def queue_copy(self, queue: Any, target: Any, source: Any, **offset: Any) -> None:
        """Queues a copy from or to the host, and returns."""
        while self._copies and _done(self._copies[0]):
            self._copies.popleft()
        self._copies.append(cl.enqueue_copy(queue, target, source, is_blocking=False, **offset))

    # --- page-locked memory of the host

    def allocate_pinned(self, queue: Any, nbytes: int) -> int:
        """The address of memory that stays mapped. Raises: MemoryError."""
        flags: Any = _FLAGS | cl.mem_flags.ALLOC_HOST_PTR
        both: Any = cl.map_flags.READ | cl.map_flags.WRITE
        try:
            buffer = cl.Buffer(self.context, flags, nbytes)
            there, _ = cl.enqueue_map_buffer(queue, buffer, both, 0, (nbytes,), _BYTE)
        except cl.Error as error:
            raise MemoryError(f"no {nbytes} bytes of page-locked memory left: {error}") from error
        address: int = there.__array_interface__["data"][0]
        self._pinned[address] = buffer, there
        return address

    def free_pinned(self, queue: Any, address: int) -> None:
        """Unmaps it, and gives it up."""
        buffer, there = self._pinned.pop(address)
        there.base.release(queue)
        buffer.release()


def shares_memory(device: Any) -> bool:
    """Whether host and device see each other's writes to the same memory."""
    try:
        return bool(device.host_unified_memory and device.svm_capabilities & _FINE)
    except (AttributeError, cl.Error):  # OpenCL 1.x does not know of it
        return False


def _done(event: Any) -> bool:
    return bool(event.command_execution_status == cl.command_execution_status.COMPLETE)
