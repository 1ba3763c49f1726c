"""Planning as a list of passes over one value: `PASSES`, and the entry `plan`.

A pass decides more, or builds what was decided. With `DOVETAIL_TRACE=fusion` in the environment
each pass reports its changes on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from ..build_info import GcPause
from ..environment import read_words
from .decisions import Decisions, PlanGraph
from .emit_launches import emit
from .grouping import group
from .plan import Materialised, Plan, PlannedCall, PlannedLaunch
from .roots import select_roots
from .split_rows import split_reductions

TRACES = ("fusion",)  # valid words of DOVETAIL_TRACE


def mark_last_uses(decisions: Decisions) -> None:
    """Record in each launch the slots that no later launch or output needs."""
    leaves, kept_slots = (
        len(decisions.graph.leaf_slot),
        {decisions.slot_of[i] for i in decisions.graph.output_nodes},
    )
    used_later: set[int] = set()
    for step in reversed(decisions.steps):
        if isinstance(step, PlannedCall):
            used = {x.slot for x in step.inputs}
        else:
            used = {slot for slot, _ in step.buffers}
        step.released_slots = tuple(
            s for s in used - used_later if s >= leaves and s not in kept_slots
        )
        used_later |= used


PASSES: tuple[Callable[[Decisions], None], ...] = (
    select_roots,  # materialises nodes that any kernels would have to write
    split_reductions,  # cuts rows of reductions into chunks
    group,  # assigns nodes to kernels, and materialises what that needs
    emit,  # builds the launches
    mark_last_uses,  # records the last use of memory
)


def plan(graph: PlanGraph, fast_math: bool = False) -> Plan:
    """Run all passes; return the plan, without launches if the target overlaps an operand.

    fast_math: kernels may contract, and divide approximately.
    """
    with GcPause():
        decisions = Decisions(graph)
        traced = "fusion" in read_words("DOVETAIL_TRACE", TRACES)
        for run in PASSES:
            before = str(decisions) if traced else ""
            run(decisions)
            if traced:
                _print_changes(run.__name__, before, str(decisions))
            if decisions.target_overlaps:
                return Plan([], 0, (), [], target_overlaps=True)
        if fast_math:
            for step in decisions.steps:
                if isinstance(step, PlannedLaunch):
                    step.kernel = replace(step.kernel, fast_math=True)
        return _build_plan(decisions)


def _print_changes(name: str, before: str, after: str) -> None:
    """Print the changed lines of the decisions after a pass to stderr."""
    old, new = before.splitlines(), after.splitlines()
    removed, added = {*old} - {*new}, {*new} - {*old}
    lines = [f"  - {line}" for line in old if line in removed]
    lines += [f"  + {line}" for line in new if line in added]
    print(f"fusion, {name}:", *(lines or ["  unchanged"]), sep="\n", file=sys.stderr)


def _build_plan(decisions: Decisions) -> Plan:
    """Build the plan that the decisions describe."""
    graph = decisions.graph
    # A value without other references is dropped after its last use: its nodes do not outlive this.
    kept_slots = tuple((i, s) for i, s in decisions.slot_of.items() if i in graph.output_nodes)
    materialised = []
    for i in sorted(decisions.materialised):
        expr = graph.nodes[i]
        name = "leaf" if expr.op is None else expr.op.name
        materialised.append(Materialised(name, expr.spec, decisions.materialised[i]))
    return Plan(decisions.steps, decisions.slot_count, kept_slots, materialised)
