"""A device in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from ..backend.faults import Faults
from ..backend.interface import Backend, LibraryCall, Program
from ..backend.limits import has_limits
from ..device_class import Device
from ..dtypes import DType
from ..memory.allocator import Allocator, allocate_validated
from ..memory.caching_allocator import CachingAllocator
from ..memory.fast_path import FastPath
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import Storage
from ..recent import Shared

# (op, dtype) -> a vendor's routine: see `Backend.library_calls`
LibraryCalls: TypeAlias = Mapping[tuple[str, DType], LibraryCall]


class Opened:
    """A device in use: its backend, its allocator, the vendor routines it offers, and its programs.

    Programs are those that it has loaded, by the text of their kernels: not even a device of the
    same kind can run them.
    """

    __slots__ = (
        "_allocator", "allocate", "asynchronous", "backend", "batches", "device", "fast_path",
        "faults", "host_address", "library_calls", "programs", "streams",
    )  # fmt: skip

    allocate: Callable[[int, StreamHandle], DataPtr]  # the allocator's
    fast_path: FastPath | None  # the allocator's, unless a subclass has an `allocate` of its own

    def __init__(
        self,
        backend: Backend,
        allocator: Allocator,
        device: Device,
        library_calls: LibraryCalls,
    ) -> None:
        self.backend, self.device, self.allocator = backend, device, allocator
        self.library_calls = library_calls
        self.asynchronous, self.host_address = backend.asynchronous, backend.host_address
        self.batches = _takes_all(backend)  # whether launches are given to it together
        self.faults = Faults(backend)
        self.programs: Shared[str, Program] = Shared(backend.programs_kept)
        self.streams = False  # whether there are others than the default one

    @property
    def allocator(self) -> Allocator:
        """What gives it memory."""
        return self._allocator

    @allocator.setter
    def allocator(self, allocator: Allocator) -> None:
        self._allocator, self.fast_path = allocator, None
        self.allocate = partial(allocate_validated, "allocate", allocator, self.device)
        own = getattr(type(allocator), "allocate", None) is CachingAllocator.allocate
        if own and isinstance(allocator, CachingAllocator):
            self.fast_path, self.allocate = allocator.fast_path, allocator.allocate

    def share(self, stream: StreamHandle, storages: Iterable[Storage]) -> None:
        """Says that work on `stream` uses this memory: it may belong to another one."""
        for storage in storages:
            self.allocator.record_stream(storage.ptr, stream)


def _takes_all(backend: Backend) -> bool:
    """Whether a backend has a `launch_all` of its own; where there is a companion, its `own`.

    What is launched within limits is more than the backend's own launches.
    """
    own = getattr(backend, "own", backend)
    return type(own).launch_all is not Backend.launch_all and not has_limits(backend)
