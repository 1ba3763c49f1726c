"""Plans that put results where old values were: of several tensors, in one launch.

A plan gives every result memory of its own. Here those results of it that are to replace what is
in memory already go there instead, where no launch would then read what has been overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..loops.language import Atomic, Loop, Store, Value
from ..loops.rewrite import Cloner
from .plan import Call, Plan, Step, Target

Form = dict[Hashable, int]  # a sum: how often it has each of these
ONE, ROW = "one", ("index", 0)


def in_place(plan: Plan, roots: Sequence[int], targets: Sequence[Target]) -> Plan:
    """The plan with its roots, in the positions of `roots`, written where `targets` are.

    Their slots come right after those of leaves, in order. A plan without steps that `overlaps`
    comes back where that cannot be.
    """
    leaves, count = targets[0].slot, len(targets)
    own = dict(plan.kept)
    slots = [own[i] for i in roots]
    refused = Plan([], plan.slots + count, (), plan.materialised, overlaps=True)
    for slot, target in zip(slots, targets, strict=True):
        if not _is_writable(plan, slot, target):
            return refused
    moved = {slot: leaves + k for k, slot in enumerate(slots)}

    def move(slot: int) -> int:
        return moved.get(slot, slot if slot < leaves else slot + count)

    steps = [_moved(s, moved, move) for s in plan.steps if isinstance(s, Step)]  # all of them are
    kept = tuple((i, move(s)) for i, s in plan.kept if s not in moved)
    return Plan([*steps], plan.slots + count, kept, plan.materialised)


def to_rows(plan: Plan, roots: Sequence[int], targets: Sequence[Target], at: Sequence[int]) -> Plan:
    """As `in_place`, of roots that go to rows of the targets: those that a leaf names, each once.

    It is in each of the slots `at`. That can be where a launch that reads it computes row by row.
    """
    own = dict(plan.kept)
    wanted = {own[i]: t.strides[0] for i, t in zip(roots, targets, strict=True)}
    steps: list[Step | Call] = []
    for step in plan.steps:
        new = _to_rows(step, wanted, at) if isinstance(step, Step) else None
        if new is None:
            return Plan([], plan.slots + len(roots), (), plan.materialised, overlaps=True)
        steps.append(new)
    return in_place(Plan(steps, plan.slots, plan.kept, plan.materialised), roots, targets)


def _to_rows(step: Step, wanted: Mapping[int, int], at: Sequence[int]) -> Step | None:
    """A step of such a plan; None where there is none."""
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
    places = [v for v in loaded if slots[v.buffer] == (at[0], 0) and _is_first(v.index)]
    stores = [s for s in kernel.body if isinstance(s, Store) and s.buffer in aims]
    if not places or len(stores) != len(aims):  # one is in a loop
        return None
    for s in stores:
        form = _form(step, s.index)
        if form is None or form.get(ROW) != aims[s.buffer]:
            return None
    return replace(step, kernel=kernel.with_body(_ToRows(places[0], aims).block(kernel.body)))


class _ToRows(Cloner):
    """Stores to the row `place` what was for the row that is the index along the first axis."""

    def __init__(self, place: Value, aims: Container[object]) -> None:
        super().__init__()
        self.place, self.aims = place, aims

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        new = super().effect(s)
        if s.buffer not in self.aims or isinstance(new, Atomic):
            return new
        index = self._turned(s.index)
        self.emit(index)
        return Store(new.buffer, index, new.value, new.when)

    def _turned(self, v: Value) -> Value:
        if _is_first(v):
            return self.operand(self.place)
        return self.again(v, tuple(map(self._turned, v.args))) if v.args else v


def _is_first(v: Value) -> bool:
    """Whether it is the index along the first axis of the grid."""
    return v.op == "index" and v.axis == 0


def _moved(step: Step, moved: Container[int], move: Callable[[int], int]) -> Step:
    return replace(
        step,
        buffers=tuple((move(slot), offset) for slot, offset in step.buffers),
        fresh=tuple((move(slot), n) for slot, n in step.fresh if slot not in moved),
        drops=tuple(move(slot) for slot in step.drops),
    )


def _is_writable(plan: Plan, slot: int, target: Target) -> bool:
    """Whether what goes to a slot may go to the target: launches read that before, or there."""
    written = False
    for step in plan.steps:
        if not isinstance(step, Step) or step.checks:
            return False
        read = [s for s, _ in step.buffers]
        if slot in read and not written:
            if slot not in [s for s, _ in step.fresh] or not _by_elements(step, slot, target):
                return False
            written = True
        elif written and any(s in target.overlaps for s in read):
            return False
    return written


def _by_elements(step: Step, slot: int, target: Target) -> bool:
    """Whether a launch reads of the target's memory only the element that it writes next."""
    names = [(s, o, b.name) for (s, o), b in zip(step.buffers, step.kernel.buffers, strict=True)]
    out = [(o, name) for s, o, name in names if s == slot]
    over = [(s, o, name) for s, o, name in names if s in target.overlaps]
    if len(out) != 1 or out[0][0] or any(o or s not in target.same for s, o, _ in over):
        return False
    return not over or _alike(step, out[0][1], {name for _, _, name in over})


def _alike(step: Step, out: str, read: set[str]) -> bool:
    """Whether each point reads these buffers, if at all, before it writes `out` at that place."""
    place: Form | None = None
    found: list[Form | None] = []
    for s in step.kernel.body:
        if isinstance(s, Loop):
            return False
        if isinstance(s, Store):
            if s.buffer.name == out:
                if place is not None or s.when is not None:
                    return False
                place = _form(step, s.index)
        else:
            for v in _loads(s, read):
                if place is not None:
                    return False
                found.append(_form(step, v.index))
    return place is not None and all(f == place for f in found)


def _loads(v: object, read: set[str]) -> Iterator[Value]:
    if isinstance(v, Value) and v.op == "load" and v.buffer.name in read:
        yield v


def _form(step: Step, place: Value) -> Form | None:
    """A place as a sum: how often it has each index of the grid, each value that is loaded, and 1.

    None where it is no such sum.
    """
    if place.op == "index":
        return {("index", place.axis): 1}
    if place.op == "const":
        return {ONE: int(place.number)}
    if place.op == "param" and place.attr in step.kernel.ints:
        return {ONE: step.ints[step.kernel.ints.index(place.attr)]}
    if place.op == "load":
        inner = _form(step, place.index)
        if inner is None:
            return None
        slot = step.buffers[step.kernel.buffers.index(place.buffer)]
        return {("load", slot, frozenset(inner.items())): 1}
    if place.op not in ("add", "mul"):
        return None
    a, b = (_form(step, x) for x in place.args)
    if a is None or b is None:
        return None
    if place.op == "add":
        return {k: a.get(k, 0) + b.get(k, 0) for k in (*a, *b)}
    if not a.keys() <= {ONE}:
        a, b = b, a
    return {k: n * a.get(ONE, 0) for k, n in b.items()} if a.keys() <= {ONE} else None
