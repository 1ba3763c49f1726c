"""The pass `group`: every materialised node gets a kernel, its own or a shared one.

Nodes are placed in topological order, each by asking for its term (`terms`). If that meets a node
that has to be materialised first, the pass materialises it, places it, and tries the first node
again. Nodes that were placed in between and compute that node on the fly are removed and placed
again, so that all share its memory. A bound on this work keeps planning linear in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from ..errors import InternalError
from ..layout import StridedView
from . import cost
from .buffer_limit import find_buffer_needs, has_too_many
from .decisions import Decisions, has_own_kernels, operands
from .domain import Domain, Path, dense_layout
from .groups import Access, Group, Kernel, Output, SplitRows, Term
from .kernels_of_ops import build_own_kernels
from .layout_constraints import permits_views, reshaping_views
from .reasons import Kind, Reason
from .split_rows import partial_results
from .terms import REDUCED, Draft, Needs, No, Refusal, find_term, view_through

JOIN_CANDIDATES_MAX = 8  # kernels over a domain that a node may join: the latest ones
REFUSALS_MAX = 8  # a kernel that was too large for so many nodes takes no more of them
UNDONE_PER_NODE_MAX = 8  # placements that may be undone in all, for each node of the graph
LOOKUPS_PER_NODE_MAX = 4  # computations of `latest`, on average
JOIN_TRIES_MAX = 8  # how often a node that had to wait tries to join a kernel


def group(decisions: Decisions) -> None:
    """Give every materialised node a kernel, and materialise what that turns out to need."""
    _Placer(decisions).run()


class _Placement(NamedTuple):
    """The placement of a node, with the state of its kernel before: what is needed to undo it."""

    node: int
    group: Group | None  # None: kernels that nothing else joins
    accesses: int = 0
    memo: int = 0
    size: int = 0
    nodes: Iterable[int] = ()


class _Placer:
    """The state of the pass: the nodes to place, and the kernels to join or undo."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.todo = sorted(decisions.materialised)
        self.placed: list[_Placement] = []
        self.open: dict[Domain, list[Group]] = {}  # kernels that may be joined
        self.drafts: dict[int, Draft] = {}  # node that waits for another one -> its draft
        self.tries: dict[int, int] = {}  # how often a node had to wait for another one
        # domains whose rows are not coalescible: their reductions share no kernel with other nodes
        self.alone: set[Domain] = set()
        self.latest: list[int] = []  # by node, the index of the kernel after which it can be read
        self.lookups = LOOKUPS_PER_NODE_MAX * len(decisions.graph.nodes)
        self.views: dict[int, list[Path]] | None = None

    def run(self) -> None:
        """Place all nodes."""
        undo_budget = UNDONE_PER_NODE_MAX * len(self.decisions.graph.nodes)
        while self.todo:
            i = heappop(self.todo)
            refusal = self._place(i)
            if refusal is No.TARGET:
                self.decisions.overlaps = True
                return
            if isinstance(refusal, No):
                raise InternalError(f"fusion has no place for node {i}", refusal.name)
            if refusal is None:
                continue
            self._materialise_first(i, refusal)
            # a node that no kernel computes on the fly changes no placement
            inlined = bool(self.decisions.inlined.get(refusal.node))
            while inlined and undo_budget and self.placed and self.placed[-1].node > refusal.node:
                heappush(self.todo, self._undo(self.placed.pop()))
                undo_budget -= 1

    def _materialise_first(self, i: int, needs: Needs) -> None:
        """Materialise another node, and place node `i` again after it.

        Drafts that compute the other node on the fly are discarded.
        """
        self.decisions.materialise(needs.node, needs.reason, needs.order)
        del self.latest[needs.node :]
        self.tries[i] = self.tries.get(i, 0) + 1
        for k in [k for k, draft in self.drafts.items() if needs.node in draft.nodes]:
            del self.drafts[k]
        heappush(self.todo, i)
        heappush(self.todo, needs.node)

    def _undo(self, placement: _Placement) -> int:
        """Remove the node that was placed last, and return it."""
        decisions, group = self.decisions, placement.group
        del decisions.home[placement.node]
        del self.latest[placement.node :]
        for i in placement.nodes:
            decisions.inlined[i].pop()
        if group is None:
            decisions.kernels.pop()
            return placement.node
        group.outputs.pop()
        _restore(group, placement)
        group.size = placement.size
        if not group.outputs:
            decisions.kernels.pop()
            if group in self.open[group.domain]:
                self.open[group.domain].remove(group)
        return placement.node

    def _place(self, i: int) -> Refusal | None:
        """Put a node into a kernel, unless that is refused."""
        decisions = self.decisions
        if has_own_kernels(decisions.graph.nodes[i]):
            own = build_own_kernels(decisions, i)
            if isinstance(own, Needs | No):
                return own
            self._append(i, own)
            return None
        domain = self._domain(i)
        if i in decisions.graph.rows and domain in decisions.split:
            return self._place_split(i, domain)
        if self.tries.get(i, 0) < JOIN_TRIES_MAX:
            candidates = self.open.get(domain, ())[: -JOIN_CANDIDATES_MAX - 1 : -1]
            first = self._latest_writer(i) if candidates else 0
            for group in candidates:
                if group.index >= first and self._is_last(group, i):
                    joined = self._join(group, i)
                    if joined is not No.HERE and joined is not No.ROOM:
                        return joined
        return self._start_kernel(i, domain)

    def _latest_writer(self, i: int) -> int:
        """Return the latest kernel that writes an operand of node `i`.

        No earlier kernel can compute `i`.
        """
        self.lookups -= max(i - len(self.latest), 0)
        if self.lookups < 0:  # then all candidates are tried
            return 0
        for k in range(len(self.latest), i):
            written = k in self.decisions.materialised
            self.latest.append(self.decisions.home.get(k, 0) if written else self._latest_source(k))
        return self._latest_source(i)

    def _latest_source(self, i: int) -> int:
        index = self.decisions.graph.index
        return max(
            [self.latest[index[a]] for a in operands(self.decisions.graph.nodes[i])], default=0
        )

    def _is_last(self, group: Group, i: int) -> bool:
        """Return True unless node `i` is the target and the kernel is not the last one.

        The target is written last, since earlier kernels may read its old contents.
        """
        return (
            not self.decisions.graph.is_target(i) or group.index == len(self.decisions.kernels) - 1
        )

    def _domain(self, i: int) -> Domain:
        """Return the domain in which node `i` is best computed."""
        graph, shape = self.decisions.graph, self.decisions.graph.nodes[i].spec.shape
        r = graph.reductions[i]
        if r is not None:
            rows = graph.rows[r]
            fits = rows not in self.decisions.split and rows not in self.alone
            if r == i or (fits and rows.path(shape) is not None):
                return rows
        return Domain(shape, ())

    def _place_split(self, i: int, domain: Domain) -> Refusal | None:
        """Place a reduction whose rows are cut into chunks."""
        draft = Draft(Group(len(self.decisions.kernels), domain), i, in_chunks=True)
        output = _build_output(self.decisions, draft)
        if not isinstance(output, Output):
            return output
        needs = find_buffer_needs(self.decisions, draft, partial_results(output.term))
        if needs is not None:
            return needs
        if not draft.group.row_is_coalescible():
            self.alone.add(domain)
            needs = self._require_row_major(draft.group)
            if needs is not None:
                return needs
        self._append(i, SplitRows(draft.group, output), draft)
        return None

    def _append(self, i: int, kernel: Kernel, draft: Draft | None = None) -> None:
        """Add a kernel that no other node can join."""
        self.decisions.home[i] = len(self.decisions.kernels)
        self.decisions.kernels.append(kernel)
        self._record(_Placement(i, None), draft)

    def _record(self, placement: _Placement, draft: Draft | None) -> None:
        """Record a placement, and which nodes its kernel computes on the fly."""
        if draft is not None:
            placement = placement._replace(nodes=draft.nodes)
            for i in draft.nodes:
                self.decisions.inlined.setdefault(i, []).append(draft.group)
        self.placed.append(placement)

    def _start_kernel(self, i: int, domain: Domain) -> Refusal | None:
        """Start a kernel for a node, which others may join."""
        draft = self._draft(i, domain)
        group = draft.group
        output = _build_output(self.decisions, draft)
        if not isinstance(output, Output):
            return output
        needs = find_buffer_needs(self.decisions, draft, 1)
        if needs is not None:
            return needs
        group.accesses.append(output.access)
        if not group.row_is_coalescible():
            self.alone.add(domain)
            if i not in self.decisions.graph.rows:
                return self._place(i)  # the reductions get kernels to themselves
            needs = self._require_row_major(group)
            if needs is not None:
                return needs
            group.by_division = True
        self.drafts.pop(i, None)
        self.open.setdefault(domain, []).append(group)
        self.decisions.kernels.append(group)
        self._add(draft, output, _Placement(i, group))
        return None

    def _draft(self, i: int, domain: Domain) -> Draft:
        """Return the draft of a new kernel for a node, or the one that waited for another node."""
        draft = self.drafts.get(i)
        if draft is None or draft.group.domain != domain:
            draft = self.drafts[i] = Draft(Group(len(self.decisions.kernels), domain), i)
        draft.group.index = len(self.decisions.kernels)
        return draft

    def _join(self, group: Group, i: int) -> Refusal | None:
        """Add a node to a kernel, or leave the kernel as it was and return the refusal."""
        draft = Draft(group, i)
        before = _Placement(i, group, len(group.accesses), len(group.memo), group.size)
        output: Output | Refusal = _build_output(self.decisions, draft)
        if isinstance(output, Output):
            group.accesses.append(output.access)
            if group.size + draft.size > cost.NODE_LIMIT or has_too_many(self.decisions, group):
                output = No.ROOM
            elif not group.by_division and not group.row_is_coalescible():
                output = No.HERE
        if isinstance(output, Output):
            self._add(draft, output, before)
            return None
        _restore(group, before)
        if output is No.ROOM:
            group.refusals += 1
        if isinstance(output, No) and group.refusals == REFUSALS_MAX:
            self.open[group.domain].remove(group)
        return output

    def _add(self, draft: Draft, output: Output, before: _Placement) -> None:
        """Add a node's output to a kernel."""
        draft.group.size += draft.size
        draft.group.outputs.append(output)
        self.decisions.home[draft.node] = draft.group.index
        self._record(before, draft)

    def _require_row_major(self, group: Group) -> Needs | None:
        """Return what must be materialised for rows that no single stride walks, or None.

        It is the operand of the reduction, in the order of the domain. If that is materialised
        anyway, or viewed in a way that this order does not permit, rows are walked by division.
        """
        decisions, order = self.decisions, group.domain.order
        for i, path in group.memo:
            if path is REDUCED:
                source = decisions.graph.index[decisions.graph.nodes[i].args[0]]
                if source not in decisions.materialised and self._permits_order(source, order):
                    return Needs(source, Reason(Kind.NOT_COALESCIBLE), order)
        return None

    def _permits_order(self, i: int, order: tuple[int, ...]) -> bool:
        if self.views is None:
            self.views = reshaping_views(self.decisions.graph)
        views = self.views.get(i, [])
        return permits_views(dense_layout(self.decisions.graph.nodes[i].spec.shape, order), views)


