"""A launch over tensors in memory, without a graph: kernels of users' own, which write in place.

It says what a write in place says to those who read the memory: what is pending and reads it is
done before, what others look at is waited for, and what comes of bad indices is not written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..backend import faults
from ..backend.interface import Grid, RawLaunch
from ..backend.streams import current_handle
from ..device_class import opened as open_device
from ..graph.expr import MANY, Expr, overwritten, readers, reads, storage_of
from ..memory.pointer import StreamHandle
from ..memory.storage import Storage
from ..plugins.opened import Opened
from ..settings import flags
from . import recording
from .evaluate import _finish, evaluate, finish_overlapping, lock
from .events import counters
from .launching import BoundStep, Number, Slots, note_launch, run_deferred
from .launching import run as run_step

_turn = lock  # compiled to a typed variable


def launch(
    name: str,
    steps: Sequence[BoundStep],
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    line: str | None,
) -> None:
    """Launches steps over leaves, by number; those of `written` are what they write.

    Raises: IndexOutOfRange, where a step checks its indices, when it has run.
    """
    _turn.held(_launched, (name, steps, leaves, written, numbers, line))


def _launched(
    name: str,
    steps: Sequence[BoundStep],
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    line: str | None,
) -> None:
    opened = ready(leaves, written)
    stream = current_handle(opened.device)
    recorder = recording.current() if flags.captures else None
    at: Slots = [] if recorder is not None else _places(leaves)
    for step in steps:
        if step.empty:
            continue
        if recorder is not None:
            recorder.launch(step, leaves, numbers, line)
        elif step.checks:
            _checked(opened, step, at, numbers, stream, line)
        else:
            run_step(opened, step, at, numbers, stream)
    _done(leaves, written, opened, name)


def _places(leaves: Sequence[Expr]) -> Slots:
    """The handle and the offset of each leaf."""
    at: Slots = []
    for e in leaves:
        ptr = e.storage.ptr
        at.append(ptr.address())
        at.append(ptr.offset + e.offset * e.spec.itemsize)
    return at


def ready(leaves: list[Expr], written: tuple[int, ...]) -> Opened:
    """The device of leaves, which are in memory; nothing pending reads what is written."""
    for e in leaves:
        if e.op is not None or storage_of(e).pending is not None:
            _evaluated(leaves)
            break
    for k in written:
        target = leaves[k]
        storage = storage_of(target)
        if readers(storage):
            _flush(target, storage)
        finish_overlapping(storage)
    if flags.tainted:
        faults.demand(faults.carried([storage_of(e) for e in leaves]))
    device = leaves[0].spec.device
    opened: Opened = device.opened or open_device(device)
    if opened.streams:
        storages = [storage_of(e) for e in leaves]
        opened.share(current_handle(device), [s for s in storages if s.ptr is not None])
    return opened


def _evaluated(leaves: Sequence[Expr]) -> None:
    evaluate([e for e in leaves if e.op is not None or storage_of(e).pending is not None])
    for e in leaves:
        storage_of(e)  # so that it is at hand


def _flush(target: Expr, storage: Storage) -> None:
    found = readers(storage)
    if found:
        if len(found) <= MANY:
            found = [e for e in found if reads(e, target)]
        evaluate(found, False)


def _checked(
    opened: Opened,
    step: BoundStep,
    at: Slots,
    numbers: list[Number],
    stream: StreamHandle,
    line: str | None,
) -> None:
    """Launch a step that checks indices, and wait for it. Raises: IndexOutOfRange."""
    slots = at + [None, 0] * len(step.checks)
    checks = [check for _, check in run_deferred(opened, step, slots, numbers, stream)]
    for check in checks:
        check.line = line
    faults.demand(checks)


def run(
    name: str,
    source: str,
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    work: RawLaunch,
    grid: Grid | None,
) -> None:
    """Calls `work` with handles and offsets of leaves, numbers and a grid, as `launch` does.

    What it writes is `overwritten` by this name.
    """
    _turn.held(_ran, (name, source, leaves, written, numbers, work, grid))


def _ran(
    name: str,
    source: str,
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    work: RawLaunch,
    grid: Grid | None,
) -> None:
    opened = ready(leaves, written)
    stream = current_handle(opened.device)
    if flags.captures and recording.current() is not None:
        _recorded(name, source, leaves, written, numbers, work, grid)
    else:
        begun = time.perf_counter_ns() if flags.profiled else 0
        work(_places(leaves), numbers, grid, stream)
        counters.launches += 1
        if flags.profiled:
            nbytes = sum([e.spec.size * e.spec.itemsize for e in leaves])
            note_launch(opened, name, begun, stream, nbytes)
    _done(leaves, written, opened, name)


def _recorded(
    name: str,
    source: str,
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    work: RawLaunch,
    grid: Grid | None,
) -> None:
    recorder = recording.current()
    assert recorder is not None

    def again(at: Slots, values: Sequence[Number], stream: StreamHandle) -> None:
        work(at, values, grid, stream)

    recorder.call(name, source, again, leaves, written, numbers)


def _done(leaves: list[Expr], written: tuple[int, ...], opened: Opened, name: str) -> None:
    """Notes what was written; who sees it by other means sees it done."""
    for k in written:
        e = leaves[k]
        overwritten(e, name)
        if flags.depth == 0 or e.storage.seen:
            _finish(opened.device)
