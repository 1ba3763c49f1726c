"""The pass `seed`: what is known to be materialised before any kernel is looked at."""

from __future__ import annotations

from ..graph.expr import Expr
from .decisions import Decisions, Graph, has_own_kernels
from .reasons import Kind, Reason


def seed(d: Decisions) -> None:
    """Materialises what is stored however kernels are cut.

    That is what was asked for, what somebody holds, what has kernels of its own, and what is read
    at computed places or by such a kernel.
    """
    found = {i: Reason(Kind.HELD) for i in d.graph.held}
    found |= {i: Reason(Kind.ASKED) for i in d.graph.roots}
    for i, e in enumerate(d.graph.nodes):
        if has_own_kernels(e):
            found.setdefault(i, Reason(Kind.OWN_KERNEL))
            _read(d.graph, i, len(e.args), Reason(Kind.READ_BY_KERNEL), found)
        elif e.op is not None and e.op.kind == "gather":
            _read(d.graph, i, 1, Reason(Kind.READ_IN_MEMORY), found)
    for i in sorted(found):
        d.materialise(i, found[i])


def _read(graph: Graph, i: int, count: int, why: Reason, found: dict[int, Reason]) -> None:
    """Notes what the first operands of a node are, or are views of."""
    for a in graph.nodes[i].args[:count]:
        if type(a) is Expr:
            j = graph.index[a]
            while (view := graph.view_of(j)) is not None:
                j, _ = view
            if j not in graph.leaf_slot:
                found.setdefault(j, why)
