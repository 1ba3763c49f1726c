"""Bound plans, and the launch of their steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..backend.faults import PROMPT, WIDTH, Asked, Check, out_of_range
from ..backend.interface import Launch, LibraryCall, StridedOperand
from ..dtypes import DType
from ..errors import OutOfMemoryError
from ..fusion.plan import Call, Operand, Plan, Step
from ..graph.expr import Expr, settle
from ..layout import Shape
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import storage_over
from ..plugins.device_handle import Opened
from ..plugins.plugin_errors import blame
from ..settings import flags
from . import events
from .events import counters

Slots: TypeAlias = list[Any]  # [handle0, offset0, handle1, offset1, ...]
Number: TypeAlias = float | int | bool
Part: TypeAlias = tuple[int, int, Shape, Shape, DType]  # slot, byte offset, shape, strides


# --- bound plans ----------------------------------------------------------------------------------


class Bound:
    """A step of a plan, bound to its fixed arguments: a launch or a library call."""

    __slots__ = ("drops", "fresh", "offsets", "picked", "run")

    fresh: tuple[tuple[int, int], ...]  # slots to allocate before the step, and their bytes
    drops: tuple[int, ...]  # slots to free after the step
    run: Launch | None  # None: a library routine that cannot be bound
    picked: tuple[int, ...]  # positions of the arguments among all handles and offsets
    offsets: tuple[tuple[int, int], ...]  # static byte offsets to add, by argument

    def __init__(
        self, step: Step | Call, run: Launch | None, buffers: Sequence[tuple[int, int]]
    ) -> None:
        """Bind a step to its buffers, given as slot and byte offset."""
        self.fresh, self.drops, self.run = step.fresh, step.drops, run
        self.picked = tuple([k for slot, _ in buffers for k in (2 * slot, 2 * slot + 1)])
        self.offsets = tuple((2 * k + 1, o) for k, (_, o) in enumerate(buffers) if o)


class BoundStep(Bound):
    """A bound launch of a kernel."""

    __slots__ = ("all_scalars", "checks", "empty", "scalars", "step", "written")

    step: Step
    run: Launch
    scalars: tuple[int, ...]
    all_scalars: bool  # True if `scalars` is all of the plan's numbers in order
    empty: bool  # the grid has no points
    checks: tuple[tuple[int, int, Asked], ...]  # error cells: slot, node, purpose
    written: tuple[int, ...]  # buffers that are written, without error cells

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
    """A bound call of a vendor's routine."""

    __slots__ = ("call", "inputs", "output", "routine")

    call: Call
    inputs: tuple[Part, ...]
    output: Part
    routine: LibraryCall

    def __init__(self, opened: Opened, call: Call) -> None:
        operand_parts = [_operand_part(p) for p in (*call.inputs, call.output)]
        operands = [
            (None, 0, shape, strides, dtype) for _, _, shape, strides, dtype in operand_parts
        ]
        self.routine = opened.library_calls[call.op.name, call.inputs[0].dtype]
        run = opened.backend.bind_call(self.routine, operands[:-1], operands[-1])
        super().__init__(call, run, [(slot, start) for slot, start, *_ in operand_parts])
        self.call, self.inputs, self.output = call, tuple(operand_parts[:-1]), operand_parts[-1]


def _operand_part(operand: Operand) -> Part:
    return (
        operand.slot,
        operand.view.offset * operand.dtype.itemsize,
        operand.view.shape,
        operand.view.strides,
        operand.dtype,
    )


class BoundPlan:
    """A plan with bound steps."""

    __slots__ = ("blank", "checks", "guarded", "kept", "none", "plan", "steps")

    plan: Plan
    steps: list[Bound]
    kept: tuple[tuple[int, int], ...]
    none: list[DataPtr | None]  # None for each slot
    blank: list[object]  # handle and offset of each slot, all of them empty
    checks: int  # maximum of error cells per step
    guarded: bool  # True if the graph is in the cache of `plan_cache`

    def is_prompt(self, opened: Opened, waits: bool) -> bool:
        """Return True if the error cells are readable as soon as the launches return."""
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


def initial_addresses(plan: BoundPlan, leaves: Sequence[Expr], target: Expr | None) -> Slots:
    """Return handle and byte offset of each slot that is in memory before the plan starts."""
    at: Slots = plan.blank[:]
    k = 0
    for e in leaves:
        set_address(at, k, e)
        k += 2
    if target is not None:
        set_address(at, k, target)
    return at


