"""Several writes in one evaluation: what an optimiser does to all of its tensors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..backend.streams import current_handle
from ..device import opened as open_device
from ..fusion.in_place import in_place
from ..graph.expr import Expr, readers, reads, storage_of
from ..plugins.opened import Opened
from ..recent import Recent
from ..settings import flags
from . import events, programs, recording
from .evaluate import Evaluation, counters, evaluate, lock
from .launching import launch
from .programs import BoundPlan

_plans: Recent[tuple[Hashable, ...], BoundPlan] = programs.holding(1024)


class Together(Evaluation):
    """An evaluation whose roots go where leaves are: each into its target."""

    __slots__ = ("targets",)

    def __init__(self, roots: Sequence[Expr], targets: Sequence[Expr]) -> None:
        super().__init__(roots)
        self.targets = targets
        for r in roots:
            self.uses[self.index[r]] += 1  # by `roots`

    def is_simple(self) -> bool:
        """Whether nobody else holds what is to be written, and no two places are one."""
        roots = {self.index[r] for r in self.roots}
        places = {id(t.storage) for t in self.targets}
        return (
            len(roots) == len(places) == len(self.targets)
            and not self.lazy_leaves
            and all(t.strides == t.spec.strides for t in self.targets)
            and roots.isdisjoint(self.held())
        )

    def bound(self) -> BoundPlan:
        """The launches; where they can be done, the targets count as leaves from now on."""
        key, held, roots, _ = self._whole_key()
        aims = [self.aim(t) for t in self.targets]
        whole = (*key, *aims)
        known = _plans.find(whole)
        if known is None:
            opened = open_device(self.device)
            made = in_place(self._planned(held, roots, None), roots, aims)
            counters.plans += 1
            known = _plans[whole] = programs.bound(opened, made, len(self.scalars))
        if not known.plan.overlaps:
            self.leaves = [*self.leaves, *self.targets]
        return known

    def run(self, asked: bool = True) -> bool:
        """Whether it was done."""
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


def write_together(roots: list[Expr], targets: Sequence[Expr]) -> bool:
    """Computes pending nodes right into the memory of leaves; whether that could be done.

    Nothing else may hold the nodes, of exactly the leaves' specs, but `roots`.
    """
    with lock:
        return _write(roots, targets)


def _write(roots: list[Expr], targets: Sequence[Expr]) -> bool:
    if flags.tainted or not _is_one_device([*roots, *targets]):
        return False
    recorder = recording.current()
    if recorder is not None:
        for e in _earlier(roots, recorder):
            recorder.settle_earlier(e)
    if any(r.op is None for r in roots):
        return False
    for t in targets:
        pending = storage_of(t).pending
        if pending is not None:
            evaluate((pending,), False)
            storage_of(t)
    evaluation = Together(roots, targets)
    if not evaluation.is_simple():
        return False
    _flush(evaluation)
    if not evaluation.run(False):
        return False
    _written(open_device(evaluation.device), targets)
    return True


def _is_one_device(exprs: Sequence[Expr]) -> bool:
    return all(e.spec.device is exprs[0].spec.device for e in exprs)


def _earlier(roots: Sequence[Expr], recorder: recording.Recorder) -> list[Expr]:
    """What is needed and was pending before anything was recorded."""
    found = [e for e in Evaluation(roots).nodes if e.op is not None and recorder.is_earlier(e)]
    return found[::-1]


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
