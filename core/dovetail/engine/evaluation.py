"""One evaluation of a graph: its plan, found or made, and the launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import TypeAlias

from ..backend import faults
from ..backend.faults import Check
from ..backend.streams import current_handle
from ..device_class import opened as open_device
from ..fusion import passes as fusion
from ..fusion.decisions import Graph
from ..fusion.plan import Plan, Target
from ..graph.expr import Expr, storage_of
from ..recent import Recent
from ..settings import flags
from . import events, guards, lines, programs, recording
from .events import counters
from .launching import BoundPlan, BoundStep, LaunchList, launch, run_deferred
from .walk import Walk

PLAN_LIMIT = 8192  # cached plans
LARGE = 32  # nodes of a graph whose guard is made at first sight: 100 take 150 us to walk again

_plans: Recent[tuple[Hashable, ...], BoundPlan] = programs.holding(PLAN_LIMIT)
Checks: TypeAlias = dict[int, tuple[Check, ...]]  # by the position of the node that they belong to


class Evaluation(Walk):
    """One evaluation of a graph."""

    __slots__ = ()

    def run(self, asked: bool = True) -> bool:
        """Evaluate the graph; return False, with nothing done, if the target overlaps what is read.

        A target that is read element by element is written in place.
        Raises: IndexOutOfRange, before anything is written, or where an answer is waited for.
        """
        recorder = recording.current()
        if recorder is not None:
            return recorder.run(self, asked)
        counters.evaluations += 1
        try:
            bound = self.bound()
            if bound.plan.overlaps:
                return False
            self.execute(bound, asked)
        except Exception as error:
            lines.say(error, self.nodes)
            raise
        return True

    def overlook(self, others: int) -> None:
        """Treat the value as unshared, although so many others refer to it."""
        if others and self.target is not None and not self.aim(self.target).overlaps:
            self.uses[-2] += others  # the last is the copy into the target

    def plan(self) -> Plan:
        """Return the plan; one that is made is neither compiled nor kept."""
        key, held, roots, target = self._whole_key()
        known = _plans.find(key)
        return self._planned(held, roots, target) if known is None else known.plan

    def bound(self) -> BoundPlan:
        """Return the plan from the cache; a graph that is not there is planned and compiled."""
        key, held, roots, target = self._whole_key()
        known = _plans.young.get(key) or _plans.find(key)
        likely = known is not None or len(self.nodes) >= LARGE  # that more of it come
        if known is None:
            made = self._planned(held, roots, target)
            counters.plans += 1
            known = programs.bound(open_device(self.device), made, len(self.scalars))
            _plans[key] = known
        if likely and not known.guarded:
            known.guarded = True
            guards.add(self, known, held, target)
        return known

    def _whole_key(
        self,
    ) -> tuple[tuple[Hashable, ...], tuple[int, ...], tuple[int, ...], Target | None]:
        """The key, and what is in it beyond the nodes: those held, the roots, the target."""
        held, roots, target = self.held(), tuple([self.index[r] for r in self.roots]), None
        key = self.key
        key.append(held)
        key.append(roots)
        if self.target is not None:
            target = self.aim(self.target)
            key.append(target)
        return tuple(key), held, roots, target

    def _planned(
        self, held: tuple[int, ...], roots: tuple[int, ...], target: Target | None
    ) -> Plan:
        begun = time.perf_counter_ns()
        opened = open_device(self.device)
        leaf_slot = {self.index[e]: slot for slot, e in enumerate(self.leaves)}
        calls = frozenset(opened.library_calls)
        can = opened.backend.info.capabilities
        graph = Graph(
            self.nodes, self.index, leaf_slot, roots, held, can.concurrency, calls, target,
            can.near, can.max_buffers,
        )  # fmt: skip
        plan = fusion.plan(graph)
        events.note("plan", begun, steps=len(plan.steps))
        return plan

    def execute(self, plan: BoundPlan, asked: bool) -> None:
        """Launches. Raises: as `run`."""
        device, t = self.device, self.target
        opened = device.opened or open_device(device)
        stream = current_handle(device)
        waits = t is not None or (asked and not opened.backend.asynchronous)
        given = opened, plan, self.nodes, self.leaves, self.scalars, t, stream
        if plan.is_prompt(opened, waits) and not flags.tainted:
            launch(*given)
            return
        checks = self._carried(waits) if flags.tainted else {}

        def run_checked(launches: LaunchList, step: BoundStep) -> None:
            numbers = launches.numbers
            for i, check in run_deferred(opened, step, launches.at, numbers, stream):
                check.line = self.nodes[i].asked_at
                checks[i] = (*checks.get(i, ()), check)
            if waits:
                faults.demand([check for found in checks.values() for check in found])

        steps = [step for step in plan.steps if isinstance(step, BoundStep)]
        checked = {*checks, *[i for step in steps for _, i, _ in step.checks]}
        depends = None if waits else self._depends(checked)  # before nodes become leaves
        launch(*given, run_checked)
        if depends is None or not checks:
            return
        for i, _ in plan.kept:
            if self.nodes[i].op is None:  # else it went into the target
                own = [c for j in depends(i) for c in checks.get(j, ())]
                self.nodes[i].storage.checks = tuple(own)

    def _carried(self, waits: bool) -> Checks:
        """The checks that leaves carry, by position. With `waits`, none of them may be bad."""
        if waits:
            targets = () if self.target is None else (storage_of(self.target),)
            faults.demand(faults.carried((*(e.storage for e in self.leaves), *targets)))
            return {}
        found = ((self.index[e], faults.carried((e.storage,))) for e in self.leaves)
        return {i: checks for i, checks in found if checks}

    def _depends(self, checked: Iterable[int]) -> Callable[[int], list[int]]:
        """Return a function that says on which of some nodes a node's value depends."""
        bits = {i: 1 << k for k, i in enumerate(sorted(checked))}
        sources = dict(self.lazy_leaves)
        masks: list[int] = []
        for i, e in enumerate(self.nodes):
            mask = bits.get(i, 0) | (masks[sources[i]] if i in sources else 0)
            for a in e.args:
                if type(a) is Expr:
                    mask |= masks[self.index[a]]
            masks.append(mask)
        return lambda i: [j for j, bit in bits.items() if masks[i] & bit]
