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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from .. import layout as lay
from ..backend.faults import Asked
from ..dtypes import DType, bool_, int64
from ..errors import InternalError
from ..graph.expr import Expr
from ..kernel.builder import Kernel, KernelBuilder
from ..kernel.language import (
    CHUNK,
    Buffer,
    Store,
    Value,
    cast,
    const,
    load,
    map_loop,
    quo,
    reduce_loop,
    rem,
    where,
)
from ..layout import Move, Shape, StridedView
from ..ops.arithmetic import convert
from ..ops.table import Op

REPEAT_LIMIT = 4  # a value repeated so often by broadcasting is stored if it costs over CHEAP
CHEAP = 8
NODE_LIMIT = 160  # values computed on the fly in one kernel; more are cut
COSTLY = 6  # what costs so much counts twice: compilers take 0.5 s for 20 sines, and 4 s for 60
ROWS_BUSY = 4  # rows per unit of the device's concurrency that keep it busy without splitting them
BLOCKS_BUSY = 16  # blocks of rows per unit of concurrency, where rows are cut
SMALL_ROWS = 1 << 15  # elements below which a reduction is not worth splitting
TWICE = 60  # what costs so much and is needed by two kernels is stored: 10 M normals, 70 ms, not 78
JOINS = 8  # kernels over a domain that a node may join: the latest ones
REFUSALS = 8  # after so many that would have made it too large, no more nodes may join a kernel
UNDONE = 8  # placements that may be undone, for each node of the graph, in all
PATIENCE = 8  # how often a node that could not be placed tries again to join a kernel


@dataclass(eq=False, slots=True)
class Access:
    """One way in which a kernel touches a buffer: element strides over the domain's axes.

    Slot -1 is no memory: a linear index.
    """

    slot: int
    dtype: DType
    strides: Shape
    offset: int
    computed: bool = False  # whether it also depends on indices that are data


@dataclass(eq=False, slots=True)
class Term:
    """A value computed on the fly at a point of the domain.

    `what`: load, scalar, map, generate, gather, reduce.
    """

    what: str
    dtype: DType  # what comes out
    op: Op | None = None
    args: tuple[Term, ...] = ()
    casts: tuple[DType, ...] = ()
    access: Access | None = None
    scalar: int = -1
    extra: Any = None


@dataclass(frozen=True, slots=True)
class Domain:
    """The axes of a kernel: `outer` ones are its grid, those in `axes` its rows.

    `full` is their common shape.
    """

    full: Shape
    axes: Shape

    @property
    def order(self) -> Shape:
        """All axes: outer, then row axes."""
        return tuple(d for d in range(len(self.full)) if d not in self.axes) + self.axes

    @property
    def outer(self) -> Shape:
        """Extents of the grid."""
        return tuple(n for d, n in enumerate(self.full) if d not in self.axes)

    @property
    def row(self) -> Shape:
        """Extents along a row."""
        return tuple(self.full[d] for d in self.axes)

    def path(self, shape: Shape) -> tuple[tuple[Move, int], ...] | None:
        """How a node of this shape is seen from the domain; None where it does not fit."""
        order = self.order
        moves: list[Move] = [] if order == tuple(range(len(order))) else [("permute", order)]
        keep = tuple(1 if d in self.axes else n for d, n in enumerate(self.full))
        if shape != self.full:
            if shape not in (keep, self.outer):
                return None
            moves.insert(0, ("expand", self.full))
            if shape != keep:
                moves.insert(0, ("reshape", keep))
        return tuple((m, -1) for m in moves)


@dataclass(eq=False, slots=True)
class Group:
    """The stored nodes of one kernel, each with its term and the access that stores it."""

    index: int
    domain: Domain
    device: Any
    outputs: list[tuple[int, Term, Access]] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    memo: dict[Any, Term] = field(default_factory=dict)
    size: int = 0  # values computed, as NODE_LIMIT counts them
    crooked: bool = False  # whether its rows are walked by division, no single stride doing it
    refusals: int = 0  # how many nodes would have made it too large


