"""NumPy's functions that make arrays, with NumPy's parameters and default dtypes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as host

from ..device_class import default_device
from ..dtypes import bool_, int64
from ..errors import ArgumentError
from ..functions.creation import constructors
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.numpy.like_creation import with_dims
from ..tensor.c_fields import expr_of, is_strided, set_class
from ..tensor.host_index import (
    create_filled,
    create_from_numbers,
    create_range,
    stack_rows,
)
from ..tensor.operators import pending_numbers
from ..tensor.tensor import Tensor
from .array_class import as_dtype, ndarray, upload
from .calls import (
    as_ndarray,
    as_result,
    find_function,
    find_tensor,
    from_host,
    join,
    to_host,
)

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "identity",
    "ones",
    "ones_like",
    "require",
    "tri",
    "zeros",
    "zeros_like",
]


def _build(name: str) -> Callable[..., Any]:
    """Build `zeros`, `ones` or `empty`."""
    ours, theirs = getattr(constructors, name), getattr(host, name)
    value = int(name == "ones")  # `empty` gets zeros if it is small

    def create(
        shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Any:
        d = as_dtype(dtype)
        if d is None:
            return theirs(shape, dtype)
        target = like.device if device is None and isinstance(like, Tensor) else device
        if target is None:
            number = True if value and d is bool_ else value
            filled = create_filled(ndarray, shape, d, default_device(), number)
            if filled is not None:
                return filled
        return set_class(ours(_as_shape(shape), dtype=d, device=target), ndarray)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = theirs.__doc__
    return create


def _as_shape(shape: Any) -> int | tuple[int, ...]:
    """Return a shape of Python ints."""
    if type(shape) is int or (type(shape) is tuple and all(type(n) is int for n in shape)):
        return shape
    return (
        tuple([n.__index__() for n in shape])
        if hasattr(shape, "__iter__")
        and not (isinstance(shape, (Tensor, host.ndarray)) and not shape.ndim)
        else operator.index(shape)
    )


zeros, ones, empty = map(_build, ("zeros", "ones", "empty"))


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Return an array full of a value, by default of the value's dtype."""
    if dtype is None:
        dtype = (
            fill_value.dtype if isinstance(fill_value, Tensor) else host.asarray(fill_value).dtype
        )
    d = as_dtype(dtype)
    if d is None:
        return host.full(shape, to_host(fill_value), dtype)
    if isinstance(fill_value, (int, float, complex)):
        value = d.__numpy_dtype__.type(fill_value).item() if d.__numpy_dtype__ else fill_value
        sizes = _as_shape(shape)
        if device is None:
            filled = create_filled(ndarray, sizes, d, default_device(), value)
            if filled is not None:
                return filled
        return set_class(constructors.full(sizes, value, dtype=d, device=device), ndarray)
    result = empty(shape, d, device=device)
    result[...] = fill_value
    return result


