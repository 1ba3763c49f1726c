"""How a child of fork() ends: without the driver, whose threads are not there."""

from __future__ import annotations

import ctypes
import os

_LAST = ("_exit", "fflush")
_ending_in = 0  # the process that will


def end_without_driver() -> None:
    """Has this process end without the driver's destructors.

    They would wait for threads that are not here: Intel's runtime does so for its queues. Python
    has ended by then; C's files are flushed. What other C libraries do at exit is left out, too.
    """
    global _ending_in
    libc = ctypes.CDLL(None)
    if _ending_in != os.getpid() and hasattr(libc, "on_exit"):  # glibc's: it is told the status
        _ending_in = os.getpid()
        address = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p) for name in _LAST}
        libc.on_exit(address["_exit"], None)
        libc.__cxa_atexit(address["fflush"], None, None)  # the last one registered is the first
