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
from ..fusion.plan import WriteTarget
from ..graph.expr import Expr, find_shared_arguments, is_disjoint, storage_of
from ..graph.refcount import matches_references
from ..plugins.device_handle import OpenedDevice
from ..settings import flags
from .events import counters
from .graph_key import GraphNodeKey, find_lazy_references
from .launching import BoundPlan, Number, launch_plan

GRAPH_NODES_MAX = 256  # larger graphs are not cached here
MISS, HIT, NEEDS_TEMP = range(3)  # outcomes of a run
GRAPH_ARGUMENTS_MAX = 1024
PLAN_SLOTS_MAX = 128
NO_NUMBERS: list[Any] = []


class CachedGraph:
    """A graph that was evaluated, with its plan.

    node_keys: the keys of the nodes.
    root: the position of the last computed (not copied) node, or of the first of several roots.
    other_roots: the positions of the other roots.
    uses: how often each node is an argument.
    referenced: True for nodes with references from outside; None where that is not checked.
    shared: the positions of nodes that share their arguments with an earlier one.
    target: the memory into which the result was written, if any.
    """

    __slots__ = (
        "_checks_references",
        "_leaves",
        "_needs_temp",
        "_node_keys",
        "_numbers",
        "_opened",
        "_other_roots",
        "_plan",
        "_referenced",
        "_root",
        "_shared",
        "_sources",
        "_target",
        "_uses",
        "overlaps",
    )

    overlaps: bool  # True if the graph also reads the target's memory

    def __init__(
        self,
        node_keys: list[GraphNodeKey],
        root: int,
        uses: list[int],
        referenced: list[bool | None],
        plan: BoundPlan,
        target: WriteTarget | None,
        opened: OpenedDevice,
        other_roots: Sequence[int] = (),
        shared: tuple[int, ...] = (),
    ) -> None:
        self._other_roots, self._shared = other_roots, shared
        self._node_keys, self._root, self._uses, self._referenced = (
            node_keys,
            root,
            uses,
            referenced,
        )
        self._checks_references = any(h is not None for h in referenced)  # the check takes 0.6 us
        self._sources = {i: e.source for i, e in enumerate(node_keys) if e.source >= 0}
        self._leaves = [i for i, e in enumerate(node_keys) if e.op is None and e.source < 0]
        self._numbers = sum(e.args.count(-1) for e in node_keys)
        self._plan, self._target, self._opened = plan, target, opened
        self._needs_temp = plan.plan.target_overlaps
        self.overlaps = target is not None and bool(target.overlapping_slots)

    def run(
        self,
        root: Expr,
        target: Expr | None,
        reports_checks: bool,
        other_roots: Sequence[Expr] = (),
    ) -> int:
        """Launch the plan if the graph of the roots matches; return HIT, MISS or NEEDS_TEMP.

        `NEEDS_TEMP`: the graph matches but reads what it would overwrite; nothing was launched.
        """
        plan, opened = self._plan, self._opened
        if plan.checks and not plan.is_prompt(opened, reports_checks):
            return MISS
        matched: list[Any] = [None] * len(self._node_keys)
        numbers: list[Any] = [None] * self._numbers if self._numbers else NO_NUMBERS
        if not _matches_node(self._node_keys, self._root, root, matched, numbers):
            return MISS
        for j, e in zip(self._other_roots, other_roots, strict=True):
            if matched[j] is None and not _matches_node(self._node_keys, j, e, matched, numbers):
                return MISS
            if matched[j] is not e:
                return MISS
        leaves = [matched[i] for i in self._leaves]
        if target is not None and not _matches_memory(leaves, target, self._target):
            return MISS
        if flags.has_unresolved_checks and _has_failed_checks(leaves, target):
            return MISS
        if self._checks_references and not self._matches_references(matched):
            return MISS
        if self._needs_temp:
            return NEEDS_TEMP
        stream = current_handle(opened.device) if opened.has_streams else None
        launch_plan(opened, plan, matched, leaves, numbers, target, stream)
        counters.evaluations += 1
        counters.graph_hits += 1
        return HIT

    def _matches_references(self, matched: list[Expr]) -> bool:
        """Return True if the matched nodes are referenced from outside as in the cached graph."""
        if find_shared_arguments(matched) != self._shared:
            return False
        if not self._sources:
            return matches_references(matched, self._uses, self._referenced)
        while matched[-1] is None:  # the copy into the target
            matched.pop()
        index = dict.fromkeys(matched)
        referenced = {*find_lazy_references(matched, self._uses[: len(matched)], self._sources)}
        del index
        return all(h is None or h is (i in referenced) for i, h in enumerate(self._referenced))


def _matches_node(
    node_keys: list[GraphNodeKey], i: int, e: Expr, matched: list[Any], numbers: list[Number | None]
) -> bool:
    """Return True if `e` and its operands match entry `i`; fill `matched` and `numbers`."""
    node_key = node_keys[i]
    if e.op is not node_key.op or e.spec is not node_key.spec:
        return False
    if node_key.op is None:
        pending, j = storage_of(e).pending, node_key.source
        if pending is not None and j >= 0:
            if e.moves != node_key.moves:
                return False
            if matched[j] is None and not _matches_node(node_keys, j, pending, matched, numbers):
                return False
            matched[i] = e
            return matched[j] is pending
        if pending is not None or j >= 0:
            return False
        if e.strides is not node_key.strides and e.strides != node_key.strides:
            return False
        matched[i] = e
        return True
    if e.attrs is not node_key.attrs and e.attrs != node_key.attrs:
        return False
    args, positions, number = e.args, node_key.args, node_key.first_number
    if len(args) != len(positions):
        return False
    for k in range(len(positions)):
        j = positions[k]
        a = args[k]
        if j < 0:
            if type(a) is not node_key.types[k]:
                return False
            numbers[number] = a
            number += 1
        elif matched[j] is not None:
            if matched[j] is not a:
                return False
        elif type(a) is not Expr or not _matches_node(node_keys, j, a, matched, numbers):
            return False
    matched[i] = e
    return True


def _matches_memory(leaves: Sequence[Expr], t: Expr, expected: WriteTarget | None) -> bool:
    """Return True if the leaves that overlap the target, and those equal to it, are as expected."""
    assert expected is not None
    for slot in range(len(leaves)):
        e = leaves[slot]
        if e.storage is not t.storage:
            if slot in expected.overlapping_slots or e.storage.overlap is not None:
                return False
        elif slot not in expected.overlapping_slots:
            if not is_disjoint(e, t):
                return False
        elif _has_same_elements(e, t) != (slot in expected.identical_slots):
            return False
    return True


def _has_same_elements(e: Expr, t: Expr) -> bool:
    """Return True if two leaves of one storage view the same elements in the same order."""
    return e.offset == t.offset and e.strides == t.strides and e.spec.shape == t.spec.shape


def _has_failed_checks(leaves: Sequence[Expr], target: Expr | None) -> bool:
    """Return True if memory of an operand or the target has index checks that may have failed."""
    for e in leaves:
        if e.storage.checks:
            return True
    return target is not None and bool(target.storage.checks)
