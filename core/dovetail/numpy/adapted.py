"""Functions of NumPy whose arguments or results differ from those of dovetail's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any

import numpy as host

from ..device_class import default_device
from ..dtypes import BY_NAME, DType, bool_, float64, int64
from ..engine import tracer_api
from ..functions.creation import constructors
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.datatypes import cast
from ..functions.elementwise.op_functions import clip as limit
from ..functions.elementwise.op_functions import remainder
from ..functions.elementwise.op_functions import where as choose
from ..functions.indexing.index_reads import take
from ..functions.numpy.protocol import FUNCTIONS
from ..functions.shape import copies
from ..tensor.c_fields import expr_of
from ..tensor.host import read_values
from ..tensor.host_arithmetic import multiply_matrices
from ..tensor.host_arithmetic import select as select_on_host
from ..tensor.host_index import MASK_MAX, find_true
from ..tensor.host_index import concat as concat_on_host
from ..tensor.tensor import Tensor
from . import small_arrays
from .array_class import ndarray, upload
from .calls import (
    PYTHON_DTYPES,
    as_result,
    as_stored,
    call_on_host,
    find_function,
    find_tensor,
    is_tracing,
    read_result,
    to_host,
    widen,
    write_out,
)
from .creation import asarray
from .ufuncs import AT_ONCE, UFUNCS

__all__ = [
    "allclose",
    "angle",
    "append",
    "argwhere",
    "array_split",
    "bincount",
    "broadcast_to",
    "clip",
    "concat",
    "concatenate",
    "convolve",
    "copyto",
    "count_nonzero",
    "delete",
    "diff",
    "dot",
    "dsplit",
    "ediff1d",
    "flatnonzero",
    "gradient",
    "histogram2d",
    "hsplit",
    "inner",
    "insert",
    "interp",
    "intersect1d",
    "isclose",
    "meshgrid",
    "nanpercentile",
    "nanquantile",
    "nonzero",
    "percentile",
    "quantile",
    "ravel",
    "roll",
    "select",
    "setdiff1d",
    "setxor1d",
    "split",
    "union1d",
    "vsplit",
    "where",
]


_maximum, _minimum = AT_ONCE["maximum"], AT_ONCE["minimum"]
_WEAK = (int, float, bool, complex)


@lru_cache(1024)
def _common_dtype_of(kinds: tuple[Any, ...]) -> DType | None:
    """Return the dtype to which dtypes and types of Python numbers promote in NumPy."""
    theirs = [k.__numpy_dtype__ if type(k) is DType else k() for k in kinds]
    return None if any(k is None for k in theirs) else BY_NAME.get(host.result_type(*theirs).name)


def common_dtype(*operands: Any) -> DType | None:
    """Return the dtype of operands by NumPy's promotion, in which Python numbers are weak."""
    kinds_of_operands = tuple([x.dtype if isinstance(x, Tensor) else x.__class__ for x in operands])
    if all(type(k) is DType or k in _WEAK for k in kinds_of_operands):
        return _common_dtype_of(kinds_of_operands)
    kinds: list[Any] = [
        x.dtype.__numpy_dtype__
        if isinstance(x, Tensor)
        else host.asarray(x).dtype
        if isinstance(x, (list, tuple))
        else type(x)
        if type(x) in NUMBERS
        else x.dtype
        for x in operands
    ]
    return _promote(*kinds)


NUMBERS = (bool, int, float, complex)


@lru_cache(256)
def _promote(*kinds: Any) -> DType | None:
    """Return the promoted dtype of NumPy's dtypes and types of Python numbers, or None."""
    if any(k is None for k in kinds):  # `None in kinds` is true for float64
        return None
    return BY_NAME.get(host.result_type(*[k() if isinstance(k, type) else k for k in kinds]).name)


