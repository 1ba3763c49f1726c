"""Cached graphs: the key of each node, and the plan.

A new graph is matched from its root on, which is faster than building its key. If everything
matches, the matched nodes are in the positions that the plan expects, and the plan is launched.

Matching finds every difference that a key would show, except two without consequence: whether the
root is referenced from outside (it is stored anyway), and one leaf used twice in place of two equal
leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backend.streams import current_handle
from ..fusion.plan import Target
from ..graph.expr import Expr, is_apart, storage_of
from ..graph.refcount import matches_references
from ..plugins.device_handle import Opened
from ..settings import flags
from .events import counters
from .graph_key import Entry, find_lazy_references
from .launching import BoundPlan, Number, launch

NODES = 256  # larger graphs are not cached here
MISS, HIT, NEEDS_TEMP = range(3)  # outcomes of a run
ARGUMENTS, SLOTS = 1024, 128  # limits of arguments per graph and of slots per plan
NO_NUMBERS: list[Any] = []


class CachedGraph:
    """A graph that was evaluated, with its plan.

    entries: the keys of the nodes.
    root: the position of the last computed (not copied) node, or of the first of several roots.
    others: the positions of the other roots.
    uses: how often each node is an argument.
    referenced: True for nodes with references from outside; None where that is not checked.
    target: the memory into which the result was written, if any.
    """

    __slots__ = (
        "_checks_references",
        "_entries",
        "_leaves",
        "_needs_temp",
        "_numbers",
        "_opened",
        "_others",
        "_plan",
        "_referenced",
        "_root",
        "_sources",
        "_target",
        "_uses",
        "overlaps",
    )

    overlaps: bool  # True if the graph also reads the target's memory

    def __init__(
        self,
        entries: list[Entry],
        root: int,
        uses: list[int],
        referenced: list[bool | None],
        plan: BoundPlan,
        target: Target | None,
        opened: Opened,
        others: Sequence[int] = (),
    ) -> None:
        self._others = others
        self._entries, self._root, self._uses, self._referenced = entries, root, uses, referenced
        self._checks_references = any(h is not None for h in referenced)  # the check takes 0.6 us
        self._sources = {i: e.source for i, e in enumerate(entries) if e.source >= 0}
        self._leaves = [i for i, e in enumerate(entries) if e.op is None and e.source < 0]
        self._numbers = sum(e.args.count(-1) for e in entries)
        self._plan, self._target, self._opened = plan, target, opened
        self._needs_temp = plan.plan.overlaps
        self.overlaps = target is not None and bool(target.overlaps)

    def run(self, root: Expr, target: Expr | None, waits: bool, others: Sequence[Expr] = ()) -> int:
        """Launch the plan if the graph of `root` and `others` is this one; return the outcome.

        `NEEDS_TEMP`: the graph matches but reads what it would overwrite; nothing was launched.
        """
        plan, opened = self._plan, self._opened
        if plan.checks and not plan.is_prompt(opened, waits):
            return MISS
        matched: list[Any] = [None] * len(self._entries)
        numbers: list[Any] = [None] * self._numbers if self._numbers else NO_NUMBERS
        if not _matches_node(self._entries, self._root, root, matched, numbers):
            return MISS
        for j, e in zip(self._others, others, strict=True):
            if matched[j] is None and not _matches_node(self._entries, j, e, matched, numbers):
                return MISS
            if matched[j] is not e:
                return MISS
        leaves = [matched[i] for i in self._leaves]
        if target is not None and not _matches_memory(leaves, target, self._target):
            return MISS
        if flags.tainted and _has_failed_checks(leaves, target):
            return MISS
        if self._checks_references and not self._matches_references(matched):
            return MISS
        if self._needs_temp:
            return NEEDS_TEMP
        stream = current_handle(opened.device) if opened.streams else None
        launch(opened, plan, matched, leaves, numbers, target, stream)
        counters.evaluations += 1
        counters.recognised += 1
        return HIT

    def _matches_references(self, matched: list[Expr]) -> bool:
        if not self._sources:
            return matches_references(matched, self._uses, self._referenced)
        while matched[-1] is None:  # the copy into the target
            matched.pop()
        index = dict.fromkeys(matched)
        referenced = {*find_lazy_references(matched, self._uses[: len(matched)], self._sources)}
        del index
        return all(h is None or h is (i in referenced) for i, h in enumerate(self._referenced))


def _matches_node(
    entries: list[Entry], i: int, e: Expr, matched: list[Any], numbers: list[Number | None]
) -> bool:
    """Return True if node `e` and its arguments match entry `i`; store the matched nodes."""
    entry = entries[i]
    if e.op is not entry.op or e.spec is not entry.spec:
        return False
    if entry.op is None:
        pending, j = storage_of(e).pending, entry.source
        if pending is not None and j >= 0:
            if e.moves != entry.moves:
                return False
            if matched[j] is None and not _matches_node(entries, j, pending, matched, numbers):
                return False
            matched[i] = e
            return matched[j] is pending
        if pending is not None or j >= 0:
            return False
        if e.strides is not entry.strides and e.strides != entry.strides:
            return False
        matched[i] = e
        return True
    if e.attrs is not entry.attrs and e.attrs != entry.attrs:
        return False
    args, positions, number = e.args, entry.args, entry.first
    if len(args) != len(positions):
        return False
    for k in range(len(positions)):
        j = positions[k]
        a = args[k]
        if j < 0:
            if type(a) is not entry.types[k]:
                return False
            numbers[number] = a
            number += 1
        elif matched[j] is not None:
            if matched[j] is not a:
                return False
        elif type(a) is not Expr or not _matches_node(entries, j, a, matched, numbers):
            return False
    matched[i] = e
    return True


def _matches_memory(leaves: Sequence[Expr], t: Expr, expected: Target | None) -> bool:
    """Return True if the same leaves overlap the target, and the same ones equal it, as before."""
    assert expected is not None
    for slot in range(len(leaves)):
        e = leaves[slot]
        if e.storage is not t.storage:
            if slot in expected.overlaps or e.storage.overlap is not None:
                return False
        elif slot not in expected.overlaps:
            if not is_apart(e, t):
                return False
        elif _has_same_elements(e, t) != (slot in expected.same):
            return False
    return True


def _has_same_elements(e: Expr, t: Expr) -> bool:
    """Return True if two leaves of one storage view the same elements in the same order."""
    return e.offset == t.offset and e.strides == t.strides and e.spec.shape == t.spec.shape


def _has_failed_checks(leaves: Sequence[Expr], target: Expr | None) -> bool:
    """Return True if an operand's memory has checks of indices that may have failed."""
    for e in leaves:
        if e.storage.checks:
            return True
    return target is not None and bool(target.storage.checks)
