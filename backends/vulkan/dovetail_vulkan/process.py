"""The end of a child of fork() without the driver, whose threads do not exist there."""

from __future__ import annotations

import ctypes
import os

_EXIT_FUNCTIONS = ("_exit", "fflush")
_registered_pid = 0  # the process that has registered its end


def end_without_driver() -> None:
    """Register exit handlers that end this process without the driver's destructors.

    They would wait for threads that do not exist: Intel's runtime does so for its queues. Python
    has ended by then; C's files are flushed. Exit handlers of other C libraries are skipped, too.
    """
    global _registered_pid
    libc = ctypes.CDLL(None)
    if _registered_pid != os.getpid() and hasattr(libc, "on_exit"):  # in glibc; it gets the status
        _registered_pid = os.getpid()
        address = {
            name: ctypes.cast(getattr(libc, name), ctypes.c_void_p) for name in _EXIT_FUNCTIONS
        }
        libc.on_exit(address["_exit"], None)
        libc.__cxa_atexit(address["fflush"], None, None)  # the last one registered is the first
