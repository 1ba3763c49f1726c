"""`np.lib.stride_tricks`: views with other shapes and strides; strides are in bytes."""

from __future__ import annotations

from typing import Any

import numpy as _host

from ...functions.shape.manipulation import as_strided as _as_strided
from ...tensor.tensor import Tensor
from ..adapted import broadcast_to as broadcast_to
from ..calls import as_ndarray, as_result, find_function
from ..creation import asarray

__all__ = [
    "as_strided",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "sliding_window_view",
]


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Any:
    """Return a view with this shape and these strides in bytes. Raises: as `dt.as_strided`.

    `writeable` changes nothing: only memory is read-only, never one view of it.
    """
    tensor: Tensor = as_ndarray(asarray(x))
    size = tensor.itemsize
    sizes = tensor.shape if shape is None else tuple(shape)
    steps = tensor.stride() if strides is None else tuple(s // size for s in strides)
    return as_result(_as_strided(tensor, sizes, steps, tensor.storage_offset()))


broadcast_arrays = find_function(_host.broadcast_arrays)
broadcast_shapes = find_function(_host.broadcast_shapes)
sliding_window_view = find_function(_host.lib.stride_tricks.sliding_window_view)
