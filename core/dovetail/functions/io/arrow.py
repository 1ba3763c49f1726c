"""Export to Arrow: `pyarrow.array(x)`, `polars.Series(x)`.

Source: https://arrow.apache.org/docs/format/CDataInterface.html
"""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    addressof,
    c_char_p,
    c_int64,
    c_void_p,
    create_string_buffer,
    pointer,
    string_at,
)
from importlib import import_module
from typing import Any

import numpy as np

from ...declarations import public
from ...errors import DTypeError, ShapeError, ValueOverflowError
from ...tensor.host import host_array
from ...tensor.tensor import Tensor, strided
from .interop import address, capsule_pointer
from .release_callbacks import RELEASE_ARRAY, RELEASE_SCHEMA, live_exports, new_capsule

_FORMATS = {
    "bool": b"b",
    "int8": b"c",
    "uint8": b"C",
    "int16": b"s",
    "uint16": b"S",
    "int32": b"i",
    "uint32": b"I",
    "int64": b"l",
    "uint64": b"L",
    "float16": b"e",
    "float32": b"f",
    "float64": b"g",
}
_NULLABLE = 2  # the flag that all fields of other libraries have by default


class _Schema(Structure):  # ArrowSchema
    """Arrow's description of a type: its format, and the types of its children."""


class _Array(Structure):  # ArrowArray
    """Arrow's array: its length, buffers and children."""


_Schema._fields_ = (
    ("format", c_void_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("key", c_void_p),
)
_Array._fields_ = (
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", c_void_p),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("key", c_void_p),
)


@public(method=("__arrow_c_array__",), wrap=False)
def arrow_array(x: Tensor, requested_schema: object = None) -> tuple[object, object]:
    """Return Arrow's schema and array capsules, for `pyarrow.array`; share memory if possible.

    The array shares the memory if the host reaches it, the elements are contiguous and not bools;
    else it is a copy. It shows later writes to the tensor. Axes after the first become lists of a
    fixed size. A cast that `requested_schema` asks for is made if it keeps all values, or from
    float to float; else the consumer must cast.
    Raises: DTypeError for a dtype that Arrow lacks; ShapeError for a tensor without dimensions;
    ValueOverflowError for an integer that the requested float cannot represent.
    """
    dtype = strided("__arrow_c_array__", x).dtype
    own = dtype.__numpy_dtype__
    if own is None or own.name not in _FORMATS:
        way = "dt.stack([x.real, x.imag], axis=-1)" if dtype.kind == "c" else "x.astype(dt.float32)"
        raise DTypeError(f"__arrow_c_array__: Arrow has no type for {dtype.name}; use {way}")
    if not x.ndim:
        raise ShapeError(
            "__arrow_c_array__: expected at least 1 dimension, got (); use x.flatten()"
        )
    values = host_array(x, own)
    values = np.ascontiguousarray(values, _find_cast(values, requested_schema))
    data = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else values
    if not RELEASE_ARRAY:
        return _export_by_pyarrow(values, data)
    schema = _build_schema([*(b"+w:%d" % n for n in x.shape[1:]), _FORMATS[values.dtype.name]])
    array = _build_array(x.shape, data)
    return _wrap(schema, b"arrow_schema"), _wrap(array, b"arrow_array")


def _find_cast(values: np.ndarray, requested_schema: object) -> np.dtype | None:
    """Return the dtype of a requested schema if a cast is safe, else None.

    Raises: ValueOverflowError for an integer that is no float of the requested type.
    """
    if requested_schema is None:
        return None
    own = values.dtype
    schema = _Schema.from_address(capsule_pointer(id(requested_schema), b"arrow_schema"))
    while schema.n_children:
        schema = schema.children[0].contents
    form = string_at(schema.format)
    wanted = next((np.dtype(name) for name, f in _FORMATS.items() if f == form), own)
    if own.kind in "iu" and own.itemsize == 8 and wanted.kind == "f":  # NumPy calls it safe
        exact = 1 << (np.finfo(wanted).nmant + 1)  # each integer up to here is a float
        if not np.all((values <= exact) & (values >= -exact)):
            raise ValueOverflowError(
                f"__arrow_c_array__: not every {own.name} of the tensor is a {wanted.name}; "
                "use x.astype(dt.float64), which rounds"
            )
        return wanted
    return wanted if own.kind == wanted.kind == "f" or np.can_cast(own, wanted) else None


def _wrap(struct: Structure, name: bytes) -> object:
    """Return a capsule of a struct."""
    live_exports[addressof(struct)] = (struct,)
    return new_capsule(addressof(struct), name)


def _build_schema(formats: list[bytes], name: bytes = b"") -> _Schema:
    """Return the schema of nested formats, the outer ones first."""
    form = create_string_buffer(formats[0])
    inner = [_build_schema(formats[1:], b"item")] if formats[1:] else []
    children = (POINTER(_Schema) * 1)(*map(pointer, inner))
    key = addressof(form)
    live_exports[key] = (form, inner, children)
    return _Schema(key, name, None, _NULLABLE, len(inner), children, None, RELEASE_SCHEMA, key)


def _build_array(shape: tuple[int, ...], data: np.ndarray) -> _Array:
    """Return the array of a shape; the innermost child holds the data."""
    inner = [_build_array((shape[0] * shape[1], *shape[2:]), data)] if shape[1:] else []
    buffers = (c_void_p * 2)(None, None if inner else address(data))  # no mask of nulls
    children = (POINTER(_Array) * 1)(*map(pointer, inner))
    key = addressof(buffers)
    live_exports[key] = (buffers, inner, children, data)
    return _Array(
        shape[0], 0, 0, 2 - len(inner), len(inner), key, children, None, RELEASE_ARRAY, key
    )


def _export_by_pyarrow(values: np.ndarray, data: np.ndarray) -> tuple[object, object]:
    """Return the capsules of pyarrow, where dovetail is not compiled and has no C functions.

    Raises: ModuleNotFoundError without pyarrow.
    """
    try:
        arrow: Any = import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "__arrow_c_array__: without its compiled modules dovetail needs the package pyarrow; "
            "pass x.numpy()"
        ) from error
    kind = arrow.from_numpy_dtype(values.dtype)
    buffers = [None, arrow.py_buffer(data)]
    array = arrow.Array.from_buffers(kind, values.size, buffers)
    for n in reversed(values.shape[1:]):
        kind = arrow.list_(kind, n)
        length = len(array) // n if n else values.shape[0]
        array = arrow.Array.from_buffers(kind, length, [None], children=[array])
    capsules: tuple[object, object] = array.__arrow_c_array__()
    return capsules
