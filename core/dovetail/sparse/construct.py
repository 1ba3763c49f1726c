"""Construction of sparse tensors from indices and from strided tensors, and the way back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import (
    DeviceLike,
    DTypeLike,
    arguments,
    gather_at,
    int64,
    required,
    scatter_rows,
)

from .pattern import Pattern, linear
from .tensor import COO, Entries, coo, required_sparse

Tensor = dt.Tensor
Shape = tuple[int, ...]
NAME = "sparse_coo_tensor"


@arguments.public(widen=False)
def sparse_coo_tensor(
    indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    is_coalesced: bool = False,
    check_invariants: bool = True,
) -> COO:
    """Build a sparse tensor with `values` at `indices`; values at one position are added.

    - `indices`: the position of each entry along each sparse dimension.
    - `values`: the value of each entry, a number or a block over the dense dimensions.
    - `size`: the shape; None is as small as the indices permit.
    - `requires_grad`: True to record the gradient of the values.
    - `is_coalesced`: True promises that indices are in lexicographic order without repetition.
    - `check_invariants`: check the indices, which takes one host read of their extremes unless they
      come from the host; False trusts them.

    Tensors are stored without a copy: do not write to the indices afterwards.
    Shapes: indices (sparse dimensions, entries), values (entries, *dense dimensions), `size` both
    sizes together.
    Dtypes: indices are integers, stored as int64; values any, `dtype` if given.
    Raises: OutOfRangeError, ShapeError, DTypeError, DeviceError, ArgumentError for a broken
    promise.
    See also: `sparse_csr_tensor`, `to_sparse`, `from_scipy`, `COO`.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x.to_dense().tolist()
    [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]
    """
    requires_grad, is_coalesced, check_invariants = (
        arguments.flag(NAME, value, name)
        for name, value in (
            ("requires_grad", requires_grad),
            ("is_coalesced", is_coalesced),
            ("check_invariants", check_invariants),
        )
    )
    stored = _convert_values(values, dtype, device, indices)
    host = None if isinstance(indices, Tensor) else _host_indices(indices)
    at = indices if isinstance(indices, Tensor) else dt.asarray(host, device=stored.device)
    _require_fit(at, stored)
    at = at.astype(int64, copy=False)
    count, dims = at.shape[1], at.shape[0]
    low, high = (
        ([], []) if not count else _index_extremes(host, at, size is None or check_invariants)
    )
    shape = _check_shape(size, high, dims, stored)
    if count and check_invariants:
        _require_inside(low, high, shape)
    coords = [at[d] for d in range(dims)]
    pattern = Pattern(coords, shape[:dims], count, stored.device, indices=at)
    if is_coalesced:
        pattern = _as_coalesced(pattern, check_invariants)
    x = coo(pattern, stored)
    return x.requires_grad_() if requires_grad else x


def _convert_values(
    values: object, dtype: DTypeLike, device: DeviceLike, indices: object
) -> Tensor:
    """Convert values to a tensor of `dtype` on `device`; a list goes to the indices' device."""
    if isinstance(values, Tensor):
        x = values if device is None else values.to(device=device)
        return x if dtype is None else x.astype(dtype, copy=False)
    if device is None and isinstance(indices, Tensor):
        device = indices.device
    return dt.asarray(values, dtype=dtype, device=device)


def _host_indices(indices: object) -> np.ndarray[Any, Any]:
    """Return indices as an int64 array. Raises: ShapeError if ragged, DTypeError for floats."""
    try:
        array = np.asarray(indices)
    except (TypeError, ValueError):
        raise dt.ShapeError(
            f"{NAME}: indices must be a matrix, got {arguments.shown(indices)}"
        ) from None
    if not array.size:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise dt.DTypeError(f"{NAME}: indices must be integers, got {array.dtype}")
    return array.astype(np.int64)


def _require_fit(at: Tensor, values: Tensor) -> None:
    """Raise DTypeError, ShapeError or DeviceError if indices and values do not fit each other."""
    if not at.dtype.is_integer:
        raise dt.DTypeError(f"{NAME}: indices must be integers, got {at.dtype.name}")
    if at.ndim != 2:
        raise dt.ShapeError(
            f"{NAME}: indices must have the shape (sparse dimensions, entries), got {at.shape}"
        )
    if values.ndim < 1 or values.shape[0] != at.shape[1]:
        raise dt.ShapeError(
            f"{NAME}: the last axis of indices must equal the first axis of values, got shapes "
            f"{at.shape} and {values.shape}"
        )
    if values.device is not at.device:
        raise dt.DeviceError(
            f"{NAME}: indices are on {at.device} and values on {values.device}; move one with "
            "x.to(device)"
        )


def _index_extremes(host: Any, at: Tensor, needed: bool) -> tuple[list[int], list[int]]:
    """Return the least and the largest index along each dimension, or ([], []); one host read."""
    if not needed:
        return [], []
    if host is not None:
        return host.min(1).tolist(), host.max(1).tolist()
    low, high = dt.min(at, axis=1), dt.max(at, axis=1)
    dt.evaluate(low, high)
    return low.numpy().tolist(), high.numpy().tolist()


