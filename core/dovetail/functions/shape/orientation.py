"""Rotation, mirroring, and the diagonals of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from ... import layout as lay
from ...argument_checks import dimensions, integer, integers
from ...dtypes import bool_, int64
from ...errors import AxisError, ShapeError
from ...ops import table as ops
from ...tensor.primitives import apply, view
from ...tensor.tensor import Tensor, required, strided
from ..creation.constructors import eye, generate, ones, tril, triu, zeros
from ..datatypes import DeviceLike, DTypeLike
from ..indexing.index_reads import take
from ..indexing.masks import nonzero
from ..reductions.statistics import sum as sum_
from ..variants import public
from .manipulation import diagonal, flip, ravel

__all__ = [
    "diag",
    "diag_indices",
    "diagflat",
    "fliplr",
    "flipud",
    "rot90",
    "trace",
    "tri",
    "tril_indices",
    "triu_indices",
]


# --- rotation and mirroring -----------------------------------------------------------------------


@public(method=True, widen=False)
def rot90(x: Tensor, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Return a view of `x` rotated by `k` quarter turns from the first axis to the second.

    - `k`: the number of quarter turns; negative ones go the other way.
    - `axes`: the two axes of the plane.

    Shapes: of at least 2 dimensions; for odd k the two sizes change places.
    Dtypes: all.
    Raises: AxisError unless the axes are two different ones.
    See also: `flip`, `transpose`.

    >>> import dovetail as dt
    >>> dt.rot90(dt.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    turns, axis_pair = integer("rot90", k, "k") % 4, integers("rot90", axes, "axes")
    plane = [lay.axis("rot90", a, required("rot90", x).ndim) for a in axis_pair]
    if len(plane) != 2 or plane[0] == plane[1]:
        raise AxisError(f"rot90: axes must be two different axes, got {tuple(axis_pair)}")
    a, b = plane
    if turns == 0 or turns == 2:
        return flip(x, axis=(a, b)) if turns else view(x, ("permute", tuple(range(x.ndim))))
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    if turns == 1:
        return view(flip(x, axis=b), ("permute", tuple(order)), "rot90")
    return flip(view(x, ("permute", tuple(order)), "rot90"), axis=b)


@public(method=True, in_place=True, widen=False)
def fliplr(x: Tensor, /) -> Tensor:
    """Return a view of `x` with its second axis reversed.

    Shapes: of at least 2 dimensions; the result has the same.
    Dtypes: all.
    Raises: ShapeError below 2 dimensions.

    >>> import dovetail as dt
    >>> dt.fliplr(dt.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    if required("fliplr", x).ndim < 2:
        raise ShapeError(f"fliplr: expected at least 2 dimensions, got shape {x.shape}")
    return flip(x, axis=1)


@public(method=True, in_place=True, widen=False)
def flipud(x: Tensor, /) -> Tensor:
    """Return a view of `x` with its first axis reversed.

    Shapes: of at least 1 dimension; the result has the same.
    Dtypes: all.
    Raises: ShapeError for no dimensions.

    >>> import dovetail as dt
    >>> dt.flipud(dt.asarray([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    if required("flipud", x).ndim < 1:
        raise ShapeError("flipud: expected at least 1 dimension, got shape ()")
    return flip(x, axis=0)


# --- diagonals ------------------------------------------------------------------------------------


@public(method=True, out=True, widen=False)
def diag(x: Tensor, /, k: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the diagonal of a matrix as a view, or a matrix with a vector as its diagonal.

    - `k`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.

    Shapes: (n, m) gives a vector; (n,) gives a square matrix of n + |k| rows.
    Dtypes: all.
    Raises: ShapeError unless it is a vector or a matrix.
    See also: `diagonal`, `diag_embed`, `eye`.

    >>> import dovetail as dt
    >>> dt.diag(dt.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    k = integer("diag", k, "k")
    if strided("diag", x).ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(
            f"diag: expected a vector or a matrix, got shape {x.shape}; use dt.diagonal"
        )
    return _matrix_with_diagonal("diag", x, k)


@public(method=True, out=True, widen=False)
def diagflat(x: Tensor, /, k: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return a matrix whose diagonal has the elements of `x` in row-major order.

    - `k`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.

    Shapes: any; the result is a square of x.size + |k| rows.
    Dtypes: all.
    Raises: ShapeError beyond 2**63 rows.

    >>> import dovetail as dt
    >>> dt.diagflat(dt.asarray([[1, 2]]), 1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    return _matrix_with_diagonal(
        "diagflat", ravel(strided("diagflat", x)), integer("diagflat", k, "k")
    )


def _matrix_with_diagonal(op: str, x: Tensor, k: int) -> Tensor:
    """Return a square matrix with a vector on its k-th diagonal.

    It is elementwise in the positions, so that it fuses.
    """
    n = x.shape[0] + abs(k)
    dimensions(op, (n, n))
    zero = False if x.dtype is bool_ else 0
    if not x.shape[0]:
        return zeros((n, n), dtype=x.dtype, device=x.device)
    on = eye(n, k=k, dtype=bool_, device=x.device)
    rows = generate(ops.ARANGE, (n,), (min(k, 0), 1), (int64, int64), int64, x.device)
    at = apply(ops.CLIP, (rows, 0, x.shape[0] - 1))
    column = view(take(x, at, axis=0), ("reshape", (n, 1)))
    return apply(ops.WHERE, (on, column, zero))


@public(method=True, out=True, widen=False)
def trace(
    x: Tensor,
    /,
    *,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum of the diagonal over two axes.

    See `dt.linalg` for stacks of matrices.

    - `offset`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.
    - `axis1`, `axis2`: the axes; default: the first two.
    - `dtype`: the elements are cast to it first.

    Shapes: of at least 2 dimensions; the two axes are removed.
    Dtypes: all; `dtype` and the result as for `sum`.
    Order: the canonical one (docs/numerics.md): the same bits on every device.
    Raises: ShapeError below 2 dimensions, AxisError, DTypeError.
    See also: `linalg.trace`, `diagonal`.

    >>> import dovetail as dt
    >>> dt.trace(dt.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return sum_(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


@public(widen=False)
def diag_indices(n: int, ndim: int = 2, /, *, device: DeviceLike = None) -> tuple[Tensor, ...]:
    """Return the indices of the main diagonal of a tensor of size `n` along `ndim` axes.

    - `n`: the length of each axis.
    - `ndim`: the number of axes.

    Shapes: (n,) each.
    Dtypes: int64.
    Raises: ArgumentError for a negative number, DeviceError.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.diag_indices(3)]
    [[0, 1, 2], [0, 1, 2]]
    """
    n, ndim = integer("diag_indices", n, "n", 0), integer("diag_indices", ndim, "ndim", 0, 64)
    dimensions("diag_indices", (n,))
    return (generate(ops.POSITION, (n,), (), (), int64, device, "diag_indices"),) * ndim


@public(out=True, widen=False)
def tri(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a matrix with ones at and below a diagonal, and zeros above it.

    - `n_rows`: the number of rows.
    - `n_cols`: the number of columns; None takes `n_rows`.
    - `k`: the diagonal: 0 is the main one, positive ones are above it, negative ones below it.

    Shapes: (n_rows, n_cols).
    Dtypes: `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    return tril(ones(shape, dtype=dtype, device=device), k=k)


@public(widen=False)
def tril_indices(
    n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None
) -> tuple[Tensor, Tensor]:
    """Return the indices of the lower triangle of a matrix, row by row: (rows, columns).

    - `n`: the number of rows.
    - `k`: the last diagonal of the triangle: 0 is the main one, positive ones are above it.
    - `m`: the number of columns; None takes `n`.

    Shapes: two vectors.
    Dtypes: int64.
    Raises: ShapeError, DeviceError.
    See also: `tril`, `tril_indices_from`.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    whole = ones((n, n if m is None else m), dtype=bool_, device=device)
    rows, columns = nonzero(tril(whole, k=k))
    return rows, columns


@public(widen=False)
def triu_indices(
    n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None
) -> tuple[Tensor, Tensor]:
    """Return the indices of the upper triangle of a matrix, row by row: (rows, columns).

    - `n`: the number of rows.
    - `k`: the first diagonal of the triangle: 0 is the main one, positive ones are above it.
    - `m`: the number of columns; None takes `n`.

    Shapes: two vectors.
    Dtypes: int64.
    Raises: ShapeError, DeviceError.
    See also: `triu`, `triu_indices_from`.

    >>> import dovetail as dt
    >>> [i.tolist() for i in dt.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    whole = ones((n, n if m is None else m), dtype=bool_, device=device)
    rows, columns = nonzero(triu(whole, k=k))
    return rows, columns
