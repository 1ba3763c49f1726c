"""Bound plans, and the launch of their steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..backend.faults import (
    CELL_BYTES,
    HOST_CELLS_MAX,
    IndexCheck,
    IndexPurpose,
    out_of_range_error,
)
from ..backend.interface import Launch, LibraryCall, StridedOperand
from ..dtypes import DType
from ..errors import OutOfMemoryError
from ..fusion.plan import MemoryOperand, Plan, PlannedCall, PlannedLaunch
from ..graph.expr import Expr, convert_to_leaf
from ..layout import Shape
from ..memory.pointer import DataPtr, StreamHandle
from ..memory.storage import storage_over
from ..plugins.device_handle import OpenedDevice
from ..plugins.plugin_errors import raise_plugin_error
from ..settings import flags
from . import events
from .events import counters

Addresses: TypeAlias = list[Any]  # [handle0, offset0, handle1, offset1, ...]
Number: TypeAlias = float | int | bool
OperandLayout: TypeAlias = tuple[int, int, Shape, Shape, DType]  # slot, byte offset, shape, strides


# --- bound plans ----------------------------------------------------------------------------------


class BoundPlanStep:
    """A step of a plan, bound to its fixed arguments: a launch or a library call."""

    __slots__ = ("address_positions", "allocations", "freed_slots", "offsets", "run")

    allocations: tuple[tuple[int, int], ...]  # slots to allocate before the step, and their bytes
    freed_slots: tuple[int, ...]  # slots to free after the step
    run: Launch | None  # None: a library routine that cannot be bound
    address_positions: tuple[int, ...]  # positions of the arguments among all handles and offsets
    offsets: tuple[tuple[int, int], ...]  # static byte offsets to add, by argument

    def __init__(
        self,
        step: PlannedLaunch | PlannedCall,
        run: Launch | None,
        buffers: Sequence[tuple[int, int]],
    ) -> None:
        """Bind a step to its buffers, given as slot and byte offset."""
        self.allocations, self.freed_slots, self.run = step.allocations, step.released_slots, run
        self.address_positions = tuple([k for slot, _ in buffers for k in (2 * slot, 2 * slot + 1)])
        self.offsets = tuple([(2 * k + 1, o) for k, (_, o) in enumerate(buffers) if o])


class BoundKernel(BoundPlanStep):
    """A bound launch of a kernel."""

    __slots__ = ("all_scalars", "checks", "has_empty_grid", "scalars", "step", "written")

    step: PlannedLaunch
    run: Launch
    scalars: tuple[int, ...]
    all_scalars: bool  # True if `scalars` is all of the plan's numbers in order
    has_empty_grid: bool  # the grid has no points
    checks: tuple[tuple[int, int, IndexPurpose], ...]  # error cells: slot, node, purpose
    written: tuple[int, ...]  # buffers that are written, without error cells

    def __init__(self, step: PlannedLaunch, scalars: int, run: Launch) -> None:
        super().__init__(step, run, step.buffers)
        self.step, self.scalars = step, step.scalars
        self.all_scalars = step.scalars == tuple(range(scalars))
        self.has_empty_grid = 0 in step.grid
        self.checks = () if self.has_empty_grid else step.checks
        cells = {slot for slot, _, _ in step.checks}
        buffers = enumerate(zip(step.buffers, step.kernel.buffers, strict=True))
        self.written = tuple(
            [k for k, ((slot, _), b) in buffers if b.access != "r" and slot not in cells]
        )


class BoundCall(BoundPlanStep):
    """A bound call of a vendor's routine."""

    __slots__ = ("call", "inputs", "output", "routine")

    call: PlannedCall
    inputs: tuple[OperandLayout, ...]
    output: OperandLayout
    routine: LibraryCall

    def __init__(self, opened: OpenedDevice, call: PlannedCall) -> None:
        operand_parts = [_build_operand_layout(p) for p in (*call.inputs, call.output)]
        operands = [
            (None, 0, shape, strides, dtype) for _, _, shape, strides, dtype in operand_parts
        ]
        self.routine = opened.library_calls[call.op.name, call.dtype]
        run = opened.backend.bind_call(self.routine, operands[:-1], operands[-1])
        super().__init__(call, run, [(slot, start) for slot, start, *_ in operand_parts])
        self.call, self.inputs, self.output = call, tuple(operand_parts[:-1]), operand_parts[-1]


