"""Sorts by several keys, and partitions: `lexsort`, `partition`, `argpartition`."""

from __future__ import annotations

from collections.abc import Sequence

from ... import layout as lay
from ...argument_checks import integers, sequence, shown
from ...errors import ArgumentError, ShapeError
from ...tensor.other_layouts import require_along
from ...tensor.promotion import ARRAY_TYPES, Array, as_tensors
from ...tensor.tensor import Tensor
from ..indexing.index_reads import gather_along_unchecked
from ..shape.manipulation import ravel, unstack
from ..variants import public
from .stable_sort import argsort, sort

__all__ = ["argpartition", "lexsort", "partition"]


@public(out=True, widen=False)
def lexsort(
    keys: Sequence[Array] | Tensor, /, axis: int = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the positions along `axis` that sort by several keys; the last key is the primary one.

    If all keys are equal, positions keep their order; NaN comes last.

    - `keys`: a list of tensors, or a tensor whose first axis goes over them.

    Shapes: all keys have one, of at least 1 dimension; the result has the same.
    Dtypes: all but complex; gives int64.
    Raises: ArgumentError for no keys, AxisError, DTypeError, DeviceError, ShapeError.
    See also: `argsort`, `sort`.

    >>> import dovetail as dt
    >>> dt.lexsort(([9, 4, 0], dt.asarray([1, 1, 0]))).tolist()
    [2, 1, 0]
    """
    listed = unstack(keys) if isinstance(keys, Tensor) else _parse_keys(keys)
    if not listed:
        raise ArgumentError("lexsort: expected at least one key, got none")
    first, *others = as_tensors("lexsort", *listed)
    for k in others:
        if k.shape != first.shape:
            raise ShapeError(
                f"lexsort: keys must have the same shape, got {first.shape} and {k.shape}"
            )
    order, d = argsort(first, axis=axis), lay.axis("lexsort", axis, first.ndim)
    for k in others:
        order = gather_along_unchecked(
            order, argsort(gather_along_unchecked(k, order, d), axis=d), d
        )
    return order


def _parse_keys(keys: object) -> Sequence[object]:
    """Return the keys of a sort as a sequence.

    Raises: ShapeError for an array without axes, ArgumentTypeError for no array, list or tuple.
    """
    if not isinstance(keys, ARRAY_TYPES):
        return sequence("lexsort", keys, "keys", "tensors")
    if getattr(keys, "ndim", 1) == 0:
        raise ShapeError(
            "lexsort: keys must have at least 1 dimension, got shape (); "
            "its first axis lists the keys"
        )
    return list(keys)


@public(out=True, widen=False)
def partition(
    x: Tensor, /, kth: int | Sequence[int], axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the elements of `x` with those at `kth` in their sorted positions.

    Smaller elements come before them, larger ones after. Implemented as a full sort.

    - `kth`: one position or several; negative ones count from the end.
    - `axis`: one axis; None ravels the tensor first.

    Shapes: of at least 1 dimension; the result has the same, or is a vector.
    Dtypes: all but complex; the result has the same.
    Gradient: flows to the elements' original positions.
    Raises: ArgumentError for a position out of range, ArgumentTypeError, AxisError, DTypeError.
    See also: `sort`, `topk`, `argpartition`.

    >>> import dovetail as dt
    >>> dt.partition(dt.asarray([3, 1, 2]), 1).tolist()
    [1, 2, 3]
    """
    x, d = _check_positions("partition", x, kth, axis)
    return sort(x, axis=d)


@public(out=True, widen=False)
def argpartition(
    x: Tensor, /, kth: int | Sequence[int], axis: int | None = -1, *, out: Tensor | None = None
) -> Tensor:
    """Return the positions along `axis` of the elements in the order of `partition`.

    The positions are int64. All elements are sorted: the result is that of `argsort`.

    - `kth`: one position or several; negative ones count from the end.
    - `axis`: one axis; None ravels the tensor first.

    Shapes: of at least 1 dimension; the result has the same, or is a vector.
    Dtypes: all but complex; gives int64.
    Raises: ArgumentError for a position out of range, ArgumentTypeError, AxisError, DTypeError.

    >>> import dovetail as dt
    >>> dt.argpartition(dt.asarray([3, 1, 2]), 1).tolist()
    [1, 2, 0]
    """
    x, d = _check_positions("argpartition", x, kth, axis)
    return argsort(x, axis=d)


def _check_positions(
    op: str, x: Tensor, kth: int | Sequence[int], axis: int | None
) -> tuple[Tensor, int]:
    """Check that positions are in range, and return the tensor and the axis to sort."""
    x = require_along(op, x) if axis is not None else ravel(require_along(op, x))
    d = lay.axis(op, -1 if axis is None else axis, x.ndim)
    n = x.shape[d]
    for k in integers(op, kth, "kth"):
        if n and not -n <= k < n:
            raise ArgumentError(
                f"{op}: kth must be between {-n} and {n - 1} (axis {d} of size {n}), got {shown(k)}"
            )
    return x, d
