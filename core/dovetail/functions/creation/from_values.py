"""Tensors from Python and NumPy values and from other libraries' arrays: `asarray`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from ...argument_checks import flag, foreign_type_name
from ...compat.keywords import MISSING, rebind_keywords
from ...declarations import public
from ...device_class import default_device, device, usable
from ...dtypes import DType, complex128, dtype, float64
from ...engine import tracer_api
from ...engine.traced_numbers import TracedFloat
from ...errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    GradientError,
    ShapeError,
    ValueOverflowError,
)
from ...layout import Shape
from ...ops import table as ops
from ...settings import flags
from ...tensor.host import evaluate, from_host, printable_values
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, strided
from ...tensor.writes import restore_ints
from ..datatypes import (
    DeviceLike,
    DTypeLike,
    any_dtype,
    cast,
    device_supporting,
    get_default_dtype,
    move_as,
)
from ..io.interop import HasDLPack, adopt, from_dlpack

__all__ = ["array", "asarray"]


@public(widen=False)
def array(
    obj: object,
    dtype: DTypeLike = None,
    *,
    copy: bool | None = True,
    device: DeviceLike = None,
) -> Tensor:
    """Return a new tensor of the elements of `obj`: NumPy's `array`, `dt.asarray` with a copy.

    - `obj`: a number, nested lists, an array, a tensor, or an object with DLPack or `__array__`.
    - `copy`: True copies; None and False are as in `dt.asarray`.

    Shapes: that of `obj`.
    Dtypes: as of `dt.asarray`.
    Raises: ShapeError for ragged lists, DTypeError, ValueOverflowError, DeviceError.
    See also: `asarray`, `from_dlpack`.

    >>> import dovetail as dt
    >>> x = dt.zeros(2)
    >>> y = dt.array(x)
    >>> y[0] = 1
    >>> x.tolist()
    [0.0, 0.0]
    """
    return asarray(obj, dtype, copy=copy, device=device)


def asarray(
    obj: object = MISSING,
    /,
    dtype: DTypeLike = None,
    *more: object,
    device: DeviceLike = None,
    copy: bool | None = None,
    **theirs: object,
) -> Tensor:
    """Return a tensor of numbers, nested lists, an array or an object with DLPack or `__array__`.

    A tensor of this dtype on this device is returned as it is. All other objects are copied, also
    the memory of arrays.

    - `obj`: a number, nested lists, an array, a tensor, or an object with `__dlpack__` or
      `__array__`.
    - `dtype`: the dtype of the result; None keeps that of `obj` (see below).
    - `device`: the device of the result; None keeps that of a tensor, and else is the default
      device.
    - `copy`: True always copies; False never copies: it shares the memory of an array, or fails.
      None copies all but tensors that need no change.

    Shapes: that of `obj`; lists must not be ragged.
    Dtypes: arrays keep theirs; Python floats give the default dtype (float32), complex numbers
    complex64, ints int64, bools bool; `dtype` overrides these. A number that it cannot hold is an
    error.
    Raises: ShapeError for ragged lists, DTypeError, ValueOverflowError, ArgumentError
    (`copy=False`), DeviceError.
    See also: `array`, `from_dlpack`, `from_blob`, `zeros`.

    >>> import dovetail as dt
    >>> dt.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    copies = copy is None or copy is True
    if type(obj) is np.ndarray and dtype is None and copies and not (more or theirs):
        return _from_numpy(obj, None, device, None)
    if more or theirs:
        return rebind_keywords(asarray, locals())
    obj = tracer_api.read_stand_in(obj)
    want = None if dtype is None else any_dtype("asarray", dtype)
    copy = copy if copy is None else flag("asarray", copy, "copy")
    if isinstance(obj, Tensor):
        return _from_tensor(obj, want, device, copy)
    if isinstance(obj, np.ndarray) or (isinstance(obj, np.generic) and obj.dtype.kind == "V"):
        return _from_numpy(np.asarray(obj), want, device, copy)  # "V": numbers of ml_dtypes
    if type(obj) is TracedFloat:
        if (want is None and type(obj.value) is not float) or (want and want.kind != "f"):
            return _from_values(obj.read(), want, device)
        return apply(ops.MULTIPLY, (_from_values(1.0, want, device), obj))  # exact
    if isinstance(obj, bool | int | float | complex | np.generic | list | tuple | range):
        if copy is False:
            raise ArgumentError(
                f"asarray: copy=False cannot share the memory of a {type(obj).__name__}"
            )
        return _from_values(obj, want, device)
    if hasattr(obj, "__dlpack__"):
        foreign: HasDLPack = obj  # type: ignore[assignment]  # from_dlpack checks the rest
        try:
            shared = from_dlpack(foreign, copy=copy if copy is False else None)
        except (DeviceError, BufferError):
            if copy is False or not hasattr(obj, "__array__"):
                raise
        else:
            return _from_shared(shared, want, device, copy)
    return _from_numpy(_host_values(obj), want, device, copy)