def _build_operand_layout(operand: MemoryOperand) -> OperandLayout:
    """Return the slot, byte offset, shape, strides and dtype of an operand."""
    return (
        operand.slot,
        operand.view.offset * operand.dtype.itemsize,
        operand.view.shape,
        operand.view.strides,
        operand.dtype,
    )


class BoundPlan:
    """A plan with bound steps."""

    __slots__ = ("checks", "empty_addresses", "empty_memory", "is_cached", "kept", "plan", "steps")

    plan: Plan
    steps: list[BoundPlanStep]
    kept: tuple[tuple[int, int], ...]
    empty_memory: list[DataPtr | None]  # None for each slot
    empty_addresses: list[object]  # handle and offset of each slot, all of them empty
    checks: int  # maximum of error cells per step
    is_cached: bool  # True if the graph is in the cache of `plan_cache`

    def is_prompt(self, opened: OpenedDevice, reports_checks: bool) -> bool:
        """Return True without checks, or if they are reported and readable as launches return."""
        if self.checks == 0:
            return True
        if opened.host_cells is None:
            opened.host_cells = opened.faults.host_cells()
        return reports_checks and self.checks <= HOST_CELLS_MAX and opened.host_cells is not None

    def __init__(self, plan: Plan, steps: list[BoundPlanStep]) -> None:
        self.plan, self.steps, self.kept = plan, steps, plan.output_slots
        self.empty_memory = [None] * plan.slot_count
        self.empty_addresses = [None, 0] * plan.slot_count
        self.checks = max([len(s.checks) for s in steps if isinstance(s, BoundKernel)], default=0)
        self.is_cached = False


# --- launches -------------------------------------------------------------------------------------


def initial_addresses(plan: BoundPlan, leaves: Sequence[Expr], target: Expr | None) -> Addresses:
    """Return the flat handles and offsets of all slots, set for the leaves and the target.

    Those of other slots are None and 0 until the slots are allocated.
    """
    at: Addresses = plan.empty_addresses[:]
    k = 0
    for e in leaves:
        set_address(at, k, e)
        k += 2
    if target is not None:
        set_address(at, k, target)
    return at


def set_address(at: Addresses, k: int, e: Expr) -> None:
    """Store the handle and byte offset of a leaf in memory at positions `k` and `k + 1` of `at`."""
    ptr = e.storage.ptr
    at[k] = ptr.address()
    at[k + 1] = ptr.offset + e.offset * e.spec.itemsize if e.offset else ptr.offset


def launch_plan(
    opened: OpenedDevice,
    plan: BoundPlan,
    nodes: Sequence[Expr],
    leaves: Sequence[Expr],
    numbers: Sequence[Number],
    target: Expr | None,
    stream: StreamHandle,
    run_checked: RunChecked | None = None,
) -> None:
    """Run a bound plan on a stream, and turn the nodes that the plan stores into leaves.

    `run_checked`: runs a step that checks indices. By default the step has run when it returns.
    Raises: OutOfRangeError, before anything is written.
    """
    if opened.has_streams:
        opened.record_streams(
            stream, [e.storage for e in (*leaves, *([] if target is None else [target]))]
        )
    launches = LaunchList(
        opened, plan, initial_addresses(plan, leaves, target), nodes, numbers, stream
    )
    launches.run(plan.steps, run_checked)
    for i, slot in plan.kept:
        memory = launches.keep[slot]
        if memory is not None:  # None: the value is in the target
            convert_to_leaf(nodes[i], storage_over(memory, opened.device))


