"""Storages that overlap in memory although they are separate objects.

Foreign memory can come in more than once: one array twice, slices of one array, a view of a
tensor's own memory, one file that is mapped twice. Each time it gets a `Storage` of its own. This
module connects storages whose address ranges overlap, so that a write through one of them first
computes the pending readers of all, and marks values saved for gradients as overwritten.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left, insort
from operator import itemgetter
from typing import Any, NamedTuple, Protocol
from weakref import ref

from ..device_class import Device, opened
from ..locks import Lock
from .pointer import DataPtr

PRUNE_MIN = 256  # ranges; fewer are never searched for dead storages


class StorageFields(Protocol):
    """The fields of `storage.Storage` that this module uses."""

    device: Device
    nbytes: int
    ptr: DataPtr
    seen: bool
    overlap: OverlapGroup | None


class OverlapGroup:
    """The storages that are connected by overlapping address ranges."""

    __slots__ = ("_members",)

    def __init__(self, members: list[StorageFields]) -> None:
        self._members = [ref(s) for s in members]

    def members(self) -> list[Any]:
        """Return the storages that are alive."""
        return [s for r in self._members if (s := r()) is not None]


class _Range(NamedTuple):
    """The bytes of a storage: addresses of this process, or offsets in a file."""

    low: int
    high: int
    storage: ref[StorageFields]


class _Ranges:
    """The address ranges of one address space, in ascending order."""

    def __init__(self) -> None:
        self._ranges: list[_Range] = []
        self._longest = 0
        self._limit = PRUNE_MIN

    def add(self, new: _Range) -> None:
        """Add a range; drop those of dead storages if the list has doubled since the last drop."""
        insort(self._ranges, new, key=itemgetter(0))
        self._longest = max(self._longest, new.high - new.low)
        if len(self._ranges) > self._limit:
            self._ranges = [r for r in self._ranges if r.storage() is not None]
            self._longest = max((r.high - r.low for r in self._ranges), default=0)
            self._limit = max(PRUNE_MIN, 2 * len(self._ranges))

    def find_overlapping(self, low: int, high: int) -> list[StorageFields]:
        """Return the live storages with a byte in low..high, high excluded."""
        first = bisect_left(self._ranges, low - self._longest, key=itemgetter(0))
        last = bisect_left(self._ranges, high, key=itemgetter(0))
        near = [r.storage() for r in self._ranges[first:last] if r.high > low]
        return [s for s in near if s is not None]


_address_spaces: dict[
    object, _Ranges
] = {}  # by address space: "memory", or device and inode of a file
_visible: list[
    ref[StorageFields]
] = []  # storages of our own that other code sees, not yet in a space
_visible_limit = PRUNE_MIN
_lock = Lock()  # reentered where a signal's handler shares memory


def register_visible(storage: StorageFields) -> None:
    """Mark a storage as visible to code outside of dovetail; a second call does nothing.

    The storage joins the ordered ranges when foreign memory comes in, so a call is one append.
    """
    global _visible_limit
    if storage.seen:
        return
    storage.seen = True
    _visible.append(ref(storage))
    if len(_visible) > _visible_limit:
        with _lock:
            _visible[:] = [r for r in _visible if r() is not None]
            _visible_limit = max(PRUNE_MIN, 2 * len(_visible))


def connect_foreign(storage: StorageFields, owner: object = None) -> None:
    """Mark a storage over foreign memory as visible, and group it with those it overlaps.

    owner: the object that keeps the memory alive; a mapped file is recognised by it.
    """
    storage.seen = True
    with _lock:
        while _visible:
            own = _visible.pop()()
            if own is not None:
                _connect(own, "memory", _find_address(own))
        address = _find_address(storage)
        _connect(storage, "memory", address)
        if address is not None and _is_mapped(owner):
            for space, offset in _file_offsets(address, address + storage.nbytes):
                _connect(storage, space, offset)


def _find_address(storage: StorageFields) -> int | None:
    """Return a storage's host address, else int handle plus offset, or None without either."""
    ptr = storage.ptr
    address = opened(storage.device).backend.host_address(ptr.handle, ptr.offset)
    if address is None and isinstance(ptr.handle, int):
        return ptr.handle + ptr.offset
    return address


def _connect(storage: StorageFields, space: object, low: int | None) -> None:
    """Add the storage's range at `low` to an address space; put all that overlap into a new group.

    Do nothing if `low` is None or the storage is empty.
    """
    if low is None or not storage.nbytes:
        return
    ranges = _address_spaces.setdefault(space, _Ranges())
    high = low + storage.nbytes
    near = [s for s in ranges.find_overlapping(low, high) if s is not storage]
    if near:
        groups = [[s] if s.overlap is None else s.overlap.members() for s in (storage, *near)]
        members = list({id(s): s for group in groups for s in (*group, storage)}.values())
        overlap = OverlapGroup(members)
        for s in members:
            s.overlap = overlap
    ranges.add(_Range(low, high, ref(storage)))


def _is_mapped(owner: Any) -> bool:
    """Return True if the owner is an array or a buffer over a mapped file."""
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner is not None


def _file_offsets(low: int, high: int) -> list[tuple[object, int]]:
    """Return (device and inode, file offset of `low`) of shared mappings that meet low..high.

    Linux lists them in /proc/self/maps; elsewhere two mappings of one file count as separate.
    """
    offsets: list[tuple[object, int]] = []
    try:
        with open("/proc/self/maps") as maps:
            lines = maps.readlines()
    except OSError:
        return offsets
    for line in lines:
        addresses, mode, offset, device, inode, *_ = line.split(maxsplit=5)
        start, end = (int(a, 16) for a in addresses.split("-"))
        if start < high and low < end and mode.endswith("s"):
            offsets.append(((device, inode), int(offset, 16) + low - start))
    return offsets
