"""The host's memory, as backends meet it: addresses of bytes, and bytes and arrays at addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from ..dtypes import DType


def address_of(memory: memoryview) -> int:
    """Where the host keeps these bytes."""
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])


def bytes_at(address: int, nbytes: int) -> memoryview:
    """The bytes at an address, to be read and written."""
    return memoryview((ctypes.c_ubyte * nbytes).from_address(address)).cast("B")


class _Foreign:
    """Memory as NumPy's array interface shows it."""

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
    """An array over the host's memory; strides in elements."""
    return np.asarray(_Foreign(address, shape, strides, dtype))
