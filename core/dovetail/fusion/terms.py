"""Terms of nodes: what a kernel computes at a point of its domain, with views pushed to the leaves.

A function here returns the term of a node, or a `Refusal`: another node has to be materialised
first, or this kernel cannot compute it. A `NodeDraft` describes the node that is being placed, and
the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from .. import layout as lay
from ..dtypes import DType, int64
from ..errors import InternalError
from ..graph.expr import Expr
from ..layout import Shape, StridedView
from ..ops.table import Op
from . import cost
from .decisions import Decisions, Producers
from .domain import Path, apply_path, merge_slices, same_elements
from .groups import Access, FusionGroup, GatherAxes, JoinRange, Term
from .join_views import view_join
from .plan import MemoryOperand
from .reasons import Reason, ReasonKind

REDUCED_PATH: Path = (
    (("reduced",), -1),
)  # key in the cache of terms of a reduction before any view
NESTED_JOINS_MAX = 4  # of cheap parts, in one kernel: each of its points computes all parts


class Prerequisite(NamedTuple):
    """A refusal until another node is materialised, with its axes in this order."""

    node: int
    reason: Reason
    order: Shape = ()


class Rejection(Enum):
    """A refusal that no materialisation removes."""

    INCOMPATIBLE = auto()  # not by this kernel: an operand is written later, or at other points
    TOO_LARGE = auto()  # this kernel would grow too large
    TARGET_HAZARD = auto()  # an operand would be overwritten first


Refusal: TypeAlias = Prerequisite | Rejection


class NodeDraft:
    """A node that is being added to a kernel, with the terms that it has needed so far."""

    __slots__ = ("group", "in_chunks", "loop", "node", "nodes", "value_count")

    def __init__(self, group: FusionGroup, node: int, in_chunks: bool = False) -> None:
        self.group, self.node, self.in_chunks = group, node, in_chunks  # its rows cut into chunks?
        self.value_count = 0
        self.loop = -1  # the reduction whose operand is being built, or -1
        self.nodes: set[int] = set()  # nodes that have a term


def view_through(base: StridedView, path: Path) -> StridedView | Prerequisite:
    """Return the layout `base` viewed through `path`, or the need to materialise a node."""
    view = apply_path(base, path)
    if isinstance(view, StridedView):
        return view
    assert view >= 0  # moves of a domain's own add axes of size 1, which all strides permit
    return Prerequisite(view, Reason(ReasonKind.RESHAPED))


def find_term(decisions: Decisions, i: int, path: Path, draft: NodeDraft) -> Term | Refusal:
    """Return the term of node `i` viewed through `path`, cached in the draft's kernel."""
    path = merge_slices(path)
    key = (i, path)
    cached = draft.group.terms.get(key)
    if cached is not None:
        return _reuse_in_loop(decisions, i, cached, draft)
    term = build_term(decisions, i, path, draft)
    if isinstance(term, Term):
        if term.loop is None:
            term.loop = draft.loop
        draft.group.terms[key] = term
        draft.nodes.add(i)
    return term


def _reuse_in_loop(decisions: Decisions, i: int, term: Term, draft: NodeDraft) -> Term | Refusal:
    """Return a node's term, or a refusal if it is costly and another loop computes it already.

    Each loop of a kernel computes the terms that it reads. A later kernel loads the node.
    """
    if term.loop == draft.loop or term.kind in ("load", "reduce"):
        return term
    i = decisions.graph.follow_views(i, decisions.materialised)
    if cost.compute_cost(decisions, i) < cost.SHARED_VALUE_COST_MIN:
        return term
    if cost.may_exceed_memory(decisions, i):
        return term
    if i in decisions.materialised:
        return Rejection.INCOMPATIBLE
    return Prerequisite(i, Reason(ReasonKind.COSTLY_IN_LOOPS))


def build_term(decisions: Decisions, i: int, path: Path, draft: NodeDraft) -> Term | Refusal:
    """Add a node's accesses to the kernel; return its term, viewed through `path`, or a refusal.

    The term is not cached; those of its operands are. Accesses are added also before a refusal.
    """
    expr = decisions.graph.nodes[i]
    if i in decisions.materialised and i != draft.node:
        return _load_materialised(decisions, i, path, draft.group)
    op = expr.op
    if op is None:
        return _build_leaf_term(decisions, i, path, draft)
    size = cost.count_values(expr, op)
    draft.value_count += size
    term: Term | Refusal | None = None
    if i != draft.node:
        term = _check_limits(decisions, i, op, draft)
    if term is None:
        term = _RULES[op.kind](decisions, i, op, path, draft)
    if not isinstance(term, Term):
        draft.value_count -= size
    return term


