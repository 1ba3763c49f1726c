"""Graph -> kernels. Decides what is stored, what is computed on the fly, and what shares a kernel.

The planner works on one evaluation's nodes, in topological order, with concrete shapes; what it
makes, a `Plan`, is cached under the graph's structure. Kernels it makes are not specialised on
sizes.

1. *Stored* nodes: what was asked for, what the user still holds, and what cannot be computed on the
   fly.
2. Each stored node joins a `Group` (one kernel): those over the same domain that need each other
   only point by point. A domain is a shape and, where reductions take part, its row axes: one point
   per row, loops along it.
3. Everything else is computed where it is used, as a `Term`: views are pushed down to the leaves,
   where they become strides. Where that fails (a reshape that the strides do not permit, a
   reduction over other rows, an expensive value repeated by broadcasting), the node in question
   becomes a stored one, with the reason: what was placed after it is placed again, as long as that
   takes no more than a bounded amount of work in all, so that planning is linear in the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from .. import layout as lay
from ..dtypes import DType, int64
from ..errors import InternalError
from ..graph.expr import Expr
from ..kernel.language import CHUNK
from ..layout import Shape, StridedView
from .cost import (
    CHEAP,
    COSTLY,
    JOINS,
    NODE_LIMIT,
    PATIENCE,
    REFUSALS,
    REPEAT_LIMIT,
    ROWS_BUSY,
    SMALL_ROWS,
    TWICE,
    UNDONE,
)
from .decisions import Draft, Group
from .domain import Domain, equal
from .emit import _emit
from .kernels_of_ops import Launches, _one_launch
from .plan import Call, Overlap, Plan, Step, Target
from .split_rows import _split
from .terms import Access, Term


@dataclass(eq=False, slots=True)
class Placed:
    """What is needed to undo the placing of a node: how much of its group was there before."""

    node: int
    group: Group | None  # None: steps of its own
    accesses: int = 0
    memo: int = 0
    size: int = 0
    seen: Iterable[int] = ()


class _Store(Exception):
    """Planning found a node that has to be stored."""

    def __init__(self, node: int, why: str, order: Shape = ()) -> None:
        self.node, self.why, self.order = node, why, order


class _NoJoin(Exception):
    """A node cannot be computed by this group's kernel."""


class _Full(_NoJoin):
    """It would grow too large."""


