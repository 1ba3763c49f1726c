"""The state of the compiled hot path: recording, views, known graphs, the allocator's cache.

A module of the core with a `.pxd` beside its source is compiled when dovetail is built, if there
is a C compiler; if there is a `.pyx`, that is compiled in place of the source. Without one,
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

from .environment import read_flag

PACKAGE = __name__.partition(".")[0]


class SourceFinder:
    """An import finder that prefers a module's Python source to its compiled form."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module's Python source, or None outside of this package."""
        if not name.startswith(f"{PACKAGE}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not is_extension(spec):
            return spec
        return spec_from_file_location(name, source_of(spec))


def is_extension(spec: ModuleSpec) -> bool:
    """Return True if a module's origin is a compiled extension."""
    return (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))


def source_of(spec: ModuleSpec) -> Path:
    """Return the path of the Python source beside a compiled module."""
    origin = Path(spec.origin or "")
    return origin.with_name(f"{origin.name.partition('.')[0]}.py")


def modules() -> list[str]:
    """Return the sorted names of dovetail's compiled modules that are loaded."""
    loaded = [(n, m) for n, m in list(sys.modules.items()) if n.startswith(f"{PACKAGE}.")]
    specs = [(n, getattr(m, "__spec__", None)) for n, m in loaded]
    return sorted(n for n, s in specs if s is not None and is_extension(s))


class GcPause:
    """A context manager in which the garbage collector does not run.

    Building modules or plans leaves little garbage; a search through all objects of the process
    takes 4 % of the one and a third of the other. `is_kept`: the new objects stay, so the collector
    need not scan them soon afterwards, either.
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
    """Return `dt.__config__`: how this dovetail was built, and which parts are in use."""
    compiled = modules()
    return {
        "hot_path": "compiled" if compiled else "python",
        "compiled_modules": compiled,
        "python": sys.version.partition(" ")[0],
        "platform": sys.platform,
    }


if read_flag("DOVETAIL_PURE"):
    sys.meta_path.insert(0, SourceFinder)
