"""Recognising a graph that has been evaluated before, without building anything.

What plans depend on is in a graph's key (`walk`). Known graphs (`known`) lie here by the op and the
Spec of their root. What is not exactly the same as one goes the long way, which knows everything.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..device_class import opened
from ..fusion.plan import Target
from ..graph.expr import Expr
from ..layout import Shape
from ..memo import Memo
from ..ops.table import COPY
from ..recent import Recent
from .known import ARGUMENTS, DONE, NODES, NOT_KNOWN, SLOTS, Known
from .launching import BoundPlan
from .programs import holders, holding
from .walk import Walk

KEPT = 4  # graphs with the same root op and Spec that are compared; beyond, the oldest goes
# Kinds, in a graph's key: whose root is no copy into what is written; whose root stays beside it.
UPDATES, STAYS = "updates", "stays"
LIMIT = 4096  # root ops and Specs whose graphs are kept

_known: Recent[tuple[Hashable, ...], tuple[Known, ...]] = holding(LIMIT)
# Those asked for lately, by kind. The second name of each is compiled to a typed variable, which
# others do not see.
values: Memo[tuple[Known, ...]] = Memo()
updates: Memo[tuple[Known, ...]] = Memo()
staying: Memo[tuple[Known, ...]] = Memo()
together: Memo[tuple[Known, ...]] = Memo()
_values, _updates, _staying, _together = values, updates, staying, together
holders += [values, updates, staying, together]


def match(root: Expr, waits: bool = False) -> bool:
    """Evaluates `root` if its graph is known; whether it was.

    `waits`: for what indices were, where that is known when launches return.
    """
    for known in _candidates(_values, root, None, None):
        if known.run(root, None, waits) == DONE:
            return True
    return False


def match_all(roots: Sequence[Expr], waits: bool) -> bool:
    """Evaluates several nodes, if the graph that they have together is known; whether it was."""
    root, count = roots[0], len(roots)
    if count == 1:
        return match(root, waits)
    if count > NODES:
        return False
    found = _together.get(root.op, root.spec, count)
    if found is None:
        found = _known.find((root.op, root.spec, None, count)) or ()
        _together.put(root.op, root.spec, count, found)
    for known in found:  # noqa: SIM110 - compiled functions have no generators
        if known.run(root, None, waits, roots[1:]) == DONE:
            return True
    return False


def match_into(value: Expr, target: Expr, others: int = 0) -> int:
    """Writes `value` into what the leaf `target` views, if graph and leaf are known.

    `DONE` is what comes back, `NOT_KNOWN`, or that it must go by way of other memory (`APART`).
    Only so many others hold the value. Nothing else that is pending may read this memory.
    """
    for known in _candidates(_values, value, target.strides, None):
        if not (others and known.overlaps):  # else they would find what is overwritten
            done = known.run(value, target, True)
            if done != NOT_KNOWN:
                return done
    if others:
        for known in _candidates(_staying, value, target.strides, STAYS):
            done = known.run(value, target, True)
            if done != NOT_KNOWN:
                return done
    return NOT_KNOWN


def match_update(value: Expr, target: Expr) -> int:
    """As `match_into`, for an op that nobody holds, and that updates what is there."""
    for known in _candidates(_updates, value, target.strides, UPDATES):
        done = known.run(value, target, True)
        if done != NOT_KNOWN:
            return done
    return NOT_KNOWN


def _candidates(
    lately: Memo[tuple[Known, ...]], root: Expr, strides: Shape | None, kind: str | None
) -> tuple[Known, ...]:
    """The known graphs with such a root, written with such strides."""
    found = lately.get(root.op, root.spec, strides)
    if found is None:
        found = _known.find((root.op, root.spec, strides, kind)) or ()
        lately.put(root.op, root.spec, strides, found)
    return found


def add(walk: Walk, plan: BoundPlan, held: Sequence[int], target: Target | None) -> None:
    """Notes a graph, if it is of the simple kind.

    What it stores is its roots, and perhaps what else is held.
    """
    if len(walk.nodes) > NODES:
        return
    entries = walk.entries()
    if sum(len(e.args) for e in entries) > ARGUMENTS or len(plan.none) > SLOTS:
        return
    first, *others = roots = [walk.index[e] for e in walk.roots]
    if len({*roots}) < len(roots):
        return
    if not plan.plan.overlaps and not {*roots} <= {i for i, _ in plan.kept}:
        return
    root, strides = walk.nodes[first], None
    kind: Hashable = len(roots) if others else None
    if target is not None:
        if root.op is COPY:
            root = root.args[0]
            kind = STAYS if walk.index[root] in held else None
        else:
            kind = UPDATES
        strides = target.strides
    last = walk.index[root]
    stored, others_hold = {last, *roots}, {*held}  # the first anyway, whoever holds them
    asked = [
        None if e.op is None or i in stored else i in others_hold for i, e in enumerate(walk.nodes)
    ]
    made = Known(entries, last, list(walk.uses), asked, plan, target, opened(walk.device), others)
    key = (root.op, root.spec, strides, kind)
    for lately in (_values, _updates, _staying, _together):
        lately.turn()
    _known[key] = (made, *(_known.find(key) or ()))[:KEPT]
