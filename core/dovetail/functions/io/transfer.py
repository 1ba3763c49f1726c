"""Asynchronous copies between host and device, and page-locked memory.

A device can copy page-locked memory without the host. While a copy is in flight, an access to the
host memory waits for its end, so that the copy affects only timing.
"""

from __future__ import annotations

import ctypes
from collections import deque
from functools import partial
from typing import cast

from ...backend.faults import inherited_checks, settle_before_read
from ...backend.interface import Backend
from ...backend.streams import current_handle
from ...declarations import public
from ...device_class import Device, opened, opened_devices
from ...device_class import device as device_named
from ...engine import tracer_api
from ...errors import DeviceError
from ...graph.expr import Expr, leaf, spec, storage_of
from ...locks import Lock
from ...memory import CachingAllocator, DataPtr, wrap_pointer
from ...memory.storage import storage_at
from ...ops.table import COPY
from ...plugins.registry import devices
from ...tensor.host import allocate_leaf, evaluate_leaf
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, create_tensor, strided

__all__ = ["pin_memory"]

# --- copies in flight ----------------------------------------------------------------------------


class _Copy:
    """A queued copy: its event, and the function that frees the host memory."""

    def __init__(self, device: Device, stream: object, ptr: DataPtr) -> None:
        self.opened = opened(device)
        self.event = self.opened.backend.record_event(stream)
        earlier = getattr(ptr, "copy", None)
        self.give_back = earlier.give_back if earlier else getattr(ptr, "give_back", None)
        self.context = ptr.context  # lives as long as the copy

    def is_done(self) -> bool:
        """Return True if the copy has finished; does not wait."""
        return bool(self.opened.backend.event_done(self.event))

    def wait(self) -> None:
        """Block this thread until the copy has finished."""
        self.opened.backend.wait_event(None, self.event)


# copies whose pointers have died; their memory is freed later
_orphaned_copies: deque[_Copy] = deque()
_free_lock = Lock()


def depart(ptr: DataPtr, device: Device, stream: object) -> None:
    """Record that copies of `device` on `stream` until now use `ptr`; free finished ones."""
    _free_finished_copies()
    copy = _Copy(device, stream, ptr)
    ptr.depart(copy, partial(_orphaned_copies.append, copy))


def _free_finished_copies() -> None:
    """Free the host memory of finished copies whose pointers have died."""
    with _free_lock:
        for _ in range(len(_orphaned_copies)):
            copy = _orphaned_copies[0]
            landed = copy.is_done()
            if (
                not _orphaned_copies or _orphaned_copies[0] is not copy
            ):  # a finaliser changed the queue
                return
            if not landed:
                _orphaned_copies.rotate(-1)
                continue
            del _orphaned_copies[0]  # no call before the next line: Ctrl-C cannot come between
            if copy.give_back is not None:
                copy.give_back()


# --- page-locked memory --------------------------------------------------------------------------


