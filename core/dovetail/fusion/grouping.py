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
from .buffer_limit import exceeds_buffer_limit, find_buffer_needs
from .decisions import Decisions, has_own_kernels, operands
from .domain import Domain, Path, dense_layout
from .groups import Access, FusionGroup, Output, PlannedKernel, SplitRows, Term
from .kernels_of_ops import build_own_kernels
from .layout_constraints import permits_views, reshaping_views
from .reasons import Reason, ReasonKind
from .split_rows import count_partial_results
from .terms import (
    REDUCED_PATH,
    NodeDraft,
    Prerequisite,
    Refusal,
    Rejection,
    find_term,
    view_through,
)

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
    group: FusionGroup | None  # None: kernels that nothing else joins
    access_count: int = 0
    term_count: int = 0
    size: int = 0
    nodes: Iterable[int] = ()


class _Placer:
    """The state of the pass: the nodes to place, and the kernels to join or undo."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.pending_nodes = sorted(decisions.materialised)
        self.placements: list[_Placement] = []
        self.open_groups: dict[Domain, list[FusionGroup]] = {}  # kernels that may be joined
        self.drafts: dict[int, NodeDraft] = {}  # node that waits for another one -> its draft
        self.wait_counts: dict[int, int] = {}  # how often a node had to wait for another one
        # domains whose rows are not coalescible: their reductions share no kernel with other nodes
        self.unshared_domains: set[Domain] = set()
        self.latest_kernel: list[
            int
        ] = []  # by node, the index of the kernel after which it can be read
        self.lookups_left = LOOKUPS_PER_NODE_MAX * len(decisions.graph.nodes)
        self.reshaping_paths: dict[int, list[Path]] | None = None

    def run(self) -> None:
        """Place all nodes; stop at a target hazard, and set `target_overlaps`.

        Raises: InternalError, for a node that no kernel can compute.
        """
        undo_budget = UNDONE_PER_NODE_MAX * len(self.decisions.graph.nodes)
        while self.pending_nodes:
            i = heappop(self.pending_nodes)
            refusal = self._place_node(i)
            if refusal is Rejection.TARGET_HAZARD:
                self.decisions.target_overlaps = True
                return
            if isinstance(refusal, Rejection):
                raise InternalError(f"fusion has no place for node {i}", refusal.name)
            if refusal is None:
                continue
            self._materialise_first(i, refusal)
            # a node that no kernel computes on the fly changes no placement
            inlined = bool(self.decisions.inlined.get(refusal.node))
            while (
                inlined
                and undo_budget
                and self.placements
                and self.placements[-1].node > refusal.node
            ):
                heappush(self.pending_nodes, self._undo_placement(self.placements.pop()))
                undo_budget -= 1

    def _materialise_first(self, i: int, needs: Prerequisite) -> None:
        """Materialise another node, and queue both for placement; drop drafts that inline it."""
        self.decisions.materialise(needs.node, needs.reason, needs.order)
        del self.latest_kernel[needs.node :]
        self.wait_counts[i] = self.wait_counts.get(i, 0) + 1
        for k in [k for k, draft in self.drafts.items() if needs.node in draft.nodes]:
            del self.drafts[k]
        heappush(self.pending_nodes, i)
        heappush(self.pending_nodes, needs.node)

    def _undo_placement(self, placement: _Placement) -> int:
        """Remove the node that was placed last from its kernel, and return the node."""
        decisions, group = self.decisions, placement.group
        del decisions.kernel_of[placement.node]
        del self.latest_kernel[placement.node :]
        for i in placement.nodes:
            decisions.inlined[i].pop()
        if group is None:
            decisions.kernels.pop()
            return placement.node
        group.outputs.pop()
        _restore_group(group, placement)
        group.value_count = placement.size
        if not group.outputs:
            decisions.kernels.pop()
            if group in self.open_groups[group.domain]:
                self.open_groups[group.domain].remove(group)
        return placement.node

    def _place_node(self, i: int) -> Refusal | None:
        """Put a node into an open or new kernel; return None, or the refusal if it must wait."""
        decisions = self.decisions
        if has_own_kernels(decisions.graph.nodes[i]):
            own_kernels = build_own_kernels(decisions, i)
            if isinstance(own_kernels, Prerequisite | Rejection):
                return own_kernels
            self._append_kernel(i, own_kernels)
            return None
        domain = self._choose_domain(i)
        if i in decisions.graph.rows and domain in decisions.split_domains:
            return self._place_split(i, domain)
        if self.wait_counts.get(i, 0) < JOIN_TRIES_MAX:
            candidates = self.open_groups.get(domain, ())[: -JOIN_CANDIDATES_MAX - 1 : -1]
            first_index = self._find_latest_writer(i) if candidates else 0
            for group in candidates:
                if group.index >= first_index and self._keeps_target_last(group, i):
                    refusal = self._join_group(group, i)
                    if refusal is not Rejection.INCOMPATIBLE and refusal is not Rejection.TOO_LARGE:
                        return refusal
        return self._start_kernel(i, domain)

    def _find_latest_writer(self, i: int) -> int:
        """Return the index of the latest kernel that writes an operand, 0 if out of lookups.

        No earlier kernel can compute `i`.
        """
        self.lookups_left -= max(i - len(self.latest_kernel), 0)
        if self.lookups_left < 0:  # then all candidates are tried
            return 0
        for k in range(len(self.latest_kernel), i):
            written = k in self.decisions.materialised
            self.latest_kernel.append(
                self.decisions.kernel_of.get(k, 0) if written else self._find_latest_source(k)
            )
        return self._find_latest_source(i)

    def _find_latest_source(self, i: int) -> int:
        """Return the index of the latest kernel among those of the operands, 0 without any."""
        index = self.decisions.graph.index
        return max(
            [self.latest_kernel[index[a]] for a in operands(self.decisions.graph.nodes[i])],
            default=0,
        )

    def _keeps_target_last(self, group: FusionGroup, i: int) -> bool:
        """Return True unless node `i` is the target and the kernel is not the last one.

        The target is written last, since earlier kernels may read its old contents.
        """
        return (
            not self.decisions.graph.is_target(i) or group.index == len(self.decisions.kernels) - 1
        )

    def _choose_domain(self, i: int) -> Domain:
        """Return the domain in which node `i` is best computed."""
        graph, shape = self.decisions.graph, self.decisions.graph.nodes[i].spec.shape
        r = graph.reductions[i]
        if r is not None:
            rows = graph.rows[r]
            fits = rows not in self.decisions.split_domains and rows not in self.unshared_domains
            if r == i or (fits and rows.path(shape) is not None):
                return rows
        return Domain(shape, ())

    def _place_split(self, i: int, domain: Domain) -> Refusal | None:
        """Place a reduction whose rows are cut into chunks; return None, or the refusal."""
        draft = NodeDraft(FusionGroup(len(self.decisions.kernels), domain), i, in_chunks=True)
        output = _build_output(self.decisions, draft)
        if not isinstance(output, Output):
            return output
        needs = find_buffer_needs(self.decisions, draft, count_partial_results(output.term))
        if needs is not None:
            return needs
        if not draft.group.row_is_coalescible():
            self.unshared_domains.add(domain)
            needs = self._require_row_major(draft.group)
            if needs is not None:
                return needs
        self._append_kernel(i, SplitRows(draft.group, output), draft)
        return None

    def _append_kernel(self, i: int, kernel: PlannedKernel, draft: NodeDraft | None = None) -> None:
        """Append a kernel that no other node can join, and record the placement."""
        self.decisions.kernel_of[i] = len(self.decisions.kernels)
        self.decisions.kernels.append(kernel)
        self._record_placement(_Placement(i, None), draft)

    def _record_placement(self, placement: _Placement, draft: NodeDraft | None) -> None:
        """Record a placement, and the nodes that its kernel computes on the fly."""
        if draft is not None:
            placement = placement._replace(nodes=draft.nodes)
            for i in draft.nodes:
                self.decisions.inlined.setdefault(i, []).append(draft.group)
        self.placements.append(placement)

    def _start_kernel(self, i: int, domain: Domain) -> Refusal | None:
        """Start a joinable kernel for a node, or place it elsewhere; return None or the refusal.

        A refusal keeps the draft for the next try.
        """
        draft = self._find_or_create_draft(i, domain)
        group = draft.group
        output = _build_output(self.decisions, draft)
        if not isinstance(output, Output):
            return output
        needs = find_buffer_needs(self.decisions, draft, 1)
        if needs is not None:
            return needs
        group.accesses.append(output.access)
        if not group.row_is_coalescible():
            self.unshared_domains.add(domain)
            if i not in self.decisions.graph.rows:
                return self._place_node(i)  # the reductions get kernels to themselves
            needs = self._require_row_major(group)
            if needs is not None:
                return needs
            group.indexes_by_division = True
        self.drafts.pop(i, None)
        self.open_groups.setdefault(domain, []).append(group)
        self.decisions.kernels.append(group)
        self._add_output(draft, output, _Placement(i, group))
        return None

    def _find_or_create_draft(self, i: int, domain: Domain) -> NodeDraft:
        """Return the node's draft for this domain, or a new one, with the next kernel's index."""
        draft = self.drafts.get(i)
        if draft is None or draft.group.domain != domain:
            draft = self.drafts[i] = NodeDraft(FusionGroup(len(self.decisions.kernels), domain), i)
        draft.group.index = len(self.decisions.kernels)
        return draft

    def _join_group(self, group: FusionGroup, i: int) -> Refusal | None:
        """Add a node to a kernel and return None, or restore the kernel and return the refusal.

        A kernel that was too large REFUSALS_MAX times takes no more nodes.
        """
        draft = NodeDraft(group, i)
        placement = _Placement(i, group, len(group.accesses), len(group.terms), group.value_count)
        output: Output | Refusal = _build_output(self.decisions, draft)
        if isinstance(output, Output):
            group.accesses.append(output.access)
            if (
                group.value_count + draft.value_count > cost.KERNEL_VALUES_MAX
                or exceeds_buffer_limit(self.decisions, group)
            ):
                output = Rejection.TOO_LARGE
            elif not group.indexes_by_division and not group.row_is_coalescible():
                output = Rejection.INCOMPATIBLE
        if isinstance(output, Output):
            self._add_output(draft, output, placement)
            return None
        _restore_group(group, placement)
        if output is Rejection.TOO_LARGE:
            group.refusal_count += 1
        if isinstance(output, Rejection) and group.refusal_count == REFUSALS_MAX:
            self.open_groups[group.domain].remove(group)
        return output

    def _add_output(self, draft: NodeDraft, output: Output, placement: _Placement) -> None:
        """Add a node's output to a kernel, and record the placement."""
        draft.group.value_count += draft.value_count
        draft.group.outputs.append(output)
        self.decisions.kernel_of[draft.node] = draft.group.index
        self._record_placement(placement, draft)

    def _require_row_major(self, group: FusionGroup) -> Prerequisite | None:
        """Return the operand to materialise for rows that no single stride walks, or None.

        It is the operand of the reduction, in the order of the domain. Rows are walked by division
        if that is materialised anyway, may exceed the memory, or has views which do not permit this
        order.
        """
        decisions, order = self.decisions, group.domain.order
        for i, path in group.terms:
            if path is REDUCED_PATH:
                source = decisions.graph.index[decisions.graph.nodes[i].args[0]]
                if (
                    source not in decisions.materialised
                    and self._permits_order(source, order)
                    and not cost.may_exceed_memory(decisions, source)
                ):
                    return Prerequisite(source, Reason(ReasonKind.NOT_COALESCIBLE), order)
        return None

    def _permits_order(self, i: int, order: tuple[int, ...]) -> bool:
        """Return True if all views of a node permit memory with its axes in this order."""
        if self.reshaping_paths is None:
            self.reshaping_paths = reshaping_views(self.decisions.graph)
        views = self.reshaping_paths.get(i, [])
        return permits_views(dense_layout(self.decisions.graph.nodes[i].spec.shape, order), views)


