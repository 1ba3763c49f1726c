"""NumPy's set operations: vectors of distinct elements in ascending order.

The number of elements depends on data, so each function needs host reads of such numbers.
"""

from __future__ import annotations

from ...argument_checks import flag
from ...declarations import public
from ...dtypes import bool_
from ...ops import table as ops
from ...tensor.primitives import apply, slice_along
from ...tensor.promotion import Array, as_tensors
from ...tensor.tensor import Tensor
from ..creation.constructors import ones
from ..indexing.index_reads import gather_unchecked
from ..indexing.masks import nonzero
from ..shape.copies import concat
from ..shape.manipulation import ravel
from .distinct import group_equals_order, isin
from .unique import unique

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d"]


@public(widen=False)
def union1d(ar1: Array, ar2: Array) -> Tensor:
    """Return the distinct elements of both tensors, in ascending order.

    NaN occurs once, at the end. The host reads the number of elements.

    - `ar1`, `ar2`: tensors, of which one may be an array or a list.

    Shapes: any; the result is a vector.
    Dtypes: all; the result has the promoted one.
    Gradient: flows to the first occurrence of each element, ar1 before ar2.
    Raises: DTypeError, DeviceError.
    See also: `intersect1d`, `setdiff1d`, `unique`.

    >>> import dovetail as dt
    >>> dt.union1d(dt.asarray([5, 3, 5]), [4, 3]).tolist()
    [3, 4, 5]
    """
    return _distinct_elements(concat(_ravel_all("union1d", ar1, ar2)))


@public(widen=False)
def intersect1d(
    ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Return the distinct elements that are in both tensors, in ascending order.

    NaN is never in both. The host reads the number of elements.

    - `ar1`, `ar2`: tensors, of which one may be an array or a list.
    - `assume_unique`: True if the elements of each are distinct, which saves sorting them.
    - `return_indices`: True also returns the first position of each element in ar1, and in ar2, in
      a tuple.

    Shapes: any; the results are vectors, and positions in row-major order.
    Dtypes: all; elements have the promoted one, positions are int64.
    Gradient: flows to ar1.
    Raises: DTypeError, DeviceError; ArgumentTypeError unless flags are bool.
    See also: `union1d`, `setdiff1d`, `isin`.

    >>> import dovetail as dt
    >>> x = dt.asarray([5, 3, 5, 4])
    >>> dt.intersect1d(x, [5, 4, 9]).tolist()
    [4, 5]
    >>> [i.tolist() for i in dt.intersect1d(x, [5, 4, 9], return_indices=True)]
    [[4, 5], [3, 0], [1, 0]]
    """
    assume_unique = flag("intersect1d", assume_unique, "assume_unique")
    return_indices = flag("intersect1d", return_indices, "return_indices")
    vectors = _ravel_all("intersect1d", ar1, ar2)
    first_positions = []
    if not assume_unique:
        (a, at1), (b, at2) = (unique(x, return_index=True) for x in vectors)
        vectors, first_positions = [a, b], [at1, at2]
    both = concat(vectors)
    order = group_equals_order(both)  # stable: elements of ar1 come before those of ar2
    ordered = gather_unchecked(both, order)
    (matches,) = nonzero(apply(ops.LOGICAL_NOT, (_differs(ordered),)))
    common = gather_unchecked(ordered, matches)
    if not return_indices:
        return common
    at1, at2 = (
        gather_unchecked(order, matches),
        gather_unchecked(order, matches + 1) - vectors[0].size,
    )
    return (
        (
            common,
            gather_unchecked(first_positions[0], at1),
            gather_unchecked(first_positions[1], at2),
        )
        if first_positions
        else (common, at1, at2)
    )


@public(widen=False)
def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Tensor:
    """Return the distinct elements of the first tensor that are not in the second.

    NaN is never in `ar2`. The host reads the number of elements.

    - `ar1`, `ar2`: tensors, of which one may be an array or a list.
    - `assume_unique`: True if the elements of ar1 are distinct; they keep their order then, which
      is ascending otherwise.

    Shapes: any; the result is a vector.
    Dtypes: all, promoted for the comparison; the result has ar1's.
    Gradient: flows to ar1.
    Raises: DTypeError, DeviceError; ArgumentTypeError unless the flag is a bool.
    See also: `intersect1d`, `setxor1d`, `isin`.

    >>> import dovetail as dt
    >>> dt.setdiff1d(dt.asarray([5, 3, 5, 4]), [3]).tolist()
    [4, 5]
    """
    a, b = _ravel_all("setdiff1d", ar1, ar2)
    if not flag("setdiff1d", assume_unique, "assume_unique"):
        a = _distinct_elements(a)
    return gather_unchecked(a, nonzero(isin(a, b, invert=True))[0])


@public(widen=False)
def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Tensor:
    """Return the distinct elements that are in only one of two tensors, in ascending order.

    NaN is never in both. The host reads the number of elements.

    - `ar1`, `ar2`: tensors, of which one may be an array or a list.
    - `assume_unique`: True if the elements of each are distinct, which saves sorting them.

    Shapes: any; the result is a vector.
    Dtypes: all; the result has the promoted one.
    Gradient: flows to the first occurrence of each element.
    Raises: DTypeError, DeviceError; ArgumentTypeError unless the flag is a bool.

    >>> import dovetail as dt
    >>> dt.setxor1d(dt.asarray([5, 3, 5, 4]), [3, 1]).tolist()
    [1, 4, 5]
    """
    vectors = _ravel_all("setxor1d", ar1, ar2)
    if not flag("setxor1d", assume_unique, "assume_unique"):
        vectors = [_distinct_elements(x) for x in vectors]
    both = concat(vectors)
    if not both.size:
        return both
    ordered = gather_unchecked(both, group_equals_order(both))
    end = ones((1,), dtype=bool_, device=both.device)
    differs = concat([end, _differs(ordered), end])
    before, after = (slice_along(differs, 0, k, both.size) for k in (0, 1))
    return gather_unchecked(ordered, nonzero(apply(ops.LOGICAL_AND, (before, after)))[0])


def _ravel_all(op: str, ar1: Array, ar2: Array) -> list[Tensor]:
    """Return both operands raveled, as tensors on one device."""
    return [ravel(x) for x in as_tensors(op, ar1, ar2)]


def _distinct_elements(x: Tensor) -> Tensor:
    """Return the distinct elements in ascending order."""
    elements = unique(x)
    assert isinstance(elements, Tensor)  # no option is set
    return elements


def _differs(ordered: Tensor) -> Tensor:
    """Return True for each element but the last that differs from the next one."""
    before, after = (
        slice_along(ordered, 0, min(k, ordered.size), max(ordered.size - 1, 0)) for k in (0, 1)
    )
    return apply(ops.NOT_EQUAL, (before, after))
