"""Whether the hot path is compiled: recording, views, known graphs, the allocator's cache.

A module of the core with a `.pxd` beside its source is compiled where dovetail is built, if there
is a C compiler; where a `.pyx` stands there, that is compiled in place of the source. Without one,
and with DOVETAIL_PURE=1, the sources run as they are: the same results, the same errors, slower.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from .environment import flag

PACKAGE = __name__.partition(".")[0]


class Sources:
    """Finds the source of a module of the core where the compiled one would be found."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a source."""
        if not name.startswith(f"{PACKAGE}."):
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is None or not is_extension(found):
            return found
        return spec_from_file_location(name, source_of(found))


def is_extension(spec: ModuleSpec) -> bool:
    """Whether a module comes from machine code."""
    return (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))


def source_of(spec: ModuleSpec) -> Path:
    """The source that lies beside a compiled module."""
    origin = Path(spec.origin or "")
    return origin.with_name(f"{origin.name.partition('.')[0]}.py")


def modules() -> list[str]:
    """The modules in use that are compiled."""
    loaded = [(n, m) for n, m in list(sys.modules.items()) if n.startswith(f"{PACKAGE}.")]
    specs = [(n, getattr(m, "__spec__", None)) for n, m in loaded]
    return sorted(n for n, s in specs if s is not None and is_extension(s))


class Uncollected:
    """A context manager in which the garbage collector does not run.

    What makes modules or plans leaves little; to look through all objects of the process for it is
    4 % of the one and a third of the other. `is_kept`: what is made stays, so the collector need
    not look through it soon afterwards, either.
    """

    def __init__(self, is_kept: bool = False) -> None:
        self._is_kept = is_kept

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._collects:
            if self._is_kept and not gc.get_freeze_count():
                gc.freeze()  # to and from the permanent generation: all are in the oldest now
                gc.unfreeze()
            gc.enable()


def config() -> dict[str, object]:
    """What `dt.__config__` says: how this dovetail was built, and what of it is in use."""
    found = modules()
    return {
        "hot_path": "compiled" if found else "python",
        "compiled_modules": found,
        "python": sys.version.partition(" ")[0],
        "platform": sys.platform,
    }


if flag("DOVETAIL_PURE"):
    sys.meta_path.insert(0, Sources)
