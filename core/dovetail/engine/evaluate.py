"""Entry points of evaluation: the lock, the match against cached graphs, writes into memory."""

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
from ..graph.refcount import Holder, is_sole_owner, take
from ..ir.builder import Kernel
from ..locks import Lock
from ..memory.storage import Storage
from ..ops.table import COPY
from ..plugins.device_handle import Opened
from ..settings import flags
from . import programs
from .evaluation import Evaluation
from .events import counters as counters  # re-exported for tests and tools
from .graph_matcher import HIT, NEEDS_TEMP
from .plan_cache import match, match_all, try_cached_update, try_cached_write

lock = _turn = Lock()  # the second name is compiled to a typed variable, invisible to Python


def evaluate(exprs: Sequence[Expr], asked: bool = True) -> None:
    """Compute these nodes; afterwards they are leaves, in memory.

    asked: report out-of-range indices here. Otherwise the error is raised where the value is read.
    Raises: IndexOutOfRange, on devices that wait for their work, if `asked`.
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
    """Compute a node and wait; afterwards the memory that it reads may be written."""
    evaluate((e,), False)
    _finish(e.spec.device)


def finish_pending() -> None:
    """Compute all pending nodes that read exported memory, and wait for all devices."""
    for e in all_pending():
        if reads_exported(e):
            evaluate((e,), False)
    for device in opened_devices():
        _finish(device)


def release(storage: Storage) -> None:
    """Compute the pending nodes that read this storage; from now on other code may write it."""
    _turn.held(_release, (storage,))


def _release(storage: Storage) -> None:
    pending_readers = readers(storage)
    if pending_readers:
        _evaluate(pending_readers, False)


def _finish(device: Device) -> None:
    opened = open_device(device)
    if opened.asynchronous:
        opened.backend.synchronize(current_handle(device))


def _is_watched() -> bool:
    """Return True if a profile or a capture observes each launch."""
    return flags.profiled or flags.captures > 0


def _refuse_bad(exprs: Sequence[Expr]) -> None:
    """Raise IndexOutOfRange if the memory of a leaf has a failed bounds check."""
    for e in exprs:
        if e.op is None and not open_device(e.spec.device).backend.asynchronous:
            faults.look(storage_of(e))


def planned(exprs: Sequence[Expr]) -> list[tuple[Opened, Plan]]:
    """Return device and plan of the pending work of these nodes; compile and run nothing."""
    return [(sketch.opened, sketch.plan) for sketch in sketched(exprs)]


class Sketch(NamedTuple):
    """The plan of one device's pending work: specs read, by slot, and specs kept, with slots."""

    opened: Opened
    plan: Plan
    read: list[Spec]
    kept: list[tuple[int, Spec]]


def sketched(exprs: Sequence[Expr]) -> list[Sketch]:
    """Return per device the plan of the pending work and the specs that it reads and keeps."""
    with lock:
        return [_sketch(roots) for roots in _by_device(exprs)]


def _sketch(roots: Sequence[Expr]) -> Sketch:
    evaluation = Evaluation(roots)
    plan = evaluation.plan()
    stored = [(slot, evaluation.nodes[i].spec) for i, slot in plan.kept]
    opened = open_device(roots[0].spec.device)
    return Sketch(opened, plan, [e.spec for e in evaluation.leaves], stored)


def compile_ahead(exprs: Sequence[Expr]) -> None:
    """Compile together the kernels of the pending work that have no program in memory."""
    kernels_by_device: dict[Device, dict[str, Kernel]] = {}
    for opened, plan in (pair for e in exprs for pair in planned([e])):
        steps = (s for s in plan.steps if isinstance(s, Step) and 0 not in s.grid)
        kernels_by_device.setdefault(opened.device, {}).update(
            {str(s.kernel): s.kernel for s in steps}
        )
    for device, kernels in kernels_by_device.items():
        programs.compile_all(open_device(device), kernels)


