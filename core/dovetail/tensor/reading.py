"""Reading one element of host memory: compiled (`reading.pyx`) without `ctypes` between."""

from __future__ import annotations

import ctypes
from typing import Any

_TYPES: dict[str, type[ctypes._SimpleCData[Any]]] = {
    "bool": ctypes.c_bool, "float32": ctypes.c_float, "float64": ctypes.c_double,
    "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
}  # fmt: skip


def element(dtype: str, address: int) -> bool | int | float | None:
    """The number of that dtype at an address; None for a dtype that C does not know."""
    read = _TYPES.get(dtype)
    if read is None:
        return None
    found: bool | int | float = read.from_address(address).value
    return found
