"""The pool as threadpoolctl sees it: in `threadpool_info()`, and within `threadpool_limits`.

threadpoolctl finds pools by the names of loaded libraries. This one lives in generated code, which
is in no library, and so stands for LLVM's, which is loaded wherever the backend is open. It is
never imported here: whoever has it is offered the pool.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol
from weakref import WeakSet

from .pool import MOST


class Threaded(Protocol):
    """What has threads to count and to set."""

    def get_num_threads(self) -> int:
        """How many there are."""
        ...

    def set_num_threads(self, n: int) -> None:
        """Sets how many there are."""
        ...


_pools: WeakSet[Any] = WeakSet()  # of the backends that are open: there is one, but in tests
_done = False


def offer(pool: Threaded) -> None:
    """Tells threadpoolctl of a pool, if it is imported; of the class once, of further pools too."""
    global _done
    _pools.add(pool)
    # one of before version 3.2 has no `register`, nor has one that is being imported
    register = getattr(sys.modules.get("threadpoolctl"), "register", None)
    if register is not None and not _done:
        _done = True
        register(_controller(sys.modules["threadpoolctl"]))


def _controller(threadpoolctl: Any) -> type:
    class Controller(threadpoolctl.LibController):  # type: ignore[misc]  # of a module unknown here
        """Counts and sets the threads of the device cpu."""

        user_api = internal_api = "dovetail"
        filename_prefixes = ("libllvmlite", "llvmlite")

        def get_num_threads(self) -> int:
            return max((pool.get_num_threads() for pool in _pools), default=1)

        def set_num_threads(self, num_threads: int) -> None:
            for pool in _pools:
                pool.set_num_threads(min(max(num_threads, 1), MOST))

        def get_version(self) -> None:
            """None: the library that is named is not dovetail's."""

    return Controller