class LaunchList:
    """One run of a bound plan: it allocates, launches the steps in order, frees what they drop.

    A backend with a `launch_all` of its own gets launches that follow each other in one call. Slots
    that they no longer need are freed after that call: another launch could write there before.

    `addresses`: handle and offset of each slot. `keep`: the memory that was allocated for a slot.
    """

    __slots__ = (
        "_drops",
        "_is_batched",
        "_queued_launches",
        "_steps",
        "addresses",
        "keep",
        "nodes",
        "numbers",
        "opened",
        "stream",
    )

    def __init__(
        self,
        opened: OpenedDevice,
        plan: BoundPlan,
        addresses: Addresses,
        nodes: Sequence[Expr],
        numbers: Sequence[Number],
        stream: StreamHandle,
    ) -> None:
        self.opened, self.addresses, self.nodes, self.numbers = opened, addresses, nodes, numbers
        self.stream = stream
        self.keep: list[DataPtr | None] = plan.empty_memory[:]
        self._is_batched = opened.takes_batches and len(plan.steps) > 1 and not flags.is_observed
        self._queued_launches: list[tuple[Launch, tuple[Any, ...], Sequence[Number]]] = []
        self._steps: list[BoundKernel] = []
        self._drops: list[int] = []

    def run(self, steps: Sequence[BoundPlanStep], run_checked: RunChecked | None) -> None:
        """Run steps in order, batched if possible; allocate before and free slots after each."""
        for step in steps:
            for slot, nbytes in step.allocations:
                ptr = self._allocate(nbytes)
                self.keep[slot] = ptr
                self.addresses[2 * slot] = ptr.address()
                self.addresses[2 * slot + 1] = ptr.offset
            if isinstance(step, BoundKernel):
                if step.checks:
                    self._flush()
                    (run_checked or run_and_check)(self, step)
                elif self._is_batched:
                    self._append(step)
                else:
                    run(self.opened, step, self.addresses, self.numbers, self.stream)
            elif isinstance(step, BoundCall):
                self._flush()
                run_library_call(self.opened, step, self.addresses, self.stream)
            if self._is_batched:
                self._drops += step.freed_slots
            else:
                for slot in step.freed_slots:
                    self.keep[slot] = None
        self._flush()

    def _allocate(self, nbytes: int) -> DataPtr:
        """Allocate memory; when out of memory, flush the queue to free slots and retry once."""
        try:
            return self.opened.allocate(nbytes, self.stream)
        except OutOfMemoryError:
            if not self._drops:
                raise
        self._flush()
        return self.opened.allocate(nbytes, self.stream)

    def _append(self, step: BoundKernel) -> None:
        """Append a launch with its arguments to the queue, unless its grid is empty."""
        if not step.has_empty_grid:
            self._queued_launches.append(
                (step.run, launch_arguments(step, self.addresses), scalars(step, self.numbers))
            )
            self._steps.append(step)

    def _flush(self) -> None:
        """Submit the queued launches in one call; free dropped slots.

        Raises: PluginError if it fails.
        """
        if self._queued_launches:
            try:
                self.opened.backend.launch_all(self._queued_launches, self.stream)
            except Exception as error:
                kernels = [step.step.kernel for step in self._steps]
                doing = f"launch_all of {', '.join([k.name for k in kernels])}"
                raise_plugin_error(self.opened.device, doing, "\n".join(map(str, kernels)), error)
                raise
            counters.launches += len(self._queued_launches)
            self._queued_launches, self._steps = [], []
        for slot in self._drops:
            self.keep[slot] = None
        self._drops = []


RunChecked: TypeAlias = Callable[[LaunchList, BoundKernel], None]


def run(
    opened: OpenedDevice,
    step: BoundKernel,
    at: Addresses,
    numbers: Sequence[Number],
    stream: StreamHandle,
) -> None:
    """Launch one step, unless its grid is empty. Raises: PluginError for backend errors."""
    if step.has_empty_grid:
        return
    args, numbers = launch_arguments(step, at), scalars(step, numbers)
    begun = time.perf_counter_ns() if flags.is_observed else 0
    try:
        step.run(args, numbers, stream)
    except Exception as error:
        kernel = step.step.kernel
        raise_plugin_error(opened.device, f"the launch of {kernel.name}", kernel, error)
        raise
    counters.launches += 1
    if flags.is_observed:
        record_launch_event(
            opened, step.step.kernel.name, begun, stream, step.step.nbytes, step.step.grid
        )


def record_launch_event(
    opened: OpenedDevice,
    name: str,
    begun: int,
    stream: StreamHandle,
    nbytes: int,
    grid: tuple[int, ...] | None = None,
) -> None:
    """If a profile is active, wait for the stream and add the launch's event to all profiles."""
    if events.profiles:
        opened.backend.synchronize(stream)
        live = opened.allocator.stats().live_bytes
        details: events.Details = {"bytes": nbytes, "live": live, "device": str(opened.device)}
        if grid is not None:
            details["grid"] = grid
        events.note(f"launch {name}", begun, **details)