def set_address(at: Slots, k: int, e: Expr) -> None:
    """Store handle and byte offset of a leaf at `k` and `k + 1`."""
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
    run_checked: RunChecked | None = None,
) -> None:
    """Run a plan; the nodes that it keeps are leaves afterwards.

    `run_checked`: runs a step that checks indices. By default the step has run when it returns.
    Raises: IndexOutOfRange, before anything is written.
    """
    if opened.streams:
        opened.share(stream, [e.storage for e in (*leaves, *([] if target is None else [target]))])
    launches = LaunchList(
        opened, plan, initial_addresses(plan, leaves, target), nodes, numbers, stream
    )
    launches.run(plan.steps, run_checked)
    for i, slot in plan.kept:
        memory = launches.keep[slot]
        if memory is not None:  # None: the value is in the target
            settle(nodes[i], storage_over(memory, opened.device))


class LaunchList:
    """One run of a bound plan: it allocates, launches the steps in order, frees what they drop.

    A backend with a `launch_all` of its own gets launches that follow each other in one call. Slots
    that they no longer need are freed after that call: another launch could write there before.

    `at`: handle and offset of each slot. `keep`: the memory that was allocated for a slot.
    """

    __slots__ = (
        "_drops",
        "_is_batched",
        "_steps",
        "_waiting",
        "at",
        "keep",
        "nodes",
        "numbers",
        "opened",
        "stream",
    )

    def __init__(
        self,
        opened: Opened,
        plan: BoundPlan,
        at: Slots,
        nodes: Sequence[Expr],
        numbers: Sequence[Number],
        stream: StreamHandle,
    ) -> None:
        self.opened, self.at, self.nodes, self.numbers = opened, at, nodes, numbers
        self.stream = stream
        self.keep: list[DataPtr | None] = plan.none[:]
        self._is_batched = opened.batches and len(plan.steps) > 1 and not flags.profiled
        self._waiting: list[tuple[Launch, tuple[Any, ...], Sequence[Number]]] = []
        self._steps: list[BoundStep] = []
        self._drops: list[int] = []

    def run(self, steps: Sequence[Bound], run_checked: RunChecked | None) -> None:
        """Launch the steps in order; allocate the memory of each and free what it drops."""
        for step in steps:
            for slot, nbytes in step.fresh:
                ptr = self._allocate(nbytes)
                self.keep[slot] = ptr
                self.at[2 * slot] = ptr.address()
                self.at[2 * slot + 1] = ptr.offset
            if isinstance(step, BoundStep):
                if step.checks:
                    self._flush()
                    (run_checked or run_prompt)(self, step)
                elif self._is_batched:
                    self._append(step)
                else:
                    run(self.opened, step, self.at, self.numbers, self.stream)
            elif isinstance(step, BoundCall):
                self._flush()
                call(self.opened, step, self.at, self.stream)
            if self._is_batched:
                self._drops += step.drops
            else:
                for slot in step.drops:
                    self.keep[slot] = None
        self._flush()

    def _allocate(self, nbytes: int) -> DataPtr:
        """Allocate memory; if there is none, free what the waiting launches give up and retry."""
        try:
            return self.opened.allocate(nbytes, self.stream)
        except OutOfMemoryError:
            if not self._drops:
                raise
        self._flush()
        return self.opened.allocate(nbytes, self.stream)

    def _append(self, step: BoundStep) -> None:
        """Append a launch to those that wait."""
        if not step.empty:
            self._waiting.append((step.run, arguments(step, self.at), scalars(step, self.numbers)))
            self._steps.append(step)

    def _flush(self) -> None:
        """Launch what waits. Raises: PluginError for what the backend did not mean to raise."""
        if self._waiting:
            try:
                self.opened.backend.launch_all(self._waiting, self.stream)
            except Exception as error:
                kernels = [step.step.kernel for step in self._steps]
                doing = f"launch_all of {', '.join(k.name for k in kernels)}"
                blame(self.opened.device, doing, "\n".join(map(str, kernels)), error)
                raise
            counters.launches += len(self._waiting)
            self._waiting, self._steps = [], []
        for slot in self._drops:
            self.keep[slot] = None
        self._drops = []


RunChecked: TypeAlias = Callable[[LaunchList, BoundStep], None]


