"""Error cells: where kernels say that an index was out of range, for the host to look at later.

A kernel that loads indices masks what is out of range, and stores 1 into its cell. On a device
whose launches return before the work is done the cells of a stream are looked at when the host
waits for it anyway; elsewhere, and before anything is written in place, at once.
"""

from __future__ import annotations

import threading
from typing import Any

from .backend import Backend
from .device import Device
from .errors import IndexOutOfRange, OutOfMemoryError

CELLS = 256  # launches with checked indices on one stream, before the host looks in between
WIDTH = 8  # bytes of a cell


class Faults:
    """The error cells of one device. `pending`: whether any launch has not been looked at."""

    __slots__ = ("_backend", "_cells", "_device", "_lock", "_names", "pending")

    def __init__(self, backend: Backend, device: Device) -> None:
        self._backend, self._device = backend, device
        self._cells: dict[Any, Any] = {}  # stream -> raw memory, which lives as long as the device
        self._names: dict[Any, list[str]] = {}  # stream -> the ops whose cells are in use
        self._lock = threading.Lock()
        self.pending = False

    def cell(self, name: str, stream: Any) -> tuple[Any, int]:
        """Handle and byte offset of a cell, 0 now, for a launch on `stream` on behalf of op `name`.

        Raises: IndexOutOfRange for an earlier launch, where all cells were in use.
        """
        if len(self._names.get(stream, ())) == CELLS:
            self.settle(stream)
        with self._lock:
            handle = self._cells.get(stream)
            if handle is None:
                handle = self._allocate(CELLS * WIDTH)
                self._clear(handle, CELLS, stream)  # before anybody may find it
                self._cells[stream] = handle
            names = self._names.setdefault(stream, [])
            names.append(name)
            self.pending = True
            return handle, (len(names) - 1) * WIDTH

    def settle(self, stream: Any) -> None:
        """Returns if all is well on `stream`, after what has been queued there.

        Raises: IndexOutOfRange, naming the first op that met a bad index.
        """
        with self._lock:
            names = self._names.get(stream)
            if names:
                handle, found = self._cells[stream], bytearray(len(names) * WIDTH)
                self._backend.copy_out(memoryview(found), handle, 0, stream)
                if any(found):
                    self._clear(handle, len(names), stream)
            self._names.pop(stream, None)  # last: an interrupt before has it looked at again
            self.pending = bool(self._names)
            if not names or not any(found):
                return
        bad = next(n for i, n in enumerate(names) if any(found[i * WIDTH : (i + 1) * WIDTH]))
        raise IndexOutOfRange(
            f"{bad}: an index is out of range for the dimension that it indexes (on "
            f"{self._device}); valid ones are -n..n-1 for a dimension of size n"
        )

    def _allocate(self, nbytes: int) -> Any:
        try:
            return self._backend.allocate(nbytes)
        except MemoryError as error:
            what = f"{self._device} refused {nbytes} bytes, in which bad indices are noted"
            raise OutOfMemoryError(what) from error

    def settle_all(self) -> None:
        """`settle` for every stream."""
        for stream in tuple(self._names):
            self.settle(stream)

    def _clear(self, handle: Any, cells: int, stream: Any) -> None:
        self._backend.copy_in(handle, 0, memoryview(bytes(cells * WIDTH)), stream)
