"""Copies between host and device that nobody waits for, and page-locked memory.

Such memory lets the device copy by itself. While a copy is in flight, whoever asks for the host's
memory waits until it has landed: it can be observed in nothing but time.
"""

from __future__ import annotations

import ctypes
from collections import deque
from functools import partial
from typing import cast

from ...backend.faults import carried, look
from ...backend.interface import Backend
from ...backend.streams import current_handle
from ...device_class import Device, opened, opened_devices
from ...device_class import device as device_named
from ...engine import recording
from ...errors import DeviceError
from ...graph.expr import Expr, leaf, spec, storage_of
from ...locks import Lock
from ...memory import CachingAllocator, DataPtr, foreign
from ...memory.storage import storage_at
from ...ops.table import COPY
from ...plugins.registry import devices
from ...tensor.host import evaluated, fresh
from ...tensor.tensor import Tensor, make, strided
from ...tensor.verbs import apply

__all__ = ["pin_memory"]

# --- copies in flight ----------------------------------------------------------------------------


class _Copy:
    """A queued copy: the event behind it, and what gives the host's memory back."""

    def __init__(self, device: Device, stream: object, ptr: DataPtr) -> None:
        self.opened = opened(device)
        self.event = self.opened.backend.record_event(stream)
        before = getattr(ptr, "copy", None)
        self.give_back = before.give_back if before else getattr(ptr, "give_back", None)
        self.context = ptr.context  # lives as long as the copy

    def done(self) -> bool:
        return bool(self.opened.backend.event_done(self.event))

    def wait(self) -> None:
        self.opened.backend.wait_event(None, self.event)


_orphans: deque[_Copy] = deque()  # of pointers that have died; their memory is given back after
_sweeping = Lock()


def depart(ptr: DataPtr, device: Device, stream: object) -> None:
    """Says that all copies of `device` queued on `stream` until now use host memory `ptr`."""
    _sweep()
    copy = _Copy(device, stream, ptr)
    ptr.depart(copy, partial(_orphans.append, copy))


def _sweep() -> None:
    """Gives back the memory of copies that have landed since nobody wanted them any more."""
    with _sweeping:
        for _ in range(len(_orphans)):
            copy = _orphans[0]
            landed = copy.done()
            if not _orphans or _orphans[0] is not copy:  # a finaliser was here meanwhile
                return
            if not landed:
                _orphans.rotate(-1)
                continue
            del _orphans[0]  # no call stands before the next, so no Ctrl-C either
            if copy.give_back is not None:
                copy.give_back()


# --- page-locked memory --------------------------------------------------------------------------