def run(
    opened: Opened, step: BoundStep, at: Slots, numbers: Sequence[Number], stream: StreamHandle
) -> None:
    """Launch one step. Raises: PluginError for what the backend did not mean to raise."""
    if step.empty:
        return
    args, numbers = arguments(step, at), scalars(step, numbers)
    begun = time.perf_counter_ns() if flags.profiled else 0
    try:
        step.run(args, numbers, stream)
    except Exception as error:
        kernel = step.step.kernel
        blame(opened.device, f"the launch of {kernel.name}", kernel, error)
        raise
    counters.launches += 1
    if flags.profiled:
        note_launch(opened, step.step.kernel.name, begun, stream, step.step.nbytes, step.step.grid)


def note_launch(
    opened: Opened,
    name: str,
    begun: int,
    stream: StreamHandle,
    nbytes: int,
    grid: tuple[int, ...] | None = None,
) -> None:
    """Wait for the stream and add a launch's event to the profiles, if one is taken."""
    if events.profiles:
        opened.backend.synchronize(stream)
        live = opened.allocator.stats().live_bytes
        details: events.Details = {"bytes": nbytes, "live": live, "device": str(opened.device)}
        if grid is not None:
            details["grid"] = grid
        events.note(f"launch {name}", begun, **details)


def arguments(step: BoundStep, at: Slots) -> tuple[Any, ...]:
    """Return the handles and offsets of a launch."""
    args = select(at, step.picked)
    return add_offsets(args, step.offsets) if step.offsets else args


def scalars(step: BoundStep, numbers: Sequence[Number]) -> Sequence[Number]:
    """Return the numbers of a launch."""
    return numbers if step.all_scalars else [numbers[i] for i in step.scalars]


def select(at: Slots, which: tuple[int, ...]) -> tuple[object, ...]:
    """Return the handles and offsets at the given positions."""
    values: list[object] = [None] * len(which)
    for k in range(len(which)):
        j = which[k]
        values[k] = at[j]
    return tuple(values)


def run_prompt(launches: LaunchList, step: BoundStep) -> None:
    """Launch a step and read its error cells at once. Raises: IndexOutOfRange."""
    prompt = launches.opened.faults.prompt()
    assert prompt is not None, "the plan is not prompt"
    handle, cells = prompt
    at = launches.at
    for k, (slot, _, _) in enumerate(step.checks):
        cells[k] = 0  # an interrupt may have left an old value
        at[2 * slot], at[2 * slot + 1] = handle, k * WIDTH
    run(launches.opened, step, at, launches.numbers, launches.stream)
    for k, (_, i, purpose) in enumerate(step.checks):
        index = cells[k]
        if index or purpose.size == 0:  # along an axis of size 0 even index 0 is out of range
            raise out_of_range(purpose, index, launches.nodes[i].asked_at)


def run_deferred(
    opened: Opened, step: BoundStep, at: Slots, numbers: Sequence[Number], stream: StreamHandle
) -> list[tuple[int, Check]]:
    """Launch a step without waiting; return its pending checks, each with its node's position."""
    checks = []
    for slot, i, purpose in step.step.checks:
        check = opened.faults.check(purpose, stream)
        at[2 * slot : 2 * slot + 2] = opened.faults.place(check)
        checks.append((i, check))
    try:
        run(opened, step, at, numbers, stream)
    finally:  # if the launch was refused, its cells report no error
        for _, check in checks:
            check.queued = True
    return checks


def add_offsets(args: tuple[Any, ...], offsets: Sequence[tuple[int, int]]) -> tuple[Any, ...]:
    """Return arguments with static offsets added."""
    values = list(args)
    for k, offset in offsets:
        values[k] += offset
    return tuple(values)


def call(opened: Opened, bound: BoundCall, at: Slots, stream: StreamHandle) -> None:
    """Call a vendor's routine."""
    begun = time.perf_counter_ns() if flags.profiled else 0
    counters.calls += 1
    try:
        if bound.run is not None:
            args = select(at, bound.picked)
            bound.run(add_offsets(args, bound.offsets) if bound.offsets else args, (), stream)
        else:
            inputs = tuple([strided_operand(at, p) for p in bound.inputs])
            bound.routine(opened.backend, inputs, strided_operand(at, bound.output), stream)
    except Exception as error:
        blame(opened.device, f"the library call of {bound.call.op.name}", "", error)
        raise
    if flags.profiled:
        name, device = f"call {bound.call.op.name}", str(opened.device)
        events.note(name, begun, bytes=bound.call.nbytes, device=device)


def strided_operand(at: Slots, p: Part) -> StridedOperand:
    """Return the address and the layout of an operand of a library call."""
    slot, start, shape, strides, dtype = p
    return at[2 * slot], at[2 * slot + 1] + start, shape, strides, dtype
