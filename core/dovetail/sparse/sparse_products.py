"""Matrix products: sparse with strided, strided with sparse, sparse with sparse.

The kernel is that of compressed rows: each element of the result is a fold over the entries of one
row, columns ascending, with fused multiply-add. So the bits depend on neither threads nor device.
The gradient by the strided operand is the product with the transpose. The gradient by the values is
the product of the two other matrices, sampled at the entries. Both are differentiable again.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
from dovetail.extend import broadcast_shapes, make_node, rows_at

from .construct import to_sparse
from .gustavson import times_sparse
from .pattern import Pattern, cache_on_pattern, linear
from .sparse_ops import PRODUCT, SAMPLED_PRODUCT, Runs, expand
from .tensor import COO, coo
from .view_rules import fully_sparse, view

Tensor = dt.Tensor
Shape = tuple[int, ...]
INT32_POSITIONS_MAX = 1 << 31  # positions below it fit int32


def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them broadcast.

    With a strided operand the result is strided. Of two sparse operands it is sparse, and the
    number of entries depends on data: three rounds of kernels with a host read between.
    Raises: ShapeError, DTypeError (bool has no product), DeviceError.
    """
    _require_fit(x1, x2)
    a, b = _as_matrix(x1, 0), _as_matrix(x2, -1)
    dtype = dt.result_type(a, b)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if isinstance(a, COO):
        product = (
            _multiply_sparse_sparse(a, b) if isinstance(b, COO) else _multiply_sparse_strided(a, b)
        )
    else:
        assert isinstance(b, COO)
        product = _multiply_strided_sparse(a, b)
    if x1.ndim > 1 and x2.ndim > 1:
        return product
    matrix = zip(product.shape[-2:], (x1.ndim, x2.ndim), strict=True)
    return product.reshape(product.shape[:-2] + tuple(n for n, ndim in matrix if ndim != 1))


def _require_fit(x1: Tensor, x2: Tensor) -> None:
    """Raise DeviceError, ShapeError or DTypeError if operands cannot be multiplied."""
    if x1.device is not x2.device:
        raise dt.DeviceError(
            f"matmul: operands are on {x1.device} and {x2.device}; move one with x.to(device)"
        )
    for x in (x1, x2):
        if not x.ndim:
            raise dt.ShapeError(
                f"matmul: both operands must have at least 1 dimension, got shapes {x1.shape} and "
                f"{x2.shape}; use dt.multiply"
            )
    if dt.result_type(x1, x2) is dt.bool:
        raise dt.DTypeError("matmul: expected numbers, got bool; use astype()")
    inner = x2.shape[0] if x2.ndim == 1 else x2.shape[-2]
    if x1.shape[-1] != inner:
        raise dt.ShapeError(
            f"matmul: x1 must have as many columns as x2 has rows, got {x1.shape[-1]} and {inner} "
            f"(shapes {x1.shape} and {x2.shape})"
        )


def _as_matrix(x: Tensor, axis: int) -> Any:
    """Return an operand without dense dimensions; a vector gets an axis of size 1 at `axis`."""
    x = fully_sparse(x) if isinstance(x, COO) else x
    return x if x.ndim > 1 else dt.expand_dims(x, axis=axis)


# --- sparse with strided -------------------------------------------------------------------------


def _multiply_sparse_strided(a: COO, b: Tensor) -> Tensor:
    """Return (..., m, k) @ (..., k, n) as one product with a block-diagonal sparse matrix."""
    if a.ndim == 2:
        return _multiply_one_sparse_matrix(a, b)
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
    pattern = p.with_coords([rows, columns], (blocks * m, width), unsorted_dims=0, unique=True)
    result = product(pattern, tall.values(), b.reshape(width, b.shape[-1]))
    return result.reshape(*batch, m, b.shape[-1])


def _multiply_strided_sparse(a: Tensor, b: COO) -> Tensor:
    """Return (..., m, k) @ (..., k, n) by the transposes; the left one is made contiguous."""
    transpose = dt.contiguous(a.mT)
    if a.ndim > 2 or b.ndim > 2:
        return _multiply_sparse_strided(b.mT, transpose).mT  # type: ignore[arg-type]  # the transpose of a COO is one
    source = b.pattern.transposed_from
    if source is not None and source.is_coalesced:
        return _Product.apply(source, False, b.values(), transpose).mT
    b = b.coalesce()
    return _Product.apply(b.pattern, True, b.values(), transpose).mT


def _broadcast(x: COO, shape: Shape) -> COO:
    """Return the tensor broadcast to a shape; itself if it has the shape."""
    return x if x.shape == shape else view(x, ("expand", shape))


