"""NumPy's operations on sets: vectors of distinct elements in ascending order.

How many elements there are depends on data, so each of these takes host reads of such numbers.
"""

from __future__ import annotations

from ...arguments import flag, named
from ...dtypes import bool_
from ...ops import table as ops
from ...tensor.operands import Array, brought
from ...tensor.tensor import Tensor
from ...tensor.verbs import apply, slice_along
from ..creation.constructors import ones
from ..indexing.index_reads import fetch
from ..indexing.masks import nonzero
from ..shape.copies import concat
from ..shape.manipulation import ravel
from .distinct import isin, order_of_equals
from .unique import unique

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d"]


@named(widen=False)
def union1d(ar1: Array, ar2: Array) -> Tensor:
    """The distinct elements of either of two tensors, in ascending order.

    `ar1`, `ar2`: tensors, of which one may be an array or a list. NaN comes once, at the end. How
    many there are is read by the host.
    Shapes: any; the result is a vector.
    Dtypes: all; the result has the promoted one.
    Gradient: flows to where each element is first, ar1 before ar2.
    Raises: DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.union1d(dt.asarray([5, 3, 5], device="reference"), [4, 3]).tolist()
    [3, 4, 5]
    """
    return _distinct(concat(_vectors("union1d", ar1, ar2)))


@named(widen=False)
def intersect1d(
    ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """The distinct elements that two tensors have in common, in ascending order.

    `ar1`, `ar2`: tensors, of which one may be an array or a list. `assume_unique`: whether the
    elements of each are known to be distinct, which saves sorting them. `return_indices`: whether
    two tensors come too, in a tuple: where each element is first in ar1, and in ar2. NaN is in no
    other tensor. How many there are is read by the host.
    Shapes: any; the results are vectors, and positions in row-major order.
    Dtypes: all; elements have the promoted one, positions are int64.
    Gradient: flows to ar1.
    Raises: DTypeError, DeviceError; ArgumentTypeError where a flag is none.

    >>> import dovetail as dt
    >>> x = dt.asarray([5, 3, 5, 4], device="reference")
    >>> dt.intersect1d(x, [5, 4, 9]).tolist()
    [4, 5]
    >>> [i.tolist() for i in dt.intersect1d(x, [5, 4, 9], return_indices=True)]
    [[4, 5], [3, 0], [1, 0]]
    """
    assume_unique = flag("intersect1d", assume_unique, "assume_unique")
    return_indices = flag("intersect1d", return_indices, "return_indices")
    given = _vectors("intersect1d", ar1, ar2)
    firsts = []
    if not assume_unique:
        (a, at1), (b, at2) = (unique(x, return_index=True) for x in given)
        given, firsts = [a, b], [at1, at2]
    both = concat(given)
    order = order_of_equals(both)  # stable: what is ar1's stands before what is ar2's
    ordered = fetch(both, order)
    (at,) = nonzero(apply(ops.LOGICAL_NOT, (_differs(ordered),)))
    common = fetch(ordered, at)
    if not return_indices:
        return common
    at1, at2 = fetch(order, at), fetch(order, at + 1) - given[0].size
    return (common, fetch(firsts[0], at1), fetch(firsts[1], at2)) if firsts else (common, at1, at2)


@named(widen=False)
def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Tensor:
    """The distinct elements of the first tensor that the second has not, in ascending order.

    `ar1`, `ar2`: tensors, of which one may be an array or a list. `assume_unique`: whether the
    elements of ar1 are known to be distinct: they stay in the order that they have. NaN is in no
    other tensor. How many there are is read by the host.
    Shapes: any; the result is a vector.
    Dtypes: all, promoted for the comparison; the result has ar1's.
    Gradient: flows to ar1.
    Raises: DTypeError, DeviceError; ArgumentTypeError where the flag is none.

    >>> import dovetail as dt
    >>> dt.setdiff1d(dt.asarray([5, 3, 5, 4], device="reference"), [3]).tolist()
    [4, 5]
    """
    a, b = _vectors("setdiff1d", ar1, ar2)
    if not flag("setdiff1d", assume_unique, "assume_unique"):
        a = _distinct(a)
    return fetch(a, nonzero(isin(a, b, invert=True))[0])


@named(widen=False)
def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Tensor:
    """The distinct elements of either of two tensors that the other has not, in ascending order.

    `ar1`, `ar2`: tensors, of which one may be an array or a list. `assume_unique`: whether the
    elements of each are known to be distinct, which saves sorting them. NaN is in no other tensor.
    How many there are is read by the host.
    Shapes: any; the result is a vector.
    Dtypes: all; the result has the promoted one.
    Gradient: flows to where each element is first.
    Raises: DTypeError, DeviceError; ArgumentTypeError where the flag is none.

    >>> import dovetail as dt
    >>> dt.setxor1d(dt.asarray([5, 3, 5, 4], device="reference"), [3, 1]).tolist()
    [1, 4, 5]
    """
    given = _vectors("setxor1d", ar1, ar2)
    if not flag("setxor1d", assume_unique, "assume_unique"):
        given = [_distinct(x) for x in given]
    both = concat(given)
    if not both.size:
        return both
    ordered = fetch(both, order_of_equals(both))
    end = ones((1,), dtype=bool_, device=both.device)
    differs = concat([end, _differs(ordered), end])
    before, after = (slice_along(differs, 0, k, both.size) for k in (0, 1))
    return fetch(ordered, nonzero(apply(ops.LOGICAL_AND, (before, after)))[0])


def _vectors(op: str, ar1: Array, ar2: Array) -> list[Tensor]:
    return [ravel(x) for x in brought(op, ar1, ar2)]


def _distinct(x: Tensor) -> Tensor:
    found = unique(x)
    assert isinstance(found, Tensor)  # as nothing else is asked for
    return found


def _differs(ordered: Tensor) -> Tensor:
    """Whether each element but the last differs from the one after it."""
    before, after = (slice_along(ordered, 0, min(k, ordered.size), max(ordered.size - 1, 0))
                     for k in (0, 1))  # fmt: skip
    return apply(ops.NOT_EQUAL, (before, after))
