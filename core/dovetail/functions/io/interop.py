"""Memory shared with other libraries: DLPack in both directions, and NumPy arrays.

Memory that the host can access is shared without a copy, and both libraries can write to it.
Expressions that read host memory which dovetail has exported are computed at once. Evaluate
expressions that read other shared memory before the other library writes to it.

Source: DLPack 1.0, https://dmlc.github.io/dlpack/latest/c_api.html
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import (
    POINTER,
    Structure,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from ... import dtypes as D
from ... import layout as lay
from ...argument_checks import DIMENSIONS, choice, flag, function, integer, integers
from ...backend.faults import settle_before_read
from ...backend.streams import current_handle, wait_for_stream
from ...declarations import public
from ...device_class import Device, default_device, opened
from ...device_class import device as device_named
from ...dtypes import DType
from ...engine import tracer_api
from ...errors import ArgumentError, DeviceError, DTypeError, ShapeError, SharingError
from ...graph.expr import leaf, spec, storage_of
from ...ir.formats import DTYPE_INFOS
from ...layout import Shape, StridedView
from ...lazy_import import LazyModule
from ...memory import wrap_pointer
from ...memory.addresses import require_memory
from ...memory.overlap import connect_foreign, register_visible
from ...memory.storage import storage_at
from ...ops.table import COPY
from ...plugins.registry import devices
from ...tensor.host import data_ptr, evaluate, evaluate_leaf, export_leaf, is_writable, numpy
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, create_tensor, strided
from ..creation.constructors import extents
from ..datatypes import DeviceLike, DTypeLike, Kind, get_default_dtype, isdtype, move
from .release_callbacks import RELEASE, live_exports, new_capsule

if TYPE_CHECKING:
    from ...backend import limits
else:
    limits = LazyModule("...backend.limits", __package__)


class DLPackProducer(Protocol):
    """An object that exports its memory as a DLPack capsule."""

    def __dlpack__(self, **asked: object) -> object:
        """Return the capsule."""


class HasDLPack(Protocol):
    """An array of another library that supports DLPack."""

    def __dlpack__(self, **asked: object) -> object:
        """Return the capsule."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's (device type, index)."""


__all__ = ["array_namespace_info", "from_blob", "from_dlpack"]

DLPACK_CUDA = 2
DLPACK_CPU = 1  # DLPack's device type of memory that the CPU reads and writes
DLPACK_VERSION = (1, 0)
READ_ONLY, COPIED = 1, 2  # flags of DLManagedTensorVersioned
DLPACK_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
DLPACK_DTYPE_CODES = {  # dtypes with a code of their own
    D.bfloat16: 4,
}


class _DLDevice(Structure):
    """DLPack's device: its type and index."""

    _fields_ = (("type", c_int32), ("id", c_int32))


class _DLDataType(Structure):
    """DLPack's dtype: code, bits and lanes."""

    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class _DLTensor(Structure):  # DLTensor
    """DLPack's tensor: address, device, shape, strides and byte offset."""

    _fields_ = (
        ("data", c_void_p),
        ("device", _DLDevice),
        ("ndim", c_int32),
        ("dtype", _DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class _DLManagedTensor(Structure):  # DLManagedTensor
    """DLPack's tensor with its deleter, before version 1.0."""

    _fields_ = (("view", _DLTensor), ("context", c_void_p), ("deleter", c_void_p))


class _DLManagedTensorVersioned(Structure):  # DLManagedTensorVersioned
    """DLPack's tensor with version, flags and deleter, from 1.0 on."""

    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("view", _DLTensor),
    )


_STRUCTS: dict[bytes, type[_DLManagedTensor] | type[_DLManagedTensorVersioned]] = {
    b"dltensor": _DLManagedTensor,
    b"dltensor_versioned": _DLManagedTensorVersioned,
}
_USED_NAMES = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}

_is_capsule_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)


# --- import --------------------------------------------------------------------------------------


