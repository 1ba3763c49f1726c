"""Compressed rows and columns: matrices whose entries are stored by row (CSR) or column (CSC).

A CSR matrix is a coalesced COO matrix with row pointers, so the two share their pattern and values.
A CSC matrix is the transpose of such a matrix. The pattern caches the order of its transpose, so no
conversion is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import (
    DeviceLike,
    DTypeLike,
    Layout,
    arguments,
    int64,
    required,
    sparse_csc,
    sparse_csr,
)

from .construct import to_sparse
from .pattern import Pattern
from .tensor import COO, Entries, coo
from .view_rules import fully_sparse, view

Tensor = dt.Tensor
Shape = tuple[int, ...]


class CSR(Entries):
    """A sparse matrix by rows: the start of each row, and the columns and values of its entries.

    Columns ascend within a row, each once. It shares its memory with the coalesced COO
    matrix of the same entries. Gradients flow through `values()`.

    >>> import dovetail as dt
    >>> x = dt.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], (2, 3))
    >>> x.nnz, x.to_dense().tolist()
    (3, [[0.0, 0.0, 3.0], [4.0, 5.0, 0.0]])
    """

    __slots__ = ()

    def as_coo(self) -> COO:
        """Return the entries as a coalesced COO matrix; computes nothing."""
        return coo(self.pattern, self._values)

    @property
    def layout(self) -> Layout:
        """`dt.sparse_csr`."""
        return sparse_csr

    @property
    def shape(self) -> Shape:
        """The numbers of rows and of columns."""
        return self.pattern.shape

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The starts of rows, the columns, and the values."""
        return self.pattern.bounds, self.pattern.coords[1], self._values

    def crow_indices(self) -> Tensor:
        """Return the start of each row and the end of the last: (rows + 1) int64."""
        return self.pattern.bounds

    def col_indices(self) -> Tensor:
        """Return the column of each entry, (nnz) int64."""
        return self.pattern.coords[1]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the constructor and its arguments, for `copy` and `pickle`."""
        return csr, (self.pattern, self._values)


class CSC(Entries):
    """A sparse matrix by columns: the start of each column, and the rows and values of its entries.

    Rows ascend within a column, each there once. Its transpose is a CSR matrix over the same
    memory. Gradients flow through `values()`.

    >>> import dovetail as dt
    >>> x = dt.sparse_csc_tensor([0, 1, 2, 3], [1, 1, 0], [4.0, 5.0, 3.0])
    >>> x.shape, x.to_dense().tolist()
    ((2, 3), [[0.0, 0.0, 3.0], [4.0, 5.0, 0.0]])
    """

    __slots__ = ()

    def as_coo(self) -> COO:
        """Return the entries as a COO matrix, by columns; computes nothing."""
        return view(transposed_coo(self), ("permute", (1, 0)))

    @property
    def layout(self) -> Layout:
        """`dt.sparse_csc`."""
        return sparse_csc

    @property
    def shape(self) -> Shape:
        """The numbers of rows and of columns."""
        return self.pattern.shape[::-1]

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The starts of columns, the rows, and the values."""
        return self.pattern.bounds, self.pattern.coords[1], self._values

    def ccol_indices(self) -> Tensor:
        """Return the start of each column among the entries, and the end of the last, int64."""
        return self.pattern.bounds

    def row_indices(self) -> Tensor:
        """Return the row of each entry, (nnz) int64."""
        return self.pattern.coords[1]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the constructor and its arguments, for `copy` and `pickle`."""
        return csc, (self.pattern, self._values)


def csr(pattern: Pattern, values: Tensor) -> CSR:
    """Build a CSR matrix over a coalesced pattern and its values; check and copy nothing."""
    x: CSR = object.__new__(CSR)
    x.pattern, x._values = pattern, values
    return x


def csc(pattern: Pattern, values: Tensor) -> CSC:
    """Build a CSC matrix whose transpose has this coalesced pattern; check and copy nothing."""
    x: CSC = object.__new__(CSC)
    x.pattern, x._values = pattern, values
    return x


# --- to and from COO -----------------------------------------------------------------------------


def transposed_coo(x: CSC) -> COO:
    """Return the transpose of a CSC matrix as COO; computes nothing."""
    return coo(x.pattern, x.values())


def required_matrix(name: str, layout: str, x: COO) -> COO:
    """Return the matrix `x` without dense dimensions. Raises: LayoutError if it is no matrix."""
    if x.ndim != 2:
        raise dt.LayoutError(
            f"{name}: {layout} needs a matrix, got shape {x.shape}; use x.to_sparse() for COO"
        )
    return fully_sparse(x)


def coo_to_csr(x: COO) -> CSR:
    """Return a COO matrix as CSR; sort entries and sum duplicates unless it is coalesced."""
    x = x.coalesce()
    return csr(x.pattern, x.values())


def coo_to_csc(x: COO) -> CSC:
    """Return a COO matrix as CSC; sort entries by columns and sum duplicates."""
    x = view(x, ("permute", (1, 0))).coalesce()
    return csc(x.pattern, x.values())


@arguments.public(widen=False)
def to_sparse_csr(x: Tensor) -> CSR:
    """Convert a matrix to compressed rows; a strided matrix gives its nonzero elements.

    A coalesced COO matrix shares its pattern and values with the result. A strided one takes one
    host read: the number of entries.
    Shapes: of 2 dimensions; the result has the same.
    Dtypes: all; the result has the same.
    Raises: LayoutError for another number of dimensions, DTypeError if x is no tensor.
    See also: `to_sparse`, `to_sparse_csc`, `sparse_csr_tensor`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0, 5], [6, 7]]).to_sparse_csr()
    >>> x.crow_indices().tolist(), x.col_indices().tolist()
    ([0, 1, 3], [1, 0, 1])
    """
    required("to_sparse_csr", x)
    if isinstance(x, CSR):
        return x
    return coo_to_csr(_to_coo_matrix("to_sparse_csr", "sparse_csr", x))


@arguments.public(widen=False)
def to_sparse_csc(x: Tensor) -> CSC:
    """Convert a matrix to compressed columns; a strided matrix gives its nonzero elements.

    The order of the transpose is computed once for all matrices that share a pattern. A strided
    matrix takes one host read: the number of entries.
    Shapes: of 2 dimensions; the result has the same.
    Dtypes: all; the result has the same.
    Raises: LayoutError for another number of dimensions, DTypeError if x is no tensor.
    See also: `to_sparse`, `to_sparse_csr`, `sparse_csc_tensor`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[0, 5], [6, 7]]).to_sparse_csc()
    >>> x.ccol_indices().tolist(), x.row_indices().tolist()
    ([0, 1, 3], [1, 0, 1])
    """
    required("to_sparse_csc", x)
    if isinstance(x, CSC):
        return x
    return coo_to_csc(_to_coo_matrix("to_sparse_csc", "sparse_csc", x))


def _to_coo_matrix(name: str, layout: str, x: Tensor) -> COO:
    """Return a matrix as COO without dense dimensions. Raises: LayoutError for no matrix."""
    if x.ndim != 2:
        raise dt.LayoutError(
            f"{name}: {layout} needs a matrix, got shape {x.shape}; use x.to_sparse() for COO"
        )
    return required_matrix(name, layout, to_sparse(x))


# --- from their parts ----------------------------------------------------------------------------


@arguments.public(widen=False)
def sparse_csr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> CSR:
    """Build a CSR matrix over the given tensors, uncopied; columns must ascend within a row.

    - `crow_indices`: the start of each row among the entries, and the end of the last row.
    - `col_indices`: the column of each entry; columns ascend within a row, each there once.
    - `values`: the values of the entries, one for each column index.
    - `size`: the shape; None: there are as many columns as the indices need.
    - `requires_grad`: True to record the gradient of the values.
    - `check_invariants`: check the indices, which takes one host read; False trusts them.

    Row i has the entries `crow_indices[i]` to `crow_indices[i + 1] - 1`. Tensors are stored without
    a copy: do not write to the indices afterwards.
    Shapes: crow_indices (rows + 1), col_indices and values (entries).
    Dtypes: indices are stored as int64; values any, `dtype` if given.
    Raises: OutOfRangeError, ShapeError, DTypeError, DeviceError, ArgumentError for indices that do
    not ascend (see dt.sparse_coo_tensor, which takes any order).
    See also: `sparse_coo_tensor`, `to_sparse_csr`, `CSR`.

    >>> import dovetail as dt
    >>> x = dt.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], (2, 3))
    >>> x.to_dense().tolist()
    [[0.0, 0.0, 3.0], [4.0, 5.0, 0.0]]
    """
    pattern, stored = check_parts(
        "sparse_csr_tensor",
        ("crow_indices", "col_indices"),
        (crow_indices, col_indices),
        values,
        size,
        dtype,
        device,
        check_invariants,
    )
    x = csr(pattern, stored)
    return x.requires_grad_() if _requires_grad_flag("sparse_csr_tensor", requires_grad) else x


@arguments.public(widen=False)
def sparse_csc_tensor(
    ccol_indices: object,
    row_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> CSC:
    """Build a CSC matrix over the given tensors, uncopied; rows must ascend within a column.

    - `ccol_indices`: the start of each column among the entries, and the end of the last column.
    - `row_indices`: the row of each entry; rows ascend within a column, each there once.
    - `values`: the values of the entries, one for each row index.
    - `size`: the shape; None: there are as many rows as the indices need.
    - `requires_grad`: True to record the gradient of the values.
    - `check_invariants`: check the indices, which takes one host read; False trusts them.

    Column j has the entries `ccol_indices[j]` to `ccol_indices[j + 1] - 1`. Tensors are stored
    without a copy: do not write to the indices afterwards.
    Shapes: ccol_indices (columns + 1), row_indices and values (entries).
    Dtypes: indices are stored as int64; values any, `dtype` if given.
    Raises: OutOfRangeError, ShapeError, DTypeError, DeviceError, ArgumentError for indices that do
    not ascend (see dt.sparse_coo_tensor, which takes any order).
    See also: `sparse_coo_tensor`, `to_sparse_csc`, `CSC`.

    >>> import dovetail as dt
    >>> x = dt.sparse_csc_tensor([0, 1, 2, 3], [1, 1, 0], [4.0, 5.0, 3.0])
    >>> x.to_dense().tolist()
    [[0.0, 0.0, 3.0], [4.0, 5.0, 0.0]]
    """
    name = "sparse_csc_tensor"
    size = None if size is None else arguments.integers(name, size, "size")[::-1]
    pattern, stored = check_parts(
        name,
        ("ccol_indices", "row_indices"),
        (ccol_indices, row_indices),
        values,
        size,
        dtype,
        device,
        check_invariants,
    )
    x = csc(pattern, stored)
    return x.requires_grad_() if _requires_grad_flag(name, requires_grad) else x


def _requires_grad_flag(name: str, requires_grad: bool) -> bool:
    """Return the flag `requires_grad` as a bool. Raises: ArgumentTypeError for others."""
    return arguments.flag(name, requires_grad, "requires_grad")


def check_parts(
    name: str,
    names: tuple[str, str],
    indices: tuple[object, object],
    values: object,
    size: Sequence[int] | None,
    dtype: DTypeLike,
    device: DeviceLike,
    check: bool,
    ndim: int = 1,
) -> tuple[Pattern, Tensor]:
    """Check row starts, columns and values, and return the pattern and the values as a tensor.

    `name`: the public function, for error messages; it lists the errors.
    """
    check = arguments.flag(name, check, "check_invariants")
    stored = as_values(values, dtype, device, indices)
    bounds, columns = (
        _require_index_vector(name, what, x, stored) for what, x in zip(names, indices, strict=True)
    )
    _require_fit(name, names, bounds, columns, stored, ndim)
    rows, count = bounds.shape[0] - 1, columns.shape[0]
    shape = None if size is None else arguments.integers(name, size, "size")
    if shape is not None:
        _require_shape(name, names, shape, rows)
    if shape is None or check:
        summary = _index_summary(bounds, columns)
        shape = (rows, summary[5] + 1) if shape is None else shape
        if check:
            _require_order(name, names, summary, count, shape)
    return pattern_from_bounds(bounds, columns, shape, count), stored


def pattern_from_bounds(
    bounds: Tensor, columns: Tensor, shape: Sequence[int], count: int
) -> Pattern:
    """Build the coalesced pattern of row starts and columns. Rows of entries stay pending."""
    entries = dt.arange(count, device=columns.device)
    rows = dt.searchsorted(bounds, entries, side="right") - 1
    pattern = Pattern(
        [rows, columns], tuple(shape), count, columns.device, unsorted_dims=0, unique=True
    )
    pattern.set_bounds(bounds)
    return pattern


def as_values(
    values: object, dtype: DTypeLike, device: DeviceLike, indices: Sequence[object]
) -> Tensor:
    """Convert values to a tensor of `dtype` on `device`; a list goes to the indices' device."""
    if isinstance(values, Tensor):
        x = values if device is None else values.to(device=device)
        return x if dtype is None else x.astype(dtype, copy=False)
    devices = [x.device for x in indices if isinstance(x, Tensor)]
    device = devices[0] if device is None and devices else device
    return dt.asarray(values, dtype=dtype, device=device)


