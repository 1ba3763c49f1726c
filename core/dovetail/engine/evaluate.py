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
from ..fusion.plan import Plan, PlannedLaunch
from ..graph.expr import (
    PENDING_READERS_MAX,
    Expr,
    Spec,
    find_readers,
    has_no_reader,
    has_other_reader,
    is_recomputed,
    node,
    reads,
    reads_exported,
    storage_of,
)
from ..graph.expr import pending_nodes as all_pending
from ..graph.refcount import Box, is_sole_owner, pop
from ..ir.builder import Kernel
from ..locks import Lock
from ..memory.storage import Storage
from ..ops.table import COPY
from ..plugins.device_handle import OpenedDevice
from ..settings import flags
from . import programs
from .evaluation import Evaluation
from .events import counters as counters  # re-exported for tests and tools
from .graph_matcher import HIT, NEEDS_TEMP, run_first_match
from .plan_cache import (
    find_value_graphs,
    match_cached_graph,
    match_cached_graphs,
    try_cached_update,
    try_cached_write,
)

engine_lock = _turn = Lock()  # the second name is compiled to a typed variable, invisible to Python


def evaluate(exprs: Sequence[Expr], reports_checks: bool = True) -> None:
    """Compute these nodes; afterwards they are leaves, in memory.

    reports_checks: report out-of-range indices here. Otherwise the error is raised where the value
        is read.
    Raises: OutOfRangeError, on devices that wait for their work, if `reports_checks`.
    """
    _turn.held(_evaluate, (exprs, reports_checks))


def _evaluate(exprs: Sequence[Expr], reports_checks: bool) -> None:
    """Do `evaluate` under the engine lock: run each device's cached graphs, or plan new ones."""
    if flags.has_unresolved_checks and reports_checks:
        _raise_failed_checks(exprs)
    if len(exprs) == 1:
        _evaluate_source(exprs[0], reports_checks)
        return
    for roots in _group_by_device(exprs):
        if _is_observed() or not match_cached_graphs(roots, reports_checks):
            Evaluation(roots).run(reports_checks)


def _evaluate_source(e: Expr, reports_checks: bool) -> None:
    """Compute a node, or the one behind a lazy storage: run its cached graph, or plan a new one."""
    root = _source(e)
    if root is not None and (_is_observed() or not match_cached_graph(root, reports_checks)):
        Evaluation([root]).run(reports_checks)


def evaluate_node(e: Expr) -> None:
    """Compute one node, as `evaluate` does; quicker, because nothing is packed into tuples.

    The cached graphs are found without the lock: a node that another thread computes matches none.
    """
    root = None if flags.has_unresolved_checks or _is_observed() else _source(e)
    if root is None or not run_first_match(_turn, find_value_graphs(root), root):
        _turn._call(_evaluate_node, e)


def _evaluate_node(e: Expr) -> None:
    """Do `evaluate_node` under the engine lock."""
    if flags.has_unresolved_checks:
        _raise_failed_checks((e,))
    _evaluate_source(e, True)


def evaluate_and_wait(e: Expr) -> None:
    """Compute a node and wait for the current stream; the memory that it reads may then be written.

    Indices out of range raise no error here.
    """
    evaluate((e,), False)
    _synchronize(e.spec.device)


def finish_pending() -> None:
    """Compute pending nodes that read exported memory; wait for all devices' current streams."""
    for e in all_pending():
        if reads_exported(e):
            evaluate((e,), False)
    for device in opened_devices():
        _synchronize(device)


def evaluate_all_readers(storage: Storage) -> None:
    """Evaluate the pending nodes that read a storage; the caller waits before other code writes."""
    _turn._call(_evaluate_all_readers, storage)


def _evaluate_all_readers(storage: Storage) -> None:
    """Evaluate the pending nodes that read this storage; the caller holds the engine lock."""
    pending_readers = find_readers(storage)
    if pending_readers:
        _evaluate(pending_readers, False)


def _synchronize(device: Device) -> None:
    """Wait for the device's current stream, if its backend is asynchronous."""
    opened: OpenedDevice = device.opened or open_device(device)
    if opened.asynchronous:
        opened.backend.synchronize(current_handle(device))


def _is_observed() -> bool:
    """Return True if a profile or a tracer observes launches, so that fast paths are off."""
    return flags.is_observed or flags.captures > 0


def _raise_failed_checks(exprs: Sequence[Expr]) -> None:
    """Settle index checks of leaves on synchronous devices. Raises: OutOfRangeError on failure."""
    for e in exprs:
        if e.op is None and not open_device(e.spec.device).backend.asynchronous:
            faults.settle_before_read(storage_of(e))


