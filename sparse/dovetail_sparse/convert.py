"""Sparse tensors of other libraries, and files."""

from __future__ import annotations

import importlib
import os
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.extend import arguments

from .construct import sparse_coo_tensor
from .moves import fully_sparse
from .tensor import COO, required_coo

Tensor = dt.Tensor
FORMAT = "dovetail sparse_coo 1"


def _host(x: COO) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if x.dtype is dt.bfloat16:
        raise dt.DTypeError(
            "to_scipy, to_pydata: bfloat16 is not known to NumPy; see x.astype(dt.float32)"
        )
    return x.indices().numpy(), x.values().numpy()


@arguments.named
def from_scipy(matrix: Any, *, dtype: Any = None, device: Any = None) -> COO:
    """A SciPy sparse array or matrix (coo, csr, csc, or what has `tocoo`) as a sparse tensor.

    Raises: ArgumentError for anything else.
    """
    if not hasattr(matrix, "tocoo"):
        raise dt.ArgumentError(f"from_scipy: {type(matrix).__name__} is no SciPy sparse array")
    found = matrix.tocoo()
    coords = getattr(found, "coords", None) or (found.row, found.col)
    return sparse_coo_tensor(
        np.stack([np.asarray(c, np.int64) for c in coords]), found.data, found.shape,
        dtype=dtype, device=device,
    )  # fmt: skip


def to_scipy(x: COO, form: str = "coo") -> Any:
    """A SciPy sparse array of the same elements: `form` is "coo", "csr" or "csc" (matrices).

    Raises: ArgumentError, ShapeError; ModuleNotFoundError without SciPy.
    """
    required_coo("to_scipy", x)
    arguments.choice("to_scipy", form, "form", ("coo", "csr", "csc"))
    if form != "coo" and x.ndim != 2:
        raise dt.ShapeError(f"to_scipy: {form} is for matrices, not shape {x.shape}; see 'coo'")
    sparse = importlib.import_module("scipy.sparse")
    indices, values = _host(fully_sparse(x))
    made = sparse.coo_array((values.copy(), tuple(indices.copy())), x.shape)
    made.has_canonical_format = x.is_coalesced()
    return made if form == "coo" else made.asformat(form)


@arguments.named
def from_pydata(array: Any, *, dtype: Any = None, device: Any = None) -> COO:
    """A `sparse.COO` (or what has `tocoo`) of PyData/sparse as a sparse tensor.

    Raises: ArgumentError for a fill value other than 0.
    """
    if not hasattr(array, "coords") and not hasattr(array, "tocoo"):
        raise dt.ArgumentError(
            f"from_pydata: {type(array).__name__} is no sparse array of PyData/sparse"
        )
    found = array if hasattr(array, "coords") else array.tocoo()
    if found.fill_value != 0:
        raise dt.ArgumentError(
            f"from_pydata: the fill value is {found.fill_value!r}; only 0 has a meaning here"
        )
    return sparse_coo_tensor(
        np.asarray(found.coords), found.data, found.shape, dtype=dtype, device=device
    )


def to_pydata(x: COO) -> Any:
    """A `sparse.COO` of PyData/sparse of the same elements.

    Raises: DTypeError, LayoutError; ModuleNotFoundError without PyData/sparse.
    """
    x = fully_sparse(required_coo("to_pydata", x)).coalesce()
    indices, values = _host(x)
    made = getattr(importlib.import_module("sparse"), "COO", None)
    if made is None:
        raise ModuleNotFoundError("to_pydata: the module `sparse` found here is not PyData/sparse")
    return made(indices.copy(), values.copy(), x.shape, has_duplicates=False, sorted=True)


@arguments.named
def save(file: Any, x: COO) -> None:
    """Writes a tensor to an .npz file, as `load` reads it; compressed."""
    required_coo("save", x)
    path = file if hasattr(file, "write") else os.fspath(arguments.path("save", file, "file"))
    values = x.values().astype(dt.float32) if x.dtype is dt.bfloat16 else x.values()
    np.savez_compressed(
        path, format=FORMAT, indices=x.indices().numpy(), values=values.numpy(),
        shape=np.asarray(x.shape, np.int64), dtype=x.dtype.name, is_coalesced=x.is_coalesced(),
    )  # fmt: skip


@arguments.named
def load(file: Any, *, device: Any = None) -> COO:
    """The tensor that `save` wrote, or SciPy's `save_npz` in coo, csr or csc form.

    Raises: ArgumentError for another file; what is wrong with its indices as `sparse_coo_tensor`.
    """
    if not hasattr(file, "read"):
        arguments.path("load", file, "file")
    with np.load(file, allow_pickle=False) as held:
        found = {name: held[name] for name in held.files}
    if str(found.get("format")) == FORMAT:
        return sparse_coo_tensor(
            found["indices"], found["values"], found["shape"].tolist(), dtype=str(found["dtype"]),
            device=device, is_coalesced=bool(found["is_coalesced"]),
        )  # fmt: skip
    if "format" in found and "data" in found:
        return _from_scipy_file(found, device)
    raise dt.ArgumentError(f"load: {file} holds no sparse tensor; it has {', '.join(found)}")


def _from_scipy_file(found: dict[str, Any], device: Any) -> COO:
    form = found["format"].item()
    form = form.decode() if isinstance(form, bytes) else str(form)
    shape = tuple(found["shape"].tolist())
    if form == "coo":
        at = found["coords"] if "coords" in found else np.stack([found["row"], found["col"]])
    elif form in ("csr", "csc"):
        counts = np.diff(found["indptr"])
        major = np.repeat(np.arange(len(counts)), counts)
        pair = (major, found["indices"])
        at = np.stack(pair if form == "csr" else pair[::-1])
    else:
        raise dt.ArgumentError(f"load: SciPy's format {form!r} is not known here; save it as coo")
    return sparse_coo_tensor(at, found["data"], shape, device=device)
