"""Orders by several keys, and of some positions: `lexsort`, `partition`, `argpartition`."""

from __future__ import annotations

from collections.abc import Sequence

from ... import layout as lay
from ...arguments import integers, sequence, shown
from ...errors import ArgumentError, ShapeError
from ...tensor.operands import ARRAYS, Array, brought
from ...tensor.tensor import Tensor, strided
from ..indexing.index_reads import fetch_along
from ..shape.manipulation import ravel, unstack
from ..variants import into
from .stable_sort import argsort, sort

__all__ = ["argpartition", "lexsort", "partition"]


@into(widen=False)
def lexsort(
    keys: Sequence[Array] | Tensor, /, axis: int = -1, *, out: Tensor | None = None
) -> Tensor:
    """The positions along `axis` in the order of several keys: by the last, then by those before.

    `keys`: a list of tensors, or a tensor whose first axis goes over them. Where all keys are equal
    positions keep their order; NaN stands last.
    Shapes: all keys have one, of at least 1 dimension; the result has the same.
    Dtypes: all but complex; gives int64.
    Raises: ArgumentError for no keys, AxisError, DTypeError, DeviceError, ShapeError.

    >>> import dovetail as dt
    >>> dt.lexsort(([9, 4, 0], dt.asarray([1, 1, 0], device="reference"))).tolist()
    [2, 1, 0]
    """
    listed = unstack(keys) if isinstance(keys, Tensor) else _keys(keys)
    if not listed:
        raise ArgumentError("lexsort: needs at least one key")
    first, *rest = brought("lexsort", *listed)
    for k in rest:
        if k.shape != first.shape:
            raise ShapeError(f"lexsort: keys of shapes {first.shape} and {k.shape}: give one shape")
    order, d = argsort(first, axis=axis), lay.axis("lexsort", axis, first.ndim)
    for k in rest:
        order = fetch_along(order, argsort(fetch_along(k, order, d), axis=d), d)
    return order


def _keys(keys: object) -> Sequence[object]:
    if not isinstance(keys, ARRAYS):
        return sequence("lexsort", keys, "keys", "tensors")
    if getattr(keys, "ndim", 1) == 0:
        raise ShapeError(
            "lexsort: keys is an array without axes; its first axis is that of the keys"
        )
    return list(keys)


@into(widen=False)
def partition(
    x: Tensor, /, kth: int | Sequence[int], axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """The elements of `x` such that those at `kth` stand where they would in order.

    What is smaller stands before them, what is larger behind. All come in order, which is one way
    to do so: it is `sort`. `kth`: one position or several, negative ones counted from the end.
    `axis`: None ravels the tensor first.
    Shapes: of at least 1 dimension; the result has the same, or is a vector.
    Dtypes: all but complex; the result has the same.
    Gradient: each goes where its element came from.
    Raises: ArgumentError for a position out of range, ArgumentTypeError, AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.partition(dt.asarray([3, 1, 2], device="reference"), 1).tolist()
    [1, 2, 3]
    """
    x, d = _divided("partition", x, kth, axis)
    return sort(x, axis=d)


@into(widen=False)
def argpartition(
    x: Tensor, /, kth: int | Sequence[int], axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """The positions along `axis` of the elements in the order of `partition`, as int64.

    All come in order: it is `argsort`. `kth`: one position or several, negative ones counted from
    the end. `axis`: None ravels the tensor first.
    Shapes: of at least 1 dimension; the result has the same, or is a vector.
    Dtypes: all but complex; gives int64.
    Raises: ArgumentError for a position out of range, ArgumentTypeError, AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.argpartition(dt.asarray([3, 1, 2], device="reference"), 1).tolist()
    [1, 2, 0]
    """
    x, d = _divided("argpartition", x, kth, axis)
    return argsort(x, axis=d)


def _divided(op: str, x: Tensor, kth: int | Sequence[int], axis: int | None) -> tuple[Tensor, int]:
    """The tensor and the axis that are sorted, of positions in range."""
    x = ravel(strided(op, x)) if axis is None else strided(op, x)
    d = lay.axis(op, -1 if axis is None else axis, x.ndim)
    n = x.shape[d]
    for k in integers(op, kth, "kth"):
        if n and not -n <= k < n:
            raise ArgumentError(f"{op}: kth is {shown(k)} for axis {d} of size {n}")
    return x, d
