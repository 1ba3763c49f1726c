"""Lazy names of a package, imported at their first use and stored in the package.

So an import of dovetail takes no time for modules that most programs never use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec

from .compat.aliases import find_original
from .compat.hints import attribute_error, find_hint
from .public_names import publish


def late(package: str, module_by_name: Mapping[str, str]) -> Callable[[str], object]:
    """Build a package's `__getattr__`, which imports a name's module and stores the name."""
    public = package.replace(".functions.", ".")  # dt.random

    def fetch(name: str) -> object:
        """Import a name of the package and store it there. Raises: AttributeError with a hint."""
        if (original := find_original(package.rpartition(".")[2], name)) is not None:
            return getattr(sys.modules[package], original)
        if name not in module_by_name:
            hint = _find_name_hint(package, name)
            raise attribute_error(f"module {public!r}", name, hint)
        value: object = getattr(import_module(f".{module_by_name[name]}", package), name)
        if public != "dovetail.extend":  # whose `help` names its parts in 200 lines
            publish(public, [value])
        setattr(sys.modules[package], name, value)
        return value

    return fetch


def _find_name_hint(package: str, name: str) -> str:
    """Return a hint for the error about a name that a package lacks, "" for modules and dunders.

    Imports ask for `__path__`, and for a module before they load it: reading the hints would cost
    them 10 ms.
    """
    if name.startswith("__") or not name.isidentifier():
        return ""
    is_package = hasattr(sys.modules[package], "__path__")
    if is_package and find_spec(f"{package}.{name}") is not None:
        return ""
    return find_hint("functions", f"{package.rpartition('.')[2]}.{name}")
