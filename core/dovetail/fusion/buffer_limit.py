"""The limits on a kernel's buffers: counts them, and materialises operands to need fewer.

One is the device's. The other bounds the time to compile a kernel, which grows with its buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DeviceError
from .decisions import Decisions, operands
from .groups import FusionGroup
from .reasons import Reason, ReasonKind
from .terms import NodeDraft, Prerequisite

# A kernel takes no node that makes it larger; one that needs more is computed in parts, where its
# operands permit. Four tensors of an Adam step need 28.
BUFFERS_MAX = 32

Reads = frozenset[int | tuple[int, int]]  # slots, and error cells as (node, number of the index)


def count_buffers(group: FusionGroup) -> int:
    """Return the number of a kernel's buffers: its slots, and a cell for each checked index."""
    memory = {a.slot for a in group.accesses if a.slot >= 0}
    gathers = [t.gather_axes for t in group.terms.values() if t.gather_axes is not None]
    return len(memory) + sum({g.node: len(g.purposes) for g in gathers}.values())


def exceeds_buffer_limit(decisions: Decisions, group: FusionGroup) -> bool:
    """Return True if a kernel has more buffers than BUFFERS_MAX, or the device allows."""
    return count_buffers(group) > min(decisions.graph.max_buffers or BUFFERS_MAX, BUFFERS_MAX)


def find_buffer_needs(decisions: Decisions, draft: NodeDraft, writes: int) -> Prerequisite | None:
    """Return the operand to materialise to keep the buffer limit, or None if it is kept.

    writes: how many buffers the kernel writes; these are not in its accesses yet.

    Of the first node that reads too many buffers it is the operand that reads most: a long sum
    becomes sums of as many operands as fit. If all operands are in memory already, the device's
    limit alone is kept. Raises: DeviceError if it cannot be.
    """
    buffers_max = min(decisions.graph.max_buffers or BUFFERS_MAX, BUFFERS_MAX)
    if count_buffers(draft.group) + writes <= buffers_max:
        return None
    reads: dict[int, Reads] = {}
    for i in sorted(draft.nodes | {draft.node}):
        expr = decisions.graph.nodes[i]
        if i in decisions.graph.leaf_slot or (i in decisions.materialised and i != draft.node):
            reads[i] = _find_memory_reads(decisions, i)
            continue
        args = [decisions.graph.index[a] for a in operands(expr)]
        operand_reads = [
            reads[j] if j in reads else _find_memory_reads(decisions, _find_source(decisions, j))
            for j in args
        ]
        index_purposes = expr.attrs[3] if expr.op is not None and expr.op.kind == "gather" else None
        cells = frozenset((i, k) for k in range(len(index_purposes or ())))
        reads[i] = cells.union(*operand_reads)
        if len(reads[i]) + writes > buffers_max:
            return _need_largest_operand(decisions, i, args, operand_reads, len(reads[i]) + writes)
    return None


def _need_largest_operand(
    decisions: Decisions, i: int, args: Sequence[int], operand_reads: Sequence[Reads], count: int
) -> Prerequisite | None:
    """Return the need for the operand with most buffers, or None if all have one.

    Raises: DeviceError if all have one, and these are more than the device takes.
    """
    _, j = max(zip(map(len, operand_reads), args, strict=True))
    if max(map(len, operand_reads)) > 1:
        return Prerequisite(_find_source(decisions, j), Reason(ReasonKind.TOO_MANY_BUFFERS))
    if not 0 < decisions.graph.max_buffers < count:
        return None
    expr = decisions.graph.nodes[i]
    op_name = "write" if expr.op is None else expr.op.name
    raise DeviceError(
        f"{op_name} of {len(args)} tensors needs a kernel with {count} buffers, and "
        f"{expr.spec.device} allows at most {decisions.graph.max_buffers}; "
        "split the work into several steps, or use another device"
    )


def _find_source(decisions: Decisions, i: int) -> int:
    """Return the node at the end of a chain of views, or the view before a large pending one.

    A node that is larger than its view, and not in memory, is not materialised for it.
    """
    view = decisions.graph.view_of(i)
    while view is not None and i not in decisions.materialised:
        source, _ = view
        larger = decisions.graph.nodes[source].spec.size > decisions.graph.nodes[i].spec.size
        if larger and not _is_view_of_memory(decisions, source):
            return i
        i, view = source, decisions.graph.view_of(source)
    return i


def _is_view_of_memory(decisions: Decisions, i: int) -> bool:
    """Return True if a node is in memory, or a view of one that is."""
    view = decisions.graph.view_of(i)
    while view is not None and i not in decisions.materialised:
        i, view = view[0], decisions.graph.view_of(view[0])
    return i in decisions.materialised or i in decisions.graph.leaf_slot


def _find_memory_reads(decisions: Decisions, i: int) -> Reads:
    """Return the slots that a node reads as memory: its own if it is a leaf or materialised.

    Others are operands of a concatenation that lie outside of the view that the kernel reads.
    """
    slot = decisions.graph.leaf_slot.get(i, decisions.slot_of.get(i))
    return frozenset(() if slot is None else (slot,))
