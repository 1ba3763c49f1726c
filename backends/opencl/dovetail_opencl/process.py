"""Whether this is the process that opened a device: a driver's threads do not survive a fork."""

from __future__ import annotations

import ctypes
import os
import weakref

from dovetail.extend import DeviceError, DeviceInfo


class Process:
    """The process that opened a device. `alive`: this is it, and no child of it by fork()."""

    def __init__(self, info: DeviceInfo) -> None:
        self.alive, self.name = True, f"{info.type}:{info.index} ({info.name})"
        mine = weakref.ref(self)  # hooks cannot be taken back
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: _left(mine()))

    def check(self) -> None:
        """Raises: DeviceError in a child, where most drivers would wait for ever."""
        if not self.alive:
            raise DeviceError(
                f"{self.name} was opened before a fork(), and OpenCL does not work in the child: "
                'start processes that use it with multiprocessing.get_context("spawn")'
            )


def _left(process: Process | None) -> None:
    if process is not None and process.alive:
        process.alive = False
        _end_without_driver()


_ending_in = 0  # the process that will


def _end_without_driver() -> None:
    """Has this process end without the driver's destructors, which would wait for threads that are
    not here: Intel's runtime does so for its queues. Python has ended by then; C's files are
    flushed. What other C libraries do at exit is left out, too."""
    global _ending_in
    libc = ctypes.CDLL(None)
    if _ending_in != os.getpid() and hasattr(libc, "on_exit"):  # glibc's: it is told the status
        _ending_in = os.getpid()
        address = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p) for name in _LAST}
        libc.on_exit(address["_exit"], None)
        libc.__cxa_atexit(address["fflush"], None, None)  # the last one registered is the first


_LAST = ("_exit", "fflush")
