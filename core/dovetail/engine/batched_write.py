"""Batched writes: several tensors written by one evaluation, as in an optimiser's step."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..backend.streams import current_handle
from ..device_class import opened as open_device
from ..fusion.in_place import redirect_to_rows, redirect_to_targets
from ..graph.expr import Expr, find_readers, is_recomputed, reads, storage_of
from ..lru_cache import LRUCache
from ..plugins.device_handle import OpenedDevice
from ..settings import flags
from . import events, programs, tracer_api
from .evaluate import counters, engine_lock, evaluate
from .evaluation import Evaluation
from .launching import BoundPlan, launch_plan

_plans: LRUCache[tuple[Hashable, ...], BoundPlan] = programs.create_program_cache(1024)


class BatchedWrite:
    """An evaluation of several roots that writes each into its target, or into rows of it.

    row_indices: the leaf with the indices of the rows.
    """

    __slots__ = ("evaluation", "row_indices", "targets")

    def __init__(
        self, roots: Sequence[Expr], targets: Sequence[Expr], row_indices: Expr | None = None
    ) -> None:
        self.evaluation = Evaluation(roots)
        self.targets, self.row_indices = targets, row_indices
        graph = self.evaluation.graph
        for r in roots:
            graph.uses[graph.index[r]] += 1  # the references from `roots`

    def has_unaliased_targets(self) -> bool:
        """Return True if targets are dense and unaliased, only `roots` has values, no leaf is lazy.

        Unaliased: in distinct storages, none of which overlaps another.
        """
        if any(t.storage.overlap is not None for t in self.targets):
            return False
        graph = self.evaluation.graph
        roots = {graph.index[r] for r in graph.roots}
        storages = {id(t.storage) for t in self.targets}
        return (
            len(roots) == len(storages) == len(self.targets)
            and not graph.lazy_leaves
            and all(t.strides == t.spec.strides for t in self.targets)
            and roots.isdisjoint(graph.externally_referenced_nodes())
        )

    def find_index_slots(self, row_indices: Expr) -> tuple[int, ...]:
        """Return the slots of leaves with all elements of `row_indices`, or () if that has gaps."""
        if row_indices.strides != row_indices.spec.strides:
            return ()
        return tuple(
            slot
            for slot, e in enumerate(self.evaluation.graph.leaves)
            if e.storage is row_indices.storage
            and e.offset == row_indices.offset
            and e.spec.size == row_indices.spec.size
            and e.spec.dtype is row_indices.spec.dtype
        )

    def bind(self) -> BoundPlan:
        """Return the cached or new plan; append targets to the leaves unless operands overlap."""
        graph = self.evaluation.graph
        key, referenced, roots, _ = self.evaluation.whole_key()
        write_targets = [graph.write_target(t) for t in self.targets]
        at = None if self.row_indices is None else self.find_index_slots(self.row_indices)
        key_with_targets = (*key, *write_targets, at)
        plan = _plans.find(key_with_targets)
        if plan is None:
            opened = open_device(graph.device)
            unwritten_plan = self.evaluation.build_plan(referenced, roots, None)
            writing_plan = (
                redirect_to_targets(unwritten_plan, roots, write_targets)
                if at is None
                else redirect_to_rows(unwritten_plan, roots, write_targets, at)
            )
            plan = _plans[key_with_targets] = programs.bind_plan(
                opened, writing_plan, len(graph.scalars)
            )
        if not plan.plan.target_overlaps:
            graph.leaves = [*graph.leaves, *self.targets]
        return plan

    def run(self) -> bool:
        """Run or trace the writes; return False, unwritten, if operands overlap or it is refused.

        A refused write is done one by one by the caller.
        """
        recorder = tracer_api.current()
        if recorder is not None:
            return recorder.run_batch(self)
        counters.evaluations += 1
        plan = self.bind()
        if plan.plan.target_overlaps:
            return False
        self.execute(plan)
        return True

    def execute(self, plan: BoundPlan) -> None:
        """Launch the plan on the current stream; turn the nodes that it stores into leaves."""
        if events.profiles:
            self.evaluation.execute(plan, reports_checks=False)
            return
        graph = self.evaluation.graph
        opened = open_device(graph.device)
        stream = current_handle(graph.device)
        launch_plan(opened, plan, graph.nodes, graph.leaves, graph.scalars, None, stream)


def write_batch(
    roots: list[Expr], targets: Sequence[Expr], row_indices: Expr | None = None
) -> bool:
    """Write pending nodes straight into the memory of leaves; return False, unwritten, if refused.

    The list `roots` must have the only references to the nodes. They have exactly the leaves'
    specs, or they are rows that go to the indices in a leaf `row_indices`, which are in range and
    distinct. Pending targets and readers of their memory may be evaluated in either case.
    """
    with engine_lock:
        return _write(roots, targets, row_indices)


def _write(roots: list[Expr], targets: Sequence[Expr], at: Expr | None) -> bool:
    """Do `write_batch` under the engine lock; evaluate pending targets and readers first."""
    if flags.has_unresolved_checks or not _is_one_device([*roots, *targets]):
        return False
    recorder = tracer_api.current()
    if recorder is not None:
        for e in reversed(Evaluation(roots).graph.nodes):
            if e.op is not None:
                recorder.evaluate_earlier(e)
    if any(r.op is None for r in roots):
        return False
    for t in targets:
        pending = storage_of(t).pending
        if pending is not None:
            evaluate((pending,), False)
            storage_of(t)
    write = BatchedWrite(roots, targets, at)
    if not write.has_unaliased_targets() or _is_recomputed(write):
        return False
    _evaluate_readers(write)
    if not write.run():
        return False
    _synchronize(open_device(write.evaluation.graph.device), targets)
    return True


def _is_one_device(exprs: Sequence[Expr]) -> bool:
    """Return True if all nodes are on the device of the first one."""
    return all(e.spec.device is exprs[0].spec.device for e in exprs)


def _is_recomputed(write: BatchedWrite) -> bool:
    """Return True if a node outside would recompute a node inside that reads a target's memory."""
    inside = write.evaluation.graph.index
    return any(
        e in inside and reads(e, t) and is_recomputed(e, inside)
        for t in write.targets
        for e in find_readers(storage_of(t))
    )


def _evaluate_readers(write: BatchedWrite) -> None:
    """Compute the pending nodes outside of this evaluation that read the targets' memory."""
    pending_readers = {
        e: None
        for t in write.targets
        for e in find_readers(storage_of(t))
        if e not in write.evaluation.graph.index and reads(e, t)
    }
    if pending_readers:
        evaluate([*pending_readers], reports_checks=False)


def _synchronize(opened: OpenedDevice, targets: Sequence[Expr]) -> None:
    """Wait for the current stream if ops run eagerly or a target's memory is visible outside."""
    if opened.asynchronous and (flags.depth == 0 or any(t.storage.seen for t in targets)):
        opened.backend.synchronize(current_handle(opened.device))