def _require_index_vector(name: str, what: str, x: object, values: Tensor) -> Tensor:
    """Return indices as an int64 vector.

    Raises: ShapeError unless they are a vector, DTypeError unless integers, DeviceError for another
    device than that of the values.
    """
    if not isinstance(x, Tensor):
        try:
            host = np.asarray(x)
        except (TypeError, ValueError):
            raise dt.ShapeError(
                f"{name}: {what} must be a vector, got {arguments.shown(x)}"
            ) from None
        host = host if host.size else host.astype(np.int64)
        if host.dtype.kind not in "iu":
            raise dt.DTypeError(f"{name}: {what} must be integers, got {host.dtype}")
        x = dt.asarray(host.astype(np.int64), device=values.device)
    if not x.dtype.is_integer:
        raise dt.DTypeError(f"{name}: {what} must be integers, got {x.dtype.name}")
    if x.ndim != 1:
        raise dt.ShapeError(f"{name}: {what} must be a vector, got shape {x.shape}")
    if x.device is not values.device:
        raise dt.DeviceError(
            f"{name}: {what} are on {x.device} and values on {values.device}; move one with "
            "x.to(device)"
        )
    return x.astype(int64, copy=False)


def _require_fit(
    name: str, names: tuple[str, str], bounds: Tensor, columns: Tensor, values: Tensor, ndim: int
) -> None:
    """Raise ShapeError if bounds are empty, or values and columns differ in number."""
    if bounds.shape[0] < 1:
        raise dt.ShapeError(f"{name}: {names[0]} must have at least 1 element, got 0")
    if values.ndim != ndim or values.shape[0] != columns.shape[0]:
        wanted = "a vector" if ndim == 1 else f"of {ndim} dimensions"
        raise dt.ShapeError(
            f"{name}: values must be {wanted}, with one item for each of the {columns.shape[0]} "
            f"{names[1]}, got shape {values.shape}"
        )