def _check_limits(decisions: Decisions, i: int, op: Op, draft: NodeDraft) -> Refusal | None:
    """Return a refusal if the kernel would grow too large or repeat a costly node, else None."""
    group = draft.group
    if group.value_count + draft.value_count > cost.KERNEL_VALUES_MAX:
        return (
            Rejection.TOO_LARGE if group.outputs else Prerequisite(i, Reason(ReasonKind.TOO_LARGE))
        )
    if (
        op.cost >= cost.SHARED_VALUE_COST_MIN
        and any(other is not group for other in decisions.inlined.get(i, ()))
        and not cost.may_exceed_memory(decisions, i)
    ):
        return Prerequisite(i, Reason(ReasonKind.COSTLY_TWICE))
    return None


def _load_materialised(
    decisions: Decisions, i: int, path: Path, group: FusionGroup
) -> Term | Refusal:
    """Return a load of a node that an earlier kernel writes, or its term in this kernel."""
    kernel_index = decisions.kernel_of.get(i)
    if kernel_index is None or kernel_index > group.index:
        return Rejection.INCOMPATIBLE
    if kernel_index == group.index:
        return _reuse_term(decisions, i, path, group)
    view = view_through(decisions.memory_layout(i), path)
    if not isinstance(view, StridedView):
        return view
    return _load_term(decisions, i, decisions.slot_of[i], view, path, group)


def _reuse_term(decisions: Decisions, i: int, path: Path, group: FusionGroup) -> Term | Refusal:
    """Return the term of a node of this kernel if viewed at the same points, else a rejection."""
    shape = decisions.graph.nodes[i].spec.shape
    own_path = group.domain.path(shape)
    if own_path is None or not _visits_same_points(shape, path, own_path):
        return Rejection.INCOMPATIBLE
    return group.terms[i, own_path]


def _visits_same_points(shape: Shape, path: Path, own_path: Path) -> bool:
    """Return True if both paths view a value at the same points."""
    whole = lay.row_major(shape)
    view, own_view = apply_path(whole, path), apply_path(whole, own_path)
    if isinstance(view, StridedView) and isinstance(own_view, StridedView):
        return same_elements(view, own_view)
    return False


def _load_term(
    decisions: Decisions, i: int, slot: int, view: StridedView, path: Path, group: FusionGroup
) -> Term:
    """Return a load of a node in memory; append its access to the kernel."""
    spec = decisions.graph.nodes[i].spec
    ranges, most = _find_padding(spec.shape, path, group)
    access = Access(slot, spec.dtype, view.strides, view.offset, elements_max=most)
    access.starts_at_offset = access.starts_at_offset and not decisions.graph.max_buffers
    group.accesses.append(access)
    return Term("load", spec.dtype, access=access, ranges=ranges)


def _find_padding(
    shape: Shape, path: Path, group: FusionGroup
) -> tuple[tuple[JoinRange, ...], int]:
    """Return the ranges where a padded view has elements, and their maximal number.

    There are no ranges if the path does not pad the node. Positions along padded axes become
    accesses of the kernel.
    """
    ranges, elements_max = list[JoinRange](), lay.ELEMENTS_MAX
    for k, (m, _) in enumerate(path):
        if m[0] == "pad":
            _, axis, start, size = m
            elements_max = min(elements_max, math.prod(shape))
            at = _add_position_access(lay.move_shape(shape, m), axis, path[k + 1 :], group)
            stop = start + shape[axis]
            if at is not None and (start, stop) != (0, size):
                ranges.append(JoinRange(at, start, None if stop == size else stop))
        shape = lay.move_shape(shape, m)
    return tuple(ranges), elements_max


def _add_position_access(shape: Shape, axis: int, path: Path, group: FusionGroup) -> Access | None:
    """Add an access for the position along an axis, viewed through `path`, and return it.

    Return None if strides do not permit it.
    """
    along = tuple(int(d == axis) for d in range(len(shape)))
    view = apply_path(StridedView(shape, along, 0), path)
    if not isinstance(view, StridedView):
        return None
    at = Access(-1, int64, view.strides, view.offset)
    group.accesses.append(at)
    return at


