"""A graph that was evaluated before: what its key says of each node, and the plan it became.

A new graph is compared with that from its root on, which is quicker than making its key. Where all
is the same, the nodes found lie where the plan expects them, and it is launched.

All mismatches are seen that a key sees, but for two that change nothing: whether anybody holds the
root, which is stored anyway, and one leaf in two places where there were two of one kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backend.streams import current_handle
from ..fusion.plan import Target
from ..graph.expr import Expr, is_apart, storage_of
from ..graph.ownership import is_held_alike
from ..plugins.opened import Opened
from ..settings import flags
from .events import counters
from .launching import BoundPlan, Number, launch
from .walk import Entry, held_lazily

NODES = 256  # larger graphs are not worth it
NOT_KNOWN, DONE, APART = range(3)  # what comes of a run
ARGUMENTS, SLOTS = 1024, 128  # of all nodes together, and of the plan, likewise
NO_NUMBERS: list[Any] = []


class Known:
    """What is known of a graph.

    `entries` are its nodes', of which `root` is the last that was computed, rather than copied, or
    the first of several that were asked for, and `others` are the rest of these; `uses`: how often
    each node is an argument; `held`: whether something else holds it, None where that is not asked;
    `target`: where the result was written, if it was.
    """

    __slots__ = (
        "_apart", "_asks", "_entries", "_held", "_leaves", "_numbers", "_opened", "_others",
        "_plan", "_root", "_sources", "_target", "_uses", "overlaps",
    )  # fmt: skip

    overlaps: bool  # whether the target's memory is read, too

    def __init__(
        self,
        entries: list[Entry],
        root: int,
        uses: list[int],
        held: list[bool | None],
        plan: BoundPlan,
        target: Target | None,
        opened: Opened,
        others: Sequence[int] = (),
    ) -> None:
        self._others = others
        self._entries, self._root, self._uses, self._held = entries, root, uses, held
        self._asks = any(h is not None for h in held)  # 0.6 us, where it is not asked of any
        self._sources = {i: e.source for i, e in enumerate(entries) if e.source >= 0}
        self._leaves = [i for i, e in enumerate(entries) if e.op is None and e.source < 0]
        self._numbers = sum(e.args.count(-1) for e in entries)
        self._plan, self._target, self._opened = plan, target, opened
        self._apart = plan.plan.overlaps
        self.overlaps = target is not None and bool(target.overlaps)

    def run(self, root: Expr, target: Expr | None, waits: bool, others: Sequence[Expr] = ()) -> int:
        """Launches the plan, if the graph of `root`, and of the `others`, is this one.

        `APART`: it is, and it reads what it would overwrite; nothing is done.
        """
        plan, opened = self._plan, self._opened
        if plan.checks and not plan.is_prompt(opened, waits):
            return NOT_KNOWN
        found: list[Any] = [None] * len(self._entries)
        numbers: list[Any] = [None] * self._numbers if self._numbers else NO_NUMBERS
        if not _is_same(self._entries, self._root, root, found, numbers):
            return NOT_KNOWN
        for j, e in zip(self._others, others, strict=True):
            if found[j] is None and not _is_same(self._entries, j, e, found, numbers):
                return NOT_KNOWN
            if found[j] is not e:
                return NOT_KNOWN
        leaves = [found[i] for i in self._leaves]
        if target is not None and not _is_same_memory(leaves, target, self._target):
            return NOT_KNOWN
        if flags.tainted and _is_any_bad(leaves, target):
            return NOT_KNOWN
        if self._asks and not self._is_held_alike(found):
            return NOT_KNOWN
        if self._apart:
            return APART
        stream = current_handle(opened.device) if opened.streams else None
        launch(opened, plan, found, leaves, numbers, target, stream)
        counters.evaluations += 1
        counters.recognised += 1
        return DONE

    def _is_held_alike(self, found: list[Expr]) -> bool:
        if not self._sources:
            return is_held_alike(found, self._uses, self._held)
        while found[-1] is None:  # a copy into the target
            found.pop()
        index = dict.fromkeys(found)
        held = {*held_lazily(found, self._uses[: len(found)], self._sources)}
        del index
        return all(h is None or h is (i in held) for i, h in enumerate(self._held))


def _is_same(
    entries: list[Entry], i: int, e: Expr, found: list[Any], numbers: list[Number | None]
) -> bool:
    """Whether node `e`, and what it needs, is as entry `i` says. Notes what is found where."""
    entry = entries[i]
    if e.op is not entry.op or e.spec is not entry.spec:
        return False
    if entry.op is None:
        pending, j = storage_of(e).pending, entry.source
        if pending is not None and j >= 0:
            if e.moves != entry.moves:
                return False
            if found[j] is None and not _is_same(entries, j, pending, found, numbers):
                return False
            found[i] = e
            return found[j] is pending
        if pending is not None or j >= 0:
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
        elif type(a) is not Expr or not _is_same(entries, j, a, found, numbers):
            return False
    found[i] = e
    return True


def _is_same_memory(leaves: Sequence[Expr], t: Expr, known: Target | None) -> bool:
    """Whether the leaves that were over what is written, or were that itself, are so again."""
    assert known is not None
    for slot in range(len(leaves)):
        e = leaves[slot]
        if e.storage is not t.storage:
            if slot in known.overlaps or e.storage.overlap is not None:
                return False
        elif slot not in known.overlaps:
            if not is_apart(e, t):
                return False
        elif _is_alike(e, t) != (slot in known.same):
            return False
    return True


def _is_alike(e: Expr, t: Expr) -> bool:
    """Whether two leaves of a storage are of the same elements."""
    return e.offset == t.offset and e.strides == t.strides and e.spec.shape == t.spec.shape


def _is_any_bad(leaves: Sequence[Expr], target: Expr | None) -> bool:
    """Whether a value may come of a bad index."""
    for e in leaves:
        if e.storage.checks:
            return True
    return target is not None and bool(target.storage.checks)
