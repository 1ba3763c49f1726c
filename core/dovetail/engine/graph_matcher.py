"""Cached graphs: the key of each node, and the plan.

A new graph is matched from its root on, which is faster than building its key. If everything
matches, the matched nodes are in the positions that the plan expects, and the plan is launched.

A graph of a shape class is cached without sizes: where a key has sizes, it has the numbers of
distinct sizes (`graph_key.DistinctSizes`). Matching reads these, and the class builds their plan.

Matching finds every difference that a key would show, except two without consequence: whether the
root is referenced from outside (it is stored anyway), and one leaf used twice in place of two equal
leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backend.streams import current_handle
from ..fusion.plan import WriteTarget
from ..fusion.symbolic_sizes import INPUT_MIN
from ..graph.expr import Attrs, Expr, Spec, find_shared_arguments, is_disjoint, storage_of
from ..graph.refcount import matches_references
from ..layout import Move
from ..locks import Lock
from ..lru_cache import LRUCache
from ..ops.table import Op
from ..plugins.device_handle import OpenedDevice
from ..settings import flags
from .events import counters
from .graph_key import GraphNodeKey, find_lazy_references
from .launching import BoundPlan, Number, launch_plan
from .programs import bind_plan, create_program_cache

if TYPE_CHECKING:
    from ..fusion.shape_class import ShapeClass

CLASS_SIZES_MAX = 64  # distinct sizes of a graph of a shape class
VARIANTS_MAX = 8192  # cached plans of graphs of shape classes
GRAPH_NODES_MAX = 256  # larger graphs are not cached here
MISS, HIT, NEEDS_TEMP = range(3)  # outcomes of a run
GRAPH_ARGUMENTS_MAX = 1024
PLAN_SLOTS_MAX = 128
NO_NUMBERS: list[Any] = []
_variants: LRUCache[tuple[Any, ...], BoundPlan] = create_program_cache(VARIANTS_MAX)


class CachedGraph:
    """A graph that was evaluated, with its plan.

    node_keys: the keys of the nodes.
    root: the position of the last computed (not copied) node, or of the first of several roots.
    other_roots: the positions of the other roots.
    uses: how often each node is an argument.
    referenced: True for nodes with references from outside; None where that is not checked.
    shared: the positions of nodes that share their arguments with an earlier one.
    target: the memory into which the result was written, if any.
    shape_class: the class of the plan; the keys then have codes in place of `sizes` distinct sizes.
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
        "_sizes",
        "_sources",
        "_target",
        "_uses",
        "overlaps",
        "shape_class",
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
        shape_class: ShapeClass | None = None,
        sizes: int = 0,
    ) -> None:
        self.shape_class, self._sizes = shape_class, sizes
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
        sizes = None if self.shape_class is None else [0] * self._sizes
        if not _matches_node(self._node_keys, self._root, root, matched, numbers, sizes):
            return MISS
        for j, e in zip(self._other_roots, other_roots, strict=True):
            if matched[j] is None and not _matches_node(
                self._node_keys, j, e, matched, numbers, sizes
            ):
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
        if sizes is not None:
            codes = () if self._target is None else self._target.strides
            if target is not None and not _fits_all(codes, target.strides, sizes):
                return MISS
            variant = self._find_variant(matched, sizes)
            if variant is None:
                return MISS
            plan = variant
        if self._needs_temp:
            return NEEDS_TEMP
        stream = current_handle(opened.device) if opened.has_streams else None
        launch_plan(opened, plan, matched, leaves, numbers, target, stream)
        counters.evaluations += 1
        counters.graph_hits += 1
        return HIT

    def _find_variant(self, matched: Sequence[Expr | None], sizes: list[int]) -> BoundPlan | None:
        """Return the plan of these sizes, cached or from the shape class; None if that has none."""
        assert self.shape_class is not None
        if 0 in sizes:  # the size of a node that is not matched
            return None
        values = tuple(sizes)
        variant = _variants.find((self, values))
        if variant is None:
            specs = [None if e is None else e.spec for e in matched]
            plan = self.shape_class.build_plan(values, specs)
            if plan is None:
                return None
            counters.shape_class_hits += 1
            variant = _variants[self, values] = bind_plan(self._opened, plan, self._numbers)
        return variant

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
    node_keys: list[GraphNodeKey],
    i: int,
    e: Expr,
    matched: list[Any],
    numbers: list[Number | None],
    sizes: list[int] | None,
) -> bool:
    """Return True if `e` and its operands match entry `i`; fill `matched`, `numbers`, `sizes`."""
    node_key = node_keys[i]
    if e.op is not node_key.op or not _matches_spec(node_key, e.spec, sizes):
        return False
    op = node_key.op
    if op is None:
        pending, j = storage_of(e).pending, node_key.source
        if pending is not None and j >= 0:
            if not _matches_moves(node_key.moves, e.moves, sizes):
                return False
            if matched[j] is None and not _matches_node(
                node_keys, j, pending, matched, numbers, sizes
            ):
                return False
            matched[i] = e
            return matched[j] is pending
        if pending is not None or j >= 0:
            return False
        if sizes is not None:
            if not _fits_all(node_key.strides or (), e.strides, sizes):
                return False
        elif e.strides is not node_key.strides and e.strides != node_key.strides:
            return False
        matched[i] = e
        return True
    if sizes is not None and (op.kind in ("view", "gather") or op.purpose_at >= 0):
        if not _fits_attrs(op, node_key.attrs, e.attrs, sizes):
            return False
    elif e.attrs is not node_key.attrs and e.attrs != node_key.attrs:
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
        elif type(a) is not Expr or not _matches_node(node_keys, j, a, matched, numbers, sizes):
            return False
    matched[i] = e
    return True


