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
from ..graph.expr import (
    PENDING_READERS_MAX,
    Expr,
    find_readers,
    mark_value_overwritten,
    reads,
    storage_of,
)
from ..memory.pointer import StreamHandle
from ..memory.storage import Storage
from ..plugins.device_handle import OpenedDevice
from ..settings import flags
from . import tracer_api
from .evaluate import _synchronize, engine_lock, evaluate, wait_for_overlapping
from .events import counters
from .launching import Addresses, BoundKernel, Number, record_launch_event, run_deferred
from .launching import run as run_step

_lock = engine_lock  # compiled to a typed variable


def launch_steps(
    name: str,
    steps: Sequence[BoundKernel],
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    line: str | None,
) -> None:
    """Launch or record steps over `leaves`; `written`: the positions of those that the steps write.

    Pending leaves and readers of written ones are evaluated first.
    Raises: OutOfRangeError, after a step that checks its indices has run.
    """
    _lock.held(_launch_locked, (name, steps, leaves, written, numbers, line))


def _launch_locked(
    name: str,
    steps: Sequence[BoundKernel],
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    line: str | None,
) -> None:
    """Do `launch_steps` under the engine lock: prepare leaves, launch or record, mark writes."""
    opened = prepare_leaves(leaves, written)
    stream = current_handle(opened.device)
    recorder = tracer_api.current() if flags.captures else None
    at: Addresses = [] if recorder is not None else _addresses(leaves)
    for step in steps:
        if step.has_empty_grid:
            continue
        if recorder is not None:
            recorder.launch(step, leaves, numbers, line)
        elif step.checks:
            _run_checked(opened, step, at, numbers, stream, line)
        else:
            run_step(opened, step, at, numbers, stream)
    _mark_written(leaves, written, opened, name)


def _addresses(leaves: Sequence[Expr]) -> Addresses:
    """Return a flat list with the handle and the byte offset of each leaf."""
    at: Addresses = []
    for e in leaves:
        ptr = e.storage.ptr
        at.append(ptr.address())
        at.append(ptr.offset + e.offset * e.spec.itemsize)
    return at


def prepare_leaves(leaves: list[Expr], written: tuple[int, ...]) -> OpenedDevice:
    """Evaluate pending leaves and readers of written ones, settle checks; return the device.

    It waits for storages that overlap written ones. Raises: OutOfRangeError, for a failed check.
    """
    for e in leaves:
        if e.op is not None or storage_of(e).pending is not None:
            _evaluate_pending(leaves)
            break
    for k in written:
        target = leaves[k]
        storage = storage_of(target)
        if find_readers(storage):
            _evaluate_readers(target, storage)
        wait_for_overlapping(storage)
    if flags.has_unresolved_checks:
        faults.settle_checks(faults.inherited_checks([storage_of(e) for e in leaves]))
    device = leaves[0].spec.device
    opened: OpenedDevice = device.opened or open_device(device)
    if opened.has_streams:
        storages = [storage_of(e) for e in leaves]
        opened.record_streams(current_handle(device), [s for s in storages if s.ptr is not None])
    return opened


def _evaluate_pending(leaves: Sequence[Expr]) -> None:
    """Evaluate the leaves that are pending, and replace their lazy storages."""
    evaluate([e for e in leaves if e.op is not None or storage_of(e).pending is not None])
    for e in leaves:
        storage_of(e)  # resolves a lazy storage, so that `e.storage` can be read


def _evaluate_readers(target: Expr, storage: Storage) -> None:
    """Evaluate pending nodes that read the target's memory; many readers, of all its storage."""
    pending_readers = find_readers(storage)
    if pending_readers:
        if len(pending_readers) <= PENDING_READERS_MAX:
            pending_readers = [e for e in pending_readers if reads(e, target)]
        evaluate(pending_readers, False)


def _run_checked(
    opened: OpenedDevice,
    step: BoundKernel,
    at: Addresses,
    numbers: list[Number],
    stream: StreamHandle,
    line: str | None,
) -> None:
    """Launch a step that checks indices; wait for it. Raises: OutOfRangeError for a bad index."""
    slots = at + [None, 0] * len(step.checks)
    checks = [check for _, check in run_deferred(opened, step, slots, numbers, stream)]
    for check in checks:
        check.line = line
    faults.settle_checks(checks)


def launch_raw(
    name: str,
    source: str,
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    work: RawLaunch,
    grid: Grid | None,
) -> None:
    """Call or record `work` on leaves' addresses, numbers and grid; prepare and mark the leaves.

    That is done as by `launch_steps`.
    `name`: the writer that errors about overwritten values report.
    """
    _lock.held(_launch_raw_locked, (name, source, leaves, written, numbers, work, grid))


def _launch_raw_locked(
    name: str,
    source: str,
    leaves: list[Expr],
    written: tuple[int, ...],
    numbers: list[Number],
    work: RawLaunch,
    grid: Grid | None,
) -> None:
    """Do `launch_raw` under the engine lock: prepare the leaves, call or record, mark writes."""
    opened = prepare_leaves(leaves, written)
    stream = current_handle(opened.device)
    if flags.captures and tracer_api.current() is not None:
        _record_call(name, source, leaves, written, numbers, work, grid)
    else:
        begun = time.perf_counter_ns() if flags.is_observed else 0
        work(_addresses(leaves), numbers, grid, stream)
        counters.launches += 1
        if flags.is_observed:
            nbytes = sum([e.spec.size * e.spec.itemsize for e in leaves])
            record_launch_event(opened, name, begun, stream, nbytes)
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
    """Record the call of `work` with the thread's tracer, in place of running it."""
    recorder = tracer_api.current()
    assert recorder is not None

    def replay(at: Addresses, values: Sequence[Number], stream: StreamHandle) -> None:
        """Call `work` with the recorded grid."""
        work(at, values, grid, stream)

    recorder.call(name, source, replay, leaves, written, numbers)


def _mark_written(
    leaves: list[Expr], written: tuple[int, ...], opened: OpenedDevice, name: str
) -> None:
    """Mark written leaves as overwritten by `name`; wait if memory is visible or ops are eager."""
    for k in written:
        e = leaves[k]
        mark_value_overwritten(e, name)
        if flags.depth == 0 or e.storage.seen:
            _synchronize(opened.device)
