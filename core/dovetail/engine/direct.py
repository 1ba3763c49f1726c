"""A launch over tensors in memory, without a graph: kernels of users' own, which write in place.

It says what a write in place says to those who read the memory: what is pending and reads it is
done before, what others look at is waited for, and what comes of bad indices is not written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ..backend import faults
from ..backend.streams import current_handle
from ..device import opened as open_device
from ..graph.expr import MANY, Expr, readers, reads, storage_of
from ..memory.pointer import StreamHandle
from ..memory.storage import Storage
from ..plugins.opened import Opened
from ..settings import flags
from . import events, recording
from .evaluate import _finish, _launch, evaluate, lock
from .events import counters
from .launching import Number, Slots, place
from .programs import BoundStep


def launch(
    steps: Sequence[BoundStep],
    leaves: Sequence[Expr],
    written: Sequence[int],
    numbers: Sequence[Number],
    line: str | None,
) -> None:
    """Launches steps over leaves, by number; those of `written` are what they write.

    Raises: IndexOutOfRange, where a step checks its indices, when it has run.
    """
    lock.held(_launched, (steps, leaves, written, numbers, line))


def _launched(
    steps: Sequence[BoundStep],
    leaves: Sequence[Expr],
    written: Sequence[int],
    numbers: Sequence[Number],
    line: str | None,
) -> None:
    _, targets, opened, stream = ready(leaves, written)
    recorder = recording.current() if flags.captures else None
    if recorder is not None:
        for step in steps:
            if not step.empty:
                recorder.launch(step, leaves, numbers, line)
    else:
        at: Slots = [None, 0] * len(leaves)
        for k, e in enumerate(leaves):
            place(at, 2 * k, e)
        for step in steps:
            if not step.empty:
                _run(opened, step, at, numbers, stream, line)
    if flags.depth == 0 or any(s.seen for s in targets):
        _finish(opened.device)


def ready(
    leaves: Sequence[Expr], written: Sequence[int]
) -> tuple[list[Storage], list[Storage], Opened, StreamHandle]:
    """Their storages, in memory, those that are written, the device and the stream.

    Nothing that is pending reads what is written.
    """
    waiting = [e for e in leaves if e.op is not None or storage_of(e).pending is not None]
    if waiting:
        evaluate(waiting)
    storages = [storage_of(e) for e in leaves]
    for k in written:
        _flush(leaves[k], storages[k])
    if flags.tainted:
        faults.demand(faults.carried(storages))
    device = leaves[0].spec.device
    opened = device.opened or open_device(device)
    stream = current_handle(device)
    if opened.streams:
        opened.share(stream, storages)
    return storages, [storages[k] for k in written], opened, stream


def _flush(target: Expr, storage: Storage) -> None:
    found = readers(storage)
    if found:
        if len(found) <= MANY:
            found = [e for e in found if reads(e, target)]
        evaluate(found, False)


def _run(
    opened: Opened,
    step: BoundStep,
    at: Slots,
    numbers: Sequence[Number],
    stream: StreamHandle,
    line: str | None,
) -> None:
    if step.checks or events.profiles:
        slots = at + [None, 0] * len(step.checks)
        made = [check for _, check in _launch(opened, step, slots, numbers, stream)]
        for check in made:
            check.line = line
        faults.demand(made)
        return
    args: list[Any] = []
    for slot, offset in step.step.buffers:
        args += (at[2 * slot], at[2 * slot + 1] + offset)
    step.run(tuple(args), [numbers[i] for i in step.scalars], stream)
    counters.launches += 1


def run(
    name: str,
    leaves: Sequence[Expr],
    written: Sequence[int],
    work: Callable[[Slots, StreamHandle], object],
) -> None:
    """Calls `work` with handles and offsets of leaves, as `launch` does its steps."""
    lock.held(_ran, (name, leaves, written, work))


def _ran(
    name: str,
    leaves: Sequence[Expr],
    written: Sequence[int],
    work: Callable[[Slots, StreamHandle], object],
) -> None:
    storages, targets, opened, stream = ready(leaves, written)
    recorder = recording.current() if flags.captures else None
    if recorder is not None:
        recorder.call(name, work, leaves, written)
    else:
        at: Slots = [None, 0] * len(leaves)
        for k, e in enumerate(leaves):
            place(at, 2 * k, e)
        begun = time.perf_counter_ns() if events.profiles else 0
        work(at, stream)
        counters.launches += 1
        if events.profiles:
            opened.backend.synchronize(stream)
            events.note(f"launch {name}", begun, bytes=sum(s.nbytes for s in storages))
    if flags.depth == 0 or any(s.seen for s in targets):
        _finish(opened.device)
