"""The pool in threadpoolctl: in `threadpool_info()`, and limited by `threadpool_limits`.

threadpoolctl finds thread pools by the names of loaded libraries. The pool is found by LLVM's: that
is loaded whenever the backend is open, also where the pool is not compiled.
threadpoolctl is never imported here: the pool is registered if the user has imported it.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol
from weakref import WeakSet

from .pool import THREADS_MAX


class HasThreadCount(Protocol):
    """An object with a number of threads."""

    def get_num_threads(self) -> int:
        """Return the number of threads."""
        ...

    def set_num_threads(self, n: int) -> None:
        """Set the number of threads."""
        ...


_pools: WeakSet[Any] = WeakSet()  # of open backends: one, except in tests
_is_registered = False


def register(pool: HasThreadCount) -> None:
    """Add a pool, by a weak reference; register at threadpoolctl, once, if that is imported."""
    global _is_registered
    _pools.add(pool)
    # before version 3.2, and while it is being imported, it has no `register`
    register_class = getattr(sys.modules.get("threadpoolctl"), "register", None)
    if register_class is not None and not _is_registered:
        _is_registered = True
        register_class(_make_controller(sys.modules["threadpoolctl"]))


def _make_controller(threadpoolctl: Any) -> type:
    """Create the controller class that threadpoolctl registers."""

    class Controller(threadpoolctl.LibController):  # type: ignore[misc]  # of a module unknown here
        """The threads of all open backends."""

        user_api = internal_api = "dovetail"
        filename_prefixes = ("libllvmlite", "llvmlite")

        def get_num_threads(self) -> int:
            """Return the largest thread count of the open backends; 1 without any."""
            return max((pool.get_num_threads() for pool in _pools), default=1)

        def set_num_threads(self, num_threads: int) -> None:
            """Set the thread count of all open backends, clamped to 1..THREADS_MAX."""
            for pool in _pools:
                pool.set_num_threads(min(max(num_threads, 1), THREADS_MAX))

        def get_version(self) -> None:
            """Return None: the library that is named is not dovetail's."""

    return Controller
