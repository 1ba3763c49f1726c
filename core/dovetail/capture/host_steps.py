"""Host routines in a replay, on devices whose memory the host can access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..backend.interface import Replay
from ..backend.streams import wait_for_stream
from ..engine.traced_numbers import Env
from ..errors import LinAlgError
from ..lru_cache import LRUCache
from ..memory.pointer import StreamHandle
from ..ops.host_routines import HostCall
from ..plugins.device_handle import OpenedDevice
from ..tensor.host_read import HostMemory, array_over

if TYPE_CHECKING:
    from .program import StridedMemory
    from .replay import Addresses

CACHED_ARRAYS_MAX = 64  # cached arrays: a loop alternates between two buffers


class HostReplay:
    """A host routine over arrays that share the device's memory.

    The arrays are cached by place, because to make one takes a microsecond. `run` is the fallback
    for memory that the host cannot access.
    """

    __slots__ = ("arrays", "call", "inputs", "line", "opened", "results", "run")

    def __init__(
        self,
        opened: OpenedDevice,
        call: HostCall,
        inputs: Sequence[StridedMemory],
        results: Sequence[StridedMemory],
        line: str | None,
        run: Replay,
    ) -> None:
        self.opened, self.call, self.line, self.run = opened, call, line, run
        self.inputs, self.results = inputs, results
        self.arrays: LRUCache[tuple[int, int], np.ndarray] = LRUCache(CACHED_ARRAYS_MAX)

    def __call__(self, at: Addresses, env: Env, stream: StreamHandle) -> None:
        wait_for_stream(self.opened, stream)
        if self.call.checks_results:
            is_good = self._array(0, self.inputs[0], at)
            if is_good is not None and is_good:
                return
        memory_arrays = [self._array(k, x, at) for k, x in enumerate((*self.inputs, *self.results))]
        arrays, n = [array for array in memory_arrays if array is not None], len(self.inputs)
        if len(arrays) < len(memory_arrays):
            self.run(at, env, stream)
            return
        try:
            results = self.call(arrays[:n])
        except LinAlgError as error:
            raise add_line(error, self.line) from None
        if results:
            for array, values in zip(arrays[n:], results, strict=True):
                array[...] = values

    def _array(self, k: int, x: StridedMemory, at: Addresses) -> np.ndarray | None:
        """Return operand or result `k` as an array over its memory, cached; None if unreachable."""
        slot, offset = x.place
        address = self.opened.host_address(at[2 * slot], at[2 * slot + 1] + offset)
        if address is None:
            return None
        array = self.arrays.find((k, address))
        if array is None:
            array = self.arrays[k, address] = array_at(address, x, k >= len(self.inputs))
        return array


def add_line(error: LinAlgError, line: str | None) -> LinAlgError:
    """Add the user's line of the routine to an error of a replay, and return the error."""
    if line is not None:
        error.args = (f"{error} (requested at {line})",)
    return error


def array_at(address: int, x: StridedMemory, writable: bool) -> np.ndarray:
    """Return an operand or a result as an array view of host memory at `address`."""
    memory = HostMemory(address, x.nbytes, None, writable)
    return array_over(memory, x.shape, np.dtype(x.dtype.__numpy_dtype__), 0, None)
