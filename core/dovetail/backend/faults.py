"""Error cells: kernels store an out-of-range index in a cell, which the host reads later.

A kernel that loads indices masks those out of range, and stores such an index in its cell. On an
asynchronous device the host does not wait for the cell: tensors computed from these indices carry
the `IndexCheck`, and so do tensors computed from them. A read of such a tensor settles its checks
and raises the error, each time. On other devices, and before any write in place, checks are settled
at once.
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
from ..errors import OutOfMemoryError, OutOfRangeError
from ..locks import Lock
from ..settings import flags
from .interface import Backend, Handle, StreamHandle

if TYPE_CHECKING:
    from ..memory import Storage
    from ..memory.tracing.stacktrace import Line

CELLS_PER_STREAM = 256  # unsettled checks per stream; one more settles them
CELL_BYTES = 8  # bytes of a cell: the bad index
HOST_CELLS_MAX = 8  # cells for one synchronous launch


class IndexPurpose(NamedTuple):
    """The purpose of an index: the public name of the op, the indexed axis and its size.

    If the size is 0, any launch reads a bad index. If it is -1, the kernel decides. If the axis is
    -1, `op` is the function and the rule that a bad index breaks.
    """

    op: str
    axis: int
    size: int


def out_of_range_error(
    purpose: IndexPurpose, index: int, line: Line | None = None
) -> OutOfRangeError:
    """Create the error of a bad index; `line`: the user's line of a deferred op."""
    origin = "" if line is None else f" (requested at {line})"
    if purpose.axis == -1:
        return OutOfRangeError(f"{purpose.op}, got {shown(index)}{origin}")
    return OutOfRangeError(
        f"{purpose.op}: {shown(index)} is out of range for axis {purpose.axis} of size "
        f"{max(purpose.size, 0)}{origin}"
    )


class IndexFault:
    """An index out of range. `is_reported`: True if its error was raised."""

    __slots__ = ("index", "is_reported", "line", "purpose")

    def __init__(self, purpose: IndexPurpose, index: int, line: Line | None) -> None:
        self.purpose, self.index, self.line, self.is_reported = purpose, index, line, False

    def error(self) -> OutOfRangeError:
        """Build the error, and mark the fault as reported."""
        self.is_reported = True
        return out_of_range_error(self.purpose, self.index, self.line)


class HostCells(NamedTuple):
    """Cells that the host can read as soon as a launch has returned; they belong to no stream."""

    handle: Handle
    cells: ctypes.Array[ctypes.c_int64]


class IndexCheck:
    """The bounds check of the indices that one launch reads for one purpose.

    The result is unknown until it is `settled`. `fault`: one of the indices out of range, if any.
    `line`: the user's line. `refused`: True if the launch failed, and read no index.
    """

    __slots__ = (
        "__weakref__",
        "cell",
        "fault",
        "faults",
        "line",
        "number",
        "purpose",
        "queued",
        "refused",
        "settled",
        "stream",
    )

    def __init__(
        self, faults: ErrorCells, purpose: IndexPurpose, stream: StreamHandle, cell: int
    ) -> None:
        self.faults, self.purpose, self.stream, self.cell = faults, purpose, stream, cell
        self.number = next(_numbers)
        self.queued = self.refused = self.settled = False
        self.fault: IndexFault | None = None
        self.line: Line | None = None

    def settle(self) -> IndexFault | None:
        """Wait for the stream if the result is not known; return the fault, or None."""
        if not self.settled:
            self.faults.settle(self.stream)
        return self.fault


_numbers = count()
_flags_lock = Lock()  # guards `flags.has_unresolved_checks` and the two variables below
_failed_checks: list[ref[IndexCheck]] = []  # failed checks that may still be carried by a tensor
_pending_devices = 0  # devices with unsettled checks


