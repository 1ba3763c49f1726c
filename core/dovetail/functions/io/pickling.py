"""Copies and pickles of tensors: `copy`, `pickle`, and so multiprocessing, joblib, cloudpickle.

A pickle holds the elements of a tensor and the name of its device. Tensors over one storage share
memory again: in a deep copy always, in a pickle if an earlier tensor contains their elements. An
unpickled tensor is on its former device, or on the default one if that is not available.
Unpickling calls only `load_view` and `load_memory`. Pickles contain these names.
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
from ...declarations import public
from ...device_class import Device, default_device, usable
from ...device_class import device as device_named
from ...dtypes import DType
from ...errors import ArgumentError, DeviceError, DovetailWarning, GradientError, PluginError
from ...graph.expr import Expr, leaf, spec, storage_of
from ...layout import Shape, StridedView
from ...ops import table as ops
from ...tensor.c_fields import keep_class, set_class
from ...tensor.host import evaluate_leaf, from_host, host_array, is_tensor_memory
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, create_tensor
from ..shape.manipulation import as_strided
from .interop import wrap_memory

Buffer: TypeAlias = bytes | bytearray | memoryview | pickle.PickleBuffer
Reduced: TypeAlias = tuple[Callable[..., Tensor], tuple[object, ...]]  # for `pickle`


def _flat_view(e: Expr, low: int, high: int) -> Tensor:
    """Return the elements low..high-1 of a leaf's storage, as a vector over its memory."""
    s = spec((high - low,), e.spec.dtype, e.spec.device)
    return create_tensor(leaf(storage_of(e), s, (1,), low))


def _require_leaf(name: str, x: Tensor) -> None:
    """Raise GradientError if a recorded op made the tensor."""
    producer = x.grad_fn
    if producer is not None:
        raise GradientError(
            f"{name}: cannot store a result of {producer.name} with its gradient history; "
            "use x.detach()"
        )


# --- copies --------------------------------------------------------------------------------------


@public(method=("__copy__",), wrap=False)
def copy_tensor(x: Tensor) -> Tensor:
    """Return a copy of the tensor in new memory, for `copy.copy`.

    A copy of a leaf that requires a gradient is a leaf that requires one; other copies are
    `x.copy()`.
    """
    if not x.requires_grad or not x.is_leaf:
        return apply(ops.COPY, (x,))
    return _with_gradient(apply(ops.COPY, (x.detach(),)), copy.copy(x.grad))


