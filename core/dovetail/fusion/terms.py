"""Nodes as terms: what a kernel computes at a point of its domain, views pushed down to the leaves.

A function here gives the term of a node, or a `Refusal`: another node has to be materialised first,
or this kernel cannot compute it. A `Draft` is what is known where it is asked: which node is on its
way into which kernel.
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
from .domain import Path, same_elements, through
from .groups import Access, Gathered, Group, Part, Term
from .plan import Operand
from .reasons import Kind, Reason

REDUCED: Path = ((("reduced",), -1),)  # for `Group.memo`: a reduction before it is seen anyhow


class Needs(NamedTuple):
    """Another node has to be materialised first, with its axes in this order."""

    node: int
    reason: Reason
    order: Shape = ()


class No(Enum):
    """Why a node cannot be computed as things are."""

    HERE = auto()  # not by this kernel: what it needs is written later, or at other points
    ROOM = auto()  # this kernel would grow too large
    TARGET = auto()  # what it reads would be overwritten first


Refusal: TypeAlias = Needs | No


class Draft:
    """A node on its way into a kernel: what computing it there has taken so far."""

    __slots__ = ("group", "in_chunks", "node", "seen", "size")

    def __init__(self, group: Group, node: int, in_chunks: bool = False) -> None:
        self.group, self.node, self.in_chunks = group, node, in_chunks  # its rows cut into chunks?
        self.size = 0
        self.seen: set[int] = set()  # the nodes that have a term


def seen_through(base: StridedView, path: Path) -> StridedView | Needs:
    """The layout `base` of a node as seen through `path`.

    Where strides do not permit that: what is to be materialised.
    """
    found = through(base, path)
    if isinstance(found, StridedView):
        return found
    assert found >= 0  # moves of a domain's own add axes of size 1, which all strides permit
    return Needs(found, Reason(Kind.RESHAPED))


def term(d: Decisions, i: int, path: Path, draft: Draft) -> Term | Refusal:
    """The value of node `i` seen through `path`."""
    key = (i, path)
    known = draft.group.memo.get(key)
    if known is not None:
        return known
    found = computed(d, i, path, draft)
    if isinstance(found, Term):
        draft.group.memo[key] = found
        draft.seen.add(i)
    return found


def computed(d: Decisions, i: int, path: Path, draft: Draft) -> Term | Refusal:
    """The term of a node that the kernel does not have yet, seen so."""
    e = d.graph.nodes[i]
    if i in d.materialised and i != draft.node:
        return _written(d, i, path, draft.group)
    op = e.op
    if op is None:
        return _leaf(d, i, path, draft)
    size = 1 + op.cost // cost.COSTLY
    draft.size += size
    found: Term | Refusal | None = None
    if i != draft.node:
        found = _refused(d, i, op, draft)
    if found is None:
        found = _RULES[op.kind](d, i, op, path, draft)
    if not isinstance(found, Term):
        draft.size -= size
    return found


def _refused(d: Decisions, i: int, op: Op, draft: Draft) -> Refusal | None:
    """Why a node is not computed on the fly here, whatever it is computed from."""
    group = draft.group
    if group.size + draft.size > cost.NODE_LIMIT:
        return No.ROOM if group.outputs else Needs(i, Reason(Kind.TOO_LARGE))
    if op.cost >= cost.TWICE and any(other is not group for other in d.inlined.get(i, ())):
        return Needs(i, Reason(Kind.COSTLY_TWICE))
    return None


def _written(d: Decisions, i: int, path: Path, group: Group) -> Term | Refusal:
    """The term of a node that is materialised: loaded, where another kernel has written it."""
    home = d.home.get(i)
    if home is None or home > group.index:
        return No.HERE
    if home == group.index:
        return _same_point(d, i, path, group)
    seen = seen_through(d.base(i), path)
    if not isinstance(seen, StridedView):
        return seen
    return _load(d, i, d.slot_of[i], seen, path, group)


def _same_point(d: Decisions, i: int, path: Path, group: Group) -> Term | Refusal:
    """A node of this very kernel can be used only where it is computed: at the same point."""
    shape = d.graph.nodes[i].spec.shape
    own = group.domain.path(shape)
    return group.memo[i, own] if own is not None and _is_same(shape, path, own) else No.HERE


def _is_same(shape: Shape, path: Path, own: Path) -> bool:
    """Whether a value is seen through both paths at the same points."""
    whole = lay.contiguous(shape)
    seen, there = through(whole, path), through(whole, own)
    if isinstance(seen, StridedView) and isinstance(there, StridedView):
        return same_elements(seen, there)
    return False


def _load(d: Decisions, i: int, slot: int, seen: StridedView, path: Path, group: Group) -> Term:
    spec = d.graph.nodes[i].spec
    parts, most = _padded(spec.shape, path, group)
    access = Access(slot, spec.dtype, seen.strides, seen.offset, most=most)
    access.begins = access.begins and not d.graph.max_buffers
    group.accesses.append(access)
    return Term("load", spec.dtype, access=access, parts=parts)


def _padded(shape: Shape, path: Path, group: Group) -> tuple[tuple[Part, ...], int]:
    """Where a node of this shape, seen through `path`, is: everywhere, unless that pads it.

    And how many of its elements are seen there at most.
    """
    parts, most = list[Part](), lay.LIMIT
    for k, (m, _) in enumerate(path):
        if m[0] == "pad":
            _, axis, start, size = m
            most = min(most, math.prod(shape))
            at = _place(lay.move_shape(shape, m), axis, path[k + 1 :], group)
            stop = start + shape[axis]
            if at is not None and (start, stop) != (0, size):
                parts.append(Part(at, start, None if stop == size else stop))
        shape = lay.move_shape(shape, m)
    return tuple(parts), most


def _place(shape: Shape, axis: int, path: Path, group: Group) -> Access | None:
    """The position along an axis of this shape, seen through `path`.

    None where strides do not permit it.
    """
    along = tuple(int(d == axis) for d in range(len(shape)))
    seen = through(StridedView(shape, along, 0), path)
    if not isinstance(seen, StridedView):
        return None
    at = Access(-1, int64, seen.strides, seen.offset)
    group.accesses.append(at)
    return at


def _leaf(d: Decisions, i: int, path: Path, draft: Draft) -> Term | Refusal:
    e = d.graph.nodes[i]
    view = d.graph.view_of(i)
    if view is not None:
        return term(d, view[0], view[1] + path, draft)
    seen = seen_through(StridedView(e.spec.shape, e.strides, 0), path)
    if not isinstance(seen, StridedView):
        return seen
    return _load(d, i, d.graph.leaf_slot[i], seen, path, draft.group)


def _operands(
    d: Decisions, i: int, casts: tuple[DType, ...], path: Path, draft: Draft
) -> list[Term] | Refusal:
    e, scalar, terms = d.graph.nodes[i], d.graph.scalar_at[i], []
    for a, dtype in zip(e.args, casts, strict=True):
        if type(a) is not Expr:
            terms.append(Term("scalar", dtype, scalar=scalar))
            scalar += 1
            continue
        found = term(d, d.graph.index[a], _broadcast(a, e.spec.shape) + path, draft)
        if not isinstance(found, Term):
            return found
        terms.append(found)
    return terms


def _broadcast(a: Expr, shape: Shape) -> Path:
    return () if a.spec.shape == shape else ((("expand", shape), -1),)


def _map(d: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    e = d.graph.nodes[i]
    if (
        i != draft.node
        and _repeats(e.spec.shape, path, draft.group)
        and cost.on_the_fly(d, i) > cost.CHEAP
    ):
        return Needs(i, Reason(Kind.COSTLY_REPEATED))
    casts = d.graph.casts_of(i)
    terms = _operands(d, i, casts, path, draft)
    if not isinstance(terms, list):
        return terms
    return Term("map", e.spec.dtype, op, tuple(terms), casts)


def _repeats(shape: Shape, path: Path, group: Group) -> bool:
    """Whether a value seen so is repeated along the grid.

    Along the rows of a kernel it is computed once per row.
    """
    if not any(m[0] == "expand" for m, _ in path):
        return False
    seen = through(lay.contiguous(shape), path)
    if not isinstance(seen, StridedView):
        return False
    outer = len(seen.shape) - len(group.domain.axes)
    pairs = zip(seen.shape[:outer], seen.strides[:outer], strict=True)
    return math.prod(n for n, s in pairs if s == 0) >= cost.REPEAT_LIMIT


def _view(d: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    e = d.graph.nodes[i]
    source = d.graph.index[e.args[0]]
    return term(d, source, ((e.attrs, source), *path), draft)


def _generate(d: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    e = d.graph.nodes[i]
    seen = seen_through(lay.contiguous(e.spec.shape), path)
    if not isinstance(seen, StridedView):
        return seen
    access = Access(-1, int64, seen.strides, seen.offset)
    draft.group.accesses.append(access)
    casts, first = d.graph.casts_of(i), d.graph.scalar_at[i]  # its operands are numbers
    terms = tuple(Term("scalar", c, scalar=first + k) for k, c in enumerate(casts))
    return Term("generate", e.spec.dtype, op, terms, casts, access)


def _reduce(d: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    e, domain, memo = d.graph.nodes[i], draft.group.domain, draft.group.memo
    if d.graph.rows[i] != domain:
        return Needs(i, Reason(Kind.OTHER_ROWS))
    seen = seen_through(lay.contiguous(e.spec.shape), path)
    if not isinstance(seen, StridedView):
        return seen
    own = domain.path(e.spec.shape)
    if own is None or not _is_same(e.spec.shape, path, own):
        return Needs(i, Reason(Kind.OTHER_ROWS))
    if draft.in_chunks and i != draft.node:
        return Needs(i, Reason(Kind.READER_IN_CHUNKS))
    if (i, REDUCED) not in memo:
        inner = domain.path(domain.full)
        assert inner is not None
        reduced = term(d, d.graph.index[e.args[0]], inner, draft)
        if not isinstance(reduced, Term):
            return reduced
        casts = op.dtypes(op.name, [e.args[0].spec.dtype], e.attrs[1])[0]
        memo[i, REDUCED] = Term("reduce", e.spec.dtype, op, (reduced,), casts)
    return memo[i, REDUCED]


def _gather(d: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    e = d.graph.nodes[i]
    if any(m[0] == "pad" for m, _ in path):
        return Needs(i, Reason(Kind.GATHERED_PART))
    shape, source_axes, index_axes, asked = e.attrs
    if draft.group.domain.axes and asked:
        return Needs(i, Reason(Kind.CHECKED))
    source = resident(d, d.graph.index[e.args[0]], draft)
    if not isinstance(source, Operand):
        return source
    if d.graph.target is not None and asked:
        return No.TARGET  # nothing is written before the indices have been checked
    base = source.view
    strides = tuple(0 if a < 0 else base.strides[a] for a in source_axes)
    seen = seen_through(StridedView(shape, strides, base.offset), path)
    if not isinstance(seen, StridedView):
        return seen
    terms = _indices(d, e, path, draft)
    if not isinstance(terms, list):
        return terms
    access = Access(source.slot, source.dtype, seen.strides, seen.offset, computed=True)
    access.begins = access.begins and not d.graph.max_buffers
    draft.group.accesses.append(access)
    axes = tuple((base.strides[a], base.shape[a]) for a in index_axes)
    gathered = Gathered(i, axes, asked or ())
    casts = (int64,) * len(terms)
    return Term("gather", source.dtype, op, tuple(terms), casts, access, gathered=gathered)


def _indices(d: Decisions, e: Expr, path: Path, draft: Draft) -> list[Term] | Refusal:
    terms = []
    for a in e.args[1:]:
        found = term(d, d.graph.index[a], _broadcast(a, e.attrs[0]) + path, draft)
        if not isinstance(found, Term):
            return found
        terms.append(found)
    return terms


def _join(d: Decisions, i: int, op: Op, path: Path, draft: Draft) -> Term | Refusal:
    """Each operand is seen as part of the whole; which one a point is in says its place."""
    e = d.graph.nodes[i]
    axis, size = e.attrs, e.spec.shape[e.attrs]
    at = _place(e.spec.shape, axis, path, draft.group)
    if at is None:
        return Needs(i, Reason(Kind.RESHAPED))
    start, terms, parts = 0, list[Term](), list[Part]()
    for a in e.args:
        j, stop = d.graph.index[a], start + a.spec.shape[axis]
        if len(e.args) > 1 and cost.on_the_fly(d, j) > cost.CHEAP:
            source = _source(d, j, e.spec.size)
            if source not in d.materialised:
                return Needs(source, Reason(Kind.COSTLY_PART))
        found = term(d, j, ((("pad", axis, start, size), i), *path), draft)
        if not isinstance(found, Term):
            return found
        terms.append(found)
        parts.append(Part(at, start, stop))
        start = stop
    return Term("join", e.spec.dtype, op, tuple(terms), parts=tuple(parts))


def _source(d: Decisions, i: int, most: int) -> int:
    """What makes a node costly: what it is a view of, or the costliest of what it joins.

    Other parts are read from it too. Of a whole that has more than `most` elements, only what is
    read is computed.
    """
    e = d.graph.nodes[i]
    if i in d.materialised:
        return i
    if (view := d.graph.view_of(i)) is not None:
        small = d.graph.nodes[view[0]].spec.size <= most
        return _source(d, view[0], most) if small else i
    if e.op is not None and e.op.kind == "join":
        operands = [d.graph.index[a] for a in e.args if type(a) is Expr]
        return _source(d, max(operands, key=lambda j: cost.on_the_fly(d, j)), most)
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


def resident(d: Decisions, i: int, draft: Draft | None, path: Path = ()) -> Operand | Refusal:
    """A node that is in memory, seen through `path`.

    `draft`: what reads it, None for kernels of an op's own.
    """
    e = d.graph.nodes[i]
    if i in d.materialised and (draft is None or i != draft.node):
        home = d.home.get(i)
        if home is None:
            raise InternalError("a materialised node is used before it is computed", e)
        if draft is not None and home >= draft.group.index:
            return No.HERE
        return _seen_operand(d, i, d.slot_of[i], d.base(i), path)
    if i in d.graph.leaf_slot:
        base = StridedView(e.spec.shape, e.strides, 0)
        return _seen_operand(d, i, d.graph.leaf_slot[i], base, path)
    view = d.graph.view_of(i)
    if view is not None:
        return resident(d, view[0], draft, view[1] + path)
    return Needs(i, Reason(Kind.READ_IN_MEMORY))


def _seen_operand(
    d: Decisions, i: int, slot: int, base: StridedView, path: Path
) -> Operand | Refusal:
    seen = seen_through(base, path)
    if not isinstance(seen, StridedView):
        return seen
    return Operand(slot, seen, d.graph.nodes[i].spec.dtype)
