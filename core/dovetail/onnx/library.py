"""The lazily imported `onnx` package, and the dtypes of its element types."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import install_command

Proto: TypeAlias = Any  # a protobuf message; the classes are built at run time

# Keys are values of `TensorProto.DataType`, which the format fixes.
DTYPES: dict[int, dt.DType] = {
    1: dt.float32, 2: dt.uint8, 3: dt.int8, 4: dt.uint16, 5: dt.int16, 6: dt.int32, 7: dt.int64,
    9: dt.bool, 10: dt.float16, 11: dt.float64, 12: dt.uint32, 13: dt.uint64, 14: dt.complex64,
    15: dt.complex128, 16: dt.bfloat16,
}  # fmt: skip
ELEMENTS = {d: n for n, d in DTYPES.items()}
UNSUPPORTED_ELEMENT_NAMES = {
    8: "string",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}


def import_onnx(caller: str = "onnx.load") -> Any:
    """Import and return the module `onnx`. Raises: UnavailableError if it is not installed."""
    try:
        import onnx
    except ImportError:
        raise dt.UnavailableError(
            f"{caller}: the format needs the package onnx: "
            f"{install_command('dovetail-tensor[onnx]')}"
        ) from None
    return onnx


def dtype_of(element: int, where: str) -> dt.DType:
    """Return the dtype of an element type. Raises: DTypeError, which names `where`."""
    dtype = DTYPES.get(element)
    if dtype is None:
        name = UNSUPPORTED_ELEMENT_NAMES.get(element, f"the element type {element}")
        supported = ", ".join(d.name for d in DTYPES.values())
        raise dt.DTypeError(
            f"onnx.load: {where} has {name}, which dovetail does not support; supported are "
            f"{supported}"
        )
    return dtype


def numpy_dtype(d: dt.DType) -> Any:
    """Return the NumPy dtype of the same bits; for bfloat16 that of `ml_dtypes`."""
    if d is dt.bfloat16:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(d.__numpy_dtype__)


def array_of(x: dt.Tensor) -> np.ndarray:
    """Wait for a tensor of any dtype, and return its values as a NumPy array."""
    return np.asarray(x.numpy())
