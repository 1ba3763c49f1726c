"""Several writes in one evaluation: what an optimiser does to all of its tensors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..backend.streams import current_handle
from ..device_class import opened as open_device
from ..fusion.in_place import in_place, to_rows
from ..graph.expr import Expr, is_recomputed, readers, reads, storage_of
from ..plugins.opened import Opened
from ..recent import Recent
from ..settings import flags
from . import events, programs, recording
from .evaluate import counters, evaluate, lock
from .evaluation import Evaluation
from .launching import BoundPlan, launch

_plans: Recent[tuple[Hashable, ...], BoundPlan] = programs.holding(1024)


class Together(Evaluation):
    """An evaluation whose roots go where leaves are: each into its target, or into rows of it.

    `at`: the leaf that names these rows.
    """

    __slots__ = ("at", "targets")

    def __init__(
        self, roots: Sequence[Expr], targets: Sequence[Expr], at: Expr | None = None
    ) -> None:
        super().__init__(roots)
        self.targets, self.at = targets, at
        for r in roots:
            self.uses[self.index[r]] += 1  # by `roots`

    def is_simple(self) -> bool:
        """Return True if only `roots` refers to the values, and no two targets share memory."""
        if any(t.storage.overlap is not None for t in self.targets):
            return False
        roots = {self.index[r] for r in self.roots}
        places = {id(t.storage) for t in self.targets}
        return (
            len(roots) == len(places) == len(self.targets)
            and not self.lazy_leaves
            and all(t.strides == t.spec.strides for t in self.targets)
            and roots.isdisjoint(self.held())
        )

    def places(self, at: Expr) -> tuple[int, ...]:
        """The slots of leaves that are `at`, or views of all of it; none where it lies apart."""
        if at.strides != at.spec.strides:
            return ()
        return tuple(
            slot
            for slot, e in enumerate(self.leaves)
            if e.storage is at.storage and e.offset == at.offset
            and e.spec.size == at.spec.size and e.spec.dtype is at.spec.dtype
        )  # fmt: skip

    def bound(self) -> BoundPlan:
        """The launches; where they can be done, the targets count as leaves from now on."""
        key, held, roots, _ = self._whole_key()
        aims = [self.aim(t) for t in self.targets]
        at = None if self.at is None else self.places(self.at)
        whole = (*key, *aims, at)
        known = _plans.find(whole)
        if known is None:
            opened = open_device(self.device)
            plan = self._planned(held, roots, None)
            made = in_place(plan, roots, aims) if at is None else to_rows(plan, roots, aims, at)
            counters.plans += 1
            known = _plans[whole] = programs.bound(opened, made, len(self.scalars))
        if not known.plan.overlaps:
            self.leaves = [*self.leaves, *self.targets]
        return known

    def run(self, asked: bool = True) -> bool:
        """Run the writes; return True if they were done."""
        recorder = recording.current()
        if recorder is not None:
            return recorder.run(self, asked)
        counters.evaluations += 1
        bound = self.bound()
        if bound.plan.overlaps:
            return False
        self.execute(bound, asked)
        return True

    def execute(self, plan: BoundPlan, asked: bool) -> None:
        """Launches."""
        if events.profiles:
            super().execute(plan, asked)
            return
        opened = open_device(self.device)
        stream = current_handle(self.device)
        launch(opened, plan, self.nodes, self.leaves, self.scalars, None, stream)


def write_together(roots: list[Expr], targets: Sequence[Expr], at: Expr | None = None) -> bool:
    """Computes pending nodes right into the memory of leaves; whether that could be done.

    Nothing else may hold the nodes but `roots`. They are of exactly the leaves' specs, or rows that
    go where a leaf `at` says: there is a place for each, and none is named twice.
    """
    with lock:
        return _write(roots, targets, at)


def _write(roots: list[Expr], targets: Sequence[Expr], at: Expr | None) -> bool:
    if flags.tainted or not _is_one_device([*roots, *targets]):
        return False
    recorder = recording.current()
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
    _written(open_device(evaluation.device), targets)
    return True


def _is_one_device(exprs: Sequence[Expr]) -> bool:
    return all(e.spec.device is exprs[0].spec.device for e in exprs)


def _is_recomputed(evaluation: Together) -> bool:
    """Return True if a rematerialised node would read again what is to be written."""
    inside = evaluation.index
    return any(
        e in inside and reads(e, t) and is_recomputed(e, inside)
        for t in evaluation.targets
        for e in readers(storage_of(t))
    )


def _flush(evaluation: Together) -> None:
    """Computes what is pending, reads what is to be written, and is no part of this."""
    found = {
        e: None
        for t in evaluation.targets
        for e in readers(storage_of(t))
        if e not in evaluation.index and reads(e, t)
    }
    if found:
        evaluate([*found], asked=False)


def _written(opened: Opened, targets: Sequence[Expr]) -> None:
    if opened.asynchronous and (flags.depth == 0 or any(t.storage.seen for t in targets)):
        opened.backend.synchronize(current_handle(opened.device))
