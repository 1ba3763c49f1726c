"""The pass `select_roots`, which materialises nodes before any kernel is decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ..graph.expr import Expr
from .decisions import Decisions, PlanGraph, has_own_kernels
from .reasons import Reason, ReasonKind


def select_roots(decisions: Decisions) -> None:
    """Materialise the nodes that are stored for any choice of kernels.

    These are the roots, nodes with external references, nodes with kernels of their own, and nodes
    that such a kernel or a gather reads.
    """
    reasons = {i: Reason(ReasonKind.REFERENCED) for i in decisions.graph.externally_referenced}
    reasons |= {i: Reason(ReasonKind.REQUESTED) for i in decisions.graph.roots}
    for i, expr in enumerate(decisions.graph.nodes):
        if has_own_kernels(expr):
            reasons.setdefault(i, Reason(ReasonKind.OWN_KERNEL))
            reason = Reason(ReasonKind.READ_BY_KERNEL)
            producers = decisions.graph.find_producers(i, reasons)
            _add_sources(decisions.graph, expr.args, reason, reasons, producers.sources)
            scales = [decisions.graph.nodes[s] for s in producers.scales.values()]
            _add_sources(decisions.graph, scales, reason, reasons)
        elif expr.op is not None and expr.op.kind == "gather":
            reason = Reason(ReasonKind.READ_IN_MEMORY)
            _add_sources(decisions.graph, expr.args[:1], reason, reasons)
    for i in sorted(reasons):
        decisions.materialise(i, reasons[i])


def _add_sources(
    graph: PlanGraph,
    args: Iterable[object],
    reason: Reason,
    reasons: dict[int, Reason],
    casts: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """Add a reason to `reasons` for the nodes behind operands, unless there is one.

    Views are followed to the node that they view, and `casts` to the node that they read; leaves in
    memory need none.
    """
    for a in args:
        if type(a) is Expr:
            j = graph.index[a]
            while (view := graph.view_of(j)) is not None or j in casts:
                j = casts[j] if view is None else view[0]
            if j not in graph.leaf_slot:
                reasons.setdefault(j, reason)
