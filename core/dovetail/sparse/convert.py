"""Conversion from and to SciPy and PyData/sparse, and .npz files."""

from __future__ import annotations

import errno
import importlib
import os
from contextlib import nullcontext
from typing import IO, Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import (
    DeviceLike,
    DTypeLike,
    Layout,
    arguments,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
)

from .blocks import sparse_bsr_tensor
from .compressed import sparse_csc_tensor, sparse_csr_tensor
from .construct import sparse_coo_tensor
from .tensor import COO, Entries, required_sparse
from .view_rules import fully_sparse

Tensor = dt.Tensor
FORMAT = "dovetail sparse_coo 1"
File: TypeAlias = str | os.PathLike[str] | IO[bytes]
SciPyArray: TypeAlias = Any  # one of scipy.sparse, which has no types
PyDataArray: TypeAlias = Any  # a `COO` of PyData/sparse, which has none either


def _require_numpy_dtype(x: Tensor) -> None:
    """Raise DTypeError for bfloat16, which NumPy lacks."""
    if x.dtype is dt.bfloat16:
        raise dt.DTypeError("to_scipy, to_pydata: NumPy has no bfloat16; use x.astype(dt.float32)")


def _read_host_arrays(x: COO) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return positions and values as NumPy arrays. Raises: DTypeError for bfloat16."""
    _require_numpy_dtype(x)
    return x.indices().numpy(), x.values().numpy()


@arguments.public(widen=False)
def from_scipy(
    matrix: object,
    *,
    layout: Layout | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Entries:
    """Convert a SciPy sparse array or matrix to a sparse tensor.

    - `matrix`: a SciPy sparse array or matrix, in any of SciPy's forms.
    - `layout`: a sparse layout; None is `dt.sparse_coo`. A matrix in SciPy's form of that layout is
      not sorted again.

    Shapes: that of the matrix.
    Dtypes: that of the matrix.
    Raises: ArgumentError for anything else, LayoutError for a layout that does not hold it,
    DTypeError, UnsupportedError for complex numbers.
    See also: `to_scipy`, `sparse_csr_tensor`.

    >>> import dovetail as dt
    >>> import scipy.sparse
    >>> dt.sparse.from_scipy(scipy.sparse.eye_array(3)).nnz
    3
    """
    if not hasattr(matrix, "tocoo"):
        raise dt.ArgumentError(
            f"from_scipy: expected a SciPy sparse array, got {type(matrix).__name__}"
        )
    if layout is None or layout is sparse_coo:
        return _coo_from_scipy(matrix, dtype, device)
    if not isinstance(layout, Layout) or layout not in _CANONICAL:
        raise dt.ArgumentError(
            f"from_scipy: layout must be dt.sparse_coo, dt.sparse_csr, dt.sparse_csc or "
            f"dt.sparse_bsr, got {arguments.shown(layout)}"
        )
    array: SciPyArray = matrix
    form, make = _CANONICAL[layout]
    if array.ndim != 2:
        raise dt.LayoutError(
            f"from_scipy: {layout.name} needs a matrix, got shape {array.shape}; use dt.sparse_coo"
        )
    array = array.asformat(form, copy=True)
    array.sum_duplicates()
    starts, columns = array.indptr.astype(np.int64), array.indices.astype(np.int64)
    x: Entries = make(starts, columns, array.data, array.shape, dtype=dtype, device=device)
    return x


def _coo_from_scipy(matrix: SciPyArray, dtype: DTypeLike, device: DeviceLike) -> COO:
    """Return a SciPy array of any form as COO; entries at one position stay separate."""
    array = matrix.tocoo()
    coords = getattr(array, "coords", None) or (array.row, array.col)
    return sparse_coo_tensor(
        np.stack([np.asarray(c, np.int64) for c in coords]),
        array.data,
        array.shape,
        dtype=dtype,
        device=device,
    )


# SciPy's name of a layout, and the function that builds a tensor from its parts.
_CANONICAL: dict[Any, tuple[str, Any]] = {
    sparse_csr: ("csr", sparse_csr_tensor),
    sparse_csc: ("csc", sparse_csc_tensor),
    sparse_bsr: ("bsr", sparse_bsr_tensor),
}


def to_scipy(x: Entries, scipy_format: str | None = None) -> SciPyArray:
    """Convert a sparse tensor to a SciPy sparse array.

    - `scipy_format`: "coo", for matrices also "csr", "csc" or "bsr". Default: that of the layout.

    Shapes: any; dense dimensions become sparse ones.
    Dtypes: all that NumPy has.
    Raises: ArgumentError for another `scipy_format`, ShapeError for one of matrices only,
        LayoutError, DTypeError for bfloat16; ModuleNotFoundError without SciPy.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> dt.sparse.to_scipy(x, "csr").nnz
    2
    """
    own = required_sparse("to_scipy", x).layout.name.removeprefix("sparse_")
    scipy_format = own if scipy_format is None else scipy_format
    arguments.choice("to_scipy", scipy_format, "scipy_format", ("coo", "csr", "csc", "bsr"))
    if scipy_format != "coo" and x.ndim != 2:
        raise dt.ShapeError(
            f"to_scipy: {scipy_format!r} expects a matrix, got shape {x.shape}; use 'coo'"
        )
    sparse = importlib.import_module("scipy.sparse")
    if own != "coo":
        array = _scipy_from_parts(sparse, own, x)
        return array if scipy_format == own else array.asformat(scipy_format)
    x = x.as_coo()
    indices, values = _read_host_arrays(fully_sparse(x))
    array = sparse.coo_array((values.copy(), tuple(indices.copy())), x.shape)
    array.has_canonical_format = x.is_coalesced()
    return array if scipy_format == "coo" else array.asformat(scipy_format)


def _scipy_from_parts(sparse: Any, form: str, x: Entries) -> SciPyArray:
    """Build a SciPy array from copies of a tensor's parts. Raises: DTypeError for bfloat16."""
    _require_numpy_dtype(x)
    starts, columns, values = (part.numpy().copy() for part in x.parts)
    array = getattr(sparse, f"{form}_array")((values, columns, starts), x.shape)
    array.has_canonical_format = True
    return array


