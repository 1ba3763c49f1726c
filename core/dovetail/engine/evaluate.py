"""The entry points of evaluation: the lock, known graphs first, and writes into existing memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ..backend import faults
from ..backend.streams import current_handle
from ..device_class import Device, opened_devices
from ..device_class import opened as open_device
from ..errors import TransformError
from ..fusion.plan import Plan, Step
from ..graph.expr import (
    MANY,
    Expr,
    Spec,
    is_read,
    is_recomputed,
    node,
    readers,
    reads,
    reads_exported,
    storage_of,
)
from ..graph.expr import pending as all_pending
from ..graph.ownership import Holder, is_alone, take
from ..locks import Lock
from ..loops.builder import Kernel
from ..memory.storage import Storage
from ..ops.table import COPY
from ..plugins.opened import Opened
from ..settings import flags
from . import programs
from .evaluation import Evaluation
from .events import counters as counters  # where those who count find them
from .guards import match, match_all, match_into, match_update
from .known import APART, DONE

lock = _turn = Lock()  # the second is compiled to a typed variable, which others do not see


def evaluate(exprs: Sequence[Expr], asked: bool = True) -> None:
    """Computes these nodes; afterwards they are leaves, in memory.

    Raises: IndexOutOfRange, on devices that wait for their work, if that was `asked` for; else
    whoever looks at what comes of a bad index gets it.
    """
    _turn.held(_evaluate, (exprs, asked))


def _evaluate(exprs: Sequence[Expr], asked: bool) -> None:
    if flags.tainted and asked:
        _refuse_bad(exprs)
    if len(exprs) == 1:
        root = _source(exprs[0])
        if root is None or (not _is_watched() and match(root, asked)):
            return
        Evaluation([root]).run(asked)
        return
    for roots in _by_device(exprs):
        if _is_watched() or not match_all(roots, asked):
            Evaluation(roots).run(asked)


def finish(e: Expr) -> None:
    """Computes a node, and returns when what it reads may be written by others."""
    evaluate((e,), False)
    _finish(e.spec.device)


def finish_pending() -> None:
    """The same of all that is pending and reads it, and of what was launched, wherever."""
    for e in all_pending():
        if reads_exported(e):
            evaluate((e,), False)
    for device in opened_devices():
        _finish(device)


def release(storage: Storage) -> None:
    """Does what is pending and reads this storage, which others may write from now on."""
    _turn.held(_release, (storage,))


def _release(storage: Storage) -> None:
    found = readers(storage)
    if found:
        _evaluate(found, False)


def _finish(device: Device) -> None:
    opened = open_device(device)
    if opened.asynchronous:
        opened.backend.synchronize(current_handle(device))


def _is_watched() -> bool:
    """Whether somebody wants to know of each launch: a profile, or a function's capture."""
    return flags.profiled or flags.captures > 0


def _refuse_bad(exprs: Sequence[Expr]) -> None:
    """Raises: IndexOutOfRange, for what is in memory already, as for what is pending."""
    for e in exprs:
        if e.op is None and not open_device(e.spec.device).backend.asynchronous:
            faults.look(storage_of(e))


def planned(exprs: Sequence[Expr]) -> list[tuple[Opened, Plan]]:
    """How the pending work of these nodes would be done; it stays pending, uncompiled."""
    return [(found.opened, found.plan) for found in sketched(exprs)]


class Sketch(NamedTuple):
    """How the pending work of one device would be done: `read` by slot, `kept` with their slots."""

    opened: Opened
    plan: Plan
    read: list[Spec]
    kept: list[tuple[int, Spec]]


def sketched(exprs: Sequence[Expr]) -> list[Sketch]:
    """As `planned`, and what the work reads and keeps."""
    with lock:
        return [_sketched(roots) for roots in _by_device(exprs)]


def _sketched(roots: Sequence[Expr]) -> Sketch:
    evaluation = Evaluation(roots)
    plan = evaluation.plan()
    kept = [(slot, evaluation.nodes[i].spec) for i, slot in plan.kept]
    opened = open_device(roots[0].spec.device)
    return Sketch(opened, plan, [e.spec for e in evaluation.leaves], kept)


def compile_ahead(exprs: Sequence[Expr]) -> None:
    """Compiles what the pending work of each of these needs, and is not in memory, together."""
    found: dict[Device, dict[str, Kernel]] = {}
    for opened, plan in (pair for e in exprs for pair in planned([e])):
        steps = (s for s in plan.steps if isinstance(s, Step) and 0 not in s.grid)
        found.setdefault(opened.device, {}).update({str(s.kernel): s.kernel for s in steps})
    for device, kernels in found.items():
        programs.compile_all(open_device(device), kernels)


