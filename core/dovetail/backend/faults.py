"""Error cells: where kernels say that an index was out of range, for the host to look at later.

A kernel that loads indices masks what is out of range, and stores such an index into its cell. On a
device whose launches return before the work is done nobody waits to learn of it: what is computed
from these indices carries the `Check`, and what is computed from that in turn. Whoever looks at
such a tensor settles the checks, and gets the error each time; nobody else does. Elsewhere, and
before anything is written in place, checks are settled at once.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from ..arguments import shown
from ..errors import IndexOutOfRange, OutOfMemoryError
from ..locks import Lock
from ..settings import flags
from .interface import Backend, Handle, StreamHandle

if TYPE_CHECKING:
    from ..memory import Storage
    from ..memory.tracing.stacktrace import Line

CELLS = 256  # checks on one stream that are not settled; the next one settles them
WIDTH = 8  # bytes of a cell: the bad index
PROMPT = 8  # cells for one launch that is waited for


class Asked(NamedTuple):
    """For what an index was read: the public name of the op, the axis that it indexes, its size.

    Where the size is 0 any launch reads a bad index; with -1 in its place, one that says so.
    """

    op: str
    axis: int
    size: int


def out_of_range(asked: Asked, index: int, line: Line | None = None) -> IndexOutOfRange:
    """The error of a bad index; `line`, where it was asked for, if that is over."""
    of = "" if line is None else f" (asked for at {line})"
    return IndexOutOfRange(
        f"{asked.op}: {shown(index)} is out of range for axis {asked.axis} of size "
        f"{max(asked.size, 0)}{of}"
    )


class Fault:
    """A bad index that was met. `told`: whether somebody has got the error."""

    __slots__ = ("asked", "index", "line", "told")

    def __init__(self, asked: Asked, index: int, line: Line | None) -> None:
        self.asked, self.index, self.line, self.told = asked, index, line, False

    def error(self) -> IndexOutOfRange:
        """The error, which is about to be raised."""
        self.told = True
        return out_of_range(self.asked, self.index, self.line)


class Prompt(NamedTuple):
    """Cells that the host reads as soon as a launch has returned; they belong to no stream."""

    handle: Handle
    cells: ctypes.Array[ctypes.c_int64]


class Check:
    """Whether all indices that one launch read for one purpose were in range.

    Until `settled` nobody knows. `fault`: of a bad check, one of those that are out of range.
    `line`: the source line that asked for it.
    """

    __slots__ = (
        "__weakref__", "asked", "cell", "fault", "faults", "line", "number", "queued", "settled",
        "stream",
    )  # fmt: skip

    def __init__(self, faults: Faults, asked: Asked, stream: StreamHandle, cell: int) -> None:
        self.faults, self.asked, self.stream, self.cell = faults, asked, stream, cell
        self.number = next(_numbers)
        self.queued = self.settled = False
        self.fault: Fault | None = None
        self.line: Line | None = None

    def settle(self) -> Fault | None:
        """The fault, if any; waits for its stream to know."""
        if not self.settled:
            self.faults.settle(self.stream)
        return self.fault


_numbers = count()
_flags = Lock()  # of `flags.tainted`, and of what it follows from:
_bad: list[ref[Check]] = []  # known to be bad; of interest while some tensor carries them
_pending = 0  # devices with checks that are not settled


class Faults:
    """The error cells of one device. `pending`: whether any check is not settled."""

    __slots__ = ("__weakref__", "_backend", "_cells", "_free", "_lock", "_may_be_prompt", "_prompt",
                 "_untold", "_waiting", "pending")  # fmt: skip

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._cells: dict[
            StreamHandle, Handle
        ] = {}  # stream -> raw memory, which lives as long as the device
        self._free: dict[StreamHandle, list[int]] = {}  # stream -> cells, all 0
        self._waiting: dict[StreamHandle, list[Check]] = {}  # stream -> what is not settled
        self._untold: deque[Fault] = deque(maxlen=CELLS)
        self._lock = Lock()
        self.pending = False
        self._may_be_prompt = True
        self._prompt: Prompt | None = None

    def prompt(self) -> Prompt | None:
        """Cells for launches that are waited for.

        None where the host cannot look at them itself, or launches return before the work is done.
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
        """A check for a launch on `stream`, which sets `queued` when it has been queued."""
        with self._lock:
            if stream not in self._cells:
                handle = self._allocate(CELLS * WIDTH)
                self._clear(handle, 0, CELLS, stream)
                self._free[stream] = [*reversed(range(CELLS))]
                self._cells[stream] = handle  # last: an interrupt before leaves nothing to be found
            if not self._free[stream]:
                self.settle(stream)
            if not self._free[stream]:
                self._reclaim(stream)
            made = Check(self, asked, stream, self._free[stream].pop())
            self._waiting.setdefault(stream, []).append(made)
            self._note((), True)
            return made

    def _reclaim(self, stream: StreamHandle) -> None:
        """Takes back the cells of launches that an interrupt kept from being queued."""
        self._backend.synchronize(stream)
        for check in self._waiting.get(stream, ()):
            check.queued = True
        self.settle(stream)
        self._free[stream] = [*reversed(range(CELLS))]

    def place(self, check: Check) -> tuple[Handle, int]:
        """Handle and byte offset of a check's cell."""
        return self._cells[check.stream], check.cell * WIDTH

    def settle(self, stream: StreamHandle) -> None:
        """Finds out about every check queued on `stream`, once all work there is done."""
        with self._lock:
            waiting = self._waiting.get(stream, ())
            ready = [c for c in waiting if c.queued]
            if not ready:
                return
            handle = self._cells[stream]
            found = bytearray((max(c.cell for c in ready) + 1) * WIDTH)
            self._backend.copy_out(memoryview(found), handle, 0, stream)
            cells = memoryview(found).cast("q")
            for c in ready:
                index = cells[c.cell]
                if index or c.asked.size == 0:  # where nothing is in range, 0 is not either
                    c.fault = Fault(c.asked, index, c.line)
                if index:
                    self._clear(handle, c.cell, 1, stream)
            for c in ready:
                c.settled = True
            bad = [c for c in ready if c.fault is not None]
            self._waiting[stream] = [c for c in waiting if not c.settled]
            self._free[stream] += [c.cell for c in ready]  # after: no cell is two checks'
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
        """`settle` for every stream."""
        for stream in tuple(self._waiting):
            self.settle(stream)

    def report(self) -> None:
        """Raises: IndexOutOfRange, once, where bad indices were found and nobody has been told."""
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
    """The checks, but for those that are known to be fine, of values computed from these."""
    found = {c: None for s in storages for c in s.checks if c.fault or not c.settled}
    if not found:
        with _flags:  # what was bad may be gone
            _retaint()
    return tuple(found)


def demand(checks: Sequence[Check]) -> None:
    """Returns if all of them turn out fine. Raises: IndexOutOfRange, for the first launch."""
    found = [(c.number, fault) for c in checks if (fault := c.settle()) is not None]
    for _, fault in found:
        fault.told = True
    if found:
        raise min(found, key=itemgetter(0))[1].error()


def look(storage: Storage) -> None:
    """Returns if what a storage holds may be seen.

    Raises: IndexOutOfRange, where it comes of a bad index.
    """
    if storage.checks:
        demand(storage.checks)
        storage.checks = ()