def _like(name: str) -> Callable[..., Any]:
    """Build `zeros_like`, `ones_like` or `empty_like`."""
    create, general = globals()[name], find_function(getattr(host, f"{name}_like"))

    @wraps(getattr(host, f"{name}_like"), updated=())
    def create_like(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
        if type(a) is ndarray and dtype is None and not args and not options:
            s = expr_of(a).spec
            return create(
                s.shape, s.dtype, device=None if s.device is default_device() else s.device
            )
        return general(a, dtype, *args, **options)

    return create_like


zeros_like, ones_like, empty_like = map(_like, ("zeros", "ones", "empty"))
_full_like = find_function(host.full_like)


@wraps(host.full_like, updated=())
def full_like(a: Any, fill_value: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """Return an array of the shape and the dtype of another one, full of a value."""
    if type(a) is ndarray and dtype is None and not args and not options:
        s = expr_of(a).spec
        if s.device is default_device():
            return full(s.shape, fill_value, s.dtype)
    return _full_like(a, fill_value, dtype, *args, **options)


def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Return a matrix with ones on a diagonal."""
    d = as_dtype(dtype)
    if d is None:
        return host.eye(N, M, k, dtype)
    columns = N if M is None else M
    return set_class(
        constructors.eye(int(N), int(columns), k=int(k), dtype=d, device=device), ndarray
    )


def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return the square identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:
    """Return a matrix with ones at and below a diagonal."""
    return from_host(host.tri(N, M, k, to_host(dtype)))


def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None) -> Any:
    """Return evenly spaced numbers; those of floats have NumPy's bits."""
    if dtype is None and device is None and 0 < len(args) <= 3:
        numbers = create_range(ndarray, args, int64, default_device())
        if numbers is not None:
            return numbers
    if len(args) == 4:
        *args, dtype = args  # type: ignore[assignment]  # a list from here
    if len(args) <= 3 and dtype in (None, int) and {*map(type, args)} == {int}:
        return set_class(constructors.arange(*args, dtype=int64, device=device), ndarray)
    return from_host(host.arange(*map(to_host, args), dtype=to_host(dtype)))


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Return an array of a value: a tensor, an array, a number, or nested lists of these.

    Lists of tensors are stacked, so gradients flow. `order` is ignored: memory is row-major.
    """
    d = None if dtype is None else as_dtype(dtype)
    if dtype is not None and d is None:
        return host.array(to_host(object), dtype, ndmin=ndmin)
    if isinstance(object, Tensor):
        result = as_ndarray(object)
        if d is not None and d is not result.dtype:
            if copy is False:
                raise ArgumentError("array: copy=False, but the dtype needs a copy; use copy=None")
            result = result.astype(d)
        elif copy or (result is object and result in pending_numbers):
            result = result.copy()  # NumPy's array of a scalar is a new one
    elif (numbers := _from_numbers(object, d, copy, device)) is not None:
        result = numbers
    elif isinstance(object, (list, tuple)) and find_tensor(object) is not None:
        stacked = _stack_lists(object) if d is None else None
        result = set_class(join(object, d) if stacked is None else stacked, ndarray)
    else:
        values = host.array(object, None if d is None else d.__numpy_dtype__, copy=copy)
        if device is not None:
            return set_class(tensor_from(values, device=device), ndarray)
        if type(values) is host.ndarray and values is not object:
            result = upload(values)
        else:
            result = from_host(values, may_share=values is not object or not copy)
    if ndmin and isinstance(result, Tensor):
        return as_result(with_dims(result, ndmin))
    return result if isinstance(result, Tensor) or not ndmin else host.array(result, ndmin=ndmin)


def _from_numbers(values: Any, dtype: Any, copy: bool | None, device: Any) -> Tensor | None:
    """Return the array of a list of few Python numbers, or None for the general path."""
    if not (type(values) is list or type(values) is tuple) or device is not None or copy is False:
        return None
    return create_from_numbers(ndarray, values, dtype, default_device())


def _stack_lists(values: Any) -> Tensor | None:
    """Return nested lists of tensors of one shape and dtype, stacked on the host, or None."""
    if not isinstance(values, (list, tuple)) or not values:
        return None
    rows = []
    for v in values:
        row = v if isinstance(v, Tensor) else _stack_lists(v)
        if row is None or not is_strided(row):
            return None
        rows.append(row)
    return stack_rows(rows)


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """Return a value as an array; an ndarray of the dtype is returned itself."""
    return array(a, dtype, copy=copy, device=device)


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return a value as a contiguous array of at least one dimension."""
    result = array(a, dtype, copy=None, ndmin=1)
    return result if not isinstance(result, Tensor) or result.is_contiguous() else result.copy()


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return a value as an array whose first index is contiguous."""
    result = array(a, dtype, copy=None)
    return result.T.copy().T if isinstance(result, Tensor) else result


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Return a value as an array. Raises: ValueError for infinities and NaNs."""
    result = array(a, dtype, copy=None)
    host.asarray_chkfinite(to_host(result))
    return result


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """Return a value as an array that meets the requirements.

    Raises: KeyError for an unknown one, ValueError for both orders.
    """
    host.require(host.zeros(1), None, requirements)  # raises for requirements that NumPy refuses
    letters = {r.upper()[0] for r in requirements or ()}
    result = asfortranarray(a, dtype) if "F" in letters else ascontiguousarray(a, dtype)
    return result.copy() if "O" in letters and result is a else result


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Return a copy as an array."""
    return array(a)
