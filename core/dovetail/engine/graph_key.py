"""The walk of a graph: nodes in order, the cache key, and nodes referenced from outside."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from ..backend.faults import IndexPurpose
from ..device_class import Device
from ..fusion.plan import WriteTarget
from ..fusion.symbolic_sizes import INPUT_MIN
from ..graph.expr import Attrs, Expr, Spec, find_shared_arguments, overlaps, storage_of
from ..graph.refcount import find_external_references
from ..layout import Move, Shape
from ..memory.storage import Storage
from ..ops.table import Op

# The key of a leaf is its spec and strides. The key of a leaf over a lazy storage is its spec, its
# moves and the position of the pending node. The key of a pending node is its op, attrs and spec,
# with the position of each argument, or the type of a number. The key of a graph is the keys of its
# nodes in order, the positions of externally referenced nodes, those of the roots and, for a write,
# the target. It contains everything that a plan depends on; so do the `GraphNodeKey` objects.

MapSize: TypeAlias = Callable[[int], Any]


class GraphNodeKey:
    """The key of one node."""

    __slots__ = (
        "args",
        "attrs",
        "codes",
        "first_number",
        "moves",
        "op",
        "source",
        "spec",
        "strides",
        "types",
    )

    op: Op | None
    spec: Spec
    codes: tuple[int, ...] | None  # of the sizes of its shape, in a key without sizes
    attrs: Attrs
    strides: Shape | None  # of a leaf in memory
    moves: tuple[Move, ...] | None  # of a leaf over a lazy storage, from its source
    source: int  # position of the pending node behind a lazy storage; else -1
    args: tuple[int, ...]  # positions of arguments; -1: a number
    types: tuple[type[float | int | bool] | None, ...]  # of numbers; None for other arguments
    first_number: int  # index of its first number among those of the graph

    def __init__(
        self,
        e: Expr,
        index: dict[Expr, int],
        source: int,
        first_number: int,
        map_size: MapSize | None,
    ) -> None:
        """`map_size`: returns the code of a size, for a key without sizes."""
        self.op, self.spec, self.attrs, self.source, self.first_number = (
            e.op,
            e.spec,
            None,
            source,
            first_number,
        )
        self.codes = self.strides = self.moves = None
        self.args = self.types = ()
        if map_size is not None:
            self.codes = tuple([map_size(n) for n in e.spec.shape])
        if e.op is not None:
            self.attrs = e.attrs if map_size is None else map_attrs(e.op, e.attrs, map_size)
            self.args = tuple([index[a] if type(a) is Expr else -1 for a in e.args])
            self.types = tuple([None if type(a) is Expr else type(a) for a in e.args])
        elif source < 0:
            strides = e.strides
            self.strides = strides if map_size is None else tuple([map_size(s) for s in strides])
        else:
            moves = e.moves
            self.moves = (
                moves if map_size is None else tuple([map_move(m, map_size) for m in moves])
            )


def append_subgraph(
    e: Expr,
    walk: OrderedGraph,
    index: dict[Expr, int],
    nodes: list[Expr],
    uses: list[int],
    key: list[Hashable],
) -> int:
    """Append `e`, after operands that are not in `index`, to all these; return the position of `e`.

    It is no closure, because a reference cycle would keep memory alive.
    """
    op = e.op
    if op is None:
        pending = e.storage.pending
        if pending is not None and pending.op is None:
            pending = storage_of(e).pending
        if pending is None:
            walk.leaves.append(e)
            e.depth = 0
            key.append(e.spec)
            key.append(e.strides)
        else:
            i = (
                index[pending]
                if pending in index
                else append_subgraph(pending, walk, index, nodes, uses, key)
            )
            walk.lazy_leaves.append((len(nodes), i))
            key.extend((e.spec, e.moves, i))
    else:
        node_key = [op, e.attrs, e.spec]
        numbers = None
        for a in e.args:
            if type(a) is Expr:
                i = index[a] if a in index else append_subgraph(a, walk, index, nodes, uses, key)
                uses[i] += 1
                node_key.append(i)
            else:
                node_key.append(type(a))
                if numbers is None:
                    numbers = [a]
                else:
                    numbers.append(a)
        if numbers is not None:
            walk.scalars.extend(numbers)
        key.extend(node_key)
    index[e] = n = len(nodes)
    nodes.append(e)
    uses.append(0)
    return n


def find_lazy_references(
    nodes: Sequence[Expr], uses: Sequence[int], source_of_leaf: dict[int, int]
) -> list[int]:
    """Return the positions of externally referenced nodes in a graph with lazy storages.

    source_of_leaf: for the position of each leaf over a lazy storage, that of the pending node that
    fills it. A reference to the leaf or to its storage counts as one to that node.
    The nodes are keys of a dict, too. No local variable may refer to one of them during the count.
    """
    leaves_by_storage: dict[Storage, list[int]] = {}
    for leaf in source_of_leaf:
        leaves_by_storage.setdefault(nodes[leaf].storage, []).append(leaf)
    internal = list(uses)
    for leaves in leaves_by_storage.values():
        internal[source_of_leaf[leaves[0]]] += 1  # the reference of the storage
    referenced = find_external_references(nodes, internal)
    first_leaves = [leaves[0] for leaves in leaves_by_storage.values()]
    sources_referenced = {source_of_leaf[i] for i in referenced if i in source_of_leaf}
    sources_referenced |= {
        source_of_leaf[first_leaves[k]]
        for k in find_external_references(
            list(leaves_by_storage), map(len, leaves_by_storage.values())
        )
    }
    return sorted(sources_referenced.union([i for i in referenced if nodes[i].op is not None]))


class OrderedGraph:
    """A graph in topological order, arguments first, with the leaves and scalars of this run."""

    __slots__ = (
        "device",
        "index",
        "key",
        "lazy_leaves",
        "leaves",
        "nodes",
        "roots",
        "scalars",
        "shared",
        "target",
        "uses",
    )

    def __init__(self, roots: Sequence[Expr], target: Expr | None = None) -> None:
        """`target`: the leaf into which the one root is to be written.

        Written for speed: this is most of the cost of a small evaluation.
        """
        self.nodes = nodes = []  # type: list[Expr]
        self.index = index = {}  # type: dict[Expr, int]
        self.uses = uses = []  # type: list[int]  # number of uses as an argument
        self.key = key = []  # type: list[Hashable]
        self.leaves: list[Expr] = []
        self.scalars: list[float | int | bool] = []
        self.lazy_leaves: list[tuple[int, int]] = []  # (leaf over a lazy storage, pending node)
        self.roots, self.target = roots, target
        for r in roots:
            if r not in index:
                append_subgraph(r, self, index, nodes, uses, key)
        # Positions of nodes that share their arguments with an earlier one.
        self.shared: tuple[int, ...] = find_shared_arguments(nodes)
        for i in self.shared:
            for a in nodes[i].args:
                if type(a) is Expr:
                    uses[index[a]] -= 1
        self.device: Device = roots[0].spec.device

    def externally_referenced_nodes(self) -> tuple[int, ...]:
        """Return the positions of pending nodes with references from outside of this graph.

        Tensors and other pending graphs hold such references.
        """
        if self.lazy_leaves:
            return tuple(find_lazy_references(self.nodes, self.uses, dict(self.lazy_leaves)))
        nodes = self.nodes
        return tuple(
            [i for i in find_external_references(nodes, self.uses) if nodes[i].op is not None]
        )

    def write_target(self, t: Expr) -> WriteTarget:
        """Return the WriteTarget of leaf `t`: strides, slot, and slots of overlapping leaves."""
        overlapping, same = set(), set()
        for slot, e in enumerate(self.leaves):
            if overlaps(e, t):
                overlapping.add(slot)
                alike = e.spec.shape == t.spec.shape and e.spec.itemsize == t.spec.itemsize
                alike = alike and e.offset == t.offset and e.strides == t.strides
                if alike and e.storage is t.storage:
                    same.add(slot)
        return WriteTarget(t.strides, len(self.leaves), frozenset(overlapping), frozenset(same))

    def node_keys(self, map_size: MapSize | None = None) -> list[GraphNodeKey]:
        """Build the key of each node, in order; with `map_size`, one without sizes."""
        entries: list[GraphNodeKey] = []
        lazy, numbers = dict(self.lazy_leaves), 0
        for i, e in enumerate(self.nodes):
            entry = GraphNodeKey(e, self.index, lazy.get(i, -1), numbers, map_size)
            numbers += entry.args.count(-1)
            entries.append(entry)
        return entries


# --- keys without sizes ---------------------------------------------------------------------------


class DistinctSizes:
    """The distinct sizes of a graph, in the order in which they were met."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}

    def encode(self, size: int) -> int:
        """Return a size below INPUT_MIN itself, else INPUT_MIN plus the number of its value.

        Negative sizes are encoded as the positive ones, with their sign.
        """
        if -INPUT_MIN < size < INPUT_MIN:
            return size
        numbers = self.numbers
        k = numbers.setdefault(size if size > 0 else -size, len(numbers)) + INPUT_MIN
        return k if size > 0 else -k


