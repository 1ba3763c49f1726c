"""Casts, moves between devices, and properties of dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias, overload

import numpy as np

from .. import callbacks
from .. import dtypes as D
from ..argument_checks import BEYOND_FLOAT, flag, shown
from ..compat import hints
from ..compat.keywords import MISSING, rebind_keywords
from ..declarations import public
from ..device_class import Device, opened
from ..device_class import device as device_named
from ..dtypes import DType, dtype
from ..engine import tracer_api
from ..errors import ArgumentError, DeviceError, DTypeError, InternalError, ValueOverflowError
from ..graph.expr import tape_of
from ..ops.dtype_rules import common
from ..ops.table import ASTYPE, COPY, TO_DEVICE
from ..plugins.dtype_registry import registry as dtype_plugins
from ..tensor.c_fields import is_strided
from ..tensor.host import from_host, printable_values
from ..tensor.primitives import apply, dispatch
from ..tensor.promotion import PYTHON_NUMBERS, Scalar, convert_operands
from ..tensor.tensor import Tensor, create_tensor, required
from ..tensor.writes import value_node
from .io.transfer import queue_move
from .known_calls import cast_plain
from .plain_calls import accelerate

__all__ = [
    "astype",
    "can_cast",
    "finfo",
    "get_default_dtype",
    "iinfo",
    "isdtype",
    "result_type",
    "set_default_dtype",
]

REAL = (bool, int, float)

default_dtype = D.float32
default_dtype_listeners: list[Callable[[], None]] = []  # callbacks, called in order

DeviceLike: TypeAlias = Device | str | None
"""A device or its name; None is the default one."""
DTypeLike: TypeAlias = DType | str | type | np.dtype | None
"""A dtype, its name, or the NumPy dtype or Python type that equals it; None leaves it open."""
Kind: TypeAlias = "DTypeLike | tuple[Kind, ...]"  # a dtype, or a name of several


def real_dtype(op: str, dtype_like: DTypeLike) -> DType:
    """Return the dtype that `dtype_like` names. Raises: DTypeError, also for a complex dtype."""
    resolved = dtype(dtype_like, op)
    if resolved.kind == "c":
        raise DTypeError(f"{op}: dtype must be real, got {resolved.name}")
    return resolved


def any_dtype(op: str, dtype_like: DTypeLike) -> DType:
    """Return the dtype that `dtype_like` names. Raises: DTypeError for an unknown one."""
    return dtype(dtype_like, op)


def scalar(op: str, value: object, d: DType) -> bool | int | float:
    """Convert a real number to a Python number of d's kind.

    Raises: DTypeError for a complex number and other objects; ValueOverflowError for a number
    outside of an integer dtype, and an int beyond float64. Floats are not checked against a float
    dtype.
    """
    if isinstance(value, complex):
        raise DTypeError(f"{op}: {value} does not fit {d.name}, which is real")
    if not isinstance(value, REAL):
        raise DTypeError(f"{op}: the value must be a number, got {type(value).__name__}")
    if d.kind in "fc":
        if isinstance(value, int) and not -BEYOND_FLOAT < value < BEYOND_FLOAT:
            raise ValueOverflowError(f"{op}: {shown(value)} does not fit {d.name}")
        return float(value)
    if d.kind == "b":
        return bool(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueOverflowError(f"{op}: {value} does not fit {d.name}")
    if not d.min <= int(value) <= d.max:
        raise ValueOverflowError(f"{op}: {shown(value)} does not fit {d.name} ({d.min}..{d.max})")
    return int(value)


def get_default_dtype() -> DType:
    """Return the dtype of tensors from Python floats and of `zeros`, `ones`, ...; first float32.

    >>> import dovetail as dt
    >>> dt.get_default_dtype()
    dovetail.float32
    """
    return default_dtype


def set_default_dtype(dtype: DTypeLike) -> DType:
    """Set the dtype of Python's floats in this process, float32 or float64, and return it.

    This is the dtype of `zeros`, `ones`, `linspace`, `dt.random`, ... without `dtype=`, of
    `asarray([1.5])` and of `dtype=float`; complex numbers get parts of this dtype. It applies to
    the process, as the default device does. Results of ops of integers, such as their mean, stay
    float32, and a number next to a tensor takes the tensor's dtype.
    Dtypes: float32 and float64.
    Raises: DTypeError for another dtype.

    >>> import dovetail as dt
    >>> dt.set_default_dtype(dt.float64)
    dovetail.float64
    >>> dt.zeros(2).dtype, dt.asarray(1j).dtype
    (dovetail.float64, dovetail.complex128)
    >>> dt.set_default_dtype(dt.float32)
    dovetail.float32
    """
    global default_dtype
    wanted = any_dtype("set_default_dtype", dtype)
    if wanted not in (D.float32, D.float64):
        raise DTypeError(
            f"set_default_dtype: dtype must be float32 or float64, got {wanted.name}; "
            "pass others as dtype="
        )
    default_dtype = wanted
    D.set_python_float(wanted)
    for forget in default_dtype_listeners:
        forget()
    return wanted


def names_dtype(name: str) -> bool:
    """Return True if a word is the name of a dtype, built in or from a plugin."""
    return name in D.BY_NAME or dtype_plugins.find_by_name(name) is not None


def cast(x: Tensor, target_dtype: DType | None) -> Tensor:
    """Return the tensor as another dtype; itself if it has that dtype or `target_dtype` is None."""
    return (
        x if target_dtype is None or target_dtype is x.dtype else apply(ASTYPE, (x,), target_dtype)
    )


def move(x: Tensor, target: Device, non_blocking: bool = False) -> Tensor:
    """Return the tensor on another device: itself if it is there, else a copy through the host."""
    if x.device is target:
        return x
    if not is_strided(x):
        return dispatch("to_device", "to", (x,), x, target)
    batched = tracer_api.call_batched(lambda t: [move(t, target, non_blocking)], (x,))
    if batched is not None:
        batched[0]._expr.tape = tape_of(TO_DEVICE, (x._expr,), batched[0]._expr.spec, None)
        return batched[0]
    queued = queue_move(x, target) if non_blocking else None
    if queued is not None:
        queued._expr.tape = tape_of(TO_DEVICE, (x._expr,), queued._expr.spec, None)
        return queued
    if x.dtype.__numpy_dtype__ is None:
        return cast(move(cast(x, x.dtype.compute), target), x.dtype)
    result = from_host(printable_values(x), x.dtype, target)
    result._expr.tape = tape_of(TO_DEVICE, (x._expr,), result._expr.spec, None)
    return result


def device_supporting(d: DType, device_like: DeviceLike = None) -> Device:
    """Return the device if it supports dtype `d`, else "cpu", or "reference" if that is missing.

    A function that needs float64 for operands of other dtypes computes on this device, so that its
    bits are the same on devices that have no float64.
    """
    target = device_named(device_like)
    can = opened(target).backend.info.capabilities
    has_dtype = d.part in can.dtypes and (can.float64 or d.part is not D.float64)
    return target if has_dtype else device_named(callbacks.default_device_type())


def move_as(x: Tensor, d: DType, target: Device, non_blocking: bool = False) -> Tensor:
    """Return the tensor as dtype `d` on a device; the smaller of the two dtypes is moved.

    If one of the devices lacks the other one's dtype, the cast is on the device that has both.
    """
    if not isinstance(x, Tensor):  # a number, which a function of NumPy's names returned
        return move(cast(x, d), target, non_blocking)
    spec: Any = x._expr.spec if is_strided(x) else x  # attributes of an array may be NumPy's
    home, dtype = spec.device, spec.dtype
    if home is target:
        return cast(x, d)
    is_smaller = d.itemsize <= dtype.itemsize and device_supporting(d, home) is home
    if is_smaller or device_supporting(dtype, target) is not target:
        return move(cast(x, d), target, non_blocking)
    return cast(move(x, target, non_blocking), d)


@overload
def move_to_supporting_device(op: str, d: DType, *operands: Tensor) -> tuple[Tensor, ...]: ...
@overload
def move_to_supporting_device(op: str, d: DType, *operands: object) -> tuple[Any, ...]: ...
def move_to_supporting_device(op: str, d: DType, *operands: object) -> tuple[Any, ...]:
    """Return the operands with tensors on a device that supports dtype `d`: their own if it does.

    A function that computes in float64 and returns another dtype takes its operands from here, and
    moves its result to the device of its first operand.
    Raises: DeviceError for tensors of several devices, if they are moved.
    """
    home = device_of(operands)
    wide = device_supporting(d, home)
    if wide is home:
        return operands
    require_same_device(op, [x for x in operands if isinstance(x, Tensor)])
    return tuple([move(x, wide) if isinstance(x, Tensor) else x for x in operands])


def device_of(operands: Sequence[object]) -> Device:
    """Return the device of the first tensor among operands, of which one is a tensor."""
    for x in operands:  # three times as fast as `next` of a generator
        if isinstance(x, Tensor):
            return x.device
    raise InternalError("device_of: expected a tensor among the operands")


def require_same_device(op: str, tensors: Sequence[Tensor]) -> None:
    """Raise DeviceError for tensors of several devices, ArgumentError for none."""
    if not tensors:
        raise ArgumentError(f"{op}: expected at least one tensor, got none")
    if len({a.device for a in tensors}) > 1:
        names = " and ".join(sorted({str(a.device) for a in tensors}))
        raise DeviceError(f"{op}: tensors are on {names}; move them with x.to(device)")


@public(method=True, wrap=False, compiled=partial(accelerate, work=cast_plain, count=2))
def astype(
    x: Tensor = MISSING,
    dtype: DTypeLike = MISSING,
    /,
    *more: object,
    copy: bool = True,
    device: DeviceLike = None,
    **theirs: object,
) -> Tensor:
    """Return the elements of `x` cast to another dtype, on `device` if one is given.

    - `dtype`: the new dtype.
    - `copy`: False returns `x` itself if nothing changes.
    - `device`: a device to move to as well; None stays.

    Shapes: any; the result has the same.
    Dtypes: all. A float to an integer is truncated and saturates at the integer's range; NaN is
    then 0. An integer to another integer dtype wraps; to a float it rounds once, to nearest. A
    complex number becomes bool or complex, never real: see `dt.real`, `dt.imag`, `dt.abs`. The name
    of a plugin's block format ("int4_32") quantises: see docs/adding-a-dtype.md.
    Gradient: flows between floats and complex numbers.
    Raises: DTypeError, also for complex to real; DeviceError.
    See also: `Tensor.to`, `can_cast`, `Tensor.view`.

    >>> import dovetail as dt
    >>> dt.astype(dt.asarray([1.7, -300.0]), dt.uint8).tolist()
    [1, 0]
    """
    if more or theirs or dtype is MISSING:
        return rebind_keywords(astype, locals())
    required("astype", x)
    if isinstance(dtype, str) and dtype not in D.BY_NAME:
        blocks = dtype_plugins.blocks(dtype)
        if blocks is not None:
            quantised: Tensor = blocks.quantise(x)
            return quantised if device is None else move(quantised, device_named(device, "astype"))
    want = any_dtype("astype", dtype)
    target = x.device if device is None else device_named(device, "astype")
    result = move_as(x, want, target)
    return apply(COPY, (x,)) if flag("astype", copy, "copy") and result is x else result


@public(method=True, wrap=False)
def to(
    x: Tensor,
    /,
    *wanted: Tensor | DTypeLike | DeviceLike,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Tensor:
    """Return `x` on a device, in a dtype, or both; `x` itself if nothing changes.

    A read of either tensor waits for the copy, but memory shared with NumPy must not be changed
    before the copy is done.

    - `wanted`: devices, dtypes, or a tensor that has both, in any order.
    - `dtype`, `device`: the same by keyword.
    - `copy`: True always copies.
    - `non_blocking`: True copies between the host and a device while the host goes on; a copy to
      the device needs `x.pin_memory()`.

    Shapes: any; the result has the same.
    Dtypes: all, as for `dt.astype`.
    Raises: DTypeError, DeviceError, UnavailableError, OutOfMemoryError.
    See also: `astype`, `Tensor.numpy`, `pin_memory`.

    >>> import dovetail as dt
    >>> dt.ones(2).to(dt.int8).dtype
    dovetail.int8
    """
    required("to", x)
    for w in wanted:
        if isinstance(w, Tensor):
            dtype, device = w.dtype, w.device
        elif isinstance(w, DType | type | np.dtype) or (isinstance(w, str) and names_dtype(w)):
            dtype = w
        else:
            device = w
    want = x.dtype if dtype is None else any_dtype("to", dtype)
    target = x.device if device is None else device_named(device, "to")
    result = move_as(x, want, target, flag("to", non_blocking, "non_blocking"))
    return apply(COPY, (x,)) if flag("to", copy, "copy") and result is x else result


@public(widen=False)
def can_cast(from_: Tensor | DTypeLike, to: DTypeLike, /) -> bool:
    """Return True if promotion can turn one dtype into another and loses no kind of number.

    Integers can be cast to every float, although digits may be lost.

    - `from_`: a tensor or a dtype.
    - `to`: a dtype.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError for a value that is not a dtype.
    See also: `result_type`, `isdtype`, `astype`.

    >>> import dovetail as dt
    >>> dt.can_cast(dt.int8, dt.int16), dt.can_cast(dt.float32, dt.int8)
    (True, False)
    """
    source, target = _dtype_of("can_cast", from_), dtype(to, "can_cast")
    try:
        return D.promote(source, target) is target
    except DTypeError:
        return False


def result_type(*operands: Tensor | DTypeLike | Scalar) -> DType:
    """Return the dtype to which tensors, dtypes and Python numbers promote.

    A number can change only the kind of the result: bool, integer, float, complex.

    - `operands`: tensors, arrays, dtypes and Python numbers.

    Shapes: any.
    Dtypes: all, by the promotion rules of the Array API and those of docs/numerics.md.
    Raises: DTypeError if no dtype holds both, ArgumentError if there are only numbers.
    See also: `can_cast`, `isdtype`.

    >>> import dovetail as dt
    >>> dt.result_type(dt.int8, dt.int16, 1.5)
    dovetail.float32
    """
    kinds = [
        _dtype_of("result_type", v)
        if isinstance(v, np.generic) or not isinstance(v, PYTHON_NUMBERS)
        else type(v)
        for v in operands
    ]
    if not any(isinstance(k, DType) for k in kinds):
        raise ArgumentError("result_type: expected at least one tensor or dtype, got only numbers")
    return common("result_type", kinds, allowed="biufc")


def _dtype_of(op: str, v: Tensor | np.ndarray | np.generic | DTypeLike) -> DType:
    """Return the dtype of a tensor or array, or the one that a name or class describes."""
    return dtype(v.dtype, op) if isinstance(v, Tensor | np.ndarray | np.generic) else dtype(v, op)


def promote_operands(op: str, *args: object) -> tuple[Tensor, ...]:
    """Return operands as tensors of the dtype to which they promote.

    At least one operand is a tensor. A number becomes a tensor of the promoted dtype, with all its
    digits. Raises: DTypeError, DeviceError, ValueOverflowError.
    """
    values = convert_operands(op, *args)
    d = result_type(*values)
    return tuple([as_dtype(op, x, d, values) for x in values])


def as_dtype(op: str, x: Tensor | Scalar, d: DType, tensors: Sequence[object]) -> Tensor:
    """Return a tensor or a number as dtype `d`, on the device of the tensors in `tensors`."""
    if isinstance(x, Tensor):
        return cast(x, d)
    return create_tensor(value_node(op, x, d, device_of(tensors)))


def working_float(d: DType) -> DType:
    """Return the dtype in which a composed function computes, before it rounds its result once.

    Integers whose digits do not fit float32 are computed in float64.
    """
    if d.kind in "fc":
        return d.compute
    return D.float64 if d.itemsize > 2 else D.float32


class Finfo(NamedTuple):
    """The limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """Return `smallest_normal` under PyTorch's name, which is also NumPy's older one."""
        return self.smallest_normal

    @property
    def resolution(self) -> float:
        """Return the smallest power of ten that is not less than `eps`."""
        return float(f"1e{math.ceil(math.log10(self.eps))}")

    @property
    def precision(self) -> int:
        """Return the number of decimal digits that are exact."""
        return -math.ceil(math.log10(self.eps))

    @property
    def epsneg(self) -> float:
        """Return the distance of 1 from the next smaller number: half of `eps`."""
        return self.eps / 2

    @property
    def smallest_subnormal(self) -> float:
        """Return the smallest number above 0, in IEEE 754's formats."""
        return self.smallest_normal * self.eps

    def __getattr__(self, name: str) -> NoReturn:
        raise hints.missing_attribute(self, name)


