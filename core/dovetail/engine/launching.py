"""Bound plans, and the launch of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..backend.faults import PROMPT, WIDTH, Asked, out_of_range
from ..backend.interface import Launch, LibraryCall, StridedOperand
from ..dtypes import DType
from ..errors import OutOfMemoryError
from ..fusion.plan import Call, Operand, Plan, Step
from ..graph.expr import Expr, settle
from ..layout import Shape
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import storage_over
from ..plugins.blame import blame
from ..plugins.opened import Opened
from .events import counters

Slots: TypeAlias = list[Any]  # handle and byte offset of each slot
Number: TypeAlias = float | int | bool
Part: TypeAlias = tuple[int, int, Shape, Shape, DType]  # slot, byte offset, shape, strides


# --- what is launched -----------------------------------------------------------------------------


class Bound:
    """What is to be done: a launch, or a call."""

    __slots__ = ("drops", "fresh", "offsets", "picked", "run")

    fresh: tuple[tuple[int, int], ...]  # slots that get memory before it, and how many bytes
    drops: tuple[int, ...]  # slots that nobody needs after it
    run: Launch | None  # None: a routine that is not made ready
    picked: tuple[int, ...]  # which of all handles and offsets are arguments
    offsets: tuple[tuple[int, int], ...]  # of arguments: static ones, that are added

    def __init__(
        self, step: Step | Call, run: Launch | None, buffers: Sequence[tuple[int, int]]
    ) -> None:
        """`buffers`: slot and byte offset of each."""
        self.fresh, self.drops, self.run = step.fresh, step.drops, run
        self.picked = tuple([k for slot, _ in buffers for k in (2 * slot, 2 * slot + 1)])
        self.offsets = tuple((2 * k + 1, o) for k, (_, o) in enumerate(buffers) if o)


class BoundStep(Bound):
    """A step that can be launched."""

    __slots__ = ("all_scalars", "checks", "empty", "scalars", "step", "written")

    step: Step
    run: Launch
    scalars: tuple[int, ...]
    all_scalars: bool  # those are all of them, in order
    empty: bool  # nothing to do
    checks: tuple[tuple[int, int, Asked], ...]  # error cells: slot, node, for what
    written: tuple[int, ...]  # which buffers are written, without error cells

    def __init__(self, step: Step, scalars: int, run: Launch) -> None:
        super().__init__(step, run, step.buffers)
        self.step, self.scalars = step, step.scalars
        self.all_scalars = step.scalars == tuple(range(scalars))
        self.empty = 0 in step.grid
        self.checks = () if self.empty else step.checks
        cells = {slot for slot, _, _ in step.checks}
        buffers = enumerate(zip(step.buffers, step.kernel.buffers, strict=True))
        self.written = tuple(
            [k for k, ((slot, _), b) in buffers if b.access != "r" and slot not in cells]
        )


class BoundCall(Bound):
    """A vendor's routine."""

    __slots__ = ("call", "inputs", "output", "routine")

    call: Call
    inputs: tuple[Part, ...]
    output: Part
    routine: LibraryCall

    def __init__(self, opened: Opened, call: Call) -> None:
        parts = [_operand_part(p) for p in (*call.inputs, call.output)]
        given = [(None, 0, shape, strides, dtype) for _, _, shape, strides, dtype in parts]
        self.routine = opened.library_calls[call.op.name, call.inputs[0].dtype]
        run = opened.backend.bind_call(self.routine, given[:-1], given[-1])
        super().__init__(call, run, [(slot, start) for slot, start, *_ in parts])
        self.call, self.inputs, self.output = call, tuple(parts[:-1]), parts[-1]


def _operand_part(p: Operand) -> Part:
    return p.slot, p.view.offset * p.dtype.itemsize, p.view.shape, p.view.strides, p.dtype


class BoundPlan:
    """A plan whose steps can be launched."""

    __slots__ = ("blank", "checks", "guarded", "kept", "none", "plan", "steps")

    plan: Plan
    steps: list[Bound]
    kept: tuple[tuple[int, int], ...]
    none: list[DataPtr | None]  # None for each slot
    blank: list[object]  # handle and offset of each slot, where nothing is in memory
    checks: int  # the most error cells of a step
    guarded: bool  # whether guards know it

    def is_prompt(self, opened: Opened, waits: bool) -> bool:
        """Whether all is known of it when its launches return, if that is waited for."""
        if self.checks == 0:
            return True
        return waits and self.checks <= PROMPT and opened.faults.prompt() is not None

    def __init__(self, plan: Plan, steps: list[Bound]) -> None:
        self.plan, self.steps, self.kept = plan, steps, plan.kept
        self.none = [None] * plan.slots
        self.blank = [None, 0] * plan.slots
        self.checks = max([len(s.checks) for s in steps if isinstance(s, BoundStep)], default=0)
        self.guarded = False