def _restore_group(group: FusionGroup, placement: _Placement) -> None:
    """Remove the accesses and terms that a kernel got after the state in `placement`."""
    del group.accesses[placement.access_count :]
    while len(group.terms) > placement.term_count:
        group.terms.popitem()


def _build_output(decisions: Decisions, draft: NodeDraft) -> Output | Refusal:
    """Build a node's output or return the refusal; terms and loads stay in the group either way."""
    i, group = draft.node, draft.group
    path = group.domain.path(decisions.graph.nodes[i].spec.shape)
    if path is None:
        return Rejection.INCOMPATIBLE
    value = find_term(decisions, i, path, draft)
    if not isinstance(value, Term):
        return value
    access = _build_output_access(decisions, i, path)
    if not isinstance(access, Access):
        return access
    if decisions.graph.is_target(i) and _has_target_hazard(decisions, access, draft):
        return Rejection.TARGET_HAZARD
    return Output(i, value, access)


def _build_output_access(decisions: Decisions, i: int, path: Path) -> Access | Prerequisite:
    """Return the access that writes a node from a kernel's domain, or the need for another node."""
    layout = view_through(decisions.memory_layout(i), path)
    if not isinstance(layout, StridedView):
        return layout
    return Access(
        decisions.slot_of[i], decisions.graph.nodes[i].spec.dtype, layout.strides, layout.offset
    )


def _has_target_hazard(decisions: Decisions, out: Access, draft: NodeDraft) -> bool:
    """Return True if a point of a kernel reads other elements of the target than it writes."""
    target, group = decisions.graph.target, draft.group
    assert target is not None
    for a in group.accesses:
        if a.slot in target.overlapping_slots:
            same = a.slot in target.identical_slots and a.strides == out.strides and a.offset == 0
            if not same or group.domain.axes or a.is_data_dependent:
                return True
    return False