def map_move(move: Move, map_size: MapSize) -> Move:
    """Return a move with its sizes replaced; axes stay."""
    name = move[0]
    if name == "permute":
        return move
    if name == "pad":
        return name, move[1], map_size(move[2]), map_size(move[3])
    return name, *[tuple([map_size(n) for n in part]) for part in move[1:]]


def map_attrs(op: Op, attrs: Attrs, map_size: MapSize) -> Attrs:
    """Return the attrs of an op with their sizes replaced: of views and of axes with indices."""
    if op.kind == "view":
        return map_move(attrs, map_size)
    if op.kind == "gather":
        shape, source_axes, index_axes, purposes = attrs
        if purposes is not None:
            purposes = tuple([_map_purpose(p, map_size) for p in purposes])
        return tuple([map_size(n) for n in shape]), source_axes, index_axes, purposes
    at = op.purpose_at
    if at < 0 or attrs[at] is None:
        return attrs
    make = getattr(attrs, "_make", tuple)  # of a named tuple
    return make((*attrs[:at], _map_purpose(attrs[at], map_size), *attrs[at + 1 :]))


def _map_purpose(purpose: tuple[str, int, int], map_size: MapSize) -> IndexPurpose:
    """Return the purpose of an index with the size of its axis replaced."""
    name, axis, size = purpose
    return IndexPurpose(name, axis, map_size(size))


