"""The pass `group`: every materialised node gets a kernel, its own or one that others share.

Nodes are placed in topological order, each by asking for its term (`terms`). Where that meets a
node that has to be materialised first, this is decided, that one is placed, and the first is tried
again. What was placed in between and computes it on the fly is undone and placed again, so that all
share its memory: as long as that takes no more than a bounded amount of work in all, so that
planning is linear in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from ..errors import InternalError
from ..layout import StridedView
from . import cost
from .buffers import has_too_many, needed
from .decisions import Decisions, has_own_kernels, operands
from .domain import Domain, Path, ordered
from .groups import Access, Group, Kernel, Output, SplitRows, Term
from .kernels_of_ops import own_kernels
from .reasons import Kind, Reason
from .split_rows import partial_results
from .terms import REDUCED, Draft, Needs, No, Refusal, seen_through, term
from .views import permits, reshaping_views

JOINS = 8  # kernels over a domain that a node may join: the latest ones
REFUSALS = 8  # after so many that would have made it too large, no more nodes may join a kernel
UNDONE = 8  # placements that may be undone, for each node of the graph, in all
LOOKS = 4  # how often it is asked of a node, on average, which kernels it can be read after
PATIENCE = 8  # how often a node that could not be placed tries again to join a kernel


def group(d: Decisions) -> None:
    """Gives every materialised node a kernel, and materialises what that turns out to need."""
    _Placing(d).run()


class _Placed(NamedTuple):
    """What is needed to undo the placing of a node: how much of its kernel was there before."""

    node: int
    group: Group | None  # None: kernels that nothing else joins
    accesses: int = 0
    memo: int = 0
    size: int = 0
    seen: Iterable[int] = ()


class _Placing:
    """The work of the pass: what is to be placed, and what may be joined or undone."""

    def __init__(self, d: Decisions) -> None:
        self.d = d
        self.todo = sorted(d.materialised)
        self.placed: list[_Placed] = []
        self.open: dict[Domain, list[Group]] = {}  # kernels that may be joined
        self.drafts: dict[int, Draft] = {}  # of nodes that wait for others to be materialised
        self.tries: dict[int, int] = {}  # how often a node had to wait for another one
        self.alone: set[Domain] = set()  # whose rows are not coalescible: reductions stay alone
        self.latest: list[int] = []  # of each node, the kernel that it can be read after
        self.looks = LOOKS * len(d.graph.nodes)
        self.views: dict[int, list[Path]] | None = None

    def run(self) -> None:
        """Places everything."""
        undone = UNDONE * len(self.d.graph.nodes)
        while self.todo:
            i = heappop(self.todo)
            refusal = self._place(i)
            if refusal is No.TARGET:
                self.d.overlaps = True
                return
            if isinstance(refusal, No):
                raise InternalError(f"fusion has no place for node {i}", refusal.name)
            if refusal is None:
                continue
            self._first(i, refusal)
            anew = bool(self.d.inlined.get(refusal.node))  # else what is undone would come again
            while anew and undone and self.placed and self.placed[-1].node > refusal.node:
                heappush(self.todo, self._undo(self.placed.pop()))
                undone -= 1

    def _first(self, i: int, needs: Needs) -> None:
        """Node `i` is placed again when another one is materialised.

        What computes that on the fly somewhere begins anew.
        """
        self.d.materialise(needs.node, needs.reason, needs.order)
        del self.latest[needs.node :]
        self.tries[i] = self.tries.get(i, 0) + 1
        for k in [k for k, draft in self.drafts.items() if needs.node in draft.seen]:
            del self.drafts[k]
        heappush(self.todo, i)
        heappush(self.todo, needs.node)

    def _undo(self, done: _Placed) -> int:
        """Takes the node that was placed last out again."""
        d, group = self.d, done.group
        del d.home[done.node]
        del self.latest[done.node :]
        for i in done.seen:
            d.inlined[i].pop()
        if group is None:
            d.kernels.pop()
            return done.node
        group.outputs.pop()
        _shrink(group, done)
        group.size = done.size
        if not group.outputs:
            d.kernels.pop()
            if group in self.open[group.domain]:
                self.open[group.domain].remove(group)
        return done.node

    def _place(self, i: int) -> Refusal | None:
        """Puts a node into a kernel, unless that is refused."""
        d = self.d
        if has_own_kernels(d.graph.nodes[i]):
            own = own_kernels(d, i)
            if isinstance(own, Needs | No):
                return own
            self._append(i, own)
            return None
        domain = self._domain(i)
        if i in d.graph.rows and domain in d.split:
            return self._place_split(i, domain)
        if self.tries.get(i, 0) < PATIENCE:
            known = self.open.get(domain, ())[: -JOINS - 1 : -1]
            first = self._after(i) if known else 0
            for group in known:
                if group.index >= first and self._is_last(group, i):
                    joined = self._join(group, i)
                    if joined is not No.HERE and joined is not No.ROOM:
                        return joined
        return self._begin(i, domain)

    def _after(self, i: int) -> int:
        """The latest kernel that writes what node `i` is computed from: no earlier one has room."""
        self.looks -= max(i - len(self.latest), 0)
        if self.looks < 0:  # each is asked, then
            return 0
        for k in range(len(self.latest), i):
            written = k in self.d.materialised
            self.latest.append(self.d.home.get(k, 0) if written else self._latest_source(k))
        return self._latest_source(i)

    def _latest_source(self, i: int) -> int:
        index = self.d.graph.index
        return max([self.latest[index[a]] for a in operands(self.d.graph.nodes[i])], default=0)

    def _is_last(self, group: Group, i: int) -> bool:
        """What is written into existing memory is written last.

        Earlier kernels may read the old contents.
        """
        return not self.d.graph.is_target(i) or group.index == len(self.d.kernels) - 1

    def _domain(self, i: int) -> Domain:
        """The domain in which node `i` is best computed."""
        graph, shape = self.d.graph, self.d.graph.nodes[i].spec.shape
        r = graph.reductions[i]
        if r is not None:
            rows = graph.rows[r]
            fits = rows not in self.d.split and rows not in self.alone
            if r == i or (fits and rows.path(shape) is not None):
                return rows
        return Domain(shape, ())

    def _place_split(self, i: int, domain: Domain) -> Refusal | None:
        """A reduction whose rows are cut into chunks."""
        draft = Draft(Group(len(self.d.kernels), domain), i, in_chunks=True)
        found = _output(self.d, draft)
        if not isinstance(found, Output):
            return found
        needs = needed(self.d, draft, partial_results(found.term))
        if needs is not None:
            return needs
        if not draft.group.row_is_coalescible():
            self.alone.add(domain)
            needs = self._require_row_major(draft.group)
            if needs is not None:
                return needs
        self._append(i, SplitRows(draft.group, found), draft)
        return None

    def _append(self, i: int, kernel: Kernel, draft: Draft | None = None) -> None:
        self.d.home[i] = len(self.d.kernels)
        self.d.kernels.append(kernel)
        self._note(_Placed(i, None), draft)

    def _note(self, done: _Placed, draft: Draft | None) -> None:
        if draft is not None:
            done = done._replace(seen=draft.seen)
            for i in draft.seen:
                self.d.inlined.setdefault(i, []).append(draft.group)
        self.placed.append(done)

    def _begin(self, i: int, domain: Domain) -> Refusal | None:
        """A kernel of its own for a node, which others may join."""
        draft = self._draft(i, domain)
        group = draft.group
        found = _output(self.d, draft)
        if not isinstance(found, Output):
            return found
        needs = needed(self.d, draft, 1)
        if needs is not None:
            return needs
        group.accesses.append(found.access)
        if not group.row_is_coalescible():
            self.alone.add(domain)
            if i not in self.d.graph.rows:
                return self._place(i)  # the reductions get kernels to themselves
            needs = self._require_row_major(group)
            if needs is not None:
                return needs
            group.by_division = True
        self.drafts.pop(i, None)
        self.open.setdefault(domain, []).append(group)
        self.d.kernels.append(group)
        self._add(draft, found, _Placed(i, group))
        return None

    def _draft(self, i: int, domain: Domain) -> Draft:
        """A new kernel for a node, or what has been built of it so far.

        That is so where another node had to be materialised first.
        """
        draft = self.drafts.get(i)
        if draft is None or draft.group.domain != domain:
            draft = self.drafts[i] = Draft(Group(len(self.d.kernels), domain), i)
        draft.group.index = len(self.d.kernels)
        return draft

    def _join(self, group: Group, i: int) -> Refusal | None:
        """Adds a node to a kernel, which stays as it was where that is refused."""
        draft = Draft(group, i)
        before = _Placed(i, group, len(group.accesses), len(group.memo), group.size)
        found: Output | Refusal = _output(self.d, draft)
        if isinstance(found, Output):
            group.accesses.append(found.access)
            if group.size + draft.size > cost.NODE_LIMIT or has_too_many(self.d, group):
                found = No.ROOM
            elif not group.by_division and not group.row_is_coalescible():
                found = No.HERE
        if isinstance(found, Output):
            self._add(draft, found, before)
            return None
        _shrink(group, before)
        if found is No.ROOM:
            group.refusals += 1
        if isinstance(found, No) and group.refusals == REFUSALS:
            self.open[group.domain].remove(group)
        return found

    def _add(self, draft: Draft, output: Output, before: _Placed) -> None:
        draft.group.size += draft.size
        draft.group.outputs.append(output)
        self.d.home[draft.node] = draft.group.index
        self._note(before, draft)

    def _require_row_major(self, group: Group) -> Needs | None:
        """What is to be materialised for rows that no single stride walks.

        It is what is reduced, in the order of the domain. Where that is materialised anyhow, or
        viewed in a way that this order does not permit, rows are walked by division.
        """
        d, order = self.d, group.domain.order
        for i, path in group.memo:
            if path is REDUCED:
                source = d.graph.index[d.graph.nodes[i].args[0]]
                if source not in d.materialised and self._may_lie(source, order):
                    return Needs(source, Reason(Kind.NOT_COALESCIBLE), order)
        return None

    def _may_lie(self, i: int, order: tuple[int, ...]) -> bool:
        if self.views is None:
            self.views = reshaping_views(self.d.graph)
        views = self.views.get(i, [])
        return permits(ordered(self.d.graph.nodes[i].spec.shape, order), views)


def _shrink(group: Group, before: _Placed) -> None:
    del group.accesses[before.accesses :]
    while len(group.memo) > before.memo:
        group.memo.popitem()


def _output(d: Decisions, draft: Draft) -> Output | Refusal:
    """The term of a node in a kernel, and the access that writes it there."""
    i, group = draft.node, draft.group
    path = group.domain.path(d.graph.nodes[i].spec.shape)
    if path is None:
        return No.HERE
    found = term(d, i, path, draft)
    if not isinstance(found, Term):
        return found
    access = _access(d, i, path)
    if not isinstance(access, Access):
        return access
    if d.graph.is_target(i) and _overlaps(d, access, draft):
        return No.TARGET
    return Output(i, found, access)


def _access(d: Decisions, i: int, path: Path) -> Access | Needs:
    """What writes a node from a kernel's domain."""
    seen = seen_through(d.base(i), path)
    if not isinstance(seen, StridedView):
        return seen
    return Access(d.slot_of[i], d.graph.nodes[i].spec.dtype, seen.strides, seen.offset)


def _overlaps(d: Decisions, out: Access, draft: Draft) -> bool:
    """Whether a kernel reads the target otherwise than where it writes it, point by point."""
    target, group = d.graph.target, draft.group
    assert target is not None
    for a in group.accesses:
        if a.slot in target.overlaps:
            same = a.slot in target.same and a.strides == out.strides and a.offset == 0
            if not same or group.domain.axes or a.computed:
                return True
    return False
