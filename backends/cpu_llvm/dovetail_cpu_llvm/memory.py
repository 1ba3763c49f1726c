"""Raw memory: pages straight from the system, huge ones where it has them.

Reuse is the core's business.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from ctypes import c_int, c_size_t, c_void_p

_HUGE = 2 << 20
_SMALL = 64  # alignment of what malloc gives


class _PosixPages:
    """mmap and munmap: zeroed pages, given back at once."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = c_void_p
        self._libc.mmap.argtypes = [c_void_p, c_size_t, c_int, c_int, c_int, ctypes.c_long]
        self._libc.munmap.argtypes = [c_void_p, c_size_t]
        self._libc.madvise.argtypes = [c_void_p, c_size_t, c_int]
        self._advice = getattr(mmap, "MADV_HUGEPAGE", None)

    def allocate(self, nbytes: int) -> int:
        if nbytes < _HUGE:
            return self._map(nbytes)
        # Huge pages start at multiples of their size: map more, and give the ends back.
        size = _pages(nbytes)
        start = self._map(size + _HUGE)
        address = -(-start // _HUGE) * _HUGE
        self._unmap(start, address - start)
        self._unmap(address + size, start + _HUGE - address)
        if self._advice is not None:
            self._libc.madvise(address, size, self._advice)
        return address

    def free(self, address: int, nbytes: int) -> None:
        self._unmap(address, _pages(nbytes))

    def _map(self, nbytes: int) -> int:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        got = self._libc.mmap(None, _pages(nbytes), mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if got is None or got == c_void_p(-1).value:
            raise MemoryError(f"the system has no {nbytes} bytes left")
        return int(got)

    def _unmap(self, address: int, nbytes: int) -> None:
        if nbytes:
            self._libc.munmap(address, nbytes)


class _Malloc:
    """Where there is no mmap: what ctypes can allocate, aligned by hand."""

    def __init__(self) -> None:
        self._live: dict[int, object] = {}

    def allocate(self, nbytes: int) -> int:
        block = (ctypes.c_char * (nbytes + _SMALL))()
        address = -(-ctypes.addressof(block) // _SMALL) * _SMALL
        self._live[address] = block
        return address

    def free(self, address: int, nbytes: int) -> None:
        del self._live[address]


def _pages(nbytes: int) -> int:
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def raw_memory() -> _PosixPages | _Malloc:
    """This system's source of memory."""
    return _Malloc() if sys.platform == "win32" else _PosixPages()
