"""Tensors in files: `save` and `load`, in formats that other programs read.

Loading executes no code from the file: all formats are data, and arrays of Python objects are
refused.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from ... import dtypes as D
from ...argument_checks import flag, refused
from ...argument_checks import path as file_name
from ...argument_checks import shown as as_text
from ...declarations import public
from ...device_class import Device, usable
from ...dtypes import DType
from ...errors import (
    ArgumentError,
    ArgumentTypeError,
    DovetailError,
    DTypeError,
    OutOfMemoryError,
    SharingError,
)
from ...install_source import install_command
from ...ir.formats import DTYPE_INFOS
from ...layout import Shape, contiguous_strides
from ...tensor.host import from_host, host_array
from ...tensor.tensor import Tensor, strided
from ..creation.from_values import asarray
from ..datatypes import DeviceLike, DTypeLike
from ..shape.copies import contiguous
from .interop import address, wrap_memory
from .progress import bar

__all__ = ["load", "load_metadata", "save"]

Arrays: TypeAlias = dict[str, np.ndarray]


@public(widen=False)
def save(
    file: str | os.PathLike[str],
    tensors: Mapping[str, Tensor | Mapping[str, object]],
    /,
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write named tensors to a file, in the format of its extension.

    An existing file is replaced when the new one is complete; a folder *.zarr at once.

    - `file`: the path: *.safetensors (by the library of that name), *.npz, or *.zarr (by the
      library zarr). A URL such as "s3://bucket/model.safetensors" needs the package fsspec.
    - `tensors`: a dict from names to tensors. A dict within it is flattened: `{"a": {"w": x}}`
      becomes "a.w".
    - `metadata`: texts by name for the header of a *.safetensors file, which `load_metadata` reads.
      Hugging Face's transformers expects `{"format": "pt"}`. None writes none.

    Shapes: any.
    Dtypes: safetensors has all but complex128, the other formats all but bfloat16.
    Raises: ArgumentError for another extension, DTypeError, LayoutError, ArgumentTypeError,
    OSError; ModuleNotFoundError without the library.
    See also: `load`, `load_metadata`, `checkpoint.save`.
    Source: https://huggingface.co/docs/safetensors, https://zarr.readthedocs.io

    >>> import os, tempfile
    >>> import dovetail as dt
    >>> file = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> dt.save(file, {"w": dt.ones((2, 3))})
    >>> dt.load(file)["w"].shape
    (2, 3)
    """
    if isinstance(file, Mapping | Tensor):
        raise ArgumentTypeError(_format_order_error(file, tensors))
    path = _path("save", file)
    form = _format_of("save", path)
    if not isinstance(tensors, Mapping):
        raise refused("save", "tensors", "a dict of tensors by name", tensors)
    flat: dict[str, Tensor] = {}
    for name, x in _flatten(tensors, ""):
        if name in flat:
            raise ArgumentError(f"save: two tensors have the name {name!r}; rename one of them")
        flat[name] = contiguous(strided("save", x))
    write = form.save if metadata is None else _with_metadata(form, metadata)
    if not _is_url(file):
        write(path, flat)
        return
    with TemporaryDirectory() as folder:
        local = Path(folder) / path.name
        write(local, flat)
        system, remote = _open_url(file)
        if not local.is_dir():
            system.put(str(local), remote)
            return
        if system.exists(remote):
            system.rm(remote, recursive=True)
        system.put(f"{local}/", remote, recursive=True)


def _with_metadata(
    form: FileFormat, metadata: Mapping[str, str]
) -> Callable[[Path, dict[str, Tensor]], None]:
    """Return the function that writes a file with texts in its header.

    Raises: ArgumentError for a format without; ArgumentTypeError unless all are strings.
    """
    if form.save is not _save_safetensors:
        raise ArgumentError("save: metadata needs a file name that ends in .safetensors")
    is_text = isinstance(metadata, Mapping) and all(
        isinstance(text, str) for item in metadata.items() for text in item
    )
    if not is_text:
        raise refused("save", "metadata", "a dict from strings to strings", metadata)
    return partial(_save_safetensors, metadata=dict(metadata))


