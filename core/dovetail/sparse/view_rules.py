"""Rules that rearrange entries: the moves of `dovetail.layout`, index arrays, concat, diagonal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import arguments, rows_at

from .construct import empty
from .pattern import Pattern, linear, unravel, zeros
from .sparse_ops import expand
from .tensor import COO, coo

Tensor = dt.Tensor
Shape = tuple[int, ...]


def view(x: COO, move: Any) -> COO:
    """Return the tensor after a layout move; the result shares the values if all of them remain."""
    return _MOVES[move[0]](x, *move[1:])


def fully_sparse(x: COO) -> COO:
    """Return the tensor without dense dimensions: each element of a block becomes an entry."""
    dense = x.shape[x.sparse_dim() :]
    if not dense:
        return x
    p, block = x.pattern, math.prod(dense)
    position = dt.arange(p.count * block, device=x.device)
    entry, inside = position // max(block, 1), position % max(block, 1)
    coords = [rows_at(r, entry) for r in p.coords] + unravel(inside, dense)
    pattern = Pattern(
        coords,
        x.shape,
        p.count * block,
        x.device,
        unsorted_dims=0 if p.unsorted_dims == 0 and p.unique else None,
        unique=p.unique,
    )
    return coo(pattern, x.values().reshape(-1))


# --- the four moves ------------------------------------------------------------------------------


def _permute(x: COO, axes: Shape) -> COO:
    """Return the tensor with permuted axes; fully sparse if sparse and dense axes mix."""
    dims = x.sparse_dim()
    if sorted(axes[:dims]) != list(range(dims)):
        x, dims = fully_sparse(x), x.ndim
    p, sparse = x.pattern, axes[:dims]
    if sparse == (1, 0):
        return coo(transpose_pattern(p), _permute_values(x, axes))
    pattern = p.with_coords(
        [p.coords[a] for a in sparse],
        tuple(p.shape[a] for a in sparse),
        unsorted_dims=_unsorted_after(sparse) if p.unsorted_dims == 0 else None,
        unique=p.unique,
    )
    return coo(pattern, _permute_values(x, axes))


def _permute_values(x: COO, axes: Shape) -> Tensor:
    """Return the values with their dense axes permuted."""
    dims, values = x.sparse_dim(), x.values()
    if axes[dims:] == tuple(range(dims, x.ndim)):
        return values
    return values.permute_dims((0, *(a - dims + 1 for a in axes[dims:])))


def transpose_pattern(p: Pattern) -> Pattern:
    """Return the pattern of the transpose of a matrix.

    It refers to its source, which caches the order of the transposed entries.
    """
    if p.transposed_from is not None:
        return p.transposed_from
    result = p.with_coords(
        p.coords[::-1],
        p.shape[::-1],
        unsorted_dims=1 if p.unsorted_dims == 0 else None,
        unique=p.unique,
    )
    result.is_captured = p.is_captured  # it has the vectors of `p`
    if not result.is_coalesced:
        result.transposed_from = p
    return result


def _unsorted_after(axes: Shape) -> int:
    """Return the number of leading axes to sort by after a permutation of sorted entries.

    Axes behind the exchanged ones keep their order.
    """
    unsorted = len(axes)
    while unsorted > 0 and (unsorted == len(axes) or axes[unsorted - 1] < axes[unsorted]):
        unsorted -= 1
    return 0 if axes == tuple(sorted(axes)) else unsorted


def _expand(x: COO, shape: Shape) -> COO:
    """Return the tensor broadcast to `shape`; entries are copied along sparse axes that grow."""
    lead = len(shape) - x.ndim
    dims = lead + x.sparse_dim()
    values, wanted = x.values(), (x.nnz, *shape[dims:])
    if values.shape != wanted:
        values = dt.broadcast_to(values, wanted)
    p = _prepend_axes(x.pattern, lead)
    if p.shape == shape[:dims]:
        return coo(p, values)
    if 0 in shape[:dims]:
        return empty(shape, dims, x.dtype, x.device)
    return _repeat_entries(coo(p, values), shape[:dims])


def _prepend_axes(p: Pattern, lead: int) -> Pattern:
    """Return the pattern with `lead` axes of size 1 in front."""
    if not lead:
        return p
    shape, unsorted_dims = (1,) * lead + p.shape, 0 if p.unsorted_dims == 0 else None
    return p.with_coords(
        [zeros(p)] * lead + list(p.coords), shape, unsorted_dims=unsorted_dims, unique=p.unique
    )


def _repeat_entries(x: COO, sizes: Shape) -> COO:
    """Return the tensor with each entry copied along the axes of size 1 that grow to `sizes`."""
    p = x.pattern
    grown = [d for d, n in enumerate(sizes) if n != p.shape[d]]
    repeats = math.prod(sizes[d] for d in grown)
    position = dt.arange(p.count * repeats, device=x.device)
    first = all(
        n == 1 for n in p.shape[: max(grown) + 1]
    )  # sorted if whole copies follow each other
    last = all(n == 1 for n in p.shape[min(grown) :])  # or copies of one entry
    copy, entry = position % repeats, position // repeats
    if first:
        copy, entry = position // max(p.count, 1), position % max(p.count, 1)
    copies = dict(zip(grown, unravel(copy, tuple(sizes[d] for d in grown)), strict=True))
    coords = [copies[d] if d in copies else rows_at(r, entry) for d, r in enumerate(p.coords)]
    in_order = p.unsorted_dims == 0 and (first or (last and p.unique))
    pattern = Pattern(
        coords,
        sizes,
        p.count * repeats,
        x.device,
        unsorted_dims=0 if in_order else None,
        unique=p.unique,
    )
    return coo(pattern, rows_at(x.values(), entry))


def _slice(x: COO, starts: Shape, lengths: Shape, steps: Shape) -> COO:
    """Return a slice of all axes; the selection of entries takes one host read."""
    dims, values, p = x.sparse_dim(), x.values(), x.pattern
    if lengths[dims:] != x.shape[dims:] or any(t != 1 for t in steps[dims:]):
        inner = map(_as_slice, starts[dims:], lengths[dims:], steps[dims:])
        values = values[(slice(None), *inner)]
    cut = [d for d in range(dims) if lengths[d] != p.shape[d] or steps[d] != 1]
    if any(lengths[d] == 0 for d in cut):
        return empty((*lengths[:dims], *values.shape[1:]), dims, x.dtype, x.device)
    inside = [
        _is_in_slice(p.coords[d], starts[d], lengths[d], steps[d])
        for d in cut
        if lengths[d] != p.shape[d]
    ]
    if inside:
        (at,) = dt.nonzero(reduce(dt.logical_and, inside))
        p, values = p.select(at), rows_at(values, at)
    return coo(_renumber(p, cut, starts, lengths, steps), values)


def _renumber(
    p: Pattern, sliced_axes: list[int], starts: Shape, lengths: Shape, steps: Shape
) -> Pattern:
    """Return the pattern with positions counted along the slice; all entries must lie in it."""
    if not sliced_axes:
        return p
    coords = list(p.coords)
    for d in sliced_axes:
        moved = coords[d] - starts[d] if starts[d] else coords[d]
        coords[d] = moved if steps[d] == 1 else -moved if steps[d] == -1 else moved // steps[d]
    is_reversed = any(steps[d] < 0 and lengths[d] > 1 for d in sliced_axes)
    return p.with_coords(
        coords,
        lengths[: len(p.shape)],
        unsorted_dims=None if is_reversed else p.unsorted_dims,
        unique=p.unique,
    )


def _as_slice(start: int, length: int, step: int) -> slice:
    """Return the Python slice of a start, a length and a step."""
    stop = start + length * step
    return slice(start, stop if stop >= 0 else None, step) if length else slice(0, 0)


def _is_in_slice(row: Tensor, start: int, length: int, step: int) -> Tensor:
    """Return a mask: True if the index is one of start, start + step, ..."""
    low, high = sorted((start, start + (length - 1) * step))
    inside = dt.logical_and(row >= low, row <= high)
    if abs(step) > 1 and length > 1:
        inside = dt.logical_and(inside, (row - low) % abs(step) == 0)
    return inside


def _reshape(x: COO, shape: Shape) -> COO:
    """Return the tensor with another shape. Raises: ShapeError from 2**63 elements on."""
    if shape == x.shape:
        return x
    dims = _sparse_axes_after(x, shape)
    if dims is None:
        x, dims = fully_sparse(x), len(shape)
    p = x.pattern
    values = x.values().reshape(p.count, *shape[dims:])
    new = shape[:dims]
    unsorted_dims = 0 if p.unsorted_dims == 0 else None
    if new == p.shape:
        return coo(p, values)
    if tuple(n for n in p.shape if n != 1) == tuple(n for n in new if n != 1) and p.count:
        coords_left = iter([r for r, n in zip(p.coords, p.shape, strict=True) if n != 1])
        coords = [zeros(p) if n == 1 else next(coords_left) for n in new]
    else:
        _require_int64_positions("reshape", p.shape, x.shape)
        coords = unravel(linear(p.coords, p.shape, p), new)
    return coo(p.with_coords(coords, new, unsorted_dims=unsorted_dims, unique=p.unique), values)


def _sparse_axes_after(x: COO, shape: Shape) -> int | None:
    """Return the number of leading axes of `shape` that the sparse axes fill, or None."""
    if not x.dense_dim():
        return len(shape)
    sparse, dense = x.pattern.size, math.prod(x.shape[x.sparse_dim() :])
    for d in range(len(shape) + 1):
        if math.prod(shape[:d]) == sparse and math.prod(shape[d:]) == dense:
            return d
    return None


def _require_int64_positions(name: str, shape: Shape, full_shape: Shape) -> None:
    """Raise ShapeError if positions do not fit one int64 number."""
    if math.prod(shape) >= 1 << 63:
        raise dt.ShapeError(f"{name}: shape {full_shape} must have fewer than 2**63 elements")


_MOVES: dict[str, Callable[..., COO]] = {
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "reshape": _reshape,
}


# --- index arrays --------------------------------------------------------------------------------


def index(x: COO, items: list[Any]) -> COO:
    """Return `x[...]` with arrays of integers or masks, by NumPy's rules.

    The number of entries depends on data: two rounds of kernels with one host read between.
    """
    basic, arrays = _split_index(x, items)
    dims = x.sparse_dim()
    named = [*arrays, *(a for a, part in basic.items() if not isinstance(part, slice))]
    if x.dense_dim() and (max(named) >= dims or any(part is None for part in items)):
        x = fully_sparse(x)
    for axis, part in basic.items():
        if isinstance(part, slice):
            x = _slice_axis(x, axis, part)
    return _select_by_arrays(x, items, basic, arrays)


def _split_index(x: COO, items: list[Any]) -> tuple[dict[int, Any], dict[int, Tensor]]:
    """Split an index into slices and ints, and arrays, by axis of x.

    Raises: OutOfRangeError for a single bool, and as `_array_positions`.
    """
    basic: dict[int, Any] = {}
    arrays: dict[int, Tensor] = {}
    axis = 0
    for part in items:
        if part is None or part is Ellipsis:
            continue
        if isinstance(part, bool) or (_is_mask(part) and not part.ndim):
            raise dt.OutOfRangeError(
                "index: a single bool cannot index a sparse tensor; use a mask"
            )
        if isinstance(part, (Tensor, np.ndarray)):
            for positions in _array_positions(x, axis, part):
                arrays[axis] = positions
                axis += 1
        else:
            basic[axis] = part
            axis += 1
    return basic, arrays


def _array_positions(x: COO, axis: int, part: Any) -> tuple[Tensor, ...]:
    """Return positions from 0 of an index array, or of a mask's Trues; the host reads their bounds.

    Raises: OutOfRangeError for one out of range, and a mask of another shape.
    """
    is_mask = part.dtype in (dt.bool, np.bool_)
    sizes = x.shape[axis : axis + part.ndim]
    if is_mask and any(m not in (n, 0) for m, n in zip(part.shape, sizes, strict=True)):
        raise dt.OutOfRangeError(
            f"index: a mask must match axes {axis}..{axis + part.ndim - 1} of shape {x.shape}, got "
            f"shape {tuple(part.shape)}"
        )
    if is_mask:
        nonzero = dt.nonzero(dt.asarray(part, device=x.device))
        return tuple(nonzero)
    n = x.shape[axis]
    at = dt.asarray(part, device=x.device).astype(dt.int64)
    if at.size:
        low, high = dt.min(at), dt.max(at)
        dt.evaluate(low, high)
        if low.item() < -n or high.item() >= n:
            bad = low.item() if low.item() < -n else high.item()
            raise dt.OutOfRangeError(f"index: {bad} is out of range for axis {axis} of size {n}")
    return (dt.where(at < 0, at + n, at),)


def _slice_axis(x: COO, axis: int, part: slice) -> COO:
    """Return the tensor sliced along one axis."""
    start, stop, step = part.indices(x.shape[axis])
    n = len(range(start, stop, step))
    starts = tuple(start if d == axis else 0 for d in range(x.ndim))
    lengths = tuple(n if d == axis else m for d, m in enumerate(x.shape))
    return _slice(x, starts, lengths, tuple(step if d == axis else 1 for d in range(x.ndim)))


def _select_by_arrays(
    x: COO, items: list[Any], basic: dict[int, Any], arrays: dict[int, Tensor]
) -> COO:
    """Return entries at arrays and ints; add ints to `arrays`.

    Raises: OutOfRangeError for an int that is out of range.
    """
    for axis, part in basic.items():
        if not isinstance(part, slice):  # an integer next to arrays takes part in broadcasting
            i = range(x.shape[axis])[part] if -x.shape[axis] <= part < x.shape[axis] else None
            if i is None:
                raise dt.OutOfRangeError(
                    f"index: {arguments.shown(part)} is out of range for axis {axis} of size "
                    f"{x.shape[axis]}"
                )
            arrays[axis] = dt.asarray(i, dtype=dt.int64, device=x.device)
    joined_axes = sorted(arrays)
    shape = dt.broadcast_shapes(*(a.shape for a in arrays.values()))
    wanted = [dt.broadcast_to(arrays[a], shape).reshape(-1) for a in joined_axes]
    query, entry = _join_entries(x.pattern, joined_axes, wanted)
    return _arrange_axes(x, items, joined_axes, shape, query, entry)


def _join_entries(
    p: Pattern, joined_axes: list[int], indices: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return pairs (query, entry) equal along `joined_axes`, by query, then entry; a host read."""
    sizes = [p.shape[a] for a in joined_axes]
    _require_int64_positions("index", tuple(sizes), p.shape)
    sorted_ = p.unsorted_dims == 0 and joined_axes == list(range(len(joined_axes)))
    order = None if sorted_ else p.order_by(joined_axes)
    keys = p.key(joined_axes) if order is None else rows_at(p.key(joined_axes), order)
    queries = linear(indices, sizes, p)
    low, high = dt.searchsorted(keys, queries), dt.searchsorted(keys, queries, side="right")
    query, position = expand(low, high)
    return query, position if order is None else rows_at(order, position)


