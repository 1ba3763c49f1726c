"""Updates that return a new tensor, `x.at[key].set(value)`, under the names of JAX."""

from __future__ import annotations

from collections.abc import Callable
from operator import index as as_integer
from types import EllipsisType

import numpy as np

from ...dtypes import bool_
from ...tensor.promotion import Operand
from ...tensor.tensor import Tensor, strided
from ..creation.constructors import ones_like, zeros_like
from ..elementwise.op_functions import (
    add,
    divide,
    maximum,
    minimum,
    multiply,
    pow,
    subtract,
    where,
)
from ..shape.copies import copy
from .index_keys import Key, Part, is_array, is_mask, key_parts, select
from .index_writes import ScatterMode, scatter_selected

__all__ = ["FunctionalUpdates"]


class FunctionalUpdates:
    """The updates of a tensor, `x.at`; `x.at[key]` selects the elements.

    >>> import dovetail as dt
    >>> x = dt.zeros(3)
    >>> x.at[1].set(5.0).tolist(), x.tolist()
    ([0.0, 5.0, 0.0], [0.0, 0.0, 0.0])
    """

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Key) -> UpdatesAt:
        """Return the updates of the elements `x[key]`."""
        return UpdatesAt(self._x, key)

    def __repr__(self) -> str:
        return "<x.at: x.at[key].set(value) returns a new tensor>"


class UpdatesAt:
    """The updates of the elements `x[key]`. Each method returns a new tensor.

    If integer arrays contain a position several times, `set` keeps the last value, and the others
    combine all values. An index out of range raises IndexOutOfBoundsError, where JAX ignores it.
    """

    __slots__ = ("_key", "_x")

    def __init__(self, x: Tensor, key: Key) -> None:
        self._x, self._key = strided("at", x), key

    def get(self) -> Tensor:
        """Return `x[key]`."""
        return self._x[self._key]

    def set(self, values: Operand) -> Tensor:
        """Return a copy of x with `x[key] = values`."""
        result = copy(self._x)
        result[self._key] = values
        return result

    def add(self, values: Operand) -> Tensor:
        """Return a copy of x with `values` added to its elements at `key`."""
        return self._combine(values, add, "add")

    def subtract(self, values: Operand) -> Tensor:
        """Return a copy of x with `values` subtracted from its elements at `key`."""
        x = self._x
        return subtract(x, UpdatesAt(zeros_like(x), self._key).add(values))

    def multiply(self, values: Operand) -> Tensor:
        """Return a copy of x with its elements at `key` multiplied by `values`."""
        return self._combine(values, multiply, "mul")

    mul = multiply

    def divide(self, values: Operand) -> Tensor:
        """Return a copy of x with its elements at `key` divided by `values`."""
        x = self._x
        return divide(x, UpdatesAt(ones_like(x), self._key).multiply(values))

    def max(self, values: Operand) -> Tensor:
        """Return a copy of x with the larger of its elements at `key` and of `values`."""
        return self._combine(values, maximum, "max")

    def min(self, values: Operand) -> Tensor:
        """Return a copy of x with the smaller of its elements at `key` and of `values`."""
        return self._combine(values, minimum, "min")

    def power(self, values: Operand) -> Tensor:
        """Return a copy of x with its elements at `key` raised to the power `values`, once."""
        return self.set(pow(self.get(), values))

    def apply(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Return a copy of x with `function` applied once to its elements at `key`."""
        return self.set(function(self.get()))

    def _combine(
        self, values: Operand, combine: Callable[..., Tensor], mode: ScatterMode
    ) -> Tensor:
        """Return a copy of x whose elements at the key are combined with the values."""
        x, key = self._x, self._key
        if type(key) is Tensor and key.dtype is bool_ and key.shape == x.shape:
            is_shared = not (isinstance(values, Tensor) and values.ndim)
            if is_shared:  # by every element: the host reads no count of positions
                return where(key, combine(x, values), x)
        keys = key_parts(x, key)
        if not any(is_array(part) for part in keys):
            return self.set(combine(x[key], values))
        updated = scatter_selected("at", select("at", x, keys), values, mode, in_place=False)
        basic = [p for part in keys for p in slices_of(part)]
        if all(part in (Ellipsis, slice(None)) for part in basic):
            return updated
        result = copy(x)
        result[tuple(basic)] = updated
        return result


def slices_of(part: Part) -> list[slice | EllipsisType]:
    """Return the slices of a key's part: whole axes for an array, one element for an integer."""
    if part is None or isinstance(part, bool):
        return []
    if isinstance(part, (Tensor, np.ndarray)):
        return [slice(None)] * (part.ndim if is_mask(part) else 1)
    if isinstance(part, (slice, EllipsisType)):
        return [part]
    index = as_integer(part)
    return [slice(index, index + 1 or None)]
