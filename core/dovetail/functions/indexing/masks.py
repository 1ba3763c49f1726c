"""Masks as positions: where a tensor is true, or not zero.

How many there are depends on data, so that takes one host read.
"""

from __future__ import annotations

import numpy as np

from ...arguments import named
from ...device_class import Device
from ...dtypes import bool_, int64
from ...errors import ShapeError
from ...graph.expr import Expr, leaf, node, spec
from ...ops import table as ops
from ...ops.kernels import BLOCK, COUNTS
from ...tensor.fields import is_strided
from ...tensor.host import evaluated, from_host, item, shown
from ...tensor.tensor import Tensor, make, required, strided
from ...tensor.verbs import apply, dispatch, pending_view, place_along
from ...tensor.writes import write_value

__all__ = ["argwhere", "nonzero"]

FEW = 64  # blocks: the kernel adds up what is before each of them, without a copy from the host


def true_positions(mask: np.ndarray | Tensor, device: Device) -> Tensor:
    """The positions, in row-major order, at which a mask is true. One host read for a tensor."""
    if isinstance(mask, np.ndarray):
        return from_host(np.flatnonzero(mask), int64, device)
    flat = pending_view(strided("index", mask)._expr, ("reshape", (mask.size,)))
    if mask.size <= BLOCK:
        return _packed(flat)
    blocks = -(-mask.size // BLOCK)
    counted = node(ops.COUNT_BLOCKS, (flat,), spec((blocks,), int64, mask.device))
    before, count, how = _before(make(counted))
    made = spec((count,), int64, mask.device)
    return make(node(ops.TRUE_POSITIONS, (flat, before), made, how))


def _packed(flat: Expr) -> Tensor:
    """The positions at which a mask of one block is true, with their number behind them."""
    n, device = flat.spec.size, flat.spec.device
    e = node(ops.PACKED_POSITIONS, (flat,), spec((n + 1,), int64, device))
    evaluated(make(e))
    count = item(make(leaf(e.storage, spec((), int64, device), (), n)))
    return make(leaf(e.storage, spec((int(count),), int64, device), (1,), 0))


def run_bounds(ordered: Tensor) -> Tensor:
    """Where runs of equal elements of a vector start, then its length. One host read."""
    n, e, on = ordered.size, ordered._expr, ordered.device
    if not n:
        return from_host(np.zeros(1, np.int64), int64, on)
    counted = node(ops.COUNT_RUNS, (e,), spec((-(-n // BLOCK),), int64, on))
    before, count, how = _before(make(counted))
    return make(node(ops.RUN_BOUNDS, (e, before), spec((count + 2,), int64, on), how))


def _before(counted: Tensor) -> tuple[Expr, int, str | None]:
    """How many there are before each block, or in each of a few; how many in all; and which."""
    if counted.size == 1:
        return counted._expr, int(item(counted)), COUNTS
    counts = shown(counted)
    if counts.size <= FEW:
        return counted._expr, sum(counts.tolist()), COUNTS
    total = np.cumsum(counts)
    return from_host(total - counts, int64, counted.device)._expr, int(total[-1]), None


@named(widen=False)
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """For each axis of `x` the positions of the elements that are not zero, in row-major order.

    NaN is not zero. How many there are is read by the host, once.
    Shapes: of at least 1 dimension; a vector comes for each.
    Dtypes: all; gives int64.
    Raises: ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> [at.tolist() for at in dt.nonzero(dt.asarray([[0, 3], [4, 0]], device="reference"))]
    [[0, 1], [1, 0]]
    """
    if required("nonzero", x).ndim == 0:
        raise ShapeError("nonzero: needs at least 1 dimension; see dt.reshape(x, (1,))")
    if not is_strided(x):
        places = dispatch("nonzero", "nonzero", (x,), x)
        return tuple([places[d] for d in range(x.ndim)])
    mask = x if x.dtype is bool_ else apply(ops.NOT_EQUAL, (x, 0))
    flat, found = true_positions(mask, x.device), []
    for extent in reversed(x.shape[1:]):
        found.append(apply(ops.REMAINDER, (flat, max(extent, 1))))
        flat = apply(ops.FLOOR_DIVIDE, (flat, max(extent, 1)))
    return (flat, *reversed(found))


@named(widen=False)
def argwhere(x: Tensor, /) -> Tensor:
    """The positions of the elements that are not zero, one row each, in row-major order.

    NaN is not zero. How many there are is read by the host, once.
    Shapes: of at least 1 dimension; gives (number of them, dimensions).
    Dtypes: all; gives int64.
    Raises: ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> dt.argwhere(dt.asarray([[0, 3], [4, 0]], device="reference")).tolist()
    [[0, 1], [1, 0]]
    """
    found = nonzero(x)
    out = from_host(np.empty((found[0].size, x.ndim), np.int64), int64, x.device)
    for d, column in enumerate(found):
        write_value("setitem", place_along(out, 1, d), column)
    return out
