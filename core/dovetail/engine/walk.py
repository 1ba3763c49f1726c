"""A graph that is to be evaluated: its nodes in order, its key, and who else holds its nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..device_class import Device
from ..fusion.plan import Target
from ..graph.expr import Attrs, Expr, Spec, overlaps, storage_of
from ..graph.ownership import shared
from ..layout import Move, Shape
from ..memory.storage import Storage
from ..ops.table import Op

# A key says of each node, in order: of a leaf its spec and strides; of one over storage that waits
# for a node its spec, its moves and where that node is; of a pending node its op, attrs and spec,
# and of each argument its position, or the type of a number. The key of a whole graph goes on with
# the positions of nodes that are held, those of the roots and, for a write, the target. All that
# plans depend on is in it, and in what an `Entry` says of the node.


class Entry:
    """What a key says of one node."""

    __slots__ = ("args", "attrs", "first", "moves", "op", "source", "spec", "strides", "types")

    op: Op | None
    spec: Spec
    attrs: Attrs
    strides: Shape | None  # of a leaf in memory
    moves: tuple[Move, ...] | None  # of one that is not, from its source
    source: int  # the position of that; else -1
    args: tuple[int, ...]  # positions of arguments; -1: a number
    types: tuple[type[float | int | bool] | None, ...]  # of those that are numbers; None elsewhere
    first: int  # how many numbers other nodes have before

    def __init__(self, e: Expr, index: dict[Expr, int], source: int, first: int) -> None:
        self.op, self.spec, self.attrs, self.source, self.first = e.op, e.spec, None, source, first
        self.strides = self.moves = None
        self.args = self.types = ()
        if e.op is not None:
            self.attrs = e.attrs
            self.args = tuple([index[a] if type(a) is Expr else -1 for a in e.args])
            self.types = tuple([None if type(a) is Expr else type(a) for a in e.args])
        elif source < 0:
            self.strides = e.strides
        else:
            self.moves = e.moves


def visit(
    e: Expr,
    walk: Walk,
    index: dict[Expr, int],
    nodes: list[Expr],
    uses: list[int],
    key: list[Hashable],
) -> int:
    """Appends `e` and what it needs to the graph; its position.

    No closure: a cycle would keep memory alive.
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
                else visit(pending, walk, index, nodes, uses, key)
            )
            walk.lazy_leaves.append((len(nodes), i))
            key.extend((e.spec, e.moves, i))
    else:
        mine = [op, e.attrs, e.spec]
        numbers = None
        for a in e.args:
            if type(a) is Expr:
                i = index[a] if a in index else visit(a, walk, index, nodes, uses, key)
                uses[i] += 1
                mine.append(i)
            else:
                mine.append(type(a))
                if numbers is None:
                    numbers = [a]
                else:
                    numbers.append(a)
        if numbers is not None:
            walk.scalars.extend(numbers)
        key.extend(mine)
    index[e] = n = len(nodes)
    nodes.append(e)
    uses.append(0)
    return n


def held_lazily(nodes: Sequence[Expr], uses: Sequence[int], sources: dict[int, int]) -> list[int]:
    """Those `nodes` that something else refers to, where some are over storages that wait.

    For each such leaf `sources` has the node that is waited for: it is held where somebody holds
    the leaf, or its storage. The nodes are keys of a dict, too. No variable stays with any of them.
    """
    over: dict[Storage, list[int]] = {}
    for leaf in sources:
        over.setdefault(nodes[leaf].storage, []).append(leaf)
    known = list(uses)
    for leaves in over.values():
        known[sources[leaves[0]]] += 1  # by the storage
    others = shared(nodes, known)
    firsts = [leaves[0] for leaves in over.values()]
    found = {sources[i] for i in others if i in sources}
    found |= {sources[firsts[k]] for k in shared(list(over), map(len, over.values()))}
    return sorted(found.union([i for i in others if nodes[i].op is not None]))


class Walk:
    """A graph in order, arguments first, with what is particular to this time (leaves, scalars)."""

    __slots__ = (
        "device", "index", "key", "lazy_leaves", "leaves", "nodes", "roots", "scalars", "target",
        "uses",
    )  # fmt: skip

    def __init__(self, roots: Sequence[Expr], target: Expr | None = None) -> None:
        """`target`: the leaf into which the one root is to be written.

        Written for speed: this is most of the cost of a small evaluation.
        """
        self.nodes = nodes = []  # type: list[Expr]
        self.index = index = {}  # type: dict[Expr, int]
        self.uses = uses = []  # type: list[int]  # how often each node is an argument in this graph
        self.key = key = []  # type: list[Hashable]
        self.leaves: list[Expr] = []
        self.scalars: list[float | int | bool] = []
        self.lazy_leaves: list[tuple[int, int]] = []  # (over lazy storage, what will fill it)
        self.roots, self.target = roots, target
        for r in roots:
            if r not in index:
                visit(r, self, index, nodes, uses, key)
        self.device: Device = roots[0].spec.device

    def held(self) -> tuple[int, ...]:
        """Pending nodes that something outside of this graph refers to.

        That is a tensor, or another pending graph.
        """
        if self.lazy_leaves:
            return tuple(held_lazily(self.nodes, self.uses, dict(self.lazy_leaves)))
        nodes = self.nodes
        return tuple([i for i in shared(nodes, self.uses) if nodes[i].op is not None])

    def aim(self, t: Expr) -> Target:
        """Return the facts about the leaf that is written on which a plan depends."""
        found, same = set(), set()
        for slot, e in enumerate(self.leaves):
            if overlaps(e, t):
                found.add(slot)
                alike = e.spec.shape == t.spec.shape and e.spec.itemsize == t.spec.itemsize
                alike = alike and e.offset == t.offset and e.strides == t.strides
                if alike and e.storage is t.storage:
                    same.add(slot)
        return Target(t.strides, len(self.leaves), frozenset(found), frozenset(same))

    def entries(self) -> list[Entry]:
        """What the key says of each node."""
        found: list[Entry] = []
        lazy, numbers = dict(self.lazy_leaves), 0
        for i, e in enumerate(self.nodes):
            entry = Entry(e, self.index, lazy.get(i, -1), numbers)
            numbers += entry.args.count(-1)
            found.append(entry)
        return found
