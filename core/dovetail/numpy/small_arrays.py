"""Functions of few elements that the host computes at once, with the bits of the kernels.

To plan and launch the kernels of `unique` or `median` for some numbers takes ten times as long as
NumPy does. Functions of integers, orders and LAPACK's have one result, so NumPy computes them; the
others follow the formulas of `dt`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as host

from ..device_class import default_device
from ..dtypes import float64, int64
from ..tensor.c_fields import expr_of
from ..tensor.host import evaluate_leaf, reachable_address, read_values
from ..tensor.host_index import concat, create_filled, diagonal_view
from ..tensor.host_reductions import OPS, reduce
from ..tensor.immediate import is_observed
from .array_class import ndarray, upload
from .calls import find_function, to_host
from .ufuncs import AT_ONCE

__all__ = ["FUNCTIONS", "LINALG"]
FUNCTIONS = ("append", "bincount", "diag", "median", "outer", "unique")  # names of the namespace

ELEMENTS_MAX = 1024
FACTORED_MAX = 1 << 14  # elements of a matrix: `dt` calls LAPACK, too
_multiply = AT_ONCE["multiply"]
_UNIQUE_OPTIONS = {"return_index", "return_inverse", "return_counts"}


def is_small(x: Any, elements_max: int) -> bool:
    """Return True for an ndarray of few elements that the host may read now."""
    if type(x) is not ndarray:
        return False
    e = expr_of(x)
    if not 0 < e.spec.size <= elements_max or e.tape is not None or is_observed():
        return False
    return e.spec.device is default_device() and reachable_address(evaluate_leaf(x)) != 0


def at_once(
    theirs: Callable[..., Any], elements_max: int = ELEMENTS_MAX
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of functions of small arrays, which return None for the general path."""
    general = find_function(theirs)

    def decorate(small: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function for arrays of any size."""

        @wraps(theirs, updated=())
        def call(*args: Any, **options: Any) -> Any:
            if args and is_small(args[0], elements_max):
                try:
                    result = small(*args, **options)
                except (TypeError, host.linalg.LinAlgError):  # an option that `small` lacks
                    result = None
                if result is not None:
                    return result
            return general(*args, **options)

        return call

    return decorate


@at_once(host.bincount)
def bincount(x: ndarray, /, weights: Any = None, minlength: int = 0) -> Any:
    is_weighted = is_small(weights, ELEMENTS_MAX) and weights.dtype is float64
    if not (weights is None or is_weighted) or x.dtype.kind not in "iu" or x.ndim != 1:
        return None
    values = read_values("bincount", x)
    if values.min() < 0 or type(minlength) is not int:
        return None
    return upload(
        host.bincount(values, weights if weights is None else to_host(weights), minlength)
    )


@at_once(host.unique)
def unique(ar: ndarray, **options: bool) -> Any:
    if ar.dtype.kind not in "biu" or not {*options} <= _UNIQUE_OPTIONS:
        return None
    find: Callable[..., Any] = host.unique
    results = find(read_values("unique", ar), **options)
    return tuple(map(upload, results)) if type(results) is tuple else upload(results)


@at_once(host.outer)
def outer(a: ndarray, b: Any) -> Any:
    is_pair = type(b) is ndarray and a.ndim == b.ndim == 1
    return _multiply(a[:, None], b) if is_pair else None


@at_once(host.append)
def append(arr: ndarray, values: Any) -> Any:
    kinds = {float: float64, int: int64}
    if kinds.get(type(values)) is arr.dtype:
        values = create_filled(ndarray, 1, arr.dtype, arr.device, values)
    if type(values) is not ndarray or arr.ndim != 1 or values.ndim != 1:
        return None
    return concat([arr, values], 0)


@at_once(host.delete)
def delete(arr: ndarray, obj: Any) -> Any:
    if arr.ndim != 1 or type(obj) is not int or not -arr.size <= obj < arr.size:
        return None
    k = obj % arr.size
    return concat([arr[:k], arr[k + 1 :]], 0)


@at_once(host.diag)
def diag(v: ndarray, k: int = 0) -> Any:
    if type(k) is not int or v.ndim != 1:
        return diagonal_view(v, k) if type(k) is int and v.ndim == 2 else None
    n = v.size + abs(k)
    result = create_filled(ndarray, (n, n), v.dtype, v.device, 0)
    if result is not None:
        diagonal = diagonal_view(result, k)
        diagonal[...] = v  # type: ignore[index]  # it has elements
    return result


# --- order statistics -----------------------------------------------------------------------------


def _quantile_of_elements(a: ndarray, q: float) -> Any:
    """Return a quantile of float64 elements, or None if one is not finite or q is out of range."""
    if a.dtype is not float64 or not 0 <= q <= 1:
        return None
    values = host.sort(read_values("quantile", a), axis=None, kind="stable")
    rank = (a.size - 1) * q
    low = math.floor(rank)
    weight, x, y = rank - low, float(values[low]), float(values[min(low + 1, a.size - 1)])
    step = y - x
    if not (math.isfinite(values[0]) and math.isfinite(values[-1]) and math.isfinite(step)):
        return None
    if weight:
        x = x + step * weight if weight < 0.5 else y - step * (1.0 - weight)
    return host.float64(x)


@at_once(host.median)
def median(a: ndarray) -> Any:
    return _quantile_of_elements(a, 0.5)


@at_once(host.quantile)
def quantile(a: ndarray, q: Any) -> Any:
    return _quantile_of_elements(a, q) if type(q) in (float, int) else None


@at_once(host.percentile)
def percentile(a: ndarray, q: Any) -> Any:
    return _quantile_of_elements(a, q / 100.0) if type(q) in (float, int) else None


# --- linear algebra -------------------------------------------------------------------------------


@at_once(host.linalg.norm)
def norm(x: ndarray) -> Any:
    if x.dtype is not float64 or x.ndim > 2:
        return None
    squares = _multiply(x, x)
    total = None if squares is None else reduce(OPS["sum"], (squares,), {})
    return None if total is None else host.sqrt(total)


def _by_lapack(name: str) -> Callable[..., Any]:
    """Return a function of one small matrix that `dt` computes by NumPy's LAPACK, too."""
    theirs = getattr(host.linalg, name)

    @at_once(theirs, FACTORED_MAX)
    def factor(a: ndarray) -> Any:
        if a.dtype is not float64 or a.ndim != 2:
            return None
        values = read_values(name, a)
        if not host.isfinite(values).all():
            return None
        results = theirs(values)
        return (
            type(results)(*map(upload, results)) if isinstance(results, tuple) else upload(results)
        )

    return factor


LINALG = {"norm": norm, **{name: _by_lapack(name) for name in ("eigh", "qr", "svd")}}
