"""The memory of one GPU, page-locked memory of the host, and copies between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail.extend import DeviceMemory, Lock, address_of

from . import driver as cuda

ALLOCATION_BYTES_MAX = 1 << 63  # bytes: larger sizes would wrap in C
PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: page-locked for every GPU


class Memory(DeviceMemory):
    """The memory of one device. A handle is an address; `enter` makes the context current."""

    waits_to_free = False  # the driver does

    def __init__(self, enter: Callable[[], None]) -> None:
        self.enter = enter
        self._unreturned: list[
            tuple[Any, Any]
        ] = []  # allocations of the driver that are not returned yet
        self._lock = Lock()

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory; return its address.

        Raises: MemoryError; CudaError for other failures.
        """
        d = cuda.driver
        return self._allocate(d.cuMemAlloc, (nbytes,), d.cuMemFree, f"cuMemAlloc of {nbytes} bytes")

    def _allocate(self, call: Any, arguments: tuple[int, ...], undo: Any, action: str) -> int:
        """Call the driver's allocator and return the address.

        An interrupt loses no memory: `extend` and `map` are one step, and an allocation that was
        not returned is freed at the next call.
        """
        if arguments[0] >= ALLOCATION_BYTES_MAX:
            raise MemoryError(f"cuda: {action}: must be less than {ALLOCATION_BYTES_MAX:,} bytes")
        with self._lock:
            self.enter()
            while self._unreturned:
                allocation, release = self._unreturned[0]
                del self._unreturned[0]
                if allocation[0] == 0:
                    release(allocation[1])
            self._unreturned.extend(zip(map(call, *zip(arguments)), (undo,), strict=True))
            address = int(cuda.unwrap_result(self._unreturned[0][0], action))
            del self._unreturned[0]
            return address

    def free(self, address: int) -> None:
        """Free device memory."""
        cuda.unwrap_result(cuda.driver.cuMemFree(address), "cuMemFree")

    def adopt(self, address: int, nbytes: int) -> int | None:
        """Return the address if the driver knows the memory: a device's, managed, page-locked."""
        attribute = cuda.driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        is_known = not nbytes or cuda.driver.cuPointerGetAttribute(attribute, address)[0] == 0
        return address if is_known else None

    def copy_in(self, address: int, offset: int, source: memoryview, stream: int) -> None:
        """Copy and wait, because the driver may read even ordinary memory later."""
        self.queue_copy_in(address, offset, source, stream)
        wait(stream)

    def copy_out(self, target: memoryview, address: int, offset: int, stream: int) -> None:
        """Copy to the host, after the stream's queued work, and wait."""
        self.queue_copy_out(target, address, offset, stream)
        wait(stream)

    def queue_copy_in(self, address: int, offset: int, source: memoryview, stream: int) -> bool:
        """Queue a copy to the device on a stream."""
        copied = cuda.driver.cuMemcpyHtoDAsync(
            address + offset, address_of(source), source.nbytes, stream
        )
        cuda.unwrap_result(copied, f"copying {source.nbytes} bytes to the device")
        return True

    def queue_copy_out(self, target: memoryview, address: int, offset: int, stream: int) -> bool:
        """Queue a copy to the host on a stream."""
        copied = cuda.driver.cuMemcpyDtoHAsync(
            address_of(target), address + offset, target.nbytes, stream
        )
        cuda.unwrap_result(copied, f"copying {target.nbytes} bytes from the device")
        return True

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate page-locked host memory; return its address.

        Raises: MemoryError; CudaError for other failures.
        """
        d, doing = cuda.driver, f"cuMemHostAlloc of {nbytes} bytes"
        return self._allocate(d.cuMemHostAlloc, (nbytes, PORTABLE), d.cuMemFreeHost, doing)

    def free_pinned(self, address: int) -> None:
        """Free page-locked host memory."""
        cuda.unwrap_result(cuda.driver.cuMemFreeHost(address), "cuMemFreeHost")


def wait(stream: int) -> None:
    """Wait for everything queued on a stream. Raises: CudaError if any of it failed."""
    cuda.unwrap_result(cuda.driver.cuStreamSynchronize(stream), "waiting for a stream")