def launch_arguments(step: BoundKernel, at: Addresses) -> tuple[Any, ...]:
    """Return the handles and byte offsets of a step's buffers, with static offsets added."""
    args = select_addresses(at, step.address_positions)
    return add_offsets(args, step.offsets) if step.offsets else args


def scalars(step: BoundKernel, numbers: Sequence[Number]) -> Sequence[Number]:
    """Return the numbers that a step passes to its launch."""
    return numbers if step.all_scalars else [numbers[i] for i in step.scalars]


def select_addresses(at: Addresses, which: tuple[int, ...]) -> tuple[object, ...]:
    """Return the entries at positions of the flat list `at`: handle, offset, handle, offset..."""
    values: list[object] = [None] * len(which)
    for k in range(len(which)):
        j = which[k]
        values[k] = at[j]
    return tuple(values)


def run_and_check(launches: LaunchList, step: BoundKernel) -> None:
    """Launch a step of a prompt plan; read its cells. Raises: OutOfRangeError for a bad index."""
    prompt = launches.opened.faults.host_cells()
    assert prompt is not None, "the plan is not prompt"
    handle, cells = prompt
    at = launches.addresses
    for k, (slot, _, _) in enumerate(step.checks):
        cells[k] = 0  # an interrupt may have left an old value
        at[2 * slot], at[2 * slot + 1] = handle, k * CELL_BYTES
    run(launches.opened, step, at, launches.numbers, launches.stream)
    for k, (_, i, purpose) in enumerate(step.checks):
        index = cells[k]
        if index or purpose.size == 0:  # along an axis of size 0 even index 0 is out of range
            raise out_of_range_error(purpose, index, launches.nodes[i].check_line)


def run_deferred(
    opened: OpenedDevice,
    step: BoundKernel,
    at: Addresses,
    numbers: Sequence[Number],
    stream: StreamHandle,
) -> list[tuple[int, IndexCheck]]:
    """Launch a step without a wait; put error cells into `at`; return (node, check) pairs."""
    checks = []
    for slot, i, purpose in step.step.checks:
        check = opened.faults.create_check(purpose, stream)
        at[2 * slot : 2 * slot + 2] = opened.faults.cell_location(check)
        checks.append((i, check))
    try:
        run(opened, step, at, numbers, stream)
    except BaseException:  # the launch was refused: its cells report no error
        for _, check in checks:
            check.refused = True
        raise
    finally:
        for _, check in checks:
            check.queued = True
    return checks


def add_offsets(args: tuple[Any, ...], offsets: Sequence[tuple[int, int]]) -> tuple[Any, ...]:
    """Return a copy of the arguments with the byte offsets (position, offset) added."""
    values = list(args)
    for k, offset in offsets:
        values[k] += offset
    return tuple(values)


def run_library_call(
    opened: OpenedDevice, bound: BoundCall, at: Addresses, stream: StreamHandle
) -> None:
    """Call the vendor routine of a bound step on a stream. Raises: PluginError if it fails."""
    begun = time.perf_counter_ns() if flags.is_observed else 0
    counters.calls += 1
    try:
        if bound.run is not None:
            args = select_addresses(at, bound.address_positions)
            bound.run(add_offsets(args, bound.offsets) if bound.offsets else args, (), stream)
        else:
            inputs = tuple([strided_operand(at, p) for p in bound.inputs])
            bound.routine(opened.backend, inputs, strided_operand(at, bound.output), stream)
    except Exception as error:
        raise_plugin_error(opened.device, f"the library call of {bound.call.op.name}", "", error)
        raise
    if flags.is_observed:
        name, device = f"call {bound.call.op.name}", str(opened.device)
        events.note(name, begun, bytes=bound.call.nbytes, device=device)


def strided_operand(at: Addresses, p: OperandLayout) -> StridedOperand:
    """Return the handle, byte offset, shape, strides and dtype of an operand of a library call."""
    slot, start, shape, strides, dtype = p
    return at[2 * slot], at[2 * slot + 1] + start, shape, strides, dtype