class Planner:
    """One evaluation's graph: `nodes` in topological order.

    `leaf_slot`: position -> slot, for leaves with memory.
    """

    def __init__(
        self,
        nodes: Sequence[Expr],
        index: dict[Expr, int],
        leaf_slot: dict[int, int],
        roots: Sequence[int],
        held: Sequence[int],
        concurrency: int,
        routines: frozenset[Any],
        target: Target | None = None,
    ) -> None:
        self.nodes, self.index, self.leaf_slot = nodes, index, leaf_slot
        self.concurrency, self.routines, self.target = concurrency, routines, target
        self.roots = tuple(roots)
        self.why = dict.fromkeys(held, "its tensor is still held") | dict.fromkeys(
            roots, "asked for"
        )
        self.kept = frozenset(self.why)
        self.uses = [0] * len(nodes)
        for e in nodes:
            for a in e.args if e.op is not None else (e.storage.pending,):
                if type(a) is Expr:
                    self.uses[index[a]] += 1
        for i, e in enumerate(nodes):
            if e.op is not None and e.op.kind in ("rows", "gather"):
                self._seed(i)
        self.scalar_at: dict[int, int] = {}
        count = 0
        for i, e in enumerate(nodes):
            self.scalar_at[i] = count
            count += sum(type(a) is not Expr for a in e.args)
        self._cost: dict[int, int] = {}
        # Stored nodes whose memory is not row-major: their axes, outermost first.
        self.order: dict[int, Shape] = {}
        self.crooked: set[Domain] = set()  # whose rows are not worth sharing a kernel
        self.reductions = self._first_reductions()
        self.groups: dict[Domain, list[Group]] = {}
        self.steps: list[Any] = []  # groups, and steps that are kernels of their own
        self.home: dict[int, int] = {}  # stored node -> index of its step
        self.slot_of: dict[int, int] = {}
        self.slots = len(leaf_slot) + (target is not None)
        self.given: dict[int, int] = {}  # op that updates -> the operand whose memory it takes over
        self.placed: list[Placed] = []
        self.inline: dict[int, list[Group]] = {}  # node -> the kernels that have a term for it
        self.drafts: dict[int, Draft] = {}  # of kernels that wait for others to be stored
        self.tries: dict[int, int] = {}  # how often a node had to wait for another one

    def _seed(self, i: int) -> None:
        """What is known from the start: kernels of their own, and what is read at computed places
        or by such a kernel, are stored.
        """
        e = self.nodes[i]
        read, why = e.args[:1], "it is read at computed places or by a kernel of its own"
        if e.op is not None and e.op.kind == "rows":
            self.why.setdefault(i, "it is a kernel of its own")
            read, why = e.args, "a kernel of its own reads it"
        for a in read:
            while type(a) is Expr and (a.op is None or a.op.kind == "view"):
                a = a.args[0] if a.op is not None else a.storage.pending
            if type(a) is Expr:
                self.why.setdefault(self.index[a], why)

    def _first_reductions(self) -> list[int | None]:
        """For each node a reduction that it needs, looking through what can be computed on the
        fly.
        """
        found: list[int | None] = []
        for i, e in enumerate(self.nodes):
            operands: Sequence[Any] = ()
            if e.op is None:
                operands = (e.storage.pending,)
            elif e.op.kind in ("map", "view"):
                operands = e.args
            known = (found[self.index[a]] for a in operands if type(a) is Expr)
            reduces = e.op is not None and e.op.kind == "reduce"
            found.append(i if reduces else next((r for r in known if r is not None), None))
        return found

    def plan(self) -> Plan:
        """The kernels, in order."""
        todo = sorted(self.why)
        for i in todo:
            self._register(i)
        undone = UNDONE * len(self.nodes)
        while todo:
            i = heappop(todo)
            try:
                self._place(i)
            except _Store as e:
                self._store(e)
                self._wait(i, e.node)
                heappush(todo, i)
                heappush(todo, e.node)
                anew = bool(self.inline.get(e.node))  # else what was placed would be placed again
                while anew and undone and self.placed and self.placed[-1].node > e.node:
                    heappush(todo, self._undo(self.placed.pop()))
                    undone -= 1
        return self._finished()

    def _register(self, i: int) -> None:
        """Gives a stored node its slot."""
        source = self._source(i)
        if self.target is not None and i == self.roots[0]:
            self.slot_of[i] = self.target.slot
        elif source is not None:
            self.given[i], self.slot_of[i] = source, self.slot_of[source]
        else:
            self.slot_of[i], self.slots = self.slots, self.slots + 1

    def _store(self, found: _Store) -> None:
        """A node that has to be stored, as placing another one has shown."""
        if found.node in self.why:
            raise InternalError(f"fusion asks twice to store node {found.node}", found.why)
        self.why[found.node] = found.why
        if found.order:
            self.order[found.node] = found.order
        self._register(found.node)

    def _wait(self, i: int, other: int) -> None:
        """Node `i` is placed again when `other` has been stored. What computes that on the fly
        somewhere begins anew.
        """
        self.tries[i] = self.tries.get(i, 0) + 1
        for k in [k for k, draft in self.drafts.items() if other in draft.seen]:
            del self.drafts[k]

    def _undo(self, done: Placed) -> int:
        """Takes the node that was placed last out again."""
        group = done.group
        del self.home[done.node]
        for i in done.seen:
            self.inline[i].pop()
        if group is None:
            self.steps.pop()
            return done.node
        group.outputs.pop()
        self._shrink(group, done.accesses, done.memo)
        group.size = done.size
        if not group.outputs:
            self.steps.pop()
            if group in self.groups[group.domain]:
                self.groups[group.domain].remove(group)
        return done.node

    def _shrink(self, group: Group, accesses: int, memo: int) -> None:
        del group.accesses[accesses:]
        while len(group.memo) > memo:
            group.memo.popitem()

    def _finished(self) -> Plan:
        steps: list[Step | Call] = []
        for made in self.steps:
            steps += _emit(self, made) if isinstance(made, Group) else made
        # What nobody holds is dropped after its last use: its nodes are gone when this is done.
        stored = tuple((i, s) for i, s in self.slot_of.items() if i in self.kept)
        _drop(steps, {s for _, s in stored}, len(self.leaf_slot))
        given = len(self.leaf_slot) + (self.target is not None)
        notes = [self._note(i) for i in sorted(self.why)]
        blank = [None, 0] * (self.slots - given)
        return Plan(steps, self.slots, stored, notes, [None] * self.slots, blank)

    def _source(self, i: int) -> int | None:
        """The operand that an op updates in its memory: pending, contiguous, and nobody else's."""
        e = self.nodes[i]
        if e.op is None or not e.op.updates or any(name == e.op.name for name, _ in self.routines):
            return None
        source = e.args[0]
        if source.op is None or source.op.kind == "view":
            return None
        j = self.index[source]
        if self.uses[j] > 1 or j in self.kept or j in self.order:
            return None
        return j

    def _note(self, i: int) -> str:
        op = self.nodes[i].op
        return f"{op.name if op else 'leaf'} {self.nodes[i].spec}: stored, since {self.why[i]}"

    # --- placing

    def _place(self, i: int) -> None:
        """Puts a stored node into a kernel. Raises: _Store for another that has to be first."""
        e = self.nodes[i]
        if e.op is not None and e.op.kind == "rows":
            self._append(i, self._rows(i))
            return
        domain = self._domain(i)
        if e.op is not None and e.op.kind == "reduce" and self._splits(domain):
            draft = Draft(Group(len(self.steps), domain, e.spec.device), i, cut=True)
            self._append(i, _split(self, draft), draft)
            return
        if self.tries.get(i, 0) < PATIENCE:
            for group in self.groups.get(domain, ())[: -JOINS - 1 : -1]:
                if self._last(group, i) and self._join(group, i):
                    return
        self._begin(i, domain)

    def _last(self, group: Group, i: int) -> bool:
        """What is written into existing memory is written last: earlier steps may read the old
        contents.
        """
        return self.target is None or i != self.roots[0] or group.index == len(self.steps) - 1

    def _append(self, i: int, steps: list[Step | Call], draft: Draft | None = None) -> None:
        self.home[i] = len(self.steps)
        self.steps.append(steps)
        self._note_placed(Placed(i, None), draft)

    def _note_placed(self, done: Placed, draft: Draft | None) -> None:
        if draft is not None:
            done.seen = draft.seen
            for i in draft.seen:
                self.inline.setdefault(i, []).append(draft.group)
        self.placed.append(done)

    def _begin(self, i: int, domain: Domain) -> None:
        """A kernel of its own for a node, which others may join."""
        draft = self._draft(i, domain)
        term, out = self._computed(draft)
        group = draft.group
        if _is_crooked(group):
            self.crooked.add(domain)
            e = self.nodes[i]
            if e.op is None or e.op.kind != "reduce":
                self._place(i)  # the reductions get kernels to themselves
                return
            self.straighten(group)
            group.crooked = True
        self.drafts.pop(i, None)
        self.groups.setdefault(domain, []).append(group)
        self.steps.append(group)
        self._output(draft, term, out, Placed(i, group))

    def _draft(self, i: int, domain: Domain) -> Draft:
        """A new group for a node, or what has been built of it before another node had to be
        stored first.
        """
        draft = self.drafts.get(i)
        if draft is None or draft.group.domain != domain:
            draft = Draft(Group(len(self.steps), domain, self.nodes[i].spec.device), i)
            self.drafts[i] = draft
        draft.group.index = len(self.steps)
        return draft

    def _join(self, group: Group, i: int) -> bool:
        draft = Draft(group, i)
        before = Placed(i, group, len(group.accesses), len(group.memo), group.size)
        try:
            term, out = self._computed(draft)
            if group.size + draft.size > NODE_LIMIT:
                raise _Full
            if not group.crooked and _is_crooked(group):
                raise _NoJoin
        except (_NoJoin, _Store) as e:
            self._shrink(group, before.accesses, before.memo)
            if isinstance(e, _Store):
                raise
            self._refused(group, e)
            return False
        self._output(draft, term, out, before)
        return True

    def _refused(self, group: Group, why: _NoJoin) -> None:
        group.refusals += isinstance(why, _Full)
        if group.refusals == REFUSALS:
            self.groups[group.domain].remove(group)

    def _computed(self, draft: Draft) -> tuple[Term, Access]:
        """The term of a node in a group, and the access that stores it there."""
        i, group = draft.node, draft.group
        path = group.domain.path(self.nodes[i].spec.shape)
        if path is None:
            raise _NoJoin
        term = self.term(i, path, draft)
        out = self._out(i, path, draft)
        group.accesses.append(out)
        return term, out

    def _output(self, draft: Draft, term: Term, out: Access, before: Placed) -> None:
        group = draft.group
        group.size += draft.size
        group.outputs.append((draft.node, term, out))
        self.home[draft.node] = group.index
        self._note_placed(before, draft)

    def _out(self, i: int, path: Any, draft: Draft) -> Access:
        e = self.nodes[i]
        base = self._base(i)
        if self.target is not None and i == self.roots[0]:
            base = StridedView(e.spec.shape, self.target.strides, 0)
            self._check_overlap(path, base, draft.group)
        seen = self._through(i, base, path)
        return Access(self.slot_of[i], e.spec.dtype, seen.strides, seen.offset)

    def _check_overlap(self, path: Any, base: StridedView, group: Group) -> None:
        assert self.target is not None
        seen = self._through(self.roots[0], base, path)
        for a in group.accesses:
            if a.slot in self.target.overlaps:
                same = a.slot in self.target.same and a.strides == seen.strides and a.offset == 0
                if not same or group.domain.axes or a.computed:
                    raise Overlap

    def _domain(self, i: int) -> Domain:
        """The domain in which node `i` is best computed."""
        e = self.nodes[i]
        plain = Domain(e.spec.shape, ())
        r = self.reductions[i]
        if r is None:
            return plain
        source = self.nodes[r].args[0].spec.shape
        rows = Domain(source, self.nodes[r].attrs[0])
        if r == i:
            return rows
        if rows.path(e.spec.shape) is None or self._splits(rows) or rows in self.crooked:
            return plain
        return rows

    def _splits(self, domain: Domain) -> bool:
        """Whether rows are so few and long that they are better cut into chunks."""
        n, rows = math.prod(domain.row), math.prod(domain.outer)
        return n > CHUNK and rows < self.concurrency * ROWS_BUSY and n * rows > SMALL_ROWS

    def straighten(self, group: Group) -> None:
        """Called where a row is not walked by one stride: what is reduced is to be stored in row
        order. What is stored anyhow stays as it is; its rows are walked by division.
        """
        for key in group.memo:
            if key[1] == "reduction":
                source = self.index[self.nodes[key[0]].args[0]]
                if source not in self.why:
                    raise _Store(
                        source,
                        "it is reduced over axes that no single stride walks",
                        group.domain.order,
                    )

    def _base(self, i: int) -> StridedView:
        """How a stored node lies in its memory."""
        shape = self.nodes[i].spec.shape
        order = self.order.get(i)
        if order is None:
            return lay.contiguous(shape)
        strides = dict(
            zip(order, lay.contiguous_strides(tuple(shape[d] for d in order)), strict=True)
        )
        return StridedView(shape, tuple(strides[d] for d in range(len(shape))), 0)

    # --- terms

    def _through(self, i: int, base: StridedView, path: Any) -> StridedView:
        """`base`, the layout of node `i`, as seen through `path`; where strides do not permit it, a
        node is stored.
        """
        for m, source in path:
            after = lay.move(base, m)
            if after is None:
                node = i if source < 0 else source
                if node in self.why:
                    node = i
                raise _Store(node, "it is reshaped in a way that its strides do not permit")
            base = after
        return base

    def term(self, i: int, path: Any, draft: Draft) -> Term:
        """The value of node `i` seen through `path` (innermost move first)."""
        key = (i, path)
        found = draft.group.memo.get(key)
        if found is None:
            found = draft.group.memo[key] = self._term(i, path, draft)
            draft.seen.add(i)
        return found

    def _term(self, i: int, path: Any, draft: Draft) -> Term:
        e, group = self.nodes[i], draft.group
        if i in self.why and i != draft.node:
            home = self.home.get(i)
            if home is None or home > group.index:
                raise _NoJoin
            if home < group.index:
                seen = self._through(i, self._base(i), path)
                return self._load(self.slot_of[i], e.spec.dtype, seen, group)
            return self._same_point(i, path, group)
        if e.op is None:
            return self._leaf(i, path, draft)
        size = 1 + e.op.cost // COSTLY
        draft.size += size
        if group.size + draft.size > NODE_LIMIT and i != draft.node:
            draft.size -= size
            if group.outputs:
                raise _Full
            raise _Store(i, "the kernel would grow too large")
        if e.op.cost >= TWICE and i != draft.node and self._is_elsewhere(i, group):
            draft.size -= size
            raise _Store(i, "it is costly, and two kernels need it")
        try:
            return getattr(self, f"_term_{e.op.kind}")(i, e, path, draft)  # type: ignore[no-any-return]
        except _Store:
            draft.size -= size
            raise

    def _is_elsewhere(self, i: int, group: Group) -> bool:
        """Whether another kernel computes node `i` on the fly."""
        return any(other is not group for other in self.inline.get(i, ()))

    def _same_point(self, i: int, path: Any, group: Group) -> Term:
        """A node of this very kernel can be used only where it is computed: at the same point."""
        shape = self.nodes[i].spec.shape
        base = group.domain.path(shape)
        if base is None:
            raise _NoJoin
        try:
            seen = self._through(i, lay.contiguous(shape), path)
        except _Store:
            raise _NoJoin from None
        if not equal(seen, self._through(i, lay.contiguous(shape), base)):
            raise _NoJoin
        return group.memo[i, base]

    def _load(self, slot: int, dtype: DType, seen: StridedView, group: Group) -> Term:
        access = Access(slot, dtype, seen.strides, seen.offset)
        group.accesses.append(access)
        return Term("load", dtype, access=access)

    def _leaf(self, i: int, path: Any, draft: Draft) -> Term:
        e = self.nodes[i]
        if e.storage.pending is not None:
            source = self.index[e.storage.pending]
            return self.term(source, tuple((m, source) for m in e.moves) + path, draft)
        seen = self._through(i, StridedView(e.spec.shape, e.strides, 0), path)
        return self._load(self.leaf_slot[i], e.spec.dtype, seen, draft.group)

    def _operands(
        self, i: int, e: Expr, path: Any, draft: Draft
    ) -> tuple[tuple[Term, ...], tuple[DType, ...]]:
        assert e.op is not None
        kinds = [a.spec.dtype if type(a) is Expr else type(a) for a in e.args]
        casts, _ = e.op.dtypes(e.op.name, kinds, e.attrs)
        terms, scalar = [], self.scalar_at[i]
        for a, d in zip(e.args, casts, strict=True):
            if type(a) is not Expr:
                terms.append(Term("scalar", d, scalar=scalar))
                scalar += 1
            else:
                lead = () if a.spec.shape == e.spec.shape else ((("expand", e.spec.shape), -1),)
                terms.append(self.term(self.index[a], lead + path, draft))
        return tuple(terms), casts

    def _term_map(self, i: int, e: Expr, path: Any, draft: Draft) -> Term:
        if i != draft.node and self._repeats(i, path, draft.group) and self.cost(i) > CHEAP:
            raise _Store(i, "it is costly and repeated by broadcasting")
        terms, casts = self._operands(i, e, path, draft)
        return Term("map", e.spec.dtype, e.op, terms, casts)

    def _repeats(self, i: int, path: Any, group: Group) -> bool:
        if not any(m[0] == "expand" for m, _ in path):
            return False
        try:
            seen = self._through(i, lay.contiguous(self.nodes[i].spec.shape), path)
        except _Store:
            return False
        # along the rows of this kernel a repeated value is computed once per row
        rows = len(group.domain.axes)
        outer = list(zip(seen.shape, seen.strides, strict=True))[: len(seen.shape) - rows]
        return math.prod(n for n, s in outer if s == 0) >= REPEAT_LIMIT

    def cost(self, i: int) -> int:
        """About how many instructions it takes to compute node `i` on the fly."""
        if i not in self._cost:
            e = self.nodes[i]
            if e.op is None and e.storage.pending is not None:
                self._cost[i] = self.cost(self.index[e.storage.pending])
            elif e.op is None or i in self.why or e.op.kind in ("reduce", "rows"):
                self._cost[i] = 0
            else:
                below = sum(self.cost(self.index[a]) for a in e.args if type(a) is Expr)
                self._cost[i] = min(e.op.cost + below, 10_000)
        return self._cost[i]

    def _term_view(self, i: int, e: Expr, path: Any, draft: Draft) -> Term:
        source = self.index[e.args[0]]
        return self.term(source, ((e.attrs, source), *path), draft)

    def _term_generate(self, i: int, e: Expr, path: Any, draft: Draft) -> Term:
        assert e.op is not None
        seen = self._through(i, lay.contiguous(e.spec.shape), path)
        access = Access(-1, int64, seen.strides, seen.offset)
        draft.group.accesses.append(access)
        terms, casts = self._operands(i, e, path, draft)
        return Term("generate", e.spec.dtype, e.op, terms, casts, access)

    def _term_reduce(self, i: int, e: Expr, path: Any, draft: Draft) -> Term:
        assert e.op is not None
        domain, memo = draft.group.domain, draft.group.memo
        source = self.index[e.args[0]]
        fits = Domain(e.args[0].spec.shape, e.attrs[0]) == domain
        if fits:
            seen = self._through(i, lay.contiguous(e.spec.shape), path)
            base = domain.path(e.spec.shape)
            fits = base is not None and equal(
                seen, self._through(i, lay.contiguous(e.spec.shape), base)
            )
        if not fits:
            raise _Store(i, "a reduction over other rows cannot be part of its reader's kernel")
        if draft.cut and i != draft.node:
            raise _Store(i, "it reduces rows that its reader walks in chunks")
        key = (i, "reduction")
        if key not in memo:
            casts, _ = e.op.dtypes(e.op.name, [e.args[0].spec.dtype], e.attrs[1])
            inner = domain.path(e.args[0].spec.shape)
            assert inner is not None
            reduced = self.term(source, inner, draft)
            memo[key] = Term("reduce", e.spec.dtype, e.op, (reduced,), casts)
        return memo[key]

    def _term_gather(self, i: int, e: Expr, path: Any, draft: Draft) -> Term:
        shape, source_axes, index_axes, asked = e.attrs
        if draft.group.domain.axes and asked:
            raise _Store(i, "its indices are checked before a reduction reads it")
        slot, base, dtype = self._resident(self.index[e.args[0]], draft)
        if self.target is not None and asked:
            raise Overlap  # nothing is written before the indices have been checked
        strides = tuple(0 if d < 0 else base.strides[d] for d in source_axes)
        seen = self._through(i, StridedView(shape, strides, base.offset), path)
        terms = []
        for a in e.args[1:]:
            lead = () if a.spec.shape == shape else ((("expand", shape), -1),)
            terms.append(self.term(self.index[a], lead + path, draft))
        access = Access(slot, dtype, seen.strides, seen.offset, computed=True)
        draft.group.accesses.append(access)
        extra = tuple((base.strides[d], base.shape[d]) for d in index_axes)
        casts = (int64,) * len(terms)
        return Term("gather", dtype, e.op, tuple(terms), casts, access, extra=(extra, i, asked))

    def _term_rows(self, i: int, e: Expr, path: Any, draft: Draft) -> Term:
        assert e.op is not None
        raise _Store(i, f"{e.op.name} is a kernel of its own")

    # --- operands that have to be in memory

    def _resident(
        self, i: int, draft: Draft | None, path: Any = ()
    ) -> tuple[int, StridedView, DType]:
        """(slot, layout, dtype) of a node that is in memory, seen through `path`; else it is to be
        stored. `draft`: what reads it, None for a kernel of its own.
        """
        e = self.nodes[i]
        if i in self.why and (draft is None or i != draft.node):
            home = self.home.get(i)
            if home is None:
                raise InternalError("a stored node is used before it is computed", e)
            if draft is not None and home >= draft.group.index:
                raise _NoJoin
            return self.slot_of[i], self._through(i, self._base(i), path), e.spec.dtype
        if e.op is None and i in self.leaf_slot:
            seen = self._through(i, StridedView(e.spec.shape, e.strides, 0), path)
            return self.leaf_slot[i], seen, e.spec.dtype
        if e.op is None:
            source = self.index[e.storage.pending]
            return self._resident(source, draft, tuple((m, source) for m in e.moves) + path)
        if e.op.kind == "view":
            source = self.index[e.args[0]]
            return self._resident(source, draft, ((e.attrs, source), *path))
        raise _Store(i, "it is read at computed places or by a kernel of its own")

    def _rows(self, i: int) -> list[Step | Call]:
        e = self.nodes[i]
        assert e.op is not None
        inputs = [self._resident(self.index[a], None) for a in e.args if type(a) is Expr]
        kinds = [a.spec.dtype if type(a) is Expr else type(a) for a in e.args]
        casts, _ = e.op.dtypes(e.op.name, kinds, e.attrs)
        fresh = self.fresh(i)
        base = lay.contiguous(e.spec.shape)
        read = inputs
        if self.target is not None and i == self.roots[0]:
            in_place = e.op.updates and inputs[0][0] in self.target.same
            read = inputs[1:] if in_place else inputs
            if any(slot in self.target.overlaps for slot, _, _ in read):
                raise Overlap
            base = StridedView(e.spec.shape, self.target.strides, 0)
        out = (self.slot_of[i], base, e.spec.dtype)
        known = (e.op.name, casts[0]) in self.routines and e.op.vendor(e.attrs)
        if known and all(d is c for (_, _, d), c in zip(inputs, casts, strict=False)):
            moved = e.spec.size * e.spec.dtype.itemsize
            return [Call(e.op, tuple(inputs), out, fresh, self.why[i], moved)]
        several = Launches(self, i, (*inputs, out), casts, fresh)
        if e.op.updates and read is inputs and i not in self.given:
            several.copy(f"{e.op.name} starts from a copy")
        (e.op.launches or _one_launch)(several)
        return list(several.steps)

    def fresh(self, i: int) -> tuple[tuple[int, int], ...]:
        """The memory that storing node `i` needs: none where it goes into an existing target."""
        if i in self.given or (self.target is not None and i == self.roots[0]):
            return ()
        s = self.nodes[i].spec
        return ((self.slot_of[i], s.size * s.dtype.itemsize),)


def _is_crooked(group: Group) -> bool:
    """Whether no single stride walks the group's rows."""
    axes = group.domain.axes
    cut = len(group.domain.full) - len(axes)
    row = group.domain.row
    if len(axes) < 2:
        return False
    return len(lay.coalesce(row, [a.strides[cut:] for a in group.accesses])[0]) > 1


def _drop(steps: Sequence[Step | Call], stored: set[int], leaves: int) -> None:
    """Notes on each step which temporary slots nothing later needs."""
    seen: set[int] = set()
    for step in reversed(steps):
        used = (
            {s for s, *_ in step.inputs} if isinstance(step, Call) else {s for s, _ in step.buffers}
        )
        step.drops = tuple(s for s in used - seen if s >= leaves and s not in stored)
        seen |= used