# --- launches -------------------------------------------------------------------------------------


def addresses(plan: BoundPlan, leaves: Sequence[Expr], target: Expr | None) -> Slots:
    """Handle and byte offset of each slot, as far as that is in memory when the plan starts."""
    at: Slots = plan.blank[:]
    k = 0
    for e in leaves:
        place(at, k, e)
        k += 2
    if target is not None:
        place(at, k, target)
    return at


def place(at: Slots, k: int, e: Expr) -> None:
    """Puts handle and byte offset of a leaf there."""
    ptr = e.storage.ptr
    at[k] = ptr.address()
    at[k + 1] = ptr.offset + e.offset * e.spec.itemsize if e.offset else ptr.offset


def launch(
    opened: Opened,
    plan: BoundPlan,
    nodes: Sequence[Expr],
    leaves: Sequence[Expr],
    numbers: Sequence[Number],
    target: Expr | None,
    stream: StreamHandle,
) -> None:
    """Runs a plan that is prompt; the nodes that it keeps are leaves afterwards.

    Raises: IndexOutOfRange, before anything is written.
    """
    if opened.streams:
        opened.share(stream, [e.storage for e in (*leaves, *([] if target is None else [target]))])
    at = addresses(plan, leaves, target)
    keep = plan.none[:]
    if opened.batches and len(plan.steps) > 1:
        together(opened, plan, at, keep, nodes, numbers, stream)
    else:
        in_turn(opened, plan, at, keep, nodes, numbers, stream)
    for i, slot in plan.kept:
        kept = keep[slot]
        if kept is not None:  # None: it went into the target
            settle(nodes[i], storage_over(kept, opened.device))


def in_turn(
    opened: Opened,
    plan: BoundPlan,
    at: Slots,
    keep: list[DataPtr | None],
    nodes: Sequence[Expr],
    numbers: Sequence[Number],
    stream: StreamHandle,
) -> None:
    """The steps of a plan, one after the other."""
    allocate = opened.allocate
    for step in plan.steps:
        for slot, nbytes in step.fresh:
            ptr = allocate(nbytes, stream)
            keep[slot] = ptr
            at[2 * slot] = ptr.address()
            at[2 * slot + 1] = ptr.offset
        if isinstance(step, BoundStep):
            if step.checks:
                run_checked(opened, step, at, nodes, numbers, stream)
            else:
                run(opened, step, at, numbers, stream)
        elif isinstance(step, BoundCall):
            call(opened, step, at, stream)
        for slot in step.drops:
            keep[slot] = None


def together(
    opened: Opened,
    plan: BoundPlan,
    at: Slots,
    keep: list[DataPtr | None],
    nodes: Sequence[Expr],
    numbers: Sequence[Number],
    stream: StreamHandle,
) -> None:
    """The steps of a plan, launches that follow each other in one piece.

    What they need no more is kept until they are queued: whoever got it could write there before.
    """
    batch = Batch(opened, keep, stream)
    for step in plan.steps:
        for slot, nbytes in step.fresh:
            ptr = batch.allocate(nbytes)
            keep[slot] = ptr
            at[2 * slot] = ptr.address()
            at[2 * slot + 1] = ptr.offset
        if isinstance(step, BoundStep) and not step.checks:
            batch.add(step, at, numbers)
        else:
            batch.flush()
            if isinstance(step, BoundStep):
                run_checked(opened, step, at, nodes, numbers, stream)
            elif isinstance(step, BoundCall):
                call(opened, step, at, stream)
        batch.dropped += step.drops
    batch.flush()


