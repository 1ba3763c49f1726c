"""Tensors that are copied and sent: `copy`, `pickle`, and so multiprocessing, joblib, cloudpickle.

A pickle holds the elements of a tensor, and where they were. Tensors over one storage share memory
again: in a deep copy always, in a pickle with one that came before and holds their elements. What
is loaded is a tensor of its own, on the device from which it came, or else on the default one;
nothing but this file's functions is called for it.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from operator import index
from typing import Any, SupportsIndex, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from ... import layout as lay
from ...device_class import Device, default_device, usable
from ...device_class import device as device_named
from ...dtypes import DType
from ...errors import ArgumentError, DeviceError, DovetailWarning, GradientError, PluginError
from ...graph.expr import Expr, leaf, spec, storage_of
from ...layout import Shape, StridedView
from ...ops import table as ops
from ...tensor.host import evaluated, from_host, host_array, is_ours
from ...tensor.tensor import Tensor, make
from ...tensor.verbs import apply
from ..shape.manipulation import as_strided
from .interop import share

Buffer: TypeAlias = bytes | bytearray | memoryview | pickle.PickleBuffer
Reduced: TypeAlias = tuple[Callable[..., Tensor], tuple[object, ...]]  # for `pickle`


def _flat(e: Expr, low: int, high: int) -> Tensor:
    """The elements low..high-1 of a leaf's storage."""
    s = spec((high - low,), e.spec.dtype, e.spec.device)
    return make(leaf(storage_of(e), s, (1,), low))


def _require_leaf(name: str, x: Tensor) -> None:
    made_by = x.grad_fn
    if made_by is not None:
        raise GradientError(
            f"{name}: a result of {made_by.name} is bound to what it was computed from; "
            "take x.detach(), which is not"
        )


# --- copies --------------------------------------------------------------------------------------


def copied(x: Tensor) -> Tensor:
    """For `copy.copy`: the same elements in memory of their own.

    Of a leaf that requires a gradient it is another one; else it is `x.copy()`.
    """
    if not x.requires_grad or not x.is_leaf:
        return apply(ops.COPY, (x,))
    return _with_gradient(apply(ops.COPY, (x.detach(),)), copy.copy(x.grad))


def deep_copied(x: Tensor, memo: dict[int, object]) -> Tensor:
    """For `copy.deepcopy`: a copy of the storage, once for all tensors over it, and x's view of it.

    Raises: GradientError for what is bound to what it was computed from.
    """
    _require_leaf("deepcopy", x)
    e = evaluated(x)
    storage = storage_of(e)
    key: Any = (id(storage), x.dtype)  # views of the bits get memory of their own
    if key not in memo:
        memo[key] = apply(ops.COPY, (_flat(e, 0, storage.nbytes // x.itemsize),))
        held = memo.setdefault(id(memo), [])
        assert isinstance(held, list)
        held.append(storage)  # which keeps its id, as copy.py does
    whole = memo[key]
    assert isinstance(whole, Tensor)
    found = as_strided(whole, e.spec.shape, e.strides, e.offset)
    return _with_gradient(found, copy.deepcopy(x.grad, memo)) if x.requires_grad else found


def _with_gradient(x: Tensor, grad: Tensor | None) -> Tensor:
    x.requires_grad_()
    x.grad = grad
    return x


# --- pickles -------------------------------------------------------------------------------------


class _Memory:
    """A run of elements of a storage, as a pickle holds it; loaded, it is a vector.

    A pickler knows it again by its identity, and keeps it alive: while some pickler does, other
    tensors over these elements are sent as views of the same run.
    """

    __slots__ = ("__weakref__", "elements", "high", "low")

    def __init__(self, e: Expr, low: int, high: int) -> None:
        self.elements, self.low, self.high = _flat(e, low, high), low, high

    def __reduce_ex__(self, protocol: SupportsIndex) -> Reduced:
        x = self.elements
        by_buffer = index(protocol) >= 5  # writable, so that a receiver uses its memory as it is
        raw = host_array(x, np.dtype(f"V{x.itemsize}"), by_buffer).view(np.uint8)
        data = pickle.PickleBuffer(raw.data) if by_buffer else raw.tobytes()
        return loaded_memory, (str(x.device), x.dtype, data)


_sent: WeakValueDictionary[int, _Memory] = WeakValueDictionary()  # by id of the storage, see above


def reduced(x: Tensor, protocol: SupportsIndex) -> Reduced:
    """For `pickle`: what makes the tensor again, of its memory's elements.

    Raises: GradientError for what is bound to what it was computed from.
    """
    _require_leaf("pickle", x)
    e = evaluated(x)
    low, high = lay.span(StridedView(e.spec.shape, e.strides, e.offset))
    memory = _sent.get(id(storage_of(e)))
    known = memory is not None and memory.elements.dtype is x.dtype
    if memory is None or not known or not memory.low <= low <= high <= memory.high:
        if high - low > e.spec.size:  # it has gaps, which are not sent
            e = evaluated(apply(ops.COPY, (x.detach(),)))
            low, high = 0, e.spec.size
        memory = _sent[id(storage_of(e))] = _Memory(e, low, high)
    view = (e.spec.shape, e.strides, e.offset - memory.low)
    return loaded, (memory, *view, x.requires_grad, x.grad)


def loaded_memory(device: str, dtype: DType, data: Buffer) -> Tensor:
    """The elements in a buffer as a vector on a device.

    It is over that memory where it may be written, the device uses it as it is, and it is no
    tensor's yet; else in memory of its own.
    Raises: DeviceError and its kind, where neither that device can be had nor the default one.
    """
    target = _home(device_named(device, "pickle"))
    raw = np.frombuffer(data, np.uint8)  # type: ignore[arg-type]  # NumPy takes PickleBuffers
    if raw.size % dtype.itemsize:
        raise ArgumentError(f"pickle: {raw.size} bytes are no elements of {dtype.name}")
    shape = (raw.size // dtype.itemsize,)
    found = None
    if raw.flags.writeable and raw.size and not is_ours(data):
        found = share(data, raw.ctypes.data, shape, (1,), dtype, target, False)
    return from_host(raw.view(f"V{dtype.itemsize}"), dtype, target) if found is None else found


def _home(wanted: Device) -> Device:
    """A device that can be had: the default one, with a warning, where this one cannot."""
    try:
        return usable(wanted)
    except (DeviceError, PluginError) as error:
        default = default_device()
        said = f"pickle: it holds a tensor on {wanted}, which cannot be had here ({error})"
        try:
            usable(default)
        except (DeviceError, PluginError) as other:
            raise type(other)(f"{said}; nor can the default device be: {other}") from error
        warnings.warn(f"{said}; it is now on {default}", DovetailWarning, stacklevel=3)
        return default


def loaded(
    memory: Tensor, shape: Shape, strides: Shape, offset: int, requires_grad: bool,
    grad: Tensor | None,
) -> Tensor:  # fmt: skip
    """A view of some memory, and a leaf with its gradient. Raises: ShapeError beyond the memory."""
    found = as_strided(memory, shape, strides, offset)
    return _with_gradient(found, grad) if requires_grad else found
