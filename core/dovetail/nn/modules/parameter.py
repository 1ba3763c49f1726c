"""Tensors that a module learns, and tensors that it keeps: told from others by a mark.

A parameter is a Tensor like any other, so that nothing that is done with it takes longer.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING

import dovetail as dt

__all__ = ["Buffer", "Parameter"]


class _Marks:
    """Which tensors have a mark. It holds none of them, and forgets those that are gone."""

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[dt.Tensor]] = {}

    def add(self, x: dt.Tensor) -> None:
        self._refs[id(x)] = weakref.ref(x, partial(_forget, self._refs, id(x)))

    def __contains__(self, x: object) -> bool:
        found = self._refs.get(id(x))
        return found is not None and found() is x


def _forget(refs: dict[int, weakref.ref[dt.Tensor]], key: int, gone: object) -> None:
    if refs.get(key) is gone:
        refs.pop(key, None)


_PARAMETERS, _BUFFERS, _PASSING = _Marks(), _Marks(), _Marks()


class _IsParameter(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return instance in _PARAMETERS


class _IsBuffer(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return instance in _BUFFERS


def _own(op: str, data: object) -> dt.Tensor:
    """A tensor over the same memory, that is a leaf."""
    x = data if isinstance(data, dt.Tensor) else dt.asarray(data)
    return x.detach()


if TYPE_CHECKING:  # what comes of calling them

    class Parameter(dt.Tensor):
        def __init__(self, data: object = (), requires_grad: bool = True) -> None: ...

    class Buffer(dt.Tensor):
        def __init__(self, data: object = (), *, persistent: bool = True) -> None: ...

else:

    class Parameter(metaclass=_IsParameter):
        """A tensor that a module learns: given to its attribute it is one of `parameters()`.

        `data`: a tensor, whose memory the parameter shares, or anything that `dt.asarray` takes.
        `requires_grad`: whether gradients are wanted for it.
        What comes back is a Tensor; `isinstance(x, nn.Parameter)` tells it from others.
        Raises: DTypeError where gradients are wanted of integers or bools.

        >>> import dovetail as dt
        >>> w = dt.nn.Parameter(dt.ones(3, device="reference"))
        >>> w.requires_grad, isinstance(w, dt.nn.Parameter), isinstance(w * 2, dt.nn.Parameter)
        (True, True, False)
        """

        def __new__(cls, data: object = (), requires_grad: bool = True) -> dt.Tensor:
            x = _own("Parameter", data)
            if requires_grad:
                x.requires_grad_()
            _PARAMETERS.add(x)
            return x

    class Buffer(metaclass=_IsBuffer):
        """A tensor that a module keeps, and does not learn: one of `buffers()`.

        `data`: a tensor, or anything that `dt.asarray` takes. `persistent`: whether it is part of
        the module's `state_dict()`.
        Raises: what `dt.asarray` raises.

        >>> import dovetail as dt
        >>> isinstance(dt.nn.Buffer(dt.ones(3, device="reference")), dt.nn.Buffer)
        True
        """

        def __new__(cls, data: object = (), *, persistent: bool = True) -> dt.Tensor:
            x = _own("Buffer", data)
            _BUFFERS.add(x)
            if not persistent:
                _PASSING.add(x)
            return x


def is_persistent(x: object) -> bool:
    """Whether a buffer is part of its module's state."""
    return x not in _PASSING


def marked(x: dt.Tensor) -> dt.Tensor:
    """The tensor itself, which is a parameter from now on: as copies of parameters are again."""
    if x not in _PARAMETERS:
        _PARAMETERS.add(x)
    return x
