"""Where classes and functions that are sent to worker processes come from.

`__main__` is another module there: it has what its file defines, and nothing where it has no file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing import process
from multiprocessing.reduction import ForkingPickler
from typing import Any

HINT = (
    'a script has its work below `if __name__ == "__main__":`, and what workers are sent (the data '
    "set, collate_fn, worker_init_fn) is defined above that line, or in a module"
)


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)


class _Noting(ForkingPickler):
    """Notes which classes and functions of `__main__` a pickle names."""

    def __init__(self) -> None:
        super().__init__(_Nowhere(), 5)
        self.found: dict[str, None] = {}

    def reducer_override(self, obj: Any) -> Any:
        if getattr(obj, "__module__", "") == "__main__" and hasattr(obj, "__qualname__"):
            self.found[obj.__qualname__] = None
        return NotImplemented


def of_main(sent: Any) -> list[str]:
    """The names of what `sent` takes from `__main__`; none where that cannot be found out."""
    noting = _Noting()
    try:
        noting.dump(sent)
    except Exception:  # of what may be sent only while a process starts, such as locks
        return []
    return [*noting.found]


def not_found_by(sent: Callable[[], Any]) -> str:
    """Why no worker process will find what `sent()` holds, as a sentence; "" where one may."""
    main: Any = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) is not None:
        return ""  # python -m NAME: imported by that name
    file = getattr(main, "__file__", None)
    if file is not None:
        if os.path.exists(os.path.join(process.ORIGINAL_DIR or "", file)):  # type: ignore[attr-defined]  # typeshed lacks it
            return ""
        return (
            f"this program was read from {file}, which worker processes cannot read again; write "
            "it to a file, or give num_workers=0"
        )
    names = of_main(sent())
    if not names:
        return ""
    return (
        f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} defined in this session, "
        "which worker processes, being new ones, cannot import; define what they are sent in a "
        "module (a file that is imported), or give num_workers=0"
    )
