"""Distinct elements: a sort, then what differs from its neighbour.

How many there are depends on data, so each of these takes a host read of that number. Elements come
out in ascending order; NaNs are distinct from each other, as NaN != NaN, and stand last; of -0 and
0, which are equal, the one that came first stays.
"""

from __future__ import annotations

from typing import NamedTuple

from ...arguments import flag, named
from ...dtypes import int64
from ...ops import table as ops
from ...tensor.host import evaluate
from ...tensor.operands import operands
from ...tensor.tensor import Tensor, required
from ...tensor.verbs import apply, slice_along
from ..creation.constructors import zeros
from ..datatypes import cast, result_type
from ..indexing.index_reads import fetch, has_no_common_integer, searchsorted
from ..indexing.index_writes import scatter_to
from ..indexing.masks import run_bounds
from ..reductions.cumulative import cumulative_sum
from ..reductions.statistics import any as any_of
from ..shape.copies import concat
from ..shape.manipulation import expand_dims, reshape
from ..variants import into
from .stable_sort import argsort, sort

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

FEW = 16  # elements that are compared with all others rather than searched


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


@named(widen=False)
def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where each is first, which one every element is, and how often.

    A tuple (values, indices, inverse_indices, counts). NaNs are distinct from each other and stand
    last; of -0 and 0 the one that came first stays. How many there are is read by the host.
    Shapes: any; `inverse_indices` has x's, the others are vectors; `indices` are positions in
    row-major order.
    Dtypes: all; positions and counts are int64.
    Raises: DTypeError for what is no tensor.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.unique_all(dt.asarray([5, 3, 5], device="reference"))]
    [[3, 5], [1, 0], [1, 0, 1], [1, 2]]
    """
    flat = _flat("unique_all", x)
    order = order_of_equals(flat)
    ordered = fetch(flat, order)
    starts, lengths = _runs(ordered)
    values, indices = fetch(ordered, starts), fetch(order, starts)
    return UniqueAll(values, indices, _inverse(x, ordered, order), lengths)


@named(widen=False)
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs: (values, counts).

    NaNs are distinct from each other and stand last; of -0 and 0 the one that came first stays. How
    many there are is read by the host.
    Shapes: any; the results are vectors.
    Dtypes: all; positions and counts are int64.
    Raises: DTypeError for what is no tensor.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.unique_counts(dt.asarray([5, 3, 5], device="reference"))]
    [[3, 5], [1, 2]]
    """
    ordered = _sorted(_flat("unique_counts", x))
    starts, lengths = _runs(ordered)
    return UniqueCounts(fetch(ordered, starts), lengths)


@named(widen=False)
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and which of them every element is: (values, inverse_indices).

    NaNs are distinct from each other and stand last; of -0 and 0 the one that came first stays. How
    many there are is read by the host.
    Shapes: any; `inverse_indices` has x's, `values` is a vector.
    Dtypes: all; positions and counts are int64.
    Raises: DTypeError for what is no tensor.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.unique_inverse(dt.asarray([5, 3, 5], device="reference"))]
    [[3, 5], [1, 0, 1]]
    """
    flat = _flat("unique_inverse", x)
    order = order_of_equals(flat)
    ordered = fetch(flat, order)
    return UniqueInverse(fetch(ordered, _starts(ordered)[0]), _inverse(x, ordered, order))


@named(widen=False)
def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of `x`, in ascending order.

    NaNs are distinct from each other and stand last; of -0 and 0 the one that came first stays. How
    many there are is read by the host.
    Shapes: any; the result is a vector.
    Dtypes: all.
    Raises: DTypeError for what is no tensor.

    >>> import dovetail as dt
    >>> dt.unique_values(dt.asarray([5, 3, 5], device="reference")).tolist()
    [3, 5]
    """
    ordered = _sorted(_flat("unique_values", x))
    return fetch(ordered, _starts(ordered)[0])