def _require_shape(name: str, names: tuple[str, str], shape: Shape, rows: int) -> None:
    """Raise ShapeError if `shape` is no matrix with this number of rows."""
    arguments.dimensions(name, shape)
    if len(shape) != 2:
        raise dt.ShapeError(f"{name}: size must have 2 dimensions, got {shape}")
    if shape[0] != rows:
        raise dt.ShapeError(
            f"{name}: for size {shape[0]} {names[0]} must have {shape[0] + 1} elements, got "
            f"{rows + 1}"
        )


def _index_summary(bounds: Tensor, columns: Tensor) -> list[int]:
    """Read first, last start, least step, 1 if unsorted or repeated, least and largest column.

    Without entries the last three are 0, 0 and -1. One host read.
    """
    count = columns.shape[0]
    steps = bounds[1:] - bounds[:-1]
    scalars = [bounds[0], bounds[-1], dt.min(steps) if steps.size else bounds[0] * 0]
    if count:
        at = dt.searchsorted(bounds, dt.arange(count, device=columns.device), side="right")
        broken = dt.logical_and(columns[1:] <= columns[:-1], at[1:] == at[:-1])
        scalars += [dt.any(broken).astype(int64), dt.min(columns), dt.max(columns)]
    numbers: list[int] = dt.stack(scalars).numpy().tolist()
    return numbers if count else [*numbers, 0, 0, -1]


def _require_order(
    name: str, names: tuple[str, str], summary: list[int], count: int, shape: Shape
) -> None:
    """Raise ArgumentError or OutOfRangeError if the index summary breaks a rule of CSR."""
    first, last, step, broken, low, high = summary
    if first or last != count or step < 0:
        raise dt.ArgumentError(
            f"{name}: {names[0]} must ascend from 0 to {count}, the number of {names[1]}, got "
            f"{first} to {last}" + (" with a descent between" if step < 0 else "")
        )
    if low < 0 or high >= shape[1]:
        bad = low if low < 0 else high
        raise dt.OutOfRangeError(f"{name}: {bad} in {names[1]} is out of range for size {shape[1]}")
    if broken:
        raise dt.ArgumentError(
            f"{name}: {names[1]} must ascend without repetition between two {names[0]}; use "
            "dt.sparse_coo_tensor, which accepts any order"
        )
