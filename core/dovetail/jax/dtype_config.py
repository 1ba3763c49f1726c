"""Widths of dtypes as in JAX: 32 bits unless `jax_enable_x64` is set."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import ArgumentError

NARROW = {
    dt.int64: dt.int32,
    dt.uint64: dt.uint32,
    dt.float64: dt.float32,
    dt.complex128: dt.complex64,
}
"""The dtype of JAX's results in place of one of 64 bits."""

_NARROW_ON_HOST = {ours.__numpy_dtype__: theirs.__numpy_dtype__ for ours, theirs in NARROW.items()}


class Config:
    """The settings of `jax.config`."""

    jax_enable_x64 = False

    def update(self, name: str, value: object) -> None:
        """Set `jax_enable_x64`: whether results have 64 bits; it is the only setting.

        - `name`: "jax_enable_x64".
        - `value`: True also makes float64 the default dtype of dovetail.

        Raises: ArgumentError for other names.
        """
        if name != "jax_enable_x64":
            raise ArgumentError(
                f"config.update: expected 'jax_enable_x64', got {name!r}; dovetail has other "
                "settings as functions: dt.device, dt.debug_nans, dt.set_num_threads"
            )
        self.jax_enable_x64 = bool(value)
        dt.set_default_dtype(dt.float64 if value else dt.float32)


config = Config()


def narrow(value: Any) -> Any:
    """Return a tensor, or a tuple or list of them, in the dtypes that JAX's results have."""
    if isinstance(value, dt.Tensor):
        dtype = None if config.jax_enable_x64 else NARROW.get(value.dtype)
        return value if dtype is None else value.astype(dtype)
    if type(value) is list:
        return [narrow(v) for v in value]
    if isinstance(value, tuple):
        items = [narrow(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def as_tensor(value: Any, dtype: Any = None, copy: bool = False) -> dt.Tensor:
    """Return a number, an array, a tensor or a list of them as a tensor of JAX's dtype.

    A value is cast to `dtype` before the result is narrowed, so it is rounded once.
    """
    if isinstance(value, (list, tuple)) and any(_has_tensor(v) for v in value):
        value = dt.stack(dt.broadcast_arrays(*[as_tensor(v, dtype) for v in value]))
    elif not isinstance(value, dt.Tensor):
        value = np.asarray(value)
        if dtype is None and not config.jax_enable_x64 and value.dtype in _NARROW_ON_HOST:
            value, copy = value.astype(_NARROW_ON_HOST[value.dtype]), False
        value, copy = dt.asarray(value, copy=copy or None), False
    result: dt.Tensor = narrow(value if dtype is None else value.astype(dtype))
    return dt.copy(result) if copy else result


def _has_tensor(value: object) -> bool:
    """Return True for a tensor, and for a list or tuple with one."""
    if isinstance(value, (list, tuple)):
        return any(_has_tensor(v) for v in value)
    return isinstance(value, dt.Tensor)


def _as_operand(value: Any, is_number_kept: bool) -> Any:
    """Return an array as a tensor; a number, and the items of a list, too unless they are kept."""
    if isinstance(value, (np.ndarray, np.generic)):
        return as_tensor(value)
    if not is_number_kept and isinstance(value, (bool, int, float, complex)):
        return as_tensor(value)
    if not is_number_kept and type(value) in (list, tuple):
        return [_as_operand(v, False) for v in value]
    return value


def with_operands(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of dovetail that takes numbers and arrays, and has JAX's dtypes.

    A number is an operand if no other argument is a tensor or an array; only the first argument may
    be one then. Beside a tensor a number keeps its weak type.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        """Call the function with tensors; return its results in JAX's dtypes."""
        if args:
            others = [_as_operand(v, True) for v in args[1:]]
            has_tensor = any(isinstance(v, dt.Tensor) for v in others)
            args = (_as_operand(args[0], has_tensor), *others)
        return narrow(function(*args, **options))

    return call


def with_dtypes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose results have JAX's dtypes; its arguments stay as they are."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        """Call the function; return its results in JAX's dtypes."""
        return narrow(function(*args, **options))

    return call
