"""A launch over tensors in memory, without a graph: kernels of users' own, which write in place.

It says what a write in place says to those who read the memory: what is pending and reads it is
done before, what others look at is waited for, and what comes of bad indices is not written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from .recording import Work


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
    storages, opened, stream = ready(leaves, written)
    if flags.captures and (recorder := recording.current()) is not None:
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
    _done(storages, written, opened)


def ready(
    leaves: Sequence[Expr], written: Sequence[int]
) -> tuple[list[Storage], Opened, StreamHandle]:
    """Their storages, in memory, the device and the stream.

    Nothing that is pending reads what is written.
    """
    for e in leaves:
        if e.op is not None or storage_of(e).pending is not None:
            evaluate([x for x in leaves if x.op is not None or storage_of(x).pending is not None])
            break
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
    return storages, opened, stream


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
    source: str,
    leaves: Sequence[Expr],
    written: Sequence[int],
    numbers: Sequence[Number],
    work: Work,
) -> None:
    """Calls `work` with handles and offsets of leaves, and numbers, as `launch` does its steps."""
    lock.held(_ran, (name, source, leaves, written, numbers, work))


def _ran(
    name: str,
    source: str,
    leaves: Sequence[Expr],
    written: Sequence[int],
    numbers: Sequence[Number],
    work: Work,
) -> None:
    storages, opened, stream = ready(leaves, written)
    if flags.captures and (recorder := recording.current()) is not None:
        recorder.call(name, source, work, leaves, written, numbers)
    else:
        at: Slots = [None, 0] * len(leaves)
        k = 0
        for e in leaves:
            place(at, k, e)
            k += 2
        begun = time.perf_counter_ns() if events.profiles else 0
        work(at, numbers, stream)
        counters.launches += 1
        if events.profiles:
            opened.backend.synchronize(stream)
            nbytes = sum(e.spec.size * e.spec.itemsize for e in leaves)
            events.note(f"launch {name}", begun, bytes=nbytes)
    _done(storages, written, opened)


def _done(storages: Sequence[Storage], written: Sequence[int], opened: Opened) -> None:
    """Who sees what was written by other means sees it done."""
    for k in written:
        if flags.depth == 0 or storages[k].seen:
            _finish(opened.device)
            return