@arguments.public(widen=False)
def from_pydata(array: object, *, dtype: DTypeLike = None, device: DeviceLike = None) -> COO:
    """Convert a `sparse.COO` of PyData/sparse, or an array with `tocoo`, to a sparse tensor.

    - `array`: an array of PyData/sparse, with 0 as fill value.

    Shapes: that of the array.
    Dtypes: that of the array.
    Raises: ArgumentError for another fill value than 0, and for any other object.

    >>> import dovetail as dt
    >>> import sparse  # doctest: +SKIP
    >>> dt.sparse.from_pydata(sparse.eye(3)).nnz  # doctest: +SKIP
    3
    """
    if not hasattr(array, "coords") and not hasattr(array, "tocoo"):
        raise dt.ArgumentError(
            f"from_pydata: expected a sparse array of PyData/sparse, got {type(array).__name__}"
        )
    source: PyDataArray = array
    if not hasattr(array, "coords"):
        source = source.tocoo()
    if source.fill_value != 0:
        raise dt.ArgumentError(f"from_pydata: fill_value must be 0, got {source.fill_value!r}")
    return sparse_coo_tensor(
        np.asarray(source.coords), source.data, source.shape, dtype=dtype, device=device
    )


def to_pydata(x: Entries) -> PyDataArray:
    """Convert a sparse tensor to a `sparse.COO` of PyData/sparse.

    Shapes: any; dense dimensions become sparse ones.
    Dtypes: all that NumPy has.
    Raises: DTypeError for bfloat16, LayoutError; ModuleNotFoundError without PyData/sparse.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> dt.sparse.to_pydata(x).nnz  # doctest: +SKIP
    2
    """
    entries = fully_sparse(required_sparse("to_pydata", x).as_coo()).coalesce()
    indices, values = _read_host_arrays(entries)
    build = getattr(importlib.import_module("sparse"), "COO", None)
    if build is None:
        raise ModuleNotFoundError("to_pydata: the installed module `sparse` is not PyData/sparse")
    return build(indices.copy(), values.copy(), x.shape, has_duplicates=False, sorted=True)


@arguments.public(widen=False)
def save(file: File, x: Entries) -> None:
    """Write a tensor to a compressed .npz file that `load` reads; return None.

    - `file`: a path, or a file that is open for writing bytes.

    Shapes: any.
    Dtypes: all; bfloat16 is written as float32 with its name.
    Raises: LayoutError if x is not sparse, DTypeError, OSError, ArgumentTypeError.

    >>> import io
    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> file = io.BytesIO()
    >>> dt.sparse.save(file, x)
    >>> file.tell() > 100
    True
    """
    x = required_sparse("save", x).as_coo()
    path = file if hasattr(file, "write") else os.fspath(arguments.path("save", file, "file"))
    values = x.values().astype(dt.float32) if x.dtype is dt.bfloat16 else x.values()
    np.savez_compressed(
        path,
        format=FORMAT,
        indices=x.indices().numpy(),
        values=values.numpy(),
        shape=np.asarray(x.shape, np.int64),
        dtype=x.dtype.name,
        is_coalesced=x.is_coalesced(),
    )