def _flatten(tensors: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested dicts with their keys, joined by dots.

    Raises: ArgumentError for a key that is not a string.
    """
    for name, x in tensors.items():
        if not isinstance(name, str):
            raise ArgumentError(f"save: names of tensors must be strings, got {as_text(name)}")
        if isinstance(x, Mapping):
            yield from _flatten(x, f"{prefix}{name}.")
        else:
            yield prefix + name, x


@public(widen=False)
def load(
    file: str | os.PathLike[str],
    /,
    *,
    only: str | Sequence[str] | None = None,
    cast: DTypeLike = None,
    device: DeviceLike = None,
    copy: bool | None = None,
) -> dict[str, Tensor]:
    """Return the named tensors in a file of a known extension; map safetensors if possible.

    A safetensors file is mapped into memory if the device uses the host's memory: elements are read
    on first access, and writes change the tensor, not the file. The file must not change meanwhile.

    - `file`: the path: *.safetensors, *.npz or *.zarr; or the index of a checkpoint in several
      files, *.safetensors.index.json, which reads the files beside it. A file at a URL such as
      "s3://bucket/model.safetensors" is copied first, by the package fsspec.
    - `only`: the names of the tensors to load, as a string or several: full names, or patterns of
      `fnmatch` such as "encoder.*". A pattern skips tensors of a dtype that dovetail lacks. None
      loads all.
    - `cast`: a floating dtype for all floating tensors; integers and bools keep theirs. It reads
      both float8 dtypes of safetensors without a plugin for them. None keeps the dtypes of the
      file.
    - `copy`: True reads all at once; False fails if a copy is needed. None maps a safetensors file
      if possible.

    Shapes: those of the file.
    Dtypes: those of the file, in either byte order.
    Raises: ArgumentError for another extension, a damaged file, or a name or pattern that no tensor
    has; DTypeError; SharingError (`copy`); OSError if the file cannot be opened;
    ModuleNotFoundError without the library.
    See also: `save`, `load_metadata`, `checkpoint.load`.

    >>> import os, tempfile
    >>> import dovetail as dt
    >>> file = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> dt.save(file, {"a": {"w": dt.ones(2), "b": dt.zeros(1)}, "c": dt.ones(1)})
    >>> sorted(dt.load(file)), sorted(dt.load(file, only="a.*"))
    (['a.b', 'a.w', 'c'], ['a.b', 'a.w'])
    """
    name = _path("load", file)
    is_index = name.name.lower().endswith(_INDEX_SUFFIX)
    read = _load_shards if is_index else _format_of("load", name).load
    options = LoadOptions(
        usable(device, "load"),
        copy if copy is None else flag("load", copy, "copy"),
        None if only is None else _patterns(only),
        None if cast is None else D.dtype(cast, "load"),
    )
    with _local_path("load", file) as path:
        if _is_url(file):
            if options.copy is False:
                raise SharingError("load: a file at a URL is copied, and copy=False forbids it")
            options = options._replace(copy=True, url=file)
        tensors = read(path, options)
    return tensors if options.cast is None else _cast_floats(tensors, options.cast, options.copy)


@public(widen=False)
def load_metadata(file: str | os.PathLike[str], /) -> dict[str, str]:
    """Return the texts in the header of a safetensors file, by name; read no tensor.

    - `file`: the path of a *.safetensors file.

    Raises: ArgumentError for another extension or a damaged file; OSError if it cannot be opened;
    ModuleNotFoundError without the library safetensors.
    See also: `save`, `load`.
    Source: https://huggingface.co/docs/safetensors

    >>> import os, tempfile
    >>> import dovetail as dt
    >>> file = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> dt.save(file, {"w": dt.ones(2)}, metadata={"format": "pt"})
    >>> dt.load_metadata(file)
    {'format': 'pt'}
    """
    name = _path("load_metadata", file)
    if _format_of("load_metadata", name).load is not _load_safetensors:
        raise ArgumentError(f"load_metadata: expected a *.safetensors file, got {name.name!r}")
    with _local_path("load_metadata", file) as path:
        texts: dict[str, str] = _read_header(path)[0].get("__metadata__", {})
    return texts


def _patterns(only: object) -> tuple[str, ...]:
    """Return `only` as names and patterns. Raises: ArgumentTypeError for other values."""
    patterns = (only,) if isinstance(only, str) else only
    if not isinstance(patterns, Collection) or not all(isinstance(p, str) for p in patterns):
        raise refused("load", "only", "a name, a pattern, or a sequence of these", only)
    return tuple(patterns)


def _cast_floats(tensors: dict[str, Tensor], dtype: DType, copy: bool | None) -> dict[str, Tensor]:
    """Return the tensors, the floating ones cast. Raises: DTypeError unless `dtype` is floating."""
    if dtype.kind != "f":
        raise DTypeError(f"load: cast must be a floating dtype, got {dtype.name}")
    wide = {name for name, x in tensors.items() if x.dtype.kind == "f" and x.dtype is not dtype}
    if wide and copy is False:
        raise SharingError(
            f"load: {min(wide)!r} as {dtype.name} needs a copy, and copy=False forbids it"
        )
    return {name: x.astype(dtype) if name in wide else x for name, x in tensors.items()}


# --- formats -------------------------------------------------------------------------------------


class LoadOptions(NamedTuple):
    """The arguments of `load`: `only` holds names and patterns, or is None."""

    device: Device
    copy: bool | None
    only: tuple[str, ...] | None
    cast: DType | None
    url: str = ""  # of the file, if `load` reads a copy

    def select(self, path: Path, names: Collection[str]) -> list[str]:
        """Return the names in a file to load. Raises: ArgumentError if a pattern matches none."""
        if self.only is None:
            return list(names)
        for pattern in self.only:
            if not any(name == pattern or fnmatchcase(name, pattern) for name in names):
                raise ArgumentError(
                    f"load: only={pattern!r} matches none of the {len(names)} tensors of {path}; "
                    f"the first are {', '.join(map(repr, sorted(names)[:3]))}"
                )
        return [n for n in names if any(n == p or fnmatchcase(n, p) for p in self.only)]

    def skips(self, name: str) -> bool:
        """Return True if a tensor that cannot be read is omitted: only a pattern selects it."""
        return self.only is not None and name not in self.only


class FileFormat(NamedTuple):
    """The functions that save and load one file format."""

    save: Callable[[Path, dict[str, Tensor]], None]
    load: Callable[[Path, LoadOptions], dict[str, Tensor]]


_INDEX_SUFFIX = ".safetensors.index.json"
_ONLY_ADVICE = "pass only= (names or patterns) to load the others"


_PYTORCH_ADVICE = "; PyTorch's own files are read by PyTorch: let it write safetensors"
_FORMAT_ADVICE = {  # extension of a format that other libraries read -> the end of the error
    ".npy": "; use dt.asarray(numpy.load(file))",
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".bin"), _PYTORCH_ADVICE),
}
_SAVE_ADVICE = {".npy": "; use numpy.save(file, x.numpy()), or an .npz"}


def _format_order_error(tensors: object, file: object) -> str:
    """Return the error for `save(tensors, file)`, which is PyTorch's order."""
    name = "model.safetensors"
    if isinstance(file, str | os.PathLike):
        name = Path(os.fsdecode(file)).with_suffix(".safetensors").name
    values = "{'x': x}" if isinstance(tensors, Tensor) else "tensors"
    call = f"dt.save({name!r}, {values})"
    if isinstance(tensors, Mapping) and not all(isinstance(x, Tensor) for x in tensors.values()):
        call += ", or dt.checkpoint.save for a model with its optimizer"
    return f"save: file must be the first argument, and end in {' or '.join(_FORMATS)}; use {call}"


def _path(op: str, file: object) -> Path:
    """Return the argument `file` as a path."""
    return Path(os.fsdecode(file_name(op, file, "file")))


def _is_url(file: object) -> TypeGuard[str]:
    """Return True for an address such as "s3://bucket/model.safetensors"."""
    return isinstance(file, str) and "://" in file


def _open_url(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, as the package fsspec has it, and the path in it."""
    try:
        library: Any = import_module("fsspec.core")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"URLs need the package fsspec: {install_command('dovetail-tensor[files]')}"
        ) from error
    system, path = library.url_to_fs(url)
    return system, path


def _fetch(url: str, folder: Path) -> Path:
    """Copy a file, or a folder *.zarr, from a URL into a folder; return its path there."""
    system, remote = _open_url(url)
    local = folder / url.rpartition("/")[2]
    system.get(remote, str(local), recursive=local.suffix == ".zarr")
    return local


@contextmanager
def _local_path(op: str, file: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a file; for a URL that of a temporary copy."""
    if not _is_url(file):
        yield _path(op, file)
        return
    with TemporaryDirectory() as folder:
        yield _fetch(file, Path(folder))


def _format_of(op: str, path: Path) -> FileFormat:
    """Return the format of the extension of a path. Raises: ArgumentError for another one."""
    file_format = _FORMATS.get(path.suffix.lower())
    if file_format is None:
        advice = (_FORMAT_ADVICE if op == "load" else _SAVE_ADVICE).get(path.suffix.lower(), "")
        raise ArgumentError(
            f"{op}: the file name must end in {' or '.join(_FORMATS)}, got {path.name!r}{advice}"
        )
    return file_format


def _import_library(name: str) -> Any:  # libraries without type stubs
    """Import and return a package. Raises: ModuleNotFoundError, which says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"*.{name} files need the package {name}: {install_command('dovetail-tensor[files]')}"
        ) from error


def _replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a temporary file, then rename it to `path`; maps of the old file stay valid."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        temporary.touch()
    except OSError as error:  # name the caller's path in the error
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# What the system says of a file that refers to places or names that do not exist.
_DAMAGE_NAMES = "EINVAL ENOENT ENOTDIR EISDIR ENAMETOOLONG ELOOP"
_DAMAGE_NUMBERS = (None, *(getattr(errno, name) for name in _DAMAGE_NAMES.split()))


def _raise_unless_damaged(path: Path, error: Exception) -> None:
    """Raise OutOfMemoryError or an OSError that is no sign of a damaged file; else return."""
    if isinstance(error, MemoryError):
        text = str(error).partition("\n")[0]
        raise OutOfMemoryError(
            f"load: {path} declares more than fits into memory: {text}"
        ) from error
    if isinstance(error, OSError) and error.errno not in _DAMAGE_NUMBERS:
        raise error


def _file_error(path: Path, reason: object) -> ArgumentError:
    """Return the error for a damaged file; the caller raises it."""
    text = (
        reason
        if isinstance(reason, str)
        else f"{type(reason).__name__}: {reason}".partition("\n")[0]
    )
    return ArgumentError(f"load: {path} is damaged or not a file of tensors ({text})")


def _host_array(name: str, x: Tensor, form: str) -> np.ndarray:
    """Return a tensor's values as an array. Raises: DTypeError if NumPy has no such dtype."""
    dtype = x.dtype.__numpy_dtype__
    if dtype is None:
        raise DTypeError(
            f"save: {form} cannot store {name!r} of dtype {x.dtype.name}; "
            "use a *.safetensors file or "
            "x.astype(dt.float32)"
        )
    return host_array(x, dtype)


def _arrays_to_tensors(path: Path, arrays: Arrays, options: LoadOptions) -> dict[str, Tensor]:
    """Return tensors with copies of the arrays. Raises: SharingError for copy=False."""
    if options.copy is False and arrays:
        raise SharingError(
            f"load: {path.name} can only be read by a copy, and copy=False forbids it"
        )
    numpy_dtypes = {d.__numpy_dtype__ for d in D.ALL}
    tensors = {}
    for name, a in arrays.items():
        if a.dtype.newbyteorder("=") in numpy_dtypes:
            tensors[name] = asarray(a, device=options.device)
        elif not options.skips(name):
            raise _file_error(path, f"its {name!r} is of dtype {a.dtype}; {_ONLY_ADVICE}")
    return tensors


# --- safetensors ---------------------------------------------------------------------------------

_DTYPE_OF_CODE = {
    "BOOL": D.bool_,
    "F16": D.float16,
    "BF16": D.bfloat16,
    "F32": D.float32,
    "F64": D.float64,
    "C64": D.complex64,
    **{f"{d.kind.upper()}{d.bits}": d for d in D.INTEGERS},
}


def _dtype_of_code(code: str) -> DType | None:
    """Return the dtype of a safetensors code, or None; plugins may add dtypes."""
    if code in _DTYPE_OF_CODE:
        return _DTYPE_OF_CODE[code]
    D.load_plugins()
    theirs = ((d, info.safetensors) for d, info in DTYPE_INFOS.items())
    return next((d for d, names in theirs if names is not None and names[0] == code), None)


def _save_safetensors(
    path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Replace a .safetensors file by tensors.

    Raises: ArgumentError for the name "__metadata__", DTypeError for a dtype that the format lacks,
    OSError if the file cannot be written.
    """
    library = _import_library("safetensors")
    if "__metadata__" in tensors:
        raise ArgumentError("save: safetensors reserves the name '__metadata__'; use another name")
    buffers, specs = [], {}
    for name, x in tensors.items():
        if x.dtype in DTYPE_INFOS and (code_names := DTYPE_INFOS[x.dtype].safetensors) is not None:
            code = code_names[1]
        elif x.dtype in _DTYPE_OF_CODE.values():
            code = x.dtype.name
        else:
            wide = "*.npz" if x.dtype in D.BUILT_IN else "x.astype(dt.float32)"
            raise DTypeError(
                f"save: safetensors cannot store {name!r} of dtype {x.dtype.name}; use {wide}"
            )
        raw = host_array(x, np.dtype(f"V{x.itemsize}"))
        buffers.append(raw)  # keeps the memory alive until it is written
        specs[name] = library.TensorSpec(
            dtype=code, shape=x.shape, data_ptr=address(raw), data_len=raw.nbytes
        )
    try:
        _replace_file(path, lambda temporary: library.serialize_file(specs, temporary, metadata))
    except library.SafetensorError as error:
        raise OSError(f"save: {path} cannot be written: {error}") from error


def _load_safetensors(
    path: Path, options: LoadOptions, names: Collection[str] | None = None
) -> dict[str, Tensor]:
    """Return a file's tensors, mapped if possible.

    names: the tensors that an index expects in the file; None selects by the options.
    Raises: ArgumentError if the file is damaged or lacks a name.
    """
    header, raw, start = _read_header(path)
    header.pop("__metadata__", None)
    tensors = {}
    with bar(f"loading {path.name}", raw.size - start) as advance:
        for name in options.select(path, header) if names is None else names:
            if name not in header:
                raise _file_error(path, f"it lacks {name!r}, which the index names")
            entry = header[name]
            dtype, (low, high) = _dtype_of_code(entry["dtype"]), entry["data_offsets"]
            if dtype is not None:
                part, shape = raw[start + low : start + high], tuple(entry["shape"])
                tensors[name] = _map_tensor(name, part, dtype, shape, options.device, options.copy)
            elif entry["dtype"] in _FLOAT8_CODES and options.cast is not None:
                if options.copy is False:
                    raise SharingError(
                        f"load: {name!r} as {options.cast.name} needs a copy, and copy=False "
                        "forbids it"
                    )
                values = _decode_float8(entry["dtype"], raw[start + low : start + high])
                values = values.reshape(entry["shape"])
                tensors[name] = from_host(values, D.float32, options.device)
            elif not options.skips(name):
                way = "pass cast= (a floating dtype), or " * (entry["dtype"] in _FLOAT8_CODES)
                raise DTypeError(
                    f"load: {name!r} of {path} has dtype {entry['dtype']}, "
                    f"which dovetail cannot read; {way}{_ONLY_ADVICE}"
                )
            advance(high - low)
    return tensors


def _read_header(path: Path) -> tuple[dict[str, Any], np.ndarray, int]:
    """Return the header of a safetensors file, the mapped file, and the start of its data.

    Raises: ArgumentError if the file is damaged.
    """
    library = _import_library("safetensors")
    with path.open("rb"):  # raises OSError if it cannot be opened
        pass
    try:  # the library checks that the parts cover the file without gaps and overlaps
        with library.safe_open(path, framework="np"):
            pass
        raw = np.memmap(path, np.uint8, mode="c")
        start = 8 + int.from_bytes(raw[:8].tobytes(), "little")
        return json.loads(raw[8:start].tobytes()), raw, start
    except Exception as error:  # the library's errors, and those of a file that changes meanwhile
        _raise_unless_damaged(path, error)
        raise _file_error(path, error) from error


_FLOAT8_CODES = ("F8_E4M3", "F8_E5M2")


def _decode_float8(code: str, raw: np.ndarray) -> np.ndarray:
    """Return float8 numbers as float32, exactly.

    Source: Micikevicius et al., FP8 Formats for Deep Learning, https://arxiv.org/abs/2209.05433
    """
    bits = np.asarray(raw).astype(np.uint16)
    if code == "F8_E5M2":  # the upper byte of a float16
        return (bits << 8).view(np.float16).astype(np.float32)
    size = bits & 0x7F
    halves = ((bits & 0x80) << 8 | size << 7).view(np.float16)  # their exponents' bias is 8 more
    return np.where(size == 0x7F, np.float32(np.nan), halves.astype(np.float32) * 256)


def _load_shards(path: Path, options: LoadOptions) -> dict[str, Tensor]:
    """Return the tensors of the safetensors files that an index names.

    Raises: ArgumentError if the index or a file is damaged, or if a file is in another folder.
    Source: https://huggingface.co/docs/safetensors, "model.safetensors.index.json"
    """
    text = path.read_bytes()
    try:
        file_of = json.loads(text)["weight_map"]
        is_index = all(
            Path(file).name == file and file.endswith(".safetensors") for file in file_of.values()
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _file_error(path, "expected JSON with a weight_map from names to files") from error
    if not is_index:
        raise _file_error(path, "its weight_map must name *.safetensors files of its own folder")
    names_of: dict[str, list[str]] = {}
    for name in options.select(path, file_of):
        names_of.setdefault(file_of[name], []).append(name)
    tensors: dict[str, Tensor] = {}
    for file, names in names_of.items():
        if options.url:
            _fetch(f"{options.url.rpartition('/')[0]}/{file}", path.parent)
        tensors |= _load_safetensors(path.with_name(file), options, names)
    return tensors


def _map_tensor(
    name: str, raw: np.ndarray, dtype: DType, shape: Shape, device: Device, copy: bool | None
) -> Tensor:
    """Return a tensor over part of a mapped file, or a copy.

    Raises: SharingError if copy=False cannot be kept.
    """
    if raw.size and not copy and dtype is not D.bool_:
        strides = contiguous_strides(shape)
        shared = wrap_memory(raw, address(raw), shape, strides, dtype, device, False)
        if shared is not None:
            return shared
    if copy is False and raw.size:
        raise SharingError(
            f"load: {device} cannot use {name!r} without a copy, and copy=False forbids it"
        )
    if dtype is D.bool_:  # bytes of bools are 0 or 1 in memory; the file may have others
        raw = raw != 0
    return from_host(raw.view(f"V{dtype.itemsize}").reshape(shape), dtype, device)


# --- NumPy's -------------------------------------------------------------------------------------


def _save_npz(path: Path, tensors: dict[str, Tensor]) -> None:
    """Replace an .npz file by tensors, uncompressed.

    Raises: ArgumentError for the name "file", DTypeError for a dtype that NumPy lacks.
    """
    arrays: Arrays = {name: _host_array(name, x, ".npz") for name, x in tensors.items()}
    if "file" in arrays:
        raise ArgumentError("save: NumPy reserves the name 'file' in an .npz; use another name")
    _replace_file(path, lambda temporary: np.savez(temporary, allow_pickle=False, **arrays))


def _load_npz(path: Path, options: LoadOptions) -> dict[str, Tensor]:
    """Return copies of the arrays of an .npz file; pickled ones raise ArgumentError."""
    with path.open("rb") as file:
        try:
            with (
                np.load(file, allow_pickle=False) as opened,
                bar(f"loading {path.name}", path.stat().st_size) as advance,
            ):
                arrays = {}
                for name in options.select(path, opened.files):
                    arrays[name] = np.asarray(opened[name])
                    advance(arrays[name].nbytes)
        except DovetailError:
            raise
        except Exception as error:  # a dozen classes: NumPy's, zipfile's, zlib's
            _raise_unless_damaged(path, error)
            raise _file_error(path, error) from error
    return _arrays_to_tensors(path, arrays, options)


# --- zarr ----------------------------------------------------------------------------------------

# Codecs that only decode bytes to numbers; a codec of Python objects can execute code.
_CODECS = {
    "bytes", "transpose", "sharding_indexed", "blosc", "bz2", "crc32", "crc32c", "delta", "gzip",
    "lz4", "lzma", "shuffle", "zlib", "zstd",
}  # fmt: skip


def _save_zarr(path: Path, tensors: dict[str, Tensor]) -> None:
    """Overwrite a zarr folder by tensors in place; an error leaves it incomplete.

    Raises: ArgumentError for a name that zarr rejects, DTypeError for a dtype that NumPy lacks.
    """
    library = _import_library("zarr")
    arrays = {name: _host_array(name, x, "zarr") for name, x in tensors.items()}
    group = library.open_group(library.storage.LocalStore(path), mode="w")
    for name, a in arrays.items():
        try:
            group.create_array(name, data=a)
        except ValueError as error:
            raise ArgumentError(f"save: zarr rejects the name {name!r}: {error}") from error


def _load_zarr(path: Path, options: LoadOptions) -> dict[str, Tensor]:
    """Return copies of all arrays of a zarr group. Raises: ArgumentError if it is damaged."""
    library = _import_library("zarr")
    os.scandir(path).close()  # raises OSError if it cannot be opened
    host_arrays: Arrays = {}
    try:
        store = library.storage.LocalStore(path, read_only=True)
        members = library.open_group(store, mode="r").members(max_depth=None)
        stored = {name: a for name, a in members if isinstance(a, library.Array)}
        arrays = {name: stored[name] for name in options.select(path, stored)}
        with bar(f"loading {path.name}", sum(a.nbytes for a in arrays.values())) as advance:
            for name, array in arrays.items():
                if array.dtype.kind not in "biufc" and options.skips(name):
                    continue
                host_arrays[name] = _read_zarr(path, name, array)
                advance(host_arrays[name].nbytes)
    except DovetailError:
        raise
    except Exception as error:  # errors of zarr and of its codecs
        _raise_unless_damaged(path, error)
        raise _file_error(path, error) from error
    return _arrays_to_tensors(path, host_arrays, options)


def _read_zarr(path: Path, name: str, array: Any) -> np.ndarray:  # a zarr.Array
    """Return a zarr array's values. Raises: ArgumentError for other dtypes or unknown codecs."""
    used = _codec_names(array.metadata.to_dict())
    if array.dtype.kind not in "biufc" or used - _CODECS:
        raise _file_error(
            path, f"its {name!r} is of dtype {array.dtype}, by {', '.join(sorted(used))}"
        )
    return np.asarray(array[...])


def _codec_names(metadata: Any) -> set[str]:  # metadata: a JSON object
    """Return the names of the codecs in an array's metadata."""
    names: set[str] = set()
    for key, value in metadata.items():
        if key in ("codecs", "index_codecs", "filters", "compressor"):
            for codec in value if isinstance(value, list | tuple) else [value]:
                if codec is not None:
                    name = str(codec.get("name", codec.get("id")))
                    names |= {name.removeprefix("numcodecs.")} | _codec_names(codec)
        elif isinstance(value, dict):
            names |= _codec_names(value)
    return names


_FORMATS = {
    ".safetensors": FileFormat(_save_safetensors, _load_safetensors),
    ".npz": FileFormat(_save_npz, _load_npz),
    ".zarr": FileFormat(_save_zarr, _load_zarr),
}