class _PinnedBackend:
    """The backend interface that a caching allocator needs, for page-locked memory."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.info = backend.info
        self.free, self.synchronize = backend.free_pinned, backend.synchronize
        self.allocate = backend.allocate_pinned


_pools: dict[Backend, CachingAllocator] = {}


def _allocate_pinned(nbytes: int, host: Device, pinning_device: Device) -> DataPtr:
    """Allocate page-locked memory of `host`; free that of finished copies first."""
    _free_finished_copies()
    backend = opened(pinning_device).backend
    if backend not in _pools:
        _pools[backend] = CachingAllocator(cast(Backend, _PinnedBackend(backend)), pinning_device)
    ptr = _pools[backend].allocate(nbytes)
    handle = opened(host).backend.adopt(ptr.handle + ptr.offset, nbytes)
    return wrap_pointer(ptr, handle, nbytes, host)


@public(method=True, wrap=False)
def is_pinned(x: Tensor) -> bool:
    """Return True if the memory is page-locked, by `pin_memory` or by a copy in flight.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless x is a tensor.

    >>> import dovetail as dt
    >>> dt.zeros(2).is_pinned()
    False
    """
    return type(storage_of(evaluate_leaf(strided("is_pinned", x))).ptr.context) is DataPtr


@public(method=True, widen=False)
def pin_memory(x: Tensor, device: Device | str | None = None) -> Tensor:
    """Return a copy of a host tensor in page-locked memory, for asynchronous copies.

    The device reads such memory while the host goes on. `x` itself is returned if it is pinned.

    - `device`: the device that copies from and to it; None takes the first that locks pages.

    Shapes: any.
    Dtypes: all.
    Raises: DeviceError if `x` is not on the host, or no device locks pages.
    See also: `Tensor.to`, `data.DataLoader`.

    >>> import dovetail as dt
    >>> batch = dt.ones((64, 10))
    >>> batch.pin_memory().to("cuda", non_blocking=True)  # doctest: +SKIP
    """
    if not _on_host(strided("pin_memory", x).device):
        raise DeviceError(
            f'pin_memory: x must be on the host, got {x.device}; use x.to("cpu").pin_memory()'
        )
    if is_pinned(x):
        return x
    pinner = _pinning_device(device)
    e = _contiguous_expr(x)
    settle_before_read(storage_of(e))
    ptr = _allocate_pinned(e.spec.size * e.spec.dtype.itemsize, x.device, pinner)
    pinned = leaf(storage_at(ptr, ptr.nbytes, x.device), e.spec, e.spec.strides, 0)
    if e.spec.size:
        _bytes_of(pinned)[:] = _bytes_of(e)
    return create_tensor(pinned)


def _pinning_device(device_like: Device | str | None) -> Device:
    """Return a device that can lock host pages. Raises: DeviceError if there is none."""
    candidates = (
        [device_named(device_like, "pin_memory")]
        if device_like is not None
        else [*opened_devices(), *devices()]
    )
    chosen = next((d for d in candidates if opened(d).backend.pins_memory), None)
    if chosen is None:
        lacks = (
            "no device on this machine can lock"
            if device_like is None
            else f"{device_like} cannot lock"
        )
        raise DeviceError(
            f"pin_memory: {lacks} pages of the host's memory; "
            "leave the call out: copies from ordinary "
            "memory work, but block the caller"
        )
    return chosen


# --- tensors -------------------------------------------------------------------------------------


def queue_move(x: Tensor, target: Device) -> Tensor | None:
    """Queue a copy of `x` to `target`; return None unless exactly one of both is the host."""
    if _on_host(x.device) == _on_host(target):
        return None
    e = _contiguous_expr(x)
    moved = _upload(e, target) if _on_host(x.device) else _download(e, target)
    moved.storage.checks = inherited_checks((storage_of(e),))  # a read of the copy raises the error
    return create_tensor(moved)


def _upload(e: Expr, target: Device) -> Expr:
    """Queue a copy of a contiguous host leaf to a device, and return the new leaf."""
    uploaded, backend, stream = (
        allocate_leaf(spec(e.spec.shape, e.spec.dtype, target)),
        *_backend_and_stream(target),
    )
    if e.spec.size:
        ptr = uploaded.storage.ptr
        backend.queue_copy_in(ptr.handle, ptr.offset, _bytes_of(e), stream)
        depart(storage_of(e).ptr, target, stream)
    return uploaded


def _download(e: Expr, target: Device) -> Expr:
    """Queue a copy of a contiguous leaf to the host, page-locked if possible."""
    s, (backend, stream) = (
        spec(e.spec.shape, e.spec.dtype, target),
        _backend_and_stream(e.spec.device),
    )
    nbytes = s.size * s.dtype.itemsize
    if backend.pins_memory:
        ptr = _allocate_pinned(nbytes, target, e.spec.device)
        downloaded = leaf(storage_at(ptr, nbytes, target), s, s.strides, 0)
    else:
        downloaded = allocate_leaf(s)
    if nbytes:
        source = storage_of(e).ptr
        at = source.offset + e.offset * s.dtype.itemsize
        backend.queue_copy_out(_bytes_of(downloaded), source.handle, at, stream)
        opened(e.spec.device).allocator.record_stream(source, stream)
        depart(downloaded.storage.ptr, e.spec.device, stream)
    return downloaded


def _backend_and_stream(device: Device) -> tuple[Backend, object]:
    """Return the device's backend and its current stream."""
    return opened(device).backend, current_handle(device)


def _on_host(device: Device) -> bool:
    """Return True if a device's memory is the host's."""
    return bool(opened(device).backend.host)


def _contiguous_expr(x: Tensor) -> Expr:
    """Evaluate a tensor, and return its leaf, or that of a contiguous copy."""
    tracer_api.refuse_read("a tensor moves between devices", x)
    return evaluate_leaf(x if x.is_contiguous() else apply(COPY, (x,)))


def _bytes_of(e: Expr) -> memoryview:
    """Return the host memory of a contiguous leaf, after all queued work of its stream."""
    backend, stream = _backend_and_stream(e.spec.device)
    backend.synchronize(stream)
    ptr, size = storage_of(e).ptr, e.spec.dtype.itemsize
    address = backend.host_address(ptr.handle, ptr.offset + e.offset * size)
    assert address is not None, "memory that is not on the host"
    return memoryview((ctypes.c_ubyte * (e.spec.size * size)).from_address(address)).cast("B")
