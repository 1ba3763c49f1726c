"""The type slots of Tensor's operators.

In the compiled form (`c_slots.pyx`) the most frequent ones record an op directly, without a look-up
of the method. Before Python 3.12, which calls `__buffer__` itself, there is a slot for buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tensor import Tensor


PENDING_ELEMENTS_MAX = 4096  # of a pending value that is computed before a view of it is made


def fill(
    tensor: type[Tensor],
    read_cached: Callable[[Tensor, object], Tensor | None],
    write_cached: Callable[[Tensor, object, Any], bool],
    multiply_cached: Callable[[Tensor, object], Tensor | None],
) -> None:
    """Fill Tensor's C type slots after all its methods are set; do nothing in pure Python.

    The slots try the other arguments, functions of `functions/known_calls.py`, before a method.
    """


_element_classes: list[type] = []


def install_element_slots(kind: type[Tensor], read_number: Callable[[Any], Any]) -> None:
    """Let the C slots of a subclass return NumPy's scalars; in pure Python its methods do.

    Raises: RuntimeError for a second class.

    - `read_number`: makes a scalar of a result without dimensions.
    """
    if _element_classes:
        raise RuntimeError(f"install_element_slots: another class than {kind.__name__} has them")
    _element_classes.append(kind)


def build_array_ufunc(function: Callable[..., Any], ufuncs: dict[Any, int]) -> Callable[..., Any]:
    """Return `__array_ufunc__` that records `scalar op x` in C; in pure Python `function` itself.

    - `ufuncs`: NumPy's ufuncs by the numbers of their ops: add, subtract, multiply, divide.
    """
    return function


def iterate_elements(x: Tensor) -> Iterator[Any]:
    """Return an iterator over the elements or rows of a tensor, as they are when they are read."""
    return (x[i] for i in range(len(x)))
