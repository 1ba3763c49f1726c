"""Masks as positions of their true or nonzero elements.

Their number depends on data, which takes one host read.
"""

from __future__ import annotations

import numpy as np

from ...argument_checks import integer
from ...declarations import public
from ...device_class import Device
from ...dtypes import bool_, int64
from ...errors import ShapeError
from ...graph.expr import Expr, Spec, node, spec
from ...ops import table as ops
from ...ops.kernel_ops import BLOCK_ELEMENTS, COUNTS
from ...tensor.c_fields import expr_of, is_strided
from ...tensor.host import from_host, item, printable_values
from ...tensor.primitives import apply, dispatch, pending_view
from ...tensor.tensor import Tensor, create_tensor, required, strided
from ..creation.constructors import arange
from ..known_calls import pack_positions
from ..shape.copies import stack

__all__ = ["argwhere", "nonzero"]

KERNEL_SCAN_BLOCKS_MAX = (
    64  # for so many blocks the kernel adds up their counts, without a copy from the host
)


def true_positions(mask: np.ndarray | Tensor, device: Device) -> Tensor:
    """Return the positions, in row-major order, at which a mask is true. One host read.

    A tensor takes one host read.
    """
    if isinstance(mask, np.ndarray):
        return from_host(np.flatnonzero(mask), int64, device)
    flat = pending_view(strided("index", mask)._expr, ("reshape", (mask.size,)))
    if mask.size <= BLOCK_ELEMENTS:
        return pack_positions(flat)
    blocks = -(-mask.size // BLOCK_ELEMENTS)
    counts = node(ops.COUNT_BLOCKS, (flat,), spec((blocks,), int64, mask.device))
    offsets, count, mode = _scan_counts(create_tensor(counts))
    result_spec = spec((count,), int64, mask.device)
    return create_tensor(node(ops.TRUE_POSITIONS, (flat, offsets), result_spec, mode))


def run_bounds(ordered: Tensor) -> Tensor:
    """Return the starts of runs of equal elements of a vector, then its length. One host read."""
    n, e, device = ordered.size, ordered._expr, ordered.device
    if not n:
        return from_host(np.zeros(1, np.int64), int64, device)
    counts = node(ops.COUNT_RUNS, (e,), spec((-(-n // BLOCK_ELEMENTS),), int64, device))
    offsets, count, mode = _scan_counts(create_tensor(counts))
    return create_tensor(
        node(ops.RUN_BOUNDS, (e, offsets), spec((count + 2,), int64, device), mode)
    )


def _scan_counts(block_counts: Tensor) -> tuple[Expr, int, str | None]:
    """Read block counts on the host; return the next kernel's operand, the total and its mode.

    For few blocks these are the counts of the blocks (mode COUNTS), else the sums before them.
    """
    if block_counts.size == 1:
        return block_counts._expr, int(item(block_counts)), COUNTS
    host_counts = printable_values(block_counts, may_guard=True)
    if host_counts.size <= KERNEL_SCAN_BLOCKS_MAX:
        return block_counts._expr, sum(host_counts.tolist()), COUNTS
    total = np.cumsum(host_counts)
    return from_host(total - host_counts, int64, block_counts.device)._expr, int(total[-1]), None


def _is_short_mask(s: Spec) -> bool:
    """Return True for vectors of bools of one block, whose positions one kernel packs."""
    return s.dtype is bool_ and len(s.shape) == 1 and s.size <= BLOCK_ELEMENTS


@public(method=True, widen=False)
def nonzero(x: Tensor, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]:
    """Return for each axis the positions of the nonzero elements, in row-major order.

    NaN is not zero. The host reads their number, once, unless `size` is given.

    - `size`: the number of positions: the first ones, or all and then fill values. So the result
      has a known shape, as `dt.jit` requires.
    - `fill_value`: the position on each axis where there are fewer nonzero elements.

    Shapes: of at least 1 dimension; one vector for each axis.
    Dtypes: all; gives int64.
    Raises: ShapeError for no dimensions, ArgumentError for a negative `size`.
    See also: `argwhere`, `flatnonzero`, `where`.

    >>> import dovetail as dt
    >>> [at.tolist() for at in dt.nonzero(dt.asarray([[0, 3], [4, 0]]))]
    [[0, 1], [1, 0]]
    """
    if size is None and is_strided(x) and _is_short_mask(expr_of(x).spec):
        return (pack_positions(expr_of(x)),)
    if required("nonzero", x).ndim == 0:
        raise ShapeError(
            "nonzero: expected at least 1 dimension, got shape (); use dt.reshape(x, (1,))"
        )
    if not is_strided(x) and size is None:
        positions = dispatch("nonzero", "nonzero", (x,), x)
        return tuple([positions[d] for d in range(x.ndim)])
    mask = x if x.dtype is bool_ else apply(ops.NOT_EQUAL, (strided("nonzero", x), 0))
    flat = true_positions(mask, x.device) if size is None else _first_positions(mask, size)
    exists = None if size is None else apply(ops.LESS, (flat, x.size))
    columns = []
    for extent in reversed(x.shape[1:]):
        columns.append(apply(ops.REMAINDER, (flat, max(extent, 1))))
        flat = apply(ops.FLOOR_DIVIDE, (flat, max(extent, 1)))
    if exists is not None:
        fill = integer("nonzero", fill_value, "fill_value")
        flat, *columns = (apply(ops.WHERE, (exists, t, fill)) for t in (flat, *columns))
    return (flat, *reversed(columns))


def _first_positions(mask: Tensor, size: int) -> Tensor:
    """Return the first `size` true positions; the number of elements where there are fewer."""
    count = integer("nonzero", size, "size", 0)
    flat = pending_view(mask._expr, ("reshape", (mask.size,)))
    s = spec((mask.size,), int64, mask.device)
    number = node(ops.CUMULATIVE_SUM, (flat,), s, (0, False, None))
    wanted = arange(1, count + 1, dtype=int64, device=mask.device)
    s = spec((count,), int64, mask.device)
    return create_tensor(node(ops.SEARCHSORTED, (number, wanted._expr), s, "left"))


@public(widen=False)
def argwhere(x: Tensor, /) -> Tensor:
    """Return the positions of the nonzero elements, one row each, in row-major order.

    NaN is not zero. The host reads their number, once.

    Shapes: any; gives (number of elements, dimensions).
    Dtypes: all; gives int64.
    Raises: DTypeError unless `x` is a tensor.
    See also: `nonzero`.

    >>> import dovetail as dt
    >>> dt.argwhere(dt.asarray([[0, 3], [4, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if not required("argwhere", x).ndim:
        return from_host(np.empty((int(bool(x)), 0), np.int64), int64, x.device)
    return stack(nonzero(x), axis=1)
