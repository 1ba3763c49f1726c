"""Sparse tensors of other libraries, and files."""

from __future__ import annotations

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
from .moves import fully_sparse
from .tensor import COO, Entries, required_sparse

Tensor = dt.Tensor
FORMAT = "dovetail sparse_coo 1"
File: TypeAlias = str | os.PathLike[str] | IO[bytes]
SciPyArray: TypeAlias = Any  # one of scipy.sparse, which has no types
PyDataArray: TypeAlias = Any  # a `COO` of PyData/sparse, which has none either


def _require_known(x: Tensor) -> None:
    if x.dtype is dt.bfloat16:
        raise dt.DTypeError(
            "to_scipy, to_pydata: bfloat16 is not known to NumPy; see x.astype(dt.float32)"
        )


def _host(x: COO) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    _require_known(x)
    return x.indices().numpy(), x.values().numpy()


@arguments.named(widen=False)
def from_scipy(
    matrix: object, *, layout: Layout | None = None, dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Entries:  # fmt: skip
    """A SciPy sparse array or matrix as a sparse tensor.

    `matrix`: in any of SciPy's forms. `layout`: `dt.sparse_coo` unless given, or that of another
    sparse layout; from the same form of SciPy's nothing is sorted.
    Shapes: that of the matrix.
    Dtypes: that of the matrix.
    Raises: ArgumentError for anything else, LayoutError for a layout that does not hold it,
    DTypeError, NotYetError for complex numbers.

    >>> import dovetail as dt
    >>> import scipy.sparse
    >>> dt.sparse.from_scipy(scipy.sparse.eye_array(3), device="reference").nnz
    3
    """
    if not hasattr(matrix, "tocoo"):
        raise dt.ArgumentError(f"from_scipy: {type(matrix).__name__} is no SciPy sparse array")
    if layout is None or layout is sparse_coo:
        return _coo_of(matrix, dtype, device)
    if not isinstance(layout, Layout) or layout not in _CANONICAL:
        raise dt.ArgumentError(
            f"from_scipy: layout is one of dt.sparse_coo, dt.sparse_csr, dt.sparse_csc and "
            f"dt.sparse_bsr, not {arguments.shown(layout)}"
        )
    found: SciPyArray = matrix
    form, make = _CANONICAL[layout]
    if found.ndim != 2:
        raise dt.LayoutError(
            f"from_scipy: {layout.name} holds matrices, not shape {found.shape}; see dt.sparse_coo"
        )
    found = found.asformat(form, copy=True)
    found.sum_duplicates()
    starts, columns = found.indptr.astype(np.int64), found.indices.astype(np.int64)
    made: Entries = make(starts, columns, found.data, found.shape, dtype=dtype, device=device)
    return made


def _coo_of(matrix: SciPyArray, dtype: DTypeLike, device: DeviceLike) -> COO:
    found = matrix.tocoo()
    coords = getattr(found, "coords", None) or (found.row, found.col)
    return sparse_coo_tensor(
        np.stack([np.asarray(c, np.int64) for c in coords]), found.data, found.shape,
        dtype=dtype, device=device,
    )  # fmt: skip


# SciPy's form of a layout, and what makes a tensor of its parts.
_CANONICAL: dict[Any, tuple[str, Any]] = {
    sparse_csr: ("csr", sparse_csr_tensor),
    sparse_csc: ("csc", sparse_csc_tensor),
    sparse_bsr: ("bsr", sparse_bsr_tensor),
}


def to_scipy(x: Entries, form: str | None = None) -> SciPyArray:
    """A SciPy sparse array with the same elements.

    `form`: "coo", or of matrices also "csr", "csc" or "bsr"; unless given that of the layout.
    Shapes: any; dense dimensions become sparse ones.
    Dtypes: all that NumPy has.
    Raises: ArgumentError for another `form`, ShapeError for one of matrices only, LayoutError,
    DTypeError for bfloat16; ModuleNotFoundError without SciPy.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), device="reference")
    >>> dt.sparse.to_scipy(x, "csr").nnz
    2
    """
    own = required_sparse("to_scipy", x).layout.name.removeprefix("sparse_")
    form = own if form is None else form
    arguments.choice("to_scipy", form, "form", ("coo", "csr", "csc", "bsr"))
    if form != "coo" and x.ndim != 2:
        raise dt.ShapeError(f"to_scipy: {form} is for matrices, not shape {x.shape}; see 'coo'")
    sparse = importlib.import_module("scipy.sparse")
    if own != "coo":
        made = _of_parts(sparse, own, x)
        return made if form == own else made.asformat(form)
    x = x.as_coo()
    indices, values = _host(fully_sparse(x))
    made = sparse.coo_array((values.copy(), tuple(indices.copy())), x.shape)
    made.has_canonical_format = x.is_coalesced()
    return made if form == "coo" else made.asformat(form)


def _of_parts(sparse: Any, form: str, x: Entries) -> SciPyArray:
    """Of CSR, CSC and BSR: their parts are SciPy's."""
    _require_known(x)
    starts, columns, values = (part.numpy().copy() for part in x.parts)
    made = getattr(sparse, f"{form}_array")((values, columns, starts), x.shape)
    made.has_canonical_format = True
    return made


@arguments.named(widen=False)
def from_pydata(array: object, *, dtype: DTypeLike = None, device: DeviceLike = None) -> COO:
    """A `sparse.COO` of PyData/sparse, or what has `tocoo`, as a sparse tensor.

    `array`: of PyData/sparse, with 0 as fill value.
    Shapes: that of the array.
    Dtypes: that of the array.
    Raises: ArgumentError for another fill value than 0, and for what is no such array.

    >>> import dovetail as dt
    >>> import sparse  # doctest: +SKIP
    >>> dt.sparse.from_pydata(sparse.eye(3), device="reference").nnz  # doctest: +SKIP
    3
    """
    if not hasattr(array, "coords") and not hasattr(array, "tocoo"):
        raise dt.ArgumentError(
            f"from_pydata: {type(array).__name__} is no sparse array of PyData/sparse"
        )
    found: PyDataArray = array
    if not hasattr(array, "coords"):
        found = found.tocoo()
    if found.fill_value != 0:
        raise dt.ArgumentError(
            f"from_pydata: the fill value is {found.fill_value!r}; only 0 has a meaning here"
        )
    return sparse_coo_tensor(
        np.asarray(found.coords), found.data, found.shape, dtype=dtype, device=device
    )


def to_pydata(x: Entries) -> PyDataArray:
    """A `sparse.COO` of PyData/sparse with the same elements.

    Shapes: any; dense dimensions become sparse ones.
    Dtypes: all that NumPy has.
    Raises: DTypeError for bfloat16, LayoutError; ModuleNotFoundError without PyData/sparse.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), device="reference")
    >>> dt.sparse.to_pydata(x).nnz  # doctest: +SKIP
    2
    """
    found = fully_sparse(required_sparse("to_pydata", x).as_coo()).coalesce()
    indices, values = _host(found)
    made = getattr(importlib.import_module("sparse"), "COO", None)
    if made is None:
        raise ModuleNotFoundError("to_pydata: the module `sparse` found here is not PyData/sparse")
    return made(indices.copy(), values.copy(), x.shape, has_duplicates=False, sorted=True)


@arguments.named(widen=False)
def save(file: File, x: Entries) -> None:
    """Writes a tensor to an .npz file, as `load` reads it, compressed; returns nothing.

    `file`: a path, or a file that is open for bytes.
    Shapes: any.
    Dtypes: all; bfloat16 is written as float32 with its name.
    Raises: LayoutError for what is not sparse, DTypeError, OSError, ArgumentTypeError.

    >>> import io
    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), device="reference")
    >>> file = io.BytesIO()
    >>> dt.sparse.save(file, x)
    >>> file.tell() > 100
    True
    """
    x = required_sparse("save", x).as_coo()
    path = file if hasattr(file, "write") else os.fspath(arguments.path("save", file, "file"))
    values = x.values().astype(dt.float32) if x.dtype is dt.bfloat16 else x.values()
    np.savez_compressed(
        path, format=FORMAT, indices=x.indices().numpy(), values=values.numpy(),
        shape=np.asarray(x.shape, np.int64), dtype=x.dtype.name, is_coalesced=x.is_coalesced(),
    )  # fmt: skip


@arguments.named(widen=False)
def load(file: File, *, device: DeviceLike = None) -> COO:
    """The tensor that `save` wrote, or SciPy's `save_npz` in coo, csr or csc form.

    `file`: a path, or a file that is open for bytes. Nothing in it is run: one that holds Python
    objects is refused.
    Raises: ArgumentError for another or a damaged file, OSError for one that cannot be opened; what
    is wrong with its indices as `sparse_coo_tensor`.

    >>> import io
    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), device="reference")
    >>> file = io.BytesIO()
    >>> dt.sparse.save(file, x)
    >>> file.seek(0)
    0
    >>> dt.sparse.load(file, device="reference").to_dense().tolist()
    [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]
    """
    if not hasattr(file, "read"):
        arguments.path("load", file, "file")
    found = _Arrays(file)
    if found.word("format") == FORMAT:
        return sparse_coo_tensor(
            found.of("indices", "iu", 2), found.of("values", "biufc"), found.shape(),
            dtype=found.word("dtype"), device=device,
            is_coalesced=bool(found.of("is_coalesced", "b", 0)),
        )  # fmt: skip
    return sparse_coo_tensor(
        _scipy_indices(found), found.of("data", "biufc", 1), found.shape(), device=device
    )


def _scipy_indices(found: _Arrays) -> Any:
    form = found.word("format")
    if form == "coo":
        if "coords" in found.arrays:
            return found.of("coords", "iu", 2)
        pair = [found.of("row", "iu", 1), found.of("col", "iu", 1)]
    elif form in ("csr", "csc"):
        starts, minor = found.of("indptr", "iu", 1).astype(np.int64), found.of("indices", "iu", 1)
        falls = (starts[1:] < starts[:-1]).any()  # a difference could overflow
        if not len(starts) or starts[0] or falls or starts[-1] != len(minor):
            raise found.wrong("its 'indptr' does not lead from 0 up to the number of its indices")
        major = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        pair = [major, minor] if form == "csr" else [minor, major]
    else:
        raise found.wrong(f"its format {form!r} is not known here; save it as coo")
    if len(pair[0]) != len(pair[1]):
        raise found.wrong(f"it has {len(pair[0])} rows and {len(pair[1])} columns")
    return np.stack([x.astype(np.int64) for x in pair])


class _Arrays:
    """The arrays in an .npz file, each checked when it is taken."""

    def __init__(self, file: File) -> None:
        self.file = file
        with open(file, "rb") if isinstance(file, str | os.PathLike) else nullcontext(file) as f:
            try:
                with np.load(f, allow_pickle=False) as held:
                    self.arrays = {name: held[name] for name in held.files}
            except Exception as error:  # a dozen kinds: NumPy's, zipfile's, zlib's
                why = f"{type(error).__name__}: {error}".partition("\n")[0]
                raise self.wrong(f"it is no .npz file of arrays, or damaged ({why})") from error

    def wrong(self, what: str) -> dt.ArgumentError:
        """The error that says so."""
        return dt.ArgumentError(f"sparse.load: {self.file} holds no sparse tensor: {what}")

    def of(self, name: str, kinds: str, ndim: int | None = None) -> np.ndarray[Any, Any]:
        """The array of a name, which has one of these kinds of dtype."""
        found = self.arrays.get(name)
        if not isinstance(found, np.ndarray):
            raise self.wrong(f"it has no array {name!r}, but {', '.join(self.arrays)[:200]}")
        if found.dtype.kind not in kinds or ndim not in (None, found.ndim):
            raise self.wrong(f"its {name!r} is of dtype {found.dtype} and shape {found.shape}")
        return found

    def word(self, name: str) -> str:
        """The one text that an array holds."""
        found = self.of(name, "US", 0).item()
        return found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)

    def shape(self) -> list[int]:
        """The shape that the file names."""
        found: list[int] = self.of("shape", "iu", 1).tolist()
        return found
