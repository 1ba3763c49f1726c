"""Tensor values of a model file, with claimed sizes checked before memory is allocated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import numpy as np

import dovetail as dt

from .library import Proto, dtype_of, numpy_dtype
from .limits import MemoryBudget, Reservation, size_of

# The field of values that are not raw bytes; other dtypes share `int32_data`.
_FIELDS = {
    dt.float32: "float_data",
    dt.complex64: "float_data",
    dt.float64: "double_data",
    dt.complex128: "double_data",
    dt.int64: "int64_data",
    dt.uint32: "uint64_data",
    dt.uint64: "uint64_data",
}
_PARTS = {dt.complex64: np.float32, dt.complex128: np.float64}
EXTERNAL = 1  # TensorProto.EXTERNAL


Budget: TypeAlias = MemoryBudget | Reservation


def values_of(t: Proto, folder: Path | None, limit: Budget) -> np.ndarray:
    """Return the array of a TensorProto, after its bytes are reserved in `limit`.

    `folder`: the folder of files that the model may refer to; None to allow none.
    Raises: DTypeError, ShapeError, ArgumentError, OutOfMemoryError, which name the tensor.
    """
    name = f"the tensor {t.name!r}"
    d = dtype_of(t.data_type, name)
    shape = tuple(int(n) for n in t.dims)
    if any(n < 0 for n in shape):
        raise dt.ShapeError(
            f"onnx.load: the sizes of {name} must not be negative, got shape {shape}"
        )
    nbytes = size_of(shape, d)
    if t.data_location == EXTERNAL:
        return _read_external(t, folder, name, nbytes, limit, d, shape)
    if t.HasField("raw_data"):
        _require_bytes(name, d, shape, nbytes, len(t.raw_data))
        limit.reserve(nbytes, name)
        return _from_bytes(t.raw_data, d, shape)
    return _from_numbers(t, name, d, shape, nbytes, limit)


def _require_bytes(
    name: str, d: dt.DType, shape: tuple[int, ...], expected: int, actual: int
) -> None:
    """Raise ShapeError if a tensor's data has another length than its shape needs."""
    if expected != actual:
        raise dt.ShapeError(
            f"onnx.load: {name} must have {expected} bytes for {d.name}{list(shape)}, got "
            f"{actual}; the file is damaged"
        )


def _from_bytes(raw: bytes, d: dt.DType, shape: tuple[int, ...]) -> np.ndarray:
    """Return little-endian bytes as an array in the host's byte order."""
    little = numpy_dtype(d)
    if little.byteorder in "=|" and little.kind != "V" and d is not dt.bfloat16:
        little = little.newbyteorder("<")
    array = np.frombuffer(raw, little).reshape(shape)
    if d is dt.bool:  # any nonzero byte is True
        array = np.frombuffer(raw, np.uint8).reshape(shape).astype(np.bool_)
    return array.astype(numpy_dtype(d))


def _from_numbers(
    t: Proto, name: str, d: dt.DType, shape: tuple[int, ...], nbytes: int, limit: Budget
) -> np.ndarray:
    """Reserve and return values of a typed field.

    Raises: ShapeError for another number of values, OutOfMemoryError beyond the limit.
    """
    numbers = getattr(t, _FIELDS.get(d, "int32_data"))
    count = nbytes // d.itemsize * (2 if d in _PARTS else 1)
    if len(numbers) != count:
        raise dt.ShapeError(
            f"onnx.load: {name} must have {count} numbers for {d.name}{list(shape)}, got "
            f"{len(numbers)}; the file is damaged"
        )
    limit.reserve(nbytes, name)
    if d in _PARTS:
        pairs: np.ndarray = np.asarray(numbers, _PARTS[d]).view(numpy_dtype(d))
        return pairs.reshape(shape)
    if d in (dt.float16, dt.bfloat16):  # `int32_data` has their bits
        bits = (np.asarray(numbers, np.int64) & 0xFFFF).astype(np.uint16)
        halves: np.ndarray = bits.view(numpy_dtype(d))
        return halves.reshape(shape)
    wide = np.float64 if d in (dt.float32, dt.float64) else None
    array = np.asarray(numbers, wide or (np.uint64 if "uint64" in _FIELDS.get(d, "") else np.int64))
    return array.astype(numpy_dtype(d)).reshape(shape)


# --- values in other files ------------------------------------------------------------------------


def _read_external(
    t: Proto,
    folder: Path | None,
    name: str,
    nbytes: int,
    limit: Budget,
    d: dt.DType,
    shape: tuple[int, ...],
) -> np.ndarray:
    """Read values from another file; reserve their bytes.

    Raises: ArgumentError for a file outside of the model's folder or that cannot be read,
    ShapeError for another number of bytes, OutOfMemoryError beyond the limit.
    """
    fields = {e.key: e.value for e in t.external_data}
    path = _resolve_path(folder, fields.get("location", ""), name)
    start = _parse_number(fields, "offset", 0, name)
    length = _parse_number(fields, "length", nbytes, name)
    _require_bytes(name, d, shape, nbytes, length)
    try:
        file_size = path.stat().st_size
        if start + length > file_size:
            raise dt.ShapeError(
                f"onnx.load: {name} is stored in bytes {start} to {start + length} of {path}, "
                f"which has only {file_size} bytes; the file is damaged"
            )
        limit.reserve(nbytes, name)
        with path.open("rb") as file:
            file.seek(start)
            return _from_bytes(file.read(length), d, shape)
    except OSError as error:
        raise dt.ArgumentError(
            f"onnx.load: cannot read {name} from {path}: {error.strerror}"
        ) from error


def _resolve_path(folder: Path | None, location: str, name: str) -> Path:
    """Return the path of a file in the model's folder. Raises: ArgumentError if it is not there."""
    if folder is None:
        raise dt.ArgumentError(
            f"onnx.load: {name} is stored in another file, {location!r}, and the model's folder "
            "is unknown; pass the model's path, or call onnx.load_external_data_for_model first"
        )
    model_folder = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(model_folder / location))
    if not location or Path(location).is_absolute() or model_folder not in path.parents:
        raise dt.ArgumentError(
            f"onnx.load: {name} must be stored in or below the model's folder {model_folder}, got "
            f"{location!r}"
        )
    if not path.is_file():
        raise dt.ArgumentError(f"onnx.load: {name} is stored in {path}, which does not exist")
    return path


def _parse_number(fields: dict[str, str], key: str, default: int, name: str) -> int:
    """Return a natural number of a text, or the default. Raises: ArgumentError for others."""
    text = fields.get(key, "")
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise dt.ArgumentError(
            f"onnx.load: the {key} of {name} must be a number, got {text[:40]!r}"
        )
    return int(text)
