"""Parameters and buffers: ordinary tensors that are recognised by a mark.

A parameter has the type Tensor, so operations on it are as fast as on other tensors.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING

import dovetail as dt

__all__ = ["Buffer", "Parameter"]


class _WeakTensorSet:
    """A set of marked tensors that holds weak references."""

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[dt.Tensor]] = {}

    def add(self, x: dt.Tensor) -> None:
        """Add a tensor; its entry is removed when it dies."""
        self._refs[id(x)] = weakref.ref(x, partial(_remove_dead, self._refs, id(x)))

    def __contains__(self, x: object) -> bool:
        ref = self._refs.get(id(x))
        return ref is not None and ref() is x


def _remove_dead(refs: dict[int, weakref.ref[dt.Tensor]], key: int, dead: object) -> None:
    """Remove a dead reference, unless a new tensor has taken its id."""
    if refs.get(key) is dead:
        refs.pop(key, None)


_PARAMETERS, _BUFFERS, _NOT_PERSISTENT = _WeakTensorSet(), _WeakTensorSet(), _WeakTensorSet()


class _IsParameter(type):
    """The metaclass by which `isinstance(x, Parameter)` asks for the mark."""

    def __instancecheck__(cls, instance: object) -> bool:
        return instance in _PARAMETERS


class _IsBuffer(type):
    """The metaclass by which `isinstance(x, Buffer)` asks for the mark."""

    def __instancecheck__(cls, instance: object) -> bool:
        return instance in _BUFFERS


def _as_leaf(op: str, data: object) -> dt.Tensor:
    """Return a detached tensor over the memory of a tensor, or a new one of other data."""
    x = data if isinstance(data, dt.Tensor) else dt.asarray(data)
    return x.detach()


if TYPE_CHECKING:  # type checkers see the result of a call, which is a Tensor

    class Parameter(dt.Tensor):
        def __init__(self, data: object = (), requires_grad: bool = True) -> None: ...

    class Buffer(dt.Tensor):
        def __init__(self, data: object = (), *, persistent: bool = True) -> None: ...

else:

    class Parameter(metaclass=_IsParameter):
        """A tensor that a module learns: assigned to an attribute, it is one of `parameters()`.

        - `data`: a tensor, whose memory the parameter shares, or any argument of `dt.asarray`.
        - `requires_grad`: compute gradients for it.

        The result is a Tensor; `isinstance(x, nn.Parameter)` is True for it.
        Raises: DTypeError for gradients of integers or bools.
        See also: `Buffer`, `Module.register_parameter`, `ParameterList`.

        >>> import dovetail as dt
        >>> w = dt.nn.Parameter(dt.ones(3))
        >>> w.requires_grad, isinstance(w, dt.nn.Parameter), isinstance(w * 2, dt.nn.Parameter)
        (True, True, False)
        """

        def __new__(cls, data: object = (), requires_grad: bool = True) -> dt.Tensor:
            x = _as_leaf("Parameter", data)
            if requires_grad:
                x.requires_grad_()
            _PARAMETERS.add(x)
            return x

    class Buffer(metaclass=_IsBuffer):
        """A tensor that a module stores and does not learn: one of `buffers()`.

        - `data`: a tensor, whose memory the buffer shares, or any argument of `dt.asarray`.
        - `persistent`: include it in the module's `state_dict()`.

        Raises: the errors of `dt.asarray`.
        See also: `Parameter`, `Module.register_buffer`.

        >>> import dovetail as dt
        >>> isinstance(dt.nn.Buffer(dt.ones(3)), dt.nn.Buffer)
        True
        """

        def __new__(cls, data: object = (), *, persistent: bool = True) -> dt.Tensor:
            x = _as_leaf("Buffer", data)
            _BUFFERS.add(x)
            if not persistent:
                _NOT_PERSISTENT.add(x)
            return x


def is_persistent(x: object) -> bool:
    """Return True if a buffer is part of its module's state."""
    return x not in _NOT_PERSISTENT


def mark_parameter(x: dt.Tensor) -> dt.Tensor:
    """Mark a tensor as a parameter and return it."""
    if x not in _PARAMETERS:
        _PARAMETERS.add(x)
    return x
