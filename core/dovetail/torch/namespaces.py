"""The namespaces below `dovetail.torch`, such as `dovetail.torch.nn`, built from tables of names.

A name is fetched from a package of `dt` when it is first used: functions are wrapped, so that their
results are of class `torch.Tensor`, and layers and distributions are derived.
"""

from __future__ import annotations

import sys
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Any

import dovetail as dt
from dovetail.extend import arguments

from .adoption import adopt, derive, is_derivable, wrap, wrap_transform
from .names import TRANSFORMS

ROOT = __name__.rpartition(".")[0]
OWN_NAMES = {  # by namespace: names that `training` defines
    "nn": ("Parameter", "Buffer"),
    "nn.parameter": ("Parameter", "Buffer"),
    "nn.modules": ("Parameter", "Buffer"),
    "utils.data": ("DataLoader",),
    "autograd": ("Function", "grad"),
    "func": ("grad_and_value", "stack_module_state"),
    "utils.checkpoint": ("checkpoint",),
    "": ("Generator",),
}


class Namespace(ModuleType):
    """A module whose names come from a package of `dt`.

    - `name`: its name below `dovetail.torch`.
    - `source`: the package of `dt`, "" for none.
    """

    def __init__(self, name: str, source: str) -> None:
        super().__init__(f"{ROOT}.{name}", f"PyTorch's `torch.{name}`, by `dt.{source}`.")
        self._source = source

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if not self._source:
            raise missing_name_error(self.__name__, name)
        if name in OWN_NAMES.get(self.__name__.removeprefix(f"{ROOT}."), ()):
            setattr(self, name, own_value(name))
            return own_value(name)
        package = reduce(getattr, self._source.split("."), dt)
        try:
            value = convert(getattr(package, name), name, self.__name__)
        except AttributeError as error:
            message = str(error).replace(
                f"module 'dovetail.{self._source}'", f"module {self.__name__!r}"
            )
            raise AttributeError(message) from None
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        package = reduce(getattr, self._source.split("."), dt) if self._source else None
        own = [n for n in vars(self) if not n.startswith("_")]
        return sorted({*own, *getattr(package, "__all__", ())})


def own_value(name: str) -> Any:
    """Return a value of `training`, which is loaded at the first use of one."""
    return getattr(import_module(f"{ROOT}.training"), name)


def missing_name_error(module: str, name: str) -> AttributeError:
    """Return the error for a name that a namespace lacks, with what to write instead."""
    path = ".".join([*module.split(".")[2:], name])
    hint = arguments.hints.find_hint("functions", path)
    error: AttributeError = arguments.hints.attribute_error(f"module {module!r}", name, hint)
    return error


def convert(value: Any, name: str, module: str) -> Any:
    """Return a value of `dt` as a namespace shows it. Raises: AttributeError for a module."""
    if isinstance(value, type):
        return derive(value) if is_derivable(value) else value
    if isinstance(value, ModuleType):
        raise missing_name_error(module, name)
    if callable(value) and not isinstance(value, (dt.DType, dt.Device)):
        return wrap_as(value, name, module)
    return adopt(value)


def wrap_as(function: Any, name: str, module: str) -> Any:
    """Return a function whose results are adopted, which `pickle` finds at a name of a module."""
    wrapper: Any = (wrap_transform if name in TRANSFORMS.split() else wrap)(function)
    wrapper.__module__, wrapper.__qualname__ = module, name
    return wrapper


def build(table: dict[str, str]) -> dict[str, Namespace]:
    """Create the namespaces of a table, enter them into `sys.modules` and into their parents."""
    spaces: dict[str, Namespace] = {}
    for name in sorted(table):
        space = spaces[name] = Namespace(name, table[name])
        space.__path__ = []  # others may be imported below it
        sys.modules[space.__name__] = space
        parent, _, own = name.rpartition(".")
        setattr(spaces[parent] if parent else import_module(ROOT), own, space)
    return spaces