class _Pages:
    """What a caching allocator sees of a backend when it deals with page-locked memory."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.free, self.synchronize = backend.free_pinned, backend.synchronize
        self.allocate = backend.allocate_pinned


_pools: dict[Backend, CachingAllocator] = {}


def _pinned(nbytes: int, host: Device, pinner: Device) -> DataPtr:
    """Page-locked memory of `host`, for copies to and from `pinner`."""
    _sweep()
    backend = opened(pinner).backend
    if backend not in _pools:
        _pools[backend] = CachingAllocator(cast(Backend, _Pages(backend)), pinner)
    ptr = _pools[backend].allocate(nbytes)
    handle = opened(host).backend.adopt(ptr.handle + ptr.offset, nbytes)
    return foreign(ptr, handle, nbytes, host)


def is_pinned(x: Tensor) -> bool:
    """Whether the tensor's memory is page-locked, by `pin_memory` or by a copy in flight.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError for what is no tensor.

    >>> import dovetail as dt
    >>> dt.zeros(2, device="reference").is_pinned()
    False
    """
    return type(storage_of(evaluated(strided("is_pinned", x))).ptr.context) is DataPtr


def pin_memory(x: Tensor, device: Device | str | None = None) -> Tensor:
    """A copy of a host tensor in page-locked memory, which a device reads while the host goes on.

    `device`: the one that copies from and to it; unless given, the first that locks pages. `x`
    itself if it is there already.
    Shapes: any.
    Dtypes: all.
    Raises: DeviceError where `x` is not on the host, or no device locks pages.

    >>> import dovetail as dt
    >>> batch = dt.ones((64, 10), device="reference")
    >>> batch.pin_memory().to("cuda", non_blocking=True)  # doctest: +SKIP
    """
    if not _on_host(strided("pin_memory", x).device):
        raise DeviceError(
            f"pin_memory: only the host's memory is page-locked, and x is on {x.device}; "
            f'x.to("cpu") first'
        )
    if is_pinned(x):
        return x
    pinner = _pinner(device)
    e = _contiguous(x)
    look(storage_of(e))
    ptr = _pinned(e.spec.size * e.spec.dtype.itemsize, x.device, pinner)
    found = leaf(storage_at(ptr, ptr.nbytes, x.device), e.spec, e.spec.strides, 0)
    if e.spec.size:
        _bytes_of(found)[:] = _bytes_of(e)
    return make(found)


def _pinner(wanted: Device | str | None) -> Device:
    candidates = (
        [device_named(wanted, "pin_memory")]
        if wanted is not None
        else [*opened_devices(), *devices()]
    )
    found = next((d for d in candidates if opened(d).backend.pins_memory), None)
    if found is None:
        lacks = "no device on this machine locks" if wanted is None else f"{wanted} does not lock"
        raise DeviceError(
            f"pin_memory: {lacks} pages of the host's memory; leave it out: a copy from ordinary "
            "memory works, and is waited for"
        )
    return found


# --- tensors -------------------------------------------------------------------------------------


def queue_move(x: Tensor, target: Device) -> Tensor | None:
    """A copy of `x` on `target`, in flight; None where neither end is the host."""
    if _on_host(x.device) == _on_host(target):
        return None
    e = _contiguous(x)
    found = _upload(e, target) if _on_host(x.device) else _download(e, target)
    found.storage.checks = carried((storage_of(e),))  # whoever looks there gets the error
    return make(found)


def _upload(e: Expr, target: Device) -> Expr:
    found, backend, stream = fresh(spec(e.spec.shape, e.spec.dtype, target)), *_way(target)
    if e.spec.size:
        ptr = found.storage.ptr
        backend.queue_copy_in(ptr.handle, ptr.offset, _bytes_of(e), stream)
        depart(storage_of(e).ptr, target, stream)
    return found


def _download(e: Expr, target: Device) -> Expr:
    s, (backend, stream) = spec(e.spec.shape, e.spec.dtype, target), _way(e.spec.device)
    nbytes = s.size * s.dtype.itemsize
    if backend.pins_memory:
        ptr = _pinned(nbytes, target, e.spec.device)
        found = leaf(storage_at(ptr, nbytes, target), s, s.strides, 0)
    else:
        found = fresh(s)
    if nbytes:
        source = storage_of(e).ptr
        at = source.offset + e.offset * s.dtype.itemsize
        backend.queue_copy_out(_bytes_of(found), source.handle, at, stream)
        opened(e.spec.device).allocator.record_stream(source, stream)
        depart(found.storage.ptr, e.spec.device, stream)
    return found


def _way(device: Device) -> tuple[Backend, object]:
    """The device's backend, and the current stream."""
    return opened(device).backend, current_handle(device)


def _on_host(device: Device) -> bool:
    return bool(opened(device).backend.host)


def _contiguous(x: Tensor) -> Expr:
    """The tensor's node, in memory without gaps."""
    recording.refuse_read("a tensor moves between devices", x)
    return evaluated(x if x.is_contiguous() else apply(COPY, (x,)))


def _bytes_of(e: Expr) -> memoryview:
    """The memory of a leaf without gaps, on the host, when nothing is pending there."""
    backend, stream = _way(e.spec.device)
    backend.synchronize(stream)
    ptr, size = storage_of(e).ptr, e.spec.dtype.itemsize
    address = backend.host_address(ptr.handle, ptr.offset + e.offset * size)
    assert address is not None, "memory that is not on the host"
    return memoryview((ctypes.c_ubyte * (e.spec.size * size)).from_address(address)).cast("B")
