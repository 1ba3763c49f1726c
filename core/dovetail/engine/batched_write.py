"""Batched writes: several tensors written by one evaluation, as in an optimiser's step."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..backend.streams import current_handle
from ..device_class import opened as open_device
from ..fusion.in_place import in_place, to_rows
from ..graph.expr import Expr, is_recomputed, readers, reads, storage_of
from ..lru_cache import LRUCache
from ..plugins.device_handle import Opened
from ..settings import flags
from . import events, programs, tracer_api
from .evaluate import counters, evaluate, lock
from .evaluation import Evaluation
from .launching import BoundPlan, launch

_plans: LRUCache[tuple[Hashable, ...], BoundPlan] = programs.holding(1024)


class Together(Evaluation):
    """An evaluation that writes each root into its target, or into rows of it.

    at: the leaf with the indices of the rows.
    """

    __slots__ = ("at", "targets")

    def __init__(
        self, roots: Sequence[Expr], targets: Sequence[Expr], at: Expr | None = None
    ) -> None:
        super().__init__(roots)
        self.targets, self.at = targets, at
        for r in roots:
            self.uses[self.index[r]] += 1  # the references from `roots`

    def is_simple(self) -> bool:
        """Return True if only `roots` refers to the values, and no two targets share memory."""
        if any(t.storage.overlap is not None for t in self.targets):
            return False
        roots = {self.index[r] for r in self.roots}
        storages = {id(t.storage) for t in self.targets}
        return (
            len(roots) == len(storages) == len(self.targets)
            and not self.lazy_leaves
            and all(t.strides == t.spec.strides for t in self.targets)
            and roots.isdisjoint(self.externally_referenced_nodes())
        )

    def index_slots(self, at: Expr) -> tuple[int, ...]:
        """Return the slots of leaves that view all of `at`; none if `at` is not contiguous."""
        if at.strides != at.spec.strides:
            return ()
        return tuple(
            slot
            for slot, e in enumerate(self.leaves)
            if e.storage is at.storage
            and e.offset == at.offset
            and e.spec.size == at.spec.size
            and e.spec.dtype is at.spec.dtype
        )

    def bind(self) -> BoundPlan:
        """Return the bound plan; if the writes are possible, add the targets to the leaves."""
        key, referenced, roots, _ = self._whole_key()
        write_targets = [self.write_target(t) for t in self.targets]
        at = None if self.at is None else self.index_slots(self.at)
        key_with_targets = (*key, *write_targets, at)
        plan = _plans.find(key_with_targets)
        if plan is None:
            opened = open_device(self.device)
            unwritten_plan = self._build_plan(referenced, roots, None)
            writing_plan = (
                in_place(unwritten_plan, roots, write_targets)
                if at is None
                else to_rows(unwritten_plan, roots, write_targets, at)
            )
            counters.plans += 1
            plan = _plans[key_with_targets] = programs.bind(opened, writing_plan, len(self.scalars))
        if not plan.plan.overlaps:
            self.leaves = [*self.leaves, *self.targets]
        return plan

    def run(self, asked: bool = True) -> bool:
        """Run the writes; return True if they were done."""
        recorder = tracer_api.current()
        if recorder is not None:
            return recorder.run(self, asked)
        counters.evaluations += 1
        plan = self.bind()
        if plan.plan.overlaps:
            return False
        self.execute(plan, asked)
        return True

    def execute(self, plan: BoundPlan, asked: bool) -> None:
        """Launch the steps of the plan."""
        if events.profiles:
            super().execute(plan, asked)
            return
        opened = open_device(self.device)
        stream = current_handle(self.device)
        launch(opened, plan, self.nodes, self.leaves, self.scalars, None, stream)


def write_together(roots: list[Expr], targets: Sequence[Expr], at: Expr | None = None) -> bool:
    """Compute pending nodes right into the memory of leaves; return False if that is impossible.

    The list `roots` must have the only references to the nodes. They have exactly the leaves'
    specs, or they are rows that go to the indices in a leaf `at`, which are in range and distinct.
    """
    with lock:
        return _write(roots, targets, at)


def _write(roots: list[Expr], targets: Sequence[Expr], at: Expr | None) -> bool:
    if flags.tainted or not _is_one_device([*roots, *targets]):
        return False
    recorder = tracer_api.current()
    if recorder is not None:
        for e in reversed(Evaluation(roots).nodes):
            if e.op is not None:
                recorder.evaluate_earlier(e)
    if any(r.op is None for r in roots):
        return False
    for t in targets:
        pending = storage_of(t).pending
        if pending is not None:
            evaluate((pending,), False)
            storage_of(t)
    evaluation = Together(roots, targets, at)
    if not evaluation.is_simple() or _is_recomputed(evaluation):
        return False
    _flush(evaluation)
    if not evaluation.run(False):
        return False
    _synchronize(open_device(evaluation.device), targets)
    return True


def _is_one_device(exprs: Sequence[Expr]) -> bool:
    return all(e.spec.device is exprs[0].spec.device for e in exprs)


def _is_recomputed(evaluation: Together) -> bool:
    """Return True if a rematerialised node would read the targets' memory again."""
    inside = evaluation.index
    return any(
        e in inside and reads(e, t) and is_recomputed(e, inside)
        for t in evaluation.targets
        for e in readers(storage_of(t))
    )


def _flush(evaluation: Together) -> None:
    """Compute the pending nodes outside of this evaluation that read the targets' memory."""
    pending_readers = {
        e: None
        for t in evaluation.targets
        for e in readers(storage_of(t))
        if e not in evaluation.index and reads(e, t)
    }
    if pending_readers:
        evaluate([*pending_readers], asked=False)


def _synchronize(opened: Opened, targets: Sequence[Expr]) -> None:
    if opened.asynchronous and (flags.depth == 0 or any(t.storage.seen for t in targets)):
        opened.backend.synchronize(current_handle(opened.device))