@public(method=("__deepcopy__",), wrap=False)
def deep_copy_tensor(x: Tensor, memo: dict[int, object]) -> Tensor:
    """Return a view of a copy of the tensor's storage, for `copy.deepcopy`.

    The storage is copied once for all tensors over it.
    Raises: GradientError for a result that is bound to its operands.
    """
    _require_leaf("deepcopy", x)
    e = evaluate_leaf(x)
    storage = storage_of(e)
    key: Any = (id(storage), x.dtype)  # a view of the bits gets a copy of its own
    if key not in memo:
        memo[key] = apply(ops.COPY, (_flat_view(e, 0, storage.nbytes // x.itemsize),))
        kept_alive = memo.setdefault(id(memo), [])
        assert isinstance(kept_alive, list)
        kept_alive.append(storage)  # so that its id is not reused, as in copy.py
    copied_storage = memo[key]
    assert isinstance(copied_storage, Tensor)
    view = keep_class(as_strided(copied_storage, e.spec.shape, e.strides, e.offset), x)
    return _with_gradient(view, copy.deepcopy(x.grad, memo)) if x.requires_grad else view


def _with_gradient(x: Tensor, grad: Tensor | None) -> Tensor:
    """Make `x` require a gradient, set its `grad`, and return it."""
    x.requires_grad_()
    x.grad = grad
    return x


# --- pickles -------------------------------------------------------------------------------------


class _MemoryRun:
    """A run of elements of a storage, pickled once and unpickled as a vector.

    A pickler memoises it by its identity and keeps it alive. As long as it lives, other tensors
    over these elements are pickled as views of the same run.
    """

    __slots__ = ("__weakref__", "elements", "high", "low")

    def __init__(self, e: Expr, low: int, high: int) -> None:
        self.elements, self.low, self.high = _flat_view(e, low, high), low, high

    def __reduce_ex__(self, protocol: SupportsIndex) -> Reduced:
        x = self.elements
        by_buffer = index(protocol) >= 5  # writable, so that the receiver can share its memory
        raw = host_array(x, np.dtype(f"V{x.itemsize}"), by_buffer).view(np.uint8)
        data = pickle.PickleBuffer(raw.data) if by_buffer else raw.tobytes()
        return load_memory, (str(x.device), x.dtype, data)


_runs: WeakValueDictionary[int, _MemoryRun] = WeakValueDictionary()  # by the id of the storage


@public(method=("__reduce_ex__",), wrap=False)
def reduce_for_pickle(x: Tensor, protocol: SupportsIndex) -> Reduced:
    """Return the function and arguments that rebuild the tensor, for `pickle`.

    Raises: GradientError for a result that is bound to its operands.
    """
    _require_leaf("pickle", x)
    e = evaluate_leaf(x)
    low, high = lay.element_span(StridedView(e.spec.shape, e.strides, e.offset))
    memory = _runs.get(id(storage_of(e)))
    has_dtype = memory is not None and memory.elements.dtype is x.dtype
    if memory is None or not has_dtype or not memory.low <= low <= high <= memory.high:
        if high - low > e.spec.size:  # a view with gaps: send a dense copy
            e = evaluate_leaf(apply(ops.COPY, (x.detach(),)))
            low, high = 0, e.spec.size
        memory = _runs[id(storage_of(e))] = _MemoryRun(e, low, high)
    view = (e.spec.shape, e.strides, e.offset - memory.low)
    args = (memory, *view, x.requires_grad, x.grad)
    return load_view, args if type(x) is Tensor else (*args, type(x))


def load_memory(device: str, dtype: DType, data: Buffer) -> Tensor:
    """Return the elements in a buffer as a vector on a device.

    It shares the buffer if that is writable, usable by the device and not a tensor's yet; else it
    is a copy.
    Raises: DeviceError or a subclass if neither that device nor the default one is available.
    """
    target = _usable_device(device_named(device, "pickle"))
    raw = np.frombuffer(data, np.uint8)  # type: ignore[arg-type]  # NumPy takes PickleBuffers
    if raw.size % dtype.itemsize:
        raise ArgumentError(
            f"pickle: the size must be a multiple of {dtype.itemsize} for {dtype.name}, "
            f"got {raw.size} bytes"
        )
    shape = (raw.size // dtype.itemsize,)
    shared = None
    if raw.flags.writeable and raw.size and not is_tensor_memory(data):
        shared = wrap_memory(data, raw.ctypes.data, shape, (1,), dtype, target, False)
    return from_host(raw.view(f"V{dtype.itemsize}"), dtype, target) if shared is None else shared


def _usable_device(device: Device) -> Device:
    """Return the wanted device if it is usable, else the default one, with a warning."""
    try:
        return usable(device)
    except (DeviceError, PluginError) as error:
        default = default_device()
        message = f"pickle: it holds a tensor on {device}, which cannot be had here ({error})"
        try:
            usable(default)
        except (DeviceError, PluginError) as other:
            raise type(other)(
                f"{message}; the default device is not available either: {other}"
            ) from error
        warnings.warn(f"{message}; it is now on {default}", DovetailWarning, stacklevel=3)
        return default


def load_view(
    memory: Tensor,
    shape: Shape,
    strides: Shape,
    offset: int,
    requires_grad: bool,
    grad: Tensor | None,
    kind: type[Tensor] = Tensor,
) -> Tensor:
    """Return a view of unpickled memory, as a leaf with its gradient if it requires one.

    kind: its class, Tensor or a registered subclass.
    """
    view = set_class(as_strided(memory, shape, strides, offset), kind)
    return _with_gradient(view, grad) if requires_grad else view
