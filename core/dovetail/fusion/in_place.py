"""In-place plans: results of several tensors replace old values, in one launch.

A plan gives every result memory of its own. This module redirects the results that replace existing
tensors to their memory, if no launch would then read what has been overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..ir.language import Atomic, Loop, Store, Value
from ..ir.rewrite import Cloner
from .plan import Call, Plan, Step, Target

Form = dict[Hashable, int]  # a linear sum: the coefficient of each term
ONE, ROW = "one", ("index", 0)


def in_place(plan: Plan, roots: Sequence[int], targets: Sequence[Target]) -> Plan:
    """Return the plan with its roots, at the positions `roots`, written to `targets`.

    The targets' slots come right after those of leaves, in order. If that is impossible, the result
    is a plan without steps that `overlaps`.
    """
    leaves, count = targets[0].slot, len(targets)
    own = dict(plan.kept)
    slots = [own[i] for i in roots]
    refused = Plan([], plan.slots + count, (), plan.materialised, overlaps=True)
    for slot, target in zip(slots, targets, strict=True):
        if not _is_writable(plan, slot, target):
            return refused
    relocated = {slot: leaves + k for k, slot in enumerate(slots)}

    def move(slot: int) -> int:
        return relocated.get(slot, slot if slot < leaves else slot + count)

    launches = [s for s in plan.steps if isinstance(s, Step)]  # `_is_writable` excludes calls
    steps = [_relocate_step(s, relocated, move) for s in launches]
    kept_slots = tuple((i, move(s)) for i, s in plan.kept if s not in relocated)
    return Plan([*steps], plan.slots + count, kept_slots, plan.materialised)


def to_rows(plan: Plan, roots: Sequence[int], targets: Sequence[Target], at: Sequence[int]) -> Plan:
    """Return a plan as `in_place` does, whose roots go to rows of the targets that a leaf names.

    The leaf names each row once, and is in each of the slots `at`. That is possible if a launch
    that reads the leaf computes row by row.
    """
    own = dict(plan.kept)
    wanted = {own[i]: t.strides[0] for i, t in zip(roots, targets, strict=True)}
    steps: list[Step | Call] = []
    for step in plan.steps:
        new = _step_to_rows(step, wanted, at) if isinstance(step, Step) else None
        if new is None:
            return Plan([], plan.slots + len(roots), (), plan.materialised, overlaps=True)
        steps.append(new)
    return in_place(Plan(steps, plan.slots, plan.kept, plan.materialised), roots, targets)


def _step_to_rows(step: Step, wanted: Mapping[int, int], at: Sequence[int]) -> Step | None:
    """Return a step whose stores go to the named rows, or None if that is impossible."""
    kernel = step.kernel
    buffers = tuple((at[0] if slot in at else slot, offset) for slot, offset in step.buffers)
    step = replace(step, buffers=buffers)
    slots = dict(zip(kernel.buffers, step.buffers, strict=True))
    aims = {b: wanted[slot] for b, (slot, _) in slots.items() if b.access == "w" and slot in wanted}
    if not aims:
        return step
    if not at:
        return None
    loaded = [s for s in kernel.body if isinstance(s, Value) and s.op == "load"]
    row_indices = [
        v for v in loaded if slots[v.buffer] == (at[0], 0) and _is_first_axis_index(v.index)
    ]
    stores = [s for s in kernel.body if isinstance(s, Store) and s.buffer in aims]
    if not row_indices or len(stores) != len(aims):  # one is in a loop
        return None
    for s in stores:
        form = _linear_form(step, s.index)
        if form is None or form.get(ROW) != aims[s.buffer]:
            return None
    body = _RowCloner(row_indices[0], aims).block(kernel.body)
    return replace(step, kernel=kernel.with_body(body))


class _RowCloner(Cloner):
    """A cloner that stores to the row `row_index` instead of to that of the first grid index."""

    def __init__(self, row_index: Value, aims: Container[object]) -> None:
        super().__init__()
        self.row_index, self.aims = row_index, aims

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        new = super().effect(s)
        if s.buffer not in self.aims or isinstance(new, Atomic):
            return new
        index = self._substitute_row(s.index)
        self.emit(index)
        return Store(new.buffer, index, new.value, new.when)

    def _substitute_row(self, v: Value) -> Value:
        if _is_first_axis_index(v):
            return self.operand(self.row_index)
        return self.again(v, tuple(map(self._substitute_row, v.args))) if v.args else v


def _is_first_axis_index(v: Value) -> bool:
    """Return True for the index along the first axis of the grid."""
    return v.op == "index" and v.axis == 0


def _relocate_step(step: Step, relocated: Container[int], move: Callable[[int], int]) -> Step:
    return replace(
        step,
        buffers=tuple((move(slot), offset) for slot, offset in step.buffers),
        fresh=tuple((move(slot), n) for slot, n in step.fresh if slot not in relocated),
        drops=tuple(move(slot) for slot in step.drops),
    )


def _is_writable(plan: Plan, slot: int, target: Target) -> bool:
    """Return True if the launches allow a slot's result to go to the target.

    They read the target's memory before that, or only at the element that they write.
    """
    written = False
    for step in plan.steps:
        if not isinstance(step, Step) or step.checks:
            return False
        read = [s for s, _ in step.buffers]
        if slot in read and not written:
            if slot not in [s for s, _ in step.fresh] or not _reads_elementwise(step, slot, target):
                return False
            written = True
        elif written and any(s in target.overlaps for s in read):
            return False
    return written


def _reads_elementwise(step: Step, slot: int, target: Target) -> bool:
    """Return True if a launch reads only that element of the target that it writes next."""
    names = [(s, o, b.name) for (s, o), b in zip(step.buffers, step.kernel.buffers, strict=True)]
    out = [(o, name) for s, o, name in names if s == slot]
    over = [(s, o, name) for s, o, name in names if s in target.overlaps]
    if len(out) != 1 or out[0][0] or any(o or s not in target.same for s, o, _ in over):
        return False
    return not over or _reads_before_write(step, out[0][1], {name for _, _, name in over})


def _reads_before_write(step: Step, out: str, read: set[str]) -> bool:
    """Return True if each point reads these buffers only at the index that it writes next."""
    written_form: Form | None = None
    read_forms: list[Form | None] = []
    for s in step.kernel.body:
        if isinstance(s, Loop):
            return False
        if isinstance(s, Store):
            if s.buffer.name == out:
                if written_form is not None or s.when is not None:
                    return False
                written_form = _linear_form(step, s.index)
        else:
            for v in _loads(s, read):
                if written_form is not None:
                    return False
                read_forms.append(_linear_form(step, v.index))
    return written_form is not None and all(f == written_form for f in read_forms)


def _loads(v: object, read: set[str]) -> Iterator[Value]:
    if isinstance(v, Value) and v.op == "load" and v.buffer.name in read:
        yield v


def _linear_form(step: Step, index: Value) -> Form | None:
    """Return an index as a linear sum of grid indices, loaded values and 1, or None."""
    if index.op == "index":
        return {("index", index.axis): 1}
    if index.op == "const":
        return {ONE: int(index.number)}
    if index.op == "param" and index.attr in step.kernel.ints:
        return {ONE: step.ints[step.kernel.ints.index(index.attr)]}
    if index.op == "load":
        inner = _linear_form(step, index.index)
        if inner is None:
            return None
        slot = step.buffers[step.kernel.buffers.index(index.buffer)]
        return {("load", slot, frozenset(inner.items())): 1}
    if index.op not in ("add", "mul"):
        return None
    a, b = (_linear_form(step, x) for x in index.args)
    if a is None or b is None:
        return None
    if index.op == "add":
        return {k: a.get(k, 0) + b.get(k, 0) for k in (*a, *b)}
    if not a.keys() <= {ONE}:
        a, b = b, a
    return {k: n * a.get(ONE, 0) for k, n in b.items()} if a.keys() <= {ONE} else None
