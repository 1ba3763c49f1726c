"""Reads and writes at indices that the host does at once: `x[places]`, `x[mask] = y`, `x[1:5] = y`.

To plan and launch a kernel for a few elements takes ten times as long. The compiled form
(`host_index.pyx`) copies elements between tensors in memory; in pure Python the kernels do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..device_class import Device
from ..dtypes import DType
from ..graph.expr import Expr
from .tensor import Tensor

ELEMENTS_MAX = 1 << 14  # elements that the host copies faster than a kernel
MASK_MAX = 1 << 15  # elements of a mask that the host reads


def gather(x: Tensor, key: object) -> Tensor | None:
    """Return a copy of the elements at a key with index arrays, or None for the general path.

    The key has integers, slices, None, `...`, and at least one list of ints, tensor of int64 or
    int32, or mask. None is returned for more than ELEMENTS_MAX elements, for tensors with a
    gradient, where a tracer or a profile must see the read, and for an index out of range.
    """
    return None


def scatter(x: Tensor, key: object, value: Tensor, address: int) -> bool:
    """Write a value of the same dtype to the elements at a key; return False for the general path.

    The key is as in `gather`; of several values for one element the last one stays.

    - `address`: the host address of x's first element.
    """
    return False


def copy_elements(part: Expr, value: Tensor) -> bool:
    """Copy a tensor in memory, broadcast, into a leaf of the same dtype; return True if done.

    The caller has checked that the host may write to the leaf.
    """
    return False


def copy_tensor(x: Tensor, flat: bool = False) -> Tensor | None:
    """Return a dense copy of a small tensor in memory; None if the caller must record a copy.

    - `flat`: the copy has one dimension.
    """
    return None


def stack_rows(rows: list[Tensor]) -> Tensor | None:
    """Return tensors of one spec, in memory, stacked along a new first axis; None for others."""
    return None


def concat(tensors: Sequence[Tensor], axis: int) -> Tensor | None:
    """Return small tensors of one dtype, joined along an axis; None for the general path."""
    return None


def create_filled(
    kind: type[Tensor], shape: object, dtype: DType | None, device: Device, value: object
) -> Tensor | None:
    """Return a small new tensor of a class, filled with a number; None for the general path.

    - `shape`: an int or a tuple of ints; others, and negative ones, are for the general path.
    """
    return None


def create_range(
    kind: type[Tensor], ends: tuple[object, ...], dtype: DType, device: Device
) -> Tensor | None:
    """Return the int64 tensor `range(*ends)` if it is small, or None for the general path."""
    return None


def create_from_host(
    kind: type[Tensor], values: np.ndarray, dtype: DType, device: Device
) -> Tensor | None:
    """Return a tensor of a class with the values of NumPy's array; None for the general path."""
    return None


def create_from_numbers(
    kind: type[Tensor], values: Sequence[object], dtype: DType | None, device: Device
) -> Tensor | None:
    """Return a tensor of a class with the numbers of a list, or of lists of one length.

    None is for the general path: other objects than ints and floats, and their subclasses of NumPy.

    - `dtype`: float64, or None for that of NumPy's array of the numbers.
    """
    return None


def find_true(x: Tensor, raveled: bool) -> Any:
    """Return int64 vectors of the indices of elements other than 0, one per axis, or None.

    - `raveled`: the positions in C order as one vector. None is for the general path.
    """
    return None


def transpose(x: Tensor) -> Tensor | None:
    """Return a view of a tensor in memory with its axes reversed, or None for the general path."""
    return None


def diagonal_view(x: Tensor, k: int) -> Tensor | None:
    """Return a view of diagonal `k` of a matrix in memory, or None for the general path."""
    return None
