"""Error cells: kernels store an out-of-range index in a cell, which the host reads later.

A kernel that loads indices masks those out of range, and stores such an index in its cell. On an
asynchronous device the host does not wait for the cell: tensors computed from these indices carry
the `Check`, and so do tensors computed from them. A read of such a tensor settles its checks and
raises the error, each time. On other devices, and before any write in place, checks are settled at
once.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from ..argument_checks import shown
from ..errors import IndexOutOfRange, OutOfMemoryError
from ..locks import Lock
from ..settings import flags
from .interface import Backend, Handle, StreamHandle

if TYPE_CHECKING:
    from ..memory import Storage
    from ..memory.tracing.stacktrace import Line

CELLS = 256  # unsettled checks per stream; one more settles them
WIDTH = 8  # bytes of a cell: the bad index
PROMPT = 8  # cells for one synchronous launch


class Asked(NamedTuple):
    """The purpose of an index: the public name of the op, the indexed axis and its size.

    If the size is 0, any launch reads a bad index. If it is -1, the kernel decides.
    """

    op: str
    axis: int
    size: int


def out_of_range(asked: Asked, index: int, line: Line | None = None) -> IndexOutOfRange:
    """Create the error of a bad index; `line`: the user's line of a deferred op."""
    of = "" if line is None else f" (asked for at {line})"
    return IndexOutOfRange(
        f"{asked.op}: {shown(index)} is out of range for axis {asked.axis} of size "
        f"{max(asked.size, 0)}{of}"
    )


class Fault:
    """An index out of range. `told`: True if its error was raised."""

    __slots__ = ("asked", "index", "line", "told")

    def __init__(self, asked: Asked, index: int, line: Line | None) -> None:
        self.asked, self.index, self.line, self.told = asked, index, line, False

    def error(self) -> IndexOutOfRange:
        """Return the error, and mark it as raised."""
        self.told = True
        return out_of_range(self.asked, self.index, self.line)


class Prompt(NamedTuple):
    """Cells that the host can read as soon as a launch has returned; they belong to no stream."""

    handle: Handle
    cells: ctypes.Array[ctypes.c_int64]


class Check:
    """The bounds check of the indices that one launch reads for one purpose.

    The result is unknown until it is `settled`. `fault`: one of the indices out of range, if any.
    `line`: the user's line.
    """

    __slots__ = (
        "__weakref__",
        "asked",
        "cell",
        "fault",
        "faults",
        "line",
        "number",
        "queued",
        "settled",
        "stream",
    )

    def __init__(self, faults: Faults, asked: Asked, stream: StreamHandle, cell: int) -> None:
        self.faults, self.asked, self.stream, self.cell = faults, asked, stream, cell
        self.number = next(_numbers)
        self.queued = self.settled = False
        self.fault: Fault | None = None
        self.line: Line | None = None

    def settle(self) -> Fault | None:
        """Wait for the stream if necessary; return the fault, if any."""
        if not self.settled:
            self.faults.settle(self.stream)
        return self.fault


_numbers = count()
_flags = Lock()  # guards `flags.tainted` and the two variables below
_bad: list[ref[Check]] = []  # failed checks that may still be carried by a tensor
_pending = 0  # devices with unsettled checks


