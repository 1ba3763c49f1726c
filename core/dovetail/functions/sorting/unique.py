"""NumPy's `unique` with its options; the Array API's four functions are in `distinct`."""

from __future__ import annotations

from ... import layout as lay
from ...arguments import flag, named
from ...dtypes import bool_, int64
from ...errors import NotYetError
from ...ops import table as ops
from ...tensor.tensor import Tensor, strided
from ...tensor.verbs import apply, place_along, slice_along
from ..creation.constructors import ones, zeros
from ..indexing.index_reads import fetch, take
from ..indexing.index_writes import scatter_to
from ..indexing.masks import nonzero
from ..reductions.cumulative import cumulative_sum
from ..reductions.statistics import any as any_of
from ..shape.copies import concat
from ..shape.manipulation import moveaxis, reshape
from .distinct import order_of_equals
from .stable_sort import argsort

__all__ = ["unique"]

WIDE = 1 << 12  # columns of which each is a sort


@named(widen=False)
def unique(
    x: Tensor, /, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
    """The distinct elements in ascending order or, along an axis, the distinct slices.

    `return_index`: whether a tensor comes too of where each is first; `return_inverse`: of which
    one every element is; `return_counts`: of how often each occurs. They follow in this order, in
    a tuple. `axis`: None takes single elements. `equal_nan`: whether all NaNs are one, which stands
    last. How many there are is read by the host.
    Shapes: any; a vector comes, or x's with another size along the axis. The inverse has x's shape,
    or is a vector.
    Dtypes: all; positions and counts are int64.
    Raises: AxisError, DTypeError, NotYetError for slices of more than 4096 elements.

    >>> import dovetail as dt
    >>> values, counts = dt.unique(dt.asarray([5, 3, 5], device="reference"), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([3, 5], [1, 2])
    """
    wanted = [
        flag("unique", f, name)
        for f, name in ((return_index, "return_index"), (return_inverse, "return_inverse"),
                        (return_counts, "return_counts"))
    ]  # fmt: skip
    equal_nan = flag("unique", equal_nan, "equal_nan")
    strided("unique", x)
    d = 0 if axis is None else lay.axis("unique", axis, x.ndim)
    along = reshape(x, (-1,)) if axis is None else x
    n = along.shape[d]
    rows = reshape(moveaxis(along, d, 0), (n, along.size // n if n else 0))
    if rows.shape[1] > WIDE:
        raise NotYetError(f"unique: slices of {rows.shape[1]} elements; up to {WIDE}")
    order = _order(rows)
    starts = _starts(take(rows, order, axis=0), equal_nan and axis is None)
    (bounds,) = nonzero(starts)
    first = fetch(order, bounds)
    found = [take(along, first, axis=d)]
    if wanted[0]:
        found.append(first)
    if wanted[1]:
        if n:
            run = cumulative_sum(starts, dtype=int64) - 1
            inverse = scatter_to(run, order)
        else:
            inverse = zeros((0,), dtype=int64, device=x.device)
        found.append(reshape(inverse, x.shape) if axis is None else inverse)
    if wanted[2]:
        end = zeros((1,), dtype=int64, device=x.device) + n
        ends = concat([slice_along(bounds, 0, min(1, bounds.size), max(bounds.size - 1, 0)), end])
        ends = slice_along(ends, 0, 0, bounds.size)
        found.append(ends - bounds)
    return found[0] if len(found) == 1 else tuple(found)


def _order(rows: Tensor) -> Tensor:
    """The order of rows, the first column first: stable sorts from the last one on."""
    n, m = rows.shape
    order = argsort(zeros((n,), dtype=bool_, device=rows.device))
    for k in range(m - 1, -1, -1):
        column = place_along(rows, 1, k)
        order = fetch(order, order_of_equals(fetch(column, order)))
    return order


def _starts(rows: Tensor, equal_nan: bool) -> Tensor:
    """Where rows in order differ from the one before them."""
    n = rows.shape[0]
    first = ones((min(n, 1),), dtype=bool_, device=rows.device)
    before, after = (slice_along(rows, 0, k, max(n - 1, 0)) for k in (0, min(n, 1)))
    differ = apply(ops.NOT_EQUAL, (before, after))
    if equal_nan and rows.dtype.kind in "fc":
        both = apply(ops.LOGICAL_AND, (apply(ops.ISNAN, (before,)), apply(ops.ISNAN, (after,))))
        differ = apply(ops.LOGICAL_AND, (differ, apply(ops.LOGICAL_NOT, (both,))))
    return concat([first, any_of(differ, axis=1)]) if n > 1 else first
