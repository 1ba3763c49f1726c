"""x[key]: what NumPy's rules say, of basic indices, integer arrays and masks."""

from __future__ import annotations

from operator import index as as_integer
from typing import Any

import numpy as np

from . import layout as lay
from . import ops
from .dtypes import DType, dtype
from .errors import DeviceError, DTypeError, IndexOutOfRange, ShapeError, ValueOverflow
from .expr import Expr, node, spec
from .layout import Shape
from .tensor import PYTHON_NUMBERS, Tensor, assign, fitted, from_host, view

_ARRAYS = (Tensor, np.ndarray, list, bool, np.bool_)


def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`: a view for integers, slices, `...` and None.

    Raises: IndexOutOfRange, DTypeError, ShapeError.
    """
    return _basic(x, _filled(x, key))


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`: the value is broadcast and cast to the memory of `x[key]`.

    Raises: as `getitem`; DTypeError where the value's kind does not fit; ReadOnlyError.
    """
    target = _basic(x, _filled(x, key))
    if isinstance(value, Tensor) and _is_same_memory(target._expr, value._expr):
        return  # the last act of `x[key] += ...`
    assign("setitem", target, stored_value("setitem", value, target))


def _is_same_memory(a: Expr, b: Expr) -> bool:
    return (
        a.op is None and b.op is None and a.storage is b.storage
        and a.spec is b.spec and a.strides == b.strides and a.offset == b.offset
    )  # fmt: skip


def stored_value(name: str, value: Any, target: Tensor) -> Expr:
    """What is to be stored in `target`, of its spec: from a tensor, a number, or what NumPy makes an array of."""
    want = target._expr.spec
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PYTHON_NUMBERS):
        return full(name, value, target)
    if not isinstance(value, Tensor):
        value = _tensor_of(name, value, want.dtype, target)
    return fitted(name, value._expr, want)


def full(name: str, value: Any, like: Tensor) -> Expr:
    """A node with `value` everywhere, of the spec of `like`. Raises: DTypeError, ValueOverflow."""
    d = like.dtype
    kinds = {bool: "buif", int: "uif", float: "f"}
    if d.kind not in kinds.get(type(value), ""):
        raise DTypeError(f"{name}: {value!r} does not fit {d.name}; cast the tensor with astype()")
    if type(value) is int and d.kind in "iu" and not d.min <= value <= d.max:
        raise ValueOverflow(f"{name}: {value} does not fit {d.name} ({d.min}..{d.max})")
    return node(ops.FULL, (value,), like._expr.spec, ((d,), d))


def _tensor_of(name: str, value: Any, want: DType, target: Tensor) -> Tensor:
    """Host values as a tensor on the target's device; what is no array yet takes the target's dtype where it fits."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{name}: cannot store {type(value).__name__}; see dt.asarray")
    if not isinstance(value, np.ndarray) and want.__numpy_dtype__ is not None:
        if "buif".index(array.dtype.kind) <= "buif".index(want.kind) or (array.dtype.kind, want.kind) == ("i", "u"):
            array = array.astype(want.__numpy_dtype__)
    return from_host(array, dtype(array.dtype), target.device)


# --- basic indices ---------------------------------------------------------------------------------------------------


def _filled(x: Tensor, key: Any) -> list[Any]:
    """The key as a list with exactly one entry per axis of `x`, and None for each new axis."""
    parts = list(key) if type(key) is tuple else [key]
    used, dots = 0, -1
    for i, part in enumerate(parts):
        if part is Ellipsis:
            if dots >= 0:
                raise IndexOutOfRange("index: only one '...' can stand in an index")
            dots = i
        elif part is not None:
            used += _consumes(part)
    if used > x.ndim:
        raise IndexOutOfRange(f"index: {used} indices for {x.ndim} dimensions (shape {x.shape})")
    rest = [slice(None)] * (x.ndim - used)
    if dots < 0:
        return parts + rest
    return parts[:dots] + rest + parts[dots + 1 :]


def _consumes(part: Any) -> int:
    """How many axes an index takes."""
    return 1


def _basic(x: Tensor, parts: list[Any]) -> Tensor:
    """The view that integers, slices and None describe."""
    starts: list[int] = []
    lengths: list[int] = []
    steps: list[int] = []
    shape: list[int] = []
    reshaped = False
    for part in parts:
        if part is None:
            shape.append(1)
            reshaped = True
            continue
        d = len(starts)
        extent = x.shape[d]
        if isinstance(part, slice):
            start, length, step = _slice(part, extent)
            shape.append(length)
        else:
            start, length, step = position(part, d, extent), 1, 1
            reshaped = True
        starts.append(start)
        lengths.append(length)
        steps.append(step)
    found = view(x, ("slice", tuple(starts), tuple(lengths), tuple(steps)))
    return view(found, ("reshape", tuple(shape))) if reshaped else found


def _slice(part: slice, extent: int) -> tuple[int, int, int]:
    try:
        start, stop, step = part.indices(extent)
    except ValueError:
        raise ShapeError("index: the step of a slice cannot be zero") from None
    except TypeError:
        raise DTypeError(f"index: {part} needs integers or None") from None
    return start, len(range(start, stop, step)), step


def position(part: Any, axis: int, extent: int) -> int:
    """A non-negative position along an axis. Raises: IndexOutOfRange; DTypeError for what is no integer."""
    try:
        i = as_integer(part)
    except TypeError:
        raise DTypeError(
            f"index: {part!r} is {type(part).__name__}; indices are integers, slices, '...', None, "
            "and integer or bool arrays"
        ) from None
    if not -extent <= i < extent:
        raise IndexOutOfRange(f"index: {i} is out of range for axis {axis} of size {extent}")
    return i + extent if i < 0 else i


def install() -> None:
    """Gives Tensor its brackets."""
    for name, rule in {"__getitem__": getitem, "__setitem__": setitem}.items():
        setattr(Tensor, name, rule)


install()