def _in_dtype(x: Any, d: DType) -> Tensor:
    """Return an operand as a tensor of a dtype."""
    if isinstance(x, (list, tuple)):
        x = asarray(x)
    return cast(x, d) if isinstance(x, Tensor) else tensor_from(host.asarray(x, d.__numpy_dtype__))


def _have_one_dtype(x: Any, y: Any) -> bool:
    """Return True if `x` is an ndarray, and `y` one of its dtype or a number that is in it."""
    if type(x) is not ndarray:
        return False
    dtype = x.dtype
    if type(y) is ndarray:
        return y.dtype is dtype
    return (dtype.kind == "f" and (y.__class__ is float or type(y) is int)) or (
        dtype is int64 and type(y) is int
    )


def where(condition: Any, *choices: Any) -> Any:
    """Return elements of x or y; without them the indices of true elements."""
    if len(choices) == 2 and type(condition) is ndarray and condition.dtype is bool_:
        x, y = choices
        chosen = select_on_host(condition, x, y)
        if chosen is not None:
            return chosen
        if _have_one_dtype(x, y) or _have_one_dtype(y, x):
            return as_result(choose(condition, x, y))
    if not choices and type(condition) is ndarray:
        return nonzero(condition)
    if find_tensor([condition, *choices]) is None:
        return call_on_host(host.where, (condition, *choices), {})
    test = condition if type(condition) is ndarray else asarray(condition)
    if not choices:
        return as_result(FUNCTIONS[host.where](test))
    d = common_dtype(*choices)
    values: Sequence[Any] = choices if d is None else [_in_dtype(x, d) for x in choices]
    return as_result(choose(test if test.dtype.kind == "b" else test != 0, *values))


def _on_host(name: str) -> Callable[..., Any]:
    """Build a function of positions, which the host reads: NumPy's for small arrays."""
    theirs = getattr(host, name)
    general = find_function(theirs)

    @wraps(theirs, updated=())
    def find(a: Any) -> Any:
        if type(a) is ndarray and name != "argwhere":
            indices = find_true(a, name == "flatnonzero")
            if indices is not None:
                return indices
        is_near = type(a) is ndarray and a.device is default_device()
        if is_near and a.size <= MASK_MAX and a.ndim and not is_tracing():
            positions = theirs(read_values(name, a))
            return tuple(map(upload, positions)) if type(positions) is tuple else upload(positions)
        return general(a)

    return find


flatnonzero, nonzero, argwhere = map(_on_host, ("flatnonzero", "nonzero", "argwhere"))
ndarray.nonzero = nonzero  # type: ignore[method-assign]  # of NumPy's results


_concatenate, _dot = find_function(host.concatenate), find_function(host.dot)
_inner = find_function(host.inner)


_ALL_NUMBERS = (bool, int, float, complex, host.generic)


def _strong(x: Any) -> Any:
    """Return a number as an array of its own dtype, other values as they are."""
    return asarray(x) if isinstance(x, _ALL_NUMBERS) else x