def wrap_memory(
    owner: object,
    address: int,
    shape: Shape,
    strides: Shape,
    dtype: DType,
    device: Device,
    read_only: bool,
    source: object = None,
) -> Tensor | None:
    """Return a tensor over memory that `owner` keeps alive, or None if the device cannot use it.

    source: the object that the memory was taken from, if that is not the owner.
    """
    low, high = lay.element_span(StridedView(shape, strides, 0))
    nbytes = (high - low) * dtype.itemsize
    start = address + low * dtype.itemsize
    backend = opened(device).backend
    fits = not (nbytes and start % dtype.itemsize)
    handle = limits.adopt(backend, start, nbytes) if fits else None
    if handle is None:
        return None
    # Queued work may still use the memory after the last reference is gone.
    deleter = (lambda _: backend.synchronize()) if backend.asynchronous else None
    ptr = wrap_pointer(owner, handle, nbytes, device, 0, deleter)
    storage = storage_at(ptr, nbytes, device, read_only)
    connect_foreign(storage, owner if source is None else source)
    return create_tensor(leaf(storage, spec(shape, dtype, device, "asarray"), strides, -low))


def address(a: np.ndarray) -> int:
    """Return the address of the first element of a NumPy array.

    `a.ctypes` imports a module, which fails while Python shuts down.
    """
    begin: int = a.__array_interface__["data"][0]
    return begin


