"""Reads of host memory: one element, or an array.

The compiled form (`host_read.pyx`) needs no `ctypes` and no dictionary.
"""

from __future__ import annotations

import ctypes
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


def element(dtype: str, address: int) -> bool | int | float | None:
    """Read the number of a dtype at a host address; return None for a dtype that C lacks."""
    read = _TYPES.get(dtype)
    if read is None:
        return None
    number: bool | int | float = read.from_address(address).value
    return number


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