@into(widen=False)
def isin(
    x1: Tensor | int | float, x2: Tensor | int | float, /, *, invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Whether each element of `x1` is an element of `x2`.

    `invert`: whether it is not. NaN is in nothing. One pass over `x1`, and a sort of `x2` if it is
    not small.
    Shapes: any; the result has x1's.
    Dtypes: all, promoted for the comparison; gives bool.
    Raises: DTypeError where their dtypes have none in common, or neither is a tensor; DeviceError.

    >>> import dovetail as dt
    >>> dt.isin(dt.asarray([1, 2, 3], device="reference"), 2).tolist()
    [False, True, False]
    """
    given = operands("isin", x1, x2)
    invert = flag("isin", invert, "invert")
    x, among = given
    if isinstance(among, Tensor):
        among = reshape(among, (-1,))
    if isinstance(x, Tensor) and isinstance(among, Tensor):
        if not has_no_common_integer(x.dtype, among.dtype):
            d = result_type(x, among)
            x, among = cast(x, d), cast(among, d)
        found = _is_in(x, among)
    else:
        found = apply(ops.EQUAL, (x, among))
        found = found if isinstance(x, Tensor) else any_of(found)
    return apply(ops.LOGICAL_NOT, (found,)) if invert else found


def _is_in(x: Tensor, among: Tensor) -> Tensor:
    if among.size <= FEW:
        return any_of(apply(ops.EQUAL, (expand_dims(x, -1), among)), axis=-1)
    if among.dtype.kind == "c":
        return _is_complex_in(x, among)
    ordered = sort(among)
    at = apply(ops.MINIMUM, (searchsorted(ordered, x), among.size - 1))
    return apply(ops.EQUAL, (fetch(ordered, at), x))


def _is_complex_in(x: Tensor, among: Tensor) -> Tensor:
    """By the numbers of the distinct elements of both together: the search knows no order."""
    flat = reshape(x, (-1,))
    both = concat([among, flat])
    order = order_of_equals(both)
    run = _inverse(both, fetch(both, order), order)
    known = slice_along(run, 0, 0, among.size)
    found = _is_in(slice_along(run, 0, among.size, flat.size), known)
    return reshape(apply(ops.LOGICAL_AND, (found, apply(ops.EQUAL, (flat, flat)))), x.shape)


def _flat(op: str, x: Tensor) -> Tensor:
    return reshape(required(op, x), (-1,))


def order_of_equals(x: Tensor) -> Tensor:
    """What puts equal elements together: complex numbers are ordered by their real parts first.

    Those with NaN in a part stand last.
    """
    if x.dtype.kind != "c":
        return argsort(x)
    order = argsort(apply(ops.IMAG, (x,)))
    for key in (ops.REAL, ops.ISNAN):  # stable sorts, the first key last
        order = fetch(order, argsort(fetch(apply(key, (x,)), order)))
    return order


def _sorted(x: Tensor) -> Tensor:
    return fetch(x, order_of_equals(x)) if x.dtype.kind == "c" else sort(x)


def _runs(ordered: Tensor) -> tuple[Tensor, Tensor]:
    """Where runs of equal elements start, and how long they are. One host read."""
    starts, bounds = _starts(ordered)
    return starts, apply(ops.SUBTRACT, (slice_along(bounds, 0, 1, starts.size), starts))


def _starts(ordered: Tensor) -> tuple[Tensor, Tensor]:
    """Where runs of equal elements start, without and with the end of the last. One host read."""
    bounds = run_bounds(ordered)
    evaluate(bounds)  # by a kernel of its own: views of what is there are quicker
    return slice_along(bounds, 0, 0, bounds.size - 1), bounds


def _inverse(x: Tensor, ordered: Tensor, order: Tensor) -> Tensor:
    """For each element of `x` the number of its run."""
    n = ordered.size
    if not n:
        return zeros(x.shape, dtype=int64, device=x.device)
    before, after = (slice_along(ordered, 0, k, n - 1) for k in (0, 1))
    run = cumulative_sum(apply(ops.NOT_EQUAL, (before, after)), include_initial=True)
    return reshape(scatter_to(run, order), x.shape)
