"""What is true of decisions after each pass: `verify` raises where it is not.

Nothing in dovetail calls it but tests, after every pass (`testing.verified`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import InternalError
from . import cost
from .decisions import Decisions, has_own_kernels
from .groups import Group, OwnKernels, SplitRows, Term
from .plan import Call


def verify(d: Decisions, after: str) -> None:
    """Raises: InternalError, with the first rule that is broken and the decisions."""
    for rule in broken(d):
        raise InternalError(f"fusion, after {after}: {rule}", str(d))


def broken(d: Decisions) -> Iterator[str]:
    """What is wrong, in words. What a later pass decides is not there yet, and not looked at."""
    yield from _memory(d)
    for rows in d.split - {*d.graph.rows.values()}:
        yield f"no reduction has the rows {rows} that are split"
    if d.kernels:
        yield from _homes(d)
        for index, kernel in enumerate(d.kernels):
            if not isinstance(kernel, OwnKernels):
                group = kernel if isinstance(kernel, Group) else kernel.group
                yield from _group(d, index, group)
        yield from _reads(d)
    if d.steps:
        yield from _launches(d)


def _memory(d: Decisions) -> Iterator[str]:
    """What is materialised has memory, and what has to be is."""
    graph = d.graph
    for i in graph.kept - {*d.materialised}:
        yield f"node {i} was asked for or is held, and is not materialised"
    for i, e in enumerate(graph.nodes):
        if has_own_kernels(e) and i not in d.materialised:
            yield f"node {i} has kernels of its own, and is not materialised"
    if {*d.slot_of} != {*d.materialised}:
        yield "what is materialised has a slot, and nothing else has"
    own = [s for i, s in d.slot_of.items() if i not in d.takes_over]
    if len({*own, *graph.leaf_slot.values()}) < len(own) + len(graph.leaf_slot):
        yield "two values have one slot"
    for i, s in d.slot_of.items():
        if s >= d.slots or (i in d.takes_over and s != d.slot_of[d.takes_over[i]]):
            yield f"node {i} has the wrong slot {s}"
    for i, order in d.order.items():
        if i not in d.materialised or sorted(order) != [*range(len(graph.nodes[i].spec.shape))]:
            yield f"node {i} has its axes in the order {order}"


def _homes(d: Decisions) -> Iterator[str]:
    """Every materialised node is written by one kernel, after what it is an update of."""
    written: dict[int, int] = {}
    for index, kernel in enumerate(d.kernels):
        for i in _outputs(kernel):
            if i in written:
                yield f"node {i} is written by the kernels {written[i]} and {index}"
            written[i] = index
    if written != d.home or {*written} != {*d.materialised}:
        yield "the kernels write other nodes than those that are materialised"
    if d.graph.target is not None and written.get(d.graph.roots[0]) != len(d.kernels) - 1:
        yield "the target is not written last"


def _outputs(kernel: Group | SplitRows | OwnKernels) -> list[int]:
    if isinstance(kernel, OwnKernels):
        return [kernel.node]
    return (
        [kernel.output.node] if isinstance(kernel, SplitRows) else [o.node for o in kernel.outputs]
    )


def _group(d: Decisions, index: int, group: Group) -> Iterator[str]:
    """A kernel has a domain that fits what it writes, and no more in it than compilers take."""
    if group.index != index:
        yield f"kernel {index} counts as number {group.index}"
    for a in group.accesses:
        if len(a.strides) != len(group.domain.full):
            yield f"kernel {index} has an access with strides {a.strides} over {group.domain}"
    for out in group.outputs:
        if group.domain.path(d.graph.nodes[out.node].spec.shape) is None:
            yield f"node {out.node} does not fit the domain of kernel {index}"
        if out.access.slot != d.slot_of[out.node] or out.access not in group.accesses:
            yield f"node {out.node} is written where nobody looks for it"
    if group.size > cost.NODE_LIMIT and len(group.outputs) > 1:
        yield f"kernel {index} has {group.size} values"
    if not group.by_division and not group.row_is_coalescible() and group.outputs:
        yield f"no single stride walks the rows of kernel {index}"


def _reads(d: Decisions) -> Iterator[str]:
    """What a kernel reads is in memory: of a leaf, or written by an earlier kernel."""
    first: dict[int, int] = dict.fromkeys(d.graph.leaf_slot.values(), -1)  # slot -> its writer
    for i, home in d.home.items():
        first[d.slot_of[i]] = min(home, first.get(d.slot_of[i], home))
    for index, kernel in enumerate(d.kernels):
        if isinstance(kernel, OwnKernels):
            read = {x.slot for x in kernel.inputs}
        elif isinstance(kernel, SplitRows):
            read = _loaded([kernel.output.term])
        else:
            read = _loaded([out.term for out in kernel.outputs])
        for slot in read:
            if first.get(slot, index) >= index:
                yield f"kernel {index} reads slot {slot}, which nothing has written"


def _loaded(terms: list[Term]) -> set[int]:
    """The slots from which terms load."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(terms)
    while stack:
        t = stack.pop()
        if id(t) in seen:
            continue
        seen.add(id(t))
        stack += t.args
        if t.access is not None and t.access.slot >= 0:
            found.add(t.access.slot)
    return found


def _launches(d: Decisions) -> Iterator[str]:
    """Launches use memory that is there: allocated once, written before it is read, not dropped."""
    leaves = {*d.graph.leaf_slot.values()}
    there = leaves if d.graph.target is None else leaves | {d.graph.target.slot}
    for number, step in enumerate(d.steps):
        new = {slot for slot, _ in step.fresh}
        if new & there:
            yield f"launch {number} allocates {new & there} again"
        there = there | new
        if isinstance(step, Call):
            used = {x.slot for x in (*step.inputs, step.output)}
        else:
            used = {slot for slot, _ in step.buffers} - {slot for slot, _, _ in step.checks}
        if used - there:
            yield f"launch {number} uses {used - there}, which is not there"
        there = there - {*step.drops}
    for i in d.graph.kept:
        if d.slot_of[i] not in there:
            yield f"node {i} is kept, and its memory is not there at the end"