class ErrorCells:
    """The error cells of one device. `pending`: True if any check is unsettled."""

    __slots__ = (
        "__weakref__",
        "_backend",
        "_cells",
        "_free",
        "_host_cells",
        "_lock",
        "_may_have_host_cells",
        "_unreported",
        "_unsettled",
        "pending",
    )

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._cells: dict[StreamHandle, Handle] = {}  # stream -> raw memory, which is never freed
        self._free: dict[StreamHandle, list[int]] = {}  # stream -> cells, all 0
        self._unsettled: dict[StreamHandle, list[IndexCheck]] = {}  # stream -> unsettled checks
        self._unreported: deque[IndexFault] = deque(maxlen=CELLS_PER_STREAM)
        self._lock = Lock()
        self.pending = False
        self._may_have_host_cells = True
        self._host_cells: HostCells | None = None

    def host_cells(self) -> HostCells | None:
        """Return cells that the host can read after a synchronous launch, or None; allocate once.

        None if the host cannot read the memory, or launches return before the work is done.
        """
        if (
            self._host_cells is None
            and self._may_have_host_cells
            and not self._backend.asynchronous
        ):
            handle = self._allocate(HOST_CELLS_MAX * CELL_BYTES)
            address = self._backend.host_address(handle, 0)
            if address is None:
                self._may_have_host_cells = False
                self._backend.free(handle, HOST_CELLS_MAX * CELL_BYTES)
            else:
                self._host_cells = HostCells(
                    handle, (ctypes.c_int64 * HOST_CELLS_MAX).from_address(address)
                )
        return self._host_cells

    def create_check(self, purpose: IndexPurpose, stream: StreamHandle) -> IndexCheck:
        """Register and return a check with a zeroed cell; wait for `stream` if no cell is free.

        The caller sets `queued` after the launch.
        """
        with self._lock:
            if stream not in self._cells:
                handle = self._allocate(CELLS_PER_STREAM * CELL_BYTES)
                self._clear(handle, 0, CELLS_PER_STREAM, stream)
                self._free[stream] = [*reversed(range(CELLS_PER_STREAM))]
                self._cells[stream] = handle  # last, so that an interrupt before it leaves no trace
            if not self._free[stream]:
                self.settle(stream)
            if not self._free[stream]:
                self._reclaim(stream)
            new_check = IndexCheck(self, purpose, stream, self._free[stream].pop())
            self._unsettled.setdefault(stream, []).append(new_check)
            self._record_failures((), True)
            return new_check

    def _reclaim(self, stream: StreamHandle) -> None:
        """Settle all checks of the stream, and mark all its cells free, after an interrupt."""
        self._backend.synchronize(stream)
        for check in self._unsettled.get(stream, ()):
            check.queued = True
        self.settle(stream)
        self._free[stream] = [*reversed(range(CELLS_PER_STREAM))]

    def cell_location(self, check: IndexCheck) -> tuple[Handle, int]:
        """Return handle and byte offset of a check's cell."""
        return self._cells[check.stream], check.cell * CELL_BYTES

    def settle(self, stream: StreamHandle) -> None:
        """Settle the queued checks of `stream`, if any: wait, read and free cells, store faults."""
        with self._lock:
            waiting = self._unsettled.get(stream, ())
            ready = [c for c in waiting if c.queued]
            if not ready:
                return
            handle = self._cells[stream]
            cell_bytes = bytearray((max(c.cell for c in ready) + 1) * CELL_BYTES)
            self._backend.copy_out(memoryview(cell_bytes), handle, 0, stream)
            cells = memoryview(cell_bytes).cast("q")
            for c in ready:
                index = cells[c.cell]
                # along an axis of size 0 even index 0 is out of range
                if index or (c.purpose.size == 0 and not c.refused):
                    c.fault = IndexFault(c.purpose, index, c.line)
                if index:
                    self._clear(handle, c.cell, 1, stream)
            for c in ready:
                c.settled = True
            bad = [c for c in ready if c.fault is not None]
            self._unsettled[stream] = [c for c in waiting if not c.settled]
            self._free[stream] += [
                c.cell for c in ready
            ]  # last, so that no cell belongs to two checks
            self._unreported += [c.fault for c in bad if c.fault is not None]
            self._record_failures(bad, any(self._unsettled.values()))

    def _record_failures(self, failed_checks: Sequence[IndexCheck], pending: bool) -> None:
        """Add failed checks to the global list, and update `pending` and the flag."""
        global _pending_devices
        with _flags_lock:
            _failed_checks.extend(ref(c) for c in failed_checks)
            _pending_devices += pending - self.pending
            self.pending = pending
            _update_flag()

    def _allocate(self, nbytes: int) -> Handle:
        """Allocate memory for cells; raise OutOfMemoryError for the backend's MemoryError."""
        try:
            return self._backend.allocate(nbytes)
        except MemoryError as error:
            what = f"{self._backend.info.type} could not allocate {nbytes} bytes for index checks"
            raise OutOfMemoryError(what) from error

    def settle_all(self) -> None:
        """Wait for every stream with unsettled checks, and settle these."""
        for stream in tuple(self._unsettled):
            self.settle(stream)

    def raise_unreported(self) -> None:
        """Forget all recent faults; raise OutOfRangeError if one was not reported."""
        with self._lock:
            untold = [f for f in self._unreported if not f.is_reported]
            self._unreported.clear()
        if untold:
            raise untold[0].error()

    def _clear(self, handle: Handle, first: int, cells: int, stream: StreamHandle) -> None:
        """Write zeros into `cells` cells from cell `first`, in the order of the stream."""
        zeros = memoryview(bytes(cells * CELL_BYTES))
        self._backend.copy_in(handle, first * CELL_BYTES, zeros, stream)


def _update_flag() -> None:
    """Drop dead failed checks, and recompute `flags.has_unresolved_checks`; needs the lock."""
    _failed_checks[:] = [r for r in _failed_checks if r() is not None]
    flags.has_unresolved_checks = _pending_devices > 0 or len(_failed_checks) > 0


def inherited_checks(storages: Iterable[Storage]) -> tuple[IndexCheck, ...]:
    """Return the failed and the unsettled checks of values computed from these storages."""
    checks = {c: None for s in storages for c in s.checks if c.fault or not c.settled}
    if not checks:
        with _flags_lock:  # tensors with failed checks may be gone
            _update_flag()
    return tuple(checks)


def settle_checks(checks: Sequence[IndexCheck]) -> None:
    """Settle checks, and mark all faults reported. Raises: OutOfRangeError for the first launch."""
    faults = [(c.number, fault) for c in checks if (fault := c.settle()) is not None]
    for _, fault in faults:
        fault.is_reported = True
    if faults:
        raise min(faults, key=itemgetter(0))[1].error()


def settle_before_read(storage: Storage) -> None:
    """Settle and drop the checks of a storage before a read.

    Raises: OutOfRangeError if the values depend on an index out of range.
    """
    if storage.checks:
        settle_checks(storage.checks)
        storage.checks = ()
