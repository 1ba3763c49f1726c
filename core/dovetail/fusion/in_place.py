"""Plans that put results where old values were: of several tensors, in one launch.

A plan gives every result memory of its own. Here those results of it that are to replace what is
in memory already go there instead, where no launch would then read what has been overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

from ..loops.builder import Kernel
from ..loops.language import Loop, Store, Value
from .plan import Plan, Step, Target


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
    return not over or _alike(step.kernel, out[0][1], {name for _, _, name in over})


def _alike(kernel: Kernel, out: str, read: set[str]) -> bool:
    """Whether each point reads these buffers, if at all, before it writes `out` at that place."""
    place: Value | None = None
    found: list[Value] = []
    for s in kernel.body:
        if isinstance(s, Loop):
            return False
        if isinstance(s, Store):
            if s.buffer.name == out:
                if place is not None or s.when is not None:
                    return False
                place = s.index
        else:
            for v in _loads(s, read):
                if place is not None:
                    return False
                found.append(v)
    return place is not None and all(_is_same(v.index, place) for v in found)


def _loads(v: object, read: set[str]) -> Iterator[Value]:
    if isinstance(v, Value) and v.op == "load" and v.buffer.name in read:
        yield v


def _is_same(a: Value, b: Value) -> bool:
    """Whether two places are computed alike."""
    return a is b or (
        a.op == b.op and a.attr == b.attr and a.dtype is b.dtype and len(a.args) == len(b.args)
        and all(map(_is_same, a.args, b.args))
    )  # fmt: skip