class Batch:
    """Launches that wait to be given to `Backend.launch_all`, and slots that go with them."""

    __slots__ = ("dropped", "keep", "opened", "steps", "stream", "waiting")

    def __init__(self, opened: Opened, keep: list[DataPtr | None], stream: StreamHandle) -> None:
        self.opened, self.keep, self.stream = opened, keep, stream
        self.waiting: list[tuple[Launch, tuple[Any, ...], Sequence[Number]]] = []
        self.steps: list[BoundStep] = []
        self.dropped: list[int] = []

    def allocate(self, nbytes: int) -> DataPtr:
        """Memory; where there is no more, after launching what waits, which then gives some up."""
        try:
            return self.opened.allocate(nbytes, self.stream)
        except OutOfMemoryError:
            if not self.dropped:
                raise
        self.flush()
        return self.opened.allocate(nbytes, self.stream)

    def add(self, step: BoundStep, at: Slots, numbers: Sequence[Number]) -> None:
        """Puts a launch behind the others."""
        if not step.empty:
            self.waiting.append((step.run, arguments(step, at), scalars(step, numbers)))
            self.steps.append(step)

    def flush(self) -> None:
        """Launches what waits. Raises: PluginError for what the backend did not mean to raise."""
        if self.waiting:
            try:
                self.opened.backend.launch_all(self.waiting, self.stream)
            except Exception as error:
                kernels = [step.step.kernel for step in self.steps]
                doing = f"launch_all of {', '.join(k.name for k in kernels)}"
                blame(self.opened.device, doing, "\n".join(map(str, kernels)), error)
                raise
            counters.launches += len(self.waiting)
        for slot in self.dropped:
            self.keep[slot] = None
        self.waiting, self.steps, self.dropped = [], [], []


def run(
    opened: Opened, step: BoundStep, at: Slots, numbers: Sequence[Number], stream: StreamHandle
) -> None:
    """One launch. Raises: PluginError for what the backend did not mean to raise."""
    if step.empty:
        return
    args, numbers = arguments(step, at), scalars(step, numbers)
    try:
        step.run(args, numbers, stream)
    except Exception as error:
        kernel = step.step.kernel
        blame(opened.device, f"the launch of {kernel.name}", kernel, error)
        raise
    counters.launches += 1


def arguments(step: BoundStep, at: Slots) -> tuple[Any, ...]:
    """The handles and offsets of a launch."""
    args = picked(at, step.picked)
    return shifted(args, step.offsets) if step.offsets else args


def scalars(step: BoundStep, numbers: Sequence[Number]) -> Sequence[Number]:
    """The numbers of a launch."""
    return numbers if step.all_scalars else [numbers[i] for i in step.scalars]


def picked(at: Slots, which: tuple[int, ...]) -> tuple[object, ...]:
    """Those of handles and offsets."""
    found: list[object] = [None] * len(which)
    for k in range(len(which)):
        j = which[k]
        found[k] = at[j]
    return tuple(found)


def run_checked(
    opened: Opened,
    step: BoundStep,
    at: Slots,
    nodes: Sequence[Expr],
    numbers: Sequence[Number],
    stream: StreamHandle,
) -> None:
    """One launch that notes bad indices. Raises: IndexOutOfRange."""
    prompt = opened.faults.prompt()
    assert prompt is not None, "the plan is not prompt"
    handle, cells = prompt
    for k, (slot, _, _) in enumerate(step.checks):
        cells[k] = 0  # an interrupt may have left something
        at[2 * slot], at[2 * slot + 1] = handle, k * WIDTH
    run(opened, step, at, numbers, stream)
    for k, (_, i, asked) in enumerate(step.checks):
        index = cells[k]
        if index or asked.size == 0:  # where nothing is in range, 0 is not either
            raise out_of_range(asked, index, nodes[i].asked_at)


def shifted(args: tuple[Any, ...], offsets: Sequence[tuple[int, int]]) -> tuple[Any, ...]:
    """Arguments with static offsets added."""
    found = list(args)
    for k, offset in offsets:
        found[k] += offset
    return tuple(found)


def call(opened: Opened, bound: BoundCall, at: Slots, stream: StreamHandle) -> None:
    """One call of a vendor's routine."""
    counters.calls += 1
    try:
        if bound.run is not None:
            args = picked(at, bound.picked)
            bound.run(shifted(args, bound.offsets) if bound.offsets else args, (), stream)
            return
        inputs = tuple([part(at, p) for p in bound.inputs])
        bound.routine(opened.backend, inputs, part(at, bound.output), stream)
    except Exception as error:
        blame(opened.device, f"the library call of {bound.call.op.name}", "", error)
        raise


def part(at: Slots, p: Part) -> StridedOperand:
    """A value as a vendor's routine takes it."""
    slot, start, shape, strides, dtype = p
    return at[2 * slot], at[2 * slot + 1] + start, shape, strides, dtype
