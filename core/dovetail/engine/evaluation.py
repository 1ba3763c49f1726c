"""One evaluation of a graph: its plan, found or made, and the launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from ..backend import faults
from ..backend.faults import Check
from ..backend.streams import current_handle
from ..device_class import opened as open_device
from ..fusion import passes as fusion
from ..fusion.decisions import Graph
from ..fusion.plan import Plan, Target
from ..graph.expr import Expr, settle, storage_of
from ..memory.pointer import StreamHandle
from ..memory.storage import storage_at
from ..plugins.blame import blame
from ..plugins.opened import Opened
from ..recent import Recent
from ..settings import flags
from . import events, guards, lines, programs, recording
from .events import counters
from .launching import BoundCall, BoundPlan, BoundStep, Slots, addresses, call, launch, together
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
        if plan.is_prompt(opened, waits) and not events.profiles and not flags.tainted:
            launch(opened, plan, self.nodes, self.leaves, self.scalars, t, stream)
            return
        checks = self._carried(waits) if flags.tainted else {}
        at = addresses(plan, self.leaves, t)
        if opened.streams:
            opened.share(stream, (e.storage for e in (*self.leaves, *([] if t is None else [t]))))
        keep = plan.none.copy()
        allocate, scalars, steps = opened.allocate, self.scalars, plan.steps
        if opened.batches and not plan.checks and not events.profiles:
            together(opened, plan, at, keep, self.nodes, scalars, stream)
            steps = []
        for step in steps:
            for slot, nbytes in step.fresh:
                keep[slot] = ptr = allocate(nbytes, stream)
                at[2 * slot] = ptr.handle
                at[2 * slot + 1] = ptr.offset
            if isinstance(step, BoundStep):
                if not step.empty:
                    for i, check in launch_step(opened, step, at, scalars, stream):
                        check.line = self.nodes[i].asked_at
                        checks[i] = (*checks.get(i, ()), check)
                    if step.step.checks and waits:
                        faults.demand([check for found in checks.values() for check in found])
            elif isinstance(step, BoundCall):
                _call(opened, step, at, stream)
            if step.drops:
                for slot in step.drops:
                    keep[slot] = None
        depends = None if waits or not checks else self._depends(checks)
        for i, slot in plan.kept:
            kept = keep[slot]
            if kept is not None:  # None: it went into the target
                settle(self.nodes[i], storage_at(kept, kept.nbytes, device))
                if depends is not None:
                    self.nodes[i].storage.checks = depends(i)

    def _carried(self, waits: bool) -> Checks:
        """The checks that leaves carry, by position. With `waits`, none of them may be bad."""
        if waits:
            targets = () if self.target is None else (storage_of(self.target),)
            faults.demand(faults.carried((*(e.storage for e in self.leaves), *targets)))
            return {}
        found = ((self.index[e], faults.carried((e.storage,))) for e in self.leaves)
        return {i: checks for i, checks in found if checks}

    def _depends(self, checks: Checks) -> Callable[[int], tuple[Check, ...]]:
        """What says on which of these checks, each of a node, a node's value depends."""
        bits = {i: 1 << k for k, i in enumerate(checks)}
        sources = dict(self.lazy_leaves)
        masks: list[int] = []
        for i, e in enumerate(self.nodes):
            mask = bits.get(i, 0) | (masks[sources[i]] if i in sources else 0)
            for a in e.args:
                if type(a) is Expr:
                    mask |= masks[self.index[a]]
            masks.append(mask)
        of = [(bits[i], found) for i, found in checks.items()]
        return lambda i: tuple(c for bit, found in of if masks[i] & bit for c in found)


def launch_step(
    opened: Opened,
    bound: BoundStep,
    at: Slots,
    scalars: Sequence[float | int | bool],
    stream: StreamHandle,
) -> list[tuple[int, Check]]:
    """A launch in full: with static offsets, traced, or with error cells.

    Their checks come back, each with the node that it belongs to.
    """
    made, step = [], bound.step
    for slot, i, purpose in step.checks:
        check = opened.faults.check(purpose, stream)
        at[2 * slot : 2 * slot + 2] = opened.faults.place(check)
        made.append((i, check))
    args: list[object] = []
    for slot, offset in step.buffers:
        args += (at[2 * slot], at[2 * slot + 1] + offset)
    begun = time.perf_counter_ns()
    try:
        bound.run(tuple(args), [scalars[i] for i in step.scalars], stream)
    except Exception as error:
        blame(opened.device, f"the launch of {step.kernel.name}", step.kernel, error)
        raise
    finally:  # refused or not: the cells say nothing wrong
        for _, check in made:
            check.queued = True
    counters.launches += 1
    if events.profiles:
        opened.backend.synchronize(stream)
        live = opened.allocator.stats().live_bytes
        events.note(
            f"launch {step.kernel.name}", begun, grid=step.grid, bytes=step.nbytes, live=live,
            device=str(opened.device),
        )  # fmt: skip
    return made


def _call(opened: Opened, bound: BoundCall, at: Slots, stream: StreamHandle) -> None:
    begun = time.perf_counter_ns()
    call(opened, bound, at, stream)
    events.note(
        f"call {bound.call.op.name}", begun, bytes=bound.call.nbytes, device=str(opened.device)
    )
