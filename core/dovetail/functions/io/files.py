"""Tensors in files: `save` and `load`, in formats that others read, too.

What is loaded runs nothing: formats are data, and arrays of Python objects are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import dtypes as D
from ...arguments import flag, named, refused
from ...arguments import path as file_name
from ...arguments import shown as as_text
from ...device_class import Device, usable
from ...dtypes import DType
from ...errors import ArgumentError, ArgumentTypeError, DovetailError, DTypeError, SharingError
from ...layout import Shape, contiguous_strides
from ...loops.formats import INFOS
from ...tensor.host import from_host, host_array
from ...tensor.tensor import Tensor, strided
from ..creation.from_values import asarray
from ..datatypes import DeviceLike
from ..shape.copies import contiguous
from .interop import address, share
from .progress import bar

__all__ = ["load", "save"]

Arrays: TypeAlias = dict[str, np.ndarray]


@named(widen=False)
def save(file: str | os.PathLike[str], tensors: Mapping[str, Tensor], /) -> None:
    """Writes named tensors to a file, in the format that its name ends in; returns nothing.

    `file`: *.safetensors (by the library of that name), *.npz, or *.zarr (by the library zarr). One
    that is there is replaced when the new one is whole; a folder *.zarr at once. `tensors`: a dict.
    Shapes: any.
    Dtypes: all in safetensors but complex128; elsewhere all but bfloat16.
    Raises: ArgumentError for another ending, DTypeError, LayoutError, ArgumentTypeError, OSError;
    ModuleNotFoundError without the library.
    Source: https://huggingface.co/docs/safetensors, https://zarr.readthedocs.io

    >>> import os, tempfile
    >>> import dovetail as dt
    >>> file = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> dt.save(file, {"w": dt.ones((2, 3), device="reference")})
    >>> dt.load(file, device="reference")["w"].shape
    (2, 3)
    """
    if isinstance(file, Mapping | Tensor):
        raise ArgumentTypeError("save: the name comes first: save(file, tensors)")
    path, form = _form("save", file)
    if not isinstance(tensors, Mapping):
        raise refused("save", "tensors", "a dict of named tensors", tensors)
    for name, x in tensors.items():
        if not isinstance(name, str):
            raise ArgumentError(f"save: tensors have names, which are strings, not {as_text(name)}")
        strided("save", x)
    form.save(path, {name: contiguous(x) for name, x in tensors.items()})


@named(widen=False)
def load(
    file: str | os.PathLike[str], /, *, device: DeviceLike = None, copy: bool | None = None
) -> dict[str, Tensor]:
    """The named tensors in a file that `save`, or somebody else, has written.

    `file`: as for `save`. What lies in a safetensors file is mapped where the device uses the
    host's memory: it is read when it is looked at, and writes change the tensor, not the file,
    which is to stay as it is meanwhile. `copy`: True reads it at once; False fails where it would
    have to.
    Shapes: those of the file.
    Dtypes: those of the file, of either byte order.
    Raises: ArgumentError for another ending or a damaged file; DTypeError; SharingError (`copy`);
    OSError for one that cannot be opened; ModuleNotFoundError without the library.

    >>> import os, tempfile
    >>> import dovetail as dt
    >>> file = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> dt.save(file, {"w": dt.ones(2, device="reference"), "b": dt.zeros(1, device="reference")})
    >>> sorted(dt.load(file, device="reference"))
    ['b', 'w']
    """
    path, form = _form("load", file)
    copy = copy if copy is None else flag("load", copy, "copy")
    return form.load(path, usable(device, "load"), copy)


# --- formats -------------------------------------------------------------------------------------


class Form(NamedTuple):
    """A format of files."""

    save: Callable[[Path, dict[str, Tensor]], None]
    load: Callable[[Path, Device, bool | None], dict[str, Tensor]]


_PYTORCH = "; PyTorch's own files are read by PyTorch: let it write safetensors"
_ELSEWHERE = {  # formats that others read
    ".npy": "; read it by NumPy: dt.asarray(numpy.load(file))",
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".bin"), _PYTORCH),
}


def _form(op: str, file: object) -> tuple[Path, Form]:
    path = Path(os.fsdecode(file_name(op, file, "file")))
    found = _FORMS.get(path.suffix.lower())
    if found is None:
        more = _ELSEWHERE.get(path.suffix.lower(), "") if op == "load" else ""
        raise ArgumentError(f"{op}: {path.name!r} does not end in {' or '.join(_FORMS)}{more}")
    return path, found


def _library(name: str) -> Any:  # libraries of others
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'*.{name} files need the package {name}: pip install "dovetail[files]"'
        ) from error


def _replaced(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file, and then gives it its name: what is mapped of one before stays as it was."""
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        beside.touch()
    except OSError as error:  # it says what keeps it from being written, of the name that was given
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        write(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _damaged(path: Path, why: object) -> ArgumentError:
    text = why if isinstance(why, str) else f"{type(why).__name__}: {why}".partition("\n")[0]
    return ArgumentError(f"load: {path} is no such file of tensors, or damaged ({text})")


def _array(name: str, x: Tensor, form: str) -> np.ndarray:
    dtype = x.dtype.__numpy_dtype__
    if dtype is None:
        raise DTypeError(
            f"save: {name!r} is {x.dtype.name}, which {form} lacks: write a *.safetensors, or "
            "x.astype(dt.float32)"
        )
    return host_array(x, dtype)


def _tensors(path: Path, held: Arrays, device: Device, copy: bool | None) -> dict[str, Tensor]:
    if copy is False and held:
        raise SharingError(f"load: {path.name} is read by a copy, and copy=False forbids it")
    for name, a in held.items():
        if a.dtype.kind not in "biufc":
            raise _damaged(path, f"its {name!r} is of dtype {a.dtype}")
    return {name: asarray(a, device=device) for name, a in held.items()}


# --- safetensors ---------------------------------------------------------------------------------

_CODES = {
    "BOOL": D.bool_, "F16": D.float16, "BF16": D.bfloat16, "F32": D.float32, "F64": D.float64,
    "C64": D.complex64, **{f"{d.kind.upper()}{d.bits}": d for d in D.INTEGERS},
}  # fmt: skip


def _coded(code: str) -> DType | None:
    """The dtype that a file calls by this code, if need be one that a plugin brings."""
    if code in _CODES:
        return _CODES[code]
    D.load_plugins()
    theirs = ((d, info.safetensors) for d, info in INFOS.items())
    return next((d for d, names in theirs if names is not None and names[0] == code), None)


def _save_safetensors(path: Path, tensors: dict[str, Tensor]) -> None:
    library = _library("safetensors")
    if "__metadata__" in tensors:
        raise ArgumentError("save: in safetensors no tensor is named '__metadata__'")
    held, specs = [], {}
    for name, x in tensors.items():
        if x.dtype in INFOS and (known := INFOS[x.dtype].safetensors) is not None:
            called = known[1]
        elif x.dtype in _CODES.values():
            called = x.dtype.name
        else:
            wide = "*.npz" if x.dtype in D.BUILT_IN else "x.astype(dt.float32)"
            raise DTypeError(
                f"save: {name!r} is {x.dtype.name}, which safetensors lacks; see {wide}"
            )
        raw = host_array(x, np.dtype(f"V{x.itemsize}"))
        held.append(raw)  # until it is written
        specs[name] = library.TensorSpec(
            dtype=called, shape=x.shape, data_ptr=address(raw), data_len=raw.nbytes
        )
    try:
        _replaced(path, lambda beside: library.serialize_file(specs, beside))
    except library.SafetensorError as error:
        raise OSError(f"save: {path} cannot be written: {error}") from error


def _load_safetensors(path: Path, device: Device, copy: bool | None) -> dict[str, Tensor]:
    library = _library("safetensors")
    with path.open("rb"):  # what keeps it from being opened is an OSError
        pass
    try:  # it knows what lies where to be in the file, without gaps and overlaps
        with library.safe_open(path, framework="np"):
            pass
        raw = np.memmap(path, np.uint8, mode="c")
        start = 8 + int.from_bytes(raw[:8].tobytes(), "little")
        header = json.loads(raw[8:start].tobytes())
    except Exception as error:  # the library's, and of a file that changes meanwhile
        raise _damaged(path, error) from error
    found = {}
    with bar(f"loading {path.name}", raw.size - start) as done:
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            dtype, (low, high) = _coded(entry["dtype"]), entry["data_offsets"]
            if dtype is None:
                raise DTypeError(
                    f"load: {name!r} of {path} is {entry['dtype']}, which is no dtype here"
                )
            part = raw[start + low : start + high]
            found[name] = _mapped(name, part, dtype, tuple(entry["shape"]), device, copy)
            done(high - low)
    return found


def _mapped(
    name: str, part: np.ndarray, dtype: DType, shape: Shape, device: Device, copy: bool | None
) -> Tensor:
    """A tensor over a part of a mapped file, or of a copy."""
    if part.size and not copy and dtype is not D.bool_:
        strides = contiguous_strides(shape)
        found = share(part, address(part), shape, strides, dtype, device, False)
        if found is not None:
            return found
    if copy is False and part.size:
        raise SharingError(
            f"load: {device} cannot use {name!r} as it is, and copy=False forbids it"
        )
    if dtype is D.bool_:  # whose bytes are 0 and 1 here, whatever is in the file
        part = part != 0
    return from_host(part.view(f"V{dtype.itemsize}").reshape(shape), dtype, device)


# --- NumPy's -------------------------------------------------------------------------------------


def _save_npz(path: Path, tensors: dict[str, Tensor]) -> None:
    held: Arrays = {name: _array(name, x, ".npz") for name, x in tensors.items()}
    if "file" in held:
        raise ArgumentError("save: NumPy has no array named 'file' in an .npz; name it otherwise")
    _replaced(path, lambda beside: np.savez(beside, allow_pickle=False, **held))


def _load_npz(path: Path, device: Device, copy: bool | None) -> dict[str, Tensor]:
    with path.open("rb") as file:
        try:
            with (
                np.load(file, allow_pickle=False) as opened,
                bar(f"loading {path.name}", path.stat().st_size) as done,
            ):
                held = {}
                for name in opened.files:
                    held[name] = np.asarray(opened[name])
                    done(held[name].nbytes)
        except Exception as error:  # a dozen kinds: NumPy's, zipfile's, zlib's
            raise _damaged(path, error) from error
    return _tensors(path, held, device, copy)


# --- zarr ----------------------------------------------------------------------------------------

# What decodes bytes to numbers and does nothing else: a codec of Python objects runs what it reads.
_CODECS = {
    "bytes", "transpose", "sharding_indexed", "blosc", "bz2", "crc32", "crc32c", "delta", "gzip",
    "lz4", "lzma", "shuffle", "zlib", "zstd",
}  # fmt: skip


def _save_zarr(path: Path, tensors: dict[str, Tensor]) -> None:
    library = _library("zarr")
    held = {name: _array(name, x, "zarr") for name, x in tensors.items()}
    group = library.open_group(library.storage.LocalStore(path), mode="w")
    for name, a in held.items():
        try:
            group.create_array(name, data=a)
        except ValueError as error:
            raise ArgumentError(f"save: zarr refuses {name!r}: {error}") from error


def _load_zarr(path: Path, device: Device, copy: bool | None) -> dict[str, Tensor]:
    library = _library("zarr")
    os.scandir(path).close()  # what keeps it from being opened is an OSError
    held: Arrays = {}
    try:
        store = library.storage.LocalStore(path, read_only=True)
        members = library.open_group(store, mode="r").members(max_depth=None)
        arrays = {name: a for name, a in members if isinstance(a, library.Array)}
        with bar(f"loading {path.name}", sum(a.nbytes for a in arrays.values())) as done:
            for name, array in arrays.items():
                held[name] = _read_zarr(path, name, array)
                done(held[name].nbytes)
    except DovetailError:
        raise
    except Exception as error:  # zarr's, and its codecs'
        raise _damaged(path, error) from error
    return _tensors(path, held, device, copy)


def _read_zarr(path: Path, name: str, array: Any) -> np.ndarray:  # of zarr
    used = _named(array.metadata.to_dict())
    if array.dtype.kind not in "biufc" or used - _CODECS:
        raise _damaged(
            path, f"its {name!r} is of dtype {array.dtype}, by {', '.join(sorted(used))}"
        )
    return np.asarray(array[...])


def _named(held: Any) -> set[str]:  # what JSON holds
    """The codecs that an array's metadata names."""
    found: set[str] = set()
    for key, value in held.items():
        if key in ("codecs", "index_codecs", "filters", "compressor"):
            for codec in value if isinstance(value, list | tuple) else [value]:
                if codec is not None:
                    name = str(codec.get("name", codec.get("id")))
                    found |= {name.removeprefix("numcodecs.")} | _named(codec)
        elif isinstance(value, dict):
            found |= _named(value)
    return found


_FORMS = {
    ".safetensors": Form(_save_safetensors, _load_safetensors),
    ".npz": Form(_save_npz, _load_npz),
    ".zarr": Form(_save_zarr, _load_zarr),
}
