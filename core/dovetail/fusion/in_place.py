"""In-place plans: results of several tensors replace old values, in one launch.

A plan gives every result memory of its own. This module redirects the results that replace existing
tensors to their memory, if no launch would then read what has been overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..ir.language import Atomic, Loop, Store, Value
from ..ir.rewrite import Cloner
from .plan import Plan, PlannedCall, PlannedLaunch, WriteTarget

LinearForm = dict[Hashable, int]  # a linear sum: the coefficient of each term
CONSTANT_TERM, ROW_TERM = "one", ("index", 0)


def redirect_to_targets(plan: Plan, roots: Sequence[int], targets: Sequence[WriteTarget]) -> Plan:
    """Return the plan with `roots` written to `targets`, or one that `target_overlaps`.

    The targets' slots come right after those of leaves, in order. If that is impossible, the result
    is a plan without steps that `target_overlaps`.
    """
    leaves, count = targets[0].slot, len(targets)
    slot_by_node = dict(plan.output_slots)
    slots = [slot_by_node[i] for i in roots]
    refused = Plan([], plan.slot_count + count, (), plan.materialised, target_overlaps=True)
    for slot, target in zip(slots, targets, strict=True):
        if not _is_writable(plan, slot, target):
            return refused
    relocated = {slot: leaves + k for k, slot in enumerate(slots)}

    def move(slot: int) -> int:
        """Return the slot in the new plan: a target's, a leaf's, or one behind the targets."""
        return relocated.get(slot, slot if slot < leaves else slot + count)

    launches = [
        s for s in plan.steps if isinstance(s, PlannedLaunch)
    ]  # `_is_writable` excludes calls
    steps = [_relocate_step(s, relocated, move) for s in launches]
    kept_slots = tuple((i, move(s)) for i, s in plan.output_slots if s not in relocated)
    return Plan([*steps], plan.slot_count + count, kept_slots, plan.materialised)


def redirect_to_rows(
    plan: Plan, roots: Sequence[int], targets: Sequence[WriteTarget], leaf_slots: Sequence[int]
) -> Plan:
    """Return the plan with roots written to rows that a leaf names, or a refused one.

    The leaf names each row once, and is in each of the slots `leaf_slots`. That is possible if a
    launch that reads the leaf computes row by row. A refused plan has no steps, and
    `target_overlaps` is True.
    """
    slot_by_node = dict(plan.output_slots)
    row_strides = {slot_by_node[i]: t.strides[0] for i, t in zip(roots, targets, strict=True)}
    steps: list[PlannedLaunch | PlannedCall] = []
    for step in plan.steps:
        new = (
            _redirect_step_to_rows(step, row_strides, leaf_slots)
            if isinstance(step, PlannedLaunch)
            else None
        )
        if new is None:
            return Plan(
                [], plan.slot_count + len(roots), (), plan.materialised, target_overlaps=True
            )
        steps.append(new)
    return redirect_to_targets(
        Plan(steps, plan.slot_count, plan.output_slots, plan.materialised), roots, targets
    )


def _redirect_step_to_rows(
    step: PlannedLaunch, row_strides: Mapping[int, int], leaf_slots: Sequence[int]
) -> PlannedLaunch | None:
    """Return a launch whose stores go to the named rows, or None if that is impossible."""
    kernel = step.kernel
    buffers = tuple(
        (leaf_slots[0] if slot in leaf_slots else slot, offset) for slot, offset in step.buffers
    )
    step = replace(step, buffers=buffers)
    slots = dict(zip(kernel.buffers, step.buffers, strict=True))
    aims = {
        b: row_strides[slot]
        for b, (slot, _) in slots.items()
        if b.access == "w" and slot in row_strides
    }
    if not aims:
        return step
    if not leaf_slots:
        return None
    loaded = [s for s in kernel.body if isinstance(s, Value) and s.op == "load"]
    row_indices = [
        v for v in loaded if slots[v.buffer] == (leaf_slots[0], 0) and _is_first_axis_index(v.index)
    ]
    stores = [s for s in kernel.body if isinstance(s, Store) and s.buffer in aims]
    if not row_indices or len(stores) != len(aims):  # one is in a loop
        return None
    for s in stores:
        form = _find_linear_form(step, s.index)
        if form is None or form.get(ROW_TERM) != aims[s.buffer]:
            return None
    body = _RowCloner(row_indices[0], aims).block(kernel.body)
    return replace(step, kernel=kernel.with_body(body))


class _RowCloner(Cloner):
    """A cloner that stores to the row `row_index` instead of to that of the first grid index."""

    def __init__(self, row_index: Value, row_buffers: Container[object]) -> None:
        super().__init__()
        self.row_index, self.row_buffers = row_index, row_buffers

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        """Clone a store; in row buffers, replace the first grid index by the row index."""
        new = super().effect(s)
        if s.buffer not in self.row_buffers or isinstance(new, Atomic):
            return new
        index = self._substitute_row(s.index)
        self.emit(index)
        return Store(new.buffer, index, new.value, new.when)

    def _substitute_row(self, v: Value) -> Value:
        """Return an index with the first grid index replaced by the row index."""
        if _is_first_axis_index(v):
            return self.operand(self.row_index)
        return self.copy_with_args(v, tuple(map(self._substitute_row, v.args))) if v.args else v


def _is_first_axis_index(v: Value) -> bool:
    """Return True for the index along the first axis of the grid."""
    return v.op == "index" and v.axis == 0


def _relocate_step(
    step: PlannedLaunch, relocated: Container[int], renumber_slot: Callable[[int], int]
) -> PlannedLaunch:
    """Return a launch with other slots, without allocations of relocated ones."""
    return replace(
        step,
        buffers=tuple((renumber_slot(slot), offset) for slot, offset in step.buffers),
        allocations=tuple(
            (renumber_slot(slot), n) for slot, n in step.allocations if slot not in relocated
        ),
        released_slots=tuple(renumber_slot(slot) for slot in step.released_slots),
    )


def _is_writable(plan: Plan, slot: int, target: WriteTarget) -> bool:
    """Return True if the launches allow a slot's result to go to the target.

    They read the target's memory before that, or only at the element that they write.
    """
    written = False
    for step in plan.steps:
        if not isinstance(step, PlannedLaunch) or step.checks:
            return False
        read = [s for s, _ in step.buffers]
        if slot in read and not written:
            if slot not in [s for s, _ in step.allocations] or not _reads_elementwise(
                step, slot, target
            ):
                return False
            written = True
        elif written and any(s in target.overlapping_slots for s in read):
            return False
    return written


def _reads_elementwise(step: PlannedLaunch, slot: int, target: WriteTarget) -> bool:
    """Return True if a launch reads only that element of the target that it writes next."""
    names = [(s, o, b.name) for (s, o), b in zip(step.buffers, step.kernel.buffers, strict=True)]
    out = [(o, name) for s, o, name in names if s == slot]
    over = [(s, o, name) for s, o, name in names if s in target.overlapping_slots]
    if len(out) != 1 or out[0][0] or any(o or s not in target.identical_slots for s, o, _ in over):
        return False
    return not over or _reads_before_write(step, out[0][1], {name for _, _, name in over})


def _reads_before_write(step: PlannedLaunch, out: str, read: set[str]) -> bool:
    """Return True if each point reads these buffers only at the index that it writes next."""
    written_form: LinearForm | None = None
    read_forms: list[LinearForm | None] = []
    for s in step.kernel.body:
        if isinstance(s, Loop):
            return False
        if isinstance(s, Store):
            if s.buffer.name == out:
                if written_form is not None or s.when is not None:
                    return False
                written_form = _find_linear_form(step, s.index)
        else:
            for v in _find_loads(s, read):
                if written_form is not None:
                    return False
                read_forms.append(_find_linear_form(step, v.index))
    return written_form is not None and all(f == written_form for f in read_forms)


def _find_loads(v: object, read: set[str]) -> Iterator[Value]:
    """Yield the value if it is a load of one of the named buffers."""
    if isinstance(v, Value) and v.op == "load" and v.buffer.name in read:
        yield v


def _find_linear_form(step: PlannedLaunch, index: Value) -> LinearForm | None:
    """Return an index as a linear sum of grid indices, loaded values and 1, or None."""
    if index.op == "index":
        return {("index", index.axis): 1}
    if index.op == "const":
        return {CONSTANT_TERM: int(index.number)}
    if index.op == "param" and index.attr in step.kernel.ints:
        return {CONSTANT_TERM: step.ints[step.kernel.ints.index(index.attr)]}
    if index.op == "load":
        inner = _find_linear_form(step, index.index)
        if inner is None:
            return None
        slot = step.buffers[step.kernel.buffers.index(index.buffer)]
        return {("load", slot, frozenset(inner.items())): 1}
    if index.op not in ("add", "mul"):
        return None
    a, b = (_find_linear_form(step, x) for x in index.args)
    if a is None or b is None:
        return None
    if index.op == "add":
        return {k: a.get(k, 0) + b.get(k, 0) for k in (*a, *b)}
    if not a.keys() <= {CONSTANT_TERM}:
        a, b = b, a
    return (
        {k: n * a.get(CONSTANT_TERM, 0) for k, n in b.items()}
        if a.keys() <= {CONSTANT_TERM}
        else None
    )