def _build_leaf_term(decisions: Decisions, i: int, path: Path, draft: NodeDraft) -> Term | Refusal:
    """Return the term of a leaf, or of the node that it is a view of."""
    expr = decisions.graph.nodes[i]
    source_view = decisions.graph.view_of(i)
    if source_view is not None:
        return find_term(decisions, source_view[0], source_view[1] + path, draft)
    view = view_through(StridedView(expr.spec.shape, expr.strides, 0), path)
    if not isinstance(view, StridedView):
        return view
    return _load_term(decisions, i, decisions.graph.leaf_slot[i], view, path, draft.group)


def _find_operand_terms(
    decisions: Decisions, i: int, casts: tuple[DType, ...], path: Path, draft: NodeDraft
) -> list[Term] | Refusal:
    """Return the terms of a node's operands, numbers as scalar terms, or a refusal."""
    expr, scalar, terms = decisions.graph.nodes[i], decisions.graph.first_scalar[i], []
    for a, dtype in zip(expr.args, casts, strict=True):
        if type(a) is not Expr:
            terms.append(Term("scalar", dtype, scalar_index=scalar))
            scalar += 1
            continue
        operand = find_term(
            decisions,
            decisions.graph.index[a],
            _build_broadcast_path(a, expr.spec.shape) + path,
            draft,
        )
        if not isinstance(operand, Term):
            return operand
        terms.append(operand)
    return terms


def _build_broadcast_path(a: Expr, shape: Shape) -> Path:
    """Return the path that broadcasts an operand to a shape."""
    return () if a.spec.shape == shape else ((("expand", shape), -1),)


def _build_map_term(
    decisions: Decisions, i: int, op: Op, path: Path, draft: NodeDraft
) -> Term | Refusal:
    """Return the term of an elementwise op, or the need to materialise a costly repeated one."""
    expr = decisions.graph.nodes[i]
    if (
        i != draft.node
        and _repeats(expr.spec.shape, path, draft.group)
        and cost.recompute_cost(decisions, i) > cost.REPEATED_COST_MAX
        and not cost.may_exceed_memory(decisions, i)
    ):
        return Prerequisite(i, Reason(ReasonKind.COSTLY_REPEATED))
    casts = decisions.graph.casts_of(i)
    terms = _find_operand_terms(decisions, i, casts, path, draft)
    if not isinstance(terms, list):
        return terms
    return Term("map", expr.spec.dtype, op, tuple(terms), casts)


def _repeats(shape: Shape, path: Path, group: FusionGroup) -> bool:
    """Return True if broadcasting repeats a viewed value along the grid.

    Along the rows of a kernel it is computed once per row.
    """
    if not any(m[0] == "expand" for m, _ in path):
        return False
    view = apply_path(lay.row_major(shape), path)
    if not isinstance(view, StridedView):
        return False
    outer = len(view.shape) - len(group.domain.axes)
    pairs = zip(view.shape[:outer], view.strides[:outer], strict=True)
    return math.prod(n for n, s in pairs if s == 0) >= cost.BROADCAST_REPEATS_MAX


def _build_view_term(
    decisions: Decisions, i: int, op: Op, path: Path, draft: NodeDraft
) -> Term | Refusal:
    """Return the term of a view's source, with the view's move added to the path."""
    expr = decisions.graph.nodes[i]
    source = decisions.graph.index[expr.args[0]]
    return find_term(decisions, source, ((expr.attrs, source), *path), draft)


def _build_generate_term(
    decisions: Decisions, i: int, op: Op, path: Path, draft: NodeDraft
) -> Term | Refusal:
    """Return the term of an op of the linear index; add the index as an access."""
    expr = decisions.graph.nodes[i]
    view = view_through(lay.row_major(expr.spec.shape), path)
    if not isinstance(view, StridedView):
        return view
    access = Access(-1, int64, view.strides, view.offset)
    draft.group.accesses.append(access)
    casts, first = (
        decisions.graph.casts_of(i),
        decisions.graph.first_scalar[i],
    )  # its operands are numbers
    terms = tuple(Term("scalar", c, scalar_index=first + k) for k, c in enumerate(casts))
    return Term("generate", expr.spec.dtype, op, terms, casts, access)