class Faults:
    """The error cells of one device. `pending`: True if any check is unsettled."""

    __slots__ = (
        "__weakref__",
        "_backend",
        "_cells",
        "_free",
        "_lock",
        "_may_be_prompt",
        "_prompt",
        "_untold",
        "_waiting",
        "pending",
    )

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._cells: dict[StreamHandle, Handle] = {}  # stream -> raw memory, which is never freed
        self._free: dict[StreamHandle, list[int]] = {}  # stream -> cells, all 0
        self._waiting: dict[StreamHandle, list[Check]] = {}  # stream -> unsettled checks
        self._untold: deque[Fault] = deque(maxlen=CELLS)
        self._lock = Lock()
        self.pending = False
        self._may_be_prompt = True
        self._prompt: Prompt | None = None

    def prompt(self) -> Prompt | None:
        """Return cells for synchronous launches.

        None if the host cannot read the memory, or launches return before the work is done.
        """
        if self._prompt is None and self._may_be_prompt and not self._backend.asynchronous:
            handle = self._allocate(PROMPT * WIDTH)
            address = self._backend.host_address(handle, 0)
            if address is None:
                self._may_be_prompt = False
                self._backend.free(handle, PROMPT * WIDTH)
            else:
                self._prompt = Prompt(handle, (ctypes.c_int64 * PROMPT).from_address(address))
        return self._prompt

    def check(self, asked: Asked, stream: StreamHandle) -> Check:
        """Create a check for a launch on `stream`; the caller sets `queued` after the launch."""
        with self._lock:
            if stream not in self._cells:
                handle = self._allocate(CELLS * WIDTH)
                self._clear(handle, 0, CELLS, stream)
                self._free[stream] = [*reversed(range(CELLS))]
                self._cells[stream] = handle  # last, so that an interrupt before it leaves no trace
            if not self._free[stream]:
                self.settle(stream)
            if not self._free[stream]:
                self._reclaim(stream)
            new_check = Check(self, asked, stream, self._free[stream].pop())
            self._waiting.setdefault(stream, []).append(new_check)
            self._note((), True)
            return new_check

    def _reclaim(self, stream: StreamHandle) -> None:
        """Free the cells of launches that an interrupt prevented."""
        self._backend.synchronize(stream)
        for check in self._waiting.get(stream, ()):
            check.queued = True
        self.settle(stream)
        self._free[stream] = [*reversed(range(CELLS))]

    def place(self, check: Check) -> tuple[Handle, int]:
        """Return handle and byte offset of a check's cell."""
        return self._cells[check.stream], check.cell * WIDTH

    def settle(self, stream: StreamHandle) -> None:
        """Wait for `stream`, and settle every check queued there."""
        with self._lock:
            waiting = self._waiting.get(stream, ())
            ready = [c for c in waiting if c.queued]
            if not ready:
                return
            handle = self._cells[stream]
            cell_bytes = bytearray((max(c.cell for c in ready) + 1) * WIDTH)
            self._backend.copy_out(memoryview(cell_bytes), handle, 0, stream)
            cells = memoryview(cell_bytes).cast("q")
            for c in ready:
                index = cells[c.cell]
                if (
                    index or c.asked.size == 0
                ):  # along an axis of size 0 even index 0 is out of range
                    c.fault = Fault(c.asked, index, c.line)
                if index:
                    self._clear(handle, c.cell, 1, stream)
            for c in ready:
                c.settled = True
            bad = [c for c in ready if c.fault is not None]
            self._waiting[stream] = [c for c in waiting if not c.settled]
            self._free[stream] += [
                c.cell for c in ready
            ]  # last, so that no cell belongs to two checks
            self._untold += [c.fault for c in bad if c.fault is not None]
            self._note(bad, any(self._waiting.values()))

    def _note(self, bad: Sequence[Check], pending: bool) -> None:
        global _pending
        with _flags:
            _bad.extend(ref(c) for c in bad)
            _pending += pending - self.pending
            self.pending = pending
            _retaint()

    def _allocate(self, nbytes: int) -> Handle:
        try:
            return self._backend.allocate(nbytes)
        except MemoryError as error:
            what = (
                f"{self._backend.info.type} refused {nbytes} bytes, in which bad indices are noted"
            )
            raise OutOfMemoryError(what) from error

    def settle_all(self) -> None:
        """Settle the checks of every stream."""
        for stream in tuple(self._waiting):
            self.settle(stream)

    def report(self) -> None:
        """Raise IndexOutOfRange, once, if there are faults without a raised error."""
        with self._lock:
            untold = [f for f in self._untold if not f.told]
            self._untold.clear()
        if untold:
            raise untold[0].error()

    def _clear(self, handle: Handle, first: int, cells: int, stream: StreamHandle) -> None:
        zeros = memoryview(bytes(cells * WIDTH))
        self._backend.copy_in(handle, first * WIDTH, zeros, stream)


def _retaint() -> None:
    _bad[:] = [r for r in _bad if r() is not None]
    flags.tainted = _pending > 0 or len(_bad) > 0


def carried(storages: Iterable[Storage]) -> tuple[Check, ...]:
    """Return the failed and the unsettled checks of values computed from these storages."""
    checks = {c: None for s in storages for c in s.checks if c.fault or not c.settled}
    if not checks:
        with _flags:  # tensors with failed checks may be gone
            _retaint()
    return tuple(checks)


def demand(checks: Sequence[Check]) -> None:
    """Settle the checks. Raises: IndexOutOfRange, for the first launch that failed."""
    faults = [(c.number, fault) for c in checks if (fault := c.settle()) is not None]
    for _, fault in faults:
        fault.told = True
    if faults:
        raise min(faults, key=itemgetter(0))[1].error()


def look(storage: Storage) -> None:
    """Settle the checks of a storage before a read.

    Raises: IndexOutOfRange if the values depend on an index out of range.
    """
    if storage.checks:
        demand(storage.checks)
        storage.checks = ()
