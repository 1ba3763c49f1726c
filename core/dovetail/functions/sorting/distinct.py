"""Distinct elements: a sort, then a comparison of neighbours.

The number of distinct elements depends on data, so each function needs one host read. Results are
in ascending order. NaNs are distinct from each other, because NaN != NaN, and come last. -0 and 0
are equal; the first of them in `x` is kept.
"""

from __future__ import annotations

from typing import NamedTuple

from ...argument_checks import flag
from ...dtypes import int64
from ...ops import table as ops
from ...tensor.host import evaluate
from ...tensor.primitives import apply, slice_along
from ...tensor.promotion import convert_operands
from ...tensor.tensor import Tensor, required, to_strided
from ..creation.constructors import zeros
from ..datatypes import cast, result_type
from ..indexing.index_reads import gather_unchecked, has_no_common_integer, searchsorted
from ..indexing.index_writes import scatter_to
from ..indexing.masks import run_bounds
from ..reductions.cumulative import cumulative_sum
from ..reductions.statistics import any as any_of
from ..shape.copies import concat
from ..shape.manipulation import expand_dims, reshape
from ..variants import public
from .stable_sort import argsort, sort

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

COMPARE_ALL_ELEMENTS_MAX = 16  # so many elements are compared with all others, more are searched


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


@public(method=True, widen=False)
def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements, their first positions, the inverse, and their counts.

    The result is a tuple (values, indices, inverse_indices, counts). NaNs are distinct from each
    other and come last; of -0 and 0 the first is kept. The host reads their number.
    Shapes: any; `inverse_indices` has x's, the others are vectors; `indices` are positions in
    row-major order.
    Dtypes: all; positions and counts are int64.
    Raises: DTypeError unless x is a tensor.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.unique_all(dt.asarray([5, 3, 5]))]
    [[3, 5], [1, 0], [1, 0, 1], [1, 2]]
    """
    flat = _ravel_operand("unique_all", x)
    order = group_equals_order(flat)
    ordered = gather_unchecked(flat, order)
    starts, lengths = _run_starts_and_lengths(ordered)
    values, indices = gather_unchecked(ordered, starts), gather_unchecked(order, starts)
    return UniqueAll(values, indices, _run_numbers(x, ordered, order), lengths)


@public(method=True, widen=False)
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements in ascending order and their counts: (values, counts).

    NaNs are distinct from each other and come last; of -0 and 0 the first is kept. The host reads
    their number.
    Shapes: any; the results are vectors.
    Dtypes: all; positions and counts are int64.
    Raises: DTypeError unless x is a tensor.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.unique_counts(dt.asarray([5, 3, 5]))]
    [[3, 5], [1, 2]]
    """
    ordered = _sort_equals(_ravel_operand("unique_counts", x))
    starts, lengths = _run_starts_and_lengths(ordered)
    return UniqueCounts(gather_unchecked(ordered, starts), lengths)


@public(method=True, widen=False)
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements and each element's number: (values, inverse_indices).

    NaNs are distinct from each other and come last; of -0 and 0 the first is kept. The host reads
    their number.
    Shapes: any; `inverse_indices` has x's, `values` is a vector.
    Dtypes: all; positions and counts are int64.
    Raises: DTypeError unless x is a tensor.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.unique_inverse(dt.asarray([5, 3, 5]))]
    [[3, 5], [1, 0, 1]]
    """
    flat = _ravel_operand("unique_inverse", x)
    order = group_equals_order(flat)
    ordered = gather_unchecked(flat, order)
    return UniqueInverse(
        gather_unchecked(ordered, _run_starts(ordered)[0]), _run_numbers(x, ordered, order)
    )


@public(method=True, widen=False)
def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements of `x`, in ascending order.

    NaNs are distinct from each other and come last; of -0 and 0 the first is kept. The host reads
    their number.
    Shapes: any; the result is a vector.
    Dtypes: all.
    Raises: DTypeError unless x is a tensor.

    >>> import dovetail as dt
    >>> dt.unique_values(dt.asarray([5, 3, 5])).tolist()
    [3, 5]
    """
    ordered = _sort_equals(_ravel_operand("unique_values", x))
    return gather_unchecked(ordered, _run_starts(ordered)[0])