def _build_reduce_term(
    decisions: Decisions, i: int, op: Op, path: Path, draft: NodeDraft
) -> Term | Refusal:
    """Return the reduction's term in this domain, cached, or a need if rows or views differ."""
    expr, domain, memo = decisions.graph.nodes[i], draft.group.domain, draft.group.terms
    if decisions.graph.rows[i] != domain:
        return Prerequisite(i, Reason(ReasonKind.DIFFERENT_ROWS))
    view = view_through(lay.row_major(expr.spec.shape), path)
    if not isinstance(view, StridedView):
        return view
    own = domain.path(expr.spec.shape)
    if own is None or not _visits_same_points(expr.spec.shape, path, own):
        return Prerequisite(i, Reason(ReasonKind.DIFFERENT_ROWS))
    if draft.in_chunks and i != draft.node:
        return Prerequisite(i, Reason(ReasonKind.READER_USES_CHUNKS))
    if (i, REDUCED_PATH) not in memo:
        inner = domain.path(domain.full)
        assert inner is not None
        outer_loop, draft.loop = draft.loop, i
        reduced = find_term(decisions, decisions.graph.index[expr.args[0]], inner, draft)
        draft.loop = outer_loop
        if not isinstance(reduced, Term):
            return reduced
        casts = op.dtypes(op.name, [expr.args[0].spec.dtype], expr.attrs[1])[0]
        memo[i, REDUCED_PATH] = Term("reduce", expr.spec.dtype, op, (reduced,), casts)
    return memo[i, REDUCED_PATH]


def _build_gather_term(
    decisions: Decisions, i: int, op: Op, path: Path, draft: NodeDraft
) -> Term | Refusal:
    """Return the term of a gather from memory with its access, or a refusal."""
    expr = decisions.graph.nodes[i]
    if any(m[0] == "pad" for m, _ in path):
        return Prerequisite(i, Reason(ReasonKind.GATHERED_PART))
    shape, source_axes, index_axes, purposes = expr.attrs
    if draft.group.domain.axes and purposes:
        return Prerequisite(i, Reason(ReasonKind.CHECKED))
    source = memory_operand(decisions, decisions.graph.index[expr.args[0]], draft)
    if not isinstance(source, MemoryOperand):
        return source
    if decisions.graph.target is not None and purposes:
        return Rejection.TARGET_HAZARD  # nothing is written before the indices have been checked
    base = source.view
    strides = tuple(0 if a < 0 else base.strides[a] for a in source_axes)
    view = view_through(StridedView(shape, strides, base.offset), path)
    if not isinstance(view, StridedView):
        return view
    terms = _find_index_terms(decisions, expr, path, draft)
    if not isinstance(terms, list):
        return terms
    access = Access(source.slot, source.dtype, view.strides, view.offset, is_data_dependent=True)
    access.starts_at_offset = access.starts_at_offset and not decisions.graph.max_buffers
    draft.group.accesses.append(access)
    axes = tuple((base.strides[a], base.shape[a]) for a in index_axes)
    gathered = GatherAxes(i, axes, purposes or ())
    casts = (int64,) * len(terms)
    return Term("gather", source.dtype, op, tuple(terms), casts, access, gather_axes=gathered)


def _find_index_terms(
    decisions: Decisions, expr: Expr, path: Path, draft: NodeDraft
) -> list[Term] | Refusal:
    """Return the terms of a gather's indices, or the first refusal."""
    terms = []
    for a in expr.args[1:]:
        index = find_term(
            decisions,
            decisions.graph.index[a],
            _build_broadcast_path(a, expr.attrs[0]) + path,
            draft,
        )
        if not isinstance(index, Term):
            return index
        terms.append(index)
    return terms


def _build_join_term(
    decisions: Decisions, i: int, op: Op, path: Path, draft: NodeDraft
) -> Term | Refusal:
    """Return a join of its operands' terms, each viewed as a padded part of the whole.

    The position of a point along the axis tells which part it is in.
    """
    expr = decisions.graph.nodes[i]
    axis, view = expr.attrs, view_join(expr.spec.shape, expr.attrs, path)
    position = _add_position_access(view.shape, axis, view.remaining, draft.group)
    if position is None:
        return Prerequisite(i, Reason(ReasonKind.RESHAPED))
    stop, terms, ranges = 0, list[Term](), list[JoinRange]()
    for a in expr.args:
        j, start, stop = decisions.graph.index[a], stop, stop + a.spec.shape[axis]
        begin, end = view.find_interval(start, stop)
        if begin >= end and view.shape[axis]:
            continue
        if len(expr.args) > 1 and cost.recompute_cost(decisions, j) > cost.REPEATED_COST_MAX:
            source = _find_costly_source(decisions, j, expr.spec.size, NESTED_JOINS_MAX)
            if source not in decisions.materialised and not cost.may_exceed_memory(
                decisions, source
            ):
                return Prerequisite(source, Reason(ReasonKind.COSTLY_PART))
        operand = find_term(decisions, j, view.find_path(a.spec.shape, start, i), draft)
        if not isinstance(operand, Term):
            return operand
        terms.append(operand)
        ranges.append(JoinRange(position, begin, end))
    return Term("join", expr.spec.dtype, op, tuple(terms), ranges=tuple(ranges))


