"""Constructors of tensors: `torch.tensor`, `torch.Tensor(2, 3)`, `torch.FloatTensor([1.0])`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import dovetail as dt

from .adoption import Tensor, adopt


class Size(tuple[int, ...]):
    """A tuple of ints with `numel()`, for `torch.Size((2, 3))`; `x.shape` is a plain tuple.

    - `iterable`: the sizes.

    >>> import dovetail.torch as torch
    >>> torch.Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({[*self]})"

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))

    def __getitem__(self, index: Any) -> Any:
        part = tuple.__getitem__(self, index)
        return Size(part) if isinstance(index, slice) else part


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor with a copy of the data.

    - `data`: a number, a nested list of numbers or tensors, a NumPy array or a tensor.
    - `dtype`: None is that of the data; Python floats have the default dtype, ints int64.
    - `device`: None is the default device, or the tensor's.
    - `requires_grad`: True computes gradients for it.
    - `pin_memory`: put it in page-locked memory.

    Raises: the errors of `dt.asarray`.

    >>> import dovetail.torch as torch
    >>> torch.tensor([1, 2])
    tensor([1, 2])
    """
    if isinstance(data, dt.Tensor):
        data = data.detach()
    elif isinstance(data, (list, tuple)):
        data = _read_tensors(data)
    x = adopt(dt.asarray(data, dtype=dtype, device=device, copy=True))
    x = adopt(x.pin_memory()) if pin_memory else x
    return adopt(x.requires_grad_()) if requires_grad else x


def _read_tensors(data: Any) -> Any:
    """Return nested lists with the values of tensors in place of tensors."""
    if isinstance(data, (list, tuple)):
        return [_read_tensors(part) for part in data]
    return data.tolist() if isinstance(data, dt.Tensor) else data


def construct(name: str, dtype: dt.DType, data: tuple[Any, ...], device: Any = None) -> Tensor:
    """Return `name(2, 3)`, uninitialised, or `name([1.0, 2.0])`, of a dtype."""
    if all(isinstance(n, int) for n in data):
        return adopt(dt.empty(data or (0,), dtype=dtype, device=device))
    if len(data) > 1:
        raise dt.ArgumentTypeError(
            f"{name}: expected sizes or one sequence, got {len(data)} arguments; use torch.tensor"
        )
    values = data[0]
    if isinstance(values, Size):
        return adopt(dt.empty(tuple(values), dtype=dtype, device=device))
    if isinstance(values, Iterable) and not isinstance(values, (str, dt.Tensor)):
        values = _read_tensors([*values]) if isinstance(values, (list, tuple)) else values
    if isinstance(values, dt.Tensor) and values.dtype is dtype:
        return values.detach()  # type: ignore[return-value]  # over the same memory
    return adopt(dt.asarray(values, dtype=dtype, device=device))


class TensorType(type):
    """The class of `torch.FloatTensor` and its kin, of which tensors of one dtype are instances."""

    dtype: dt.DType

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        return construct(cls.__name__, cls.dtype, data, device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype


TENSOR_TYPES = {
    name: TensorType(name, (), {"dtype": dtype, "__module__": __name__.rpartition(".")[0]})
    for name, dtype in {
        "FloatTensor": dt.float32,
        "DoubleTensor": dt.float64,
        "HalfTensor": dt.float16,
        "BFloat16Tensor": dt.bfloat16,
        "LongTensor": dt.int64,
        "IntTensor": dt.int32,
        "ShortTensor": dt.int16,
        "CharTensor": dt.int8,
        "ByteTensor": dt.uint8,
        "BoolTensor": dt.bool,
    }.items()
}
TYPE_NAMES = {kind.dtype: f"torch.{name}" for name, kind in TENSOR_TYPES.items()}
