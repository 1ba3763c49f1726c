"""A graph that is to be evaluated: its nodes in order, its key, and who else holds its nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..device import Device
from ..fusion.plan import Target
from ..graph.expr import Expr, storage_of
from ..graph.ownership import shared
from ..memory.storage import Storage

# What the key says of a node, in this order, and after that of each argument of a pending one: the
# position of a node, or the type of a number. The key of a whole graph goes on with the positions
# of nodes that are held, those of the roots and, for a write, the target. All that plans depend on
# is in it; guards are generated from it.
LEAF = ("spec", "strides")
PENDING = ("op", "attrs", "spec")


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
        held = self._held_lazily() if self.lazy_leaves else []
        nodes = self.nodes
        held += [i for i in shared(nodes, self.uses) if nodes[i].op is not None]
        return tuple(held)

    def _held_lazily(self) -> list[int]:
        """The same for nodes that are reached through a storage that waits for them.

        Somebody holds one of its leaves, or the storage itself.
        """
        leaves: dict[Storage, int] = {}  # how many leaves of this graph are over it
        sources: list[int] = []
        for leaf, source in self.lazy_leaves:
            self._count(self.nodes[leaf].storage, source, leaves, sources)
        others = {*shared(self.nodes, self.uses)}
        held = [source for leaf, source in self.lazy_leaves if leaf in others]
        return held + [sources[k] for k in shared(list(leaves), leaves.values())]

    def _count(
        self, storage: Storage, source: int, leaves: dict[Storage, int], sources: list[int]
    ) -> None:
        """Notes a leaf over a storage that waits; a function, so that no variable stays with it."""
        if storage not in leaves:
            leaves[storage] = 0
            sources.append(source)
            self.uses[source] += 1  # by the storage
        leaves[storage] += 1

    def aim(self, t: Expr) -> Target:
        """What a plan depends on of the leaf that is written."""
        storage_of(t)
        overlaps, same = set(), set()
        for slot, e in enumerate(self.leaves):
            if e.storage is t.storage:
                overlaps.add(slot)
                if e.offset == t.offset and e.strides == t.strides and e.spec.shape == t.spec.shape:
                    same.add(slot)
        return Target(t.strides, len(self.leaves), frozenset(overlaps), frozenset(same))

    def parts(self) -> list[tuple[Hashable, ...]]:
        """What the key says of each node, where all leaves are in memory."""
        found, at = [], 0
        for e in self.nodes:
            end = at + (len(LEAF) if e.op is None else len(PENDING) + len(e.args))
            found.append(tuple(self.key[at:end]))
            at = end
        return found