def _find_costly_source(decisions: Decisions, i: int, elements_max: int, joins_left: int) -> int:
    """Return the node to materialise: behind views, and the costliest operand of joins.

    Other parts are read from that node, too. If it has more than `elements_max` elements, the view
    is returned, so that only the elements that are read are computed. Of nested joins it is the one
    below `joins_left` others, or one whose operands are all cheap.
    """
    expr = decisions.graph.nodes[i]
    if i in decisions.materialised:
        return i
    if (view := decisions.graph.view_of(i)) is not None:
        small = decisions.graph.nodes[view[0]].spec.size <= elements_max
        return _find_costly_source(decisions, view[0], elements_max, joins_left) if small else i
    if expr.op is not None and expr.op.kind == "join" and joins_left:
        operands = [decisions.graph.index[a] for a in expr.args if type(a) is Expr]
        costs = {j: cost.recompute_cost(decisions, j) for j in operands}
        costliest = max(operands, key=costs.__getitem__)
        if costs[costliest] > cost.REPEATED_COST_MAX:
            return _find_costly_source(decisions, costliest, elements_max, joins_left - 1)
    return i


_RULES: dict[str, Callable[[Decisions, int, Op, Path, NodeDraft], Term | Refusal]] = {
    "map": _build_map_term,
    "view": _build_view_term,
    "generate": _build_generate_term,
    "reduce": _build_reduce_term,
    "gather": _build_gather_term,
    "join": _build_join_term,
}


# --- operands that have to be in memory -----------------------------------------------------------


def memory_operand(
    decisions: Decisions,
    i: int,
    draft: NodeDraft | None,
    path: Path = (),
    producers: Producers | None = None,
) -> MemoryOperand | Refusal:
    """Return a node in memory as an operand viewed through `path`, or a refusal.

    draft: the node that reads it; None for an op's own kernels. producers: nodes in whose place
    those that they cast are read.
    """
    expr = decisions.graph.nodes[i]
    if i in decisions.materialised and (draft is None or i != draft.node):
        kernel_index = decisions.kernel_of.get(i)
        if kernel_index is None:
            raise InternalError("a materialised node is used before it is computed", expr)
        if draft is not None and kernel_index >= draft.group.index:
            return Rejection.INCOMPATIBLE
        return _view_operand(decisions, i, decisions.slot_of[i], decisions.memory_layout(i), path)
    if i in decisions.graph.leaf_slot:
        base = StridedView(expr.spec.shape, expr.strides, 0)
        return _view_operand(decisions, i, decisions.graph.leaf_slot[i], base, path)
    view = decisions.graph.view_of(i)
    if view is not None:
        return memory_operand(decisions, view[0], draft, view[1] + path, producers)
    if producers is not None and i in producers.sources:
        source = memory_operand(decisions, producers.sources[i], draft, path)
        scale = producers.scales.get(i)
        if scale is None or not isinstance(source, MemoryOperand):
            return source
        wide = (("expand", expr.spec.shape), scale)
        factors = memory_operand(decisions, scale, draft, (wide, *path))
        return source._replace(scale=factors) if isinstance(factors, MemoryOperand) else factors
    return Prerequisite(i, Reason(ReasonKind.READ_IN_MEMORY))


def _view_operand(
    decisions: Decisions, i: int, slot: int, base: StridedView, path: Path
) -> MemoryOperand | Refusal:
    """Return a node in memory as an operand viewed through `path`, or the need for another."""
    view = view_through(base, path)
    if not isinstance(view, StridedView):
        return view
    return MemoryOperand(slot, view, decisions.graph.nodes[i].spec.dtype)