class _CallablePackage(ModuleType):
    """The package `dt.tensor`; a call creates a tensor, as PyTorch's `torch.tensor` does."""

    def __call__(
        self,
        data: object = (),
        *,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        requires_grad: bool = False,
        **theirs: Any,
    ) -> Tensor:
        """Return a new tensor of the data: `dt.asarray(data, copy=True)`."""
        if requires_grad:
            theirs["requires_grad"] = requires_grad
        return asarray(data, dtype, copy=True, device=device, **theirs)


sys.modules["dovetail.tensor"].__class__ = _CallablePackage
_NUMPY_DEFAULT_DTYPES = (
    float64,
    complex128,
)  # NumPy's dtypes of Python numbers; dovetail's may be narrower


def _from_shared(
    x: Tensor, target_dtype: DType | None, device_like: DeviceLike, copy: bool | None
) -> Tensor:
    """Return `x` as asked for; copy foreign memory at once, because its owner may change it."""
    if copy is False:
        return _from_tensor(x, target_dtype, device_like, False)
    copied = _from_tensor(x, target_dtype, device_like, True)
    evaluate(copied)
    return copied


def _host_values(obj: object) -> np.ndarray:
    """Return the array of an object with `__array__`, an array interface or a buffer."""
    if hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        try:
            return np.asarray(obj)
        except RuntimeError as error:  # PyTorch's
            if not getattr(obj, "requires_grad", False):
                raise
            raise GradientError(
                f"asarray: the {foreign_type_name(obj)} requires grad; pass x.detach()"
            ) from error
    try:
        return np.asarray(memoryview(obj))  # type: ignore[arg-type]  # memoryview raises otherwise
    except (TypeError, ValueError):
        raise DTypeError(
            f"asarray: expected numbers, nested lists or an array, got {type(obj).__name__}"
        ) from None


def _from_tensor(
    x: Tensor, target_dtype: DType | None, device_like: DeviceLike, copy: bool | None
) -> Tensor:
    """Return a tensor on a device in a dtype; `x` itself if equal and `copy` is not True."""
    target = x.device if device_like is None else usable(device_like, "asarray")
    same = (target_dtype is None or target_dtype is x.dtype) and target is x.device
    if same and copy is not True:
        return x
    if copy is False:
        raise ArgumentError(
            f"asarray: {x.dtype.name} on {x.device} as {(target_dtype or x.dtype).name} on "
            f"{target} "
            f"needs a copy, "
            "and copy=False forbids it"
        )
    if same:
        return apply(ops.COPY, (x,))
    return move_as(x, target_dtype or x.dtype, target)


def _from_numpy(
    a: np.ndarray, target_dtype: DType | None, device_like: DeviceLike, copy: bool | None
) -> Tensor:
    """Return a copy of an array as a tensor; with copy=False share its memory, or raise."""
    source_dtype = dtype(a.dtype, "asarray")
    if flags.captures:
        tracer_api.record_array(a)
    if copy is False:
        if target_dtype not in (None, source_dtype) or not a.dtype.isnative:
            raise ArgumentError(
                f"asarray: {a.dtype} as {(target_dtype or source_dtype).name} needs a copy; "
                "copy=False forbids it"
            )
        return adopt(a, source_dtype, device(device_like, "asarray"))
    native = a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))
    target = default_device() if device_like is None else device(device_like, "asarray")
    if target_dtype is None or target_dtype is source_dtype:
        return from_host(native, source_dtype, target)
    x = from_host(native, source_dtype, device_supporting(source_dtype, target))
    return move_as(x, target_dtype, target)


