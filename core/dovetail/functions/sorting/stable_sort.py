"""Sorting along an axis: stable, the same order on every device.

NaN stands last, also in descending order, and -0 equals 0. Equal elements keep their order, also
where the largest come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf, isqrt, nan
from typing import NamedTuple

from ... import layout as lay
from ...arguments import flag, integer, shown
from ...device_class import opened
from ...dtypes import bool_, int64, spare_bits
from ...engine import recording
from ...errors import ArgumentError, NotYetError, ShapeError
from ...graph.expr import node, spec
from ...ops import table as ops
from ...ops.dtype_rules import common
from ...ops.sort import HALF, Order, key_dtype
from ...tensor.fields import is_strided
from ...tensor.host import evaluate
from ...tensor.tensor import Tensor, make, required, strided
from ...tensor.verbs import apply, dispatch, slice_along, view
from ..creation.constructors import arange
from ..indexing.index_reads import fetch_along
from ..reductions.statistics import all as all_of
from ..reductions.statistics import max as largest_of
from ..reductions.statistics import min as smallest_of
from ..shape.copies import concat
from ..shape.manipulation import broadcast_to, moveaxis, ravel, reshape
from ..variants import cache_graph, into

__all__ = ["argsort", "sort", "topk"]

MANY, FEWER = 1 << 14, 4  # elements from which `topk` looks at blocks, and how many fewer it orders
RANGED = 1 << 13  # integers from which it pays to read their range first: fewer passes


class TopK(NamedTuple):
    """What `topk` gives."""

    values: Tensor
    indices: Tensor


@cache_graph(widen=False)
def sort(
    x: Tensor, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the elements of `x` in order along `axis`, equal ones in the order that they had.

    `axis`: None flattens x first. It is always stable, whatever `stable` says. `descending`: the
    largest first; equal ones keep their order then too. NaN stands last, also where `descending`;
    -0 and 0 are equal. The range of many integers is read by the host, once.
    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: all; the result has the same.
    Gradient: each goes where its element came from.
    Raises: AxisError, DTypeError, ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> dt.sort(dt.asarray([3.0, dt.nan, 1.0, 2.0], device="reference")).tolist()
    [1.0, 2.0, 3.0, nan]
    """
    if axis is None:
        x, axis = ravel(x), -1
    if not is_strided(x):
        return _of_other_layout(x, axis, _descending("sort", descending, stable))
    _require("sort", x)
    descending = _descending("sort", descending, stable)
    if x._expr.tape is not None:
        order = argsort(x, axis=axis, descending=descending)
        return fetch_along(x, order, lay.axis("sort", axis, x.ndim))
    return _along(ops.SORT, x, axis, descending)