def _check_shape(size: Any, high: list[int], dims: int, values: Tensor) -> Shape:
    """Return the tensor's shape, the least without `size`.

    Raises: ShapeError if it does not fit.
    """
    dense = values.shape[1:]
    if size is None:
        return arguments.dimensions(NAME, (*(h + 1 for h in high or [-1] * dims), *dense))
    shape = arguments.integers(NAME, size, "size")
    if len(shape) != dims + len(dense):
        raise dt.ShapeError(
            f"{NAME}: size must have {dims + len(dense)} dimensions, {dims} of indices and "
            f"{len(dense)} of values, got {shape}"
        )
    if min(shape, default=0) < 0:
        raise dt.ShapeError(f"{NAME}: size must not be negative, got {shape}")
    arguments.dimensions(NAME, shape)
    if shape[dims:] != dense:
        raise dt.ShapeError(
            f"{NAME}: the dense dimensions of size {shape} must be {dense}, as in values, got "
            f"{shape[dims:]}"
        )
    return shape


def _require_inside(low: list[int], high: list[int], shape: Shape) -> None:
    """Raise OutOfRangeError if an index is negative or too large for its dimension."""
    for d, (least, most) in enumerate(zip(low, high, strict=True)):
        if least < 0:
            raise dt.OutOfRangeError(
                f"{NAME}: indices must not be negative, got {least} along dimension {d}"
            )
        if most >= shape[d]:
            raise dt.OutOfRangeError(
                f"{NAME}: index {most} along dimension {d} is out of range for its size {shape[d]} "
                f"(size {shape})"
            )


def _as_coalesced(pattern: Pattern, check: bool) -> Pattern:
    """Return the pattern marked as coalesced. Raises: ArgumentError if `check` finds it is not."""
    coalesced = pattern.coalesce() if check else (pattern, None)
    if coalesced[1] is not None:
        raise dt.ArgumentError(
            f"{NAME}: with is_coalesced=True the indices must be in lexicographic order without "
            "repetition; leave is_coalesced out and use x.coalesce()"
        )
    return pattern.with_coords(
        pattern.coords, unsorted_dims=0, unique=True, indices=pattern.indices
    )


def empty(shape: Shape, sparse_dim: int, dtype: dt.DType, device: dt.Device) -> COO:
    """Build a tensor without entries."""
    coords = [dt.zeros(0, dtype=dt.int64, device=device) for _ in range(sparse_dim)]
    values = dt.zeros((0, *shape[sparse_dim:]), dtype=dtype, device=device)
    return coo(Pattern(coords, shape[:sparse_dim], 0, device), values)


# --- to and from dense ---------------------------------------------------------------------------


@arguments.public(widen=False)
def to_sparse(x: Tensor, sparse_dim: int | None = None) -> COO:
    """Convert a tensor to a coalesced sparse tensor of its nonzero elements.

    - `sparse_dim`: the number of leading axes that are sparse; None: all. With fewer, a block is
      stored if any of its elements is nonzero.

    NaN is not zero.
    Shapes: any; the result has the same.
    Dtypes: all; the result has the same.
    Cost: the number of entries depends on data: two kernels with one host read between.
    Raises: ArgumentError for `sparse_dim` out of range, DTypeError if x is no tensor.
    See also: `to_dense`, `to_sparse_csr`, `sparse_coo_tensor`.

    >>> import dovetail as dt
    >>> dt.asarray([[0, 5], [6, 0]]).to_sparse().indices().tolist()
    [[0, 1], [1, 0]]
    """
    required("to_sparse", x)
    dims = (
        x.ndim if sparse_dim is None else arguments.integer("to_sparse", sparse_dim, "sparse_dim")
    )
    if not 0 <= dims <= x.ndim:
        raise dt.ArgumentError(
            f"to_sparse: sparse_dim must be between 0 and {x.ndim}, got {sparse_dim}"
        )
    if isinstance(x, Entries) and not isinstance(x, COO):
        x = x.as_coo()
    if isinstance(x, COO):
        return x if x.sparse_dim() == dims else to_sparse(x.to_dense(), dims)
    is_stored = x != 0
    if dims < x.ndim:
        is_stored = dt.any(is_stored, axis=tuple(range(dims, x.ndim)))
    if not dims:  # one entry, or none
        coords: tuple[Tensor, ...] = ()
        count = int(is_stored.item())
        values = x.reshape(1, *x.shape)[:count]
    else:
        coords = dt.nonzero(is_stored)
        count = coords[0].shape[0]
        column = [r.reshape(count, *(1,) * (x.ndim - dims)) for r in coords]
        axes = (-1, *range(dims, x.ndim))
        values = gather_at(x, dict(enumerate(column)), (count, *x.shape[dims:]), axes)
    pattern = Pattern(coords, x.shape[:dims], count, x.device, unsorted_dims=0, unique=True)
    return coo(pattern, values)


def to_dense(x: Entries) -> Tensor:
    """Convert a sparse tensor to a strided one; values at one position are added.

    Shapes: any; the result has the same.
    Dtypes: all; the result has the same.
    Raises: LayoutError if x is not sparse, DTypeError, OutOfMemoryError.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> dt.sparse.to_dense(x).tolist()
    [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]
    """
    entries = required_sparse("to_dense", x)
    if not isinstance(entries, COO):
        return entries.run_rule("to_dense", "to_dense", entries)
    x = entries.coalesce()
    p, dense = x.pattern, x.shape[x.sparse_dim() :]
    blank = dt.zeros((math.prod(p.shape), *dense), dtype=x.dtype, device=x.device)
    filled = scatter_rows(blank, x.values(), linear(p.coords, p.shape, p))
    return filled.reshape(x.shape)