def adopt(a: np.ndarray, dtype: DType, device: Device) -> Tensor:
    """Return a tensor over the memory of a NumPy array. Raises: ArgumentError if it cannot."""
    is_aligned = all(s % a.itemsize == 0 for s in a.strides)
    strides = tuple(s // a.itemsize for s in a.strides)
    shared = (
        wrap_memory(a, address(a), a.shape, strides, dtype, device, not a.flags.writeable)
        if is_aligned
        else None
    )
    if shared is None:
        raise ArgumentError(
            f"asarray: device {device} cannot use the memory of a NumPy array with strides "
            f"{a.strides}, and copy=False "
            "forbids a copy"
        )
    return shared


class _BlobOwner:
    """The owner of foreign memory, which it releases when it dies."""

    __slots__ = ("__del__",)

    __del__: Callable[[], object]  # in a slot: see _DLPackOwner


@public(widen=False)
def from_blob(
    data_ptr: int,
    shape: int | Sequence[int],
    *,
    dtype: DTypeLike = None,
    strides: Sequence[int] | None = None,
    device: DeviceLike = None,
    deleter: Callable[[], object] | None = None,
) -> Tensor:
    """Return a tensor over memory at an address that the caller owns.

    Python reports an exception in `deleter`. Addresses that are recognisably invalid or freed are
    refused; any other wrong address crashes Python.

    - `data_ptr`: the address of the first element, an int.
    - `strides`: the distance of neighbours along each axis in elements; None is contiguous.
    - `deleter`: a function without arguments, called once when no tensor uses the memory any more.
      The memory must live until then.

    Shapes: any.
    Dtypes: all; the default floating dtype unless given.
    Raises: SharingError, a BufferError, if the device cannot use the memory as it is; `deleter` is
    not called then. ArgumentError for an address that is 0 or invalid; ShapeError, DTypeError,
    DeviceError, ArgumentTypeError.
    See also: `from_dlpack`, `memory.wrap_pointer`.

    >>> import ctypes
    >>> import dovetail as dt
    >>> held = (ctypes.c_float * 3)(1, 2, 3)
    >>> dt.from_blob(ctypes.addressof(held), 3, deleter=held.__len__).tolist()
    [1.0, 2.0, 3.0]
    """
    start, sizes = integer("from_blob", data_ptr, "data_ptr"), extents("from_blob", shape)
    steps = lay.contiguous_strides(sizes)
    if strides is not None:
        steps = integers("from_blob", strides, "strides")
    if deleter is not None:
        function("from_blob", deleter, "deleter")
    if len(steps) != len(sizes):
        raise ShapeError(
            f"from_blob: expected a stride for each of {len(sizes)} sizes, got {len(steps)}"
        )
    if start <= 0:
        raise ArgumentError(f"from_blob: data_ptr must be a positive address, got {start}")
    want = get_default_dtype() if dtype is None else D.dtype(dtype, "from_blob")
    target, owner = device_named(device, "from_blob"), _BlobOwner()
    if start % want.itemsize:
        raise SharingError(
            f"from_blob: device {target} cannot use the memory at {start:#x}: the address must be "
            "a multiple "
            f"of {want.itemsize}, the bytes of a {want.name}; copy the memory to such an address"
        )
    low, high = (n * want.itemsize for n in lay.element_span(StridedView(sizes, steps, 0)))
    require_memory("from_blob", start + low, high - low, target)
    tensor = wrap_memory(owner, start, sizes, steps, want, target, False)
    if tensor is None:
        raise SharingError(
            f"from_blob: device {target} cannot use the memory at {start:#x} without a copy"
        )
    if deleter is not None:
        owner.__del__ = deleter
    return tensor


class _DLPackOwner:
    """The owner of a DLPack tensor of another library, which it releases when it dies."""

    __slots__ = ("__del__", "managed")

    # In a slot, so that Python calls the other library's function directly: no Ctrl-C in between.
    __del__: Callable[[], object]

    def __init__(self, managed: _DLManagedTensor | _DLManagedTensorVersioned) -> None:
        self.managed = managed
        if managed.deleter:
            self.__del__ = partial(_Deleter(managed.deleter), ctypes.addressof(managed))


@public(widen=False)
def from_dlpack(x: HasDLPack, /, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of `x`, which has `__dlpack__`: NumPy's, PyTorch's, JAX's.

    The memory is shared if `device` (default: one that can access it) uses it as it is; else it is
    copied. Read-only memory stays read-only. Memory from before DLPack 1.0, such as JAX's immutable
    arrays, is also read-only, because its capsule has no flag for that; NumPy does the same.
    Pending work reads shared memory when it runs.

    - `x`: an object with `__dlpack__` and `__dlpack_device__`.
    - `device`: the device of the result; None takes one that can access the memory.
    - `copy`: True always copies, False fails if a copy is needed.

    Shapes: any, with any strides.
    Dtypes: all real ones.
    Raises: SharingError, a BufferError (`copy=False`), DeviceError, DTypeError.
    See also: `asarray`, `from_blob`, `Tensor.numpy`.
    Source: DLPack 1.0, https://dmlc.github.io/dlpack/latest/

    >>> import dovetail as dt
    >>> import numpy as np
    >>> dt.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    copy = copy if copy is None else flag("from_dlpack", copy, "copy")
    if isinstance(x, Tensor):
        return _from_own_tensor(x, device, copy)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise DTypeError(
            f"from_dlpack: expected an object with __dlpack__, got {type(x).__name__}; "
            "use dt.asarray"
        )
    producer = tuple(map(int, x.__dlpack_device__()))
    target = _default_target(*producer) if device is None else device_named(device, "from_dlpack")
    shared = _share_capsule(x, target) if _can_reach_memory(target, *producer) else None
    if shared is not None and not copy:
        return shared
    if copy is False:
        raise SharingError(
            f"from_dlpack: device {target} cannot use this memory without a copy, and copy=False "
            f"forbids it"
        )
    return _copy_foreign(x, shared, target, producer[0])


def _share_capsule(x: DLPackProducer, target: Device) -> Tensor | None:
    """Return a tensor over the memory of `x`, or None if the device cannot use it as it is."""
    owner = _consume_capsule(_request_capsule(x))
    v = owner.managed.view
    shape = tuple(v.shape[i] for i in range(v.ndim))
    strides = (
        tuple(v.strides[i] for i in range(v.ndim)) if v.strides else lay.contiguous_strides(shape)
    )
    # A capsule without a version has no read-only flag, not even for JAX's immutable arrays.
    read_only = not isinstance(owner.managed, _DLManagedTensorVersioned) or bool(
        owner.managed.flags & READ_ONLY
    )
    d, address = v.dtype, (v.data or 0) + v.byte_offset
    dtype = _dtype_from_code(d.code, d.bits, d.lanes)
    return wrap_memory(owner, address, shape, strides, dtype, target, read_only, x)


def _from_own_tensor(x: Tensor, device_like: DeviceLike, copy: bool | None) -> Tensor:
    """Return a dovetail tensor on a device, copied if `copy`. Raises: SharingError if forbidden."""
    target = x.device if device_like is None else device_named(device_like, "from_dlpack")
    if target is not x.device and copy is False:
        raise SharingError(
            f"from_dlpack: a tensor on {x.device} can only be copied to {target}, and copy=False "
            f"forbids it"
        )
    moved = move(x, target)
    return apply(COPY, (x,)) if copy and moved is x else moved


def _copy_foreign(x: HasDLPack, shared: Tensor | None, target: Device, kind: int) -> Tensor:
    """Copy foreign memory to `target` now, through the host if necessary.

    Raises: DeviceError if no device here reaches the memory, SharingError if it is misaligned.
    """
    if shared is None:
        host = next((d for d in devices() if _can_reach_memory(d, DLPACK_CPU)), None)
        if host is not None:
            shared = _share_capsule(
                x if kind == DLPACK_CPU else _HostCopyProducer(x, kind, target), host
            )
        if shared is None:
            raise (
                _unreachable_memory_error(kind, target)
                if kind != DLPACK_CPU or host is None
                else SharingError(
                    "from_dlpack: the address of this memory must be a multiple of its elements' "
                    "size; "
                    "copy the array in its own library first"
                )
            )
    copied = apply(COPY, (shared,)) if shared.device is target else move(shared, target)
    evaluate(copied)
    return copied


class _HostCopyProducer:
    """An array of another library that exports a copy on the host."""

    def __init__(self, x: DLPackProducer, kind: int, target: Device) -> None:
        self.x, self.kind, self.target = x, kind, target

    def __dlpack__(self, **options: object) -> object:
        try:
            return self.x.__dlpack__(**options, dl_device=(DLPACK_CPU, 0))
        except (TypeError, ValueError, NotImplementedError) as error:  # some libraries cannot
            raise _unreachable_memory_error(self.kind, self.target) from error


def _unreachable_memory_error(kind: int, target: Device) -> DeviceError:
    """Return the error for memory that a device cannot reach; the caller raises it."""
    return DeviceError(
        f"from_dlpack: device {target} cannot reach memory of DLPack's device type {kind}; copy "
        "the array to the host in its own library first"
    )


def _can_reach_memory(d: Device, kind: int, index: int = 0) -> bool:
    """Return True if a device's memory belongs to this DLPack device."""
    same = opened(d).backend.dlpack_type == kind
    return same and (kind == DLPACK_CPU or index == d.index)


def _default_target(kind: int, index: int) -> Device:
    """Return the device for memory of a DLPack device.

    It is the default device if that can access the memory, or if the memory is the host's.
    """
    default = default_device()
    if kind == DLPACK_CPU or _can_reach_memory(default, kind, index):
        return default
    reachable = [d for d in devices() if _can_reach_memory(d, kind, index)]
    if not reachable:
        raise DeviceError(
            f"from_dlpack: no installed backend shares memory of DLPack's device type {kind}; "
            f"move the array to the CPU "
            "in its own library first"
        )
    return reachable[0]


def _request_capsule(x: DLPackProducer) -> object:
    """Return the DLPack capsule of a foreign array. Raises: SharingError if it refuses."""
    try:
        try:
            return x.__dlpack__(max_version=DLPACK_VERSION)
        except TypeError:  # from before DLPack 1.0
            return x.__dlpack__()
    except (BufferError, ValueError) as error:
        raise SharingError(f"from_dlpack: the other library refuses to export: {error}") from error


def _consume_capsule(capsule: object) -> _DLPackOwner:
    """Take ownership of a capsule's tensor; mark the capsule as used.

    Raises: SharingError for a used capsule, another object, or a newer DLPack.
    """
    at = id(capsule)
    for name, form in _STRUCTS.items():
        if _is_capsule_valid(at, name):
            managed = form.from_address(capsule_pointer(at, name))
            if form is _DLManagedTensorVersioned and managed.major > DLPACK_VERSION[0]:
                raise SharingError(
                    f"from_dlpack: expected DLPack {DLPACK_VERSION[0]}.x or older, got "
                    f"{managed.major}.{managed.minor}"
                )
            _rename_capsule(at, _USED_NAMES[name])
            return _DLPackOwner(managed)
    raise SharingError(
        "from_dlpack: expected an unused capsule of a DLPack tensor; export the array again"
    )


@lru_cache
def _dtype_from_code(*code: int) -> DType:
    """Return the dtype with DLPack's code, bits and lanes."""
    for dtype in D.ALL:
        if code == (_dlpack_code(dtype), dtype.bits, 1):
            return dtype
    D.load_plugins()
    for plugin_dtype, info in DTYPE_INFOS.items():
        if code == (info.dlpack, plugin_dtype.bits, 1):
            return plugin_dtype
    description = "DLPack's code {} of {} bits, {} lanes".format(*code)
    raise DTypeError(f"from_dlpack: dovetail has no dtype for {description}")


def _dlpack_code(d: DType) -> int:
    """Return DLPack's type code of a dtype. Raises: SharingError if there is none."""
    if d not in DTYPE_INFOS:
        return DLPACK_DTYPE_CODES.get(d, DLPACK_KIND_CODES[d.kind])
    code = DTYPE_INFOS[d].dlpack
    if code is None:
        ways = f"use x.view(dt.uint{d.bits}) for its bits, or x.astype(dt.float32)"
        raise SharingError(f"__dlpack__: DLPack has no code for {d.name}; {ways}")
    return code


# --- export --------------------------------------------------------------------------------------


@public(method=("__dlpack_device__",), wrap=False)
def dlpack_device(x: Tensor) -> tuple[int, int]:
    """Return DLPack's (device type, index) of a tensor.

    Raises: SharingError, a BufferError, if its device has none.
    """
    kind = opened(x.device).backend.dlpack_type
    if kind is None:
        raise SharingError(
            f"__dlpack_device__: DLPack has no code for {x.device}; move the tensor with "
            f"x.to(device)"
        )
    return kind, 0 if kind == DLPACK_CPU else x.device.index


@public(method=("__dlpack__",), wrap=False)
def dlpack(
    x: Tensor,
    /,
    *,
    stream: object = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """Return a DLPack capsule of the tensor's memory, computed and synchronised.

    The capsule has a version if `max_version` permits it.
    Raises: SharingError, a BufferError, for a request that cannot be satisfied: read-only memory
    without a version, another device.
    """
    here = dlpack_device(x) if dl_device is None or opened(x.device).backend.dlpack_type else (0, 0)
    if dl_device is not None and tuple(dl_device) != here:
        x, copy = _copy_to_host(x, tuple(dl_device), copy), False
        flags = COPIED
    else:
        x, flags = (apply(COPY, (x,)), COPIED) if copy else (x, 0)
    name = b"dltensor_versioned" if max_version is not None and max_version[0] >= 1 else b"dltensor"
    managed = _export_struct(x, name, flags)
    return new_capsule(ctypes.addressof(managed), name)


def _copy_to_host(x: Tensor, dlpack_device_pair: tuple[int, ...], copy: bool | None) -> Tensor:
    """Return a copy on the host for a DLPack consumer. Raises: SharingError for another device."""
    host = next((d for d in devices() if opened(d).backend.host), None)
    if dlpack_device_pair[0] != DLPACK_CPU or copy is False or host is None:
        raise SharingError(
            f"__dlpack__: a tensor on {x.device} cannot be exported to DLPack device "
            f"{dlpack_device_pair}, "
            f"with copy={copy}; move it first with x.to(device)"
        )
    return move(x, host)


def _export_struct(
    x: Tensor, name: bytes, flags: int
) -> _DLManagedTensor | _DLManagedTensorVersioned:
    """Evaluate a tensor and export it as a DLPack struct, which stays alive until released."""
    tracer_api.refuse_read("__dlpack__() asks for a tensor's memory", x)
    e = evaluate_leaf(strided("__dlpack__", x))
    storage = storage_of(e)
    if not is_writable(e):
        flags |= READ_ONLY
    if flags & READ_ONLY and name == b"dltensor":
        raise SharingError(
            "__dlpack__: read-only memory needs DLPack 1.0 (max_version); export x.copy() instead"
        )
    owner = storage if flags & READ_ONLY else export_leaf(e)
    here = opened(x.device)
    backend = here.backend
    wait_for_stream(here, current_handle(x.device))
    settle_before_read(storage)
    at = storage.ptr.offset + e.offset * x.itemsize
    address = backend.host_address(storage.ptr.handle, at)
    register_visible(storage)
    managed = _STRUCTS[name]()
    n = max(x.ndim, 1)
    shape, strides = (c_int64 * n)(*x.shape), (c_int64 * n)(*e.strides)
    managed.view = _DLTensor(
        (int(storage.ptr.handle) + at if address is None else address) if x.size else None,
        _DLDevice(*dlpack_device(x)),
        x.ndim,
        _DLDataType(_dlpack_code(x.dtype), x.dtype.bits, 1),
        shape,
        strides,
        0,
    )
    managed.deleter = RELEASE
    if isinstance(managed, _DLManagedTensorVersioned):
        (managed.major, managed.minor), managed.flags = DLPACK_VERSION, flags
    live_exports[ctypes.addressof(managed)] = (managed, shape, strides, owner)
    return managed


# --- interfaces of arrays ------------------------------------------------------------------------


def array_interface(x: Tensor) -> dict[str, object]:
    """Return NumPy's `__array_interface__` of the memory; compute a pending value.

    The address is valid while the tensor lives and has this memory; the rules of `data_ptr` apply.
    Raises: AttributeError where the tensor supports no buffer: the host cannot reach the memory,
    or NumPy lacks the dtype.
    """
    try:
        values = np.asarray(memoryview(x))  # type: ignore[arg-type]  # it is a buffer
    except (TypeError, BufferError) as error:
        raise AttributeError(f"__array_interface__: {error}") from error
    interface: dict[str, object] = values.__array_interface__
    return interface


def cuda_array_interface(x: Tensor) -> dict[str, object]:
    """Return the CUDA array interface, version 3, of a computed and synchronised tensor.

    Raises: AttributeError on other devices, and for dtypes that NumPy lacks.
    Source: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
    """
    dtype = x.dtype.__numpy_dtype__
    if opened(x.device).backend.dlpack_type != DLPACK_CUDA or dtype is None:
        raise AttributeError(
            f"__cuda_array_interface__: expected a CUDA tensor of a dtype of NumPy, got "
            f"{x.dtype.name} on {x.device}"
        )
    address, e = data_ptr(x), evaluate_leaf(x)
    settle_before_read(storage_of(e))
    return {
        "shape": x.shape,
        "typestr": dtype.str,
        "data": (address if x.size else 0, not is_writable(e)),
        "strides": None if x.is_contiguous() else tuple(n * x.itemsize for n in e.strides),
        "version": 3,
        "stream": None,  # the consumer need not wait
    }


@public(method=True, wrap=False)
def tobytes(x: Tensor, order: Literal["C", "F", "A"] = "C") -> bytes:
    """Return the bytes of the elements, in row-major order.

    - `order`: "C" is row-major, "F" column-major; "A" is "F" for Fortran-contiguous tensors.

    Shapes: any.
    Dtypes: those of `Tensor.numpy`.
    Raises: DTypeError for a dtype that NumPy and ml_dtypes lack, ArgumentError for another order.

    >>> import dovetail as dt
    >>> dt.asarray([1, 2], dtype=dt.uint8).tobytes().hex()
    '0102'
    """
    order = choice("tobytes", order, "order", ("C", "F", "A"))
    return numpy(strided("tobytes", x)).tobytes(order)


# --- inspection of the namespace (Array API) -----------------------------------------------------


class NamespaceInfo:
    """The capabilities of this namespace; see the Array API's inspection functions."""

    def capabilities(self) -> dict[str, bool | int]:
        """Return the optional behaviour of the Array API that dovetail has."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": DIMENSIONS,
        }

    def default_device(self) -> Device:
        """Return the device of tensors created without `device=`."""
        return default_device()

    def devices(self) -> tuple[Device, ...]:
        """Return all devices that plugins offer on this machine."""
        return tuple(devices())

    @public(widen=False)
    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, DType]:
        """Return the dtypes of tensors from Python numbers, of the kinds that a device has."""
        supported = opened(device_named(device, "default_dtypes")).backend.info.capabilities.dtypes
        wanted = {
            "real floating": D.dtype(float),
            "complex floating": D.dtype(complex),
            "integral": D.int64,
            "indexing": D.int64,
        }
        return {kind: d for kind, d in wanted.items() if d.part in supported}

    @public(widen=False)
    def dtypes(self, *, device: DeviceLike = None, kind: Kind | None = None) -> dict[str, DType]:
        """Return the Array API's dtypes that a device has, all or those of a kind (see `isdtype`).

        float16 and bfloat16 are not part of the standard; `Capabilities.dtypes` has all.
        """
        supported = opened(device_named(device, "dtypes")).backend.info.capabilities.dtypes
        standard = [d for d in D.ALL if d.part in supported and d.compute is d]
        return {d.name: d for d in standard if kind is None or isdtype(d, kind)}


def array_namespace_info() -> NamespaceInfo:
    """Return the capabilities of this namespace: devices, default dtypes and dtypes.

    Source: Array API 2025.12, inspection.

    >>> import dovetail as dt
    >>> dt.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return NamespaceInfo()