def _by_device(exprs: Sequence[Expr]) -> list[list[Expr]]:
    found: dict[Device, dict[Expr, None]] = {}  # each once
    for e in exprs:
        source = _source(e)
        if source is not None:
            found.setdefault(source.spec.device, {})[source] = None
    return [[*roots] for roots in found.values()]


def _source(e: Expr) -> Expr | None:
    """The pending node that must be computed for `e` to be in memory."""
    return e if e.op is not None else storage_of(e).pending


# --- writing into memory that is there ------------------------------------------------------------


def write(value: Holder[Expr], target: Expr, others: int = 0) -> None:
    """Stores a value, of the same shape and dtype, into the memory that leaf `target` views.

    It is taken from its holder: what nobody else refers to gets no memory of its own, nor what only
    so many `others` do, who will find it in the target; where that was read for it, they do not.
    """
    _turn.held(_write, (value, target, others))


def _write(value: Holder[Expr], target: Expr, others: int) -> None:
    storage = _in_memory(target)
    known = not _is_watched() and (value[0].op is None or is_alone(value, others))
    if known and not is_read(target, value[0]):
        done = match_into(value[0], target, others)
        if done == DONE:
            _written(storage)
            return
        if done == APART:
            _store_apart([_source_of_copy(node(COPY, (take(value),), target.spec))], target)
            return
    _store([node(COPY, (take(value),), target.spec)], target, others)


def update(value: Expr, target: Expr) -> None:
    """As `write`, for a node that nobody else holds, of an op that updates what `target` holds."""
    _turn.held(_update, (value, target))


def _update(value: Expr, target: Expr) -> None:
    storage = _in_memory(target)
    if not _is_watched() and not is_read(target, value) and match_update(value, target) == DONE:
        _written(storage)
        return
    _store([value], target)


def _in_memory(target: Expr) -> Storage:
    """The storage of a leaf that is about to be written, computed if it was pending."""
    pending = storage_of(target).pending
    if pending is not None:
        evaluate([pending])
    storage = storage_of(target)
    finish_overlapping(storage)
    return storage


def finish_overlapping(storage: Storage) -> None:
    """Wait for the launches that use memory of the storages that overlap this one."""
    if storage.overlap is not None:
        for device in {s.device for s in storage.overlap.members()}:
            open_device(device).backend.synchronize()


def _store(value: Holder[Expr], target: Expr, others: int = 0) -> None:
    storage = storage_of(target)
    _flush(target, value[0])
    if _is_stored(value[0], target, others):
        _written(storage)
    else:
        _store_apart([_source_of_copy(take(value))], target)


def _store_apart(value: Holder[Expr], target: Expr) -> None:
    """By way of other memory."""
    evaluate(value)
    write(value, target)


def _source_of_copy(value: Expr) -> Expr:
    """What is to be in memory before it is copied.

    That is pending work that a copy is of, since it may be held and would be stored as well.
    """
    source: Expr = value.args[0] if value.op is COPY else value
    return source if source.op is not None and source.spec is value.spec else value


def _is_stored(value: Expr, target: Expr, others: int) -> bool:
    """Whether a value could be computed right into the target.

    It could not where it reads there what it would overwrite. A function of its own: an evaluation
    holds its graph, of which all would then be materialised.
    """
    evaluation = Evaluation([value], target)
    evaluation.overlook(others)
    return evaluation.run()


def _written(storage: Storage) -> None:
    """Notes a write; who sees the memory by other means sees it done, and what it read, read."""
    if storage.seen or flags.depth == 0:
        _finish(storage.device)


def _flush(target: Expr, value: Expr) -> None:
    """Computes whatever is pending, reads what is to be written, and is not part of `value`.

    Where many read elsewhere in that memory, they are computed together: else each write would have
    to look at all of them.
    """
    found = readers(storage_of(target))
    if len(found) <= MANY:
        found = [e for e in found if reads(e, target)]
    if found:
        mine = _graph(value)
        evaluate_remaining([e for e in found if e not in mine or is_recomputed(e, mine)])
        finish_overlapping(storage_of(target))


def evaluate_remaining(exprs: Sequence[Expr]) -> None:
    """Evaluate nodes, but for those of one example of a `vmap` that has ended: they have no value.

    Something may still hold such a node, such as a cycle of references.
    """
    try:
        evaluate(exprs, asked=False)
    except TransformError:
        for e in exprs:
            with suppress(TransformError):
                evaluate([e], asked=False)


def _graph(root: Expr) -> set[Expr]:
    seen: set[Expr] = set()
    stack: list[object] = [root]
    while stack:
        e = stack.pop()
        if type(e) is Expr and e not in seen:
            seen.add(e)
            stack += e.args
            if e.op is None and storage_of(e).pending is not None:
                stack.append(e.storage.pending)
    return seen
