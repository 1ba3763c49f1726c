"""Tensors put side by side and cut apart, as NumPy's `hstack` and `hsplit` have it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ... import layout as lay
from ...arguments import integer, integers, named, sequence
from ...errors import ArgumentError, ShapeError
from ...tensor.operands import Array, brought
from ...tensor.tensor import Tensor, required
from ...tensor.verbs import slice_along, view
from ..variants import into
from .copies import concat
from .manipulation import expand_dims

__all__ = [
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "dsplit", "dstack",
    "hsplit", "hstack", "vsplit", "vstack",
]  # fmt: skip

MOST = 1 << 20  # parts: of more nobody can hold the views
Cuts = int | Sequence[int]


# --- at least so many axes ------------------------------------------------------------------------


def atleast_1d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Views of tensors with at least one axis: one for one tensor, else a tuple.

    Shapes: any; () becomes (1,).
    Dtypes: all; each keeps its own.
    Raises: DTypeError for what is neither tensor nor array.

    >>> import dovetail as dt
    >>> dt.atleast_1d(dt.asarray(3, device="reference")).tolist()
    [3]
    """
    return _each("atleast_1d", arrays, 1)


def atleast_2d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Views of tensors with at least two axes: one for one tensor, else a tuple.

    Shapes: any; () becomes (1, 1), and (n,) a row (1, n).
    Dtypes: all; each keeps its own.
    Raises: DTypeError for what is neither tensor nor array.

    >>> import dovetail as dt
    >>> dt.atleast_2d(dt.asarray([1, 2], device="reference")).tolist()
    [[1, 2]]
    """
    return _each("atleast_2d", arrays, 2)


def atleast_3d(*arrays: Array) -> Tensor | tuple[Tensor, ...]:
    """Views of tensors with at least three axes: one for one tensor, else a tuple.

    Shapes: any; () becomes (1, 1, 1), (n,) becomes (1, n, 1), and (n, m) becomes (n, m, 1).
    Dtypes: all; each keeps its own.
    Raises: DTypeError for what is neither tensor nor array.

    >>> import dovetail as dt
    >>> dt.atleast_3d(dt.asarray([1, 2], device="reference")).shape
    (1, 2, 1)
    """
    return _each("atleast_3d", arrays, 3)


def _each(op: str, arrays: Sequence[object], ndim: int) -> Tensor | tuple[Tensor, ...]:
    found = tuple([_at_least(op, x, ndim) for x in brought(op, *arrays)])
    return found[0] if len(found) == 1 else found


def _at_least(op: str, x: Tensor, ndim: int) -> Tensor:
    """With new axes in front; of three, a vector is the second and a matrix the first two."""
    lacking = ndim - x.ndim
    if lacking <= 0:
        return x
    behind = 1 if ndim == 3 and x.ndim else 0
    return view(x, ("reshape", (1,) * (lacking - behind) + x.shape + (1,) * behind), op)


# --- side by side ---------------------------------------------------------------------------------


@into(widen=False)
def hstack(arrays: Sequence[Array], /, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after the other along the second axis; vectors along their only one.

    `arrays`: a list or tuple of them.
    Shapes: alike but along that axis; () counts as (1,).
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.hstack([dt.asarray([[1], [2]], device="reference"), [[3], [4]]]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = _parts("hstack", arrays, 1)
    return concat(parts, axis=0 if parts[0].ndim == 1 else 1)


@into(widen=False)
def vstack(arrays: Sequence[Array], /, *, out: Tensor | None = None) -> Tensor:
    """The tensors one below the other, along the first axis; vectors are rows.

    `arrays`: a list or tuple of them.
    Shapes: alike but along that axis.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.vstack([dt.asarray([1, 2], device="reference"), [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat(_parts("vstack", arrays, 2), axis=0)


@into(widen=False)
def dstack(arrays: Sequence[Array], /, *, out: Tensor | None = None) -> Tensor:
    """The tensors one behind the other, along the third axis; see `atleast_3d`.

    `arrays`: a list or tuple of them.
    Shapes: alike but along that axis.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.dstack([dt.asarray([1, 2], device="reference"), [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat(_parts("dstack", arrays, 3), axis=2)


@into(widen=False)
def column_stack(arrays: Sequence[Array], /, *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side as columns of a matrix; vectors are one column each.

    `arrays`: a list or tuple of them.
    Shapes: (n,) or (n, k) each, with one n.
    Dtypes: all; the result has the promoted one.
    Raises: ShapeError, DeviceError, DTypeError, ArgumentError for no tensors.

    >>> import dovetail as dt
    >>> dt.column_stack([dt.asarray([1, 2], device="reference"), [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = _parts("column_stack", arrays, 1)
    return concat([expand_dims(a, 1) if a.ndim == 1 else a for a in parts], axis=1)


def _parts(op: str, arrays: object, ndim: int) -> list[Tensor]:
    """The tensors of a list, with at least so many axes."""
    listed = sequence(op, arrays, "arrays", "tensors")
    if not listed:
        raise ArgumentError(f"{op}: needs at least one tensor")
    return [_at_least(op, x, ndim) for x in brought(op, *listed)]


# --- apart ----------------------------------------------------------------------------------------


@named(widen=False)
def array_split(x: Tensor, indices_or_sections: Cuts, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts of `x` along `axis`, as equal as can be, as a tuple.

    `indices_or_sections`: how many parts, of which the first are longer by one where they cannot
    be equal; or a list of the places where it is cut. See `split`, which takes sizes.
    Shapes: of at least 1 dimension.
    Dtypes: all.
    Raises: ArgumentError for fewer than one part, AxisError.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.array_split(dt.arange(5, device="reference"), 2)]
    [[0, 1, 2], [3, 4]]
    """
    d = lay.axis("array_split", axis, required("array_split", x).ndim)
    return cut("array_split", x, indices_or_sections, d, equal=False)


@named(widen=False)
def hsplit(x: Tensor, indices_or_sections: Cuts, /) -> tuple[Tensor, ...]:
    """Views of equal parts of `x` along its second axis; of a vector along its only one.

    `indices_or_sections`: how many parts, or a list of the places where it is cut.
    Shapes: of at least 1 dimension.
    Dtypes: all.
    Raises: ShapeError where the parts cannot be equal or there are no dimensions, ArgumentError
    for fewer than one part.

    >>> import dovetail as dt
    >>> [part.tolist() for part in dt.hsplit(dt.arange(4, device="reference"), 2)]
    [[0, 1], [2, 3]]
    """
    ndim = _require("hsplit", x, 1)
    return cut("hsplit", x, indices_or_sections, min(ndim - 1, 1))


@named(widen=False)
def vsplit(x: Tensor, indices_or_sections: Cuts, /) -> tuple[Tensor, ...]:
    """Views of equal parts of `x` along its first axis, as a tuple.

    `indices_or_sections`: how many parts, or a list of the places where it is cut.
    Shapes: of at least 2 dimensions.
    Dtypes: all.
    Raises: ShapeError where the parts cannot be equal or below 2 dimensions, ArgumentError for
    fewer than one part.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> [part.tolist() for part in dt.vsplit(x, 2)]
    [[[1, 2]], [[3, 4]]]
    """
    _require("vsplit", x, 2)
    return cut("vsplit", x, indices_or_sections, 0)


@named(widen=False)
def dsplit(x: Tensor, indices_or_sections: Cuts, /) -> tuple[Tensor, ...]:
    """Views of equal parts of `x` along its third axis, as a tuple.

    `indices_or_sections`: how many parts, or a list of the places where it is cut.
    Shapes: of at least 3 dimensions.
    Dtypes: all.
    Raises: ShapeError where the parts cannot be equal or below 3 dimensions, ArgumentError for
    fewer than one part.

    >>> import dovetail as dt
    >>> [part.shape for part in dt.dsplit(dt.ones((1, 2, 4), device="reference"), [1])]
    [(1, 2, 1), (1, 2, 3)]
    """
    _require("dsplit", x, 3)
    return cut("dsplit", x, indices_or_sections, 2)


def _require(op: str, x: Tensor, ndim: int) -> int:
    if required(op, x).ndim < ndim:
        raise ShapeError(f"{op}: needs at least {ndim} dimensions, not shape {x.shape}")
    return x.ndim


def cut(op: str, x: Tensor, cuts: Cuts, d: int, equal: bool = True) -> tuple[Tensor, ...]:
    """Return views of the parts between places, or of a number of parts.

    equal: they must have one size.
    """
    n = x.shape[d]
    if isinstance(cuts, np.ndarray) and cuts.ndim:
        cuts = cuts.tolist()
    if isinstance(cuts, (list, tuple, range)):
        places = [min(max(c + n if c < 0 else c, 0), n) for c in integers(op, cuts, "indices")]
        ends = [0, *places, n]
    else:
        parts = integer(op, cuts, "indices_or_sections", 1, MOST)
        if equal and n % parts:
            raise ShapeError(
                f"{op}: axis {d} of shape {x.shape} does not divide into {parts} equal parts; "
                "see dt.array_split"
            )
        size, longer = divmod(n, parts)
        ends = [i * size + min(i, longer) for i in range(parts + 1)]
    return tuple([slice_along(x, d, a, max(b - a, 0), op) for a, b in pairwise(ends)])