def _from_values(obj: object, target_dtype: DType | None, device_like: DeviceLike) -> Tensor:
    """Return a tensor of numbers, of nested lists of them, or of nested lists of tensors.

    Raises: DTypeError for other values, and complex ones for a real dtype; ValueOverflowError for
    integers outside of the dtype; ShapeError for ragged lists.
    """
    leaf = _first_leaf(obj)
    if isinstance(leaf, Tensor):
        return _from_tensors(obj, target_dtype, leaf.device if device_like is None else device_like)
    values = _array_of_lists(obj, target_dtype)
    source_dtype = any_dtype("asarray", values.dtype)
    if (
        target_dtype is None
        and source_dtype in _NUMPY_DEFAULT_DTYPES
        and not isinstance(leaf, np.generic | np.ndarray)
    ):
        target_dtype = any_dtype("asarray", float if source_dtype is float64 else complex)
    if target_dtype is None or target_dtype is source_dtype:
        return from_host(values, source_dtype, device(device_like, "asarray"))
    if source_dtype.kind == "c" and target_dtype.kind not in "bc":
        raise DTypeError(
            f"asarray: complex numbers do not fit {target_dtype.name}; pass their real parts"
        )
    numpy_dtype = target_dtype.__numpy_dtype__
    if numpy_dtype is not None and (
        source_dtype.kind not in "fc" or source_dtype.kind != target_dtype.kind
    ):
        return from_host(
            _check_range(values, source_dtype, target_dtype).astype(numpy_dtype),
            target_dtype,
            device(device_like, "asarray"),
        )
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32 if numpy_dtype is None else numpy_dtype)
    return cast(
        from_host(narrow, dtype(narrow.dtype), device(device_like, "asarray")), target_dtype
    )


def _first_leaf(obj: object) -> object:
    """Return the first number of nested lists, 0.0 for an empty list."""
    while isinstance(obj, list | tuple) and obj:
        obj = obj[0]
    return 0.0 if isinstance(obj, list | tuple) else obj


def _from_tensors(obj: object, target_dtype: DType | None, device_like: DeviceLike) -> Tensor:
    """Return a tensor of nested lists of tensors, stacked by the host."""
    return asarray(_stack_nested(obj), dtype=target_dtype, device=device_like)


def _stack_nested(obj: object) -> np.ndarray:
    """Read nested lists of tensors on the host; return one array. Raises: ShapeError if ragged."""
    if isinstance(obj, list | tuple):
        arrays = [_stack_nested(part) for part in obj]
        _require_rectangular(obj)
        return np.stack(arrays)
    return printable_values(strided("asarray", obj)) if isinstance(obj, Tensor) else np.asarray(obj)


def _array_of_lists(obj: object, target_dtype: DType | None) -> np.ndarray:
    """Return an array of nested lists of numbers.

    Raises: ShapeError for ragged lists, ValueOverflowError for integers beyond 64 bits, DTypeError
    for other values than numbers.
    """
    try:
        values = np.array(obj)
    except ValueError:
        _require_rectangular(obj)
        raise
    if target_dtype is None or target_dtype.kind in "iu":
        values = restore_ints(values, obj)
    if values.dtype == object:
        _require_rectangular(obj)
        if all(isinstance(v, int) for v in values.flat):
            raise ValueOverflowError("asarray: integers must fit into int64 or uint64; use floats")
    if values.dtype == object or values.dtype.kind not in "biufc":
        bad = next((v for v in values.flat if not isinstance(v, int | float)), values.dtype)
        bad = bad.item() if isinstance(bad, np.generic) else bad
        raise DTypeError(f"asarray: expected numbers, got {type(bad).__name__}: {bad!r:.40}")
    if values.size == 0 and values.dtype == np.float64 and target_dtype is None:
        return values.astype(get_default_dtype().__numpy_dtype__)
    return values


def _require_rectangular(obj: object) -> None:
    """Raise ShapeError for the first place at which nested lists differ in length."""

    def walk(part: object, path: str) -> Shape:
        """Return the shape of a part. Raises: ShapeError, which names the path."""
        if not isinstance(part, list | tuple):
            return tuple(getattr(part, "shape", ()))
        shapes = [walk(p, f"{path}[{i}]") for i, p in enumerate(part)]
        for i, s in enumerate(shapes):
            if s != shapes[0]:
                raise ShapeError(
                    f"asarray: nested lists are ragged: {path}[0] has shape {shapes[0]}, but "
                    f"{path}[{i}] has {s}; "
                    "pad them to one length"
                )
        return (len(part), *(shapes[0] if shapes else ()))

    walk(obj, "obj")


def _check_range(values: np.ndarray, source_dtype: DType, target_dtype: DType) -> np.ndarray:
    """Return integer values unchanged.

    Raises: ValueOverflowError if one does not fit the target.
    """
    if source_dtype.is_integer and target_dtype.is_integer and values.size:
        low, high = int(values.min()), int(values.max())
        if low < target_dtype.min or high > target_dtype.max:
            bad = low if low < target_dtype.min else high
            raise ValueOverflowError(
                f"asarray: {bad} does not fit {target_dtype.name} "
                f"({target_dtype.min}..{target_dtype.max})"
            )
    return values