def build_skeleton(
    graph: OrderedGraph,
    referenced: tuple[int, ...],
    roots: tuple[int, ...],
    target: WriteTarget | None,
    fast_math: bool,
) -> tuple[tuple[Hashable, ...], tuple[int, ...]]:
    """Return a graph's key with each size encoded by `DistinctSizes`, and the distinct sizes."""
    sizes = DistinctSizes()
    encode = sizes.encode
    key: list[Hashable] = [graph.device, referenced, roots, fast_math]
    sources = dict(graph.lazy_leaves)
    index = graph.index
    for i, e in enumerate(graph.nodes):
        key.append(e.spec.dtype)
        key.append(tuple([encode(n) for n in e.spec.shape]))
        if e.op is not None:
            key.append(e.op)
            key.append(map_attrs(e.op, e.attrs, encode))
            key.append(tuple([index[a] if type(a) is Expr else type(a) for a in e.args]))
        elif i in sources:
            key.append(tuple([map_move(m, encode) for m in e.moves]))
            key.append(sources[i])
        else:
            key.append(None)
            key.append(tuple([encode(s) for s in e.strides]))
    if target is not None:
        strides = tuple([encode(s) for s in target.strides])
        key.append(target._replace(strides=strides))
    return tuple(key), tuple(sizes.numbers)