def _multiply_one_sparse_matrix(a: COO, b: Tensor) -> Tensor:
    """Return a sparse matrix times one or several strided matrices."""
    source = a.pattern.transposed_from
    if source is not None and source.is_coalesced:  # the source caches the order: no value moves
        p, is_transposed, values = source, True, a.values()
    else:
        a = a.coalesce()
        p, is_transposed, values = a.pattern, False, a.values()
    if b.ndim == 2:
        return _Product.apply(p, is_transposed, values, b)
    batch, (k, n) = b.shape[:-2], b.shape[-2:]
    wide = dt.moveaxis(b.reshape(math.prod(batch), k, n), 0, 1).reshape(k, -1)
    result = _Product.apply(p, is_transposed, values, wide).reshape(a.shape[0], math.prod(batch), n)
    return dt.moveaxis(result, 1, 0).reshape(*batch, a.shape[0], n)


def times_vector(p: Pattern, transpose: bool, values: Tensor, v: Tensor) -> Tensor | None:
    """Return the product of a coalesced matrix, or its transpose, and a strided vector, or None.

    None if an operand needs a check, a conversion or a gradient, which `matmul` does. Its checks
    take as long as the product of 100,000 entries.
    """
    dtype = v.dtype
    if (
        v.layout is not dt.strided
        or v.ndim != 1
        or v.shape[0] != p.shape[not transpose]
        or not p.count
        or dtype is not values.dtype
        or dtype is dt.bool
        or v.device is not p.device
        or v.requires_grad
        or values.requires_grad
    ):
        return None
    operands = (v, values, *positions(p, transpose))
    return make_node(PRODUCT, operands, p.shape[transpose : transpose + 1], dtype, dtype)


