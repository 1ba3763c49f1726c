"""An allocator whose memory is a file, so the file contains the values of its tensors."""

from __future__ import annotations

import mmap
import os
import weakref
from collections import deque
from pathlib import Path
from typing import NamedTuple

from ..argument_checks import LARGEST, integer, path
from ..backend.host import address_of
from ..device_class import Device, opened, usable
from ..errors import ArgumentError, DeviceError, OutOfMemoryError
from ..locks import Lock
from .allocator import Allocator, BlockInfo, SegmentInfo, Stats
from .pointer import DataPtr, StreamHandle
from .units import format_bytes

__all__ = ["MappedFile"]

WORD = 4  # bytes, the largest that memory is read by (`Capabilities.storage_bits`)


class _Region(NamedTuple):
    """A mapped piece of the file: its offset and its size."""

    start: int
    nbytes: int
    pages: mmap.mmap

    @property
    def address(self) -> int:
        """Return the host address of the first byte."""
        return address_of(memoryview(self.pages))


class MappedFile(Allocator):
    """An allocator that takes memory from a new file, which grows with the allocations.

    The file is not deleted, and freed memory in it is used again. The system writes values to the
    file, at the latest in `flush`; those of a storage begin at `where`.

    - `file`: the name of a file that does not exist yet.
    - `device`: a device that uses the host's memory; None is the default device.

    Raises: ArgumentError for an existing file, DeviceError for a device that cannot use it,
    OutOfMemoryError if the disk is full; OSError for a file that cannot be created.

    >>> import pathlib, tempfile
    >>> import dovetail as dt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     memory = dt.memory.MappedFile(folder + "/x.bin", "reference")
    ...     x = dt.empty(4, dtype=dt.int32, device="reference", allocator=memory)
    ...     y = x.copy_([1, 2, 3, 4])
    ...     memory.flush()
    ...     at = memory.where(x.storage())
    ...     list(pathlib.Path(memory.file).read_bytes()[at : at + 16 : 4])
    [1, 2, 3, 4]
    """

    def __init__(self, file: str | os.PathLike[str], device: Device | str | None = None) -> None:
        self.file = Path(path("MappedFile", file, "file"))
        self.device = usable(device, "MappedFile")
        self._backend = opened(self.device).backend
        if not self._backend.host:
            raise DeviceError(
                f"MappedFile: the device must use the host's memory, got {self.device}"
            )
        try:
            self._fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            raise ArgumentError(
                f"MappedFile: {str(self.file)!r} already exists; name a new file, or remove it"
            ) from None
        weakref.finalize(self, os.close, self._fd)
        self._lock = Lock()
        self._end = self._live = self._peak = self._allocations = self._frees = 0
        self._free: list[_Region] = []
        self._used: dict[int, _Region] = {}
        self._freed: deque[_Region] = deque()  # deleters only append: they run at any moment

    def allocate(self, nbytes: int, stream: StreamHandle = None) -> DataPtr:
        """Return `nbytes` of the file, grown if no freed region fits; may wait for the device.

        - `nbytes`: the number of bytes, 0 or more.
        - `stream`: without effect: the file has no streams.

        Raises: OutOfMemoryError if the file cannot grow, DeviceError if the device cannot use its
        memory.
        """
        size = integer("MappedFile", nbytes, "nbytes", 0, LARGEST)
        grain = mmap.ALLOCATIONGRANULARITY
        whole = max(-(-size // grain), 1) * grain
        with self._lock:
            self._drain()
            region = self._take_free_region(whole) or self._grow_file(whole)
            handle = self._backend.adopt(region.address, -(-size // WORD) * WORD)
            if handle is None:
                self._free.append(region)
                raise DeviceError(
                    f"MappedFile: {self.device} cannot use the memory of a mapped file"
                )
            ptr = DataPtr(handle, 0, size, self.device, region, self._freed.append)
            self._used[region.start] = region
            self._live += region.nbytes
            self._peak = max(self._peak, self._live)
            self._allocations += 1
        return ptr

    def where(self, storage: object) -> int:
        """Return the offset in the file, in bytes, of the memory of a storage.

        - `storage`: a `Storage` whose memory is in this file.

        Raises: ArgumentError for memory that is not of this file.
        """
        region = getattr(getattr(storage, "ptr", None), "context", None)
        if not isinstance(region, _Region) or self._used.get(region.start) is not region:
            raise ArgumentError(f"where: the memory of {storage!r} is not in {str(self.file)!r}")
        return region.start

    def flush(self) -> None:
        """Wait for the device's work, and write all values to the file."""
        self._backend.synchronize()
        with self._lock:
            self._drain()
            for region in self._used.values():
                region.pages.flush()

    def stats(self) -> Stats:
        """Return the statistics; sizes are multiples of a page."""
        with self._lock:
            self._drain()
            return Stats(
                live_bytes=self._live,
                live_blocks=len(self._used),
                peak_live_bytes=self._peak,
                cached_bytes=self._end - self._live,
                reserved_bytes=self._end,
                peak_reserved=self._end,
                allocations=self._allocations,
                frees=self._frees,
            )

    def snapshot(self) -> list[SegmentInfo]:
        """Return the file as one segment, with its blocks."""
        with self._lock:
            self._drain()
            blocks = [BlockInfo(r.start, r.nbytes, "live", None) for r in self._used.values()]
            blocks += [BlockInfo(r.start, r.nbytes, "cached", None) for r in self._free]
            return [SegmentInfo(self._end, None, tuple(sorted(blocks)))] if blocks else []

    def _drain(self) -> None:
        """Wait for the device, then move freed regions to the free list; needs the lock."""
        if self._freed:
            self._backend.synchronize()
        while self._freed:
            region = self._freed.popleft()
            del self._used[region.start]
            self._free.append(region)
            self._live -= region.nbytes
            self._frees += 1

    def _take_free_region(self, nbytes: int) -> _Region | None:
        """Remove and return the smallest free region of 1 to 2 times `nbytes`, or return None."""
        fits = [r for r in self._free if nbytes <= r.nbytes <= 2 * nbytes]
        best = min(fits, key=lambda r: r.nbytes, default=None)
        if best is not None:
            self._free.remove(best)
        return best

    def _grow_file(self, nbytes: int) -> _Region:
        """Extend the file; map a new region at its end. Raises: OutOfMemoryError if that fails."""
        start = self._end
        try:
            if hasattr(
                os, "posix_fallocate"
            ):  # else a write to a full disk ends the process (SIGBUS)
                os.posix_fallocate(self._fd, start, nbytes)
            else:
                os.truncate(self.file, start + nbytes)
            pages = mmap.mmap(self._fd, nbytes, offset=start)
        except (OSError, OverflowError, ValueError) as error:
            raise OutOfMemoryError(
                f"{str(self.file)!r} could not grow by {format_bytes(nbytes)}: {error}"
            ) from error
        self._end = start + nbytes
        return _Region(start, nbytes, pages)
