"""Names of a package, and modules, that are imported at their first use.

So an import of dovetail takes no time for modules that most programs never use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from .compat.aliases import find_original
from .compat.hints import attribute_error, find_hint
from .public_names import publish


def late(package: str, module_by_name: Mapping[str, str]) -> Callable[[str], object]:
    """Build a package's `__getattr__`, which imports a name's module and stores the name.

    - `module_by_name`: the module of each name, in `package`; "module:source" for a name that the
      module calls `source`.
    """
    public = package.replace(".functions.", ".")  # dt.random

    def fetch(name: str) -> object:
        """Import a name of the package and store it there. Raises: AttributeError with a hint."""
        if (original := find_original(package.rpartition(".")[2], name)) is not None:
            return getattr(sys.modules[package], original)
        if name not in module_by_name:
            hint = _find_name_hint(package, name)
            raise attribute_error(f"module {public!r}", name, hint)
        module, _, source = module_by_name[name].partition(":")
        value: object = getattr(import_module(f".{module}", package), source or name)
        if public != "dovetail.extend":  # whose `help` names its parts in 200 lines
            publish(public, [value])
        setattr(sys.modules[package], name, value)
        return value

    return fetch


_lazy_modules: list[LazyModule] = []  # all of them


class LazyModule:
    """A module that is imported when one of its attributes is first used.

    Write it below `if TYPE_CHECKING: from . import name`, so that type checkers see the module.

    >>> decimal = LazyModule("decimal")
    >>> decimal.Decimal("1.5")
    Decimal('1.5')
    """

    def __init__(self, name: str, package: str | None = None) -> None:
        """Take the arguments of `importlib.import_module`."""
        self._name, self._package = name, package
        self._module: ModuleType | None = None
        _lazy_modules.append(self)

    def load(self) -> ModuleType:
        """Return the module; import it if need be."""
        if self._module is None:
            self._module = import_module(self._name, self._package)
        return self._module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also asked of copies that have no attributes yet
            raise AttributeError(name)
        return getattr(self.load(), name)


def load_lazy_modules() -> None:
    """Import the modules of this library that are used lazily and that no one has used yet."""
    for module in _lazy_modules:
        with suppress(ImportError):  # of an optional module that no one has used
            module.load()


class LazyFunctions:
    """A module whose functions can be stored before it is imported; the first call imports it."""

    def __init__(self, name: str, package: str | None = None) -> None:
        """Take the arguments of `importlib.import_module`."""
        self._module = LazyModule(name, package)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **options: getattr(self._module, name)(*args, **options)


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
