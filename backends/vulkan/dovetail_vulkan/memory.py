"""Memory of a device: buffers with addresses, which the host may see, too.

On an integrated GPU and on a CPU, device and host share their memory: a buffer is mapped for as
long as it lives. Elsewhere copies go through a buffer that both see.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref
from typing import TYPE_CHECKING, NamedTuple

from dovetail.extend import DeviceMemory, address_of, bytes_at

from . import vulkan as vk
from .loader import LogicalDevice, PhysicalDevice

if TYPE_CHECKING:
    from .stream import Stream

STAGING_BYTES = 1 << 24  # bytes of one copy by way of memory that host and device see
LARGEST_BLOCK_MIN = 1 << 28  # bytes that need no trial
_USAGE = 0x20023  # the source and target of copies, storage, and an address for shaders
_WITH_ADDRESS = 2  # VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT
_WHOLE = (1 << 64) - 1
DEVICE_LOCAL, VISIBLE, COHERENT, CACHED = 1, 2, 4, 8  # VkMemoryPropertyFlagBits
HOST_FLAGS = VISIBLE | COHERENT | CACHED
_SHARING_TYPES = ("integrated", "CPU")


class MemoryBlock(NamedTuple):
    """A buffer with memory of its own. `host`: where the host sees it; 0 if it does not."""

    buffer: int
    memory: int
    address: int
    host: int
    nbytes: int


class Memory(DeviceMemory):
    """The memory of one device. `shared`: the host sees all of it."""

    def __init__(self, device: LogicalDevice) -> None:
        self.device, self.shared = device, shares_memory(device.physical)
        self.blocks: dict[int, MemoryBlock] = {}  # by address
        self.pinned: dict[int, MemoryBlock] = {}  # by the host's address
        self._staging: list[MemoryBlock] = []  # free

    def allocate(self, nbytes: int) -> int:
        """Allocate memory of the device; return its address. Raises: MemoryError."""
        block = self.allocate_block(nbytes, DEVICE_LOCAL | (HOST_FLAGS if self.shared else 0))
        self.blocks[block.address] = block
        return block.address

    def find_largest_block(self, nbytes: int) -> int:
        """Return the first of `nbytes`, its half, and so on, that the driver allocates."""
        while nbytes > LARGEST_BLOCK_MIN:
            try:
                self.free(self.allocate(nbytes))
                break
            except MemoryError:
                nbytes //= 2
        return nbytes

    def free(self, handle: int) -> None:
        """Free memory that no queued work uses."""
        self.free_block(self.blocks.pop(handle))

    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate page-locked memory; return the host's address of it. Raises: MemoryError."""
        block = self.allocate_block(nbytes, HOST_FLAGS)
        self.pinned[block.host] = block
        return block.host

    def free_pinned(self, address: int) -> None:
        """Free page-locked memory that no queued work uses."""
        self.free_block(self.pinned.pop(address))

    def address(self, handle: int) -> int:
        """Return the host's address of shared memory."""
        return self.blocks[handle].host

    # --- copies

    def copy_in(self, handle: int, offset: int, source: memoryview, stream: Stream) -> None:
        """Copy from the host after the stream's work, and wait."""
        with self._borrow_staging() as staging:
            for start in range(0, source.nbytes, STAGING_BYTES):
                part = source[start : start + STAGING_BYTES]
                bytes_at(staging.host, part.nbytes)[:] = part
                stream.copy(staging, 0, self.blocks[handle], offset + start, part.nbytes)
                stream.wait()

    def copy_out(self, target: memoryview, handle: int, offset: int, stream: Stream) -> None:
        """Copy to the host after the stream's work, and wait."""
        with self._borrow_staging() as staging:
            for start in range(0, target.nbytes, STAGING_BYTES):
                part = target[start : start + STAGING_BYTES]
                stream.copy(self.blocks[handle], offset + start, staging, 0, part.nbytes)
                stream.wait()
                part[:] = bytes_at(staging.host, part.nbytes)

    def queue_copy_in(self, handle: int, offset: int, source: memoryview, stream: Stream) -> bool:
        """Queue a copy from page-locked memory; return False for other memory."""
        if pinned := self._find_pinned(source):
            stream.copy(*pinned, self.blocks[handle], offset, source.nbytes)
        return pinned is not None

    def queue_copy_out(self, target: memoryview, handle: int, offset: int, stream: Stream) -> bool:
        """Queue a copy to page-locked memory; return False for other memory."""
        if pinned := self._find_pinned(target):
            stream.copy(self.blocks[handle], offset, *pinned, target.nbytes)
        return pinned is not None

    def _find_pinned(self, memory: memoryview) -> tuple[MemoryBlock, int] | None:
        """Return the page-locked block that holds these bytes, and their offset; None if none."""
        address = address_of(memory)
        for start, block in tuple(self.pinned.items()):
            if start <= address and address + memory.nbytes <= start + block.nbytes:
                return block, address - start
        return None

    @contextmanager
    def _borrow_staging(self) -> Iterator[MemoryBlock]:
        """Lend memory for a copy. A finalizer in the midst of one, and a thread, get their own."""
        try:
            staging = self._staging.pop()
        except IndexError:
            staging = self.allocate_block(STAGING_BYTES, HOST_FLAGS)
        try:
            yield staging
        finally:
            self._staging.append(staging)

    # --- blocks

    def allocate_block(self, nbytes: int, flags: int) -> MemoryBlock:
        """Return a new buffer in memory with these properties. Raises: MemoryError."""
        what = f"{self.device.name} could not allocate {nbytes} bytes"
        if nbytes > self.device.physical.allocation_bytes_max:
            most = self.device.physical.allocation_bytes_max
            raise MemoryError(f"{what}: the driver allows {most} bytes in one allocation")
        call, device = self.device.functions, self.device.handle
        # The driver fills these, so an interrupt between two calls loses no handle.
        buffer, memory = ctypes.c_uint64(), ctypes.c_uint64()
        host, needed = ctypes.c_void_p(), vk.Requirements()
        try:
            info = vk.BufferInfo(size=nbytes, usage=_USAGE)
            call.CreateBuffer(device, byref(info), None, byref(buffer))
            call.GetBufferMemoryRequirements(device, buffer, byref(needed))
            fitting = [t for t in self._order_types(flags) if needed.types >> t & 1]
            if not fitting:
                raise MemoryError(f"{what}: no memory has the properties {flags:#x}")
            info = vk.AllocateInfo(
                next=vk.AllocateFlags(flags=_WITH_ADDRESS), size=needed.size, type=fitting[0]
            )
            call.AllocateMemory(device, byref(info), None, byref(memory))
            call.BindBufferMemory(device, buffer, memory, 0)
            address = call.GetBufferDeviceAddress(
                device, byref(vk.AddressInfo(buffer=buffer.value))
            )
            if flags & VISIBLE:
                call.MapMemory(device, memory, 0, _WHOLE, 0, byref(host))
            return MemoryBlock(buffer.value, memory.value, address, host.value or 0, nbytes)
        except BaseException as error:
            self.free_block(MemoryBlock(buffer.value, memory.value, 0, 0, 0))
            if isinstance(error, vk.VulkanError):
                raise MemoryError(f"{what}: {error}") from error
            raise

    def _order_types(self, flags: int) -> list[int]:
        """Return the numbers of the memory types with these properties, the best ones first.

        CACHED is a wish. Of several types the one with the fewest other properties is best.
        """
        types, needed = self.device.physical.memory_types, flags & ~CACHED
        fitting = [i for i, has in enumerate(types) if has & needed == needed]
        return sorted(fitting, key=lambda i: (types[i] ^ flags).bit_count())

    def free_block(self, block: MemoryBlock) -> None:
        """Free a buffer and its memory, which also ends its mapping."""
        self.device.destroy("Buffer", block.buffer)
        self.device.functions.FreeMemory(self.device.handle, block.memory, None)


def shares_memory(physical: PhysicalDevice) -> bool:
    """Return True if the host sees the device's own memory, at the same cost as its other memory.

    A discrete GPU's memory may be visible, too, but reading it across the bus takes long.
    """
    flags = DEVICE_LOCAL | HOST_FLAGS
    has_type = any(f & flags == flags for f in physical.memory_types)
    return physical.kind in _SHARING_TYPES and has_type
