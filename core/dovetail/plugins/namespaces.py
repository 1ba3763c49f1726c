"""Names of `dt` that are packages of their own, as `dt.nn` is: found by their entry points.

`dt.nn`, `from dovetail import nn` and `import dovetail.nn.functional as F` are one package, under
the name that it was installed by. Nothing is looked for before somebody asks for such a name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from ..memory.tracing.stacktrace import pass_over
from .entry import installed

GROUPS = "dovetail.namespaces.v"
GROUP = f"{GROUPS}1"
_ROOT = __name__.partition(".")[0]


if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # that module takes 6 % of `import dovetail`, and what it has is not needed
    Loader = MetaPathFinder = object


class _Same(Loader):
    """Loads a module that has another name as well."""

    def __init__(self, home: str) -> None:
        self.home = home

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        pass_over(self.home)
        found = import_module(self.home)
        self.spec = found.__spec__
        return found

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # which the import has changed


class _Within(MetaPathFinder):
    """Finds the modules of a namespace by their public names: before their files would be found."""

    def __init__(self, name: str, home: str) -> None:
        self.prefix, self.home = f"{name}.", home

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self.prefix):
            return None
        return ModuleSpec(fullname, _Same(f"{self.home}.{fullname.removeprefix(self.prefix)}"))


class Namespaces(MetaPathFinder):
    """Finds the namespaces that are installed: the last one asked for a name of `dt`."""

    def __init__(self) -> None:
        self._homes: dict[str, str] | None = None

    def homes(self) -> dict[str, str]:
        """The package of each namespace, by the name under which `dt` has it."""
        if self._homes is None:
            self._homes = {e.name: e.value for e in installed(GROUPS) if e.group == GROUP}
        return self._homes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        root, _, name = fullname.partition(".")
        if root != _ROOT or "." in name or name.startswith("_") or name not in self.homes():
            return None
        home = self.homes()[name]
        pass_over(home)  # its lines are not the user's
        sys.meta_path.insert(0, _Within(fullname, home))
        return ModuleSpec(fullname, _Same(home))

    def find(self, name: str) -> ModuleType | None:
        """The namespace of that name, imported; None where none is installed."""
        return import_module(f"{_ROOT}.{name}") if name in self.homes() else None


namespaces = Namespaces()
sys.meta_path.append(namespaces)
