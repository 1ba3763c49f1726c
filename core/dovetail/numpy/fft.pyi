# Written by tools/faces.py for type checkers: the names of NumPy 2.4, for ndarrays.
# mypy: disable-error-code=override
# ruff: noqa
# fmt: off
# isort: off

import builtins as _python
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as _host
import numpy.typing as _typing

from .array_class import ndarray as ndarray

_Array: TypeAlias = ndarray | _typing.ArrayLike
_Axis: TypeAlias = int | Sequence[int] | None
_Shape: TypeAlias = int | Sequence[int] | None

def fft(
    a: _Array | Sequence[Any],
    n: Any = ...,
    axis: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def fft2(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def fftfreq(n: Any, d: Any = ..., device: Any = ...) -> ndarray: ...
def fftn(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis | None = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def fftshift(x: _Array | Sequence[Any], axes: _Axis | None = ...) -> ndarray: ...
def hfft(
    a: _Array | Sequence[Any],
    n: Any = ...,
    axis: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def ifft(
    a: _Array | Sequence[Any],
    n: Any = ...,
    axis: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def ifft2(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def ifftn(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis | None = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def ifftshift(x: _Array | Sequence[Any], axes: _Axis | None = ...) -> ndarray: ...
def ihfft(
    a: _Array | Sequence[Any],
    n: Any = ...,
    axis: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def irfft(
    a: _Array | Sequence[Any],
    n: Any = ...,
    axis: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def irfft2(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def irfftn(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis | None = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def rfft(
    a: _Array | Sequence[Any],
    n: Any = ...,
    axis: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def rfft2(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
def rfftfreq(n: Any, d: Any = ..., device: Any = ...) -> ndarray: ...
def rfftn(
    a: _Array | Sequence[Any],
    s: Any = ...,
    axes: _Axis | None = ...,
    norm: Any = ...,
    out: _Array | tuple[_Array | None, ...] | None = ...,
) -> ndarray: ...