def _arrange_axes(
    x: COO, items: list[Any], joined_axes: list[int], shape: Shape, query: Tensor, entry: Tensor
) -> COO:
    """Build an index's result from its matches (query, entry), with the axes in NumPy's order."""
    looked_up = unravel(query, shape)
    before: list[tuple[int, int]] = []
    coords: list[Tensor] = []
    sizes: list[int] = []
    axis = others = 0
    p = x.pattern
    count = query.shape[0]
    for part in items:
        if part is None or part is Ellipsis:
            others += 1
            if part is None:
                coords.append(dt.zeros(count, dtype=dt.int64, device=x.device))
                sizes.append(1)
            continue
        width = part.ndim if _is_mask(part) else 1
        if axis in joined_axes:
            before.append((others, len(coords)))
        elif axis < x.sparse_dim():
            others += 1
            coords.append(rows_at(p.coords[axis], entry))
            sizes.append(x.shape[axis])
        axis += width
    at = before[0][1] if len(set(before)) == 1 else 0
    pattern = Pattern(
        [*coords[:at], *looked_up, *coords[at:]],
        (*sizes[:at], *shape, *sizes[at:]),
        count,
        x.device,
        unique=p.unique,
    )
    return coo(pattern, rows_at(x.values(), entry))


def _is_mask(part: Any) -> bool:
    """Return True for a tensor or an array of bools."""
    return isinstance(part, (Tensor, np.ndarray)) and part.dtype in (dt.bool, np.bool_)