def plan_pending(exprs: Sequence[Expr]) -> list[tuple[OpenedDevice, Plan]]:
    """Return (device, plan) per device for the pending work of these nodes; run nothing."""
    return [(sketch.opened, sketch.plan) for sketch in sketch_plans(exprs)]


class Sketch(NamedTuple):
    """The plan of one device's pending work: specs read, by slot, and specs kept, with slots."""

    opened: OpenedDevice
    plan: Plan
    read_specs: list[Spec]
    stored_specs: list[tuple[int, Spec]]


def sketch_plans(exprs: Sequence[Expr]) -> list[Sketch]:
    """Return per device the plan of the pending work and the specs that it reads and keeps."""
    with engine_lock:
        return [_sketch_device(roots) for roots in _group_by_device(exprs)]


def _sketch_device(roots: Sequence[Expr]) -> Sketch:
    """Plan the pending work of roots of one device, without compiling or running."""
    evaluation = Evaluation(roots)
    plan = evaluation.plan()
    stored = [(slot, evaluation.graph.nodes[i].spec) for i, slot in plan.output_slots]
    opened = open_device(roots[0].spec.device)
    return Sketch(opened, plan, [e.spec for e in evaluation.graph.leaves], stored)


def compile_ahead(exprs: Sequence[Expr]) -> None:
    """Plan each node alone; compile missing programs in one batch per device; run nothing."""
    kernels_by_device: dict[Device, dict[str, Kernel]] = {}
    for opened, plan in [pair for e in exprs for pair in plan_pending([e])]:
        steps = [s for s in plan.steps if isinstance(s, PlannedLaunch) and 0 not in s.grid]
        kernels_by_device.setdefault(opened.device, {}).update(
            {str(s.kernel): s.kernel for s in steps}
        )
    for device, kernels in kernels_by_device.items():
        programs.compile_all(open_device(device), kernels)


def _group_by_device(exprs: Sequence[Expr]) -> list[list[Expr]]:
    """Return, per device, the list of pending nodes to compute, each once; drop computed nodes."""
    roots_by_device: dict[Device, dict[Expr, None]] = {}  # each once
    for e in exprs:
        source = _source(e)
        if source is not None:
            roots_by_device.setdefault(source.spec.device, {})[source] = None
    return [[*roots] for roots in roots_by_device.values()]


def _source(e: Expr) -> Expr | None:
    """Return `e` if it is pending, else the pending node behind its lazy storage, or None."""
    return e if e.op is not None else storage_of(e).pending


# --- writing into memory that is there ------------------------------------------------------------


def write(value: Box[Expr], target: Expr, other_references: int = 0) -> None:
    """Pop a value from its box, and store it into the memory that leaf `target` views.

    The value has the shape and dtype of the target, and no memory of its own if nothing else refers
    to it. Pending nodes that read the target's memory are computed first.
    other_references: this many further references do not count, because they read the value from
        the target; they do count if the value reads the target's memory.
    """
    _turn.held(_write, (value, target, other_references))


def _write(value: Box[Expr], target: Expr, other_references: int) -> None:
    """Do `write` under the engine lock: run a matching cached graph, else plan a copy."""
    storage = _prepare_storage(target)
    can_match = not _is_observed() and (
        _is_leaf(value[0]) or is_sole_owner(value, other_references)
    )
    if can_match and not has_other_reader(target, value[0]):
        outcome = try_cached_write(value[0], target, other_references)
        if outcome == HIT:
            _wait_if_visible(storage)
            return
        if outcome == NEEDS_TEMP:
            _store_through_temp([_source_of_copy(node(COPY, (pop(value),), target.spec))], target)
            return
    _store([node(COPY, (pop(value),), target.spec)], target, other_references)


def _is_leaf(e: Expr) -> bool:
    """Return True if a node is a leaf; compiled, a typed read of its field."""
    return e.op is None


def update(value: Expr, target: Expr) -> None:
    """Run the op node `value`, which updates `target` in place; nothing else may refer to it."""
    _turn.held(_update_memory, (value, target))


def _update_memory(value: Expr, target: Expr) -> None:
    """Do `update` under the engine lock: run a matching cached graph, else plan the op."""
    storage = _prepare_storage(target)
    if not _is_observed() and not has_other_reader(target, value):
        outcome = try_cached_update(value, target)
        if outcome == NEEDS_TEMP and _evaluate_operands(value):
            outcome = try_cached_update(value, target)
        if outcome == HIT:
            _wait_if_visible(storage)
            return
    _store([value], target)


