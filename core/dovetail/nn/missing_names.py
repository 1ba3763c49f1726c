"""Errors for names that `dt.nn` and related packages lack, with the hints of `compat`.

`make_module_getattr` returns the `__getattr__` of a package, which Python calls only for a missing
name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from types import ModuleType
from typing import NoReturn

import dovetail as dt
from dovetail.extend import arguments

# Packages that are searched for a name that another package lacks.
_SEARCHED_PACKAGES = (
    "nn",
    "nn.functional",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "data",
    "distributions",
    "nn.utils",
)
_GENERAL_PACKAGES = ("", "linalg", "random", "func", "autograd")


def make_module_getattr(package: str) -> Callable[[str], NoReturn]:
    """Return a `__getattr__` for a package of networks. `package`: its name within `dt`."""

    def refuse(name: str) -> NoReturn:
        """Raise AttributeError with a hint, always."""
        hint = _missing_name_hint(package, name)
        raise arguments.hints.attribute_error(f"module 'dovetail.{package}'", name, hint)

    return refuse


class NotCallableModule(ModuleType):
    """A module of optimisers whose name is that of a function in Optax."""

    def __call__(self, *args: object, **options: object) -> NoReturn:
        """Raise ArgumentTypeError, which names the class to use."""
        name = self.__name__.rpartition(".")[2]
        names = [n for n in self.__all__ if n.casefold() == name]
        raise dt.ArgumentTypeError(
            f"optim.{name}: this is a module and cannot be called; use "
            f"dt.optim.{names[0]}(net.parameters(), lr=...)"
        )


def make_class_getattr(table: str) -> Callable[[object, str], NoReturn]:
    """Return a `__getattr__` for a class. `table`: the name of its table of hints."""

    def __getattr__(self: object, name: str) -> NoReturn:
        hint = arguments.hints.find_hint(table, name)
        raise arguments.hints.attribute_error(f"{type(self).__name__!r} object", name, hint)

    return __getattr__


def _missing_name_hint(package: str, name: str) -> str:
    """Return the end of the error about a name that a package lacks."""
    if name.startswith("__"):
        return ""
    hints = arguments.hints.tables()[package]
    hint = hints.get(name) or hints.get(name.removesuffix("_")) or _find_elsewhere(package, name)
    return arguments.hints.format_hint(hint, name) if hint else ""


def _find_elsewhere(package: str, name: str) -> str:
    """Return the path of an equal public name, or of one with other case and underscores, or ""."""
    packages = [
        (of, names)
        for of in (package, *_SEARCHED_PACKAGES, *_GENERAL_PACKAGES)
        if (names := _public_names(of))
    ]
    exact = (".".join(["dt", *of.split("."), name]) for of, names in packages if name in names)
    bare_names = [(of, {_normalize_name(n): n for n in names}) for of, names in packages]
    close = (
        ".".join(["dt", *of.split("."), by_bare[_normalize_name(name)]])
        for of, by_bare in bare_names
        if _normalize_name(name) in by_bare
    )
    return next((path.replace("..", ".") for path in (*exact, *close)), "")


def _public_names(package: str) -> list[str]:
    """Return the public names of a package of `dt`, or of `dt` itself."""
    module: object = reduce(getattr, package.split(".") if package else (), dt)
    names: list[str] = getattr(module, "__all__", [])
    return names


def _normalize_name(name: str) -> str:
    """Return a name in lower case without underscores."""
    return name.replace("_", "").casefold()
