"""Names of a package that are fetched when somebody first asks for them, and then are its own.

An import of dovetail takes no time for what most programs never use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def late(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for a package. `homes`: the module within it that each name is made in."""

    def fetch(name: str) -> object:
        if name not in homes:
            known = import_module(".familiar", __package__).of(package.rpartition(".")[2], name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{known}")
        found: object = getattr(import_module(f".{homes[name]}", package), name)
        setattr(sys.modules[package], name, found)
        return found

    return fetch
