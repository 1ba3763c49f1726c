"""Devices whose kernels have few buffers: how many one has, and what is materialised to need fewer.

Nothing here is asked where there is no limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DeviceError
from .decisions import Decisions, operands
from .groups import Group
from .reasons import Kind, Reason
from .terms import Draft, Needs

Reads = frozenset[int | tuple[int, int]]  # slots, and (node, number of the index) of error cells


def count(group: Group) -> int:
    """How many buffers a kernel has: its memory, and a cell for each index that it checks."""
    memory = {a.slot for a in group.accesses if a.slot >= 0}
    found = [t.gathered for t in group.memo.values() if t.gathered is not None]
    return len(memory) + sum({g.node: len(g.asked) for g in found}.values())


def has_too_many(d: Decisions, group: Group) -> bool:
    """Whether a kernel has more buffers than it may."""
    most = d.graph.max_buffers
    return most > 0 and count(group) > most


def needed(d: Decisions, draft: Draft, writes: int) -> Needs | None:
    """What has to be materialised first, so that a new kernel has no more buffers than it may.

    It writes as many as `writes`, which are not in its accesses yet. Of the first node that reads
    too many it is the operand that reads most: a long sum becomes sums of as many as fit.
    Raises: DeviceError where all operands are in memory already.
    """
    most = d.graph.max_buffers
    if not most or count(draft.group) + writes <= most:
        return None
    reads: dict[int, Reads] = {}
    for i in sorted(draft.seen | {draft.node}):
        e = d.graph.nodes[i]
        if i in d.graph.leaf_slot or (i in d.materialised and i != draft.node):
            reads[i] = frozenset((_slot(d, i),))
            continue
        args = [d.graph.index[a] for a in operands(e)]
        parts = [reads[j] if j in reads else frozenset((_slot(d, _whole(d, j)),)) for j in args]
        asked = e.attrs[3] if e.op is not None and e.op.kind == "gather" else None
        cells = frozenset((i, k) for k in range(len(asked or ())))
        reads[i] = cells.union(*parts)
        if len(reads[i]) + writes > most:
            return _cut(d, i, args, parts, len(reads[i]) + writes)
    return None


def _cut(d: Decisions, i: int, args: Sequence[int], parts: Sequence[Reads], count: int) -> Needs:
    """The operand of a node that reads most."""
    _, j = max(zip(map(len, parts), args, strict=True))
    if max(map(len, parts)) > 1:
        return Needs(_whole(d, j), Reason(Kind.TOO_MANY_BUFFERS))
    e = d.graph.nodes[i]
    what = "write" if e.op is None else e.op.name
    raise DeviceError(
        f"{what} of {len(args)} tensors needs a kernel of {count} buffers, and "
        f"{e.spec.device} takes no more than {d.graph.max_buffers}; "
        "do the work in several steps, or on another device"
    )


def _whole(d: Decisions, i: int) -> int:
    """What a node is a view of, unless that is larger and not in memory."""
    view = d.graph.view_of(i)
    while view is not None and i not in d.materialised:
        source, _ = view
        larger = d.graph.nodes[source].spec.size > d.graph.nodes[i].spec.size
        if larger and not _is_view_of_memory(d, source):
            return i
        i, view = source, d.graph.view_of(source)
    return i


def _is_view_of_memory(d: Decisions, i: int) -> bool:
    view = d.graph.view_of(i)
    while view is not None and i not in d.materialised:
        i, view = view[0], d.graph.view_of(view[0])
    return i in d.materialised or i in d.graph.leaf_slot


def _slot(d: Decisions, i: int) -> int:
    """The memory of a node that is in memory."""
    return d.graph.leaf_slot[i] if i in d.graph.leaf_slot else d.slot_of[i]