@dataclass(eq=False, slots=True)
class Draft:
    """A node on its way into a group: what computing it there has taken so far."""

    group: Group
    node: int
    size: int = 0
    seen: set[int] = field(default_factory=set)  # the nodes that have a term
    cut: bool = False  # whether its rows are cut into chunks


@dataclass(eq=False, slots=True)
class Placed:
    """What is needed to undo the placing of a node: how much of its group was there before."""

    node: int
    group: Group | None  # None: steps of its own
    accesses: int = 0
    memo: int = 0
    size: int = 0
    seen: Iterable[int] = ()


@dataclass(eq=False, slots=True)
class Step:
    """One launch. `buffers`: (slot, byte offset); `fresh`: (slot, nbytes) to allocate; `scalars`:
    positions.
    """

    kernel: Kernel
    buffers: tuple[tuple[int, int], ...]
    fresh: tuple[tuple[int, int], ...]
    ints: tuple[int, ...]
    scalars: tuple[int, ...]
    grid: Shape
    why: str
    nbytes: int  # read and written, counting each access once
    checks: tuple[tuple[int, int, Asked], ...] = ()  # (slot of the error cell, node, for what)
    drops: tuple[int, ...] = ()  # slots that nothing later needs
    run: Any = None  # what `run` makes of the kernel, and how it is called:
    simple: bool = False  # no static offsets, no error cells
    all_scalars: bool = False  # `scalars` are all of them, in order
    pick: Any = None  # (handles and offsets of all slots) -> the arguments


@dataclass(eq=False, slots=True)
class Call:
    """A vendor routine in place of kernels: `routine(backend, inputs, output, stream)`; (slot,
    layout, dtype) each.
    """

    op: Op
    inputs: tuple[tuple[int, StridedView, DType], ...]
    output: tuple[int, StridedView, DType]
    fresh: tuple[tuple[int, int], ...]
    why: str
    nbytes: int
    drops: tuple[int, ...] = ()
    simple = False


@dataclass(eq=False, slots=True)
class Plan:
    """Steps in order; `stored`: (position of the node, slot) for every node that stays."""

    steps: list[Any]  # of Step and Call
    slots: int
    stored: tuple[tuple[int, int], ...]
    notes: list[str]
    none: list[Any]  # a None for each slot
    blank: list[Any]  # placeholders for the slots that are not there when it starts
    recalled: bool = False  # whether `recall` has been told


class _Store(Exception):
    """Planning found a node that has to be stored."""

    def __init__(self, node: int, why: str, order: Shape = ()) -> None:
        self.node, self.why, self.order = node, why, order


class _NoJoin(Exception):
    """A node cannot be computed by this group's kernel."""


class _Full(_NoJoin):
    """It would grow too large."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the first root goes when it is to be written into existing memory."""

    strides: Shape
    slot: int
    overlaps: frozenset[int]  # leaf slots of the same storage ...
    same: frozenset[int]  # ... and those among them with the very same layout


