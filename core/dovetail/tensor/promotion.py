"""Operands of ops: numbers stay, arrays and lists become tensors on the other operands' device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

import numpy as np

from .. import callbacks
from ..argument_checks import foreign_type_name
from ..dtypes import complex64, complex128, float32, float64, int64, uint64
from ..engine import tracer_api
from ..engine.traced_numbers import TracedFloat
from ..errors import DeviceError, DovetailError, DTypeError, GradientError, ValueOverflowError
from .tensor import Tensor

PYTHON_NUMBERS = (bool, int, float, complex)
ARRAY_TYPES = (np.ndarray, list, tuple, range)  # operands that are neither tensors nor numbers

Scalar: TypeAlias = bool | int | float | complex
Array: TypeAlias = Tensor | np.ndarray | Sequence[object]  # an operand that has a shape
Operand: TypeAlias = Array | bool | int | float | complex

_WIDENED_DTYPES = {float32: float64, complex64: complex128}


def convert_operands(op: str, *arguments: object) -> tuple[Tensor | Scalar, ...]:
    """Convert arrays and lists to tensors, keep Python numbers; require one device in all.

    They are created on the device of a tensor among them, else on the default device. As in NumPy,
    a NumPy scalar has its dtype, and a Python number takes the dtype that it is used beside.

    Raises: DTypeError, DeviceError.
    """
    values = [number_of_traced(x, arguments) if type(x) is TracedFloat else x for x in arguments]
    converted = tuple([x if is_native_operand(x) else as_operand(op, x, arguments) for x in values])
    devices = {x.device for x in converted if isinstance(x, Tensor)}
    if not devices:
        return (number_as_tensor(op, converted[0]), *converted[1:])
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise DeviceError(f"{op}: operands are on {names}; move one with x.to(device)")
    return converted


def number_of_traced(x: TracedFloat, operands: Sequence[object]) -> float:
    """Return a float argument of a captured function as a float, to be used beside operands.

    A float64 of NumPy is read, and stays one, unless the tensors are of float64 or complex128.
    """
    precisions = {t.dtype.part for t in operands if isinstance(t, Tensor)}
    return x.to_argument() if type(x.value) is float or precisions == {float64} else x.read()


def is_native_operand(x: object) -> TypeGuard[Tensor | Scalar]:
    """Return True for an operand that stays as it is: a tensor or a Python number."""
    return isinstance(x, (Tensor, *PYTHON_NUMBERS)) and not isinstance(x, np.generic)


def plain_number(x: object) -> object:
    """Return a number of a subclass (an IntEnum, `x.size`) as a Python number; others unchanged."""
    for kind in PYTHON_NUMBERS:
        if isinstance(x, kind):
            return kind(x)  # type: ignore[arg-type]  # it is one of `kind`
    return x


def _conversion_code(x: object) -> str:
    """Return the code, for a message, that converts a foreign object to a tensor."""
    is_torch = type(x).__module__.partition(".")[0] == "torch"
    return "dt.asarray(x.detach())" if is_torch else "dt.asarray"


def as_operand(name: str, x: object, operands: Sequence[object]) -> Tensor:
    """Convert a list, NumPy array or scalar to a tensor on the device of the other operands.

    Without a tensor among them it is the default device. Raises: DTypeError for other types.
    """
    if isinstance(x, tracer_api.StandIn):
        return x.read()
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":
        x = np.asarray(x)
    if not isinstance(x, ARRAY_TYPES) or overrides_operators(x):
        raise DTypeError(
            f"{name}: expected tensors, NumPy arrays, lists or numbers, got "
            f"{foreign_type_name(x)}; use "
            + (
                "`x is None`"
                if x is None and name in ("equal", "not_equal")
                else _conversion_code(x)
            )
        )
    tensors = [a for a in operands if isinstance(a, Tensor)]
    device = tensors[0].device if tensors else None
    require_untaped(name, x)
    try:
        tensor: Tensor = callbacks.as_tensor(x, device=device)
        if isinstance(x, np.ndarray):
            return tensor
        if tensor.dtype in _WIDENED_DTYPES and any(t.dtype.part is float64 for t in tensors):
            return callbacks.as_tensor(
                x, dtype=_WIDENED_DTYPES[tensor.dtype], device=tensor.device
            )  # with all digits
        if tensor.dtype is int64 and any(t.dtype is uint64 for t in tensors):
            return _as_uint64(x, tensor)
        return tensor
    except DovetailError as error:
        raise type(error)(f"{name}: {error}") from None


def number_as_tensor(name: str, x: object) -> Tensor:
    """Return a number as a tensor on the default device; errors name the function `name`."""
    try:
        tensor: Tensor = callbacks.as_tensor(x)
    except DovetailError as error:
        raise type(error)(f"{name}: {error}") from None
    return tensor


def _as_uint64(x: object, tensor: Tensor) -> Tensor:
    """Convert a list of ints to uint64; return `tensor` unchanged if an int is negative."""
    try:
        return callbacks.as_tensor(x, dtype=uint64, device=tensor.device)
    except ValueOverflowError:
        return tensor


def as_tensors(name: str, *operands: object) -> tuple[Tensor, ...]:
    """Return operands as tensors; lists and arrays on the others' device, or the default one.

    Raises: DTypeError for a number or another object.
    """
    if {*map(type, operands)} == {Tensor}:
        return operands  # type: ignore[return-value]  # mypy does not infer it
    operands = tuple(map(tracer_api.read_stand_in, operands))
    for x in operands:
        if not isinstance(x, (Tensor, *ARRAY_TYPES)):
            raise DTypeError(
                f"{name}: expected tensors, NumPy arrays or lists, got {foreign_type_name(x)}; "
                f"use {_conversion_code(x)}"
            )
    return tuple([x if isinstance(x, Tensor) else as_operand(name, x, operands) for x in operands])


def require_untaped(name: str, x: object) -> None:
    """Raise GradientError if a nested list has a tensor that requires a gradient.

    Lists are read by value, so the gradient would be lost.
    """
    if isinstance(x, (list, tuple)):
        for part in x:
            require_untaped(name, part)
    elif isinstance(x, Tensor) and x.requires_grad:
        raise GradientError(
            f"{name}: a list must not contain a tensor that requires a gradient; use "
            "dt.stack or x.detach()"
        )


def overrides_operators(other: object) -> bool:
    """Return True if an operand's class overrides operators by NumPy's protocol.

    Such a class has an `__array_ufunc__` of its own, or None for it.
    """
    handler = getattr(type(other), "__array_ufunc__", _NUMPY_ARRAY_UFUNC)
    has_own = handler is not _NUMPY_ARRAY_UFUNC and type(other) is not TracedFloat
    return has_own and not isinstance(other, (Tensor, np.generic))


_NUMPY_ARRAY_UFUNC = np.ndarray.__array_ufunc__
