"""The tensors that a function uses without getting them as arguments.

What is noted is where it finds them, so that they can be read there again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from operator import getitem
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import NamedTuple, TypeAlias

from ..device import Device
from ..memory import Allocator, Storage
from ..memory.callers import is_ours
from ..tensor.tensor import Tensor

OBJECTS = 20_000  # that are looked at
_OPAQUE = (
    str, bytes, int, float, complex, type(None), type, CodeType, Tensor, Device, Storage, Allocator,
)  # fmt: skip

Step: TypeAlias = tuple[Callable[..., object], object]  # what reads a part of what, and which


class Path(NamedTuple):
    """The way from an object to a tensor."""

    root: object
    steps: tuple[Step, ...]

    def read(self) -> object:
        """What is there now; None where the way has gone."""
        found = self.root
        try:
            for read, key in self.steps:
                found = read(found, key)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None
        return found


def _cell(function: FunctionType, i: int) -> object:
    return (function.__closure__ or ())[i].cell_contents


def _global(function: FunctionType, name: str) -> object:
    return function.__globals__[name]


def _default(function: FunctionType, i: int) -> object:
    found: tuple[object, ...] = function.__defaults__ or ()
    return found[i]


def _keyword_default(function: FunctionType, name: str) -> object:
    found: dict[str, object] = function.__kwdefaults__ or {}
    return found[name]


def tensors_of(roots: list[object]) -> list[tuple[Path, Tensor]]:
    """The tensors that functions and objects lead to.

    They do by closures, by the global names that code has, by containers and attributes. Each once;
    the shortest way to it.
    """
    return [(path, value) for path, value in _met(roots) if type(value) is Tensor]


def modes_of(roots: list[object]) -> list[Path]:
    """The ways to objects of which some attributes decide what a function does.

    Their classes name these in `captured_for`, as a network's does that trains or does not.
    """
    return [path for path, value in _met(roots) if hasattr(type(value), "captured_for")]


def values_of(modes: list[Path]) -> tuple[object, ...]:
    """What those attributes are now."""
    found = [path.read() for path in modes]
    return tuple(
        [getattr(x, name, None) for x in found for name in getattr(type(x), "captured_for", ())]
    )


def _met(roots: list[object]) -> list[tuple[Path, object]]:
    """All that they lead to."""
    found: list[tuple[Path, object]] = []
    seen: set[int] = set()
    waiting: list[tuple[Path, object]] = [(Path(r, ()), r) for r in roots]
    names: set[str] = set()
    for path, value in waiting:  # it grows meanwhile
        if id(value) in seen or len(seen) > OBJECTS:
            continue
        seen.add(id(value))
        found.append((path, value))
        for step, part in _parts(value, names):
            if not isinstance(part, _OPAQUE) or type(part) is Tensor:
                waiting.append((Path(path.root, (*path.steps, step)), part))
    return found


def _parts(value: object, names: set[str]) -> Iterator[tuple[Step, object]]:
    """What an object leads to; `names`: those that code met so far has."""
    if isinstance(value, FunctionType):
        if is_ours(value.__module__):
            return
        yield from _parts_of_function(value, names)
    elif isinstance(value, MethodType):
        yield (getattr, "__func__"), value.__func__
        yield (getattr, "__self__"), value.__self__
    elif isinstance(value, functools.partial):
        for name in ("func", "args", "keywords"):
            yield (getattr, name), getattr(value, name)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield (getitem, i), part
    elif isinstance(value, dict):
        for key, part in list(value.items()):
            yield (getitem, key), part
    elif isinstance(value, ModuleType):
        if not is_ours(value.__name__):
            for name in sorted(names & {*vars(value)}):
                yield (getattr, name), vars(value)[name]
    elif not isinstance(value, _OPAQUE):
        yield from _attributes(value)


def _parts_of_function(f: FunctionType, names: set[str]) -> Iterator[tuple[Step, object]]:
    for i, cell in enumerate(f.__closure__ or ()):
        try:
            yield (_cell, i), cell.cell_contents
        except ValueError:  # not bound yet
            continue
    used = _names(f.__code__)
    names |= used
    for name in sorted(used & {*f.__globals__}):
        yield (_global, name), f.__globals__[name]
    for i, part in enumerate(f.__defaults__ or ()):
        yield (_default, i), part
    for name, part in (f.__kwdefaults__ or {}).items():
        yield (_keyword_default, name), part
    if (wrapped := getattr(f, "__wrapped__", None)) is not None:
        yield (getattr, "__wrapped__"), wrapped


def _names(code: CodeType) -> set[str]:
    """Those of globals and attributes, in nested functions too."""
    found = {*code.co_names}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= _names(part)
    return found


def _attributes(value: object) -> Iterator[tuple[Step, object]]:
    kind = type(value)
    if kind.__module__ in ("builtins", "numpy") or hasattr(kind, "holds_no_tensors"):
        return
    only = getattr(kind, "leads_to", None)
    if only is not None:
        for name in only:
            yield (getattr, name), getattr(value, name)
        return
    own = getattr(value, "__dict__", None)
    for name, part in list(own.items()) if isinstance(own, dict) else ():
        yield (getattr, name), part
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                yield (getattr, name), getattr(value, name)