class Overlap(Exception):
    """The target overlaps what is read, and not element by element: go through fresh memory."""


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
            if e.op is not None and e.op.kind in ("kernel", "gather"):
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
        if e.op is not None and e.op.kind == "kernel":
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
        if e.op is not None and e.op.kind == "kernel":
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
        if not _equal(seen, self._through(i, lay.contiguous(shape), base)):
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
            elif e.op is None or i in self.why or e.op.kind in ("reduce", "kernel"):
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
            fits = base is not None and _equal(
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

    def _term_kernel(self, i: int, e: Expr, path: Any, draft: Draft) -> Term:
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


def _equal(a: StridedView, b: StridedView) -> bool:
    """Whether two layouts of one shape visit the same elements; strides of size-1 axes do not
    count.
    """
    pairs = zip(a.shape, a.strides, b.strides, strict=True)
    return a.offset == b.offset and all(n == 1 or s == t for n, s, t in pairs)


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


# --- emission -------------------------------------------------------------------------------------


class Emitter:
    """Builds one kernel: parameters with their run-time values, accesses as indices, terms as
    Values.
    """

    def __init__(self, name: str) -> None:
        self.builder = KernelBuilder(name)
        self.buffers: list[tuple[int, int]] = []
        self.ints: list[int] = []
        self.scalars: list[int] = []
        self._buffer: dict[Any, Buffer] = {}
        self._scalar: dict[Any, Value] = {}
        self._done: dict[Any, Value] = {}
        self._reduced: dict[int, tuple[Value, ...]] = {}
        self._alive: list[Any] = []
        # (node, number of the index) -> where it is bad, the index, for what it is read
        self.failures: dict[tuple[int, int], tuple[Value, Value, Asked]] = {}
        self.nbytes = 0

    def integer(self, letter: str, value: int) -> Value:
        """A run-time integer parameter."""
        self.ints.append(value)
        return self.builder.int(f"{letter}{len(self.ints) - 1}")

    def buffer(self, slot: int, dtype: DType, offset: int, access: str) -> Buffer:
        """The buffer parameter for a slot at a static offset (in elements)."""
        key = (slot, offset, access, dtype)
        if key not in self._buffer:
            letter = "out" if access == "w" else "in"
            self.buffers.append((slot, offset * dtype.itemsize))
            self._buffer[key] = self.builder.buffer(
                f"{letter}{len(self.buffers) - 1}", dtype, access
            )
        return self._buffer[key]

    def scalar(self, term: Term) -> Value:
        """A run-time scalar parameter; halves are rounded from float32."""
        key = (term.scalar, term.dtype)
        if key not in self._scalar:
            self.scalars.append(term.scalar)
            wide = term.dtype.compute
            v = self.builder.scalar(f"c{len(self.scalars) - 1}", wide)
            self._scalar[key] = cast(v, term.dtype)
        return self._scalar[key]

    def grid(self, extents: Shape) -> list[Value]:
        """The grid's axes; at least one."""
        if not extents:
            return [self.builder.axis(const(1, int64))]
        params = [self.integer("n", n) for n in extents]
        return [self.builder.axis(p) for p in params]

    def place(self, accesses: Sequence[Access], strides: Sequence[Shape]) -> None:
        """Gives every access its stride parameters: 0 and 1 are static, everything else is run-
        time.
        """
        self._strides = {
            id(a): [None if s == 0 else 1 if s == 1 else self.integer("s", s) for s in ss]
            for a, ss in zip(accesses, strides, strict=True)
        }
        self._offsets = {
            id(a): self.integer("o", a.offset) for a in accesses if a.slot < 0 and a.offset
        }

    def index(self, access: Access, where_: Sequence[Value]) -> Value:
        """The linear index of an access at a point."""
        total = self._offsets.get(id(access), const(0, int64))
        for i, s in zip(where_, self._strides[id(access)], strict=False):
            if s is not None:
                total = total + i * s
        return total

    def value(self, term: Term, point: tuple[Value, ...]) -> Value:
        """The value of a term at a point: the grid's indices, then those along the row, if inside a
        row loop.
        """
        key = (id(term), tuple(map(id, point)))
        if key not in self._done:
            self._alive.append((term, point))
            self._done[key] = getattr(self, f"_{term.what}")(term, point)
        return self._done[key]

    def _load(self, term: Term, point: tuple[Value, ...]) -> Value:
        a = term.access
        assert a is not None
        return load(self.buffer(a.slot, a.dtype, a.offset, "r"), self.index(a, point))

    def _operand(self, term: Term, to: DType, point: tuple[Value, ...]) -> Value:
        if term.what == "scalar":
            return self.scalar(Term("scalar", to, scalar=term.scalar))
        return convert(self.value(term, point), to)

    def _map(self, term: Term, point: tuple[Value, ...]) -> Value:
        assert term.op is not None
        operands = [self._operand(t, d, point) for t, d in zip(term.args, term.casts, strict=True)]
        if term.op.widens:
            operands = [_widen(v) for v in operands]
        return convert(term.op.expression(*operands), term.dtype)

    def _generate(self, term: Term, point: tuple[Value, ...]) -> Value:
        assert term.op is not None and term.access is not None
        scalars = [
            _widen(self._operand(t, d, point)) for t, d in zip(term.args, term.casts, strict=True)
        ]
        return convert(term.op.expression(self.index(term.access, point), *scalars), term.dtype)

    def _reduce(self, term: Term, point: tuple[Value, ...]) -> Value:
        op = term.op
        assert op is not None
        if id(term) not in self._reduced:
            outer = point[: self.outer]
            self._reduced[id(term)] = reduce_loop(
                op.combine,
                0,
                self.row_length,
                lambda k: self.combined(term, (*outer, *self.row_point(k)), k),
            )
        return self.finished(term, self._reduced[id(term)])

    def combined(self, term: Term, point: tuple[Value, ...], k: Value) -> Sequence[Value]:
        """What a reduction combines at a point."""
        assert term.op is not None
        return term.op.before(self._operand(term.args[0], term.casts[0], point), k)

    def finished(self, term: Term, results: Sequence[Value]) -> Value:
        """What comes out of a reduction."""
        assert term.op is not None
        return convert(term.op.after(results, self.row_length), term.dtype)

    def rows(self, outer: int, extents: Shape) -> None:
        """Declares the row: its extents after coalescing (usually one)."""
        self.outer = outer
        sizes = [self.integer("m", n) for n in extents]
        length = sizes[0] if sizes else const(1, int64)
        for s in sizes[1:]:
            length = length * s
        self.row_length, self._row_sizes = length, sizes

    def row_point(self, k: Value) -> tuple[Value, ...]:
        """The indices along the row's axes at position `k`."""
        out: list[Value] = []
        for size in reversed(self._row_sizes[1:]):
            out.append(rem(k, size))
            k = quo(k, size)
        return tuple(reversed([*out, k])) if self._row_sizes else ()

    def _gather(self, term: Term, point: tuple[Value, ...]) -> Value:
        a, op = term.access, term.op
        assert a is not None and op is not None
        total, fine = self.index(a, point), None
        axes, node, asked = term.extra
        for k, (t, d) in enumerate(zip(term.args, term.casts, strict=True)):
            (stride, extent), given = axes[k], convert(self.value(t, point), d)
            i = given
            if asked:
                n = self.integer("n", extent)
                i = where(i < 0, i + n, i)
                inside = (const(0, int64) <= i) & (i < n)
                self.check(node, k, inside, given, asked[k])
                fine = inside if fine is None else fine & inside
            total = total + i * (1 if stride == 1 else self.integer("s", stride))
        return load(self.buffer(a.slot, a.dtype, a.offset, "r"), total, fine)

    def check(self, node: int, number: int, fine: Value, given: Value, asked: Asked) -> None:
        """Where not `fine`, the index `given` of a node is out of range."""
        bad, known = ~fine, self.failures.get((node, number))
        if known is not None:  # the node is computed at several points
            bad, given = known[0] | bad, where(known[0], known[1], given)
        self.failures[node, number] = bad, given, asked

    def checks(self, planner: Planner) -> tuple[tuple[int, int, Asked], ...]:
        """Adds the stores that say which index is out of range, where any is checked."""
        made: list[tuple[int, int, Asked]] = []
        for (node, _), (bad, given, asked) in self.failures.items():
            slot, planner.slots = planner.slots, planner.slots + 1
            cell = self.buffer(slot, int64, 0, "w")
            self.builder.store(cell, const(0, int64), given, bad)
            made.append((slot, node, asked))
        return tuple(made)

    def written(self, access: Access) -> Buffer:
        """The buffer that an output access writes."""
        return self.buffer(access.slot, access.dtype, access.offset, "w")

    def stores(
        self, outputs: Sequence[tuple[Term, Access]], point: tuple[Value, ...]
    ) -> list[Store]:
        """The stores at a point along the row."""
        return [
            Store(self.written(a), self.index(a, point), self.value(t, point)) for t, a in outputs
        ]

    def step(
        self, grid: Shape, fresh: Any, why: str, checks: tuple[tuple[int, int, Asked], ...] = ()
    ) -> Step:
        """The finished launch."""
        return Step(
            self.builder.build(), tuple(self.buffers), fresh, tuple(self.ints), tuple(self.scalars),
            grid or (1,), why, self.nbytes, checks,
        )  # fmt: skip


def _widen(v: Value) -> Value:
    return cast(v, v.dtype.compute)


def _names(terms: Sequence[Term]) -> str:
    """A kernel's name: what it computes, briefly."""
    names: list[str] = []
    seen: set[int] = set()
    stack = list(terms)
    while stack and len(names) < 6:
        t = stack.pop()
        if id(t) in seen:
            continue
        seen.add(id(t))
        if t.op is not None and t.op.name not in (*names, "copy", "full", "astype"):
            names.append(t.op.name)
        stack += t.args
    return "_".join(reversed(names)) or "copy"


def _traffic(accesses: Sequence[Access], extents: Shape) -> int:
    """Bytes read and written, each distinct element of an access once."""
    total = 0
    for a in accesses:
        if a.slot >= 0:
            seen = math.prod(n for n, s in zip(extents, a.strides, strict=True) if s != 0)
            total += seen * a.dtype.itemsize
    return total


def _emit(planner: Planner, group: Group) -> list[Step | Call]:
    """The launch of a group's kernel."""
    domain, accesses = group.domain, group.accesses
    cut = len(domain.outer)
    em = Emitter(_names([t for _, t, _ in group.outputs]))
    extents, outer = lay.coalesce(domain.outer, [a.strides[:cut] for a in accesses])
    lengths, row = lay.coalesce(domain.row, [a.strides[cut:] for a in accesses])
    point = tuple(em.grid(extents))[: len(extents)]
    em.rows(len(point), lengths)
    em.place(accesses, [o + r for o, r in zip(outer, row, strict=True)])
    inner: list[tuple[Term, Access]] = []
    for i, term, out in group.outputs:
        if domain.axes and planner.nodes[i].spec.shape == domain.full:
            inner.append((term, out))
        else:
            em.builder.store(em.written(out), em.index(out, point), em.value(term, point))
    if inner:
        em.builder.effect(
            map_loop(0, em.row_length, lambda k: em.stores(inner, (*point, *em.row_point(k))))
        )
    em.nbytes = _traffic(accesses, domain.outer + domain.row)
    fresh = [f for i, _, _ in group.outputs for f in planner.fresh(i)]
    why = "; ".join(dict.fromkeys(planner.why[i] for i, _, _ in group.outputs))
    return [em.step(extents, tuple(fresh), why, em.checks(planner))]


def _split(planner: Planner, draft: Draft) -> list[Step | Call]:
    """Two launches for few, long rows: every chunk of CHUNK elements is reduced by its own grid
    point, then those.
    """
    i, group, domain = draft.node, draft.group, draft.group.domain
    path = domain.path(planner.nodes[i].spec.shape)
    assert path is not None
    term, accesses = planner.term(i, path, draft), group.accesses
    if (
        planner.target is not None
        and i == planner.roots[0]
        and any(a.slot in planner.target.overlaps for a in accesses)
    ):
        raise Overlap
    cut, n, rows = len(domain.outer), math.prod(domain.row), math.prod(domain.outer)
    chunks = -(-n // CHUNK)
    em = Emitter(_names([term]) + "_chunks")
    parts = Access(
        planner.slots, bool_, lay.contiguous_strides(domain.outer) + (0,) * len(domain.row), 0
    )
    extents, outer = lay.coalesce(domain.outer, [a.strides[:cut] for a in (*accesses, parts)])
    lengths, row = lay.coalesce(domain.row, [a.strides[cut:] for a in (*accesses, parts)])
    if len(lengths) > 1:
        planner.crooked.add(domain)
        planner.straighten(group)
    chunk, *point = em.grid((chunks, *extents))
    em.rows(len(point), lengths)
    em.place((*accesses, parts), [o + r for o, r in zip(outer, row, strict=True)])
    start = chunk * CHUNK
    stop = where(start + CHUNK < em.row_length, start + CHUNK, em.row_length)
    assert term.op is not None
    results = reduce_loop(
        term.op.combine, start, stop, lambda k: em.combined(term, (*point, *em.row_point(k)), k)
    )
    where_ = em.index(parts, point) + (chunk if rows == 1 else chunk * em.integer("s", rows))
    made: list[Access] = []
    for r in results:
        made.append(Access(planner.slots, r.dtype, (), 0))
        planner.slots += 1
        em.builder.store(em.written(made[-1]), where_, r)
    em.nbytes = _traffic(accesses, domain.outer + domain.row)
    fresh = tuple((p.slot, chunks * rows * p.dtype.itemsize) for p in made)
    first = em.step(
        (chunks, *extents), fresh, "few, long rows: each chunk of rows is reduced by itself"
    )
    steps: list[Step | Call] = [first]
    while chunks > CHUNK:
        made, chunks = _fewer_chunks(planner, term, made, chunks, rows, steps)
    return [*steps, _gather_chunks(planner, draft, term, path, made, chunks)]


def _fewer_chunks(
    planner: Planner, term: Term, made: Sequence[Access], chunks: int, rows: int, steps: Any
) -> tuple[list[Access], int]:
    """A launch in between, for more chunks than make a chunk: their results are reduced in chunks.
    By one grid point, a quarter of a billion elements would take as long here as the first launch.
    """
    em, fewer = Emitter(_names([term]) + "_chunks_of_chunks"), -(-chunks // CHUNK)
    grid = (fewer,) if rows == 1 else (fewer, rows)
    chunk, *point = em.grid(grid)
    count, start = em.integer("m", chunks), chunk * CHUNK
    stop = where(start + CHUNK < count, start + CHUNK, count)
    width = None if rows == 1 else em.integer("s", rows)

    def at(k: Value) -> Value:
        return k if width is None else k * width + point[0]

    assert term.op is not None
    results = reduce_loop(
        term.op.combine,
        start,
        stop,
        lambda k: [load(em.buffer(p.slot, p.dtype, 0, "r"), at(k)) for p in made],
    )
    left: list[Access] = []
    for r in results:
        left.append(Access(planner.slots, r.dtype, (), 0))
        planner.slots += 1
        em.builder.store(em.written(left[-1]), at(chunk), r)
    em.nbytes = sum((chunks + fewer) * rows * p.dtype.itemsize for p in left)
    fresh = tuple((p.slot, fewer * rows * p.dtype.itemsize) for p in left)
    steps.append(em.step(grid, fresh, "chunks of chunks are reduced by themselves"))
    return left, fewer


def _gather_chunks(
    planner: Planner, draft: Draft, term: Term, path: Any, made: Sequence[Access], chunks: int
) -> Step:
    """The second launch: the chunks' results are reduced by the same rule."""
    i, domain, cut = draft.node, draft.group.domain, len(draft.group.domain.outer)
    rows = math.prod(domain.outer)
    em = Emitter(_names([term]) + "_of_chunks")
    out = planner._out(i, path, draft)
    parts = Access(-2, bool_, lay.contiguous_strides(domain.outer), 0)
    extents, outer = lay.coalesce(domain.outer, [out.strides[:cut], parts.strides])
    point = tuple(em.grid(extents))[: len(extents)]
    em.place((out, parts), outer)
    em.row_length = em.integer("m", math.prod(domain.row))
    here, step = em.index(parts, point), None if rows == 1 else em.integer("s", rows)

    def partial(k: Value) -> list[Value]:
        at = here + (k if step is None else k * step)
        return [load(em.buffer(p.slot, p.dtype, 0, "r"), at) for p in made]

    assert term.op is not None
    results = reduce_loop(term.op.combine, 0, em.integer("m", chunks), partial)
    em.builder.store(em.written(out), em.index(out, point), em.finished(term, results))
    em.nbytes = sum(chunks * rows * p.dtype.itemsize for p in made)
    return em.step(extents, planner.fresh(i), planner.why[i])


class Site:
    """Where a kernel op builds its kernel: its operands, its result, and their run-time sizes and
    strides.
    """

    def __init__(
        self, name: str, inputs: Any, output: Any, casts: Any, attrs: Any, scalar: int,
        node: int, changes: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.attrs, self.casts, self._node = attrs, casts, node
        self._emitter = Emitter(name)
        self.builder = self._emitter.builder
        self._operands = [*inputs, output]
        self._scalar = scalar
        # what the kernel reads and writes is "rw"
        self._access = ["r"] * len(inputs) + ["w"]
        for k in changes:
            self._access[k] = "rw"
        self._ints: dict[Any, Value] = {}
        self._grid: list[int] = []

    def size(self, operand: int, axis: int) -> Value:
        """The extent of an operand's axis (operand -1 is the result), as a run-time integer."""
        return self._int(("n", operand, axis), self._operands[operand][1].shape[axis])

    def rank(self, operand: int) -> int:
        """The number of axes of an operand."""
        return len(self._operands[operand][1].shape)

    def extent(self, operand: int, axis: int) -> int:
        """The extent of an axis as a number: only for choosing a plan, never for a kernel."""
        return int(self._operands[operand][1].shape[axis])

    def number(self, name: str, value: int) -> Value:
        """Another run-time integer."""
        return self._int((name,), value)

    def scalar(self, position: int, dtype: DType) -> Value:
        """The op's Python number at `position` among its scalars."""
        return self._emitter.scalar(Term("scalar", dtype, scalar=self._scalar + position))

    def points(self, name: str, count: int) -> Value:
        """A new grid axis of `count` points; its index."""
        self._grid.append(count)
        return self.builder.axis(self.number(name, count))

    def axis(self, operand: int, axis: int) -> Value:
        """A new grid axis as long as an operand's axis; its index."""
        extent = self.size(operand, axis)
        self._grid.append(self.extent(operand, axis))
        return self.builder.axis(extent)

    def _int(self, key: Any, value: int) -> Value:
        if key not in self._ints:
            self._ints[key] = self._emitter.integer(key[0], value)
        return self._ints[key]

    def index(self, operand: int, at: Sequence[Value]) -> Value:
        """The linear index of an operand's element."""
        lay_ = self._operands[operand][1]
        total = const(0, int64)
        for d, i in enumerate(at):
            if lay_.shape[d] != 1 and lay_.strides[d] != 0:
                s = lay_.strides[d]
                total = total + i * (1 if s == 1 else self._int(("s", operand, d), s))
        return total

    def read(self, operand: int, *at: Value) -> Value:
        """An operand's element in its compute dtype (halves as float32)."""
        found = load(self._buffer(operand), self.index(operand, at))
        return _widen(convert(found, self.casts[operand]))

    def current(self, *at: Value) -> Value:
        """The result's element as it is now, for a kernel that reads what it has stored."""
        return _widen(load(self._buffer(-1), self.index(-1, at)))

    def _buffer(self, operand: int) -> Buffer:
        slot, lay_, dtype = self._operands[operand]
        return self._emitter.buffer(slot, dtype, lay_.offset, self._access[operand])

    def put(self, operand: int, value: Value, *at: Value, when: Value | None = None) -> Store:
        """The store of an operand's element, as an effect for a loop."""
        stored = convert(value, self._operands[operand][2])
        return Store(self._buffer(operand), self.index(operand, at), stored, when)

    def stored(self, value: Value, *at: Value, when: Value | None = None) -> Store:
        """The store of a result's element, as an effect for a loop."""
        return self.put(-1, value, *at, when=when)

    def check(self, fine: Value, given: Value, asked: tuple[str, int, int]) -> None:
        """Where not `fine`, the index `given` is an IndexOutOfRange when the kernel has run.

        `asked`: the op's public name, the axis and its size.
        """
        self._emitter.check(self._node, 0, fine, given, Asked(*asked))

    def copy(self) -> None:
        """Builds the kernel that stores the first operand as the result."""
        at = [self.axis(-1, d) for d in range(self.rank(-1))]
        self.store(self.read(0, *at), *at)

    def store(self, value: Value, *at: Value) -> None:
        """Stores a result's element at every point of the grid."""
        self.builder.effect(self.stored(value, *at))

    def step(self, planner: Planner, fresh: Any, why: str) -> Step:
        """The finished launch."""
        if not self._grid:
            self.builder.axis(const(1, int64))
        self._emitter.nbytes = sum(math.prod(x[1].shape) * x[2].itemsize for x in self._operands)
        return self._emitter.step(tuple(self._grid), fresh, why, self._emitter.checks(planner))


class Launches:
    """Where a kernel op puts its kernels: one after the other, over its operands (the result is the
    last one) and temporaries, each named by its number.
    """

    def __init__(
        self, planner: Planner, node: int, operands: Sequence[Any], casts: Sequence[DType],
        fresh: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        e = planner.nodes[node]
        assert e.op is not None
        self.op, self.attrs, self.concurrency = e.op, e.attrs, planner.concurrency
        self.result = len(operands) - 1
        self.steps: list[Step] = []
        self._planner, self._node = planner, node
        self._operands: list[tuple[int, StridedView, DType]] = list(operands)
        self._casts = [c for a, c in zip(e.args, casts, strict=True) if type(a) is Expr]
        self._fresh = {self.result: fresh}  # what is allocated when it is first named

    def shape(self, operand: int) -> Shape:
        """An operand's extents: only for choosing a plan, never for a kernel."""
        return self._operands[operand][1].shape

    def repeats(self, operand: int, axis: int) -> bool:
        """Whether an operand is the same all along an axis."""
        return self._operands[operand][1].strides[axis] == 0

    def dtype(self, operand: int) -> DType:
        """What an operand's elements are read as, but for halves; what those of others are."""
        return self._casts[operand] if operand < self.result else self._operands[operand][2]

    def block(self, rows: Shape, n: int, least: int) -> int:
        """How many elements of a row make a block, where each of `rows` of n is cut into blocks.

        A few for each unit of the device's concurrency, late ones filling the gaps; and no more
        blocks than one of them has elements, since what is summed for each is summed over all.
        """
        most = max(1, BLOCKS_BUSY * self.concurrency // max(1, math.prod(rows)))
        return max(least, -(-n // most), math.isqrt(n))

    def temporary(self, dtype: DType, shape: Shape) -> int:
        """New memory that lives until the last launch that names it; its number."""
        slot, self._planner.slots = self._planner.slots, self._planner.slots + 1
        self._operands.append((slot, lay.contiguous(shape), dtype))
        number = len(self._operands) - 1
        self._fresh[number] = ((slot, math.prod(shape) * dtype.itemsize),)
        return number

    def launch(
        self, name: str, build: Callable[[Site], None], *operands: int,
        changes: Sequence[int] = (), why: str = "",
    ) -> None:  # fmt: skip
        """Adds a kernel. Operand k of its site is `operands[k]`, the last one its result;
        `changes` are those, by k, that it reads and writes.
        """
        *inputs, output = (self._operands[k] for k in operands)
        casts = [self.dtype(k) for k in operands[:-1]]
        scalar = self._planner.scalar_at[self._node]
        site = Site(name, inputs, output, casts, self.attrs, scalar, self._node, changes)
        build(site)
        fresh = tuple(f for k in operands for f in self._fresh.pop(k, ()))
        why = why or self._planner.why[self._node]
        self.steps.append(site.step(self._planner, fresh, why))

    def copy(self, why: str) -> None:
        """Adds the kernel that stores the first operand as the result."""
        self.launch("copy", Site.copy, 0, self.result, why=why)


def _one_launch(launches: Launches) -> None:
    """The kernel of an op that has only one."""
    op, operands = launches.op, range(launches.result + 1)
    launches.launch(op.name, op.build, *operands, changes=(-1,) if op.updates else ())
