"""The state of an open device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from ..backend.faults import ErrorCells, HostCells
from ..backend.interface import (
    Backend,
    LibraryCall,
    Program,
    find_accepted_dtypes,
    multiplies_scales,
)
from ..device_class import Device
from ..dtypes import DType
from ..lru_cache import LRUCache
from ..memory.allocator import Allocator, allocate_validated
from ..memory.caching_allocator import CachingAllocator
from ..memory.fast_path import FastPath
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import Storage

# (op, dtype) -> a vendor's routine: see `Backend.library_calls`
LibraryCalls: TypeAlias = Mapping[tuple[str, DType], LibraryCall]


class OpenedDevice:
    """An open device: backend, allocator, vendor routines, and loaded programs.

    `programs`: by the text of the kernel. Another device, even of the same type, cannot run them.
    """

    __slots__ = (
        "_allocator",
        "allocate",
        "asynchronous",
        "backend",
        "device",
        "fast_path",
        "faults",
        "has_streams",
        "host_address",
        "host_cells",
        "library_calls",
        "ordered_calls",
        "programs",
        "scaling_calls",
        "takes_batches",
    )

    allocate: Callable[[int, StreamHandle], DataPtr]  # the allocator's
    fast_path: FastPath | None  # the allocator's, unless a subclass overrides `allocate`

    def __init__(
        self,
        backend: Backend,
        allocator: Allocator,
        device: Device,
        library_calls: LibraryCalls,
    ) -> None:
        self.backend, self.device, self.allocator = backend, device, allocator
        self.library_calls = library_calls
        accepted = {k: find_accepted_dtypes(r, k[1]) for k, r in library_calls.items()}
        self.ordered_calls = {k: dtypes for k, dtypes in accepted.items() if dtypes}
        self.scaling_calls = frozenset(
            [k for k, r in library_calls.items() if multiplies_scales(r)]
        )
        self.asynchronous, self.host_address = backend.asynchronous, backend.host_address
        self.takes_batches = _overrides_launch_all(
            backend
        )  # True if the backend takes launches in batches
        self.faults = ErrorCells(backend)
        self.host_cells: HostCells | None = None  # of `faults`, once a plan has asked for them
        self.programs: LRUCache[str, Program] = LRUCache(backend.programs_kept, revives=True)
        self.has_streams = False  # True if a stream besides the default one was created

    @property
    def allocator(self) -> Allocator:
        """Return the allocator of the device."""
        return self._allocator

    @allocator.setter
    def allocator(self, allocator: Allocator) -> None:
        """Set the allocator, `allocate` and `fast_path`; check the results of other classes."""
        self._allocator, self.fast_path = allocator, None
        self.allocate = partial(allocate_validated, "allocate", allocator, self.device)
        own = getattr(type(allocator), "allocate", None) is CachingAllocator.allocate
        if own and isinstance(allocator, CachingAllocator):
            self.fast_path, self.allocate = allocator.fast_path, allocator.allocate

    def record_streams(self, stream: StreamHandle, storages: Iterable[Storage]) -> None:
        """Report to the allocator that work on `stream` uses the memory of these storages."""
        for storage in storages:
            self.allocator.record_stream(storage.ptr, stream)


def _overrides_launch_all(backend: Backend) -> bool:
    """Return True if the plugin's class overrides `launch_all`, and launches are not split.

    Launches of a device with limits are split, so a batch would not reach the backend.
    """
    plugin_backend: Backend = getattr(backend, "wrapped", backend)
    is_overridden = type(plugin_backend).launch_all is not Backend.launch_all
    return is_overridden and not backend.info.capabilities.divides_launches
