"""NumPy's `unique` with its options; `distinct` has the Array API's four functions."""

from __future__ import annotations

from ... import layout as lay
from ...argument_checks import flag
from ...declarations import public
from ...dtypes import bool_, int64
from ...errors import UnsupportedError
from ...ops import table as ops
from ...tensor.primitives import apply, select_along, slice_along
from ...tensor.tensor import Tensor, required, to_strided
from ..creation.constructors import ones, zeros
from ..indexing.index_reads import gather_unchecked, take
from ..indexing.index_writes import scatter_to
from ..indexing.masks import nonzero
from ..reductions.cumulative import cumulative_sum
from ..reductions.statistics import any as any_of
from ..shape.copies import concat
from ..shape.manipulation import moveaxis, reshape
from .distinct import group_equals_order
from .stable_sort import argsort

__all__ = ["unique"]

SORT_COLUMNS_MAX = 1 << 12  # each column needs a sort


@public(method=True, widen=False)
def unique(
    x: Tensor,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements in ascending order or, along an axis, the distinct slices.

    The host reads the number of distinct elements. Positions, inverse and counts follow the
    elements in this order, in a tuple.

    - `return_index`: True also returns the first position of each.
    - `return_inverse`: True also returns the number of each element's value.
    - `return_counts`: True also returns the counts.
    - `axis`: one axis; None takes single elements.
    - `equal_nan`: True treats all NaNs as one, which comes last.

    Shapes: any; gives a vector, or x's shape with another size along the axis. The inverse has x's
    shape, or is a vector.
    Dtypes: all; positions and counts are int64.
    Raises: AxisError, DTypeError, UnsupportedError for slices of more than 4096 elements.
    See also: `unique_values`, `unique_counts`, `bincount`, `union1d`.

    >>> import dovetail as dt
    >>> values, counts = dt.unique(dt.asarray([5, 3, 5]), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([3, 5], [1, 2])
    """
    returns = [
        flag("unique", f, name)
        for f, name in (
            (return_index, "return_index"),
            (return_inverse, "return_inverse"),
            (return_counts, "return_counts"),
        )
    ]
    equal_nan = flag("unique", equal_nan, "equal_nan")
    x = to_strided(required("unique", x))
    d = 0 if axis is None else lay.axis("unique", axis, x.ndim)
    along = reshape(x, (-1,)) if axis is None else x
    n = along.shape[d]
    rows = reshape(moveaxis(along, d, 0), (n, along.size // n if n else 0))
    if rows.shape[1] > SORT_COLUMNS_MAX:
        raise UnsupportedError(
            f"unique: slices must have at most {SORT_COLUMNS_MAX} elements, got {rows.shape[1]}"
        )
    order = _order_of_rows(rows)
    starts = _differs_from_previous(take(rows, order, axis=0), equal_nan and axis is None)
    (bounds,) = nonzero(starts)
    first = gather_unchecked(order, bounds)
    results = [take(along, first, axis=d)]
    if returns[0]:
        results.append(first)
    if returns[1]:
        if n:
            run = cumulative_sum(starts, dtype=int64) - 1
            inverse = scatter_to(run, order)
        else:
            inverse = zeros((0,), dtype=int64, device=x.device)
        results.append(reshape(inverse, x.shape) if axis is None else inverse)
    if returns[2]:
        end = zeros((1,), dtype=int64, device=x.device) + n
        ends = concat([slice_along(bounds, 0, min(1, bounds.size), max(bounds.size - 1, 0)), end])
        ends = slice_along(ends, 0, 0, bounds.size)
        results.append(ends - bounds)
    return results[0] if len(results) == 1 else tuple(results)


def _order_of_rows(rows: Tensor) -> Tensor:
    """Return the lexicographic order of rows, by stable sorts from the last column on."""
    n, m = rows.shape
    order = argsort(zeros((n,), dtype=bool_, device=rows.device))
    for k in range(m - 1, -1, -1):
        column = select_along(rows, 1, k)
        order = gather_unchecked(order, group_equals_order(gather_unchecked(column, order)))
    return order


def _differs_from_previous(rows: Tensor, equal_nan: bool) -> Tensor:
    """Return True for sorted rows that differ from the one before them."""
    n = rows.shape[0]
    first = ones((min(n, 1),), dtype=bool_, device=rows.device)
    before, after = (slice_along(rows, 0, k, max(n - 1, 0)) for k in (0, min(n, 1)))
    differ = apply(ops.NOT_EQUAL, (before, after))
    if equal_nan and rows.dtype.kind in "fc":
        both = apply(ops.LOGICAL_AND, (apply(ops.ISNAN, (before,)), apply(ops.ISNAN, (after,))))
        differ = apply(ops.LOGICAL_AND, (differ, apply(ops.LOGICAL_NOT, (both,))))
    return concat([first, any_of(differ, axis=1)]) if n > 1 else first
