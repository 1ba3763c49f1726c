"""Graph to plan, as a list of passes over one value: `PASSES`, and the entry `plan`.

A pass decides more, or builds what was decided. With `DOVETAIL_TRACE=fusion` in the environment
each says on stderr what it has changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..compiled import Uncollected
from ..environment import words
from .decisions import Decisions, Graph
from .emit import emit
from .placing import group
from .plan import Call, Materialised, Plan
from .seeding import seed
from .split_rows import split

TRACES = ("fusion",)  # what DOVETAIL_TRACE may name


def release(d: Decisions) -> None:
    """Notes on each launch which memory nothing later needs."""
    leaves, kept = len(d.graph.leaf_slot), {d.slot_of[i] for i in d.graph.kept}
    seen: set[int] = set()
    for step in reversed(d.steps):
        if isinstance(step, Call):
            used = {x.slot for x in step.inputs}
        else:
            used = {slot for slot, _ in step.buffers}
        step.drops = tuple(s for s in used - seen if s >= leaves and s not in kept)
        seen |= used


PASSES: tuple[Callable[[Decisions], None], ...] = (
    seed,  # what is materialised, whatever the kernels
    split,  # which reductions' rows are cut into chunks
    group,  # which kernel writes what, and what else is materialised for that
    emit,  # the launches
    release,  # when memory is done with
)


def plan(graph: Graph) -> Plan:
    """The launches for a graph, in order; or that its target overlaps what is read."""
    with Uncollected():
        d = Decisions(graph)
        traced = "fusion" in words("DOVETAIL_TRACE", TRACES)
        for run in PASSES:
            before = str(d) if traced else ""
            run(d)
            if traced:
                _say(run.__name__, before, str(d))
            if d.overlaps:
                return Plan([], 0, (), [], overlaps=True)
        return _finished(d)


def _say(name: str, before: str, after: str) -> None:
    """Says what a pass has changed."""
    old, new = before.splitlines(), after.splitlines()
    gone, come = {*old} - {*new}, {*new} - {*old}
    lines = [f"  - {line}" for line in old if line in gone]
    lines += [f"  + {line}" for line in new if line in come]
    print(f"fusion, {name}:", *(lines or ["  unchanged"]), sep="\n", file=sys.stderr)


def _finished(d: Decisions) -> Plan:
    graph = d.graph
    # What nobody holds is dropped after its last use: its nodes are gone when this is done.
    kept = tuple((i, s) for i, s in d.slot_of.items() if i in graph.kept)
    materialised = []
    for i in sorted(d.materialised):
        e = graph.nodes[i]
        name = "leaf" if e.op is None else e.op.name
        materialised.append(Materialised(name, e.spec, d.materialised[i]))
    return Plan(d.steps, d.slots, kept, materialised)
