"""The compiled hot path: recording, views, known graphs, the allocator's cache.

The modules of the core with a `.pxd` beside their source are compiled into one extension,
`_compiled`, when dovetail is built, if there is a C compiler; if there is a `.pyx`, that is
compiled in place of the source. Without the extension, and with DOVETAIL_PURE=1, the sources run
as they are: the same results, the same errors, slower.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any

from .environment import read_flag

COMPILED: frozenset[str] = frozenset()
"""The names of the modules that are imported from the extension."""
FOLDER = os.path.dirname(__file__)  # pathlib is imported later

if not read_flag("DOVETAIL_PURE"):
    try:
        _compiled: Any = import_module("._compiled", __package__)
    except ModuleNotFoundError:  # dovetail was built without a C compiler
        pass
    except ImportError as error:
        warnings.warn(f"the compiled modules cannot be loaded: {error}", stacklevel=2)
    else:
        COMPILED = _compiled.MODULES


class CompiledFinder:
    """A finder of compiled modules for Python's import, in `sys.meta_path`."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a compiled module, or None for another one."""
        if name not in COMPILED:
            return None
        loader = ExtensionFileLoader(name, _compiled.__file__)
        return spec_from_file_location(name, loader.path, loader=loader)


class CompiledFolderFinder(FileFinder):
    """A finder of modules for import hooks that go before `CompiledFinder`, as that of pytest.

    Such hooks ask `sys.path_hooks` for the modules in a folder, compiled or not.
    """

    @classmethod
    def create(cls, path: str) -> CompiledFolderFinder:
        """Return a finder for a folder of this package. Raises: ImportError for other paths."""
        if path != FOLDER and not path.startswith(FOLDER + os.sep):
            raise ImportError(f"CompiledFolderFinder: {path} is not in {FOLDER}")
        return cls(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceFileLoader, [".py"]))

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module; None if there is none."""
        return CompiledFinder.find_spec(fullname) or super().find_spec(fullname, target)


def modules() -> list[str]:
    """Return the sorted names of dovetail's compiled modules that are loaded."""
    loaded = ((name, sys.modules.get(name)) for name in COMPILED)
    return sorted(n for n, m in loaded if getattr(m, "__file__", "") == _compiled.__file__)


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
    return {
        "hot_path": "compiled" if COMPILED else "python",
        "compiled_modules": modules(),
        "python": sys.version.partition(" ")[0],
        "platform": sys.platform,
    }


if COMPILED:
    sys.meta_path.insert(0, CompiledFinder)
    sys.path_hooks.insert(0, CompiledFolderFinder.create)
    sys.path_importer_cache.pop(FOLDER, None)
