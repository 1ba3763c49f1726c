"""Transfer of values between host and device: uploads, and reads such as `x.numpy()`.

A read evaluates pending work.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pickle import PickleBuffer
from typing import Any, TypeAlias

import numpy as np

from .. import layout as lay
from ..argument_checks import integers
from ..backend import faults
from ..backend.interface import Backend
from ..backend.streams import current_handle, wait_for_stream
from ..compat.value_pairs import INDEX_HINTS, warn_if_pair
from ..device_class import Device, opened
from ..dtypes import DType, bool_, dtype, float32, uint8
from ..engine import tracer_api
from ..engine.evaluate import evaluate as evaluate_nodes
from ..engine.evaluate import evaluate_all_readers, evaluate_node
from ..errors import ArgumentError, DovetailError, DTypeError, ShapeError, SharingError
from ..graph.expr import Expr, Spec, leaf, node, spec, storage_of
from ..layout import StridedView
from ..memory.allocator import Allocator, allocate_from
from ..memory.overlap import connect_foreign, register_visible
from ..memory.pointer import DataPtr, Export
from ..memory.storage import Storage, storage_at, storage_over
from ..ops import table as ops
from ..ops.table import FULL
from ..plugins.device_handle import OpenedDevice
from ..settings import flags
from .c_fields import expr_of, is_strided, record_alias
from .host_read import HostMemory, array_over, copy_array, element, round_number
from .numpy_dtypes import find_ml_dtype
from .tensor import Tensor, create_tensor, parts_of, required, strided, to_strided

Number: TypeAlias = bool | int | float  # of a complex tensor complex, which few hints expect
Nested: TypeAlias = "Number | list[Nested]"

# --- uploads --------------------------------------------------------------------------------------


def from_host(values: np.ndarray, dtype: DType, device: Device) -> Tensor:
    """Copy host values to new memory; `values` has a NumPy dtype with the bytes of `dtype`."""
    e = allocate_leaf(
        spec(values.shape, dtype, device, "asarray")
    )  # first: its errors name the function
    if flags.captures and (recorder := tracer_api.current()) is not None:
        recorder.record_fill(e.storage, values.tobytes())
    if values.size:
        ptr = e.storage.ptr
        where: OpenedDevice = device.opened or opened(device)
        address = None
        if not where.asynchronous:  # else queued work may still use the memory
            address = ptr._host_address(where.host_address) or None
        if address is not None and copy_array(address, values):
            pass
        elif address is not None:
            memory = HostMemory(address, e.storage.nbytes, None, True)
            array_over(memory, values.shape, values.dtype, 0, None)[...] = values
        else:
            flat = np.asarray(values, order="C").reshape(-1).view(np.uint8).data
            where.backend.copy_in(ptr.handle, ptr.offset, flat, current_handle(device))
    return create_tensor(e)


def allocate_leaf(s: Spec) -> Expr:
    """Allocate uninitialised memory on the current stream and return a leaf over it."""
    device: OpenedDevice = s.device.opened or opened(s.device)
    stream = current_handle(s.device) if device.has_streams else None
    fast_path = device.fast_path
    nbytes = s.nbytes
    ptr: DataPtr = (
        device.allocate(nbytes, stream) if fast_path is None else fast_path.allocate(nbytes, stream)
    )
    storage = storage_over(ptr, s.device)
    if flags.captures and (recorder := tracer_api.current()) is not None:
        recorder.record_allocation(storage)
    return leaf(storage, s, s.strides, 0)


def allocate_leaf_from(op: str, s: Spec, allocator: Allocator) -> Expr:
    """Return a leaf over new memory from the user's allocator.

    The memory is not initialised, and may overlap other memory.
    Raises: CaptureError in a captured function; the errors of `allocate_from`.
    """
    tracer_api.refuse_read("an allocator is asked for memory")
    nbytes = s.size * s.dtype.itemsize
    ptr = allocate_from(op, nbytes, s.device, allocator)
    storage = storage_at(ptr, nbytes, s.device)
    connect_foreign(storage)
    return leaf(storage, s, s.strides, 0)


# --- evaluation -----------------------------------------------------------------------------------


def evaluate(*tensors: Tensor) -> None:
    """Compute these tensors now, together: the public `evaluate`, for the core."""
    if len(tensors) == 1 and is_strided(tensors[0]):
        e = expr_of(tensors[0])
        if e.op is not None or storage_of(e).pending is not None or flags.has_unresolved_checks:
            evaluate_node(e)
        return
    for t in tensors:
        required("evaluate", t)
    evaluate_nodes([p._expr for t in tensors for p in parts_of(t)])


def evaluate_leaf(x: Tensor) -> Expr:
    """Compute a tensor if it is pending, and return its node, now a leaf in memory."""
    e = expr_of(x)
    if e.op is not None:
        evaluate_node(e)
    elif (pending := storage_of(e).pending) is not None:
        evaluate_nodes((pending,))
        storage_of(e)
    return e


def storage(x: Tensor) -> Storage:
    """Return the memory that this tensor and its views share; compute a pending value.

    Raises: OutOfMemoryError, and the errors of the pending work.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 3))
    >>> x.storage() is x[1].storage()
    True
    >>> x.storage()[4], x.storage().tolist()
    (0.0, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    tracer_api.refuse_read("storage() asks for a tensor's memory", x)
    memory = storage_of(evaluate_leaf(strided("storage", x)))
    if memory.dtype is None:
        memory.dtype = x.dtype
    register_visible(memory)
    return memory


def view_storage(storage: Storage, requested_dtype: DType | str | None) -> Tensor:
    """Return a storage as a vector over its memory, not in a capture; see `Storage.view`."""
    tracer_api.refuse_read("a storage shows its elements")
    stored = storage.dtype or uint8
    element_dtype = stored if requested_dtype is None else dtype(requested_dtype, "view")
    if element_dtype is bool_ and stored is not element_dtype:
        raise DTypeError("view: bytes cannot be viewed as bool; use x != 0")
    s = spec((storage.nbytes // element_dtype.itemsize,), element_dtype, storage.device, "view")
    return create_tensor(leaf(storage, s, s.strides, 0))


def data_ptr(x: Tensor) -> int:
    """Return the address of the first element, as an int.

    On a device whose memory the host cannot reach it is the device's own address, or the driver's
    handle of the memory if it has no addresses. When the address is returned, the value and all
    pending readers of the memory have been computed, and the device has finished its queue.
    dovetail does not notice writes by other code: before such a write call `dt.evaluate` on results
    that were recorded since then, and `dt.synchronize`.
    Units: bytes.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 3))
    >>> x.data_ptr() % 64
    0
    """
    tracer_api.refuse_read("data_ptr() asks for a tensor's memory", x)
    e = evaluate_leaf(strided("data_ptr", x))
    storage = storage_of(e)
    evaluate_all_readers(storage)
    device = opened(x.device)
    wait_for_stream(device, current_handle(x.device))
    register_visible(storage)
    ptr = storage.ptr
    at = ptr.offset + e.offset * x.itemsize
    address = device.backend.host_address(ptr.handle, at)
    if address is None:  # only some drivers' handles are addresses
        address = int(ptr.handle) + (0 if device.backend.dlpack_type is None else at)
    return address


# --- reads ----------------------------------------------------------------------------------------


def numpy(x: Tensor, *, force: bool = False) -> np.ndarray:
    """Return the values as a NumPy array: a view of the memory if the host reaches it, else a copy.

    Tensor and view show each other's writes; the view of a read-only tensor is read-only. A pending
    value is computed. While the view lives, ops that read this memory are computed at once.
    Gradients do not notice writes through the view: copy the operands of a result before a write.

    - `force`: accepted for PyTorch: a copy is made if one is needed, with or without it.

    Dtypes: bfloat16 and float8 become those of the package ml_dtypes, which must be installed.
    Raises: DTypeError for a dtype that NumPy and ml_dtypes lack; OutOfRangeError, each time, if the
    values depend on an index out of range.
    See also: `from_dlpack`, `Tensor.tolist`.

    >>> import dovetail as dt
    >>> dt.zeros(2).numpy()
    array([0., 0.], dtype=float32)
    """
    if not is_strided(x):
        strided("numpy", x)
    return host_array(x, _numpy_dtype(x), True)


def _numpy_dtype(x: Tensor) -> np.dtype:
    """Return NumPy's dtype for that of a tensor, or that of ml_dtypes.

    Raises: DTypeError if both lack it.
    """
    dtype: DType = expr_of(x).spec.dtype
    return find_ml_dtype(dtype) if dtype.__numpy_dtype__ is None else dtype.__numpy_dtype__


def array(x: Tensor, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
    """Return the values as a NumPy array, cast and copied as NumPy asks: `numpy.asarray(x)`.

    Raises: ArgumentError, a ValueError, if copy=False and a cast is needed or the host cannot reach
    the memory.
    """
    own = _numpy_dtype(strided("__array__", x))
    needs_cast = dtype is not None and np.dtype(dtype) != own
    if copy is False:
        if needs_cast:
            raise ArgumentError(
                "__array__: converting the dtype needs a copy, and copy=False forbids it"
            )
        if not _is_reachable(x):
            raise ArgumentError(
                f"__array__: the host cannot reach the memory of {x.device} without a copy, and "
                "copy=False forbids it"
            )
    values = host_array(x, own, True)
    if needs_cast:
        return values.astype(dtype)
    return values.copy() if copy else values


def buffer(x: Tensor, flags: int) -> memoryview:
    """Return a memoryview of the memory of `x`; `flags` are ignored.

    It implements `memoryview(x)`; in pure Python only from Python 3.12 on. A copy would lose writes
    through the view, and NumPy would take it for the memory where copy=False.
    Raises: DTypeError for dtypes that NumPy lacks; SharingError, a BufferError, if the host cannot
    reach the memory.
    """
    dtype = strided("memoryview", x).dtype.__numpy_dtype__
    if dtype is None:
        raise DTypeError(
            f"memoryview: buffers have no format for {x.dtype.name}; use "
            f"x.view(dt.uint{x.dtype.bits})"
        )
    if not _is_reachable(x):
        raise SharingError(
            f"memoryview: the host cannot reach the memory of {x.device}; use "
            "memoryview(x.numpy()), a copy"
        )
    return memoryview(host_array(x, dtype, True))  # type: ignore[arg-type]  # it is a buffer


def _is_reachable(x: Tensor) -> bool:
    """Return True if the host reaches the memory of a strided tensor, or it has no elements."""
    if flags.captures:
        tracer_api.refuse_read(f"the host reads a tensor, {x._expr.spec!r},", x)
    e = evaluate_leaf(x)
    ptr = storage_of(e).ptr
    return not x.size or opened(x.device).host_address(ptr.handle, ptr.offset) is not None


def read_values(name: str, x: Tensor | np.ndarray | np.generic) -> np.ndarray | np.generic:
    """Return the host values of a tensor, as `printable_values`; return an array unchanged.

    Raises: LayoutError that names `name`.
    """
    return printable_values(strided(name, x), may_guard=True) if isinstance(x, Tensor) else x


def printable_values(x: Tensor, may_guard: bool = False) -> np.ndarray:
    """Return the host values of a tensor, as float32 if NumPy lacks the dtype; evaluate it.

    `may_guard`: see `tracer_api.require_value`.
    """
    e, dtype = x._expr, x.dtype.__numpy_dtype__
    if dtype is None:
        wide = spec(e.spec.shape, float32, e.spec.device)
        return printable_values(create_tensor(node(ops.ASTYPE, (e,), wide, float32)), may_guard)
    return host_array(x, dtype, False, may_guard)


def item(x: Tensor, index: int | tuple[int, ...] | None = None, *more: int) -> Number:
    """Return the value of a tensor of one element, as a Python number.

    A pending value is computed.

    - `index`: selects one of several elements, by its indices as a tuple or by its position in
      row-major order; None requires a single element.
    - `more`: indices of further axes, as in `x.item(0, 1)`.

    Cost: computes a pending value and waits for the device.
    Raises: ShapeError for more or no elements; OutOfRangeError if the value depends on an index out
    of range.
    See also: `Tensor.tolist`, `Tensor.numpy`.

    >>> import dovetail as dt
    >>> dt.asarray([[7]]).item()
    7
    """
    if index is None:
        return _single_element(x)
    position: Any = (index, *more) if more else index
    return _single_element(_select_element(x, position))


def _single_element(x: Tensor, op: str = "item") -> Number:
    """Evaluate a one-element tensor and return its value. Raises: ShapeError that names `op`."""
    if not is_strided(x):
        if x.size != 1:
            raise ShapeError(f"{op}: expected a tensor with one element, got shape {x.shape}")
        x = to_strided(x)
    e = expr_of(x)
    s = e.spec
    if s.size != 1:
        raise ShapeError(
            f"{op}: expected a tensor with one element, got shape {s.shape}; use x.tolist()"
        )
    if flags.captures:
        tracer_api.require_value(f"the host reads a tensor, {s!r},", x, may_guard=True)
    value = number_at_hand(e)
    if value is None:
        address = _await_address(evaluate_leaf(x))
        value = element(s.dtype.name, address) if address else None
    if value is None:  # C does not know the dtype, or the host cannot reach it
        value = printable_values(x, may_guard=True).reshape(()).item()
    return value


def _select_element(x: Tensor, index: int | tuple[int, ...]) -> Tensor:
    """Return one element, by indices or by row-major position; errors name `item`."""
    position = integers("item", index, "index")
    try:
        return x[position] if isinstance(index, tuple) or x.ndim == 1 else x.reshape(-1)[position]
    except DovetailError as error:
        error.args = (f"item: {error}", *error.args[1:])
        raise


def _await_address(e: Expr) -> int:
    """Wait for the stream, settle checks; return the host address of a leaf's data, or 0.

    Raises: OutOfRangeError, if a check failed.
    """
    device: OpenedDevice = e.spec.device.opened or opened(e.spec.device)
    if device.asynchronous or flags.has_unresolved_checks:
        wait_for_stream(device, current_handle(e.spec.device))
    storage = storage_of(e)
    if storage.checks:
        faults.settle_before_read(storage)
    ptr = storage.ptr
    address = device.host_address(ptr.handle, ptr.offset + e.offset * e.spec.itemsize)
    return address or 0


def reachable_address(e: Expr) -> int:
    """Return the host address of a leaf's first element, or 0 if the host must wait or copy.

    The host reads and writes the memory there at once: no work and no check of it is queued.
    """
    if e.op is not None:
        return 0
    storage = e.storage
    if storage.pending is not None or storage.checks:
        return 0
    device: OpenedDevice | None = storage.device.opened
    if device is None or device.asynchronous or flags.has_unresolved_checks:
        return 0
    start = storage.ptr._host_address(device.host_address)
    return start + e.offset * e.spec.itemsize if start else 0


def number_at_hand(e: Expr) -> Number | None:
    """Return the number of a node of one element if the host needs no evaluation, else None.

    The node is a leaf that the host reaches, or a pending constant.
    """
    if e.op is None:
        address = reachable_address(e)
        return element(e.spec.dtype.name, address) if address else None
    if e.op is not FULL or e.attrs[0][0] is not e.spec.dtype:
        return None
    return round_number(e.spec.dtype.name, e.args[0])


def tolist(x: Tensor) -> Nested:
    """Return the values as nested lists of Python numbers; a 0-dimensional tensor gives the number.

    A pending value is computed.
    Raises: OutOfRangeError if the values depend on an index out of range.

    >>> import dovetail as dt
    >>> dt.asarray([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    values: Nested = printable_values(to_strided(x), may_guard=True).tolist()
    return values


def as_bool(x: Tensor) -> bool:
    """Return `bool(x)`, and evaluate it. Raises: ShapeError unless `x` has one element."""
    if (expr_of(x).spec.size if is_strided(x) else x.size) != 1:
        raise ShapeError(
            f"bool: the truth of a tensor of shape {x.shape} is ambiguous; use dt.any or dt.all"
        )
    return bool(_single_element(x))


def as_float(x: Tensor) -> float:
    """Return `float(x)`. Raises: ShapeError unless it has one element, DTypeError if complex."""
    value = _single_element(x, "float")
    return value if type(value) is float else float(_require_real("float", value))


def as_int(x: Tensor) -> int:
    """Return `int(x)`. Raises: ShapeError unless it has one element, DTypeError if complex."""
    return int(_require_real("int", _single_element(x, "int")))


def _require_real(name: str, value: Number) -> bool | int | float:
    """Return a number. Raises: DTypeError if it is complex."""
    if isinstance(value, complex):
        raise DTypeError(
            f"{name}: expected a real number, got {value}; use x.real, x.imag or complex(x)"
        )
    return value


def as_complex(x: Tensor) -> complex:
    """Return `complex(x)`. Raises: ShapeError unless `x` has one element."""
    return complex(_single_element(x, "complex"))


def as_index(x: Tensor) -> int:
    """Return the int of a tensor of one integer, of any shape. Raises: DTypeError for others."""
    if not x.dtype.is_integer or x.size != 1:
        raise DTypeError(f"index: expected one integer, got {x.dtype.name} of shape {x.shape}")
    return int(item(x))


def iterate_rows(x: Tensor) -> Iterator[Tensor]:
    """Evaluate `x`; return an iterator over the views x[0], x[1], ...

    Raises: DTypeError, at once, for a tensor without dimensions.
    """
    if x.ndim == 0:
        raise DTypeError("iter: expected at least 1 dimension, got shape (); use x.item()")
    warn_if_pair_of(x)
    evaluate(x)
    return map(partial(_view_row, x), range(x.shape[0]))


def warn_if_pair_of(x: Tensor) -> None:
    """Warn if a pending result is read as PyTorch's pair of values and indices.

    In eager mode results are not pending, and there is no warning.
    """
    if type(x) is not Tensor:  # a subclass may have PyTorch's pairs
        return
    e = x._expr
    if e.op is None or e.op.name not in INDEX_HINTS:
        return
    if e.op.name != "sort":
        warn_if_pair(e.op.name, along_first=e.attrs[0] == (0,))
    elif x.ndim > 1:
        warn_if_pair("sort")


def _view_row(x: Tensor, i: int) -> Tensor:
    """Return x[i] as a view; about four times faster than general indexing."""
    if not is_strided(x) or x._expr.op is not None or x._expr.tape is not None:
        return x[i]
    e = x._expr
    s = spec(e.spec.shape[1:], e.spec.dtype, e.spec.device)
    return record_alias(
        x, create_tensor(leaf(storage_of(e), s, e.strides[1:], e.offset + i * e.strides[0]))
    )


# --- NumPy arrays over memory ---------------------------------------------------------------------


def host_array(
    x: Tensor, dtype: np.dtype, writable: bool = False, may_guard: bool = False
) -> np.ndarray:
    """Return an array over the memory, or a copy; writable on request, if the tensor is.

    The array is over the memory itself where the host reaches it, and a copy elsewhere. Over the
    memory it is read-only unless `writable` is given and the tensor can be written; then pending
    readers of the memory are computed first. `may_guard`: see `tracer_api.require_value`.
    Raises: OutOfRangeError, if the values depend on an index out of range.
    """
    if flags.captures:
        what = f"the host reads a tensor, {x._expr.spec!r},"
        if writable:
            tracer_api.refuse_read(what, x)
        else:
            tracer_api.require_value(what, x, may_guard)
    e = evaluate_leaf(x)
    storage = storage_of(e)
    device: OpenedDevice = storage.device.opened or opened(storage.device)
    ptr = storage.ptr
    address = ptr._host_address(device.host_address) or device.host_address(
        ptr.address(), ptr.offset
    )
    owner: Export | Storage = storage
    if writable and address is not None and is_writable(e):
        owner = Export(storage)
        evaluate_all_readers(storage)
    if device.asynchronous or flags.has_unresolved_checks:
        wait_for_stream(device, current_handle(storage.device))
    if storage.checks:
        faults.settle_before_read(storage)
    if address is None:
        return _copy_to_array(x, device.backend, dtype)
    return _view_leaf(e, address, dtype, owner)


def is_writable(e: Expr) -> bool:
    """Return True if a leaf is not read-only and its elements do not share memory."""
    if storage_of(e).read_only:
        return False
    return 0 not in e.strides or not lay.has_repeated_elements(
        StridedView(e.spec.shape, e.strides, 0)
    )


def export_leaf(e: Expr) -> Export | Storage:
    """Mark a leaf's memory as exported for writes by other code; return the owner of the view.

    Pending readers of the memory are computed first. Memory that the host does not reach is not
    exported: nothing waits for it.
    """
    storage = storage_of(e)
    if opened(storage.device).backend.host_address(storage.ptr.handle, 0) is None:
        return storage
    owner = Export(storage)
    evaluate_all_readers(storage)
    return owner


def _view_leaf(e: Expr, address: int, dtype: np.dtype, owner: Export | Storage) -> np.ndarray:
    """Return a NumPy array over a leaf's memory, whose storage begins at host `address`.

    The array keeps the owner alive. It is writable if the owner is an export.
    """
    s = e.spec
    dense = e.strides is s.strides or e.strides == s.strides
    low, high = e.offset, e.offset + s.size
    if not dense:
        low, high = lay.element_span(StridedView(s.shape, e.strides, e.offset))
    if high == low:
        return np.empty(e.spec.shape, dtype)
    storage = storage_of(e)
    if not storage.seen:
        register_visible(storage)
    itemsize = s.itemsize
    memory = HostMemory(
        address + low * itemsize, (high - low) * itemsize, owner, isinstance(owner, Export)
    )
    if dense:
        return array_over(memory, s.shape, dtype, 0, None)
    strides = tuple([step * itemsize for step in e.strides])
    return array_over(memory, s.shape, dtype, (e.offset - low) * itemsize, strides)


def is_tensor_memory(memory: object) -> bool:
    """Return True if a buffer is over the memory of a tensor of this process."""
    while memory is not None and not isinstance(memory, HostMemory):
        if isinstance(memory, PickleBuffer):
            memory = memory.raw()
        memory = memory.obj if isinstance(memory, memoryview) else getattr(memory, "base", None)
    return memory is not None


def _copy_to_array(x: Tensor, backend: Backend, dtype: np.dtype) -> np.ndarray:
    """Copy a tensor's values from the device into a new NumPy array of dtype `dtype`."""
    e = evaluate_leaf(
        x if x.is_contiguous() else create_tensor(node(ops.COPY, (x._expr,), x._expr.spec))
    )
    ptr = storage_of(e).ptr
    out = np.empty(e.spec.shape, dtype)
    if out.size:
        flat = out.reshape(-1).view(np.uint8).data
        backend.copy_out(
            flat, ptr.handle, ptr.offset + e.offset * dtype.itemsize, current_handle(x.device)
        )
    return out


# Methods of Tensor by which the host reads values.
READ_METHODS: dict[str, object] = {
    "numpy": numpy, "item": item, "tolist": tolist, "storage": storage, "data_ptr": data_ptr,
    "__array__": array, "__buffer__": buffer, "__bool__": as_bool, "__float__": as_float,
    "__int__": as_int, "__complex__": as_complex, "__index__": as_index, "__iter__": iterate_rows,
}  # fmt: skip