def product(p: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """Return the product of a coalesced sparse matrix and a strided one."""
    return _Product.apply(p, False, values, dense)


class _Product(dt.autograd.Function):
    """The product of A, or its transpose, and a matrix; A has pattern `p` and `values`."""

    @staticmethod
    def forward(ctx: Any, p: Pattern, transpose: bool, values: Tensor, dense: Tensor) -> Tensor:
        """Return the product, and save `values` and `dense` for the backward pass."""
        ctx.p, ctx.transpose = p, transpose
        ctx.save_for_backward(values, dense)
        return _multiply(p, transpose, values, dense)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the gradients of values and dense matrix that are needed, else None."""
        (g,) = gradients
        values, dense = ctx.saved_tensors
        by_values = by_dense = None
        if ctx.needs_input_grad[2]:
            x, y = (dense, g) if ctx.transpose else (g, dense)
            by_values = _SampledProduct.apply(ctx.p, x, y)
        if ctx.needs_input_grad[3]:
            by_dense = _Product.apply(ctx.p, not ctx.transpose, values, g)
        return None, None, by_values, by_dense


class _SampledProduct(dt.autograd.Function):
    """The elements of x @ y.T at the entries of a pattern."""

    @staticmethod
    def forward(ctx: Any, p: Pattern, x: Tensor, y: Tensor) -> Tensor:
        """Return the elements at the entries, and save x and y for the backward pass."""
        ctx.p = p
        ctx.save_for_backward(x, y)
        return make_node(SAMPLED_PRODUCT, (x, y, *p.coords), (p.count,), x.dtype, x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the gradients of x and y that are needed, else None."""
        (g,) = gradients
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        by_x = _Product.apply(ctx.p, False, g, y) if needs[1] else None
        by_y = _Product.apply(ctx.p, True, g, x) if needs[2] else None
        return None, by_x, by_y


def _multiply(p: Pattern, transpose: bool, values: Tensor, dense: Tensor) -> Tensor:
    """Return A, or its transpose, times a matrix, without a gradient."""
    shape: Shape = (p.shape[1] if transpose else p.shape[0], dense.shape[1])
    if not p.count:
        return dt.zeros(shape, dtype=dense.dtype, device=dense.device)
    if shape[1] == 1:  # a vector's elements share no load, so points are spread over rows
        shape, dense = shape[:1], dense.reshape(-1)
    operands = (dense, values, *positions(p, transpose))
    result = make_node(PRODUCT, operands, shape, dense.dtype, dense.dtype)
    return result.reshape(-1, 1) if dense.ndim == 1 else result


@cache_on_pattern
def positions(p: Pattern, transpose: bool) -> tuple[Tensor, ...]:
    """Return row pointers, columns, and for a transpose the order of the entries; cached.

    They are int32 if they fit: a product with a vector reads as many of them as of values.
    """
    name = ("positions", transpose)
    if name not in p.derived:
        rows, order = p.transpose if transpose else (p, None)
        operands = [rows.bounds, rows.coords[1], *(() if order is None else (order,))]
        if max(*p.shape, p.count) < INT32_POSITIONS_MAX:
            operands = [t.astype(dt.int32) for t in operands]
        dt.evaluate(*operands)
        p.derived[name] = tuple(operands)
    result: tuple[Tensor, ...] = p.derived[name]
    return result


def kron(x1: Tensor, x2: Tensor) -> COO:
    """Return the Kronecker product: an entry for every pair of entries.

    A strided operand contributes its nonzero elements.
    """
    if x1.device is not x2.device:
        raise dt.DeviceError(
            f"kron: operands are on {x1.device} and {x2.device}; move one with x.to(device)"
        )
    n = max(x1.ndim, x2.ndim)
    a, b = (_prepend_axes(x if isinstance(x, COO) else to_sparse(x), n) for x in (x1, x2))
    p, q = a.pattern, b.pattern
    shape = tuple(r * c for r, c in zip(p.shape, q.shape, strict=True))
    pair = dt.arange(p.count * q.count, device=x1.device)
    left, right = pair // max(q.count, 1), pair % max(q.count, 1)
    coords = [
        rows_at(r, left) * m + rows_at(c, right)
        for r, c, m in zip(p.coords, q.coords, q.shape, strict=True)
    ]
    values = dt.multiply(rows_at(a.values(), left), rows_at(b.values(), right))
    in_order = n <= 1 and p.unsorted_dims == q.unsorted_dims == 0
    pattern = Pattern(
        coords,
        shape,
        p.count * q.count,
        x1.device,
        unsorted_dims=0 if in_order else None,
        unique=p.unique and q.unique,
    )
    return coo(pattern, values)


def _prepend_axes(x: COO, ndim: int) -> COO:
    """Return the tensor, fully sparse, with axes of size 1 in front, up to `ndim`."""
    x = fully_sparse(x)
    return view(x, ("reshape", (1,) * (ndim - x.ndim) + x.shape))


# --- sparse with sparse --------------------------------------------------------------------------


def _multiply_sparse_sparse(a: COO, b: COO) -> COO:
    """Return (..., m, k) @ (..., k, n): all pairs of entries, with equal positions summed.

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
    left, right = _matching_pairs(a.pattern, b.pattern, lead)
    coords = [rows_at(a.pattern.coords[d], left) for d in range(lead + 1)]
    coords.append(rows_at(b.pattern.coords[lead + 1], right))
    values = rows_at(a.values(), left) * rows_at(b.values(), right)
    return _sum_duplicates(Pattern(coords, shape, left.shape[0], a.device), values)


def _sum_duplicates(p: Pattern, values: Tensor) -> COO:
    """Return the coalesced tensor of entries that are sorted by all dimensions but the last."""
    dims = range(len(p.shape))
    if not p.count or len(p.keys()) > 1:
        return coo(p, values).coalesce()
    order = p.order_by(dims)
    key = rows_at(p.key(dims), order)
    dt.evaluate(key)
    first = dt.ones(1, dtype=dt.bool, device=p.device)
    (starts,) = dt.nonzero(dt.concat([first, key[1:] != key[:-1]]))
    rows = [
        rows_at(c, starts) for c in p.coords[:-1]
    ]  # sorting by the last dimension does not move them
    dt.evaluate(*rows)
    last = rows_at(key, starts) - linear(rows, p.shape[:-1], p) * p.shape[-1]
    dt.evaluate(last)
    pattern = Pattern(
        [*rows, last], p.shape, starts.shape[0], p.device, unsorted_dims=0, unique=True
    )
    if pattern.count == p.count:
        return coo(pattern, rows_at(values, order))
    return coo(pattern, Runs(starts, order, p.count).combine("sum", values))


def _matching_pairs(p: Pattern, q: Pattern, lead: int) -> tuple[Tensor, Tensor]:
    """Return the pairs of entries with p's column equal to q's row, by block; one host read."""
    blocks = range(lead)
    if not p.count or not q.count:
        nothing = dt.zeros(0, dtype=dt.int64, device=p.device)
        return nothing, nothing
    if not lead:
        row = p.coords[1]
        return expand(rows_at(q.bounds, row), rows_at(q.bounds, row + 1))
    queries, keys = (
        p.key([*blocks, lead + 1]),
        q.key([*blocks, lead]),
    )  # q is in the order of its key
    low, high = dt.searchsorted(keys, queries), dt.searchsorted(keys, queries, side="right")
    return expand(low, high)
