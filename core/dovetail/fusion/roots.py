"""The pass `select_roots`, which materialises nodes before any kernel is decided."""

from __future__ import annotations

from collections.abc import Mapping
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
            casts = decisions.graph.find_cast_sources(i, reasons)
            _add_sources(decisions.graph, i, len(expr.args), reason, reasons, casts)
        elif expr.op is not None and expr.op.kind == "gather":
            _add_sources(decisions.graph, i, 1, Reason(ReasonKind.READ_IN_MEMORY), reasons)
    for i in sorted(reasons):
        decisions.materialise(i, reasons[i])


def _add_sources(
    graph: PlanGraph,
    i: int,
    count: int,
    reason: Reason,
    reasons: dict[int, Reason],
    casts: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """Add a reason to `reasons` for nodes behind a node's first operands, unless there is one.

    Views are followed to the node that they view, and `casts` to the node that they read; leaves in
    memory need none.
    """
    for a in graph.nodes[i].args[:count]:
        if type(a) is Expr:
            j = graph.index[a]
            while (view := graph.view_of(j)) is not None or j in casts:
                j = casts[j] if view is None else view[0]
            if j not in graph.leaf_slot:
                reasons.setdefault(j, reason)