@cache_graph(widen=False)
def argsort(
    x: Tensor, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the positions along `axis` of the elements of `x` in order, as int64.

    `axis`: None flattens x first. The order is that of `sort`: stable whatever `stable` says, NaN
    last, also where `descending`.
    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: all; gives int64.
    Raises: AxisError, DTypeError, ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> dt.argsort(dt.asarray([3, 1, 2], device="reference")).tolist()
    [1, 2, 0]
    """
    if axis is None:
        x, axis = ravel(x), -1
    _require("argsort", x)
    return _along(ops.ARGSORT, x, axis, _descending("argsort", descending, stable))


@into(widen=False)
def topk(
    x: Tensor, k: int, /, axis: int = -1, *, largest: bool = True,
    out: Sequence[Tensor] | None = None,
) -> TopK:  # fmt: skip
    """The `k` largest elements along `axis`, in order, and their positions: (values, indices).

    `largest`: False takes the smallest. Of equal ones the first come first (stable); NaN stands
    last, unlike PyTorch's.
    Shapes: of at least 1 dimension; both results have size k along the axis.
    Dtypes: all; positions are int64.
    Raises: ArgumentError for k out of range; AxisError, DTypeError, ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> values, indices = dt.topk(dt.asarray([1, 9, 3], device="reference"), 2)
    >>> values.tolist(), indices.tolist()
    ([9, 3], [1, 2])
    """
    d = lay.axis("topk", axis, _require("topk", x).ndim)
    k, size = integer("topk", k, "k"), x.shape[d]
    if not 0 <= k <= size:
        raise ArgumentError(f"topk: k is {shown(k)} for axis {axis} of size {size}")
    largest = flag("topk", largest, "largest")
    block = isqrt(size // max(k, 1))
    if k and x.size >= MANY and k * block * FEWER <= size and x.dtype is not bool_:
        first = _first_of_blocks(x, d, k, largest, block)
    else:
        first = slice_along(_along(ops.ARGSORT, x, d, largest), d, 0, k)
    return TopK(fetch_along(x, first, d), first)


def _first_of_blocks(x: Tensor, axis: int, k: int, largest: bool, block: int) -> Tensor:
    """Where the first `k` elements along an axis are, in order.

    They lie in those `k` blocks of neighbours whose first elements come first, or behind the last
    block: only these are ordered. (Before an element of any other block come the first ones of `k`
    blocks.) The ten least of 20,000, 500 times: 4 ms instead of 55.
    """
    last = moveaxis(x, axis, -1)
    count = last.shape[-1] // block
    whole = (*last.shape[:-1], count, block)
    best = _best(reshape(slice_along(last, last.ndim - 1, 0, count * block), whole), largest)
    chosen = slice_along(_along(ops.ARGSORT, best, best.ndim - 1, largest), best.ndim - 1, 0, k)
    chosen = _ordered(ops.SORT, chosen, _known_order(False, 0, count.bit_length()), 0)
    places = chosen[..., None] * block + arange(block, device=x.device)
    places = reshape(places, (*last.shape[:-1], k * block))
    if rest := last.shape[-1] - count * block:
        behind = arange(count * block, count * block + rest, device=x.device)
        places = concat([places, broadcast_to(behind, (*last.shape[:-1], rest))], axis=-1)
    among = _along(ops.ARGSORT, fetch_along(last, places, last.ndim - 1), last.ndim - 1, largest)
    first = fetch_along(places, slice_along(among, last.ndim - 1, 0, k), last.ndim - 1)
    return moveaxis(first, -1, axis)


def _best(blocks: Tensor, largest: bool) -> Tensor:
    """The element of each block that comes first: NaN where there is nothing else."""
    extreme = largest_of if largest else smallest_of
    if blocks.dtype.kind != "f":
        return extreme(blocks, axis=-1)
    no_number = apply(ops.ISNAN, (blocks,))
    found = extreme(apply(ops.WHERE, (no_number, -inf if largest else inf, blocks)), axis=-1)
    return apply(ops.WHERE, (all_of(no_number, axis=-1), nan, found))


def order_of(keys: Tensor, bits: int) -> Tensor:
    """`argsort` of a vector of integers known to be in 0..2**bits - 1: no host read."""
    return _ordered(ops.ARGSORT, keys, _known_order(False, 0, max(bits, 1)), 0)


def _of_other_layout(x: Tensor, axis: int, descending: bool) -> Tensor:
    common("sort", (required("sort", x).dtype,))
    if x.ndim == 0:
        raise ShapeError("sort: needs at least 1 dimension; see dt.reshape(x, (1,))")
    return dispatch("sort", "sort", (x,), x, lay.axis("sort", axis, x.ndim), descending)


def _require(op: str, x: Tensor) -> Tensor:
    common(op, (strided(op, x).dtype,))  # raises for complex numbers, which have no order
    if x.ndim == 0:
        raise ShapeError(f"{op}: needs at least 1 dimension; see dt.reshape(x, (1,))")
    return x


def _descending(op: str, descending: bool, stable: bool) -> bool:
    flag(op, stable, "stable")  # it always is
    return flag(op, descending, "descending")


def _along(op: ops.Op, x: Tensor, axis: int, descending: bool) -> Tensor:
    d = lay.axis(op.name, axis, x.ndim)
    if d == x.ndim - 1:
        return _ordered(op, x, *_order(op, x, descending))
    axes = (*(i for i in range(x.ndim) if i != d), d)
    last = view(x, ("permute", axes))
    result = _ordered(op, last, *_order(op, last, descending))
    return view(result, ("permute", tuple(axes.index(i) for i in range(x.ndim))))


def _ordered(op: ops.Op, x: Tensor, order: Order, zero: int) -> Tensor:
    s = x._expr.spec
    if s.shape[-1] >> HALF:
        raise NotYetError(f"{op.name}: an axis of {s.shape[-1]} elements; up to 2**{HALF} - 1")
    made = s if op is ops.SORT else spec(s.shape, int64, s.device, op.name)
    return make(node(op, (x._expr, zero), made, order))


_known_order = lru_cache(1024)(Order)  # the same one each time: keys of graphs compare them


def _order(op: ops.Op, x: Tensor, descending: bool) -> tuple[Order, int]:
    """Which bits of the keys matter, and what is subtracted from integers."""
    d = x.dtype
    if d.kind == "f":
        return _known_order(descending, spare_bits(d), 8 * max(d.itemsize, 4)), 0
    if d.kind == "b":
        return _known_order(descending, 0, 1), 0
    low, high = d.min, d.max
    if d.itemsize >= 4 and x.size >= RANGED and not _is_known(op, x, descending):
        ends = smallest_of(x), largest_of(x)
        evaluate(*ends)
        low, high = (int(e.item()) for e in ends)
    key = key_dtype(d)
    bits = max((high - low).bit_length(), 1)
    once = high - low + 1 == x.shape[-1]
    return _known_order(descending, 0, bits, once), low % (key.max + 1)


def _is_known(op: ops.Op, x: Tensor, descending: bool) -> bool:
    """Whether the range of integers is not asked for.

    A vendor's routine does not need it, if it is wanted however few bits matter, and what is
    captured has others later.
    """
    wanted = op.vendor(_known_order(descending, 0, 0), x.shape, x.dtype)
    routine = wanted and (op.name, x.dtype) in opened(x.device).library_calls
    return routine or recording.current() is not None
