"""NumPy's creation functions with `like=` a tensor: the result is on the tensor's device.

The parameters are NumPy's, by position and by name. `order` is ignored: memory is row-major.
"""

from __future__ import annotations

import numpy as np

from ...tensor.tensor import Tensor
from ..creation.constructors import Fill, ShapeLike, arange, empty, eye, full, ones, tril, zeros
from ..creation.from_values import asarray
from ..datatypes import DeviceLike, DTypeLike
from ..shape import manipulation
from .same_names import Function


def with_dims(x: object, dims: int) -> Tensor | np.ndarray:
    """Return a tensor or array with axes of size 1 in front, up to `dims` axes."""
    if not isinstance(x, Tensor):
        return np.array(x, copy=None, ndmin=dims)
    return manipulation.reshape(x, ((1,) * (dims - x.ndim) + x.shape)) if x.ndim < dims else x


def _asarray(
    a: object, dtype: DTypeLike = None, order: object = None, *, device: DeviceLike = None
) -> Tensor:
    """Call `dt.asarray` with NumPy's parameters; ignore `order`."""
    return asarray(a, dtype=dtype, device=device)


def _array(
    object: object,
    dtype: DTypeLike = None,
    *,
    copy: bool | None = True,
    order: object = "K",
    subok: bool = False,
    ndmin: int = 0,
    device: DeviceLike = None,
) -> object:
    """Call `dt.asarray`, by default with a copy; ignore `order` and `subok`."""
    return with_dims(asarray(object, dtype=dtype, device=device, copy=copy), ndmin)


def _arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Call `dt.arange` with NumPy's parameters."""
    return arange(start, stop, step, dtype=dtype, device=device)


def _adapt_creation(make: Function) -> Function:
    """Return a creation function with NumPy's parameters, of which `order` is ignored."""

    def f(
        shape: ShapeLike,
        dtype: DTypeLike = None,
        order: object = None,
        *,
        device: DeviceLike = None,
    ) -> object:
        """Call the function without `order`."""
        return make(shape, dtype=dtype, device=device)

    return f


def _full(
    shape: ShapeLike,
    fill_value: Fill,
    dtype: DTypeLike = None,
    order: object = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Call `dt.full` with NumPy's parameters; ignore `order`."""
    return full(shape, fill_value, dtype=dtype, device=device)


def _eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike = None,
    order: object = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Call `dt.eye` with NumPy's parameters; ignore `order`."""
    return eye(N, M, k=k, dtype=dtype, device=device)


def _identity(n: int, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Tensor:
    """Call `dt.eye` for a square matrix."""
    return eye(n, dtype=dtype, device=device)


def _tri(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Return a matrix with ones at and below the k-th diagonal, and zeros above it."""
    return tril(ones((N, N if M is None else M), dtype=dtype, device=device), k)


LIKE_FUNCTIONS: dict[object, Function] = {
    **dict.fromkeys((np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray), _asarray),
    np.array: _array,
    np.arange: _arange,
    np.zeros: _adapt_creation(zeros),
    np.ones: _adapt_creation(ones),
    np.empty: _adapt_creation(empty),
    np.full: _full,
    np.eye: _eye,
    np.identity: _identity,
    np.tri: _tri,
}
