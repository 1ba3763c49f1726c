"""Launches of user kernels over tensors in memory, without a graph.

Such a kernel writes in place, with the guarantees of any in-place write: pending expressions that
read the memory are evaluated first, other users of the memory are waited for, and results of
out-of-range indices are not used.
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
from ..plugins.device_handle import Opened
from ..settings import flags
from . import tracer_api
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
    """Launch steps over `leaves`; `written` has the positions of those that they write.

    Raises: IndexOutOfRange, after a step that checks its indices has run.
    """
    _turn.held(_launch_locked, (name, steps, leaves, written, numbers, line))


def _launch_locked(
    name: str,
    steps: Sequence[BoundStep],
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    line: str | None,
) -> None:
    opened = ready(leaves, written)
    stream = current_handle(opened.device)
    recorder = tracer_api.current() if flags.captures else None
    at: Slots = [] if recorder is not None else _addresses(leaves)
    for step in steps:
        if step.empty:
            continue
        if recorder is not None:
            recorder.launch(step, leaves, numbers, line)
        elif step.checks:
            _run_checked(opened, step, at, numbers, stream, line)
        else:
            run_step(opened, step, at, numbers, stream)
    _mark_written(leaves, written, opened, name)


def _addresses(leaves: Sequence[Expr]) -> Slots:
    """Return the handle and the byte offset of each leaf."""
    at: Slots = []
    for e in leaves:
        ptr = e.storage.ptr
        at.append(ptr.address())
        at.append(ptr.offset + e.offset * e.spec.itemsize)
    return at


def ready(leaves: list[Expr], written: tuple[int, ...]) -> Opened:
    """Evaluate pending leaves, and pending readers of written ones; return the device."""
    for e in leaves:
        if e.op is not None or storage_of(e).pending is not None:
            _evaluate_pending(leaves)
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


def _evaluate_pending(leaves: Sequence[Expr]) -> None:
    evaluate([e for e in leaves if e.op is not None or storage_of(e).pending is not None])
    for e in leaves:
        storage_of(e)  # resolves a lazy storage, so that `e.storage` can be read


def _flush(target: Expr, storage: Storage) -> None:
    pending_readers = readers(storage)
    if pending_readers:
        if len(pending_readers) <= MANY:
            pending_readers = [e for e in pending_readers if reads(e, target)]
        evaluate(pending_readers, False)


def _run_checked(
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
    """Call `work` with addresses of leaves, numbers and a grid, with the guarantees of `launch`.

    `name`: the writer that errors about overwritten values report.
    """
    _turn.held(_run_locked, (name, source, leaves, written, numbers, work, grid))


def _run_locked(
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
    if flags.captures and tracer_api.current() is not None:
        _record_call(name, source, leaves, written, numbers, work, grid)
    else:
        begun = time.perf_counter_ns() if flags.profiled else 0
        work(_addresses(leaves), numbers, grid, stream)
        counters.launches += 1
        if flags.profiled:
            nbytes = sum([e.spec.size * e.spec.itemsize for e in leaves])
            note_launch(opened, name, begun, stream, nbytes)
    _mark_written(leaves, written, opened, name)


def _record_call(
    name: str,
    source: str,
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    work: RawLaunch,
    grid: Grid | None,
) -> None:
    recorder = tracer_api.current()
    assert recorder is not None

    def replay(at: Slots, values: Sequence[Number], stream: StreamHandle) -> None:
        work(at, values, grid, stream)

    recorder.call(name, source, replay, leaves, written, numbers)


def _mark_written(leaves: list[Expr], written: tuple[int, ...], opened: Opened, name: str) -> None:
    """Mark leaves as overwritten, and finish the work if their memory is visible outside."""
    for k in written:
        e = leaves[k]
        overwritten(e, name)
        if flags.depth == 0 or e.storage.seen:
            _finish(opened.device)
