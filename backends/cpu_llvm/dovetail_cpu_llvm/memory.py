"""Raw memory: pages straight from the system, huge ones where it has them; and NumPy's view of it.

Reuse is the core's business.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import lru_cache
from typing import Any

import numpy as np
from dovetail.extend import StridedOperand, array_at

from .numa import Policy, bind_pages

Array = np.ndarray[Any, Any]

_HUGE_PAGE_BYTES = 2 << 20
_ALIGNMENT_BYTES = 64  # alignment of memory from malloc
_ALLOCATION_BYTES_MAX = 1 << 63  # bytes: larger sizes would wrap in C


class _Address(int):
    """The address of memory that is given back with its last reference, unless it was before.

    So an interrupt loses none.
    """

    pages: mmap.mmap


class _PosixPages:
    """mmap and munmap: zeroed pages, given back at once."""

    policy: Policy = "default"

    def __init__(self) -> None:
        self._flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._advice = getattr(mmap, "MADV_HUGEPAGE", None)

    def allocate(self, nbytes: int) -> int:
        """Map zeroed pages, huge ones for large sizes; return the address. Raises: MemoryError."""
        # Huge pages start at multiples of their size. What is before is never touched, so it takes
        # no memory.
        huge = nbytes >= _HUGE_PAGE_BYTES
        size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        pages = self._map(size + _HUGE_PAGE_BYTES * huge)
        start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        skip = -start % _HUGE_PAGE_BYTES if huge else 0
        if huge and self._advice is not None:
            pages.madvise(self._advice, skip, size)
        if self.policy != "default":
            try:
                bind_pages(start + skip, size, self.policy)
            except OSError as error:
                raise MemoryError(f"the system refused a NUMA policy: {error.strerror}") from error
        address = _Address(start + skip)
        address.pages = pages
        return address

    def free(self, address: int, nbytes: int) -> None:
        """Unmap the pages of an address from `allocate`."""
        assert isinstance(address, _Address)
        address.pages.close()

    def _map(self, nbytes: int) -> mmap.mmap:
        """Map anonymous pages. Raises: MemoryError."""
        try:
            return mmap.mmap(-1, nbytes, self._flags, mmap.PROT_READ | mmap.PROT_WRITE)
        except (OSError, ValueError, OverflowError) as error:
            raise MemoryError(f"the system could not allocate {nbytes} bytes") from error


class _Malloc:
    """Memory for systems without mmap: ctypes allocates it, and it is aligned by hand."""

    policy: Policy = "default"

    def __init__(self) -> None:
        self._live: dict[int, object] = {}

    def allocate(self, nbytes: int) -> int:
        """Allocate aligned memory and keep it alive. Raises: MemoryError."""
        if nbytes >= _ALLOCATION_BYTES_MAX:
            raise MemoryError(f"the system could not allocate {nbytes} bytes")
        block = (ctypes.c_char * (nbytes + _ALIGNMENT_BYTES))()
        address = -(-ctypes.addressof(block) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        self._live[address] = block
        return address

    def free(self, address: int, nbytes: int) -> None:
        """Drop the block of an address. Raises: KeyError for an unknown address."""
        del self._live[address]


def raw_memory() -> _PosixPages | _Malloc:
    """Create this system's allocator of raw memory."""
    return _Malloc() if sys.platform == "win32" else _PosixPages()


@lru_cache(1024)  # 3 us to make, and work in a loop has the same memory again
def operand_array(operand: StridedOperand) -> Array:
    """Return an operand as a NumPy array over its memory; recent arrays are cached."""
    address, offset, shape, strides, dtype = operand
    return array_at(address + offset, shape, strides, dtype)
