"""Terms of nodes: what a kernel computes at a point of its domain, with views pushed to the leaves.

A function here returns the term of a node, or a `Refusal`: another node has to be materialised
first, or this kernel cannot compute it. A `Draft` describes the node that is being placed, and the
kernel.
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
from .decisions import Decisions
from .domain import Path, apply_path, same_elements
from .groups import Access, GatherAxes, Group, Part, Term
from .plan import Operand
from .reasons import Kind, Reason

REDUCED: Path = ((("reduced",), -1),)  # key in `Group.memo` of a reduction before any view


class Needs(NamedTuple):
    """A refusal until another node is materialised, with its axes in this order."""

    node: int
    reason: Reason
    order: Shape = ()


class No(Enum):
    """A refusal that no materialisation removes."""

    HERE = auto()  # not by this kernel: an operand is written later, or at other points
    ROOM = auto()  # this kernel would grow too large
    TARGET = auto()  # an operand would be overwritten first


Refusal: TypeAlias = Needs | No


class Draft:
    """A node that is being added to a kernel, with the terms that it has needed so far."""

    __slots__ = ("group", "in_chunks", "node", "nodes", "size")

    def __init__(self, group: Group, node: int, in_chunks: bool = False) -> None:
        self.group, self.node, self.in_chunks = group, node, in_chunks  # its rows cut into chunks?
        self.size = 0
        self.nodes: set[int] = set()  # nodes that have a term


def view_through(base: StridedView, path: Path) -> StridedView | Needs:
    """Return the layout `base` of a node as viewed through `path`.

    If strides do not permit that, return what has to be materialised.
    """
    view = apply_path(base, path)
    if isinstance(view, StridedView):
        return view
    assert view >= 0  # moves of a domain's own add axes of size 1, which all strides permit
    return Needs(view, Reason(Kind.RESHAPED))


def find_term(decisions: Decisions, i: int, path: Path, draft: Draft) -> Term | Refusal:
    """Return the term of node `i`, viewed through `path`; build it if it is new."""
    key = (i, path)
    cached = draft.group.memo.get(key)
    if cached is not None:
        return cached
    term = build_term(decisions, i, path, draft)
    if isinstance(term, Term):
        draft.group.memo[key] = term
        draft.nodes.add(i)
    return term


def build_term(decisions: Decisions, i: int, path: Path, draft: Draft) -> Term | Refusal:
    """Build the term of a node, viewed through `path`, that the kernel does not have yet."""
    expr = decisions.graph.nodes[i]
    if i in decisions.materialised and i != draft.node:
        return _load_materialised(decisions, i, path, draft.group)
    op = expr.op
    if op is None:
        return _leaf(decisions, i, path, draft)
    size = 1 + op.cost // cost.COSTLY
    draft.size += size
    term: Term | Refusal | None = None
    if i != draft.node:
        term = _check_limits(decisions, i, op, draft)
    if term is None:
        term = _RULES[op.kind](decisions, i, op, path, draft)
    if not isinstance(term, Term):
        draft.size -= size
    return term


def _check_limits(decisions: Decisions, i: int, op: Op, draft: Draft) -> Refusal | None:
    """Return a refusal if the kernel would grow too large, or would repeat a costly node."""
    group = draft.group
    if group.size + draft.size > cost.NODE_LIMIT:
        return No.ROOM if group.outputs else Needs(i, Reason(Kind.TOO_LARGE))
    if op.cost >= cost.TWICE and any(other is not group for other in decisions.inlined.get(i, ())):
        return Needs(i, Reason(Kind.COSTLY_TWICE))
    return None


def _load_materialised(decisions: Decisions, i: int, path: Path, group: Group) -> Term | Refusal:
    """Return the term of a materialised node: a load, if another kernel has written it."""
    home = decisions.home.get(i)
    if home is None or home > group.index:
        return No.HERE
    if home == group.index:
        return _reuse_term(decisions, i, path, group)
    view = view_through(decisions.base(i), path)
    if not isinstance(view, StridedView):
        return view
    return _load(decisions, i, decisions.slot_of[i], view, path, group)


def _reuse_term(decisions: Decisions, i: int, path: Path, group: Group) -> Term | Refusal:
    """Return the term of a node of this kernel, if it is viewed at the point that computes it."""
    shape = decisions.graph.nodes[i].spec.shape
    own = group.domain.path(shape)
    if own is None or not _visits_same_points(shape, path, own):
        return No.HERE
    return group.memo[i, own]


def _visits_same_points(shape: Shape, path: Path, own: Path) -> bool:
    """Return True if both paths view a value at the same points."""
    whole = lay.contiguous(shape)
    view, own_view = apply_path(whole, path), apply_path(whole, own)
    if isinstance(view, StridedView) and isinstance(own_view, StridedView):
        return same_elements(view, own_view)
    return False


def _load(
    decisions: Decisions, i: int, slot: int, view: StridedView, path: Path, group: Group
) -> Term:
    """Return a load of a node in memory, and add its access to the kernel."""
    spec = decisions.graph.nodes[i].spec
    ranges, most = _find_padding(spec.shape, path, group)
    access = Access(slot, spec.dtype, view.strides, view.offset, most=most)
    access.begins = access.begins and not decisions.graph.max_buffers
    group.accesses.append(access)
    return Term("load", spec.dtype, access=access, parts=ranges)


def _find_padding(shape: Shape, path: Path, group: Group) -> tuple[tuple[Part, ...], int]:
    """Return the ranges where a padded view has elements, and their number at most.

    There are no ranges if the path does not pad the node.
    """
    ranges, most = list[Part](), lay.LIMIT
    for k, (m, _) in enumerate(path):
        if m[0] == "pad":
            _, axis, start, size = m
            most = min(most, math.prod(shape))
            at = _position_access(lay.move_shape(shape, m), axis, path[k + 1 :], group)
            stop = start + shape[axis]
            if at is not None and (start, stop) != (0, size):
                ranges.append(Part(at, start, None if stop == size else stop))
        shape = lay.move_shape(shape, m)
    return tuple(ranges), most


def _position_access(shape: Shape, axis: int, path: Path, group: Group) -> Access | None:
    """Return the position along an axis of this shape, viewed through `path`, as an access.

    Return None if strides do not permit it.
    """
    along = tuple(int(d == axis) for d in range(len(shape)))
    view = apply_path(StridedView(shape, along, 0), path)
    if not isinstance(view, StridedView):
        return None
    at = Access(-1, int64, view.strides, view.offset)
    group.accesses.append(at)
    return at


def _leaf(decisions: Decisions, i: int, path: Path, draft: Draft) -> Term | Refusal:
    """Return the term of a leaf, or of the node that it is a view of."""
    expr = decisions.graph.nodes[i]
    source_view = decisions.graph.view_of(i)
    if source_view is not None:
        return find_term(decisions, source_view[0], source_view[1] + path, draft)
    view = view_through(StridedView(expr.spec.shape, expr.strides, 0), path)
    if not isinstance(view, StridedView):
        return view
    return _load(decisions, i, decisions.graph.leaf_slot[i], view, path, draft.group)


def _operands(
    decisions: Decisions, i: int, casts: tuple[DType, ...], path: Path, draft: Draft
) -> list[Term] | Refusal:
    """Return the terms of a node's operands, with Python numbers as scalar terms."""
    expr, scalar, terms = decisions.graph.nodes[i], decisions.graph.scalar_at[i], []
    for a, dtype in zip(expr.args, casts, strict=True):
        if type(a) is not Expr:
            terms.append(Term("scalar", dtype, scalar=scalar))
            scalar += 1
            continue
        operand = find_term(
            decisions, decisions.graph.index[a], _broadcast(a, expr.spec.shape) + path, draft
        )
        if not isinstance(operand, Term):
            return operand
        terms.append(operand)
    return terms


