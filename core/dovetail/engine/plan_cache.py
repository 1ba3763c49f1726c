"""A cache of evaluated graphs, which new graphs are matched against without building a key.

A graph's key (`walk`) has everything that a plan depends on. Cached graphs (`known`) are looked up
by the op and the Spec of their root. A graph that matches none exactly is planned by its key.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..device_class import opened
from ..fusion.plan import Target
from ..graph.expr import Expr
from ..identity_cache import IdentityCache
from ..layout import Shape
from ..lru_cache import LRUCache
from ..ops.table import COPY
from .graph_key import Walk
from .graph_matcher import ARGUMENTS, HIT, MISS, NODES, SLOTS, CachedGraph
from .launching import BoundPlan
from .programs import holders, holding

KEPT = 4  # cached graphs per root op and Spec; one more evicts the oldest
# Kinds of writes in a cache key: the root is no copy; the copied root is referenced elsewhere.
UPDATES, STAYS = "updates", "stays"
LIMIT = 4096  # root ops and Specs with cached graphs

_known: LRUCache[tuple[Hashable, ...], tuple[CachedGraph, ...]] = holding(LIMIT)
# Identity-keyed caches in front, by kind. The second name of each is compiled to a typed variable,
# invisible to Python.
values: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
updates: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
staying: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
together: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
_values, _updates, _staying, _together = values, updates, staying, together
holders += [values, updates, staying, together]


def match(root: Expr, waits: bool = False) -> bool:
    """Evaluate `root` if its graph is cached; return True if it was.

    waits: report out-of-range indices, if the device knows them when launches return.
    """
    for graph in _candidates(_values, root, None, None):
        if graph.run(root, None, waits) == HIT:
            return True
    return False


def match_all(roots: Sequence[Expr], waits: bool) -> bool:
    """Evaluate several nodes if their joint graph is cached; return True if it was."""
    root, count = roots[0], len(roots)
    if count == 1:
        return match(root, waits)
    if count > NODES:
        return False
    candidates = _together.get(root.op, root.spec, count)
    if candidates is None:
        candidates = _known.find((root.op, root.spec, None, count)) or ()
        _together.put(root.op, root.spec, count, candidates)
    for graph in candidates:  # noqa: SIM110 - compiled functions have no generators
        if graph.run(root, None, waits, roots[1:]) == HIT:
            return True
    return False


def try_cached_write(value: Expr, target: Expr, others: int = 0) -> int:
    """Write `value` into the memory that leaf `target` views, if graph and leaf are cached.

    Return `HIT`, `MISS`, or `NEEDS_TEMP` if the value must go through other memory. No other
    pending node may read the target's memory.
    others: the number of references to the value beyond the caller's.
    """
    for graph in _candidates(_values, value, target.strides, None):
        if not (others and graph.overlaps):  # the others must not read what is overwritten
            outcome = graph.run(value, target, True)
            if outcome != MISS:
                return outcome
    if others:
        for graph in _candidates(_staying, value, target.strides, STAYS):
            outcome = graph.run(value, target, True)
            if outcome != MISS:
                return outcome
    return MISS


def try_cached_update(value: Expr, target: Expr) -> int:
    """Run an unreferenced op that updates `target`, if it is cached; return the outcome."""
    for graph in _candidates(_updates, value, target.strides, UPDATES):
        outcome = graph.run(value, target, True)
        if outcome != MISS:
            return outcome
    return MISS


def _candidates(
    lately: IdentityCache[tuple[CachedGraph, ...]],
    root: Expr,
    strides: Shape | None,
    kind: str | None,
) -> tuple[CachedGraph, ...]:
    """Return the cached graphs with the root's op and Spec and the target's strides."""
    candidates = lately.get(root.op, root.spec, strides)
    if candidates is None:
        candidates = _known.find((root.op, root.spec, strides, kind)) or ()
        lately.put(root.op, root.spec, strides, candidates)
    return candidates


def add(walk: Walk, plan: BoundPlan, referenced: Sequence[int], target: Target | None) -> None:
    """Cache a graph, unless it is too large or stores less than its roots.

    A cached graph stores its roots, and perhaps other nodes that are referenced from outside.
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
            kind = STAYS if walk.index[root] in referenced else None
        else:
            kind = UPDATES
        strides = target.strides
    last = walk.index[root]
    stored, others_hold = (
        {last, *roots},
        {*referenced},
    )  # `stored` nodes need no check of references
    checked_references = [
        None if e.op is None or i in stored else i in others_hold for i, e in enumerate(walk.nodes)
    ]
    graph = CachedGraph(
        entries,
        last,
        list(walk.uses),
        checked_references,
        plan,
        target,
        opened(walk.device),
        others,
    )
    key = (root.op, root.spec, strides, kind)
    for lately in (_values, _updates, _staying, _together):
        lately.age()
    _known[key] = (graph, *(_known.find(key) or ()))[:KEPT]