def _by_device(exprs: Sequence[Expr]) -> list[list[Expr]]:
    roots_by_device: dict[Device, dict[Expr, None]] = {}  # each once
    for e in exprs:
        source = _source(e)
        if source is not None:
            roots_by_device.setdefault(source.spec.device, {})[source] = None
    return [[*roots] for roots in roots_by_device.values()]


def _source(e: Expr) -> Expr | None:
    """Return the pending node whose value brings `e` into memory, or None."""
    return e if e.op is not None else storage_of(e).pending


# --- writing into memory that is there ------------------------------------------------------------


def write(value: Holder[Expr], target: Expr, others: int = 0) -> None:
    """Store a value of the same shape and dtype into the memory that leaf `target` views.

    The value is popped from its holder. It gets no memory of its own if nothing else refers to it.
    others: this many further references do not count, because they read the value from the target;
    they do count if the value reads the target's memory.
    """
    _turn.held(_write, (value, target, others))


def _write(value: Holder[Expr], target: Expr, others: int) -> None:
    storage = _in_memory(target)
    can_match = not _is_watched() and (value[0].op is None or is_sole_owner(value, others))
    if can_match and not is_read(target, value[0]):
        outcome = try_cached_write(value[0], target, others)
        if outcome == HIT:
            _finish_visible(storage)
            return
        if outcome == NEEDS_TEMP:
            _store_apart([_source_of_copy(node(COPY, (take(value),), target.spec))], target)
            return
    _store([node(COPY, (take(value),), target.spec)], target, others)


def update(value: Expr, target: Expr) -> None:
    """Run an op that updates the memory of `target`; nothing else may refer to its node."""
    _turn.held(_update, (value, target))


def _update(value: Expr, target: Expr) -> None:
    storage = _in_memory(target)
    if not _is_watched() and not is_read(target, value) and try_cached_update(value, target) == HIT:
        _finish_visible(storage)
        return
    _store([value], target)


def _in_memory(target: Expr) -> Storage:
    """Return the storage of a leaf that is about to be written; compute it if it is pending."""
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
    if _store_directly(value[0], target, others):
        _finish_visible(storage)
    else:
        _store_apart([_source_of_copy(take(value))], target)


def _store_apart(value: Holder[Expr], target: Expr) -> None:
    """Compute the value in memory of its own, then copy it."""
    evaluate(value)
    write(value, target)


def _source_of_copy(value: Expr) -> Expr:
    """Return the pending node to compute before the copy.

    That is the operand of a copy: it may be referenced elsewhere and would be stored as well.
    """
    source: Expr = value.args[0] if value.op is COPY else value
    return source if source.op is not None and source.spec is value.spec else value


def _store_directly(value: Expr, target: Expr, others: int) -> bool:
    """Compute a value right into the target; return False if it reads what it would overwrite.

    A function of its own: an `Evaluation` refers to its graph, and a second evaluation in the same
    frame would then materialise all of it.
    """
    evaluation = Evaluation([value], target)
    evaluation.discount_references(others)
    return evaluation.run()


def _finish_visible(storage: Storage) -> None:
    """Wait for a write to memory that is visible outside, or if ops run eagerly."""
    if storage.seen or flags.depth == 0:
        _finish(storage.device)


def _flush(target: Expr, value: Expr) -> None:
    """Compute the pending nodes that read the target's memory and are not part of `value`.

    Many readers of other parts of that memory are computed too: otherwise each write would have to
    look at all of them.
    """
    pending_readers = readers(storage_of(target))
    if len(pending_readers) <= MANY:
        pending_readers = [e for e in pending_readers if reads(e, target)]
    if pending_readers:
        value_graph = _graph(value)
        evaluate_remaining(
            [e for e in pending_readers if e not in value_graph or is_recomputed(e, value_graph)]
        )
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
    visited: set[Expr] = set()
    stack: list[object] = [root]
    while stack:
        e = stack.pop()
        if type(e) is Expr and e not in visited:
            visited.add(e)
            stack += e.args
            if e.op is None and storage_of(e).pending is not None:
                stack.append(e.storage.pending)
    return visited
