"""Pickles of the objects that decorators return, and of functions that a namespace wraps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, SupportsIndex


def reduce_decorated(
    wrapper: Any, protocol: SupportsIndex, *options: object
) -> str | tuple[object, ...]:
    """Return what `__reduce_ex__` of a decorated function returns.

    `__wrapped__` of the wrapper is the function. Its own name leads to the wrapper, but `pickle`
    wants a name that leads to the function. So it gets the name of the wrapper's attribute.
    """
    function: Any = wrapper.__wrapped__
    name = getattr(wrapper, "__qualname__", None)
    existing = look_up(wrapper.__module__, name) if isinstance(name, str) else None
    if existing is wrapper:
        if protocol.__index__() < 4:  # which finds nothing in what another name leads to
            return str(name)
        function.__qualname__ = f"{name}.__wrapped__"
    elif getattr(existing, "__wrapped__", wrapper) is function:
        name = function.__qualname__ = f"{name}.__wrapped__"  # decorated twice
    return decorate_again, (type(wrapper), function, options, name)


def decorate_again(
    kind: Callable[..., Any],
    function: Callable[..., object],
    options: tuple[object, ...],
    name: str | None,
) -> object:
    """Unpickle a decorated function: return the one that its module has, else a new one."""
    existing: Any = None if name is None else look_up(function.__module__, name)
    if type(existing) is kind and existing.__wrapped__ is function:
        return existing
    if isinstance(function, FunctionType) and name is not None:
        function.__qualname__ = name
    return kind(function, *options)


def look_up(module: str, name: str) -> object:
    """Return the object at a dotted name in an imported module; None if it is missing."""
    value: object = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def set_pickled_name(value: object, module: str, name: str) -> None:
    """Set the module and name by which `pickle` finds a function, or a class of dovetail.

    A wrapper has the name of what it wraps, which leads to another object. Other objects, and those
    to which their own name leads already, are unchanged.
    """
    is_ours = isinstance(value, type) and value.__module__.startswith("dovetail")
    if not (is_ours or isinstance(value, FunctionType)):
        return
    owned: Any = value
    if look_up(owned.__module__ or "", owned.__qualname__) is not value:
        owned.__module__, owned.__qualname__ = module, name