def _restore(group: Group, before: _Placement) -> None:
    """Restore the accesses and terms that a kernel had before."""
    del group.accesses[before.accesses :]
    while len(group.memo) > before.memo:
        group.memo.popitem()


def _build_output(decisions: Decisions, draft: Draft) -> Output | Refusal:
    """Return a node's output in a kernel: its term, and the access that writes it."""
    i, group = draft.node, draft.group
    path = group.domain.path(decisions.graph.nodes[i].spec.shape)
    if path is None:
        return No.HERE
    value = find_term(decisions, i, path, draft)
    if not isinstance(value, Term):
        return value
    access = _output_access(decisions, i, path)
    if not isinstance(access, Access):
        return access
    if decisions.graph.is_target(i) and _overlaps(decisions, access, draft):
        return No.TARGET
    return Output(i, value, access)


def _output_access(decisions: Decisions, i: int, path: Path) -> Access | Needs:
    """Return the access that writes a node from a kernel's domain."""
    layout = view_through(decisions.base(i), path)
    if not isinstance(layout, StridedView):
        return layout
    return Access(
        decisions.slot_of[i], decisions.graph.nodes[i].spec.dtype, layout.strides, layout.offset
    )


def _overlaps(decisions: Decisions, out: Access, draft: Draft) -> bool:
    """Return True if a point of a kernel reads other elements of the target than it writes."""
    target, group = decisions.graph.target, draft.group
    assert target is not None
    for a in group.accesses:
        if a.slot in target.overlaps:
            same = a.slot in target.same and a.strides == out.strides and a.offset == 0
            if not same or group.domain.axes or a.computed:
                return True
    return False
