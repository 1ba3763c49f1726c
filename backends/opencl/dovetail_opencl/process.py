"""Whether this is the process that opened a device: a driver's threads do not survive a fork."""

from __future__ import annotations

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
    if process is not None:
        process.alive = False
