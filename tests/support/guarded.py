"""A pytest plugin that detects accesses outside of live memory: `-p guarded`.

It needs the folder `tests` on PYTHONPATH, Linux, and no compiled modules (DOVETAIL_PURE=1).

Each tensor has its own region of the device's memory, which is not reused. It ends at an
inaccessible page, to within the alignment of 16 bytes. There is such a page before it, and freed
memory becomes such pages, whose addresses are not reused. So an invalid access of a kernel ends the
process immediately, with `faulthandler`'s stack.

That holds for `cpu`, for OpenCL devices that share the host's memory, and for the double of CUDA's
driver, which reports a fault. Tests of allocator statistics fail under it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import partial
from importlib.util import find_spec
from typing import Any

ALIGNMENT = 16  # bytes: of the widest element
PAGE = mmap.PAGESIZE
SPACE = 1 << 43  # bytes of addresses; each is used once
MOST = 1 << 36  # bytes of one piece, and of the gap on both sides
NOTHING, BOTH = 0, mmap.PROT_READ | mmap.PROT_WRITE
PLAIN = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
FIXED = 0x10  # MAP_FIXED


class Region:
    """A range of addresses of this process, parts of which are memory."""

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None)
        self.libc.mmap.restype = ctypes.c_void_p
        size, number = ctypes.c_size_t, ctypes.c_int
        self.libc.mmap.argtypes = [ctypes.c_void_p, size, number, number, number, ctypes.c_long]
        self.libc.mprotect.argtypes = [ctypes.c_void_p, size, number]
        self.process = self.top = self.end = 0
        self.live: dict[int, tuple[int, int]] = {}  # address -> first page, bytes of all pages

    def take(self, nbytes: int) -> int:
        """Return the address of zeroed memory. Raises: MemoryError."""
        # a child of fork() keeps inherited memory, and takes no more
        if self.process != os.getpid():
            start = self.libc.mmap(None, SPACE, NOTHING, PLAIN, -1, 0)
            self.top, self.end, self.process = start + MOST, start + SPACE - MOST, os.getpid()
        whole = rounded(nbytes, PAGE)
        if nbytes > MOST or self.top + whole + PAGE > self.end:
            raise MemoryError(f"the system has no {nbytes} bytes left")
        first, self.top = self.top, self.top + whole + PAGE
        if self.libc.mprotect(first, whole, BOTH):
            raise MemoryError(f"the system has no {nbytes} bytes left")
        start = first + whole - rounded(nbytes, ALIGNMENT)
        self.live[start] = first, whole
        return start

    def give_back(self, start: int) -> None:
        """Make the memory inaccessible."""
        first, whole = self.live.pop(start)
        assert self.libc.mmap(first, whole, NOTHING, PLAIN | FIXED, -1, 0) == first


def rounded(nbytes: int, to: int) -> int:
    """Round up to pieces, at least one."""
    return -(-max(nbytes, 1) // to) * to


class Owner:
    """The owner of memory under an OpenCL buffer."""

    def __init__(self, region: Region, address: int) -> None:
        self.release = partial(region.give_back, address)


def drain(self: Any) -> None:
    """Return freed memory to the device at once: `FastPath.drain`."""
    from dovetail.memory.blocks import UNUSED

    if self.freed:
        self.slow.backend.synchronize()
    while self.freed:
        block = self.freed[0]
        if self.tracer is not None:
            self.tracer.record_free(block)
        block.state, block.streams = UNUSED, None
        self.live_bytes -= block.size
        self.frees += 1
        del self.freed[0]
        block.segment.pool.insert(block)
        self.slow._free_segment(block.segment)


def install() -> None:
    """Guard the memory of devices that are opened from now on."""
    import dovetail as dt
    from dovetail.memory import caching_allocator, fast_path

    assert "dovetail.memory.fast_path" not in dt.__config__["compiled_modules"], "DOVETAIL_PURE=1"
    fast_path.BLOCK_ALIGNMENT = ALIGNMENT
    fast_path.FastPath.drain = drain  # type: ignore[method-assign]
    caching_allocator.segment_bytes = lambda size: size
    region = Region()
    if find_spec("dovetail_cpu_llvm"):
        from dovetail_cpu_llvm.memory import _PosixPages

        _PosixPages.allocate = lambda self, nbytes: region.take(nbytes)  # type: ignore[method-assign]
        _PosixPages.free = lambda self, address, nbytes: region.give_back(address)  # type: ignore[method-assign]
    if find_spec("dovetail_opencl") and find_spec("pyopencl"):
        from dovetail_opencl.memory import HostBuffer, Memory

        plain = Memory.allocate

        def allocate(self: Memory, nbytes: int) -> Any:
            if not self.shared:
                return plain(self, nbytes)
            start = region.take(nbytes)
            return HostBuffer(self.context, start, max(nbytes, 1), Owner(region, start))

        Memory.allocate = allocate  # type: ignore[method-assign]
    if find_spec("dovetail_cuda"):
        from cuda_double import machine

        machine.ALIGNMENT = ALIGNMENT


def pytest_configure() -> None:
    """Install the guard."""
    install()