@public(method=True, out=True, widen=False)
def isin(
    x1: Tensor | int | float,
    x2: Tensor | int | float,
    /,
    *,
    invert: bool = False,
    assume_unique: bool = False,
    kind: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return True for each element of `x1` that is an element of `x2`.

    NaN is not an element of any tensor. One pass over `x1`, and a sort of `x2` unless it is small.

    - `invert`: True negates the result.
    - `assume_unique`, `kind`: NumPy's hints about the algorithm, which change nothing here.

    Shapes: any; the result has x1's.
    Dtypes: all, promoted for the comparison; gives bool.
    Raises: DTypeError if the dtypes do not promote, or neither is a tensor; DeviceError.
    See also: `intersect1d`, `searchsorted`.

    >>> import dovetail as dt
    >>> dt.isin(dt.asarray([1, 2, 3]), 2).tolist()
    [False, True, False]
    """
    values = convert_operands("isin", x1, x2)
    invert = flag("isin", invert, "invert")
    x, elements = values
    if isinstance(elements, Tensor):
        elements = reshape(elements, (-1,))
    if isinstance(x, Tensor) and isinstance(elements, Tensor):
        if not has_no_common_integer(x.dtype, elements.dtype):
            d = result_type(x, elements)
            x, elements = cast(x, d), cast(elements, d)
        is_member = _is_in(x, elements)
    else:
        is_member = apply(ops.EQUAL, (x, elements))
        is_member = is_member if isinstance(x, Tensor) else any_of(is_member)
    return apply(ops.LOGICAL_NOT, (is_member,)) if invert else is_member


def _is_in(x: Tensor, elements: Tensor) -> Tensor:
    """Return True for each element of `x` that is one of `elements`, a vector of the same dtype."""
    if elements.size <= COMPARE_ALL_ELEMENTS_MAX:
        return any_of(apply(ops.EQUAL, (expand_dims(x, -1), elements)), axis=-1)
    if elements.dtype.kind == "c":
        return _is_complex_in(x, elements)
    ordered = sort(elements)
    position = apply(ops.MINIMUM, (searchsorted(ordered, x), elements.size - 1))
    return apply(ops.EQUAL, (gather_unchecked(ordered, position), x))


def _is_complex_in(x: Tensor, elements: Tensor) -> Tensor:
    """Return True for each complex element that is one of `elements`, by run numbers."""
    flat = reshape(x, (-1,))
    both = concat([elements, flat])
    order = group_equals_order(both)
    run = _run_numbers(both, gather_unchecked(both, order), order)
    element_runs = slice_along(run, 0, 0, elements.size)
    is_member = _is_in(slice_along(run, 0, elements.size, flat.size), element_runs)
    return reshape(apply(ops.LOGICAL_AND, (is_member, apply(ops.EQUAL, (flat, flat)))), x.shape)


def _ravel_operand(op: str, x: Tensor) -> Tensor:
    """Return all elements along one axis, for a tensor of any layout."""
    return reshape(to_strided(required(op, x)), (-1,))


def group_equals_order(x: Tensor) -> Tensor:
    """Return an order in which equal elements are adjacent.

    Complex numbers are ordered by their real parts, then by their imaginary parts. Those with NaN
    in a part come last.
    """
    if x.dtype.kind != "c":
        return argsort(x)
    order = argsort(apply(ops.IMAG, (x,)))
    for key in (ops.REAL, ops.ISNAN):  # stable sorts, the most significant key last
        order = gather_unchecked(order, argsort(gather_unchecked(apply(key, (x,)), order)))
    return order


def _sort_equals(x: Tensor) -> Tensor:
    """Return the elements in an order in which equal ones are adjacent; sorted if real."""
    return gather_unchecked(x, group_equals_order(x)) if x.dtype.kind == "c" else sort(x)


def _run_starts_and_lengths(ordered: Tensor) -> tuple[Tensor, Tensor]:
    """Return the starts and lengths of runs of equal elements. One host read."""
    starts, bounds = _run_starts(ordered)
    return starts, apply(ops.SUBTRACT, (slice_along(bounds, 0, 1, starts.size), starts))


def _run_starts(ordered: Tensor) -> tuple[Tensor, Tensor]:
    """Return the starts of runs of equal elements, and these with the end. One host read."""
    bounds = run_bounds(ordered)
    evaluate(bounds)  # in a kernel of its own: views of computed memory are faster
    return slice_along(bounds, 0, 0, bounds.size - 1), bounds


def _run_numbers(x: Tensor, ordered: Tensor, order: Tensor) -> Tensor:
    """Return for each element of `x` the number of its run."""
    n = ordered.size
    if not n:
        return zeros(x.shape, dtype=int64, device=x.device)
    before, after = (slice_along(ordered, 0, k, n - 1) for k in (0, 1))
    run = cumulative_sum(apply(ops.NOT_EQUAL, (before, after)), include_initial=True)
    return reshape(scatter_to(run, order), x.shape)
