"""The methods of `torch.Tensor`: those of `dt.Tensor` with adopted results, and those that differ.

`attach_methods` sets them from `dt.Tensor` and the tables of `functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import MethodType
from typing import Any

import dovetail as dt
from dovetail.extend import register_subclass

from . import functions
from .adoption import Tensor, adopt, wrap, wrap_callback
from .creation import construct
from .text import show_tensor

# Methods whose results have no new tensor: as they are.
UNWRAPPED = """
    backward numpy item tolist data_ptr storage storage_offset stride dim element_size
    is_contiguous is_complex is_floating_point is_pinned retain_grad
"""
# The core gives the results of other operators the class of their operands.
WRAPPED_OPERATORS = "__rmatmul__ __imatmul__ __divmod__ __rdivmod__ __copy__ __deepcopy__"


def attach_methods() -> None:
    """Set the methods and properties on `torch.Tensor`."""
    unwrapped = UNWRAPPED.split()
    names = [n for n in dir(dt.Tensor) if not n.startswith("_") and n not in unwrapped]
    for name in (*names, *WRAPPED_OPERATORS.split()):
        method = getattr(dt.Tensor, name)
        if callable(method):  # a property is not
            setattr(Tensor, name, wrap(method))
    for function in functions.METHODS:
        setattr(Tensor, function.__name__, wrap(function))
    for name in functions.DT_METHODS.split():
        setattr(Tensor, name, wrap(getattr(dt, name)))
    for name, source in functions.LINALG_METHODS.items():
        setattr(Tensor, name, wrap(getattr(dt.linalg, source)))
    for name, method in {**functions.METHODS_IN_PLACE, **OWN_METHODS}.items():
        setattr(Tensor, name, wrap(method))
    for name in functions.FALSE_METHODS.split():
        setattr(Tensor, name, lambda self: False)
    for name in functions.FALSE_PROPERTIES.split():
        setattr(Tensor, name, property(lambda self: False))
    Tensor.__new__ = _construct  # type: ignore[method-assign,assignment]  # the class gets it from a table
    for name, member in {**PROPERTIES, **UNADOPTED}.items():
        setattr(Tensor, name, member)
    register_subclass(Tensor)  # again, because `__getattr__` has replaced a slot


def _construct(cls: type[Tensor], *data: Any, device: Any = None) -> Tensor:
    """Return `torch.Tensor(2, 3)`, uninitialised, or `torch.Tensor([1.0, 2.0])`."""
    return construct("Tensor", dt.get_default_dtype(), data, device)


_wrap_once = cache(wrap)


def _find_method(x: Tensor, name: str) -> Any:
    """Return a method that `dt.Tensor` loads at its first use, or another name of one."""
    if name in functions.OTHER_NAMES:
        return getattr(x, functions.OTHER_NAMES[name])
    value = dt.Tensor.__getattr__(x, name)  # type: ignore[attr-defined]  # the core attaches it
    if isinstance(value, MethodType):
        return MethodType(_wrap_once(value.__func__), x)
    return wrap(value) if callable(value) else value


def _drop_memory_format(name: str) -> Callable[..., Any]:
    """Return a method that ignores PyTorch's `memory_format`: strides are always row-major."""

    def call(x: Tensor, *args: Any, memory_format: Any = None, **options: Any) -> Any:
        """Return the method's result; `memory_format` has no effect."""
        return getattr(dt.Tensor, name)(x, *args, **options)

    call.__name__ = call.__qualname__ = name
    return call


def _copy(x: Tensor, *, memory_format: Any = None) -> Any:
    """Return a copy; `memory_format` has no effect."""
    return dt.copy(x)


def _register_hook(x: Tensor, hook: Callable[..., Any]) -> Any:
    """Call `hook(gradient)` when the gradient is known; return a handle to remove it."""
    return dt.Tensor.register_hook(x, wrap_callback(hook))


def _transpose(x: Tensor) -> Any:
    """Return a view with the axes in reverse order."""
    return dt.permute_dims(x, tuple(reversed(range(x.ndim))))


def _adjoint(x: Tensor) -> Any:
    """Return a view with the last two axes exchanged, conjugated."""
    return dt.conj(x).mT if x.dtype.kind == "c" else x.mT


def _restore(rebuild: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return a tensor of `torch.Tensor` from what pickle stored for one of `dt.Tensor`."""
    return adopt(rebuild(*args))


def _reduce(x: Tensor, protocol: Any) -> Any:
    """Return what pickle stores."""
    return _restore, dt.Tensor.__reduce_ex__(x, protocol)


def _format(x: Tensor, spec: str) -> str:
    """Format the only element of a tensor without axes, else the text of the tensor."""
    return format(x.item(), spec) if x.ndim == 0 else object.__format__(x, spec)


OWN_METHODS = {
    **{name: _drop_memory_format(name) for name in ("contiguous", "to")},
    "clone": _copy,
    "adjoint": _adjoint,
}
PROPERTIES: dict[str, Any] = {
    "T": property(wrap(_transpose)),
    "H": property(wrap(_adjoint)),
    "mH": property(wrap(_adjoint)),
    "real": property(wrap(dt.real)),
    "imag": property(wrap(dt.imag)),
}
UNADOPTED: dict[str, Any] = {
    "register_hook": _register_hook,
    "numel": functions.numel,
    "nelement": functions.numel,
    "__getattr__": _find_method,
    "__reduce_ex__": _reduce,
    "__repr__": lambda x, **options: show_tensor(x),
    "__str__": lambda x: show_tensor(x),
    "__format__": _format,
}
