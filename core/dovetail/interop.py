"""Sharing memory with other libraries: DLPack both ways, NumPy arrays as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .device import Device
from .dtypes import DType
from .errors import NotYetError
from .tensor import Tensor


def adopt(a: np.ndarray[Any, Any], dtype: DType, device: Device) -> Tensor:
    """A tensor over the memory of a NumPy array."""
    raise NotYetError("adopt")


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of anything with DLPack."""
    raise NotYetError("from_dlpack")
