"""The cache of shape classes: plans of graphs that differ in sizes only.

A graph's *skeleton* is its key without sizes: each size, stride and length of a view is replaced by
the number of the distinct value that it has. 0, 1 and -1 stay, since planning treats them as cases
of their own. The first graph of a skeleton is planned with its sizes, the second with symbolic ones
(`fusion/shape_class.py`); later ones get their plan from the class whose guards they meet.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..device_class import opened as open_device
from ..fusion import passes
from ..fusion.decisions import PlanGraph
from ..fusion.plan import Plan, WriteTarget
from ..fusion.shape_class import ShapeClass, plan_shape_class
from ..fusion.symbolic_sizes import INPUT_MIN, GuardRecorder
from ..graph.expr import Expr, Spec, leaf, storage_of
from ..layout import Shape
from ..lru_cache import LRUCache
from ..memory.storage import Storage
from ..settings import current
from . import programs
from .events import counters
from .graph_key import MapSize, OrderedGraph, build_skeleton, map_attrs, map_move

SKELETONS_MAX = 2048  # cached skeletons
CLASSES_PER_SKELETON_MAX = 8
UNUSED_CLASSES_MAX = 3  # classes that a skeleton makes before a graph uses one


class Skeleton:
    """The classes of a skeleton, the latest first; none is made for the sizes that were first."""

    __slots__ = ("classes", "credit", "first_sizes")

    def __init__(self, first_sizes: tuple[int, ...]) -> None:
        self.classes: list[ShapeClass] = []
        self.first_sizes = first_sizes
        self.credit = UNUSED_CLASSES_MAX  # classes that may be made


_skeletons: LRUCache[tuple[Hashable, ...], Skeleton] = programs.create_program_cache(SKELETONS_MAX)


def build_plan(
    graph: OrderedGraph,
    referenced: tuple[int, ...],
    roots: tuple[int, ...],
    target: WriteTarget | None,
) -> Plan:
    """Return the plan of a graph: from a class, by a new class, or planned with its sizes."""
    key, sizes = build_skeleton(graph, referenced, roots, target, current().fast_math)
    skeleton = _skeletons.find(key)
    if skeleton is None or not sizes:
        _skeletons[key] = Skeleton(sizes)
        return _plan_with_sizes(graph, referenced, roots, target)
    specs = [e.spec for e in graph.nodes]
    for shape_class in skeleton.classes:
        plan = shape_class.build_plan(sizes, specs)
        if plan is not None:
            skeleton.credit = min(skeleton.credit + 1, UNUSED_CLASSES_MAX)
            counters.shape_class_hits += 1
            return plan
    if skeleton.credit and sizes != skeleton.first_sizes:
        skeleton.credit -= 1
        try:
            new_class = _create_class(graph, referenced, roots, target, sizes)
        except TypeError:  # an op of a plugin may accept ints only
            new_class = None
        plan = None if new_class is None else new_class.build_plan(sizes, specs)
        if new_class is not None and plan is not None:
            skeleton.classes = [new_class, *skeleton.classes][:CLASSES_PER_SKELETON_MAX]
            return plan
        skeleton.credit = 0
    return _plan_with_sizes(graph, referenced, roots, target)


def _plan_with_sizes(
    graph: OrderedGraph,
    referenced: tuple[int, ...],
    roots: tuple[int, ...],
    target: WriteTarget | None,
) -> Plan:
    """Plan a graph for its sizes alone."""
    counters.plans += 1
    plan_graph = _create_plan_graph(graph, graph.nodes, graph.index, referenced, roots, target)
    return passes.plan(plan_graph, current().fast_math)


def _create_class(
    graph: OrderedGraph,
    referenced: tuple[int, ...],
    roots: tuple[int, ...],
    target: WriteTarget | None,
    sizes: tuple[int, ...],
) -> ShapeClass | None:
    """Plan a graph with symbolic sizes, and return its class, or None if that is too large."""
    counters.plans += 1
    recorder = GuardRecorder(sizes)
    symbols = dict(zip(sizes, recorder.inputs, strict=True))

    def map_size(size: int) -> Any:
        """Return the symbol of a size, or a small one itself."""
        if -INPUT_MIN < size < INPUT_MIN:
            return size
        return symbols[size] if size > 0 else -symbols[-size]

    nodes = build_twins(graph, map_size)
    index = {e: i for i, e in enumerate(nodes)}
    if target is not None:
        target = target._replace(strides=tuple([map_size(s) for s in target.strides]))
    plan_graph = _create_plan_graph(graph, nodes, index, referenced, roots, target)
    return plan_shape_class(plan_graph, recorder, current().fast_math)


def _create_plan_graph(
    graph: OrderedGraph,
    nodes: Sequence[Expr],
    index: dict[Expr, int],
    referenced: tuple[int, ...],
    roots: tuple[int, ...],
    target: WriteTarget | None,
) -> PlanGraph:
    """Return the graph to plan: nodes in the order of `graph`, and its device's capabilities."""
    opened = open_device(graph.device)
    leaf_slot = {graph.index[e]: slot for slot, e in enumerate(graph.leaves)}
    can = opened.backend.info.capabilities
    return PlanGraph(
        nodes,
        index,
        leaf_slot,
        roots,
        referenced,
        can.concurrency,
        frozenset(opened.library_calls),
        target,
        can.near,
        can.plan_buffers,
        can.max_buffer,
        opened.ordered_calls,
        opened.scaling_calls,
    )


def build_twins(graph: OrderedGraph, map_size: MapSize) -> list[Expr]:
    """Return nodes like those of a graph, with their sizes replaced."""
    specs: dict[Spec, Spec] = {}
    twins: list[Expr] = []
    sources = dict(graph.lazy_leaves)
    for i, e in enumerate(graph.nodes):
        spec = specs.get(e.spec)
        if spec is None:
            spec = specs[e.spec] = _map_spec(e.spec, map_size)
        if e.op is not None:
            twin = Expr.__new__(Expr)
            args = tuple([twins[graph.index[a]] if type(a) is Expr else a for a in e.args])
            twin.op, twin.args, twin.spec = e.op, args, spec
            twin.attrs = map_attrs(e.op, e.attrs, map_size)
            twin.depth, twin.tape, twin.watch = e.depth, None, None
            twin.readers = twin.check_line = None
        elif i in sources:
            storage = Storage.__new__(Storage)
            storage.pending = twins[sources[i]]
            moves = tuple([map_move(m, map_size) for m in e.moves])
            twin = leaf(storage, spec, (), 0, moves)
        else:
            strides: Shape = tuple([map_size(s) for s in e.strides])
            twin = leaf(storage_of(e), spec, strides, 0)
        twins.append(twin)
    return twins


def _map_spec(spec: Spec, map_size: MapSize) -> Spec:
    """Return a Spec with other sizes, which is in no cache."""
    new = Spec()
    new.shape = tuple([map_size(n) for n in spec.shape])
    new.dtype, new.device, new.itemsize, new.sized = spec.dtype, spec.device, spec.itemsize, None
    size: Any = 1
    for n in new.shape:
        size = size * n
    new.size, new.nbytes, new.strides = size, size * spec.itemsize, ()
    return new
