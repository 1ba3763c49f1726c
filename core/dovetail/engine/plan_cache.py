"""A cache of evaluated graphs, which new graphs are matched against without building a key.

A graph's key (`graph_key`) has everything that a plan depends on. Cached graphs are looked up by
the op and the Spec of their root; those of a shape class, which match graphs of many sizes, by the
op, the dtype and the number of axes. A graph that matches none is planned by its key.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..device_class import opened
from ..fusion.plan import WriteTarget
from ..graph.expr import Expr
from ..identity_cache import IdentityCache
from ..layout import Shape
from ..lru_cache import LRUCache
from ..ops.table import COPY
from ..settings import current, flags
from .graph_key import DistinctSizes, OrderedGraph
from .graph_matcher import (
    CLASS_SIZES_MAX,
    GRAPH_ARGUMENTS_MAX,
    GRAPH_NODES_MAX,
    HIT,
    MISS,
    PLAN_SLOTS_MAX,
    CachedGraph,
)
from .launching import BoundPlan
from .programs import create_program_cache, program_caches

# Cached graphs per root op and Spec; one more evicts the oldest. A loop over the rows of a triangle
# has a graph per length; a comparison with another length ends at the first Spec that differs.
GRAPHS_PER_KEY_MAX = 64
# Kinds of writes in a cache key: the root is no copy; the copied root is referenced elsewhere.
KIND_UPDATE, KIND_REFERENCED = "updates", "stays"
GRAPH_KEYS_MAX = 4096  # root ops and Specs with cached graphs

_cached_graphs: LRUCache[tuple[Hashable, ...], tuple[CachedGraph, ...]] = create_program_cache(
    GRAPH_KEYS_MAX
)
_class_graphs: LRUCache[tuple[Hashable, ...], tuple[CachedGraph, ...]] = create_program_cache(
    GRAPH_KEYS_MAX
)
# Identity-keyed caches in front, by kind. The second name of each is compiled to a typed variable,
# invisible to Python.
value_graphs: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
update_graphs: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
referenced_graphs: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
joint_graphs: IdentityCache[tuple[CachedGraph, ...]] = IdentityCache()
_value_graphs, _update_graphs, _referenced_graphs, _joint_graphs = (
    value_graphs,
    update_graphs,
    referenced_graphs,
    joint_graphs,
)
program_caches += [value_graphs, update_graphs, referenced_graphs, joint_graphs]


def match_cached_graph(root: Expr, reports_checks: bool = False) -> bool:
    """Evaluate `root` if its graph matches a cached one; return True if it was.

    reports_checks: report out-of-range indices, if the device knows them when launches return.
    """
    for graph in find_value_graphs(root):  # noqa: SIM110 - compiled functions have no generators
        if graph.run(root, None, reports_checks) == HIT:
            return True
    return False


def match_cached_graphs(roots: Sequence[Expr], reports_checks: bool) -> bool:
    """Evaluate several nodes if their joint graph matches a cached one; return True if it was."""
    root, count = roots[0], len(roots)
    if count == 1:
        return match_cached_graph(root, reports_checks)
    if count > GRAPH_NODES_MAX:
        return False
    if flags.has_fast_math and current().fast_math:
        for graph in _look_up(root, None, count, True):
            if graph.run(root, None, reports_checks, roots[1:]) == HIT:
                return True
        return False
    candidates = _joint_graphs.get(root.op, root.spec, count)
    if candidates is None:
        candidates = _look_up(root, None, count, False)
        _joint_graphs.put(root.op, root.spec, count, candidates)
    for graph in candidates:  # noqa: SIM110 - compiled functions have no generators
        if graph.run(root, None, reports_checks, roots[1:]) == HIT:
            return True
    return False


def try_cached_write(value: Expr, target: Expr, other_references: int = 0) -> int:
    """Write `value` into `target`, which no other node reads, if a cached graph matches.

    Return HIT, MISS or NEEDS_TEMP: nothing was written, and the value must go through other memory.
    other_references: the number of references to the value beyond the caller's.
    """
    for graph in _find_candidates(_value_graphs, value, target.strides, None):
        if not (
            other_references and graph.overlaps
        ):  # the others must not read what is overwritten
            outcome = graph.run(value, target, True)
            if outcome != MISS:
                return outcome
    if other_references:
        for graph in _find_candidates(_referenced_graphs, value, target.strides, KIND_REFERENCED):
            outcome = graph.run(value, target, True)
            if outcome != MISS:
                return outcome
    return MISS


def try_cached_update(value: Expr, target: Expr) -> int:
    """Run an op that updates `target`, which no other node reads, if a cached graph matches.

    Return an outcome. The op has no other reference.
    """
    for graph in _find_candidates(_update_graphs, value, target.strides, KIND_UPDATE):
        outcome = graph.run(value, target, True)
        if outcome != MISS:
            return outcome
    return MISS


def find_value_graphs(root: Expr) -> tuple[CachedGraph, ...]:
    """Return the cached graphs that compute a root into new memory, or ()."""
    return _find_candidates(_value_graphs, root, None, None)


def _find_candidates(
    identity_cache: IdentityCache[tuple[CachedGraph, ...]],
    root: Expr,
    strides: Shape | None,
    kind: str | None,
) -> tuple[CachedGraph, ...]:
    """Return the cached graphs of a root with these strides, or (); memoize them by identity.

    Those with the setting `fast_math` are not memoized.
    """
    if flags.has_fast_math and current().fast_math:
        return _look_up(root, strides, kind, True)
    candidates = identity_cache.get(root.op, root.spec, strides)
    if candidates is None:
        candidates = _look_up(root, strides, kind, False)
        identity_cache.put(root.op, root.spec, strides, candidates)
    return candidates


def _look_up(
    root: Expr, strides: Shape | None, kind: Hashable, fast_math: bool
) -> tuple[CachedGraph, ...]:
    """Return the cached graphs of a root with these sizes, then those of shape classes."""
    exact = _cached_graphs.find((root.op, root.spec, strides, kind, fast_math)) or ()
    return exact + (_class_graphs.find(_class_key(root, strides, kind, fast_math)) or ())


def _class_key(
    root: Expr, strides: Shape | None, kind: Hashable, fast_math: bool
) -> tuple[Hashable, ...]:
    """Return the key of a root's graphs of shape classes."""
    spec, target_rank = root.spec, None if strides is None else len(strides)
    return root.op, spec.dtype, spec.device, len(spec.shape), target_rank, kind, fast_math


