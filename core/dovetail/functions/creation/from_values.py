"""Tensors from Python and NumPy values and from other libraries' arrays: `asarray`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from ...argument_checks import flag
from ...compat.keywords import UNGIVEN, rebind_keywords
from ...device_class import device, usable
from ...dtypes import DType, complex128, dtype, float64
from ...engine import tracer_api
from ...errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    ShapeError,
    ValueOverflow,
)
from ...layout import Shape
from ...ops import table as ops
from ...tensor.host import evaluate, from_host, shown
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, strided
from ...tensor.writes import whole_numbers
from ..datatypes import DeviceLike, DTypeLike, any_dtype, cast, get_default_dtype, move
from ..io.interop import HasDLPack, adopt, from_dlpack

__all__ = ["asarray"]


def asarray(
    obj: object = UNGIVEN,
    /,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
    copy: bool | None = None,
    **theirs: object,
) -> Tensor:
    """Return a tensor of numbers, nested lists, an array or an object with DLPack or `__array__`.

    A tensor of this dtype on this device is returned as it is. All other objects are copied, also
    the memory of arrays. `copy`: True always copies; False never copies: it shares the memory of
    an array, or fails.
    Shapes: that of `obj`; lists must not be ragged.
    Dtypes: arrays keep theirs; Python floats give the default dtype (float32), complex numbers
    complex64, ints int64, bools bool; `dtype` overrides these. A number that it cannot hold is an
    error.
    Raises: ShapeError for ragged lists, DTypeError, ValueOverflow, ArgumentError (`copy=False`),
    DeviceError.

    >>> import dovetail as dt
    >>> dt.asarray([[1, 2], [3, 4]], device="reference").shape
    (2, 2)
    """
    if theirs:
        return rebind_keywords(asarray, locals())
    want = None if dtype is None else any_dtype("asarray", dtype)
    copy = copy if copy is None else flag("asarray", copy, "copy")
    if isinstance(obj, Tensor):
        return _from_tensor(obj, want, device, copy)
    if isinstance(obj, np.ndarray):
        return _from_numpy(obj, want, device, copy)
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

    def __call__(self, data: object = (), **options: Any) -> Tensor:
        """Return a new tensor of the data: `dt.asarray(data, copy=True)`."""
        return asarray(data, copy=True, **options)


sys.modules[Tensor.__module__.rpartition(".")[0]].__class__ = _CallablePackage
_DEFAULTS = (float64, complex128)  # NumPy's dtypes of Python numbers; dovetail's may be narrower


def _from_shared(x: Tensor, want: DType | None, wanted: DeviceLike, copy: bool | None) -> Tensor:
    """Copy foreign memory at once, because its owner may change it later."""
    if copy is False:
        return _from_tensor(x, want, wanted, False)
    copied = _from_tensor(x, want, wanted, True)
    evaluate(copied)
    return copied


def _host_values(obj: object) -> np.ndarray:
    """Return the values of an object with `__array__`, the array interface or a buffer."""
    if hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        return np.asarray(obj)
    try:
        return np.asarray(memoryview(obj))  # type: ignore[arg-type]  # memoryview raises otherwise
    except (TypeError, ValueError):
        raise DTypeError(
            f"asarray: cannot make a tensor of {type(obj).__name__}; give numbers, nested lists, "
            f"or an array"
        ) from None


def _from_tensor(x: Tensor, want: DType | None, wanted: DeviceLike, copy: bool | None) -> Tensor:
    target = x.device if wanted is None else usable(wanted, "asarray")
    same = (want is None or want is x.dtype) and target is x.device
    if same and copy is not True:
        return x
    if copy is False:
        raise ArgumentError(
            f"asarray: {x.dtype.name} on {x.device} as {(want or x.dtype).name} on {target} "
            f"needs a copy, "
            "and copy=False forbids it"
        )
    if same:
        return apply(ops.COPY, (x,))
    return cast(move(x, target), want)


def _from_numpy(a: np.ndarray, want: DType | None, wanted: DeviceLike, copy: bool | None) -> Tensor:
    have = any_dtype("asarray", a.dtype)
    tracer_api.record_array(a)
    if copy is False:
        if want not in (None, have) or not a.dtype.isnative:
            raise ArgumentError(
                f"asarray: {a.dtype} as {(want or have).name} needs a copy; copy=False forbids it"
            )
        return adopt(a, have, device(wanted, "asarray"))
    native = a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))
    return cast(from_host(native, have, device(wanted, "asarray")), want)


def _from_values(obj: object, want: DType | None, wanted: DeviceLike) -> Tensor:
    leaf = _first_leaf(obj)
    if isinstance(leaf, Tensor):
        return _from_tensors(obj, want, leaf.device if wanted is None else wanted)
    values = _array_of_lists(obj, want)
    have = any_dtype("asarray", values.dtype)
    if want is None and have in _DEFAULTS and not isinstance(leaf, np.generic | np.ndarray):
        want = any_dtype("asarray", float if have is float64 else complex)
    if want is None or want is have:
        return from_host(values, have, device(wanted, "asarray"))
    if have.kind == "c" and want.kind not in "bc":
        raise DTypeError(f"asarray: complex numbers do not fit {want.name}; give their real parts")
    numpy_dtype = want.__numpy_dtype__
    if numpy_dtype is not None and (have.kind not in "fc" or have.kind != want.kind):
        return from_host(
            _check_range(values, have, want).astype(numpy_dtype), want, device(wanted, "asarray")
        )
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32 if numpy_dtype is None else numpy_dtype)
    return cast(from_host(narrow, dtype(narrow.dtype), device(wanted, "asarray")), want)


def _first_leaf(obj: object) -> object:
    while isinstance(obj, list | tuple) and obj:
        obj = obj[0]
    return 0.0 if isinstance(obj, list | tuple) else obj


def _from_tensors(obj: object, want: DType | None, wanted: DeviceLike) -> Tensor:
    """Return a tensor of nested lists of tensors, stacked by the host."""
    return asarray(_stack_nested(obj), dtype=want, device=wanted)


def _stack_nested(obj: object) -> np.ndarray:
    if isinstance(obj, list | tuple):
        arrays = [_stack_nested(part) for part in obj]
        _require_even(obj)
        return np.stack(arrays)
    return shown(strided("asarray", obj)) if isinstance(obj, Tensor) else np.asarray(obj)


def _array_of_lists(obj: object, want: DType | None) -> np.ndarray:
    try:
        values = np.array(obj)
    except ValueError:
        _require_even(obj)
        raise
    if want is None or want.kind in "iu":
        values = whole_numbers(values, obj)
    if values.dtype == object:
        _require_even(obj)
        if all(isinstance(v, int) for v in values.flat):
            raise ValueOverflow("asarray: an integer fits neither int64 nor uint64; use floats")
    if values.dtype == object or values.dtype.kind not in "biufc":
        bad = next((v for v in values.flat if not isinstance(v, int | float)), values.dtype)
        bad = bad.item() if isinstance(bad, np.generic) else bad
        raise DTypeError(f"asarray: cannot make numbers of {type(bad).__name__}: {bad!r:.40}")
    if values.size == 0 and values.dtype == np.float64 and want is None:
        return values.astype(get_default_dtype().__numpy_dtype__)
    return values


def _require_even(obj: object) -> None:
    """Raise ShapeError for the first place at which nested lists differ in length."""

    def walk(part: object, at: str) -> Shape:
        if not isinstance(part, list | tuple):
            return tuple(getattr(part, "shape", ()))
        shapes = [walk(p, f"{at}[{i}]") for i, p in enumerate(part)]
        for i, s in enumerate(shapes):
            if s != shapes[0]:
                raise ShapeError(
                    f"asarray: nested lists are ragged: {at}[0] has shape {shapes[0]}, but "
                    f"{at}[{i}] has {s}; "
                    "pad them to one length"
                )
        return (len(part), *(shapes[0] if shapes else ()))

    walk(obj, "obj")


def _check_range(values: np.ndarray, have: DType, want: DType) -> np.ndarray:
    if have.is_integer and want.is_integer and values.size:
        low, high = int(values.min()), int(values.max())
        if low < want.min or high > want.max:
            bad = low if low < want.min else high
            raise ValueOverflow(f"asarray: {bad} does not fit {want.name} ({want.min}..{want.max})")
    return values