def _take_strong_numbers(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two operands, of which a number counts as an array."""
    if type(a) is not ndarray or (type(b) is not ndarray and not _holds(a, b)):
        return _strong(a), _strong(b)
    return a, b


def _holds(x: Any, number: Any) -> bool:
    """Return True for an array of the dtype that an array of the number has."""
    return type(x) is ndarray and x.dtype is PYTHON_DTYPES.get(type(number))


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Return the elements of two arrays, one after the other, or both joined along an axis."""
    arr, values = _take_strong_numbers(arr, values)
    if axis is None:
        return small_arrays.append(arr, values)
    return small_arrays.append(arr, values, axis)


def inner(a: Any, b: Any, /) -> Any:
    """Return the sum of the products of the last axes."""
    return _inner(*_take_strong_numbers(a, b))


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return the product of matrices, or the sum of the products of two vectors."""
    if out is None and type(a) is ndarray and type(b) is ndarray:
        product = multiply_matrices(a, b)
        if product is not None:
            return product
        if a.ndim == b.ndim == 1 and a.dtype is b.dtype and a.shape == b.shape:
            return a @ b
    a, b = _strong(a), _strong(b)
    return _dot(a, b) if out is None else _dot(a, b, out)


ndarray.dot = dot  # type: ignore[method-assign]  # with NumPy's parameters


def concatenate(arrays: Any, axis: Any = 0, out: Any = None, **options: Any) -> Any:
    """Return arrays joined along an axis."""
    if type(axis) is int and out is None and not options and type(arrays) in (list, tuple):
        joined = concat_on_host(arrays, axis)
        if joined is not None:
            return as_result(joined)
    return _concatenate(arrays, axis, out=out, **options)


concat = concatenate


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
    """Limit elements to an interval. Raises: ValueError for both names of bounds."""
    if (a_min is not None or a_max is not None) and (min is not None or max is not None):
        raise ValueError("clip: pass a_min and a_max, or min and max, but not both")
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    has_limits = low is not None and high is not None
    if has_limits and not options and type(a) is ndarray and a.ndim:
        raised = _maximum(a, low)
        limited = None if raised is None else _minimum(raised, high)
        if limited is not None and limited.dtype is a.dtype:
            return limited if out is None else write_out(out, limited, broadcasts=True)
        if _have_one_dtype(a, low) and _have_one_dtype(a, high) and a.dtype.kind != "c":
            if out is None:
                return limit(a, low, high)
            if _has_same_spec(out, a) and not {ndarray, Tensor} & {type(low), type(high)}:
                return limit(a, low, high, out=out)
    has_complex = any(map(_is_complex, (a, low, high)))
    has_one_dtype = all(b is None or _have_one_dtype(a, b) for b in (low, high))
    if out is None and not options and has_one_dtype and not has_complex and type(a) is ndarray:
        return read_result(as_result(limit(a, low, high)))
    if find_tensor([a, low, high]) is None or has_complex:
        return call_on_host(
            host.clip, (a, low, high), {"out": out, **options} if out is not None else options
        )
    x = asarray(a)
    if low is None and high is None:
        return (
            read_result(x.copy())
            if out is None
            else write_out(out, x, options.get("casting", "same_kind"), broadcasts=True)
        )
    bounds = [b for b in (low, high) if b is not None]
    d = common_dtype(x, *bounds)
    x = x if d is None else cast(x, d)
    limits = [
        b if b is None or type(b) in (int, float) or d is None else _in_dtype(b, d)
        for b in (low, high)
    ]
    result = limit(x, *limits)
    return (
        read_result(as_result(result))
        if out is None
        else write_out(out, result, options.get("casting", "same_kind"), broadcasts=True)
    )


def _has_same_spec(x: Any, y: Any) -> bool:
    """Return True for arrays of one shape, dtype and device, without a gradient."""
    return (
        type(x) is ndarray
        and expr_of(x).spec is expr_of(y).spec
        and not (x.requires_grad or y.requires_grad)
    )


def _is_complex(x: Any) -> bool:
    """Return True for a complex number, and for an array or a list that has one."""
    if type(x) in (list, tuple):
        return any(map(_is_complex, x))
    return isinstance(x, complex) or getattr(getattr(x, "dtype", None), "kind", "") == "c"


ndarray.clip = clip  # type: ignore[method-assign,assignment]  # with NumPy's parameters


def angle(z: Any, deg: bool = False) -> Any:
    """Return the angles of complex numbers, in radians, or in degrees if `deg`."""
    if find_tensor([z]) is None:
        return call_on_host(host.angle, (z, deg), {})
    x = asarray(z)
    result = UFUNCS["arctan2"](x.imag if x.dtype.kind == "c" else 0, x.real)
    return result * (180 / host.pi) if deg else result


_isclose, _allclose = find_function(host.isclose), find_function(host.allclose)


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Return True where elements are equal within tolerances, which may be arrays."""
    if find_tensor([a, b, rtol, atol]) is None:
        return call_on_host(host.isclose, (a, b, rtol, atol, equal_nan), {})
    x, y = (asarray(v) if isinstance(v, host.generic) else v for v in (a, b))
    if all(type(t) in (int, float) for t in (rtol, atol)):
        return read_result(_isclose(x, y, rtol, atol, equal_nan))
    x, y, rtol, atol = (asarray(v) for v in (x, y, rtol, atol))
    limit_of_difference = atol + rtol * UFUNCS["absolute"](y)
    is_near = (UFUNCS["absolute"](x - y) <= limit_of_difference) & UFUNCS["isfinite"](y)
    is_equal = is_near | (x == y)
    return is_equal | ((x != x) & (y != y)) if equal_nan else is_equal


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Return True if all elements are equal within tolerances."""
    if all(type(t) in (int, float) for t in (rtol, atol)):
        return _allclose(a, b, rtol, atol, equal_nan)
    return isclose(a, b, rtol, atol, equal_nan).all()


def ravel(a: Any, order: str = "C") -> Any:
    """Return the elements with one dimension: a view of contiguous memory, else a copy."""
    return (
        call_on_host(host.ravel, (a, order), {})
        if find_tensor([a]) is None
        else asarray(a).ravel(order)
    )


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return grids of coordinates, each of its vector's dtype."""
    vectors = [asarray(x).reshape(-1) for x in xi]
    grids = constructors.meshgrid(*vectors, indexing=indexing, sparse=sparse)
    return tuple([as_result(copies.copy(g) if copy else g) for g in grids])


_broadcast_to = find_function(host.broadcast_to)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Return an array in another shape: a view of an ndarray, of other values a read-only array."""
    result = _broadcast_to(array, shape)
    if find_tensor([array]) is None and isinstance(result, Tensor):
        expr_of(result).storage.read_only = True
    return result


_interp = find_function(host.interp)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Return the piecewise linear interpolant of points, at x."""
    if find_tensor([x, xp, fp]) is None:
        return call_on_host(host.interp, (x, xp, fp, left, right, period), {})
    points = [widen(asarray(v), "biufc") for v in (x, xp, fp)]
    values = points[2]
    if values.dtype.kind != "c" or values.requires_grad:
        return read_result(_interp(*points, left=left, right=right, period=period))
    ends = [(None, None) if v is None else (v.real, v.imag) for v in (left, right)]
    real, imag = (
        _interp(*points[:2], part, left=ends[0][k], right=ends[1][k], period=period)
        for k, part in enumerate((values.real, values.imag))
    )
    result = asarray(real).astype(values.dtype)
    result.imag = imag  # a product with 1j would make NaN of infinity
    return read_result(result)


# Methods whose results are elements, so that those of integers are integers.
_OBSERVED = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _keep_integers(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of quantiles that have the dtype of the elements if they are elements."""

    @wraps(call, updated=())
    def find_quantiles(a: Any, *args: Any, **options: Any) -> Any:
        method = options.get("method", args[4] if len(args) > 4 else "linear")
        result = call(a, *args, **options)
        if method not in _OBSERVED or not isinstance(a, Tensor) or a.dtype.kind not in "iu":
            return result
        if options.get("out") is not None:
            return result
        if isinstance(result, Tensor):
            return as_result(cast(result, a.dtype))
        return result.astype(a.dtype.name)

    return find_quantiles


percentile, quantile, nanpercentile, nanquantile = map(
    _keep_integers,
    (
        small_arrays.percentile,
        small_arrays.quantile,
        find_function(host.nanpercentile),
        find_function(host.nanquantile),
    ),
)
_gradient, _diff, _select, _roll = (
    find_function(f) for f in (host.gradient, host.diff, host.select, host.roll)
)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return differences of neighbours, n times; prepended and appended numbers are arrays."""
    if (prepend is None and append is None) or n == 0:
        return _diff(a, n, axis)
    ends = {k: asarray(v) for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    d = common_dtype(a := asarray(a), *ends.values())
    ends = {k: v if d is None else cast(v, d) for k, v in ends.items()}
    return _diff(a if d is None else as_result(cast(a, d)), n, axis, **ends)


def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Return the number of times each integer occurs, or the sums of its weights in float64."""
    if isinstance(weights, Tensor) and weights.dtype is not float64:
        weights = as_result(cast(weights, float64))
    return small_arrays.bincount(x, weights, minlength)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Return elements of the first choice whose condition is True, else `default`."""
    d = common_dtype(*choicelist, default)
    if d is not None and type(default) in NUMBERS:
        default = d.__numpy_dtype__.type(default).item()  # type: ignore[union-attr]  # NumPy's dtype
        choicelist = [as_result(_in_dtype(c, d)) for c in choicelist]
    return _select(condlist, choicelist, default)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Return elements shifted cyclically along axes; several shifts along one axis add up."""
    if type(shift) in (list, tuple) and (axis is None or type(axis) is int):
        shift = sum(shift)
    if isinstance(a, Tensor) and type(axis) is int and _is_unread(shift):
        count = a.shape[axis]
        positions = constructors.arange(count, device=a.device) - shift
        return as_result(take(a, remainder(positions, max(count, 1)), axis))
    return _roll(a, shift, axis)


def _is_unread(x: Any) -> bool:
    """Return True for an integer without dimensions that a captured function may not read."""
    tracer = tracer_api.current()
    is_number = isinstance(x, Tensor) and not x.ndim and x.dtype.kind == "i"
    return is_number and tracer is not None and not tracer.has_constant_value(x)


def gradient(f: Any, *varargs: Any, **options: Any) -> Any:
    """Return differences of neighbours, divided by spacings; one may be an array of one number."""
    spacings = [v.item() if isinstance(v, ndarray) and v.ndim == 0 else v for v in varargs]
    return _gradient(f, *spacings, **options)


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


_copyto = find_function(host.copyto)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write values to an array, where `where` is True."""
    if casting == "unsafe" and isinstance(dst, Tensor):
        src, casting = as_stored(dst.dtype, src), "same_kind"
    _copyto(dst, src, casting=casting, where=where)


_insert = find_function(host.insert)


def _as_positions(obj: Any) -> Any:
    """Return the positions at which a mask of bools is True; other indices as they are."""
    mask = to_host(obj) if isinstance(obj, Tensor) and obj.dtype is bool_ else obj
    mask = host.asarray(mask) if type(mask) is list and find_tensor(mask) is None else mask
    is_mask = isinstance(mask, host.ndarray) and mask.dtype == bool
    return host.flatnonzero(mask) if is_mask else obj


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """Return an array without the elements or slices at indices, or where a mask is True."""
    if axis is None:
        return small_arrays.delete(arr, _as_positions(obj))
    return small_arrays.delete(arr, _as_positions(obj), axis)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Return an array with values in front of indices, or of where a mask is True."""
    return _insert(arr, _as_positions(obj), values, axis)


def _as_vector(x: Any) -> Any:
    """Return a number, or an array without dimensions, as a vector, other values as they are."""
    if isinstance(x, (int, float)):
        return host.atleast_1d(x)
    return x.reshape(1) if isinstance(x, Tensor) and x.ndim == 0 else x


def _take_numbers(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of two vectors of which one may be a number."""
    call = find_function(theirs)

    @wraps(theirs, updated=())
    def call_with_arrays(ar1: Any, ar2: Any, *args: Any, **options: Any) -> Any:
        return call(_as_vector(ar1), _as_vector(ar2), *args, **options)

    return call_with_arrays


convolve, intersect1d, setdiff1d, setxor1d, union1d = (
    _take_numbers(getattr(host, name))
    for name in ["convolve", "intersect1d", "setdiff1d", "setxor1d", "union1d"]
)
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
