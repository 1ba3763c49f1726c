"""Checks that worker processes can import the classes and functions that are sent to them.

A worker imports the file of `__main__` again. It finds nothing that was defined in a session
without a file, such as a notebook.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing import process
from multiprocessing.reduction import ForkingPickler
from typing import Any

MAIN_GUARD_HINT = (
    'a script must do its work below `if __name__ == "__main__":`, and define the data set, '
    "collate_fn and worker_init_fn above that line or in a module"
)


class _NullFile:
    """A file that discards its content."""

    def write(self, data: Any) -> int:
        """Discard the data and return its length."""
        return len(data)


class _MainNameCollector(ForkingPickler):
    """A pickler that collects the names of classes and functions of `__main__`."""

    def __init__(self) -> None:
        super().__init__(_NullFile(), 5)
        self.names: dict[str, None] = {}

    def reducer_override(self, obj: Any) -> Any:
        """Record the name of an object of `__main__`; pickle it as usual."""
        if getattr(obj, "__module__", "") == "__main__" and hasattr(obj, "__qualname__"):
            self.names[obj.__qualname__] = None
        return NotImplemented


def main_names(obj: Any) -> list[str]:
    """Return the names in `__main__` that a pickle of `obj` uses; [] if it cannot be pickled."""
    collector = _MainNameCollector()
    try:
        collector.dump(obj)
    except Exception:  # some objects, such as locks, can be pickled only while a process starts
        return []
    return [*collector.names]


def explain_unimportable(get_obj: Callable[[], Any]) -> str:
    """Return why no worker can import the program or, in a session, `get_obj()`; or ""."""
    main: Any = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) is not None:
        return ""  # python -m NAME: imported by that name
    file = getattr(main, "__file__", None)
    if file is not None:
        if os.path.exists(os.path.join(process.ORIGINAL_DIR or "", file)):  # type: ignore[attr-defined]  # typeshed lacks it
            return ""
        return (
            f"this program was read from {file}, so worker processes cannot read it again; write "
            "it to a file, or pass num_workers=0"
        )
    names = main_names(get_obj())
    if not names:
        return ""
    return (
        f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} defined in this session, "
        "which worker processes cannot import; define the data set and its functions in a module "
        "(a file that is imported), or pass num_workers=0"
    )