@arguments.public(widen=False)
def load(file: File, *, device: DeviceLike = None) -> COO:
    """Read a tensor that `save` wrote, or SciPy's `save_npz` in coo, csr or csc form.

    - `file`: a path, or a file that is open for reading bytes.

    A file with pickled Python objects is refused, so no code from the file runs.
    Raises: ArgumentError for another or a damaged file, OSError if it cannot be opened; for wrong
    indices the errors of `sparse_coo_tensor`.

    >>> import io
    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> file = io.BytesIO()
    >>> dt.sparse.save(file, x)
    >>> file.seek(0)
    0
    >>> dt.sparse.load(file).to_dense().tolist()
    [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]
    """
    if not hasattr(file, "read"):
        arguments.path("load", file, "file")
    arrays = _Arrays(file)
    if arrays.read_text("format") == FORMAT:
        return sparse_coo_tensor(
            arrays.read_array("indices", "iu", 2),
            arrays.read_array("values", "biufc"),
            arrays.read_shape(),
            dtype=arrays.read_text("dtype"),
            device=device,
            is_coalesced=bool(arrays.read_array("is_coalesced", "b", 0)),
        )
    return sparse_coo_tensor(
        _scipy_indices(arrays),
        arrays.read_array("data", "biufc", 1),
        arrays.read_shape(),
        device=device,
    )


def _scipy_indices(arrays: _Arrays) -> Any:
    """Return positions (dimensions, n) of SciPy's coo, csr or csc file.

    Raises: ArgumentError for another or damaged one.
    """
    form = arrays.read_text("format")
    if form == "coo":
        if "coords" in arrays.arrays:
            return arrays.read_array("coords", "iu", 2)
        pair = [arrays.read_array("row", "iu", 1), arrays.read_array("col", "iu", 1)]
    elif form in ("csr", "csc"):
        starts, minor = (
            arrays.read_array("indptr", "iu", 1).astype(np.int64),
            arrays.read_array("indices", "iu", 1),
        )
        falls = (starts[1:] < starts[:-1]).any()  # a difference could overflow
        if not len(starts) or starts[0] or falls or starts[-1] != len(minor):
            raise arrays.error("its 'indptr' does not ascend from 0 to the number of its indices")
        major = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        pair = [major, minor] if form == "csr" else [minor, major]
    else:
        raise arrays.error(f"its format {form!r} is unknown; save it as coo")
    if len(pair[0]) != len(pair[1]):
        raise arrays.error(f"it has {len(pair[0])} rows and {len(pair[1])} columns")
    return np.stack([x.astype(np.int64) for x in pair])


class _Arrays:
    """The arrays of an .npz file, with checked access to each."""

    def __init__(self, file: File) -> None:
        self.file = file
        with open(file, "rb") if isinstance(file, str | os.PathLike) else nullcontext(file) as f:
            try:
                with np.load(f, allow_pickle=False) as archive:
                    self.arrays = {name: archive[name] for name in archive.files}
            except MemoryError as error:
                raise dt.OutOfMemoryError(
                    f"sparse.load: {self.file} declares more than fits into memory: {error}"
                ) from error
            except Exception as error:  # NumPy, zipfile and zlib raise a dozen kinds
                if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                    raise  # of the disk; a damaged archive has invalid positions, EINVAL
                why = f"{type(error).__name__}: {error}".partition("\n")[0]
                raise self.error(f"it is damaged or not a .npz file of arrays ({why})") from error

    def error(self, what: str) -> dt.ArgumentError:
        """Return an ArgumentError, for the caller to raise, that names the file."""
        return dt.ArgumentError(f"sparse.load: {self.file} does not hold a sparse tensor: {what}")

    def read_array(self, name: str, kinds: str, ndim: int | None = None) -> np.ndarray[Any, Any]:
        """Return an array. Raises: ArgumentError if missing, or of another dtype kind or rank."""
        value = self.arrays.get(name)
        if not isinstance(value, np.ndarray):
            raise self.error(f"it has no array {name!r}, only {', '.join(self.arrays)[:200]}")
        if value.dtype.kind not in kinds or ndim not in (None, value.ndim):
            raise self.error(f"its {name!r} is of dtype {value.dtype} and shape {value.shape}")
        return value

    def read_text(self, name: str) -> str:
        """Return the string in an array. Raises: ArgumentError if it is missing or no string."""
        text = self.read_array(name, "US", 0).item()
        return text.decode("ascii", "replace") if isinstance(text, bytes) else str(text)

    def read_shape(self) -> list[int]:
        """Return the shape in the file. Raises: ArgumentError if it is missing or not integers."""
        sizes: list[int] = self.read_array("shape", "iu", 1).tolist()
        return sizes