def _broadcast(a: Expr, shape: Shape) -> Path:
    """Return the path that broadcasts an operand to a shape."""
    return () if a.spec.shape == shape else ((("expand", shape), -1),)


def _map(decisions: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    expr = decisions.graph.nodes[i]
    if (
        i != draft.node
        and _repeats(expr.spec.shape, path, draft.group)
        and cost.on_the_fly(decisions, i) > cost.CHEAP
    ):
        return Needs(i, Reason(Kind.COSTLY_REPEATED))
    casts = decisions.graph.casts_of(i)
    terms = _operands(decisions, i, casts, path, draft)
    if not isinstance(terms, list):
        return terms
    return Term("map", expr.spec.dtype, op, tuple(terms), casts)


def _repeats(shape: Shape, path: Path, group: Group) -> bool:
    """Return True if broadcasting repeats a viewed value along the grid.

    Along the rows of a kernel it is computed once per row.
    """
    if not any(m[0] == "expand" for m, _ in path):
        return False
    view = apply_path(lay.contiguous(shape), path)
    if not isinstance(view, StridedView):
        return False
    outer = len(view.shape) - len(group.domain.axes)
    pairs = zip(view.shape[:outer], view.strides[:outer], strict=True)
    return math.prod(n for n, s in pairs if s == 0) >= cost.REPEAT_LIMIT


def _view(decisions: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    expr = decisions.graph.nodes[i]
    source = decisions.graph.index[expr.args[0]]
    return find_term(decisions, source, ((expr.attrs, source), *path), draft)


def _generate(decisions: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    expr = decisions.graph.nodes[i]
    view = view_through(lay.contiguous(expr.spec.shape), path)
    if not isinstance(view, StridedView):
        return view
    access = Access(-1, int64, view.strides, view.offset)
    draft.group.accesses.append(access)
    casts, first = (
        decisions.graph.casts_of(i),
        decisions.graph.scalar_at[i],
    )  # its operands are numbers
    terms = tuple(Term("scalar", c, scalar=first + k) for k, c in enumerate(casts))
    return Term("generate", expr.spec.dtype, op, terms, casts, access)


def _reduce(decisions: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    expr, domain, memo = decisions.graph.nodes[i], draft.group.domain, draft.group.memo
    if decisions.graph.rows[i] != domain:
        return Needs(i, Reason(Kind.OTHER_ROWS))
    view = view_through(lay.contiguous(expr.spec.shape), path)
    if not isinstance(view, StridedView):
        return view
    own = domain.path(expr.spec.shape)
    if own is None or not _visits_same_points(expr.spec.shape, path, own):
        return Needs(i, Reason(Kind.OTHER_ROWS))
    if draft.in_chunks and i != draft.node:
        return Needs(i, Reason(Kind.READER_IN_CHUNKS))
    if (i, REDUCED) not in memo:
        inner = domain.path(domain.full)
        assert inner is not None
        reduced = find_term(decisions, decisions.graph.index[expr.args[0]], inner, draft)
        if not isinstance(reduced, Term):
            return reduced
        casts = op.dtypes(op.name, [expr.args[0].spec.dtype], expr.attrs[1])[0]
        memo[i, REDUCED] = Term("reduce", expr.spec.dtype, op, (reduced,), casts)
    return memo[i, REDUCED]


def _gather(decisions: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    expr = decisions.graph.nodes[i]
    if any(m[0] == "pad" for m, _ in path):
        return Needs(i, Reason(Kind.GATHERED_PART))
    shape, source_axes, index_axes, asked = expr.attrs
    if draft.group.domain.axes and asked:
        return Needs(i, Reason(Kind.CHECKED))
    source = memory_operand(decisions, decisions.graph.index[expr.args[0]], draft)
    if not isinstance(source, Operand):
        return source
    if decisions.graph.target is not None and asked:
        return No.TARGET  # nothing is written before the indices have been checked
    base = source.view
    strides = tuple(0 if a < 0 else base.strides[a] for a in source_axes)
    view = view_through(StridedView(shape, strides, base.offset), path)
    if not isinstance(view, StridedView):
        return view
    terms = _indices(decisions, expr, path, draft)
    if not isinstance(terms, list):
        return terms
    access = Access(source.slot, source.dtype, view.strides, view.offset, computed=True)
    access.begins = access.begins and not decisions.graph.max_buffers
    draft.group.accesses.append(access)
    axes = tuple((base.strides[a], base.shape[a]) for a in index_axes)
    gathered = GatherAxes(i, axes, asked or ())
    casts = (int64,) * len(terms)
    return Term("gather", source.dtype, op, tuple(terms), casts, access, gathered=gathered)


def _indices(decisions: Decisions, expr: Expr, path: Path, draft: Draft) -> list[Term] | Refusal:
    """Return the terms of a gather's indices."""
    terms = []
    for a in expr.args[1:]:
        index = find_term(
            decisions, decisions.graph.index[a], _broadcast(a, expr.attrs[0]) + path, draft
        )
        if not isinstance(index, Term):
            return index
        terms.append(index)
    return terms


def _join(decisions: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    """Return a join of its operands' terms, each viewed as a padded part of the whole.

    The position of a point along the axis tells which part it is in.
    """
    expr = decisions.graph.nodes[i]
    axis, size = expr.attrs, expr.spec.shape[expr.attrs]
    at = _position_access(expr.spec.shape, axis, path, draft.group)
    if at is None:
        return Needs(i, Reason(Kind.RESHAPED))
    start, terms, ranges = 0, list[Term](), list[Part]()
    for a in expr.args:
        j, stop = decisions.graph.index[a], start + a.spec.shape[axis]
        if len(expr.args) > 1 and cost.on_the_fly(decisions, j) > cost.CHEAP:
            source = _costly_source(decisions, j, expr.spec.size)
            if source not in decisions.materialised:
                return Needs(source, Reason(Kind.COSTLY_PART))
        operand = find_term(decisions, j, ((("pad", axis, start, size), i), *path), draft)
        if not isinstance(operand, Term):
            return operand
        terms.append(operand)
        ranges.append(Part(at, start, stop))
        start = stop
    return Term("join", expr.spec.dtype, op, tuple(terms), parts=tuple(ranges))


def _costly_source(decisions: Decisions, i: int, most: int) -> int:
    """Return the node that makes a node costly: the one that it views, or its costliest operand.

    Other parts are read from that node, too. If it has more than `most` elements, only the elements
    that are read are computed.
    """
    expr = decisions.graph.nodes[i]
    if i in decisions.materialised:
        return i
    if (view := decisions.graph.view_of(i)) is not None:
        small = decisions.graph.nodes[view[0]].spec.size <= most
        return _costly_source(decisions, view[0], most) if small else i
    if expr.op is not None and expr.op.kind == "join":
        operands = [decisions.graph.index[a] for a in expr.args if type(a) is Expr]
        return _costly_source(
            decisions, max(operands, key=lambda j: cost.on_the_fly(decisions, j)), most
        )
    return i


_RULES: dict[str, Callable[[Decisions, int, Op, Path, Draft], Term | Refusal]] = {
    "map": _map,
    "view": _view,
    "generate": _generate,
    "reduce": _reduce,
    "gather": _gather,
    "join": _join,
}


# --- operands that have to be in memory -----------------------------------------------------------


def memory_operand(
    decisions: Decisions, i: int, draft: Draft | None, path: Path = ()
) -> Operand | Refusal:
    """Return a node that is in memory, viewed through `path`.

    draft: the node that reads it; None for an op's own kernels.
    """
    expr = decisions.graph.nodes[i]
    if i in decisions.materialised and (draft is None or i != draft.node):
        home = decisions.home.get(i)
        if home is None:
            raise InternalError("a materialised node is used before it is computed", expr)
        if draft is not None and home >= draft.group.index:
            return No.HERE
        return _operand_through(decisions, i, decisions.slot_of[i], decisions.base(i), path)
    if i in decisions.graph.leaf_slot:
        base = StridedView(expr.spec.shape, expr.strides, 0)
        return _operand_through(decisions, i, decisions.graph.leaf_slot[i], base, path)
    view = decisions.graph.view_of(i)
    if view is not None:
        return memory_operand(decisions, view[0], draft, view[1] + path)
    return Needs(i, Reason(Kind.READ_IN_MEMORY))


def _operand_through(
    decisions: Decisions, i: int, slot: int, base: StridedView, path: Path
) -> Operand | Refusal:
    """Return a node in memory as an operand, viewed through `path`."""
    view = view_through(base, path)
    if not isinstance(view, StridedView):
        return view
    return Operand(slot, view, decisions.graph.nodes[i].spec.dtype)
