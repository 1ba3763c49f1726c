"""Recognising a graph that has been evaluated before, without building anything.

What plans depend on is in a graph's key (`walk`). A `Known` graph has it entry by entry, and beside
each node what the key says of it; a new graph is compared with that from its root on, which is
quicker than making its key. Where all is the same, the nodes found lie where the plan expects them,
and it is launched. What is not exactly the same goes the long way, which knows everything.

All mismatches are seen that a key sees, but for two that change nothing: whether anybody holds the
root, which is stored anyway, and one leaf in two places where there were two of one kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

from ..backend.streams import current_handle
from ..device import opened as open_device
from ..fusion.plan import Target
from ..graph.expr import Attrs, Expr, Spec
from ..graph.ownership import is_held_alike
from ..layout import Shape
from ..ops.table import COPY, Op
from ..plugins.opened import Opened
from ..recent import Recent
from ..settings import flags
from .events import counters
from .launching import Number, launch
from .programs import BoundPlan, holding
from .walk import PENDING, Walk

KEPT = 4  # graphs with the same root op and Spec that are compared; beyond, the oldest goes
NODES = 48  # larger graphs are not worth it
UPDATES = "updates"  # in the key of a graph whose root is no copy into what is written
LIMIT = 4096  # root ops and Specs whose graphs are kept


class Entry:
    """What a key says of one node."""

    __slots__ = ("args", "attrs", "first", "op", "spec", "strides", "types")

    op: Op | None
    spec: Spec
    attrs: Attrs
    strides: Shape | None  # of a leaf
    args: tuple[int, ...]  # positions of arguments; -1: a number
    types: tuple[type[Number] | None, ...]  # of the arguments that are numbers; None elsewhere
    first: int  # how many numbers other nodes have before

    def __init__(self, part: Sequence[Any], is_leaf: bool, first: int) -> None:
        self.op = self.attrs = self.strides = None
        self.first = first
        if is_leaf:
            self.spec, self.strides = part
            self.args = self.types = ()
        else:
            self.op, self.attrs, self.spec = part[: len(PENDING)]
            given = part[len(PENDING) :]
            self.args = tuple([a if isinstance(a, int) else -1 for a in given])
            self.types = tuple([None if isinstance(a, int) else a for a in given])


Entries: TypeAlias = list[Entry]


class Known:
    """A graph that was evaluated before, and the plan that it became."""

    __slots__ = (
        "entries", "held", "leaves", "numbers", "opened", "overlaps", "plan", "root", "target",
        "uses",
    )  # fmt: skip

    entries: Entries
    uses: list[int]  # how often each node is an argument
    held: list[bool | None]  # whether something else holds it; None of leaves and the root
    leaves: list[int]  # positions
    numbers: int  # how many there are
    root: int
    plan: BoundPlan
    target: Target | None
    overlaps: bool  # whether the target's memory is read, too
    opened: Opened

    def __init__(
        self, walk: Walk, plan: BoundPlan, held: Sequence[int], target: Target | None, root: int
    ) -> None:
        self.entries, numbers = [], 0
        for e, part in zip(walk.nodes, walk.parts(), strict=True):
            made = Entry(part, e.op is None, numbers)
            self.entries.append(made)
            numbers += made.args.count(-1)
        self.numbers = numbers
        self.uses = list(walk.uses)
        self.held = [
            None if e.op is None or i >= root else i in held for i, e in enumerate(walk.nodes)
        ]
        self.leaves = [i for i, e in enumerate(walk.nodes) if e.op is None]
        self.root, self.plan, self.target = root, plan, target
        self.overlaps = target is not None and bool(target.overlaps)
        self.opened = open_device(walk.device)


_known: Recent[tuple[Hashable, ...], tuple[Known, ...]] = holding(LIMIT)
NO_NUMBERS: list[Any] = []


def match(root: Expr, waits: bool = False) -> bool:
    """Evaluates `root` if its graph is known; whether it was.

    `waits`: for what indices were, where that is known when launches return.
    """
    return run_known((root.op, root.spec), root, None, waits)


def match_into(value: Expr, target: Expr, others: int = 0) -> bool:
    """Writes `value` into what the leaf `target` views, if graph and leaf are known.

    Whether it did is what comes back. Only so many others hold the value. Nothing else that is
    pending may read this memory. Where others hold the value, it must not have been read there.
    """
    return run_known((value.op, value.spec, target.strides), value, target, True, others)


def match_update(value: Expr, target: Expr) -> bool:
    """As `match_into`, for an op that nobody holds, and that updates what is there."""
    return run_known((value.op, value.spec, target.strides, UPDATES), value, target, True)


def run_known(
    key: tuple[Hashable, ...], root: Expr, target: Expr | None, waits: bool, others: int = 0
) -> bool:
    """Launches one of the graphs under a key, if that is the graph of `root`; whether one is.

    Where `others` hold the value, it must not be read from what is written.
    """
    young = _known.young
    for known in young.get(key) or _known.find(key) or ():
        if not (others and known.overlaps) and run(known, root, target, waits):
            return True
    return False


def run(known: Known, root: Expr, target: Expr | None, waits: bool) -> bool:
    """Launches what is known, if that is the graph of `root`; whether it is."""
    if known.plan.checks and not known.plan.is_prompt(known.opened, waits):
        return False
    found: list[Any] = [None] * len(known.entries)
    numbers: list[Any] = [None] * known.numbers if known.numbers else NO_NUMBERS
    if not is_same(known.entries, known.root, root, found, numbers):
        return False
    leaves = [found[i] for i in known.leaves]
    if target is not None and not is_same_memory(leaves, target, known.target):
        return False
    if flags.tainted and is_any_bad(leaves, target):
        return False
    if not is_held_alike(found, known.uses, known.held):
        return False
    opened = known.opened
    stream = current_handle(opened.device) if opened.streams else None
    launch(opened, known.plan, found, leaves, numbers, target, stream)
    counters.evaluations += 1
    counters.recognised += 1
    return True


def is_same(
    entries: Entries, i: int, e: Expr, found: list[Any], numbers: list[Number | None]
) -> bool:
    """Whether node `e`, and what it needs, is as entry `i` says. Notes what is found where."""
    entry = entries[i]
    if e.op is not entry.op or e.spec is not entry.spec:
        return False
    if entry.op is None:
        if e.storage.pending is not None:
            return False
        if e.strides is not entry.strides and e.strides != entry.strides:
            return False
        found[i] = e
        return True
    if e.attrs is not entry.attrs and e.attrs != entry.attrs:
        return False
    args, known, number = e.args, entry.args, entry.first
    if len(args) != len(known):
        return False
    for k in range(len(known)):
        j = known[k]
        a = args[k]
        if j < 0:
            if type(a) is not entry.types[k]:
                return False
            numbers[number] = a
            number += 1
        elif found[j] is not None:
            if found[j] is not a:
                return False
        elif type(a) is not Expr or not is_same(entries, j, a, found, numbers):
            return False
    found[i] = e
    return True


def is_same_memory(leaves: Sequence[Expr], t: Expr, known: Target | None) -> bool:
    """Whether those leaves that were what is written are so again, and no others."""
    assert known is not None
    for slot in range(len(leaves)):
        e = leaves[slot]
        if slot in known.same:
            if e.storage is not t.storage or e.offset != t.offset:
                return False
        elif e.storage is t.storage:
            return False
    return True


def is_any_bad(leaves: Sequence[Expr], target: Expr | None) -> bool:
    """Whether a value may come of a bad index."""
    for e in leaves:
        if e.storage.checks:
            return True
    return target is not None and bool(target.storage.checks)


def add(walk: Walk, plan: BoundPlan, held: Sequence[int], target: Target | None) -> None:
    """Notes a graph, if it is of the simple kind.

    For its leaves nothing is pending, and what it stores is the one root, and perhaps what else is
    held.
    """
    if len(walk.nodes) > NODES or len(walk.roots) != 1 or walk.lazy_leaves:
        return
    root = walk.nodes[-1]
    if all(i != len(walk.nodes) - 1 for i, _ in plan.kept):
        return
    key: tuple[Hashable, ...] = (root.op, root.spec)
    if target is not None:
        if target.overlaps != target.same:
            return
        if root.op is COPY:
            root = root.args[0]
            if walk.index[root] in held:
                return
            key = (root.op, root.spec, target.strides)
        else:
            key = (root.op, root.spec, target.strides, UPDATES)
    made = Known(walk, plan, held, target, walk.index[root])
    _known[key] = (made, *(_known.find(key) or ()))[:KEPT]
