"""Errors for names that `dt.nn` and its like lack, with the hints of `compat`.

`refused` makes the `__getattr__` of a package. Python calls that for a missing name only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from types import ModuleType
from typing import NoReturn

import dovetail as dt
from dovetail.extend import arguments

# Where a name may be that was looked for elsewhere.
_PUBLIC = (
    "nn",
    "nn.functional",
    "optim",
    "optim.lr_scheduler",
    "data",
    "distributions",
    "nn.utils",
)
_GENERAL = ("", "linalg", "random", "func", "autograd")


def refused(package: str) -> Callable[[str], NoReturn]:
    """A `__getattr__` for a package of networks. `package`: its name within `dt`."""

    def refuse(name: str) -> NoReturn:
        raise AttributeError(
            f"module 'dovetail.{package}' has no attribute {name!r}{_known(package, name)}"
        )

    return refuse


class Uncalled(ModuleType):
    """A module of optimisers, whose name others have for a function."""

    def __call__(self, *args: object, **options: object) -> NoReturn:
        """Nothing. Raises: ArgumentTypeError, which says what to write."""
        name = self.__name__.rpartition(".")[2]
        names = [n for n in self.__all__ if n.casefold() == name]
        raise dt.ArgumentTypeError(
            f"optim.{name}: it is a module; write dt.optim.{names[0]}(net.parameters(), lr=...)"
        )


def absent(table: str) -> Callable[[object, str], NoReturn]:
    """Return a `__getattr__` for a class. `table`: that of the hints for its attributes."""

    def __getattr__(self: object, name: str) -> NoReturn:
        more = arguments.hints.find(table, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{more}")

    return __getattr__


def _known(package: str, name: str) -> str:
    """Return the end of the error about a name that a package lacks."""
    if name.startswith("__"):
        return ""
    known = arguments.hints.tables()[package]
    found = known.get(name) or known.get(name.removesuffix("_")) or _elsewhere(package, name)
    return arguments.hints.told(found, name) if found else ""


def _elsewhere(package: str, name: str) -> str:
    """A public name that is in another package, or that differs in case and underscores alone."""
    places = [(of, names) for of in (package, *_PUBLIC, *_GENERAL) if (names := _names(of))]
    alike = [(of, {_bare(n): n for n in names}) for of, names in places]
    exact = (".".join(["dt", *of.split("."), name]) for of, names in places if name in names)
    close = (
        ".".join(["dt", *of.split("."), bare[_bare(name)]])
        for of, bare in alike
        if _bare(name) in bare
    )
    return next((found.replace("..", ".") for found in (*exact, *close)), "")


def _names(package: str) -> list[str]:
    """The public names of a package of `dt`, or of `dt` itself."""
    place: object = reduce(getattr, package.split(".") if package else (), dt)
    names: list[str] = getattr(place, "__all__", [])
    return names


def _bare(name: str) -> str:
    return name.replace("_", "").casefold()
