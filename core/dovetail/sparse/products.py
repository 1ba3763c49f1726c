"""Matrix products: sparse with strided, strided with sparse, sparse with sparse.

The kernel is that of compressed rows: for each element of the result a fold over the entries of one
row, columns ascending, with fused multiply-add. So the bits depend on neither threads nor device.
The gradient by the strided operand is the product with the transpose; that by the values is the
product of the two others, sampled at the entries. Both are differentiable in turn.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
from dovetail.extend import broadcast_shapes, make_node, rows_at

from .construct import to_sparse
from .moves import fully_sparse, view
from .pattern import Pattern, derives, linear
from .row_by_row import times_sparse
from .rows import PRODUCT, SAMPLED, Runs, expand
from .tensor import COO, coo

Tensor = dt.Tensor
Shape = tuple[int, ...]
NARROW = 1 << 31  # positions below it are int32


def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """The matrix product over the last two axes; those before them broadcast.

    With a strided operand the result is strided; of two sparse ones it is sparse, and how many
    entries it has depends on data: three rounds of kernels with a host read between.
    Raises: ShapeError, DTypeError (bool has no product), DeviceError.
    """
    _require_fit(x1, x2)
    a, b = _as_matrix(x1, 0), _as_matrix(x2, -1)
    dtype = dt.result_type(a, b)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if isinstance(a, COO):
        made = _sparse_sparse(a, b) if isinstance(b, COO) else _sparse_strided(a, b)
    else:
        assert isinstance(b, COO)
        made = _strided_sparse(a, b)
    if x1.ndim > 1 and x2.ndim > 1:
        return made
    gone = (x1.ndim == 1, x2.ndim == 1)
    kept = made.shape[:-2] + tuple(n for n, g in zip(made.shape[-2:], gone, strict=True) if not g)
    return made.reshape(kept)


def _require_fit(x1: Tensor, x2: Tensor) -> None:
    if x1.device is not x2.device:
        raise dt.DeviceError(
            f"matmul: operands are on {x1.device} and {x2.device}; move one with x.to(device)"
        )
    for x in (x1, x2):
        if not x.ndim:
            raise dt.ShapeError(
                f"matmul: shapes {x1.shape} and {x2.shape}: each needs 1 dimension; see dt.multiply"
            )
    if dt.result_type(x1, x2) is dt.bool:
        raise dt.DTypeError("matmul: does not take bool; see astype()")
    inner = x2.shape[0] if x2.ndim == 1 else x2.shape[-2]
    if x1.shape[-1] != inner:
        raise dt.ShapeError(
            f"matmul: shapes {x1.shape} and {x2.shape} do not fit: {x1.shape[-1]} columns against "
            f"{inner} rows"
        )


def _as_matrix(x: Tensor, axis: int) -> Any:
    x = fully_sparse(x) if isinstance(x, COO) else x
    return x if x.ndim > 1 else dt.expand_dims(x, axis=axis)


# --- sparse with strided -------------------------------------------------------------------------


def _sparse_strided(a: COO, b: Tensor) -> Tensor:
    """(..., m, k) @ (..., k, n): as one product of matrices, the sparse one with blocks."""
    if a.ndim == 2:
        return _one_sparse_matrix(a, b)
    if b.ndim > 2:
        batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
        a = _broadcast(a, (*batch, *a.shape[-2:]))
        b = dt.broadcast_to(b, (*batch, *b.shape[-2:]))
    batch, (m, k) = a.shape[:-2], a.shape[-2:]
    blocks = math.prod(batch)
    tall = view(a, ("reshape", (blocks, m, k))).coalesce()
    p = tall.pattern
    rows = p.coords[0] * m + p.coords[1]
    columns = p.coords[0] * k + p.coords[2] if b.ndim > 2 else p.coords[2]
    width = blocks * k if b.ndim > 2 else k
    pattern = p.like([rows, columns], (blocks * m, width), unsorted_dims=0, unique=True)
    made = product(pattern, tall.values(), b.reshape(width, b.shape[-1]))
    return made.reshape(*batch, m, b.shape[-1])


def _strided_sparse(a: Tensor, b: COO) -> Tensor:
    """(..., m, k) @ (..., k, n): by the transposes; columns of the left one become contiguous."""
    turned = dt.contiguous(a.mT)
    if a.ndim > 2 or b.ndim > 2:
        return _sparse_strided(b.mT, turned).mT  # type: ignore[arg-type]  # the transpose of a COO is one
    source = b.pattern.transposed_from
    if source is not None and source.is_coalesced:
        return _Product.apply(source, False, b.values(), turned).mT
    b = b.coalesce()
    return _Product.apply(b.pattern, True, b.values(), turned).mT


def _broadcast(x: COO, shape: Shape) -> COO:
    return x if x.shape == shape else view(x, ("expand", shape))


def _one_sparse_matrix(a: COO, b: Tensor) -> Tensor:
    source = a.pattern.transposed_from
    if source is not None and source.is_coalesced:  # its order is kept there: nothing is moved
        p, is_turned, values = source, True, a.values()
    else:
        a = a.coalesce()
        p, is_turned, values = a.pattern, False, a.values()
    if b.ndim == 2:
        return _Product.apply(p, is_turned, values, b)
    batch, (k, n) = b.shape[:-2], b.shape[-2:]
    wide = dt.moveaxis(b.reshape(math.prod(batch), k, n), 0, 1).reshape(k, -1)
    made = _Product.apply(p, is_turned, values, wide).reshape(a.shape[0], math.prod(batch), n)
    return dt.moveaxis(made, 1, 0).reshape(*batch, a.shape[0], n)


def times_vector(p: Pattern, turned: bool, values: Tensor, v: Tensor) -> Tensor | None:
    """The product of a coalesced matrix, or of its transpose, and a strided vector.

    None where there is anything to ask, convert or remember: `matmul` does that. What that looks at
    takes as long as the product of 100,000 entries.
    """
    dtype = v.dtype
    if (
        type(v) is not Tensor or v.ndim != 1 or v.shape[0] != p.shape[not turned] or not p.count
        or dtype is not values.dtype or dtype is dt.bool or v.device is not p.device
        or v.requires_grad or values.requires_grad
    ):  # fmt: skip
        return None
    operands = (v, values, *positions(p, turned))
    return make_node(PRODUCT, operands, p.shape[turned : turned + 1], dtype, dtype)


def product(p: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """The product of a coalesced sparse matrix and a strided one."""
    return _Product.apply(p, False, values, dense)


class _Product(dt.autograd.Function):
    """A, or its transpose, times a matrix; A has pattern `p` and `values`."""

    @staticmethod
    def forward(ctx: Any, p: Pattern, turned: bool, values: Tensor, dense: Tensor) -> Tensor:
        ctx.p, ctx.turned = p, turned
        ctx.save_for_backward(values, dense)
        return _product(p, turned, values, dense)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (g,) = gradients
        values, dense = ctx.saved_tensors
        by_values = by_dense = None
        if ctx.needs_input_grad[2]:
            x, y = (dense, g) if ctx.turned else (g, dense)
            by_values = _Sampled.apply(ctx.p, x, y)
        if ctx.needs_input_grad[3]:
            by_dense = _Product.apply(ctx.p, not ctx.turned, values, g)
        return None, None, by_values, by_dense


class _Sampled(dt.autograd.Function):
    """x @ y.T at the entries of a pattern."""

    @staticmethod
    def forward(ctx: Any, p: Pattern, x: Tensor, y: Tensor) -> Tensor:
        ctx.p = p
        ctx.save_for_backward(x, y)
        return make_node(SAMPLED, (x, y, *p.coords), (p.count,), x.dtype, x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (g,) = gradients
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        by_x = _Product.apply(ctx.p, False, g, y) if needs[1] else None
        by_y = _Product.apply(ctx.p, True, g, x) if needs[2] else None
        return None, by_x, by_y


def _product(p: Pattern, turned: bool, values: Tensor, dense: Tensor) -> Tensor:
    shape: Shape = (p.shape[1] if turned else p.shape[0], dense.shape[1])
    if not p.count:
        return dt.zeros(shape, dtype=dense.dtype, device=dense.device)
    if shape[1] == 1:  # a vector's elements do not share a load: rows are what is spread
        shape, dense = shape[:1], dense.reshape(-1)
    operands = (dense, values, *positions(p, turned))
    made = make_node(PRODUCT, operands, shape, dense.dtype, dense.dtype)
    return made.reshape(-1, 1) if dense.ndim == 1 else made


@derives
def positions(p: Pattern, turned: bool) -> tuple[Tensor, ...]:
    """Where rows start, columns, and of a transpose the order of the entries.

    As int32 where they fit: a product with a vector reads as much of them as of values.
    """
    name = ("positions", turned)
    if name not in p.kept:
        rows, order = p.transposed if turned else (p, None)
        found = [rows.bounds, rows.coords[1], *(() if order is None else (order,))]
        if max(*p.shape, p.count) < NARROW:
            found = [t.astype(dt.int32) for t in found]
        dt.evaluate(*found)
        p.kept[name] = tuple(found)
    known: tuple[Tensor, ...] = p.kept[name]
    return known


def kron(x1: Tensor, x2: Tensor) -> COO:
    """The Kronecker product: an entry for every pair of entries. Of a strided one those not 0."""
    if x1.device is not x2.device:
        raise dt.DeviceError(
            f"kron: operands are on {x1.device} and {x2.device}; move one with x.to(device)"
        )
    n = max(x1.ndim, x2.ndim)
    a, b = (_with_axes(x if isinstance(x, COO) else to_sparse(x), n) for x in (x1, x2))
    p, q = a.pattern, b.pattern
    shape = tuple(r * c for r, c in zip(p.shape, q.shape, strict=True))
    place = dt.arange(p.count * q.count, device=x1.device)
    left, right = place // max(q.count, 1), place % max(q.count, 1)
    coords = [
        rows_at(r, left) * m + rows_at(c, right)
        for r, c, m in zip(p.coords, q.coords, q.shape, strict=True)
    ]
    values = dt.multiply(rows_at(a.values(), left), rows_at(b.values(), right))
    in_order = n <= 1 and p.unsorted_dims == q.unsorted_dims == 0
    pattern = Pattern(
        coords, shape, p.count * q.count, x1.device, unsorted_dims=0 if in_order else None,
        unique=p.unique and q.unique,
    )  # fmt: skip
    return coo(pattern, values)


def _with_axes(x: COO, ndim: int) -> COO:
    x = fully_sparse(x)
    return view(x, ("reshape", (1,) * (ndim - x.ndim) + x.shape))


# --- sparse with sparse --------------------------------------------------------------------------


def _sparse_sparse(a: COO, b: COO) -> COO:
    """(..., m, k) @ (..., k, n): every pair of entries that meet, then sums of those at one place.

    Source: the expand, sort, compress scheme (Bell, Dalton and Olson, 2012,
    https://doi.org/10.1137/110838844).
    """
    batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
    lead = len(batch)
    a = _broadcast(a, (*batch, *a.shape[-2:])).coalesce()
    b = _broadcast(b, (*batch, *b.shape[-2:])).coalesce()
    shape = (*batch, a.shape[-2], b.shape[-1])
    if not lead and (quick := times_sparse(a, b)) is not None:
        return quick
    left, right = _meeting(a.pattern, b.pattern, lead)
    coords = [rows_at(a.pattern.coords[d], left) for d in range(lead + 1)]
    coords.append(rows_at(b.pattern.coords[lead + 1], right))
    values = rows_at(a.values(), left) * rows_at(b.values(), right)
    return _summed_up(Pattern(coords, shape, left.shape[0], a.device), values)


def _summed_up(p: Pattern, values: Tensor) -> COO:
    """Entries in the order of all dimensions but the last, coalesced."""
    dims = range(len(p.shape))
    if not p.count or len(p.keys()) > 1:
        return coo(p, values).coalesce()
    order = p.order_by(dims)
    key = rows_at(p.key(dims), order)
    dt.evaluate(key)
    first = dt.ones(1, dtype=dt.bool, device=p.device)
    (starts,) = dt.nonzero(dt.concat([first, key[1:] != key[:-1]]))
    rows = [rows_at(c, starts) for c in p.coords[:-1]]  # they stand as they stood
    dt.evaluate(*rows)
    last = rows_at(key, starts) - linear(rows, p.shape[:-1], p) * p.shape[-1]
    dt.evaluate(last)
    pattern = Pattern(
        [*rows, last], p.shape, starts.shape[0], p.device, unsorted_dims=0, unique=True
    )
    if pattern.count == p.count:
        return coo(pattern, rows_at(values, order))
    return coo(pattern, Runs(starts, order, p.count).combined("sum", values))


def _meeting(p: Pattern, q: Pattern, lead: int) -> tuple[Tensor, Tensor]:
    """The pairs of entries with p's column equal to q's row, within each block."""
    blocks = range(lead)
    if not p.count or not q.count:
        nothing = dt.zeros(0, dtype=dt.int64, device=p.device)
        return nothing, nothing
    if not lead:
        row = p.coords[1]
        return expand(rows_at(q.bounds, row), rows_at(q.bounds, row + 1))
    asked, keys = p.key([*blocks, lead + 1]), q.key([*blocks, lead])  # q is in the order of its key
    low, high = dt.searchsorted(keys, asked), dt.searchsorted(keys, asked, side="right")
    return expand(low, high)
