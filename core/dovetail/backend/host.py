"""Host memory for backends: addresses of bytes, and bytes and arrays at addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from ..dtypes import DType


def address_of(memory: memoryview) -> int:
    """Return the host address of a buffer's first byte.

    - `memory`: an object with the buffer protocol.
    """
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])


def bytes_at(address: int, nbytes: int) -> memoryview:
    """Return a writable view of host memory at an address, which the caller keeps alive.

    - `address`: the address of the first byte.
    - `nbytes`: the number of bytes.
    """
    return memoryview((ctypes.c_ubyte * nbytes).from_address(address)).cast("B")


class _Foreign:
    """A holder of NumPy's array interface for a range of memory."""

    def __init__(
        self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: DType
    ) -> None:
        numpy = np.dtype(dtype.__numpy_dtype__)
        self.__array_interface__ = {
            "data": (address, False),
            "shape": tuple(shape),
            "strides": tuple(s * dtype.itemsize for s in strides),
            "typestr": numpy.str,
            "version": 3,
        }


def array_at(
    address: int, shape: Sequence[int], strides: Sequence[int], dtype: DType
) -> np.ndarray:
    """Return a writable array over host memory at an address; strides in elements.

    - `address`: the address of the first element.
    - `strides`: the distance of neighbours along each axis, in elements.
    - `dtype`: a NumPy dtype.
    """
    return np.asarray(_Foreign(address, shape, strides, dtype))
