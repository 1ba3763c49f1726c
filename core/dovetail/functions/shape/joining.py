"""Stacking and splitting under NumPy's names, such as `hstack` and `hsplit`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ... import layout as lay
from ...argument_checks import integer, integers, sequence
from ...errors import ArgumentError, ShapeError
from ...tensor.primitives import slice_along, view
from ...tensor.promotion import Array, as_tensors
from ...tensor.tensor import Tensor, required
from ..datatypes import DTypeLike
from ..variants import public
from .copies import concat
from .manipulation import expand_dims

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "column_stack",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "vsplit",
    "vstack",
]

PARTS_MAX = 1 << 20  # views of more parts would fill the memory
SplitPoints = int | Sequence[int]


# --- minimum number of axes -----------------------------------------------------------------------


@public(widen=False)
def atleast_1d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least one axis: one for one tensor, else a tuple.

    - `arrays`: tensors or arrays.

    Shapes: any; () becomes (1,).
    Dtypes: all; each keeps its own.
    Raises: DTypeError unless all are tensors or arrays.

    >>> import dovetail as dt
    >>> dt.atleast_1d(dt.asarray(3)).tolist()
    [3]
    """
    return _expand_each("atleast_1d", arrays, 1)


@public(widen=False)
def atleast_2d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least two axes: one for one tensor, else a tuple.

    - `arrays`: tensors or arrays.

    Shapes: any; () becomes (1, 1), and (n,) a row (1, n).
    Dtypes: all; each keeps its own.
    Raises: DTypeError unless all are tensors or arrays.

    >>> import dovetail as dt
    >>> dt.atleast_2d(dt.asarray([1, 2])).tolist()
    [[1, 2]]
    """
    return _expand_each("atleast_2d", arrays, 2)


@public(widen=False)
def atleast_3d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least three axes: one for one tensor, else a tuple.

    - `arrays`: tensors or arrays.

    Shapes: any; () becomes (1, 1, 1), (n,) becomes (1, n, 1), and (n, m) becomes (n, m, 1).
    Dtypes: all; each keeps its own.
    Raises: DTypeError unless all are tensors or arrays.

    >>> import dovetail as dt
    >>> dt.atleast_3d(dt.asarray([1, 2])).shape
    (1, 2, 1)
    """
    return _expand_each("atleast_3d", arrays, 3)


