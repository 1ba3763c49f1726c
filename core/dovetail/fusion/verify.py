"""Invariants of the decisions after each pass: `verify` raises if one is broken.

Only tests call it, after every pass (`testing.verified`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import InternalError
from . import cost
from .decisions import Decisions, has_own_kernels
from .groups import FusionGroup, OwnKernels, SplitRows, Term
from .plan import PlannedCall


def verify(decisions: Decisions, pass_name: str) -> None:
    """Raise InternalError, with the decisions, for the first broken rule."""
    for rule in find_violations(decisions):
        raise InternalError(f"fusion, after {pass_name}: {rule}", str(decisions))


def find_violations(decisions: Decisions) -> Iterator[str]:
    """Yield a sentence for each broken rule; rules of a later pass do not apply yet."""
    yield from _check_memory(decisions)
    for rows in decisions.split_domains - {*decisions.graph.rows.values()}:
        yield f"no reduction has the rows {rows} that are split"
    if decisions.kernels:
        yield from _check_writers(decisions)
        for index, kernel in enumerate(decisions.kernels):
            if not isinstance(kernel, OwnKernels):
                group = kernel if isinstance(kernel, FusionGroup) else kernel.group
                yield from _check_group(decisions, index, group)
        yield from _check_reads(decisions)
    if decisions.steps:
        yield from _check_launches(decisions)


def _check_memory(decisions: Decisions) -> Iterator[str]:
    """Yield violations: required nodes that are not materialised, missing or shared slots."""
    graph = decisions.graph
    for i in graph.output_nodes - {*decisions.materialised}:
        yield f"node {i} was asked for or is held, and is not materialised"
    for i, expr in enumerate(graph.nodes):
        if has_own_kernels(expr) and i not in decisions.materialised:
            yield f"node {i} has kernels of its own, and is not materialised"
    if {*decisions.slot_of} != {*decisions.materialised}:
        yield "what is materialised has a slot, and nothing else has"
    own_slots = [s for i, s in decisions.slot_of.items() if i not in decisions.updated_operand]
    if len({*own_slots, *graph.leaf_slot.values()}) < len(own_slots) + len(graph.leaf_slot):
        yield "two values have one slot"
    for i, s in decisions.slot_of.items():
        if s >= decisions.slot_count or (
            i in decisions.updated_operand and s != decisions.slot_of[decisions.updated_operand[i]]
        ):
            yield f"node {i} has the wrong slot {s}"
    for i, order in decisions.axis_orders.items():
        if i not in decisions.materialised or sorted(order) != [
            *range(len(graph.nodes[i].spec.shape))
        ]:
            yield f"node {i} has its axes in the order {order}"


def _check_writers(decisions: Decisions) -> Iterator[str]:
    """Yield violations: nodes with no, several or wrong kernels, a target that is not last."""
    written: dict[int, int] = {}
    for index, kernel in enumerate(decisions.kernels):
        for i in _list_outputs(kernel):
            if i in written:
                yield f"node {i} is written by the kernels {written[i]} and {index}"
            written[i] = index
    if written != decisions.kernel_of or {*written} != {*decisions.materialised}:
        yield "the kernels write other nodes than those that are materialised"
    if (
        decisions.graph.target is not None
        and written.get(decisions.graph.roots[0]) != len(decisions.kernels) - 1
    ):
        yield "the target is not written last"


def _list_outputs(kernel: FusionGroup | SplitRows | OwnKernels) -> list[int]:
    """Return the nodes that a kernel writes."""
    if isinstance(kernel, OwnKernels):
        return [kernel.node]
    return (
        [kernel.output.node] if isinstance(kernel, SplitRows) else [o.node for o in kernel.outputs]
    )


def _check_group(decisions: Decisions, index: int, group: FusionGroup) -> Iterator[str]:
    """Yield violations of one kernel: its index, strides, outputs, size and rows."""
    if group.index != index:
        yield f"kernel {index} counts as number {group.index}"
    for a in group.accesses:
        if len(a.strides) != len(group.domain.full):
            yield f"kernel {index} has an access with strides {a.strides} over {group.domain}"
    for out in group.outputs:
        if group.domain.path(decisions.graph.nodes[out.node].spec.shape) is None:
            yield f"node {out.node} does not fit the domain of kernel {index}"
        if out.access.slot != decisions.slot_of[out.node] or out.access not in group.accesses:
            yield f"node {out.node} is written to a slot that no reader uses"
    if group.value_count > cost.KERNEL_VALUES_MAX and len(group.outputs) > 1:
        yield f"kernel {index} has {group.value_count} values"
    if not group.indexes_by_division and not group.row_is_coalescible() and group.outputs:
        yield f"no single stride walks the rows of kernel {index}"


def _check_reads(decisions: Decisions) -> Iterator[str]:
    """Yield violations: slots that a kernel reads before a kernel has written them."""
    first: dict[int, int] = dict.fromkeys(
        decisions.graph.leaf_slot.values(), -1
    )  # slot -> its writer
    for i, home in decisions.kernel_of.items():
        first[decisions.slot_of[i]] = min(home, first.get(decisions.slot_of[i], home))
    for index, kernel in enumerate(decisions.kernels):
        if isinstance(kernel, OwnKernels):
            read = {x.slot for k in kernel.inputs for x in (k, k.scale) if x is not None}
        elif isinstance(kernel, SplitRows):
            read = _find_slots_read([kernel.output.term])
        else:
            read = _find_slots_read([out.term for out in kernel.outputs])
        for slot in read:
            if first.get(slot, index) >= index:
                yield f"kernel {index} reads slot {slot}, which nothing has written"


def _find_slots_read(terms: list[Term]) -> set[int]:
    """Return the slots from which terms load."""
    slots: set[int] = set()
    visited: set[int] = set()
    stack = list(terms)
    while stack:
        t = stack.pop()
        if id(t) in visited:
            continue
        visited.add(id(t))
        stack += t.args
        if t.access is not None and t.access.slot >= 0:
            slots.add(t.access.slot)
    return slots


def _check_launches(decisions: Decisions) -> Iterator[str]:
    """Yield violations: memory used before its allocation or after its release."""
    leaves = {*decisions.graph.leaf_slot.values()}
    allocated = leaves if decisions.graph.target is None else leaves | {decisions.graph.target.slot}
    for number, step in enumerate(decisions.steps):
        new = {slot for slot, _ in step.allocations}
        if new & allocated:
            yield f"launch {number} allocates {new & allocated} again"
        allocated = allocated | new
        if isinstance(step, PlannedCall):
            used = {x.slot for x in (*step.inputs, step.output)}
        else:
            used = {slot for slot, _ in step.buffers} - {slot for slot, _, _ in step.checks}
        if used - allocated:
            yield f"launch {number} uses {used - allocated}, which is not there"
        allocated = allocated - {*step.released_slots}
    for i in decisions.graph.output_nodes:
        if decisions.slot_of[i] not in allocated:
            yield f"node {i} is kept, and its memory is not there at the end"