def _prepare_storage(target: Expr) -> Storage:
    """Evaluate a leaf's lazy storage and wait for overlapping ones; return the storage to write."""
    pending = storage_of(target).pending
    if pending is not None:
        evaluate([pending])
    storage = storage_of(target)
    wait_for_overlapping(storage)
    return storage


def wait_for_overlapping(storage: Storage) -> None:
    """Wait for the devices of all storages that overlap this one; return at once if none does."""
    if storage.overlap is not None:
        for device in {s.device for s in storage.overlap.members()}:
            open_device(device).backend.synchronize()


def may_write_at_once(storage: Storage) -> bool:
    """Return True if the host may write to the storage now, and only tensors over it change.

    Then no pending node reads it, no saved value is in it, no other thread evaluates, and neither
    a tracer nor a profile observes writes. The memory is one that the host reaches without a wait.
    """
    return not (
        storage.read_only
        or storage.watch is not None
        or flags.has_unresolved_checks
        or _is_observed()
        or not has_no_reader(storage)
        or not _turn._is_free()
    )


def _store(value: Box[Expr], target: Expr, other_references: int = 0) -> None:
    """Evaluate pending readers, then write a boxed value, by a temporary if it reads the target."""
    storage = storage_of(target)
    _evaluate_readers(target, value[0])
    if _store_directly(value[0], target, other_references) or (
        _evaluate_operands(value[0]) and _store_directly(value[0], target, other_references)
    ):
        _wait_if_visible(storage)
    else:
        _store_through_temp([_source_of_copy(pop(value))], target)


def _evaluate_operands(value: Expr) -> bool:
    """Evaluate what an op that updates its first operand reads; return False for other nodes.

    The op then writes a few elements of a target that its operands read. Otherwise a copy of the
    target is written, and copied back.
    """
    if value.op is None or not value.op.updates:
        return False
    operands = [_find_viewed(e) for e in value.args[1:] if type(e) is Expr]
    evaluate([e for e in operands if e.op is not None])
    return True


def _find_viewed(e: Expr) -> Expr:
    """Return the node behind views."""
    while e.op is not None and e.op.kind == "view":
        e = e.args[0]
    return e


def _store_through_temp(value: Box[Expr], target: Expr) -> None:
    """Compute the value in memory of its own, then copy it to the target; `value` is emptied."""
    evaluate(value)
    write(value, target)


def _source_of_copy(value: Expr) -> Expr:
    """Return the node to compute before a copy: its pending operand of equal spec, or `value`.

    The operand may be referenced elsewhere and would be stored as well.
    """
    source: Expr = value.args[0] if value.op is COPY else value
    return source if source.op is not None and source.spec is value.spec else value


def _store_directly(value: Expr, target: Expr, other_references: int) -> bool:
    """Compute a value right into the target; return False, with nothing done, if they overlap.

    A function of its own: an `Evaluation` refers to its graph, and a second evaluation in the same
    frame would then materialise all of it.
    """
    evaluation = Evaluation([value], target)
    evaluation.discount_references(other_references)
    return evaluation.run()


def _wait_if_visible(storage: Storage) -> None:
    """Wait for the device if the storage is visible outside or ops run eagerly."""
    if storage.seen or flags.depth == 0:
        _synchronize(storage.device)


def _evaluate_readers(target: Expr, value: Expr) -> None:
    """Compute the pending nodes that read the target's memory and are not part of `value`.

    Many readers of other parts of that memory are computed too: otherwise each write would have to
    look at all of them.
    """
    pending_readers = find_readers(storage_of(target))
    if len(pending_readers) <= PENDING_READERS_MAX:
        pending_readers = [e for e in pending_readers if reads(e, target)]
    if pending_readers:
        value_graph = _collect_graph(value)
        evaluate_remaining(
            [e for e in pending_readers if e not in value_graph or is_recomputed(e, value_graph)]
        )
        wait_for_overlapping(storage_of(target))


def evaluate_remaining(exprs: Sequence[Expr]) -> None:
    """Evaluate nodes, without index errors; skip nodes of an ended `vmap`, which have no value.

    Something may still hold such a node, such as a cycle of references.
    """
    try:
        evaluate(exprs, reports_checks=False)
    except TransformError:
        for e in exprs:
            with suppress(TransformError):
                evaluate([e], reports_checks=False)


def _collect_graph(root: Expr) -> set[Expr]:
    """Return all nodes that the root depends on, itself included, also behind lazy storages."""
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
