"""Detection of forks: a driver's threads do not survive in a child process."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable

from ..errors import DeviceError

_EXIT_FUNCTIONS = ("_exit", "fflush")
_registered_pid = 0  # the process that has registered its end


class Process:
    """The process that opened a device.

    `alive`: True in that process, False in a child by fork().

    - `name`: the name of the device, for errors.
    - `driver`: the name of the driver, for errors.
    - `left`: a function without arguments, called once in a child; None calls nothing.
    """

    def __init__(self, name: str, driver: str, left: Callable[[], object] | None = None) -> None:
        self.alive, self.name, self._on_fork = True, name, left
        self.advice = (
            f"{driver} does not work in a child of fork(): start processes that use it with "
            'multiprocessing.get_context("spawn")'
        )
        mine = weakref.ref(self)  # hooks cannot be unregistered
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: _mark_forked(mine()))

    def check(self) -> None:
        """Raise DeviceError in a child of fork(), because most drivers would wait for ever."""
        if not self.alive:
            raise DeviceError(f"{self.name} was opened before a fork(); {self.advice}")


def _mark_forked(process: Process | None) -> None:
    """Mark a process object, if alive, as forked; call its hook."""
    if process is not None and process.alive:
        process.alive = False
        if process._on_fork is not None:
            process._on_fork()


def end_without_driver() -> None:
    """Register exit handlers that end this process without the driver's destructors.

    A hook of `Process`, for drivers whose destructors would wait for threads that do not exist:
    Intel's runtime for OpenCL does so for its queues. Python has ended by then; C's files are
    flushed. Exit handlers of other C libraries are skipped, too.
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
