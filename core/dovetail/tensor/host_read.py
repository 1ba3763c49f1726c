"""Reads and writes of host memory: one element, or an array.

The compiled form (`host_read.pyx`) needs no `ctypes` and no dictionary.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

_TYPES: dict[str, type[ctypes._SimpleCData[Any]]] = {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
}

EXACT_INT_MAX = 1 << 53  # ints up to here are float64 exactly, so a cast to float32 rounds once


def element(dtype: str, address: int) -> bool | int | float | None:
    """Read the number of a dtype at a host address; return None for a dtype that C lacks."""
    read = _TYPES.get(dtype)
    if read is None:
        return None
    number: bool | int | float = read.from_address(address).value
    return number


def store_number(dtype: str, address: int, value: object) -> bool:
    """Store a bool, int or float at a host address; return False for others.

    Nothing is stored for a dtype that C lacks, a number of a higher kind than the dtype, and an int
    that the dtype may not hold exactly.
    """
    number = _TYPES.get(dtype)
    kind = type(value)
    if number is None or kind not in (float, int, bool):
        return False
    is_float = number in (ctypes.c_float, ctypes.c_double)
    if not is_float:
        if kind is float or (number is ctypes.c_bool and kind is int):
            return False
        if number(value).value != value:
            return False
    elif kind is int and abs(value) > EXACT_INT_MAX:  # type: ignore[arg-type]  # it is an int
        return False
    number.from_address(address).value = value
    return True


def store_scalar(dtype: str, address: int, itemsize: int, value: object) -> bool:
    """Store a number or a scalar of NumPy at an address; False for what `store_number` refuses.

    False is returned for dates and spans of time.
    A scalar of the dtype itself is stored without a change, also if it is complex.
    """
    if not isinstance(value, np.generic):
        return store_number(dtype, address, value)
    if value.dtype.kind in "mM":  # the item of a date may be an int
        return False
    if value.dtype.name == dtype:
        ctypes.memmove(address, value.tobytes(), itemsize)
        return True
    return store_number(dtype, address, value.item())


def fill_numbers(
    dtype: str, address: int, value: object, count: int, step: int, itemsize: int
) -> bool:
    """Store a number `count` times, `step` bytes apart; False for what `store_number` refuses."""
    unused = ctypes.create_string_buffer(16)  # of no elements: the value is checked
    if not store_number(dtype, address if count else ctypes.addressof(unused), value):
        return False
    for i in range(1, count):
        ctypes.memmove(address + i * step, address, itemsize)
    return True


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
_INTEGER_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "remainder": operator.mod,
    "floor_divide": operator.floordiv,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
_UPDATED = ("float32", "float64", "int32", "int64")


def update_number(op: str, dtype: str, address: int, other: object) -> bool:
    """Apply an arithmetic op to the number at an address and another one; return False for others.

    Nothing is stored for ops and dtypes without such a C operator, a number that `store_number`
    refuses, a divisor of integers below 1, and a result that is NaN, whose bits may differ between
    machines.
    """
    if dtype not in _UPDATED:
        return False
    number = round_number(dtype, other)
    operate = _OPERATORS.get(op)
    if dtype[0] == "i" and (operate is None or op == "divide"):
        operate = _INTEGER_OPERATORS.get(op)
        if op in ("remainder", "floor_divide") and (number is None or number <= 0):
            return False
    if number is None or operate is None:
        return False
    at = _TYPES[dtype].from_address(address)
    try:
        result = operate(at.value, number)  # float32: a second rounding is exact
    except ZeroDivisionError:
        return False
    if result != result:
        return False
    at.value = result
    return True


def round_number(dtype: str, value: object) -> bool | int | float | None:
    """Return a number as one of a dtype, rounded; None for what `store_number` refuses."""
    kind = _TYPES.get(dtype)
    if kind is None:
        return None
    number = kind()
    return number.value if store_number(dtype, ctypes.addressof(number), value) else None


def compute_number(op: str, dtype: str, x: object, y: object) -> bool | int | float | None:
    """Return the result of an op of two numbers in a dtype: a number, or a bool of a comparison.

    None is returned for what `update_number` and `store_number` refuse.
    """
    a, b = round_number(dtype, x), round_number(dtype, y)
    if a is None or b is None or dtype not in _UPDATED:
        return None
    compare = _COMPARISONS.get(op)
    if compare is not None:
        return compare(a, b)
    number = _TYPES[dtype](a)
    address = ctypes.addressof(number)
    return number.value if update_number(op, dtype, address, b) else None


def copy_bytes(target: int, source: int, nbytes: int) -> None:
    """Copy bytes between two host addresses."""
    ctypes.memmove(target, source, nbytes)


class HostMemory:
    """A buffer over host memory; arrays over it keep its owner alive."""

    def __init__(self, address: int, nbytes: int, owner: object, writable: bool) -> None:
        self.__array_interface__ = {
            "data": (address, not writable),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }
        self.owner = owner


def array_over(
    memory: HostMemory, shape: tuple[int, ...], dtype: np.dtype, start: int, strides: Any
) -> np.ndarray:
    """Return an array over the memory from byte `start`; strides in bytes, None: contiguous."""
    return np.ndarray(shape, dtype, np.asarray(memory).view(dtype), start, strides)


def copy_array(address: int, values: np.ndarray) -> bool:
    """Copy a C-contiguous array to a host address; return False, with nothing done, for others."""
    if not values.flags.c_contiguous:
        return False
    ctypes.memmove(address, values.ctypes.data, values.nbytes)
    return True
