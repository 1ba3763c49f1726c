"""One evaluation of a graph: the plan, cached or new, and the launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..backend import faults
from ..backend.faults import IndexCheck
from ..backend.streams import current_handle
from ..device_class import opened as open_device
from ..fusion.plan import Plan, WriteTarget
from ..graph.expr import Expr, storage_of
from ..lazy_import import LazyModule
from ..lru_cache import LRUCache
from ..settings import current, flags
from . import events, plan_cache, programs, provenance, tracer_api
from .events import counters
from .graph_key import OrderedGraph
from .launching import BoundKernel, BoundPlan, LaunchList, launch_plan, run_deferred

if TYPE_CHECKING:
    from . import shape_classes
else:
    shape_classes = LazyModule(".shape_classes", __package__)

PLAN_CACHE_MAX = 8192  # cached plans
CACHED_NODES_MIN = (
    32  # graphs of this many nodes are cached at first sight: to walk 100 again takes 150 us
)

_plans: LRUCache[tuple[Hashable, ...], BoundPlan] = programs.create_program_cache(PLAN_CACHE_MAX)
Checks: TypeAlias = dict[
    int, tuple[IndexCheck, ...]
]  # by the position of the node that they belong to


class Evaluation:
    """One evaluation of a graph."""

    __slots__ = ("_other_references", "graph")

    def __init__(self, roots: Sequence[Expr], target: Expr | None = None) -> None:
        """`target`: the leaf into which the one root is to be written."""
        self.graph = OrderedGraph(roots, target)
        self._other_references = 0

    def run(self, reports_checks: bool = True) -> bool:
        """Evaluate or trace the graph; return False, unwritten, if an operand overlaps the target.

        An operand may overlap a target that is read element by element, which is written in place.
        Raises: OutOfRangeError, before anything is written, or where an answer is waited for.
        """
        recorder = tracer_api.current()
        if recorder is not None:
            return recorder.run(self, reports_checks)
        counters.evaluations += 1
        try:
            bound_plan = self.bind()
            if bound_plan.plan.target_overlaps:
                return False
            self.execute(bound_plan, reports_checks)
        except Exception as error:
            provenance.add_lines_to_error(error, self.graph.nodes)
            raise
        return True

    def discount_references(self, other_references: int) -> None:
        """Count `other_references` as known uses of the value, if it does not read its target."""
        graph, self._other_references = self.graph, other_references
        if (
            other_references
            and graph.target is not None
            and not graph.write_target(graph.target).overlapping_slots
        ):
            graph.uses[-2] += other_references  # the last is the copy into the target

    def evaluate_first(self, nodes: list[Expr]) -> None:
        """Evaluate and remove nodes, the last one first; then build the graph of the roots again.

        The graph is deleted before: a node that it refers to would be stored.
        """
        roots, target = self.graph.roots, self.graph.target
        del self.graph
        while nodes:
            Evaluation([nodes.pop()]).run(reports_checks=False)
        self.graph = OrderedGraph(roots, target)
        self.discount_references(self._other_references)

    def plan(self) -> Plan:
        """Return the plan; a new plan is neither compiled nor cached."""
        key, referenced, roots, target = self.whole_key()
        cached = _plans.find(key)
        return self.build_plan(referenced, roots, target) if cached is None else cached.plan

    def bind(self) -> BoundPlan:
        """Return the bound plan from the cache; plan, compile and cache that of a new graph."""
        graph = self.graph
        key, referenced, roots, target = self.whole_key()
        plan = _plans.young.get(key) or _plans.find(key)
        # the graph will come again
        likely = plan is not None or len(graph.nodes) >= CACHED_NODES_MIN
        if plan is None:
            new_plan = self.build_plan(referenced, roots, target)
            plan = programs.bind_plan(open_device(graph.device), new_plan, len(graph.scalars))
            _plans[key] = plan
        if (likely or plan.plan.shape_class is not None) and not plan.is_cached:
            plan.is_cached = True
            plan_cache.cache_graph(graph, plan, referenced, target)
        return plan

    def whole_key(
        self,
    ) -> tuple[tuple[Hashable, ...], tuple[int, ...], tuple[int, ...], WriteTarget | None]:
        """Append the last parts to `key`, once; return key, referenced nodes, roots and target."""
        graph, target = self.graph, None
        referenced = graph.externally_referenced_nodes()
        roots = tuple([graph.index[r] for r in graph.roots])
        key = graph.key
        key.append(referenced)
        key.append(roots)
        key.append(current().fast_math)
        if graph.target is not None:
            target = graph.write_target(graph.target)
            key.append(target)
        return tuple(key), referenced, roots, target

    def build_plan(
        self, referenced: tuple[int, ...], roots: tuple[int, ...], target: WriteTarget | None
    ) -> Plan:
        """Return the plan of the graph; record the time in the profiles."""
        start = time.perf_counter_ns()
        plan = shape_classes.build_plan(self.graph, referenced, roots, target)
        events.note("plan", start, steps=len(plan.steps))
        return plan

    def execute(self, plan: BoundPlan, reports_checks: bool) -> None:
        """Launch the plan; turn stored nodes into leaves, which keep the unsettled checks.

        Raises: OutOfRangeError where the host waits: for a target, and by `reports_checks` on
        devices that are not asynchronous.
        """
        device, t = self.graph.device, self.graph.target
        opened = device.opened or open_device(device)
        stream = current_handle(device)
        waits = t is not None or (reports_checks and not opened.backend.asynchronous)
        arguments = opened, plan, self.graph.nodes, self.graph.leaves, self.graph.scalars, t, stream
        if plan.is_prompt(opened, waits) and not flags.has_unresolved_checks:
            launch_plan(*arguments)
            return
        checks = self._checks_of_leaves(waits) if flags.has_unresolved_checks else {}

        def run_checked(launches: LaunchList, step: BoundKernel) -> None:
            """Launch a step with deferred checks, collect those, and settle all if `waits`."""
            numbers = launches.numbers
            for i, check in run_deferred(opened, step, launches.addresses, numbers, stream):
                check.line = self.graph.nodes[i].check_line
                checks[i] = (*checks.get(i, ()), check)
            if waits:
                faults.settle_checks([check for of_node in checks.values() for check in of_node])

        steps = [step for step in plan.steps if isinstance(step, BoundKernel)]
        checked = {*checks, *[i for step in steps for _, i, _ in step.checks]}
        depends = (
            None if waits else self._build_dependency_query(checked)
        )  # before nodes become leaves
        launch_plan(*arguments, run_checked)
        if depends is None or not checks:
            return
        for i, _ in plan.kept:
            if self.graph.nodes[i].op is None:  # else it went into the target
                own = [c for j in depends(i) for c in checks.get(j, ())]
                self.graph.nodes[i].storage.checks = tuple(own)

    def _checks_of_leaves(self, waits: bool) -> Checks:
        """Return open or failed checks of leaves by position; if `waits`, settle all and return {}.

        Raises: OutOfRangeError, if `waits`. The target's checks are settled, too.
        """
        if waits:
            targets = () if self.graph.target is None else (storage_of(self.graph.target),)
            faults.settle_checks(
                faults.inherited_checks((*(e.storage for e in self.graph.leaves), *targets))
            )
            return {}
        checks_by_node = (
            (self.graph.index[e], faults.inherited_checks((e.storage,))) for e in self.graph.leaves
        )
        return {i: checks for i, checks in checks_by_node if checks}

    def _build_dependency_query(self, checked: Iterable[int]) -> Callable[[int], list[int]]:
        """Return a function that maps a position to the `checked` positions that it depends on."""
        bits = {i: 1 << k for k, i in enumerate(sorted(checked))}
        sources = dict(self.graph.lazy_leaves)
        masks: list[int] = []
        for i, e in enumerate(self.graph.nodes):
            mask = bits.get(i, 0) | (masks[sources[i]] if i in sources else 0)
            for a in e.args:
                if type(a) is Expr:
                    mask |= masks[self.graph.index[a]]
            masks.append(mask)
        return lambda i: [j for j, bit in bits.items() if masks[i] & bit]