class Iinfo(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType

    def __getattr__(self, name: str) -> NoReturn:
        raise hints.missing_attribute(self, name)


@public(widen=False)
def finfo(type: Tensor | DTypeLike, /) -> Finfo:
    """Return the limits of a floating-point dtype: bits, eps, max, min, smallest_normal, dtype.

    - `type`: a dtype, or a tensor of it.

    Shapes: any.
    Dtypes: floats; a complex dtype gives the limits of its parts.
    Raises: DTypeError for others.

    >>> import dovetail as dt
    >>> dt.finfo(dt.float16).max
    65504.0
    """
    d = _dtype_of("finfo", type)
    d = d.part
    if d not in D.FORMATS:
        raise DTypeError(
            f"finfo: expected a floating-point dtype, got {d.name}; use dt.iinfo for integers"
        )
    f = D.FORMATS[d]
    return Finfo(d.bits, 2.0 ** (1 - f.digits), f.max, -f.max, f.smallest_normal, d)


@public(widen=False)
def iinfo(type: Tensor | DTypeLike, /) -> Iinfo:
    """Return the limits of an integer dtype: bits, max, min, dtype.

    - `type`: a dtype, or a tensor of it.

    Shapes: any.
    Dtypes: integers.
    Raises: DTypeError for others.

    >>> import dovetail as dt
    >>> dt.iinfo(dt.int8).max
    127
    """
    d = _dtype_of("iinfo", type)
    if not d.is_integer:
        raise DTypeError(f"iinfo: expected an integer dtype, got {d.name}; use dt.finfo for floats")
    return Iinfo(d.bits, d.max, d.min, d)


KINDS = {  # as in `DType.kind`
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@public(widen=False)
def isdtype(dtype: DTypeLike, kind: Kind) -> bool:
    """Return True if a dtype is of a kind.

    - `dtype`: the dtype that is asked about.
    - `kind`: a dtype; "bool", "signed integer", "unsigned integer", "integral", "real floating",
      "complex floating" or "numeric"; or a tuple of these.

    Dtypes: all.
    Raises: ArgumentError for an unknown kind, DTypeError.

    >>> import dovetail as dt
    >>> dt.isdtype(dt.int8, "integral"), dt.isdtype(dt.int8, ("bool", dt.float32))
    (True, False)
    """
    d = D.dtype(dtype, "isdtype")
    if isinstance(kind, tuple):
        return any(isdtype(d, k) for k in kind)
    if isinstance(kind, str) and kind in KINDS:
        return d.kind in KINDS[kind]
    if isinstance(kind, str) and not names_dtype(kind):
        raise ArgumentError(f"isdtype: unknown kind {shown(kind)}; known: {', '.join(KINDS)}")
    return d is D.dtype(kind, "isdtype")