# --- several tensors -----------------------------------------------------------------------------


def concat(tensors: Sequence[Tensor], axis: int) -> COO:
    """Join along an axis. Raises: LayoutError for a strided tensor, ShapeError for other shapes."""
    operands: list[Any] = list(tensors)
    if not all(isinstance(x, COO) for x in operands):
        raise dt.LayoutError(
            "concat: all tensors must have the same layout, got sparse_coo and strided; use "
            "x.to_sparse() or x.to_dense()"
        )
    shapes = [x.shape for x in operands]
    if len({s[:axis] + s[axis + 1 :] if len(s) == len(shapes[0]) else None for s in shapes}) > 1:
        raise dt.ShapeError(
            f"concat: shapes must be equal except along axis {axis}, got "
            f"{', '.join(map(str, shapes))}; for a new axis use dt.stack"
        )
    if len({x.sparse_dim() for x in operands}) > 1 or axis >= operands[0].sparse_dim():
        operands = [fully_sparse(x) for x in operands]
    dims, first = operands[0].sparse_dim(), 0
    columns: list[list[Tensor]] = [[] for _ in range(dims)]
    for x in operands:
        for d in range(dims):
            row = x.pattern.coords[d]
            columns[d].append(row + first if d == axis and first else row)
        first += x.shape[axis]
    in_order = axis == 0 and all(x.pattern.unsorted_dims == 0 for x in operands)
    pattern = Pattern(
        [dt.concat(c) for c in columns],
        tuple(first if d == axis else n for d, n in enumerate(operands[0].shape[:dims])),
        sum(x.nnz for x in operands),
        operands[0].device,
        unsorted_dims=0 if in_order else None,
        unique=all(x.pattern.unique for x in operands),
    )
    return coo(pattern, dt.concat([x.values() for x in operands]))


# --- diagonals -----------------------------------------------------------------------------------


def diagonal(x: COO, offset: int) -> COO:
    """Return the diagonal of the last two axes with column - row == offset, as the last axis."""
    x = fully_sparse(x)
    p = x.pattern
    n, m = p.shape[-2:]
    length = max(min(n, m - offset) if offset >= 0 else min(n + offset, m), 0)
    (at,) = dt.nonzero(dt.equal(p.coords[-2] + offset, p.coords[-1]))
    selected = p.select(at)
    last = selected.coords[-2] if offset >= 0 else selected.coords[-1]
    pattern = Pattern(
        [*selected.coords[:-2], last],
        (*p.shape[:-2], length),
        selected.count,
        x.device,
        unsorted_dims=0 if p.unsorted_dims == 0 else None,
        unique=p.unique,
    )
    return coo(pattern, rows_at(x.values(), at))