def cache_graph(
    walk: OrderedGraph, plan: BoundPlan, referenced: Sequence[int], target: WriteTarget | None
) -> None:
    """Cache a graph, unless it is too large, repeats a root, or its plan does not store all roots.

    A cached graph may store other nodes, too, that are referenced from outside. One graph too many
    for a root's op and Spec evicts the oldest. The graph of a shape class is cached without sizes.
    """
    if len(walk.nodes) > GRAPH_NODES_MAX:
        return
    shape_class, sizes = plan.plan.shape_class, DistinctSizes()
    entries = walk.node_keys(None if shape_class is None else sizes.encode)
    if shape_class is not None and target is not None:
        target = target._replace(strides=tuple([sizes.encode(s) for s in target.strides]))
    if (
        sum([len(e.args) for e in entries]) > GRAPH_ARGUMENTS_MAX
        or len(plan.empty_memory) > PLAN_SLOTS_MAX
        or len(sizes.numbers) > CLASS_SIZES_MAX
    ):
        return
    first, *others = roots = [walk.index[e] for e in walk.roots]
    if len({*roots}) < len(roots):
        return
    if not plan.plan.target_overlaps and not {*roots} <= {i for i, _ in plan.kept}:
        return
    root, strides = walk.nodes[first], None
    kind: Hashable = len(roots) if others else None
    if target is not None:
        if root.op is COPY:
            root = root.args[0]
            kind = KIND_REFERENCED if walk.index[root] in referenced else None
        else:
            kind = KIND_UPDATE
        strides = target.strides
    last = walk.index[root]
    stored, referenced_positions = (
        {last, *roots},
        {*referenced},
    )  # `stored` nodes need no check of references
    checked_references = [
        None if e.op is None or i in stored else i in referenced_positions
        for i, e in enumerate(walk.nodes)
    ]
    fast_math = current().fast_math
    key: tuple[Hashable, ...] = (root.op, root.spec, strides, kind, fast_math)
    graphs = _cached_graphs
    if shape_class is not None:
        key, graphs = _class_key(root, strides, kind, fast_math), _class_graphs
        if any([g.shape_class is shape_class for g in graphs.find(key) or ()]):
            return
    graph = CachedGraph(
        entries,
        last,
        list(walk.uses),
        checked_references,
        plan,
        target,
        opened(walk.device),
        others,
        walk.shared,
        shape_class,
        len(sizes.numbers),
    )
    for lately in (_value_graphs, _update_graphs, _referenced_graphs, _joint_graphs):
        lately.age()
    graphs[key] = (graph, *(graphs.find(key) or ()))[:GRAPHS_PER_KEY_MAX]
