"""Functions of NumPy whose arguments or results differ from those of dovetail's tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as host

from ..dtypes import BY_NAME, DType, float64
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.datatypes import cast
from ..functions.elementwise.op_functions import where as select
from ..functions.numpy.protocol import FUNCTIONS
from ..functions.shape import copies, manipulation
from ..tensor.tensor import Tensor
from .calls import (
    as_result,
    call_on_host,
    find_function,
    find_tensor,
    is_tracing,
    to_host,
    widen,
    write_out,
)
from .creation import asarray

__all__ = [
    "array_split",
    "clip",
    "count_nonzero",
    "dsplit",
    "ediff1d",
    "histogram2d",
    "hsplit",
    "interp",
    "meshgrid",
    "split",
    "vsplit",
    "where",
]


def common_dtype(*operands: Any) -> DType | None:
    """Return the dtype of operands by NumPy's promotion, in which Python numbers are weak."""
    kinds = [
        x.dtype.__numpy_dtype__
        if isinstance(x, Tensor)
        else host.asarray(x)
        if isinstance(x, (list, tuple))
        else x
        for x in operands
    ]
    return None if any(k is None for k in kinds) else BY_NAME.get(host.result_type(*kinds).name)


def _in_dtype(x: Any, d: DType) -> Tensor:
    """Return an operand as a tensor of a dtype."""
    if isinstance(x, (list, tuple)):
        x = asarray(x)
    return cast(x, d) if isinstance(x, Tensor) else tensor_from(host.asarray(x, d.__numpy_dtype__))


def where(condition: Any, *choices: Any) -> Any:
    """Return elements of x or y; without them the indices of true elements."""
    if find_tensor([condition, *choices]) is None:
        return call_on_host(host.where, (condition, *choices), {})
    test = asarray(condition)
    if not choices:
        return as_result(FUNCTIONS[host.where](test))
    d = common_dtype(*choices)
    values = choices if d is None else [_in_dtype(x, d) for x in choices]
    return as_result(select(test if test.dtype.kind == "b" else test != 0, *values))


def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **options: Any,
) -> Any:
    """Limit elements to an interval."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    if find_tensor([a, low, high]) is None:
        return call_on_host(
            host.clip, (a, low, high), {"out": out, **options} if out is not None else options
        )
    x = asarray(a)
    bounds = [b for b in (low, high) if b is not None]
    d = common_dtype(x, *bounds)
    x = x if d is None else cast(x, d)
    limits = [
        b if b is None or type(b) in (int, float) or d is None else _in_dtype(b, d)
        for b in (low, high)
    ]
    result = FUNCTIONS[host.clip](x, *limits)
    return (
        as_result(result)
        if out is None
        else write_out(out, result, options.get("casting", "same_kind"))
    )


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return grids of coordinates, each of its vector's dtype."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    n, vectors = len(xi), [asarray(x).reshape(-1) for x in xi]
    axes = [*range(n)]
    if indexing == "xy" and n > 1:
        axes[:2] = 1, 0
    open_grids = [
        v.reshape((1,) * axis + (-1,) + (1,) * (n - 1 - axis))
        for v, axis in zip(vectors, axes, strict=True)
    ]
    if sparse:
        return tuple([g.copy() for g in open_grids] if copy else open_grids)
    shape = manipulation.broadcast_shapes(*(g.shape for g in open_grids))
    full = [manipulation.broadcast_to(g, shape) for g in open_grids]
    return tuple([as_result(copies.copy(g) if copy else g) for g in full])


_interp = find_function(host.interp)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Return the piecewise linear interpolant of points, at x."""
    if find_tensor([x, xp, fp]) is None:
        return call_on_host(host.interp, (x, xp, fp, left, right, period), {})
    points = [widen(asarray(v)) for v in (x, xp, fp)]
    return _interp(*points, left=left, right=right, period=period)


def _split_to_list(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that splits an array, with a list of parts."""
    call = find_function(theirs)

    @wraps(theirs, updated=())
    def split_to_list(ary: Any, indices_or_sections: Any, *args: Any, **options: Any) -> list[Any]:
        points = to_host(indices_or_sections)
        if isinstance(points, host.ndarray):
            points = points.tolist()
        return list(call(ary, points, *args, **options))

    return split_to_list


array_split, dsplit, hsplit, split, vsplit = (
    _split_to_list(getattr(host, name))
    for name in ["array_split", "dsplit", "hsplit", "split", "vsplit"]
)
_count_nonzero = find_function(host.count_nonzero)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return the number of elements other than 0: a number, or an array for some axes."""
    result = _count_nonzero(a, axis, keepdims=keepdims)
    is_number = isinstance(result, Tensor) and axis is None and not keepdims and not is_tracing()
    return host.int64(result.item()) if is_number else result


_ediff1d = find_function(host.ediff1d)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return differences of neighbours, with values before and behind them."""
    ends = [v if v is None else asarray(v).reshape(-1) for v in (to_end, to_begin)]
    return _ediff1d(asarray(ary), *ends)


_histogram2d = find_function(host.histogram2d)


def histogram2d(x: Any, y: Any, *args: Any, **options: Any) -> Any:
    """Return counts of points in rectangles as floats, and the edges."""
    counts, *edges = _histogram2d(x, y, *args, **options)
    return (counts.astype(float64) if isinstance(counts, Tensor) else counts, *edges)
