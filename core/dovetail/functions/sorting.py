"""Sorting along an axis: stable, the same order on every device.

NaN stands last, also in descending order, and -0 equals 0. Equal elements keep their order, also
where the largest come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from .. import layout as lay
from ..arguments import flag, integer, shown
from ..device import opened
from ..dtypes import int64, spare_bits
from ..engine import recording
from ..errors import ArgumentError, NotYetError, ShapeError
from ..graph.expr import node, spec
from ..ops import table as ops
from ..ops.dtype_rules import common
from ..ops.sort import HALF, Order, key_dtype
from ..tensor.fields import is_strided
from ..tensor.host import evaluate
from ..tensor.tensor import Tensor, make, required, strided
from ..tensor.verbs import dispatch, slice_along, view
from .forms import into, remade
from .indexing import fetch_along
from .statistics import max as largest_of
from .statistics import min as smallest_of

__all__ = ["argsort", "sort", "topk"]

RANGED = 1 << 13  # integers from which it pays to read their range first: fewer passes


class TopK(NamedTuple):
    """What `topk` gives."""

    values: Tensor
    indices: Tensor


@remade
def sort(
    x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The elements of `x` in order along `axis`, equal ones in the order in which they were.

    It is always stable, whatever `stable` says. `descending`: the largest first; equal ones keep
    their order then too. NaN stands last, also where `descending`; -0 and 0 are equal. The range of
    many integers is read by the host, once.
    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: all; the result has the same.
    Gradient: each goes where its element came from.
    Raises: AxisError, DTypeError, ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> dt.sort(dt.asarray([3.0, dt.nan, 1.0, 2.0], device="reference")).tolist()
    [1.0, 2.0, 3.0, nan]
    """
    if not is_strided(x):
        return _of_other_layout(x, axis, _descending("sort", descending, stable))
    _require("sort", x)
    descending = _descending("sort", descending, stable)
    if x._expr.tape is not None:
        order = argsort(x, axis=axis, descending=descending)
        return fetch_along(x, order, lay.axis("sort", axis, x.ndim))
    return _along(ops.SORT, x, axis, descending)


@remade
def argsort(
    x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The positions along `axis` of the elements of `x` in order, as int64.

    The order is that of `sort`: stable whatever `stable` says, NaN last, also where `descending`.
    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: all; gives int64.
    Raises: AxisError, DTypeError, ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> dt.argsort(dt.asarray([3, 1, 2], device="reference")).tolist()
    [1, 2, 0]
    """
    _require("argsort", x)
    return _along(ops.ARGSORT, x, axis, _descending("argsort", descending, stable))


@into
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
    order = _along(ops.ARGSORT, x, d, flag("topk", largest, "largest"))
    first = slice_along(order, d, 0, k)
    return TopK(fetch_along(x, first, d), first)


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
    return _known_order(descending, 0, bits), low % (key.max + 1)


def _is_known(op: ops.Op, x: Tensor, descending: bool) -> bool:
    """Whether the range of integers is not asked for.

    A vendor's routine does not need it, and what is captured has others later.
    """
    wanted = op.vendor(_known_order(descending, 0, 0), x.shape)
    routine = wanted and (op.name, x.dtype) in opened(x.device).library_calls
    return routine or recording.current() is not None
