"""Planning as a list of passes over one value: `PASSES`, and the entry `plan`.

A pass decides more, or builds what was decided. With `DOVETAIL_TRACE=fusion` in the environment
each pass reports its changes on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..build_info import Uncollected
from ..environment import words
from .decisions import Decisions, Graph
from .emit_launches import emit
from .grouping import group
from .plan import Call, Materialised, Plan
from .roots import seed
from .split_rows import split

TRACES = ("fusion",)  # valid words of DOVETAIL_TRACE


def release(decisions: Decisions) -> None:
    """Record for each launch the memory that no later launch needs."""
    leaves, kept_slots = (
        len(decisions.graph.leaf_slot),
        {decisions.slot_of[i] for i in decisions.graph.kept},
    )
    used_later: set[int] = set()
    for step in reversed(decisions.steps):
        if isinstance(step, Call):
            used = {x.slot for x in step.inputs}
        else:
            used = {slot for slot, _ in step.buffers}
        step.drops = tuple(s for s in used - used_later if s >= leaves and s not in kept_slots)
        used_later |= used


PASSES: tuple[Callable[[Decisions], None], ...] = (
    seed,  # materialises nodes that any kernels would have to write
    split,  # cuts rows of reductions into chunks
    group,  # assigns nodes to kernels, and materialises what that needs
    emit,  # builds the launches
    release,  # records the last use of memory
)


def plan(graph: Graph) -> Plan:
    """Return the launches for a graph, in order.

    The plan has no launches if the graph's target overlaps what is read.
    """
    with Uncollected():
        decisions = Decisions(graph)
        traced = "fusion" in words("DOVETAIL_TRACE", TRACES)
        for run in PASSES:
            before = str(decisions) if traced else ""
            run(decisions)
            if traced:
                _print_changes(run.__name__, before, str(decisions))
            if decisions.overlaps:
                return Plan([], 0, (), [], overlaps=True)
        return _build_plan(decisions)


def _print_changes(name: str, before: str, after: str) -> None:
    """Print what a pass has changed."""
    old, new = before.splitlines(), after.splitlines()
    removed, added = {*old} - {*new}, {*new} - {*old}
    lines = [f"  - {line}" for line in old if line in removed]
    lines += [f"  + {line}" for line in new if line in added]
    print(f"fusion, {name}:", *(lines or ["  unchanged"]), sep="\n", file=sys.stderr)


def _build_plan(decisions: Decisions) -> Plan:
    """Return the plan that the decisions describe."""
    graph = decisions.graph
    # A value without other references is dropped after its last use: its nodes do not outlive this.
    kept_slots = tuple((i, s) for i, s in decisions.slot_of.items() if i in graph.kept)
    materialised = []
    for i in sorted(decisions.materialised):
        expr = graph.nodes[i]
        name = "leaf" if expr.op is None else expr.op.name
        materialised.append(Materialised(name, expr.spec, decisions.materialised[i]))
    return Plan(decisions.steps, decisions.slots, kept_slots, materialised)
