"""Memory of one GPU, page-locked memory of the host, and copies between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import driver as cuda

PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: page-locked for every GPU


class Memory:
    """The memory of one device. A handle is an address; `enter` makes the context current."""

    def __init__(self, enter: Callable[[], None]) -> None:
        self.enter = enter

    def allocate(self, nbytes: int) -> int:
        self.enter()
        doing = f"cuMemAlloc of {nbytes} bytes"
        return int(cuda.answer(cuda.driver.cuMemAlloc(nbytes), doing))

    def free(self, address: int) -> None:
        if cuda.usable():  # a child of fork() has nothing to give back
            self.enter()
            cuda.answer(cuda.driver.cuMemFree(address), "cuMemFree")

    def copy_in(self, to: int, source: memoryview, stream: int) -> None:
        """Waits, since the driver may read even ordinary memory later, where the device can."""
        self.queue_in(to, source, stream)
        self.wait(stream)

    def copy_out(self, target: memoryview, source: int, stream: int) -> None:
        self.queue_out(target, source, stream)
        self.wait(stream)

    def queue_in(self, to: int, source: memoryview, stream: int) -> None:
        if source.nbytes:
            self.enter()
            copied = cuda.driver.cuMemcpyHtoDAsync(to, address(source), source.nbytes, stream)
            cuda.answer(copied, f"copying {source.nbytes} bytes to the device")

    def queue_out(self, target: memoryview, source: int, stream: int) -> None:
        if target.nbytes:
            self.enter()
            copied = cuda.driver.cuMemcpyDtoHAsync(address(target), source, target.nbytes, stream)
            cuda.answer(copied, f"copying {target.nbytes} bytes from the device")

    def wait(self, stream: int) -> None:
        self.enter()
        cuda.answer(cuda.driver.cuStreamSynchronize(stream), "waiting for a stream")

    def allocate_pinned(self, nbytes: int) -> int:
        self.enter()
        made = cuda.driver.cuMemHostAlloc(nbytes, PORTABLE)
        return int(cuda.answer(made, f"cuMemHostAlloc of {nbytes} bytes"))

    def free_pinned(self, address: int) -> None:
        if cuda.usable():
            self.enter()
            cuda.answer(cuda.driver.cuMemFreeHost(address), "cuMemFreeHost")


def address(memory: memoryview) -> int:
    """Where the host keeps these bytes."""
    return int(np.frombuffer(memory, np.uint8).ctypes.data)