def _matches_spec(node_key: GraphNodeKey, s: Spec, sizes: list[int] | None) -> bool:
    """Return True if a Spec matches that of a key, which has codes of sizes if `sizes` are read."""
    if sizes is None:
        return s is node_key.spec
    same = s.dtype is node_key.spec.dtype and s.device is node_key.spec.device
    return same and _fits_all(node_key.codes or (), s.shape, sizes)


def _matches_moves(
    expected: tuple[Move, ...] | None, moves: tuple[Move, ...], sizes: list[int] | None
) -> bool:
    """Return True if moves equal the expected ones, or fit them, if these have codes of sizes."""
    if sizes is None or expected is None:
        return moves == expected
    return len(moves) == len(expected) and all(
        _fits_move(codes, m, sizes) for codes, m in zip(expected, moves, strict=True)
    )


def _fits(code: int, value: int, sizes: list[int]) -> bool:
    """Return True if a value is the constant, or the size, of a code; store the size."""
    if -INPUT_MIN < code < INPUT_MIN:
        return value == code
    if code < 0:
        code, value = -code, -value
    k = code - INPUT_MIN
    if sizes[k] == 0:
        sizes[k] = value
        return value >= INPUT_MIN
    return sizes[k] == value


def _fits_all(codes: Sequence[int], values: Sequence[int], sizes: list[int]) -> bool:
    """Return True if all values fit their codes."""
    return len(codes) == len(values) and all(
        _fits(code, value, sizes) for code, value in zip(codes, values, strict=True)
    )


def _fits_move(codes: Move, move: Move, sizes: list[int]) -> bool:
    """Return True if a move fits one with codes (`graph_key.map_move`)."""
    if len(codes) != len(move) or codes[0] != move[0]:
        return False
    if codes[0] == "permute":
        return bool(codes[1] == move[1])
    if codes[0] == "pad":
        return codes[1] == move[1] and _fits_all(codes[2:], move[2:], sizes)
    return all(_fits_all(*pair, sizes) for pair in zip(codes[1:], move[1:], strict=True))


def _fits_attrs(op: Op, codes: Attrs, attrs: Attrs, sizes: list[int]) -> bool:
    """Return True if attrs fit those with codes (`graph_key.map_attrs`)."""
    if op.kind == "view":
        return _fits_move(codes, attrs, sizes)
    if (at := op.purpose_at) >= 0:
        same = codes[:at] == attrs[:at] and codes[at + 1 :] == attrs[at + 1 :]
        return bool(same) and _fits_purpose(codes[at], attrs[at], sizes)
    if not _fits_all(codes[0], attrs[0], sizes) or codes[1:3] != attrs[1:3]:
        return False
    if codes[3] is None or attrs[3] is None:
        return codes[3] is attrs[3]
    return len(codes[3]) == len(attrs[3]) and all(
        _fits_purpose(*pair, sizes) for pair in zip(codes[3], attrs[3], strict=True)
    )


def _fits_purpose(
    codes: tuple[str, int, int] | None, purpose: tuple[str, int, int] | None, sizes: list[int]
) -> bool:
    """Return True if the purpose of an index, or None, fits one with codes."""
    if codes is None or purpose is None:
        return codes is purpose
    return codes[:2] == purpose[:2] and _fits(codes[2], purpose[2], sizes)


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


def run_first_match(lock: Lock, graphs: Sequence[CachedGraph], root: Expr) -> bool:
    """Run the first graph that matches `root`, with the lock held; return True if one did."""
    with lock:
        return any(graph.run(root, None, True) == HIT for graph in graphs)


def _has_failed_checks(leaves: Sequence[Expr], target: Expr | None) -> bool:
    """Return True if memory of an operand or the target has index checks that may have failed."""
    for e in leaves:
        if e.storage.checks:
            return True
    return target is not None and bool(target.storage.checks)