def _expand_each(op: str, arrays: Sequence[object], ndim: int) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least `ndim` axes: one for one tensor, else a tuple."""
    views = tuple([_expand_to(op, x, ndim) for x in as_tensors(op, *arrays)])
    return views[0] if len(views) == 1 else views


def _expand_to(op: str, x: Tensor, ndim: int) -> Tensor:
    """Insert axes in front; in 3 dimensions a vector is the second axis, a matrix the first two."""
    missing = ndim - x.ndim
    if missing <= 0:
        return x
    trailing = 1 if ndim == 3 and x.ndim else 0
    return view(x, ("reshape", (1,) * (missing - trailing) + x.shape + (1,) * trailing), op)


# --- concatenation --------------------------------------------------------------------------------


@public(out=True, widen=False)
def hstack(
    arrays: Sequence[Array],
    /,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: Tensor | None = None,
) -> Tensor:
    """Concatenate tensors along the second axis; vectors along their only one.

    - `arrays`: a list or tuple of tensors.
    - `dtype`: the dtype of the result.
    - `casting`: "same_kind" refuses a `dtype` that loses a kind of number; "unsafe" does not.

    Shapes: equal except along that axis; () counts as (1,).
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.hstack([dt.asarray([[1], [2]]), [[3], [4]]]).tolist()
    [[1, 3], [2, 4]]
    """
    tensors = _tensors_of_ndim("hstack", arrays, 1)
    axis = 0 if tensors[0].ndim == 1 else 1
    return concat(tensors, axis=axis, dtype=dtype, casting=casting)


@public(out=True, widen=False)
def vstack(
    arrays: Sequence[Array],
    /,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
    out: Tensor | None = None,
) -> Tensor:
    """Concatenate tensors along the first axis; vectors are rows.

    - `arrays`: a list or tuple of tensors.
    - `dtype`: the dtype of the result.
    - `casting`: "same_kind" refuses a `dtype` that loses a kind of number; "unsafe" does not.

    Shapes: equal except along that axis.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.vstack([dt.asarray([1, 2]), [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    tensors = _tensors_of_ndim("vstack", arrays, 2)
    return concat(tensors, axis=0, dtype=dtype, casting=casting)


@public(out=True, widen=False)
def dstack(arrays: Sequence[Array], /, *, out: Tensor | None = None) -> Tensor:
    """Concatenate tensors along the third axis; see `atleast_3d`.

    - `arrays`: a list or tuple of tensors.

    Shapes: equal except along that axis.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.dstack([dt.asarray([1, 2]), [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat(_tensors_of_ndim("dstack", arrays, 3), axis=2)


@public(out=True, widen=False)
def column_stack(arrays: Sequence[Array], /, *, out: Tensor | None = None) -> Tensor:
    """Concatenate tensors as columns of a matrix; each vector is one column.

    - `arrays`: a list or tuple of tensors.

    Shapes: (n,) or (n, k) each, with one n.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.column_stack([dt.asarray([1, 2]), [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    tensors = _tensors_of_ndim("column_stack", arrays, 1)
    return concat([expand_dims(a, 1) if a.ndim == 1 else a for a in tensors], axis=1)


def _tensors_of_ndim(op: str, arrays: object, ndim: int) -> list[Tensor]:
    """Return the tensors of a list, with at least `ndim` axes."""
    listed = sequence(op, arrays, "arrays", "tensors")
    if not listed:
        raise ArgumentError(f"{op}: expected at least one tensor, got none")
    return [_expand_to(op, x, ndim) for x in as_tensors(op, *listed)]


# --- splitting ------------------------------------------------------------------------------------


@public(widen=False)
def array_split(
    x: Tensor, indices_or_sections: SplitPoints, /, *, axis: int = 0
) -> tuple[Tensor, ...]:
    """Split `x` along `axis` into views of consecutive parts, as equal as possible.

    `split` takes sizes instead.

    - `indices_or_sections`: the number of parts, of which the first are longer by one if they
      cannot be equal; or a list of the positions of the cuts.

    Shapes: of at least 1 dimension.
    Dtypes: all.
    Raises: ArgumentError for fewer than one part, AxisError.
    See also: `split`, `chunk`, `hsplit`.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.array_split(dt.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    d = lay.axis("array_split", axis, required("array_split", x).ndim)
    return split_views("array_split", x, indices_or_sections, d, equal=False)


@public(widen=False)
def hsplit(x: Tensor, indices_or_sections: SplitPoints, /) -> tuple[Tensor, ...]:
    """Split `x` into views of equal parts along its second axis; a vector along its only one.

    - `indices_or_sections`: the number of parts, or a list of the positions of the cuts.

    Shapes: of at least 1 dimension.
    Dtypes: all.
    Raises: ShapeError if the parts cannot be equal or there are no dimensions, ArgumentError for
    fewer than one part.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.hsplit(dt.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    ndim = _require_ndim("hsplit", x, 1)
    return split_views("hsplit", x, indices_or_sections, min(ndim - 1, 1))


@public(widen=False)
def vsplit(x: Tensor, indices_or_sections: SplitPoints, /) -> tuple[Tensor, ...]:
    """Split `x` into views of equal parts along its first axis.

    - `indices_or_sections`: the number of parts, or a list of the positions of the cuts.

    Shapes: of at least 2 dimensions.
    Dtypes: all.
    Raises: ShapeError if the parts cannot be equal or below 2 dimensions, ArgumentError for fewer
    than one part.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]])
    >>> [part.tolist() for part in dt.vsplit(x, 2)]
    [[[1, 2]], [[3, 4]]]
    """
    _require_ndim("vsplit", x, 2)
    return split_views("vsplit", x, indices_or_sections, 0)


@public(widen=False)
def dsplit(x: Tensor, indices_or_sections: SplitPoints, /) -> tuple[Tensor, ...]:
    """Split `x` into views of equal parts along its third axis.

    - `indices_or_sections`: the number of parts, or a list of the positions of the cuts.

    Shapes: of at least 3 dimensions.
    Dtypes: all.
    Raises: ShapeError if the parts cannot be equal or below 3 dimensions, ArgumentError for fewer
    than one part.

    >>> import dovetail as dt
    >>> [part.shape for part in dt.dsplit(dt.ones((1, 2, 4)), [1])]
    [(1, 2, 1), (1, 2, 3)]
    """
    _require_ndim("dsplit", x, 3)
    return split_views("dsplit", x, indices_or_sections, 2)


def _require_ndim(op: str, x: Tensor, ndim: int) -> int:
    """Return the number of dimensions. Raises: ShapeError if there are fewer than `ndim`."""
    if required(op, x).ndim < ndim:
        raise ShapeError(f"{op}: expected at least {ndim} dimensions, got shape {x.shape}")
    return x.ndim


def split_views(
    op: str, x: Tensor, split_points: SplitPoints, d: int, equal: bool = True
) -> tuple[Tensor, ...]:
    """Split `x` into views at positions, or into a number of parts.

    equal: a number of parts must divide the axis.
    """
    n = x.shape[d]
    if isinstance(split_points, np.ndarray) and split_points.ndim:
        split_points = split_points.tolist()
    if isinstance(split_points, (list, tuple, range)):
        positions = [
            min(max(c + n if c < 0 else c, 0), n) for c in integers(op, split_points, "indices")
        ]
        ends = [0, *positions, n]
    else:
        count = integer(op, split_points, "indices_or_sections", 1, PARTS_MAX)
        if equal and n % count:
            raise ShapeError(
                f"{op}: axis {d} of shape {x.shape} does not divide into {count} equal parts; "
                "use dt.array_split"
            )
        size, longer = divmod(n, count)
        ends = [i * size + min(i, longer) for i in range(count + 1)]
    return tuple([slice_along(x, d, a, max(b - a, 0), op) for a, b in pairwise(ends)])
